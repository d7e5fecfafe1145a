//! Nodes, and what follows from them: the blocks of a file, names of a directory, extended attributes.

use super::{F2fsImage, RawError};
use crate::f2fs::format::*;
use crate::image::BlockBytes;
use std::collections::BTreeSet;

/// A node that is where the NAT says, and that says the same of itself.
#[derive(Clone, Debug)]
pub struct RawNode {
    /// Its number.
    pub nid: Nid,
    /// What the NAT says.
    pub entry: NatEntry,
    /// What it says itself.
    pub footer: NodeFooter,
    /// Its bytes.
    pub bytes: BlockBytes,
}

/// An inode.
#[derive(Clone, Debug)]
pub struct RawInode {
    /// The node.
    pub node: RawNode,
    /// Its fields.
    pub inode: Inode,
    /// What lies where in it.
    pub layout: InodeLayout,
}

/// A node with addresses.
#[derive(Clone, Debug)]
pub struct Dnode {
    /// The node.
    pub node: RawNode,
    /// Where its addresses are.
    pub slots: AddrSlots,
    /// The page that the first of them is of.
    pub first_page: u64,
}

/// A name of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawDentryOf {
    /// The page of the directory; 0 in an inode.
    pub page: u64,
    /// The slot.
    pub slot: usize,
    /// The hash that the entry says.
    pub hash: u32,
    /// The inode that the name leads to.
    pub ino: Nid,
    /// See [`file_type`].
    pub file_type: u8,
    /// The name.
    pub name: Vec<u8>,
}

impl F2fsImage {
    /// Reads a node.
    ///
    /// # Errors
    /// A number of no node, or a block that holds another node; errors of the device.
    pub async fn node(&self, nid: Nid) -> Result<RawNode, RawError> {
        let corrupt = |byte, what| Err(FormatError::corrupt(Place::Node(nid), byte, what).into());
        if nid.0 == 0 || nid.0 >= self.layout.nids() {
            return corrupt(0, "no such node number");
        }
        let entry = self.nat_entry(nid).await?;
        if !self.layout.is_main(entry.block_addr) {
            return corrupt(0, "has no block in the main area");
        }
        let bytes = self.reader.block(entry.block_addr.0.into()).await?;
        let footer = NodeFooter::parse(&bytes);
        if footer.nid != nid.0 {
            return corrupt(NODE_FOOTER_AT, "is another node by its footer");
        }
        if footer.ino != entry.ino.0 {
            return corrupt(NODE_FOOTER_AT + 4, "is of another inode than the NAT says");
        }
        Ok(RawNode { nid, entry, footer, bytes })
    }

    /// Reads an inode.
    ///
    /// # Errors
    /// Those of [`F2fsImage::node`], an unsound inode ([`check_inode`]).
    pub async fn inode(&self, ino: Nid) -> Result<RawInode, RawError> {
        let node = self.node(ino).await?;
        let features = self.inode_features();
        let is_data = |addr| self.layout.is_main(addr);
        check_inode(&node.bytes, features, is_data).map_err(|e| e.at(Place::Inode(ino)))?;
        let (inode, layout) = (Inode::parse(&node.bytes), InodeLayout::of(&node.bytes, features));
        Ok(RawInode { node, inode, layout })
    }

    /// The nodes of a file that hold addresses, in the order of pages. None of an inode whose words are
    /// inline content or a device number.
    #[must_use]
    pub fn file_nodes<'a>(&'a self, inode: &RawInode) -> FileNodes<'a> {
        let inline = inode.inode.has_inline(inline::DATA | inline::DENTRY);
        let has_blocks =
            inode.inode.is_dir() || inode.inode.is_regular() || inode.inode.is_symlink();
        let first = (!inline && has_blocks).then(|| inode.node.clone());
        FileNodes {
            image: self,
            ino: inode.node.nid,
            slots: inode.layout.addrs(),
            first,
            waiting: Vec::new(),
            seen: BTreeSet::new(),
        }
    }

    /// The names of a directory, "." and ".." among them if they are stored.
    ///
    /// # Errors
    /// An unsound node or entry; errors of the device.
    pub async fn names(&self, dir: &RawInode) -> Result<Vec<RawDentryOf>, RawError> {
        let mut names = Vec::new();
        let ino = dir.node.nid;
        if dir.inode.has_inline(inline::DENTRY) {
            let area = &dir.node.bytes[dir.layout.inline_data()];
            collect(&Dentries::inline(area), ino, 0, &mut names)?;
            return Ok(names);
        }
        let mut nodes = self.file_nodes(dir);
        while let Some(dnode) = nodes.next().await {
            let dnode = dnode?;
            for (page, addr) in (dnode.first_page..).zip(dnode.slots.iter(&dnode.node.bytes)) {
                if !addr.is_block() {
                    continue;
                }
                let bytes = self.data(addr, ino).await?;
                collect(&Dentries::block(&bytes[..]), ino, page, &mut names)?;
            }
        }
        Ok(names)
    }

    /// A block of an inode's data.
    ///
    /// # Errors
    /// A block outside the main area; errors of the device.
    pub async fn data(&self, addr: BlockAddr, ino: Nid) -> Result<BlockBytes, RawError> {
        if !self.layout.is_main(addr) {
            let what = "has data outside the main area";
            return Err(FormatError::corrupt(Place::Inode(ino), 0, what).into());
        }
        Ok(self.reader.block(addr.0.into()).await?)
    }

    /// The extended attributes of an inode.
    ///
    /// # Errors
    /// An unsound node of extended attributes; errors of the device.
    pub async fn xattrs(&self, inode: &RawInode) -> Result<XattrArea, RawError> {
        let inline = &inode.node.bytes[inode.layout.inline_xattr()];
        if inode.inode.xattr_nid == 0 {
            return Ok(XattrArea::new(inline, None));
        }
        let node = self.node(Nid(inode.inode.xattr_nid)).await?;
        let place = Place::Node(node.nid);
        if node.footer.ino != inode.node.nid.0 {
            let what = "holds extended attributes of another inode";
            return Err(FormatError::corrupt(place, NODE_FOOTER_AT + 4, what).into());
        }
        Ok(XattrArea::new(inline, Some(&node.bytes)))
    }
}

fn collect<B: AsRef<[u8]>>(
    view: &Dentries<B>,
    ino: Nid,
    page: u64,
    names: &mut Vec<RawDentryOf>,
) -> Result<(), FormatError> {
    let place = Place::Directory { ino, block: page as u32 };
    for entry in view.iter() {
        let Dentry { slot, hash, ino, file_type, name } = entry.map_err(|e| e.at(place))?;
        names.push(RawDentryOf { page, slot, hash, ino, file_type, name: name.to_vec() });
    }
    Ok(())
}

/// The nodes of a file that hold addresses, one after the other.
pub struct FileNodes<'a> {
    image: &'a F2fsImage,
    ino: Nid,
    slots: AddrSlots,
    first: Option<RawNode>,
    /// Nodes to be read, with their places in the tree; the next is the last.
    waiting: Vec<(Nid, u32)>,
    seen: BTreeSet<Nid>,
}

impl FileNodes<'_> {
    /// The next node; `None` after the last. After an error the nodes below the unsound one are missing.
    pub async fn next(&mut self) -> Option<Result<Dnode, RawError>> {
        if let Some(node) = self.first.take() {
            self.seen.insert(self.ino);
            let nids = (0..NIDS_PER_INODE).rev().map(|slot| (slot, inode_nid(&node.bytes, slot)));
            self.wait(0, nids);
            return Some(Ok(Dnode { node, slots: self.slots, first_page: 0 }));
        }
        while let Some((nid, offset)) = self.waiting.pop() {
            let node = match self.read(nid, offset).await {
                Ok(node) => node,
                Err(error) => return Some(Err(error)),
            };
            if let Some(first_page) = first_page(offset, self.slots.count()) {
                return Some(Ok(Dnode { node, slots: AddrSlots::DIRECT, first_page }));
            }
            let nids = (0..NIDS_PER_BLOCK).rev();
            self.wait(offset, nids.map(|slot| (slot, indirect_nid(&node.bytes, slot))));
        }
        None
    }

    fn wait(&mut self, offset: u32, nids: impl Iterator<Item = (u32, Nid)>) {
        let below = nids.filter(|(_, nid)| nid.0 != 0);
        self.waiting
            .extend(below.filter_map(|(slot, nid)| Some((nid, child_offset(offset, slot)?))));
    }

    async fn read(&mut self, nid: Nid, offset: u32) -> Result<RawNode, RawError> {
        let place = Place::Node(nid);
        if !self.seen.insert(nid) {
            let what = "is twice in the tree of its file";
            return Err(FormatError::corrupt(place, NODE_FOOTER_AT, what).into());
        }
        let node = self.image.node(nid).await?;
        if node.footer.ino != self.ino.0 {
            let what = "is in the tree of another inode";
            return Err(FormatError::corrupt(place, NODE_FOOTER_AT + 4, what).into());
        }
        if node.footer.offset() != offset {
            let what = "is at another place of the tree than it says";
            return Err(FormatError::corrupt(place, NODE_FOOTER_AT + 8, what).into());
        }
        Ok(node)
    }
}
