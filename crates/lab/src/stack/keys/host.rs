//! Keys of a stack itself, of `[host]`, `[hints]` and `[precondition]`.

use super::Default::{By, Is, Nothing};
use super::Values::{Bool, List, Number, Range, Size, Text, Time, Words};
use super::{Group, Key, When, key};

pub(super) static STACK: Group = Group {
    name: "stack",
    prefix: "",
    when: When::Always,
    keys: &[
        key("name", Text("text"), Is("unnamed"), "name of the stack in results"),
        key(
            "extends",
            Text("stack or file"),
            Nothing,
            "the built-in stack or the file that this stack extends; the keys of this file \
             override its keys",
        ),
        key(
            "host.cores",
            Number("1 or more"),
            Is("4"),
            "number of CPU cores of the host. The work of [`ftl.cpu`](#host-cpu), threads of \
             [workloads](wml.md) and calls of [jobs on files](job.md#files) share them; each core \
             works first in, first out, and thread *n* runs on core *n* modulo cores. Also the \
             default of `ftl.write_buffers` and `fs.ijournal_areas`. A run of a stack that sets \
             it prints a warning if the cores are not used: direct jobs and traces on the block \
             device use none",
        ),
        key(
            "host.memory",
            Size("at least 1MiB"),
            Is("4GiB"),
            "host memory for what `host.memory_of` specifies; at least `1MiB` is left for the \
             page cache. Without a page cache it has no effect, and a run of a stack that sets it \
             prints a warning",
        ),
        key(
            "host.memory_of",
            Words(&["page-cache", "all"]),
            Is("page-cache"),
            "what `host.memory` limits: the page cache alone; or everything that the stack keeps \
             in host memory: an FTL on the host (map, write buffers, lines), metadata blocks and \
             inodes of the file system (each at most 16,384, and at most an eighth of what the \
             FTL leaves), and the page cache, which gets the rest. \
             [`memory.host`](result.md#nandscape) lists the parts",
        ),
        key(
            "host.syscall_ns",
            Range(0, 1_000_000_000),
            Is("1000"),
            "core time of a system call to a file system or to the page cache of the block \
             device, charged to the core of the calling thread before the call does anything. \
             Direct I/O on the block device has no such cost",
        ),
        key(
            "host.copy_ns",
            Range(0, 1_000_000_000),
            Is("1000"),
            "core time of copying a page of 4 KiB: between the caller and the page cache, in \
             addition to the call (direct I/O copies nothing), and into and out of the write \
             buffer of an FTL on the host",
        ),
    ],
};

pub(super) static NO_FS: Group = Group {
    name: "host",
    prefix: "host",
    when: When::NoFs,
    keys: &[key(
        "page_cache",
        Bool,
        Is("true"),
        "whether jobs without `direct=1` go through [the page cache of the block \
         device](#the-page-cache-of-the-block-device); with `false` all of them are direct",
    )],
};

pub(super) static HOST_CACHE: Group =
    Group { name: "host.cache", prefix: "host", when: When::NoFs, keys: &CACHE };

pub(super) static PREPARATION: Group = Group {
    name: "preparation",
    prefix: "",
    when: When::Always,
    keys: &[
        key(
            "hints.journal_range",
            List("two sizes, first and end, such as `[\"0\", \"64MiB\"]`"),
            Nothing,
            "address range whose bios carry the JOURNAL flag; whole sectors of 4 KiB. Refused \
             with `[fs]`, which flags its journal itself",
        ),
        key(
            "hints.fsync",
            Words(&["device", "file"]),
            Is("device"),
            "what an fsync of a job on the block device makes durable: everything (a plain \
             flush); or only what the job wrote, as a file system does for a file",
        ),
        key(
            "precondition.recipe",
            Words(&["none", "fresh", "fill", "sequential", "snia-wipc", "random", "steady"]),
            By("`none`"),
            "a named set of values of the keys below; see [the recipes](#hints-and-precondition)",
        ),
        key(
            "precondition.fill",
            Number("0 to 100"),
            By("by the recipe"),
            "amount of sequential writes before the measured phase, as a multiple of the logical \
             space; 1 is every logical sector once",
        ),
        key(
            "precondition.random_overwrite",
            Number("0 to 1000"),
            By("by the recipe"),
            "amount of random 4 KiB writes after `precondition.fill`, as a multiple of the \
             logical space",
        ),
        key(
            "precondition.steady_overwrite",
            Number("0 to 1000"),
            By("by the recipe"),
            "largest amount of random 4 KiB writes, after those, until write amplification is \
             steady, as a multiple of the logical space",
        ),
    ],
};

/// Of a page cache.
pub(super) const CACHE: [Key; 5] = [
    key(
        "dirty_background_percent",
        Range(1, 100),
        Is("10"),
        "share of `host.memory` that may be dirty before background write-back starts, like \
         Linux's `vm.dirty_background_ratio`. Write-back takes the dirty pages of a file in \
         the order of their offsets, continues where it stopped, and wraps at the end \
         (Linux's `range_cyclic`)",
    ),
    key(
        "dirty_percent",
        Range(1, 100),
        Is("20"),
        "share of `host.memory` that may be dirty before writers wait, like Linux's \
         `vm.dirty_ratio`; must be more than `dirty_background_percent`",
    ),
    key(
        "writeback_period",
        Time("above 0"),
        Is("5s"),
        "interval at which write-back looks for pages older than `writeback_age` \
         (`vm.dirty_writeback_centisecs`)",
    ),
    key(
        "writeback_age",
        Time(""),
        Is("30s"),
        "age from which a dirty page is written back although few pages are dirty \
         (`vm.dirty_expire_centisecs`)",
    ),
    key(
        "read_ahead",
        Size("at most 1GiB"),
        Is("128KiB"),
        "largest read-ahead window of sequential reads; 0 turns read-ahead off",
    ),
];
