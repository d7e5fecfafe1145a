//! Extended attributes: behind the inode's fields as far as they fit, the rest in a block.
//!
//! A block may be shared between inodes that the kernel or mke2fs wrote; an inode whose
//! attributes change then gets a separate block.

use super::error::corrupt;
use super::format::{
    BLOCK_BYTES, Feature, INODE_BYTES_KNOWN, INODE_BYTES_OLD, Place, Xattr, check_xattr_block,
    encode_inode_xattrs, encode_xattr_block, parse_inode_xattrs, parse_xattr_block,
    seal_xattr_block,
};
use super::inode::Inode;
use super::rules::OmittedRule;
use super::tx::{BufferRef, Tx};
use super::volume::Volume;
use crate::contract::{Caller, FsError, NAME_MAX, Result, XattrMode};
use nandscape_block::{Lba, Payload, SectorData};
use nandscape_rt::invariant;
use std::sync::Arc;

/// Credits of a change: inode, old and new block, bitmap and descriptor twice, superblock.
const XATTR_CREDITS: u32 = 13;

/// The attribute of a full name.
fn named(name: &[u8], value: &[u8]) -> Result<Xattr> {
    match Xattr::new(name, value) {
        _ if name.is_empty() || name.len() > NAME_MAX => {
            Err(FsError::OutOfRange("an attribute's name is 1 to 255 bytes"))
        }
        _ if name.contains(&0) => Err(FsError::Invalid("a name has no NUL")),
        None => Err(FsError::Unsupported("attributes of that prefix")),
        Some(xattr) if xattr.name.is_empty() && name.ends_with(b".") => {
            Err(FsError::Invalid("a prefix is no name of an attribute"))
        }
        Some(xattr) => Ok(xattr),
    }
}

impl Volume {
    /// All attributes: those in the inode, those in the block.
    async fn xattrs(&self, inode: &Inode) -> Result<(Vec<Xattr>, Vec<Xattr>)> {
        let extra = inode.raw.borrow().extra_isize;
        let place = Place::Inode(inode.number);
        let body =
            self.meta.with_slot(inode, |bytes| parse_inode_xattrs(bytes, extra, place)).await??;
        let block = inode.raw.borrow().file_acl;
        if block == 0 {
            return Ok((body, Vec::new()));
        }
        Ok((body, self.xattr_block(inode, block).await?.1))
    }

    /// How many inodes share a block of attributes, and the attributes.
    async fn xattr_block(&self, inode: &Inode, block: u64) -> Result<(u32, Vec<Xattr>)> {
        let place = Place::InodeBlock { inode: inode.number, block };
        self.meta.alloc.system_zone.check(block..block + 1, place)?;
        let buffer = self.meta.read_block(block).await?;
        self.in_xattr_block(&buffer, place)
    }

    fn in_xattr_block(&self, buffer: &BufferRef, place: Place) -> Result<(u32, Vec<Xattr>)> {
        let seed = self.meta.sb.borrow().csum_seed();
        Ok(buffer.with(|bytes| {
            check_xattr_block(bytes, buffer.block(), seed, place)?;
            parse_xattr_block(bytes, place)
        })?)
    }

    /// The value of an attribute.
    pub(crate) async fn get_xattr(&self, inode: &Inode, name: &[u8]) -> Result<Vec<u8>> {
        let (body, block) = self.xattrs(inode).await?;
        let found = body.into_iter().chain(block).find(|xattr| xattr.whole_name() == name);
        found.map(|xattr| xattr.value).ok_or(FsError::NoData)
    }

    /// The names of all attributes.
    pub(crate) async fn list_xattrs(&self, inode: &Inode) -> Result<Vec<Vec<u8>>> {
        let (body, block) = self.xattrs(inode).await?;
        Ok(body.iter().chain(&block).map(Xattr::whole_name).collect())
    }

    /// Sets an attribute, or removes it; the caller holds the inode's lock exclusively.
    pub(crate) async fn change_xattr(
        &self,
        caller: Caller,
        inode: &Inode,
        name: &[u8],
        value: Option<&[u8]>,
        how: XattrMode,
    ) -> Result<()> {
        inode.check_changeable()?;
        let new = named(name, value.unwrap_or_default())?;
        let (mut all, block) = self.xattrs(inode).await?;
        all.extend(block);
        let before = all.len();
        all.retain(|xattr| (xattr.index, &xattr.name) != (new.index, &new.name));
        let known = all.len() < before;
        if !known && (value.is_none() || how == XattrMode::Replace) {
            return Err(FsError::NoData);
        }
        if known && how == XattrMode::Create {
            return Err(FsError::Exists);
        }
        if value.is_some() {
            all.push(new);
        }
        let _reservation = value.map(|_| self.reserve(caller, 2)).transpose()?;
        self.store_xattrs(inode, all).await
    }

    async fn store_xattrs(&self, inode: &Inode, all: Vec<Xattr>) -> Result<()> {
        if self.meta.sb.borrow().inode_bytes() > INODE_BYTES_OLD {
            // What was an inode of 128 bytes has no room for attributes until it has extra fields.
            let mut raw = inode.raw.borrow_mut();
            let known = (INODE_BYTES_KNOWN - INODE_BYTES_OLD) as u16;
            raw.extra_isize = if raw.extra_isize == 0 { known } else { raw.extra_isize };
        }
        let extra = inode.raw.borrow().extra_isize;
        let slot = self.meta.with_slot(inode, <[u8]>::to_vec).await?;
        let mut scratch = slot.clone();
        let (mut body, mut rest) = (Vec::new(), Vec::new());
        for xattr in all {
            body.push(xattr);
            if !encode_inode_xattrs(&mut scratch, extra, &body) {
                rest.extend(body.pop());
            }
        }
        let mut block = Box::new([0; BLOCK_BYTES]);
        if !encode_xattr_block(&mut block, 1, &rest) {
            return Err(FsError::NoSpace);
        }
        let tx = self.meta.begin(XATTR_CREDITS, 2).await?;
        if rest.is_empty() {
            self.drop_xattr_block(&tx, inode).await?;
        } else {
            self.store_xattr_block(&tx, inode, &mut block).await?;
        }
        self.meta.need(&tx, Feature::EXT_ATTR).await?;
        inode.touch(self.env.now(), false);
        self.meta
            .edit_slot(&tx, inode, |bytes| {
                let fits = encode_inode_xattrs(bytes, extra, &body);
                invariant!(fits, "an attribute that was tried fits");
            })
            .await?;
        tx.stop();
        Ok(())
    }

    /// Writes the block of attributes, to a block that only this inode has.
    async fn store_xattr_block(
        &self,
        tx: &Tx,
        inode: &Inode,
        bytes: &mut [u8; BLOCK_BYTES],
    ) -> Result<()> {
        if !self.omits(OmittedRule::RecordXattr) {
            self.file_commit.exclude(tx, inode.number);
        }
        let old = inode.raw.borrow().file_acl;
        let own = old != 0 && self.xattr_block(inode, old).await?.0 == 1;
        let (block, buffer) = if own {
            (old, self.meta.read_block(old).await?)
        } else {
            // First, since there may be none: then nothing has changed.
            let block = self.meta.take_metadata(tx, inode, self.meta.home_of(inode)).await?;
            self.drop_xattr_block(tx, inode).await?;
            inode.raw.borrow_mut().file_acl = block;
            (block, tx.fresh(block)?)
        };
        seal_xattr_block(bytes, block, self.meta.sb.borrow().csum_seed());
        if own && self.omits(OmittedRule::XattrLogged) {
            return self.write_unlogged(&buffer, bytes).await;
        }
        tx.edit(&buffer, |target| target.copy_from_slice(bytes)).await
    }

    /// Without [`OmittedRule::XattrLogged`]: writes a block home, past the log.
    async fn write_unlogged(&self, buffer: &BufferRef, bytes: &[u8; BLOCK_BYTES]) -> Result<()> {
        buffer.change_unlogged(bytes);
        let content = SectorData::Bytes(Arc::new(*bytes));
        let at = Lba(buffer.block());
        Ok(self.env.device.write(at, 1, Payload::collect(vec![content])).await?)
    }

    /// Gives up the inode's block of attributes; the caller writes the inode.
    pub(crate) async fn drop_xattr_block(&self, tx: &Tx, inode: &Inode) -> Result<()> {
        if !self.omits(OmittedRule::RecordXattr) {
            self.file_commit.exclude(tx, inode.number);
        }
        let block = inode.raw.borrow().file_acl;
        if block == 0 {
            return Ok(());
        }
        let place = Place::InodeBlock { inode: inode.number, block };
        self.meta.alloc.system_zone.check(block..block + 1, place)?;
        let buffer = self.meta.read_block(block).await?;
        tx.access(&buffer).await?;
        // From here to the change nothing waits: others who share the block may be giving it up, too.
        let (shared, xattrs) = self.in_xattr_block(&buffer, place)?;
        inode.raw.borrow_mut().file_acl = 0;
        if shared == 1 {
            return self.meta.free_metadata(tx, inode, block).await;
        }
        let mut bytes = Box::new([0; BLOCK_BYTES]);
        if !encode_xattr_block(&mut bytes, shared - 1, &xattrs) {
            return Err(corrupt("attributes", Place::Block(block)));
        }
        seal_xattr_block(&mut bytes, block, self.meta.sb.borrow().csum_seed());
        tx.change(&buffer, |target| target.copy_from_slice(&*bytes))?;
        inode.add_blocks(-1);
        Ok(())
    }
}
