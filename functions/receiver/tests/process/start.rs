//! Starting with variables that are missing or wrong.

use settings::{Need, Role, read_by_function};
use testkit::starting::Program;

use super::site::{Site, delivery};

/// The function, with what starts it.
fn program() -> Program {
    let variables = testkit::run(async { Site::new().await.variables });
    let required = read_by_function(Role::Receiver).filter(|(_, need)| *need == Need::Required);
    Program::new(env!("CARGO_BIN_EXE_receiver"), variables, required.map(|(name, _)| name))
}

/// DP-09: each variable that is needed, absent and blank.
#[test]
fn a_missing_variable_is_named() {
    program().names_what_is_missing();
}

/// DP-09: all that is missing, and all that is of no use, is named at once.
#[test]
fn all_that_is_wrong_is_named_at_once() {
    let own: Vec<_> = read_by_function(Role::Receiver).map(|(name, _)| name).collect();
    let foreign = read_by_function(Role::Worker).map(|(name, _)| name);
    let foreign: Vec<_> = foreign.filter(|name| !own.contains(name)).collect();
    program().names_all_at_once(&foreign);
}

/// DP-09, FD-03: what is of no use is named, and not shown.
#[test]
fn a_variable_that_is_of_no_use_is_named_and_not_shown() {
    program().names_what_is_of_no_use(&[
        ("GLEANER_STACK", "0-marker-stack"),
        ("GLEANER_TABLE", "marker table"),
        ("GLEANER_QUEUE_URL", "marker-queue"),
        ("GLEANER_QUEUE_URL", "https://sqs.eu-central-1.amazonaws.com/1/marker.fifo"),
        ("GLEANER_WEBHOOK_SECRET_IDS", "marker-id,,marker-id"),
        ("GLEANER_WEBHOOK_PATH", "marker-path"),
        ("GLEANER_LIMITS_RECEIVE_DEADLINE", "marker-time"),
        ("GLEANER_SIGNING_HEADERS", "marker header"),
        ("GLEANER_LOG", "marker-loud"),
        ("GLEANER_API_KEY", "marker-key-of-another"),
        ("AWS_ENDPOINT_URL", "marker://nowhere"),
        ("AWS_USE_FIPS_ENDPOINT", "marker-yes"),
    ]);
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
