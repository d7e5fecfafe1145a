//! Inodes of a mounted volume in memory, and what new ones are made of.

use super::format::{self, InodeLayout, inline, mode};
use super::inode::{self, Inode, InodeLists};
use super::mount_info::MountInfo;
use crate::contract::Caller;
use crate::vfs::InodeCache;
use nandscape_rt::Stream;
use nandscape_rt::sync::RwLock;
use std::cell::RefCell;
use std::rc::Rc;

/// Bytes of the extra attributes of new inodes (`F2FS_TOTAL_EXTRA_ATTR_SIZE`).
const EXTRA_BYTES: u32 = 36;
/// Words of inline extended attributes of new inodes (`DEFAULT_INLINE_XATTR_ADDRS`).
const XATTR_WORDS: u32 = 50;

/// Inodes in memory.
pub(crate) struct InodeTable {
    mount: Rc<MountInfo>,
    pub(crate) cache: InodeCache<Inode>,
    /// Renames of directories take it exclusively, other changes of names share it.
    pub(crate) namespace: RwLock<()>,
    pub(crate) lists: Rc<InodeLists>,
    generations: RefCell<Stream>,
}

impl InodeTable {
    pub(crate) fn new(mount: Rc<MountInfo>, lists: Rc<InodeLists>) -> Self {
        let seed = mount.options.seed;
        Self {
            cache: InodeCache::new(mount.options.inodes),
            namespace: RwLock::new(&mount.env.rt, "names", ()),
            lists,
            generations: RefCell::new(Stream::new(seed, "f2fs generations")),
            mount,
        }
    }

    /// An inode in memory of these attributes.
    pub(crate) fn build(&self, number: u32, parts: inode::Parts) -> Rc<Inode> {
        let env = &self.mount.env;
        Inode::new(&env.rt, &env.cache, number, parts, &self.lists)
    }

    /// Keeps an inode in memory.
    pub(crate) fn keep_inode(&self, inode: Rc<Inode>) -> Rc<Inode> {
        self.cache.insert(inode.number, inode, Inode::is_idle)
    }

    pub(crate) fn new_parts(&self, caller: Caller, parent: &Inode, file_mode: u16) -> inode::Parts {
        const SET_GROUP_ID: u16 = 0o2000;
        let is_dir = file_mode & mode::TYPE == mode::DIR;
        let inherits = parent.raw.borrow().mode & SET_GROUP_ID != 0;
        let now = self.mount.env.now();
        let (seconds, nanos) = (now.seconds.cast_unsigned(), now.nanos);
        let features = self.mount.inode_features();
        let mut raw = format::Inode {
            mode: file_mode | if inherits && is_dir { SET_GROUP_ID } else { 0 },
            uid: caller.uid,
            gid: if inherits { parent.raw.borrow().gid } else { caller.gid },
            links: if is_dir { 2 } else { 1 },
            blocks: 1,
            atime: seconds,
            ctime: seconds,
            mtime: seconds,
            atime_nsec: nanos,
            ctime_nsec: nanos,
            mtime_nsec: nanos,
            generation: self.generations.borrow_mut().bits() as u32,
            current_depth: u32::from(is_dir),
            pino: parent.number,
            ..format::Inode::default()
        };
        let is_file =
            file_mode & mode::TYPE == mode::REGULAR || file_mode & mode::TYPE == mode::SYMLINK;
        let mut flags = 0;
        if self.mount.options.inline_xattr {
            flags |= inline::XATTR;
        }
        if self.mount.options.inline_data && is_file {
            flags |= inline::DATA;
        }
        if self.mount.options.inline_dentry && is_dir {
            flags |= inline::DENTRY;
        }
        if features.extra_attr {
            flags |= inline::EXTRA_ATTR;
        }
        raw.inline = flags;
        let has_slots = flags & (inline::XATTR | inline::DENTRY) != 0;
        let words = match (features.flexible_inline_xattr, self.mount.options.inline_xattr) {
            (true, true) => XATTR_WORDS,
            (false, _) if has_slots => XATTR_WORDS,
            _ => 0,
        };
        let extra_bytes = if features.extra_attr { EXTRA_BYTES } else { 0 };
        let extra = format::ExtraAttrs {
            extra_isize: extra_bytes as u16,
            inline_xattr_size: if features.flexible_inline_xattr { words as u16 } else { 0 },
            crtime: seconds,
            crtime_nsec: nanos,
            ..format::ExtraAttrs::default()
        };
        (raw, extra, InodeLayout::new(extra_bytes, words, flags & inline::XATTR != 0))
    }
}
