//! `gleaner doctor` on one machine: each check green and broken, and captured deliveries.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets something unexpected shall panic"
)]

#[expect(dead_code, reason = "the verbs' tests use all of it")]
#[path = "../verbs/bench.rs"]
mod bench;
#[path = "../secrets/markers.rs"]
mod markers;
#[expect(dead_code, reason = "the verbs' tests use all of it")]
#[path = "../verbs/scripted.rs"]
mod scripted;

mod captured;
mod checks;
mod clinic;
mod forms;
mod ledger;
mod outside;
mod whole;

use bench::Folder;
use clinic::{Diagnosis, diagnose};

/// Runs `gleaner doctor` in a folder, with further variables.
async fn doctor(folder: &Folder, variables: &[(&str, &str)]) -> Diagnosis {
    let mut command = folder.command(&["doctor", "--json"]);
    command.envs(variables.iter().copied());
    diagnose(command).await
}
