//! Changed device states under libFuzzer (`nandscape_inputs::state`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::state(input));
