//! Where the cached map meets requests: reads, writes and copies that wait for a block go on when it has been read,
//! and a mount writes stale blocks before anything else moves.

use super::Pblk;
use super::mapio::{Begun, MapIo};
use super::mapping::Mapping;
use super::mapread::{PendingRead, Reader};
use crate::error::FtlError;
use nandscape_block::{Bio, BlockError, Done, Submit, Token};
use nandscape_media::{OpenChannel, Status};

impl<M: OpenChannel> Pblk<M> {
    /// The cached map, if there is one, and what its blocks are read and written with.
    #[inline]
    fn map_io(&mut self) -> Option<(&mut Mapping, MapIo<'_, M>)> {
        self.mapping.as_ref()?;
        let (supply, mapping, cpu) = self.split();
        mapping.map(|mapping| (mapping, MapIo { supply, cpu }))
    }

    /// Moves what can move of the map. Whether anything did.
    #[inline]
    pub(super) fn pump_map(&mut self) -> Result<bool, FtlError> {
        let Some(mapping) = &mut self.mapping else { return Ok(false) };
        mapping.look_ahead(&mut self.buffers, self.flash.now);
        let Some((mapping, mut io)) = self.map_io() else { return Ok(false) };
        let mut moved = mapping.collect(&mut io)?;
        moved |= mapping.write_blocks(&mut io)?;
        moved |= mapping.merge_ahead();
        moved |= self.start_loads()?;
        Ok(moved)
    }

    /// Begins the loads that are wanted, in order, as far as there are slots. Whether anything moved.
    pub(super) fn start_loads(&mut self) -> Result<bool, FtlError> {
        let mut moved = false;
        while let Some((mapping, mut io)) = self.map_io() {
            match mapping.begin_load(&mut io)? {
                Begun::Nothing => break,
                Begun::Moved => {}
                Begun::Ready(block) => self.serve_mapped(block)?,
            }
            moved = true;
        }
        Ok(moved)
    }

    /// A unit of mapping blocks is written, or has to go elsewhere.
    pub(super) fn map_unit_done(&mut self, number: u32, status: Status) {
        if let Some((mapping, mut io)) = self.map_io() {
            mapping.unit_done(&mut io.supply, number, status);
        }
    }

    /// Serves a read, which may have to wait for mappings.
    pub(super) fn read_mapped(&mut self, bio: Bio, token: Token) -> Submit {
        let Self { flash, buffers, stats, mapping: Some(mapping), .. } = self else {
            return Submit::Done(self.read(&bio));
        };
        if self.progress.stopped.is_some() {
            return Submit::Done(self.read(&bio));
        }
        stats.host.read += u64::from(bio.sectors);
        let mut read = PendingRead::new(bio, token, flash.now);
        match mapping.continue_read(&mut Reader { flash, buffers, stats }, &mut read) {
            Ok(true) => return Submit::Done(read.done()),
            Ok(false) => mapping.park(read),
            Err(error) => return Submit::Done(Done::new(flash.now, Err(error.into()))),
        }
        self.pump();
        Submit::Pending
    }

    /// A block has been read: what waits for it goes on.
    pub(super) fn map_loaded(&mut self, block: u32) {
        if let Some(mapping) = &mut self.mapping {
            mapping.cache.loaded(block, self.flash.now);
        }
        if let Err(error) = self.serve_mapped(block) {
            self.stop(error.into());
        }
    }

    /// What waits for this block goes on. Others would find nothing new.
    fn serve_mapped(&mut self, block: u32) -> Result<(), FtlError> {
        if let Some((mapping, mut io)) = self.map_io() {
            mapping.merge_block(&mut io.supply, block);
        }
        let Self { flash, buffers, stats, done, mapping: Some(mapping), .. } = self else {
            return Ok(());
        };
        mapping.resume_reads(Reader { flash, buffers, stats }, done, block)?;
        if self.collector.awaits.take_if(|awaited| *awaited == block).is_some() {
            self.insert_copies();
        }
        for id in 0..self.buffers.all.len() {
            let awaits = &mut self.buffers.all[id].awaits;
            if awaits.take_if(|awaited| *awaited == block).is_some() && self.admit_queued_at(id) {
                self.progress.drained = false;
            }
        }
        Ok(())
    }

    /// Writes stale blocks again, and waits until they are on media.
    pub(super) fn rewrite_blocks(&mut self, stale: Vec<u32>) -> Result<(), FtlError> {
        let Some(mapping) = &mut self.mapping else { return Ok(()) };
        mapping.mounting = true;
        for block in stale {
            if let Some(mapping) = self.mapping.as_mut().filter(|_| self.progress.stopped.is_none())
            {
                let number = mapping.store.add_job(block, 1, false);
                mapping.send_job(&self.flash, &self.buffers, number);
                self.run_map_events(false)?;
            }
        }
        if self.progress.stopped.is_none() {
            self.run_map_events(true)?;
        }
        if let Some(mapping) = &mut self.mapping {
            mapping.mounting = false;
        }
        Ok(())
    }

    /// Goes on until mapping blocks find room, or all are on media.
    fn run_map_events(&mut self, to_end: bool) -> Result<(), FtlError> {
        self.pump();
        while !self.is_rewritten(to_end) {
            if let Some(error) = self.progress.stopped.take() {
                return Err(error.into());
            }
            let Some(at) = self.next_at() else {
                self.stop(BlockError::ReadOnly("no room for mapping blocks".into()));
                return Ok(());
            };
            self.run_round(at);
        }
        self.progress.stopped.take().map_or(Ok(()), |error| Err(error.into()))
    }

    fn is_rewritten(&mut self, to_end: bool) -> bool {
        self.map_io().is_none_or(|(mapping, io)| {
            mapping.store.is_idle() || (!to_end && mapping.store.has_room(&io.supply))
        })
    }
}
