//! A coupled SSD: the device of D2FS (Kim et al., FAST '25). It collects garbage in place of the file system: a page that
//! is moved gets another address as well as another place, and the host is informed by upcalls.
//!
//! Metadata of the file system lie in a page-mapped region. Everything else is written in superblocks and mapped with
//! their granularity. Lines of the media are the zones of a [`ZonedFtl`], whose promises about power cuts they have.
//!
//! | File | Part |
//! |---|---|
//! | `config.rs`, `space.rs` | choices and sizes; regions, superblocks and logical lines |
//! | `flash.rs` | the media side: zones, what the firmware sends there, and the clock |
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
mod flash;
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

use crate::common::firmware::Walk;
use crate::error::FtlError;
use crate::kind::FtlRun;
use crate::zoned::{Extent, ZonedFtl};
use counts::Counts;
use flash::{Flash, Own, Rules, caps};
use gc::Collection;
use lines::Lines;
use nandscape_block::{
    Attention, Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Flags, Op, Submit, Token,
};
use nandscape_media::OpenChannel;
use nandscape_rt::Nanos;
use persist::Persist;
use records::Records;
use space::Space;
use upcall::{Upcalls, wants_upcall};
use write::Writes;

/// A coupled SSD on the NAND `M`.
#[derive(Debug)]
pub struct CoupledFtl<M> {
    flash: Flash<M>,
    rules: Rules,
    lines: Lines,
    records: Records,
    /// Accesses of the firmware to both that it has yet to make.
    walk: Walk,
    persist: Persist,
    writes: Writes,
    gc: Collection,
    upcalls: Upcalls,
    /// Completions not yet handed out.
    done: Vec<Completion>,
    /// Parts of a read, kept for their room.
    extents: Vec<Extent>,
    stopped: Option<BlockError>,
}

/// An error as the host has it, which knows of no zones.
fn named(error: BlockError) -> BlockError {
    match error {
        BlockError::Zone { .. } => BlockError::ReadOnly("media take no more of a line".into()),
        error => error,
    }
}

impl<M: OpenChannel> CoupledFtl<M> {
    /// A device whose lines are those of `zones`, and of which nothing is known.
    fn assemble(zones: ZonedFtl<M>, config: Config, sizes: Sizes, run: FtlRun) -> Self {
        let space = Space::new(&config, &sizes);
        let caps = DeviceCaps {
            max_sectors: zones.caps().max_sectors,
            ..caps(&config, &sizes, &space, &run)
        };
        Self {
            lines: Lines::new(space, sizes.lines * sizes.instances, sizes.line_sectors),
            records: Records::new(sizes.journal.records, run.omit),
            walk: Walk::default(),
            persist: Persist::new(sizes.journal),
            writes: Writes::default(),
            gc: Collection::new(sizes.instances),
            upcalls: Upcalls::default(),
            done: Vec::new(),
            extents: Vec::new(),
            stopped: None,
            flash: Flash::new(zones),
            rules: Rules { caps, config, run, sizes, space },
        }
    }

    /// Serves no more bios, and fails what waits.
    fn stop(&mut self, error: BlockError) {
        let error = named(error);
        let now = self.flash.now;
        let (waiting, parts) = self.persist.abandon();
        for number in parts {
            let ended = self.writes.piece_ended(number, now, Some(error.clone()), now);
            ended.into_iter().for_each(|(token, done)| self.complete(token, done));
        }
        let mut tokens = self.writes.abandon();
        tokens.extend(waiting);
        tokens.extend(self.upcalls.abandon());
        for token in tokens {
            self.complete(token, Done::new(now, Err(error.clone())));
        }
        self.stopped.get_or_insert(error);
    }

    /// Hands out a completion.
    fn complete(&mut self, token: Token, done: Done) {
        self.done
            .push(Completion { token, done: Done::new(done.at.max(self.flash.now), done.result) });
    }

    /// Handles everything that completes up to `now`, each at its time.
    fn run_until(&mut self, now: Nanos) {
        while let Some(at) = self.flash.zones.next_event().filter(|&at| at <= now) {
            self.flash.now = self.flash.now.max(at);
            self.flash.stirred = true;
            if let Err(error) = self.run_round() {
                self.stop(error.into());
            }
        }
        self.flash.now = self.flash.now.max(now);
        self.flash.zones.store.pass(now);
    }

    /// Handles what completes now, then serves what waits.
    fn run_round(&mut self) -> Result<(), FtlError> {
        let mut completions = std::mem::take(&mut self.flash.arrived);
        self.flash.zones.advance(self.flash.now, &mut completions);
        let mut ended = Ok(());
        for Completion { token, done } in completions.drain(..) {
            match Own::of(token) {
                // What follows is complete all the same.
                Some(own) => {
                    let own = self.flash.ended(&done).and_then(|()| self.own_done(own, done));
                    ended = ended.and(own);
                }
                None => {
                    let done = self.for_host(done);
                    self.done.push(Completion { token, done });
                }
            }
        }
        self.flash.arrived = completions;
        ended?;
        if self.stopped.is_none() { self.pump() } else { Ok(()) }
    }

    /// Has the media side serve a part of one of the host's bios, or change the state of a line.
    fn submit_own(&mut self, bio: Bio, own: Own) -> Result<(), FtlError> {
        match self.flash.submit_own(bio, own)? {
            Some(done) => self.own_done(own, done),
            None => Ok(()),
        }
    }

    fn own_done(&mut self, own: Own, done: Done) -> Result<(), FtlError> {
        match own {
            Own::JournalWrite => self.persist.journal_written(done),
            Own::JournalFlush => self.journal_flushed(done),
            Own::Snapshot => self.persist.snapshot_done(&mut self.flash, done),
            Own::Flush(slot) => self.flush_done(slot, done),
            Own::Piece(number) => self.piece_done(number, done),
            Own::Reset(line) => self.reset_done(line, done),
            Own::Nothing => Ok(()),
        }
    }

    /// Serves what waits, as far as it goes.
    fn pump(&mut self) -> Result<(), FtlError> {
        while std::mem::take(&mut self.flash.stirred) {
            self.pump_journal()?;
            self.pump_copying()?;
            self.pump_leaving()?;
            self.pump_writes()?;
            self.pump_upcalls();
        }
        Ok(())
    }

    fn serve(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        let random = self.rules.sizes.random_sectors;
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
        match self.flash.zones.submit(self.flash.now, bio, token) {
            Submit::Done(done) => Submit::Done(self.for_host(done)),
            Submit::Pending => Submit::Pending,
        }
    }

    /// An error at once.
    const fn refused(&self, error: BlockError) -> Submit {
        Submit::Done(Done::new(self.flash.now, Err(error)))
    }
}

impl<M: OpenChannel> BlockDevice for CoupledFtl<M> {
    fn caps(&self) -> &DeviceCaps {
        &self.rules.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.run_until(now);
        if let Some(error) = bio.check(&self.rules.caps).err().or_else(|| self.refusal(bio.op)) {
            return self.refused(error);
        }
        let is_plain = match bio.op {
            Op::Read => true,
            Op::Write => !bio.flags.has(Flags::PREFLUSH),
            _ => false,
        };
        if is_plain && self.rules.is_random(&bio) {
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
        if self.done.is_empty() { self.flash.zones.next_event() } else { Some(self.flash.now) }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run_until(now);
        done.append(&mut self.done);
    }

    fn attention(&self) -> Attention {
        let raises = self.rules.caps.raises_attention;
        if raises && wants_upcall(&self.lines, &self.records) {
            Attention::UPCALL
        } else {
            Attention::NONE
        }
    }
}
