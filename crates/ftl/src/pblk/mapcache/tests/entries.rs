//! The entry cache against a model of two lists, and its batching.

use super::*;
use proptest::prelude::*;

const PAGES: u32 = 4;
/// Sectors of each page that the steps use.
const USED: u64 = 6;

#[derive(Clone, Copy, Debug)]
struct Row {
    lba: u64,
    pins: u32,
    dirty: bool,
    untouched: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Writing {
    No,
    Queued,
    Begun,
}

/// Segmented LRU in two vectors, used last first.
struct Naive {
    slots: usize,
    protected_max: usize,
    loads_max: usize,
    probation: Vec<Row>,
    protected: Vec<Row>,
    loading: Vec<u64>,
    pages: Vec<Writing>,
    victims: Vec<u64>,
    queue: Vec<u32>,
    on_media: Vec<bool>,
}

fn page_of(lba: u64) -> u32 {
    (lba / PER_BLOCK) as u32
}

impl Naive {
    fn row(&mut self, lba: u64) -> Option<&mut Row> {
        self.probation.iter_mut().chain(&mut self.protected).find(|row| row.lba == lba)
    }

    fn access(&mut self, lba: u64) -> Lookup {
        if self.loading.contains(&lba) {
            return Lookup::Loading;
        }
        let Some(row) = self.row(lba) else { return Lookup::Miss };
        row.untouched = false;
        let row = *row;
        self.remove(lba);
        if self.protected_max == 0 {
            self.probation.insert(0, row);
            return Lookup::Hit;
        }
        self.protected.insert(0, row);
        if self.protected.len() > self.protected_max {
            let demoted = self.protected.pop().expect("more than none");
            self.probation.insert(0, demoted);
        }
        Lookup::Hit
    }

    fn remove(&mut self, lba: u64) {
        self.probation.retain(|row| row.lba != lba);
        self.protected.retain(|row| row.lba != lba);
    }

    fn used(&self) -> usize {
        self.probation.len() + self.protected.len() + self.loading.len()
    }

    fn pages_loading(&self) -> usize {
        (0..PAGES).filter(|&page| self.loading.iter().any(|&lba| page_of(lba) == page)).count()
    }

    fn begin_load(&mut self, lba: u64) -> Load {
        if self.loading.contains(&lba) {
            return Load::Joined;
        }
        if self.row(lba).is_some() {
            return Load::Ready;
        }
        let joins = self.loading.iter().any(|&other| page_of(other) == page_of(lba));
        let loads = self.pages_loading();
        if self.victims.len() >= self.loads_max || (loads >= self.loads_max && !joins) {
            return Load::Busy;
        }
        if self.used() == self.slots {
            match self.evict() {
                None => {
                    let waits = loads > 0 || self.pages.iter().any(|&page| page != Writing::No);
                    return if waits { Load::Busy } else { Load::NoSlot };
                }
                Some(true) => return Load::WriteBack,
                Some(false) => {}
            }
        }
        if !self.on_media[page_of(lba) as usize] {
            self.enter(lba);
            return Load::Ready;
        }
        self.loading.push(lba);
        if joins { Load::Joined } else { Load::Read(Ppa(u64::from(page_of(lba)))) }
    }

    fn enter(&mut self, lba: u64) {
        self.probation.insert(0, Row { lba, pins: 0, dirty: false, untouched: false });
    }

    /// The victim of one list; pinned entries that are older move to its front.
    fn choose(list: &mut Vec<Row>, pages: &[Writing]) -> Option<u64> {
        for row in list.clone().into_iter().rev() {
            if row.pins > 0 {
                list.retain(|other| other.lba != row.lba);
                list.insert(0, row);
            } else if pages[page_of(row.lba) as usize] == Writing::No {
                return Some(row.lba);
            }
        }
        None
    }

    /// Whether the victim, if there is one, must be written first.
    fn evict(&mut self) -> Option<bool> {
        if self.probation.iter().chain(&self.protected).all(|row| row.pins > 0) {
            return None;
        }
        let lba = Self::choose(&mut self.probation, &self.pages)
            .or_else(|| Self::choose(&mut self.protected, &self.pages))?;
        let row = self.row(lba).expect("just chosen");
        if !row.dirty {
            self.remove(lba);
            return Some(false);
        }
        row.untouched = true;
        self.pages[page_of(lba) as usize] = Writing::Queued;
        self.victims.push(lba);
        self.queue.push(page_of(lba));
        Some(true)
    }

    fn write_back_begin(&mut self, page: u32) -> u32 {
        if self.pages[page as usize] == Writing::Begun {
            return 0;
        }
        self.queue.retain(|&queued| queued != page);
        let rows = self.probation.iter_mut().chain(&mut self.protected);
        let batch = rows.filter(|row| page_of(row.lba) == page && row.dirty && row.pins == 0);
        let count = batch.map(|row| row.dirty = false).count() as u32;
        if count > 0 {
            self.pages[page as usize] = Writing::Begun;
        } else {
            self.pages[page as usize] = Writing::No;
            self.victims.retain(|&lba| page_of(lba) != page);
        }
        count
    }

    fn written(&mut self, page: u32) {
        self.on_media[page as usize] = true;
        self.pages[page as usize] = Writing::No;
        let Some(at) = self.victims.iter().position(|&lba| page_of(lba) == page) else { return };
        let lba = self.victims.remove(at);
        let row = *self.row(lba).expect("victims stay");
        if row.untouched && !row.dirty && row.pins == 0 {
            self.remove(lba);
        }
    }

    fn coldest_dirty(&self) -> Option<u32> {
        let oldest_first = self.probation.iter().rev().chain(self.protected.iter().rev());
        let idle = |row: &&Row| self.pages[page_of(row.lba) as usize] == Writing::No;
        let writable = oldest_first.filter(|row| row.dirty && row.pins == 0);
        writable.filter(idle).map(|row| page_of(row.lba)).next()
    }
}

#[derive(Clone, Debug)]
enum Step {
    Access(u64),
    Load(u64),
    Loaded(u32),
    Dirty(u64),
    Pin(u64),
    Unpin(u64),
    WriteBack(Option<u32>),
    Written(usize),
}

fn lba() -> impl Strategy<Value = u64> {
    (0..u64::from(PAGES), 0..USED).prop_map(|(page, at)| page * PER_BLOCK + at)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => lba().prop_map(Step::Access),
        9 => lba().prop_map(Step::Load),
        4 => (0..PAGES).prop_map(Step::Loaded),
        4 => lba().prop_map(Step::Dirty),
        2 => lba().prop_map(Step::Pin),
        3 => lba().prop_map(Step::Unpin),
        3 => prop::option::weighted(0.3, 0..PAGES).prop_map(Step::WriteBack),
        3 => (0usize..4).prop_map(Step::Written),
    ]
}

struct Pair {
    cache: MapCache,
    naive: Naive,
    writing: Vec<(u32, u32)>,
}

impl Pair {
    fn new(slots: u64, protected_percent: u32, loads_max: u32) -> Self {
        let policy = MapPolicy::Dftl { protected_percent };
        let config = MapConfig { loads_max, ..config(policy, slots * 12) };
        let naive = Naive {
            slots: slots as usize,
            protected_max: (slots * u64::from(protected_percent) / 100) as usize,
            loads_max: loads_max as usize,
            probation: Vec::new(),
            protected: Vec::new(),
            loading: Vec::new(),
            pages: vec![Writing::No; PAGES as usize],
            victims: Vec::new(),
            queue: Vec::new(),
            on_media: vec![false; PAGES as usize],
        };
        Self { cache: cache(&config, PAGES), naive, writing: Vec::new() }
    }

    fn apply(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let now = Nanos::ZERO;
        match *step {
            Step::Access(lba) => {
                let found = self.cache.access(Lba(lba), READ, now);
                prop_assert_eq!(found, self.naive.access(lba));
            }
            Step::Load(lba) => {
                let load = self.cache.begin_load(Lba(lba), now);
                prop_assert_eq!(load, self.naive.begin_load(lba));
            }
            Step::Loaded(page) => self.loaded(page),
            Step::WriteBack(_) | Step::Written(_) => self.write(step)?,
            Step::Dirty(lba) | Step::Pin(lba) | Step::Unpin(lba) => self.mark(step, lba),
        }
        self.agree()
    }

    fn loaded(&mut self, page: u32) {
        let (arrived, rest): (Vec<u64>, Vec<u64>) =
            self.naive.loading.iter().partition(|&&lba| page_of(lba) == page);
        if arrived.is_empty() {
            return;
        }
        self.cache.loaded(page, Nanos::ZERO);
        self.naive.loading = rest;
        arrived.into_iter().for_each(|lba| self.naive.enter(lba));
    }

    fn mark(&mut self, step: &Step, lba: u64) {
        let Some(row) = self.naive.row(lba) else { return };
        match step {
            Step::Dirty(_) => {
                row.dirty = true;
                self.cache.dirty(Lba(lba));
            }
            Step::Pin(_) => {
                row.pins += 1;
                self.cache.pin(Lba(lba));
            }
            _ if row.pins > 0 => {
                row.pins -= 1;
                self.cache.unpin(Lba(lba));
            }
            _ => {}
        }
    }

    fn write(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::WriteBack(wanted) => {
                prop_assert_eq!(self.cache.next_write_back(), self.naive.queue.first().copied());
                let Some(page) = wanted.or(self.cache.next_write_back()) else { return Ok(()) };
                let read = self.cache.location(page);
                let begun = self.cache.write_back_begin(page);
                let entries = begun.map_or(0, |begun| begun.entries);
                prop_assert_eq!(entries, self.naive.write_back_begin(page));
                prop_assert!(begun.is_none_or(|begun| begun.read == read));
                self.writing.extend(begun.map(|begun| (page, begun.version)));
            }
            Step::Written(nth) if nth < self.writing.len() => {
                let (page, version) = self.writing.remove(nth);
                self.cache.written(page, Ppa(u64::from(page)), version);
                self.naive.written(page);
            }
            _ => {}
        }
        Ok(())
    }

    fn agree(&mut self) -> Result<(), TestCaseError> {
        for lba in (0..u64::from(PAGES)).flat_map(|p| (0..USED).map(move |at| p * PER_BLOCK + at)) {
            let row = self.naive.row(lba).is_some();
            prop_assert_eq!(self.cache.is_loaded(Lba(lba)), row, "sector {}", lba);
        }
        prop_assert!(self.naive.used() <= self.naive.slots);
        prop_assert_eq!(self.cache.pick_dirty(u32::MAX), self.naive.coldest_dirty());
        Ok(())
    }
}

proptest! {
    /// Whatever is looked up, loaded, pinned, dirtied and written in whatever order, the cache
    /// answers as two plain lists do, and never holds more entries than it has room for.
    #[test]
    fn the_entry_cache_does_what_the_model_does(
        slots in 1..9u64,
        protected_percent in prop::sample::select(&[0u32, 50, 80][..]),
        loads_max in 1..4u32,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut pair = Pair::new(slots, protected_percent, loads_max);
        for (number, step) in steps.iter().enumerate() {
            let applied = pair.apply(step);
            prop_assert!(applied.is_ok(), "step {}, {:?}: {:?}", number, step, applied);
        }
    }
}

fn eight_dirty_of_one_page() -> MapCache {
    let policy = MapPolicy::Dftl { protected_percent: 80 };
    let mut cache = cache(&config(policy, 10 * 12), PAGES);
    for at in 0..8 {
        touch(&mut cache, Lba(at), WRITE, Nanos::ZERO);
    }
    for page in 1..3 {
        touch(&mut cache, first(page), READ, Nanos::ZERO);
    }
    cache
}

/// One write-back takes all dirty entries of its page along; the others leave for nothing then.
#[test]
fn dirty_entries_of_a_page_are_written_together() {
    let mut cache = eight_dirty_of_one_page();
    for at in 1..9 {
        touch(&mut cache, Lba(first(3).0 + at), READ, Nanos::ZERO);
    }
    let stats = *cache.stats();
    assert_eq!((stats.write_backs, stats.entries_written, stats.merge_reads), (1, 8, 0));
    assert_eq!((stats.evictions_dirty, stats.evictions_clean), (1, 7));
}

/// An entry that names a place in a ring is not written along: media would see the name.
#[test]
fn pinned_entries_are_left_out_of_the_batch() {
    let mut cache = eight_dirty_of_one_page();
    cache.pin(Lba(5));
    assert_eq!(cache.begin_load(first(3), Nanos::ZERO), Load::WriteBack);
    assert_eq!(cache.write_back_begin(0).map(|begun| begun.entries), Some(7));
    cache.written(0, Ppa(64), 1);
    cache.unpin(Lba(5));
    let again = cache.write_back_begin(0);
    assert_eq!(again, Some(WriteBack { read: Some(Ppa(64)), version: 2, entries: 1 }));
}
