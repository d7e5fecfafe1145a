//! An interval map does what a sorted table of its entries does, whatever is mapped, unmapped and compacted in what
//! order; its memory follows what is mapped, and is what a recount finds.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Leaves of 128 addresses, four to a middle node: windows move and grow within a few steps.
const SMALL: MapShape = MapShape { leaf_bits: 7, middle_bits: 2, hole_min: 8 };
/// Addresses of the small map's space.
const SPACE: u64 = 1 << 14;

#[derive(Clone, Debug)]
enum Step {
    /// Entries for a run of addresses.
    Fill(u64, u64),
    /// Entries for each so many-th address of a run.
    Sprinkle(u64, u64, u64),
    /// None for a run of addresses.
    Clear(u64, u64),
    /// None for each so many-th address of a run.
    Thin(u64, u64, u64),
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    let run = || (0..SPACE, 1_u64..600);
    prop_oneof![
        run().prop_map(|(at, n)| Step::Fill(at, n)),
        (run(), 2_u64..100).prop_map(|((at, n), every)| Step::Sprinkle(at, 4 * n, every)),
        run().prop_map(|(at, n)| Step::Clear(at, 4 * n)),
        (run(), 2_u64..40).prop_map(|((at, n), every)| Step::Thin(at, n, every)),
        Just(Step::Compact),
    ]
}

fn addresses(step: &Step) -> (Vec<u64>, bool) {
    let run = |at: u64, n: u64, every: u64| {
        (at..(at + n).min(SPACE)).step_by(every as usize).collect::<Vec<_>>()
    };
    match *step {
        Step::Fill(at, n) => (run(at, n, 1), true),
        Step::Sprinkle(at, n, every) => (run(at, n, every), true),
        Step::Clear(at, n) => (run(at, n, 1), false),
        Step::Thin(at, n, every) => (run(at, n, every), false),
        Step::Compact => (Vec::new(), false),
    }
}

fn assert_equal(map: &IntervalMap, model: &BTreeMap<u64, u32>) {
    map.check().expect("consistent");
    assert_eq!(map.mapped(), model.len() as u64);
    for at in 0..SPACE {
        assert_eq!(map.get(at), model.get(&at).copied().unwrap_or(0), "{at}");
    }
    let (mut at, mut found) = (0, Vec::new());
    while let Some(next) = map.next(at..SPACE, true, &mut Walk::default()) {
        found.push(next);
        at = next + 1;
    }
    assert!(found.iter().eq(model.keys()));
    for from in (0..SPACE).step_by(97) {
        let hole = (from..SPACE).find(|at| !model.contains_key(at));
        assert_eq!(map.next(from..SPACE, false, &mut Walk::default()), hole);
        let near = model.range(from..(from + 50).min(SPACE)).next().map(|(at, _)| *at);
        assert_eq!(map.next(from..(from + 50).min(SPACE), true, &mut Walk::default()), near);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Any steps leave what a table would hold.
    #[test]
    fn it_is_a_table(steps in proptest::collection::vec(step(), 1..60)) {
        let (mut map, mut model) = (IntervalMap::new(SMALL), BTreeMap::new());
        let mut entry = 0;
        for step in &steps {
            let (addresses, maps) = addresses(step);
            for at in addresses {
                entry += 1;
                let value = if maps { entry } else { 0 };
                let before = if maps { model.insert(at, value) } else { model.remove(&at) };
                prop_assert_eq!(map.set(at, value, &mut Walk::default()), before.unwrap_or(0));
            }
            if matches!(step, Step::Compact) {
                let before = map.bytes().total();
                let done = map.compact();
                prop_assert_eq!(before - map.bytes().total(), done.freed_bytes);
                prop_assert!(done.compacted <= done.candidates && !map.has_changed());
            }
        }
        assert_equal(&map, &model);
        for at in model.keys() {
            map.set(*at, 0, &mut Walk::default());
        }
        let empty = MapBytes { roots: map.bytes().roots, ..MapBytes::default() };
        prop_assert_eq!(map.bytes(), empty);
    }
}

/// A log that moves through its space keeps the memory of what is live: the window moves with it.
#[test]
fn the_window_moves_with_the_log() {
    let mut map = IntervalMap::new(SMALL);
    let live = 1_000;
    for at in 0..1_000_000_u64 {
        map.set(at, 1, &mut Walk::default());
        if at >= live {
            map.set(at - live, 0, &mut Walk::default());
        }
        if at % 10_000 == 0 {
            map.check().expect("consistent");
        }
    }
    assert_eq!(map.mapped(), live);
    assert!(map.root.len() <= 4, "{} middle nodes for 1000 addresses of 512 each", map.root.len());
    assert!(map.first > 1_900, "the window begins at node {}", map.first);
}

/// One entry that stays behind keeps the window open: the root doubles, and nothing else is kept.
#[test]
fn the_root_doubles_for_what_stays_behind() {
    let mut map = IntervalMap::new(SMALL);
    map.set(3, 1, &mut Walk::default());
    let mut sizes = Vec::new();
    for at in (512..64 * 512).step_by(512) {
        map.set(at, 2, &mut Walk::default());
        map.set(at, 0, &mut Walk::default());
        sizes.push(map.root.len());
    }
    // Between two steps nothing but the first node is in use.
    sizes.dedup();
    assert_eq!(sizes, [2, 4, 8, 16, 32, 64]);
    assert_eq!((map.get(3), map.mapped()), (1, 1));
    assert_eq!(map.bytes().middles, middle_bytes(4));
    map.set(3, 0, &mut Walk::default());
    map.set(10 * SPACE, 1, &mut Walk::default());
    assert_eq!((map.first, map.get(3)), ((10 * SPACE) >> 9, 0));
    map.check().expect("consistent");
}

/// An address before the window brings it back.
#[test]
fn the_window_reaches_back() {
    let mut map = IntervalMap::new(SMALL);
    for at in [5_000, 100, 9_000, 0] {
        map.set(at, at as u32 + 1, &mut Walk::default());
        map.check().expect("consistent");
    }
    assert_eq!([0, 100, 5_000, 9_000].map(|at| map.get(at)), [1, 101, 5_001, 9_001]);
}

/// Compaction looks at what changed and is half empty, once.
#[test]
fn compaction_looks_once_at_what_changed() {
    let mut map = IntervalMap::new(MapShape::default());
    for at in 0..3 * 4096 {
        map.set(at, 1, &mut Walk::default());
    }
    assert_eq!(map.compact(), Compaction::default(), "nothing is half empty");
    for at in 0..4000 {
        map.set(at, 0, &mut Walk::default());
    }
    for at in 4096..4096 + 2047 {
        map.set(at, 0, &mut Walk::default());
    }
    let done = map.compact();
    assert_eq!((done.candidates, done.compacted, done.read_bytes), (1, 1, 512));
    assert_eq!((done.copied_bytes, done.freed_bytes), (2 + 4 * 96, 4 * 4000));
    assert_eq!(map.compact(), Compaction::default(), "nothing changed");
    map.set(4096 + 2047, 0, &mut Walk::default());
    assert_eq!((map.compact().candidates, map.compact().candidates), (1, 0));
    map.check().expect("consistent");
}

/// The memory of a full map is that of a page map and an eighth of a byte per address for bitmaps, and little more.
#[test]
fn a_full_map_costs_a_page_map_and_its_bitmaps() {
    let mut map = IntervalMap::new(MapShape::default());
    let addresses = 1 << 22;
    for at in 0..addresses {
        map.set(at, 1, &mut Walk::default());
    }
    let bytes = map.bytes();
    assert_eq!((bytes.entries, bytes.bitmaps), (4 * addresses, addresses / 8));
    assert_eq!(bytes.directories, 2 * addresses / 4096);
    assert!(bytes.total() < 4 * addresses + addresses / 8 + addresses / 32);
}

/// Accesses by hand: what is rare costs what it moves.
#[test]
fn accesses_are_those_of_what_is_visited() {
    let mut map = IntervalMap::new(SMALL);
    let set = |map: &mut IntervalMap, addresses: &[u64], entry: u32| {
        let mut walk = Walk::default();
        for &at in addresses {
            map.set(at, entry, &mut walk);
        }
        walk.take()
    };
    assert_eq!(set(&mut map, &[0], 1), WAY + 1 + 2, "a middle node and a leaf are made");
    assert_eq!(set(&mut map, &[1, 2, 100], 1), WAY + 3);
    assert_eq!(set(&mut map, &[128, 3], 1), (WAY + 1 + 1) + (WAY + 1), "another leaf is made");
    assert_eq!(set(&mut map, &[2], 9), WAY + 1, "an entry becomes another one");
    assert_eq!(set(&mut map, &[512], 1), WAY + 1 + 2 + 1, "a slot of the root moves");
    assert_eq!(set(&mut map, &[3, 4], 0), WAY + 2, "one was there");
    assert_eq!(set(&mut map, &[700], 0), 2, "no leaf is there");
    assert_eq!(set(&mut map, &[5_000], 0), 1);
    assert_eq!(set(&mut map, &[128], 0), WAY + 1 + 1, "a leaf is freed");
    assert_eq!(set(&mut map, &[512], 0), WAY + 1 + 2, "a middle node as well");
    assert_eq!(map.compact().compacted, 1);
    let mut walk = Walk::default();
    assert_eq!([1, 60, 127].map(|at| map.look_up(at, &mut walk)), [1, 0, 0]);
    assert_eq!(walk.take(), WAY + 2, "compaction left no place for the last");
    assert_eq!(set(&mut map, &[127], 0), WAY);
    assert_eq!(set(&mut map, &[127, 60], 1), WAY + (4 + 1) + 1, "all entries move once");
    assert_eq!(map.next(0..128, true, &mut walk), Some(0));
    assert_eq!(walk.take(), 0, "it is there already");
    assert_eq!(map.next(5..3 * SPACE, true, &mut Walk::default()), Some(60));
    assert_eq!(map.next(128..SPACE, true, &mut walk), None);
    // Three leaves that are not there; a slot of the root, and the other one that it has.
    assert_eq!(walk.take(), 3 * 2 + 1);
}
