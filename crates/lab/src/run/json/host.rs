//! What the FTL's work took of the host's CPU, as part of a result (docs/formats/result.md).

use nandscape_ftl::{CpuCounts, FlushTime, LockCounts, ThreadCounts};
use nandscape_rt::Nanos;
use serde_json::{Value, json};

/// Shares are of `length`. What was under way at the end counts whole, so they are cut off at one.
pub(super) fn host_cpu(counts: &CpuCounts, flush: &FlushTime, length: Nanos) -> Value {
    let share = |busy_ns: u64| (busy_ns as f64 / length.0.max(1) as f64).min(1.0);
    let lock = |lock: &LockCounts| {
        json!({
            "busy": share(lock.held_ns),
            "taken": lock.taken,
            "wait_ns": lock.wait_ns,
            "wait_ns_max": lock.wait_ns_max,
        })
    };
    let thread = |thread: &ThreadCounts| {
        json!({
            "busy": share(thread.busy_ns),
            "jobs": thread.jobs,
            "wait_ns": thread.wait_ns,
        })
    };
    json!({
        "cores": counts.cores_busy_ns.iter().map(|busy| share(*busy)).collect::<Vec<_>>(),
        "requests": counts.requests,
        "core_wait_ns": counts.core_wait_ns,
        "ring_locks": counts.rings.iter().map(lock).collect::<Vec<_>>(),
        "map_lock": lock(&counts.map),
        "writers": counts.writers.iter().map(thread).collect::<Vec<_>>(),
        "collector": thread(&counts.collector),
        "flush": { "cpu_ns": flush.cpu_ns, "writer_ns": flush.writer_ns },
    })
}
