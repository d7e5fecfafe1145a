//! What shares the host's memory (`host.memory`). With `host.memory_of = "page-cache"` it is the page cache
//! alone. With `"all"` it is everything of the stack that is in host memory: an FTL on the host at its size,
//! the file system's metadata at its limit, and the page cache, which gets the rest.

use crate::run::error::RunError;
use crate::stack::{MEMORY_BYTES_MIN, MemoryOf, Stack};
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::{MemoryUse, Side};
use nandscape_rt::Host;
use nandscape_rt::host::{Lease, OverBudget};

/// Each kind of metadata may have this share of what the FTL leaves (chosen).
const METADATA_DIVISOR: u64 = 8;

/// Reserves what shares the memory of `host`; `limit_metadata` limits each kind of a file system's metadata, and
/// returns what each may take. Returns the pages of the page cache, and leases to keep for as long as it is used.
///
/// # Errors
/// `host.memory` does not suffice.
pub(super) fn share(
    stack: &Stack,
    host: &Host,
    ftl: &MemoryUse,
    limit_metadata: impl FnOnce(u64) -> Vec<(&'static str, u64)>,
) -> Result<(u64, Vec<Lease>), RunError> {
    let refused = |why: String| stack.error("host.memory", &why);
    let leases = match stack.host.memory_of {
        MemoryOf::PageCache => Ok(Vec::new()),
        MemoryOf::All => share_all(host, ftl, limit_metadata),
    };
    let mut leases = leases.map_err(|why| refused(why.to_string()))?;
    let left = host.memory().left();
    if left < MEMORY_BYTES_MIN {
        let why = format!("{left} bytes are left for the page cache, which needs at least 1MiB");
        return Err(refused(why).into());
    }
    let pages = left / SECTOR_BYTES;
    let page_cache = host.memory().reserve("page_cache", pages * SECTOR_BYTES);
    leases.push(page_cache.map_err(|why| refused(why.to_string()))?);
    Ok((pages, leases))
}

fn share_all(
    host: &Host,
    ftl: &MemoryUse,
    limit_metadata: impl FnOnce(u64) -> Vec<(&'static str, u64)>,
) -> Result<Vec<Lease>, OverBudget> {
    let memory = host.memory();
    let reserve = |(name, bytes): (&'static str, u64)| memory.reserve(name, bytes);
    let of_ftl = ftl.parts.iter().copied().filter(|_| ftl.side == Side::Host);
    let mut leases = of_ftl.map(reserve).collect::<Result<Vec<_>, _>>()?;
    for part in limit_metadata(memory.left() / METADATA_DIVISOR) {
        leases.push(reserve(part)?);
    }
    Ok(leases)
}
