//! What shares the host's memory (`host.memory`). With `host.memory_of = "page-cache"` it is the page cache
//! alone. With `"all"` it is everything of the stack that is in host memory: the FTL's map, its write
//! buffers and its lines at their size, the file system's metadata blocks and inodes at their limit, and the
//! page cache, which gets the rest.

use crate::run::error::RunError;
use crate::stack::{MEMORY_BYTES_MIN, MemoryOf, Stack, StackError};
use nandscape_block::SECTOR_BYTES;
use nandscape_fs::ext4::MountOptions;
use nandscape_fs::ext4::journal::Buffer;
use nandscape_ftl::stats::MemoryUse;
use nandscape_rt::Host;
use nandscape_rt::host::{Lease, OverBudget};

/// A metadata block in memory.
const BUFFER_BYTES: u64 = SECTOR_BYTES + Buffer::OVERHEAD_BYTES as u64;
/// An inode in memory: an object of Linux's `ext4_inode_cache` (`/proc/slabinfo`, x86-64).
const INODE_BYTES: u64 = 1_088;
/// Metadata blocks and inodes may each have this share of what the FTL leaves (chosen).
const METADATA_DIVISOR: u64 = 8;
/// Metadata blocks and inodes without which a file system cannot work.
const METADATA_MIN: usize = 64;

/// Reserves what shares the memory of `host`, and limits `mount` to its share. The leases are to be kept for
/// as long as the file system is mounted.
///
/// # Errors
/// `host.memory` does not suffice.
pub(super) fn share(
    stack: &Stack,
    host: &Host,
    ftl: &MemoryUse,
    mount: &mut MountOptions,
) -> Result<Vec<Lease>, RunError> {
    let leases = match stack.host.memory_of {
        MemoryOf::PageCache => Ok(Vec::new()),
        MemoryOf::All => share_all(host, ftl, mount),
    };
    let mut leases = leases.map_err(|why| refused(stack, &why.to_string()))?;
    let left = host.memory().left();
    if left < MEMORY_BYTES_MIN {
        let why = format!("{left} bytes are left for the page cache, which needs at least 1MiB");
        return Err(refused(stack, &why).into());
    }
    mount.cache.pages = left / SECTOR_BYTES;
    let page_cache = host.memory().reserve("page_cache", mount.cache.pages * SECTOR_BYTES);
    leases.push(page_cache.map_err(|why| refused(stack, &why.to_string()))?);
    Ok(leases)
}

fn share_all(
    host: &Host,
    ftl: &MemoryUse,
    mount: &mut MountOptions,
) -> Result<Vec<Lease>, OverBudget> {
    let memory = host.memory();
    let mut leases = vec![
        memory.reserve("map", ftl.map_bytes)?,
        memory.reserve("write_buffers", ftl.buffers_bytes)?,
        memory.reserve("lines", ftl.bitmap_bytes + ftl.line_bytes)?,
    ];
    let share = memory.left() / METADATA_DIVISOR;
    let limit = |limit: usize, bytes: u64| limit.min((share / bytes) as usize).max(METADATA_MIN);
    mount.buffers = limit(mount.buffers, BUFFER_BYTES);
    mount.inodes = limit(mount.inodes, INODE_BYTES);
    leases.push(memory.reserve("metadata", mount.buffers as u64 * BUFFER_BYTES)?);
    leases.push(memory.reserve("inodes", mount.inodes as u64 * INODE_BYTES)?);
    Ok(leases)
}

fn refused(stack: &Stack, why: &str) -> StackError {
    stack.error("host.memory", why)
}
