//! One request of a load, and who asks.

use nandscape_block::{Flags, FlushScope, Lba, Owner};

/// Who asks, and what a barrier of theirs covers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sender {
    /// Whose data it is, when known.
    pub owner: Option<Owner>,
    /// What a flush, or PREFLUSH, covers.
    pub scope: FlushScope,
}

impl Sender {
    /// Nobody in particular.
    pub const ANONYMOUS: Self = Self { owner: None, scope: FlushScope::All };

    /// The one file that a barrier covers; `None` covers everything.
    #[must_use]
    pub fn file(&self) -> Option<(u64, u32)> {
        let scoped = self.owner.filter(|_| self.scope == FlushScope::Owner);
        scoped.map(|owner| (owner.file, owner.generation))
    }
}

/// One request, before the model gives it its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// Read so many sectors.
    Read(Lba, u32),
    /// Write so many sectors, with these flags.
    Write(Lba, u32, Flags, Sender),
    /// Discard so many sectors.
    Discard(Lba, u32),
    /// Flush what the sender asks for.
    Flush(Sender),
}

impl Request {
    /// Whether its completion promises that something is durable.
    #[must_use]
    pub fn is_barrier(&self) -> bool {
        match self {
            Self::Flush(_) => true,
            Self::Write(_, _, flags, _) => flags.has(Flags::FUA) || flags.has(Flags::PREFLUSH),
            Self::Read(..) | Self::Discard(..) => false,
        }
    }
}
