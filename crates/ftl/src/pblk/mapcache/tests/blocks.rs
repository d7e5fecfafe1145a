//! The block cache against a model that keeps lists in order and cools every block at every scan.

use super::*;
use proptest::prelude::*;

const BLOCKS: u32 = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Is {
    Loaded,
    Queued,
    Writing,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    block: u32,
    is: Is,
    pins: u32,
    dirty: bool,
    victim: bool,
    untouched: bool,
}

impl Row {
    fn may_leave(&self) -> bool {
        self.is == Is::Loaded && self.pins == 0
    }
}

/// What the paper's text says, done step by step.
struct Naive {
    config: MapConfig,
    slots: usize,
    /// Loaded blocks, used last first; then those that are loading.
    rows: Vec<Row>,
    loading: Vec<u32>,
    queue: Vec<u32>,
    /// Microseconds of hotness, and time of the last access.
    heat: Vec<(u64, u64)>,
    on_media: Vec<bool>,
    now: Nanos,
}

impl Naive {
    fn points(&self) -> Option<HotnessConfig> {
        match self.config.policy {
            MapPolicy::Hotness(points) => Some(points),
            _ => None,
        }
    }

    fn warm(&mut self, block: u32, points: u32) {
        let unit_us = self.points().and_then(|p| p.idle_per_point).map_or(1, |p| p.0 / 1_000);
        let (heat_us, _) = self.heat[block as usize];
        self.heat[block as usize] = (heat_us + u64::from(points) * unit_us, self.now.0 / 1_000);
    }

    fn scan(&mut self) {
        let Some(points) = self.points() else { return };
        let unit_us = points.idle_per_point.map_or(1, |point| point.0 / 1_000);
        let now_us = self.now.0 / 1_000;
        for (heat_us, touched_us) in &mut self.heat {
            let idle_us = if points.idle_per_point.is_some() { now_us - *touched_us } else { 0 };
            *heat_us = heat_us.saturating_sub(idle_us + u64::from(points.decay_per_scan) * unit_us);
        }
    }

    fn find(&self, block: u32) -> Option<usize> {
        self.rows.iter().position(|row| row.block == block)
    }

    fn prioritize_file(&mut self, index: usize) {
        let row = self.rows.remove(index);
        self.rows.insert(0, row);
    }

    fn access(&mut self, block: u32, access: Access) -> Lookup {
        if let Some(points) = self.points() {
            let direction = if access.write { points.write } else { points.read };
            self.warm(
                block,
                match access.by {
                    By::Ftl => points.internal,
                    By::Host => direction,
                    By::Journal => direction + points.journal,
                },
            );
        }
        if self.loading.contains(&block) {
            return Lookup::Loading;
        }
        let Some(index) = self.find(block) else { return Lookup::Miss };
        self.rows[index].untouched = false;
        self.prioritize_file(index);
        Lookup::Hit
    }

    fn evictions(&self) -> usize {
        self.rows.iter().filter(|row| row.victim).count()
    }

    fn begin_load(&mut self, block: u32) -> Load {
        if self.loading.contains(&block) {
            return Load::Joined;
        }
        if self.find(block).is_some() {
            return Load::Ready;
        }
        let max = self.config.loads_max as usize;
        if self.loading.len() >= max || self.evictions() >= max {
            return Load::Busy;
        }
        if self.rows.len() + self.loading.len() == self.slots {
            if !self.rows.iter().any(Row::may_leave) {
                let writing = self.rows.iter().any(|row| row.is == Is::Writing);
                let waits = writing || !self.loading.is_empty() || self.evictions() > 0;
                return if waits { Load::Busy } else { Load::NoSlot };
            }
            self.scan();
            for _ in 0..self.config.evict_batch {
                self.evict();
            }
            let full = self.rows.len() + self.loading.len() == self.slots;
            if full || self.evictions() >= max {
                return Load::WriteBack;
            }
        }
        if self.on_media[block as usize] {
            self.loading.push(block);
            return Load::Read(Ppa(u64::from(block)));
        }
        self.enter(block);
        Load::Ready
    }

    fn enter(&mut self, block: u32) {
        let row =
            Row { block, is: Is::Loaded, pins: 0, dirty: false, victim: false, untouched: false };
        self.rows.insert(0, row);
        if let Some(points) = self.points() {
            self.warm(block, points.load_bonus);
        }
    }

    fn evict(&mut self) {
        let heat = |row: &Row| match self.points() {
            Some(_) => self.heat[row.block as usize].0,
            None => 0,
        };
        let oldest_first = || self.rows.iter().enumerate().rev();
        let candidates = oldest_first().filter(|(_, row)| row.may_leave());
        let chosen = candidates.min_by_key(|(_, row)| heat(row)).map(|(at, row)| (at, *row));
        // The search ends at the first that nothing can be colder than; where nobody may leave it sees all.
        let end = chosen.filter(|(_, row)| heat(row) == 0).map_or(0, |(at, _)| at);
        let met: Vec<u32> =
            oldest_first().filter(|(i, r)| *i >= end && r.pins > 0).map(|(_, r)| r.block).collect();
        for pinned in met {
            let index = self.find(pinned).expect("still there");
            self.prioritize_file(index);
        }
        let Some((_, Row { block, dirty, .. })) = chosen else { return };
        let index = self.find(block).expect("still there");
        if dirty {
            let row = self.rows[index];
            self.rows[index] = Row { is: Is::Queued, victim: true, untouched: true, ..row };
            self.queue.push(block);
        } else {
            self.rows.remove(index);
        }
    }

    fn write_back_begin(&mut self, block: u32) -> bool {
        let Some(index) = self.find(block) else { return false };
        let row = &mut self.rows[index];
        if row.is == Is::Writing {
            return false;
        }
        self.queue.retain(|&queued| queued != block);
        if row.dirty && row.pins == 0 {
            (row.is, row.dirty) = (Is::Writing, false);
            return true;
        }
        (row.is, row.victim) = (Is::Loaded, false);
        false
    }

    fn written(&mut self, block: u32) {
        self.on_media[block as usize] = true;
        let index = self.find(block).expect("being written");
        let row = self.rows[index];
        if row.victim && row.untouched && !row.dirty && row.pins == 0 {
            self.rows.remove(index);
        } else {
            self.rows[index] = Row { is: Is::Loaded, victim: false, ..row };
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Access(u32, Access),
    Load(u32),
    Loaded(usize),
    Dirty(u32),
    Pin(u32),
    Unpin(u32),
    /// The first queued victim, or this block.
    WriteBack(Option<u32>),
    Written(usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let access = prop::sample::select(&[READ, WRITE, JOURNAL, COLLECT][..]);
    let block = || 0..BLOCKS;
    prop_oneof![
        6 => (block(), access).prop_map(|(block, access)| Step::Access(block, access)),
        8 => block().prop_map(Step::Load),
        4 => (0usize..4).prop_map(Step::Loaded),
        4 => block().prop_map(Step::Dirty),
        2 => block().prop_map(Step::Pin),
        3 => block().prop_map(Step::Unpin),
        3 => prop::option::weighted(0.3, block()).prop_map(Step::WriteBack),
        3 => (0usize..4).prop_map(Step::Written),
        2 => (0u64..3_000_000_000).prop_map(Step::Wait),
    ]
}

/// Cache and model side by side.
struct Pair {
    cache: MapCache,
    naive: Naive,
    /// Blocks being written, and their versions.
    writing: Vec<(u32, u32)>,
}

impl Pair {
    fn new(config: MapConfig) -> Self {
        let naive = Naive {
            config,
            slots: (config.cache.bytes(u64::from(BLOCKS) * 4_096) / 4_096).min(u64::from(BLOCKS))
                as usize,
            rows: Vec::new(),
            loading: Vec::new(),
            queue: Vec::new(),
            heat: vec![(0, 0); BLOCKS as usize],
            on_media: vec![false; BLOCKS as usize],
            now: Nanos::ZERO,
        };
        Self { cache: cache(&config, BLOCKS), naive, writing: Vec::new() }
    }

    fn loaded(&self, block: u32) -> Option<usize> {
        self.naive.find(block)
    }

    fn apply(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let now = self.naive.now;
        match *step {
            Step::Access(block, access) => {
                let found = self.cache.access(first(block), access, now);
                prop_assert_eq!(found, self.naive.access(block, access));
            }
            Step::Load(block) => {
                let load = self.cache.begin_load(first(block), now);
                prop_assert_eq!(load, self.naive.begin_load(block));
            }
            Step::Loaded(nth) if nth < self.naive.loading.len() => {
                let block = self.naive.loading.remove(nth);
                self.cache.loaded(block, now);
                self.naive.enter(block);
            }
            Step::Wait(ns) => self.naive.now += Nanos(ns),
            Step::Loaded(_) => {}
            Step::WriteBack(_) | Step::Written(_) => self.write(step)?,
            Step::Dirty(block) | Step::Pin(block) | Step::Unpin(block) => self.mark(step, block),
        }
        self.agree()
    }

    fn mark(&mut self, step: &Step, block: u32) {
        let Some(index) = self.loaded(block) else { return };
        let row = &mut self.naive.rows[index];
        match step {
            Step::Dirty(_) => {
                row.dirty = true;
                self.cache.dirty(first(block));
            }
            Step::Pin(_) => {
                row.pins += 1;
                self.cache.pin(first(block));
            }
            _ if row.pins > 0 => {
                row.pins -= 1;
                self.cache.unpin(first(block));
            }
            _ => {}
        }
    }

    fn write(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::WriteBack(wanted) => {
                prop_assert_eq!(self.cache.next_write_back(), self.naive.queue.first().copied());
                let Some(block) = wanted.or(self.cache.next_write_back()) else { return Ok(()) };
                let pinned = self.loaded(block).is_some_and(|i| self.naive.rows[i].pins > 0);
                let begun = self.cache.write_back_begin(block);
                prop_assert_eq!(begun.is_some(), self.naive.write_back_begin(block));
                prop_assert!(!(pinned && begun.is_some()), "a pinned block is written");
                self.writing.extend(begun.map(|begun| (block, begun.version)));
            }
            Step::Written(nth) if nth < self.writing.len() => {
                let (block, version) = self.writing.remove(nth);
                self.cache.written(block, Ppa(u64::from(block)), version);
                self.naive.written(block);
            }
            _ => {}
        }
        Ok(())
    }

    /// The same blocks are in RAM, no more than slots, and every pinned one among them.
    fn agree(&self) -> Result<(), TestCaseError> {
        for block in 0..BLOCKS {
            let row = self.loaded(block);
            prop_assert_eq!(self.cache.is_loaded(first(block)), row.is_some(), "block {}", block);
        }
        prop_assert!(self.naive.rows.len() + self.naive.loading.len() <= self.naive.slots);
        let pinned = self.naive.rows.iter().filter(|row| row.pins > 0).count();
        prop_assert_eq!(self.cache.pinned() as usize, pinned);
        let clean = |row: &&Row| row.may_leave() && row.dirty;
        let coldest = self.naive.rows.iter().rev().find(clean).map(|row| row.block);
        prop_assert_eq!(self.cache.pick_dirty(u32::MAX), coldest);
        Ok(())
    }
}

fn policies() -> impl Strategy<Value = MapPolicy> {
    let none = HotnessConfig { idle_per_point: None, ..HotnessConfig::history() };
    prop::sample::select(vec![
        MapPolicy::Lru,
        MapPolicy::Hotness(HotnessConfig::history()),
        MapPolicy::Hotness(HotnessConfig::journal()),
        MapPolicy::Hotness(none),
        MapPolicy::Hotness(HotnessConfig { decay_per_scan: 0, ..HotnessConfig::journal() }),
    ])
}

proptest! {
    /// Whatever is looked up, loaded, pinned, dirtied and written in whatever order, the cache
    /// answers as the model, chooses its victims, and holds what it holds.
    #[test]
    fn the_block_cache_does_what_the_model_does(
        policy in policies(),
        slots in 1..6u64,
        loads_max in 1..4u32,
        evict_batch in 1..4u32,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let config = MapConfig { loads_max, evict_batch, ..config(policy, slots * 4_096) };
        let mut pair = Pair::new(config);
        for (number, step) in steps.iter().enumerate() {
            let applied = pair.apply(step);
            prop_assert!(applied.is_ok(), "step {}, {:?}: {:?}", number, step, applied);
        }
    }

    /// LRU hits exactly when fewer other blocks than slots were used since: Mattson's stack distance.
    #[test]
    fn lru_hits_by_stack_distance(
        slots in 1..9u64,
        trace in prop::collection::vec((0..BLOCKS, any::<bool>()), 1..400),
    ) {
        let mut cache = cache(&config(MapPolicy::Lru, slots * 4_096), BLOCKS);
        let mut stack: Vec<u32> = Vec::new();
        let mut hits = 0;
        for &(block, write) in &trace {
            let access = if write { WRITE } else { READ };
            let distance = stack.iter().position(|&other| other == block);
            let near = distance.is_some_and(|distance| (distance as u64) < slots);
            prop_assert_eq!(touch(&mut cache, first(block), access, Nanos::ZERO), near);
            stack.retain(|&other| other != block);
            stack.insert(0, block);
            hits += u64::from(near);
        }
        prop_assert_eq!(cache.stats().host.hits, hits);
        let host = cache.stats().host;
        prop_assert_eq!(host.hits + host.joined_loads + host.misses, trace.len() as u64);
    }
}

/// Whether block 0, used as `access`, survives a sweep of reads over all others.
fn survives(points: HotnessConfig, access: Access) -> bool {
    let mut cache = cache(&config(MapPolicy::Hotness(points), 4 * 4_096), 200);
    for _ in 0..3 {
        touch(&mut cache, first(0), access, Nanos::ZERO);
    }
    for block in 1..200 {
        touch(&mut cache, first(block), READ, Nanos::from_us(u64::from(block)));
    }
    cache.is_loaded(first(0))
}

/// Journal points keep a journal's block through a sweep that pushes out everything else, and do
/// nothing for data.
#[test]
fn journal_points_keep_the_journals_block() {
    assert!(survives(HotnessConfig::journal(), JOURNAL));
    assert!(!survives(HotnessConfig::history(), JOURNAL));
    assert!(!survives(HotnessConfig::journal(), WRITE));
}

/// However hot a block was, it cools when it idles: by half its idle milliseconds a scan.
#[test]
fn idle_blocks_cool() {
    let points = HotnessConfig { load_bonus: 0, ..HotnessConfig::history() };
    let mut cache = cache(&config(MapPolicy::Hotness(points), 2 * 4_096), 10);
    for _ in 0..20 {
        touch(&mut cache, first(0), READ, Nanos::ZERO);
    }
    for (block, ms) in [(1, 1_000), (2, 1_000), (3, 1_800)] {
        assert!(cache.is_loaded(first(0)), "1,000 points outlast one scan after 1,000 ms");
        touch(&mut cache, first(block), READ, Nanos::from_ms(ms));
    }
    assert!(!cache.is_loaded(first(0)), "but not a second one after 1,800");
}

/// A block that was just loaded outlasts blocks that are used a little, when its bonus is larger than
/// their use; without the bonus the next miss throws it out again.
#[test]
fn the_load_bonus_prevents_thrashing() {
    let stays = |load_bonus| {
        let points = HotnessConfig { load_bonus, ..HotnessConfig::history() };
        let mut cache = cache(&config(MapPolicy::Hotness(points), 3 * 4_096), 10);
        for block in 0..3 {
            touch(&mut cache, first(block), READ, Nanos::ZERO);
        }
        let late = Nanos::from_secs(10);
        for block in [8, 1, 2, 1, 2, 9] {
            touch(&mut cache, first(block), READ, late);
        }
        cache.is_loaded(first(8))
    };
    assert!(stays(1_000));
    assert!(!stays(0));
}
