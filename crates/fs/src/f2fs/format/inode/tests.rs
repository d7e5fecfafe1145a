//! Inodes: layouts stay inside the block whatever the bytes, fields are kept, checksums notice each bit,
//! and unsound inodes are refused with their place.

use super::*;
use crate::f2fs::format::BLOCK_BYTES;
use proptest::collection::vec;
use proptest::prelude::*;

const ALL: InodeFeatures =
    InodeFeatures { extra_attr: true, flexible_inline_xattr: true, inode_checksum: true };

fn node_of(bytes: &[u8]) -> NodeBytes {
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or_default())
}

/// A sound inode with all extra attributes.
fn sound() -> NodeBytes {
    let mut node = [0; BLOCK_BYTES];
    NodeFooter { nid: 9, ino: 9, ..NodeFooter::default() }.encode(&mut node);
    let inline = inline::EXTRA_ATTR | inline::XATTR;
    Inode { mode: mode::REGULAR | 0o644, inline, blocks: 1, links: 1, ..Inode::default() }
        .encode(&mut node);
    let extra = ExtraAttrs { extra_isize: 36, inline_xattr_size: 50, ..ExtraAttrs::default() };
    extra.encode(&mut node, InodeLayout::new(36, 50, true));
    node
}

fn any_features() -> impl Strategy<Value = InodeFeatures> {
    any::<[bool; 3]>().prop_map(|[extra_attr, flexible_inline_xattr, inode_checksum]| {
        InodeFeatures { extra_attr, flexible_inline_xattr, inode_checksum }
    })
}

proptest! {
    /// Whatever the bytes, the parts of an inode lie between its fields and its node numbers, and no two
    /// overlap.
    #[test]
    fn layouts_stay_inside(bytes in vec(any::<u8>(), 0x200), features in any_features(), flags in any::<u8>()) {
        let mut node = node_of(&bytes);
        node[INLINE_AT] = flags;
        let layout = InodeLayout::of(&node, features);
        let extra = INODE_ADDRS_AT..INODE_ADDRS_AT + layout.extra_bytes() as usize;
        let (data, xattr) = (layout.inline_data(), layout.inline_xattr());
        prop_assert!(extra.end <= 0xfd4 && xattr.end == 0xfd4 && xattr.start >= extra.end);
        prop_assert!(data.is_empty() || (data.start == extra.end + 4 && data.end <= xattr.start));
        prop_assert!(layout.addr_count() <= ADDRS_PER_INODE);
        let _ = (check_inode(&node, features, |_| true), inode_checksums(&node, features, 1));
        let _ = (ExtraAttrs::parse(&node, layout), device_number(&node, layout), Inode::parse(&node).name().len());
    }

    /// Fields read from any bytes and written over them change nothing.
    #[test]
    fn records_change_no_foreign_byte(bytes in vec(any::<u8>(), BLOCK_BYTES), extra in 0..40_u32) {
        let node = node_of(&bytes);
        let mut again = node;
        Inode::parse(&node).encode(&mut again);
        let layout = InodeLayout::new(extra, 50, true);
        ExtraAttrs::parse(&node, layout).encode(&mut again, layout);
        NodeFooter::parse(&node).encode(&mut again);
        prop_assert_eq!(&again[..], &node[..]);
    }

    /// Extra attributes beyond `extra_isize` are addresses, and are left alone.
    #[test]
    fn extra_attributes_end_where_they_say(words in 0..=9_u32) {
        let layout = InodeLayout::new(4 * words, 0, false);
        let full = ExtraAttrs { extra_isize: 36, projid: 7, crtime: u64::MAX, crtime_nsec: 1, ..ExtraAttrs::default() };
        let mut node = [0xaa; BLOCK_BYTES];
        full.encode(&mut node, layout);
        let end = INODE_ADDRS_AT + 4 * words as usize;
        prop_assert!(node[end..].iter().all(|byte| *byte == 0xaa));
        prop_assert_eq!(ExtraAttrs::parse(&node, layout).projid, if words >= 2 { 7 } else { 0 });
    }

    /// A checksum notices each changed bit of the block.
    #[test]
    fn checksums_notice_each_bit(bit in 0..8 * BLOCK_BYTES, seed in any::<u32>()) {
        let mut node = sound();
        seal_inode(&mut node, ALL, seed);
        let (stored, computed) = inode_checksums(&node, ALL, seed).unwrap();
        prop_assert_eq!(stored, computed);
        node[bit / 8] ^= 1 << (bit % 8);
        if let Some((stored, computed)) = inode_checksums(&node, ALL, seed) {
            prop_assert_ne!(stored, computed);
        }
    }
}

/// Sizes of the parts, as the kernel's macros give them.
#[test]
fn parts_have_the_kernels_sizes() {
    let plain = InodeLayout::new(0, 0, false);
    assert_eq!((plain.addr_count(), plain.inline_data_bytes()), (923, 3688));
    let default = InodeLayout::new(0, 50, true);
    assert_eq!((default.addr_count(), default.inline_data_bytes()), (873, 3488));
    assert_eq!(default.inline_xattr(), 0xfd4 - 200..0xfd4);
    let extra = InodeLayout::new(36, 50, true);
    assert_eq!((extra.addr_count(), extra.inline_data()), (864, 0x190..0x190 + 3452));
}

/// Each thing that the kernel refuses is refused, at its byte.
#[test]
fn unsound_inodes_are_refused() {
    let check = |node: &NodeBytes| check_inode(node, ALL, |addr| (100..200).contains(&addr.0));
    assert_eq!(check(&sound()), Ok(()));
    let wrong: [(usize, &[u8], usize); 11] = [
        (0x18, &[0; 8], 0x18),
        (0xfe8, &[8], NODE_FOOTER_AT),
        (0x3, &[inline::XATTR], 0x3),
        (0x168, &[38], 0x168),
        (0x168, &[40], 0x168),
        (0x16a, &[0, 0], 0x16a),
        (0x16a, &[0x88, 3], 0x16a),
        (0x15c, &[0, 0, 0, 0, 150, 0, 0, 0, 60, 0, 0, 0], 0x15c),
        (0x1, &[0x40, 0, inline::EXTRA_ATTR | inline::DATA], 0x3),
        (0x3, &[inline::EXTRA_ATTR | inline::DENTRY], 0x3),
        (0x1, &[0x71], 0x0),
    ];
    for (at, bytes, byte) in wrong {
        let mut node = sound();
        node[at..at + bytes.len()].copy_from_slice(bytes);
        assert_eq!(check(&node).map_err(|error| error.byte), Err(byte), "{at:#x} {bytes:x?}");
    }
    let without = InodeFeatures { extra_attr: false, ..ALL };
    assert_eq!(check_inode(&sound(), without, |_| true).unwrap_err().byte, 0x3);
}

/// Device numbers in the old form and in the new one.
#[test]
fn devices_are_read() {
    let layout = InodeLayout::new(36, 50, true);
    let mut node = sound();
    layout.addrs().set(&mut node, 0, BlockAddr(0x0801));
    assert_eq!(device_number(&node, layout), (8, 1));
    layout.addrs().set(&mut node, 0, BlockAddr(0));
    layout.addrs().set(&mut node, 1, BlockAddr(0x1234_5678));
    assert_eq!(device_number(&node, layout), (0x456, 0x12378));
}
