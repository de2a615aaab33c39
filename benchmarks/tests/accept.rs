//! The accept benchmark runs, few deliveries and without Python: ours and the bare handler answer
//! every delivery as they should, and every one that was accepted is in the file.

use std::path::Path;
use std::process::Command;

#[test]
fn ours_and_the_bare_handler_are_compared() {
    // The binary that is measured lies beside the one that measures, in the same profile.
    let measuring = Path::new(env!("CARGO_BIN_EXE_benchmarks"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "gleaner", "--bin", "gleaner"]);
    if measuring.parent().unwrap().ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success());
    let measured = Command::new(measuring)
        .args(["accept", "--only", "bare,ours", "--rounds", "1", "--seconds", "0.2"])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (figures, talk) = (text(measured.stdout), text(measured.stderr));
    assert!(measured.status.success(), "{figures}\n{talk}");
    let judged = ["at 32 connections, p99", "at 256 connections, p99"];
    for said in ["| gleaner serve", "| bare axum"].iter().chain(&judged) {
        assert!(figures.contains(said), "{figures}");
    }
}
