//! What the host is promised, and what it costs: padding, flushes, PREFLUSH, FUA, reads and discards,
//! seen from the commands that reach the media.

use crate::common::{Driver, GEOMETRY, config, holds};
use nandscape_block::{Bio, Done, Flags, Lba, Payload, Reply, Tag};
use nandscape_ftl::Ftl;
use nandscape_ftl::pblk::config::{CapacityRules, Config, Limiter};
use nandscape_media::{Count, Kind};
use nandscape_rt::{Nanos, Stream};

/// Timing in which a program takes a while.
const TIMED: &str = "nvmevirt-970pro";

fn data_programs(driver: &Driver) -> Count {
    *driver.ftl.media().counters().writes(Kind::Data)
}

fn one(lba: u64, tag: u64) -> Bio {
    Bio::write(Lba(lba), 1, Payload::Run(Tag::new(tag)))
}

/// The price of a small fsync: a whole write unit, and the histogram tells.
#[test]
fn a_flushed_4_kib_write_costs_a_write_unit() {
    let mut driver = Driver::new(TIMED, config());
    driver.write(0, 5, Flags::NONE);
    assert_eq!(data_programs(&driver).sectors, 0, "nothing is written before it must be");
    driver.flush();
    assert_eq!(data_programs(&driver).sectors, u64::from(GEOMETRY.ws_opt));
    let stats = driver.report();
    assert_eq!((stats.sectors.user, stats.sectors.pad), (1, 7));
    assert_eq!(driver.detail().pad_units, [0, 0, 0, 0, 0, 0, 1, 0]);
}

/// Whole units need no padding, whatever flushes come.
#[test]
fn a_flushed_write_unit_needs_no_padding() {
    let mut driver = Driver::new(TIMED, config());
    driver.write_run(0, 8, 5);
    driver.flush();
    let stats = driver.report();
    assert_eq!((stats.sectors.user, stats.sectors.pad), (8, 0));
    assert_eq!(driver.detail().pad_units, [0; 8]);
}

#[test]
fn a_flush_of_a_clean_device_completes_at_once() {
    let mut driver = Driver::new(TIMED, config());
    assert_eq!(driver.submit(Bio::flush(), 1), Some(Done::ok(driver.now)));
    driver.write(0, 5, Flags::FUA);
    assert_eq!(driver.submit(Bio::flush(), 1), Some(Done::ok(driver.now)));
    let flush = driver.report().flush;
    assert_eq!((flush.empty, flush.waited), (2, 1));
}

/// A flush that finds its data submitted waits for the program all the same (Linux 4.13 did not).
#[test]
fn a_flush_waits_for_programs_under_way() {
    let mut driver = Driver::new(TIMED, config());
    driver.write_run(0, 8, 5);
    let program = data_programs(&driver);
    assert_eq!(program.commands, 1, "a full unit is submitted by itself");
    let flushed = driver.flush();
    assert!(flushed.at >= program.time, "{} before {}", flushed.at, program.time);
    assert_eq!(data_programs(&driver).commands, 1);
}

/// FUA: acknowledged from media, not from RAM.
#[test]
fn fua_completes_with_its_program() {
    let mut driver = Driver::new(TIMED, config());
    let start = driver.now;
    let done = driver.run(one(0, 5).with(Flags::FUA));
    let program = data_programs(&driver);
    assert_eq!(program.commands, 1);
    assert_eq!(done.at, start + program.time);
    let mut driver = driver.power_cut(config());
    assert_eq!(driver.read(0), holds(5));
}

/// PREFLUSH: after a power cut no journal commit without what it commits.
#[test]
fn preflush_data_waits_until_what_it_covers_is_durable() {
    let mut driver = Driver::new(TIMED, config());
    driver.write(0, 5, Flags::NONE);
    let start = driver.now;
    assert_eq!(driver.submit(one(1, 6).with(Flags::PREFLUSH | Flags::FUA), 2), None);
    let covered = data_programs(&driver);
    assert_eq!((covered.commands, covered.sectors), (1, 8), "only what is covered");
    assert_eq!(driver.read(1), holds(0), "the write has not happened yet");
    let done = loop {
        let before = data_programs(&driver).commands;
        let completed = driver.step();
        if data_programs(&driver).commands > before {
            assert!(driver.now >= start + covered.time, "submitted early");
        }
        if let Some(completion) = completed.into_iter().next() {
            break completion.done;
        }
    };
    assert_eq!(done.result, Ok(Reply::None));
    assert_eq!(data_programs(&driver).commands, 2);
    assert!(done.at > start + covered.time);
    assert_eq!((driver.read(0), driver.read(1)), (holds(5), holds(6)));
}

/// Whatever the load, a flush's time is explained to the nanosecond.
#[test]
fn the_parts_of_flush_time_add_up() {
    let mut driver = Driver::new(TIMED, config());
    let sectors = driver.sectors();
    driver.write_run(0, sectors, 1);
    let mut expected: Vec<u64> = (1..=sectors).collect();
    for round in 0..100 {
        driver.overwrite(&mut expected, 0, 100 + round % 9, round);
        driver.flush();
    }
    let stats = driver.report();
    let flush = stats.flush;
    assert!(stats.gc.victims > 0 && flush.waited >= 90, "{stats:?}");
    assert_eq!(flush.queue_ns + flush.gc_ns + flush.padding_ns + flush.program_ns, flush.total_ns);
    assert!(flush.program_ns > 0 && flush.padding_ns > 0, "{flush:?}");
}

/// The ring serves what it holds, without a media command; what has left it comes from media.
#[test]
fn reads_come_from_the_ring_and_then_from_media() {
    let mut driver = Driver::new(TIMED, config());
    driver.write(0, 5, Flags::FUA);
    assert_eq!(driver.read(0), holds(5));
    assert_eq!(driver.report().host.buffer_hits, 1);
    assert_eq!(driver.ftl.media().counters().reads.commands, 0);
    let ring = u64::from(driver.ftl.capacity().ring_sectors);
    driver.write_run(1, 2 * ring, 6);
    assert_eq!(driver.read(0), holds(5));
    assert_eq!(driver.report().host.buffer_hits, 1);
    assert_eq!(driver.ftl.media().counters().reads.commands, 1);
}

/// A sector that was never written is zeroes, and costs no media command.
#[test]
fn a_sector_never_written_reads_as_zeroes() {
    let mut driver = Driver::new(TIMED, config());
    assert_eq!(driver.read(driver.sectors() - 1), holds(0));
    assert_eq!(driver.ftl.media().counters().reads.commands, 0);
}

/// Discards are durable like writes: neither the copy in the ring nor the one on media comes back.
#[test]
fn a_flushed_discard_survives_a_power_cut() {
    let mut driver = Driver::new(TIMED, config());
    let ring = u64::from(driver.ftl.capacity().ring_sectors);
    let written = 2 * ring + 8;
    driver.write_run(0, written, 1);
    let mut expected: Vec<u64> = (1..=written).collect();
    for lba in [3, written - 1] {
        assert_eq!(driver.run(Bio::discard(Lba(lba), 1)).result, Ok(Reply::None));
        expected[lba as usize] = 0;
    }
    driver.check(&expected);
    driver.flush();
    driver.check(&expected);
    let mut driver = driver.power_cut(config());
    driver.check(&expected);
    driver.write(3, 77, Flags::FUA);
    let mut driver = driver.power_cut(config());
    assert_eq!(driver.read(3), holds(77), "a write after the discard counts");
}

/// Every sector that reaches media is counted under exactly one cause.
#[test]
fn the_write_amplification_counters_explain_every_sector() {
    for timing in ["none", TIMED] {
        let mut driver = Driver::new(timing, config());
        let sectors = driver.sectors();
        let mut rng = Stream::new(3, "mix");
        for tag in 1..30_000 {
            let lba = Lba(rng.below(sectors));
            let bio = match rng.below(50) {
                0 => Bio::flush(),
                1 => Bio::discard(lba, 1),
                2 => one(lba.0, tag).with(Flags::FUA),
                _ => one(lba.0, tag),
            };
            assert_eq!(driver.run(bio).result, Ok(Reply::None));
        }
        let counts = driver.report().sectors;
        let sum =
            counts.user + counts.gc + counts.pad + counts.line_meta + counts.map + counts.trim;
        assert_eq!(sum, driver.ftl.media().counters().sectors_written(), "{counts:?}");
        assert!(counts.gc > 0 && counts.trim > 0 && counts.line_meta > 0, "{counts:?}");
    }
}

/// A device full of data, overwritten several times, never stalls for good.
#[test]
fn a_full_device_keeps_going() {
    let limiters = [
        (CapacityRules::V4_16, Limiter::Kernel),
        (CapacityRules::V4_13, Limiter::Kernel),
        (CapacityRules::V4_16, Limiter::Reserve(1)),
        (CapacityRules::V4_16, Limiter::Reserve(3)),
    ];
    for (capacity_rules, limiter) in limiters {
        for timing in ["none", TIMED] {
            let config = Config { capacity_rules, limiter, ..config() };
            let mut driver = Driver::new(timing, config);
            let sectors = driver.sectors();
            driver.write_run(0, sectors, 1);
            let mut expected: Vec<u64> = (1..=sectors).collect();
            driver.overwrite(&mut expected, 0, 2 * sectors, 5);
            driver.ftl.check_invariants().expect("invariants");
            driver.check(&expected);
            assert!(driver.report().gc.victims > 0);
        }
    }
}

/// Nothing outside the device is served, and the device goes on.
#[test]
fn a_bio_beyond_the_end_is_refused() {
    let mut driver = Driver::new(TIMED, config());
    let end = driver.sectors();
    for bio in [one(end, 1), Bio::read(Lba(end), 1), Bio::discard(Lba(end - 1), 2)] {
        assert!(driver.run(bio).result.is_err());
    }
    driver.write(end - 1, 5, Flags::FUA);
    assert_eq!(driver.read(end - 1), holds(5));
    assert!(driver.now > Nanos::ZERO);
}
