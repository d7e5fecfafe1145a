//! Dentry views against a map of names, and against bytes that are no directory.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A block, or an inline area of so many bytes.
fn view<B: AsRef<[u8]>>(bytes: B) -> Dentries<B> {
    match bytes.as_ref().len() {
        BLOCK_BYTES => Dentries::block(bytes),
        _ => Dentries::inline(bytes),
    }
}

fn sizes() -> impl Strategy<Value = usize> {
    prop_oneof![Just(BLOCK_BYTES), Just(3488), Just(3452), 0..3700_usize]
}

proptest! {
    /// Names are found while they are there, with what they lead to, and never when they are not. Room is
    /// found exactly where a model of slots has it.
    #[test]
    fn names_are_kept(bytes in sizes(), steps in vec((0..60_u32, 1..60_usize, any::<bool>()), 1..120)) {
        let mut view = view(vec![0_u8; bytes]);
        let mut names: BTreeMap<Vec<u8>, (usize, u32)> = BTreeMap::new();
        let mut taken = vec![false; view.slots()];
        for (number, len, add) in steps {
            let name = format!("{number:0len$}").into_bytes();
            let (hash, slots) = (name_hash(&name), slots_of(name.len()));
            let found = view.find(&name, hash);
            let expected = names.get(&name).copied();
            prop_assert_eq!(found.map(|entry| (entry.slot, entry.ino.0)), expected);
            prop_assert!(view.find(&name, hash ^ 1).is_none());
            let room = (0..taken.len()).find(|at| taken.get(*at..at + slots).is_some_and(|run| !run.contains(&true)));
            prop_assert_eq!(view.room_for(slots), room);
            match (expected, room, add) {
                (None, Some(slot), true) => {
                    view.insert(slot, &name, hash, Nid(number + 1), file_type::REGULAR);
                    taken[slot..slot + slots].fill(true);
                    names.insert(name, (slot, number + 1));
                }
                (Some((slot, _)), _, false) => {
                    view.remove(slot);
                    taken[slot..slot + slots].fill(false);
                    names.remove(&name);
                }
                (Some((slot, _)), _, true) => {
                    view.set_target(slot, Nid(number + 1000), file_type::DIR);
                    names.insert(name, (slot, number + 1000));
                }
                _ => {}
            }
        }
        let listed: Result<BTreeMap<Vec<u8>, (usize, u32)>, Unsound> = view.iter()
            .map(|entry| entry.map(|entry| (entry.name.to_vec(), (entry.slot, entry.ino.0)))).collect();
        prop_assert_eq!(listed, Ok(names.clone()));
        prop_assert!((0..view.slots()).all(|slot| view.is_taken(slot) == taken[slot]));
        prop_assert_eq!(view.is_empty(), names.is_empty());
    }

    /// Whatever the bytes, every call ends, and what is listed lies in the view.
    #[test]
    fn no_bytes_panic(bytes in vec(prop_oneof![any::<u8>(), 0..16_u8], 0..4200), slot in 0..300_usize) {
        let mut bytes = bytes;
        if bytes.len() > 3700 {
            bytes.resize(BLOCK_BYTES, 0);
        }
        let size = bytes.len();
        let mut view = view(bytes);
        let listed: Vec<_> = view.iter().collect();
        prop_assert!(listed.len() <= view.slots());
        for entry in listed.into_iter().flatten() {
            prop_assert!(entry.slot + slots_of(entry.name.len()) <= view.slots());
            prop_assert!(view.is_taken(entry.slot) && entry.name.len() <= NAME_BYTES_MAX);
        }
        let raw = view.raw(slot);
        let _ = (view.find(b"name", raw.hash_code), view.entry(slot), view.room_for(9), view.is_empty_but_dots());
        view.set_target(slot, Nid(7), 1);
        view.remove(slot);
        if let Some(room) = view.room_for(2) {
            view.insert(room, b"0123456789", 1, Nid(3), 1);
            prop_assert_eq!(view.entry(room).unwrap().name, b"0123456789");
        }
        prop_assert_eq!(view.bytes.len(), size);
    }

    /// The pages of levels follow each other without a gap, and buckets lie in their level.
    #[test]
    fn levels_follow_each_other(level in 0..63_u32, dir_level in any::<u8>(), hash in any::<u32>()) {
        let buckets = dir_buckets(level, dir_level);
        let end = dir_block_index(level, dir_level, buckets);
        prop_assert_eq!(end, dir_block_index(level + 1, dir_level, 0));
        let at = dir_block_index(level, dir_level, hash % buckets);
        prop_assert!(at >= dir_block_index(level, dir_level, 0) && at + u64::from(bucket_blocks(level)) <= end);
    }
}

/// Sizes and levels as the kernel's macros give them.
#[test]
fn parts_have_the_kernels_sizes() {
    assert_eq!(Parts::BLOCK.names_at + DENTRY_BLOCK_SLOTS * SLOT_BYTES, BLOCK_BYTES);
    let inline = Parts::inline(3488);
    assert_eq!((inline.slots, inline.entries_at, inline.names_at), (182, 30, 2032));
    assert_eq!(
        [0, 1, 2, 30, 31, 62].map(|level| dir_buckets(level, 0)),
        [1, 2, 4, 1 << 30, 1 << 30, 1 << 30]
    );
    assert_eq!([dir_buckets(0, 3), dir_buckets(30, 1), dir_buckets(0, 255)], [8, 1 << 30, 1 << 30]);
    assert_eq!([30, 31].map(bucket_blocks), [2, 4]);
    assert_eq!([0, 1, 2, 3].map(|level| dir_block_index(level, 0, 0)), [0, 2, 6, 14]);
    assert_eq!(dir_block_index(2, 0, 3), 12);
    assert_eq!([1, 8, 9, 255].map(slots_of), [1, 1, 2, 32]);
}

/// "." and ".." take the first two slots; a name that does not fit its slots, or has none, is reported, and
/// what follows is listed.
#[test]
fn unsound_entries_are_reported() {
    let mut view = Dentries::block([0; BLOCK_BYTES]);
    view.init_dots(Nid(5), Nid(3));
    assert!(view.is_empty_but_dots() && !view.is_empty());
    let dots: Vec<_> =
        view.iter().map(|entry| entry.unwrap()).map(|e| (e.name, e.ino.0, e.hash)).collect();
    assert_eq!(dots, [(&b"."[..], 5, 0), (b"..", 3, 0)]);
    view.insert(2, b"first", 1, Nid(6), file_type::REGULAR);
    // A name of the same length and hash is another name.
    view.insert(3, b"other", 1, Nid(8), file_type::REGULAR);
    assert_eq!(view.find(b"other", 1).map(|entry| entry.ino), Some(Nid(8)));
    view.remove(3);
    assert_eq!(view.find(b"other", 1), None);
    view.insert(213, b"last", 2, Nid(7), file_type::REGULAR);
    assert!(!view.is_empty_but_dots());
    for (length, what) in [
        (0, "entry without a name"),
        (256, "name does not fit its slots"),
        (65535, "name does not fit its slots"),
    ] {
        put_u16(&mut view.bytes, 30 + 2 * ENTRY_BYTES + 8, length);
        let listed: Vec<_> = view.iter().skip(2).collect();
        assert_eq!(listed[0], Err(Unsound { byte: 60, what }), "{length}");
        assert_eq!(listed[1].unwrap().name, b"last");
    }
    put_u16(&mut view.bytes, 30 + 213 * ENTRY_BYTES + 8, 9);
    assert_eq!(
        view.iter().last(),
        Some(Err(Unsound { byte: 30 + 213 * 11 + 8, what: "name does not fit its slots" }))
    );
    let types = [0o100_644, 0o040_755, 0o020_600, 0o060_600, 0o010_600, 0o140_755, 0o120_777, 0]
        .map(file_type::of_mode);
    assert_eq!(types, [1, 2, 3, 4, 5, 6, 7, 0]);
}
