//! The random map of I/Os that differ in size: by draws, by direction, or from the blocks that the map counts.
//!
//! The rule is fio's (io_u.c, `mark_random_map`). A draw that hits an accessed block goes to the next one that is not, and an
//! I/O ends at the next one that is. The map counts blocks of the least size of all directions, and marks blocks of each
//! direction's own size by their own numbers: where these sizes differ, a pass may end before it has accessed everything,
//! with the I/O whose next free number is beyond its direction's last block.

use super::addresses::Places;
use super::covered::Covered;
use super::plan::Range;
use super::sizes::Sizes;
use crate::direction::Direction;
use nandscape_rt::Stream;

/// The map of a range.
#[derive(Clone, Debug)]
pub(super) struct RandomMap {
    covered: Covered,
    of: [Places; 3],
    /// Units behind the range.
    behind: u64,
    /// It is through only with time.
    wraps: bool,
}

impl RandomMap {
    /// That of a range.
    pub(super) fn new(range: &Range, wraps: bool) -> Self {
        let covered = Covered::new(range.blocks);
        Self { covered, of: range.places.clone(), behind: range.behind, wraps }
    }

    pub(super) fn restart(&mut self) {
        self.covered.clear();
    }

    /// The next I/O of a direction: first unit and units, none where the pass is through.
    pub(super) fn draw(&mut self, direction: Direction, random: &mut Stream) -> (u64, u32) {
        let drawn = self.draw_free(direction, random);
        if drawn.is_none() && self.wraps {
            self.restart();
            return self.draw_free(direction, random).unwrap_or((0, 0));
        }
        drawn.unwrap_or((0, 0))
    }

    fn draw_free(&mut self, direction: Direction, random: &mut Stream) -> Option<(u64, u32)> {
        let places = &self.of[direction as usize];
        let drawn = random.below(places.count());
        let is_free = drawn < self.covered.blocks() && !self.covered.has(drawn);
        let place = if is_free { drawn } else { self.covered.next_free(drawn)? };
        let first = place * places.align;
        let (room, least) = (places.units.saturating_sub(first), u64::from(places.sizes.least()));
        let fits = match places.sizes {
            Sizes::Fixed(_) => room > 0 && least <= room + self.behind,
            _ => least <= room,
        };
        if !fits {
            return None;
        }
        let units = places.sizes.draw(room, random);
        let blocks = self.covered.cover(place, u64::from(units).div_ceil(places.align));
        Some((first, units.min((blocks * places.align) as u32)))
    }
}
