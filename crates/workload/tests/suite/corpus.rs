//! Every supported key is used by a job file of `tests/jobs` or `examples`, and all of them run.

use crate::common;

use nandscape_block::zone::ZoneLimits;
use nandscape_block::{BlockDevice, DeviceCaps, FakeDevice, MemDevice, Region, RegionKind};
use nandscape_rt::Nanos;
use nandscape_workload::engine::{Engine, JobResult, NoProbe, Options, Results};
use nandscape_workload::fio::{Environment, HostEnvironment, JobFile, load, supported_keys};
use std::path::{Path, PathBuf};

/// 256 MiB.
const SECTORS: u64 = 65_536;

/// The files that need more than that: 256 GiB, for the first second of virtual time.
const LARGE_FILES: [&str; 3] = ["bursts.fio", "f2fs-memory.fio", "zones-beside.fio"];
const LARGE_SECTORS: u64 = 1 << 26;
const LARGE_UNTIL: Nanos = Nanos::from_secs(1);

struct Environs;

impl Environment for Environs {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        HostEnvironment.read(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        (name == "DEPTH").then(|| "4".into())
    }
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension() == Some("fio".as_ref())).collect();
    files.sort();
    files
}

/// The files that need a device with zones.
const ZONED_FILES: [&str; 1] = ["zns.fio"];

/// 4 MiB zones of which 3 MiB can be written, behind 16 MiB.
fn zoned() -> FakeDevice {
    let limits = ZoneLimits {
        zone_sectors: 1_024,
        capacity: 768,
        max_open: 14,
        max_active: 14,
        ..ZoneLimits::default()
    };
    let random = Region::new(0..4_096, RegionKind::Random);
    let zones = Region::new(4_096..SECTORS, RegionKind::Zones(limits));
    let regions = Box::new([random, zones]);
    let caps = DeviceCaps { regions, ..DeviceCaps::conventional(SECTORS) };
    FakeDevice::new(caps).unwrap().with_latency(Nanos::from_ms(1))
}

/// Sectors of the device that a file runs on, and when its run is cut off.
fn device_of(path: &Path) -> (u64, Option<Nanos>) {
    let is_large = LARGE_FILES.iter().any(|name| path.ends_with(name));
    if is_large { (LARGE_SECTORS, Some(LARGE_UNTIL)) } else { (SECTORS, None) }
}

fn run(file: &JobFile, device: &mut impl BlockDevice, until: Option<Nanos>) -> Results<()> {
    let mut engine = Engine::new(file, device.caps(), &Options::default())
        .unwrap_or_else(|error| panic!("{error}"));
    engine.run_until(device, &mut NoProbe, until).unwrap_or_else(|error| panic!("{error}"));
    engine.finish()
}

/// Each file is understood and runs on a device that keeps its word.
#[test]
fn every_file_runs() {
    for path in [files("tests/jobs"), files("../../examples")].concat() {
        let file = load(&path, &Environs).unwrap_or_else(|error| panic!("{error}"));
        let (sectors, until) = device_of(&path);
        let results = match ZONED_FILES.iter().any(|name| path.ends_with(name)) {
            true => run(&file, &mut zoned(), until),
            false => {
                run(&file, &mut MemDevice::new(sectors).with_latency(Nanos::from_ms(1)), until)
            }
        };
        let has_run = |job: &JobResult| job.directions.iter().any(|direction| direction.ios > 0);
        for job in &results.jobs {
            assert!(!job.failed(), "{}: {:?}", path.display(), job.failures);
            assert!(has_run(job) || until.is_some());
        }
        assert!(results.jobs.iter().any(has_run));
    }
}

/// No key is supported without a file that uses it.
#[test]
fn every_key_is_used() {
    let texts: Vec<String> =
        files("tests/jobs").iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let used = |key: &str| {
        let mut lines = texts.iter().flat_map(|text| text.lines());
        lines.any(|line| line.split('=').next().is_some_and(|word| word.trim() == key))
    };
    let unused: Vec<&str> = supported_keys().filter(|key| !used(key)).collect();
    assert_eq!(unused, [] as [&str; 0]);
}

/// Jobs in the style of what comes with fio and what people write, for disks larger than ours: each is understood,
/// and runs on a small device for a while when its sizes are scaled.
#[test]
fn jobs_of_other_disks_run() {
    for path in files("tests/styles") {
        let file = load(&path, &Environs).unwrap_or_else(|error| panic!("{error}")).fit();
        let file = file.fitted(SECTORS * 4_096).map_or(file, |(fitted, _)| fitted);
        let mut device = MemDevice::new(SECTORS).with_latency(Nanos::from_ms(1));
        let results = run(&file, &mut device, Some(Nanos::from_secs(60)));
        for job in &results.jobs {
            assert!(!job.failed(), "{}: {:?}", path.display(), job.failures);
            let names: Vec<_> = file.jobs.iter().map(|spec| spec.name.as_str()).collect();
            assert!(names.contains(&job.name.as_str()));
        }
        let first = &results.jobs[0];
        assert!(first.directions.iter().any(|direction| direction.ios > 9), "{}", path.display());
    }
}

/// A file with keys of versions of fio after the one that Debian has.
const NEWER_FILES: [&str; 1] = ["newer.fio"];

/// fio itself understands each file: what is supported here is fio's own.
#[test]
fn fio_parses_every_file() {
    let all = [files("tests/jobs"), files("tests/styles"), files("../../examples")].concat();
    let known = |path: &&PathBuf| !NEWER_FILES.iter().any(|name| path.ends_with(name));
    for path in all.iter().filter(known) {
        let Some(mut fio) = common::fio() else { return };
        let output = fio.arg("--parse-only").arg(path).env("DEPTH", "4").output().unwrap();
        let output_text = [output.stdout, output.stderr].concat();
        let output_text = String::from_utf8_lossy(&output_text);
        assert!(
            output.status.success() && output_text.is_empty(),
            "{}: {output_text}",
            path.display()
        );
    }
}
