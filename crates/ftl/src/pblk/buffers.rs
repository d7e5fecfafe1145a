//! The write buffers: what a configuration needs of them, and each one's ring, units in flight, share
//! of the rate limiter and waiting bios.
//!
//! pblk has one buffer and one frontier. Buffers stand in this order: normal ones (one, or one a core
//! or hardware queue), those of fsynced files, the journal's, that of garbage collection. Each has a
//! frontier of its own; where lines are narrower than the device the normal ones share a frontier a
//! stripe, to which their units go in turn (QBLK). Trim records are in buffer 0.

use super::capacity::{Capacity, special_ring_sectors};
use super::flush::Waiter;
use super::host::Queued;
use super::layout::Layout;
use super::line::MAP_ORIGIN;
use super::open::{Frontier, FrontierId};
use super::rb::Ring;
use super::rl::{RateLimiter, Share};
use super::units::Units;
use crate::config::{BaseRouting, Config, FileRouting, FlushScope, GcStream};
use crate::error::FtlError;
use crate::stats::BufferRole;
use nandscape_media::Geometry;
use std::collections::VecDeque;
use std::ops::Range;

/// Number of a buffer.
pub(super) type BufferId = u8;

/// Most buffers: a set of them is a word.
const BUFFERS_MAX: u32 = 64;
/// Most frontiers.
const FRONTIERS_MAX: u32 = 255;

/// Which buffers there are, by purpose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// For whatever nothing else claims.
    pub(super) normal: Range<BufferId>,
    /// For files that are fsynced.
    pub(super) fsync: Range<BufferId>,
    /// For the journal.
    pub(super) journal: Option<BufferId>,
    /// For copies.
    pub(super) gc: Option<BufferId>,
    /// Frontiers that the normal buffers share; none if each has its own.
    shared: u32,
}

impl Plan {
    /// What `config` asks for.
    ///
    /// # Errors
    /// Too many buffers, or choices that exclude each other.
    pub(super) fn new(config: &Config, layout: &Layout) -> Result<Self, FtlError> {
        let routing = config.routing;
        check_routing(config)?;
        let normal = if routing.base == BaseRouting::Single { 1 } else { config.cores };
        let fsync = match routing.files {
            FileRouting::None | FileRouting::FsyncInNormal => 0,
            FileRouting::FsyncAware | FileRouting::PerFile => {
                config.fsync_rings.unwrap_or(config.cores)
            }
        };
        let gc = u32::from(config.gc_stream == GcStream::Own);
        let total = normal.saturating_add(fsync).saturating_add(u32::from(routing.journal) + gc);
        let shared = if layout.stripes() > 1 { layout.stripes() } else { 0 };
        if total > BUFFERS_MAX || total.saturating_add(shared) >= FRONTIERS_MAX {
            let why = format!("{total} write buffers, at most {BUFFERS_MAX} are possible");
            return Err(FtlError::Config { key: "ftl.routing", why });
        }
        let (normal, fsync) = (normal as BufferId, fsync as BufferId);
        let mut last = normal + fsync;
        let mut special = |wanted: bool| {
            wanted.then(|| {
                last += 1;
                last - 1
            })
        };
        Ok(Self {
            normal: 0..normal,
            fsync: normal..normal + fsync,
            journal: special(routing.journal),
            gc: special(gc > 0),
            shared,
        })
    }

    /// Buffers.
    pub(super) fn len(&self) -> BufferId {
        self.fsync.end + self.journal.iter().len() as u8 + self.gc.iter().len() as u8
    }

    /// What each buffer is for.
    pub(super) fn roles(&self) -> impl Iterator<Item = BufferRole> {
        (0..self.len()).map(|id| match id {
            id if self.normal.contains(&id) => BufferRole::Normal,
            id if self.fsync.contains(&id) => BufferRole::Fsync,
            id if Some(id) == self.journal => BufferRole::Journal,
            _ => BufferRole::Copies,
        })
    }

    /// Whether a buffer takes the journal and nothing else.
    #[inline]
    pub(super) fn is_journal(&self, buffer: BufferId) -> bool {
        self.journal == Some(buffer)
    }

    /// Frontiers.
    pub(super) fn frontiers(&self) -> u32 {
        let own = if self.shared == 0 { self.len() } else { self.len() - self.normal.end };
        self.shared + u32::from(own)
    }

    /// Frontiers that the normal buffers share.
    pub(super) fn shared(&self) -> u32 {
        self.shared
    }

    /// The group of a buffer: those that share frontiers.
    #[inline]
    pub(super) fn group_of(&self, buffer: BufferId) -> usize {
        if self.shared == 0 {
            usize::from(buffer)
        } else {
            usize::from((buffer + 1).saturating_sub(self.normal.end))
        }
    }

    /// Groups.
    pub(super) fn groups(&self) -> usize {
        self.group_of(self.len() - 1) + 1
    }

    /// The group that garbage collection can always fall back on.
    pub(super) fn copies_group(&self) -> usize {
        self.group_of(self.gc.unwrap_or(0))
    }

    /// Whether any copy may go to a group.
    pub(super) fn collects_into(&self, group: usize) -> bool {
        match self.gc {
            Some(gc) => group == self.group_of(gc),
            None => group <= self.group_of(self.normal.end - 1),
        }
    }

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

    /// The frontiers of a buffer.
    fn frontiers_of(&self, buffer: BufferId) -> Range<FrontierId> {
        if self.shared == 0 {
            buffer..buffer + 1
        } else if self.normal.contains(&buffer) {
            0..self.shared as FrontierId
        } else {
            let own = self.shared as FrontierId + (buffer - self.normal.end);
            own..own + 1
        }
    }

    /// Makes the frontiers, without lines; that of mapping blocks is the last.
    pub(super) fn make_frontiers(&self, with_map: bool) -> Vec<Frontier> {
        let shared = (0..self.shared).map(|stripe| Frontier::new(0, Some(stripe)));
        let first = if self.shared == 0 { 0 } else { self.normal.end };
        let own = (first..self.len()).map(|buffer| Frontier::new(buffer, None));
        let map = with_map.then(|| Frontier::new(MAP_ORIGIN, None));
        shared.chain(own).chain(map).collect()
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

/// Choices that exclude each other.
fn check_routing(config: &Config) -> Result<(), FtlError> {
    let refuse = |why: &str| Err(FtlError::Config { key: "ftl.routing", why: why.into() });
    let routing = config.routing;
    if routing.base != BaseRouting::Single && config.cores == 0 {
        return refuse("a buffer a core needs at least one core");
    }
    if routing.files == FileRouting::FsyncInNormal && routing.base == BaseRouting::Single {
        return refuse(
            "fsync-in-normal gives a file one of several normal buffers: combine it with per-core or per-queue",
        );
    }
    if matches!(routing.files, FileRouting::FsyncAware | FileRouting::PerFile)
        && config.fsync_rings.unwrap_or(config.cores) == 0
    {
        return refuse("files that are fsynced need at least one buffer (ftl.fsync_rings)");
    }
    Ok(())
}

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
