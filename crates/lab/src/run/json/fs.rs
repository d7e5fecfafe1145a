//! What the file system did, as part of a result (docs/formats/result.md).

use crate::run::counts::FsCounts;
use crate::stack::FsStack;
use nandscape_block::SECTOR_BYTES;
use serde_json::{Value, json};

pub(super) fn fs(stack: &FsStack, counts: &FsCounts) -> Value {
    let (journal, times) = (&counts.journal, &counts.fsync_times);
    json!({
        "kind": FsStack::KIND,
        "data": stack.data(),
        "commit": stack.commit(),
        "read_sectors": counts.read_sectors,
        "written_sectors": counts.written_sectors,
        "fsyncs": counts.fsyncs,
        "fsync_times": {
            "cpu_wait_ns": counts.fsync_thread_ns,
            "data_ns": times.data_ns,
            "commit_ns": times.commit_ns,
            "flush_ns": times.flush_ns,
        },
        "journal": {
            "commits": journal.commits,
            "blocks": journal.log_blocks,
            "copies": journal.copies,
            "frozen": journal.frozen,
            "revoke_blocks": journal.revoke_blocks,
            "superblocks": journal.superblocks,
            "home_blocks": journal.home_blocks,
            "forced_checkpoints": journal.forced_checkpoints,
        },
        "ijournal_records": { "count": counts.records, "blocks": counts.record_blocks },
        "cache": { "hits": counts.lookups.hits, "misses": counts.lookups.misses },
        "cache_bytes": counts.cached_pages * SECTOR_BYTES,
    })
}
