#![no_main]

#[path = "../../shared/settings/tests/foreign/sources.rs"]
mod sources;

libfuzzer_sys::fuzz_target!(|input: &[u8]| sources::check(input));
