//! The reference model of a block device with a volatile cache: what every object may show, in
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
//! What the model keeps versions of is an [`Object`]: a sector of content. Where an object lies is
//! the business of the host's view of the device (see `host`). On a device that is written at random an
//! object is an address; elsewhere it is written once, and the device may move it.
//!
//! Contents are tags that name the request and the object, so that a wrong content shows where it
//! came from.

use crate::device::history::{Durable, Event, FlushCoverage, History, ReadStart, Version};
use crate::event::{Content, EventKind, LogEvent, OBJECT_BITS};
use crate::request::Sender;
use nandscape_block::{Flags, Payload, SectorData, Tag};
use nandscape_rt::Nanos;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

/// What the model keeps versions of: one sector of content, wherever it lies. Below 2^32.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Object(pub u64);

impl Object {
    /// The object `n` further on.
    #[must_use]
    pub const fn plus(self, n: u64) -> Self {
        Self(self.0 + n)
    }

    /// This object and those after it, `count` in all.
    #[must_use]
    pub fn run(self, count: u32) -> Range<Self> {
        self..self.plus(u64::from(count))
    }
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {}", self.0)
    }
}

/// A request as the model knows it: made when it is issued, handed back when it ends.
#[derive(Clone, Copy, Debug)]
pub struct Issue {
    event: Event,
    first: Object,
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
    /// A write without a writer.
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

/// An object that shows what it must not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The object.
    pub object: Object,
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

/// What happened to one object, or all that happened.
#[derive(Clone, Debug)]
struct EventLog {
    object: Option<Object>,
    /// Whether requests for other objects are logged, too; reads as long as the load runs.
    of_all: bool,
    reads: bool,
    events: Vec<LogEvent>,
}

impl EventLog {
    const fn new(object: Option<Object>, of_all: bool) -> Self {
        Self { object, of_all, reads: false, events: Vec::new() }
    }
}

/// The model; see the head of this file.
#[derive(Clone, Debug)]
pub struct Model {
    objects: Vec<History>,
    events: Event,
    epochs: Vec<Epoch>,
    event_log: Option<EventLog>,
}

impl Model {
    /// Objects that were never written. Logs the events of `watched`.
    #[must_use]
    pub fn new(watched: Option<Object>) -> Self {
        Self {
            objects: Vec::new(),
            events: 0,
            // Epoch 0 is before the first request: what a fresh device shows.
            epochs: vec![Epoch::default(), Epoch::default()],
            event_log: watched.map(|object| EventLog::new(Some(object), false)),
        }
    }

    /// The same, with a log of all that happens, in which `watched` is the object at fault.
    pub(crate) fn with_story(watched: Option<Object>) -> Self {
        Self { event_log: Some(EventLog::new(watched, true)), ..Self::new(None) }
    }

    /// Whether the reads that follow are those of a load.
    pub(crate) fn load_runs(&mut self, runs: bool) {
        self.event_log.iter_mut().for_each(|log| log.reads = runs);
    }

    /// What happened to the watched object.
    #[must_use]
    pub fn event_log(&self) -> &[LogEvent] {
        self.event_log.as_ref().map_or(&[], |log| &log.events)
    }

    /// A write is issued, with this payload.
    pub fn write(
        &mut self,
        first: Object,
        sectors: u32,
        flags: Flags,
        sender: Sender,
    ) -> (Issue, Payload) {
        let event = self.tick();
        let tag = Tag::new(event << OBJECT_BITS | first.0);
        let issue = Issue {
            event,
            first,
            sectors,
            covers_itself: flags.has(Flags::FUA),
            covers_before: flags.has(Flags::PREFLUSH).then(|| reach(sender)),
            kind: sender.owner.map_or(Kind::Ownerless, |o| Kind::Owned(o.file, o.generation)),
        };
        self.add_versions(issue, |i| tag.plus(i));
        (issue, Payload::Run(tag))
    }

    /// A discard is issued.
    pub fn discard(&mut self, first: Object, sectors: u32) -> Issue {
        let event = self.tick();
        let issue = Issue { kind: Kind::Discard, ..Issue::idle(event, first, sectors) };
        self.add_versions(issue, |_| Tag::ZERO);
        issue
    }

    /// A flush is issued.
    pub fn flush(&mut self, sender: Sender) -> Issue {
        let event = self.tick();
        Issue { covers_before: Some(reach(sender)), ..Issue::idle(event, Object(0), 0) }
    }

    /// A read is issued.
    pub fn read(&mut self, first: Object, sectors: u32) -> Issue {
        let event = self.tick();
        Issue::idle(event, first, sectors)
    }

    /// A request is issued that neither shows nor changes content.
    pub fn inquire(&mut self) -> Issue {
        self.read(Object(0), 0)
    }

    /// A write, discard or flush completed, well or with an error.
    pub fn complete(&mut self, issue: &Issue, ok: bool) {
        let at = self.tick();
        self.for_versions(issue, |v| {
            v.ended = at;
            v.acked = ok;
            if ok && issue.covers_itself {
                v.covered = Some(Durable::Fua);
            }
        });
        if ok && issue.sectors > 0 && !issue.covers_itself {
            let epoch = self.epochs.last_mut().expect("never empty");
            epoch.push(Acked { at, issue: *issue });
        }
        if let Some(reach) = issue.covers_before.filter(|_| ok) {
            let by = if issue.sectors > 0 { Durable::Preflush } else { Durable::Flush };
            self.cover(self.epoch(), issue.event, reach, by(issue.event));
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

    /// Objects and contents of a read, for [`Model::check_recovered`].
    pub fn contents<'a>(
        &self,
        issue: &Issue,
        payload: &'a Payload,
    ) -> impl Iterator<Item = (Object, SectorData)> + use<'a> {
        let (first, sectors) = (issue.first, issue.sectors);
        (0..sectors).map(move |i| (first.plus(u64::from(i)), payload.sector(i)))
    }

    /// Power was cut: what is in flight will never be acknowledged.
    pub fn power_cut(&mut self) {
        let at = self.tick();
        self.objects.iter_mut().for_each(|s| s.power_cut(at));
        self.epochs.push(Epoch::default());
    }

    /// A power cut left copies with these contents without an address; a discard's is zeroes.
    pub fn forget(&mut self, copies: impl IntoIterator<Item = (Object, SectorData)>) {
        for (object, data) in copies {
            self.history(object).forget(&data);
        }
    }

    /// Whether a read may fail at an object of which media lost copies with these contents.
    #[must_use]
    pub fn may_fail(&self, issue: &Issue, object: Object, lost: &[SectorData]) -> bool {
        let since = ReadStart { event: issue.event, epoch: self.epoch() };
        let read = issue.first.run(issue.sectors);
        let permits =
            |history: &History| lost.iter().any(|data| permits(history, since, object, data));
        let history = self.objects.get(object.0 as usize);
        read.contains(&object) && history.map_or_else(|| permits(&History::unwritten()), permits)
    }

    /// After a recovery and before any new write, `seen` was read. Objects are judged together:
    /// a PREFLUSH write that survived implies what else must have.
    ///
    /// # Errors
    /// The first object that shows what it must not.
    pub fn check_recovered(&mut self, seen: &[(Object, SectorData)]) -> Result<(), Mismatch> {
        let now = self.tick();
        self.check(now, seen)
    }

    /// Whether an object may show `left` if power is cut now.
    ///
    /// # Errors
    /// It must not.
    pub fn check_left(&self, object: Object, left: &SectorData) -> Result<(), Mismatch> {
        let unwritten = History::unwritten();
        let history = self.objects.get(object.0 as usize).unwrap_or(&unwritten);
        let next = ReadStart { event: self.events + 1, epoch: self.epoch() + 1 };
        if permits(history, next, object, left) {
            return Ok(());
        }
        Err(mismatch(history, next, object, left))
    }

    /// Adds an event to the log of the watched object.
    pub fn log(&mut self, at: Nanos, what: impl FnOnce() -> EventKind) {
        if let Some(log) = &mut self.event_log {
            log.events.push(LogEvent { at, what: what() });
        }
    }

    /// What a read returned at the watched object, and the sector of the read that it is.
    #[must_use]
    pub fn watched_content(&self, issue: &Issue, payload: &Payload) -> Option<(u32, Content)> {
        let object = self.event_log.as_ref()?.object?;
        let sector = u32::try_from(object.0.checked_sub(issue.first.0)?).ok()?;
        let read = sector < issue.sectors;
        read.then(|| (sector, Content::of(&payload.sector(sector), object.0)))
    }

    /// Whether the event log covers this request: it has the object that is watched, or concerns all.
    #[must_use]
    pub fn watches(&self, issue: &Issue) -> bool {
        self.event_log.as_ref().is_some_and(|s| {
            let is_of = |object| issue.first.run(issue.sectors).contains(object);
            let is_logged = s.of_all && (s.reads || issue.kind != Kind::Idle);
            issue.covers_before.is_some() || is_logged || s.object.as_ref().is_some_and(is_of)
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
            self.history(issue.first.plus(i)).push(version);
        }
    }

    /// The history of an object, perhaps of one never heard of before.
    fn history(&mut self, object: Object) -> &mut History {
        let index = object.0 as usize;
        if index >= self.objects.len() {
            self.objects.resize_with(index + 1, History::unwritten);
        }
        &mut self.objects[index]
    }

    fn for_versions(&mut self, issue: &Issue, mut change: impl FnMut(&mut Version)) {
        let first = issue.first.0 as usize;
        for history in &mut self.objects[first..first + issue.sectors as usize] {
            // Absent: void since a recovery showed another one.
            if let Some(version) = history.issued_at(issue.event) {
                change(version);
            }
        }
    }

    /// What was acknowledged in `epoch` before `before`, and is within reach, is durable. Whether
    /// that is news.
    fn cover(&mut self, epoch: u32, before: Event, reach: FlushCoverage, by: Durable) -> bool {
        let acked = std::mem::take(&mut self.epochs[epoch as usize]);
        let covers = |acked: &Acked| acked.at < before && acked.issue.kind.is_reached_by(reach);
        let (covered, left): (Epoch, Epoch) = acked.into_iter().partition(covers);
        self.epochs[epoch as usize] = left;
        for acked in &covered {
            self.for_versions(&acked.issue, |v| v.covered = v.covered.or(Some(by)));
        }
        !covered.is_empty()
    }

    fn check(&mut self, since: Event, seen: &[(Object, SectorData)]) -> Result<(), Mismatch> {
        let since = ReadStart { event: since, epoch: self.epoch() };
        self.cover_what_survivors_waited_for(since.epoch, seen);
        for (object, data) in seen {
            let history = self.history(*object);
            if !permits(history, since, *object, data) {
                return Err(mismatch(history, since, *object, data));
            }
            history.settle(since.epoch, data);
        }
        Ok(())
    }

    fn cover_what_survivors_waited_for(&mut self, epoch: u32, seen: &[(Object, SectorData)]) {
        let survivor = |(object, data): &(Object, SectorData)| {
            self.objects.get(object.0 as usize)?.surviving_preflush(epoch, data)
        };
        let survivors: BTreeSet<_> = seen.iter().filter_map(survivor).collect();
        for (epoch, issued, reach) in survivors {
            if self.cover(epoch, issued, reach, Durable::Preflush(issued)) {
                // It shows in what was read last.
                let at = self.event_log().last().map_or(Nanos::ZERO, |event| event.at);
                self.log(at, || EventKind::PreflushSurvived(issued));
            }
        }
    }
}

/// Whether a read from `since` on may return `data` of an object.
fn permits(history: &History, since: ReadStart, object: Object, data: &SectorData) -> bool {
    let is_earlier = |tag, event| {
        let (writer, owner) = written_by(tag);
        tag == Tag::ZERO || (owner == object && writer < event)
    };
    let earlier = |event| tag_of(data).is_some_and(|tag| is_earlier(tag, event));
    history.permits(since, data) || history.forgotten(since).is_some_and(earlier)
}

fn reach(sender: Sender) -> FlushCoverage {
    sender
        .file()
        .map_or(FlushCoverage::All, |(file, generation)| FlushCoverage::File(file, generation))
}

fn mismatch(history: &History, since: ReadStart, object: Object, data: &SectorData) -> Mismatch {
    let expected = history.permitted(since).map(Version::describe).collect();
    Mismatch { object, got: identify(history, object, data), expected }
}

/// The tag of a content that was written, or of zeroes.
pub(crate) fn tag_of(data: &SectorData) -> Option<Tag> {
    match data {
        SectorData::Tag(tag) => Some(*tag),
        data => (*data == SectorData::Tag(Tag::ZERO)).then_some(Tag::ZERO),
    }
}

/// The number of the request that wrote a tag, and the object that it is for.
pub(crate) fn written_by(tag: Tag) -> (u64, Object) {
    (tag.bits() >> OBJECT_BITS, Object(tag.bits() & ((1 << OBJECT_BITS) - 1)))
}

/// Names a wrong content by what its tag specifies.
fn identify(history: &History, object: Object, data: &SectorData) -> String {
    match Content::of(data, object.0) {
        Content::Write(write) if history.knows(data) => format!("stale data (write #{write})"),
        Content::Write(write) => {
            format!("data of write #{write}, which an earlier recovery rolled back")
        }
        other => other.to_string(),
    }
}

impl Issue {
    /// Changes and promises nothing.
    const fn idle(event: Event, first: Object, sectors: u32) -> Self {
        let (covers_itself, covers_before) = (false, None);
        Self { event, first, sectors, covers_itself, covers_before, kind: Kind::Idle }
    }

    /// Its number, as violations and stories name it.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.event
    }

    /// First object.
    #[must_use]
    pub fn first(&self) -> Object {
        self.first
    }

    /// Number of sectors.
    #[must_use]
    pub fn sectors(&self) -> u32 {
        self.sectors
    }
}
