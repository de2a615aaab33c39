//! Starting with variables that are missing or wrong.

use std::collections::BTreeMap;

use serde_json::Value;
use settings::{Need, Role, read_by_function};

use super::site::{Process, Site, delivery};

/// What Lambda itself sets, and the function cannot do without.
const OF_LAMBDA: [&str; 3] = ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];

/// Starts with these variables: it ends with an error, and writes one line, which shows no value.
fn refusal(variables: &BTreeMap<String, String>) -> String {
    let (code, lines) = Process::start(variables).ended();
    assert_eq!(code, Some(1), "{lines:?}");
    let [line] = lines.as_slice() else { panic!("not one line: {lines:?}") };
    let parsed: Value = serde_json::from_str(line).unwrap();
    assert_eq!(parsed["level"], "ERROR");
    for (name, value) in variables {
        // A word such as the region may stand in a text that is not about it.
        let is_telling = value.len() > 4 && !value.starts_with("eu-");
        assert!(!(is_telling && line.contains(value.as_str())), "{name}: {line}");
    }
    parsed["fields"]["error"].as_str().unwrap().to_owned()
}

fn required() -> Vec<String> {
    let own = read_by_function(Role::Receiver).filter(|(_, need)| *need == Need::Required);
    own.map(|(name, _)| name).chain(OF_LAMBDA.map(str::to_owned)).collect()
}

/// DP-09: each variable that is needed, absent and blank.
#[test]
fn a_missing_variable_is_named() {
    let variables = testkit::run(async { Site::new().await.variables });
    for name in required() {
        for blank in [None, Some(""), Some("  ")] {
            let mut variables = variables.clone();
            variables.remove(&name);
            variables.extend(blank.map(|blank| (name.clone(), blank.to_owned())));
            let said = refusal(&variables);
            assert!(said.contains(&name), "{name} {blank:?}: {said}");
        }
    }
}

/// DP-09: all that is missing, and all that is of no use, is named at once.
#[test]
fn all_that_is_wrong_is_named_at_once() {
    let foreign: Vec<_> = read_by_function(Role::Worker).map(|(name, _)| name).collect();
    let own: Vec<_> = read_by_function(Role::Receiver).map(|(name, _)| name).collect();
    let foreign: Vec<_> = foreign.into_iter().filter(|name| !own.contains(name)).collect();
    let variables = foreign.iter().map(|name| (name.clone(), "marker".to_owned())).collect();
    let said = refusal(&variables);
    for name in required().iter().chain(&foreign) {
        assert!(said.contains(name), "{name}: {said}");
    }
}

/// DP-09: what is of no use is named, and not shown.
#[test]
fn a_variable_that_is_of_no_use_is_named_and_not_shown() {
    let variables = testkit::run(async { Site::new().await.variables });
    for (name, value) in [
        ("GLEANER_STACK", "0-marker-stack"),
        ("GLEANER_TABLE", "marker table"),
        ("GLEANER_QUEUE_URL", "marker-queue"),
        ("GLEANER_QUEUE_URL", "https://sqs.eu-central-1.amazonaws.com/1/marker.fifo"),
        ("GLEANER_WEBHOOK_SECRET_IDS", "marker-id,,marker-id"),
        ("GLEANER_WEBHOOK_PATH", "marker-path"),
        ("GLEANER_LIMITS_RECEIVE_DEADLINE", "marker-time"),
        ("GLEANER_LOG", "marker-loud"),
        ("GLEANER_API_KEY", "marker-key-of-another"),
        ("AWS_ENDPOINT_URL", "marker://nowhere"),
        ("AWS_USE_FIPS_ENDPOINT", "marker-yes"),
    ] {
        let mut variables = variables.clone();
        variables.insert(name.to_owned(), value.to_owned());
        let said = refusal(&variables);
        assert!(said.contains(name), "{name}: {said}");
    }
}

/// The system's roots of TLS, which take milliseconds to read, are not read where no address needs
/// them: without any the SDK would complain, and a debug build of it would panic.
#[test]
fn roots_are_not_read_without_need() {
    testkit::run(async {
        let mut site = Site::new().await;
        site.variables.insert("SSL_CERT_FILE".to_owned(), "/proc/self/no-such-file".to_owned());
        let process = site.start();
        assert_eq!(site.status(&delivery("job")).await, 202);
        let written = process.end();
        assert!(!written.iter().any(|line| line.contains("native root")), "{written:?}");
    });
}
