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

use super::migrate::{Batch, Migration};
use crate::contract::{FsError, Result};
use crate::f2fs::append::{AppendSpace, Forced, Upcalls};
use crate::f2fs::checkpoints::Reason;
use crate::f2fs::cpu::Work;
use crate::f2fs::format::{BlockAddr, SpaceSection};
use crate::f2fs::rules::OmittedRule;
use crate::f2fs::volume::Volume;
use nandscape_block::{Bio, BlockError, Lba, Op, Reply, UpcallSignal};
use nandscape_rt::BoxFuture;
use nandscape_rt::combine::{Either, join_all, select2};
use std::rc::Rc;

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

impl Volume {
    /// The upcalls, if the device moves blocks.
    pub(in crate::f2fs) fn upcalls(&self) -> Option<&Upcalls> {
        self.segments.append.as_ref()?.upcalls.as_ref()
    }

    /// Fetches and applies what the device reports, until the volume is unmounted.
    pub(in crate::f2fs) async fn handle_upcalls(self: &Rc<Self>) {
        let Some(upcalls) = self.upcalls() else { return };
        let mut interrupt = None;
        loop {
            self.wait_for_upcall(upcalls, &mut interrupt).await;
            if self.mount.env.calls.check_open().is_err() || self.mount.stopped.get() {
                return;
            }
            // An error stops the volume, which every call then says.
            if self.fetch_upcalls().await.is_err() {
                return;
            }
        }
    }

    /// Waits until the device may have something, in the way in which it says so.
    async fn wait_for_upcall(
        &self,
        upcalls: &Upcalls,
        interrupt: &mut Option<BoxFuture<'static, std::result::Result<Reply, BlockError>>>,
    ) {
        let poked = upcalls.poke.notified();
        match upcalls.signal {
            UpcallSignal::Piggyback => {
                _ = select2(self.mount.env.device.attention(), poked).await;
            }
            UpcallSignal::Poll(period) => _ = select2(self.mount.env.rt.sleep(period), poked).await,
            UpcallSignal::Interrupt => {
                let wait = || self.mount.env.device.submit(Bio::new(Op::AwaitUpcall, Lba(0), 0));
                let answer = interrupt.get_or_insert_with(|| Box::pin(wait()));
                if let Either::First(_) = select2(answer.as_mut(), poked).await {
                    *interrupt = None;
                    self.mount.pay(Work::Upcall).await;
                }
            }
        }
    }

    /// Fetches what there is, and applies it.
    ///
    /// # Errors
    /// Those of the device and of metadata; the volume is stopped then.
    pub(in crate::f2fs) async fn fetch_upcalls(self: &Rc<Self>) -> Result<()> {
        let Some(append) = &self.segments.append else { return Ok(()) };
        let Some(upcalls) = &append.upcalls else { return Ok(()) };
        let _one = upcalls.processing.lock().await;
        let mut was_asked = false;
        loop {
            let discarded = upcalls.discarded();
            let (batches, left) = self.fetch_batches(upcalls).await?;
            was_asked &= batches.is_empty();
            self.take_batches(append, upcalls, batches).await?;
            match left {
                Left::Some => {}
                // A device that asks again could not complete what it was sent.
                Left::Asked if was_asked || upcalls.outstanding() == 0 => return Ok(()),
                Left::Asked => {
                    was_asked = true;
                    append.note_forced(Forced::Upcalls);
                    self.write_checkpoint(Reason::Space).await?;
                    self.complete_covered(upcalls).await?;
                }
                Left::None => {
                    self.segments.give_back(upcalls.note_none_left(discarded));
                    return Ok(());
                }
            }
        }
    }

    /// Applies batches in their order.
    async fn take_batches(
        self: &Rc<Self>,
        append: &AppendSpace,
        upcalls: &Upcalls,
        batches: Vec<Batch>,
    ) -> Result<()> {
        Migration { volume: self }
            .read_ahead(&batches)
            .await
            .map_err(|error| self.writes.stop(error))?;
        for (id, records) in batches {
            self.apply_until_done(&records).await.map_err(|error| self.writes.stop(error))?;
            upcalls.note_applied(id);
            if self.mount.omits(OmittedRule::UpcallCheckpoint) {
                upcalls.cover();
                self.complete_upcalls(upcalls.take_covered()).await;
            }
            self.bound_upcalls(append, upcalls).await?;
        }
        Ok(())
    }

    /// Writes a checkpoint if as many batches as may wait for one, and has batches completed if twice as many are not.
    async fn bound_upcalls(self: &Rc<Self>, append: &AppendSpace, upcalls: &Upcalls) -> Result<()> {
        let room = append.capacity / (BLOCKS_PER_RECORD * u64::from(RECORDS));
        let most = u64::from(self.mount.options.upcalls_waiting).min(room.max(1));
        if upcalls.applied() as u64 >= most {
            append.note_forced(Forced::Upcalls);
            self.write_checkpoint(Reason::Space).await?;
        }
        if upcalls.outstanding() >= 2 * most {
            self.complete_covered(upcalls).await?;
        }
        Ok(())
    }

    /// Waits until batches that a durable checkpoint has are completed.
    async fn complete_covered(&self, upcalls: &Upcalls) -> Result<()> {
        self.drain_discards().await?;
        // Those that the last round of discards took along are before it.
        self.complete_upcalls(upcalls.take_covered()).await;
        drop(upcalls.completing.lock().await);
        Ok(())
    }

    /// Fetches batches that are applied one after the other; what the device has beside them.
    pub(super) async fn fetch_batches(&self, upcalls: &Upcalls) -> Result<(Vec<Batch>, Left)> {
        let mut batches = Vec::new();
        while batches.len() < TOGETHER {
            let fetch = Bio::new(Op::FetchUpcall, Lba(0), RECORDS);
            let reply = self.mount.env.device.submit(fetch).await?;
            self.mount.pay(Work::Upcall).await;
            let Reply::Upcall(id, records) = reply else {
                return Ok((batches, Left::None));
            };
            if records.is_empty() {
                return Ok((batches, Left::Asked));
            }
            upcalls.note_fetched();
            self.segments
                .append
                .iter()
                .for_each(|append| append.count(|counts| counts.upcalls_fetched += 1));
            // No address of such a volume has more than 32 bits.
            let address = |lba: Lba| BlockAddr(u32::try_from(lba.0).unwrap_or_default());
            let records = records.into_iter().map(|(old, new)| (address(old), address(new)));
            batches.push((id, records.collect()));
        }
        Ok((batches, Left::Some))
    }

    /// Applies a batch; checkpoints make slots free, if it finds none.
    async fn apply_until_done(self: &Rc<Self>, records: &[(BlockAddr, BlockAddr)]) -> Result<()> {
        let mut ended = Migration { volume: self }.apply_batch(records).await;
        for _ in 1..TRIES {
            if ended != Err(FsError::NoSpace) {
                break;
            }
            self.segments.append.iter().for_each(|append| append.note_forced(Forced::Slots));
            self.write_checkpoint(Reason::Space).await?;
            // What was applied the first time is found so.
            ended = Migration { volume: self }.apply_batch(records).await;
        }
        ended
    }

    /// Completes batches, in their order, once no read is on its way that began before.
    pub(super) async fn complete_upcalls(&self, batches: Vec<u64>) {
        let Some(upcalls) = self.upcalls().filter(|_| !batches.is_empty()) else { return };
        let _one = upcalls.completing.lock().await;
        if !self.mount.omits(OmittedRule::UpcallReads) {
            upcalls.reads_ended().await;
        }
        // All at once, so that the device makes them durable together.
        let complete =
            |id| self.mount.env.device.submit(Bio::new(Op::CompleteUpcall(id), Lba(0), 0));
        let replies: Vec<_> = batches.into_iter().map(complete).collect();
        // The device would say that it has completed one already: a batch is completed once.
        for _ in join_all(replies).await.into_iter().filter(Result::is_ok) {
            self.segments
                .append
                .iter()
                .for_each(|append| append.count(|counts| counts.upcalls_completed += 1));
            self.segments.give_back(upcalls.note_completed());
        }
    }

    /// Sections lost their slots with a checkpoint that is durable. Those that the device writes are its business.
    pub(super) fn note_retired(&self) {
        let Some(append) = self.segments.append.as_ref().filter(|append| !append.is_mounting.get())
        else {
            return;
        };
        let retired = self.segments.borrow_mut().take_retired();
        let is_own = |section: &SpaceSection| {
            let segments = self.segments.borrow();
            segments.space().is_some_and(|space| space.is_device_owned(section.region))
        };
        let (of_device, of_host): (Vec<_>, Vec<_>) = retired.into_iter().partition(is_own);
        self.segments.give_back(of_device);
        match &append.upcalls {
            Some(upcalls) => upcalls.retire(of_host),
            None => self.segments.give_back(of_host),
        }
    }
}
