#![no_main]

#[path = "../../shared/scraper-api/tests/foreign/answers.rs"]
mod answers;

libfuzzer_sys::fuzz_target!(|input: &[u8]| answers::check(input));
