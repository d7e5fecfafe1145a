//! Papers under libFuzzer (`nandscape_inputs::paper`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::paper(input));
