//! Our check against e2fsck: sound images of mke2fs, debugfs and the kernel are sound to both, and
//! whatever damage e2fsck finds, we find.

use crate::common::examine::{assert_sound, check_image, dumped, shown};
use crate::common::image::{Image, filled};
use crate::common::mount::LoopMount;
use crate::common::tree::{by_debugfs, by_kernel};
use crate::common::{Scratch, debugfs_write, e2fsprogs, mke2fs, run, text};
use nandscape_fs::ext4::dump::DumpTarget;
use nandscape_fs::ext4::format::*;
use nandscape_rt::Stream;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Images with all features that we know, filled by debugfs and put in order by e2fsck, are sound, and
/// what is in use is counted as dumpe2fs counts it.
#[test]
fn sound_images_are_sound() {
    if !e2fsprogs() {
        return;
    }
    for features in [
        "",
        "^64bit",
        "^metadata_csum",
        "^metadata_csum,uninit_bg",
        "^flex_bg",
        "^resize_inode,^has_journal",
    ] {
        let scratch = Scratch::new();
        let path = filled(&scratch, features);
        let report = assert_sound(&path);
        let sb = Image::load(&path).sb;
        assert_eq!(report.blocks, sb.blocks_count - sb.free_blocks_count, "{features}");
        assert_eq!(
            report.inodes,
            u64::from(sb.inodes_count - sb.free_inodes_count - reserved(&sb)),
            "{features}"
        );
        assert_eq!(report.directories, 4);
    }
}

/// Reserved inodes that hold nothing.
fn reserved(sb: &Superblock) -> u32 {
    let held = [Feature::RESIZE_INODE, Feature::HAS_JOURNAL];
    sb.first_ino - 2 - held.iter().filter(|feature| sb.has(**feature)).count() as u32
}

/// What the kernel makes is sound: large directories with deep indexes, sparse and large files,
/// attributes, links; and the tree that debugfs reads is the one that the kernel reads.
#[test]
fn images_of_the_kernel_are_sound() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let path = scratch.image("image", 600 << 20);
    mke2fs(&path, &[]);
    let Some(mounted) = LoopMount::new(&scratch, &path, "rw") else { return };
    fill(mounted.path());
    let by_kernel = by_kernel(mounted.path());
    drop(mounted);
    assert_sound(&path);
    assert_eq!(by_debugfs(&scratch, &path), by_kernel);
    let sb = Image::load(&path).sb;
    let text = dumped(&path, DumpTarget::Directory(number(&path, "many")));
    assert!(text.contains("root of the index, half_md4, 1 levels below"), "{text}");
    assert!(dumped(&path, DumpTarget::Extents(number(&path, "holes"))).contains("depth 1"));
    assert!(dumped(&path, DumpTarget::Journal).contains("the log ends before it"));
    assert_eq!(dumped(&path, DumpTarget::Groups).lines().count() as u32, sb.groups() + 2);
}

/// Files as the kernel makes them.
fn fill(root: &Path) {
    use std::os::unix::fs::symlink;
    let many = root.join("many");
    std::fs::create_dir(&many).unwrap();
    for index in 0..7_000 {
        // Empty files with long names: an index of two levels.
        File::create(many.join(format!("{index:0250}"))).unwrap();
    }
    for index in (0..7_000).step_by(3) {
        std::fs::remove_file(many.join(format!("{index:0250}"))).unwrap();
    }
    let holes = File::create(root.join("holes")).unwrap();
    for index in 0..900_u64 {
        holes.write_all_at(b"island", index * 3 * 4096).unwrap();
    }
    std::fs::write(root.join("large"), vec![7; 30 << 20]).unwrap();
    std::fs::hard_link(root.join("large"), root.join("linked")).unwrap();
    symlink("short", root.join("fast")).unwrap();
    symlink("long/".repeat(40), root.join("slow")).unwrap();
    std::fs::create_dir_all(root.join("a/b/c/d")).unwrap();
}

/// The inode of a name.
fn number(path: &Path, name: &str) -> u32 {
    let said = crate::common::debugfs(path, &format!("stat {name}"));
    said.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("an inode")
}

/// Extents are those that debugfs shows, in its notation.
#[test]
fn extents_are_shown_as_debugfs_does() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let path = filled(&scratch, "");
    let unwritten = "dir/a-name-that-fills-directories-sooner-1";
    debugfs_write(&path, &format!("fallocate {unwritten} 20 40\n"));
    for name in ["dir", unwritten, "<8>"] {
        let stat = crate::common::debugfs(&path, &format!("stat {name}"));
        let (_, theirs) = stat.split_once("EXTENTS:\n").expect("extents");
        let theirs: Vec<&str> = theirs
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|extent| extent.starts_with('(') && !extent.starts_with("(ETB"))
            .collect();
        let ours = dumped(&path, DumpTarget::Extents(number(&path, name)));
        let ours: Vec<&str> =
            ours.lines().map(str::trim).filter(|line| line.starts_with('(')).collect();
        assert!(!ours.is_empty());
        // Index entries are not of the file.
        let leaves: Vec<_> = ours.into_iter().filter(|line| !line.contains("below")).collect();
        assert_eq!(leaves, theirs, "{name}");
    }
}

/// Damage that debugfs does on request, and what we say of it.
#[test]
fn damage_is_reported_with_its_place() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let sound = filled(&scratch, "");
    let image = Image::load(&sound);
    let below = number(&sound, "dir/below");
    let data = image.data_blocks(number(&sound, "dir/a-name-that-fills-directories-sooner-1"))[0];
    let cases = [
        (
            "set_super_value free_blocks_count 5".to_owned(),
            "superblock: free blocks: 5 recorded".to_owned(),
        ),
        (
            "set_super_value free_inodes_count 5".into(),
            "superblock: free inodes: 5 recorded".into(),
        ),
        (format!("freeb {data}"), format!("block {data} is in use")),
        ("setb 70000".into(), "block 70000 is not in use; 1 bits are wrong".into()),
        ("seti <2000>".into(), "inode 2000 is not in use".into()),
        (format!("freei <{below}>"), format!("inode {below} is in use")),
        (format!("clri <{below}>"), format!("\"below\" refers to unused inode {below}")),
        (
            format!("set_inode_field <{below}> links_count 7"),
            format!("inode {below}: link count is 7, counted 2"),
        ),
        (
            format!("set_inode_field <{below}> size 8192"),
            format!("inode {below}: a directory of 8192 bytes"),
        ),
        (
            format!("set_inode_field <{below}> blocks 80"),
            format!("inode {below}: block count is 80 sectors, counted 8"),
        ),
        ("unlink dir".into(), "is a directory that is not reachable from the root".into()),
        ("unlink short".into(), "is in use, but has no name".into()),
        ("link dir/below second".into(), "is a second name of a directory".into()),
        (format!("set_inode_field <{below}> block[5] {data}"), "has more than one owner".into()),
        ("set_inode_field <8> block[0] 0".into(), "inode 8, byte 0: is not an extent node".into()),
        ("feature needs_recovery".into(), "needs recovery".into()),
    ];
    let damaged = scratch.path("damaged");
    for (command, expected) in cases {
        std::fs::copy(&sound, &damaged).unwrap();
        debugfs_write(&damaged, &format!("{command}\n"));
        let report = check_image(&damaged).expect("a file system that can be checked");
        let said = shown(&report);
        assert!(said.contains(&expected), "{command}: {expected:?} in\n{said}");
    }
}

/// Blocks that hold metadata, with the bytes of each that count.
fn metadata_blocks(image: &Image) -> Vec<u64> {
    let sb = &image.sb;
    let mut blocks = vec![0, 1];
    for group in 0..sb.groups() {
        let descriptor = image.descriptor(group);
        if !descriptor.has(GROUP_BLOCK_UNINIT) {
            blocks.push(descriptor.block_bitmap);
        }
        if !descriptor.has(GROUP_INODE_UNINIT) {
            blocks.push(descriptor.inode_bitmap);
        }
    }
    for number in image.used_inodes() {
        let inode = image.inode(number);
        let place = sb.inode_place(number).expect("an inode");
        blocks.push(image.descriptor(place.group).inode_table + place.block(sb));
        if inode.is_dir() {
            blocks.extend(image.data_blocks(number));
        }
        if inode.file_acl != 0 {
            blocks.push(inode.file_acl);
        }
    }
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}

/// Whatever byte of metadata is changed: if e2fsck finds something, so do we; with and without
/// checksums.
#[test]
fn what_e2fsck_finds_we_find() {
    if !e2fsprogs() {
        return;
    }
    for (features, rounds, least) in [("", 80, 40), ("^metadata_csum", 160, 5)] {
        let scratch = Scratch::new();
        let path = filled(&scratch, features);
        let image = Image::load(&path);
        let blocks = metadata_blocks(&image);
        let mut random = Stream::new(7, "damage");
        let damaged = File::options().write(true).open(&path).unwrap();
        let (mut missed, mut found) = (Vec::new(), 0);
        for _ in 0..rounds {
            let block = blocks[random.below(blocks.len() as u64) as usize];
            let from = if block == 0 { SUPERBLOCK_AT as u64 } else { 0 };
            let to = if block == 0 { from + SUPERBLOCK_BYTES as u64 } else { 4096 };
            let at = block * BLOCK_BYTES as u64 + random.within(from..to);
            let before = image.bytes[at as usize];
            damaged.write_all_at(&[before ^ 1 << random.below(8)], at).unwrap();
            let theirs = run("e2fsck", &["-fn", text(&path)]);
            let sound = check_image(&path).is_ok_and(|report| report.is_clean());
            damaged.write_all_at(&[before], at).unwrap();
            found += u32::from(!sound);
            if sound && theirs.status.code() != Some(0) {
                let said = String::from_utf8_lossy(&theirs.stdout).into_owned();
                missed.push(format!("block {block} byte {}: {said}", at % BLOCK_BYTES as u64));
            }
        }
        assert!(missed.is_empty(), "{features}: {missed:#?}");
        assert!(found >= least, "{features}: {found} of {rounds}");
    }
}
