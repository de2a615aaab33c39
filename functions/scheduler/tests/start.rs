//! Starting the scheduler's process with variables that are missing or wrong.

use settings::{Need, Role, read_by_function};
use testkit::starting::Program;

/// The function, with what starts it.
fn program() -> Program {
    let variables = [
        ("GLEANER_STACK", "gleaner"),
        ("GLEANER_TABLE", "gleaner-Ledger-1A2B"),
        ("GLEANER_QUEUE_URL", "https://sqs.eu-central-1.amazonaws.com/123456789012/gleaner-tasks"),
        ("GLEANER_API_KEY_SECRET_ID", "gleaner/api-key"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let required = read_by_function(Role::Scheduler).filter(|(_, need)| *need == Need::Required);
    let required = required.map(|(name, _)| name);
    Program::new(env!("CARGO_BIN_EXE_scheduler"), variables.into(), required)
}

/// DP-09: each variable that is needed, absent and blank; and all of them at once.
#[test]
fn a_missing_variable_is_named() {
    program().names_what_is_missing();
    program().names_all_at_once(&[]);
}

/// DP-09: what is of no use is named, and not shown.
#[test]
fn a_variable_that_is_of_no_use_is_named_and_not_shown() {
    program().names_what_is_of_no_use(&[
        ("GLEANER_TABLE", "marker table"),
        ("GLEANER_QUEUE_URL", "marker-queue"),
        ("GLEANER_WEBHOOKS", "marker-kinds"),
        ("GLEANER_BUCKET", "marker-bucket-of-another"),
    ]);
}
