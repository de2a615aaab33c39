#![no_main]

#[path = "../../shared/testkit/tests/foreign/content.rs"]
mod content;

libfuzzer_sys::fuzz_target!(|input: &[u8]| content::check(input));
