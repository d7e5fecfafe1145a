//! Node blocks: the footer, addresses of data and numbers of other nodes, and the place of each node in
//! the tree of a file. Follows Linux's `fs/f2fs/node.h` and `get_node_path` in `node.c`.
//!
//! - A file's tree is its inode, two direct nodes, two indirect ones and one double-indirect one. Nodes
//!   are numbered in the order of the tree ([`NodeFooter::offset`]): the inode is 0.
//! - [`NodePath`] leads from a page of a file to the address slot that names its block, and
//!   [`first_page`] back from a node to the pages that it maps.
//! - Slots beyond the end of a node read as no block and are not written, whatever a caller asks for.

use super::{BLOCK_BYTES, BlockAddr, FormatError, Nid, Place};
use crate::wire::{put_u32, record, u32_at};
use nandscape_rt::invariant;
use std::fmt;

/// The bytes of a node block.
pub type NodeBytes = [u8; BLOCK_BYTES];

/// Where the footer begins.
pub const NODE_FOOTER_AT: usize = 4072;
/// Addresses in an inode without extra attributes and inline extended attributes.
pub const ADDRS_PER_INODE: u32 = 923;
/// Addresses in a direct node.
pub const ADDRS_PER_BLOCK: u32 = 1018;
/// Node numbers in an indirect node.
pub const NIDS_PER_BLOCK: u32 = 1018;
/// Node numbers in an inode: two direct, two indirect, one double indirect.
pub const NIDS_PER_INODE: u32 = 5;
/// The place in the tree that the node of extended attributes carries (`XATTR_NODE_OFFSET`).
pub const XATTR_NODE_OFFSET: u32 = u32::MAX >> OFFSET_SHIFT;

/// Where addresses begin in an inode.
pub(super) const INODE_ADDRS_AT: usize = 0x168;
/// Where node numbers begin in an inode.
pub(super) const INODE_NIDS_AT: usize = 0xfd4;
/// Bit of a footer's flags at which the place in the tree begins.
const OFFSET_SHIFT: u32 = 3;
/// Nodes of a file before the first below the double-indirect one.
const BEFORE_DOUBLE: u32 = 5 + 2 * NIDS_PER_BLOCK;

/// Bits of [`NodeFooter::flag`] below the place in the tree.
pub mod node_flag {
    /// No directory's (`COLD_BIT_SHIFT`).
    pub const COLD: u32 = 1;
    /// The last node of an fsync (`FSYNC_BIT_SHIFT`).
    pub const FSYNC: u32 = 2;
    /// Recovery has to add the name of the inode (`DENT_BIT_SHIFT`).
    pub const DENTRY: u32 = 4;
}

/// A structure that contradicts the format or itself: at which byte, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unsound {
    /// Offset in the structure.
    pub byte: usize,
    /// What is wrong.
    pub what: &'static str,
}

impl Unsound {
    /// The same as an error that names the structure.
    #[must_use]
    pub const fn at(self, place: Place) -> FormatError {
        FormatError::corrupt(place, self.byte, self.what)
    }
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {:#x}: {}", self.byte, self.what)
    }
}

record! {
    /// The last 24 bytes of a node block.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct NodeFooter {
        /// Number of the node.
        nid: u32 = 0xfe8,
        /// Inode that the node belongs to.
        ino: u32 = 0xfec,
        /// [`node_flag`], and the place in the tree from bit 3 on.
        flag: u32 = 0xff0,
        /// Version of the checkpoint after which the node was written.
        cp_ver: u64 = 0xff4,
        /// The block after this one in its log.
        next_blkaddr: u32 = 0xffc,
    }
}

impl NodeFooter {
    /// Reads the footer of a node.
    #[must_use]
    pub fn parse(node: &NodeBytes) -> Self {
        Self::read(node)
    }

    /// Writes the footer of a node.
    pub fn encode(&self, node: &mut NodeBytes) {
        self.write(node);
    }

    /// Whether the node is an inode (`IS_INODE`).
    #[must_use]
    pub const fn is_inode(&self) -> bool {
        self.nid == self.ino
    }

    /// Whether these bits are set.
    #[must_use]
    pub const fn has(&self, flag: u32) -> bool {
        self.flag & flag != 0
    }

    /// Sets or clears bits of [`node_flag`].
    pub const fn set(&mut self, flag: u32, on: bool) {
        self.flag = if on { self.flag | flag } else { self.flag & !flag };
    }

    /// The place in the file's tree (`ofs_of_node`).
    #[must_use]
    pub const fn offset(&self) -> u32 {
        self.flag >> OFFSET_SHIFT
    }

    /// Changes the place in the file's tree; the other bits stay.
    pub const fn set_offset(&mut self, offset: u32) {
        self.flag = self.flag & ((1 << OFFSET_SHIFT) - 1) | offset << OFFSET_SHIFT;
    }

    /// What the node is in its file's tree; `None` where no file has a node.
    #[must_use]
    pub const fn role(&self) -> Option<NodeRole> {
        NodeRole::of(self.offset())
    }
}

/// What a node is in the tree of its file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum NodeRole {
    /// The inode.
    Inode,
    /// Addresses of data.
    Direct,
    /// Numbers of direct nodes.
    Indirect,
    /// Numbers of indirect nodes.
    DoubleIndirect,
    /// Extended attributes.
    Xattr,
}

impl NodeRole {
    /// The role of the node at this place of a tree (`IS_DNODE`); `None` beyond the largest file.
    #[must_use]
    pub const fn of(offset: u32) -> Option<Self> {
        const FIRST_INDIRECT: u32 = 3;
        const SECOND_INDIRECT: u32 = 4 + NIDS_PER_BLOCK;
        const END: u32 = BEFORE_DOUBLE + 1 + NIDS_PER_BLOCK * (NIDS_PER_BLOCK + 1);
        Some(match offset {
            0 => Self::Inode,
            FIRST_INDIRECT | SECOND_INDIRECT => Self::Indirect,
            BEFORE_DOUBLE => Self::DoubleIndirect,
            XATTR_NODE_OFFSET => Self::Xattr,
            END.. => return None,
            _ if offset > BEFORE_DOUBLE
                && (offset - BEFORE_DOUBLE - 1).is_multiple_of(NIDS_PER_BLOCK + 1) =>
            {
                Self::Indirect
            }
            _ => Self::Direct,
        })
    }

    /// Whether it holds addresses of data (`IS_DNODE`, but for the node of extended attributes).
    #[must_use]
    pub const fn has_addrs(self) -> bool {
        matches!(self, Self::Inode | Self::Direct)
    }
}

/// The addresses of a node: where they begin, and how many there are. Those of an inode follow from its
/// [`super::InodeLayout`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddrSlots {
    at: usize,
    count: u32,
}

impl AddrSlots {
    /// Those of a direct node.
    pub const DIRECT: Self = Self { at: 0, count: ADDRS_PER_BLOCK };

    /// Those of an inode whose first `extra` words are extra attributes, and whose last `xattr` words are
    /// extended attributes.
    pub(super) const fn of_inode(extra: u32, xattr: u32) -> Self {
        let count = ADDRS_PER_INODE.saturating_sub(extra).saturating_sub(xattr);
        Self { at: INODE_ADDRS_AT + 4 * extra as usize, count }
    }

    /// How many there are.
    #[must_use]
    pub const fn count(self) -> u32 {
        self.count
    }

    /// The address in a slot: [`BlockAddr::NULL`] beyond the last.
    #[inline]
    #[must_use]
    pub fn get(self, node: &NodeBytes, slot: u32) -> BlockAddr {
        match slot < self.count {
            true => BlockAddr(u32_at(node, self.at + 4 * slot as usize)),
            false => BlockAddr::NULL,
        }
    }

    /// Changes the address in a slot; one beyond the last is left alone.
    #[inline]
    pub fn set(self, node: &mut NodeBytes, slot: u32, addr: BlockAddr) {
        invariant!(slot < self.count, "slot {slot} is one of {}", self.count);
        if slot < self.count {
            put_u32(node, self.at + 4 * slot as usize, addr.0);
        }
    }

    /// The addresses in all slots.
    pub fn iter(self, node: &NodeBytes) -> impl Iterator<Item = BlockAddr> + '_ {
        (0..self.count).map(move |slot| self.get(node, slot))
    }
}

/// The node number in a slot of an indirect or double-indirect node; 0: none there.
#[must_use]
pub fn indirect_nid(node: &NodeBytes, slot: u32) -> Nid {
    Nid(if slot < NIDS_PER_BLOCK { u32_at(node, 4 * slot as usize) } else { 0 })
}

/// Changes a node number of an indirect or double-indirect node.
pub fn set_indirect_nid(node: &mut NodeBytes, slot: u32, nid: Nid) {
    invariant!(slot < NIDS_PER_BLOCK, "slot {slot} is one of {NIDS_PER_BLOCK}");
    if slot < NIDS_PER_BLOCK {
        put_u32(node, 4 * slot as usize, nid.0);
    }
}

/// The node number in a slot of an inode, 0 to 4: two direct nodes, two indirect, one double indirect.
#[must_use]
pub fn inode_nid(node: &NodeBytes, slot: u32) -> Nid {
    Nid(if slot < NIDS_PER_INODE { u32_at(node, INODE_NIDS_AT + 4 * slot as usize) } else { 0 })
}

/// Changes a node number of an inode.
pub fn set_inode_nid(node: &mut NodeBytes, slot: u32, nid: Nid) {
    invariant!(slot < NIDS_PER_INODE, "slot {slot} is one of {NIDS_PER_INODE}");
    if slot < NIDS_PER_INODE {
        put_u32(node, INODE_NIDS_AT + 4 * slot as usize, nid.0);
    }
}

/// The place in the tree of the node that a slot of the node at `offset` leads to; `None` if nodes there
/// lead to no others, or have no such slot. Slots of an inode are those of its five node numbers.
#[must_use]
pub const fn child_offset(offset: u32, slot: u32) -> Option<u32> {
    const OF_INODE: [u32; NIDS_PER_INODE as usize] = [1, 2, 3, 4 + NIDS_PER_BLOCK, BEFORE_DOUBLE];
    match NodeRole::of(offset) {
        Some(NodeRole::Inode) if slot < NIDS_PER_INODE => Some(OF_INODE[slot as usize]),
        Some(NodeRole::Indirect) if slot < NIDS_PER_BLOCK => Some(offset + 1 + slot),
        Some(NodeRole::DoubleIndirect) if slot < NIDS_PER_BLOCK => {
            Some(offset + 1 + slot * (NIDS_PER_BLOCK + 1))
        }
        _ => None,
    }
}

/// The way from an inode to the slot that names a page's block (`get_node_path`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodePath {
    /// Nodes below the inode on the way: 0 to 3.
    pub depth: usize,
    /// The slot in each node of the way. In the inode it is an address slot if `depth` is 0, and otherwise
    /// one of the five node numbers; in the last node it is an address slot.
    pub slots: [u32; 4],
    /// The place of each node in the tree; the inode's is 0.
    pub offsets: [u32; 4],
}

impl NodePath {
    /// The way to `page` of a file whose inode holds `inode_addrs` addresses; `None` beyond the largest
    /// file.
    #[must_use]
    pub fn of(page: u64, inode_addrs: u32) -> Option<Self> {
        const DIRECT: u64 = ADDRS_PER_BLOCK as u64;
        const NIDS: u64 = NIDS_PER_BLOCK as u64;
        const INDIRECT: u64 = DIRECT * NIDS;
        const DOUBLE: u64 = INDIRECT * NIDS;
        let Some(page) = page.checked_sub(inode_addrs.into()) else {
            return Some(Self { depth: 0, slots: [page as u32, 0, 0, 0], offsets: [0; 4] });
        };
        let (slot, page) = match page {
            _ if page < 2 * DIRECT => (page / DIRECT, page % DIRECT),
            _ if page - 2 * DIRECT < 2 * INDIRECT => {
                let page = page - 2 * DIRECT;
                (2 + page / INDIRECT, page % INDIRECT)
            }
            _ => (4, page - 2 * DIRECT - 2 * INDIRECT),
        };
        if page >= DOUBLE {
            return None;
        }
        let [below, direct, addr] =
            [page / INDIRECT, page / DIRECT % NIDS, page % DIRECT].map(|n| n as u32);
        Some(match slot {
            0 | 1 => Self {
                depth: 1,
                slots: [slot as u32, addr, 0, 0],
                offsets: [0, 1 + slot as u32, 0, 0],
            },
            2 | 3 => {
                let first = if slot == 2 { 3 } else { 4 + NIDS_PER_BLOCK };
                Self {
                    depth: 2,
                    slots: [slot as u32, direct, addr, 0],
                    offsets: [0, first, first + 1 + direct, 0],
                }
            }
            _ => {
                let second = BEFORE_DOUBLE + 1 + below * (NIDS_PER_BLOCK + 1);
                Self {
                    depth: 3,
                    slots: [4, below, direct, addr],
                    offsets: [0, BEFORE_DOUBLE, second, second + 1 + direct],
                }
            }
        })
    }

    /// The slot in the last node of the way.
    #[must_use]
    pub fn addr_slot(&self) -> u32 {
        self.slots.get(self.depth).copied().unwrap_or_default()
    }

    /// The place in the tree of the last node of the way.
    #[must_use]
    pub fn node_offset(&self) -> u32 {
        self.offsets.get(self.depth).copied().unwrap_or_default()
    }
}

/// The first page that a node with addresses maps (`f2fs_start_bidx_of_node`); `None` of other nodes.
#[must_use]
pub fn first_page(offset: u32, inode_addrs: u32) -> Option<u64> {
    let role = NodeRole::of(offset)?;
    if !role.has_addrs() {
        return None;
    }
    let Some(past_inode) = offset.checked_sub(1) else { return Some(0) };
    // Direct nodes before this one: the nodes before it but for the inode and indirect ones.
    let others = match offset {
        0..=2 => 0,
        _ if offset < 4 + NIDS_PER_BLOCK => 1,
        _ if offset < BEFORE_DOUBLE => 2,
        _ => 4 + (offset - BEFORE_DOUBLE - 1) / (NIDS_PER_BLOCK + 1),
    };
    let before = u64::from(past_inode - others);
    Some(u64::from(inode_addrs) + before * u64::from(ADDRS_PER_BLOCK))
}

/// Pages of the largest file whose inode holds `inode_addrs` addresses.
#[must_use]
pub const fn max_pages(inode_addrs: u32) -> u64 {
    let nids = NIDS_PER_BLOCK as u64;
    inode_addrs as u64 + ADDRS_PER_BLOCK as u64 * (2 + 2 * nids + nids * nids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pages at both ends of every part of a tree, and in between.
    fn page() -> impl Strategy<Value = u64> {
        let (d, n) = (1018_u64, 1018_u64);
        let bounds =
            [0, 873, 923, 923 + d, 923 + 2 * d, 923 + 2 * d + d * n, 923 + 2 * d + 2 * d * n];
        let near = (0..bounds.len(), 0..4 * d).prop_map(move |(at, by)| bounds[at] + by);
        prop_oneof![0..max_pages(923), near.prop_map(move |page| page.saturating_sub(2 * d))]
    }

    proptest! {
        /// The node that a page's way ends at begins at the page less its slot, and has the role that its
        /// depth asks for.
        #[test]
        fn ways_lead_back(page in page(), inode_addrs in 1..=923_u32) {
            let Some(path) = NodePath::of(page, inode_addrs) else {
                prop_assert!(page >= max_pages(inode_addrs));
                return Ok(());
            };
            prop_assert!(page < max_pages(inode_addrs));
            let slot = path.addr_slot();
            let count = if path.depth == 0 { inode_addrs } else { 1018 };
            prop_assert!(slot < count);
            let first = first_page(path.node_offset(), inode_addrs).unwrap();
            prop_assert_eq!(first + u64::from(slot), page);
            let roles: Vec<_> = (0..=path.depth).map(|level| NodeRole::of(path.offsets[level]).unwrap()).collect();
            use NodeRole::{Direct, DoubleIndirect, Indirect, Inode};
            let expected: [&[NodeRole]; 4] =
                [&[Inode], &[Inode, Direct], &[Inode, Indirect, Direct], &[Inode, DoubleIndirect, Indirect, Direct]];
            prop_assert_eq!(&roles[..], expected[path.depth]);
            for level in 0..path.depth {
                let below = child_offset(path.offsets[level], path.slots[level]);
                prop_assert_eq!(below, Some(path.offsets[level + 1]));
            }
        }

        /// Slots are read as they were written, and touch four bytes each.
        #[test]
        fn slots_are_kept(slot in 0..1100_u32, addr in any::<u32>(), extra in 0..10_u32, xattr in 0..60_u32) {
            let layouts = [AddrSlots::DIRECT, AddrSlots::of_inode(extra, xattr)];
            for slots in layouts {
                let mut node = [0xaa; BLOCK_BYTES];
                if slot < slots.count() {
                    slots.set(&mut node, slot, BlockAddr(addr));
                    prop_assert_eq!(slots.get(&node, slot), BlockAddr(addr));
                    let at = slots.at + 4 * slot as usize;
                    let end = if slots == AddrSlots::DIRECT { NODE_FOOTER_AT } else { INODE_NIDS_AT };
                    prop_assert!(at + 4 <= end);
                    node[at..at + 4].fill(0xaa);
                    prop_assert_eq!(node, [0xaa; BLOCK_BYTES]);
                } else {
                    prop_assert_eq!(slots.get(&node, slot), BlockAddr::NULL);
                }
            }
        }

        /// Any place in a tree and any footer end in a value.
        #[test]
        fn no_footer_panics(offset in any::<u32>(), inode_addrs in 0..=923_u32) {
            let mut footer = NodeFooter { flag: 5, ..NodeFooter::default() };
            footer.set_offset(offset);
            prop_assert_eq!((footer.offset(), footer.flag & 7), (offset << 3 >> 3, 5));
            let _ = (footer.role(), first_page(offset, inode_addrs), NodePath::of(u64::from(offset) << 20, inode_addrs));
        }
    }

    /// The places of nodes that the kernel's comments name.
    #[test]
    fn places_are_the_kernels() {
        let offset =
            |page: u64| NodePath::of(page, 923).map(|path| (path.depth, path.node_offset()));
        assert_eq!(offset(922), Some((0, 0)));
        assert_eq!(offset(923), Some((1, 1)));
        assert_eq!(offset(923 + 1018), Some((1, 2)));
        assert_eq!(offset(923 + 2 * 1018), Some((2, 4)));
        assert_eq!(offset(923 + 2 * 1018 + 1018 * 1018), Some((2, 1023)));
        assert_eq!(offset(923 + 2 * 1018 + 2 * 1018 * 1018), Some((3, 2043)));
        assert_eq!(offset(1_057_053_438), Some((3, 2042 + 1018 * 1019 - 1)));
        assert_eq!(offset(1_057_053_439), None);
        assert_eq!(max_pages(923), 1_057_053_439);
        assert_eq!(NodeRole::of(XATTR_NODE_OFFSET), Some(NodeRole::Xattr));
        assert_eq!(XATTR_NODE_OFFSET, 0x1fff_ffff);
    }

    /// Every node number of indirect nodes and inodes has its own four bytes before the footer.
    #[test]
    fn node_numbers_are_kept() {
        let mut node = [0; BLOCK_BYTES];
        (0..NIDS_PER_BLOCK).for_each(|slot| set_indirect_nid(&mut node, slot, Nid(slot + 7)));
        assert!((0..NIDS_PER_BLOCK).all(|slot| indirect_nid(&node, slot) == Nid(slot + 7)));
        assert_eq!(NodeFooter::parse(&node), NodeFooter::default());
        let mut node = [0; BLOCK_BYTES];
        (0..NIDS_PER_INODE).for_each(|slot| set_inode_nid(&mut node, slot, Nid(slot + 7)));
        assert!((0..NIDS_PER_INODE).all(|slot| inode_nid(&node, slot) == Nid(slot + 7)));
        assert_eq!(NodeFooter::parse(&node), NodeFooter::default());
        assert_eq!([inode_nid(&node, 5), indirect_nid(&node, 1018)], [Nid(0), Nid(0)]);
    }
}
