//! Stack files under libFuzzer (`nandscape_inputs::stack`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::stack(input));
