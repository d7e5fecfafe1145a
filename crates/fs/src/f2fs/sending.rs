//! Writes on their way to the device. Where sections are zones or superblocks, those of a log are submitted in the order in
//! which its blocks were allocated; one that comes before its turn waits.

use super::format::{BLOCKS_PER_SEGMENT, BlockAddr};
use super::parking::{Answer, Parked, Parking};
use super::rules::OmittedRule;
use super::volume::Volume;
use nandscape_block::{Bio, BlockError};
use nandscape_rt::BoxFuture;
use nandscape_rt::sync::{OneshotReceiver, oneshot};
use std::future::Future;

impl Volume {
    /// Submits a write of blocks of one section, now or when those before them in their log were submitted.
    pub(crate) fn send(&self, bio: Bio) -> impl Future<Output = Answer> + use<> {
        let sent = match self.park(bio) {
            Ok(waits) => Err(waits),
            Err(bio) => {
                let answer = self.mount.env.device.submit(bio);
                self.send_parked();
                Ok(answer)
            }
        };
        async move {
            match sent {
                Ok(answer) => answer.await,
                Err(waits) => match waits.await {
                    Ok(answer) => answer.await,
                    Err(_) => {
                        Err(BlockError::ReadOnly("the volume was stopped by an error".into()))
                    }
                },
            }
        }
    }

    /// Keeps a write until its turn; one whose turn it is comes back.
    fn park(
        &self,
        bio: Bio,
    ) -> std::result::Result<OneshotReceiver<BoxFuture<'static, Answer>>, Bio> {
        let at = BlockAddr(bio.lba.0 as u32);
        let parking = self.parking.as_ref().filter(|_| self.mount.layout.is_main(at));
        let Some(parking) = parking else { return Err(bio) };
        let is_turn = self.segments.borrow_mut().take_turn(at, bio.sectors);
        if is_turn || self.mount.stopped.get() || self.mount.omits(OmittedRule::ZoneOrder) {
            return Err(bio);
        }
        let (answer, waits) = oneshot(&self.mount.env.rt, "turn of a write to a zone");
        parking.parked.borrow_mut().insert(at, Parked { bio, answer });
        parking.waits.set(parking.waits.get() + 1);
        Ok(waits)
    }

    /// Submits what waited for what was submitted now.
    fn send_parked(&self) {
        let waits = |parking: &&Parking| !parking.parked.borrow().is_empty();
        let Some(parking) = self.parking.as_ref().filter(waits) else { return };
        let next = || {
            let mut parked = parking.parked.borrow_mut();
            self.segments.borrow().turns().find_map(|at| Some((at, parked.remove(&at)?)))
        };
        while let Some((at, Parked { bio, answer })) = next() {
            self.segments.borrow_mut().take_turn(at, bio.sectors);
            drop(answer.send(Box::pin(self.mount.env.device.submit(bio))));
        }
    }

    /// Whether a zone or superblock begins with a block, so that no write goes across.
    pub(super) fn begins_section(&self, at: BlockAddr) -> bool {
        if let Some(zones) = &self.zones {
            return at.0.is_multiple_of(zones.geometry.blocks);
        }
        if self.parking.is_none() || !at.0.is_multiple_of(BLOCKS_PER_SEGMENT) {
            return false;
        }
        let segments = self.segments.borrow();
        let section = segments.section_at(at);
        section.and_then(|section| segments.section_start(section)) == Some(at)
    }
}
