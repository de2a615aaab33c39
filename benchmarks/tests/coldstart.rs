//! The coldstart benchmark runs, few starts and without Python: the receiver accepts deliveries over
//! both transports, and what it asked of the services is checked.

use std::path::Path;
use std::process::Command;

#[test]
fn the_receiver_and_the_empty_function_are_compared() {
    // What is measured lies beside the one that measures, in the same profile.
    let measuring = Path::new(env!("CARGO_BIN_EXE_benchmarks"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "receiver", "--package", "empty-function"]);
    if measuring.parent().unwrap().ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().unwrap().success());
    let measured = Command::new(measuring)
        .args(["coldstart", "--starts", "1", "--warm", "3"])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (figures, talk) = (text(measured.stdout), text(measured.stderr));
    assert!(measured.status.success(), "{figures}\n{talk}");
    for transport in ["HTTP", "TLS"] {
        for function in ["an empty function", "receiver"] {
            let row = |line: &&str| line.contains(transport) && line.contains(function);
            assert!(figures.lines().any(|line| row(&line)), "{figures}");
        }
    }
    for judged in ["init beside the empty function's", "peak memory", "zip"] {
        assert!(figures.contains(judged), "{figures}");
    }
}
