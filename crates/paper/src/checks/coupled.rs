//! Coupled SSDs (D2FS, FAST '25): migrations beside the records of them, upcalls beside the records that they sent, and the
//! memory of open records. And file systems in an append-only address space, which clean nothing.

use super::{Facts, Finding, holds};

/// Records of an upcall at most: of 16 bytes, on a page of 4 KiB.
const UPCALL_RECORDS: u64 = 256;
/// RAM that a record takes at least: two addresses of 32 bits.
const RECORD_BYTES_MIN: u64 = 8;

/// Pages were moved with records that were opened or had been before; records that were open when the phase began, and
/// those that were opened, ended or are open.
pub(super) fn migrations(facts: &Facts<'_>) -> Finding {
    let of = |key: &str| facts.count(&format!("/coupled/{key}"));
    let (moved, opened, merged) = (of("moved")?, of("opened")?, of("merged")?);
    if moved != opened + merged {
        let why = format!("{moved} pages moved, {opened} records opened and {merged} merged");
        return Some(Err(why));
    }
    let (carried, open) = (of("carried")?, of("open")?);
    let (completed, deleted) = (of("completed")?, of("deleted")?);
    holds(moved + carried == completed + open + merged + deleted, || {
        format!(
            "{moved} pages moved and {carried} records carried, {completed} completed, {open} open, {merged} merged \
             and {deleted} deleted"
        )
    })
}

/// An upcall has one record at least, and no more than fit a page.
pub(super) fn upcalls(facts: &Facts<'_>) -> Finding {
    let (upcalls, sent) = (facts.count("/coupled/upcalls")?, facts.count("/coupled/sent")?);
    holds((upcalls..=upcalls * UPCALL_RECORDS).contains(&sent), || {
        format!("{sent} records in {upcalls} upcalls")
    })
}

/// Open records lie in the memory that the device has for them.
pub(super) fn memory(facts: &Facts<'_>) -> Finding {
    let (open, bytes) = (facts.count("/coupled/open")?, facts.count("/map/records_bytes")?);
    holds(bytes >= open * RECORD_BYTES_MIN, || format!("{open} records are open in {bytes} bytes"))
}

/// A file system in an append-only address space moves no block.
pub(super) fn cleaning(facts: &Facts<'_>) -> Finding {
    facts.at("/coupled").or_else(|| facts.at("/interval"))?;
    let moved = facts.count("/fs/gc/blocks_moved")?;
    holds(moved == 0, || format!("the file system moved {moved} blocks"))
}
