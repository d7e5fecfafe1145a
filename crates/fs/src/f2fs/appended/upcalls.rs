//! Upcalls: what the device has moved is fetched, applied in memory, and completed (D2FS, FAST '25, "Migration Upcall").
//!
//! A batch is completed only when
//! - a checkpoint that has its updates is durable: until then the last one leads to the old addresses;
//! - what was to be discarded by then was: of a block that was freed meanwhile the discard at the old address is all that
//!   kills its copy;
//! - reads that began before the updates have ended: they may be on their way to the old addresses.
//!
//! Batches are fetched when the device says that there are some, before each sync and unmount, where sections wait to be
//! written again, and where space is scarce.

use super::Appended;
use super::migrate::{Batch, Migration};
use crate::contract::{FsError, Result};
use crate::f2fs::append::{AppendSpace, Forced, Upcalls};
use crate::f2fs::checkpoints::Reason;
use crate::f2fs::cpu::Work;
use crate::f2fs::format::{BlockAddr, SpaceSection};
use crate::f2fs::mount_info::MountInfo;
use crate::f2fs::rules::OmittedRule;
use crate::f2fs::segment_manager::SegmentManager;
use nandscape_block::{Bio, BlockError, Lba, Op, Reply, UpcallSignal};
use nandscape_rt::BoxFuture;
use nandscape_rt::combine::{Either, in_turn, select2};

/// Records of a batch.
const RECORDS: u32 = 256;
/// Share of the device's blocks that have records in batches which wait for a checkpoint, at most: one in so many. With
/// as many that wait for discards it is what a device has room for.
const BLOCKS_PER_RECORD: u64 = 16;
/// Batches that are fetched before the first of them is applied, so that what they are looked up in is read together.
const TOGETHER: usize = 8;
/// Tries to apply a batch, with a checkpoint between, while no slot is free.
const TRIES: u32 = 4;

/// What a device has beside the batches that were fetched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Left {
    /// There may be more.
    Some,
    None,
    /// None, and it asks for the completion of others.
    Asked,
}

impl Upcalls {
    /// Waits until the device may have something, in the way in which it says so.
    async fn wait(
        &self,
        mount: &MountInfo,
        interrupt: &mut Option<BoxFuture<'static, std::result::Result<Reply, BlockError>>>,
    ) {
        let poked = self.poke.notified();
        match self.signal {
            UpcallSignal::Piggyback => {
                _ = select2(mount.env.device.attention(), poked).await;
            }
            UpcallSignal::Poll(period) => _ = select2(mount.env.rt.sleep(period), poked).await,
            UpcallSignal::Interrupt => {
                let wait = || mount.env.device.submit(Bio::new(Op::AwaitUpcall, Lba(0), 0));
                let answer = interrupt.get_or_insert_with(|| Box::pin(wait()));
                if let Either::First(_) = select2(answer.as_mut(), poked).await {
                    *interrupt = None;
                    mount.pay(Work::Upcall).await;
                }
            }
        }
    }
}

impl Appended<'_> {
    /// Fetches and applies what the device reports, until the volume is unmounted.
    pub(in crate::f2fs) async fn handle_upcalls(&self) {
        let Some(upcalls) = &self.append.upcalls else { return };
        let mut interrupt = None;
        loop {
            upcalls.wait(&self.volume.mount, &mut interrupt).await;
            if self.volume.mount.env.calls.check_open().is_err() || self.volume.mount.stopped.get()
            {
                return;
            }
            // An error stops the volume, which every call then says.
            if self.fetch_upcalls().await.is_err() {
                return;
            }
        }
    }

    /// Fetches what there is, and applies it.
    ///
    /// # Errors
    /// Those of the device and of metadata; the volume is stopped then.
    pub(in crate::f2fs) async fn fetch_upcalls(&self) -> Result<()> {
        let Some(upcalls) = &self.append.upcalls else { return Ok(()) };
        let _one = upcalls.processing.lock().await;
        let mut was_asked = false;
        loop {
            let discarded = upcalls.discarded();
            let (batches, left) = self.append.fetch_batches(&self.volume.mount, upcalls).await?;
            was_asked &= batches.is_empty();
            self.take_batches(upcalls, batches).await?;
            match left {
                Left::Some => {}
                // A device that asks again could not complete what it was sent.
                Left::Asked if was_asked || upcalls.outstanding() == 0 => return Ok(()),
                Left::Asked => {
                    was_asked = true;
                    self.append.note_forced(Forced::Upcalls);
                    self.volume.write_checkpoint(Reason::Space).await?;
                    self.complete_covered(upcalls).await?;
                }
                Left::None => {
                    self.volume.segments.give_back(upcalls.note_none_left(discarded));
                    return Ok(());
                }
            }
        }
    }

    /// Applies batches in their order.
    async fn take_batches(&self, upcalls: &Upcalls, batches: Vec<Batch>) -> Result<()> {
        Migration { volume: self.volume }
            .read_ahead(&batches)
            .await
            .map_err(|error| self.volume.writes.stop(error))?;
        for (id, records) in batches {
            self.apply_until_done(&records)
                .await
                .map_err(|error| self.volume.writes.stop(error))?;
            upcalls.note_applied(id);
            if self.volume.mount.omits(OmittedRule::UpcallCheckpoint) {
                upcalls.cover();
                self.append.complete_upcalls(&self.volume.segments, upcalls.take_covered()).await;
            }
            self.bound_upcalls(upcalls).await?;
        }
        Ok(())
    }

    /// Writes a checkpoint if as many batches as may wait for one, and has batches completed if twice as many are not.
    async fn bound_upcalls(&self, upcalls: &Upcalls) -> Result<()> {
        let room = self.append.capacity / (BLOCKS_PER_RECORD * u64::from(RECORDS));
        let most = u64::from(self.volume.mount.options.upcalls_waiting).min(room.max(1));
        if upcalls.applied() as u64 >= most {
            self.append.note_forced(Forced::Upcalls);
            self.volume.write_checkpoint(Reason::Space).await?;
        }
        if upcalls.outstanding() >= 2 * most {
            self.complete_covered(upcalls).await?;
        }
        Ok(())
    }

    /// Waits until batches that a durable checkpoint has are completed.
    async fn complete_covered(&self, upcalls: &Upcalls) -> Result<()> {
        self.append.drain_discards(&self.volume.mount).await?;
        // Those that the last round of discards took along are before it.
        self.append.complete_upcalls(&self.volume.segments, upcalls.take_covered()).await;
        drop(upcalls.completing.lock().await);
        Ok(())
    }

    /// Applies a batch; checkpoints make slots free, if it finds none.
    async fn apply_until_done(&self, records: &[(BlockAddr, BlockAddr)]) -> Result<()> {
        let mut ended = Migration { volume: self.volume }.apply_batch(records).await;
        for _ in 1..TRIES {
            if ended != Err(FsError::NoSpace) {
                break;
            }
            self.append.note_forced(Forced::Slots);
            self.volume.write_checkpoint(Reason::Space).await?;
            // What was applied the first time is found so.
            ended = Migration { volume: self.volume }.apply_batch(records).await;
        }
        ended
    }
}

impl AppendSpace {
    /// Fetches batches that are applied one after the other; what the device has beside them.
    pub(super) async fn fetch_batches(
        &self,
        mount: &MountInfo,
        upcalls: &Upcalls,
    ) -> Result<(Vec<Batch>, Left)> {
        let mut batches = Vec::new();
        while batches.len() < TOGETHER {
            let fetch = Bio::new(Op::FetchUpcall, Lba(0), RECORDS);
            let reply = mount.env.device.submit(fetch).await?;
            mount.pay(Work::Upcall).await;
            let Reply::Upcall(id, records) = reply else {
                return Ok((batches, Left::None));
            };
            if records.is_empty() {
                return Ok((batches, Left::Asked));
            }
            upcalls.note_fetched();
            self.count(|counts| counts.upcalls_fetched += 1);
            let records = records.into_iter().map(|(old, new)| Ok((address(old)?, address(new)?)));
            batches.push((id, records.collect::<Result<_>>()?));
        }
        Ok((batches, Left::Some))
    }

    /// Completes batches, in their order, once no read is on its way that began before.
    pub(super) async fn complete_upcalls(&self, segments: &SegmentManager, batches: Vec<u64>) {
        let Some(upcalls) = self.upcalls.as_ref().filter(|_| !batches.is_empty()) else { return };
        let _one = upcalls.completing.lock().await;
        if !segments.mount.omits(OmittedRule::UpcallReads) {
            segments.mount.reads.ended().await;
        }
        // All at once, so that the device makes them durable together.
        let complete =
            |id| segments.mount.env.device.submit(Bio::new(Op::CompleteUpcall(id), Lba(0), 0));
        let replies: Vec<_> = batches.into_iter().map(complete).collect();
        // The device would say that it has completed one already: a batch is completed once.
        for _ in in_turn(replies).await.into_iter().filter(Result::is_ok) {
            self.count(|counts| counts.upcalls_completed += 1);
            segments.give_back(upcalls.note_completed());
        }
    }

    /// Sections lost their slots with a checkpoint that is durable. Those that the device writes are its business.
    pub(super) fn note_retired(&self, segments: &SegmentManager) {
        if self.is_mounting.get() {
            return;
        }
        let retired = segments.borrow_mut().take_retired();
        let is_own = |section: &SpaceSection| {
            let segments = segments.borrow();
            segments.space().is_some_and(|space| space.is_device_owned(section.region))
        };
        let (of_device, of_host): (Vec<_>, Vec<_>) = retired.into_iter().partition(is_own);
        segments.give_back(of_device);
        match &self.upcalls {
            Some(upcalls) => upcalls.retire(of_host),
            None => segments.give_back(of_host),
        }
    }
}

/// A sector of the device as a block; a volume has none above 32 bits.
fn address(lba: Lba) -> Result<BlockAddr> {
    let of_upcall = |_| FsError::corrupt("address of an upcall", lba.to_string());
    u32::try_from(lba.0).map(BlockAddr).map_err(of_upcall)
}
