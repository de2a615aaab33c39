#![no_main]

#[path = "../../shared/embedded/tests/foreign/secrets_file.rs"]
mod secrets_file;

libfuzzer_sys::fuzz_target!(|input: &[u8]| secrets_file::check(input));
