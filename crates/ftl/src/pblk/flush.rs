//! Flushes: which buffers they cover, and who waits for what (pblk-rb.c flush points), with the crash
//! model's promises instead of the kernel's:
//! - a flush covers everything within its scope that was acknowledged before it was submitted, and
//!   every discard;
//! - a write with PREFLUSH enters its buffer only when that is durable;
//! - a write with FUA completes when it is durable itself.
//!
//! Two scopes of published code are here by name although they break the first promise: what Linux
//! 4.13 does, and what MT-FTL's code does.
//!
//! A flush of one file's entries only (RFLUSH): they are searched in every buffer, brought forward
//! before everything that no write has taken yet, and written in units of their own, padded. What is
//! on its way to media already is only waited for.
//!
//! A flush that waits for a position among the entries that changed places waits for as many more as came
//! from behind it, for these stand before all others now.

use super::Pblk;
use super::buffers::Buffer;
use super::counts::PblkCounts;
use super::flash::Flash;
use super::flushes::{Covered, Flush};
use super::ids::{BufferId, FileKey};
use super::intake::Buffers;
use super::progress::Progress;
use super::rules::Rules;
use super::units::{Submitted, WriteUnit};
use super::waiting::{Arrival, Waiter};
use crate::common::l2p::MapEntry;
use crate::common::oob::key_lba;
use crate::common::waits::share;
use crate::kind::OmittedRule;
use crate::pblk::config::FlushScope;
use nandscape_block::{Bio, Completion, Done, Lba, Op, Submit, Token};
use nandscape_media::OpenChannel;
use nandscape_rt::{Nanos, invariant};

impl Buffers {
    /// Up to which position of which buffers a flush waits.
    fn targets(&mut self, rules: &Rules, bio: &Bio) -> Vec<(BufferId, u64)> {
        match (rules.config.flush_scope, self.router.flushed_file(bio)) {
            (FlushScope::FileRing, Some(file)) => {
                let set = self.router.dirty_of(file, &self.all);
                let trims = u64::from(self.trims_are_dirty(rules));
                self.ends_of(set | trims)
            }
            (FlushScope::RoutedRingOnly, _) => {
                let routed = self.router.route(bio, &self.all);
                self.ends_of(1 << routed)
            }
            (FlushScope::SubmittedOnly, _) => {
                let waits = |(id, buffer): (usize, &Buffer)| {
                    if buffer.rb.backlog() > 0 { 1 << id } else { 0 }
                };
                let set = self.all.iter().enumerate().map(waits).sum();
                self.ends_of(set)
            }
            _ => self.ends_of(u64::MAX),
        }
    }

    /// The ends of those buffers of a set, a bit each, that hold anything not durable.
    fn ends_of(&self, set: u64) -> Vec<(BufferId, u64)> {
        let buffers = (0..).zip(&self.all);
        let dirty = buffers.filter(|(id, buffer)| set & 1 << id != 0 && buffer.rb.is_dirty());
        dirty.map(|(id, buffer)| (id, buffer.rb.mem)).collect()
    }

    /// Whether trim records wait for durability in buffer 0.
    fn trims_are_dirty(&mut self, rules: &Rules) -> bool {
        self.trims.durable(self.all[0].rb.sync) != u64::MAX
            && !rules.run.omits(OmittedRule::FileTrims)
    }

    /// Has a file's entries that no write has taken yet stand before all others of a buffer. How many they are.
    fn reorder<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        rules: &Rules,
        id: BufferId,
        file: FileKey,
    ) -> u64 {
        let mut current = Vec::new();
        let buffer = &mut self.all[usize::from(id)];
        let slots = |at| buffer.rb.slot(at);
        let named: Vec<Option<Lba>> = (buffer.rb.movable_from()..buffer.rb.mem)
            .map(|at| {
                let lba = key_lba(buffer.rb.key(at))?;
                (flash.l2p.get(lba) == MapEntry::Buffered(slots(at))).then_some(lba)
            })
            .collect();
        let first = buffer.rb.movable_from();
        let mut moves = Vec::new();
        let count = buffer.rb.prioritize_file(file, |_, from, to| moves.push((from, to)));
        for &(from, to) in &moves {
            if let Some(lba) = named[(from - first) as usize] {
                current.push((lba, buffer.rb.slot(to)));
            }
        }
        let passed = |target: u64| {
            moves.iter().filter(|&&(from, to)| from >= target && to < from).count() as u64
        };
        buffer.waiters.iter_mut().for_each(|waiter| raise(waiter, first, passed));
        buffer.rb.flush_point += passed(buffer.rb.flush_point);
        for (lba, slot) in current {
            flash.l2p.replace(lba, MapEntry::Buffered(slot));
        }
        if id == 0 && !rules.run.omits(OmittedRule::MovedTrims) {
            self.trims.entries_moved(&moves);
        }
        count
    }

    /// Waits until everything before these positions is durable.
    pub(super) fn wait_for(
        &mut self,
        progress: &mut Progress,
        stats: &mut PblkCounts,
        targets: &[(BufferId, u64)],
        token: Token,
        entered: Arrival,
        then: Option<Bio>,
    ) -> u32 {
        let Arrival { since, cpu_ns, .. } = entered;
        let missing = targets.len() as u32;
        let flush = Flush { token, since, cpu_ns, missing, then };
        let flush = self.flushes.add(flush);
        for &(id, target) in targets {
            let buffer = &mut self.all[usize::from(id)];
            buffer.rb.flush_point = buffer.rb.flush_point.max(target);
            stats.flush.drained_sectors += target - buffer.rb.sync;
            let waiter = Waiter { target, flush, before: buffer.units.submitted };
            let place = buffer.waiters.partition_point(|other| other.target <= target);
            buffer.waiters.insert(place, waiter);
        }
        progress.needs_pump = true;
        flush
    }
}

impl PblkCounts {
    /// Divides the waiting time: the way in; until the writer took the last unit, by what was taken
    /// meanwhile; until its command was submitted; then its program, by what it wrote.
    fn count_flush(
        &mut self,
        ws_opt: u32,
        at: Nanos,
        (since, cpu_ns): (Nanos, u32),
        before: Submitted,
        last: &WriteUnit,
    ) {
        let since = since + Nanos(u64::from(cpu_ns));
        // The last unit may have been submitted, and counted, before the flush came.
        let total = (at - since).0;
        let submitted = last.submitted.saturating_sub(since).0;
        let waited = submitted.saturating_sub(u64::from(last.building_ns));
        let ahead_gc = last.before.gc.saturating_sub(before.gc);
        let ahead = ahead_gc + last.before.user.saturating_sub(before.user);
        let gc = share(waited, ahead_gc, ahead);
        let ws_opt = u64::from(ws_opt);
        let padding = share(total - submitted, ws_opt - u64::from(last.entries), ws_opt);
        let flush = &mut self.flush;
        flush.waited += 1;
        flush.total_ns += total + u64::from(cpu_ns);
        flush.cpu_ns += u64::from(cpu_ns);
        flush.queue_ns += waited - gc;
        flush.gc_ns += gc;
        flush.writer_ns += submitted - waited;
        flush.padding_ns += padding;
        flush.program_ns += total - submitted - padding;
    }
}

impl<M: OpenChannel> Pblk<M> {
    /// Waits until what a flush or a PREFLUSH covers is durable; done at once when it is.
    pub(super) fn drain_first(&mut self, bio: Bio, token: Token, entered: Arrival) -> Submit {
        let file = self.buffers.router.flushed_file(&bio);
        if let Some(file) = file {
            self.buffers.router.fsynced(file, &self.buffers.all);
        }
        self.buffers.emit_trims(&mut self.flash, &mut self.progress);
        let targets = match (self.rules.config.flush_scope, file) {
            (FlushScope::FileEntries, Some(file)) => self.entries_of(file),
            _ => self.buffers.targets(&self.rules, &bio),
        };
        let covered = self.covered(file);
        if targets.is_empty() {
            invariant!(
                self.is_known_durable(covered),
                "a flush that waits for nothing finds everything durable"
            );
            self.stats.flush.empty += 1;
            if bio.op == Op::Flush {
                return Submit::Done(Done::ok(self.flash.now));
            }
            return self.admit_or_queue(bio, token, entered);
        }
        let then = (bio.op != Op::Flush).then_some(bio);
        let Self { progress, stats, .. } = self;
        let flush = self.buffers.wait_for(progress, stats, &targets, token, entered, then);
        self.buffers.flushes.covers(flush, covered);
        Submit::Pending
    }

    /// What a flush covers, of a file or of all: of a file what is known is little, and published code breaks promises.
    fn covered(&self, file: Option<FileKey>) -> Covered {
        let all = match self.rules.config.flush_scope {
            FlushScope::All => true,
            FlushScope::FileRing | FlushScope::FileEntries => file.is_none(),
            FlushScope::SubmittedOnly | FlushScope::RoutedRingOnly => false,
        };
        let before = self.flash.next_seq;
        if all { Covered { before, buffers: u64::MAX, records: true } } else { Covered::default() }
    }

    fn is_known_durable(&self, covered: Covered) -> bool {
        self.rules.run.omits_any() || self.flash.shadow.agrees(|ledger| covered.is_durable(ledger))
    }

    /// Has a file's entries written first, in every buffer, and all trim records.
    fn entries_of(&mut self, file: FileKey) -> Vec<(BufferId, u64)> {
        let mut targets = Vec::new();
        for id in 0..self.buffers.all.len() as BufferId {
            let end = self.prioritize_file(id, file);
            invariant!(
                end >= self.last_of(id, file),
                "a flush of a file waits for the last of its entries that are not durable"
            );
            targets.extend(end.map(|end| (id, end)));
        }
        if self.buffers.trims_are_dirty(&self.rules) {
            targets.retain(|(id, _)| *id != 0);
            targets.push((0, self.buffers.all[0].rb.mem));
        }
        targets
    }

    /// The end of a file's entries in a buffer that are not durable.
    fn last_of(&self, id: BufferId, file: FileKey) -> Option<u64> {
        let rb = &self.buffers.all[usize::from(id)].rb;
        rb.end_of(file, rb.sync, rb.mem)
    }

    /// Has the entries of a file in a buffer written first. Up to which position they reach then;
    /// `None` if there are none that are not durable.
    fn prioritize_file(&mut self, id: BufferId, file: FileKey) -> Option<u64> {
        let rb = &self.buffers.all[usize::from(id)].rb;
        let (first, mem) = (rb.movable_from(), rb.mem);
        let fixed = rb.end_of(file, rb.sync, first);
        let movable = rb.end_of(file, first, mem);
        if movable.is_none() {
            return fixed;
        }
        // A unit for them alone must not take what garbage collection needs.
        if self.space().user_space(id) < u64::from(self.flash.geometry.ws_opt) {
            return Some(mem);
        }
        Some(first + self.buffers.reorder(&mut self.flash, &self.rules, id, file))
    }

    /// Everything in a buffer before `sync` is durable, `unit` last: bios that waited for that go on.
    pub(super) fn serve_waiters(&mut self, at: Nanos, id: BufferId, unit: &WriteUnit, sync: u64) {
        let id = usize::from(id);
        while let Some(waiter) =
            self.buffers.all[id].waiters.pop_front_if(|waiter| waiter.target <= sync)
        {
            let Some(flush) = self.buffers.flushes.arrive(waiter.flush) else { continue };
            invariant!(
                self.buffers
                    .flushes
                    .covered_by(waiter.flush, |covered| self.is_known_durable(covered)),
                "a flush is answered when all that was admitted before it is durable"
            );
            self.stats.count_flush(
                self.flash.geometry.ws_opt,
                at,
                (flush.since, flush.cpu_ns),
                waiter.before,
                unit,
            );
            match flush.then {
                None => {
                    let completion = Completion { token: flush.token, done: Done::ok(at) };
                    self.done.push(completion);
                }
                Some(bio) => self.buffers.queue(bio, flush.token, at),
            }
        }
    }
}

fn raise(waiter: &mut Waiter, first: u64, passed: impl Fn(u64) -> u64) {
    if waiter.target > first {
        waiter.target += passed(waiter.target);
    }
}
