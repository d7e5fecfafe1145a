//! A coupled SSD: the device of D2FS (Kim et al., FAST '25). It collects garbage in place of the file system: a page that
//! is moved gets another address as well as another place, and the host is informed by upcalls.
//!
//! Metadata of the file system lie in a page-mapped region. Everything else is written in superblocks and mapped with
//! their granularity. Lines of the media are the zones of a [`ZonedFtl`], whose promises about power cuts they have.
//!
//! | File | Part |
//! |---|---|
//! | `config.rs`, `space.rs` | choices and sizes; regions, superblocks and logical lines |
//! | `lines.rs` | which line holds what, and what of it is valid |
//! | `records.rs` | migration records and the redirector |
//! | `journal.rs`, `snapshot.rs` | what is to be known after a power cut, as bytes |
//! | `persist.rs` | the journal on its way to media, and what waits for it; flushes |
//! | `write.rs`, `read.rs`, `discard.rs` | bios of the host |
//! | `gc.rs` | coupled garbage collection, and lines on their way back |
//! | `upcall.rs` | upcalls: signalled, fetched, completed |
//! | `recovery.rs` | making and mounting a device |
//! | `report.rs`, `check.rs` | counts and sizes; the invariants, checked the slow way |
//!
//! Invariants:
//! - *Order of a move.* Copies and their records are durable before their victim is erased: so a mount finds each page, and
//!   takes the last copy that is there for it.
//! - *Records.* An address that an open record names is not used again.
//! - *Generation.* A line counts if its zone has the generation with which the journal says that it was opened.
//! - *Completion.* An upcall is complete when the journal says so durably: its records never come back.

mod check;
pub mod config;
mod counts;
mod discard;
#[cfg(test)]
mod format_tests;
mod gc;
mod journal;
mod lines;
mod persist;
mod read;
mod records;
mod recovery;
mod report;
mod snapshot;
mod space;
mod upcall;
mod write;

pub use config::{Config, Sizes};
pub use counts::CoupledCounts;

use crate::error::FtlError;
use crate::kind::FtlRun;
use crate::zoned::{Extent, ZonedFtl};
use counts::Counts;
use gc::Collection;
use lines::Lines;
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Flags, Fua, Op, Submit,
    Superblocks, Token, UpcallSignal,
};
use nandscape_media::{HostLink, LinkTiming, OpenChannel};
use nandscape_rt::Nanos;
use persist::Persist;
use records::Records;
use space::Space;
use upcall::Upcalls;
use write::Writes;

/// What the firmware has the media side do; the token of a bio says what for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Own {
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
    const fn token(self) -> Token {
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

    const fn of(token: Token) -> Option<Self> {
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

/// A coupled SSD on the NAND `M`.
#[derive(Debug)]
pub struct CoupledFtl<M> {
    flash: ZonedFtl<M>,
    /// What the firmware's own sectors cross in place of the host's link.
    inside: HostLink,
    config: Config,
    run: FtlRun,
    sizes: Sizes,
    space: Space,
    caps: DeviceCaps,
    lines: Lines,
    records: Records,
    persist: Persist,
    writes: Writes,
    gc: Collection,
    upcalls: Upcalls,
    now: Nanos,
    /// Completions not yet handed out.
    done: Vec<Completion>,
    /// Those of the media side, on their way.
    from_flash: Vec<Completion>,
    /// Parts of a read, kept for their room.
    extents: Vec<Extent>,
    /// Something that waits may go on.
    stirred: bool,
    stopped: Option<BlockError>,
    counts: Counts,
}

/// An error as the host has it, which knows of no zones.
fn named(error: BlockError) -> BlockError {
    match error {
        BlockError::Zone { .. } => BlockError::ReadOnly("media take no more of a line".into()),
        error => error,
    }
}

/// What the device can do.
fn caps(config: &Config, sizes: &Sizes, space: &Space, run: &FtlRun) -> DeviceCaps {
    DeviceCaps {
        sectors: 8 << config.partition_bits,
        live_sectors_max: sizes.random_sectors + sizes.live_sectors,
        regions: space.regions(sizes.random_sectors),
        atomic_sectors: 1,
        fua: Fua::Honoured,
        volatile_cache: true,
        discard_sectors: 1,
        discard_zeroes: true,
        max_sectors: u32::MAX,
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

impl<M: OpenChannel> CoupledFtl<M> {
    /// A device whose lines are those of `flash`, and of which nothing is known.
    fn assemble(flash: ZonedFtl<M>, config: Config, sizes: Sizes, run: FtlRun) -> Self {
        let space = Space::new(&config, &sizes);
        Self {
            inside: HostLink::new(LinkTiming::none()),
            caps: caps(&config, &sizes, &space, &run),
            lines: Lines::new(space, sizes.lines * sizes.instances, sizes.line_sectors),
            records: Records::new(sizes.journal.records, run.omit),
            persist: Persist::new(sizes.journal),
            writes: Writes::default(),
            gc: Collection::new(sizes.instances),
            upcalls: Upcalls::default(),
            now: crate::face::Ftl::now(&flash),
            done: Vec::new(),
            from_flash: Vec::new(),
            extents: Vec::new(),
            stirred: false,
            stopped: None,
            counts: Counts::default(),
            flash,
            config,
            run,
            sizes,
            space,
        }
    }

    /// Serves no more bios, and fails what waits.
    fn stop(&mut self, error: BlockError) {
        let error = named(error);
        for token in self.abandon() {
            self.complete(token, Done::new(self.now, Err(error.clone())));
        }
        self.stopped.get_or_insert(error);
    }

    /// Everything of the host that waits here is dropped; its tokens.
    fn abandon(&mut self) -> Vec<Token> {
        let mut tokens = self.writes.abandon();
        tokens.extend(self.persist.abandon());
        tokens.extend(self.upcalls.abandon());
        tokens
    }

    /// Hands out a completion.
    fn complete(&mut self, token: Token, done: Done) {
        self.done.push(Completion { token, done: Done::new(done.at.max(self.now), done.result) });
    }

    /// Handles everything that completes up to `now`, each at its time.
    fn run_until(&mut self, now: Nanos) {
        while let Some(at) = self.flash.next_event().filter(|&at| at <= now) {
            self.now = self.now.max(at);
            self.stirred = true;
            if let Err(error) = self.run_round() {
                self.stop(error.into());
            }
        }
        self.now = self.now.max(now);
        self.flash.store.pass(now);
    }

    /// Handles what completes now, then serves what waits.
    fn run_round(&mut self) -> Result<(), FtlError> {
        let mut completions = std::mem::take(&mut self.from_flash);
        self.flash.advance(self.now, &mut completions);
        let mut ended = Ok(());
        for Completion { token, done } in completions.drain(..) {
            match Own::of(token) {
                // What follows is complete all the same.
                Some(own) => ended = ended.and(self.own_done(own, done)),
                None => {
                    let done = self.for_host(done);
                    self.done.push(Completion { token, done });
                }
            }
        }
        self.from_flash = completions;
        ended?;
        if self.stopped.is_none() { self.pump() } else { Ok(()) }
    }

    /// Has the media side serve a bio of the firmware's, or a part of one of the host's.
    fn submit_own(&mut self, bio: Bio, own: Own) -> Result<(), FtlError> {
        match self.flash.submit(self.now, bio, own.token()) {
            Submit::Done(done) => self.own_done(own, done),
            Submit::Pending => Ok(()),
        }
    }

    /// The same of a bio on the page-mapped region that crosses no link of the host's.
    fn submit_inside(&mut self, bio: Bio, own: Own) -> Result<(), FtlError> {
        match self.flash.store.submit_inside(bio, own.token(), &mut self.inside) {
            Submit::Done(done) => self.own_done(own, done),
            Submit::Pending => Ok(()),
        }
    }

    fn own_done(&mut self, own: Own, done: Done) -> Result<(), FtlError> {
        self.stirred = true;
        if done.result == Err(BlockError::PowerLost) {
            return Err(FtlError::PowerLost);
        }
        match own {
            Own::JournalWrite => self.journal_written(done),
            Own::JournalFlush => self.journal_flushed(done),
            Own::Snapshot => self.snapshot_done(done),
            Own::Flush(slot) => self.flush_done(slot, done),
            Own::Piece(number) => self.piece_done(number, done),
            Own::Reset(line) => self.reset_done(line, done),
            Own::Nothing => Ok(()),
        }
    }

    /// Serves what waits, as far as it goes.
    fn pump(&mut self) -> Result<(), FtlError> {
        while std::mem::take(&mut self.stirred) {
            self.pump_journal()?;
            self.pump_leaving()?;
            self.pump_writes()?;
            self.pump_upcalls();
        }
        Ok(())
    }

    fn serve(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        let random = self.sizes.random_sectors;
        let submit = match bio.op {
            Op::Read => Ok(self.serve_read(&bio)),
            Op::Write => self.serve_write(bio, token),
            Op::Flush => self.serve_flush(token),
            Op::Discard if bio.lba.0 < random => Ok(self.submit_as_is(bio, token)),
            Op::Discard => self.serve_discard(&bio),
            Op::FetchUpcall => Ok(self.fetch_upcall(bio.sectors)),
            Op::AwaitUpcall => Ok(self.await_upcall(token)),
            Op::CompleteUpcall(id) => self.complete_upcall(id, token),
            Op::ZoneAppend(_) | Op::Zone(..) | Op::ZoneReport => {
                Ok(self.refused(BlockError::Unsupported("zones")))
            }
        }?;
        if let Err(error) = self.pump() {
            // The bio is answered, or among what waits.
            self.stop(error.into());
        }
        Ok(submit)
    }

    /// Why no bio of this kind is served; one that takes no more data can be read.
    fn refusal(&self, op: Op) -> Option<BlockError> {
        let reads = op == Op::Read;
        self.stopped.clone().filter(|error| !(reads && matches!(error, BlockError::ReadOnly(_))))
    }

    /// The end of a bio as the host has it, which knows of no zones: where media take no more of one, the device takes no
    /// more writes.
    pub(super) fn for_host(&mut self, done: Done) -> Done {
        let Err(error @ BlockError::Zone { .. }) = done.result else { return done };
        let error = named(error);
        self.stop(error.clone());
        Done::new(done.at, Err(error))
    }

    /// Has the media side serve a bio of the host as it is.
    pub(super) fn submit_as_is(&mut self, bio: Bio, token: Token) -> Submit {
        match self.flash.submit(self.now, bio, token) {
            Submit::Done(done) => Submit::Done(self.for_host(done)),
            Submit::Pending => Submit::Pending,
        }
    }

    /// An error at once.
    const fn refused(&self, error: BlockError) -> Submit {
        Submit::Done(Done::new(self.now, Err(error)))
    }

    /// Whether a bio is of the page-mapped region, as a whole.
    const fn is_random(&self, bio: &Bio) -> bool {
        bio.lba.0 + bio.sectors as u64 <= self.sizes.random_sectors
    }
}

impl<M: OpenChannel> BlockDevice for CoupledFtl<M> {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.run_until(now);
        if let Some(error) = bio.check(&self.caps).err().or_else(|| self.refusal(bio.op)) {
            return self.refused(error);
        }
        let is_plain = match bio.op {
            Op::Read => true,
            Op::Write => !bio.flags.has(Flags::PREFLUSH),
            _ => false,
        };
        if is_plain && self.is_random(&bio) {
            return self.submit_as_is(bio, token);
        }
        match self.serve(bio, token) {
            Ok(submit) => submit,
            Err(error) => {
                let error = named(error.into());
                self.stop(error.clone());
                self.refused(error)
            }
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        if self.done.is_empty() { self.flash.next_event() } else { Some(self.now) }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run_until(now);
        done.append(&mut self.done);
    }

    fn attention(&self) -> nandscape_block::Attention {
        self.signals()
    }
}
