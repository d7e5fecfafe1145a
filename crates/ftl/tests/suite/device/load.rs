//! Random operations on a conventional SSD, and what each sector may hold after a power cut.

use crate::device::driver::{Driver, holds};
use nandscape_block::{Bio, BlockDevice, BlockError, Flags, Lba, Payload, Reply, SectorData, Tag};
use nandscape_rt::{Nanos, Stream};

/// What a sector may hold after a power cut: its version at the last flush, or any later one.
#[derive(Clone, Default)]
pub(crate) struct History(pub(crate) Vec<u64>);

impl History {
    pub(crate) fn push(&mut self, tag: u64) {
        if self.0.is_empty() {
            self.0.push(0);
        }
        self.0.push(tag);
    }

    pub(crate) fn cover(&mut self) {
        if let Some(&last) = self.0.last() {
            self.0 = vec![last];
        }
    }

    pub(crate) fn last(&self) -> u64 {
        self.0.last().copied().unwrap_or(0)
    }

    pub(crate) fn permits(&self, seen: &Result<Reply, BlockError>) -> Option<u64> {
        let versions = if self.0.is_empty() { &[0][..] } else { &self.0 };
        versions.iter().copied().find(|&tag| *seen == holds(tag))
    }
}

/// A device under random operations, and what each sector may hold.
pub(crate) struct Load {
    pub(crate) driver: Driver,
    pub(crate) histories: Vec<History>,
    pub(crate) rng: Stream,
    pub(crate) tag: u64,
}

impl Load {
    pub(crate) fn new(driver: Driver, seed: u64) -> Self {
        let histories = vec![History::default(); driver.sectors() as usize];
        Self { driver, histories, rng: Stream::new(seed, "load"), tag: 0 }
    }

    /// Where the next bio goes, and how many sectors.
    pub(crate) fn range(&mut self) -> (u64, u32) {
        let most = if self.rng.chance(0.2) { 24 } else { 2 };
        let sectors = 1 + self.rng.below(most);
        let end = self.histories.len() as u64;
        // Few sectors are hot, so that copies and overwrites meet.
        let end = if self.rng.chance(0.5) { end } else { end / 16 };
        let lba = self.rng.below(end - sectors);
        (lba, sectors as u32)
    }

    pub(crate) fn operate(&mut self) {
        let (lba, sectors) = self.range();
        let range = lba as usize..lba as usize + sectors as usize;
        match self.rng.below(100) {
            0..3 => {
                self.driver.flush();
                self.histories.iter_mut().for_each(History::cover);
            }
            3..8 => {
                assert_eq!(
                    self.driver.run(Bio::discard(Lba(lba), sectors)).result,
                    Ok(Reply::None)
                );
                self.histories[range].iter_mut().for_each(|history| history.push(0));
            }
            8..20 => {
                let (lba, sectors) = self.range();
                let seen = self.driver.run(Bio::read(Lba(lba), sectors)).result;
                let expected = (lba..lba + u64::from(sectors))
                    .map(|lba| Tag::new(self.histories[lba as usize].last()));
                let expected = expected.map(SectorData::Tag).collect::<Vec<_>>();
                assert_eq!(seen, Ok(Reply::Data(Payload::collect(expected))), "{lba}+{sectors}");
            }
            kind => {
                let flags = match kind {
                    20..23 => Flags::FUA,
                    23..25 => Flags::PREFLUSH | Flags::FUA,
                    25 => Flags::PREFLUSH,
                    _ => Flags::NONE,
                };
                self.driver.write_sectors(lba, sectors, self.tag + 1, flags);
                if flags.has(Flags::PREFLUSH) {
                    self.histories.iter_mut().for_each(History::cover);
                }
                for history in &mut self.histories[range] {
                    self.tag += 1;
                    history.push(self.tag);
                    if flags.has(Flags::FUA) {
                        history.cover();
                    }
                }
            }
        }
    }

    pub(crate) fn run(mut self, operations: u64) -> Self {
        for number in 1..=operations {
            self.operate();
            if number % 1_000 == 0 {
                self.driver.check();
            }
        }
        self
    }

    /// Every sector reads as its last version.
    pub(crate) fn check(&mut self) {
        self.driver.check();
        for lba in 0..self.histories.len() {
            let seen = self.driver.read(lba as u64);
            assert_eq!(seen, holds(self.histories[lba].last()), "lba {lba}");
        }
    }

    /// Cuts power; every sector then holds a version that it may, for good.
    pub(crate) fn cut(mut self) -> Result<Self, String> {
        self.driver = self.driver.power_cut();
        for lba in 0..self.histories.len() {
            let seen = self.driver.read(lba as u64);
            let history = &mut self.histories[lba];
            let Some(tag) = history.permits(&seen) else {
                return Err(format!("lba {lba}: {seen:?}, may hold {:?}", history.0));
            };
            history.0 = vec![tag];
        }
        Ok(self)
    }

    /// Rounds of load and power cuts at random instants.
    pub(crate) fn run_with_cuts(mut self, rounds: u64) -> Result<Self, String> {
        for round in 0..rounds {
            let operations = 1 + self.rng.below(300);
            self = self.run(operations);
            // Somewhere between events: programs are in flight.
            self.driver.now = Nanos(self.driver.now.0 + self.rng.below(200_000));
            let mut done = Vec::new();
            self.driver.ftl.advance(self.driver.now, &mut done);
            if self.driver.setup.config.buffer.power_safe {
                self.histories.iter_mut().for_each(History::cover);
            }
            self = self.cut()?;
            if round % 8 == 0 {
                self = self.cut()?;
            }
        }
        Ok(self)
    }
}
