//! Damaged volumes: what a mount refuses, and what it shows.

use crate::common::examine::shown;
use crate::common::files::{ME, create};
use crate::common::image::content;
use crate::common::volume::{Device, loaded, made, mounted, run};
use nandscape_block::SectorData;
use nandscape_fs::contract::{FileSystem, FsError};
use nandscape_fs::f2fs::check::check;
use nandscape_fs::f2fs::format::{BLOCK_BYTES, Features, JOURNAL_BYTES};
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_fs::f2fs::{F2fs, MountOptions};
use nandscape_rt::Handle;
use std::sync::Arc;

const MIB: u64 = 64;
/// What precedes the entries of a journal.
const COUNT_BYTES: usize = 2;
/// Where an inode has its count of blocks (`i_blocks`).
const BLOCKS_AT: usize = 0x18;

/// A volume of which the first entry of a journal, from this byte on of the compacted summaries, has this number.
async fn with_entry(rt: &Handle, device: &Device, byte: usize, number: u32) -> Device {
    let image = F2fsImage::open(&device.erased()).await.expect("a volume");
    assert!(image.plan.compact && !image.nat_journal.entries.is_empty());
    assert!(!image.sit_journal.entries.is_empty());
    let at = u64::from(image.layout.pack(image.pack).0 + image.plan.data.start);
    let mut content = content(device);
    let mut block: [u8; BLOCK_BYTES] = *content[&at].expand().expect("bytes");
    block[byte..byte + 4].copy_from_slice(&number.to_le_bytes());
    content.insert(at, SectorData::Bytes(Arc::new(block)));
    loaded(rt, MIB << 20 >> 12, &content).await
}

/// Journals of nodes and of segments that the volume does not have are named, by a mount and by a check: the next
/// checkpoint would write what a mount took from them to another place.
#[test]
fn entries_of_journals_that_lie_outside_of_the_tables_are_named() {
    run(async |rt| {
        let options = MountOptions::default();
        let device = made(&rt, MIB, Features::default()).await;
        let fs = mounted(&rt, &device, &options).await;
        create(&fs, "file").await;
        fs.syncfs(ME).await.expect("a checkpoint");
        drop(fs);
        let image = F2fsImage::open(&device.erased()).await.expect("a volume");
        let (nids, segments) = (image.layout.nids(), image.layout.main_segments());
        let (nat, sit) = (COUNT_BYTES, JOURNAL_BYTES + COUNT_BYTES);
        for (byte, last) in [(nat, nids - 1), (sit, segments - 1)] {
            let sound = with_entry(&rt, &device, byte, last).await;
            drop(mounted(&rt, &sound, &options).await);
        }
        for (byte, number, place) in [(nat, nids, "node"), (sit, segments, "segment")] {
            let damaged = with_entry(&rt, &device, byte, number).await;
            let said = match F2fs::mount(&rt, damaged.erased(), options.clone()).await {
                Err(error @ FsError::Corrupt { .. }) => error.to_string(),
                Err(error) => panic!("{error}"),
                Ok(_) => panic!("a mount"),
            };
            let place = format!("{place} {number}");
            assert!(said.contains("is in the journal") && said.contains(&place), "{said}");
            let report = check(&damaged.erased()).await.expect("a check");
            assert!(shown(&report).contains(&place), "{}", shown(&report));
        }
    });
}

/// An inode that counts more blocks than there are sectors in 64 bits has as many sectors as can be said.
#[test]
fn a_count_of_blocks_beyond_all_bounds_is_shown() {
    run(async |rt| {
        let device = made(&rt, MIB, Features::default()).await;
        let image = F2fsImage::open(&device.erased()).await.expect("a volume");
        let root = image.inode(image.sb.root_ino).await.expect("the root");
        let mut bytes = *root.node.bytes;
        bytes[BLOCKS_AT..BLOCKS_AT + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        let mut content = content(&device);
        content.insert(root.node.entry.block_addr.0.into(), SectorData::Bytes(Arc::new(bytes)));
        let device = loaded(&rt, MIB << 20 >> 12, &content).await;
        let fs = mounted(&rt, &device, &MountOptions::default()).await;
        assert_eq!(fs.getattr(ME, fs.root()).await.map(|attr| attr.blocks), Ok(u64::MAX));
    });
}
