//! Power cuts at random instants: whatever the device leaves, it is one of the states that the crash
//! model allows, content included, and the device goes on from there.
//!
//! The checker knows every command's completion and nothing of the device's inside. For a chunk it
//! lists the states after its completed commands and after each further one, and wants what is there
//! to be one of these, or the interruption of the step between two of them.

use crate::common;

use common::{SMALL, append_data, chunk, ppa};
use nandscape_block::{SectorData, Tag};
use nandscape_media::{
    ChunkId, ChunkState, DeviceTiming, Fault, LinkScheduling, Media, MediaConfig, NandTiming,
    OpenChannel, PayloadMode,
};
use nandscape_rt::{Nanos, Stream};
use std::collections::BTreeMap;

/// Content of a chunk: the tag of each sector below the write pointer, `None` when unreadable.
type Content = Vec<Option<u64>>;

#[derive(Clone, Debug)]
enum Event {
    Write(Vec<u64>),
    Erase,
}

#[derive(Clone, Default, Debug)]
struct History {
    base: Content,
    events: Vec<(Nanos, Event)>,
}

fn apply(content: &Content, event: &Event) -> Content {
    match event {
        Event::Erase => Vec::new(),
        Event::Write(tags) => {
            content.iter().copied().chain(tags.iter().copied().map(Some)).collect()
        }
    }
}

impl History {
    fn now(&self) -> Content {
        self.events.iter().fold(self.base.clone(), |content, (_, event)| apply(&content, event))
    }

    /// Whether `found` is allowed after a cut at `at`.
    fn allows(&self, at: Nanos, found: &Content) -> bool {
        let completed = self.events.iter().take_while(|(done, _)| *done <= at).count();
        let mut content =
            self.events[..completed].iter().fold(self.base.clone(), |c, (_, e)| apply(&c, e));
        for (_, event) in &self.events[completed..] {
            if &content == found || interrupted(&content, event, found) {
                return true;
            }
            content = apply(&content, event);
        }
        &content == found
    }
}

/// Whether `found` is what an interruption of `event` on `before` may leave.
fn interrupted(before: &Content, event: &Event, found: &Content) -> bool {
    let Event::Write(_) = event else {
        // Shorter than before when it counts as begun although writes before it had not completed.
        return found.len() <= before.len() && found.iter().all(Option::is_none);
    };
    let after = apply(before, event);
    let unit = SMALL.ws_min as usize;
    let grown = found.len() > before.len() && found.len() <= after.len();
    if !grown || !found.len().is_multiple_of(unit) {
        return false;
    }
    let last = found.len() - unit;
    let torn = found[last..].iter().all(Option::is_none);
    found[..last] == after[..last] && (torn || found[last..] == after[last..found.len()])
}

fn found(media: &Media, id: ChunkId) -> Content {
    let tag_at = |sector| {
        let at = ppa(media, id, sector);
        let SectorData::Tag(tag) = media.data(at) else { return media.readable(at).then_some(0) };
        let same =
            media.oob(at).seq + 1 == tag.bits() && u64::from(media.oob(at).key) + 1 == tag.bits();
        media.readable(at).then_some(if same { tag.bits() } else { 0 })
    };
    (0..media.chunk(id).wp).map(tag_at).collect()
}

struct Run {
    media: Media,
    histories: BTreeMap<ChunkId, History>,
    now: Nanos,
    seq: u64,
    /// How often each outcome was seen: prefix, torn, erase undone, erase half done.
    seen: [u32; 4],
}

impl Run {
    fn new(rng: &mut Stream) -> Self {
        let placing = if rng.chance(0.5) { LinkScheduling::Backfill } else { LinkScheduling::Fifo };
        let preset = DeviceTiming::PRESETS[rng.below(5) as usize];
        let preset = DeviceTiming::preset(preset).expect("shipped").nand;
        let timing = NandTiming { erase_ns: 3_000_000, placing, ..preset };
        let config = MediaConfig { timing, payload: PayloadMode::Tags, ..MediaConfig::new(SMALL) };
        let media = Media::new(config).expect("sound config");
        let histories = media.report().map(|(id, _)| (id, History::default())).collect();
        Self { media, histories, now: Nanos::ZERO, seq: 0, seen: [0; 4] }
    }

    fn event(&mut self, id: ChunkId, done: Nanos, event: Event) {
        self.histories.get_mut(&id).expect("known chunk").events.push((done, event));
    }

    /// Writes or erases a random chunk of few, so that queues grow and chunks come round again.
    fn command(&mut self, rng: &mut Stream) {
        self.now += Nanos(rng.below(1_500_000));
        if rng.chance(0.2) {
            self.media.arm(Fault::Delay(Nanos(rng.below(10_000_000))));
        }
        let id = chunk(rng.below(2) as u32, rng.below(3) as u32);
        let info = self.media.chunk(id);
        let left = SMALL.sectors - info.wp;
        if info.state != ChunkState::Free && (left == 0 || rng.chance(0.3)) {
            let done = self.media.reset(self.now, self.now, id).expect("legal reset").at;
            self.event(id, done, Event::Erase);
            return;
        }
        let sectors = left.min(SMALL.ws_min * (1 + rng.below(6) as u32));
        let tags: Vec<u64> = (self.seq + 1..).take(sectors as usize).collect();
        let data: Vec<_> = tags.iter().map(|tag| SectorData::Tag(Tag::new(*tag))).collect();
        let outcome = append_data(&mut self.media, self.now, id, sectors, self.seq, &data);
        self.event(id, outcome.expect("legal write").at, Event::Write(tags));
        self.seq += u64::from(sectors);
    }

    fn cut(&mut self, rng: &mut Stream) {
        let at = self.now + Nanos(rng.below(4_000_000));
        self.media.power_cut(at, rng);
        for (&id, history) in &mut self.histories {
            let content = found(&self.media, id);
            assert!(history.allows(at, &content), "{id:?} at {at}: {content:?}\n{history:?}");
            let full = history.now();
            self.seen[0] += u32::from(content.len() < full.len());
            let lost = content.iter().filter(|tag| tag.is_none()).count();
            self.seen[1] += u32::from(lost == SMALL.ws_min as usize);
            self.seen[2] += u32::from(content.len() > full.len() && lost == 0);
            self.seen[3] += u32::from(lost > SMALL.ws_min as usize);
            *history = History { base: content, events: Vec::new() };
            check_state(&self.media, id);
        }
        self.now = at;
    }
}

/// State and write pointer agree.
fn check_state(media: &Media, id: ChunkId) {
    let info = media.chunk(id);
    let expected = match info.wp {
        0 => ChunkState::Free,
        wp if wp == SMALL.sectors => ChunkState::Closed,
        _ => ChunkState::Open,
    };
    assert_eq!(info.state, expected);
}

/// Every cut leaves what the crash model allows, and every allowed kind of damage does occur.
#[test]
fn cuts_leave_what_the_crash_model_allows() {
    let mut seen = [0; 4];
    for seed in 0..1_000 {
        let mut rng = Stream::new(seed, "power cut test");
        let mut run = Run::new(&mut rng);
        for _ in 0..5 {
            for _ in 0..rng.below(30) {
                run.command(&mut rng);
            }
            run.cut(&mut rng);
        }
        seen.iter_mut().zip(run.seen).for_each(|(sum, n)| *sum += n);
    }
    assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
}

/// Same seed, same damage.
#[test]
fn cuts_are_deterministic() {
    let damage = || {
        let mut rng = Stream::new(5, "power cut test");
        let mut run = Run::new(&mut rng);
        (0..60).for_each(|_| run.command(&mut rng));
        run.cut(&mut rng);
        run.media.report().map(|(id, _)| found(&run.media, id)).collect::<Vec<_>>()
    };
    assert_eq!(damage(), damage());
}

/// What completed by the instant of the cut stays, to the nanosecond; a device without timing loses
/// nothing.
#[test]
fn completed_commands_stay() {
    let mut rng = Stream::new(1, "power cut test");
    for (preset, early, kept) in
        [("qemu-ocssd", 1, false), ("qemu-ocssd", 0, true), ("none", 0, true)]
    {
        let mut media = common::device(SMALL, preset);
        common::append(&mut media, Nanos::ZERO, chunk(0, 0), 4, 0).unwrap();
        let done = common::append(&mut media, Nanos::ZERO, chunk(0, 1), 4, 4).unwrap().at;
        media.power_cut(Nanos(done.0 - early), &mut rng);
        let at = ppa(&media, chunk(0, 1), 0);
        let complete = media.chunk(chunk(0, 1)).wp == 4 && media.readable(at);
        assert!(complete || !kept, "{preset}");
        assert_eq!(media.chunk(chunk(0, 0)).wp, 4);
    }
}
