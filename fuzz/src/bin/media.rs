//! Changed media of devices under libFuzzer (`nandscape_inputs::media`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::media(input));
