//! Each kind of damage is found at its place, and however much is damaged, check and dump end.

use super::damage::{Change, Kind, map};
use crate::common::examine::{check_image, on_image, shown, try_dump};
use crate::common::{Scratch, f2fs_tools};
use crate::read::filled;
use nandscape_fs::f2fs::dump::DumpTarget;
use nandscape_fs::f2fs::format::*;
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_rt::Stream;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where things are that tests damage, in bytes.
struct Places {
    /// A file with a direct node and blocks: inode, node number, first block.
    inode: u64,
    ino: u32,
    data: u32,
    data_segment: u32,
    /// Its first direct node.
    direct: u64,
    /// Entries of the NAT and the SIT.
    nat: u64,
    sit: u64,
    /// A block of names, and the directory.
    names: u64,
    dir: u64,
    dir_ino: u32,
}

fn places(path: &Path) -> Places {
    on_image(path, async |device| {
        let image = F2fsImage::open(&device).await.expect("a volume");
        let root = image.inode(Nid(3)).await.expect("the root");
        let small = find(&image, &root, b"small").await;
        let raw = image.inode(small).await.expect("a directory");
        let ino = find(&image, &raw, b"direct").await;
        let file = image.inode(ino).await.expect("a file");
        let data = file.layout.addrs().get(&file.node.bytes, 0);
        let direct = image.node(inode_nid(&file.node.bytes, 0)).await.expect("a node");
        let (segment, _) = image.layout.segment_of(data).expect("a segment");
        let at = |block: u32, byte: usize| u64::from(block) * BLOCK_BYTES as u64 + byte as u64;
        let (index, slot) = image.layout.nat_place(ino);
        let nat = image.layout.nat_block(index, false).expect("a block");
        let (sit_index, sit_slot) = image.layout.sit_place(segment);
        let sit = image.layout.sit_block(sit_index, false).expect("a block");
        let names = raw.layout.addrs().get(&raw.node.bytes, 0);
        Places {
            inode: at(file.node.entry.block_addr.0, 0),
            ino: ino.0,
            data: data.0,
            data_segment: segment.0,
            direct: at(direct.entry.block_addr.0, 0),
            nat: at(nat.0, slot * NAT_ENTRY_BYTES),
            sit: at(sit.0, sit_slot * SIT_ENTRY_BYTES),
            names: at(names.0, 0),
            dir: at(raw.node.entry.block_addr.0, 0),
            dir_ino: small.0,
        }
    })
}

async fn find(image: &F2fsImage, dir: &nandscape_fs::f2fs::raw::RawInode, name: &[u8]) -> Nid {
    let names = image.names(dir).await.expect("names");
    names.iter().find(|entry| entry.name == name).expect("a name").ino
}

/// Every kind of damage leads to a finding with its place and what is wrong.
#[test]
fn damage_is_found_at_its_place() {
    if !f2fs_tools() {
        return;
    }
    let scratch = Scratch::new();
    let path = filled(&scratch, "volume", 100, "", 20);
    let p = places(&path);
    let (ino, dir, data) = (p.ino, p.dir_ino, p.data);
    let next = u32::to_le_bytes(data + 1);
    let cases: Vec<(u64, Vec<u8>, String)> = vec![
        (p.inode + 0xc, vec![2], format!("inode {ino}: link count is 2, counted 1")),
        (p.inode + 0x18, vec![7, 0], format!("inode {ino}: block count is 7")),
        (p.inode, vec![0xff, 0x71], format!("inode {ino}: byte 0: has an unknown file type")),
        (p.inode + 0x160, [next, [4, 0, 0, 0]].concat(), format!("inode {ino}: says 4 blocks at ")),
        (p.inode + 0x58, vec![0, 1], format!("inode {ino}: says a name of more than 255 bytes")),
        (
            p.inode + 0x4c,
            vec![ino as u8],
            format!("inode {ino}: refers to node {ino}, which already"),
        ),
        (p.inode + 0x168, next.to_vec(), format!("block {} has more than one owner", data + 1)),
        (p.inode + 0x168, vec![0; 4], format!("segment {}: 1 valid blocks that", p.data_segment)),
        (p.inode + 0x168, vec![1, 0, 0, 0], format!("inode {ino}: page 0 is in block 1, out")),
        (p.direct + 0xff0, vec![0x11], "has offset 2 in its footer, expected 1".into()),
        (p.direct + 0xfec, vec![3], "is of inode 3, but of".into()),
        (p.nat + 5, vec![0; 4], format!("refers to node {ino}, which does not exist")),
        (
            p.nat,
            vec![9],
            format!("inode {ino}: summary of block {data} says node {ino}, version 0"),
        ),
        (p.sit + 2, vec![0], format!("inode {ino}: block {data} is free by the SIT")),
        (p.sit, vec![0x55], format!("segment {}: byte 0: count of blocks", p.data_segment)),
        (p.names + 30 + 22, vec![0xee], format!("directory {dir}, block 0: \"")),
        (p.names + 30 + 4, vec![0xee], format!("directory {dir}, block 0: \".\" refers to inode")),
        (
            p.names + 30 + 8 + 22,
            vec![0, 0],
            format!("directory {dir}, block 0: byte 60: entry without"),
        ),
        (p.names, vec![0xfe], "does not name itself and its parent once each".into()),
        (p.dir + 0xc, vec![9], format!("inode {dir}: link count is 9, counted 2")),
        (p.dir + 0x48, vec![0], "where no search for it comes".into()),
        (p.dir + 0x54, vec![4], format!("inode {dir}: says that directory 4 names it")),
        (p.dir + 0x11, vec![0], format!("inode {dir}: size is 0 bytes, but 1 blocks have names")),
    ];
    let file = File::options().read(true).write(true).open(&path).expect("an image");
    let mut missed = Vec::new();
    for (at, bytes, finding) in cases {
        let mut before = vec![0; bytes.len()];
        file.read_exact_at(&mut before, at).expect("an image");
        file.write_all_at(&bytes, at).expect("an image");
        let report = check_image(&path).expect("a volume that can be checked");
        if !shown(&report).contains(&finding) {
            missed.push(format!("{finding}: {}", shown(&report)));
        }
        file.write_all_at(&before, at).expect("an image");
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(check_image(&path).expect("a volume").is_clean());
}

/// However much of the metadata is damaged at once, check and dump end in a report or an error.
#[test]
fn heavy_damage_ends_in_a_report() {
    if !f2fs_tools() {
        return;
    }
    let scratch = Scratch::new();
    let path = filled(&scratch, "volume", 100, "extra_attr,inode_crtime", 200);
    let map = map(&path);
    let mut bytes = std::fs::read(&path).expect("an image");
    let file = File::options().write(true).open(&path).expect("an image");
    let mut checked = 0;
    for seed in 0..100 {
        let mut rng = Stream::new(seed, "heavy damage");
        let mut changes: Vec<Change> = Vec::new();
        for _ in 0..1 + rng.below(60) {
            let target = map.targets[rng.below(map.targets.len() as u64) as usize];
            if target.kind != Kind::Superblock
                && let Some(change) = map.damage(&mut bytes, target, &mut rng)
            {
                changes.push(change.clone());
                changes.extend(map.mend(&mut bytes, target, &change));
            }
        }
        let put = |at: usize, bytes: &[u8]| file.write_all_at(bytes, at as u64).expect("an image");
        changes.iter().for_each(|change| put(change.at, &change.after));
        if let Ok(report) = check_image(&path) {
            assert!(report.findings.len() <= 1_000);
            assert!(!report.is_clean() || changes.is_empty(), "seed {seed}");
            checked += 1;
        }
        for what in [DumpTarget::Tree, DumpTarget::Checkpoint, DumpTarget::Inode(3)] {
            drop(try_dump(&path, what));
        }
        for change in changes.iter().rev() {
            put(change.at, &change.before);
            bytes[change.at..change.at + change.before.len()].copy_from_slice(&change.before);
        }
    }
    assert!(check_image(&path).expect("a volume").is_clean());
    assert!(checked > 50, "{checked}");
}
