//! The collector's thread on a device with long lines, beside a small model of Linux's.

use super::super::Pblk;
use super::*;
use crate::face::{Attach, Ftl};
use crate::kind::FtlRun;
use crate::pblk::config::{CapacityRules, Config};
use nandscape_block::{Bio, BlockDevice, Completion, Lba, Payload, Submit, Token};
use nandscape_media::{
    DeviceTiming, Geometry, LinkTiming, Linked, Media, MediaConfig, PayloadMode,
};
use nandscape_rt::{Host, Stream};

/// Lines of 128 MiB, as those of an open-channel SSD are.
const GEOMETRY: Geometry = Geometry {
    groups: 2,
    units: 4,
    chunks: 48,
    sectors: 4_096,
    ws_min: 4,
    ws_opt: 8,
    mw_cunits: 24,
    maxoc: 0,
    maxocpu: 0,
};
const PERIOD: Nanos = Pacing::PERIOD;

/// A device under random writes, some always in flight.
struct Load {
    pblk: Pblk<Media>,
    now: Nanos,
    pending: usize,
    addresses: Stream,
    done: Vec<Completion>,
}

impl Load {
    /// A device that was filled and overwritten in no time, with the timing of a drive from now on.
    fn new(config: Config) -> Self {
        let media = MediaConfig { payload: PayloadMode::None, ..MediaConfig::new(GEOMETRY) };
        let media = Linked::new(Media::new(media).expect("a device"), LinkTiming::none());
        let run = FtlRun { keep_content: false, ..FtlRun::default() };
        let pblk = Pblk::format(media, config, run).expect("fits");
        let (now, addresses) = (Nanos::ZERO, Stream::new(1, "addresses"));
        let mut load = Self { pblk, now, pending: 0, addresses, done: Vec::new() };
        let sectors = load.pblk.capacity().logical_sectors;
        for lba in (0..sectors).step_by(64) {
            load.write(lba, 64.min(sectors - lba) as u32);
        }
        for _ in 0..sectors {
            let lba = load.addresses.below(sectors);
            load.write(lba, 1);
        }
        assert_eq!(load.now, Nanos::ZERO, "no time passes without timing");
        let timing = DeviceTiming::preset("nvmevirt-970pro").expect("a preset");
        load.pblk.media_mut().set_timing(timing.nand);
        load.pblk.attach(Attach::new(Some(Host::with_cores(4)), &timing, 0));
        load
    }

    /// Writes as soon as fewer than 16 writes are in flight.
    fn write(&mut self, lba: u64, sectors: u32) {
        while self.pending >= 16 {
            self.step();
        }
        let bio = Bio::write(Lba(lba), sectors, Payload::None);
        if let Submit::Pending = self.pblk.submit(self.now, bio, Token(0)) {
            self.pending += 1;
        }
    }

    fn step(&mut self) {
        self.now = self.now.max(self.pblk.next_event().expect("a write waits"));
        self.pblk.advance(self.now, &mut self.done);
        self.pending -= self.done.len();
        self.done.clear();
    }

    /// What the thread sees.
    fn look(&self) -> Seen {
        let gc = &self.pblk.stats.gc;
        Seen {
            free: self.pblk.flash.lines.free().1,
            collected: self.pblk.collector.victims(),
            garbage: self.pblk.collector.thread.garbage.len() as u32,
            started: gc.victims,
            emptied: gc.empty_victims,
            taken: self.pblk.frontiers.line_seq,
        }
    }
}

/// Counts of lines; the last three over the device's life.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Seen {
    free: u32,
    collected: u32,
    garbage: u32,
    started: u64,
    emptied: u64,
    taken: u64,
}

/// `pblk_gc_run` and what kicks it: written from the kernel's sources, from what the limiter and the
/// readers show it.
struct KernelThread {
    active: bool,
    timer: Nanos,
}

impl KernelThread {
    /// How many victims start now, where `in_flight` lines are not fully queued; `None`: it does not run.
    fn step(&mut self, now: Nanos, short: bool, in_flight: usize) -> Option<usize> {
        let activated = short && !std::mem::replace(&mut self.active, short);
        let fired = now >= self.timer;
        if activated {
            self.timer = now;
        }
        while self.timer <= now {
            self.timer += PERIOD;
        }
        (activated || fired).then(|| if short { 4_usize.saturating_sub(in_flight) } else { 0 })
    }
}

/// Victims are started when the model says, and as many, or as many as surely find room for their
/// copies, of which Linux has no rule; lines without valid sectors are freed then and at no other time.
#[test]
fn victims_start_as_linuxs_thread_starts_them() {
    let mut load = Load::new(Config { op_percent: Some(20), ..Config::default() });
    let sectors = load.pblk.capacity().logical_sectors;
    let mut thread = KernelThread { active: false, timer: PERIOD };
    let line = u64::from(load.pblk.capacity().line_data_sectors);
    let (mut per_second, mut exact) = (vec![0; 13], 0);
    while load.now < Nanos::from_secs(12) {
        let (before, in_flight) = (load.look(), load.pblk.collector.in_flight(load.pblk.flash.now));
        let room = load.pblk.space().uncommitted(0) / line;
        let lba = load.addresses.below(sectors);
        load.write(lba, 1);
        let after = load.look();
        let started = (after.started - before.started) as usize;
        let short = load.pblk.space().wants_lines() || started > 0;
        let expected = thread.step(load.now, short, in_flight);
        let (runs, expected) = (expected.is_some(), expected.unwrap_or(0));
        let fits = expected.min(room as usize)..=expected;
        assert!(fits.contains(&started), "{:?}: {before:?} {after:?}, {expected}", load.now);
        exact += u32::from(started == expected && expected > 0);
        if runs {
            assert_eq!(after.garbage, 0, "a run frees what is empty");
        } else {
            assert!(after.garbage >= before.garbage, "only a run frees what is empty");
        }
        per_second[(load.now.0 / PERIOD.0) as usize] += started;
    }
    assert!(exact >= 8, "{exact} runs had room for all that the model starts");
    assert!(per_second.iter().all(|&started| started <= 4), "{per_second:?}");
}

/// From Linux 4.16 on the limiter counts a line as free until it is opened; 4.13 did so until it was
/// prepared.
#[test]
fn the_prepared_line_counts_as_free_but_in_4_13() {
    for (rules, chunks) in [
        (CapacityRules::V4_13, 0),
        (CapacityRules::V4_16, GEOMETRY.total_units()),
        (CapacityRules::V5_11, GEOMETRY.total_units()),
    ] {
        let media = MediaConfig { payload: PayloadMode::None, ..MediaConfig::new(GEOMETRY) };
        let media = Linked::new(Media::new(media).expect("a device"), LinkTiming::none());
        let config = Config { capacity_rules: rules, op_percent: Some(25), ..Config::default() };
        let run = FtlRun { keep_content: false, ..FtlRun::default() };
        let pblk = Pblk::format(media, config, run).expect("fits");
        assert_eq!(pblk.frontiers.prepared_lines().count(), 1);
        assert_eq!(
            pblk.frontiers.limiter_free(&pblk.flash, &pblk.rules, None).0,
            pblk.flash.lines.free().0 + chunks,
            "{rules:?}"
        );
    }
}
