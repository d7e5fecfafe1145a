//! Runs on files: what a file system between workload and FTL promises to those who measure.

use crate::common;

use common::Fractions;
use nandscape_fs::FsDetail;
use nandscape_fs::cache::Lookups;
use nandscape_fs::ext4::Counts;
use nandscape_lab::run::{
    FileCounts, NoObserver, Outcome, RunError, RunOptions, Trace, replay, run,
};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::fio::{HostEnvironment, JobFile, parse};
use nandscape_lab::workload::replay::{Pace, ReplayOptions};
use nandscape_lab::workload::trace::{Footprint, Format, ReadOptions, TraceReader};

/// A small device, on which every run is short.
const SMALL: [&str; 4] =
    ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35", "host.memory=64MiB"];

fn stack(name: &str, set: &[&str]) -> Stack {
    Stack::load(name, &[&SMALL, set].concat()).unwrap()
}

fn job(text: &str) -> JobFile {
    parse(text, "files.fio", &HostEnvironment).unwrap()
}

fn outcome(name: &str, set: &[&str], text: &str) -> Outcome {
    run(&stack(name, set), &job(text), 1, RunOptions::default(), &mut NoObserver).unwrap()
}

fn refused(name: &str, set: &[&str], text: &str) -> String {
    let error =
        run(&stack(name, set), &job(text), 1, RunOptions::default(), &mut NoObserver).unwrap_err();
    assert!(error.is_bad_input(), "{error}");
    error.to_string()
}

/// What ext4 counted.
fn ext4(counts: &FileCounts) -> Counts {
    let FsDetail::Ext4(counts) = counts.fs.detail else { panic!("{counts:?}") };
    counts
}

const MIX: &str = "[global]\nsize=2m\nruntime=20ms\ntime_based\n\
                   [t]\nrw=randwrite\nbs=8k\nfsync=2\nnumjobs=2\n\
                   [d]\nrw=randrw\ndirect=1\niodepth=4\n[s]\nrw=write\nbs=64k\nfdatasync=8\n";

/// A run on files is a function of stack, job and seed, whatever an fsync commits.
#[test]
fn same_input_same_result() {
    for name in ["ext4-pblk", "ext4-js-pblk", "ext4-fa-ftl"] {
        let json = || outcome(name, &[], MIX).to_json("files").to_string();
        assert_eq!(json(), json(), "{name}");
    }
}

/// What is written through a file system is read again: past the cache and through it, from several
/// files, with holes punched in between, in every data mode and kind of commit.
#[test]
fn content_survives() {
    let text = "[a]\nrw=randwrite\nbs=4k\nsize=2m\nnrfiles=3\nnumjobs=2\nverify=crc32c\nfsync=7\n\
                [b]\nstonewall\nrw=randtrimwrite\nbs=16k\ndirect=1\nsize=1m\nverify=crc32c\n\
                [c]\nstonewall\nfilename=shared\nrw=randrw\nbsrange=4k-64k\nsize=4m\nverify=md5\n";
    let sets: [&[&str]; 4] =
        [&[], &["fs.data=journal"], &["fs.data=writeback"], &["fs.commit=ijournal"]];
    for set in sets {
        for memory in ["host.memory=64MiB", "host.memory=1MiB"] {
            let outcome = outcome("ext4-pblk", &[set, &[memory]].concat(), text);
            for job in &outcome.workload.jobs {
                assert!(!job.failed(), "{set:?}: {:?}", job.failures);
                assert!(job.verified_sectors > 0, "{set:?}");
            }
            assert_eq!(outcome.ftl.media_errors.mismatches, 0);
        }
    }
}

/// The log's bios carry JOURNAL, and an FTL that separates them does.
#[test]
fn the_journal_is_separated() {
    let outcome = outcome("ext4-js-pblk", &[], MIX);
    let fs = outcome.fs.unwrap();
    assert!(ext4(&fs).journal.commits > 0 && fs.fsyncs > 0);
    assert!(outcome.ftl.sectors.journal > 0);
    let journal = outcome.to_json("files")["nandscape"]["sectors"]["journal"].as_u64().unwrap();
    let counts = ext4(&fs).journal;
    assert!(journal <= counts.log_blocks + counts.superblocks, "nothing else carries it");
}

/// Overwrites that no job syncs die in the page cache: the device sees fewer than the files. With an
/// fsync behind each, it sees more, the journal's too.
#[test]
fn the_page_cache_absorbs_overwrites() {
    let overwrites = "[w]\nrw=randwrite\nbs=4k\nsize=1m\nloops=8\n";
    let lazy = outcome("ext4-pblk", &[], overwrites);
    assert_eq!(lazy.fs.unwrap().written_sectors, 8 * 256);
    // Of nothing that was written there is none.
    assert!(
        lazy.fs_amplification().is_none_or(|factor| factor < 0.5),
        "{:?}",
        lazy.fs_amplification()
    );
    let eager = outcome("ext4-pblk", &[], &format!("{overwrites}fsync=1\n"));
    assert!(eager.fs_amplification().unwrap() >= 1.0, "{:?}", eager.fs_amplification());
    // One behind each write but the last, and one between passes.
    assert_eq!(eager.fs.unwrap().fsyncs, 8 * 256 - 1 + 7);
    let json = eager.to_json("files");
    let ours = &json["nandscape"];
    assert_eq!(ours["waf"]["fs"].as_f64(), eager.fs_amplification());
    assert_eq!(ours["fs"]["data"], "ordered");
    assert!(ours["fs"]["journal"]["commits"].as_u64().unwrap() > 0);
}

/// What a trim gives back is there for the write that follows on a full volume.
#[test]
fn a_full_volume_loses_no_write() {
    let text = "[w]\nrw=trimwrite\nbs=64k\nsize=109888k\nverify=crc32c\n";
    let job = outcome("ext4-pblk", &[], text).workload.jobs.remove(0);
    assert!(!job.failed() && job.verified_sectors == 109_888 / 4, "{:?}", job.failures);
}

/// A durable write syncs the file that it wrote, and nothing else, however many are in flight; with
/// `dsync` what reading does not need can wait.
#[test]
fn durable_writes_sync_what_they_wrote() {
    let run = |more: &str| {
        let text = format!(
            "[global]\nbs=4k\nsize=1m\nnrfiles=4\n[lay]\nrw=write\nend_fsync=1\nfilename=x\nnrfiles=1\n\
             [w]\nstonewall\nrw=randwrite\nnumber_ios=200\nthinktime=5ms\n{more}\n"
        );
        outcome("ext4-pblk", &[], &text)
    };
    let deep = run("iodepth=8\nsync=1").fs.unwrap();
    assert_eq!(deep.fsyncs, 200 + 1, "one for each write, and the first job's");
    let ended = run("iodepth=8\nsync=dsync\nend_fsync=1").fs.unwrap();
    assert_eq!(ended.fsyncs, 200 + 1 + 4, "one for each file at the end");
    let commits = |more: &str| {
        let fs = run(&format!("filename=x\nnrfiles=1\n{more}")).fs.unwrap();
        ext4(&fs).journal.commits
    };
    let [sync, dsync, fdatasync] = ["sync=1", "sync=dsync", "fdatasync=1"].map(commits);
    assert!(sync >= 200 && dsync < 10 && dsync == fdatasync, "{sync} {dsync} {fdatasync}");
}

/// The sync at the end is for jobs that write.
#[test]
fn readers_do_not_sync_at_the_end() {
    let fsyncs = |rw: &str| {
        let text = format!("[j]\nrw={rw}\nsize=64k\nend_fsync=1\n");
        outcome("ext4-pblk", &[], &text).fs.unwrap().fsyncs
    };
    assert_eq!((fsyncs("read"), fsyncs("write"), fsyncs("rw")), (0, 1, 1));
}

/// Progress goes evenly up to the end, whatever says how much there is to do: the files of a job alone,
/// not those of others.
#[test]
fn progress_reaches_the_end() {
    for size in ["filesize=1m", "size=4m", "filesize=2m\nsize=4m", "filesize=4m\nio_size=50%"] {
        let text = format!("[w]\nrw=write\ndirect=1\nnumjobs=4\nnrfiles=4\n{size}\n");
        let mut observer = Fractions::default();
        run(&stack("ext4-pblk", &[]), &job(&text), 1, RunOptions::default(), &mut observer)
            .unwrap();
        let Fractions(fractions) = observer;
        assert!(fractions.len() > 4, "{size}: {fractions:?}");
        assert!(fractions.is_sorted() && fractions.last() == Some(&1.0), "{size}: {fractions:?}");
        let middle = fractions[fractions.len() / 2];
        assert!((0.3..0.7).contains(&middle), "{size}: {middle} half way");
    }
}

/// The time of fsyncs is the sum of its parts, at any depth: where a thread has other calls in flight, an
/// fsync waits for it.
#[test]
fn the_time_of_fsyncs_has_parts() {
    let thread_ns = [1, 16].map(|depth| {
        let text = format!("[w]\nrw=randwrite\nbs=64k\nsize=4m\nfsync=4\niodepth={depth}\n");
        let outcome = outcome("ext4-pblk", &["host.syscall_ns=500", "host.copy_ns=200"], &text);
        let (fs, sync) = (outcome.fs.unwrap(), &outcome.workload.jobs[0].sync);
        let json = outcome.to_json("files");
        let times = json["nandscape"]["fs"]["fsync_times"].as_object().unwrap().values();
        let parts: u64 = times.map(|ns| ns.as_u64().unwrap()).sum();
        assert_eq!((sync.count(), sync.mean_ns()), (fs.fsyncs, parts as f64 / fs.fsyncs as f64));
        fs.fsync_thread_ns / fs.fsyncs
    });
    assert!(thread_ns[0] == 500 && thread_ns[1] > 1000, "{thread_ns:?}");
}

/// A run begins with nothing cached: the first pass over a file comes from the device, the second from
/// memory, in the time that calls take.
#[test]
fn caches_begin_cold() {
    let read = |loops: u32| {
        let text = format!("[r]\nrw=randread\nbs=4k\nsize=2m\nloops={loops}\n");
        outcome("ext4-pblk", &["host.syscall_ns=500", "host.copy_ns=200"], &text)
    };
    let (once, twice) = (read(1), read(2));
    assert_eq!((once.ftl.host.read, twice.ftl.host.read), (512, 512));
    let more = twice.virtual_time - once.virtual_time;
    assert_eq!(more.0, 512 * (500 + 200));
    assert_eq!(once.fs.unwrap().cached_pages, 512);
    assert_eq!(twice.fs.unwrap().fs.lookups, Lookups { hits: 512, misses: 512 });
    assert_eq!(twice.to_json("files")["nandscape"]["fs"]["cache"]["hits"], 512);
    let direct = outcome("ext4-pblk", &[], "[r]\nrw=read\nbs=4k\nsize=2m\nloops=2\ndirect=1\n");
    assert_eq!((direct.ftl.host.read, direct.fs.unwrap().cached_pages), (1024, 0));
    assert_eq!(direct.fs.unwrap().fs.lookups, Lookups::default());
}

/// The device was off and on again once its files were there: what they hold comes from media, not from a
/// write buffer that still has it, on a fresh device and on an aged one.
#[test]
fn write_buffers_begin_empty() {
    let text = "[r]\nrw=read\nbs=4k\nsize=64k\ndirect=1\nverify=crc32c\n";
    for set in [&[][..], &["precondition.fill=1"], &["media.faults.program_rate=0.001"]] {
        let read = outcome("ext4-pblk", set, text);
        assert!(!read.workload.jobs[0].failed(), "{set:?}: {:?}", read.workload.jobs[0].failures);
        assert_eq!((read.ftl.host.read, read.ftl.host.buffer_hits), (16, 0), "{set:?}");
    }
}

/// Files on an aged device: collection is at work from the beginning, unless mkfs discards what the device
/// holds; content is right either way, and the earlier bytes are not visible.
#[test]
fn a_file_system_is_made_on_an_aged_device() {
    let text = "[w]\nrw=randwrite\nbs=4k\nsize=4m\nloops=3\ndirect=1\nverify=crc32c\n\
                [r]\nstonewall\nrw=read\nsize=2m\nbs=64k\n";
    let aged = ["precondition.fill=1", "precondition.random_overwrite=1"];
    let on = |discard: &str| {
        let outcome = outcome("ext4-pblk", &[&aged[..], &[discard]].concat(), text);
        for job in &outcome.workload.jobs {
            assert!(!job.failed(), "{discard}: {:?}", job.failures);
        }
        assert!(outcome.workload.jobs[0].verified_sectors > 0);
        assert_eq!(outcome.ftl.media_errors.mismatches, 0);
        (outcome.state, outcome.ftl.sectors.gc)
    };
    let (discarded, kept) = (on("fs.discard=true"), on("fs.discard=false"));
    assert!(kept.1 > 2 * discarded.1, "{} copies, {} after a discard", kept.1, discarded.1);
    assert!(kept.0.is_some() && kept.0 == discarded.0, "the same aged device");
}

/// Laying out files is not measured, and counters begin behind a ramp.
#[test]
fn what_comes_before_is_not_counted() {
    let read = outcome("ext4-pblk", &[], "[r]\nrw=read\nbs=64k\nsize=4m\ndirect=1\n");
    assert_eq!((read.ftl.host.written, read.fs.unwrap().written_sectors), (0, 0));
    assert_eq!(read.fs_amplification(), None);
    let text = "[w]\nrw=write\nbs=64k\nsize=4m\ntime_based\nruntime=10ms\n";
    let direct = format!("{text}direct=1\nramp_time=10ms\n");
    let ramped = outcome("ext4-pblk", &[], &direct).fs.unwrap().written_sectors;
    let whole = outcome("ext4-pblk", &[], &direct.replace("ramp_time", "startdelay"));
    let whole = whole.fs.unwrap().written_sectors;
    assert!(ramped > 0 && ramped < 2 * whole, "{ramped} behind a ramp, {whole} in all");
}

/// Cores that commit files leave the running transaction alone.
#[test]
fn file_records_take_the_place_of_commits() {
    let set = ["fs.commit=ijournal", "host.cores=2"];
    let fs = outcome("ext4-pblk", &set, MIX).fs.unwrap();
    let counts = ext4(&fs);
    assert!(counts.records > 0 && counts.records > 4 * counts.journal.commits, "{fs:?}");
}

/// A job's files are files: syncs are of those that were written since, which `sequential` makes one and
/// turns make all.
#[test]
fn several_files_are_written_in_turns() {
    let fsyncs = |service: &str| {
        let text = format!(
            "[w]\nrw=write\nbs=4k\nsize=1m\nnrfiles=8\nfsync=8\nfile_service_type={service}\n"
        );
        outcome("ext4-pblk", &[], &text).fs.unwrap().fsyncs
    };
    assert_eq!((fsyncs("roundrobin"), fsyncs("sequential")), (8 * 31, 31));
    assert_eq!(fsyncs("roundrobin:4"), 2 * 31);
}

/// What a file system cannot be asked for is answered by name, before anything runs.
#[test]
fn what_does_not_fit_is_refused() {
    let write = "[w]\nrw=write\nsize=1m\n";
    let records = ["fs.commit=ijournal", "fs.ijournal_area=1MiB"];
    let full = "files.fio:1:1: job r: its file r.0.0 of 8192.0 MiB does not fit the file system; \
                wanted in all: 8192.0 MiB in 1 file; free: 1";
    let cases: [(&[&str], &str, &str); 8] = [
        (&records, write, "--set fs.ijournal_area: the records of all cores may have half"),
        (&[], "[w]\nrw=write\n", "files.fio:1:1: job w: a job on files needs a size"),
        (&[], "[w]\nsize=1m\npre_read=1\n", "files.fio:3:1: pre_read: not supported on files"),
        (&[], "[r]\nrw=read\nsize=8g\n", full),
        (&["fs.inode_ratio=1"], write, "--set fs.inode_ratio: an inode for each 4096"),
        (
            &["fs.features=[\"^sparse_super\"]"],
            write,
            "--set fs.features: resize_inode needs sparse_super",
        ),
        (&["fs.journal=1GiB"], write, "--set fs.journal: a journal of 262144 blocks"),
        (&["fs.features=[\"bigalloc\"]"], write, "--set fs.features: "),
    ];
    for (set, text, expected) in cases {
        let found = refused("ext4-pblk", set, text);
        assert!(found.starts_with(expected), "found    {found}\nexpected {expected}");
    }
}

/// What is said to be free for data is: a file of that size fits, and not one that takes what is kept for
/// metadata, too.
#[test]
fn what_is_free_adds_up() {
    let writes = |mib: u64| format!("[w]\nrw=write\nsize={mib}m\nio_size=4k\n");
    let found = refused("ext4-pblk", &[], &writes(1024));
    let number = |behind: &str| -> f64 {
        let (_, rest) = found.split_once(behind).unwrap();
        rest.split(' ').next().unwrap().parse().unwrap()
    };
    let (data, kept) = (number("free: "), number("for data and "));
    assert!(found.contains(" MiB kept for metadata, ") && kept > 2.0, "{found}");
    outcome("ext4-pblk", &[], &writes(data as u64 - 1));
    refused("ext4-pblk", &[], &writes(data as u64 + 1));
}

/// A trace is of a block device.
#[test]
fn traces_do_not_go_to_files() {
    let options = ReadOptions { format: Some(Format::Msr), ..ReadOptions::default() };
    let reader = TraceReader::new("x.csv", &b"1,host,0,Write,0,4096,0\n"[..], options).unwrap();
    let how =
        ReplayOptions { pace: Pace::AsFastAsPossible, iodepth: 1, fold: false, runtime: None };
    let trace = Trace { reader, bytes: 0, how, prefill: Footprint::NOTHING };
    let error = replay(&stack("ext4-pblk", &[]), trace, 1, RunOptions::default(), &mut NoObserver);
    assert!(matches!(error, Err(RunError::Stack(error)) if error.key == "fs"));
}

/// Files and block device take the same load; only there are calls and a cache between.
#[test]
fn direct_io_reaches_the_device() {
    let text = "[w]\nrw=randwrite\nbs=4k\niodepth=8\nsize=2m\ndirect=1\n";
    let files = outcome("ext4-pblk", &["host.syscall_ns=0"], text);
    let raw = outcome("pblk", &["precondition.recipe=none"], text);
    let ios = |outcome: &Outcome| outcome.workload.jobs[0].direction(Direction::Write).ios;
    assert_eq!(ios(&files), ios(&raw));
    assert!(files.ftl.host.written >= raw.ftl.host.written);
}

/// With `host.memory_of = "all"` the FTL and the metadata of the file system take their part of the host's
/// memory, and the page cache gets what is left; a memory that is too small for them is refused. Read-ahead is
/// off: of random reads, too, one sometimes goes on where the last one ended, and the pages that this reads ahead
/// would be no misses.
#[test]
fn memory_of_all_is_shared() {
    let text = "[r]\nrw=randread\nbs=4k\nsize=6m\nloops=2\n";
    let run = |of: &str| {
        let set = ["host.memory=8MiB", "fs.read_ahead=0", of];
        let outcome = outcome("ext4-pblk", &set, text);
        let json = outcome.to_json("files")["nandscape"]["memory"]["host"].take();
        (json, outcome.fs.unwrap().fs.lookups.misses)
    };
    let (cache, misses) = run("host.memory_of=page-cache");
    assert_eq!(cache.to_string(), r#"{"limit_bytes":8388608,"page_cache_bytes":8388608}"#);
    let (all, more_misses) = run("host.memory_of=all");
    let parts = all.as_object().unwrap();
    let bytes = |key: &str| parts[key].as_u64().unwrap();
    let keys = ["map", "buffers", "bitmap", "line", "metadata", "inodes"];
    assert!(keys.iter().all(|key| bytes(&format!("{key}_bytes")) > 0), "{all}");
    let sum: u64 = parts.keys().filter(|key| *key != "limit_bytes").map(|key| bytes(key)).sum();
    assert!((8 << 20) - 4096 < sum && sum <= 8 << 20, "{all}");
    assert_eq!(misses, (6 << 20) / 4096, "each page of the file misses once");
    assert!(more_misses > misses, "{more_misses}: {all}");
    let error = refused("ext4-pblk", &["host.memory=1MiB", "host.memory_of=all"], text);
    assert!(error.contains("host.memory: "), "{error}");
}

/// F2FS's work takes no time of the host's cores unless it is charged; what is charged is shown by part, keeps threads of
/// the host busy, and scales.
#[test]
fn f2fs_takes_cores_if_it_is_charged() {
    let sized = ["ftl.buffer.power_safe=true", "media.chunks=192"];
    let json = |set: &[&str]| {
        let outcome = outcome("f2fs-lfs-ssd", &[&sized, set].concat(), MIX);
        let mut json = outcome.to_json("test");
        let ours = json["nandscape"].as_object_mut().unwrap();
        for key in ["set", "resolved_stack", "resolved_stack_hash", "wall_s"] {
            ours.remove(key);
        }
        json
    };
    let plain = json(&[]);
    assert_eq!(plain, json(&["fs.cpu=none"]));
    assert_eq!(plain["nandscape"]["fs"].get("cpu"), None);
    let busy = |json: &serde_json::Value| {
        let cores = json["nandscape"]["host"]["cores"].as_array().unwrap().iter();
        cores.map(|core| core["threads"].as_f64().unwrap()).sum::<f64>()
    };
    let charged = json(&["fs.cpu=estimate"]);
    assert_eq!(charged, json(&["fs.cpu=estimate"]), "two runs are the same");
    let cpu = &charged["nandscape"]["fs"]["cpu"];
    let ns = |key: &str| cpu[key].as_u64().unwrap();
    for key in ["node_page_ns", "allocation_ns", "checkpoint_ns"] {
        assert!(ns(key) > 0, "{key}: {cpu}");
    }
    let dear = json(&["fs.cpu.preset=estimate", "fs.cpu.scale=20"]);
    assert!(busy(&dear) > 1.5 * busy(&plain), "{} and {}", busy(&dear), busy(&plain));
    assert!(busy(&charged) > busy(&plain), "{} and {}", busy(&charged), busy(&plain));
}

/// Calls take the bytes that a job asks for: a page that is written in part and not cached is read first, and
/// direct I/O needs whole sectors.
#[test]
fn blocks_below_the_page() {
    let text = "[w]\nrw=randwrite\nbs=512\nsize=1m\nfsync=16\n[r]\nstonewall\nrw=read\nbs=1536\nsize=999k\n";
    for name in ["ext4-pblk", "f2fs-ssd"] {
        let outcome = outcome(name, &[], text);
        let [w, r] = &outcome.workload.jobs[..] else { panic!() };
        assert!(!w.failed() && !r.failed(), "{:?}", (&w.failures, &r.failures));
        let writes = w.direction(Direction::Write);
        assert_eq!((writes.ios, writes.bytes, w.unaligned), (2_048, 1 << 20, [0, 2_048, 0]));
        assert_eq!(r.direction(Direction::Read).bytes, 999 << 10);
        assert_eq!(w.sync.count(), 127);
    }
    let cached = "[w]\nrw=write\nbs=512\nsize=64k\nend_fsync=1\n";
    let json = outcome("pblk", &[], cached).to_json("a");
    let job = &json["jobs"][0];
    assert_eq!(
        (&job["write"]["io_bytes"], &job["unaligned_ios"]["write"]),
        (&65_536.into(), &128.into())
    );
    let why = refused("ext4-pblk", &[], "[w]\nrw=write\nbs=1k\nsize=64k\ndirect=1\n");
    assert!(why.starts_with("files.fio:1:1: job w: direct=1 on files needs"), "{why}");
}
