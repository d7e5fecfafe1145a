//! Keys of `[fs]`.

use super::Default::{By, Is, Nothing};
use super::Values::{Bool, List, Number, Preset, Range, Size, Text, Time, Words};
use super::{Group, When, key};

pub(super) static FS_CACHE: Group = Group {
    name: "fs.cache",
    prefix: "fs",
    when: When::Fs(&["ext4", "f2fs"]),
    keys: &super::host::CACHE,
};

pub(super) static FS: Group = Group {
    name: "fs",
    prefix: "fs",
    when: When::Fs(&["ext4", "f2fs"]),
    keys: &[
        key(
            "kind",
            Words(&["ext4", "f2fs"]),
            Is("ext4"),
            "file system, with the on-disk format of [ext4](ext4.md) or of [F2FS](f2fs.md). A \
             stack that changes the kind of the stack it extends starts `[fs]` from scratch",
        ),
        key(
            "format",
            Bool,
            By("`true`"),
            "whether a file system is made (mkfs); `false` mounts the one on the device of \
             `--state`, which is then required",
        ),
        key(
            "features",
            List("list of names"),
            By("mke2fs's defaults; for F2FS none, like mkfs.f2fs"),
            "features to turn on, or off with `^` before the name, such as `[\"^metadata_csum\"]`",
        ),
        key(
            "discard",
            Bool,
            Is("true"),
            "whether the content of an aged device is discarded first, as by mke2fs and \
             mkfs.f2fs; `false` is `mke2fs -E nodiscard` and `mkfs.f2fs -t 0`",
        ),
    ],
};

pub(super) static EXT4: Group = Group {
    name: "fs.ext4",
    prefix: "fs",
    when: When::Fs(&["ext4"]),
    keys: &[
        key(
            "data",
            Words(&["ordered", "journal", "writeback"]),
            Is("ordered"),
            "data mode (mount option `data=`): data is written before the commit that makes it \
             reachable; is written to the log itself; or has no order",
        ),
        key(
            "commit",
            Words(&["jbd2", "ijournal"]),
            Is("jbd2"),
            "what an fsync commits: the running transaction, as in the kernel; or, if that is \
             sufficient, [a record of the file](journal.md) (iJournaling)",
        ),
        key(
            "commit_interval",
            Time("above 0"),
            Is("5s"),
            "age at which a running transaction is committed (mount option `commit=`)",
        ),
        key(
            "journal",
            Size("whole blocks of 4 KiB"),
            By("by the device's size, as mke2fs"),
            "size of the log (`mke2fs -J size=`)",
        ),
        key(
            "ijournal_area",
            Size("at least `8KiB`, whole blocks of 4 KiB"),
            By("by the log"),
            "with `commit = \"ijournal\"` only: size of an ijournal area. By default the areas \
             together have a quarter of the log; they may have at most half of it",
        ),
        key(
            "ijournal_areas",
            Number("1 or more"),
            By("`host.cores`"),
            "with `commit = \"ijournal\"`: number of areas for records at the end of the log \
             (iJournaling's per-core ijournal areas). A thread on core *n* writes to area *n* \
             modulo this number. A run of a stack that sets it without `ijournal` prints a \
             warning",
        ),
        key(
            "inode_ratio",
            Size(""),
            By("by the device's size, as mke2fs"),
            "bytes of device for each inode (`mke2fs -i`)",
        ),
        key(
            "reserved_percent",
            Range(0, 50),
            Is("5"),
            "percentage of blocks that only root may allocate (`mke2fs -m`)",
        ),
    ],
};

pub(super) static F2FS: Group = Group {
    name: "fs.f2fs",
    prefix: "fs",
    when: When::Fs(&["f2fs"]),
    keys: &[
        key(
            "allocation",
            Words(&["lfs", "adaptive"]),
            Is("lfs"),
            "how blocks are placed: only at the ends of logs, in free segments (normal logging, \
             `mode=lfs`); or also in holes of dirty segments when few sections are free, and in \
             place for an fsync (adaptive logging, `mode=adaptive`)",
        ),
        key(
            "small_volume",
            Words(&["kernel", "off"]),
            Is("kernel"),
            "with `allocation = \"adaptive\"` only: whether the kernel's rules for volumes of at \
             most 8,192 main segments apply, by which all data is written in place and hardly \
             anything is cleaned",
        ),
        key(
            "alloc_mode",
            Words(&["default", "reuse"]),
            Is("default"),
            "where a log looks for a free segment: after its current segment (hot data and nodes: \
             from the start of the volume); or always from the start, so that recently freed \
             segments are used first (the kernel's mount option)",
        ),
        key(
            "reclaim",
            Words(&["checkpoint", "gc-journal"]),
            Is("checkpoint"),
            "what frees segments that cleaning has emptied: the next checkpoint, as in the \
             kernel; or a block of the [GC journal](../semantics/f2fs.md#gc-journal) if it holds \
             all that a mount needs, otherwise the next checkpoint",
        ),
        key(
            "gc_journal",
            Words(&["paper", "safe"]),
            Is("safe"),
            "with `reclaim = \"gc-journal\"` only: entries of the GC journal: those of the paper, \
             addresses alone; or entries that also identify the moved block, with a checksum",
        ),
        key(
            "checkpoint_cost",
            Number("blocks"),
            Is("8"),
            "with `reclaim = \"gc-journal\"` only: assumed cost of a checkpoint in addition to \
             dirty blocks. Cleaning writes one if that costs less than moving the blocks of the \
             next section. With a large number, checkpoints are written only when nothing else \
             helps",
        ),
        key(
            "gc_checkpoint",
            Words(&["call", "reuse"]),
            Is("call"),
            "with `reclaim = \"checkpoint\"` only: when a foreground cleaning call writes the \
             checkpoint that frees the sections it emptied: at its end, as in the kernels of 2014 \
             and 2015; or at the start of the next call, as in later ones",
        ),
        key(
            "gc_without",
            Words(&["nothing", "checkpoint", "traversal", "metadata", "allocation", "all"]),
            Is("nothing"),
            "for measurements: the part of foreground cleaning that costs nothing. `checkpoint`: \
             emptied sections are free immediately, so a power cut loses data. The others: cores \
             take no time to find the owners of blocks, to change nodes, to allocate blocks. \
             [`fs.gc_parts`](result.md#nandscape) has the time of each part",
        ),
        key(
            "active_logs",
            Number("2, 4, 6"),
            Is("6"),
            "number of active logs (mount option `active_logs=`): streams into which data and \
             nodes are separated by temperature",
        ),
        key(
            "fsync_mode",
            Words(&["posix", "strict"]),
            Is("posix"),
            "what an fsync makes durable (mount option `fsync_mode=`): the file; or also the \
             names that changed in its directory",
        ),
        key(
            "discard_policy",
            Words(&["kernel", "aggressive"]),
            Is("kernel"),
            "how segments freed by a checkpoint are discarded: in rounds of 8 requests every 50 \
             ms; or of 80,000, which is the setting of D2FS's F2FS baseline",
        ),
        key(
            "upcalls_waiting",
            Number("1 or more"),
            Is("512"),
            "on a device with `ftl.kind = \"coupled\"` only: upcalls of at most 256 migrated \
             blocks that the file system has applied and not yet checkpointed, at which it writes \
             a checkpoint. A model of a sixteenth of a device has a sixteenth of them for as many \
             checkpoints per migrated share of the device",
        ),
        key(
            "data_order",
            Words(&["kernel", "ordered"]),
            Is("kernel"),
            "whether a checkpoint waits for file data in flight, and the nodes of an fsync until \
             its data is durable: neither waits, and a power cut may [leave what a block held \
             before](../semantics/f2fs.md); or both wait",
        ),
        key("inline_data", Bool, Is("true"), "whether short files are stored in the inode"),
        key("inline_dentry", Bool, Is("true"), "whether short directories are stored in the inode"),
        key(
            "inline_xattr",
            Bool,
            Is("true"),
            "whether extended attributes are stored in the inode",
        ),
        key(
            "checkpoint_interval",
            Time("above 0"),
            Is("60s"),
            "age of the last checkpoint at which another one is written",
        ),
        key(
            "background_gc",
            Bool,
            Is("true"),
            "whether sections are also cleaned while the volume is idle",
        ),
        key(
            "victim",
            Words(&["cost-benefit", "age-threshold"]),
            Is("cost-benefit"),
            "policy of background cleaning: a section with few valid blocks that has not changed \
             for long; or by age first, without recently changed sections (the kernel's mount \
             option `atgc`; see [cleaning](../semantics/f2fs.md#cleaning)). In the foreground it \
             is always the section with the fewest valid blocks",
        ),
        key(
            "age_threshold",
            Time("whole seconds"),
            Is("604800s"),
            "with `victim = \"age-threshold\"` only: age below which a section that changed is not \
             a candidate",
        ),
        key(
            "cpu",
            Preset(&["none", "estimate"]),
            By("`none`"),
            "CPU costs of the file system on the host: a preset, or [a table](#host-cpu-of-f2fs)",
        ),
        key("label", Text("text"), Nothing, "label of the volume (`mkfs.f2fs -l`)"),
        key(
            "segments_per_section",
            Number("1 or more"),
            Is("1"),
            "number of segments of 2 MiB in a section, the unit of cleaning (`mkfs.f2fs -s`)",
        ),
        key(
            "sections_per_zone",
            Number("1 or more"),
            Is("1"),
            "number of sections in a zone (`mkfs.f2fs -z`)",
        ),
        key(
            "overprovision",
            Number("above 0, below 100"),
            By("the value that leaves users most, like mkfs.f2fs"),
            "percentage of the main area that users cannot use (`mkfs.f2fs -o`)",
        ),
        key(
            "rho",
            Number("1 to 100, at most what the device has"),
            By("all of the regions"),
            "on a [coupled SSD](#a-coupled-ssd) only: number of sections of each region that F2FS \
             uses, divided by the number of sections that the media hold beside the metadata",
        ),
        key(
            "gc_journal_area",
            Bool,
            By("`true` with `reclaim = \"gc-journal\"`, else `false`"),
            "whether the segment after the main area is reserved for a [GC \
             journal](f2fs.md#gc-journal)",
        ),
    ],
};

pub(super) static FS_CPU: Group = Group {
    name: "fs.cpu",
    prefix: "fs.cpu",
    when: When::Fs(&["f2fs"]),
    keys: &[
        key(
            "preset",
            Words(&["none", "estimate"]),
            Is("none"),
            "the preset that the other keys of the table override; with `none` every cost that is \
             not given is zero",
        ),
        key("scale", Number("0 to 1,000,000"), Is("1"), "factor on all costs of the table"),
        key(
            "lookup_ns",
            Range(0, 10_000_000_000),
            By("0; `estimate`: 1100"),
            "core time per block of a directory, or inode with names, that is searched. Estimate: \
             name hash 50; 4 lines: page, bitmap, entry, name; 2,354 bytes of hashes read in \
             sequence 590; 2 locks; rounded to a hundred",
        ),
        key(
            "node_page_ns",
            Range(0, 10_000_000_000),
            By("0; `estimate`: 700"),
            "core time per node page on the path to an address, per inode that is read or copied \
             to its node page, and per node page that is written. Estimate: 6 to 7 lines: NAT \
             entry 2, page 3, footer and address 1 to 2; 2 locks",
        ),
        key(
            "allocation_ns",
            Range(0, 10_000_000_000),
            By("0; `estimate`: 750"),
            "core time per block that a log allocates for data or for a node. Estimate: 7 lines: \
             SIT entries and bitmaps of two segments 4, summary, dirty and free segments 2; 2 \
             locks",
        ),
        key(
            "move_ns",
            Range(0, 10_000_000_000),
            By("0; `estimate`: 800"),
            "core time per block that cleaning examines, in addition to nodes and the new block. \
             Estimate: 7 to 8 lines: summary, SIT bitmap, NAT entry 2, inode 2, page 2; 2 locks",
        ),
        key(
            "upcall_ns",
            Range(0, 10_000_000_000),
            By("0; `estimate`: 1500"),
            "core time per command for migrations (D2FS) that completes at the host: a fetch, \
             with or without a batch, and with `ftl.upcall = \"interrupt\"` one that waits for \
             migrations. Estimate: a page of 4 KiB read, 3 lines, 4 locks",
        ),
        key(
            "record_ns",
            Range(0, 10_000_000_000),
            By("0; `estimate`: 900"),
            "core time per record of a batch. Estimate: 8 to 9 lines: summary at the old place, \
             its SIT entry, NAT entry 2, node or NAT, SIT entry and summary at the new place, \
             extents",
        ),
        key(
            "checkpoint_ns",
            Range(0, 10_000_000_000),
            By("0; `estimate`: 20000"),
            "core time per checkpoint. Estimate: 200 lines of lists and counters",
        ),
        key(
            "checkpoint_block_ns",
            Range(0, 10_000_000_000),
            By("0; `estimate`: 2000"),
            "core time per block of NAT, SIT and pack that a checkpoint writes. Estimate: 4 KiB \
             copied and 4 KiB summed",
        ),
    ],
};
