//! Bytes of strangers, where the file and the secrets are read; see `fuzz/README.md`.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a property that does not hold is told by a panic"
)]

mod rows;
mod secrets_file;
