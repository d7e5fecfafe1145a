//! Counter tracks: levels of the device and of the workload at each pause of a run.

use super::{COUNTERS, Micros, Requests, Timeline};
use nandscape_ftl::{EraseUnitState, Ftl};
use nandscape_rt::Nanos;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Levels of a device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Levels {
    free_lines: u64,
    /// Of what full lines hold, what is valid; `None` without full lines.
    valid_share: Option<f64>,
}

impl Levels {
    /// Those of `ftl` now.
    pub(crate) fn of(ftl: &impl Ftl) -> Self {
        let (mut valid, mut written) = (0, 0);
        for unit in ftl.erase_units() {
            if unit.state == EraseUnitState::Full {
                (valid, written) =
                    (valid + u64::from(unit.valid), written + u64::from(unit.written));
            }
        }
        let valid_share = (written > 0).then(|| valid as f64 / written as f64);
        Self { free_lines: ftl.free_erase_units(), valid_share }
    }
}

/// Ends of requests whose outcome was known before they ended.
#[derive(Default)]
pub(super) struct KnownEnds(BinaryHeap<Reverse<Nanos>>);

impl KnownEnds {
    pub(super) fn add(&mut self, end: Nanos) {
        self.0.push(Reverse(end));
    }

    /// How many are in flight at `now`, which never goes back.
    fn in_flight(&mut self, now: Nanos) -> usize {
        while self.0.peek().is_some_and(|end| end.0 <= now) {
            self.0.pop();
        }
        self.0.len()
    }
}

impl Timeline {
    /// Writes the levels at `now`.
    pub(super) fn write_levels(
        &mut self,
        now: Nanos,
        levels: Levels,
        requests: &Option<Box<Requests>>,
    ) {
        let in_flight = self.known_ends.in_flight(now);
        self.write_counter(now, "free lines", levels.free_lines as f64);
        if let Some(share) = levels.valid_share {
            self.write_counter(now, "valid sectors of full lines (%)", 100.0 * share);
        }
        if let Some(requests) = requests.as_ref().filter(|_| !self.slots.is_empty()) {
            self.write_counter(now, "requests in flight", (in_flight + requests.open()) as f64);
        }
    }

    fn write_counter(&mut self, now: Nanos, name: &str, value: f64) {
        let Some((ts, _)) = self.fit(now, now, 1) else { return };
        let ts = Micros(ts);
        self.sink.push(format_args!(
            r#"{{"ph":"C","pid":{COUNTERS},"ts":{ts},"name":"{name}","args":{{"value":{value}}}}}"#
        ));
    }
}
