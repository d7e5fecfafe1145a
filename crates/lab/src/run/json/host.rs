//! The host as part of a result: for what its cores were used, and what the FTL's work took of them
//! (docs/formats/result.md).

use nandscape_ftl::{CpuCounts, FlushTime, LockCounts, ThreadCounts};
use nandscape_rt::Nanos;
use nandscape_rt::host::CoreTimes;
use serde_json::{Value, json};

/// Shares of the measured phase, for each core.
pub(super) fn host(cores: &[CoreTimes]) -> Value {
    let core = |times: &CoreTimes| {
        let all = (times.threads + times.ftl + times.idle).0.max(1) as f64;
        let share = |time: Nanos| time.0 as f64 / all;
        json!({
            "threads": share(times.threads),
            "ftl": share(times.ftl),
            "idle": share(times.idle),
        })
    };
    json!({ "cores": cores.iter().map(core).collect::<Vec<_>>() })
}

/// Bytes of host memory: the limit, and what each part reserved.
pub(super) fn memory(limit: Option<u64>, parts: &[(&'static str, u64)]) -> Value {
    let parts = parts.iter().map(|(name, bytes)| (format!("{name}_bytes"), Value::from(*bytes)));
    let limit = ("limit_bytes".to_owned(), Value::from(limit));
    Value::Object(std::iter::once(limit).chain(parts).collect())
}

/// Shares are of `length`. What was under way at the end counts whole, so they are cut off at one.
pub(super) fn host_cpu(counts: &CpuCounts, flush: &FlushTime, length: Nanos) -> Value {
    let share = |busy_ns: u64| (busy_ns as f64 / length.0.max(1) as f64).min(1.0);
    let lock = |lock: &LockCounts| {
        json!({
            "busy": share(lock.held_ns),
            "acquisitions": lock.taken,
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
        "gc_thread": thread(&counts.collector),
        "map_thread": thread(&counts.mapper),
        "flush": { "cpu_ns": flush.cpu_ns, "writer_ns": flush.writer_ns },
    })
}
