//! Jobs of the command line under libFuzzer (`nandscape_inputs::command_line`).
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| nandscape_inputs::command_line(input));
