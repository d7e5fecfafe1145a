//! Discards on a conventional SSD: their records take a bounded part of it, and never let older data come back.

use crate::device::driver::{Driver, GEOMETRY, config, holds, large_units, power_safe};
use nandscape_block::{Bio, BlockDevice, Flags, Lba};
use nandscape_ftl::device::config::Config;
use nandscape_ftl::{Ftl, FtlRun};
use nandscape_media::{Faults, Geometry};
use nandscape_rt::{Nanos, Stream};

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
    let own = driver.ftl.own_counts();
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

/// A record whose mapping unit a power cut tore never counts: neither at the mount after that, nor when the rest of its
/// page has been padded.
#[test]
fn torn_records_hide_nothing() {
    let geometry = Geometry { ws_min: 1, chunks: 20, ..GEOMETRY };
    let mut kept = 0;
    for seed in 0..32 {
        let config = large_units(16 << 10);
        let mut driver =
            Driver::on(geometry, "nvmevirt-970pro", Faults::default(), config, FtlRun::default());
        driver.setup.cuts = Stream::new(seed, "cuts");
        // Unit 1 is of instance 1. Records are in instance 0, where unit 0 keeps the erase unit.
        driver.write_sectors(0, 8, 70, Flags::NONE);
        driver.flush();
        driver.submit(Bio::discard(Lba(4), 4), 1);
        driver.submit(Bio::flush(), 2);
        let end = driver.ftl.next_event().expect("the record is programmed");
        let mut driver = driver.cut(Nanos(end.0 - 1));
        let first = driver.read(4);
        kept += u32::from(first == holds(74));
        // Collection of instance 0 goes on where the record was torn.
        let of_instance = driver.sectors() / 16;
        let mut rng = Stream::new(seed, "overwrites");
        let mut next =
            (1..of_instance).chain(std::iter::repeat_with(|| rng.within(1..of_instance)));
        while driver.ftl.report().sectors.gc == 0 {
            let unit = next.next().expect("endless");
            driver.write_sectors(16 * unit, 4, 100, Flags::NONE);
        }
        driver.settle();
        let mut driver = driver.power_cut();
        assert_eq!(driver.read(4), first, "seed {seed}");
    }
    assert!((1..32).contains(&kept), "each record was torn, or none");
}
