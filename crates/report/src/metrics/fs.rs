//! What a file system did.

use super::host::CALLS;
use super::{Group, metric};

pub(super) static FS: Group = Group {
    name: "fs",
    prefix: "fs",
    when: "runs on files",
    derived: false,
    metrics: &[
        metric("read_sectors", "sectors", "sectors read from files"),
        metric("written_sectors", "sectors", "sectors written to files"),
        metric("fsyncs", "count", "calls of fsync and fdatasync"),
        metric(
            "fsync_times.cpu_wait_ns",
            "ns",
            "time of fsync and fdatasync until the file system starts: the core may be busy, and \
             the call takes `host.syscall_ns` of it",
        ),
        metric("cache_bytes", "bytes", "pages of files in memory at the end"),
    ],
};

pub(super) static FS_CALLS: Group = Group {
    name: "fs.calls",
    prefix: "fs",
    when: "runs on files",
    derived: false,
    metrics: &CALLS,
};

pub(super) static EXT4: Group = Group {
    name: "fs.ext4",
    prefix: "fs",
    when: "ext4",
    derived: false,
    metrics: &[
        metric("journal.commits", "count", "commits of transactions"),
        metric("journal.blocks", "blocks", "blocks written to the log"),
        metric(
            "journal.copies",
            "blocks",
            "copies of metadata (and of data with `data = \"journal\"`)",
        ),
        metric("journal.revoke_blocks", "blocks", "revoke blocks written to the log"),
        metric(
            "journal.frozen",
            "count",
            "copies taken because the next transaction changed a block",
        ),
        metric("journal.superblocks", "count", "superblocks of the log written"),
        metric("journal.home_blocks", "blocks", "metadata written to its home location"),
        metric("journal.forced_checkpoints", "count", "checkpoints because the log was full"),
        metric("ijournal_records.count", "count", "file-level records (iJournaling)"),
        metric(
            "ijournal_records.blocks",
            "blocks",
            "blocks of the log's area that file-level records occupied",
        ),
    ],
};

pub(super) static F2FS: Group = Group {
    name: "fs.f2fs",
    prefix: "fs",
    when: "F2FS; means are null without writes, or without calls",
    derived: false,
    metrics: &[
        metric("checkpoint.count", "count", "checkpoints"),
        metric("checkpoint.blocks", "blocks", "blocks of packs, SIT and NAT"),
        metric("checkpoint.summary_blocks", "blocks", "blocks of SSA"),
        metric(
            "checkpoint.metadata_blocks",
            "blocks",
            "blocks of packs, SIT, NAT, SSA, nodes and GC journal",
        ),
        metric(
            "adaptive.ssr_blocks",
            "blocks",
            "blocks written to holes of dirty segments (`allocation = \"adaptive\"`)",
        ),
        metric("adaptive.in_place_blocks", "blocks", "blocks written in place"),
        metric(
            "log_blocks.hot_data",
            "blocks",
            "blocks written to the log of hot data, moved ones included",
        ),
        metric(
            "log_blocks.warm_data",
            "blocks",
            "blocks written to the log of warm data, moved ones included",
        ),
        metric(
            "log_blocks.cold_data",
            "blocks",
            "blocks written to the log of cold data, moved ones included",
        ),
        metric(
            "log_blocks.hot_node",
            "blocks",
            "blocks written to the log of hot nodes, moved ones included",
        ),
        metric(
            "log_blocks.warm_node",
            "blocks",
            "blocks written to the log of warm nodes, moved ones included",
        ),
        metric(
            "log_blocks.cold_node",
            "blocks",
            "blocks written to the log of cold nodes, moved ones included",
        ),
        metric(
            "gc.sections",
            "count",
            "sections cleaned. A section that could not be emptied because of direct writes to a \
             file counts each time",
        ),
        metric("gc.foreground_sections", "count", "sections cleaned in the foreground"),
        metric("gc.background_sections", "count", "sections cleaned in the background"),
        metric(
            "gc.blocks_moved",
            "blocks",
            "blocks moved by cleaning; in the background, blocks that were made dirty",
        ),
        metric("gc.data_blocks", "blocks", "data blocks moved"),
        metric("gc.node_blocks", "blocks", "node blocks moved"),
        metric(
            "gc.reclaimed_blocks",
            "blocks",
            "blocks that were not valid in sections cleaned in the foreground",
        ),
        metric("gc.checkpoints", "count", "checkpoints that cleaning requested"),
        metric(
            "gc.checkpoint_blocks",
            "blocks",
            "blocks of checkpoints that cleaning requested: directories, nodes, NAT, SIT, SSA, \
             packs",
        ),
        metric(
            "gc.metadata_blocks",
            "blocks",
            "`gc.checkpoint_blocks` and blocks of the GC journal",
        ),
        metric(
            "gc.in_use_data_blocks_mean",
            "blocks",
            "mean number of blocks written to data segments that are not free, valid or not; see \
             below",
        ),
        metric(
            "gc.valid_data_blocks_mean",
            "blocks",
            "mean number of valid blocks in data segments",
        ),
        metric(
            "gc.in_use_node_blocks_mean",
            "blocks",
            "mean number of blocks written to node segments that are not free, valid or not",
        ),
        metric(
            "gc.valid_node_blocks_mean",
            "blocks",
            "mean number of valid blocks in node segments",
        ),
        metric("gc_calls.count", "count", "foreground cleaning calls"),
        metric("gc_calls.time_ns", "ns", "total time of foreground cleaning calls"),
        metric(
            "gc_calls.under_<ms>ms",
            "count",
            "calls that took less than this (1, 2, 4, ... 1024 ms) and not less than half of it",
        ),
        metric("gc_calls.longer", "count", "calls that took 1,024 ms or more"),
        metric(
            "gc_parts.checkpoint_ns",
            "ns",
            "part of `gc_calls.time_ns` (as in D2FS's slides): checkpoints that free sections, \
             and the GC journal",
        ),
        metric(
            "gc_parts.traversal_ns",
            "ns",
            "part of `gc_calls.time_ns`: summaries and nodes on the path to blocks",
        ),
        metric("gc_parts.metadata_ns", "ns", "part of `gc_calls.time_ns`: changes of nodes"),
        metric(
            "gc_parts.allocation_ns",
            "ns",
            "part of `gc_calls.time_ns`: allocation of blocks in logs",
        ),
        metric(
            "gc_parts.transfer_ns",
            "ns",
            "part of `gc_calls.time_ns`: reads and writes of moved blocks",
        ),
        metric("gc_parts.section_ns_mean", "ns", "`gc_calls.time_ns` per section cleaned"),
        metric("gc_parts.moved_block_ns_mean", "ns", "`gc_calls.time_ns` per block moved"),
        metric("gc_parts.reclaimed_block_ns_mean", "ns", "`gc_calls.time_ns` per block reclaimed"),
        metric("gc_journal.blocks", "blocks", "blocks of the GC journal written"),
        metric("gc_journal.entries", "count", "entries of the GC journal"),
        metric(
            "gc_journal.segments",
            "count",
            "segments that the GC journal freed without a checkpoint",
        ),
        metric(
            "gc_journal.full_checkpoints",
            "count",
            "checkpoints because the area of the GC journal was full",
        ),
        metric("gc_journal.marks", "count", "marks of the superblock for the GC journal"),
        metric("discard.requests", "count", "discard requests"),
        metric("roll_forward.files", "count", "files that mount recovered"),
        metric("roll_forward.nodes", "count", "nodes that mount recovered"),
        metric("roll_forward.blocks", "count", "blocks that mount recovered"),
        metric("roll_forward.moves", "count", "moves of the GC journal that mount recovered"),
        metric("space.main_segments", "count", "segments of the main area at the end"),
        metric("space.free_segments", "count", "free segments at the end"),
        metric(
            "space.prefree_segments",
            "count",
            "segments at the end that are free after the next checkpoint",
        ),
        metric("space.user_blocks", "blocks", "blocks that users may take, at the end"),
        metric("space.valid_blocks", "blocks", "blocks that users have taken, at the end"),
    ],
};

pub(super) static APPEND: Group = Group {
    name: "fs.append",
    prefix: "fs.append",
    when: "F2FS in an append-only address space",
    derived: false,
    metrics: &[
        metric("discarded_blocks", "blocks", "blocks discarded"),
        metric("discard_journal_blocks", "blocks", "blocks of the discard journal written"),
        metric("mount_discarded_blocks", "blocks", "blocks discarded by mount"),
        metric("forced_by_media", "count", "checkpoints because the media were full"),
        metric("forced_by_slots", "count", "checkpoints because all slots were used"),
        metric("forced_by_sections", "count", "checkpoints because a region was full"),
        metric("forced_by_upcalls", "count", "checkpoints because upcalls waited"),
        metric("upcalls_fetched", "count", "upcalls fetched"),
        metric("upcalls_completed", "count", "upcalls completed"),
        metric("moved_data_blocks", "blocks", "data blocks in records of upcalls"),
        metric("moved_node_blocks", "blocks", "node blocks in records of upcalls"),
        metric("stale_records", "count", "records of blocks that had changed"),
        metric("known_records", "count", "records already in effect before a mount"),
        metric("nodes_read_ahead", "count", "nodes read ahead for records"),
        metric("slots", "count", "slots at the end"),
        metric("slots_used", "count", "slots used at the end"),
        metric("void_blocks", "blocks", "blocks that wait for their discard at the end"),
        metric("sections_used_region_<n>", "count", "sections in use of the region at the end"),
    ],
};

pub(super) static FS_CPU: Group = Group {
    name: "fs.cpu",
    prefix: "fs.cpu",
    when: "if [`fs.cpu`](stack.md#host-cpu-of-f2fs) has costs; `upcall_ns` where there are \
         upcalls",
    derived: false,
    metrics: &[
        metric("lookup_ns", "ns", "core time for lookups of names"),
        metric("node_page_ns", "ns", "core time for node pages"),
        metric("allocation_ns", "ns", "core time for allocation of blocks"),
        metric("move_ns", "ns", "core time for blocks that cleaning examines"),
        metric("checkpoint_ns", "ns", "core time for checkpoints"),
        metric("upcall_ns", "ns", "core time for upcalls and their records"),
        metric("wait_ns", "ns", "time that work waited for a core"),
    ],
};
