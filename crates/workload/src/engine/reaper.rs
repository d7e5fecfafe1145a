//! `iodepth_low` and `iodepth_batch_complete_min`: a full queue is left alone until so many of its
//! requests are back, again and again until it has drained to the low mark; then it is filled again.
//!
//! As in fio, a request counts as completed when the job takes it back. What is below the full depth
//! (a job that drains, thinks or waits for its rate) is taken back at once.

use crate::fio::Reaping;

/// Requests that are back but not yet taken.
#[derive(Clone, Debug)]
pub(super) struct Reaper {
    low: u32,
    min: u32,
    /// Slots.
    done: Vec<u32>,
    waiting: bool,
}

impl Reaper {
    /// The reaper that `rules` ask for, unless they are those of taking back one by one.
    pub(super) fn new(rules: Reaping, depth: u32) -> Option<Self> {
        let low = if rules.low == 0 { depth } else { rules.low.min(depth) };
        let min = rules.min.clamp(1, depth);
        let plain = low == depth && min == 1;
        (!plain).then(|| Self { low, min, done: Vec::new(), waiting: false })
    }

    /// Nothing is issued before more is taken back.
    pub(super) const fn is_waiting(&self) -> bool {
        self.waiting
    }

    /// A slot is back, with `in_flight` requests not yet taken back, this one included: whether it
    /// is time to take.
    pub(super) fn is_due(&mut self, slot: u32, in_flight: u32, full: bool) -> bool {
        self.done.push(slot);
        self.waiting |= full;
        !self.waiting || self.done.len() as u32 >= self.min.min(in_flight)
    }

    /// What is back, to be taken; [`Reaper::taken`] must follow.
    pub(super) fn take(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.done)
    }

    /// All of `done` was taken back, which leaves so many in flight.
    pub(super) fn taken(&mut self, mut done: Vec<u32>, in_flight: u32) {
        done.clear();
        self.done = done;
        self.waiting &= in_flight > self.low;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full queue of 8 drains four by four to the low mark of 2; fio 3.33 does the same.
    #[test]
    fn a_full_queue_drains_in_batches() {
        let mut reaper = Reaper::new(Reaping { low: 2, min: 4, max: 4 }, 8).unwrap();
        let mut in_flight = 8;
        let mut batches = Vec::new();
        for slot in 0..8 {
            if reaper.is_due(slot, in_flight, in_flight == 8) {
                let done = reaper.take();
                in_flight -= done.len() as u32;
                batches.push(done.len());
                reaper.taken(done, in_flight);
                assert_eq!(reaper.is_waiting(), in_flight > 2);
            }
        }
        assert_eq!(batches, [4, 4]);
        assert!(Reaper::new(Reaping { low: 0, min: 1, max: 8 }, 8).is_none());
    }
}
