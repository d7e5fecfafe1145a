//! Keys of `[ftl]` where its kind is pblk.

use super::Default::{By, Is};
use super::Values::{List, Number, Preset, Range, Size, Text, Time, Words};
use super::{Group, When, key};

pub(super) static FTL: Group = Group {
    name: "ftl",
    prefix: "ftl",
    when: When::Always,
    keys: &[key(
        "kind",
        Words(&["pblk", "pagemap", "zoned", "interval", "coupled"]),
        Is("pblk"),
        "which FTL maps logical to physical addresses: [pblk](#ftl), Linux's FTL on the host \
         for open-channel SSDs; or one in the device: a [conventional \
         SSD](#a-conventional-ssd), a [zoned SSD](#a-zoned-ssd), an [SSD with interval \
         maps](#an-ssd-with-interval-maps), or a [coupled SSD](#a-coupled-ssd). A stack that \
         changes the kind of the stack it extends starts `[ftl]` from scratch",
    )],
};

pub(super) static PBLK: Group = Group {
    name: "ftl.pblk",
    prefix: "ftl",
    when: When::Ftl(&["pblk"]),
    keys: &[
        key(
            "capacity_rules",
            Words(&["4.13", "4.16", "5.11"]),
            Is("4.16"),
            "Linux version whose rules for logical capacity, reserved lines and size of the write \
             buffer apply",
        ),
        key(
            "op_percent",
            Range(3, 80),
            By("by `capacity_rules`: 20 for 4.13, else 11"),
            "overprovisioning (OP): percent of all good chunks that the host cannot address \
             (`PBLK_DEFAULT_OP`); line metadata are in addition. SNIA and vendors count OP in \
             percent of the addressable capacity, (physical - logical) / logical: 11 % here are \
             at least 12.4 % there, 20 % are 25 %. Results print both. With `limiter = \"kernel\"` \
             write amplification falls in steps as OP grows, see `limiter`",
        ),
        key(
            "routing",
            List("a word, or a list of words that do not exclude each other"),
            Is("single"),
            "rule that selects the write buffer of a write, such as `per-core` or `[\"per-core\", \
             \"journal\"]`; see [write buffers](#write-buffers)",
        ),
        key(
            "core_choice",
            Words(&["core", "random", "most-free"]),
            Is("core"),
            "with `routing = \"per-core\"` only: which normal write buffer a write enters: the one \
             of the submitting core, a random one, or the one with the most free entries",
        ),
        key(
            "write_buffers",
            Number("1 or more"),
            By("`host.cores`"),
            "number of normal write buffers of `routing = \"per-core\"` and `\"per-queue\"`: a thread \
             on core *n* writes to buffer *n* modulo this number. To change the number of cores \
             but not of buffers, set this key too. A run of a stack that sets it prints a warning \
             if the routing has one normal buffer",
        ),
        key(
            "fsync_rings",
            Number(""),
            By("`write_buffers`"),
            "number of write buffers for fsynced files, with `routing = \"fsync-aware\"` and \
             `\"per-file\"`",
        ),
        key(
            "fsync_threshold",
            Number(""),
            Is("1"),
            "number of fsyncs after which a further fsync binds a file to a write buffer for \
             fsynced files",
        ),
        key(
            "special_buffer",
            Number("power of two"),
            By("`ring`"),
            "entries (sectors) of each write buffer for the journal and for fsynced files",
        ),
        key(
            "flush_scope",
            Words(&["all", "file-ring", "file-entries", "submitted-only", "routed-ring-only"]),
            Is("all"),
            "which write buffers a flush drains: their sectors are programmed, with padding, \
             before it completes; see [write buffers](#write-buffers). The last two lose data in \
             a power cut, like the published code that they reproduce",
        ),
        key(
            "line_set",
            Text("`device`, `channel`, `units-N`"),
            Is("device"),
            "parallel units that form a line (superblock): a line has one chunk of every parallel \
             unit, of every unit of one channel, or of N adjacent units",
        ),
        key(
            "normal_units",
            Number("N times the units of a line, N a power of two"),
            By("units of the device"),
            "number of parallel units that the normal write buffers together write to in \
             parallel, at most the units of the device. See [widths of \
             streams](#widths-of-streams)",
        ),
        key(
            "fsync_units",
            Number("as `normal_units`"),
            By("units of a line"),
            "with `routing = \"fsync-aware\"` and `\"per-file\"` only: number of parallel units that \
             each write buffer for fsynced files writes to in parallel",
        ),
        key(
            "journal_units",
            Number("as `normal_units`"),
            By("units of a line"),
            "with `routing = \"journal\"` only: number of parallel units that the journal's write \
             buffer writes to in parallel",
        ),
        key(
            "gc_units",
            Number("as `normal_units`"),
            By("units of a line"),
            "with `gc.stream = \"own\"` only: number of parallel units that the write buffer of GC \
             copies writes to in parallel",
        ),
        key(
            "limiter",
            Text("`kernel`, `reserve-N`"),
            Is("kernel"),
            "rate limiter, which divides the write buffer between user writes and GC copies by \
             the number of free chunks: pblk's; or collection whenever fewer than N lines are \
             free, while user writes stall. pblk's limiter gives user writes a number of windows \
             of 64 entries: the number of free chunks, shifted right by a difference of two \
             rounded logarithms (`rl->rb_windows_pw`, `rl->high_pw`). Its high mark is rounded up \
             to a power of two, so write amplification hardly changes while `op_percent` grows \
             within one power of two, and drops at the next one. Collection runs until the free \
             chunks reach the high mark; if a full device cannot have that many free chunks, \
             collection never stops, and the result reports this with the numbers",
        ),
        key(
            "discard",
            Words(&["durable", "kernel"]),
            Is("durable"),
            "whether discards (trims) survive a power cut: they are logged and covered by \
             flushes; or lost, as in the kernel's pblk",
        ),
        key(
            "ring",
            Number("power of two"),
            By("by `capacity_rules` and device"),
            "entries (sectors) of each normal write buffer, which pblk calls the ring buffer",
        ),
        key(
            "cpu",
            Preset(&["none", "null-block", "qemu"]),
            By("`none`"),
            "CPU costs of the FTL on the host: a preset, or [a table](#host-cpu)",
        ),
        key(
            "map_update",
            Words(&["locked", "atomic"]),
            By("`locked`"),
            "how cores look up and change the mapping: under one lock for the whole table; or by \
             atomic exchange of entries, without waiting (QBLK)",
        ),
        key(
            "gc.victim",
            Words(&["pblk-lists", "greedy", "cost-benefit", "fifo", "random", "d-choices"]),
            Is("pblk-lists"),
            "policy that chooses the closed line to collect next: pblk's lists by class of valid \
             count, least valid first; the fewest valid sectors; the highest (1 - u) / 2u x age, \
             where u is the share of valid sectors; the one closed first; one uniformly at \
             random; or the best of `gc.d` random ones (also written `d-choices-10`)",
        ),
        key(
            "gc.d",
            Number("1 or more"),
            Is("10"),
            "with `gc.victim = \"d-choices\"` only: number of candidate lines that the policy \
             samples at random per victim; the one with the fewest valid sectors is collected. 1 \
             is `random`, a large number approaches `greedy`",
        ),
        key(
            "gc.stream",
            Words(&["data", "own", "by-origin"]),
            Is("data"),
            "write buffer of GC copies, and so the lines that they are written to: the normal \
             buffers, which take victims in turn; a separate buffer; or the buffer that filled \
             the line they come from",
        ),
        key(
            "gc.journal_lines",
            Words(&["collected", "exempt"]),
            Is("collected"),
            "with `routing = \"journal\"` only: whether lines of the journal's write buffer are GC \
             victims like all other lines; or only if no other victim helps, because a circular \
             log invalidates them without copies",
        ),
        key(
            "gc.pacing",
            Words(&["kernel", "immediate"]),
            By("`kernel` with `limiter = \"kernel\"`, else `immediate`"),
            "when collection of a victim starts, at most four in parallel: when the GC thread \
             runs, which Linux wakes when collection becomes active and then once per `gc.period` \
             (pblk-gc.c; this also frees lines without valid sectors); or as soon as a free line \
             is needed",
        ),
        key(
            "gc.period",
            Time("1us to 3600s"),
            Is("1s"),
            "with `gc.pacing = \"kernel\"`: time between two runs of the GC thread \
             (`GC_TIME_MSECS`). The time is absolute: a model whose lines are an eighth of those \
             of the modelled device needs `125ms` for the same pace",
        ),
        key(
            "map.kind",
            Words(&["resident", "cached"]),
            Is("resident"),
            "where the mapping table (L2P) is: all of it in RAM; or on media in separate lines, \
             with a part of it cached",
        ),
    ],
};

pub(super) static MAP: Group = Group {
    name: "ftl.map",
    prefix: "ftl",
    when: When::Ftl(&["pblk"]),
    keys: &[
        key(
            "map.block",
            Size("`4KiB`, `16KiB` or `64KiB`"),
            Is("64KiB"),
            "size of a mapping block, the unit in which the table is stored and loaded; with \
             `dftl` of a translation page",
        ),
        key(
            "map.cache",
            Text("size, or a share such as `\"32%\"`"),
            Is("32%"),
            "RAM for cached mapping blocks (`dftl`: for entries, each with its address); a share \
             is of the whole table, and at least one block. If the sectors of one incomplete \
             write unit can pin all cached blocks, copying a line takes padding; if it can then \
             take as many sectors as a line has, the stack is refused",
        ),
        key(
            "map.policy",
            Words(&["lru", "hotness", "hotness-journal", "dftl"]),
            Is("hotness-journal"),
            "what is evicted from a full cache: the least recently used block; the coldest block; \
             the coldest block, with more weight for journal accesses; or single entries by \
             segmented LRU",
        ),
        key(
            "map.loads",
            Number("1 or more"),
            Is("64"),
            "largest number of mapping blocks being loaded in parallel; 1 is the paper's serial \
             behaviour",
        ),
        key(
            "map.evict_batch",
            Number("1 or more"),
            Is("1"),
            "number of blocks evicted together from a full cache",
        ),
        key(
            "map.write_miss",
            Words(&["load", "blind"]),
            Is("load"),
            "what a write does whose mapping is not in RAM: it waits for its mapping block; or \
             its entry (4 bytes more than an entry of the table) goes to a buffer, and all \
             entries of a block are merged when the block is loaded; if the buffer is full, the \
             block with most entries is merged. Only the merge finds and invalidates the old \
             location of the sector. For policies that cache whole blocks",
        ),
        key(
            "map.blind_percent",
            Range(1, 99),
            Is("50"),
            "with `map.write_miss = \"blind\"` only: percentage of `map.cache` for the buffer of \
             blind updates",
        ),
        key(
            "map.protected_percent",
            Range(0, 99),
            Is("80"),
            "with `map.policy = \"dftl\"` only: percentage of the cache for entries that were used \
             again (the protected segment of the LRU)",
        ),
        key(
            "map.hotness.read",
            Number("points"),
            Is("50"),
            "points that a cached block gains per lookup by a read. These keys apply to the \
             hotness policies; the block with the fewest points is evicted",
        ),
        key(
            "map.hotness.write",
            Number("points"),
            Is("10"),
            "points that a cached block gains per lookup by a write",
        ),
        key(
            "map.hotness.internal",
            Number("points"),
            Is("1"),
            "points that a cached block gains per lookup by the FTL itself",
        ),
        key(
            "map.hotness.journal",
            Number("points"),
            By("500 with `hotness-journal`, 0 with `hotness`"),
            "additional points per lookup with the JOURNAL flag",
        ),
        key(
            "map.hotness.load_bonus",
            Number("points"),
            Is("1000"),
            "points that a block has when it is loaded",
        ),
        key(
            "map.hotness.decay_per_scan",
            Number("points"),
            Is("1"),
            "points that each block loses on each search for a block to evict",
        ),
        key(
            "map.hotness.idle_ns",
            Number("0: none"),
            Is("2000000"),
            "length of a period without access for which a block loses one more point on each \
             search for a block to evict",
        ),
    ],
};

pub(super) static FTL_CPU: Group = Group {
    name: "ftl.cpu",
    prefix: "ftl.cpu",
    when: When::Ftl(&["pblk"]),
    keys: &[
        key(
            "preset",
            Words(&["none", "null-block", "qemu"]),
            Is("none"),
            "the preset that the other keys of the table override; with `none` every cost that is \
             not given is zero",
        ),
        key(
            "submit_ns",
            Range(0, 10_000_000_000),
            By("0; `null-block`: 2000, `qemu`: 2000"),
            "time of the submitting core per request, for submission and completion",
        ),
        key(
            "ring_request_ns",
            Range(0, 10_000_000_000),
            By("0; `null-block`: 0, `qemu`: 0"),
            "time of the lock of a write buffer per write that enters it, and per flush that \
             covers it",
        ),
        key(
            "ring_sector_ns",
            Range(0, 10_000_000_000),
            By("0; `null-block`: 300, `qemu`: 300"),
            "time of the lock of a write buffer per sector that enters it",
        ),
        key(
            "map_sector_ns",
            Range(0, 10_000_000_000),
            By("0; `null-block`: 300, `qemu`: 300"),
            "time of the mapping's lock per sector read, written, discarded or copied",
        ),
        key(
            "copy_sector_ns",
            Range(0, 10_000_000_000),
            By("0; `null-block`: 300, `qemu`: 300"),
            "time of the submitting core per sector that it copies into a write buffer",
        ),
        key(
            "writer_unit_ns",
            Range(0, 10_000_000_000),
            By("0; `null-block`: 2000, `qemu`: 55000"),
            "time of the writer thread of a write buffer per write command",
        ),
        key(
            "writer_sector_ns",
            Range(0, 10_000_000_000),
            By("0; `null-block`: 300, `qemu`: 300"),
            "time of the writer thread per sector of a write command, padding included",
        ),
        key(
            "gc_sector_ns",
            Range(0, 10_000_000_000),
            By("0; `null-block`: 300, `qemu`: 300"),
            "time of the GC thread per sector that it puts into a write buffer",
        ),
        key(
            "map_command_ns",
            Range(0, 10_000_000_000),
            By("0; `null-block`: 2000, `qemu`: 55000"),
            "time of the mapping thread per command that reads or writes mapping blocks",
        ),
        key(
            "map_block_sector_ns",
            Range(0, 10_000_000_000),
            By("0; `null-block`: 300, `qemu`: 300"),
            "time of the mapping thread per sector of such a command, padding included",
        ),
    ],
};
