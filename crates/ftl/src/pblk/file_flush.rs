//! A flush of one file's entries only (RFLUSH): they are searched in every buffer, brought forward
//! before everything that no write has taken yet, and written in units of their own, padded. What is
//! on its way to media already is only waited for.
//!
//! Whoever waited for a position among the entries that changed places waits for as many more as came
//! from behind it, for these stand before all others now.

use super::Pblk;
use super::flash::Flash;
use super::ids::{BufferId, FileKey};
use super::intake::Buffers;
use super::rules::Rules;
use super::waiting::Waiter;
use crate::common::l2p::MapEntry;
use crate::common::oob::key_lba;
use crate::kind::OmittedRule;
use nandscape_block::Lba;
use nandscape_media::OpenChannel;

impl Buffers {
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
}

impl<M: OpenChannel> Pblk<M> {
    /// Has the entries of a file in a buffer written first. Up to which position they reach then;
    /// `None` if there are none that are not durable.
    pub(super) fn prioritize_file(&mut self, id: BufferId, file: FileKey) -> Option<u64> {
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
}

fn raise(waiter: &mut Waiter, first: u64, passed: impl Fn(u64) -> u64) {
    if waiter.target > first {
        waiter.target += passed(waiter.target);
    }
}
