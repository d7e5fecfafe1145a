//! Damaged images of ext4 under libFuzzer (`nandscape_inputs::ext4`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::ext4(input));
