//! The versions that one sector has had, and which of them it may show.
//!
//! Versions are ordered only when one had ended before the next was issued; requests that overlap
//! in flight have no order, and either may win. From that single relation follow both rules of the
//! crash model ("The crash model" in DESIGN.md):
//! - in operation a read returns the newest version acknowledged before the read was issued, or
//!   one that is not ordered before it;
//! - after a power cut a sector shows its last covered version, or one not ordered before it.
//!
//! A version that is forgotten (see the model) gives way to any earlier content.

use nandscape_block::{SectorData, Tag};
use std::fmt;

/// A moment of the model: its events are numbered in the order in which the host saw them.
pub(crate) type Event = u64;

const IN_FLIGHT: Event = Event::MAX;

/// What a barrier covers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum FlushCoverage {
    /// Everything.
    All,
    /// Discards, and what was written for this file.
    File(u64, u32),
}

/// Why a version is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Durable {
    /// The sector was never written.
    Unwritten,
    /// A completed flush covers it.
    Flush(Event),
    /// A write with PREFLUSH covers it, which completed or survived a power cut.
    Preflush(Event),
    /// Its own FUA.
    Fua,
    /// A read after a recovery returned it.
    Recovered,
}

impl fmt::Display for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unwritten => f.write_str("never written"),
            Self::Flush(event) => write!(f, "durable since flush #{event}"),
            Self::Preflush(event) => write!(f, "durable since preflush write #{event}"),
            Self::Fua => f.write_str("durable by FUA"),
            Self::Recovered => f.write_str("durable: read after a recovery"),
        }
    }
}

/// One content that a request gave a sector.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    pub(crate) content: Tag,
    pub(crate) issued: Event,
    /// When it completed, well or not, or when power was cut.
    pub(crate) ended: Event,
    /// Time between two power cuts in which it was issued.
    pub(crate) epoch: u32,
    pub(crate) acked: bool,
    /// What promised that it is durable.
    pub(crate) covered: Option<Durable>,
    /// Media lost a copy of it, and a power cut that copy's address.
    pub(crate) forgotten: bool,
    /// Its request carried PREFLUSH, and so it covers this much.
    pub(crate) preflush: Option<FlushCoverage>,
}

impl Version {
    pub(crate) fn new(
        content: Tag,
        issued: Event,
        epoch: u32,
        preflush: Option<FlushCoverage>,
    ) -> Self {
        let (ended, acked, covered, forgotten) = (IN_FLIGHT, false, None, false);
        Self { content, issued, ended, epoch, acked, covered, forgotten, preflush }
    }

    fn shows_as(&self, data: &SectorData) -> bool {
        match data {
            SectorData::Tag(tag) => *tag == self.content,
            other => SectorData::Tag(self.content) == *other,
        }
    }

    /// For a violation's list of what was expected.
    pub(crate) fn describe(&self) -> String {
        let promise = match (self.covered, self.ended == IN_FLIGHT, self.acked) {
            _ if self.forgotten => "its copy was lost, so older data may come back".to_owned(),
            (Some(Durable::Unwritten), ..) => return "zeroes (never written)".to_owned(),
            (Some(durable), ..) => durable.to_string(),
            (_, true, _) => "in flight".to_owned(),
            (_, _, true) => "completed, not flushed".to_owned(),
            _ => "not completed".to_owned(),
        };
        match self.content == Tag::ZERO {
            true => format!("zeroes of discard #{} ({promise})", self.issued),
            false => format!("write #{} ({promise})", self.issued),
        }
    }
}

/// When a read was issued: what it must have seen follows from that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadStart {
    pub(crate) event: Event,
    pub(crate) epoch: u32,
}

/// All versions of a sector that it may still show, and those lately superseded, in issue order.
#[derive(Clone, Debug)]
pub(crate) struct History(Vec<Version>);

impl History {
    /// A sector never written: zeroes, durable.
    pub(crate) fn unwritten() -> Self {
        let ended = Version { ended: 0, acked: true, ..Version::new(Tag::ZERO, 0, 0, None) };
        Self(vec![Version { covered: Some(Durable::Unwritten), ..ended }])
    }

    pub(crate) fn push(&mut self, version: Version) {
        self.0.push(version);
    }

    pub(crate) fn issued_at(&mut self, issued: Event) -> Option<&mut Version> {
        self.0.iter_mut().rev().find(|v| v.issued == issued)
    }

    /// Ends what is in flight.
    pub(crate) fn power_cut(&mut self, event: Event) {
        for version in self.0.iter_mut().filter(|v| v.ended == IN_FLIGHT) {
            version.ended = event;
        }
    }

    /// Issue of the newest version that a read from `since` on must take into account: of earlier
    /// epochs what was covered, of this one what was acknowledged.
    fn floor(&self, since: ReadStart) -> Event {
        let counts = |v: &&Version| {
            if v.epoch < since.epoch {
                v.covered.is_some()
            } else {
                v.acked && v.ended < since.event
            }
        };
        self.0.iter().filter(counts).map(|v| v.issued).max().unwrap_or(0)
    }

    /// What a read from `since` on may return.
    pub(crate) fn permitted(&self, since: ReadStart) -> impl Iterator<Item = &Version> {
        let floor = self.floor(since);
        self.0.iter().filter(move |v| v.ended >= floor)
    }

    pub(crate) fn permits(&self, since: ReadStart, data: &SectorData) -> bool {
        self.permitted(since).any(|v| v.shows_as(data))
    }

    /// The versions with this content lose a copy and its address.
    pub(crate) fn forget(&mut self, data: &SectorData) {
        self.0.iter_mut().filter(|v| v.shows_as(data)).for_each(|v| v.forgotten = true);
    }

    /// When the last of the versions ended that a read from `since` on may return and that are forgotten: what
    /// was issued before that is earlier, or overlapped and may have been the earlier one.
    pub(crate) fn forgotten(&self, since: ReadStart) -> Option<Event> {
        self.permitted(since).filter(|v| v.forgotten).map(|v| v.ended).max()
    }

    /// Whether the content is known but superseded.
    pub(crate) fn knows(&self, data: &SectorData) -> bool {
        self.0.iter().any(|v| v.shows_as(data))
    }

    /// The version with PREFLUSH from before the last power cut that `data` shows, if any: epoch,
    /// issue, and what it covers.
    pub(crate) fn surviving_preflush(
        &self,
        epoch: u32,
        data: &SectorData,
    ) -> Option<(u32, Event, FlushCoverage)> {
        let survives = |v: &&Version| v.epoch < epoch && v.shows_as(data);
        let survivor = self.0.iter().filter(|v| v.preflush.is_some()).find(survives)?;
        Some((survivor.epoch, survivor.issued, survivor.preflush?))
    }

    /// A read returned `data`. If that must come from before the last power cut, it is what the
    /// recovery settled on: durable, and its rivals of that time are void for ever.
    pub(crate) fn settle(&mut self, epoch: u32, data: &SectorData) {
        if self.0.iter().any(|v| v.epoch == epoch && v.shows_as(data)) {
            return;
        }
        let Some(shown) = self.0.iter().rposition(|v| v.shows_as(data)) else { return };
        self.0[shown].covered.get_or_insert(Durable::Recovered);
        let issued = self.0[shown].issued;
        self.0.retain(|v| v.epoch == epoch || v.issued == issued);
    }
}
