//! Discards of an append-only address space: collected from the SIT by the checkpoint that makes them safe, kept in its
//! discard journal where the mode has one, and sent as ranges once it is durable (the aggressive policy of D2FS's artifact:
//! 80,000 requests a round).
//!
//! The journal has what the device may not have got when its checkpoint is durable: what the checkpoint makes void, and
//! what earlier ones did and was not discarded when it was built. What was discarded by then is made durable by the flush
//! of the pack.

use super::Appended;
use crate::contract::Result;
use crate::f2fs::append::AppendSpace;
use crate::f2fs::error::corrupt;
use crate::f2fs::format::{AppendMode, BlockAddr};
use crate::f2fs::mount_info::MountInfo;
use crate::f2fs::rules::OmittedRule;
use crate::f2fs::segment::Block;
use crate::f2fs::segment_manager::SegmentManager;
use nandscape_block::{Bio, Lba};
use nandscape_rt::Nanos;
use nandscape_rt::combine::{in_turn, select2};
use std::ops::Range;
use std::rc::Rc;

/// Time between rounds (`DEF_MIN_DISCARD_ISSUE_TIME`).
const ROUND: Nanos = Nanos::from_ms(50);
/// Requests of a round.
const ROUND_REQUESTS: usize = 80_000;

impl Appended<'_> {
    /// Takes what the checkpoint that is being written makes void.
    pub(in crate::f2fs) async fn prepare_discards(&self) -> Result<()> {
        let made = self.volume.segments.borrow_mut().take_discards();
        if self.append.is_mounting.get() {
            // The mount finds by itself what is void, once it knows what the device has moved.
            return Ok(());
        }
        self.append.discards.borrow_mut().prepare(made);
        if self.volume.mount.omits(OmittedRule::EarlyDiscard) {
            self.append.discards.borrow_mut().release();
            self.start_discards();
            self.append.drain_discards(&self.volume.mount).await?;
            // Long enough that a power cut can come before the checkpoint.
            self.volume.mount.env.rt.sleep(ROUND).await;
            return Ok(());
        }
        let room = self.volume.mount.layout.discard_journal(0);
        let room = (room.end.0 - room.start.0) as usize;
        let is_full = self.append.discards.borrow().records().blocks() > room;
        if is_full && self.append.mode == AppendMode::Interval {
            // What this checkpoint makes void fits by itself.
            self.start_discards();
            self.append.drain_discards(&self.volume.mount).await?;
        }
        Ok(())
    }

    /// Has a task send what waits, unless one does.
    pub(in crate::f2fs) fn start_discards(&self) {
        if !self.append.is_sending.replace(true) {
            let volume = Rc::clone(self.volume);
            drop(self.volume.mount.env.rt.spawn_daemon("discard", async move {
                if let Some(space) = Appended::of(&volume) {
                    space.send_void().await;
                }
            }));
        }
    }

    /// Sends what waits, a round at a time, until nothing does.
    async fn send_void(&self) {
        loop {
            if !self.append.is_hurried.get() {
                let _ =
                    select2(self.volume.mount.env.rt.sleep(ROUND), self.append.hurry.notified())
                        .await;
            }
            let ranges = self.append.discards.borrow_mut().take(ROUND_REQUESTS);
            if ranges.is_empty() || self.volume.mount.stopped.get() {
                break;
            }
            self.append.send_ranges(&self.volume.segments, &ranges).await;
        }
        let mut covered = Vec::new();
        if let Some(upcalls) =
            self.append.upcalls.as_ref().filter(|_| !self.append.is_mounting.get())
        {
            covered = upcalls.take_covered();
            if upcalls.note_drained() {
                upcalls.poke.notify_one();
            }
        }
        self.append.is_sending.set(false);
        self.append.is_hurried.set(false);
        self.append.complete_upcalls(&self.volume.segments, covered).await;
        self.append.drained.notify_waiters();
    }

    /// A checkpoint is durable: what it made void may be discarded.
    pub(in crate::f2fs) fn release_discards(&self) {
        self.append.discards.borrow_mut().release();
        self.append.note_retired(&self.volume.segments);
        if let Some(upcalls) = &self.append.upcalls {
            upcalls.cover();
            if self.volume.mount.omits(OmittedRule::UpcallDiscards) {
                let (volume, batches) = (Rc::clone(self.volume), upcalls.take_covered());
                let complete = async move {
                    if let Some(append) = &volume.segments.append {
                        append.complete_upcalls(&volume.segments, batches).await;
                    }
                };
                drop(self.volume.mount.env.rt.spawn_daemon("early completion", complete));
            }
        }
        self.start_discards();
    }
}

impl AppendSpace {
    /// The blocks of the discard journal that belong to the checkpoint of this version, in this pack.
    ///
    /// # Errors
    /// [`FsError::Corrupt`](crate::contract::FsError::Corrupt) if they do not fit, which they do by the size of the area.
    pub(in crate::f2fs) fn discard_journal(
        &self,
        mount: &MountInfo,
        version: u64,
        pack: u32,
    ) -> Result<Vec<(BlockAddr, Box<Block>)>> {
        if self.mode != AppendMode::Interval || mount.omits(OmittedRule::DiscardJournal) {
            return Ok(Vec::new());
        }
        let blocks = self.discards.borrow().records().encode(version);
        let area = mount.layout.discard_journal(pack);
        if blocks.len() as u32 > area.end.0 - area.start.0 {
            return Err(corrupt("discard journal", "more records than it has room for"));
        }
        self.count(|counts| counts.journal_blocks += blocks.len() as u64);
        Ok((area.start.0..).map(BlockAddr).zip(blocks).collect())
    }

    /// Discards ranges, and waits for them. One that fails frees nothing on the device, and nothing else is lost.
    async fn send_ranges(&self, segments: &SegmentManager, ranges: &[Range<BlockAddr>]) {
        let send = |range: &Range<BlockAddr>| {
            let blocks = range.end.0 - range.start.0;
            self.count(|counts| counts.discarded_blocks += u64::from(blocks));
            segments.mount.env.device.submit(Bio::discard(Lba(range.start.0.into()), blocks))
        };
        let replies: Vec<_> = ranges.iter().map(send).collect();
        segments.discards.sent.set(segments.discards.sent.get() + replies.len() as u64);
        drop(in_turn(replies).await);
        ranges.iter().for_each(|range| self.discards.borrow_mut().end(range));
    }

    /// Waits until nothing that may be discarded waits for it.
    ///
    /// # Errors
    /// [`FsError::ReadOnly`](crate::contract::FsError::ReadOnly) if the volume was stopped.
    pub(in crate::f2fs) async fn drain_discards(&self, mount: &MountInfo) -> Result<()> {
        while self.is_sending.get() {
            self.is_hurried.set(true);
            self.hurry.notify_one();
            self.drained.notified().await;
            mount.check_running()?;
        }
        Ok(())
    }
}
