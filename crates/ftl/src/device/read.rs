//! Reads: from the buffer where the table says so, else from media, with the out-of-band key of every sector
//! compared with the address asked for. Units of one instance that follow each other on a page of media are read
//! together, as a bio's units go to the instances in turn (NVMeVirt `conv_read`).

use super::DeviceFtl;
use super::flash::Flash;
use super::region::{Piece, RegionMap};
use crate::common::firmware::Walk;
use crate::common::l2p::MapEntry;
use crate::common::reads::{self, Found};
use crate::error::FtlError;
use nandscape_block::{Bio, BlockError, Done, Flags, Lba, Payload, SectorData, Tag};
use nandscape_media::{Cause, DataOut, Internal, OpenChannel, Ppa, Status};
use nandscape_rt::Nanos;

/// A read in progress.
struct Reading {
    walk: Walk,
    /// What the controller takes for a read of this size.
    latency: Nanos,
    /// When units may begin.
    ready: Nanos,
    end: Nanos,
    /// Sectors in the buffer.
    hits: u32,
    /// Sectors that hold nothing.
    unwritten: u32,
    /// Sectors in a row on one page of media.
    run: Option<(Ppa, u32)>,
    error: Option<BlockError>,
}

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Serves a read; its outcome is known at once.
    #[inline]
    pub(super) fn read(&mut self, bio: &Bio) -> Done {
        let wants_data = self.flash.rules.run.keep_content && !bio.flags.has(Flags::NO_DATA);
        self.flash.counts.host.read += u64::from(bio.sectors);
        let found = self.flash.read_sectors(bio.lba, bio.sectors);
        reads::done(self.flash.now, found, || wants_data.then(|| self.contents(bio)))
    }

    fn contents(&self, bio: &Bio) -> Payload {
        let content = |index| {
            let lba = bio.lba.plus(u64::from(index));
            match self.flash.map.get(Lba(self.flash.map.unit_of(lba))) {
                MapEntry::Unmapped => SectorData::Tag(Tag::ZERO),
                MapEntry::Buffered(slot) => {
                    self.buffer.data(slot + self.flash.map.index_of(lba)).clone()
                }
                MapEntry::Flash(at) => self.flash.media.data(at.plus(self.flash.map.index_of(lba))),
            }
        };
        Payload::collect((0..bio.sectors).map(content).collect())
    }
}

impl<M: OpenChannel, P: RegionMap> Flash<M, P> {
    /// Reserves the time of a read, instance by instance, and checks every sector: when the last arrives, and
    /// the first error.
    fn read_sectors(&mut self, lba: Lba, sectors: u32) -> Found {
        let end = lba.plus(u64::from(sectors));
        let (first, last) = (self.map.unit_of(lba), self.map.unit_of(Lba(end.0 - 1)));
        let instances = u64::from(self.rules.config.instances);
        let begins = self.begins();
        let ready = self.link.read_ready(begins, sectors);
        let mut reading = Reading {
            walk: Walk::default(),
            latency: ready - begins,
            ready,
            end: ready,
            hits: 0,
            unwritten: 0,
            run: None,
            error: None,
        };
        for start in (first..=last).take(instances as usize) {
            for unit in (start..=last).step_by(instances as usize) {
                let from = self.map.first_of(unit).0.max(lba.0);
                let piece = self.map.piece(Lba(from), end.0 - from);
                self.read_piece(&mut reading, piece)?;
            }
            self.read_run(&mut reading)?;
        }
        // What media do not hold crosses the link like everything else.
        let elsewhere = reading.hits + reading.unwritten;
        if elsewhere > 0 {
            self.counts.host.buffer_hits += u64::from(reading.hits);
            self.counts.host.unwritten += u64::from(reading.unwritten);
            let crossing = self.link.data_out(elsewhere).piece(self.now, reading.ready, elsewhere);
            reading.end = reading.end.max(crossing.end);
        }
        Ok((reading.end.max(reading.ready), reading.error))
    }

    /// Joins a piece to the run before it, if it follows it on the same page, and checks it.
    #[inline]
    fn read_piece(&mut self, reading: &mut Reading, piece: Piece) -> Result<(), FtlError> {
        let found = self.map.look_up(Lba(piece.unit), &mut reading.walk);
        let looked_up = self.access(&mut reading.walk);
        reading.ready = reading.ready.max(looked_up + reading.latency);
        let at = match found {
            MapEntry::Unmapped => {
                reading.unwritten += piece.sectors;
                return Ok(());
            }
            MapEntry::Buffered(_) => {
                reading.hits += piece.sectors;
                return Ok(());
            }
            MapEntry::Flash(at) => at.plus(piece.first),
        };
        let lba = self.map.first_of(piece.unit).plus(u64::from(piece.first));
        for index in 0..piece.sectors {
            self.verify_sector(reading, lba.plus(u64::from(index)), at.plus(index));
        }
        let new_page =
            self.rules.layout.format.sector_of(at).is_multiple_of(self.rules.geometry.ws_opt);
        match &mut reading.run {
            Some((first, sectors)) if at == first.plus(*sectors) && !new_page => {
                *sectors += piece.sectors;
            }
            _ => {
                self.read_run(reading)?;
                reading.run = Some((at, piece.sectors));
            }
        }
        Ok(())
    }

    fn verify_sector(&mut self, reading: &mut Reading, lba: Lba, at: Ppa) {
        if !self.media.readable(at) {
            self.counts.media_errors.uncorrectable += 1;
            reading.error.get_or_insert(BlockError::Io { lba, what: "uncorrectable sector" });
        } else if u64::from(self.media.oob(at).key) != lba.0 {
            self.counts.media_errors.mismatches += 1;
            let error = BlockError::Corrupt { kind: "out-of-band address", lba };
            reading.error.get_or_insert(error);
        } else if self.media.is_dropped(at) {
            reading.error.get_or_insert(self.met_dropped(lba));
        }
    }

    /// The table points at a sector whose content media dropped.
    #[cold]
    fn met_dropped(&mut self, lba: Lba) -> BlockError {
        self.counts.media_errors.mismatches += 1;
        BlockError::Corrupt { kind: "content that media dropped", lba }
    }

    #[inline]
    fn read_run(&mut self, reading: &mut Reading) -> Result<(), FtlError> {
        if let Some((at, sectors)) = reading.run.take() {
            self.media.set_cause(Cause { user: sectors as u8, ..Cause::default() });
            let out = &mut self.link.data_out(sectors);
            let read = self.media.read(self.now, reading.ready, at, sectors, out)?;
            reading.end = reading.end.max(read.at);
        }
        Ok(())
    }

    /// Reads what a piece leaves of its unit; when it is there, or the error of a sector that is lost.
    pub(super) fn read_rest(
        &mut self,
        piece: Piece,
        before: MapEntry,
    ) -> Result<Result<Nanos, BlockError>, FtlError> {
        self.counts.own.rmw += 1;
        let MapEntry::Flash(at) = before else { return Ok(Ok(self.now)) };
        let unit = self.map.unit_sectors();
        self.media.set_cause(Cause { user: unit as u8, ..Cause::default() });
        let read = self.media.read(self.now, self.now, at, unit, &mut Internal)?;
        let kept = |index: &u32| !(piece.first..piece.first + piece.sectors).contains(index);
        let lost = (0..unit).filter(kept).find(|&index| !self.media.readable(at.plus(index)));
        Ok(match lost {
            Some(index) if read.status != Status::Ok => {
                self.counts.media_errors.uncorrectable += 1;
                let lba = self.map.first_of(piece.unit).plus(u64::from(index));
                Err(BlockError::Io { lba, what: "uncorrectable sector of the same mapping unit" })
            }
            _ => Ok(read.at),
        })
    }
}
