//! Programs in flight of one stream of an instance, and what is durable in it. Programs are issued in order of
//! their sequences and complete in any order.

use nandscape_rt::invariant;
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Program {
    first_seq: u64,
    done: bool,
}

/// Programs in flight, oldest first.
#[derive(Default, Debug)]
pub(super) struct InFlight {
    programs: VecDeque<Program>,
    /// Number of the oldest.
    first: u64,
}

impl InFlight {
    /// A program whose first sector has this sequence was issued; its number.
    #[inline]
    pub(super) fn push(&mut self, first_seq: u64) -> u64 {
        invariant!(
            self.programs.back().is_none_or(|last| last.first_seq < first_seq),
            "programs are issued in order of their sequences"
        );
        self.programs.push_back(Program { first_seq, done: false });
        self.first + self.programs.len() as u64 - 1
    }

    /// The program with this number completed.
    #[inline]
    pub(super) fn complete(&mut self, number: u64) {
        invariant!(number >= self.first, "program {number} completes once");
        let program = &mut self.programs[(number - self.first) as usize];
        invariant!(!program.done, "program {number} completes once");
        program.done = true;
        while self.programs.front().is_some_and(|program| program.done) {
            self.programs.pop_front();
            self.first += 1;
        }
    }

    /// The first sequence of the oldest program that has not completed.
    #[inline]
    pub(super) fn oldest(&self) -> Option<u64> {
        self.programs.front().map(|program| program.first_seq)
    }

    pub(super) fn len(&self) -> usize {
        self.programs.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Bytes of RAM.
    pub(super) fn bytes(&self) -> u64 {
        (self.programs.capacity() * size_of::<Program>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is durable ends at the oldest program that is not, whatever completed after it.
    #[test]
    fn the_oldest_program_bounds_what_is_durable() {
        let mut flight = InFlight::default();
        let numbers = [10, 20, 30].map(|seq| flight.push(seq));
        flight.complete(numbers[1]);
        assert_eq!(flight.oldest(), Some(10));
        flight.complete(numbers[0]);
        assert_eq!(flight.oldest(), Some(30));
        let last = flight.push(40);
        flight.complete(numbers[2]);
        assert_eq!(flight.oldest(), Some(40));
        flight.complete(last);
        assert!(flight.is_empty() && flight.oldest().is_none());
    }
}
