//! `write_iolog` and `read_iolog`: what a job issued, as a log of fio's, and a log as what a job
//! issues.

use super::kind::{Kind, Next};
use crate::direction::Direction;
use crate::fio::{IoLog, Replaying};
use crate::trace::{Action, Fitter, Record};
use nandscape_block::{DeviceCaps, SECTOR_BYTES};
use nandscape_rt::Nanos;
use std::io::{self, Write};

/// What the log calls the device.
const DEVICE: &str = "nandscape";

/// One I/O that was issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Issued {
    /// From the job's start.
    at: Nanos,
    offset: u64,
    bytes: u64,
    kind: Kind,
}

/// A log of what a job issued.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenLog {
    /// The file that it is meant for.
    pub path: String,
    ios: Vec<Issued>,
    /// When the job ended, from its start.
    ended: Nanos,
}

impl WrittenLog {
    pub(super) const fn new(path: String) -> Self {
        Self { path, ios: Vec::new(), ended: Nanos::ZERO }
    }

    pub(super) fn push(&mut self, at: Nanos, kind: Kind, offset: u64, bytes: u64) {
        self.ios.push(Issued { at, offset, bytes, kind });
    }

    pub(super) const fn end(&mut self, at: Nanos) {
        self.ended = at;
    }

    /// Writes it as a log of fio's, version 3: times in microseconds, offsets and lengths in bytes.
    ///
    /// # Errors
    /// What `out` fails with.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "fio version 3 iolog\n0 {DEVICE} add\n0 {DEVICE} open")?;
        for Issued { at, offset, bytes, kind } in &self.ios {
            let (at_us, kind) = (at.0 / 1_000, kind.name());
            writeln!(out, "{at_us} {DEVICE} {kind} {offset} {bytes}")?;
        }
        writeln!(out, "{} {DEVICE} close", self.ended.0 / 1_000)
    }
}

/// What a log asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// An I/O of so many sectors.
    Io(Next, u32),
    Flush,
}

/// A log, to be issued on a certain device.
#[derive(Clone, Debug)]
pub(super) struct Playback {
    steps: Vec<(Nanos, Step)>,
    next: usize,
}

impl Playback {
    /// The steps of `log`; offsets are scaled and aligned, and then widened to whole sectors.
    pub(super) fn new(log: &IoLog, how: &Replaying, caps: &DeviceCaps) -> Result<Self, String> {
        let mut fitter = Fitter::new(caps, false);
        let mut steps = Vec::new();
        for record in log.records.iter().filter(|record| !is_skipped(record, how)) {
            let moved = Record { offset_bytes: offset(record.offset_bytes, how), ..*record };
            let fitted = fitter.fit(&moved);
            let fitted = fitted.map_err(|what| format!("{}:{}: {what}", log.name, record.line))?;
            let at = due(record.at, how);
            match (record.action, fitted) {
                (Action::Flush, _) => steps.push((at, Step::Flush)),
                (Action::Io(direction), Some([Some(extent), _])) => {
                    let next = Next { first: extent.lba.0, direction };
                    steps.push((at, Step::Io(next, extent.sectors)));
                }
                (Action::Io(_), _) => {}
            }
        }
        Ok(Self { steps, next: 0 })
    }

    /// The longest I/O of a direction, in sectors.
    pub(super) fn largest(&self, direction: Direction) -> u32 {
        let sectors = self.steps.iter().map(|(_, step)| match step {
            Step::Io(next, sectors) if next.direction == direction => *sectors,
            _ => 0,
        });
        sectors.max().unwrap_or(0)
    }

    /// What it transfers.
    pub(super) fn bytes(&self) -> u64 {
        let sectors = self.steps.iter().map(|(_, step)| match step {
            Step::Io(_, sectors) => u64::from(*sectors),
            Step::Flush => 0,
        });
        sectors.sum::<u64>() * SECTOR_BYTES
    }

    /// The next step, and when it is due, from the job's start.
    pub(super) fn peek(&self) -> Option<(Nanos, Step)> {
        self.steps.get(self.next).copied()
    }

    pub(super) const fn take(&mut self) {
        self.next += 1;
    }
}

const fn is_skipped(record: &Record, how: &Replaying) -> bool {
    match record.action {
        Action::Io(direction) => how.skips(direction),
        Action::Flush => how.skip_sync,
    }
}

fn offset(bytes: u64, how: &Replaying) -> u64 {
    let bytes = bytes / how.scale.max(1);
    bytes & !how.align.saturating_sub(1)
}

fn due(at: Nanos, how: &Replaying) -> Nanos {
    if how.no_stall {
        return Nanos::ZERO;
    }
    let ns = u128::from(at.0) * 100 / u128::from(how.time_scale.max(1));
    Nanos(ns.try_into().unwrap_or(u64::MAX))
}
