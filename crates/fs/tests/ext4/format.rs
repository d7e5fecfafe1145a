//! The structures of ext4 against images that mke2fs and debugfs made: every checksum holds, what was
//! read is what the tools say, and writing it back changes no byte.

use crate::common::image::{Image, filled};
use crate::common::{Scratch, debugfs, e2fsprogs, mke2fs, output, text};
use nandscape_fs::ext4::format::*;
use std::path::Path;

/// Feature sets that images may have.
const FEATURES: [&str; 7] = [
    "",
    "^64bit",
    "^metadata_csum",
    "^metadata_csum,uninit_bg",
    "^flex_bg",
    "metadata_csum_seed",
    "metadata_csum_seed,orphan_file",
];

fn each_image(check: impl Fn(&Image, &Path)) {
    if !e2fsprogs() {
        return;
    }
    for features in FEATURES {
        let scratch = Scratch::new();
        let path = filled(&scratch, features);
        check(&Image::load(&path), &path);
    }
}

/// Superblock and its backups, descriptors, bitmaps: sound, and the same when written back.
#[test]
fn groups_of_mke2fs_are_read_and_written_back() {
    each_image(|image, path| {
        let sb = &image.sb;
        sb.features().check(true).expect("supported features");
        let dumped = output("dumpe2fs", &[text(path)]);
        let field = |name: &str| {
            let line = dumped.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("no {name}")).trim().to_owned()
        };
        assert_eq!(field("Filesystem features:"), sb.features().names().join(" "));
        assert_eq!(field("Block count:"), sb.blocks_count.to_string());
        assert_eq!(field("Free inodes:"), sb.free_inodes_count.to_string());
        assert_eq!(field("Filesystem volume name:"), "a label");
        for group in 0..sb.groups() {
            if sb.has_superblock(group) {
                let at = if group == 0 { SUPERBLOCK_AT } else { 0 };
                let bytes = &image.block(sb.group_first_block(group))[at..at + SUPERBLOCK_BYTES];
                let copy = Superblock::parse(bytes, group).expect("a superblock");
                let mut again = bytes.to_vec();
                copy.encode(&mut again);
                assert_eq!(again, bytes);
            }
            let bytes = image.descriptor_bytes(group);
            let descriptor = image.descriptor(group);
            let mut again = bytes.to_vec();
            descriptor.encode(&mut again, group, sb);
            assert_eq!(again, bytes);
            if !descriptor.has(GROUP_BLOCK_UNINIT) {
                let bitmap = image.block(descriptor.block_bitmap);
                descriptor.check_block_bitmap(bitmap, group, sb).expect("a checksum");
                assert_eq!(bitmap::free(bitmap, sb.blocks_per_group), descriptor.free_blocks_count);
            }
            if !descriptor.has(GROUP_INODE_UNINIT) {
                let bitmap = image.block(descriptor.inode_bitmap);
                descriptor.check_inode_bitmap(bitmap, group, sb).expect("a checksum");
                assert_eq!(bitmap::free(bitmap, sb.inodes_per_group), descriptor.free_inodes_count);
            }
        }
    });
}

/// Inodes, their extents and attributes: sound, and the same when written back.
#[test]
fn inodes_of_debugfs_are_read_and_written_back() {
    each_image(|image, path| {
        for number in image.used_inodes() {
            let bytes = image.inode_bytes(number);
            let inode = image.inode(number);
            let mut again = bytes.to_vec();
            inode.encode(&mut again, inode.seed(number, &image.sb));
            assert_eq!(again, bytes, "inode {number}");
            if inode.has(flag::EXTENTS) {
                let blocks = image.data_blocks(number).len() as u64;
                assert!(blocks <= inode.blocks_4k());
                assert_eq!(blocks, inode.size.div_ceil(BLOCK_BYTES as u64), "inode {number}");
            }
        }
        let number = |name: &str| {
            let said = debugfs(path, &format!("stat {name}"));
            said.split_whitespace().nth(1).expect("an inode").parse::<u32>().expect("a number")
        };
        let inode = |name: &str| image.inode(number(name));
        assert_eq!(inode("short").fast_symlink(), Some(&b"target"[..]));
        assert_eq!(inode("long").fast_symlink(), None);
        assert_eq!(inode("device").device(), (8, 1));
        assert!(inode("dir").is_dir() && inode("dir").has(flag::INDEX));
        let xattrs = |name: &str| {
            let bytes = image.inode_bytes(number(name));
            let inode = inode(name);
            let place = Place::Inode(number(name));
            let mut xattrs =
                parse_inode_xattrs(bytes, inode.extra_isize, place).expect("attributes");
            if inode.file_acl != 0 {
                let block = image.block(inode.file_acl).try_into().expect("a block");
                let seed = image.sb.csum_seed();
                check_xattr_block(block, inode.file_acl, seed, place).expect("a checksum");
                xattrs.extend(parse_xattr_block(block, place).expect("attributes").1);
            }
            xattrs
        };
        assert_eq!(xattrs("dir/below"), [Xattr::new(b"user.hello", b"world").unwrap()]);
        assert_eq!(xattrs("short"), [Xattr::new(b"trusted.x", b"y").unwrap()]);
        let long =
            Xattr::new(format!("user.{}", "n".repeat(100)).as_bytes(), &[b'v'; 300]).unwrap();
        assert_eq!(xattrs("long"), [long]);
    });
}

/// Directories, linear and indexed: every name where its hash says, and the same when written back.
#[test]
fn directories_of_e2fsck_are_read_and_written_back() {
    each_image(|image, _| {
        let has_tail = image.sb.has(Feature::METADATA_CSUM);
        let mut indexed = 0;
        for number in image.used_inodes() {
            let inode = image.inode(number);
            if !inode.is_dir() {
                continue;
            }
            let (place, seed) = (Place::Inode(number), inode.seed(number, &image.sb));
            let blocks = image.data_blocks(number);
            let leaves: Vec<(u32, u32)> = match inode.has(flag::INDEX) {
                false => (0..blocks.len() as u32).map(|block| (0, block)).collect(),
                true => {
                    let bytes = image.block(blocks[0]);
                    let root = IndexNode::parse_root(bytes, has_tail, place).expect("a root");
                    root.check(bytes, seed, place).expect("a checksum");
                    let mut again = bytes.to_vec();
                    root.encode(&mut again);
                    root.seal(&mut again, seed);
                    assert_eq!(again, bytes);
                    assert_eq!(root.root.unwrap().levels, 0);
                    indexed += 1;
                    root.entries.iter().map(|entry| (entry.hash, entry.block)).collect()
                }
            };
            for (index, (from, block)) in leaves.iter().enumerate() {
                let to = leaves.get(index + 1).map_or(u32::MAX, |(hash, _)| *hash);
                let bytes = image.block(blocks[*block as usize]);
                check_dir_block(bytes, seed, place).expect("a checksum");
                let mut names = Vec::new();
                for entry in dir_entries(bytes, has_tail, place) {
                    let entry = entry.expect("a record");
                    let hash =
                        image.sb.hash_version().unwrap().hash(entry.name, &image.sb.hash_seed);
                    let fits = *from <= hash.hash | 1 && hash.hash <= to;
                    assert!(!inode.has(flag::INDEX) || entry.inode == 0 || fits);
                    if entry.inode != 0 {
                        let target = image.inode(entry.inode);
                        assert_eq!(file_type_of(target.mode), entry.file_type);
                        names.push((entry.inode, entry.file_type, entry.name));
                    }
                }
                let mut again = vec![0; BLOCK_BYTES];
                assert!(pack_dir_block(&mut again, &names, has_tail));
                seal_dir_block(&mut again, seed);
                check_dir_block(&again, seed, place).expect("a checksum");
            }
        }
        assert!(indexed >= 1, "e2fsck made no index");
    });
}

/// Blocks of other sizes and features that are not supported are refused by name.
#[test]
fn what_is_not_supported_is_refused_by_name() {
    if !e2fsprogs() {
        return;
    }
    let scratch = Scratch::new();
    let image = scratch.image("image", 64 << 20);
    for feature in [
        "inline_data",
        "encrypt",
        "casefold",
        "verity",
        "bigalloc",
        "meta_bg",
        "quota",
        "project",
        "mmp",
        "ea_inode",
        "large_dir",
        "sparse_super2",
    ] {
        let other = if feature == "meta_bg" {
            ",^resize_inode"
        } else if feature == "project" {
            ",quota"
        } else {
            ""
        };
        mke2fs(&image, &["-O", &format!("{feature}{other}")]);
        let features = Image::load(&image).sb.features();
        let refused =
            features.check(true).expect_err("a feature that is not supported").to_string();
        assert!(refused.contains(feature), "{feature}: {refused}");
    }
    for missing in ["extent", "filetype"] {
        mke2fs(&image, &["-O", &format!("^{missing},^64bit")]);
        let refused = Image::load(&image).sb.features().check(true).unwrap_err().to_string();
        assert!(refused.contains(missing), "{refused}");
    }
    mke2fs(&image, &["-b", "1024"]);
    let bytes = std::fs::read(&image).unwrap();
    let refused = Superblock::parse(&bytes[SUPERBLOCK_AT..], 0).unwrap_err().to_string();
    assert_eq!(refused, "superblock: blocks of 1024 bytes are not supported, only 4096");
}
