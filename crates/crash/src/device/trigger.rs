//! Middleware over the media that notices two things: that the command which a scenario waits for
//! has come, and when the first command was refused because power is off.

use crate::draw::plan::CommandKind;
use nandscape_media::{ChunkId, DataOut, Layer, OpenChannel, Outcome, Ppa, RuleError, WriteCmd};
use nandscape_rt::Nanos;

/// The middleware; see the head of this file.
#[derive(Debug)]
pub struct CommandTrigger<M> {
    inner: M,
    awaited: Option<(CommandKind, u64)>,
    noticed_at: Option<Nanos>,
    off_at: Option<Nanos>,
}

impl<M> CommandTrigger<M> {
    /// Nothing awaited.
    #[must_use]
    pub const fn new(inner: M) -> Self {
        Self { inner, awaited: None, noticed_at: None, off_at: None }
    }

    /// Forgets what it noticed, and waits for the n-th command of a kind from here on (from 1).
    pub const fn wait_for(&mut self, command: Option<(CommandKind, u64)>) {
        self.awaited = command;
        (self.noticed_at, self.off_at) = (None, None);
    }

    /// When the awaited command was submitted.
    #[must_use]
    pub const fn noticed_at(&self) -> Option<Nanos> {
        self.noticed_at
    }

    /// When the first command was refused because power is off.
    #[must_use]
    pub const fn off_at(&self) -> Option<Nanos> {
        self.off_at
    }

    fn note(&mut self, now: Nanos, kind: CommandKind, outcome: &Result<Outcome, RuleError>) {
        match outcome {
            Err(rule) if rule.is_power_off() => {
                self.off_at.get_or_insert(now);
            }
            _ => self.count(now, kind),
        }
    }

    fn count(&mut self, now: Nanos, kind: CommandKind) {
        if let Some((awaited, left)) = &mut self.awaited
            && *awaited == kind
        {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.noticed_at.get_or_insert(now);
            }
        }
    }
}

impl<M: OpenChannel> Layer for CommandTrigger<M> {
    type Inner = M;

    #[inline]
    fn inner(&self) -> &M {
        &self.inner
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    fn pass_write(
        &mut self,
        now: Nanos,
        ready: Nanos,
        cmd: WriteCmd<'_>,
    ) -> Result<Outcome, RuleError> {
        let outcome = self.inner.write(now, ready, cmd);
        self.note(now, CommandKind::Write, &outcome);
        outcome
    }

    fn pass_read(
        &mut self,
        now: Nanos,
        ready: Nanos,
        at: Ppa,
        sectors: u32,
        out: &mut impl DataOut,
    ) -> Result<Outcome, RuleError> {
        let outcome = self.inner.read(now, ready, at, sectors, out);
        self.note(now, CommandKind::Read, &outcome);
        outcome
    }

    fn pass_reset(
        &mut self,
        now: Nanos,
        ready: Nanos,
        chunk: ChunkId,
    ) -> Result<Outcome, RuleError> {
        let outcome = self.inner.reset(now, ready, chunk);
        self.note(now, CommandKind::Reset, &outcome);
        outcome
    }
}
