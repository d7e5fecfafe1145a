//! A conventional SSD on virtual NAND: what it stores can be read, what it promised survives power cuts and
//! faults, its invariants hold under load, its latencies are NVMeVirt's, and its collection writes as much as
//! theory says.

mod busy;
mod discard;
pub(crate) mod driver;
mod faults;
mod load;
mod spare;
mod theory;
mod timing;

use driver::{Driver, GEOMETRY, config, holds, keep_busy, large_units, power_safe};
use load::Load;
use nandscape_block::{Bio, BlockDevice, Flags, Lba, Payload, Reply, Tag};
use nandscape_ftl::device::config::{BufferConfig, Config, Victim};
use nandscape_ftl::{DeviceFtl, Ftl, FtlError, FtlRun, OmittedRule};
use nandscape_media::{Faults, Geometry, LinkTiming};
use nandscape_rt::{Nanos, Stream};
use std::cell::RefCell;

fn survives(timing: &str, config: Config) -> Load {
    let mut load = Load::new(Driver::new(timing, config), 7).run(30_000);
    load.check();
    let report = load.driver.ftl.report();
    assert!(report.gc.victims > 20, "garbage was collected: {report:?}");
    load
}

#[test]
fn a_load_survives_without_timing() {
    survives("none", config());
}

#[test]
fn a_load_survives_with_timing() {
    survives("nvmevirt-970pro", config());
}

#[test]
fn a_load_survives_with_every_victim_policy() {
    for victim in
        [Victim::CostBenefit, Victim::Fifo, Victim::Random, Victim::DChoices(4), Victim::PblkLists]
    {
        survives("qemu-ocssd", Config { victim, ..config() });
    }
}

#[test]
fn a_load_survives_with_little_overprovisioning() {
    for op_percent in [19, 30, 50] {
        survives("none", Config { op_hundredths: op_percent * 100, ..config() });
    }
}

#[test]
fn a_load_survives_on_one_instance() {
    for instances in [1, 2] {
        survives("none", Config { instances, ..config() });
    }
}

#[test]
fn a_load_survives_with_large_mapping_units() {
    for map_unit_bytes in [8 << 10, 16 << 10, 64 << 10] {
        let config = large_units(map_unit_bytes);
        survives("none", config.clone());
        survives("nvmevirt-970pro", config);
    }
}

#[test]
fn a_load_survives_in_a_power_safe_buffer() {
    survives("nvmevirt-970pro", power_safe());
}

#[test]
fn a_load_survives_without_early_completion() {
    let buffer = BufferConfig { early_completion: false, ..config().buffer };
    survives("qemu-ocssd", Config { buffer, ..config() });
}

/// Nothing that was promised is lost, whatever was in flight.
fn survives_cuts(timing: &str, config: Config, rounds: u64) {
    let load = Load::new(Driver::new(timing, config), 3).run(4_000);
    let load = load.run_with_cuts(rounds).expect("promises are kept");
    load.run(4_000).check();
}

#[test]
fn power_cuts_lose_nothing_that_was_flushed() {
    survives_cuts("nvmevirt-970pro", config(), 40);
    survives_cuts("qemu-ocssd", config(), 40);
    survives_cuts("none", config(), 20);
}

#[test]
fn power_cuts_spare_large_mapping_units() {
    survives_cuts("qemu-ocssd", large_units(16 << 10), 40);
    survives_cuts("qemu-ocssd", large_units(64 << 10), 20);
}

/// Whatever was acknowledged is there: the buffer is saved into an erase unit that was kept erased.
#[test]
fn power_cuts_spare_a_power_safe_buffer() {
    survives_cuts("nvmevirt-970pro", power_safe(), 40);
    survives_cuts("qemu-ocssd", power_safe(), 40);
    let config = Config { map_unit_bytes: 16 << 10, op_hundredths: 35 * 100, ..power_safe() };
    survives_cuts("qemu-ocssd", config, 20);
}

/// A device without one of the rules loses data, and the model sees it.
#[test]
fn omitted_rules_are_noticed() {
    for rule in [OmittedRule::OneShotFlush, OmittedRule::Sequence] {
        let run = FtlRun { omit: Some(rule), ..FtlRun::default() };
        let lost = (1..=8).any(|seed| {
            let driver = Driver::on(GEOMETRY, "qemu-ocssd", Faults::default(), config(), run);
            Load::new(driver, seed).run(4_000).run_with_cuts(20).is_err()
        });
        assert!(lost, "{rule:?}");
    }
}

/// A mapping unit of which a power cut left a part is not read, also after the next mount, when the rest of its page is
/// padded: what it would have superseded is, unless all of it is there.
#[test]
fn a_torn_unit_is_not_read() {
    let sectors = GEOMETRY.ws_opt;
    // All of these are of one instance.
    let put = |driver: &mut Driver, units: &[u64]| {
        for unit in units {
            driver.write_sectors(unit * u64::from(sectors), sectors, 201, Flags::FUA);
        }
    };
    let is_read = |omit| {
        (0..16).any(|seed| {
            let run = FtlRun { omit, ..FtlRun::default() };
            let (faults, config) = (Faults::default(), large_units(32 << 10));
            let mut driver = Driver::on(GEOMETRY, "qemu-ocssd", faults, config, run);
            driver.setup.cuts = Stream::new(seed, "cuts");
            // A mount gives collection the erase unit with most space, so the host's must have less.
            put(&mut driver, &[16]);
            let mut driver = driver.power_cut();
            put(&mut driver, &[20, 24]);
            driver.write_sectors(0, sectors, 1, Flags::FUA);
            let write = Bio::write(Lba(0), sectors, Payload::Run(Tag::new(101)));
            driver.submit(write, 1);
            let programmed = driver.ftl.next_event().expect("the page is full");
            let begun = Nanos(driver.now.0.midpoint(programmed.0));
            let mut driver = driver.cut(begun);
            // The instance goes on behind it.
            put(&mut driver, &[4, 8, 12]);
            let now = driver.now;
            let mut driver = driver.cut(now);
            let read: Vec<_> = (0..sectors.into()).map(|lba| driver.read(lba)).collect();
            let holds = |tag| (tag..).map(holds).take(sectors as usize);
            !read.iter().cloned().eq(holds(1)) && !read.into_iter().eq(holds(101))
        })
    };
    assert!(!is_read(None));
    assert!(is_read(Some(OmittedRule::TornUnits)), "torn-units changes nothing");
}

/// What waited for durability is explained to the nanosecond: what was ahead of the last program, and that program. A
/// flush of one sector on an idle device waits for nothing but its own page.
#[test]
fn the_parts_of_flush_time_add_up() {
    let parts = |driver: &Driver| {
        let flush = driver.ftl.report().flush;
        assert_eq!(
            flush.queue_ns + flush.gc_ns + flush.padding_ns + flush.program_ns,
            flush.total_ns
        );
        flush
    };
    let mut driver = Driver::new("nvmevirt-970pro", config());
    let page = u64::from(GEOMETRY.ws_opt);
    driver.write(0, 1, Flags::NONE);
    driver.settle();
    driver.flush();
    let flush = parts(&driver);
    assert_eq!((flush.waited, flush.drained_sectors, flush.queue_ns, flush.gc_ns), (1, 1, 0, 0));
    assert_eq!(flush.padding_ns, flush.total_ns * (page - 1) / page);
    // Many writes in flight, some of which wait for durability, on a full device.
    let (sectors, rng) = (driver.sectors(), RefCell::new(Stream::new(1, "flush")));
    keep_busy(&mut driver, 16, 4 * sectors, |number| {
        let flags = if number % 8 == 0 { Flags::FUA } else { Flags::NONE };
        let lba = if number < sectors { number } else { rng.borrow_mut().below(sectors) };
        Bio { flags, ..Bio::write(Lba(lba), 1, Payload::Run(Tag::new(1))) }
    });
    let (flush, gc) = (parts(&driver), driver.ftl.report().gc);
    assert!(gc.victims > 20 && flush.waited > sectors / 4, "{flush:?}");
    assert!(flush.queue_ns > 0 && flush.gc_ns > 0 && flush.program_ns > 0, "{flush:?}");
}

/// A flush of a power-safe buffer programs nothing; of a volatile one it pads each page that is being filled.
#[test]
fn a_flush_pads_what_power_would_lose() {
    for (config, padding) in [(config(), 7), (power_safe(), 0)] {
        let mut driver = Driver::new("nvmevirt-970pro", config);
        driver.write(0, 7, Flags::NONE);
        driver.flush();
        driver.write(4, 8, Flags::FUA);
        driver.flush();
        assert_eq!(driver.ftl.sectors().pad, 2 * padding);
    }
}

/// Writes of a part of a mapping unit read the rest, unless the unit still waits in the page being filled.
#[test]
fn parts_of_mapping_units_are_read_and_counted() {
    let mut driver = Driver::new("nvmevirt-970pro", large_units(16 << 10));
    driver.write_sectors(0, 4, 10, Flags::FUA);
    driver.write(1, 20, Flags::NONE);
    driver.write(2, 30, Flags::NONE);
    driver.flush();
    driver.write_sectors(9, 2, 40, Flags::NONE);
    let own = driver.ftl.own_counts();
    assert_eq!((own.rmw, own.rmw_sectors), (2, 3 + 2), "one read, one unit that held nothing");
    let held = [10, 20, 30, 13, 0, 0, 0, 0, 0, 40, 41, 0];
    for (lba, tag) in (0..).zip(held) {
        assert_eq!(driver.read(lba), holds(tag), "lba {lba}");
    }
}

/// More than the buffer holds goes through it piece by piece.
#[test]
fn a_bio_may_be_larger_than_the_buffer() {
    let mut driver = Driver::new("nvmevirt-970pro", config());
    driver.write_sectors(5, 1_000, 100, Flags::NONE);
    let done = driver.run(Bio::read(Lba(5), 1_000));
    assert_eq!(done.result, Ok(Reply::Data(Payload::Run(Tag::new(100)))));
    driver.check();
}

/// Discards of everything again and again leave a device that is as empty as a fresh one.
#[test]
fn discards_give_space_back() {
    let mut driver = Driver::new("none", config());
    let sectors = driver.sectors();
    for round in 0..6 {
        for lba in (0..sectors).step_by(64) {
            driver.write_sectors(lba, 64, round << 32 | lba, Flags::NONE);
            driver.run(Bio::discard(Lba(lba), 64));
            driver.flush();
        }
        driver.check();
    }
    assert_eq!(driver.ftl.mapped_sectors(), 0);
    driver = driver.power_cut();
    assert_eq!(driver.ftl.mapped_sectors(), 0);
    assert_eq!(driver.ftl.report().media_errors.uncorrectable, 0);
}

/// What does not fit is refused with its key.
#[test]
fn what_does_not_fit_is_refused() {
    let refused = |geometry: Geometry, config: Config| {
        let media = driver::nand(geometry, "none", Faults::default());
        match DeviceFtl::format(media, config, FtlRun::default(), LinkTiming::none()) {
            Err(FtlError::Config { key, .. }) => key,
            other => panic!("not refused: {:?}", other.map(|ssd| ssd.size())),
        }
    };
    let buffer = |size_bytes| BufferConfig { size_bytes, ..config().buffer };
    let cases = [
        ("ftl.instances", GEOMETRY, Config { instances: 3, ..config() }),
        ("ftl.instances", GEOMETRY, Config { instances: 8, ..config() }),
        ("ftl.map_unit", GEOMETRY, Config { map_unit_bytes: 12 << 10, ..config() }),
        ("ftl.map_unit", GEOMETRY, Config { map_unit_bytes: 128 << 10, ..config() }),
        ("ftl.op_percent", GEOMETRY, Config { op_hundredths: 7 * 100, ..config() }),
        ("ftl.op_percent", GEOMETRY, Config { op_hundredths: 100 * 100, ..config() }),
        ("ftl.buffer.size", GEOMETRY, Config { buffer: buffer(128 << 10), ..config() }),
        ("media.mw_cunits", Geometry { mw_cunits: 8, ..GEOMETRY }, config()),
        ("media.maxoc", Geometry { maxoc: 9, ..GEOMETRY }, config()),
    ];
    for (key, geometry, config) in cases {
        assert_eq!(refused(geometry, config), key);
    }
}

/// Data that another number of instances wrote are not served at other places.
#[test]
fn another_configuration_is_noticed() {
    let mut driver = Driver::new("none", config());
    driver.write_sectors(0, 64, 1, Flags::NONE);
    driver.flush();
    let other = Config { instances: 2, ..config() };
    let media = driver.ftl.power_off();
    let mounted = DeviceFtl::recover(media, other, driver.setup.run, driver.setup.link, driver.now);
    assert!(matches!(mounted, Err((_, FtlError::Corrupt { .. }))));
}
