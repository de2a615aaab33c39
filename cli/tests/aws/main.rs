//! The command line against strict services of AWS on loopback: a table of a real server, and the
//! queue, the bucket, the secrets and the stack that refuse what AWS refuses.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that meets something unexpected shall panic"
)]

#[expect(dead_code, reason = "the verbs' tests use all of it")]
#[path = "../verbs/bench.rs"]
mod bench;
#[path = "../doctor/clinic.rs"]
mod clinic;
#[path = "../secrets/markers.rs"]
mod markers;
#[expect(dead_code, reason = "the verbs' tests use all of it")]
#[path = "../verbs/scripted.rs"]
mod scripted;

mod access;
mod cloudformation;
mod dead;
mod doctor;
mod dynamodb;
mod jobs;
mod keys;
mod places;
mod refusals;
mod rotating;
mod secrets;
mod texts;
mod webhooks;
mod world;
