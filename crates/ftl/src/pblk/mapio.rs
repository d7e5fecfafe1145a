//! Commands for mapping blocks: issued at once, or when the mapping thread of the host has built them; reads of
//! blocks, which what is read must agree with; the loads that are wanted, and the reads that wait for them.

use super::cpu::{CpuQueues, MapOrder, MapTask};
use super::flash::Flash;
use super::intake::Buffers;
use super::mapcache::{Access, Load};
use super::mapping::Mapping;
use super::mapread::{PendingRead, Reader};
use super::mapstore::Cause;
use super::supply::Supply;
use crate::error::FtlError;
use crate::pblk::events::EventKind;
use nandscape_block::{Completion, Done, SectorData};
use nandscape_media::{Internal, Kind, OpenChannel, Ppa};
use nandscape_rt::Nanos;
use smallvec::SmallVec;

/// What mapping blocks are read and written with.
pub(super) struct MapIo<'a, M> {
    pub(super) supply: Supply<'a, M>,
    pub(super) cpu: Option<&'a mut CpuQueues>,
}

/// What became of the load that was wanted first.
pub(super) enum Begun {
    /// None is wanted, or there is no slot for it.
    Nothing,
    /// It began, or what it waits for did.
    Moved,
    /// This block is there.
    Ready(u32),
}

impl Mapping {
    /// Begins the load that is wanted first, if there is a slot for it.
    pub(super) fn begin_load<M: OpenChannel>(
        &mut self,
        io: &mut MapIo<'_, M>,
    ) -> Result<Begun, FtlError> {
        let Some(&lba) = self.wants.front().filter(|_| !self.starved) else {
            return Ok(Begun::Nothing);
        };
        if self.owed >= self.wants.len() && !self.cache.has_free() {
            return Ok(Begun::Nothing);
        }
        let block = self.cache.block_of(lba);
        match self.cache.begin_load(lba, io.supply.flash.now) {
            Load::Ready => {
                self.want_served();
                return Ok(Begun::Ready(block));
            }
            Load::Read(_) => {
                self.want_served();
                self.order(io, MapTask::Load(block))?;
            }
            Load::Joined => self.want_served(),
            Load::WriteBack => {
                self.owed += 1;
                // Written with what the next loads evict, so that they share write units.
                while self.begin_write_back(io)? {}
            }
            Load::Busy => return Ok(Begun::Nothing),
            // Everything is pinned: asks again when something is unpinned.
            Load::NoSlot => {
                self.starved = true;
                return Ok(Begun::Nothing);
            }
        }
        Ok(Begun::Moved)
    }

    /// Has commands for mapping blocks issued, at once or when the mapping thread has built them.
    pub(super) fn order<M: OpenChannel>(
        &mut self,
        io: &mut MapIo<'_, M>,
        what: MapTask,
    ) -> Result<(), FtlError> {
        let Supply { flash, buffers, rules, .. } = &mut io.supply;
        let Some(cpu) = &mut io.cpu else { return self.issue(flash, buffers, what) };
        let (commands, sectors) = self.demand(flash.geometry.ws_opt, what);
        cpu.order(flash.now, MapOrder { what, commands, sectors });
        cpu.run(flash, buffers, rules);
        Ok(())
    }

    /// Commands for mapping blocks, and their sectors.
    fn demand(&self, ws_opt: u32, what: MapTask) -> (u32, u32) {
        match what {
            MapTask::Load(block) | MapTask::Merge(_, block) => self
                .pieces_of(block)
                .fold((0, 0), |(count, sum), (_, _, sectors)| (count + 1, sum + sectors)),
            MapTask::Copies => {
                let copies = &self.store.copies;
                (copies.len() as u32, copies.iter().map(|copy| copy.sectors).sum())
            }
            MapTask::Unit(_) => (1, ws_opt),
        }
    }

    /// Issues commands for mapping blocks.
    pub(super) fn issue<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        buffers: &Buffers,
        what: MapTask,
    ) -> Result<(), FtlError> {
        match what {
            MapTask::Load(block) => self.read_block(flash, buffers, block),
            MapTask::Merge(number, block) => {
                let end = self.read_pieces(flash, block)?;
                flash.events.push(end, EventKind::MapMerge(number));
                Ok(())
            }
            MapTask::Copies => self.read_copies(flash),
            MapTask::Unit(number) => self.program_unit(flash, number),
        }
    }

    /// Reads a mapping block, and compares it with the truth.
    fn read_block<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        buffers: &Buffers,
        block: u32,
    ) -> Result<(), FtlError> {
        let end = self.read_pieces(flash, block)?;
        self.verify_block(flash, buffers, block);
        flash.events.push(end, EventKind::MapLoad(block));
        Ok(())
    }

    /// Reserves the time for reading all pieces of a block. When the last arrives.
    fn read_pieces<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        block: u32,
    ) -> Result<Nanos, FtlError> {
        let pieces: SmallVec<[(Ppa, u32); 2]> =
            self.pieces_of(block).map(|(_, at, sectors)| (at, sectors)).collect();
        self.read_all(flash, pieces)
    }

    /// A block that media hold must be what the table says, since nothing can have changed it.
    fn verify_block<M: OpenChannel>(&self, flash: &mut Flash<M>, buffers: &Buffers, block: u32) {
        if !self.keeps_content || !self.is_settled(block) {
            return;
        }
        let shape = self.store.shape;
        let truth = self.digest(flash, buffers, block);
        let (mut wrong, mut lost) = (0, 0);
        let sectors = self.pieces_of(block).flat_map(|(piece, at, sectors)| {
            (0..sectors).map(move |i| (at.plus(i), shape.key(block, piece) + i))
        });
        for (at, key) in sectors {
            let oob = flash.media.oob(at);
            let holds = oob.kind == Kind::Map && oob.key == key;
            if !flash.media.readable(at) {
                lost += 1;
            } else if !holds || flash.media.data(at) != SectorData::Tag(truth) {
                wrong += 1;
            }
        }
        flash.counts.media_errors.mismatches += wrong;
        flash.counts.media_errors.uncorrectable += lost;
    }

    /// Reads pieces, given where they are and how many sectors each has. When the last arrives.
    fn read_all<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        pieces: impl IntoIterator<Item = (Ppa, u32)>,
    ) -> Result<Nanos, FtlError> {
        let mut end = flash.now;
        for (at, sectors) in pieces {
            end = end.max(self.read_piece(flash, at, sectors)?);
        }
        Ok(end)
    }

    /// Reads sectors of a piece: from media, or from RAM while media do not serve them.
    fn read_piece<M: OpenChannel>(
        &mut self,
        flash: &mut Flash<M>,
        at: Ppa,
        sectors: u32,
    ) -> Result<Nanos, FtlError> {
        self.counts.read_sectors += u64::from(sectors);
        if flash.is_served(at.plus(sectors - 1)) {
            Ok(flash.media.read(flash.now, flash.now, at, sectors, &mut Internal)?.at)
        } else {
            Ok(flash.now + flash.copy_out(sectors))
        }
    }

    /// Reads the pieces that were listed.
    fn read_copies<M: OpenChannel>(&mut self, flash: &mut Flash<M>) -> Result<(), FtlError> {
        let copies = std::mem::take(&mut self.store.copies);
        let arrived = self.read_all(
            flash,
            copies.iter().filter_map(|copy| match copy.cause {
                Cause::Copy(from) => Some((from, copy.sectors)),
                Cause::WriteBack(_) => None,
            }),
        )?;
        self.store.copies = copies;
        flash.events.push(arrived, EventKind::MapCopies);
        Ok(())
    }

    /// Serves sectors of a read until one's mapping is missing. Whether all are served.
    pub(super) fn continue_read<M: OpenChannel>(
        &mut self,
        reader: &mut Reader<'_, M>,
        read: &mut PendingRead,
    ) -> Result<bool, FtlError> {
        while read.next < read.bio.sectors {
            let access = Access::of(false, read.bio.flags);
            let range = read.next..read.bio.sectors;
            let now = reader.flash.now;
            let part = self.ready(read.bio.lba, range, &mut read.looked, (access, 0), now);
            if part == 0 {
                return Ok(false);
            }
            read.serve_part(reader, self.keeps_content, part)?;
        }
        Ok(true)
    }

    /// Serves all reads that wait, from a table that nothing changes any more.
    pub(super) fn serve_waiting<M: OpenChannel>(
        &mut self,
        mut reader: Reader<'_, M>,
        done: &mut Vec<Completion>,
    ) {
        for mut read in std::mem::take(&mut self.reads).all() {
            let rest = read.bio.sectors - read.next;
            let outcome = match read.serve_part(&mut reader, self.keeps_content, rest) {
                Ok(()) => read.done(),
                Err(error) => Done::new(reader.flash.now, Err(error.into())),
            };
            done.push(Completion { token: read.token, done: outcome });
        }
    }

    /// Has a read wait for the block of its next sector.
    pub(super) fn park(&mut self, read: PendingRead) {
        let block = self.cache.block_of(read.bio.lba.plus(u64::from(read.next)));
        self.reads.add(block, read);
    }

    /// Reads that wait for this block go on.
    pub(super) fn resume_reads<M: OpenChannel>(
        &mut self,
        mut reader: Reader<'_, M>,
        done: &mut Vec<Completion>,
        block: u32,
    ) -> Result<(), FtlError> {
        for mut read in self.reads.take(block) {
            if self.continue_read(&mut reader, &mut read)? {
                done.push(Completion { token: read.token, done: read.done() });
            } else {
                self.park(read);
            }
        }
        Ok(())
    }
}
