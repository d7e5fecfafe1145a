//! A log-structured host: slots whose new content goes to the next address of a log, and whose old address is discarded
//! after a flush. It knows what it flushed, and after a power cut goes on from there.

use crate::interval::driver::{Driver, holds};
use nandscape_block::{Bio, Flags, Lba};
use nandscape_ftl::Ftl;
use nandscape_ftl::device::IntervalReport;
use nandscape_rt::Stream;
use std::collections::BTreeMap;

const LOGS: u64 = 6;

pub(crate) struct Log {
    pub(crate) driver: Driver,
    /// Victims and reports before the last power cut.
    pub(crate) collected: u64,
    pub(crate) own: IntervalReport,
    rng: Stream,
    /// Next address of each log, of which none is used twice.
    heads: Vec<u64>,
    /// Address and tag of each slot, and as of the last flush.
    slots: BTreeMap<u64, (u64, u64)>,
    flushed: BTreeMap<u64, (u64, u64)>,
    /// Addresses to be discarded after the next flush, and those whose discard no flush has followed.
    superseded: Vec<u64>,
    discarded: Vec<u64>,
    dead: Vec<u64>,
    tag: u64,
}

impl Log {
    pub(crate) fn new(driver: Driver, seed: u64) -> Self {
        let regions = driver.caps().regions().skip(1);
        Self {
            heads: regions.map(|region| region.range.start).collect(),
            driver,
            collected: 0,
            own: IntervalReport::default(),
            rng: Stream::new(seed, "log"),
            slots: BTreeMap::new(),
            flushed: BTreeMap::new(),
            superseded: Vec::new(),
            discarded: Vec::new(),
            dead: Vec::new(),
            tag: 1,
        }
    }

    /// Writes so many sectors, at slots for 80 % of the live sectors.
    pub(crate) fn run(&mut self, sectors: u64) {
        let slots = self.driver.caps().live_sectors() * 8 / 10;
        for step in 1..=sectors {
            let slot = self.rng.below(slots);
            let log = &mut self.heads[(slot % LOGS) as usize];
            let at = *log;
            *log += 1;
            self.tag += 1;
            self.driver.write(at, self.tag, Flags::NONE);
            if let Some((old, _)) = self.slots.insert(slot, (at, self.tag)) {
                self.superseded.push(old);
            }
            if step % 200 == 0 {
                self.checkpoint();
            }
        }
    }

    /// Flushes, then discards what was superseded before.
    fn checkpoint(&mut self) {
        self.driver.flush();
        self.flushed = self.slots.clone();
        self.dead.append(&mut self.discarded);
        let mut old = std::mem::take(&mut self.superseded);
        old.sort_unstable();
        for run in old.chunk_by(|a, b| a + 1 == *b) {
            self.driver.run(Bio::discard(Lba(run[0]), run.len() as u32));
        }
        self.discarded = old;
    }

    /// Cuts power: slots are where the last flush has them, or newer; the host discards what it does not know.
    pub(crate) fn power_cut(mut self) -> Self {
        self.collected += self.driver.ftl.report().gc.victims;
        let own = self.driver.own();
        self.own.compacted += own.compacted;
        self.own.trim_compactions += own.trim_compactions;
        let lost: Vec<u64> = self.slots.values().map(|(at, _)| *at).collect();
        self.driver = self.driver.power_cut();
        self.slots = self.flushed.clone();
        let known: Vec<u64> = self.slots.values().map(|(at, _)| *at).collect();
        for at in lost.into_iter().filter(|at| !known.contains(at)).chain(self.discarded.clone()) {
            self.driver.run(Bio::discard(Lba(at), 1));
        }
        self.superseded.clear();
        self.driver.flush();
        self
    }

    /// Every flushed slot is there, and nothing that was discarded is.
    pub(crate) fn check(&mut self) {
        for (at, tag) in self.slots.values() {
            assert_eq!(self.driver.read(*at), holds(*tag), "lba {at}");
        }
        for at in self.dead.iter().chain(&self.discarded) {
            assert_eq!(self.driver.read(*at), holds(0), "lba {at} was discarded");
        }
        assert_eq!(self.driver.ftl.mapped_sectors(), self.slots.len() as u64);
        self.driver.check();
    }
}
