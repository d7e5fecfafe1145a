//! A device that takes its time: each bio ends after a delay of its own, drawn from a seed, so that
//! bios end in another order than they came in. It keeps docs/semantics/device.md:
//!
//! - A write takes effect when it ends; a read shows what had taken effect when it ends.
//! - A flush, and a write with PREFLUSH before its payload, covers what had ended when it was submitted.
//! - When power goes, any part of what is under way may have happened, sector by sector.
//!
//! Rules of a test make bios slow or refuse them; a bio that is refused has no effect at all.

use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Flags, MemDevice, Op, Submit, Token,
};
use nandscape_rt::{Nanos, Stream};
use std::collections::BTreeMap;

/// What a test has to say about a bio when it is submitted.
type Rule<T> = Box<dyn FnMut(&Bio) -> T>;

/// No bio takes less.
const DELAY_MIN_NS: u64 = 1_000;

/// A bio under way.
struct Pending {
    bio: Bio,
    token: Token,
    refused: bool,
}

/// A [`MemDevice`] whose bios end late.
pub(super) struct Late {
    medium: MemDevice,
    rng: Stream,
    /// A bio that no rule slows down takes a microsecond, and less than this on top.
    pub(super) delay_ns: u64,
    /// How long a bio takes, if not as long as the seed says.
    pub(super) slow: Rule<Option<Nanos>>,
    /// Whether a bio is refused.
    pub(super) refuse: Rule<bool>,
    /// Bios under way, by their end and the order in which they came.
    due: BTreeMap<(Nanos, u64), Pending>,
    came: u64,
    gone: bool,
}

impl Late {
    pub(super) fn new(medium: MemDevice, seed: u64, delay_ns: u64) -> Self {
        Self {
            medium,
            rng: Stream::new(seed, "late"),
            delay_ns,
            slow: Box::new(|_| None),
            refuse: Box::new(|_| false),
            due: BTreeMap::new(),
            came: 0,
            gone: false,
        }
    }

    /// Takes the medium away from a device with nothing under way that matters.
    pub(super) fn take(&mut self) -> MemDevice {
        self.gone = true;
        self.due.clear();
        std::mem::replace(&mut self.medium, MemDevice::new(1))
    }

    /// The same as the power goes.
    pub(super) fn cut(&mut self) -> MemDevice {
        for (_, pending) in std::mem::take(&mut self.due) {
            if matches!(pending.bio.op, Op::Write | Op::Discard) && !pending.refused {
                self.serve(Bio { flags: Flags::NONE, ..pending.bio });
            }
        }
        self.medium.cut_power(&mut self.rng);
        self.take()
    }

    /// What comes of a bio on the medium, at once.
    fn serve(&mut self, bio: Bio) -> Done {
        match self.medium.submit(Nanos::ZERO, bio, Token(0)) {
            Submit::Done(done) => done,
            Submit::Pending => unreachable!("memory without latency"),
        }
    }

    fn delay(&mut self, bio: &Bio) -> Nanos {
        let slow = (self.slow)(bio);
        let more = if self.delay_ns == 0 { 0 } else { self.rng.below(self.delay_ns) };
        slow.unwrap_or(Nanos(DELAY_MIN_NS + more))
    }
}

impl BlockDevice for Late {
    fn caps(&self) -> &DeviceCaps {
        self.medium.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        if self.gone {
            return Submit::Done(Done::new(now, Err(BlockError::PowerLost)));
        }
        let refused = (self.refuse)(&bio);
        if !refused && (bio.op == Op::Flush || bio.flags.has(Flags::PREFLUSH)) {
            self.serve(Bio { owner: bio.owner, scope: bio.scope, ..Bio::flush() });
        }
        self.came += 1;
        let end = (now.saturating_add(self.delay(&bio)), self.came);
        self.due.insert(end, Pending { bio: without_preflush(bio), token, refused });
        Submit::Pending
    }

    fn next_event(&self) -> Option<Nanos> {
        self.due.first_key_value().map(|((end, _), _)| *end)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.next_event().is_some_and(|end| end <= now) {
            let Some((_, Pending { bio, token, refused })) = self.due.pop_first() else { return };
            let ended = match bio.op {
                _ if refused => {
                    Done::new(now, Err(BlockError::Io { lba: bio.lba, what: "refused" }))
                }
                Op::Flush => Done::ok(now),
                _ => Done { at: now, ..self.serve(bio) },
            };
            done.push(Completion { token, done: ended });
        }
    }
}

/// What is left of a bio once the flush before its payload is done.
fn without_preflush(bio: Bio) -> Bio {
    let left = [Flags::FUA, Flags::NO_DATA].into_iter().filter(|flag| bio.flags.has(*flag));
    Bio { flags: left.fold(Flags::NONE, |flags, flag| flags | flag), ..bio }
}
