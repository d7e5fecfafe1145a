//! `verify` reads again what was written, accepts a device that keeps its word, and catches one that
//! does not.

use crate::common;

use common::{Defect, TestDevice, run, try_run};
use nandscape_block::{Op, Region, RegionKind};
use nandscape_workload::Direction;
use nandscape_workload::engine::{Content, FailureKind};

const SECTORS: u64 = 500;

/// Jobs that write in every way, on a device that may be broken.
const JOBS: &[&str] = &[
    "rw=write",
    "rw=randwrite\niodepth=16",
    "rw=randwrite\nbs=16k\niodepth=4\nloops=2",
    "rw=randwrite\nnorandommap\niodepth=16\nio_size=8000k",
    "rw=randrw\niodepth=8\nio_size=6000k",
    "rw=rw\nbs=4k,12k\niodepth=3",
];

fn job(keys: &str) -> String {
    format!("[job]\n{keys}\nverify=crc32c\n")
}

/// Every block that was written is read again, in ascending order, and found right.
#[test]
fn an_honest_device_passes() {
    for keys in JOBS {
        let mut device = TestDevice::new(SECTORS);
        let results = run(&job(keys), &mut device);
        assert!(!results.failed(), "{keys}: {:?}", results.jobs[0].failures);
        assert!(results.jobs[0].verified_sectors >= 200, "{keys}");
    }
    let mut device = TestDevice::new(SECTORS);
    let results = run(&job("rw=randwrite\niodepth=5"), &mut device);
    assert_eq!(device.targets(Op::Read), (0..SECTORS).collect::<Vec<_>>());
    assert_eq!(results.jobs[0].verified_sectors, SECTORS);
    assert_eq!(results.jobs[0].direction(Direction::Read).ios, SECTORS);
}

/// Sizes that are drawn are read again as they were written, whatever the order was.
#[test]
fn blocks_are_read_again_as_they_were_written() {
    for keys in ["rw=randwrite\nbsrange=4k-32k", "rw=write\nbssplit=4k/50:12k/20:16k/30\niodepth=8"]
    {
        let mut device = TestDevice::new(SECTORS);
        let results = run(&job(keys), &mut device);
        assert!(!results.failed(), "{keys}: {:?}", results.jobs[0].failures);
        let ios = |op: Op| {
            let ios = device.log.iter().filter(|(_, bio)| bio.op == op);
            ios.map(|(_, bio)| (bio.lba.0, bio.sectors)).collect::<Vec<_>>()
        };
        let (mut written, read) = (ios(Op::Write), ios(Op::Read));
        written.sort_unstable();
        assert_eq!(read, written, "{keys}");
        assert!(read.iter().any(|(_, sectors)| *sectors > 1), "{keys}");
    }
}

/// A lost or misplaced write is found, with the sector, what was expected and what came.
#[test]
fn a_lying_device_is_caught() {
    for keys in JOBS {
        for defect in [Defect::LosesWrite(31), Defect::MisplacesWrite(31)] {
            let mut device = TestDevice::new(SECTORS);
            device.defect = Some(defect);
            let results = run(&job(keys), &mut device);
            assert!(results.failed(), "{keys} {defect:?}");
        }
    }
    let mut device = TestDevice::new(SECTORS);
    device.defect = Some(Defect::LosesWrite(31));
    let results = run(&job("rw=write"), &mut device);
    let failure = &results.jobs[0].failures[0];
    assert_eq!(failure.lba.0, 30);
    let expected = Content::Written { lba: failure.lba, version: 31 };
    assert_eq!(failure.what, FailureKind::Mismatch { expected, got: Content::Zeroes });
}

/// A trimmed block must read as zeroes where the device says so, and is not judged where it does not.
#[test]
fn lost_trims_are_caught() {
    let text = "[fill]\nrw=write\nverify=md5\n[trim]\nstonewall\nrw=randtrim\nio_size=50%\n\
                [read]\nstonewall\nrw=read\nverify=md5\n";
    let mut device = TestDevice::new(SECTORS);
    let results = run(text, &mut device);
    assert!(!results.failed());
    assert_eq!(results.jobs[2].verified_sectors, SECTORS);
    device = TestDevice::new(SECTORS);
    device.defect = Some(Defect::LosesDiscard);
    assert!(run(text, &mut device).jobs[2].failed());
    device = TestDevice::new(SECTORS);
    device.defect = Some(Defect::LosesDiscard);
    device.caps.discard_zeroes = false;
    let results = run(text, &mut device);
    assert!(!results.failed());
    assert_eq!(results.jobs[2].unverified_sectors, SECTORS / 2);
}

/// `do_verify=0` writes only; `continue_on_error=verify` goes on to the end.
#[test]
fn verification_can_be_put_off_and_can_go_on() {
    let mut device = TestDevice::new(SECTORS);
    device.defect = Some(Defect::LosesWrite(31));
    run("[job]\nrw=write\nverify=md5\ndo_verify=0\n", &mut device);
    assert!(device.targets(Op::Read).is_empty());
    device = TestDevice::new(SECTORS);
    device.defect = Some(Defect::LosesWrite(31));
    let results = run("[job]\nrw=write\nverify=md5\ncontinue_on_error=verify\n", &mut device);
    assert!(!results.failed());
    assert_eq!(results.jobs[0].direction(Direction::Read).ios, SECTORS);
    assert_eq!(results.jobs[0].errors, SECTORS / 31);
}

/// `verify=null` reads what was written, and compares nothing.
#[test]
fn null_reads_without_comparing() {
    let mut device = TestDevice::new(64);
    device.defect = Some(Defect::LosesWrite(3));
    let results = run("[job]\nrw=write\nverify=null\n", &mut device);
    assert!(!results.failed());
    assert_eq!(device.targets(Op::Read), (0..64).collect::<Vec<_>>());
    assert_eq!(results.jobs[0].verified_sectors, 0);
}

/// Jobs without files do their I/O in the region that is writable at random, and nowhere else.
#[test]
fn jobs_stay_within_the_random_region() {
    let text = "[job]\nrw=randwrite\nverify=md5\n";
    let mut device = TestDevice::new(SECTORS);
    device.caps.regions = [
        Region::new(0..100, RegionKind::Append),
        Region::new(100..160, RegionKind::Random),
        Region::new(400..500, RegionKind::DeviceOwned { of: 0 }),
    ]
    .into();
    let results = run(text, &mut device);
    assert!(!results.failed());
    assert_eq!(results.jobs[0].verified_sectors, 60);
    assert!(device.log.iter().all(|(_, bio)| (100..160).contains(&bio.lba.0)));
    device.caps.regions = [Region::new(0..100, RegionKind::Append)].into();
    let refused = try_run(text, &mut device).expect_err("no sector is writable at random");
    assert!(refused.to_string().contains("writable at random"), "{refused}");
}
