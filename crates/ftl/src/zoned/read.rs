//! Reads: from the page-mapped region, or from zones: what a zone has in its buffer from there, else from media, one
//! command for the sectors of a bio on a page. Sectors from the write pointer on are zeroes, and take no unit.

use super::oob::LOST;
use super::store::Store;
use super::zone::PageState;
use crate::common::reads::{self, Found};
use crate::error::FtlError;
use nandscape_block::{
    Bio, BlockError, Done, Flags, Lba, Payload, Reply, SectorData, Submit, Tag, Token,
};
use nandscape_media::{Cause, DataOut, Internal, OpenChannel, Ppa};
use nandscape_rt::Nanos;

/// A run of sectors of a zone: its number, the first sector and the end.
pub(crate) type Extent = (u32, u32, u32);

/// Where a sector of a zone is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// In a page of the buffer.
    Buffered(u32, u32),
    /// On media.
    Media(Ppa),
}

/// A read in progress.
pub(super) struct Reading {
    ready: Nanos,
    end: Nanos,
    hits: u32,
    pub(super) unwritten: u32,
    error: Option<BlockError>,
}

impl Reading {
    pub(super) const fn new(ready: Nanos) -> Self {
        Self { ready, end: ready, hits: 0, unwritten: 0, error: None }
    }
}

impl<M: OpenChannel> Store<M> {
    /// Serves a read; its outcome is known at once.
    pub(super) fn read(&mut self, bio: Bio, token: Token) -> Submit {
        if let Err(error) = self.table.check_read(bio.lba, bio.sectors) {
            return self.refused(error);
        }
        let random = self.rules.sizes.random_sectors;
        let end = bio.lba.0 + u64::from(bio.sectors);
        if end <= random {
            return self.submit_to_front(bio, token);
        }
        if bio.lba.0 >= random {
            return Submit::Done(self.read_zones(&bio));
        }
        let sectors = (random - bio.lba.0) as u32;
        let second = Bio { lba: Lba(random), sectors: bio.sectors - sectors, ..bio.clone() };
        match self.submit_to_front(Bio { sectors, ..bio }, token) {
            Submit::Done(first) => {
                let others = second.sectors;
                Submit::Done(joined((first, sectors), (self.read_zones(&second), others)))
            }
            pending @ Submit::Pending => pending,
        }
    }

    fn read_zones(&mut self, bio: &Bio) -> Done {
        let wants_data = self.rules.run.keep_content && !bio.flags.has(Flags::NO_DATA);
        self.counts.host.read += u64::from(bio.sectors);
        let found = self.read_sectors(bio.lba, bio.sectors);
        reads::done(self.now, found, || wants_data.then(|| self.contents(bio)))
    }

    /// Reserves the time of a read, and checks every sector: when the last arrives, and the first error.
    fn read_sectors(&mut self, lba: Lba, sectors: u32) -> Found {
        let ready = self.front.link().read_ready(self.begins(), sectors);
        let mut reading = Reading::new(ready);
        let (mut at, end) = (lba.0, lba.0 + u64::from(sectors));
        while at < end {
            let (zone, offset) = self.zones.shape.zone_of(Lba(at));
            let part = (end - at).min(self.rules.sizes.zone_sectors - offset);
            self.read_zone(&mut reading, zone, offset, offset + part)?;
            at += part;
        }
        Ok(self.arrive(reading))
    }

    /// Sends to the host what came from no media: when the last sector arrives, and the first error.
    pub(super) fn arrive(&mut self, mut reading: Reading) -> (Nanos, Option<BlockError>) {
        let elsewhere = reading.hits + reading.unwritten;
        if elsewhere > 0 {
            self.counts.host.buffer_hits += u64::from(reading.hits);
            self.counts.host.unwritten += u64::from(reading.unwritten);
            let (_, link) = self.front.parts();
            let crossing = link.data_out(elsewhere).piece(self.now, reading.ready, elsewhere);
            reading.end = reading.end.max(crossing.end);
        }
        (reading.end, reading.error)
    }

    /// Reads sectors of a zone, stream by stream.
    pub(super) fn read_zone(
        &mut self,
        reading: &mut Reading,
        zone: u32,
        from: u64,
        to: u64,
    ) -> Result<(), FtlError> {
        let written = to.min(self.zones.readable(zone)).max(from);
        reading.unwritten += (to - written) as u32;
        for stream in 0..self.zones.shape.streams {
            let mut local = self.zones.shape.locals_before(stream, from);
            let end = self.zones.shape.locals_before(stream, written);
            while local < end {
                let of_page = self.zones.shape.page - local % self.zones.shape.page;
                let sectors = of_page.min(end - local);
                match self.place(zone, stream, local) {
                    Place::Media(at) => {
                        self.verify(reading, (zone, stream, local), at, sectors);
                        self.read_run(reading, at, sectors)?;
                    }
                    Place::Buffered(id, first) => {
                        reading.hits += sectors;
                        self.verify_buffered(reading, (zone, stream, local), (id, first), sectors);
                    }
                }
                local += sectors;
            }
        }
        Ok(())
    }

    /// Where a sector of a stream that was admitted is, and with it what follows on its page.
    fn place(&self, zone: u32, stream: u32, local: u32) -> Place {
        let (index, sector) = (local / self.zones.shape.page, local % self.zones.shape.page);
        let pages = self.zones.stream(zone, stream);
        if index >= pages.first
            && let Some(&id) = pages.pages.get((index - pages.first) as usize)
        {
            match self.zones.pages.get(id).state {
                PageState::Filling | PageState::Stuck => return Place::Buffered(id, sector),
                PageState::InFlight if self.rules.sizes.buffer > 0 => {
                    return Place::Buffered(id, sector);
                }
                PageState::InFlight | PageState::Done => {}
            }
        }
        let (die, row) = self.zones.shape.die_of(stream, index);
        let chunk = self.zones.chunks(zone)[die as usize];
        Place::Media(self.zones.shape.at(self.zones.shape.unit(zone, die), chunk, row).plus(sector))
    }

    /// Checks that the buffer has what was asked for: a copy may have been made of what media had lost.
    #[inline]
    fn verify_buffered(
        &mut self,
        reading: &mut Reading,
        (zone, stream, local): (u32, u32, u32),
        (id, first): (u32, u32),
        sectors: u32,
    ) {
        let lost = self.zones.pages.get(id).lost >> first;
        if lost == 0 || lost.trailing_zeros() >= sectors {
            return;
        }
        self.counts.media_errors.uncorrectable += 1;
        let local = local + lost.trailing_zeros();
        let lba = self.zones.shape.start_of(zone).plus(self.zones.shape.offset(stream, local));
        reading.error.get_or_insert(BlockError::Io { lba, what: "uncorrectable sector" });
    }

    /// Checks that media have what was asked for.
    fn verify(
        &mut self,
        reading: &mut Reading,
        (zone, stream, local): (u32, u32, u32),
        at: Ppa,
        sectors: u32,
    ) {
        for index in 0..sectors {
            let lba = self
                .zones
                .shape
                .start_of(zone)
                .plus(self.zones.shape.offset(stream, local + index));
            let media = self.front.media();
            let at = at.plus(index);
            if !media.readable(at) || media.oob(at).aux == LOST {
                self.counts.media_errors.uncorrectable += 1;
                reading.error.get_or_insert(BlockError::Io { lba, what: "uncorrectable sector" });
            } else if u64::from(media.oob(at).key) != lba.0 {
                self.counts.media_errors.mismatches += 1;
                let error = BlockError::Corrupt { kind: "out-of-band address", lba };
                reading.error.get_or_insert(error);
            }
        }
    }

    fn read_run(&mut self, reading: &mut Reading, at: Ppa, sectors: u32) -> Result<(), FtlError> {
        let now = self.now;
        let (media, link) = self.front.parts();
        media.set_cause(Cause { user: sectors as u8, ..Cause::default() });
        let read = media.read(now, reading.ready, at, sectors, &mut link.data_out(sectors))?;
        reading.end = reading.end.max(read.at);
        Ok(())
    }

    /// Reads sectors of a zone into the firmware's memory; when the last is there.
    pub(crate) fn read_inside(&mut self, (zone, from, to): Extent) -> Result<Nanos, FtlError> {
        let (mut end, now) = (self.now, self.now);
        let mut local = from;
        while local < to {
            let sectors = (self.zones.shape.page - local % self.zones.shape.page).min(to - local);
            if let Place::Media(at) = self.place(zone, 0, local) {
                let media = self.front.media_mut();
                media.set_cause(Cause { user: 0, gc: sectors as u8, pad: 0 });
                let read = media.read(now, now, at, sectors, &mut Internal)?;
                self.counts.copy_ns += (read.at - media.begins()).0;
                end = end.max(read.at);
            }
            local += sectors;
        }
        Ok(end)
    }

    /// What a sector of a zone of one stream holds, and whether media have lost it.
    pub(crate) fn sector(&self, zone: u32, sector: u32) -> (SectorData, bool) {
        match self.place(zone, 0, sector) {
            Place::Buffered(id, index) => {
                let page = self.zones.pages.get(id);
                (page.data[index as usize].clone(), page.lost >> index & 1 == 1)
            }
            Place::Media(at) => {
                let media = self.front.media();
                (media.data(at), !media.readable(at) || media.oob(at).aux == LOST)
            }
        }
    }

    fn contents(&self, bio: &Bio) -> Payload {
        let content = |index| {
            let (zone, offset) = self.zones.shape.zone_of(bio.lba.plus(u64::from(index)));
            if offset >= self.zones.readable(zone) {
                return SectorData::Tag(Tag::ZERO);
            }
            let (stream, local) = self.zones.shape.split(offset);
            match self.place(zone, stream, local) {
                Place::Buffered(id, sector) => {
                    self.zones.pages.get(id).data[sector as usize].clone()
                }
                Place::Media(at) => self.front.media().data(at),
            }
        };
        Payload::collect((0..bio.sectors).map(content).collect())
    }
}

/// The end of a read that both parts of the device served, the first one so many sectors of it.
fn joined((first, sectors): (Done, u32), (second, others): (Done, u32)) -> Done {
    let at = first.at.max(second.at);
    let result = match (first.result, second.result) {
        (Err(error), _) | (_, Err(error)) => Err(error),
        (Ok(Reply::Data(first)), Ok(Reply::Data(second))) => {
            let data = (0..sectors).map(|index| first.sector(index));
            let data = data.chain((0..others).map(|index| second.sector(index)));
            Ok(Reply::Data(Payload::collect(data.collect())))
        }
        (Ok(_), Ok(_)) => Ok(Reply::None),
    };
    Done::new(at, result)
}
