#![no_main]

#[path = "../../shared/embedded/tests/foreign/rows.rs"]
mod rows;

libfuzzer_sys::fuzz_target!(|input: &[u8]| rows::check(input));
