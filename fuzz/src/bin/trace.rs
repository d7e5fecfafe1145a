//! Traces under libFuzzer (`nandscape_inputs::trace`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::trace(input));
