//! The media side as the firmware has it: zones, with a page-mapped region before them, what the firmware sends there,
//! and the clock. And what never changes after a device was put together.

use super::config::{Config, Sizes};
use super::counts::Counts;
use super::space::Space;
use crate::common::firmware::Walk;
use crate::error::FtlError;
use crate::face::Ftl;
use crate::kind::{FtlRun, OmittedRule};
use crate::zoned::ZonedFtl;
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Fua, Lba, Submit, Superblocks,
    Token, UpcallSignal,
};
use nandscape_media::{HostLink, LinkTiming, OpenChannel};
use nandscape_rt::Nanos;

/// Configuration and sizes.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) config: Config,
    pub(super) run: FtlRun,
    pub(super) sizes: Sizes,
    pub(super) space: Space,
    pub(super) caps: DeviceCaps,
}

impl Rules {
    /// Whether a bio is of the page-mapped region, as a whole.
    #[inline]
    pub(super) const fn is_random(&self, bio: &Bio) -> bool {
        bio.lba.0 + bio.sectors as u64 <= self.sizes.random_sectors
    }

    /// Whether flushes of the host, and its bios with PREFLUSH, cover the journal.
    #[inline]
    pub(super) fn covers_journal(&self) -> bool {
        !self.run.omits(OmittedRule::LostTrims)
    }

    /// The first address after one outside of the regions that is in one, or the end of the address space.
    pub(super) fn next_region(&self, lba: Lba) -> Lba {
        let starts = self.caps.regions.iter().map(|region| region.range.start);
        Lba(starts.filter(|&start| start > lba.0).min().unwrap_or(self.caps.sectors))
    }
}

/// What the device can do.
pub(super) fn caps(config: &Config, sizes: &Sizes, space: &Space, run: &FtlRun) -> DeviceCaps {
    DeviceCaps {
        sectors: 8 << config.partition_bits,
        live_sectors_max: sizes.random_sectors + sizes.live_sectors,
        regions: space.regions(sizes.random_sectors),
        atomic_sectors: 1,
        fua: Fua::Honoured,
        volatile_cache: true,
        discard_sectors: 1,
        discard_zeroes: true,
        keeps_content: run.keep_content,
        raises_attention: config.upcall == UpcallSignal::Piggyback,
        upcall_signal: config.upcall,
        superblocks: Some(Superblocks {
            sectors: sizes.superblock_sectors(),
            open_max: config.open_max,
        }),
        ..DeviceCaps::default()
    }
}

/// What the firmware has the media side do; the token of a bio says what for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Own {
    /// A sector of the journal.
    JournalWrite,
    /// The flush that makes the journal durable.
    JournalFlush,
    /// A part of a snapshot, or the flush that follows.
    Snapshot,
    /// A flush of the host, in this slot.
    Flush(u32),
    /// A part of a write, with this number.
    Piece(u32),
    /// The erase of a line.
    Reset(u32),
    /// Nothing waits for it.
    Nothing,
}

/// Tokens of the firmware have this bit, which those of hosts do not.
const OWN: u64 = 1 << 63;

impl Own {
    pub(super) const fn token(self) -> Token {
        let (kind, number) = match self {
            Self::JournalWrite => (0, 0),
            Self::JournalFlush => (1, 0),
            Self::Snapshot => (2, 0),
            Self::Flush(slot) => (3, slot),
            Self::Piece(number) => (4, number),
            Self::Reset(line) => (5, line),
            Self::Nothing => (6, 0),
        };
        Token(OWN | kind << 32 | number as u64)
    }

    pub(super) const fn of(token: Token) -> Option<Self> {
        if token.0 & OWN == 0 {
            return None;
        }
        let number = token.0 as u32;
        Some(match token.0 >> 32 & 0xff {
            0 => Self::JournalWrite,
            1 => Self::JournalFlush,
            2 => Self::Snapshot,
            3 => Self::Flush(number),
            4 => Self::Piece(number),
            5 => Self::Reset(number),
            _ => Self::Nothing,
        })
    }
}

/// Zones, and what the firmware has in flight there.
#[derive(Debug)]
pub(super) struct Flash<M> {
    pub(super) zones: ZonedFtl<M>,
    /// What the firmware's own sectors cross in place of the host's link.
    pub(super) inside: HostLink,
    pub(super) now: Nanos,
    /// Completions on their way.
    pub(super) arrived: Vec<Completion>,
    /// Something that waits may go on.
    pub(super) stirred: bool,
    pub(super) counts: Counts,
}

impl<M: OpenChannel> Flash<M> {
    /// Nothing is in flight.
    pub(super) fn new(zones: ZonedFtl<M>) -> Self {
        Self {
            inside: HostLink::new(LinkTiming::none()),
            now: zones.now(),
            arrived: Vec::new(),
            stirred: false,
            counts: Counts::default(),
            zones,
        }
    }

    /// Has the firmware make the accesses of a walk, the way of which ends here.
    #[inline]
    pub(super) fn access(&mut self, walk: &mut Walk) -> Nanos {
        walk.leave();
        self.zones.store.access(walk)
    }

    /// Whether a flush, the host's or one of the firmware's own, has nothing programmed, and waits until all units are idle.
    #[inline]
    pub(super) fn waits_for_idle(&self) -> bool {
        self.zones.store.waits_for_idle()
    }

    /// Has the zones serve a bio of the firmware's, or a part of one of the host's; its end, if that is known.
    pub(super) fn submit_own(&mut self, bio: Bio, own: Own) -> Result<Option<Done>, FtlError> {
        let submit = self.zones.submit(self.now, bio, own.token());
        self.submitted(submit)
    }

    /// The same of a bio on the page-mapped region that crosses no link of the host's.
    pub(super) fn submit_inside(&mut self, bio: Bio, own: Own) -> Result<Option<Done>, FtlError> {
        let submit = self.zones.store.submit_inside(bio, own.token(), &mut self.inside);
        self.submitted(submit)
    }

    fn submitted(&mut self, submit: Submit) -> Result<Option<Done>, FtlError> {
        match submit {
            Submit::Done(done) => {
                self.ended(&done)?;
                Ok(Some(done))
            }
            Submit::Pending => Ok(None),
        }
    }

    /// Something that the firmware sent has ended: what waits may go on.
    pub(super) fn ended(&mut self, done: &Done) -> Result<(), FtlError> {
        self.stirred = true;
        if done.result == Err(BlockError::PowerLost) { Err(FtlError::PowerLost) } else { Ok(()) }
    }
}
