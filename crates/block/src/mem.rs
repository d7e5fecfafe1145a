//! The reference device: sectors in memory, a volatile cache, and nothing else. Not fast, but
//! obviously right; other devices and their checkers are compared with it.
//!
//! - A bio takes effect when it is submitted and completes a fixed latency later.
//! - A write is a new version of its sectors. Until a flush covers it, or if it was FUA, a power cut
//!   may leave any version of a sector from the last durable one on, each sector for itself.
//! - A discard is a write of zeroes.

use crate::address::Lba;
use crate::bio::{Bio, Flags, FlushScope, Op, Owner};
use crate::caps::DeviceCaps;
use crate::device::{BlockDevice, Completion, Done, Reply, Submit, Token};
use crate::error::BlockError;
use crate::payload::{Payload, SectorData};
use crate::tag::Tag;
use nandscape_rt::{Nanos, Stream};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// What a sector held after one of the writes that no flush has covered.
struct Version {
    data: SectorData,
    file: Option<(u64, u32)>,
}

/// Sectors in memory behind a volatile cache.
pub struct MemDevice {
    caps: DeviceCaps,
    latency: Nanos,
    durable: BTreeMap<u64, SectorData>,
    /// The versions of each sector since it was last durable, oldest first.
    unflushed: BTreeMap<u64, Vec<Version>>,
    in_flight: VecDeque<Completion>,
}

impl MemDevice {
    /// A device of this many sectors that honours FUA and discards, answers at once, and reads as
    /// zeroes.
    #[must_use]
    pub fn new(sectors: u64) -> Self {
        Self::with_caps(DeviceCaps {
            scoped_flush: true,
            max_sectors: 256,
            ..DeviceCaps::conventional(sectors)
        })
    }

    /// A device with these capabilities, but all of it writable at random: zones and upcalls are refused.
    #[must_use]
    pub fn with_caps(caps: DeviceCaps) -> Self {
        let (regions, raises_attention) = (Box::default(), false);
        let caps = DeviceCaps { regions, raises_attention, ..caps };
        Self {
            caps,
            latency: Nanos::ZERO,
            durable: BTreeMap::new(),
            unflushed: BTreeMap::new(),
            in_flight: VecDeque::new(),
        }
    }

    /// The same device, answering every bio this much later.
    #[must_use]
    pub fn with_latency(self, latency: Nanos) -> Self {
        Self { latency, ..self }
    }

    /// What the sector reads as now.
    #[must_use]
    pub fn current(&self, lba: Lba) -> SectorData {
        match self.unflushed.get(&lba.0).and_then(|versions| versions.last()) {
            Some(version) => version.data.clone(),
            None => self.durable(lba),
        }
    }

    /// What the sector holds for sure after a power cut that spares nothing volatile.
    #[must_use]
    pub fn durable(&self, lba: Lba) -> SectorData {
        match self.durable.get(&lba.0) {
            Some(data) => data.clone(),
            None if self.caps.keeps_content => SectorData::Tag(Tag::ZERO),
            None => SectorData::Absent,
        }
    }

    /// Power goes and comes back: each sector keeps its durable version or any later one, bios in
    /// flight end with [`BlockError::PowerLost`].
    pub fn cut_power(&mut self, rng: &mut Stream) {
        for (lba, mut versions) in std::mem::take(&mut self.unflushed) {
            let kept = rng.below(versions.len() as u64 + 1) as usize;
            versions.truncate(kept);
            self.settle(lba, versions.pop());
        }
        for lost in &mut self.in_flight {
            lost.done.result = Err(BlockError::PowerLost);
        }
    }

    /// Makes the sectors of a range read as zeroes, without a bio.
    pub(crate) fn clear(&mut self, range: Range<u64>) {
        self.durable.extract_if(range.clone(), |_, _| true).for_each(drop);
        self.unflushed.extract_if(range, |_, _| true).for_each(drop);
    }

    /// Makes durable the sectors of a range as they read now.
    pub(crate) fn make_durable(&mut self, range: Range<u64>) {
        let flushed: Vec<_> = self.unflushed.extract_if(range, |_, _| true).collect();
        for (lba, mut versions) in flushed {
            self.settle(lba, versions.pop());
        }
    }

    /// The sectors of a range whose current content no flush has covered.
    pub(crate) fn unflushed(&self, range: Range<u64>) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.unflushed.range(range).map(|(&lba, _)| lba)
    }

    /// The sectors of a range that are durable with data, and were not written since.
    pub(crate) fn settled(&self, range: Range<u64>) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let settled = |lba: &u64| !self.unflushed.contains_key(lba);
        self.durable.range(range).map(|(&lba, _)| lba).filter(settled)
    }

    /// Whether a sector holds or may come to hold anything but zeroes.
    pub(crate) fn is_used(&self, lba: u64) -> bool {
        self.durable.contains_key(&lba) || self.unflushed.contains_key(&lba)
    }

    /// Whether a sector reads as anything but zeroes; never without content.
    pub(crate) fn is_live(&self, lba: u64) -> bool {
        !matches!(self.current(Lba(lba)), SectorData::Tag(Tag::ZERO) | SectorData::Absent)
    }

    /// The number of sectors of a range that read as anything but zeroes.
    pub(crate) fn live(&self, range: Range<u64>) -> u64 {
        let written = self.unflushed(range.clone()).filter(|&lba| self.is_live(lba)).count();
        (self.settled(range).count() + written) as u64
    }

    /// Moves what is durable of a sector to an unused one.
    pub(crate) fn relocate(&mut self, old: u64, new: u64) {
        if let Some(data) = self.durable.remove(&old) {
            self.durable.insert(new, data);
        }
    }

    fn settle(&mut self, lba: u64, version: Option<Version>) {
        match version.map(|version| version.data) {
            None => {}
            Some(SectorData::Tag(Tag::ZERO) | SectorData::Absent) => {
                self.durable.remove(&lba);
            }
            Some(data) => {
                self.durable.insert(lba, data);
            }
        }
    }

    fn serve(&mut self, bio: &Bio) -> Result<Reply, BlockError> {
        bio.check(&self.caps)?;
        if bio.op == Op::Flush || bio.flags.has(Flags::PREFLUSH) {
            self.flush(bio);
        }
        match bio.op {
            Op::Read => return Ok(self.read(bio)),
            Op::Write => self.write(bio, |index| bio.payload.sector(index)),
            Op::Discard => self.write(bio, |_| SectorData::Tag(Tag::ZERO)),
            Op::Flush => {}
            _ => return Err(BlockError::Unsupported("zones and upcalls")),
        }
        Ok(Reply::None)
    }

    fn read(&self, bio: &Bio) -> Reply {
        if bio.flags.has(Flags::NO_DATA) {
            return Reply::None;
        }
        let sectors = sectors(bio).map(|lba| self.current(Lba(lba)));
        Reply::Data(Payload::collect(sectors.collect()))
    }

    fn write(&mut self, bio: &Bio, data: impl Fn(u32) -> SectorData) {
        let lasting = bio.flags.has(Flags::FUA) || !self.caps.volatile_cache;
        for (lba, index) in sectors(bio).zip(0..) {
            let data = if self.caps.keeps_content { data(index) } else { SectorData::Absent };
            let version = Version { data, file: bio.owner.map(file) };
            if lasting {
                self.unflushed.remove(&lba);
                self.settle(lba, Some(version));
            } else {
                self.unflushed.entry(lba).or_default().push(version);
            }
        }
    }

    /// Makes durable what the flush covers; of a sector in which only older versions are covered,
    /// the newest.
    fn flush(&mut self, bio: &Bio) {
        let scope = match bio.scope {
            FlushScope::Owner if self.caps.scoped_flush => bio.owner.map(file),
            _ => None,
        };
        let covered = |version: &Version| scope.is_none() || version.file == scope;
        let flushed: Vec<_> =
            self.unflushed.extract_if(.., |_, versions| versions.iter().any(covered)).collect();
        for (lba, mut versions) in flushed {
            self.settle(lba, versions.pop());
        }
    }
}

/// The identity by which a scoped flush knows a file's data.
fn file(owner: Owner) -> (u64, u32) {
    (owner.file, owner.generation)
}

/// The sectors of a bio that was checked.
fn sectors(bio: &Bio) -> Range<u64> {
    bio.lba.0..bio.lba.0 + u64::from(bio.sectors)
}

impl BlockDevice for MemDevice {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        let done = Done::new(now.saturating_add(self.latency), self.serve(&bio));
        if self.latency == Nanos::ZERO {
            return Submit::Done(done);
        }
        self.in_flight.push_back(Completion { token, done });
        Submit::Pending
    }

    fn next_event(&self) -> Option<Nanos> {
        self.in_flight.front().map(|completion| completion.done.at)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(mut completion) = self.in_flight.pop_front_if(|next| next.done.at <= now) {
            completion.done.at = completion.done.at.max(now);
            done.push(completion);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner { file: 7, generation: 1, thread: 0, core: 0 };

    fn write(lba: u64, tag: u64) -> Bio {
        Bio::write(Lba(lba), 1, Payload::Run(Tag::new(tag)))
    }

    /// Submits at time zero to a device without latency.
    fn act(device: &mut MemDevice, bio: Bio) -> Result<Reply, BlockError> {
        match device.submit(Nanos::ZERO, bio, Token(0)) {
            Submit::Done(done) => done.result,
            Submit::Pending => panic!("no latency, yet pending"),
        }
    }

    fn read(device: &mut MemDevice, lba: u64, sectors: u32) -> Payload {
        match act(device, Bio::read(Lba(lba), sectors)) {
            Ok(Reply::Data(payload)) => payload,
            other => panic!("a read brought {other:?}"),
        }
    }

    /// A read sees the last write, flushed or not, and zeroes where nothing was written or all was
    /// discarded.
    #[test]
    fn reads_see_the_last_write() {
        let mut device = MemDevice::new(8);
        let bytes = Payload::from_bytes(&[5; 4096]).unwrap();
        act(&mut device, Bio::write(Lba(1), 2, Payload::Run(Tag::new(10)))).unwrap();
        act(&mut device, Bio::write(Lba(2), 1, bytes.clone())).unwrap();
        act(&mut device, write(3, 4)).unwrap();
        act(&mut device, Bio::discard(Lba(3), 1)).unwrap();
        let expected = [
            SectorData::Tag(Tag::ZERO),
            SectorData::Tag(Tag::new(10)),
            bytes.sector(0),
            SectorData::Tag(Tag::ZERO),
        ];
        assert_eq!(read(&mut device, 0, 4), Payload::collect(expected.into()));
        act(&mut device, Bio::flush()).unwrap();
        assert_eq!(read(&mut device, 2, 1), bytes);
        let silent = act(&mut device, Bio::read(Lba(0), 4).with(Flags::NO_DATA));
        assert_eq!(silent, Ok(Reply::None));
    }

    /// Flush, FUA and PREFLUSH make durable exactly what each of them promises.
    #[test]
    fn durability_follows_the_flags() {
        let mut device = MemDevice::new(8);
        let durable = |device: &MemDevice, lba| device.durable(Lba(lba));
        let tag = |bits| SectorData::Tag(Tag::new(bits));
        act(&mut device, write(0, 1)).unwrap();
        assert_eq!(durable(&device, 0), tag(0));
        act(&mut device, write(1, 2).with(Flags::FUA)).unwrap();
        assert_eq!((durable(&device, 0), durable(&device, 1)), (tag(0), tag(2)));
        act(&mut device, write(2, 3).with(Flags::PREFLUSH)).unwrap();
        assert_eq!((durable(&device, 0), durable(&device, 2)), (tag(1), tag(0)));
        act(&mut device, Bio::discard(Lba(0), 1)).unwrap();
        assert_eq!(durable(&device, 0), tag(1));
        act(&mut device, Bio::flush()).unwrap();
        assert_eq!((durable(&device, 0), durable(&device, 2)), (tag(0), tag(3)));
    }

    /// A flush of one file covers that file; a device that cannot tell files apart flushes all.
    #[test]
    fn narrow_flushes_are_honoured_or_widened() {
        for scoped in [true, false] {
            let caps = MemDevice::new(8).caps;
            let mut device = MemDevice::with_caps(DeviceCaps { scoped_flush: scoped, ..caps });
            act(&mut device, Bio { owner: Some(OWNER), ..write(0, 1) }).unwrap();
            act(&mut device, write(1, 2)).unwrap();
            let flush = Bio { owner: Some(OWNER), scope: FlushScope::Owner, ..Bio::flush() };
            act(&mut device, flush).unwrap();
            assert_eq!(device.durable(Lba(0)), SectorData::Tag(Tag::new(1)));
            let other = if scoped { Tag::ZERO } else { Tag::new(2) };
            assert_eq!(device.durable(Lba(1)), SectorData::Tag(other));
        }
    }

    /// After a power cut a sector holds its last covered version or a later one, and over many cuts
    /// each of them.
    #[test]
    fn power_cuts_leave_any_later_version() {
        let mut rng = Stream::new(1, "power");
        let mut seen = [0; 4];
        for _ in 0..200 {
            let mut device = MemDevice::new(1);
            act(&mut device, write(0, 9)).unwrap();
            act(&mut device, write(0, 1)).unwrap();
            act(&mut device, Bio::flush()).unwrap();
            act(&mut device, write(0, 2)).unwrap();
            act(&mut device, write(0, 3)).unwrap();
            device.cut_power(&mut rng);
            match device.current(Lba(0)) {
                SectorData::Tag(tag) if (1..4).contains(&tag.bits()) => {
                    seen[tag.bits() as usize] += 1;
                }
                other => panic!("{other:?} is none of the versions"),
            }
        }
        assert!(seen[1..].iter().all(|&count| count > 30), "{seen:?}");
    }

    /// Completions come in order of submission, each exactly its latency later, and a cut ends what
    /// is in flight.
    #[test]
    fn latency_delays_completions() {
        let mut device = MemDevice::new(8).with_latency(Nanos(10));
        let mut done = Vec::new();
        assert_eq!(device.submit(Nanos(0), write(0, 1), Token(1)), Submit::Pending);
        assert_eq!(device.submit(Nanos(4), Bio::read(Lba(0), 1), Token(2)), Submit::Pending);
        device.advance(Nanos(9), &mut done);
        assert!(done.is_empty());
        assert_eq!(device.next_event(), Some(Nanos(10)));
        device.advance(Nanos(10), &mut done);
        assert_eq!(done, [Completion { token: Token(1), done: Done::ok(Nanos(10)) }]);
        device.cut_power(&mut Stream::new(1, "power"));
        device.advance(Nanos(14), &mut done);
        assert_eq!(done[1].done, Done::new(Nanos(14), Err(BlockError::PowerLost)));
        assert_eq!(device.next_event(), None);
    }

    /// A device that keeps no content still serves, and says nothing about content.
    #[test]
    fn content_may_be_left_out() {
        let caps = DeviceCaps { keeps_content: false, ..MemDevice::new(8).caps };
        let mut device = MemDevice::with_caps(caps);
        act(&mut device, Bio::write(Lba(0), 2, Payload::None)).unwrap();
        act(&mut device, write(2, 5)).unwrap();
        assert_eq!(read(&mut device, 0, 4), Payload::None);
    }

    #[test]
    fn zones_and_upcalls_are_refused() {
        let mut device = MemDevice::new(8);
        for op in [Op::ZoneReport, Op::FetchUpcall, Op::AwaitUpcall, Op::CompleteUpcall(1)] {
            let refused = act(&mut device, Bio::new(op, Lba(0), 1));
            assert!(matches!(refused, Err(BlockError::Unsupported(_))), "{op:?}");
        }
    }
}
