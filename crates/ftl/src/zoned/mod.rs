//! A zoned SSD: firmware on bare NAND that serves zones (NVMe Zoned Namespace command set 1.1), with an optional
//! page-mapped region before them. Zones lie as NVMeVirt has them (FAST '23, `zns_ftl.c`), with the promises of the
//! crash model in place of its silence about power cuts.
//!
//! | File | Part |
//! |---|---|
//! | `config.rs`, `shape.rs`, `rules.rs` | choices, and the sizes and places that follow |
//! | `front.rs` | the page-mapped region, which is a [`crate::DeviceFtl`] |
//! | `zone.rs`, `units.rs` | zones and the pages in their buffers; chunks of the parallel units |
//! | `port.rs`, `flush.rs` | bios to the zones, in order per zone; what waits for durability |
//! | `store.rs` | the zones on media: the owner of everything below but bios |
//! | `admit.rs`, `program.rs` | writes into the buffers; programs and erases, and what happens when one fails |
//! | `reset.rs`, `read.rs` | resets and finished zones; reads |
//! | `oob.rs` | out-of-band data of pages and records |
//! | `cover.rs` | what is durable of a zone |
//! | `savelog.rs` | pages that are partly filled; saving the buffers when power fails |
//! | `recovery/` | mounting what a power cut left |
//! | `inside.rs` | the zones as other firmware uses them |
//! | `report.rs` | counts and sizes |
//! | `check.rs`, `shadow.rs` | the invariants, checked the slow way; and durability, kept a second time |
//!
//! Invariants:
//! - *Prefix.* After a power cut a zone holds a prefix of what was written since its last reset, in whole units of the
//!   write granularity, and zeroes from there on. Everything that a flush or FUA covered is in it.
//! - *Generation.* Every page on media carries the number of the time between two resets in which it was written.
//!   The content of a sector never changes within one, so copies need no order among themselves.
//! - *First sector.* A zone holds something on media only if its first sector is there. So a reset is durable
//!   with one command: the erase of the chunk that holds it, or, where the save log may hold it too, a record.
//! - *Places.* A page's place follows from its address. A page that is partly filled cannot be programmed there;
//!   a flush writes its sectors to the save log, which is read by nothing but a mount.

mod admit;
mod check;
pub mod config;
mod counts;
mod cover;
mod flush;
mod front;
mod inside;
mod oob;
mod port;
mod program;
mod read;
mod recovery;
mod report;
mod reset;
mod rules;
mod savelog;
mod shadow;
mod shape;
mod store;
mod units;
mod zone;

pub(crate) use read::Extent;
pub(crate) use store::Store;

pub use config::{Config, Sizes, ZoneConfig};
pub use counts::{ZoneCounts, ZonedCounts};

use crate::error::FtlError;
use crate::kind::FtlRun;
use flush::Waiters;
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Lba, Op, Reply, Submit, Token,
};
use nandscape_media::{LinkTiming, OpenChannel};
use nandscape_rt::Nanos;
use std::collections::BTreeSet;

/// A zoned SSD on the NAND `M`.
#[derive(Debug)]
pub struct ZonedFtl<M> {
    pub(crate) store: Store<M>,
    /// Zones on which something waits.
    waiting: BTreeSet<u32>,
    waiters: Waiters,
    /// Completions not yet handed out.
    done: Vec<Completion>,
    /// Those of the page-mapped region, on their way.
    from_front: Vec<Completion>,
    stopped: Option<BlockError>,
}

impl<M: OpenChannel> ZonedFtl<M> {
    /// Makes a fresh device on `media`, below a link with this timing, beginning at time zero.
    ///
    /// # Errors
    /// The choice that does not fit the geometry, too many bad chunks, or that power went off.
    pub fn format(
        media: M,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
    ) -> Result<Self, FtlError> {
        Ok(Self::serving(Store::format(media, config, run, link)?))
    }

    /// Mounts what is on `media`, below a link with this timing, beginning at `now`.
    ///
    /// # Errors
    /// The media comes back with the reason: power went off again, the choices do not fit, or the media holds
    /// something else.
    pub fn recover(
        media: M,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        Ok(Self::serving(Store::recover(media, config, run, link, now)?))
    }

    /// The device of these zones, on which nothing waits.
    fn serving(store: Store<M>) -> Self {
        Self {
            store,
            waiting: BTreeSet::new(),
            waiters: Waiters::default(),
            done: Vec::new(),
            from_front: Vec::new(),
            stopped: None,
        }
    }

    /// Serves no more bios, and fails what waits.
    fn stop(&mut self, error: BlockError) {
        for token in self.abandon() {
            let done = Done::new(self.store.now, Err(error.clone()));
            self.done.push(Completion { token, done });
        }
        self.stopped.get_or_insert(error);
    }

    /// Everything that waits is dropped; its tokens.
    fn abandon(&mut self) -> Vec<Token> {
        let mut tokens = self.waiters.abandon();
        for zone in std::mem::take(&mut self.waiting) {
            tokens.extend(
                self.store.zones.get_mut(zone).queue.drain(..).map(|request| request.token),
            );
        }
        tokens
    }

    /// When the first of both parts has something to do.
    #[inline]
    fn next_at(&self) -> Option<Nanos> {
        match (self.store.front.next_event(), self.store.events.next_at()) {
            (Some(front), Some(zones)) => Some(front.min(zones)),
            (front, zones) => front.or(zones),
        }
    }

    /// Handles everything that completes up to `now`, each at its time.
    fn run_until(&mut self, now: Nanos) {
        while let Some(at) = self.next_at().filter(|&at| at <= now) {
            self.store.now = self.store.now.max(at);
            if let Err(error) = self.run_round() {
                self.stop(error.into());
            }
        }
        self.store.now = self.store.now.max(now);
    }

    /// Handles what completes now, then serves what waits.
    fn run_round(&mut self) -> Result<(), FtlError> {
        self.advance_front();
        let last = self.store.events.last();
        while let Some((_, event)) = self.store.events.pop_due(self.store.now, last) {
            self.store.completed(event)?;
        }
        if self.stopped.is_none() { self.pump() } else { Ok(()) }
    }

    /// Takes what the page-mapped region completed.
    fn advance_front(&mut self) {
        if self.store.front.next_event().is_none_or(|at| at > self.store.now) {
            return;
        }
        let mut completions = std::mem::take(&mut self.from_front);
        self.store.front.advance(self.store.now, &mut completions);
        for completion in completions.drain(..) {
            if !self.waiters.front_completed(&completion) {
                self.done.push(completion);
            }
        }
        self.from_front = completions;
    }

    /// Serves a bio that is fit for the device.
    fn serve(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        let submit = self.serve_one(bio, token)?;
        if std::mem::take(&mut self.store.stirred) {
            self.pump()?;
        }
        Ok(submit)
    }

    fn serve_one(&mut self, bio: Bio, token: Token) -> Result<Submit, FtlError> {
        let random = self.store.rules.sizes.random_sectors;
        match bio.op {
            Op::Read => Ok(self.store.read(bio, token)),
            Op::Flush => self.flush(token),
            Op::Write if bio.lba.0 >= random => self.write_zone(bio, token),
            Op::Write => self.write_random(bio, token),
            Op::ZoneAppend(_) => self.write_zone(bio, token),
            Op::Zone(zone, action) => self.manage(zone, action, bio, token),
            Op::ZoneReport => {
                let infos = self.store.table.report(bio.lba, bio.sectors);
                let at = self.store.front.link().command(self.store.now);
                Ok(Submit::Done(Done::new(at, Ok(Reply::Zones(infos)))))
            }
            Op::Discard if bio.lba.0 + u64::from(bio.sectors) <= random => {
                Ok(self.store.submit_to_front(bio, token))
            }
            Op::Discard => Ok(self.store.refused(BlockError::Unsupported("discards of zones"))),
            Op::FetchUpcall | Op::AwaitUpcall | Op::CompleteUpcall(_) => {
                Ok(self.store.refused(BlockError::Unsupported("upcalls")))
            }
        }
    }
}

impl<M: OpenChannel> BlockDevice for ZonedFtl<M> {
    fn caps(&self) -> &DeviceCaps {
        &self.store.rules.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.run_until(now);
        if let Some(error) =
            bio.check(&self.store.rules.caps).err().or_else(|| self.stopped.clone())
        {
            return self.store.refused(error);
        }
        match self.serve(bio, token) {
            Ok(submit) => submit,
            Err(error) => {
                let error = BlockError::from(error);
                self.stop(error.clone());
                self.store.refused(error)
            }
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        if self.done.is_empty() { self.next_at() } else { Some(self.store.now) }
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.run_until(now);
        done.append(&mut self.done);
    }

    #[inline]
    fn prefetch_far(&self, lba: Lba) {
        if let Some(pages) =
            self.store.front.pages().filter(|_| lba.0 < self.store.rules.sizes.random_sectors)
        {
            pages.prefetch_far(lba);
        }
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        if let Some(pages) =
            self.store.front.pages().filter(|_| lba.0 < self.store.rules.sizes.random_sectors)
        {
            pages.prefetch_near(op, lba);
        }
    }
}
