#![no_main]

#[path = "../../shared/testkit/tests/foreign/envelope.rs"]
mod envelope;

libfuzzer_sys::fuzz_target!(|input: &[u8]| envelope::check(input));
