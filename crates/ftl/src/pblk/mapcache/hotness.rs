//! Hotness of mapping blocks (selective mapping-table loading, sections 3.2 and 3.3): accesses and
//! loads raise it, and it cools whenever a victim is sought, faster the longer a block idles.
//!
//! The paper's code walks the whole directory at each eviction and subtracts from every block half
//! its idle milliseconds, at least 1, never going below zero. Here a block's hotness is computed when
//! somebody asks: since its last access at time `a`, scans at times `s` have taken
//! `sum(s - a) + scans * decay`, for which two running sums over all scans are enough. What differs
//! from the code:
//! - the two decays add up, where the code takes the larger;
//! - time counts in microseconds, where the code truncates to milliseconds;
//! - among equals the block used least recently leaves, where the code takes the lowest id.
//!
//! Hotness is kept in microseconds of idling that it can outlast, so that all is exact in integers.

use crate::pblk::config::HotnessConfig;
use nandscape_rt::Nanos;

/// Hotness beyond this is not told apart, so that sums stay far from overflow.
const HOTTEST: u64 = 1 << 60;

/// One block: `base + scans * touched_us - sum_us` is its hotness, if positive.
#[derive(Clone, Copy, Default, Debug)]
struct HotnessEntry {
    base: u64,
    touched_us: u64,
}

/// Hotness of all blocks, loaded or not.
#[derive(Debug)]
pub(super) struct Hotness {
    blocks: Box<[HotnessEntry]>,
    /// Victims sought so far.
    scans: u64,
    /// Sum over scans of their time and the decay of a scan; wraps.
    sum_us: u64,
    /// Time of the last scan.
    scanned_us: u64,
    points: Points,
}

/// The configured points in microseconds.
#[derive(Clone, Copy, Debug)]
struct Points {
    read_us: u64,
    write_us: u64,
    internal_us: u64,
    journal_us: u64,
    load_us: u64,
    scan_us: u64,
    /// Idling costs something.
    idle: bool,
}

impl Points {
    fn new(config: &HotnessConfig) -> Self {
        let point_us = config.idle_per_point.map_or(1, |point| (point.0 / 1_000).max(1));
        let us = |points: u32| u64::from(points).saturating_mul(point_us).min(HOTTEST);
        Self {
            read_us: us(config.read),
            write_us: us(config.write),
            internal_us: us(config.internal),
            journal_us: us(config.journal),
            load_us: us(config.load_bonus),
            scan_us: us(config.decay_per_scan),
            idle: config.idle_per_point.is_some(),
        }
    }
}

impl Hotness {
    pub(super) fn new(config: &HotnessConfig, blocks: u32) -> Self {
        Self {
            blocks: vec![HotnessEntry::default(); blocks as usize].into_boxed_slice(),
            scans: 0,
            sum_us: 0,
            scanned_us: 0,
            points: Points::new(config),
        }
    }

    /// Microseconds, if they matter.
    #[inline]
    fn clock_us(&self, now: Nanos) -> u64 {
        if self.points.idle { now.0 / 1_000 } else { 0 }
    }

    /// Hotness of a block; zero is coldest.
    #[inline]
    pub(super) fn of(&self, block: u32) -> u64 {
        let HotnessEntry { base, touched_us } = self.blocks[block as usize];
        // What it can have lost at most. Beyond 63 bits the difference below would mean nothing,
        // and the block has idled for hours.
        let idle_us = self.scanned_us.saturating_sub(touched_us) + self.points.scan_us;
        if self.scans.checked_mul(idle_us).is_none_or(|lost_us| lost_us > i64::MAX as u64 / 2) {
            return 0;
        }
        let hotness =
            base.wrapping_add(self.scans.wrapping_mul(touched_us)).wrapping_sub(self.sum_us);
        (hotness as i64).max(0) as u64
    }

    #[inline]
    fn raise(&mut self, block: u32, by_us: u64, now: Nanos) {
        let hotness = (self.of(block) + by_us).min(HOTTEST);
        let touched_us = self.clock_us(now);
        let taken = self.scans.wrapping_mul(touched_us);
        let base = hotness.wrapping_add(self.sum_us).wrapping_sub(taken);
        self.blocks[block as usize] = HotnessEntry { base, touched_us };
    }

    /// A look-up of a sector of the block.
    #[inline]
    pub(super) fn access(&mut self, block: u32, access: super::Access, now: Nanos) {
        let points = &self.points;
        let direction_us = if access.write { points.write_us } else { points.read_us };
        let by_us = match access.by {
            super::By::Host => direction_us,
            super::By::Journal => direction_us + points.journal_us,
            super::By::Ftl => points.internal_us,
        };
        self.raise(block, by_us, now);
    }

    /// The block has been loaded.
    pub(super) fn loaded(&mut self, block: u32, now: Nanos) {
        self.raise(block, self.points.load_us, now);
    }

    /// A victim is sought: every block cools.
    pub(super) fn scan(&mut self, now: Nanos) {
        self.scanned_us = self.clock_us(now);
        self.scans += 1;
        self.sum_us = self.sum_us.wrapping_add(self.scanned_us).wrapping_add(self.points.scan_us);
    }

    pub(super) fn bytes(&self) -> u64 {
        size_of_val(&*self.blocks) as u64
    }
}
