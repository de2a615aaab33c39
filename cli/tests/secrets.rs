//! OB-01 and OB-02: whatever is logged, printed as an error or kept on disk shows no secret.
//!
//! Every flow of the binary runs at `--log trace`, in text and in JSON, with markers in place of
//! API key, signing secrets, signatures, bodies, pages and queries of URLs. No marker may be found
//! afterwards, but where the verb was asked for it.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that meets something unexpected shall panic"
)]

#[expect(dead_code, reason = "the verbs' tests use all of it")]
#[path = "verbs/bench.rs"]
mod bench;
#[expect(dead_code, reason = "the server's tests use all of it")]
#[path = "serve/http.rs"]
mod http;
#[expect(dead_code, reason = "the verbs' tests use all of it")]
#[path = "verbs/scripted.rs"]
mod scripted;

#[path = "secrets/arguments.rs"]
mod arguments;
#[path = "secrets/deliveries.rs"]
mod deliveries;
#[path = "secrets/demo.rs"]
mod demo;
#[path = "secrets/disk.rs"]
mod disk;
#[path = "secrets/files.rs"]
mod files;
#[path = "secrets/markers.rs"]
mod markers;
#[path = "secrets/refusals.rs"]
mod refusals;
#[path = "secrets/serving.rs"]
mod serving;
#[path = "secrets/trouble.rs"]
mod trouble;
#[path = "secrets/watched.rs"]
mod watched;
#[path = "secrets/webhooks.rs"]
mod webhooks;
#[path = "secrets/wholes.rs"]
mod wholes;
