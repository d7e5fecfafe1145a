//! Extended attributes: in the inode as far as they fit, the rest in a node. After fs/f2fs/xattr.c.

use super::error::corrupt;
use super::format::{
    Nid, XATTR_NODE_BYTES, XATTR_NODE_OFFSET, XattrArea, XattrError, split_xattr_name,
    whole_xattr_name,
};
use super::inode::{Dirty, Inode};
use super::nat::Nodes;
use super::operations::Op;
use super::segment::Block;
use super::segment_manager::SegmentManager;
use crate::contract::{FsError, NAME_MAX, Result, XattrMode};

/// Prefixes of names that callers may change, by their number on disk: `user.`, `trusted.`, `security.`.
const CHANGEABLE: [u8; 3] = [1, 4, 6];

/// The prefix and the rest of a full name.
fn parts(name: &[u8]) -> Result<(u8, &[u8])> {
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(FsError::OutOfRange("an attribute's name is 1 to 255 bytes"));
    }
    if name.contains(&0) {
        return Err(FsError::Invalid("a name has no NUL"));
    }
    match split_xattr_name(name) {
        Some((index, name)) if CHANGEABLE.contains(&index) => Ok((index, name)),
        _ if [&b"user."[..], b"trusted.", b"security."].contains(&name) => {
            Err(FsError::Invalid("a prefix is no name of an attribute"))
        }
        _ => Err(FsError::Unsupported("attributes of that prefix")),
    }
}

impl Nodes {
    /// All attributes of an inode.
    async fn xattrs(&self, inode: &Inode) -> Result<XattrArea> {
        let place = inode.layout.get().inline_xattr();
        let own = self.read_node(Nid(inode.number), |bytes| bytes[place].to_vec()).await?;
        let nid = inode.raw.borrow().xattr_nid;
        if nid == 0 {
            return Ok(XattrArea::new(&own, None));
        }
        self.read_node(Nid(nid), |bytes| XattrArea::new(&own, Some(bytes))).await
    }

    /// The value of an attribute; the caller holds the inode's lock.
    ///
    /// # Errors
    /// [`FsError::NoData`] if there is none of that name.
    pub(crate) async fn get_xattr(&self, inode: &Inode, name: &[u8]) -> Result<Vec<u8>> {
        let (index, rest) = split_xattr_name(name).ok_or(FsError::NoData)?;
        let area = self.xattrs(inode).await?;
        let found = area.get(index, rest).map_err(|unsound| corrupt(unsound.what, inode.number))?;
        found.map(|found| found.value.to_vec()).ok_or(FsError::NoData)
    }

    /// The names of all attributes; the caller holds the inode's lock.
    pub(crate) async fn list_xattrs(&self, inode: &Inode) -> Result<Vec<Vec<u8>>> {
        let area = self.xattrs(inode).await?;
        let names = area.iter().map(|entry| match entry {
            Ok(entry) => Ok(whole_xattr_name(entry.index, entry.name)),
            Err(unsound) => Err(corrupt(unsound.what, inode.number)),
        });
        names.collect()
    }

    /// The attributes of an inode with one set or removed, and whether they need a node.
    ///
    /// # Errors
    /// [`FsError::NoSpace`] also if the attributes would not fit the inode and one node.
    pub(super) async fn changed_xattrs(
        &self,
        inode: &Inode,
        name: &[u8],
        value: Option<&[u8]>,
        how: XattrMode,
    ) -> Result<(XattrArea, bool)> {
        inode.check_changeable()?;
        let (index, rest) = parts(name)?;
        let unsound = |what| corrupt(what, inode.number);
        let mut area = self.xattrs(inode).await?;
        let known = area.get(index, rest).map_err(|error| unsound(error.what))?.is_some();
        if !known && (value.is_none() || how == XattrMode::Replace) {
            return Err(FsError::NoData);
        }
        if known && how == XattrMode::Create {
            return Err(FsError::Exists);
        }
        match value {
            None => area.remove(index, rest).map_err(|error| unsound(error.what))?,
            Some(value) => area.set(index, rest, value).map_err(|error| match error {
                XattrError::NameTooLong => FsError::OutOfRange("an attribute's name is too long"),
                XattrError::Unsound(error) => unsound(error.what),
                _ => FsError::NoSpace,
            })?,
        };
        let needs_node = area.needs_node().map_err(|error| unsound(error.what))?;
        Ok((area, needs_node))
    }

    /// Writes attributes to the inode and, if they need it, to their node (`write_all_xattrs`).
    pub(super) async fn store_xattrs(
        &self,
        op: &Op,
        segments: &SegmentManager,
        inode: &Inode,
        (area, needs_node): (&XattrArea, bool),
    ) -> Result<()> {
        let (number, nid) = (Nid(inode.number), Nid(inode.raw.borrow().xattr_nid));
        let place = inode.layout.get().inline_xattr();
        let write = |bytes: &mut Block| bytes[place.clone()].copy_from_slice(area.inline_part());
        if !needs_node {
            if nid.0 != 0 {
                self.remove_node(op, segments, inode, nid).await?;
                inode.raw.borrow_mut().xattr_nid = 0;
            }
            return self.edit_node(op, number, write).await;
        }
        let nid = if nid.0 == 0 { self.new_xattr_node(op, inode).await? } else { nid };
        // Both or none: an fsync may come where this waits.
        loop {
            self.read_node(number, |_| ()).await?;
            self.edit_node(op, nid, |_| ()).await?;
            if self.edit_loaded(number, write).is_some() {
                let written = self.edit_loaded(nid, |bytes| area.write_node(bytes));
                return written.ok_or_else(|| corrupt("node", nid.0));
            }
        }
    }

    /// An empty node for attributes, which the inode names.
    async fn new_xattr_node(&self, op: &Op, inode: &Inode) -> Result<Nid> {
        let nid = self.take_nid().await?;
        self.new_node(op, inode, nid, XATTR_NODE_OFFSET).await?;
        inode.raw.borrow_mut().xattr_nid = nid.0;
        inode.mark(Dirty::Content);
        Ok(nid)
    }

    /// Brings a node of attributes back that roll-forward found (`f2fs_recover_xattr_data`).
    pub(crate) async fn recover_xattr_node(
        &self,
        op: &Op,
        segments: &SegmentManager,
        inode: &Inode,
        found: &Block,
    ) -> Result<()> {
        let old = inode.raw.borrow().xattr_nid;
        if old != 0 {
            self.remove_node(op, segments, inode, Nid(old)).await?;
            inode.raw.borrow_mut().xattr_nid = 0;
        }
        let nid = self.new_xattr_node(op, inode).await?;
        let write = |bytes: &mut Block| {
            bytes[..XATTR_NODE_BYTES].copy_from_slice(&found[..XATTR_NODE_BYTES]);
        };
        self.edit_node(op, nid, write).await
    }

    /// Where the node of extended attributes is to be written, the inode is written after it, with their beginning; an older
    /// one is on the device before that.
    pub(super) async fn join_xattrs(&self, inode: &Inode) {
        let nid = inode.raw.borrow().xattr_nid;
        if self.dirty.borrow().contains(&(inode.number, nid)) {
            self.file.pages.written(nid.into()..u64::from(nid) + 1).await;
            inode.mark(Dirty::Content);
        }
    }
}
