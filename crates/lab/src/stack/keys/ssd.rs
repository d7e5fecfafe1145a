//! Keys of `[ftl]` where the FTL is in the device.

use super::Default::Is;
use super::Values::{Bool, Number, Size, Text, Words};
use super::{Group, When, key};

pub(super) static SSD: Group = Group {
    name: "ftl.ssd",
    prefix: "ftl",
    when: When::Ftl(&["pagemap", "zoned", "interval"]),
    keys: &[
        key(
            "op_percent",
            Number("0.01 to 99.99"),
            Is("6.54"),
            "overprovisioning (OP): percent of the physical sectors that the host cannot address, \
             (physical - logical) / physical, as for pblk. SNIA and vendors divide by the logical \
             sectors: NVMeVirt's 7 % are 6.54 % here. On a zoned SSD it applies to the \
             page-mapped region only",
        ),
        key(
            "instances",
            Number("power of two that divides `media.groups`"),
            Is("4"),
            "number of FTL instances, each with separate channels; mapping units are distributed \
             over them in turn, and pages of an instance over its parallel units, whatever they \
             are doing (static dispatch, as in NVMeVirt). An erase unit (superblock) is a chunk of \
             every parallel unit of an instance",
        ),
        key(
            "buffer.size",
            Size(""),
            Is("1MiB"),
            "size of the write buffer, in the device's DRAM, which all instances share (as in \
             NVMeVirt and MQSim). A write that it cannot take waits, and all writes after it",
        ),
        key(
            "buffer.power_safe",
            Bool,
            Is("false"),
            "whether the content of the write buffer survives a power cut (power-loss \
             protection); if so, a flush programs nothing. On a zoned SSD also for the buffers of \
             zones",
        ),
        key(
            "buffer.early_completion",
            Bool,
            Is("true"),
            "when a write completes: as soon as it is in the write buffer; or when it is \
             programmed",
        ),
        key(
            "buffer.flush",
            Words(&["program", "nvmevirt"]),
            Is("program"),
            "what a flush waits for, and a bio with PREFLUSH or a write with FUA: partly filled \
             one-shot pages are padded and programmed, and everything that was admitted is durable; \
             or, as in NVMeVirt's `conv_flush`, all parallel units of all instances have ended the \
             commands sent so far, and nothing is programmed, neither trim records nor the zones' \
             save log. `nvmevirt` loses data in a power cut although it was flushed, like the \
             emulator that it reproduces: it is for comparisons with published figures, never a \
             base. It applies to the measured phase; not with `buffer.power_safe`",
        ),
        key(
            "gc.victim",
            Words(&["pblk-lists", "greedy", "cost-benefit", "fifo", "random", "d-choices"]),
            Is("greedy"),
            "policy that chooses the closed erase unit to collect next: pblk's lists by class of \
             valid count, least valid first; the fewest valid sectors; the highest (1 - u) / 2u x \
             age, where u is the share of valid sectors; the one closed first; one uniformly at \
             random; or the best of `gc.d` random ones (also written `d-choices-10`)",
        ),
        key(
            "gc.d",
            Number("1 or more"),
            Is("10"),
            "with `gc.victim = \"d-choices\"` only: number of candidate erase units that the policy \
             samples at random per victim",
        ),
        key(
            "gc.schedule",
            Words(&["pipelined", "nvmevirt", "femu"]),
            Is("pipelined"),
            "how the commands of a collection go to the NAND: pages of several victims are read, and \
             copied when their read has ended, and the host's writes are slowed down in proportion \
             to the copies when space is short, as a controller does (MQSim: a GC write waits for \
             its read); or all commands of one victim are sent at once when the host has used up \
             its write credits, and no program waits for its read (NVMeVirt's `conv_ftl.c`); or so \
             they are after a write when a quarter of the erase units of an instance is free at most \
             and an eighth of the victim is not valid, and before a write until more than a \
             twentieth is free (FEMU's `ftl-line-gc.c`)",
        ),
    ],
};

pub(super) static PAGEMAP: Group = Group {
    name: "ftl.pagemap",
    prefix: "ftl",
    when: When::Ftl(&["pagemap", "zoned"]),
    keys: &[
        key(
            "map_unit",
            Size("power of two, `4KiB` to `64KiB`"),
            Is("4KiB"),
            "size of a mapping unit: what one entry of the mapping table covers (indirection \
             unit). A write of a part of one reads the rest",
        ),
        key(
            "gc_lines",
            Number(""),
            Is("2"),
            "number of free erase units at or below which an FTL instance collects garbage",
        ),
    ],
};

pub(super) static ZONED: Group = Group {
    name: "ftl.zoned",
    prefix: "ftl",
    when: When::Ftl(&["zoned"]),
    keys: &[
        key(
            "random.size",
            Size("multiple of `zone.size`; 0: none"),
            Is("0"),
            "size of the page-mapped region before the zones, which can be written at random \
             (conventional zones); it occupies the fewest chunks that hold it with `op_percent`",
        ),
        key(
            "zone.dies",
            Number("1 to all parallel units"),
            Is("1"),
            "number of parallel units of a zone: a zone has one chunk of each",
        ),
        key(
            "zone.size",
            Size("0: what its chunks hold"),
            Is("0"),
            "zone size: distance between the starts of two zones",
        ),
        key(
            "zone.capacity",
            Size("0: what its chunks hold, at most its size"),
            Is("0"),
            "zone capacity: writable size of a zone",
        ),
        key(
            "zone.max_open",
            Number("0: no limit"),
            Is("14"),
            "largest number of open zones (MOR); opening one more closes an implicitly opened \
             one, or fails",
        ),
        key(
            "zone.max_active",
            Number("0: no limit"),
            Is("14"),
            "largest number of active zones (MAR): open and closed ones together",
        ),
        key("zone.append", Bool, Is("true"), "whether the command zone append is supported"),
        key(
            "zone.buffer",
            Size("0, or at least two one-shot pages per instance"),
            Is("960KiB"),
            "size of the write buffer of each zone. Without a buffer, writes are of whole \
             one-shot pages (`media.ws_opt`) and complete when they are programmed",
        ),
        key(
            "zone.instances",
            Number("divides `zone.dies` and `media.groups`"),
            Is("1"),
            "number of streams of a zone, to which 4 KiB go in turn, each with separate channels",
        ),
        key(
            "zone.spare_chunks",
            Number(""),
            Is("4"),
            "number of chunks per unit in addition to those of zones: for partly filled pages \
             that a flush saves, for chunks whose program failed, and for the content of a \
             power-safe buffer when power fails. If they are too few, the error names the \
             required number; more active zones and shorter chunks need more",
        ),
    ],
};

pub(super) static INTERVAL: Group = Group {
    name: "ftl.interval",
    prefix: "ftl",
    when: When::Ftl(&["interval"]),
    keys: &[
        key("map_unit", Size("`4KiB`"), Is("4KiB"), "size of what a map entry covers: one sector"),
        key(
            "gc_lines",
            Number(""),
            Is("10"),
            "number of free erase units at or below which an FTL instance collects garbage; the \
             port of IPLFS to NVMeVirt starts at ten",
        ),
        key(
            "random.size",
            Size("at most `map.partition`; 0: a 32nd of the media"),
            Is("0"),
            "size of the page-mapped region for metadata, which can be written at random",
        ),
        key(
            "map.partition",
            Size("power of two, `1MiB` to `2TiB`"),
            Is("2TiB"),
            "size of a partition of the address space: with the default, three of 32 bits of an \
             address select the partition",
        ),
        key(
            "map.node",
            Size("power of two, `256KiB` to `128MiB`"),
            Is("16MiB"),
            "size of the address range of a map node: a segment of 4096 sectors",
        ),
        key(
            "map.compact_bytes_per_s",
            Number("0: takes no time"),
            Is("1000000000"),
            "bytes of maps that the firmware reads or copies per second while it compacts. It \
             does nothing else during that time: new commands, and programs, start when it is \
             done. The default is an estimate of what one controller core copies from DRAM to \
             DRAM",
        ),
    ],
};

pub(super) static FIRMWARE: Group = Group {
    name: "ftl.firmware",
    prefix: "ftl",
    when: When::Ftl(&["pagemap", "interval", "coupled"]),
    keys: &[key(
        "map_access_ns",
        Number("at most 1000000; 0: takes no time"),
        Is("0"),
        "time of the firmware's core for each node or entry of its maps that it accesses. No \
         measurement: a variable, for the question at which time per access two devices change \
         places",
    )],
};

pub(super) static COUPLED: Group = Group {
    name: "ftl.coupled",
    prefix: "ftl",
    when: When::Ftl(&["coupled"]),
    keys: &[
        key(
            "op_percent",
            Number("0.01 to 99.99"),
            Is("6.54"),
            "overprovisioning (OP): percent of the sectors of all lines that data may not fill. \
             NVMeVirt's 7 % are of the logical size. In each instance, data must leave free the \
             partly written lines (two for each of `superblock.open_max`, and two for \
             collection), `gc_lines`, and two more",
        ),
        key(
            "instances",
            Number("power of two that divides `media.groups`"),
            Is("4"),
            "number of FTL instances, each with separate channels",
        ),
        key(
            "gc_lines",
            Number(""),
            Is("5"),
            "number of lines, free or about to become free, at or below which an instance \
             collects when a superblock is opened",
        ),
        key(
            "rho",
            Number("1 to 100"),
            Is("1.6"),
            "degree of virtual overprovisioning: superblocks of each of the four regions of the \
             address space, as a multiple of the lines of an instance",
        ),
        key(
            "upcall",
            Text("`piggyback`, `interrupt`, `poll-N`"),
            Is("piggyback"),
            "how the host learns that the device moved pages: by a flag on completions of its \
             bios; by the completion of a command that waits for them; or by polling once per \
             period *N*, such as `poll-100us`",
        ),
        key(
            "buffer.size",
            Size(""),
            Is("1MiB"),
            "size of the write buffer of the page-mapped region",
        ),
        key(
            "buffer.power_safe",
            Bool,
            Is("false"),
            "whether write buffers, including those of the lines, survive a power cut",
        ),
        key(
            "buffer.early_completion",
            Bool,
            Is("true"),
            "when a write to the page-mapped region completes: as soon as it is in the write \
             buffer; or when it is programmed",
        ),
        key(
            "buffer.flush",
            Words(&["program", "nvmevirt"]),
            Is("program"),
            "what a flush waits for, and a bio with PREFLUSH or a write with FUA: the journal and \
             the partly filled one-shot pages are programmed, and everything that was admitted is \
             durable; or, as in NVMeVirt, on which D2FS's artifact runs, all parallel units have \
             ended the commands sent so far, and nothing is programmed, for flushes of the \
             firmware's journal neither. `nvmevirt` loses data in a power cut although it was \
             flushed, like the emulator that it reproduces: it is for comparisons with published \
             figures, never a base. It applies to the measured phase; not with `buffer.power_safe`",
        ),
        key(
            "random.size",
            Size("at most `2TiB`; 0: a 32nd of the media"),
            Is("0"),
            "size of the part of the page-mapped region that the host can address. After it lies \
             the [journal](coupled.md) of the device, which the host cannot address",
        ),
        key(
            "random.op_percent",
            Number("0.01 to 99.99"),
            Is("6.54"),
            "overprovisioning of the page-mapped region in percent of its physical sectors; it \
             has separate chunks, as few as hold it",
        ),
        key(
            "superblock.open_max",
            Number(""),
            Is("4"),
            "largest number of partly written superblocks of a region. Opening one more closes \
             the least recently written one. F2FS needs three",
        ),
        key(
            "superblock.buffer",
            Size("at least two one-shot pages (`media.ws_opt`)"),
            Is("128KiB"),
            "size of the write buffer of each line that is partly written",
        ),
        key(
            "superblock.spare_chunks",
            Number(""),
            Is("4"),
            "number of chunks per unit in addition to those of lines and of the page-mapped \
             region, like `zone.spare_chunks` of a [zoned SSD](#a-zoned-ssd). More open \
             superblocks and shorter chunks need more",
        ),
    ],
};
