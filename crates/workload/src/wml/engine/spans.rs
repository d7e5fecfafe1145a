//! Flowops as spans of time, for a timeline: kept from one look to the next, only while they are asked for.

use nandscape_rt::Nanos;
use std::cell::RefCell;

/// Spans between two looks; more are dropped.
const ROOM: usize = 1 << 20;

/// A flowop that was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowopSpan {
    /// The instance of a thread, from 0 in the order of the workload.
    pub instance: u32,
    /// Its thread, by place in the workload.
    pub thread: u32,
    /// The flowop, by place in the thread.
    pub flowop: u32,
    /// When it began.
    pub start: Nanos,
    /// When it was done.
    pub end: Nanos,
}

/// The spans since the last look, if they are asked for.
#[derive(Default)]
pub(super) struct Spans(RefCell<Option<Vec<FlowopSpan>>>);

impl Spans {
    /// Another one.
    pub(super) fn add(&self, span: FlowopSpan) {
        if let Some(spans) = self.0.borrow_mut().as_mut().filter(|spans| spans.len() < ROOM) {
            spans.push(span);
        }
    }

    /// Those since the last look; from now on they are kept if `keep`.
    pub(super) fn take(&self, keep: bool) -> Vec<FlowopSpan> {
        self.0.replace(keep.then(Vec::new)).unwrap_or_default()
    }
}
