//! Sweep files under libFuzzer (`nandscape_inputs::sweep`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::sweep(input));
