#![no_main]

#[path = "../../shared/testkit/tests/foreign/task.rs"]
mod task;

libfuzzer_sys::fuzz_target!(|input: &[u8]| task::check(input));
