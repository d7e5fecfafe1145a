//! The write buffers: each one's ring, units in flight, share of the rate limiter and waiting bios; and
//! how those of a plan are made.

use super::capacity::{Capacity, special_ring_sectors};
use super::frontiers::Frontier;
use super::ids::{BufferId, FrontierId};
use super::plan::Plan;
use super::rb::Ring;
use super::rl::{RateLimiter, Share};
use super::units::Units;
use super::waiting::{Queued, Waiter};
use crate::common::ids::MAP_ORIGIN;
use crate::common::layout::StripeSet;
use crate::error::FtlError;
use crate::pblk::config::{Config, FlushScope, GcStream};
use nandscape_media::Geometry;
use std::collections::VecDeque;
use std::ops::Range;

/// A write buffer.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) rb: Ring,
    pub(super) units: Units,
    pub(super) rl: RateLimiter,
    /// Where its units go, in turn.
    pub(super) frontiers: Range<FrontierId>,
    /// How many units have gone there.
    pub(super) turn: u32,
    /// Writes that wait for room.
    pub(super) queue: VecDeque<Queued>,
    /// How many of them, from the front, had their mapping looked up.
    pub(super) looked: usize,
    /// The mapping block that the first waits for.
    pub(super) awaits: Option<u32>,
    /// Bios that wait for durability, in order of position.
    pub(super) waiters: VecDeque<Waiter>,
}

impl Buffer {
    /// The frontier whose turn it is after `skipped` others.
    #[inline]
    pub(super) fn frontier(&self, skipped: u32) -> FrontierId {
        let count = u32::from(self.frontiers.end - self.frontiers.start);
        if count == 1 {
            return self.frontiers.start;
        }
        self.frontiers.start + (self.turn.wrapping_add(skipped) % count) as FrontierId
    }

    /// Whether it holds nothing that is still to be written, or that media may not serve yet.
    pub(super) fn is_empty(&self) -> bool {
        self.rb.backlog() == 0 && self.units.oldest().is_none()
    }

    /// Whether it holds anything that is still to be submitted.
    pub(super) fn has_to_write(&self) -> bool {
        self.rb.backlog() > 0 || self.units.failed_len() > 0
    }

    /// Sectors that the ring's entries will need, padding of one unit and at each cut included.
    #[inline]
    pub(super) fn committed(&self, ws_opt: u32) -> u64 {
        let units = self.units.failed_len() as u64 + u64::from(self.rb.cuts_len());
        u64::from(self.rb.backlog().next_multiple_of(ws_opt) + ws_opt) + units * u64::from(ws_opt)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let waiting = self.queue.capacity() * size_of::<Queued>()
            + self.waiters.capacity() * size_of::<Waiter>();
        self.rb.bytes() + self.units.bytes() + waiting as u64
    }
}

impl Plan {
    fn share(&self, buffer: BufferId, config: &Config) -> Share {
        if Some(buffer) == self.gc {
            Share::Copies
        } else if config.gc_stream == GcStream::ByOrigin
            || (self.gc.is_none() && self.normal.contains(&buffer))
        {
            Share::Both
        } else {
            Share::Users
        }
    }

    /// Makes the frontiers, without lines; that of mapping blocks is the last.
    pub(super) fn make_frontiers(&self, with_map: bool) -> Vec<Frontier> {
        let mut frontiers: Vec<Frontier> = Vec::with_capacity(self.frontiers() as usize + 1);
        for buffer in 0..self.len() {
            let parts = self.frontiers_of(buffer).len() as u32;
            let is_first = usize::from(self.frontiers_of(buffer).start) == frontiers.len();
            let of_group =
                (0..parts).map(|index| Frontier::new(buffer, StripeSet::part(index, parts)));
            frontiers.extend(of_group.filter(|_| is_first));
        }
        frontiers.extend(with_map.then(|| Frontier::new(MAP_ORIGIN, StripeSet::ALL)));
        frontiers
    }

    /// Makes the buffers, empty.
    ///
    /// # Errors
    /// A size that does not fit.
    pub(super) fn make_buffers(
        &self,
        geometry: &Geometry,
        config: &Config,
        capacity: &Capacity,
    ) -> Result<Vec<Buffer>, FtlError> {
        let normal = capacity.ring_sectors;
        let special = special_ring_sectors(geometry, config, normal)?;
        let searched = config.flush_scope == FlushScope::FileEntries;
        let ring = match (searched, self.len()) {
            (true, _) => Ring::with_owners,
            (false, 1) => Ring::new,
            (false, _) => Ring::with_gaps,
        };
        let size_of = |id: BufferId| {
            let is_special = self.fsync.contains(&id) || Some(id) == self.journal;
            if is_special { special } else { normal }
        };
        let spacing = (0..self.len()).map(size_of).max().map_or(0, u32::ilog2);
        let make = |id: BufferId| {
            let size = size_of(id);
            let rl = RateLimiter::new(config.limiter, capacity, size, self.share(id, config));
            Buffer {
                rb: ring(size, u32::from(id) << spacing),
                units: Units::default(),
                rl: if self.len() == 1 { rl } else { rl.among_others() },
                frontiers: self.frontiers_of(id),
                turn: 0,
                queue: VecDeque::new(),
                looked: 0,
                awaits: None,
                waiters: VecDeque::new(),
            }
        };
        Ok((0..self.len()).map(make).collect())
    }
}
