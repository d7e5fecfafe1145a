//! Middleware that counts what passes: commands, sectors, failures, and time, by kind.

use crate::command::{DataOut, Kind, OpenChannel, Outcome, RuleError, Status, WriteCmd};
use crate::geometry::{ChunkId, Ppa};
use crate::layer::Layer;
use nandscape_rt::Nanos;

/// Commands of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Count {
    /// Commands that the device took.
    pub commands: u64,
    /// Their sectors.
    pub sectors: u64,
    /// Sum of their times from submission to completion.
    pub time: Nanos,
    /// Those that failed on the media, uncorrectable reads included.
    pub failed: u64,
    /// Commands that the device refused (not in `commands`).
    pub refused: u64,
}

impl Count {
    fn add(&mut self, now: Nanos, sectors: u64, outcome: &Result<Outcome, RuleError>) {
        let Ok(outcome) = outcome else {
            self.refused += 1;
            return;
        };
        self.commands += 1;
        self.sectors += sectors;
        self.time += outcome.at.saturating_sub(now);
        self.failed += u64::from(outcome.status != Status::Ok);
    }
}

/// Everything counted since the last [`Tracer::take_counters`].
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counters {
    writes: [Count; 6],
    /// Reads.
    pub reads: Count,
    /// Resets; their sectors are those that were erased.
    pub resets: Count,
}

impl Counters {
    /// Writes of one kind.
    #[must_use]
    pub const fn writes(&self, kind: Kind) -> &Count {
        &self.writes[kind as usize]
    }

    /// Sectors written, all kinds together.
    #[must_use]
    pub fn sectors_written(&self) -> u64 {
        self.writes.iter().map(|count| count.sectors).sum()
    }
}

/// Counts the commands that pass to the device below.
#[derive(Clone, Debug)]
pub struct Tracer<M> {
    inner: M,
    counters: Counters,
}

impl<M> Tracer<M> {
    /// Counts from zero.
    #[must_use]
    pub fn new(inner: M) -> Self {
        Self { inner, counters: Counters::default() }
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What was counted; counting starts anew.
    pub fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }
}

impl<M: OpenChannel> Layer for Tracer<M> {
    type Inner = M;

    #[inline]
    fn inner(&self) -> &M {
        &self.inner
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    #[inline]
    fn pass_write(
        &mut self,
        now: Nanos,
        ready: Nanos,
        cmd: WriteCmd<'_>,
    ) -> Result<Outcome, RuleError> {
        let outcome = self.inner.write(now, ready, cmd);
        self.counters.writes[cmd.kind as usize].add(now, cmd.keys.len() as u64, &outcome);
        outcome
    }

    #[inline]
    fn pass_read(
        &mut self,
        now: Nanos,
        ready: Nanos,
        at: Ppa,
        sectors: u32,
        out: &mut impl DataOut,
    ) -> Result<Outcome, RuleError> {
        let outcome = self.inner.read(now, ready, at, sectors, out);
        self.counters.reads.add(now, u64::from(sectors), &outcome);
        outcome
    }

    fn pass_reset(
        &mut self,
        now: Nanos,
        ready: Nanos,
        chunk: ChunkId,
    ) -> Result<Outcome, RuleError> {
        let written = self.inner.chunk(chunk).wp;
        let outcome = self.inner.reset(now, ready, chunk);
        self.counters.resets.add(now, u64::from(written), &outcome);
        outcome
    }
}
