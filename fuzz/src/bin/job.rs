//! fio's job files under libFuzzer (`nandscape_inputs::job`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::job(input));
