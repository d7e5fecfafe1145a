//! What F2FS writes: by an fsync, and by cleaning beside the law of greedy cleaning.

use nandscape_lab::run::{NoObserver, RunOptions, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::sweep::{FinishedRow, Sweep};
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use nandscape_theory::greedy_amplification;
use serde_json::Value;

/// Blocks of a segment.
const SEGMENT: u32 = 512;

/// Our key of the result of a job on a stack.
fn measure(stack: &str, job: &str) -> Value {
    let stack = Stack::load(stack, &["media.sectors=64"]).unwrap();
    let job = parse(job, "f2fs.fio", &HostEnvironment).unwrap();
    let outcome = run(&stack, &job, 1, RunOptions::default(), &mut NoObserver).unwrap();
    outcome.to_json("f2fs")["nandscape"].clone()
}

fn count(result: &Value, path: &str) -> u64 {
    let found = path.split('.').fold(result, |at, key| &at[key]);
    found.as_u64().unwrap_or_else(|| panic!("{path}: {found}"))
}

fn number(result: &Value, path: &str) -> f64 {
    let found = path.split('.').fold(result, |at, key| &at[key]);
    found.as_f64().unwrap_or_else(|| panic!("{path}: {found}"))
}

/// Blocks of data and of nodes that went to the logs.
fn log_blocks(result: &Value) -> (u64, u64) {
    let of = |kind: &str| {
        let logs = ["hot", "warm", "cold"];
        logs.iter().map(|log| count(result, &format!("fs.log_blocks.{log}_{kind}"))).sum()
    };
    (of("data"), of("node"))
}

/// An fsync of an overwrite writes a block of data and the node that has its address, and flushes the device once; ext4
/// writes the data and, for blocks that were reserved, a transaction, whose last block has PREFLUSH and FUA.
#[test]
fn an_fsync_writes_data_and_a_node() {
    let of = |size: &str, sync: &str| {
        format!("[w]\nrw=randwrite\nbs=4k\nsize={size}\n{sync}=1\nnumber_ios=501\n")
    };
    // The first of 500 writes a checkpoint: roll-forward looks at no volume that was unmounted.
    let checkpoint = 1;
    for (size, sync) in [("3m", "fsync"), ("3m", "fdatasync"), ("64m", "fdatasync")] {
        let result = measure("f2fs-lfs-ssd", &of(size, sync));
        assert_eq!(count(&result, "fs.fsyncs"), 500);
        assert_eq!(log_blocks(&result).0, 500, "{size}, {sync}: data");
        assert_eq!(log_blocks(&result).1, 500, "{size}, {sync}: nodes");
        assert_eq!(count(&result, "fs.checkpoint.count"), checkpoint);
        assert_eq!(count(&result, "fs.barriers.flushes"), 500 - checkpoint, "{size}, {sync}");
        assert_eq!(count(&result, "fs.barriers.preflush_writes"), checkpoint);
        assert_eq!(count(&result, "fs.barriers.fua_writes"), checkpoint);
        let blocks = 1_000 + count(&result, "fs.checkpoint.blocks");
        assert_eq!(count(&result, "writes.sectors"), blocks, "{size}, {sync}: nothing else");
    }
    let ext4 = measure("ext4-ssd", &of("3m", "fsync"));
    assert_eq!(count(&ext4, "fs.fsyncs"), 500);
    assert_eq!(count(&ext4, "fs.barriers.flushes"), 0);
    assert_eq!(count(&ext4, "fs.barriers.preflush_writes"), 500);
    assert_eq!(count(&ext4, "fs.barriers.fua_writes"), 500);
}

/// A device that is worn out takes no more writes, and the file system is read-only: the warning says why.
#[test]
fn a_volume_that_is_read_only_says_why() {
    let worn = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35", "host.memory=16MiB"];
    let stack = Stack::load("f2fs-ssd", &[&worn[..], &["media.endurance_erases=1"]].concat());
    let job = "[w]\nrw=randwrite\nbs=4k\nsize=24m\nio_size=1g\nfsync=32\n";
    let job = parse(job, "wear.fio", &HostEnvironment).unwrap();
    let outcome = run(&stack.unwrap(), &job, 1, RunOptions::default(), &mut NoObserver).unwrap();
    let why = "the file system was not unmounted: the file system is read-only: \
               the device is read-only: no free erase unit, and nothing to collect";
    assert!(outcome.warnings.iter().any(|warning| warning == why), "{:?}", outcome.warnings);
}

/// One file that is written over at random.
#[derive(Clone, Copy)]
struct Overwrites {
    /// Size of the file in MiB; users have 1,710 MiB of blocks.
    size_mib: u32,
    distribution: &'static str,
    segments_per_section: u32,
    /// How often the file is written over before it is measured.
    age: u32,
}

/// What a short run shows.
const SOME: [Overwrites; 2] = [
    Overwrites { size_mib: 1_368, distribution: "random", segments_per_section: 1, age: 1 },
    Overwrites { size_mib: 1_026, distribution: "random", segments_per_section: 4, age: 1 },
];

/// 50 to 90 % of the blocks that users have, under uniform and under skewed overwrites; and larger sections, which leave
/// room for less.
fn all() -> Vec<Overwrites> {
    let of = |segments_per_section, distribution, sizes_mib: &[u32]| -> Vec<_> {
        // Skew takes longer to become steady.
        let age = if distribution == "random" { 2 } else { 4 };
        let with = |size_mib| Overwrites { size_mib, distribution, segments_per_section, age };
        sizes_mib.iter().copied().map(with).collect()
    };
    let sizes_mib = [855, 1_026, 1_197, 1_368, 1_539];
    let larger = of(4, "random", &sizes_mib[..4]);
    [of(1, "random", &sizes_mib), of(1, "zipf:1.1", &sizes_mib), larger].concat()
}

impl Overwrites {
    /// The file is filled, aged, and written over once more, past the page cache; the result of the last.
    fn measure(self) -> Value {
        let Self { size_mib, distribution, segments_per_section, age } = self;
        let job = |step: &str, [name, rest]: [&str; 2]| {
            let file = format!("filename=data\\ndirect=1\\nsize={size_mib}m");
            format!("{step} = \"[{name}]\\n{file}\\n{rest}\\n\"\n")
        };
        // Jobs of one name draw the same hot blocks, and the same order, which uniform ones are not to do.
        let measured = if distribution == "random" { "measure" } else { "age" };
        let random = "rw=randwrite\\nbs=4k\\nnorandommap\\nrandom_distribution=";
        let text = format!(
            "stacks = \"f2fs-lfs-ssd\"\nsession = true\n[jobs]\n{}{}{}[set]\nmedia.sectors = 64\n\
             fs.background_gc = false\nfs.segments_per_section = {segments_per_section}\n",
            job("fill", ["fill", "rw=write\\nbs=1m"]),
            job("age", ["age", &format!("{random}{distribution}\\nloops={age}")]),
            job("measure", [measured, &format!("{random}{distribution}")]),
        );
        let sweep = Sweep::parse("cleaning.toml", &text, &HostEnvironment).unwrap();
        let row = sweep.run(0, "test", RunOptions::default(), &mut NoObserver).unwrap();
        FinishedRow::parse(&row).unwrap().result["nandscape"].clone()
    }
}

/// Largest relative distance from the law.
const TOLERANCE: f64 = 0.03;
/// Blocks that may be in flight where a run begins and ends.
const IN_FLIGHT: u64 = 64;

/// Under uniform overwrites, the data that is written for each block of the user's is what the law of greedy cleaning says
/// for the section's size and alpha = data blocks in use / valid ones; what the file system writes beyond that are nodes,
/// checkpoints and SSA. Under skewed ones the law is beside it. `NANDSCAPE_F2FS_LAW=1` shows all of [`all`].
#[test]
fn cleaning_is_as_theory_says() {
    let shows_all = std::env::var_os("NANDSCAPE_F2FS_LAW").is_some();
    let points = if shows_all { all() } else { SOME.to_vec() };
    for point in points {
        let result = point.measure();
        let user = count(&result, "fs.written_sectors");
        let (data, nodes) = log_blocks(&result);
        assert_eq!(data, user + count(&result, "fs.gc.data_blocks"), "nothing else writes data");
        let metadata =
            count(&result, "fs.checkpoint.blocks") + count(&result, "fs.checkpoint.summary_blocks");
        let (all, device) = (data + nodes + metadata, count(&result, "writes.sectors"));
        assert!(all.abs_diff(device) <= IN_FLIGHT, "{all} blocks, and {device} on the device");
        let of_user = |blocks: u64| blocks as f64 / user as f64;
        let in_use = number(&result, "fs.gc.in_use_data_blocks_mean");
        let alpha = in_use / number(&result, "fs.gc.valid_data_blocks_mean");
        let space = |key: &str| count(&result, &format!("fs.space.{key}"));
        assert!(space("valid_blocks") >= u64::from(point.size_mib) * 256, "the file is there");
        assert!(space("valid_blocks") < space("user_blocks"));
        let dirty = space("main_segments") - space("free_segments") - space("prefree_segments");
        assert!(
            dirty * u64::from(SEGMENT) >= space("valid_blocks"),
            "what is valid lies in segments"
        );
        let law = greedy_amplification(SEGMENT * point.segments_per_section, 1.0 / alpha);
        let distance = of_user(data) / law - 1.0;
        let media = number(&result, "waf.media");
        println!(
            "{} MiB, {}, {} x 2 MiB: alpha {alpha:.4}; data {:.3}, law {law:.3}, {:+.2} %; nodes {:.3}, metadata {:.3}, \
             all {:.3}; device {media:.3}; product {:.3}",
            point.size_mib,
            point.distribution,
            point.segments_per_section,
            of_user(data),
            distance * 100.0,
            of_user(nodes),
            of_user(metadata),
            of_user(device),
            of_user(device) * media,
        );
        let is_uniform = point.distribution == "random";
        assert!(!is_uniform || distance.abs() <= TOLERANCE, "{:+.2} %", distance * 100.0);
    }
}
