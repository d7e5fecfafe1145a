//! The device under a run: an FTL over media, with or without injected faults, and the hint
//! that stands between it and the workload.

use super::error::RunError;
use crate::stack::Stack;
use nandscape_block::{Bio, BlockDevice, Completion, DeviceCaps, Flags, Lba, Op, Submit, Token};
use nandscape_ftl::Pblk;
use nandscape_ftl::config::Config;
use nandscape_media::{FaultInjector, Layer, Media, OpenChannel};
use nandscape_rt::Nanos;
use std::ops::Range;

/// Media whose timing can be set and whose memory can be asked for, whatever stands before it.
pub(super) trait LabMedia: OpenChannel {
    /// The device itself.
    fn device(&self) -> &Media;
    /// The device itself.
    fn device_mut(&mut self) -> &mut Media;
}

impl LabMedia for Media {
    fn device(&self) -> &Media {
        self
    }
    fn device_mut(&mut self) -> &mut Media {
        self
    }
}

impl LabMedia for FaultInjector<Media> {
    fn device(&self) -> &Media {
        self.inner()
    }
    fn device_mut(&mut self) -> &mut Media {
        self.inner_mut()
    }
}

/// A fresh FTL over `media`, as the stack says.
pub(super) fn format<M: LabMedia>(stack: &Stack, media: M, seed: u64) -> Result<Pblk<M>, RunError> {
    let config = Config { seed, ..stack.ftl.clone() };
    Pblk::format(media, config).map_err(|error| RunError::ftl(stack, error))
}

/// An FTL behind the hint of a stack: writes that begin in the journal's range carry JOURNAL.
pub(super) struct Hinted<M: OpenChannel> {
    pub(super) ftl: Pblk<M>,
    /// Empty where nothing was hinted.
    journal: Range<u64>,
}

impl<M: OpenChannel> Hinted<M> {
    /// `journal` in sectors, if hinted.
    pub(super) fn new(ftl: Pblk<M>, journal: Option<Range<u64>>) -> Self {
        Self { ftl, journal: journal.unwrap_or(0..0) }
    }
}

impl<M: OpenChannel> BlockDevice for Hinted<M> {
    #[inline]
    fn caps(&self) -> &DeviceCaps {
        self.ftl.caps()
    }

    #[inline]
    fn submit(&mut self, now: Nanos, mut bio: Bio, token: Token) -> Submit {
        if self.journal.contains(&bio.lba.0) && bio.op == Op::Write {
            bio.flags |= Flags::JOURNAL;
        }
        self.ftl.submit(now, bio, token)
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        self.ftl.next_event()
    }

    #[inline]
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.ftl.advance(now, done);
    }

    #[inline]
    fn prefetch_far(&self, lba: Lba) {
        self.ftl.prefetch_far(lba);
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        self.ftl.prefetch_near(op, lba);
    }
}
