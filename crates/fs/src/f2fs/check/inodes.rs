//! Inodes: their fields, and what they lead to (`fsck_chk_inode_blk` of fsck.f2fs).

use super::checker::{Checker, Seen, Waiting};
use super::files::Counted;
use crate::f2fs::format::*;
use crate::f2fs::raw::{RawError, RawInode, RawNode};
use nandscape_block::BlockError;

/// What leads to an inode.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    /// The list of orphans.
    Orphan,
    /// The superblock: the root.
    Root,
    /// A name in a directory, with this type of file.
    Name { parent: Nid, file_type: u8, place: Place },
}

impl Checker {
    /// The orphans that the checkpoint lists.
    pub(super) async fn check_orphans(&mut self) -> Result<(), RawError> {
        let place = Place::Orphans(self.image.pack);
        let read = self.image.orphans().await;
        for ino in self.passed(read)?.unwrap_or_default() {
            self.report.orphans += 1;
            match self.inodes.contains_key(&ino) {
                true => self.report.find(place, format!("list inode {} twice", ino.0)),
                false => self.check_inode(ino, Named::Orphan).await?,
            }
        }
        Ok(())
    }

    /// Everything that the root leads to.
    pub(super) async fn check_tree(&mut self) -> Result<(), RawError> {
        self.check_inode(self.image.sb.root_ino, Named::Root).await?;
        while let Some(dir) = self.waiting.pop() {
            self.check_directory(dir).await?;
        }
        Ok(())
    }

    /// An inode that something leads to; each is entered once.
    pub(super) async fn check_inode(&mut self, ino: Nid, named: Named) -> Result<(), BlockError> {
        let place = Place::Inode(ino);
        let from = match named {
            Named::Orphan => Place::Orphans(self.image.pack),
            Named::Root => Place::Superblock(self.image.sb_copy),
            Named::Name { place, .. } => place,
        };
        if let Some(seen) = self.inodes.get_mut(&ino) {
            seen.names += 1;
            let (inode_type, is_orphan) = (seen.inode_type, seen.is_orphan);
            if inode_type == mode::DIR {
                self.report.find(from, format!("is a second name of directory {}", ino.0));
            } else if is_orphan {
                self.report.find(from, format!("refers to orphan {}", ino.0));
            }
            self.check_type(ino, inode_type, named);
            return Ok(());
        }
        let Some(node) = self.enter(ino, ino, 0, from).await? else { return Ok(()) };
        let features = self.image.inode_features();
        let layout = self.image.layout;
        if let Err(error) = check_inode(&node.bytes, features, |addr| layout.is_main(addr)) {
            self.report.unsound(&error.at(place));
        }
        let inode = Inode::parse(&node.bytes);
        let seen = Seen {
            inode_type: inode.file_type(),
            links: inode.links,
            names: u32::from(!matches!(named, Named::Orphan)),
            is_orphan: matches!(named, Named::Orphan),
        };
        self.inodes.insert(ino, seen);
        self.check_type(ino, inode.file_type(), named);
        let raw = RawInode { inode, layout: InodeLayout::of(&node.bytes, features), node };
        self.check_fields(&raw, named);
        let nodes = self.check_xattrs(&raw).await?;
        let mut counted = Counted::new(1 + nodes);
        self.check_content(&raw, &mut counted).await?;
        if raw.inode.is_dir() && !seen.is_orphan {
            // Its names are looked at later; its blocks are claimed.
            self.waiting.push(Waiting { inode: raw.clone() });
        }
        if counted.blocks != raw.inode.blocks {
            let what = format!("block count is {}, counted {}", raw.inode.blocks, counted.blocks);
            self.report.find(place, what);
        }
        Ok(())
    }

    /// Whether a name says the type of file that its inode is of.
    fn check_type(&mut self, ino: Nid, inode_type: u16, named: Named) {
        match named {
            Named::Name { file_type, place, .. } if file_type != file_type::of_mode(inode_type) => {
                let what = format!("says type {file_type} of inode {}, which is of another", ino.0);
                self.report.find(place, what);
            }
            Named::Root if inode_type != mode::DIR => {
                self.report.find(Place::Inode(ino), "is the root, but not a directory");
            }
            _ => {}
        }
    }

    fn check_fields(&mut self, raw: &RawInode, named: Named) {
        let (inode, RawNode { nid, bytes, .. }) = (&raw.inode, &raw.node);
        let place = Place::Inode(*nid);
        let features = self.image.inode_features();
        let mut find = |what: &str| self.report.find(place, what);
        let seed = self.image.checksum_seed().unwrap_or_default();
        if let Some((stored, computed)) = inode_checksums(bytes, features, seed)
            && stored != computed
        {
            find(&format!("checksum {stored:#010x}, computed {computed:#010x}"));
        }
        if inode.namelen as usize > NAME_BYTES_MAX {
            find("says a name of more than 255 bytes");
        }
        if inode.flags & inode_flag::CASEFOLD != 0 {
            find("compares names without case, which the volume does not");
        }
        if inode.flags & inode_flag::COMPRESSED != 0 {
            find("says that it is compressed, which the volume does not have");
        }
        if matches!(named, Named::Orphan) && inode.links != 0 {
            find(&format!("is an orphan, and says {} names", inode.links));
        }
        if inode.is_symlink() && inode.size == 0 {
            find("is a symbolic link without a target");
        }
        if inode.is_dir() && inode.current_depth > DIR_LEVELS_MAX {
            find("says more levels of names than there can be");
        }
        if let Named::Name { parent, .. } = named
            && inode.is_dir()
            && inode.pino != parent.0
        {
            find(&format!("says that directory {} names it, which {} does", inode.pino, parent.0));
        }
        if !inode.has_inline(inline::DATA | inline::DENTRY) {
            return;
        }
        let area = raw.layout.inline_data();
        if raw.layout.addrs().get(bytes, 0) != BlockAddr::NULL {
            find("has inline content, and an address before it");
        }
        if inode.has_inline(inline::DATA) {
            if inode.size > area.len() as u64 {
                find("has inline data that are longer than their room");
            }
            let is_empty = bytes.get(area).is_none_or(|area| area.iter().all(|byte| *byte == 0));
            if !inode.has_inline(inline::DATA_EXIST) && !is_empty {
                find("has inline data, and says that they are empty");
            }
        }
        if inode.ext_len != 0 {
            find("has inline content, and an extent");
        }
    }

    /// The extended attributes; how many nodes they take.
    async fn check_xattrs(&mut self, raw: &RawInode) -> Result<u64, BlockError> {
        let ino = raw.node.nid;
        let nid = Nid(raw.inode.xattr_nid);
        let inline = raw.node.bytes.get(raw.layout.inline_xattr()).unwrap_or_default();
        let node = match nid.0 {
            0 => None,
            _ => self.enter(nid, ino, XATTR_NODE_OFFSET, Place::Inode(ino)).await?,
        };
        let area = XattrArea::new(inline, node.as_ref().map(|node| &*node.bytes));
        let unsound = area.iter().find_map(Result::err);
        if let Some(error) = unsound.filter(|_| nid.0 == 0 || node.is_some()) {
            self.report.unsound(&error.at(Place::Xattrs(ino)));
        }
        Ok(u64::from(node.is_some()))
    }
}
