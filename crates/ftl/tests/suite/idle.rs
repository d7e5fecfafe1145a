//! Flushes by NVMeVirt's rule, in every kind of FTL that has it: a flush, a write with FUA and a bio with PREFLUSH wait
//! until all units have ended what they were sent, exactly, and nothing is programmed for them. What units do is taken
//! from the log of the media.

use crate::common::driver::{Driver, holds};
use crate::common::ssd::{Setup, Ssd};
use crate::{coupled, device, interval, zoned};
use nandscape_block::{Bio, Done, Flags, Lba, Payload, Reply, Tag};
use nandscape_ftl::device::{BufferConfig, Flush};
use nandscape_media::{Action, Layer};
use nandscape_rt::Nanos;

const ROOM: usize = 1 << 16;

/// Writes of a device from one address on, and what they have its media do.
struct Watch<F: Ssd> {
    driver: Driver<F, Setup<F::Config>>,
    next: u64,
    /// Of a bio that fills pages, and begins one.
    sectors: u32,
    programs: usize,
    /// When the last command ends, of those that were sent.
    busy_until: Nanos,
}

impl<F: Ssd> Watch<F> {
    /// A device at rest, of which sectors are written from `next` on.
    fn new(mut driver: Driver<F, Setup<F::Config>>, next: u64, sectors: u32) -> Self {
        driver.settle();
        driver.ftl.keep_flushed(false);
        driver.ftl.media_mut().inner_mut().start_log(ROOM);
        Self { driver, next, sectors, programs: 0, busy_until: Nanos::ZERO }
    }

    /// Looks at what the media were sent; the programs among it.
    fn look(&mut self) -> usize {
        let log = self.driver.ftl.media_mut().inner_mut().take_log(ROOM).expect("is kept");
        assert!(!log.is_full());
        for command in log.commands {
            self.programs += usize::from(matches!(command.action, Action::Program(_)));
            self.busy_until = self.busy_until.max(command.done);
        }
        self.programs
    }

    fn bio(&mut self, sectors: u32, flags: Flags) -> Bio {
        let at = self.next;
        self.next += u64::from(sectors);
        Bio::write(Lba(at), sectors, Payload::Run(Tag::new(at))).with(flags)
    }

    /// Has some pages programmed and one begun; units are busy when it returns.
    fn make_busy(&mut self) {
        let bio = self.bio(self.sectors, Flags::NONE);
        let before = self.look();
        assert_eq!(self.driver.run(bio).result, Ok(Reply::None));
        let programs = self.look() - before;
        assert!(programs > 0 && self.busy_until > self.driver.now, "{programs} programs");
    }

    /// Writes a sector that no program takes along.
    fn begin_page(&mut self) {
        let (before, bio) = (self.look(), self.bio(1, Flags::NONE));
        assert_eq!(self.driver.run(bio).result, Ok(Reply::None));
        assert_eq!(self.look(), before, "it filled its page");
    }

    /// Serves a bio beside programs in flight.
    fn serve_beside_programs(&mut self, bio: Bio) -> (Done, usize) {
        self.make_busy();
        let before = self.look();
        let done = self.driver.run(bio);
        assert_eq!(done.result, Ok(Reply::None));
        (done, self.look() - before)
    }

    /// Goes on until nothing is in flight, which programs nothing more.
    fn settle(&mut self) {
        let before = self.look();
        self.driver.settle();
        assert_eq!(self.look(), before, "programmed later");
    }
}

/// What a device does with `Flush::Nvmevirt` where these sectors are written, and, that the difference is seen, with
/// `Flush::Program`; so many of its waits are in the device's own account.
fn waits_for_idle_units<F: Ssd>(
    make: impl Fn(Flush) -> Driver<F, Setup<F::Config>>,
    (next, sectors): (u64, u32),
    waits: u64,
) -> Watch<F> {
    let mut plain = Watch::new(make(Flush::Program), next, sectors);
    let (done, programs) = plain.serve_beside_programs(Bio::flush());
    assert!(programs > 0, "a page that is being filled is programmed");
    assert_eq!(done.at, plain.busy_until);

    let mut watch = Watch::new(make(Flush::Nvmevirt), next, sectors);
    let written = watch.driver.ftl.sectors();
    let (done, programs) = watch.serve_beside_programs(Bio::flush());
    assert_eq!((done.at, programs), (watch.busy_until, 0), "a flush");
    watch.settle();
    watch.make_busy();
    let fua = watch.bio(1, Flags::FUA);
    let before = watch.look();
    let done = watch.driver.run(fua);
    let programs = watch.look() - before;
    assert_eq!((done.result, done.at, programs), (Ok(Reply::None), watch.busy_until, 0), "FUA");
    watch.settle();
    assert_eq!(watch.driver.ftl.sectors().pad, written.pad, "nothing is padded");
    let counts = watch.driver.ftl.report().flush;
    assert_eq!((counts.waited, counts.empty, counts.drained_sectors), (waits, 0, 0));
    assert_eq!(counts.queue_ns + counts.gc_ns, counts.total_ns);
    assert!(counts.total_ns > 0);

    // Its data cross the link when the units are idle.
    watch.make_busy();
    watch.begin_page();
    let (idle, preflush) = (watch.busy_until, watch.bio(1, Flags::PREFLUSH));
    let before = watch.look();
    let done = watch.driver.run(preflush);
    let programs = watch.look() - before;
    assert_eq!((done.result, programs), (Ok(Reply::None), 0), "PREFLUSH");
    let plain = watch.bio(1, Flags::NONE);
    let begun = watch.driver.now;
    let took = watch.driver.run(plain).at - begun;
    assert_eq!(done.at, idle + took, "PREFLUSH");
    watch.settle();

    let empty = watch.driver.ftl.report().flush.empty;
    let accepted = watch.driver.ftl.link().command(watch.driver.now);
    assert_eq!(watch.driver.flush().at, accepted, "an empty flush is a command");
    assert_eq!(watch.driver.ftl.report().flush.empty, empty + 1);
    watch.driver.ftl.check_invariants().expect("invariants");
    watch
}

/// A barrier, a write with PREFLUSH and FUA, counts once, whether units are idle when its data are there or not.
fn counts_barriers<F: Ssd>(mut watch: Watch<F>) -> Watch<F> {
    for is_busy in [true, false] {
        if is_busy {
            watch.make_busy();
        }
        let (before, begun) = (watch.driver.ftl.report().flush, watch.driver.now);
        let wait = watch.busy_until.saturating_sub(begun).0;
        let barrier = watch.bio(1, Flags::PREFLUSH | Flags::FUA);
        assert_eq!(watch.driver.run(barrier).result, Ok(Reply::None));
        let after = watch.driver.ftl.report().flush;
        let counted = [after.waited - before.waited, after.empty - before.empty];
        assert_eq!(counted, [u64::from(is_busy), u64::from(!is_busy)]);
        let total_ns = after.total_ns - before.total_ns;
        assert!(total_ns >= wait && (total_ns > 0) == is_busy, "{total_ns} of {wait}");
        watch.settle();
    }
    watch
}

/// Where what was flushed is to be kept, a flush programs it whatever the configuration says.
fn keeps_flushed_where_asked<F: Ssd>(mut watch: Watch<F>) {
    let first = watch.next;
    watch.make_busy();
    watch.begin_page();
    let written = first..watch.next;
    watch.driver.ftl.keep_flushed(true);
    watch.driver.flush();
    let now = watch.driver.now;
    let mut driver = watch.driver.cut(now);
    for lba in written {
        assert_eq!(driver.read(lba), holds(lba));
    }
}

/// The records of a discard are written for a flush that programs, and for no other.
fn writes_no_records<F: Ssd>(make: impl Fn(Flush) -> Driver<F, Setup<F::Config>>, lba: u64) {
    let programs = |flush| {
        let mut watch = Watch::new(make(flush), lba, 1);
        watch.driver.write(lba, 7, Flags::NONE);
        watch.driver.ftl.keep_flushed(true);
        watch.driver.flush();
        watch.driver.ftl.keep_flushed(false);
        watch.driver.settle();
        let before = watch.look();
        assert_eq!(watch.driver.run(Bio::discard(Lba(lba), 1)).result, Ok(Reply::None));
        watch.driver.flush();
        assert_eq!(watch.driver.run(Bio::discard(Lba(lba + 1), 1)).result, Ok(Reply::None));
        watch.driver.run(Bio::discard(Lba(lba + 1), 1).with(Flags::FUA));
        watch.look() - before
    };
    assert!(programs(Flush::Program) > 0);
    assert_eq!(programs(Flush::Nvmevirt), 0);
}

const TIMING: &str = "nvmevirt-970pro";

fn device_driver(flush: Flush) -> device::driver::Driver {
    let plain = device::driver::config();
    let buffer = BufferConfig { flush, ..plain.buffer };
    device::driver::Driver::new(TIMING, nandscape_ftl::device::Config { buffer, ..plain })
}

fn interval_driver(flush: Flush) -> interval::driver::Driver {
    let plain = interval::driver::config();
    let buffer = BufferConfig { flush, ..plain.pages.buffer };
    let pages = nandscape_ftl::device::Config { buffer, ..plain.pages };
    interval::driver::Driver::new(TIMING, nandscape_ftl::interval::Config { pages, ..plain })
}

fn zoned_driver(mut config: nandscape_ftl::zoned::Config, flush: Flush) -> zoned::driver::Driver {
    config.pages.buffer.flush = flush;
    zoned::driver::Driver::new(TIMING, config)
}

fn coupled_driver(flush: Flush) -> coupled::driver::Driver {
    let mut config = coupled::driver::roomy();
    config.pages.buffer.flush = flush;
    coupled::driver::Driver::new(config)
}

/// Sectors that fill a page of each of four instances, and those that fill two pages; and one more.
const FOUR_PAGES: u32 = 33;
const TWO_PAGES: u32 = 9;

#[test]
fn conventional_ssds_flush_as_nvmevirt() {
    let watch = waits_for_idle_units(device_driver, (0, FOUR_PAGES), 2);
    keeps_flushed_where_asked(counts_barriers(watch));
    writes_no_records(device_driver, 5);
}

#[test]
fn interval_ssds_flush_as_nvmevirt() {
    const LOG: u64 = 1 << 16;
    let watch = waits_for_idle_units(interval_driver, (LOG, FOUR_PAGES), 2);
    keeps_flushed_where_asked(counts_barriers(watch));
    writes_no_records(interval_driver, LOG);
}

#[test]
fn zoned_ssds_flush_as_nvmevirt() {
    let make = |flush| zoned_driver(zoned::driver::config(), flush);
    keeps_flushed_where_asked(waits_for_idle_units(make, (0, TWO_PAGES), 2));
}

/// The page-mapped region before zones, whose flushes are those of the device.
#[test]
fn regions_before_zones_flush_as_nvmevirt() {
    let make = |flush| zoned_driver(zoned::with_random(), flush);
    // Those of the region alone are not counted.
    keeps_flushed_where_asked(waits_for_idle_units(make, (0, TWO_PAGES), 1));
    writes_no_records(make, 3);
}

/// Neither is the journal written for the host.
#[test]
fn coupled_ssds_flush_as_nvmevirt() {
    let watch = waits_for_idle_units(coupled_driver, (coupled::driver::DATA, TWO_PAGES), 2);
    let own = watch.driver.own();
    assert_eq!((own.journal_sectors, own.journal_flushes), (0, 0), "none was full");
    keeps_flushed_where_asked(watch);
    writes_no_records(coupled_driver, 3);
}
