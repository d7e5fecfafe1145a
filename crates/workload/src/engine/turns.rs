//! `file_service_type`: which of a job's files the next I/O goes to.
//!
//! As in fio (io_u.c, get_next_file), a file that the pass is through with is left out until all are; one
//! is never through where its addresses are drawn independently. Here it is when as much was
//! transferred as it holds.

use super::addresses::Order;
use super::plan::Plan;
use crate::fio::{FileOrder, FileService, JobSpec};
use nandscape_rt::Stream;
use std::collections::VecDeque;

/// The turns of a job's files.
#[derive(Clone, Debug)]
pub(super) struct FileRotation {
    service: FileService,
    choices: Stream,
    /// Files that the pass is not through with; the first has its turn.
    queue: VecDeque<u32>,
    /// I/Os that are left of the turn.
    ios_left: u64,
    /// Units of each file, and what the pass has left of them.
    units: Vec<(u64, u64)>,
    least: u64,
    /// Whether a pass comes to an end.
    ends: bool,
}

impl FileRotation {
    /// A rotation of several files; one always has its turn.
    pub(super) fn new(spec: &JobSpec, plan: &Plan, seed: u64, name: &str) -> Option<Self> {
        (plan.ranges.len() > 1).then(|| Self {
            service: spec.files.service,
            choices: Stream::new(seed, &format!("{name}/file")),
            queue: VecDeque::new(),
            ios_left: 0,
            units: plan.ranges.iter().map(|range| (range.units, 0)).collect(),
            least: (spec.least_block() / plan.unit_bytes).max(1),
            ends: match plan.order {
                Order::Independent(_) => false,
                // With time, each file's map begins anew.
                Order::RandomMap | Order::ShiftRegister => !spec.time_based,
                Order::Sequential => true,
            },
        })
    }

    /// What random choices come from.
    pub(super) const fn choices(&self) -> &Stream {
        &self.choices
    }

    /// Makes these choices from now on.
    pub(super) fn repeat(&mut self, choices: &Stream) {
        self.choices.clone_from(choices);
    }

    /// Begins a pass.
    pub(super) fn restart(&mut self) {
        self.queue = (0..self.units.len() as u32).collect();
        self.ios_left = 0;
        self.units.iter_mut().for_each(|(all, left)| *left = *all);
    }

    /// The file whose turn it is; none when the pass is through with all.
    pub(super) fn file(&mut self) -> Option<usize> {
        let files = self.queue.len() as u64;
        if self.ios_left == 0 && files > 0 {
            self.ios_left = self.service.ios;
            if self.service.order == FileOrder::Random {
                self.queue.swap(0, self.choices.below(files) as usize);
            }
        }
        self.queue.front().map(|file| *file as usize)
    }

    /// An I/O of so many units goes to it; none where the pass is through with it.
    pub(super) fn issued(&mut self, units: u32) {
        let left = &mut self.units[self.queue[0] as usize].1;
        *left = if units == 0 { 0 } else { left.saturating_sub(units.into()) };
        self.ios_left -= 1;
        if (self.ends || units == 0) && *left < self.least {
            self.queue.pop_front();
            self.ios_left = 0;
        } else if self.ios_left == 0 && self.service.order == FileOrder::RoundRobin {
            self.queue.rotate_left(1);
        }
    }
}
