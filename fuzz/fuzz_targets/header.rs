#![no_main]

#[path = "../../shared/testkit/tests/foreign/header.rs"]
mod header;

libfuzzer_sys::fuzz_target!(|input: &[u8]| header::check(input));
