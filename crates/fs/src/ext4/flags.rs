//! What the flags of chattr forbid to all callers: `i`, not to be changed at all, and `a`, to be appended
//! to only (`may_delete`, `may_create` and `vfs_link` in fs/namei.c, `notify_change` in fs/attr.c,
//! `xattr_permission` in fs/xattr.c). Where Linux refuses to open a file for writing, its writes are
//! refused here: the contract opens files for everything.

use super::format::flag;
use super::inode::Inode;
use crate::contract::{FsError, Result};

impl Inode {
    fn check_none_of(&self, flags: u32) -> Result<()> {
        if self.raw.borrow().has(flags) { Err(FsError::NotPermitted) } else { Ok(()) }
    }

    /// Whether anything may come to it: content at its end, names of a directory.
    pub(super) fn check_addable(&self) -> Result<()> {
        self.check_none_of(flag::IMMUTABLE)
    }

    /// Whether anything of it may change or go: content, attributes, links, names of a directory.
    pub(super) fn check_changeable(&self) -> Result<()> {
        self.check_none_of(flag::IMMUTABLE | flag::APPEND)
    }

    /// Whether a name of it in `dir` may go.
    pub(super) fn check_removable(&self, dir: &Self) -> Result<()> {
        dir.check_changeable()?;
        self.check_changeable()
    }

    /// Whether it may be written at `offset`.
    pub(super) fn check_write(&self, offset: u64) -> Result<()> {
        if offset == self.size.get() { self.check_addable() } else { self.check_changeable() }
    }
}
