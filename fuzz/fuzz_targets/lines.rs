#![no_main]

/// The command line's own modules, which no library shows.
#[allow(dead_code)]
mod input {
    #[path = "../../../cli/src/input/duration.rs"]
    mod duration;
    #[path = "../../../cli/src/input/foreign.rs"]
    pub(crate) mod foreign;
    #[path = "../../../cli/src/input/lines.rs"]
    mod lines;
    #[path = "../../../cli/src/input/name.rs"]
    mod name;
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| input::foreign::check(input));
