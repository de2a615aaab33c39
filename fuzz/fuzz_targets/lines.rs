#![no_main]

/// The command line's own modules, which no library shows.
#[allow(dead_code, reason = "the binary uses the modules whole, the check a part of each")]
#[path = "../../cli/src/input"]
mod input {
    mod duration;
    pub(crate) mod foreign;
    mod lines;
    mod name;
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| input::foreign::check(input));
