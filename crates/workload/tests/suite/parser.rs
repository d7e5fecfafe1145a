//! Job files as fio reads them: what they mean, what is wrong with them, and where.

use crate::common;

use common::{FakeEnvironment, jobs};
use nandscape_rt::Nanos;
use nandscape_workload::Direction;
use nandscape_workload::fio::{
    Amount, Distribution, FileOrder, JobFileError, Mix, load, parse, parse_for, supported_keys,
};
use proptest::prelude::*;
use std::path::Path;

fn error(text: &str) -> JobFileError {
    parse(text, "test.fio", &FakeEnvironment::default()).expect_err(text)
}

/// Globals apply to the sections below them and add up; what a section says itself wins.
#[test]
fn globals_apply_downwards() {
    let file = jobs(
        "[global]\nbs=8k\niodepth=4\n[a]\nrw=randwrite\n[GLOBAL]\niodepth=16\n[b]\nbs=16k\n[a]\n",
    );
    let seen: Vec<_> =
        file.jobs.iter().map(|job| (job.name.as_str(), job.block_bytes[1], job.iodepth)).collect();
    assert_eq!(seen, [("a", 8192, 4), ("b", 16_384, 16), ("a", 8192, 16)]);
    assert_eq!(file.jobs[0].pattern.mix, Mix::Only(Direction::Write));
    assert_eq!(file.jobs[1].pattern.mix, Mix::Only(Direction::Read));
    assert!(file.notices.is_empty());
}

/// Values mean what fio's manual says.
#[test]
fn values_are_read_as_fio_reads_them() {
    let file = jobs(
        "[j]\nsize = 50%\noffset=1m ; in front\nio_size=2g\nbs=4k,64k,\nruntime=2m\ntime_based\n\
         ramp_time=500ms\nthinktime=250\nrate=1m,\nrandom_distribution=zipf\nrandrepeat=0\n\
         number_ios=0\nfsync=0\nloops=2\n",
    );
    let job = &file.jobs[0];
    assert_eq!((job.size, job.offset), (Some(Amount::Percent(50)), Amount::Bytes(1 << 20)));
    assert_eq!(job.io_size, Some(Amount::Bytes(2 << 30)));
    assert_eq!(job.block_bytes, [4096, 65_536, 4096]);
    assert_eq!((job.runtime, job.time_based), (Some(Nanos::from_secs(120)), true));
    assert_eq!((job.ramp_time, job.thinking.time), (Nanos::from_ms(500), Nanos::from_us(250)));
    assert_eq!(job.rate, [Some(1 << 20), None, None]);
    let delay = |text: &str| jobs(&format!("[j]\nstartdelay={text}\n")).jobs[0].start_delay;
    assert_eq!(delay("2"), (Nanos::from_secs(2), Nanos::from_secs(2)));
    assert_eq!(delay("500us-2ms"), (Nanos::from_us(500), Nanos::from_ms(2)));
    assert_eq!(delay("0:3"), (Nanos::ZERO, Nanos::from_secs(3)));
    assert_eq!(job.distribution, Distribution::Zipf(1.1));
    assert_eq!((job.number_ios, job.loops), (None, 2));
    assert!(!job.repeats);
    assert_eq!(file.notices, []);
    assert_eq!(jobs("[j]\nkb_base=1000\nsize=1mb\n").jobs[0].size, Some(Amount::Bytes(1_000_000)));
    assert_eq!(jobs("[j]\nsize=8k\nkb_base=1000\nbs=4KiB").jobs[0].block_bytes, [4096; 3]);
}

/// Keys that steer a machine are accepted, each with a notice that says where and why.
#[test]
fn machine_keys_are_noticed() {
    let file = jobs("[j]\nioengine=libaio\n\nfilename=/dev/sda:/dev/sdb\nbuffered=1\ndirect=1\n");
    let seen: Vec<_> = file.notices.iter().map(|n| (n.place.line, n.key.as_str())).collect();
    assert_eq!(seen, [(2, "ioengine"), (4, "filename")]);
    assert!(file.notices.iter().all(|notice| !notice.why.to_string().is_empty()));
    let on_files: Vec<_> = file.notices.iter().map(|notice| notice.holds_on_files()).collect();
    assert_eq!(on_files, [true, false], "files have names");
    let refused = &jobs("[j]\nfile_append=1\n").notices[0];
    assert!(refused.is_refused_on_files() && !refused.holds_on_files());
    let files =
        &jobs("[j]\nfilename=x\ndirectory=d\nnrfiles=3\nfilesize=1m\nbuffered=0\n").jobs[0].files;
    assert_eq!((files.name.as_deref(), files.directory.as_str()), (Some("x"), "d"));
    assert_eq!((files.count, files.bytes, files.direct), (3, Some((1 << 20, 1 << 20)), true));
    let files = |keys: &str| jobs(&format!("[j]\n{keys}\n")).jobs[0].files.clone();
    assert_eq!(files("filesize=4k-64k").bytes, Some((4_096, 65_536)));
    assert_eq!(files("filesize=0").bytes, None);
    let service = files("file_service_type=random:8").service;
    assert_eq!((service.order, service.ios), (FileOrder::Random, 8));
    assert_eq!(jobs("[j]\nioengine=psync\niodepth=32\n").jobs[0].depth(), 1);
    assert_eq!(jobs("[j]\nioengine=io_uring\niodepth=32\n").jobs[0].depth(), 32);
}

/// Whatever is wrong is reported with file, line, key, and what would have been right.
#[test]
fn errors_have_a_place() {
    for (text, line, key, words) in [
        ("", 0, "", "no job"),
        ("[global]\nbs=4k\n", 0, "", "no job"),
        ("bs=4k\n[j]\n", 1, "bs", "before the first section"),
        ("[j]\n[k\n", 2, "", "`]`"),
        ("[j]\nfilesize=64k-4k\n", 2, "filesize", "such as 64k-1m"),
        ("[j]\nfile_service_type=zipf:1.2\n", 2, "file_service_type", "not supported yet"),
        ("[j]\nfile_service_type=random:0\n", 2, "file_service_type", "N I/Os in a row"),
        ("[j]\niodepht=4\n", 2, "iodepht", "did you mean `iodepth`"),
        ("[j]\nfrobnicate=4\n", 2, "frobnicate", "unknown key"),
        ("[j]\nBS=4k\n", 2, "BS", "unknown key"),
        ("[j]\n\nverify_backlog=8\n", 3, "verify_backlog", "not supported"),
        ("[j]\nsteadystate=iops\n", 2, "steadystate", "such as iops:5%"),
        ("[j]\nss=lat:5%\n", 2, "ss", "iops_slope"),
        ("[j]\nss=iops:5%\nss_dur=1\n", 3, "steadystate_duration", "2 to 100000 intervals"),
        ("[j]\nwait_for=k\n[k]\n", 2, "wait_for", "no job k above"),
        ("[j]\nexit_what=some\n", 2, "exit_what", "stonewall"),
        ("[j]\nignore_error=oops\n", 2, "ignore_error", "EILSEQ"),
        ("[j]\nbs_is_seq_rand\nrw=randread:4\n", 2, "bs_is_seq_rand", "rw=...:N"),
        ("[j]\nrw=randomwrite\n", 2, "rw", "expected read, write"),
        ("[j]\nrw=randwrite:0\n", 2, "rw", "N I/Os per random offset"),
        ("[j]\nrw=write:-100\n", 2, "rw", "multiples of 512"),
        ("[j]\nrw_sequencer=random\n", 2, "rw_sequencer", "identical"),
        ("[j]\nrw\n", 2, "rw", "has no value"),
        ("[j]\nbs=511\n", 2, "bs", "512"),
        ("[j]\nrw=randtrim\nbs=512\n", 3, "bs", "trims need"),
        ("[j]\nrw=write\nverify=crc32c\nbs=1k\n", 4, "bs", "verify needs"),
        ("[j]\nbs=4kib\n", 2, "bs", "kb_base=1000"),
        ("[j]\nbs=4k-16k\n", 2, "bs", "multiples"),
        ("[j]\nbs=0\n", 2, "bs", "multiples"),
        ("[j]\noffset=1000\n", 2, "offset", "multiple of 512"),
        ("[j]\nsize=lots\n", 2, "size", "512m"),
        ("[j]\nsize=-1\n", 2, "size", "512m"),
        ("[j]\nsize=4k\nbs=8k\n", 3, "size", "smaller than a block"),
        ("[j]\niodepth=0\n", 2, "iodepth", "from 1"),
        ("[j]\nruntime=10x\n", 2, "runtime", "200us"),
        ("[j]\nruntime=99999999999d\n", 2, "runtime", "200us"),
        ("[j]\nstartdelay=2-1\n", 2, "startdelay", "such as 0-10ms"),
        ("[j]\nstartdelay=1-\n", 2, "startdelay", "such as 0-10ms"),
        ("[j]\ntime_based\n", 2, "time_based", "needs a runtime"),
        ("[j]\nrwmixread=101\n", 2, "rwmixread", "0 to 100"),
        ("[j]\ndirect=yes\n", 2, "direct", "0 or 1"),
        ("[j]\nverify=sha\n", 2, "verify", "sha256"),
        ("[j]\nrandom_distribution=zipf:1\n", 2, "random_distribution", "not 1"),
        ("[j]\nrandom_distribution=pareto:nan\n", 2, "random_distribution", "between 0 and 1"),
        ("[j]\nrate=1m\nrate_iops=5\n", 3, "rate", "exclude"),
        ("[j]\nrw=trimwrite\nbs=4k,8k,4k\n", 3, "bs", "the same"),
        ("[j]\nsize=${NOT_SET}\n", 2, "size", "NOT_SET is not set"),
        ("[j]\nsize=${NOT\n", 2, "size", "`}`"),
        ("[j]\ninclude missing.fio\n", 2, "include", "missing.fio"),
    ] {
        let error = error(text);
        assert_eq!((error.place.line, error.key.as_deref().unwrap_or("")), (line, key), "{text}");
        let message = error.to_string();
        assert!(message.contains(words), "{message}");
        assert!(message.starts_with("test.fio"), "{message}");
    }
}

/// A runtime that is given from outside is that of every job, also of one that needs one and has none.
#[test]
fn a_runtime_is_given_from_outside() {
    let text = "[global]\ntime_based\n[a]\n[b]\nruntime=7\n";
    let runtime = "1.5s".parse().ok();
    let file = parse_for(text, "test.fio", &FakeEnvironment::default(), runtime).unwrap();
    for job in &file.jobs {
        assert_eq!(job.runtime, Some(Nanos::from_ms(1500)), "{}", job.name);
        assert_eq!(job.options.last(), Some(&("runtime".to_owned(), Some("1.5".to_owned()))));
    }
}

/// Included keys belong to the including section; paths are relative to the including file; a
/// file that includes itself is found out; sections stay out of included files.
#[test]
fn includes_are_read_in_place() {
    let mut world = FakeEnvironment::default();
    world.files.extend([
        ("dir/main.fio", "[j]\niodepth=2\ninclude sub/a.inc\n[k]\n"),
        ("dir/sub/a.inc", "bs=8k\ninclude b.inc\n"),
        ("dir/sub/b.inc", "iodepth=${DEPTH}\n"),
        ("loop.fio", "[j]\ninclude back.inc\n"),
        ("back.inc", "\ninclude loop.fio\n"),
        ("section.fio", "[j]\ninclude job.inc\n"),
        ("job.inc", "[k]\n"),
        ("tenfold.fio", "[j]\ninclude ten.inc\n"),
    ]);
    // Ten times ten times ten files, and those above them.
    let tenfold = |name: &str| format!("include {name}\n").repeat(10);
    let deep = [("ten.inc", tenfold("hundred.inc")), ("hundred.inc", tenfold("thousand.inc"))];
    let deep = deep.map(|(name, text)| (name, &*text.leak()));
    world.files.extend(
        deep.into_iter()
            .chain([("thousand.inc", &*tenfold("bs.inc").leak()), ("bs.inc", "bs=8k\n")]),
    );
    world.variables.insert("DEPTH", "9");
    let file = load(Path::new("dir/main.fio"), &world).unwrap();
    let seen: Vec<_> = file.jobs.iter().map(|job| (job.block_bytes[0], job.iodepth)).collect();
    assert_eq!(seen, [(8192, 9), (4096, 1)]);
    let cycle = load(Path::new("loop.fio"), &world).unwrap_err();
    assert_eq!(cycle.to_string(), "back.inc:2:1: include: loop.fio includes itself");
    let section = load(Path::new("section.fio"), &world).unwrap_err();
    assert_eq!(section.place.to_string(), "job.inc:1:1");
    assert!(load(Path::new("none.fio"), &world).is_err());
    let many = load(Path::new("tenfold.fio"), &world).unwrap_err();
    assert!(many.to_string().contains("include: more than 1000 files are included"), "{many}");
}

/// A line of a job file that is nearly right.
fn line() -> impl Strategy<Value = String> {
    let key = prop::sample::select(supported_keys().collect::<Vec<_>>());
    let value = prop_oneof![
        "[0-9]{1,22}(\\.[0-9]*)?[a-z%]{0,4}".prop_map(|text| text),
        "[a-z]{1,9}(:[0-9.]{1,6})?".prop_map(|text| text),
        "\\PC{0,12}".prop_map(|text| text),
    ];
    prop_oneof![
        1 => "\\[[a-z]{0,3}\\]?".prop_map(|text| text),
        1 => "\\PC{0,20}".prop_map(|text| text),
        8 => (key, value).prop_map(|(key, value)| format!("{key}={value}")),
    ]
}

proptest! {
    /// Whatever the text, the reader answers: with jobs, or with an error that has a place in it.
    #[test]
    fn no_text_is_too_strange(lines in prop::collection::vec(line(), 0..12)) {
        let text = format!("[job]\n{}", lines.join("\n"));
        if let Err(error) = parse(&text, "test.fio", &FakeEnvironment::default()) {
            prop_assert!(error.place.line as usize <= lines.len() + 1);
        }
    }
}

/// Engines that do not read and write would be another workload.
#[test]
fn engines_of_other_things_are_refused() {
    for engine in ["bogus", "filecreate", "cpuio"] {
        let text = format!("[j]\nioengine={engine}\n");
        let error = parse(&text, "a.fio", &FakeEnvironment::default()).unwrap_err().to_string();
        let place = error.starts_with("a.fio:2:1: ioengine: cannot be ");
        assert!(place && error.contains("an engine that reads and writes: sync, psync"), "{error}");
    }
}
