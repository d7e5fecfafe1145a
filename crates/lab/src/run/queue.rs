//! How many requests are in the device, on average over time, and for how much of it there is one at all.
//!
//! Integrals over time need no state of a request: one whose end is known when it is submitted adds its time at once, and those
//! that are pending add theirs from event to event.

use nandscape_block::{Completion, Submit};
use nandscape_rt::Nanos;

/// What was counted since the counts were last reset.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct QueueCounts {
    /// Requests submitted.
    pub requests: u64,
    /// The time of each in the device, summed.
    pub in_device: Nanos,
    /// Time in which there was one.
    pub occupied: Nanos,
}

impl QueueCounts {
    /// Adds what the same device counted later.
    pub(super) const fn extend(&mut self, later: &Self) {
        self.requests += later.requests;
        self.in_device = self.in_device.saturating_add(later.in_device);
        self.occupied = self.occupied.saturating_add(later.occupied);
    }

    /// Requests in the device, on average over `length`.
    #[must_use]
    pub fn mean(&self, length: Nanos) -> f64 {
        self.in_device.0 as f64 / length.0.max(1) as f64
    }

    /// The share of `length` in which there was one.
    #[must_use]
    pub fn occupied_share(&self, length: Nanos) -> f64 {
        share(self.occupied, length)
    }
}

/// The share of `length` in which something was taken, cut off at one.
pub(super) fn share(busy: Nanos, length: Nanos) -> f64 {
    match length {
        Nanos::ZERO => 0.0,
        _ => (busy.0 as f64 / length.0 as f64).min(1.0),
    }
}

/// Counts requests as they come and go.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct DeviceQueue {
    counts: QueueCounts,
    /// Until when everything is counted.
    at: Nanos,
    /// Requests whose end is not known.
    pending: u64,
    /// When the last request ends of those whose end is known.
    known_until: Nanos,
}

impl DeviceQueue {
    /// Time has come to `now`.
    #[inline]
    fn pass(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.at);
        self.counts.in_device.0 += passed.0 * self.pending;
        self.counts.occupied += match self.pending {
            0 => self.known_until.min(now).saturating_sub(self.at),
            _ => passed,
        };
        self.at = self.at.max(now);
    }

    /// A request was submitted at `now`.
    #[inline]
    pub(super) fn submitted(&mut self, now: Nanos, submit: &Submit) {
        self.pass(now);
        self.counts.requests += 1;
        match submit {
            Submit::Pending => self.pending += 1,
            Submit::Done(done) => {
                self.counts.in_device += done.at.saturating_sub(now);
                self.known_until = self.known_until.max(done.at);
            }
        }
    }

    /// The device said at `now` when these requests, which were pending, end.
    #[inline]
    pub(super) fn completed(&mut self, now: Nanos, requests: &[Completion]) {
        // Time counts when something changes.
        if requests.is_empty() {
            return;
        }
        self.pass(now);
        self.pending -= requests.len() as u64;
        for request in requests {
            self.counts.in_device += request.done.at.saturating_sub(now);
            self.known_until = self.known_until.max(request.done.at);
        }
    }

    /// What was counted until `now`.
    pub(super) fn counts(mut self, now: Nanos) -> QueueCounts {
        self.pass(now);
        self.counts
    }

    /// Counts begin again at `now`, with the requests that are in the device.
    pub(super) fn reset(&mut self, now: Nanos) {
        self.pass(now);
        self.counts = QueueCounts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_block::{Done, Token};

    /// Both kinds of requests count for as long as they are in the device, and time is occupied once.
    #[test]
    fn time_in_the_device_is_counted() {
        let mut queue = DeviceQueue::default();
        queue.submitted(Nanos(10), &Submit::Done(Done::ok(Nanos(30))));
        queue.submitted(Nanos(20), &Submit::Pending);
        queue.submitted(Nanos(20), &Submit::Pending);
        let ends = |at| Completion { token: Token(0), done: Done::ok(Nanos(at)) };
        queue.completed(Nanos(50), &[ends(50)]);
        queue.completed(Nanos(60), &[ends(62)]);
        queue.submitted(Nanos(90), &Submit::Done(Done::ok(Nanos(95))));
        let counts = queue.counts(Nanos(100));
        assert_eq!(counts.in_device, Nanos(20 + 30 + 42 + 5));
        assert_eq!((counts.requests, counts.occupied), (4, Nanos(52 + 5)));
        assert!((counts.mean(Nanos(100)) - 0.97).abs() < 1e-9);
        queue.reset(Nanos(100));
        assert_eq!(queue.counts(Nanos(200)), QueueCounts::default());
    }
}
