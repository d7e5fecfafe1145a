//! Erases of chunks that hold nothing any more. A chunk is in its pool when its erase has completed, so nothing is
//! written over content that a power cut could still leave.

use super::{Event, ZonedFtl};
use crate::error::FtlError;
use nandscape_media::{ChunkId, ChunkState, OpenChannel, Status, UnitId};

/// What waits for an erase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum After {
    /// Nothing.
    Free,
    /// The reset of a zone.
    Reset(u32),
    /// A zone, whose chunk it was before a program failed.
    Retired(u32),
    /// The next erase of the unit's save log.
    Log,
}

impl<M: OpenChannel> ZonedFtl<M> {
    /// Erases a chunk.
    pub(super) fn erase(&mut self, unit: u32, chunk: u32, after: After) -> Result<(), FtlError> {
        let id = ChunkId { unit: UnitId(unit), chunk };
        let state = self.front.media().chunk(id).state;
        self.units[unit as usize].erasing += 1;
        if !matches!(state, ChunkState::Open | ChunkState::Closed) {
            return self.erased(unit, chunk, state == ChunkState::Free, after);
        }
        let outcome = self.front.media_mut().reset(self.now, self.now, id)?;
        self.counts.erases += 1;
        let ok = outcome.status == Status::Ok;
        self.counts.media_errors.erase_failures += u64::from(!ok);
        self.after(outcome.at, Event::Erased { unit, chunk, ok, after })
    }

    /// An erase completed.
    pub(super) fn erased(
        &mut self,
        unit: u32,
        chunk: u32,
        ok: bool,
        after: After,
    ) -> Result<(), FtlError> {
        let pool = &mut self.units[unit as usize];
        pool.erasing -= 1;
        if ok {
            pool.free.push_back(chunk);
        }
        match after {
            After::Free => Ok(()),
            After::Reset(zone) => {
                self.zones.get_mut(zone).resetting -= 1;
                Ok(())
            }
            After::Retired(zone) => {
                self.zones.get_mut(zone).in_flight -= 1;
                Ok(())
            }
            After::Log => {
                self.units[unit as usize].log.erasing = false;
                self.erase_old(unit)
            }
        }
    }
}
