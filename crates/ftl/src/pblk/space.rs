//! Who may still write how much. Free lines are shared; what is left of a frontier's lines is its
//! own. User data is admitted only so far that all that is buffered can always be written, and that
//! garbage collection can always fill one more line, and a second one should a power cut pad out the
//! first.
//!
//! Buffers that share frontiers are one *group*. A group's need beyond its own lines is counted in
//! whole free lines, and in so many that they suffice whichever it gets: lines with bad chunks are
//! shorter than others.

use super::buffers::Buffer;
use super::collector::Collector;
use super::flash::Flash;
use super::frontiers::Frontiers;
use super::ids::{BufferId, FrontierId};
use super::intake::Buffers;
use super::layout::padded_out;
use super::rules::Rules;
use crate::common::free_space::FreeSpace;
use crate::common::ids::MAP_ORIGIN;
use crate::common::lines::Line;
use crate::face::Rest;
use crate::pblk::config::{GcStream, JournalLines, Limiter};
use nandscape_media::OpenChannel;
use smallvec::{SmallVec, smallvec};

/// What a group has in its own lines, less what it must write; negative if it needs free lines.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Group {
    pub(super) rest: i64,
    /// Whether it has anything to write. A group without may be asked to wait.
    pub(super) busy: bool,
}

impl Group {
    /// Sectors that it needs of free lines.
    fn needs(&self) -> u64 {
        if self.busy { (-self.rest).max(0) as u64 } else { 0 }
    }
}

/// Without allocation for as many groups as a stack has that gives no core a ring of its own.
pub(super) type Groups = SmallVec<[Group; 4]>;

/// Every group's balance, and the free lines.
#[derive(Debug)]
pub(super) struct Balance<'a> {
    pub(super) groups: Groups,
    free: FreeSpace<'a>,
    /// Sectors that victims will need.
    victims: u64,
}

impl Balance<'_> {
    /// Free lines that the other groups do not need.
    fn lines_beside(&self, group: usize) -> u32 {
        let others = (0..self.groups.len()).filter(|&other| other != group);
        let needed = others.map(|other| self.free.lines_for(self.groups[other].needs())).sum();
        self.free.lines().saturating_sub(needed)
    }

    /// The same in sectors.
    fn shared_for(&self, group: usize) -> i64 {
        self.free.sectors_of(self.lines_beside(group)) as i64
    }
}

/// What decides who may write how much, looked at together.
pub(super) struct Space<'a, M> {
    pub(super) flash: &'a Flash<M>,
    pub(super) buffers: &'a Buffers,
    pub(super) frontiers: &'a Frontiers,
    pub(super) collector: &'a Collector,
    pub(super) rules: &'a Rules,
}

impl<M: OpenChannel> Space<'_, M> {
    /// Sectors that user data and trim records may take without ever cornering garbage collection.
    #[inline]
    pub(super) fn user_space(&self, id: BufferId) -> u64 {
        let ample =
            self.flash.lines.writable >= self.rules.ample_sectors && self.collector.is_idle();
        if ample { u64::MAX } else { self.constrained_space(id) }
    }

    fn constrained_space(&self, id: BufferId) -> u64 {
        if let Some(space) = self.exclusive_space() {
            let victims = self.collector.needs.now;
            return (space - victims as i64 - self.reserve(victims)).max(0) as u64;
        }
        self.shared_space(id)
    }

    /// What a buffer can write that shares the device with no other buffer: all that is writable, but
    /// for what mapping blocks have, is its own. Others are balanced.
    #[inline]
    fn exclusive_space(&self) -> Option<i64> {
        let [buffer] = &self.buffers.all[..] else { return None };
        let writable =
            if !self.rules.caches_map() { self.flash.lines.writable } else { self.data_room() };
        Some(writable as i64 - buffer.committed(self.flash.geometry.ws_opt) as i64)
    }

    /// Data sectors that buffers can still map.
    fn data_room(&self) -> u64 {
        let frontiers = self.frontiers.all.iter().filter(|frontier| frontier.buffer != MAP_ORIGIN);
        let left: u64 = frontiers.map(|frontier| self.flash.left_of(frontier)).sum();
        let free = self.flash.lines.free_space();
        left + free.sectors_of(free.lines())
    }

    #[cold]
    fn shared_space(&self, id: BufferId) -> u64 {
        let balance = self.balance();
        let group = self.buffers.router.plan().group_of(id);
        let rest = balance.groups[group].rest;
        let space = if self.buffers.router.plan().collects_into(group) {
            rest + balance.shared_for(group) - self.reserve(balance.victims)
        } else {
            rest + balance.free.sectors_of(self.lines_for(group, &balance)) as i64
        };
        space.max(0) as u64
    }

    /// What garbage collection needs free: two lines, the second for the case that a power cut pads
    /// out the first; more where copies fill several lines at once and all of them are padded out.
    fn reserve(&self, victims: u64) -> i64 {
        let row = i64::from(self.flash.geometry.ws_opt * self.flash.layout.width);
        (self.reserved_lines() as i64 - victims as i64).max(0) + row
    }

    /// What the lines hold that garbage collection needs free while it collects none. Only power cuts
    /// leave less.
    pub(super) fn reserved_lines(&self) -> u64 {
        let lines = 2 + padded_out(&self.flash.geometry, self.buffers.router.plan().widest());
        u64::from(lines) * u64::from(self.rules.capacity.line_data_sectors)
    }

    /// Free lines that a group may take for user data.
    fn lines_for(&self, group: usize, balance: &Balance<'_>) -> u32 {
        let plan = self.buffers.router.plan();
        let kept = if plan.collects_into(group) {
            0
        } else {
            let spare = balance.groups[plan.copies_group()].rest.max(0);
            balance.free.lines_for((self.reserve(balance.victims) - spare).max(0) as u64)
        };
        balance.lines_beside(group).saturating_sub(kept)
    }

    /// Whether a frontier of this buffer may take a free line now: its group needs one for what is
    /// buffered, or there are more than others will need. Where open chunks are limited lines are
    /// not prepared ahead, because they cannot be handed back.
    #[inline]
    pub(super) fn may_take_line(&self, id: BufferId) -> bool {
        self.frontiers.data_frontiers() == 1 || id == MAP_ORIGIN || self.is_due_a_line(id)
    }

    fn is_due_a_line(&self, id: BufferId) -> bool {
        let (chunks, lines) = self.flash.lines.free();
        let left = (chunks.saturating_sub(self.flash.layout.width), lines.saturating_sub(1));
        let limited = self.flash.geometry.limits_open_chunks();
        let scarce = limited || self.buffers.all[0].rl.stops_users(left);
        if !scarce
            && self.flash.lines.writable >= self.rules.ample_sectors
            && self.collector.is_idle()
        {
            return true;
        }
        let balance = self.balance();
        let group = self.buffers.router.plan().group_of(id);
        // What is short by less than the padding of a unit can be written all the same: then a line
        // that another group needs is left to it.
        let padding = i64::from(self.flash.geometry.ws_opt);
        let short = balance.groups[group].rest;
        let needed = short < -padding || (short < 0 && balance.lines_beside(group) > 0);
        needed || (!scarce && self.lines_for(group, &balance) > 0)
    }

    /// Whether a frontier's group has a unit in its own lines that it does not need. A buffer that has nothing to
    /// write needs none for what it may pad either.
    pub(super) fn spares_unit(&self, f: FrontierId) -> bool {
        let plan = self.buffers.router.plan();
        let unit = i64::from(self.flash.geometry.ws_opt);
        let group = plan.group_of(self.frontiers.all[usize::from(f)].buffer);
        let expects_copies =
            |id| self.collector.pending_copies().any(|copies| copies.0 == id && copies.1 > 0);
        let of_group = (0..).zip(&self.buffers.all).filter(|&(id, _)| plan.group_of(id) == group);
        let idle = of_group.filter(|&(id, buffer)| !buffer.has_to_write() && !expects_copies(id));
        self.balance().groups[group].rest + unit * idle.count() as i64 >= unit
    }

    /// Sectors that copies may take in a buffer beyond victims already being collected.
    pub(super) fn uncommitted(&self, id: BufferId) -> u64 {
        if let Some(space) = self.exclusive_space() {
            return (space - self.collector.needs.another).max(0) as u64;
        }
        let balance = self.balance();
        let group = self.buffers.router.plan().group_of(id);
        let rest = balance.groups[group].rest;
        (rest + balance.shared_for(group)).max(0) as u64
    }

    /// Sectors that copies on their way to a buffer may take now.
    pub(super) fn copy_space(&self, id: BufferId) -> u64 {
        if let Some(space) = self.exclusive_space() {
            return space.max(0) as u64;
        }
        let coming = self.collector.pending_copies().filter(|&(buffer, _)| buffer == id);
        self.uncommitted(id) + coming.map(|(_, sectors)| sectors).sum::<u64>()
    }

    pub(super) fn balance(&self) -> Balance<'_> {
        let plan = self.buffers.router.plan();
        let ws_opt = self.flash.geometry.ws_opt;
        let mut groups: Groups = smallvec![Group::default(); plan.groups()];
        for frontier in self.frontiers.all.iter().filter(|frontier| frontier.buffer != MAP_ORIGIN) {
            groups[plan.group_of(frontier.buffer)].rest += self.flash.left_of(frontier) as i64;
        }
        for (id, buffer) in (0..).zip(&self.buffers.all) {
            let group = &mut groups[plan.group_of(id)];
            group.rest -= buffer.committed(ws_opt) as i64;
            group.busy |= !buffer.is_empty();
        }
        for (buffer, sectors) in self.collector.pending_copies() {
            let group = &mut groups[plan.group_of(buffer)];
            group.rest -= sectors as i64;
            group.busy |= sectors > 0;
        }
        groups[0].busy |= self.buffers.trims.has_pending();
        Balance {
            groups,
            free: self.flash.lines.free_space(),
            victims: self.collector.pending_sectors,
        }
    }

    /// Whether a write waits for space that garbage collection can free.
    pub(super) fn is_short_of_space(&self) -> bool {
        let unit = u64::from(self.flash.geometry.ws_opt);
        let mut waiting =
            (0..).zip(&self.buffers.all).filter(|(_, buffer)| !buffer.queue.is_empty());
        let short = |(id, buffer): (BufferId, &Buffer)| {
            buffer.rl.user_room() == 0 || self.user_space(id) < unit
        };
        waiting.any(short)
    }

    /// Whether writes wait for space, and the collector's thread may find some when it runs next.
    pub(super) fn awaits_collection(&self) -> bool {
        self.collector.thread.may_run()
            && (self.is_short_of_space() || self.flash.lines.free().1 == 0)
    }

    /// Whether another victim is wanted with so many free chunks and lines.
    pub(super) fn wants_victim(&self, free: (u32, u32)) -> bool {
        let coming = self.collector.victims() + self.flash.lines.quarantined() as u32;
        self.collector.takes_all
            || self.buffers.all.iter().any(|buffer| buffer.rl.wants_victim(free, coming))
    }

    /// Whether garbage collection runs because free lines are short.
    pub(super) fn wants_lines(&self) -> bool {
        let free =
            self.frontiers.limiter_free(self.flash, self.rules, Some(self.flash.lines.scarcest()));
        self.buffers.all.iter().any(|buffer| buffer.rl.wants_victim(free, 0))
    }

    /// Whether lines of the journal are no victims now.
    pub(super) fn spares_journal(&self) -> bool {
        self.rules.config.journal_lines == JournalLines::Exempt && !self.collector.takes_all
    }

    /// Where a victim's copies go: to the buffer that they came from if that is wanted and they find
    /// room there, else to `target`.
    pub(super) fn copies_of(&self, line: &Line, target: BufferId) -> BufferId {
        let by_origin =
            self.rules.config.gc_stream == GcStream::ByOrigin && !self.collector.takes_all;
        let fits = by_origin && u64::from(line.valid) <= self.uncommitted(line.origin);
        if fits { line.origin } else { target }
    }

    /// Whether the kernel's limiter can come to rest: collection goes on while fewer chunks are free than a high
    /// mark, whether or not anything is written. What can be free at most with as many sectors mapped as now, against
    /// that mark. A line is open for each frontier, and what is mapped fills the lines behind them.
    pub(super) fn rest_state(&self) -> Option<Rest> {
        if self.rules.config.limiter != Limiter::Kernel {
            return None;
        }
        let capacity = &self.rules.capacity;
        let mapped_sectors = self.flash.l2p.mapped();
        let lines = capacity.physical_sectors / u64::from(capacity.line_sectors);
        let full = mapped_sectors.div_ceil(capacity.line_data_sectors.into());
        let others = self.frontiers.all.len() as u64 + u64::from(capacity.map_lines);
        let free = lines.saturating_sub(full + others) * u64::from(self.flash.layout.width);
        let (wanted_chunks, line_chunks) =
            (capacity.high_chunks.into(), self.flash.layout.width.into());
        let chunks = lines * line_chunks;
        Some(Rest { wanted_chunks, free_chunks_max: free, chunks, line_chunks, mapped_sectors })
    }
}
