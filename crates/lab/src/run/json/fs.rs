//! What a file system, or the page cache of a block device, did, as part of a result (docs/formats/result.md).

use crate::stack::FsStack;
use nandscape_block::SECTOR_BYTES;
use nandscape_fs::FsSpace;
use nandscape_workload::target::FileCounts;
use serde_json::{Map, Value, json};

pub(super) fn fs(stack: &FsStack, counts: &FileCounts) -> Value {
    let mut object = Map::new();
    object.insert("kind".to_owned(), stack.config.kind().name().into());
    for (key, value) in stack.config.choices() {
        object.insert(key.to_owned(), value.into());
    }
    put_counts(&mut object, counts);
    if let Some(space) = counts.space {
        object.insert("space".to_owned(), self::space(&space));
    }
    Value::Object(object)
}

fn space(space: &FsSpace) -> Value {
    json!({
        "main_segments": space.main_segments,
        "free_segments": space.free_segments,
        "prefree_segments": space.prefree_segments,
        "user_blocks": space.user_blocks,
        "valid_blocks": space.valid_blocks,
    })
}

/// What the page cache of a block device did.
pub(super) fn page_cache(counts: &FileCounts) -> Value {
    let mut object = Map::new();
    put_counts(&mut object, counts);
    Value::Object(object)
}

fn put_counts(object: &mut Map<String, Value>, counts: &FileCounts) {
    let times = &counts.fs.fsync_times;
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("read_sectors", counts.read_sectors.into());
    put("written_sectors", counts.written_sectors.into());
    put("fsyncs", counts.fsyncs.into());
    put(
        "fsync_times",
        json!({
            "cpu_wait_ns": counts.fsync_thread_ns,
            "data_ns": times.data_ns,
            "commit_ns": times.commit_ns,
            "flush_ns": times.flush_ns,
        }),
    );
    for group in counts.fs.detail.groups() {
        let counts = group.counts.into_iter();
        let mut counts: Map<_, _> = counts.map(|(key, n)| (key.to_owned(), n.into())).collect();
        counts.extend(group.means.into_iter().map(|(key, mean)| (key.to_owned(), mean.into())));
        put(group.name, Value::Object(counts));
    }
    let barriers = counts.fs.barriers;
    put(
        "barriers",
        json!({
            "flushes": barriers.flushes,
            "preflush_writes": barriers.preflush_writes,
            "fua_writes": barriers.fua_writes,
        }),
    );
    let lookups = counts.fs.lookups;
    put("cache", json!({ "hits": lookups.hits, "misses": lookups.misses }));
    put("cache_bytes", (counts.cached_pages * SECTOR_BYTES).into());
}
