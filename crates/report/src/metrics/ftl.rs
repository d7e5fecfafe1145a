//! What the FTL did.

use super::{Group, metric};

pub(super) static WAF: Group = Group {
    name: "waf",
    prefix: "waf",
    when: "always; all but `fs` are null if copies were made and less than one line of user \
         sectors was written: lines are collected as a whole, so such a quotient depends on when \
         the run started",
    derived: false,
    metrics: &[
        metric(
            "gc",
            "ratio",
            "write amplification of garbage collection: (user + GC) / user sectors",
        ),
        metric(
            "gc_pad",
            "ratio",
            "(user + GC + padding) / user, as reported by pblk: copies that became stale count as \
             padding",
        ),
        metric(
            "media",
            "ratio",
            "all media writes / user sectors, including line metadata, trim records and mapping \
             blocks",
        ),
        metric(
            "fs",
            "ratio",
            "sectors written to the device per sector that jobs wrote to files, or to a block \
             device if any job uses its page cache; otherwise null, also if nothing was written to the device. Below 1 \
             if the page cache absorbed overwrites, or still holds dirty data",
        ),
        metric(
            "total",
            "ratio",
            "bytes that media wrote per byte that jobs, flowops or a trace wrote, whatever they were written for: data, file system \
             metadata and journals, padding, GC copies, metadata of the FTL. It answers which stack wears media more; null if \
             nothing was written, by jobs or to the device",
        ),
        metric("parts.user", "ratio", "part of `waf.media`: user sectors, 1"),
        metric("parts.gc", "ratio", "part of `waf.media`: GC copies"),
        metric(
            "parts.stale",
            "ratio",
            "part of `waf.media`: GC copies that became stale before they were written",
        ),
        metric("parts.pad", "ratio", "part of `waf.media`: padding without stale copies"),
        metric("parts.meta", "ratio", "part of `waf.media`: line metadata and trim records"),
        metric("parts.map", "ratio", "part of `waf.media`: mapping blocks"),
    ],
};

pub(super) static SECTORS: Group = Group {
    name: "sectors",
    prefix: "sectors",
    when: "always",
    derived: false,
    metrics: &[
        metric("user", "sectors", "user sectors written to lines"),
        metric("gc", "sectors", "GC copies written to lines"),
        metric("pad", "sectors", "padding written to lines, stale copies included"),
        metric("line_meta", "sectors", "line metadata written"),
        metric("map", "sectors", "mapping blocks written; on a coupled SSD, its journal"),
        metric("trim", "sectors", "trim records written"),
        metric("journal", "sectors", "part of `user`: sectors whose bios had the JOURNAL flag"),
        metric(
            "stale",
            "sectors",
            "part of `pad`: GC copies that became stale before they were written",
        ),
    ],
};

pub(super) static GC: Group = Group {
    name: "gc",
    prefix: "gc",
    when: "always; means are null without victims, or without writes",
    derived: false,
    metrics: &[
        metric("victims", "count", "victim lines that were collected"),
        metric("valid_ratio_mean", "share", "mean share of valid sectors of a victim"),
        metric(
            "in_use_sectors_mean",
            "sectors",
            "mean number of data sectors in lines that have not been emptied; see below",
        ),
        metric("empty_victims", "count", "lines freed without copying"),
        metric(
            "forced_flushes",
            "count",
            "how often the erase rule or a full write buffer forced all buffered sectors to the \
             media",
        ),
    ],
};

pub(super) static BUFFERS: Group = Group {
    name: "buffers",
    prefix: "buffers.<n>",
    when: "pblk",
    derived: false,
    metrics: &[
        metric("user", "sectors", "user sectors written from this write buffer"),
        metric("gc", "sectors", "GC copies written from it"),
        metric("pad", "sectors", "padding written from it"),
        metric("victims", "count", "lines that it filled and that were collected"),
        metric("victim_valid", "sectors", "valid sectors of victims that it filled"),
        metric(
            "empty_victims",
            "count",
            "lines that it filled and that were freed without copying",
        ),
    ],
};

pub(super) static FLUSH: Group = Group {
    name: "flush",
    prefix: "flush",
    when: "always",
    derived: false,
    metrics: &[
        metric(
            "waited",
            "count",
            "device flushes that waited for sectors to become durable, or for idle units",
        ),
        metric("empty", "count", "device flushes with nothing to wait for"),
        metric(
            "drained_sectors",
            "sectors",
            "sectors not yet durable in the write buffers that flushes covered",
        ),
        metric(
            "total_ns",
            "ns",
            "total time of the flushes that waited; the sum of the parts below",
        ),
        metric(
            "queue_ns",
            "ns",
            "part of `total_ns`: waiting for earlier user sectors to be programmed; on an SSD for \
             whatever was neither collection nor the last program",
        ),
        metric(
            "gc_ns",
            "ns",
            "part of `total_ns`: waiting for GC copies to be programmed; on an SSD while the die of \
             the last program, or the one that was idle last, read, programmed or erased for \
             collection",
        ),
        metric("padding_ns", "ns", "part of `total_ns`: the padding's share of the last program"),
        metric("program_ns", "ns", "part of `total_ns`: the rest of the last program"),
    ],
};

pub(super) static READS: Group = Group {
    name: "reads",
    prefix: "reads",
    when: "always",
    derived: false,
    metrics: &[
        metric("sectors", "sectors", "sectors read by users"),
        metric("write_buffer_hits", "sectors", "sectors that users read from the write buffer"),
        metric(
            "unwritten",
            "sectors",
            "sectors that users read although they were never written or were discarded: they \
             take the controller's part of a read and the transfer over the link, as in NVMeVirt, \
             and no media time",
        ),
        metric("uncorrectable", "sectors", "uncorrectable sectors, read by users and by GC"),
        metric("mismatches", "sectors", "sectors with wrong content; must be 0"),
    ],
};

pub(super) static WRITES: Group = Group {
    name: "writes",
    prefix: "",
    when: "always",
    derived: false,
    metrics: &[
        metric("writes.sectors", "sectors", "sectors accepted from users"),
        metric(
            "writes.stall_ns_max",
            "ns",
            "longest time that a write waited to enter the write buffer",
        ),
        metric("discards.sectors", "sectors", "sectors discarded by users"),
        metric(
            "lines.valid_histogram.<n>",
            "count",
            "full lines at the end by their share of valid data sectors, in 20 classes: entry *k* \
             counts lines from 5 *k* % to below 5 (*k* + 1) %, the last one also those with 100 %",
        ),
    ],
};

pub(super) static PAD_UNITS: Group = Group {
    name: "pad_units",
    prefix: "",
    when: "pblk",
    derived: false,
    metrics: &[metric(
        "pad_units.<n>",
        "count",
        "write units by padding: entry *k* counts write units with *k* + 1 padding sectors",
    )],
};

pub(super) static DEVICE: Group = Group {
    name: "device",
    prefix: "device",
    when: "conventional SSDs",
    derived: false,
    metrics: &[
        metric("rmw", "count", "writes of a part of a mapping unit that had to read the rest"),
        metric(
            "rmw_sectors",
            "sectors",
            "sectors that read-modify-writes wrote in addition to the host's, which count as \
             padding",
        ),
        metric(
            "trim_compactions",
            "count",
            "how often the trim records on media were replaced by records of all unmapped runs",
        ),
    ],
};

pub(super) static ZONES: Group = Group {
    name: "zones",
    prefix: "zones",
    when: "devices with zones; `list` with `--zones`",
    derived: false,
    metrics: &[
        metric("resets", "count", "zone resets"),
        metric("finishes", "count", "zone finishes"),
        metric("opens", "count", "explicit opens of zones"),
        metric("closes", "count", "closes of zones"),
        metric("appends", "count", "zone appends"),
        metric("refused", "count", "commands that violated a rule"),
        metric(
            "saved_sectors",
            "sectors",
            "sectors of partly filled pages that flushes wrote to the save log",
        ),
        metric("relocated_chunks", "count", "chunks replaced after a failed program"),
        metric("count", "count", "zones"),
        metric("zone_sectors", "sectors", "zone size: between the starts of two zones"),
        metric("capacity_sectors", "sectors", "zone capacity: writable sectors"),
        metric("random_sectors", "sectors", "sectors before the zones"),
        metric(
            "states.<state>",
            "count",
            "zones in this state at the end, by the names of `nvme zns report-zones` (`EMPTY`, \
             `IMP_OPENED`, `EXP_OPENED`, `CLOSED`, `READONLY`, `FULL`, `OFFLINE`); states that \
             occur",
        ),
        metric("list.<n>.slba", "sectors", "first sector of the zone"),
        metric("list.<n>.wp", "sectors", "write pointer of the zone"),
        metric("list.<n>.cap", "sectors", "capacity of the zone"),
        metric("list.<n>.attrs", "number", "0, for readers of that report"),
    ],
};

pub(super) static INTERVAL: Group = Group {
    name: "interval",
    prefix: "interval",
    when: "SSDs with interval maps",
    derived: false,
    metrics: &[
        metric(
            "trim_compactions",
            "count",
            "how often the trim records on media were replaced by records of all unmapped runs",
        ),
        metric("compactions", "count", "compactions of maps that found changes"),
        metric("candidates", "count", "map nodes that compactions examined"),
        metric("compacted", "count", "map nodes that compactions made smaller"),
        metric("read_bytes", "bytes", "bitmaps that compactions read"),
        metric("copied_bytes", "bytes", "directories and entries that compactions wrote"),
        metric("freed_bytes", "bytes", "memory that compactions freed"),
        metric("busy_ns", "ns", "time in which the firmware did nothing else"),
    ],
};

pub(super) static FIRMWARE: Group = Group {
    name: "firmware",
    prefix: "firmware",
    when: "conventional SSDs, SSDs with interval maps, and coupled SSDs, whether or not accesses take time",
    derived: false,
    metrics: &[
        metric(
            "map_accesses",
            "count",
            "nodes and entries of its maps that the firmware accessed, for the host and for \
             collection",
        ),
        metric(
            "busy_ns",
            "ns",
            "time for which accesses, and compactions of interval maps, keep the firmware's core \
             busy; what it has taken up at the end of a run counts as a whole",
        ),
    ],
};

pub(super) static COUPLED: Group = Group {
    name: "coupled",
    prefix: "coupled",
    when: "coupled SSDs; means are null without samples",
    derived: false,
    metrics: &[
        metric("moved", "count", "pages that collection moved"),
        metric("opened", "count", "records of moved pages that were opened"),
        metric(
            "merged",
            "count",
            "moves of pages that already had a record that was not yet offered",
        ),
        metric("deleted", "count", "records whose pages were discarded before they were offered"),
        metric("completed", "count", "records of completed upcalls"),
        metric("upcalls", "count", "upcalls that the host fetched"),
        metric("sent", "count", "records in upcalls that the host fetched"),
        metric(
            "carried",
            "count",
            "records that were open when the phase started; with those opened they equal those \
             completed, deleted and `open`",
        ),
        metric("open", "count", "records that are open at the end"),
        metric("collected", "count", "victims that were erased"),
        metric(
            "collect_ns",
            "ns",
            "total time from the start of the collection of a victim to the end of its erase",
        ),
        metric("collect_ns_mean", "ns", "`collect_ns` per victim"),
        metric(
            "collect_media_ns",
            "ns",
            "time of these collections on media: how long a unit reads, programs and erases for \
             them, mean over the units of an instance, total",
        ),
        metric("collect_media_ns_mean", "ns", "`collect_media_ns` per victim"),
        metric("moved_page_ns_mean", "ns", "`collect_ns` per page moved"),
        metric("reclaimed_sector_ns_mean", "ns", "`collect_ns` per reclaimed sector"),
        metric("reclaimed", "sectors", "sectors of victims that were not valid"),
        metric("region_lines", "count", "lines in use of the region to which data is moved"),
        metric("region_lines_all", "count", "lines of the region to which data is moved"),
        metric("record_bytes", "bytes", "memory of records and of the tables that find them"),
        metric(
            "journal_sectors",
            "sectors",
            "sectors written to the [journal](coupled.md) of the device; they count in \
             `sectors.map`",
        ),
        metric("journal_flushes", "count", "flushes of the journal of the device"),
        metric("snapshots", "count", "snapshots taken"),
        metric("snapshot_sectors", "sectors", "sectors of snapshots written"),
    ],
};

pub(super) static MAP: Group = Group {
    name: "map",
    prefix: "map",
    when: "always",
    derived: false,
    metrics: &[
        metric("bytes", "bytes", "RAM for the mapping table, including its cache"),
        metric(
            "hit_ratio",
            "share",
            "share of the host's lookups, of one sector each, that found their entry in RAM",
        ),
        metric("loads", "count", "mapping blocks read on a miss"),
        metric("writebacks", "count", "mapping blocks written back"),
    ],
};

pub(super) static MAP_CACHED: Group = Group {
    name: "map.cached",
    prefix: "map",
    when: "pblk with `ftl.map.kind = \"cached\"`; `index_bytes` and the `paper_` metrics by \
         policy",
    derived: false,
    metrics: &[
        metric("host_lookups.hits", "count", "lookups by the host that hit"),
        metric(
            "host_lookups.joined_loads",
            "count",
            "lookups by the host of a block that was being read",
        ),
        metric("host_lookups.misses", "count", "lookups by the host that missed"),
        metric("internal_lookups.hits", "count", "lookups by the FTL that hit"),
        metric(
            "internal_lookups.joined_loads",
            "count",
            "lookups by the FTL of a block that was being read",
        ),
        metric("internal_lookups.misses", "count", "lookups by the FTL that missed"),
        metric("zero_fills", "count", "misses of addresses never written"),
        metric("merge_reads", "count", "reads of a translation page before it is written (DFTL)"),
        metric("entries_written", "count", "map entries written to media"),
        metric("evictions_clean", "count", "evictions of unchanged blocks"),
        metric("evictions_dirty", "count", "evictions of changed blocks"),
        metric("all_slots_pinned", "count", "misses that waited because all slots were pinned"),
        metric("blind_updates", "count", "entries that went to the buffer of blind updates"),
        metric("merges", "count", "blocks into which buffered entries were merged"),
        metric("merged_entries", "count", "buffered entries merged"),
        metric("read_sectors", "sectors", "part of the media reads: mapping blocks"),
        metric("pad_sectors", "sectors", "part of `sectors.map`: padding"),
        metric(
            "copied_sectors",
            "sectors",
            "part of `sectors.map`: copies of mapping blocks by GC",
        ),
        metric("victims", "count", "victims among mapping lines"),
        metric("cache_bytes", "bytes", "part of `map.bytes`: cached blocks or entries"),
        metric("blind_bytes", "bytes", "part of `map.bytes`: buffer of blind updates"),
        metric("directory_bytes", "bytes", "part of `map.bytes`: directory of mapping blocks"),
        metric("slot_bytes", "bytes", "part of `map.bytes`: state of slots"),
        metric("staging_bytes", "bytes", "part of `map.bytes`: blocks being written"),
        metric(
            "paper_directory_bytes",
            "bytes",
            "directory as the paper counts it (its equation 1 at 40 bytes per block)",
        ),
        metric("paper_bitmap_bytes", "bytes", "bitmaps as the paper counts them"),
        metric("index_bytes", "bytes", "DFTL's index, which only the simulator needs"),
    ],
};

pub(super) static MAP_SSD: Group = Group {
    name: "map.ssd",
    prefix: "map",
    when: "parts of `map.bytes` of SSDs with interval maps and of coupled SSDs",
    derived: false,
    metrics: &[
        metric(
            "metadata_bytes",
            "bytes",
            "interval maps: table of the region that is writable at random",
        ),
        metric("roots_bytes", "bytes", "interval maps: roots"),
        metric("middle_nodes_bytes", "bytes", "interval maps: middle nodes"),
        metric("leaf_heads_bytes", "bytes", "interval maps: heads of leaves"),
        metric("bitmaps_bytes", "bytes", "interval maps: valid bitmaps"),
        metric("directories_bytes", "bytes", "interval maps: directories of ranges"),
        metric("entries_bytes", "bytes", "interval maps: entries"),
        metric("changed_leaves_bytes", "bytes", "interval maps: list of changed leaves"),
        metric(
            "pages_bytes",
            "bytes",
            "coupled SSD: table of the page-mapped region, and state of lines as zones",
        ),
        metric(
            "superblocks_bytes",
            "bytes",
            "coupled SSD: line of each logical line, and number of records that name it",
        ),
        metric("valid_bytes", "bytes", "coupled SSD: valid bitmaps"),
        metric("records_bytes", "bytes", "coupled SSD: open migrations and their queues"),
        metric("redirector_bytes", "bytes", "coupled SSD: tables that find records"),
    ],
};
