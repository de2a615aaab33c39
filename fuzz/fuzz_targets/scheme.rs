#![no_main]

#[path = "../../shared/testkit/tests/foreign/scheme.rs"]
mod scheme;

libfuzzer_sys::fuzz_target!(|input: &[u8]| scheme::check(input));
