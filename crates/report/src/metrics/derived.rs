//! Metrics that are computed when their path is looked up: a result does not hold them.

use super::{Group, metric};

pub(super) static ALL: Group = Group {
    name: "all",
    prefix: "all.<direction>",
    when: "if there are jobs; percentiles if there were I/Os of this direction",
    derived: true,
    metrics: &[
        metric("io_bytes", "bytes", "data of all jobs"),
        metric("total_ios", "count", "I/Os of all jobs"),
        metric(
            "bw_bytes",
            "bytes/s",
            "bandwidth: data of all jobs divided by `totals.<direction>.seconds`",
        ),
        metric("iops", "1/s", "I/Os of all jobs divided by `totals.<direction>.seconds`"),
        metric(
            "clat_ns.p<percent>",
            "ns",
            "percentile of the latencies of all jobs, such as `all.write.clat_ns.p99.9`; null of fewer than 1 / (1 - *p*) I/Os, of \
             which none is expected beyond it",
        ),
        metric("clat_ns.mean", "ns", "mean latency of all jobs"),
        metric("lat_ns.p<percent>", "ns", "as `clat_ns`, because submission takes no time"),
        metric("lat_ns.mean", "ns", "likewise"),
    ],
};

pub(super) static ALL_SYNC: Group = Group {
    name: "all.sync",
    prefix: "all.sync",
    when: "if there are jobs; percentiles if there were syncs",
    derived: true,
    metrics: &[
        metric("total_ios", "count", "syncs of all jobs"),
        metric(
            "lat_ns.p<percent>",
            "ns",
            "percentile of the latencies of the syncs of all jobs; null of too few",
        ),
        metric("lat_ns.mean", "ns", "mean latency of the syncs of all jobs"),
    ],
};

pub(super) static PERCENTILES: Group = Group {
    name: "percentiles",
    prefix: "jobs.<n>",
    when: "if there were I/Os of this direction, or syncs",
    derived: true,
    metrics: &[
        metric(
            "<direction>.clat_ns.p<percent>",
            "ns",
            "short for `percentile.<percent>`: `write.clat_ns.p99` is the 99th percentile of the \
             first job's writes, null if there are fewer than 1 / (1 - *p*) of them",
        ),
        metric(
            "<direction>.lat_ns.p<percent>",
            "ns",
            "short for `percentile.<percent>` of `lat_ns`",
        ),
        metric("sync.lat_ns.p<percent>", "ns", "short for `percentile.<percent>` of syncs"),
        metric(
            "zone_reset_lat_ns.p<percent>",
            "ns",
            "short for `percentile.<percent>` of resets of zones",
        ),
    ],
};

pub(super) static ENDS: Group = Group {
    name: "ends",
    prefix: "",
    when: "always",
    derived: true,
    metrics: &[
        metric(
            "first_tenth.iops",
            "1/s",
            "IOPS of all jobs in the first tenth of the measured phase, from the series",
        ),
        metric(
            "first_tenth.<direction>.bytes_per_s",
            "bytes/s",
            "bandwidth of all jobs in the first tenth of the measured phase",
        ),
        metric(
            "second_half.iops",
            "1/s",
            "IOPS of all jobs in the second half of the measured phase, from the series",
        ),
        metric(
            "second_half.<direction>.bytes_per_s",
            "bytes/s",
            "bandwidth of all jobs in the second half of the measured phase",
        ),
        metric(
            "last_tenth.iops",
            "1/s",
            "IOPS of all jobs in the last tenth of the measured phase",
        ),
        metric(
            "last_tenth.<direction>.bytes_per_s",
            "bytes/s",
            "bandwidth of all jobs in the last tenth of the measured phase",
        ),
    ],
};
