//! Bytes of strangers, where settings are read; see `fuzz/README.md`.

mod sources;
