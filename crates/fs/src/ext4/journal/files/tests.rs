//! Records come back as they were written, and nothing else is taken for one.

use super::record::{FileRecord, NewName, Stamp};
use crate::ext4::format::crc32c;
use crate::ext4::journal::tid::Tid;
use nandscape_block::SectorBytes;
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

fn names() -> impl Strategy<Value = NewName> {
    (any::<u32>(), any::<u8>(), vec(any::<u8>(), 0..256)).prop_map(|(parent, kind, name)| NewName {
        parent,
        kind,
        name,
    })
}

fn records() -> impl Strategy<Value = FileRecord> {
    let nodes = vec((any::<u64>(), any::<u8>()), 0..6);
    (any::<u32>(), any::<u32>(), vec(any::<u8>(), 0..1_025), vec(names(), 0..3), nodes).prop_map(
        |(inode, generation, image, names, nodes)| {
            let node = |(block, byte)| (block, Arc::new([byte; 4_096]));
            let nodes = nodes.into_iter().map(node).collect();
            FileRecord { inode, generation, image, names, nodes }
        },
    )
}

fn stamps() -> impl Strategy<Value = Stamp> {
    (any::<u32>(), any::<u32>(), any::<u64>()).prop_map(|(epoch, tid, sequence)| Stamp {
        epoch,
        tid: Tid(tid),
        sequence,
    })
}

fn blocks_of(record: &FileRecord, stamp: Stamp, seed: u32) -> Vec<Arc<SectorBytes>> {
    let blocks = record.encode(stamp, seed).expect("it fits");
    blocks.into_iter().map(Arc::from).collect()
}

proptest! {
    /// A record comes back with its stamp, whatever follows it, and not if its end is missing, if the
    /// journal is another one, or if a bit changed.
    #[test]
    fn records_round_trip(
        record in records(),
        stamp in stamps(),
        seed in any::<u32>(),
        flip in any::<usize>(),
    ) {
        let mut blocks = blocks_of(&record, stamp, seed);
        prop_assert_eq!(blocks.len(), record.blocks() as usize);
        prop_assert!(FileRecord::parse(&blocks[..blocks.len() - 1], seed).is_none());
        blocks.push(Arc::new([7; 4_096]));
        prop_assert_eq!(FileRecord::parse(&blocks, seed), Some((stamp, record.clone())));
        prop_assert!(FileRecord::parse(&blocks, seed ^ 1).is_none());
        let bit = flip % (record.blocks() as usize * 4_096 * 8);
        Arc::make_mut(&mut blocks[bit / 32_768])[bit / 8 % 4_096] ^= 1 << (bit % 8);
        prop_assert!(FileRecord::parse(&blocks, seed).is_none());
    }

    /// Whatever lies in the area, parsing says whether it is a record and ends; with a sound checksum,
    /// too.
    #[test]
    fn parsing_takes_any_bytes(
        head in vec(any::<u8>(), 0x40),
        count in 0..4u32,
        seed in any::<u32>(),
    ) {
        let mut block = [0; 4_096];
        block[..0x40].copy_from_slice(&head);
        block[..4].copy_from_slice(&0x694a_726e_u32.to_be_bytes());
        block[0x20..0x24].copy_from_slice(&count.to_be_bytes());
        block[0x28..0x2c].copy_from_slice(&count.wrapping_sub(1).to_be_bytes());
        block[4..8].fill(0);
        let blocks = [block, [1; 4_096], [2; 4_096]];
        let own = &blocks[..blocks.len().min(count as usize)];
        let sum = own.iter().enumerate().fold(seed, |sum, (index, block)| {
            // Of tree blocks the last bytes come first.
            let (before, last) = block.split_at(if index == 0 { 4_096 } else { 4_092 });
            crc32c(crc32c(sum, last), before)
        });
        let mut blocks = blocks.map(Arc::new);
        Arc::make_mut(&mut blocks[0])[4..8].copy_from_slice(&sum.to_be_bytes());
        if let Some((_, record)) = FileRecord::parse(&blocks, seed) {
            prop_assert_eq!(record.blocks(), count);
        }
    }
}

/// A tree block ends with the CRC-32C of what is before it. One of an older record, with a checksum as sound, does not
/// pass for the record's own.
#[test]
fn a_tree_block_of_an_older_record_is_none_of_this() {
    let node = |byte| {
        let mut node = [byte; 4_096];
        let sum = crc32c(0x1234_5678, &node[..4_092]);
        node[4_092..].copy_from_slice(&sum.to_le_bytes());
        Arc::new(node)
    };
    let (image, names, nodes) = (vec![1; 256], Vec::new(), vec![(9, node(2))]);
    let record = FileRecord { inode: 12, generation: 1, image, names, nodes };
    let mut blocks = blocks_of(&record, Stamp { epoch: 1, tid: Tid(2), sequence: 3 }, 7);
    assert!(FileRecord::parse(&blocks, 7).is_some());
    blocks[1] = node(3);
    assert!(FileRecord::parse(&blocks, 7).is_none());
}

/// What does not fit into the first block is refused, not cut off.
#[test]
fn what_does_not_fit_is_refused() {
    let name = NewName { parent: 2, kind: 1, name: vec![b'x'; 255] };
    let record = |names, nodes| FileRecord {
        inode: 12,
        generation: 1,
        image: vec![0; 256],
        names: vec![name.clone(); names],
        nodes: vec![(9, Arc::new([0; 4_096])); nodes],
    };
    let stamp = Stamp { epoch: 1, tid: Tid(2), sequence: 3 };
    assert!(record(14, 0).encode(stamp, 0).is_some());
    assert!(record(15, 0).encode(stamp, 0).is_none());
    assert!(record(0, 500).encode(stamp, 0).is_none());
    let long = NewName { name: vec![b'x'; 256], ..name };
    let too_long = FileRecord { names: vec![long], ..record(0, 0) };
    assert!(too_long.encode(stamp, 0).is_none());
}
