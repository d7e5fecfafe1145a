//! Filebench's workload files under libFuzzer (`nandscape_inputs::wml`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::wml(input));
