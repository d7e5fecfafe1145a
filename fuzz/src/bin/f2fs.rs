//! Damaged images of F2FS under libFuzzer (`nandscape_inputs::f2fs`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::f2fs(input));
