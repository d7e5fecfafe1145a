//! Jobs with `zonemode=zbd` on zoned SSDs: no command breaks a rule of its zone, what jobs count is what the device
//! counts, and the report at the end says where they left the zones.

use nandscape_block::zone::ZoneState;
use nandscape_ftl::Detail;
use nandscape_lab::run::{
    NoObserver, Outcome, RunError, RunOptions, ZoneReport, run as run_in_lab,
};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::fio::{HostEnvironment, parse};

fn run_in(
    stack: &str,
    set: &[&str],
    job: &str,
    options: RunOptions<'_>,
) -> Result<Outcome, RunError> {
    let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
    let stack = Stack::load(stack, &set).unwrap_or_else(|error| panic!("{error}"));
    let job = parse(job, "z.fio", &HostEnvironment).unwrap_or_else(|error| panic!("{error}"));
    run_in_lab(&stack, &job, 1, options, &mut NoObserver)
}

fn run(set: &[&str], job: &str) -> Outcome {
    run_in("zns", set, job, RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Resets that the device served, and commands that it refused.
fn device_counts(outcome: &Outcome) -> (u64, u64) {
    let Detail::Zoned(counts) = &outcome.ftl_detail else { panic!("a zoned SSD") };
    (counts.resets, counts.refused)
}

fn report(outcome: &Outcome) -> &ZoneReport {
    outcome.zones.as_ref().expect("zones")
}

/// Sectors below all write pointers.
fn written(outcome: &Outcome) -> u64 {
    report(outcome).zones.iter().map(|zone| zone.written()).sum()
}

/// Jobs of all kinds beside each other, with and without a random region, on zones that are shorter than their distance,
/// with few open zones.
#[test]
fn no_command_is_refused() {
    let job = "[global]\ndirect=1\nzonemode=zbd\nbs=64k\niodepth=8\nsize=1g\nio_size=512m\n[a]\nrw=write\n\
               [b]\nrw=randwrite\nnumjobs=3\nzone_reset_threshold=0.3\nzone_reset_frequency=0.02\n\
               [c]\nrw=randrw\nbsrange=4k-128k\nfsync=50\n[d]\nrw=randread\nbs=4k\nio_size=8m\n\
               [e]\nrw=randtrim\nbs=64m\niodepth=1\nio_size=512m\nrate_iops=20\n";
    for set in [
        &[][..],
        &["ftl.zone.capacity=48MiB", "ftl.zone.max_open=4", "ftl.zone.max_active=5"],
        &["ftl.zone.capacity=36MiB", "ftl.zone.max_open=1", "ftl.zone.max_active=1"],
    ] {
        let outcome = run(set, job);
        assert!(!outcome.workload.failed(), "{set:?}: {:?}", outcome.workload.jobs[0].failures);
        let zones = outcome.workload.totals().zones.expect("zbd");
        assert!(zones.resets > 5, "{set:?}: {zones:?}");
        assert_eq!(device_counts(&outcome), (zones.resets, 0), "{set:?}");
    }
}

/// A sequence written twice: each zone is reset once, and full at the end; the report has it all.
#[test]
fn zones_are_reported_where_jobs_left_them() {
    let job = "[w]\ndirect=1\nzonemode=zbd\nrw=write\nbs=256k\niodepth=4\noffset=192m\nsize=640m\nloops=2\n\
               [part]\nstonewall\ndirect=1\nzonemode=zbd\nrw=write\nbs=64k\noffset=832m\nsize=64m\nnumber_ios=100\n";
    let outcome = run(&["ftl.zone.capacity=48MiB", "ftl.op_percent=20"], job);
    let zones = outcome.workload.jobs[0].zones.as_ref().expect("zbd");
    assert_eq!((zones.resets, zones.begun, zones.filled), (10, 20, 20));
    assert_eq!(device_counts(&outcome), (10, 0));
    let report = report(&outcome);
    let sizes = (report.zone_sectors, report.random_sectors, report.capacity());
    assert_eq!(sizes, (16_384, 49_152, 12_288));
    let states: Vec<_> = report.states().collect();
    assert_eq!(states, [("EMPTY", 86), ("IMP_OPENED", 1), ("FULL", 10)]);
    assert_eq!(written(&outcome), 10 * 12_288 + 100 * 16);
    let json = outcome.to_json("none");
    let zones = &json["nandscape"]["zones"];
    assert_eq!(zones["states"]["IMP_OPENED"], 1);
    assert_eq!((&zones["count"], &zones["resets"]), (&97.into(), &10.into()));
    assert_eq!(
        (&json["jobs"][0]["zone_resets"], &json["jobs"][1]["zone_resets"]),
        (&10.into(), &0.into())
    );
    assert_eq!(json["nandscape"]["totals"]["zones"]["filled"], 20);
    let open = &report.list()[10];
    let at = 49_152 + 10 * 16_384;
    assert_eq!((&open["slba"], &open["wp"]), (&at.into(), &(at + 1_600).into()));
    assert_eq!((&open["state"], &open["type"]), (&"IMP_OPENED".into(), &"SEQWRITE_REQ".into()));
}

/// What is read is what was written, in zones and in the region in front of them.
#[test]
fn content_is_verified() {
    let job =
        "[w]\ndirect=1\nzonemode=zbd\nrw=randwrite\nbs=64k\niodepth=8\nsize=512m\nverify=crc32c\n";
    let outcome = run(&["ftl.zone.capacity=48MiB", "ftl.zone.max_open=3"], job);
    let job = &outcome.workload.jobs[0];
    assert!(!job.failed(), "{:?}", job.failures);
    assert!(job.verified_sectors > 50_000, "{}", job.verified_sectors);
    assert_eq!(device_counts(&outcome).1, 0);
}

/// Beside a job that reads through the page cache, resets still reach the device, and drop what was cached.
#[test]
fn resets_pass_the_page_cache() {
    let zbd = "direct=1\nzonemode=zbd\nrw=write\nbs=128k\noffset=192m\nsize=128m\nverify=md5\n";
    let job = format!(
        "[w]\n{zbd}[r]\nstonewall\nrw=read\nbs=64k\noffset=192m\nsize=128m\n[again]\nstonewall\n{zbd}\
         [last]\nstonewall\nrw=read\nbs=64k\noffset=192m\nsize=128m\nverify=md5\n"
    );
    let outcome = run(&[], &job);
    assert!(!outcome.workload.failed(), "{:?}", outcome.workload.jobs);
    assert_eq!(device_counts(&outcome), (2, 0));
    assert_eq!(outcome.workload.jobs[3].verified_sectors, 32_768);
}

/// A device that is written in large units takes jobs whose blocks are multiples of these, and names them to others.
#[test]
fn write_units_of_the_device_count() {
    let job = |block: &str| {
        format!("[w]\ndirect=1\nzonemode=zbd\nrw=write\nbs={block}\nsize=10%\nio_size=1g\n")
    };
    let outcome = run_in("zns-prototype", &[], &job("256k"), RunOptions::default()).expect("fits");
    assert!(!outcome.workload.failed());
    assert_eq!(device_counts(&outcome).1, 0);
    let error =
        run_in("zns-prototype", &[], &job("64k"), RunOptions::default()).expect_err("too small");
    assert!(
        error.is_bad_input() && error.to_string().contains("z.fio:1:1: job w: bs of writes"),
        "{error}"
    );
}

/// Writes that reach into zones need the zonemode, and the error says so before anything runs.
#[test]
fn writes_without_the_zonemode_are_bad_input() {
    let job = "[w]\nrw=randwrite\ndirect=1\n";
    let error = run_in("zns", &[], job, RunOptions::default()).expect_err("zones");
    assert!(error.is_bad_input() && error.to_string().contains("zonemode=zbd"), "{error}");
    let front = run(&[], "[w]\nrw=randwrite\ndirect=1\nsize=192m\nio_size=16m\n");
    assert!(!front.workload.failed());
    assert!(report(&front).zones.iter().all(|zone| zone.state == ZoneState::Empty));
}

/// What a file system cannot write is refused by what it lacks, at the place in the stack, before anything is written.
#[test]
fn file_systems_refuse_zones_that_they_cannot_use() {
    let job = "[w]\nrw=write\nsize=1m\n";
    let few = ["ftl.zone.max_open=4", "ftl.zone.max_active=6"];
    let journalled = "6 logs and a GC journal on a device of 6 active zones";
    for (stack, set, expected) in [
        ("zns-prototype", &["fs.kind=f2fs", "media.payload=tags"][..], "units of 128 KiB"),
        ("zns", &["fs.kind=ext4"], "192 MiB are writable at random"),
        ("f2fs-zns", &["fs.allocation=adaptive"], "\"lfs\" alone"),
        ("f2fs-zns", &["ftl.random.size=0"], "a region that is writable at random"),
        ("f2fs-zns", &["ftl.random.size=64MiB"], "the metadata takes 128 MiB"),
        ("f2fs-zns", &["ftl.zone.max_open=4", "ftl.zone.max_active=5"], "6 logs on a device of 5"),
        ("f2fs-gcj-zns", &few, journalled),
    ] {
        let error = run_in(stack, set, job, RunOptions::default()).expect_err(expected).to_string();
        assert!(error.contains(": fs") && error.contains(expected), "{stack}: {error}");
    }
    let mounts = run_in("f2fs-zns", &few, job, RunOptions::default());
    assert!(!mounts.unwrap_or_else(|error| panic!("{error}")).workload.failed());
}

/// Rounds until steady state count zones as they count I/Os: those of the window.
#[test]
fn rounds_count_their_zones() {
    let job = "[w]\ndirect=1\nzonemode=zbd\nrw=randwrite\nnorandommap\nbs=128k\niodepth=8\noffset=192m\nsize=1g\n\
               io_size=1m\n";
    let options = RunOptions {
        until_steady: Some("round=5%,rounds=12".parse().expect("rounds")),
        ..RunOptions::default()
    };
    let outcome = run_in("zns", &[], job, options).unwrap_or_else(|error| panic!("{error}"));
    let job = &outcome.workload.jobs[0];
    let zones = job.zones.as_ref().expect("zbd");
    let bytes = job.direction(Direction::Write).bytes;
    assert!(
        zones.resets > 0 && zones.resets.abs_diff(bytes >> 26) < 16,
        "{zones:?} of {bytes} bytes"
    );
    assert_eq!(device_counts(&outcome).0, zones.resets);
}
