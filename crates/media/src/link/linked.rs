//! An open-channel SSD as a host sees it: every command crosses the link first, and what it reads
//! crosses it on the way back.
//!
//! The data of programs do not take the link here: a host FTL charges them when its buffer accepts
//! them ([`HostLink::buffer_legacy`]).

use super::{HostLink, LinkTiming, Through};
use crate::command::{DataOut, OpenChannel, Outcome, RuleError, WriteCmd};
use crate::geometry::{ChunkId, Ppa};
use crate::layer::Layer;
use nandscape_rt::Nanos;

/// A device behind a link.
#[derive(Clone, Debug)]
pub struct Linked<M> {
    inner: M,
    link: HostLink,
}

impl<M> Linked<M> {
    /// `inner` behind a link with this timing.
    #[must_use]
    pub fn new(inner: M, timing: LinkTiming) -> Self {
        Self { inner, link: HostLink::new(timing) }
    }

    /// The link.
    #[must_use]
    pub const fn link(&self) -> &HostLink {
        &self.link
    }

    /// The link, to reset its counts.
    pub const fn link_mut(&mut self) -> &mut HostLink {
        &mut self.link
    }

    /// Other timing from now on, of a link at rest. Counts begin at zero.
    pub fn set_link(&mut self, timing: LinkTiming) {
        self.link = HostLink::new(timing);
    }

    /// The device, without the link and its reservations: a power cut, seen from the media.
    #[must_use]
    pub fn into_inner(self) -> M {
        self.inner
    }
}

impl<M> From<M> for Linked<M> {
    /// `inner` behind a link that takes no time.
    fn from(inner: M) -> Self {
        Self::new(inner, LinkTiming::none())
    }
}

impl<M: OpenChannel> Layer for Linked<M> {
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
        let ready = self.link.command(ready);
        self.inner.write(now, ready, cmd)
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
        let Self { inner, link } = self;
        let ready = link.read_ready(ready, sectors);
        inner.read(now, ready, at, sectors, &mut Through { link, out })
    }

    fn pass_reset(
        &mut self,
        now: Nanos,
        ready: Nanos,
        chunk: ChunkId,
    ) -> Result<Outcome, RuleError> {
        let ready = self.link.command(ready);
        self.inner.reset(now, ready, chunk)
    }
}
