#![no_main]

#[path = "../../shared/testkit/tests/foreign/names.rs"]
mod names;

libfuzzer_sys::fuzz_target!(|input: &[u8]| names::check(input));
