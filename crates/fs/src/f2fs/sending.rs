//! Writes on their way to the device. Where sections are zones or superblocks, those of a log are submitted in the order in
//! which its blocks were allocated; one that comes before its turn waits.
//!
//! Invariant: no write goes across the end of a zone.

use super::format::{BLOCKS_PER_SEGMENT, BlockAddr};
use super::inode::Inode;
use super::mount_info::MountInfo;
use super::parking::{Answer, Parked, Parking};
use super::rules::OmittedRule;
use super::segment_manager::SegmentManager;
use crate::contract::{FsError, Result};
use crate::vfs::InFlight;
use nandscape_block::{Bio, BlockError, Flags, Fua, Lba, Owner, Payload, SectorData};
use nandscape_rt::sync::{OneshotReceiver, oneshot};
use nandscape_rt::{BoxFuture, invariant};
use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

/// What was placed, as the number that its write has among those in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlacedPages {
    /// Nothing that is written.
    Nothing,
    /// Pages that were written to.
    Changed(u64),
    /// Pages that cleaning moves: what they hold may be durable already, so every checkpoint waits for them
    /// (`WB_DATA_TYPE`).
    Moved(u64),
}

/// Writes of a mounted volume.
pub(crate) struct Writes {
    mount: Rc<MountInfo>,
    /// Blocks of a zone, if sections are zones.
    zone_blocks: Option<u32>,
    /// Writes before their turn, where logs are written in order.
    pub(crate) parking: Option<Parking>,
    /// Writes of file data in flight.
    pub(crate) data_in_flight: InFlight,
    /// Writes of nodes, directory blocks and metadata in flight, which every checkpoint waits for.
    pub(crate) metadata_in_flight: InFlight,
    /// Blocks of data written over where they lay, since mount.
    pub(crate) in_place_blocks: Cell<u64>,
}

impl Writes {
    pub(crate) fn new(mount: Rc<MountInfo>, zone_blocks: Option<u32>, is_ordered: bool) -> Self {
        let rt = &mount.env.rt;
        Self {
            zone_blocks,
            parking: is_ordered.then(Parking::default),
            data_in_flight: InFlight::new(rt, "file data"),
            metadata_in_flight: InFlight::new(rt, "nodes and metadata"),
            in_place_blocks: Cell::new(0),
            mount,
        }
    }

    /// Submits a write of blocks of one section, now or when those before them in their log were submitted.
    pub(crate) fn send(
        &self,
        segments: &SegmentManager,
        bio: Bio,
    ) -> impl Future<Output = Answer> + use<> {
        invariant!(
            self.is_in_one_zone(&bio),
            "a write of {} blocks from {} on ends in its zone",
            bio.sectors,
            bio.lba
        );
        let sent = match self.park(segments, bio) {
            Ok(waits) => Err(waits),
            Err(bio) => {
                let answer = self.mount.env.device.submit(bio);
                self.send_parked(segments);
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

    fn is_in_one_zone(&self, bio: &Bio) -> bool {
        let (first, last) = (bio.lba.0, bio.lba.0 + u64::from(bio.sectors.max(1)) - 1);
        self.zone_blocks.is_none_or(|blocks| first / u64::from(blocks) == last / u64::from(blocks))
    }

    /// Keeps a write until its turn; one whose turn it is comes back.
    fn park(
        &self,
        segments: &SegmentManager,
        bio: Bio,
    ) -> std::result::Result<OneshotReceiver<BoxFuture<'static, Answer>>, Bio> {
        let at = BlockAddr(bio.lba.0 as u32);
        let parking = self.parking.as_ref().filter(|_| self.mount.layout.is_main(at));
        let Some(parking) = parking else { return Err(bio) };
        let is_turn = segments.borrow_mut().take_turn(at, bio.sectors);
        if is_turn || self.mount.stopped.get() || self.mount.omits(OmittedRule::ZoneOrder) {
            return Err(bio);
        }
        let (answer, waits) = oneshot(&self.mount.env.rt, "turn of a write to a zone");
        parking.parked.borrow_mut().insert(at, Parked { bio, answer });
        parking.waits.set(parking.waits.get() + 1);
        Ok(waits)
    }

    /// Submits what waited for what was submitted now.
    fn send_parked(&self, segments: &SegmentManager) {
        let waits = |parking: &&Parking| !parking.parked.borrow().is_empty();
        let Some(parking) = self.parking.as_ref().filter(waits) else { return };
        let next = || {
            let mut parked = parking.parked.borrow_mut();
            segments.borrow().turns().find_map(|at| Some((at, parked.remove(&at)?)))
        };
        while let Some((at, Parked { bio, answer })) = next() {
            segments.borrow_mut().take_turn(at, bio.sectors);
            drop(answer.send(Box::pin(self.mount.env.device.submit(bio))));
        }
    }

    /// Whether a zone or superblock begins with a block, so that no write goes across.
    pub(super) fn begins_section(&self, segments: &SegmentManager, at: BlockAddr) -> bool {
        if let Some(blocks) = self.zone_blocks {
            return at.0.is_multiple_of(blocks);
        }
        if self.parking.is_none() || !at.0.is_multiple_of(BLOCKS_PER_SEGMENT) {
            return false;
        }
        let segments = segments.borrow();
        let section = segments.section_at(at);
        section.and_then(|section| segments.section_start(section)) == Some(at)
    }

    /// Submits blocks, those that lie after each other together; `first` are flags of the first bio. All belong to
    /// `owner`, if to a file. The caller holds an [`Op`](super::operations::Op) or is a checkpoint.
    pub(crate) fn write_blocks(
        &self,
        segments: &SegmentManager,
        blocks: Vec<(BlockAddr, SectorData)>,
        owner: Option<Owner>,
        (flags, first): (Flags, Flags),
    ) -> impl Future<Output = Result<()>> + use<> {
        let device = &self.mount.env.device;
        let most = match device.caps().max_sectors {
            0 => usize::MAX,
            most => most as usize,
        };
        let mut replies = Vec::new();
        let mut extra = first;
        let mut rest = &blocks[..];
        while let Some((start, _)) = rest.first() {
            let follows = |(index, (at, _)): (u32, &(BlockAddr, SectorData))| {
                at.0 == start.0 + index && (index == 0 || !self.begins_section(segments, *at))
            };
            let count = (0..).zip(rest).take(most).take_while(|one| follows(*one)).count();
            let (some, after) = rest.split_at(count);
            let content: Vec<_> = some.iter().map(|(_, content)| content.clone()).collect();
            let mut bio = Bio::write(Lba(start.0.into()), count as u32, Payload::of(&content));
            bio = bio.with(flags | extra);
            bio.owner = owner;
            bio.placement = segments.placement_at(*start);
            replies.push(self.send(segments, bio));
            (extra, rest) = (Flags::NONE, after);
        }
        async move {
            let mut result = Ok(());
            for reply in replies {
                result = result.and(reply.await.map(drop));
            }
            Ok(result?)
        }
    }

    /// Writes blocks that vouch for what was written before them: that is durable first (`preflush`), and they are when this
    /// returns (`durable`).
    pub(super) async fn write_after_flush(
        &self,
        segments: &SegmentManager,
        blocks: Vec<(BlockAddr, SectorData)>,
        preflush: bool,
        durable: bool,
    ) -> Result<()> {
        let honours = self.mount.env.device.caps().fua == Fua::Honoured;
        let fua = if durable && honours { Flags::FUA } else { Flags::NONE };
        let first = if preflush { Flags::PREFLUSH } else { Flags::NONE };
        self.write_blocks(segments, blocks, None, (Flags::META | Flags::SYNC | fua, first)).await?;
        if durable && !honours {
            self.mount.env.device.flush().await?;
        }
        Ok(())
    }

    /// A write of file data has ended; noted again, it changes nothing.
    pub(crate) fn note_arrival(&self, placed: PlacedPages) {
        match placed {
            PlacedPages::Nothing => {}
            PlacedPages::Changed(id) => self.data_in_flight.arrive(id),
            PlacedPages::Moved(id) => self.metadata_in_flight.arrive(id),
        }
    }

    /// Blocks of a file are written over where they lie (`f2fs_inplace_write_data`). Returns the number of the write.
    pub(super) fn note_in_place(&self, inode: &Inode, count: u64) -> u64 {
        inode.note_updated();
        self.in_place_blocks.set(self.in_place_blocks.get() + count);
        self.data_in_flight.send()
    }

    /// Stops all writes of metadata after an error (`f2fs_stop_checkpoint`), which it passes on.
    pub(crate) fn stop(&self, error: FsError) -> FsError {
        self.mount.note_fault(&error);
        if let Some(parking) = &self.parking {
            parking.abandon();
        }
        error
    }
}
