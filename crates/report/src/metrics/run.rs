//! What ran, on what, and its course.

use super::{Group, metric};

pub(super) static RUN: Group = Group {
    name: "run",
    prefix: "",
    when: "always; `interrupted` only if the run was",
    derived: false,
    metrics: &[
        metric("seed", "number", "seed of the run"),
        metric("virtual_s", "s", "duration of the measured phase in virtual time"),
        metric("wall_s", "s", "duration of the measured phase in real time"),
        metric(
            "steady",
            "bool",
            "whether the metrics are those of a [steady state](#steady-state)",
        ),
        metric("erases", "count", "chunks erased"),
        metric(
            "interrupted",
            "bool",
            "true: Ctrl-C or SIGTERM ended the run, and all metrics cover what had completed \
             until then",
        ),
    ],
};

pub(super) static TOTALS: Group = Group {
    name: "totals",
    prefix: "totals",
    when: "always; rates are null where no virtual time passed; zones with jobs of \
         `zonemode=zbd`",
    derived: false,
    metrics: &[
        metric(
            "seconds",
            "s",
            "from the start of the first job's measurement until the end of the last job",
        ),
        metric(
            "<direction>.seconds",
            "s",
            "time in which at least one job ran that had I/Os of the direction: rates of all jobs are of it, as in the lines of fio's \
             `Run status group`",
        ),
        metric("<direction>.total_ios", "count", "I/Os of all jobs"),
        metric("<direction>.io_bytes", "bytes", "data of all jobs"),
        metric(
            "<direction>.iops",
            "1/s",
            "I/Os of all jobs divided by `totals.<direction>.seconds`; 0 without I/Os",
        ),
        metric(
            "<direction>.bw_bytes",
            "bytes/s",
            "data of all jobs divided by `totals.<direction>.seconds`; 0 without I/Os",
        ),
        metric("zones.resets", "count", "zones with data that jobs reset"),
        metric("zones.begun", "count", "zones whose first sector jobs wrote"),
        metric("zones.filled", "count", "zones that jobs filled"),
    ],
};

pub(super) static GEOMETRY: Group = Group {
    name: "geometry",
    prefix: "geometry",
    when: "always",
    derived: false,
    metrics: &[
        metric("groups", "count", "groups (channels)"),
        metric("units", "count", "parallel units per group"),
        metric("chunks", "count", "chunks per unit"),
        metric("sectors", "sectors", "sectors per chunk"),
        metric("ws_min", "sectors", "smallest write"),
        metric("ws_opt", "sectors", "optimal write size: one program operation"),
        metric(
            "mw_cunits",
            "sectors",
            "sectors below the write pointer that cannot be read from media",
        ),
    ],
};

pub(super) static CAPACITY: Group = Group {
    name: "capacity",
    prefix: "capacity",
    when: "always",
    derived: false,
    metrics: &[
        metric("physical_sectors", "sectors", "sectors of all good chunks"),
        metric("logical_sectors", "sectors", "sectors that the host can address"),
        metric(
            "usable_sectors",
            "sectors",
            "sectors that may hold data of the host at once: fewer than `capacity.logical_sectors` where the address space is larger \
             than the media, as on coupled and interval-mapped SSDs",
        ),
        metric("lines", "count", "lines (erase units) of the device"),
        metric("line_sectors", "sectors", "sectors of a line without bad chunks"),
        metric(
            "op_raw_percent",
            "percent",
            "overprovisioning, (physical - usable), in percent of the physical sectors, as pblk \
             counts it",
        ),
        metric(
            "op_usable_percent",
            "percent",
            "overprovisioning in percent of the usable sectors, as SNIA and vendors count it",
        ),
        metric(
            "op_effective_percent",
            "percent",
            "overprovisioning that garbage collection worked with, in percent of the usable sectors: sectors in use beyond these \
             (`gc.in_use_sectors_mean`). Lines that are kept free or are being written do not count; theory's write amplification \
             is of it. Null without GC, on a device that is not full, and where the address space is larger than the media",
        ),
    ],
};

pub(super) static PRECONDITION: Group = Group {
    name: "precondition",
    prefix: "precondition",
    when: "always; `prefill_sectors` for replays of traces",
    derived: false,
    metrics: &[
        metric("wall_s", "s", "duration of preconditioning in real time"),
        metric(
            "fill_sectors",
            "sectors",
            "sectors written in order; if a state was loaded, those that it holds",
        ),
        metric("overwrite_sectors", "sectors", "sectors written at random, settling included"),
        metric(
            "steady",
            "bool",
            "whether write amplification became steady; null if this was not requested",
        ),
        metric(
            "prefill_sectors",
            "sectors",
            "footprint of the trace, written afterwards in order and untimed",
        ),
    ],
};

pub(super) static UNTIL_STEADY: Group = Group {
    name: "until_steady",
    prefix: "until_steady",
    when: "runs with `--until-steady`",
    derived: false,
    metrics: &[
        metric("rounds", "count", "rounds that ran"),
        metric("rounds_max", "count", "largest number of rounds"),
    ],
};

pub(super) static MEMORY: Group = Group {
    name: "memory",
    prefix: "memory",
    when: "always; `zones_bytes` on devices with zones",
    derived: false,
    metrics: &[
        metric("ftl_bytes", "bytes", "RAM of the FTL: mapping table, buffers, bitmaps, lines"),
        metric("buffers_bytes", "bytes", "RAM of write buffers"),
        metric("bitmap_bytes", "bytes", "RAM of valid bitmaps"),
        metric("line_bytes", "bytes", "RAM of the state of lines"),
        metric("zones_bytes", "bytes", "RAM of the state of zones"),
        metric("media_bytes", "bytes", "RAM of the simulator for the virtual media"),
        metric(
            "dropped_sectors",
            "sectors",
            "superseded sectors of the measured phase whose bytes the virtual media dropped \
             because the superseding data was durable: no read and no mount after a power cut \
             returns them. They still count as written. Tags take no bytes, so sectors of tags \
             are not counted; neither are trim records, nor copied sectors, which are dropped by \
             the erase",
        ),
    ],
};

pub(super) static MEMORY_HOST: Group = Group {
    name: "memory.host",
    prefix: "memory.host",
    when: "runs with a page cache; parts beside it with `host.memory_of = \"all\"`",
    derived: false,
    metrics: &[
        metric("limit_bytes", "bytes", "[`host.memory`](stack.md)"),
        metric("page_cache_bytes", "bytes", "limit of the page cache"),
        metric("map_bytes", "bytes", "mapping table of an FTL on the host"),
        metric("buffers_bytes", "bytes", "write buffers of an FTL on the host"),
        metric("bitmap_bytes", "bytes", "valid bitmaps of an FTL on the host"),
        metric("line_bytes", "bytes", "state of lines of an FTL on the host"),
        metric("metadata_bytes", "bytes", "metadata blocks of the file system"),
        metric("inodes_bytes", "bytes", "inodes of the file system"),
    ],
};

pub(super) static MEMORY_FS: Group = Group {
    name: "memory.fs",
    prefix: "memory.fs",
    when: "F2FS: memory that the simulator uses at the end",
    derived: false,
    metrics: &[
        metric("file_pages_bytes", "bytes", "pages of files in the page cache"),
        metric(
            "node_pages_bytes",
            "bytes",
            "pages of nodes; bytes shared with the virtual media are counted there",
        ),
        metric("meta_pages_bytes", "bytes", "pages of metadata areas"),
        metric("nat_bytes", "bytes", "NAT entries"),
        metric("inodes_bytes", "bytes", "inodes with their extents"),
        metric("sit_bytes", "bytes", "SIT"),
    ],
};

pub(super) static WEAR: Group = Group {
    name: "wear",
    prefix: "wear",
    when: "always; erases since the device was new, preconditioning included",
    derived: false,
    metrics: &[
        metric("chunks", "count", "chunks in service"),
        metric("offline", "count", "chunks out of service"),
        metric("erases_total", "count", "erases of all chunks in service"),
        metric("erases_min", "count", "erases of the chunk with the fewest"),
        metric("erases_max", "count", "erases of the chunk with the most"),
        metric("erases_histogram.first", "count", "erases of the first class"),
        metric("erases_histogram.step", "count", "width of a class"),
        metric(
            "erases_histogram.chunks.<n>",
            "count",
            "entry *k* counts chunks in service with `first` + *k* `step` erases or up to `step` \
             - 1 more",
        ),
        metric("program_failures", "count", "failed programs of the measured phase"),
        metric("erase_failures", "count", "failed erases of the measured phase"),
    ],
};

pub(super) static UTILISATION: Group = Group {
    name: "utilisation",
    prefix: "utilisation",
    when: "always",
    derived: false,
    metrics: &[
        metric(
            "units.<n>",
            "share",
            "share of the measured phase in which the parallel unit was busy, also while its \
             command waits for the channel",
        ),
        metric("units_mean", "share", "mean of `units`"),
        metric("units_least", "share", "least of `units`"),
        metric("units_most", "share", "largest of `units`"),
        metric(
            "channels.<n>",
            "share",
            "share of the measured phase in which the channel was busy",
        ),
        metric(
            "pcie",
            "share",
            "share of the measured phase in which the link was busy: the sum of both directions",
        ),
        metric(
            "programmed_sectors",
            "sectors",
            "sectors that the units programmed, counted by the media: the sum of `sectors` \
             without `journal` and `stale`, which the FTL counts",
        ),
    ],
};

pub(super) static QUEUE: Group = Group {
    name: "queue",
    prefix: "queue",
    when: "always: requests in the device, below a file system or page cache",
    derived: false,
    metrics: &[
        metric("requests", "count", "requests submitted to the device"),
        metric("mean", "count", "requests in the device, averaged over the measured phase"),
        metric(
            "occupied",
            "share",
            "share of the measured phase in which at least one request was in the device",
        ),
    ],
};

pub(super) static THEORY: Group = Group {
    name: "theory",
    prefix: "theory",
    when: "collecting page-mapped FTLs whose victims are greedy, pblk's lists or FIFO, under independent uniform random \
           writes (`norandommap`) of a mapping unit to the whole device; `theory.law` names the law: `greedy` (Van Houdt 2013) or `fifo` \
           (Desnoyers 2014)",
    derived: false,
    metrics: &[
        metric(
            "waf",
            "ratio",
            "write amplification that the law has for independent writes and the sectors in use; compare `waf.gc`",
        ),
        metric(
            "spare",
            "share",
            "effective overprovisioning: sectors in use beyond the logical ones, divided by these",
        ),
    ],
};

pub(super) static LINK: Group = Group {
    name: "link",
    prefix: "link",
    when: "always; with an FTL on the host, the bytes are those of all sectors programmed and \
         read",
    derived: false,
    metrics: &[
        metric("to_device_bytes", "bytes", "data that crossed the link to the device"),
        metric("to_host_bytes", "bytes", "data that crossed the link to the host"),
        metric(
            "to_device",
            "share",
            "share of the measured phase in which transfers to the device occupied the link",
        ),
        metric(
            "to_host",
            "share",
            "share of the measured phase in which transfers to the host occupied the link",
        ),
    ],
};

pub(super) static CDF: Group = Group {
    name: "latency_cdf",
    prefix: "latency_cdf",
    when: "directions with I/Os, and `sync`; at most 200 points, denser towards the tail",
    derived: false,
    metrics: &[
        metric("<direction>.ns.<n>", "ns", "latency of the point of the distribution"),
        metric(
            "<direction>.share.<n>",
            "share",
            "share of requests of all jobs that took at most that long",
        ),
        metric("sync.ns.<n>", "ns", "latency of the point of the distribution"),
        metric("sync.share.<n>", "share", "share of syncs of all jobs that took at most that long"),
    ],
};

pub(super) static SERIES: Group = Group {
    name: "series",
    prefix: "series.<n>",
    when: "always; a direction if it completed anything; write amplification as `waf`",
    derived: false,
    metrics: &[
        metric("t_s", "s", "end of the interval"),
        metric("iops", "1/s", "IOPS of all directions"),
        metric("waf", "ratio", "`waf.gc` of the interval"),
        metric("waf_gc_pad", "ratio", "`waf.gc_pad` of the interval"),
        metric("waf_media", "ratio", "`waf.media` of the interval"),
        metric("gc_sectors_per_s", "sectors/s", "sectors that the FTL copied"),
        metric(
            "sectors.user",
            "sectors",
            "sectors written to media in the interval: data of the host",
        ),
        metric(
            "sectors.gc",
            "sectors",
            "sectors written to media in the interval: copies of garbage collection",
        ),
        metric(
            "sectors.stale",
            "sectors",
            "sectors written to media in the interval: copies that became stale before they were durable",
        ),
        metric("sectors.pad", "sectors", "sectors written to media in the interval: padding"),
        metric(
            "sectors.meta",
            "sectors",
            "sectors written to media in the interval: metadata of lines and trim records",
        ),
        metric(
            "sectors.map",
            "sectors",
            "sectors written to media in the interval: mapping blocks",
        ),
        metric(
            "free_lines",
            "count",
            "erase units without data at the end of the interval, also those that wait for durability before their erase",
        ),
        metric(
            "in_flight",
            "count",
            "I/Os between submission and completion at the end of the interval; not of Filebench workloads",
        ),
        metric("<direction>.ios", "count", "I/Os that completed in the interval"),
        metric("<direction>.mean_ns", "ns", "mean latency, exact"),
        metric("<direction>.p50_ns", "ns", "median latency, at most 3 % too high; null of too few"),
        metric(
            "<direction>.p99_ns",
            "ns",
            "99th percentile, at most 3 % too high; null of fewer than 100",
        ),
        metric("<direction>.max_ns", "ns", "longest latency, at most 3 % too high"),
        metric("<direction>.histogram.first_ns", "ns", "where entry 0 of `histogram.ios` begins"),
        metric(
            "<direction>.histogram.ios.<n>",
            "count",
            "I/Os with latencies from `first_ns` 2^*n* to below twice that; those below 1,024 ns count as if they were longer",
        ),
        metric("<direction>.bytes_per_s", "bytes/s", "bandwidth"),
        metric("sync.ios", "count", "syncs that completed in the interval"),
        metric("sync.mean_ns", "ns", "mean latency, exact"),
        metric("sync.p50_ns", "ns", "median latency, at most 3 % too high; null of too few"),
        metric(
            "sync.p99_ns",
            "ns",
            "99th percentile, at most 3 % too high; null of fewer than 100",
        ),
        metric("sync.max_ns", "ns", "longest latency, at most 3 % too high"),
        metric("sync.histogram.first_ns", "ns", "where entry 0 of `histogram.ios` begins"),
        metric(
            "sync.histogram.ios.<n>",
            "count",
            "syncs with latencies from `first_ns` 2^*n* to below twice that; those below 1,024 ns count as if they were longer",
        ),
    ],
};

pub(super) static SERIES_FS: Group = Group {
    name: "series.fs",
    prefix: "series.<n>.fs",
    when: "F2FS",
    derived: false,
    metrics: &[
        metric("gc_blocks_per_s", "blocks/s", "blocks that cleaning moved"),
        metric(
            "gc_share",
            "share",
            "share of the interval in foreground cleaning calls (a call counts where it ends)",
        ),
        metric("checkpoints_per_s", "1/s", "checkpoints"),
        metric("free_segments", "count", "free segments at the end of the interval"),
    ],
};

pub(super) static SERIES_COUPLED: Group = Group {
    name: "series.coupled",
    prefix: "series.<n>.coupled",
    when: "coupled SSDs",
    derived: false,
    metrics: &[
        metric("moved_per_s", "1/s", "pages that collection moved"),
        metric("upcalls_per_s", "1/s", "upcalls that the host fetched"),
        metric("open", "count", "records that are open at the end of the interval"),
        metric("record_bytes", "bytes", "memory of records at the end of the interval"),
        metric("region_use", "share", "used share of the region to which data is moved"),
    ],
};
