//! Which direction the next I/O of a mix has, by `rwmixread`.
//!
//! The rule is fio's (io_u.c, `get_rw_ddir`): each I/O draws, except that a direction that was switched to stays until
//! it has issued its share of what the other one had issued by then. Rates may overrule a draw; the direction that was
//! issued then is the one that is switched from.

use crate::direction::Direction;
use nandscape_rt::Stream;

/// Draws the directions of a mix of reads and writes.
#[derive(Clone, Debug)]
pub(super) struct Mixer {
    reads_percent: u64,
    draws: Stream,
    current: Direction,
    /// I/Os by direction.
    issued: [u64; 2],
    /// I/Os of the current direction before another draw.
    until: u64,
}

impl Mixer {
    /// A mixer that begins with a draw.
    pub(super) const fn new(reads_percent: u64, draws: Stream) -> Self {
        Self { reads_percent, draws, current: Direction::Read, issued: [0; 2], until: 0 }
    }

    /// Begins a pass behind so many reads and writes, with these draws if it repeats another one.
    pub(super) fn restart(&mut self, issued: [u64; 2], draws: Option<&Stream>) {
        (self.issued, self.until) = (issued, 0);
        draws.into_iter().for_each(|draws| self.draws.clone_from(draws));
    }

    /// The direction that the mix asks for.
    #[inline]
    pub(super) fn draw(&mut self) -> Direction {
        let current = self.issued[self.current as usize];
        if current >= self.until {
            let reads = self.draws.below(100) < self.reads_percent;
            let next = if reads { Direction::Read } else { Direction::Write };
            if next != self.current {
                let percent = if reads { self.reads_percent } else { 100 - self.reads_percent };
                self.until = current * percent / 100;
                self.current = next;
            }
        }
        self.current
    }

    /// An I/O of this direction comes next.
    #[inline]
    pub(super) const fn take(&mut self, direction: Direction) {
        self.current = direction;
        self.issued[direction as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares hold, and no share is ever far behind: it catches up at once.
    #[test]
    fn shares_hold() {
        for percent in [1_u64, 30, 50, 95] {
            let mut mixer = Mixer::new(percent, Stream::new(1, "mixer"));
            let mut counts = [0_u64; 2];
            for _ in 0..100_000 {
                let direction = mixer.draw();
                mixer.take(direction);
                counts[direction as usize] += 1;
            }
            assert!(counts[0].abs_diff(percent * 1_000) < 600, "{percent}: {counts:?}");
        }
    }

    /// What is overruled all the time does not hold up the other direction.
    #[test]
    fn a_draw_may_be_overruled() {
        let mut mixer = Mixer::new(50, Stream::new(1, "mixer"));
        let mut writes = 0;
        for _ in 0..1_000 {
            writes += u32::from(mixer.draw() == Direction::Write);
            mixer.take(Direction::Read);
        }
        assert!((400..600).contains(&writes), "{writes}");
    }
}
