//! Rotations while deliveries come in steadily, from the simulated platform to several receivers.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that cannot begin fails"
)]

mod rotations;
mod site;
