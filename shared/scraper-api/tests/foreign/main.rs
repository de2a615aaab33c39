//! Bytes of strangers, where the platform's answers are read; see `fuzz/README.md`.

#![expect(clippy::unwrap_used, reason = "a property that does not hold is told by a panic")]

mod answers;
