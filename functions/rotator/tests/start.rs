//! Starting the rotator's process with variables that are missing or wrong.

use settings::{Need, Role, read_by_function};
use testkit::starting::Program;

/// The function, with what starts it.
fn program() -> Program {
    let variables = [
        ("GLEANER_STACK", "gleaner"),
        ("GLEANER_TABLE", "gleaner-Ledger-1A2B"),
        ("GLEANER_WEBHOOK_SECRET_IDS", "gleaner/extract"),
        ("GLEANER_API_KEY_SECRET_ID", "gleaner/api-key"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let required = read_by_function(Role::Rotator).filter(|(_, need)| *need == Need::Required);
    let required = required.map(|(name, _)| name);
    Program::new(env!("CARGO_BIN_EXE_rotator"), variables.into(), required)
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
        ("GLEANER_WEBHOOK_SECRET_IDS", "marker-id,,marker-id"),
        ("GLEANER_QUEUE_URL", "https://marker.example.com/of-another"),
    ]);
}
