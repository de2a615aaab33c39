#![no_main]

#[path = "../../shared/testkit/tests/foreign/gzip.rs"]
mod gzip;

libfuzzer_sys::fuzz_target!(|input: &[u8]| gzip::check(input));
