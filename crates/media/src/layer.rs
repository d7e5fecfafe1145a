//! Layers around an open-channel SSD: a layer says what it holds and which commands it treats, and is
//! thereby an [`OpenChannel`] itself. Whatever it does not treat passes to the device within.

use crate::command::{
    Cause, ChunkInfo, Crossing, DataOut, Fault, Oob, OpenChannel, Outcome, RuleError, WriteCmd,
};
use crate::geometry::{ChunkId, Geometry, Ppa, UnitId};
use nandscape_block::SectorData;
use nandscape_rt::Nanos;
use std::ops::Range;

/// A layer around an open-channel SSD.
pub trait Layer {
    /// The device within.
    type Inner: OpenChannel;

    /// The device within.
    fn inner(&self) -> &Self::Inner;

    /// The device within.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// A write comes by.
    ///
    /// # Errors
    /// As [`OpenChannel::write`].
    #[inline]
    fn pass_write(
        &mut self,
        now: Nanos,
        ready: Nanos,
        cmd: WriteCmd<'_>,
    ) -> Result<Outcome, RuleError> {
        self.inner_mut().write(now, ready, cmd)
    }

    /// A read comes by.
    ///
    /// # Errors
    /// As [`OpenChannel::read`].
    #[inline]
    fn pass_read(
        &mut self,
        now: Nanos,
        ready: Nanos,
        at: Ppa,
        sectors: u32,
        out: &mut impl DataOut,
    ) -> Result<Outcome, RuleError> {
        self.inner_mut().read(now, ready, at, sectors, out)
    }

    /// A reset comes by.
    ///
    /// # Errors
    /// As [`OpenChannel::reset`].
    #[inline]
    fn pass_reset(
        &mut self,
        now: Nanos,
        ready: Nanos,
        chunk: ChunkId,
    ) -> Result<Outcome, RuleError> {
        self.inner_mut().reset(now, ready, chunk)
    }
}

impl<L: Layer> OpenChannel for L {
    #[inline]
    fn geometry(&self) -> &Geometry {
        self.inner().geometry()
    }

    #[inline]
    fn chunk(&self, chunk: ChunkId) -> ChunkInfo {
        self.inner().chunk(chunk)
    }

    #[inline]
    fn write(&mut self, now: Nanos, ready: Nanos, cmd: WriteCmd<'_>) -> Result<Outcome, RuleError> {
        self.pass_write(now, ready, cmd)
    }

    #[inline]
    fn read(
        &mut self,
        now: Nanos,
        ready: Nanos,
        at: Ppa,
        sectors: u32,
        out: &mut impl DataOut,
    ) -> Result<Outcome, RuleError> {
        self.pass_read(now, ready, at, sectors, out)
    }

    #[inline]
    fn reset(&mut self, now: Nanos, ready: Nanos, chunk: ChunkId) -> Result<Outcome, RuleError> {
        self.pass_reset(now, ready, chunk)
    }

    fn write_residual(&mut self, cmd: WriteCmd<'_>) -> Result<(), RuleError> {
        self.inner_mut().write_residual(cmd)
    }

    #[inline]
    fn oob(&self, at: Ppa) -> Oob {
        self.inner().oob(at)
    }

    #[inline]
    fn data(&self, at: Ppa) -> SectorData {
        self.inner().data(at)
    }

    #[inline]
    fn readable(&self, at: Ppa) -> bool {
        self.inner().readable(at)
    }

    #[inline]
    fn may_drop(&self) -> bool {
        self.inner().may_drop()
    }

    #[inline]
    fn is_droppable(&self, at: Ppa) -> bool {
        self.inner().is_droppable(at)
    }

    fn drop_content(&mut self, at: Ppa) -> bool {
        self.inner_mut().drop_content(at)
    }

    #[inline]
    fn is_dropped(&self, at: Ppa) -> bool {
        self.inner().is_dropped(at)
    }

    fn arm(&mut self, fault: Fault) {
        self.inner_mut().arm(fault);
    }

    fn mark_unreadable(&mut self, at: Ppa) {
        self.inner_mut().mark_unreadable(at);
    }

    #[inline]
    fn set_cause(&mut self, cause: Cause) {
        self.inner_mut().set_cause(cause);
    }

    #[inline]
    fn begins(&self) -> Nanos {
        self.inner().begins()
    }

    fn idle_from(&self) -> (Nanos, UnitId) {
        self.inner().idle_from()
    }

    fn collection_time(&self, unit: UnitId, time: Range<Nanos>) -> Nanos {
        self.inner().collection_time(unit, time)
    }

    #[inline]
    fn note_transfer(&mut self, crossing: Crossing) {
        self.inner_mut().note_transfer(crossing);
    }

    #[inline]
    fn prefetch(&self, at: Ppa) {
        self.inner().prefetch(at);
    }
}
