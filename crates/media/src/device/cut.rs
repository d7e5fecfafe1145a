//! Power cuts: what of the commands under way the cells keep (DESIGN, "The crash model").
//!
//! What completed by the instant of the cut stays. Of a write that had begun, a prefix of whole write
//! units stays, and the unit after it may be there but unreadable. A write that had not begun leaves
//! nothing. An erase that had begun leaves the chunk undefined: its old content intact, erased, or
//! half-erased, which is written as far as before but unreadable. An erase that had not begun leaves
//! the old content, unless writes queued behind it replaced it here, when it counts as begun.

use super::Media;
use crate::command::{ChunkState, OpenChannel};
use crate::geometry::Geometry;
use crate::inflight::{Change, InFlight};
use crate::rules::Place;
use crate::store::Store;
use nandscape_rt::{Nanos, Stream};

impl<S: Store> Media<S> {
    /// Cuts power at `at`, no earlier than any command's submission, and turns it on again: armed
    /// faults and reservations are gone, and the chunk report tells what was left.
    pub fn power_cut(&mut self, at: Nanos, rng: &mut Stream) {
        for unit in 0..self.queues.len() {
            self.retire_completed(unit as u32, at);
            while let Some(command) = self.queues[unit].pop_last() {
                let place = Place { row: command.row, unit: unit as u32, sector: 0 };
                self.undo(at, place, &command, rng);
            }
        }
        (self.program_fault, self.erase_fault) = (false, false);
        self.schedule.reset_reservations();
    }

    /// Undoes a command that had not completed; those after it on its unit are undone already.
    fn undo(&mut self, at: Nanos, place: Place, command: &InFlight, rng: &mut Stream) {
        let begun = command.start < at;
        let row = *self.chunks.row(place.row);
        match command.change {
            Change::Write { sector, .. } if row.wp <= sector => {} // erased meanwhile
            Change::Write { sector, .. } if !begun => self.cut_back(place, sector),
            Change::Write { sector, sectors } => self.cut_write(place, sector, sectors, rng),
            Change::Erase { wp, state, erases } => {
                let content_kept = row.stale && row.erases == erases;
                self.cut_erase(place, (wp, state), begun, content_kept, rng);
            }
        }
    }

    /// Leaves a prefix of an interrupted write, perhaps with a torn write unit behind it.
    fn cut_write(&mut self, place: Place, sector: u32, sectors: u32, rng: &mut Stream) {
        let &Geometry { ws_min, .. } = self.geometry();
        let units = sectors / ws_min;
        let kept = rng.below(u64::from(units) + 1) as u32;
        let torn = kept < units && rng.chance(0.5);
        let torn_from = sector + kept * ws_min;
        self.cut_back(place, torn_from + if torn { ws_min } else { 0 });
        if torn {
            self.tear(place, torn_from, ws_min);
        }
    }

    fn cut_erase(
        &mut self,
        place: Place,
        (wp, state): (u32, ChunkState),
        begun: bool,
        content_kept: bool,
        rng: &mut Stream,
    ) {
        let choice = if begun || !content_kept { rng.below(3) } else { 0 };
        match choice {
            0 if content_kept => self.un_erase(place, wp, state),
            1 => {
                self.un_erase(place, wp, state);
                self.tear(place, 0, wp);
            }
            _ => self.forget(place.row),
        }
    }

    /// The chunk is as it was before its erase.
    fn un_erase(&mut self, place: Place, wp: u32, state: ChunkState) {
        let row = self.chunks.row_mut(place.row);
        row.erases -= 1;
        row.stale = false;
        row.wp = wp;
        self.chunks.set_state(place, state);
    }

    /// Sectors from `wp` on were never written.
    fn cut_back(&mut self, place: Place, wp: u32) {
        let written = self.chunks.row(place.row).wp;
        self.chunks.set_wp(place, wp);
        self.forget_sectors(place.row, wp, written - wp);
    }

    fn tear(&mut self, place: Place, sector: u32, sectors: u32) {
        let first = self.chunks.first(place.row).plus(sector);
        self.unreadable.extend((0..sectors).map(|offset| first.plus(offset).0));
    }
}
