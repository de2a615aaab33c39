use std::path::Path;

use super::*;

const ALL: [Level; 5] = [Level::ERROR, Level::WARN, Level::INFO, Level::DEBUG, Level::TRACE];

#[test]
fn our_crates_log_at_the_level_and_libraries_never_below_warn() {
    let levels = [
        LogLevel::Off,
        LogLevel::Error,
        LogLevel::Warn,
        LogLevel::Info,
        LogLevel::Debug,
        LogLevel::Trace,
    ];
    for (most, level) in levels.into_iter().enumerate() {
        let logged = |target| ALL.iter().filter(|of| wants(level, target, **of)).count();
        for ours in ["telemetry::tell::tasks", "gleaner", "scraper_api::rekeyed"] {
            assert_eq!(logged(ours), most, "{level:?} {ours}");
        }
        // Their traces show headers and bodies. Some names begin as ours do.
        for library in ["hyper::proto::h1", "aws_smithy_runtime", "domain_name::x", "receivers", ""]
        {
            assert_eq!(logged(library), most.min(2), "{level:?} {library}");
        }
    }
}

/// The crates of the workspace that are part of the product log as ours.
#[test]
fn every_crate_of_ours_is_known() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = manifest.split("members = [").nth(1).unwrap().split(']').next().unwrap();
    // The judges of tests, and crates that say nothing.
    let others = ["shared/simulator", "shared/testkit", "shared/settings", "shared/tls"];
    for member in members.split(',').map(|member| member.trim().trim_matches('"')) {
        let (folder, name) = member.split_once('/').unwrap_or_default();
        if ["functions", "shared"].contains(&folder) && !others.contains(&member) {
            assert!(OURS.contains(&name.replace('-', "_").as_str()), "{member}");
        }
    }
    assert!(OURS.contains(&"gleaner"));
}
