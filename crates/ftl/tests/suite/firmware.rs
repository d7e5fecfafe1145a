//! The core of an SSD's firmware: accesses to maps are those that a count by hand finds, each takes its time, one after the
//! other, and none where none is set.

use crate::common::driver::Driver as Any;
use crate::common::ssd::{Setup, Ssd};
use crate::coupled::driver::{self as coupled, DATA};
use crate::device::driver as pages;
use crate::interval::driver as interval;
use nandscape_block::{Bio, Lba, Payload, Tag};
use nandscape_ftl::device::config::Config as PagesConfig;
use nandscape_ftl::{Attach, Ftl, FtlRun};
use nandscape_media::{Faults, Geometry};
use nandscape_rt::Nanos;

const LOG: u64 = 1 << 16;
/// What an access takes: more than anything else but media.
const NS: u64 = 10_000;

fn write(lba: u64, sectors: u32) -> Bio {
    Bio::write(Lba(lba), sectors, Payload::Run(Tag::new(lba)))
}

/// A fresh device in a run.
fn running<F: Ssd>(
    (geometry, timing): (Geometry, &str),
    config: F::Config,
    times_firmware: bool,
) -> Any<F, Setup<F::Config>> {
    let mut driver =
        Any::<F, _>::on(geometry, timing, Faults::default(), config, FtlRun::default());
    let link = driver.setup.link;
    driver.ftl.attach(Attach { host: None, link, copy_ns_per_sector: 0, times_firmware });
    driver.ftl.reset_counts();
    driver
}

fn interval_ssd(timing: &str, map_access_ns: u64) -> interval::Driver {
    let plain = interval::config();
    let pages = PagesConfig { map_access_ns, ..plain.pages };
    let config = nandscape_ftl::interval::Config { pages, ..plain };
    running((interval::GEOMETRY, timing), config, true)
}

fn coupled_ssd(
    timing: &str,
    map_access_ns: u64,
    plain: nandscape_ftl::coupled::Config,
) -> coupled::Driver {
    let pages = PagesConfig { map_access_ns, ..plain.pages };
    let config = nandscape_ftl::coupled::Config { pages, ..plain };
    running((coupled::GEOMETRY, timing), config, true)
}

fn accesses<F: Ftl, S>(driver: &Any<F, S>) -> u64 {
    driver.ftl.report().firmware.expect("maps").map_accesses
}

/// Serves bios one after the other: each takes, beside nothing else, its number of accesses.
fn assert_each_takes<F: Ftl, S>(driver: &mut Any<F, S>, bios: &[(Bio, u64)]) {
    for (bio, expected) in bios {
        let (began, before) = (driver.now, accesses(driver));
        let done = driver.run(bio.clone());
        assert!(done.result.is_ok(), "{bio:?}: {done:?}");
        assert_eq!(accesses(driver) - before, *expected, "{bio:?}");
        assert_eq!(done.at - began, Nanos(NS * expected), "{bio:?}");
    }
    let counts = driver.ftl.report().firmware.expect("maps");
    assert_eq!(counts.busy_ns, NS * counts.map_accesses);
}

/// Interval maps: the way to a leaf is 3, an entry 1, a node that is made or freed 1; entries of the metadata region are 1 each.
#[test]
fn accesses_to_interval_maps_take_their_time() {
    let mut driver = interval_ssd("none", NS);
    assert_each_takes(
        &mut driver,
        &[
            // The first leaf, its middle node; a leaf that is there; a run; a run into a new leaf.
            (write(LOG, 1), 3 + 1 + 2),
            (write(LOG + 1, 1), 3 + 1),
            (write(LOG + 2, 5), 3 + 5),
            (write(LOG + 254, 4), (3 + 2) + (3 + 1 + 2)),
            (Bio::read(Lba(LOG), 1), 3 + 1),
            (Bio::read(Lba(LOG), 7), 3 + 7),
            (Bio::read(Lba(LOG + 254), 4), 2 * (3 + 2)),
            // Nothing is there: no middle node, no leaf.
            (Bio::read(Lba(2 * LOG), 2), 1),
            (Bio::read(Lba(LOG + 512), 2), 2),
            // The rest of a leaf, and of a leaf and its middle node.
            (Bio::discard(Lba(LOG), 2), 3 + 2),
            (Bio::discard(Lba(LOG + 2), 254), 3 + 7 + 1),
            (Bio::discard(Lba(LOG + 256), 2), 3 + 2 + 2),
            (Bio::discard(Lba(LOG), 1), 1),
            (write(7, 1), 1),
            (Bio::read(Lba(6), 3), 3),
            (Bio::discard(Lba(6), 3), 1 + 1 + 1),
        ],
    );
}

/// A table of pages: an entry each.
#[test]
fn accesses_to_pages_take_their_time() {
    let config = PagesConfig { map_access_ns: NS, ..pages::config() };
    let mut driver: pages::Driver = running((pages::GEOMETRY, "none"), config, true);
    assert_each_takes(
        &mut driver,
        &[
            (write(0, 1), 1),
            (write(1, 3), 3),
            (Bio::read(Lba(2), 4), 4),
            (Bio::discard(Lba(2), 4), 4),
            (Bio::discard(Lba(2), 4), 4),
        ],
    );
}

/// Superblocks: a logical line each, and those that are opened.
#[test]
fn accesses_to_lines_take_their_time() {
    let mut driver = coupled_ssd("none", NS, coupled::roomy());
    assert_each_takes(
        &mut driver,
        &[
            // Two lines are found unused, then opened; the first is resolved.
            (write(DATA, 1), 2 + 2 + 1),
            (write(DATA + 1, 1), 1),
            (write(DATA + 2, 5), 2),
            (Bio::read(Lba(DATA + 2), 1), 1),
            (Bio::read(Lba(DATA), 7), 2),
            (Bio::discard(Lba(DATA), 1), 1),
            (Bio::discard(Lba(DATA), 6), 2),
            (write(3, 1), 1),
            (Bio::read(Lba(2), 3), 3),
        ],
    );
}

/// Commands that come together are served one after the other.
#[test]
fn one_core_serves_all() {
    let mut driver = interval_ssd("none", NS);
    let (began, mut ends) = (driver.now, Vec::new());
    for (token, bio) in [write(LOG, 1), write(LOG + 1, 1), Bio::read(Lba(LOG), 1), write(3, 2)]
        .into_iter()
        .enumerate()
    {
        ends.push((driver.submit(bio, token as u64).expect("known").at - began).0 / NS);
    }
    ends.push((driver.submit(Bio::discard(Lba(LOG), 2), 9).expect("known").at - began).0 / NS);
    // 6, 4, 4, 2 and 7 accesses.
    assert_eq!(ends, [6, 10, 14, 16, 23]);
}

/// What the host waits for beside: a read waits for media when its look-ups are done; the data of a write cross the link
/// meanwhile.
#[test]
fn accesses_delay_what_follows_them() {
    let times = |ns| {
        let mut driver = interval_ssd("nvmevirt-970pro", ns);
        let time = |driver: &mut interval::Driver, bio| {
            let began = driver.now;
            (driver.run(bio).at - began).0
        };
        let written = time(&mut driver, write(LOG, 1));
        driver.flush();
        // The core has mapped to media by then what the flush had programmed.
        driver.now += Nanos(4 * NS);
        [
            written,
            time(&mut driver, Bio::read(Lba(LOG), 1)),
            time(&mut driver, Bio::discard(Lba(LOG), 1)),
        ]
    };
    let [write, read, discard] = times(0);
    assert_eq!(times(NS), [6 * NS, read + 4 * NS, 6 * NS]);
    assert!(write < 6 * NS && discard < 6 * NS);
    assert_eq!(times(100), [write, read + 400, discard]);
}

/// A page that was moved is found by the table of its old address and by that of its new one: the line, the head of a bucket and
/// the record, the head of an empty bucket, the line.
#[test]
fn records_take_accesses() {
    let mut driver = coupled_ssd("none", NS, coupled::eager());
    driver.press(DATA, 0, 12, 6);
    let moves = driver.fetch_all();
    assert!(moves.len() >= 6);
    let mut counted = Vec::new();
    for (old, _) in moves {
        let before = accesses(&driver);
        assert_eq!(driver.tag(old), old);
        counted.push(accesses(&driver) - before);
    }
    counted.sort_unstable();
    let (least, median) = (counted[0], counted[counted.len() / 2]);
    assert_eq!((least, median), (5, 5), "{counted:?}");
}

/// Completion times of a load that collects.
fn load<F: Ssd>(
    driver: &mut Any<F, Setup<F::Config>>,
    bios: impl Iterator<Item = Bio>,
) -> Vec<u64> {
    bios.map(|bio| {
        let done = driver.run(bio);
        assert!(done.result.is_ok(), "{done:?}");
        done.at.0
    })
    .collect()
}

/// Overwrites of the metadata region, beside a log that is written once.
fn bios() -> impl Iterator<Item = Bio> {
    (0..6_000_u64).flat_map(|index| [write(index * 7 % 600, 4), write(LOG + index, 1)])
}

/// Where accesses take no time they count, and every completion is when it was.
#[test]
fn untimed_accesses_change_nothing() {
    let timing = "nvmevirt-970pro";
    let mut untimed = interval_ssd(timing, 0);
    let plain = interval::config();
    let pages = PagesConfig { map_access_ns: NS, ..plain.pages };
    let config = nandscape_ftl::interval::Config { pages, ..plain };
    let mut unattached: interval::Driver = running((interval::GEOMETRY, timing), config, false);
    let mut timed = interval_ssd(timing, NS);
    let times = load(&mut untimed, bios());
    assert_eq!(times, load(&mut unattached, bios()));
    assert_ne!(times, load(&mut timed, bios()));
    let report = untimed.ftl.report();
    assert!(report.gc.victims > 10, "{:?}", report.gc);
    let counts = report.firmware.expect("maps");
    assert_eq!(counts.busy_ns, untimed.own().busy_ns, "compactions");
    assert!(counts.map_accesses > 60_000);
}
