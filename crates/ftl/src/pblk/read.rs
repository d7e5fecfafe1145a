//! Reads: from the ring where the table says so, else from media, with the out-of-band key of every
//! sector compared with the address asked for (pblk-read.c).
//!
//! Sectors that hold nothing cost what NVMeVirt charges for them (`conv_read`): the controller's part of a
//! read, and the transfer. Linux's pblk fills them with zeroes on the host and sends no command. A device that
//! was never written would answer every read in no time, and a result would report that as its speed.

use super::counts::PblkCounts;
use super::flash::Flash;
use super::intake::Buffers;
use crate::common::l2p::MapEntry;
use crate::common::reads::Found;
use crate::error::FtlError;
use nandscape_block::{Bio, BlockError, Lba, Payload, SectorData, Tag};
use nandscape_media::{Cause, Internal, OpenChannel, Ppa, Status};
use nandscape_rt::Nanos;

/// Consecutive sectors of one chunk that are wanted in a row.
#[derive(Clone, Copy, Debug)]
struct Run {
    lba: Lba,
    at: Ppa,
    sectors: u32,
}

impl<M: OpenChannel> Flash<M> {
    /// Reserves the time and checks every sector. When the last arrives, and the first error.
    #[inline]
    pub(super) fn read_sectors(
        &mut self,
        stats: &mut PblkCounts,
        first: Lba,
        sectors: u32,
    ) -> Found {
        let mut end = self.now;
        let mut error = None;
        let (mut ring_hits, mut unwritten) = (0, 0);
        let mut run: Option<Run> = None;
        for index in 0..sectors {
            let lba = first.plus(u64::from(index));
            match self.l2p.get(lba) {
                MapEntry::Unmapped => unwritten += 1,
                MapEntry::Buffered(_) => ring_hits += 1,
                MapEntry::Flash(at) => {
                    let joined = run.filter(|run| self.continues(run, lba, at));
                    if joined.is_none()
                        && let Some(run) = run
                    {
                        self.read_run(run, &mut end, &mut error)?;
                    }
                    run = Some(joined.map_or(Run { lba, at, sectors: 1 }, |run| Run {
                        sectors: run.sectors + 1,
                        ..run
                    }));
                }
            }
        }
        if let Some(run) = run {
            self.read_run(run, &mut end, &mut error)?;
        }
        if ring_hits > 0 {
            stats.host.buffer_hits += u64::from(ring_hits);
            end = end.max(self.now + self.copy_out(ring_hits));
        }
        if unwritten > 0 {
            stats.host.unwritten += u64::from(unwritten);
            end = end.max(self.read_unwritten(unwritten));
        }
        Ok((end, error))
    }

    pub(super) fn contents(&self, buffers: &Buffers, bio: &Bio) -> Payload {
        let content = |index| self.content(buffers, bio.lba.plus(u64::from(index)));
        Payload::collect((0..bio.sectors).map(content).collect())
    }

    /// What a sector holds.
    pub(super) fn content(&self, buffers: &Buffers, lba: Lba) -> SectorData {
        match self.l2p.get(lba) {
            MapEntry::Unmapped => SectorData::Tag(Tag::ZERO),
            MapEntry::Buffered(slot) => buffers.ring_of(slot).slot_data(slot).clone(),
            MapEntry::Flash(at) => self.media.data(at),
        }
    }

    /// When sectors that hold nothing have arrived: never before the host could have copied as many out of a
    /// buffer, also where the link takes no time.
    #[inline]
    fn read_unwritten(&mut self, sectors: u32) -> Nanos {
        let copied = self.now + self.copy_out(sectors);
        self.media.link_mut().read_unwritten(self.now, sectors).max(copied)
    }

    /// Whether `at` follows the run, on media and in address, within one write unit.
    fn continues(&self, run: &Run, lba: Lba, at: Ppa) -> bool {
        at == run.at.plus(run.sectors)
            && lba == run.lba.plus(u64::from(run.sectors))
            && !self.layout.format.sector_of(at).is_multiple_of(self.geometry.ws_opt)
    }

    #[inline]
    fn read_run(
        &mut self,
        run: Run,
        end: &mut Nanos,
        error: &mut Option<BlockError>,
    ) -> Result<(), FtlError> {
        self.media.set_cause(Cause { user: run.sectors as u8, ..Cause::default() });
        let outcome = self.media.read(self.now, self.now, run.at, run.sectors, &mut Internal)?;
        *end = (*end).max(outcome.at);
        for i in 0..run.sectors {
            let (lba, at) = (run.lba.plus(u64::from(i)), run.at.plus(i));
            if outcome.status != Status::Ok && !self.media.readable(at) {
                self.counts.media_errors.uncorrectable += 1;
                error.get_or_insert(BlockError::Io { lba, what: "uncorrectable sector" });
            } else if !self.holds(at, lba) {
                self.counts.media_errors.mismatches += 1;
                error.get_or_insert(BlockError::Corrupt { kind: "out-of-band address", lba });
            } else if self.media.is_dropped(at) {
                error.get_or_insert(self.met_dropped(lba));
            }
        }
        Ok(())
    }

    /// The table points at a sector whose content media dropped.
    #[cold]
    fn met_dropped(&mut self, lba: Lba) -> BlockError {
        self.counts.media_errors.mismatches += 1;
        BlockError::Corrupt { kind: "content that media dropped", lba }
    }

    /// Whether the sector on media says that it is `lba`. Only data has such a key.
    #[inline]
    fn holds(&self, at: Ppa, lba: Lba) -> bool {
        u64::from(self.media.oob(at).key) == lba.0
    }
}
