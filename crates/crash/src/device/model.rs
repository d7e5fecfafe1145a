//! The reference model of a block device with a volatile cache: what every sector may show, in
//! operation and after a power cut. It shares no code with what it checks and keeps no state but
//! what the host saw.
//!
//! - A completed flush covers every write and discard acknowledged before the flush was
//!   *submitted*; with its owner's scope the discards, and of the writes those of the same file and
//!   generation. A completed write with FUA covers itself.
//! - A write with PREFLUSH covers what was acknowledged before its submission when its completion
//!   is seen, and also when its payload is visible after a power cut: what it covers is durable
//!   before its own payload is submitted.
//! - Discards are writes of zeroes.
//! - What a read returned after a recovery is durable, and its rivals never come back.
//!
//! Media may lose sectors: an injected fault makes one uncorrectable for good. What a power cut tears
//! is none of these, since no promise covers it.
//! - A read fails only at a sector of which media lost a copy, with a content that it may show. It
//!   fails rather than to show another content: zeroes, or an older version. A newer version heals it.
//! - Whatever else was covered survives, whichever sector was lost, the device's own metadata too.
//! - A copy's address lies beside it and in the end metadata of its line. A power cut that comes
//!   before these are on media, or finds them lost too, *forgets* the copy: its sector fails, or shows
//!   anything that it was given earlier. So do sectors whose discards were recorded in a lost sector.
//!
//! Contents are tags that name the request and the sector, so that a wrong content tells where it
//! came from.

use crate::device::history::{Event, FlushCoverage, History, ReadStart, Version};
use crate::device::request::Sender;
use nandscape_block::{Flags, Lba, Payload, SectorData, Tag};
use std::collections::BTreeSet;

const LBA_BITS: u32 = 32;

/// A request as the model knows it: made when it is issued, handed back when it ends.
#[derive(Clone, Copy, Debug)]
pub struct Issue {
    event: Event,
    lba: Lba,
    sectors: u32,
    covers_itself: bool,
    covers_before: Option<FlushCoverage>,
    /// What must cover it when it is acknowledged.
    kind: Kind,
}

/// Of which barriers a request is in reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A write of a file, of a generation of it.
    Owned(u64, u32),
    /// A write of nobody's.
    Ownerless,
    /// A discard: every barrier covers it.
    Discard,
    /// Changes nothing.
    Idle,
}

impl Kind {
    fn is_reached_by(self, reach: FlushCoverage) -> bool {
        match (reach, self) {
            (FlushCoverage::All, _) | (_, Self::Discard) => true,
            (FlushCoverage::File(file, generation), kind) => kind == Self::Owned(file, generation),
        }
    }
}

/// A sector that shows what it must not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The sector.
    pub lba: Lba,
    /// What it showed, and what that is.
    pub got: String,
    /// What it may show.
    pub expected: Vec<String>,
}

/// Acknowledged, not covered yet.
#[derive(Clone, Copy, Debug)]
struct Acked {
    at: Event,
    issue: Issue,
}

/// What was acknowledged between two power cuts and is not covered, in that order.
type Epoch = Vec<Acked>;

/// What happened to one sector, told by number of event.
#[derive(Clone, Debug)]
struct EventLog {
    lba: Lba,
    lines: Vec<String>,
}

/// The model; see the head of this file.
#[derive(Clone, Debug)]
pub struct Model {
    sectors: Vec<History>,
    events: Event,
    epochs: Vec<Epoch>,
    event_log: Option<EventLog>,
}

impl Model {
    /// A device of so many sectors, never written. Logs the events of `watched`.
    #[must_use]
    pub fn new(sectors: u64, watched: Option<Lba>) -> Self {
        Self {
            sectors: (0..sectors).map(|_| History::unwritten()).collect(),
            events: 0,
            // Epoch 0 is before the first request: what a fresh device shows.
            epochs: vec![Epoch::default(), Epoch::default()],
            event_log: watched.map(|lba| EventLog { lba, lines: Vec::new() }),
        }
    }

    /// Sectors of the device.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        self.sectors.len() as u64
    }

    /// What happened to the watched sector.
    #[must_use]
    pub fn event_log(&self) -> &[String] {
        self.event_log.as_ref().map_or(&[], |s| &s.lines)
    }

    /// A write is issued, with this payload.
    pub fn write(
        &mut self,
        lba: Lba,
        sectors: u32,
        flags: Flags,
        sender: Sender,
    ) -> (Issue, Payload) {
        let event = self.tick();
        let first = Tag::new(event << LBA_BITS | lba.0);
        let issue = Issue {
            event,
            lba,
            sectors,
            covers_itself: flags.has(Flags::FUA),
            covers_before: flags.has(Flags::PREFLUSH).then(|| reach(sender)),
            kind: sender.owner.map_or(Kind::Ownerless, |o| Kind::Owned(o.file, o.generation)),
        };
        self.add_versions(issue, |i| first.plus(i));
        (issue, Payload::Run(first))
    }

    /// A discard is issued.
    pub fn discard(&mut self, lba: Lba, sectors: u32) -> Issue {
        let event = self.tick();
        let issue = Issue { kind: Kind::Discard, ..Issue::idle(event, lba, sectors) };
        self.add_versions(issue, |_| Tag::ZERO);
        issue
    }

    /// A flush is issued.
    pub fn flush(&mut self, sender: Sender) -> Issue {
        let event = self.tick();
        Issue { covers_before: Some(reach(sender)), ..Issue::idle(event, Lba(0), 0) }
    }

    /// A read is issued.
    pub fn read(&mut self, lba: Lba, sectors: u32) -> Issue {
        let event = self.tick();
        Issue::idle(event, lba, sectors)
    }

    /// A write, discard or flush completed, well or with an error.
    pub fn complete(&mut self, issue: &Issue, ok: bool) {
        let at = self.tick();
        self.for_versions(issue, |v| {
            v.ended = at;
            v.acked = ok;
            v.covered |= ok && issue.covers_itself;
        });
        if ok && issue.sectors > 0 && !issue.covers_itself {
            let epoch = self.epochs.last_mut().expect("never empty");
            epoch.push(Acked { at, issue: *issue });
        }
        if let Some(reach) = issue.covers_before.filter(|_| ok) {
            self.cover(self.epoch(), issue.event, reach);
        }
    }

    /// A read completed with this payload.
    ///
    /// # Errors
    /// The first sector that shows what it must not.
    pub fn check_read(&mut self, issue: &Issue, payload: &Payload) -> Result<(), Mismatch> {
        self.tick();
        let seen: Vec<_> = self.contents(issue, payload).collect();
        self.check(issue.event, &seen)
    }

    /// Sectors and contents of a read, for [`Model::check_recovered`].
    pub fn contents<'a>(
        &self,
        issue: &Issue,
        payload: &'a Payload,
    ) -> impl Iterator<Item = (Lba, SectorData)> + use<'a> {
        let (first, sectors) = (issue.lba, issue.sectors);
        (0..sectors).map(move |i| (first.plus(u64::from(i)), payload.sector(i)))
    }

    /// Power was cut: what is in flight will never be acknowledged.
    pub fn power_cut(&mut self) {
        let at = self.tick();
        self.sectors.iter_mut().for_each(|s| s.power_cut(at));
        self.epochs.push(Epoch::default());
        self.tell(|| format!("#{at} power cut"));
    }

    /// A power cut left copies with these contents without an address; a discard's is zeroes.
    pub fn forget(&mut self, copies: &[(Lba, SectorData)]) {
        for (lba, data) in copies {
            self.sectors[lba.0 as usize].forget(data);
        }
    }

    /// Whether a read may fail at a sector of which media lost copies with these contents.
    #[must_use]
    pub fn may_fail(&self, issue: &Issue, lba: Lba, lost: &[SectorData]) -> bool {
        let since = ReadStart { event: issue.event, epoch: self.epoch() };
        let read = issue.lba..issue.lba.plus(u64::from(issue.sectors));
        read.contains(&lba) && lost.iter().any(|data| self.permits(since, lba, data))
    }

    /// After a recovery and before any new write, `seen` was read. Sectors are judged together:
    /// a PREFLUSH write that survived tells what else must have.
    ///
    /// # Errors
    /// The first sector that shows what it must not.
    pub fn check_recovered(&mut self, seen: &[(Lba, SectorData)]) -> Result<(), Mismatch> {
        let now = self.tick();
        self.check(now, seen)
    }

    /// Adds a line to the event log of the watched sector.
    pub fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(event_log) = &mut self.event_log {
            event_log.lines.push(line());
        }
    }

    /// Whether the event log covers a sector of this request, or the request concerns all sectors.
    #[must_use]
    pub fn watches(&self, issue: &Issue) -> bool {
        self.event_log.as_ref().is_some_and(|s| {
            issue.covers_before.is_some()
                || (issue.lba..issue.lba.plus(u64::from(issue.sectors))).contains(&s.lba)
        })
    }

    fn tick(&mut self) -> Event {
        self.events += 1;
        self.events
    }

    fn epoch(&self) -> u32 {
        self.epochs.len() as u32 - 1
    }

    fn add_versions(&mut self, issue: Issue, content: impl Fn(u64) -> Tag) {
        let epoch = self.epoch();
        for i in 0..u64::from(issue.sectors) {
            let version = Version::new(content(i), issue.event, epoch, issue.covers_before);
            self.sectors[(issue.lba.0 + i) as usize].push(version);
        }
    }

    fn for_versions(&mut self, issue: &Issue, mut change: impl FnMut(&mut Version)) {
        let first = issue.lba.0 as usize;
        for history in &mut self.sectors[first..first + issue.sectors as usize] {
            // Absent: void since a recovery showed another one.
            if let Some(version) = history.issued_at(issue.event) {
                change(version);
            }
        }
    }

    /// What was acknowledged in `epoch` before `before`, and is within reach, is durable. Whether
    /// that is news.
    fn cover(&mut self, epoch: u32, before: Event, reach: FlushCoverage) -> bool {
        let acked = std::mem::take(&mut self.epochs[epoch as usize]);
        let covers = |acked: &Acked| acked.at < before && acked.issue.kind.is_reached_by(reach);
        let (covered, left): (Epoch, Epoch) = acked.into_iter().partition(covers);
        self.epochs[epoch as usize] = left;
        for acked in &covered {
            self.for_versions(&acked.issue, |v| v.covered = true);
        }
        !covered.is_empty()
    }

    fn check(&mut self, since: Event, seen: &[(Lba, SectorData)]) -> Result<(), Mismatch> {
        let since = ReadStart { event: since, epoch: self.epoch() };
        self.cover_what_survivors_waited_for(since.epoch, seen);
        for (lba, data) in seen {
            if !self.permits(since, *lba, data) {
                return Err(mismatch(&self.sectors[lba.0 as usize], since, *lba, data));
            }
            let history = &mut self.sectors[lba.0 as usize];
            history.settle(since.epoch, data);
        }
        Ok(())
    }

    fn permits(&self, since: ReadStart, lba: Lba, data: &SectorData) -> bool {
        let history = &self.sectors[lba.0 as usize];
        let is_earlier = |tag, event| {
            let (writer, owner) = written_by(tag);
            tag == Tag::ZERO || (owner == lba && writer < event)
        };
        let earlier = |event| tag_of(data).is_some_and(|tag| is_earlier(tag, event));
        history.permits(since, data) || history.forgotten(since).is_some_and(earlier)
    }

    fn cover_what_survivors_waited_for(&mut self, epoch: u32, seen: &[(Lba, SectorData)]) {
        let survivor = |(lba, data): &(Lba, SectorData)| {
            self.sectors[lba.0 as usize].surviving_preflush(epoch, data)
        };
        let survivors: BTreeSet<_> = seen.iter().filter_map(survivor).collect();
        for (epoch, issued, reach) in survivors {
            if self.cover(epoch, issued, reach) {
                self.tell(|| {
                    format!("PREFLUSH write #{issued} is there: it covers {reach:?} before")
                });
            }
        }
    }
}

fn reach(sender: Sender) -> FlushCoverage {
    sender
        .file()
        .map_or(FlushCoverage::All, |(file, generation)| FlushCoverage::File(file, generation))
}

fn mismatch(history: &History, since: ReadStart, lba: Lba, data: &SectorData) -> Mismatch {
    let expected = history.permitted(since).map(Version::describe).collect();
    Mismatch { lba, got: identify(history, lba, data), expected }
}

/// The tag of a content that somebody wrote, or of zeroes.
fn tag_of(data: &SectorData) -> Option<Tag> {
    match data {
        SectorData::Tag(tag) => Some(*tag),
        data => (*data == SectorData::Tag(Tag::ZERO)).then_some(Tag::ZERO),
    }
}

/// The request that wrote a tag, and the sector that it is for.
fn written_by(tag: Tag) -> (Event, Lba) {
    (tag.bits() >> LBA_BITS, Lba(tag.bits() & ((1 << LBA_BITS) - 1)))
}

/// Names a wrong content by what its tag says.
fn identify(history: &History, lba: Lba, data: &SectorData) -> String {
    let tag = match tag_of(data) {
        Some(tag) => tag,
        None if *data == SectorData::Absent => return "no content".into(),
        None => return "torn sector: matches no write".into(),
    };
    let (writer, owner) = written_by(tag);
    match () {
        () if tag == Tag::ZERO => "zeroes".into(),
        () if owner != lba => format!("data of #{writer} for {owner} (data of another LBA)"),
        () if history.knows(data) => format!("data of #{writer} (superseded)"),
        () => format!("data of #{writer} (void: a recovery had settled on something else)"),
    }
}

impl Issue {
    /// Changes and promises nothing.
    const fn idle(event: Event, lba: Lba, sectors: u32) -> Self {
        let (covers_itself, covers_before) = (false, None);
        Self { event, lba, sectors, covers_itself, covers_before, kind: Kind::Idle }
    }

    /// Its number, as violations and stories name it.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.event
    }

    /// First sector.
    #[must_use]
    pub fn lba(&self) -> Lba {
        self.lba
    }

    /// Number of sectors.
    #[must_use]
    pub fn sectors(&self) -> u32 {
        self.sectors
    }
}
