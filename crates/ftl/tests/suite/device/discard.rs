//! Discards on a conventional SSD: their records take a bounded part of it, and never let older data come back.

use crate::device::driver::{Driver, config, holds, large_units, power_safe};
use nandscape_block::{Bio, Flags, Lba};
use nandscape_ftl::device::config::Config;
use nandscape_ftl::{Detail, Ftl};
use nandscape_rt::Stream;

/// Overlapping discards, each flushed, on a device that is otherwise full: their records would fill it if they
/// stayed for as long as what they hide is unmapped.
fn discard_and_flush(config: Config) -> (Driver, Vec<u64>) {
    let mut driver = Driver::new("none", config);
    let sectors = driver.sectors();
    let mut held = vec![0; sectors as usize];
    for lba in 0..sectors {
        driver.write(lba, 1 + lba, Flags::NONE);
        held[lba as usize] = 1 + lba;
    }
    let mut rng = Stream::new(5, "discards");
    for round in 0..6_000 {
        let (lba, tag) = (rng.below(sectors - 40), 1 << 32 | round);
        driver.write(lba + 20, tag, Flags::NONE);
        held[lba as usize + 20] = tag;
        let count = 21 + rng.below(20);
        driver.run(Bio::discard(Lba(lba), count as u32));
        held[lba as usize..(lba + count) as usize].fill(0);
        driver.flush();
    }
    driver.check();
    (driver, held)
}

fn assert_records_are_bounded(config: Config) {
    let (driver, held) = discard_and_flush(config);
    let Detail::Device(own) = driver.ftl.report().detail else { panic!("a device") };
    assert!(own.trim_compactions > 1, "{own:?}");
    let mut driver = driver.power_cut();
    for (lba, tag) in (0..).zip(held) {
        assert_eq!(driver.read(lba), holds(tag), "lba {lba}");
    }
}

#[test]
fn records_of_discards_are_compacted() {
    assert_records_are_bounded(config());
    assert_records_are_bounded(large_units(64 << 10));
}

/// A power-safe buffer holds records until a unit of them is full, so few go to media.
#[test]
fn a_power_safe_buffer_keeps_discards() {
    let (driver, held) = discard_and_flush(power_safe());
    let mut driver = driver.power_cut();
    for (lba, tag) in (0..).zip(held) {
        assert_eq!(driver.read(lba), holds(tag), "lba {lba}");
    }
}

/// A record that hides an old copy stays while what was written since may be lost with a power cut, whichever
/// instance has it.
#[test]
fn a_record_outlives_writes_in_the_buffer() {
    let mut driver = Driver::new("none", config());
    let sectors = driver.sectors();
    // Unit 1 is of instance 1, records are in instance 0.
    driver.write(1, 100, Flags::FUA);
    driver.run(Bio::discard(Lba(1), 1));
    driver.flush();
    driver.write(1, 200, Flags::NONE);
    // Collection of every erase unit of instance 0, several times.
    let mut rng = Stream::new(6, "overwrites");
    for tag in 0..4 * sectors {
        driver.write(rng.below(sectors / 4) * 4, 1 << 32 | tag, Flags::NONE);
    }
    assert!(driver.ftl.report().gc.victims > 40);
    let mut driver = driver.power_cut();
    assert_eq!(driver.read(1), holds(0), "not 100, which the record hides");
}
