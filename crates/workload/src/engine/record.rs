//! What observes every completed I/O: logs, interval histograms. A run without one pays a
//! branch an I/O.

use crate::direction::Direction;
use nandscape_rt::Nanos;
use std::fmt;

/// An I/O that completed, behind the ramp of its job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completed {
    /// Its job: clones of `numjobs` one by one, in the order of the file.
    pub job: u32,
    /// What it was; `None` is a flush.
    pub direction: Option<Direction>,
    /// When its job began to count: at its start, or behind its ramp.
    pub began: Nanos,
    /// When it completed.
    pub at: Nanos,
    /// From submission to completion.
    pub latency: Nanos,
    /// First byte.
    pub offset: u64,
    /// Length; zero of a flush.
    pub bytes: u64,
}

/// Hears of completed I/Os, in the order in which they complete.
pub trait Recorder: fmt::Debug {
    /// One more.
    fn completed(&mut self, io: &Completed);
    /// The run is over.
    fn finish(&mut self, at: Nanos);
}
