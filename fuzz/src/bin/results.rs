//! Results and their reports under libFuzzer (`nandscape_inputs::results`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::results(input));
