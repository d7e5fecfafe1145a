//! The device trait: a plain submit/complete core. `submit` answers `Done(at)` when the completion
//! time is known at once, or `Pending`; pending completions are taken in batches by `advance`.
//!
//! Rules, for callers and devices:
//! - Time never goes back: `now` of each call is at least that of the call before.
//! - The driver of a device calls `advance(t)` at (or before submitting anything after) each
//!   `t = next_event()`; a device may not act later than its own next event.
//! - A submitted bio is never retracted; its completion comes exactly once.
//! - A completion's time is never before the `now` it was handed out at.

use crate::bio::{Bio, Op};
use crate::caps::DeviceCaps;
use crate::error::BlockError;
use crate::payload::Payload;
use crate::zone::ZoneInfo;
use nandscape_rt::Nanos;
use std::ops::BitOr;

/// The caller's name for a submitted bio; comes back with its completion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Token(pub u64);

/// What a completed bio brings back.
#[derive(Clone, PartialEq, Default, Debug)]
pub enum Reply {
    /// Nothing but success.
    #[default]
    None,
    /// The data of a read.
    Data(Payload),
    /// Where a zone append went.
    Appended(crate::Lba),
    /// A zone report.
    Zones(Vec<ZoneInfo>),
    /// A batch of migrations: its id, and (old, new) sector addresses in the order of the moves. One without records has no
    /// id that can be completed.
    Upcall(u64, Vec<(crate::Lba, crate::Lba)>),
}

/// The end of a bio.
#[derive(Clone, PartialEq, Debug)]
pub struct Done {
    /// When it completes.
    pub at: Nanos,
    /// How it ended.
    pub result: Result<Reply, BlockError>,
}

// Every bio carries one back: what few devices flag is asked with `BlockDevice::attention`.
const _: () = assert!(size_of::<Done>() <= 8 + size_of::<Result<Reply, BlockError>>());

impl Done {
    /// Ended at `at` with `result`.
    #[inline]
    #[must_use]
    pub const fn new(at: Nanos, result: Result<Reply, BlockError>) -> Self {
        Self { at, result }
    }

    /// Success without data.
    #[inline]
    #[must_use]
    pub const fn ok(at: Nanos) -> Self {
        Self::new(at, Ok(Reply::None))
    }
}

/// A device's answer to a submission.
#[derive(Clone, PartialEq, Debug)]
pub enum Submit {
    /// The outcome and its time are already certain.
    Done(Done),
    /// The completion will come out of `advance`.
    Pending,
}

/// A completion taken from `advance`.
#[derive(Clone, PartialEq, Debug)]
pub struct Completion {
    /// The token given at submission.
    pub token: Token,
    /// How and when it ended.
    pub done: Done,
}

/// What a device flags on its completions, a set of bits: the host is to ask for the details. The
/// flags travel with completions alone, as a result field of an NVMe completion entry does, so a device
/// without I/O notifies no host.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Attention(u8);

impl Attention {
    /// Nothing is flagged.
    pub const NONE: Self = Self(0);
    /// Migrations wait for [`Op::FetchUpcall`].
    pub const UPCALL: Self = Self(1);

    /// Whether nothing is flagged.
    #[inline]
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether every bit of `other` is set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Attention {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Anything that serves bios.
pub trait BlockDevice {
    /// What the device can do; the same throughout the device's life.
    fn caps(&self) -> &DeviceCaps;

    /// Hands over a bio at time `now`.
    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit;

    /// The next instant at which the device has something to do, if any.
    fn next_event(&self) -> Option<Nanos>;

    /// Lets the device act on everything due up to `now`; appends the completions that this brought.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// What the device flags on a completion that is delivered now. Changes nothing; the flags stay
    /// until the host has dealt with their cause. Only asked of a device whose capabilities say
    /// [`DeviceCaps::raises_attention`].
    #[inline]
    fn attention(&self) -> Attention {
        Attention::NONE
    }

    /// A hint that `lba` will be accessed some I/Os from now. Never changes any result.
    #[inline]
    fn prefetch_far(&self, _lba: crate::Lba) {}

    /// A hint that `op` on `lba` comes a few I/Os from now, [`BlockDevice::prefetch_far`] having
    /// been called a while ago. Never changes any result.
    #[inline]
    fn prefetch_near(&self, _op: Op, _lba: crate::Lba) {}
}
