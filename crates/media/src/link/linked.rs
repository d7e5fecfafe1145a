//! An open-channel SSD as a host sees it: every command crosses the link first, with the data of a
//! program, and what a read returns crosses it on the way back. So the bytes that went to the device
//! are those of all sectors programmed, copies, metadata and padding included, and the bytes that went
//! to the host are those of all sectors read.

use super::{HostLink, LinkTiming, ToHost};
use crate::command::{Crossing, DataOut, OpenChannel, Outcome, RuleError, WriteCmd};
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

    /// Other timing from now on, of a link at rest. Counts go on.
    pub fn set_link(&mut self, timing: LinkTiming) {
        let counts = self.link.counts();
        self.link = HostLink { counts, ..HostLink::new(timing) };
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

/// Pieces of a read that go over the link, and on from there.
struct Onward<'a, O> {
    link: ToHost<'a>,
    out: &'a mut O,
}

impl<O: DataOut> DataOut for Onward<'_, O> {
    #[inline]
    fn is_instant(&self) -> bool {
        self.link.is_instant() && self.out.is_instant()
    }

    #[inline]
    fn piece(&mut self, now: Nanos, left_channel: Nanos, sectors: u32) -> Crossing {
        let Crossing { start, end } = self.link.piece(now, left_channel, sectors);
        Crossing { start, end: self.out.piece(now, end, sectors).end }
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
        let crossing = self.link.data_in(now, ready, cmd.keys.len() as u32);
        if crossing.start < crossing.end {
            self.inner.note_transfer(crossing);
        }
        self.inner.write(now, crossing.end, cmd)
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
        inner.read(now, ready, at, sectors, &mut Onward { link: link.data_out(sectors), out })
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
