//! Media of a small device of each kind of FTL in which sectors or chunks are changed: they are mounted, read and written.
//! The first byte chooses the kind.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nandscape_fuzz::input::Numbers;
use nandscape_fuzz::media::Device;

thread_local! {
    static DEVICES: Vec<Device> = Device::all();
}

fuzz_target!(|input: &[u8]| {
    let mut numbers = Numbers::new(input);
    let choice = numbers.number::<1>() as usize;
    DEVICES.with(|devices| devices[choice % devices.len()].try_changed(&mut numbers));
});
