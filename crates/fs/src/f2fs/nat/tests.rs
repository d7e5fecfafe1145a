//! The NAT while a checkpoint takes its entries.

use super::*;
use crate::f2fs::segment::tests::layout;

/// What a checkpoint takes out of the journal is known until NAT blocks have it, whatever leaves memory meanwhile:
/// readers would find in the old copy of the block where nodes were.
#[test]
fn entries_on_their_way_to_blocks_are_known() {
    let bitmap = VersionBitmap::from_bytes(&[0; 64]);
    let mut nat = Nat::new(layout(1), NatJournal::default(), bitmap, None, 1);
    let place = |nid: u32, round: u32| BlockAddr(4096 + 1000 * round + nid);
    let all = 4..4 + NAT_JOURNAL_ENTRIES as u32;
    let write = |nat: &mut Nat, nid: u32, round: u32| {
        let known = nat.known(Nid(nid)).unwrap_or_default();
        nat.set(Nid(nid), known, place(nid, round), Nid(nid), false);
    };
    all.clone().for_each(|nid| write(&mut nat, nid, 1));
    assert!(nat.flush_entries(false).is_empty(), "the journal has room");
    nat.end_flush();
    write(&mut nat, all.end, 2);
    let sets = nat.flush_entries(false);
    assert_eq!(sets.values().map(Vec::len).sum::<usize>(), NAT_JOURNAL_ENTRIES + 1);
    // Entries that are read push clean ones out.
    nat.note_read(Nid(400), NatEntry::default());
    nat.note_read(Nid(401), NatEntry::default());
    let known = |nat: &Nat, nid| nat.known(Nid(nid)).map(|entry| entry.block_addr);
    for nid in all {
        assert_eq!(known(&nat, nid), Some(place(nid, 1)), "node {nid}");
    }
    nat.end_flush();
    assert_eq!(known(&nat, 4), None, "the block has it");
}

/// An entry that was read from a block is not kept over a newer one, which a checkpoint put into the journal meanwhile.
#[test]
fn what_was_read_is_no_newer_than_the_journal() {
    let bitmap = VersionBitmap::from_bytes(&[0; 64]);
    let mut nat = Nat::new(layout(1), NatJournal::default(), bitmap, None, 1);
    let read = NatEntry::default();
    nat.set(Nid(4), read, BlockAddr(5_000), Nid(4), false);
    assert!(nat.flush_entries(false).is_empty(), "the journal has room");
    nat.end_flush();
    // Clean entries leave memory.
    nat.note_read(Nid(400), NatEntry::default());
    nat.note_read(Nid(4), read);
    assert_eq!(nat.known(Nid(4)).map(|entry| entry.block_addr), Some(BlockAddr(5_000)));
}
