//! What lines count.

use super::*;
use crate::common::layout::UnitSet;
use nandscape_media::{ChunkId, UnitId};

const GEOMETRY: Geometry = Geometry {
    groups: 2,
    units: 2,
    chunks: 40,
    sectors: 128,
    ws_min: 4,
    ws_opt: 8,
    mw_cunits: 24,
    maxoc: 0,
    maxocpu: 0,
};
const LINE_CAPACITY: u32 = 480;

/// Every line free, with 4 chunks and space for 480 data sectors.
fn lines() -> Lines {
    let layout = Layout::of(&GEOMETRY, UnitSet::All).expect("divides");
    let mut lines = Lines::new(&GEOMETRY, layout, LINE_CAPACITY).expect("address space");
    for id in 0..GEOMETRY.chunks {
        let line = lines.get_mut(id);
        (line.chunks, line.capacity) = (4, LINE_CAPACITY);
        lines.release(id);
    }
    lines
}

fn ppa(line: LineId, unit: u32, sector: u32) -> Ppa {
    GEOMETRY.ppa(ChunkId { unit: UnitId(unit), chunk: line }, sector)
}

/// The erase rule: a line whose successors are not durable stays, whatever was quarantined before it.
#[test]
fn a_line_is_released_when_its_own_gate_is_durable() {
    let mut lines = lines();
    let ids = [0, 1, 2].map(|_| lines.take_free(StripeSet::ALL, false).expect("free"));
    for (id, gate) in ids.into_iter().zip([30, 10, 20]) {
        lines.get_mut(id).gate = gate;
        lines.quarantine_line(id);
    }
    let state = |lines: &Lines| ids.map(|id| lines.get(id).state == LineState::Free);
    assert!(!lines.release_durable_lines(9));
    assert_eq!((state(&lines), lines.quarantined()), ([false; 3], 3));
    assert!(lines.release_durable_lines(20));
    assert_eq!((state(&lines), lines.quarantined()), ([false, true, true], 1));
    assert!(!lines.release_durable_lines(29));
    assert!(lines.release_durable_lines(30));
    assert_eq!((state(&lines), lines.free_lines), ([true; 3], GEOMETRY.chunks));
}

/// Data leave the lines alone that are kept for mapping blocks, which take no others.
#[test]
fn lines_that_are_kept_go_to_mapping_blocks() {
    let mut lines = lines();
    lines.kept = 2;
    let data = std::iter::from_fn(|| lines.take_free(StripeSet::ALL, false)).count();
    assert_eq!(data, GEOMETRY.chunks as usize - 2);
    let blocks = std::iter::from_fn(|| lines.take_free(StripeSet::ALL, true)).count();
    assert_eq!((blocks, lines.kept), (2, 0));
}

/// Whatever invalidates a sector last decides when the line may be erased.
#[test]
fn the_gate_is_the_latest_of_all_invalidations() {
    let mut lines = lines();
    lines.set_valid(3, ppa(3, 1, 0), 0b111);
    for (sector, gate) in [(0, 7), (1, 9), (2, 8)] {
        assert_eq!(lines.clear_valid(ppa(3, 1, sector), gate), 3);
    }
    assert_eq!((lines.get(3).gate, lines.get(3).valid), (9, 0));
}

/// A mask sets and shows neither more nor less than its sectors, wherever it begins.
#[test]
fn valid_masks_agree_with_the_bits() {
    let mut lines = lines();
    for from in [0, 24, 48, 72, 96] {
        let mask = (0..24).filter(|i| i % 3 == 0).fold(0, |mask, i| mask | 1 << i);
        lines.set_valid(5, ppa(5, 2, from), mask);
    }
    lines.set_valid(5, ppa(5, 2, 120), 0b100_1001);
    for (from, sectors) in [(0, 8), (56, 8), (60, 8), (61, 64), (0, 64), (64, 64), (127, 1)] {
        let bit = |i: u32| u64::from((from + i).is_multiple_of(3) && from + i < 128) << i;
        let expected = (0..sectors).map(bit).fold(0, |mask, bit| mask | bit);
        assert_eq!(lines.valid_mask(ppa(5, 2, from), sectors), expected, "{from} {sectors}");
    }
    assert_eq!(lines.get(5).valid, 43);
}

/// Whichever lines a caller gets, they hold at least the estimate.
#[test]
fn short_lines_are_counted_as_such() {
    let mut lines = lines();
    assert_eq!(lines.free_space().lines_for(2 * u64::from(lines.nominal)), 2);
    for chunks in [1, 3] {
        let id = lines.take_free(StripeSet::ALL, false).expect("free");
        for _ in chunks..4 {
            lines.remove_chunk(id, 128);
        }
        lines.write_off(id, u32::MAX);
        lines.release(id);
    }
    let space = lines.free_space();
    assert_eq!((space.lines(), space.short), (GEOMETRY.chunks, &[0, 1, 0, 1][..]));
    let (one, three) = (lines.nominal - 3 * 128, lines.nominal - 128);
    let sums = [0, one, one + three, one + three + lines.nominal];
    let shortest = |n: u32| u64::from(sums[n as usize]);
    for sectors in 1..=shortest(3) {
        let lines = space.lines_for(sectors);
        assert!(shortest(lines) >= sectors && shortest(lines - 1) < sectors, "{sectors}");
    }
    assert_eq!([0, 1, 2, 3].map(|n| space.sectors_of(n)), [0, 1, 2, 3].map(shortest));
}

/// Free lines are used in turn, which wears them alike.
#[test]
fn the_line_that_was_free_for_longest_is_taken() {
    let mut lines = lines();
    let first = lines.take_free(StripeSet::ALL, false);
    assert_eq!((first, lines.take_free(StripeSet::ALL, false)), (Some(0), Some(1)));
    lines.release(0);
    let rest: Vec<_> = std::iter::from_fn(|| lines.take_free(StripeSet::ALL, false)).collect();
    assert_eq!((rest.first(), rest.last()), (Some(&2), Some(&0)));
}

/// `writable` is a promise to what was admitted: taking a line keeps it, data and lost chunks
/// use it up, and nothing is taken from it twice.
#[test]
fn writable_space_is_counted_once() {
    let mut lines = lines();
    let all = u64::from(LINE_CAPACITY * GEOMETRY.chunks);
    let id = lines.take_free(StripeSet::ALL, false).expect("free");
    assert_eq!((lines.writable, lines.free_chunks), (all, 4 * 39));
    lines.use_up(id, 8);
    lines.remove_chunk(id, 128);
    assert_eq!((lines.writable, lines.in_use), (all - 136, 8));
    lines.write_off(id, u32::MAX);
    lines.write_off(id, 1);
    assert_eq!((lines.writable, lines.get(id).left), (all - 480, 0));
    lines.quarantine_line(id);
    assert_eq!((lines.writable, lines.in_use), (all - 480, 0), "quarantined lines take no data");
    lines.release_durable_lines(0);
    assert_eq!((lines.writable, lines.free_chunks), (all - 128, 4 * 40 - 1));
}

/// A line with lost chunks weighs what it cannot hold, so that one without anything to gain never
/// looks better than a full one.
#[test]
fn lost_chunks_weigh_as_valid() {
    let mut lines = lines();
    let nominal = lines.nominal;
    let line = lines.get_mut(0);
    (line.capacity, line.valid, line.pending) = (nominal - 128, nominal - 130, 2);
    assert_eq!(lines.weight(0), nominal);
    lines.get_mut(0).pending = 0;
    assert_eq!(lines.weight(0), nominal - 2);
}
