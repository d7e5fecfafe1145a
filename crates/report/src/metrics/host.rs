//! Cores and page cache of the host.

use super::{Group, Metric, metric};

pub(super) static HOST: Group = Group {
    name: "host",
    prefix: "host",
    when: "runs with a page cache, or if [`ftl.cpu`](stack.md#host-cpu) has costs; work in \
         progress at the end counts up to the end",
    derived: false,
    metrics: &[
        metric(
            "cores.<n>.threads",
            "share",
            "share of the measured phase in which the core worked for threads of workloads and \
             jobs",
        ),
        metric(
            "cores.<n>.ftl",
            "share",
            "share of the measured phase in which it worked for the FTL",
        ),
        metric("cores.<n>.idle", "share", "share of the measured phase in which it was idle"),
    ],
};

pub(super) static HOST_CPU: Group = Group {
    name: "host_cpu",
    prefix: "host_cpu",
    when: "if [`ftl.cpu`](stack.md#host-cpu) has costs",
    derived: false,
    metrics: &[
        metric(
            "cores.<n>",
            "share",
            "share of the measured phase in which the core was busy for the FTL",
        ),
        metric("requests", "count", "requests that ran on cores"),
        metric("core_wait_ns", "ns", "time that requests waited for their core"),
        metric(
            "ring_locks.<n>.busy",
            "share",
            "share of the measured phase in which the lock of the write buffer was held",
        ),
        metric(
            "ring_locks.<n>.acquisitions",
            "count",
            "acquisitions of the lock of the write buffer",
        ),
        metric(
            "ring_locks.<n>.wait_ns",
            "ns",
            "spin time of waiters for the lock of the write buffer",
        ),
        metric(
            "ring_locks.<n>.wait_ns_max",
            "ns",
            "longest spin time of a waiter for the lock of the write buffer",
        ),
        metric(
            "map_lock.busy",
            "share",
            "share of the measured phase in which the mapping's lock was held",
        ),
        metric("map_lock.acquisitions", "count", "acquisitions of the mapping's lock"),
        metric("map_lock.wait_ns", "ns", "spin time of waiters for the mapping's lock"),
        metric(
            "map_lock.wait_ns_max",
            "ns",
            "longest spin time of a waiter for the mapping's lock",
        ),
        metric(
            "writers.<n>.busy",
            "share",
            "share of the measured phase in which the writer thread of the write buffer was busy",
        ),
        metric("writers.<n>.jobs", "count", "jobs that the writer thread of the write buffer did"),
        metric(
            "writers.<n>.wait_ns",
            "ns",
            "time that the writer thread of the write buffer waited for a core",
        ),
        metric(
            "gc_thread.busy",
            "share",
            "share of the measured phase in which the GC thread was busy",
        ),
        metric("gc_thread.jobs", "count", "jobs that the GC thread did"),
        metric("gc_thread.wait_ns", "ns", "time that the GC thread waited for a core"),
        metric(
            "map_thread.busy",
            "share",
            "share of the measured phase in which the mapping thread was busy",
        ),
        metric("map_thread.jobs", "count", "jobs that the mapping thread did"),
        metric("map_thread.wait_ns", "ns", "time that the mapping thread waited for a core"),
        metric("flush.cpu_ns", "ns", "part of `flush.total_ns`: cores and locks at submission"),
        metric(
            "flush.writer_ns",
            "ns",
            "part of `flush.total_ns`: until the command of the last entries was built",
        ),
    ],
};

/// What calls on files and on the page cache of the block device have in common.
pub(super) static CALLS: [Metric; 8] = [
    metric("fsync_times.data_ns", "ns", "time of fsync and fdatasync for dirty pages"),
    metric(
        "fsync_times.commit_ns",
        "ns",
        "time of fsync and fdatasync for the transaction or the file's record",
    ),
    metric(
        "fsync_times.flush_ns",
        "ns",
        "time of fsync and fdatasync for an additional flush of the device",
    ),
    metric("barriers.flushes", "count", "device flushes requested"),
    metric(
        "barriers.preflush_writes",
        "count",
        "writes with PREFLUSH; one with both flags is both",
    ),
    metric("barriers.fua_writes", "count", "writes with FUA"),
    metric(
        "cache.hits",
        "count",
        "pages read that were in the page cache, or that another task was already reading",
    ),
    metric("cache.misses", "count", "pages read that were not in the page cache"),
];

pub(super) static PAGE_CACHE_CALLS: Group = Group {
    name: "page_cache.calls",
    prefix: "page_cache",
    when: "runs with buffered jobs on the block device",
    derived: false,
    metrics: &CALLS,
};

pub(super) static PAGE_CACHE: Group = Group {
    name: "page_cache",
    prefix: "page_cache",
    when: "runs with buffered jobs on the block device",
    derived: false,
    metrics: &[
        metric("read_sectors", "sectors", "sectors read through the page cache"),
        metric("written_sectors", "sectors", "sectors written to the page cache"),
        metric("fsyncs", "count", "calls of fsync and fdatasync"),
        metric(
            "fsync_times.cpu_wait_ns",
            "ns",
            "time of fsync and fdatasync until it starts: the core may be busy, and the call \
             takes `host.syscall_ns` of it",
        ),
        metric("cache_bytes", "bytes", "pages in memory at the end"),
    ],
};

pub(super) static IO: Group = Group {
    name: "io",
    prefix: "io.<n>",
    when: "buffered jobs",
    derived: false,
    metrics: &[metric("page_cache_bytes", "bytes", "limit of the page cache")],
};
