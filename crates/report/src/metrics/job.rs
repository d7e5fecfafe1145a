//! fio's keys of a result, by job.

use super::{Group, Metric, metric};

/// fio's block of a latency; what json+ adds to it comes last.
static LATENCIES: [Metric; 7] = [
    metric("min", "ns", "shortest latency"),
    metric("max", "ns", "longest latency"),
    metric("mean", "ns", "mean latency; missing without samples"),
    metric("stddev", "ns", "standard deviation of the latencies"),
    metric("N", "count", "number of latencies"),
    metric(
        "percentile.<percent>",
        "ns",
        "percentile of the latencies, such as `percentile.99.000000`; there are 1, 5, 10, 20 \
         to 90, 95, 99, 99.5, 99.9, 99.95 and 99.99. `p99` is short for it",
    ),
    metric(
        "bins.<ns>",
        "count",
        "latencies in the bin of fio's histogram that starts at so many ns (`--output-format \
         json+` only)",
    ),
];

pub(super) static DIRECTION: Group = Group {
    name: "jobs.direction",
    prefix: "jobs.<n>.<direction>",
    when: "always",
    derived: false,
    metrics: &[
        metric("io_bytes", "bytes", "data read, written or trimmed"),
        metric("io_kbytes", "KiB", "data read, written or trimmed, in KiB"),
        metric("bw_bytes", "bytes/s", "bandwidth: `io_bytes` per second of `job_runtime`"),
        metric("bw", "KiB/s", "bandwidth in KiB per second"),
        metric("iops", "1/s", "I/Os per second of `job_runtime`"),
        metric("runtime", "ms", "`job_runtime` if there were I/Os of this direction, else 0"),
        metric("total_ios", "count", "completed I/Os"),
        metric("short_ios", "count", "0, for fio's readers"),
        metric("drop_ios", "count", "0, for fio's readers"),
        metric(
            "bw_min",
            "KiB/s",
            "lowest bandwidth of a window of 500 ms of virtual time; a window without I/O is no \
             sample",
        ),
        metric("bw_max", "KiB/s", "highest bandwidth of a window of 500 ms"),
        metric(
            "bw_agg",
            "percent",
            "mean bandwidth in percent of the bandwidth of the job's group",
        ),
        metric("bw_mean", "KiB/s", "mean bandwidth of windows of 500 ms"),
        metric("bw_dev", "KiB/s", "standard deviation of the bandwidth of windows of 500 ms"),
        metric("bw_samples", "count", "number of windows of 500 ms with I/O"),
        metric("iops_min", "1/s", "lowest IOPS of a window of 500 ms of virtual time"),
        metric("iops_max", "1/s", "highest IOPS of a window of 500 ms"),
        metric("iops_mean", "1/s", "mean IOPS of windows of 500 ms"),
        metric("iops_stddev", "1/s", "standard deviation of the IOPS of windows of 500 ms"),
        metric("iops_samples", "count", "number of windows of 500 ms with I/O"),
    ],
};

pub(super) static CLAT: Group = Group {
    name: "jobs.clat",
    prefix: "jobs.<n>.<direction>.clat_ns",
    when: "always; percentiles if there were I/Os of this direction",
    derived: false,
    metrics: &LATENCIES,
};

pub(super) static LAT: Group = Group {
    name: "jobs.lat",
    prefix: "jobs.<n>.<direction>.lat_ns",
    when: "always; percentiles if there were I/Os of this direction",
    derived: false,
    metrics: LATENCIES.split_at(LATENCIES.len() - 1).0,
};

pub(super) static SLAT: Group = Group {
    name: "jobs.slat",
    prefix: "jobs.<n>.<direction>.slat_ns",
    when: "always",
    derived: false,
    metrics: &[
        metric("min", "ns", "0: submission takes no virtual time"),
        metric("max", "ns", "0, for fio's readers"),
        metric("mean", "ns", "0, for fio's readers"),
        metric("stddev", "ns", "0, for fio's readers"),
        metric("N", "count", "number of I/Os"),
    ],
};

pub(super) static SYNC: Group = Group {
    name: "jobs.sync",
    prefix: "jobs.<n>.sync",
    when: "always",
    derived: false,
    metrics: &[metric(
        "total_ios",
        "count",
        "completed syncs: fsync and fdatasync on files, flushes of the block device",
    )],
};

pub(super) static SYNC_LAT: Group = Group {
    name: "jobs.sync.lat",
    prefix: "jobs.<n>.sync.lat_ns",
    when: "always; percentiles if there were syncs",
    derived: false,
    metrics: &LATENCIES,
};

pub(super) static JOB: Group = Group {
    name: "jobs",
    prefix: "jobs.<n>",
    when: "always",
    derived: false,
    metrics: &[
        metric("groupid", "number", "number of the reporting group"),
        metric(
            "unaligned_ios.<direction>",
            "count",
            "I/Os that begin or end within a sector; missing if there are none",
        ),
        metric(
            "steadystate.duration",
            "s",
            "`steadystate_duration`; this and the next ones only of jobs with `steadystate`",
        ),
        metric("steadystate.attained", "number", "1 if the criterion was met, else 0"),
        metric(
            "steadystate.max_deviation",
            "number",
            "largest deviation from the mean of the window that was judged last",
        ),
        metric("steadystate.slope", "number", "slope of the least-squares line of that window"),
        metric("steadystate.data.bw_mean", "bytes/s", "mean bandwidth of that window"),
        metric("steadystate.data.iops_mean", "1/s", "mean IOPS of that window"),
        metric("steadystate.data.bw.<n>", "bytes/s", "bandwidth of an interval of that window"),
        metric("steadystate.data.iops.<n>", "1/s", "IOPS of an interval of that window"),
        metric("error", "number", "1 if the job failed, else 0"),
        metric("eta", "s", "0, for fio's readers"),
        metric("elapsed", "s", "`job_runtime` in seconds, rounded up"),
        metric(
            "job_runtime",
            "ms",
            "virtual time from the start of the job's measurement until its end",
        ),
        metric("usr_cpu", "percent", "0, for fio's readers"),
        metric("sys_cpu", "percent", "0, for fio's readers"),
        metric("ctx", "count", "0, for fio's readers"),
        metric("majf", "count", "0, for fio's readers"),
        metric("minf", "count", "0, for fio's readers"),
        metric(
            "iodepth_level.<class>",
            "percent",
            "share of I/Os that were submitted while so many were in flight, flushes included; up \
             to the next class",
        ),
        metric(
            "iodepth_submit.<class>",
            "percent",
            "100 in class 4: I/Os are submitted one by one",
        ),
        metric("iodepth_complete.<class>", "percent", "100 in class 4: I/Os complete one by one"),
        metric(
            "latency_ns.<class>",
            "percent",
            "share of I/Os of all directions whose latency in ns is below the class and not below \
             the one before",
        ),
        metric(
            "latency_us.<class>",
            "percent",
            "share of I/Os of all directions whose latency in us is below the class and not below \
             the one before",
        ),
        metric(
            "latency_ms.<class>",
            "percent",
            "share of I/Os of all directions whose latency in ms is below the class and not below \
             the one before",
        ),
        metric(
            "latency_depth",
            "count",
            "queue depth: `iodepth`, or that which `latency_target` led to",
        ),
        metric("latency_target", "ns", "0, for fio's readers"),
        metric("latency_percentile", "percent", "100, for fio's readers"),
        metric("latency_window", "ns", "0, for fio's readers"),
        metric("total_err", "count", "I/Os that failed"),
        metric("verify.verified_sectors", "sectors", "sectors whose content was verified"),
        metric(
            "verify.unverified_sectors",
            "sectors",
            "sectors whose content could not be verified, for example because they were never \
             written",
        ),
    ],
};

pub(super) static JOB_ZONES: Group = Group {
    name: "jobs.zones",
    prefix: "jobs.<n>",
    when: "jobs with `zonemode=zbd`; latencies after a reset",
    derived: false,
    metrics: &[
        metric("zone_resets", "count", "zones with data that the job reset, trims included"),
        metric("zones_begun", "count", "zones whose first sector the job wrote"),
        metric(
            "zones_filled",
            "count",
            "zones that the job wrote up to their capacity, or until no block fits",
        ),
        metric("zone_reset_lat_ns.min", "ns", "shortest latency of resets that precede a write"),
        metric("zone_reset_lat_ns.max", "ns", "longest latency of resets that precede a write"),
        metric("zone_reset_lat_ns.mean", "ns", "mean latency of resets that precede a write"),
        metric(
            "zone_reset_lat_ns.stddev",
            "ns",
            "standard deviation of the latencies of resets that precede a write",
        ),
        metric(
            "zone_reset_lat_ns.N",
            "count",
            "number of latencies of resets that precede a write",
        ),
        metric(
            "zone_reset_lat_ns.percentile.<percent>",
            "ns",
            "percentile of the latencies of resets that precede a write",
        ),
    ],
};

pub(super) static TOP: Group = Group {
    name: "top",
    prefix: "",
    when: "always",
    derived: false,
    metrics: &[
        metric("timestamp", "s", "0, for fio's readers"),
        metric("timestamp_ms", "ms", "0, for fio's readers"),
    ],
};
