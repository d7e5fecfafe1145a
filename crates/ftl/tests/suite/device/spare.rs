//! The erase unit that is kept erased for saving a power-safe buffer, where bad chunks make others too small for that.

use crate::common::ssd::Setup;
use crate::device::driver::{Driver, GEOMETRY, holds, power_safe};
use nandscape_block::Flags;
use nandscape_ftl::device::config::Config;
use nandscape_ftl::{DeviceFtl, FtlError, FtlRun};
use nandscape_media::{
    ChunkId, DeviceTiming, FaultInjector, Faults, Media, MediaConfig, PayloadMode, UnitId,
};
use nandscape_rt::Stream;

/// A device whose instances have so many erase units without bad chunks, which come first. The others have one bad chunk
/// of two, and hold less than is saved when power fails.
fn with_whole(erase_units: u32) -> Result<Driver, FtlError> {
    let timing = DeviceTiming::preset("nvmevirt-970pro").expect("a preset");
    let bad_chunk = |unit, chunk| ChunkId { unit: UnitId(unit), chunk };
    // The first unit of each channel has the number of the channel.
    let bad_chunks = (0..GEOMETRY.groups)
        .flat_map(|unit| (erase_units..GEOMETRY.chunks).map(move |chunk| bad_chunk(unit, chunk)))
        .collect();
    let media = MediaConfig {
        timing: timing.nand,
        payload: PayloadMode::Tags,
        bad_chunks,
        ..MediaConfig::new(GEOMETRY)
    };
    let nand = FaultInjector::new(Media::new(media).expect("a device"), Faults::default(), 1);
    let config = Config { op_hundredths: 85 * 100, ..power_safe() };
    let (run, link) = (FtlRun::default(), timing.link);
    let ftl = DeviceFtl::format(nand, config.clone(), run, link)?;
    Ok(Driver::of(ftl, Setup { config, run, link, cuts: Stream::new(5, "cuts") }))
}

/// A mount that finds no erased erase unit which can save the buffer collects one, although much is free in others: also
/// if all that it holds is valid, and after a power cut meanwhile.
#[test]
fn a_mount_collects_an_erase_unit_that_can_save_the_buffer() {
    for commands in (300..800).step_by(10) {
        let mut driver = with_whole(3).expect("fits");
        let sectors = driver.sectors();
        let mut tags: Vec<u64> = (1..=sectors).collect();
        // The first sectors fill the erase units without bad chunks.
        for first in (0..sectors).step_by(16) {
            driver.write_sectors(first, 16, 1 + first, Flags::NONE);
        }
        driver.settle();
        for round in 1..=4 {
            // A sector of each instance is in the buffer when power fails.
            let first = sectors - 4 * round;
            driver.write_sectors(first, 4, 10_000 * round, Flags::NONE);
            (0..4).for_each(|index| tags[(first + index) as usize] = 10_000 * round + index);
            driver = driver.cut_in_mount(commands);
            driver.check();
        }
        driver.write(0, 1, Flags::NONE);
        for (lba, tag) in (0..).zip(tags) {
            assert_eq!(driver.read(lba), holds(tag), "lba {lba}, {commands} commands");
        }
    }
}

/// If only two erase units can save the buffer, both may be open at a mount, which then has none to collect.
#[test]
fn a_device_with_too_few_erase_units_that_can_save_the_buffer_is_refused() {
    let sectors = with_whole(2).map(|driver| driver.sectors());
    assert!(matches!(sectors, Err(FtlError::Config { key: "ftl.buffer.size", .. })), "{sectors:?}");
}
