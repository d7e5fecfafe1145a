//! Layers around an open-channel SSD: a layer says what it holds and which commands it treats, and is
//! thereby an [`OpenChannel`] itself. Whatever it does not treat passes to the device within.

use crate::command::{Cause, ChunkInfo, Fault, Oob, OpenChannel, Outcome, RuleError, WriteCmd};
use crate::geometry::{ChunkId, Geometry, Ppa};
use nandscape_block::SectorData;
use nandscape_rt::Nanos;

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
    fn pass_write(&mut self, now: Nanos, cmd: WriteCmd<'_>) -> Result<Outcome, RuleError> {
        self.inner_mut().write(now, cmd)
    }

    /// A read comes by.
    ///
    /// # Errors
    /// As [`OpenChannel::read`].
    #[inline]
    fn pass_read(&mut self, now: Nanos, at: Ppa, sectors: u32) -> Result<Outcome, RuleError> {
        self.inner_mut().read(now, at, sectors)
    }

    /// A reset comes by.
    ///
    /// # Errors
    /// As [`OpenChannel::reset`].
    #[inline]
    fn pass_reset(&mut self, now: Nanos, chunk: ChunkId) -> Result<Outcome, RuleError> {
        self.inner_mut().reset(now, chunk)
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
    fn write(&mut self, now: Nanos, cmd: WriteCmd<'_>) -> Result<Outcome, RuleError> {
        self.pass_write(now, cmd)
    }

    #[inline]
    fn read(&mut self, now: Nanos, at: Ppa, sectors: u32) -> Result<Outcome, RuleError> {
        self.pass_read(now, at, sectors)
    }

    #[inline]
    fn reset(&mut self, now: Nanos, chunk: ChunkId) -> Result<Outcome, RuleError> {
        self.pass_reset(now, chunk)
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
    fn buffer_write(&self, sectors: u32) -> Nanos {
        self.inner().buffer_write(sectors)
    }

    #[inline]
    fn buffer_read(&self, sectors: u32) -> Nanos {
        self.inner().buffer_read(sectors)
    }

    fn arm(&mut self, fault: Fault) {
        self.inner_mut().arm(fault);
    }

    fn mark_unreadable(&mut self, at: Ppa) {
        self.inner_mut().mark_unreadable(at);
    }

    #[inline]
    fn because(&mut self, cause: Cause) {
        self.inner_mut().because(cause);
    }

    #[inline]
    fn prefetch(&self, at: Ppa) {
        self.inner().prefetch(at);
    }
}
