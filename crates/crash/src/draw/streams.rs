//! Who writes: a load's files, its journal, and the cores that it runs on. What policies of routing
//! and flush scope look at, hard cases included: overwrites without an owner, owners that write each
//! other's sectors, reused identities, stragglers of an old generation, and streams that fall silent
//! with a few entries in their buffer.

use crate::draw::family::ScenarioFamily;
use crate::draw::sample::log_uniform;
use crate::request::{Request, Sender};
use crate::settings::Settings;
use nandscape_block::{Flags, FlushScope, Lba, Owner};
use nandscape_rt::Stream;

/// What a seed chooses about the senders of a load. The default has none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Streams {
    /// Files that own the sectors of the device; 0: no owners.
    pub files: u32,
    /// Files own so many sectors in turn; 0: each owns one range.
    pub stripe_sectors: u32,
    /// Share of writes that carry the owner of their first sector.
    pub owned_percent: u32,
    /// Share of barriers that cover one file only.
    pub scoped_percent: u32,
    /// One in so many owned requests begins a new generation of its file; 0: none.
    pub reused_one_in: u32,
    /// Cores, with a thread each.
    pub cores: u32,
    /// Share of writes that go to the journal.
    pub journal_percent: u32,
    /// Sectors at the end of the device that the journal goes round in.
    pub journal_sectors: u32,
    /// After so many requests there is neither journal nor barrier, and only the last file is written
    /// by its owner; 0: never.
    pub active_ops: u32,
}

impl Streams {
    /// The senders of a load of so many requests.
    pub(crate) fn draw(family: ScenarioFamily, ops: u32, rng: &mut Stream) -> Self {
        if rng.chance(0.15) {
            return Self::default();
        }
        let idle = rng.chance(if family == ScenarioFamily::Overwrite { 0.7 } else { 0.15 });
        let journal = if idle || rng.chance(0.6) { 1 + rng.below(60) as u32 } else { 0 };
        Self {
            files: 1 + log_uniform(rng, 8) as u32,
            stripe_sectors: if rng.chance(0.5) { log_uniform(rng, 32) as u32 } else { 0 },
            owned_percent: if rng.chance(0.3) { 100 } else { 20 + rng.below(80) as u32 },
            scoped_percent: if rng.chance(0.3) { 100 } else { rng.below(100) as u32 },
            reused_one_in: if rng.chance(0.3) { 2 + log_uniform(rng, 256) as u32 } else { 0 },
            cores: 1 + rng.below(4) as u32,
            journal_percent: journal,
            journal_sectors: 1 + log_uniform(rng, 128) as u32,
            active_ops: if idle { 1 + log_uniform(rng, u64::from(ops / 4)) as u32 } else { 0 },
        }
    }
}

impl Streams {
    /// All of it, as keys and values.
    pub(crate) fn settings(&self) -> Settings {
        Settings::default()
            .with("files", self.files)
            .with("stripe_sectors", self.stripe_sectors)
            .with("owned_percent", self.owned_percent)
            .with("scoped_percent", self.scoped_percent)
            .with("reused_one_in", self.reused_one_in)
            .with("cores", self.cores)
            .with("journal_percent", self.journal_percent)
            .with("journal_sectors", self.journal_sectors)
            .with("active_requests", self.active_ops)
    }
}

/// The senders at work.
#[derive(Debug)]
pub(crate) struct Senders {
    streams: Streams,
    sectors: u64,
    generations: Vec<u32>,
    /// The file that was written last, and whether anything was.
    last: Option<u64>,
    journal_at: u64,
}

impl Senders {
    /// Of a device of so many sectors.
    pub(crate) fn new(streams: Streams, sectors: u64) -> Self {
        let generations = vec![0; streams.files as usize];
        Self { streams, sectors, generations, last: None, journal_at: 0 }
    }

    /// Gives the `number`-th request, drawn without a sender, its place in the streams.
    pub(crate) fn send(&mut self, request: Request, number: u32, rng: &mut Stream) -> Request {
        if self.streams == Streams::default() {
            return request;
        }
        let active = self.streams.active_ops == 0 || number <= self.streams.active_ops;
        match request {
            Request::Flush(_) if !active => Request::Read(Lba(0), 1),
            Request::Flush(_) => Request::Flush(self.flusher(rng)),
            Request::Write(lba, sectors, flags, _) if active => {
                self.write(lba, sectors, flags, rng)
            }
            Request::Write(lba, sectors, _, _) => {
                let sender = Sender { owner: self.background(lba, rng), ..Sender::ANONYMOUS };
                Request::Write(lba, sectors, Flags::NONE, sender)
            }
            other => other,
        }
    }

    fn write(&mut self, lba: Lba, sectors: u32, flags: Flags, rng: &mut Stream) -> Request {
        if percent(self.streams.journal_percent, rng) {
            return self.journal_write(sectors, flags, rng);
        }
        let file = self.file_of(lba);
        let owner = percent(self.streams.owned_percent, rng).then(|| self.owner(file, rng));
        if owner.is_some() {
            self.last = Some(file);
        }
        let scope = self.scope(rng);
        Request::Write(lba, sectors, flags, Sender { owner, scope })
    }

    /// A commit of the file system's, or a file's own record (iJournaling).
    fn journal_write(&mut self, sectors: u32, flags: Flags, rng: &mut Stream) -> Request {
        let length = u64::from(self.streams.journal_sectors).clamp(1, self.sectors);
        let sectors = u64::from(sectors).min(length - self.journal_at);
        let lba = Lba(self.sectors - length + self.journal_at);
        self.journal_at = (self.journal_at + sectors) % length;
        let sender = if rng.chance(0.5) { self.flusher(rng) } else { Sender::ANONYMOUS };
        Request::Write(lba, sectors as u32, flags | Flags::JOURNAL, sender)
    }

    /// Who flushes: mostly the stream that wrote last.
    fn flusher(&mut self, rng: &mut Stream) -> Sender {
        let scope = self.scope(rng);
        let known = u64::from(self.streams.files);
        let file = self.last.filter(|_| rng.chance(0.7)).unwrap_or_else(|| rng.below(known));
        let owner = (!rng.chance(0.1)).then(|| self.owner(file, rng));
        Sender { owner, scope }
    }

    fn scope(&self, rng: &mut Stream) -> FlushScope {
        let scoped = percent(self.streams.scoped_percent, rng);
        if scoped { FlushScope::Owner } else { FlushScope::All }
    }

    fn file_of(&self, lba: Lba) -> u64 {
        let files = u64::from(self.streams.files);
        match u64::from(self.streams.stripe_sectors) {
            0 => lba.0 * files / self.sectors,
            stripe => lba.0 / stripe % files,
        }
    }

    /// The owner of a file: of its present generation, or now and then of the one before.
    fn owner(&mut self, file: u64, rng: &mut Stream) -> Owner {
        let known = &mut self.generations[file as usize];
        let one_in = u64::from(self.streams.reused_one_in);
        if one_in > 0 && rng.below(one_in) == 0 {
            *known += 1;
        }
        let straggler = one_in > 0 && rng.below(8) == 0;
        let generation = known.saturating_sub(u32::from(straggler));
        let core = rng.below(u64::from(self.streams.cores.max(1))) as u16;
        Owner { file, generation, thread: core, core }
    }

    /// The stream that writes on when the others have fallen silent.
    fn background(&mut self, lba: Lba, rng: &mut Stream) -> Option<Owner> {
        let last = u64::from(self.streams.files) - 1;
        (self.file_of(lba) == last && last > 0).then(|| self.owner(last, rng))
    }
}

fn percent(share: u32, rng: &mut Stream) -> bool {
    rng.below(100) < u64::from(share)
}
