#![no_main]

#[path = "../../shared/testkit/tests/foreign/retry_after.rs"]
mod retry_after;

libfuzzer_sys::fuzz_target!(|input: &[u8]| retry_after::check(input));
