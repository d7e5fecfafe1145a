//! Blocks: near a goal, many at once, and never one that a power cut could still need.
//!
//! - A run is taken at the goal if that is free, so that files grow in one piece; else the first run
//!   of the wanted length in the goal's group and those behind it; else the longest of a group, the
//!   wanted length being halved until some group has it. After ext4's mballoc, without its buddy
//!   bitmaps: a bitmap is searched by words instead.
//! - A block freed by a transaction may not be taken again before that has committed: until then a
//!   power cut would bring back the old owner, with the new one's data in it. Such blocks are *held*
//!   in memory, in a second bitmap of the group.
//! - Between the last waiting point and the end of a search-and-take there is none: no lock is needed.

use super::Allocator;
use super::bits::{self, View};
use crate::contract::{FsError, Result};
use crate::ext4::error::corrupt;
use crate::ext4::format::{GROUP_BLOCK_UNINIT, Place};
use crate::ext4::meta::Meta;
use crate::ext4::meta::group::{Bitmap, FreedBits};
use crate::ext4::rules::OmittedRule;
use crate::ext4::tx::{BufferRef, Tx};
use nandscape_rt::invariant;
use std::ops::Range;

impl Allocator {
    /// Takes up to `wanted` contiguous blocks near `goal`.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] when every free block is held, or none is left.
    pub(crate) async fn take_blocks(
        &self,
        meta: &Meta,
        tx: &Tx,
        goal: u64,
        wanted: u32,
    ) -> Result<Range<u64>> {
        self.release_held(meta);
        let goal = if goal < meta.blocks_count() { goal } else { 0 };
        let home = meta.sb.borrow().group_of(goal);
        if let Some(run) = self.take_at(meta, tx, goal, wanted).await? {
            return Ok(run);
        }
        let groups = self.group_count();
        let mut least = wanted.min(meta.sb.borrow().blocks_per_group);
        while least > 0 {
            for step in 0..groups {
                let group = (home + step) % groups;
                let from = if step == 0 { goal } else { 0 };
                if let Some(run) = self.take_in(meta, tx, group, from, wanted, least).await? {
                    return Ok(run);
                }
            }
            least /= 2;
        }
        Err(FsError::NoSpace)
    }

    /// Takes what is free from `goal` on.
    async fn take_at(
        &self,
        meta: &Meta,
        tx: &Tx,
        goal: u64,
        wanted: u32,
    ) -> Result<Option<Range<u64>>> {
        let group = meta.sb.borrow().group_of(goal);
        if self.groups.borrow()[group as usize].desc.free_blocks_count == 0 {
            return Ok(None);
        }
        let start = (goal - meta.sb.borrow().group_first_block(group)) as u32;
        let end = blocks_in(meta, group).min(start.saturating_add(wanted));
        self.search_and_take(meta, tx, group, |view| {
            view.next_run(start..end, wanted).filter(|run| run.start == start)
        })
        .await
    }

    /// Takes a run of at least `least` blocks in a group.
    async fn take_in(
        &self,
        meta: &Meta,
        tx: &Tx,
        group: u32,
        from: u64,
        wanted: u32,
        least: u32,
    ) -> Result<Option<Range<u64>>> {
        let known = self.groups.borrow()[group as usize].longest_at_most;
        let free = self.groups.borrow()[group as usize].desc.free_blocks_count;
        if free.min(known) < least {
            return Ok(None);
        }
        let first = meta.sb.borrow().group_first_block(group);
        let start = from.saturating_sub(first).min(u64::from(u32::MAX)) as u32;
        let end = blocks_in(meta, group);
        let mut longest = 0;
        let taken = self
            .search_and_take(meta, tx, group, |view| {
                let behind = view.best_run(start..end, wanted);
                let enough = |run: &Range<u32>| run.len() >= wanted as usize;
                let best = behind.filter(enough).or_else(|| view.best_run(0..end, wanted));
                longest = best.as_ref().map_or(0, |run| run.len() as u32);
                best.filter(|run| run.len() >= least as usize)
            })
            .await?;
        if taken.is_none() {
            self.groups.borrow_mut()[group as usize].longest_at_most = longest;
        }
        Ok(taken)
    }

    /// Takes the run that `search` chooses in a group's bitmap.
    async fn search_and_take(
        &self,
        meta: &Meta,
        tx: &Tx,
        group: u32,
        search: impl FnOnce(View<'_>) -> Option<Range<u32>>,
    ) -> Result<Option<Range<u64>>> {
        let bitmap = self.block_bitmap(meta, tx, group).await?;
        tx.access(&bitmap).await?;
        let run = {
            let groups = self.groups.borrow();
            let held = groups[group as usize].held.as_ref();
            bitmap.with(|bytes| search(View::new(bytes, held.map(|held| &held.bitmap[..]))))
        };
        let Some(run) = run else { return Ok(None) };
        invariant!(
            self.is_free(group, &bitmap, &run),
            "group {group}: blocks {run:?} that are taken are free, and no transaction freed them"
        );
        let first = meta.sb.borrow().group_first_block(group);
        let blocks = first + u64::from(run.start)..first + u64::from(run.end);
        self.system_zone.check(blocks.clone(), Place::BlockBitmap(group))?;
        self.change_block_bits(meta, tx, group, &bitmap, run, true).await?;
        Ok(Some(blocks))
    }

    /// Whether blocks are in use nowhere, and no uncommitted transaction has freed them.
    fn is_free(&self, group: u32, bitmap: &BufferRef, run: &Range<u32>) -> bool {
        let held = &self.groups.borrow()[group as usize].held;
        let is_clear = |bytes: &[u8]| bits::all(bytes, run.clone(), false);
        bitmap.with(|bytes| is_clear(bytes))
            && held.as_ref().is_none_or(|held| is_clear(&held.bitmap[..]))
    }

    /// Takes these blocks, those of them that are free.
    pub(crate) async fn claim_blocks(
        &self,
        meta: &Meta,
        tx: &Tx,
        blocks: Range<u64>,
    ) -> Result<()> {
        let mut from = blocks.start;
        while from < blocks.end {
            let (group, bits) = meta.sb.borrow().first_group_bits(&(from..blocks.end));
            let bitmap = self.block_bitmap(meta, tx, group).await?;
            tx.access(&bitmap).await?;
            let mut at = bits.start;
            let next = |at| bitmap.with(|b| View::new(b, None).next_run(at..bits.end, u32::MAX));
            while let Some(free) = next(at) {
                at = free.end;
                self.change_block_bits(meta, tx, group, &bitmap, free, true).await?;
            }
            from += bits.len() as u64;
        }
        Ok(())
    }

    /// Gives blocks back; they are held until the transaction has committed.
    pub(crate) async fn free_blocks(&self, meta: &Meta, tx: &Tx, blocks: Range<u64>) -> Result<()> {
        self.system_zone.check(blocks.clone(), Place::Block(blocks.start))?;
        let mut from = blocks.start;
        while from < blocks.end {
            let (group, bits) = meta.sb.borrow().first_group_bits(&(from..blocks.end));
            let bitmap = self.block_bitmap(meta, tx, group).await?;
            tx.access(&bitmap).await?;
            if !bitmap.with(|bytes| bits::all(bytes, bits.clone(), true)) {
                return Err(corrupt("block bitmap: freed twice", Place::BlockBitmap(group)));
            }
            if !meta.omits(OmittedRule::ReuseBeforeCommit) {
                self.hold(tx, group, bits.clone());
            }
            from += bits.len() as u64;
            self.change_block_bits(meta, tx, group, &bitmap, bits, false).await?;
        }
        Ok(())
    }

    /// Changes bits of a bitmap that the transaction has access to, and the counts that go with it.
    async fn change_block_bits(
        &self,
        meta: &Meta,
        tx: &Tx,
        group: u32,
        bitmap: &BufferRef,
        bits: Range<u32>,
        taken: bool,
    ) -> Result<()> {
        let count = bits.len() as u32;
        tx.change_parts(bitmap, |bytes| {
            bits::fill(bytes, bits.clone(), taken);
            let info = &mut self.groups.borrow_mut()[group as usize];
            let free = &mut info.desc.free_blocks_count;
            // Counts are the media's, which may be wrong.
            *free = if taken { free.saturating_sub(count) } else { free.saturating_add(count) };
            info.desc.flags &= !GROUP_BLOCK_UNINIT;
            if !taken {
                info.longest_at_most = u32::MAX;
            }
        })?;
        let total = self.free_blocks.get();
        let count = u64::from(count);
        self.free_blocks.set(if taken { total - count.min(total) } else { total + count });
        meta.write_group(tx, group, Bitmap::Blocks, bitmap).await
    }

    /// Keeps freed blocks from being taken before the transaction has committed.
    fn hold(&self, tx: &Tx, group: u32, bits: Range<u32>) {
        let mut groups = self.groups.borrow_mut();
        let held = groups[group as usize].held.get_or_insert_with(|| {
            let spare = self.freed.spare.take();
            FreedBits { bitmap: spare.unwrap_or_else(|| Box::new([0; 4096])), count: 0 }
        });
        bits::fill(&mut held.bitmap[..], bits.clone(), true);
        held.count += bits.len() as u32;
        self.freed.blocks.set(self.freed.blocks.get() + bits.len() as u64);
        self.freed.queue.borrow_mut().push_back((tx.tid(), group, bits));
    }

    /// Releases blocks whose transaction has committed.
    pub(super) fn release_held(&self, meta: &Meta) {
        let mut held = self.freed.queue.borrow_mut();
        while let Some((_, group, bits)) = held.pop_front_if(|(tid, ..)| meta.is_committed(*tid)) {
            let mut groups = self.groups.borrow_mut();
            let info = &mut groups[group as usize];
            info.longest_at_most = u32::MAX;
            self.freed.blocks.set(self.freed.blocks.get() - bits.len() as u64);
            invariant!(
                info.held.as_ref().is_some_and(|held| bits::all(
                    &held.bitmap[..],
                    bits.clone(),
                    true
                )),
                "group {group}: blocks {bits:?} are held until their transaction is committed"
            );
            if let Some(held) = &mut info.held {
                held.count -= bits.len() as u32;
                bits::fill(&mut held.bitmap[..], bits, false);
            }
            if let Some(held) = info.held.take_if(|held| held.count == 0) {
                self.freed.spare.set(Some(held.bitmap));
            }
        }
    }

    /// Whether blocks are held that a commit would release.
    pub(crate) fn holds_blocks(&self) -> bool {
        !self.freed.queue.borrow().is_empty()
    }
}

fn blocks_in(meta: &Meta, group: u32) -> u32 {
    let blocks = meta.sb.borrow().group_blocks(group);
    (blocks.end - blocks.start) as u32
}
