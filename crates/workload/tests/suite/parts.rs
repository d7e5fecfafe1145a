//! I/Os that begin or end within a sector of the device: what reaches the device, and what is counted.

use crate::common;

use common::TestDevice;
use nandscape_block::Op;
use nandscape_rt::Nanos;
use nandscape_workload::Direction;

/// What reached the device: the operation, first sector, sectors.
fn requests(device: &TestDevice) -> Vec<(Op, u64, u32)> {
    device.log.iter().map(|(_, bio)| (bio.op, bio.lba.0, bio.sectors)).collect()
}

/// A write reads the sectors that it covers in part, and then writes whole ones; its latency has both.
#[test]
fn a_partial_write_is_a_read_modify_write() {
    let mut device = TestDevice::new(64);
    device.spread_ns = 0;
    let text = "[j]\nrw=write\nbs=512\nsize=1k\n[k]\nstonewall\nrw=write\nbs=6k\noffset=1k\nnumber_ios=1\n\
                [l]\nstonewall\nrw=write\nbs=13k\noffset=3584\nnumber_ios=1\n\
                [m]\nstonewall\nrw=write\nbs=5k\nnumber_ios=2\n";
    let results = common::run(text, &mut device);
    let expected = [
        (Op::Read, 0, 1),
        (Op::Write, 0, 1),
        (Op::Read, 0, 1),
        (Op::Write, 0, 1),
        (Op::Read, 0, 2),
        (Op::Write, 0, 2),
        (Op::Read, 0, 1),
        (Op::Read, 4, 1),
        (Op::Write, 0, 5),
        (Op::Read, 1, 1),
        (Op::Write, 0, 2),
        (Op::Read, 1, 2),
        (Op::Write, 1, 2),
    ];
    assert_eq!(requests(&device), expected);
    let [j, k, l, m] = &results.jobs[..] else { panic!("{}", results.jobs.len()) };
    assert_eq!([j, k, l, m].map(|job| job.unaligned), [[0, 2, 0], [0, 1, 0], [0, 1, 0], [0, 2, 0]]);
    let writes = j.direction(Direction::Write);
    assert_eq!((writes.ios, writes.bytes), (2, 1024));
    assert_eq!(writes.latency.min(), Nanos(20_000), "a read and a write");
    assert_eq!(m.direction(Direction::Write).bytes, 10 * 1024);
    assert!([j, k, l, m].iter().all(|job| job.direction(Direction::Read).ios == 0));
}

/// A read takes all sectors that it touches; I/Os that cover whole ones are as ever.
#[test]
fn a_partial_read_is_widened() {
    let mut device = TestDevice::new(64);
    let text = "[j]\nrw=read\nbs=2k\nsize=8k\n[k]\nstonewall\nrw=read\nbs=6k\nsize=24k\n";
    let results = common::run(text, &mut device);
    let reads = [(0, 1), (0, 1), (1, 1), (1, 1), (0, 2), (1, 2), (3, 2), (4, 2)];
    assert_eq!(requests(&device), reads.map(|(lba, sectors)| (Op::Read, lba, sectors)));
    assert_eq!(results.jobs[0].direction(Direction::Read).bytes, 8 * 1024);
    assert_eq!(results.jobs[1].unaligned, [4, 0, 0]);
    let text = "[j]\nrw=randwrite\nbsrange=4k-16k\nblockalign=512\nsize=64k\nio_size=1g\nnumber_ios=40\n[k]\nrw=write\nbs=4k\nsize=64k\n";
    let results = common::run(text, &mut TestDevice::new(64));
    assert!((20..40).contains(&results.jobs[0].unaligned[1]), "most begin within a sector");
    assert_eq!(results.jobs[1].unaligned, [0; 3]);
}

/// Reads and writes of many requests in flight, with every feature that looks at completions, are all counted
/// and transfer what was asked for.
#[test]
fn partial_requests_meet_other_keys() {
    for keys in [
        "iodepth=8",
        "iodepth=8\nfsync=3",
        "iodepth=8\nsync=1",
        "thinktime=10\nthinktime_blocks=3",
        "rate_iops=50000",
        "rate=40m\nrate_process=poisson",
        "iodepth=8\niodepth_low=2\niodepth_batch_complete_min=2",
        "latency_target=1s\nlatency_window=1ms\nlatency_percentile=90\nlatency_run=1\niodepth=4",
        "loops=2",
        "end_fsync=1",
        "percentage_random=50",
        "bssplit=512/20:3k/30:4k/50",
        "norandommap\nrandom_distribution=zipf:1.2",
    ] {
        for (pending, sectors) in [(false, 0), (true, 1)] {
            let mut device = TestDevice::new(256);
            (device.pending, device.caps.max_sectors) = (pending, sectors);
            let text = format!("[j]\nrw=randrw\nbs=1536\nsize=192k\n{keys}\n");
            let results = common::run(&text, &mut device);
            let job = &results.jobs[0];
            assert!(!job.failed(), "{keys}: {:?}", job.failures);
            let bytes: u64 = job.directions.iter().map(|direction| direction.bytes).sum();
            let loops = if keys.starts_with("loops") { 2 } else { 1 };
            let range = (192 * 1024 - 1536) * loops..=192 * 1024 * loops;
            assert!(range.contains(&bytes), "{keys}: {bytes}");
            assert!(job.unaligned[0] > 0 && job.unaligned[1] > 0, "{keys}");
        }
    }
}

/// A device that fails the read of a sector fails the write that needs it, and nothing is written.
#[test]
fn a_failed_read_fails_the_write() {
    let mut device = TestDevice::new(64);
    device.defect = Some(common::Defect::Fails(1));
    let results = common::run("[j]\nrw=write\nbs=512\nsize=8k\n", &mut device);
    let job = &results.jobs[0];
    assert!(job.failed());
    assert_eq!(job.direction(Direction::Write).ios, 8);
    assert!(device.targets(Op::Write).iter().all(|lba| *lba == 0));
}

/// A job that verifies is not misled by one that writes parts of the same sectors.
#[test]
fn verify_leaves_out_mixed_sectors() {
    let text = "[v]\nrw=write\nverify=crc32c\nsize=64k\nthinktime=50\n[p]\nrw=randwrite\nbs=512\nsize=32k\n";
    let results = common::run(text, &mut TestDevice::new(64));
    assert!(!results.failed(), "{:?}", results.jobs[0].failures);
    assert!(results.jobs[0].verified_sectors >= 8);
}

/// The sizes of JESD219's enterprise workload come in the shares that it has, and reads are 40 %.
#[test]
fn jesd219_has_its_shares() {
    let text = include_str!("../../../../examples/jesd219.fio");
    let text = text.replace("runtime=100ms\ntime_based\n", "number_ios=100000\nio_size=100g\n");
    let text = text.replace("numjobs=4\n", "write_iolog=log\n");
    let results = common::run(&text, &mut TestDevice::new(1 << 18));
    let mut log = Vec::new();
    results.iologs[0].write_to(&mut log).unwrap();
    let log = String::from_utf8(log).unwrap();
    let ios: Vec<(&str, u64, u64)> = log
        .lines()
        .filter_map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [_, _, what, offset, bytes] => Some((what, offset.parse().ok()?, bytes.parse().ok()?)),
            _ => None,
        })
        .collect();
    assert_eq!(ios.len(), 100_000);
    let percent = |count: usize| count as f64 / 1_000.0;
    let share = |bytes: u64| percent(ios.iter().filter(|io| io.2 == bytes).count());
    let split = [
        (512, 4.0),
        (1_024, 1.0),
        (1_536, 1.0),
        (2_048, 1.0),
        (2_560, 1.0),
        (3_072, 1.0),
        (3_584, 1.0),
        (4_096, 67.0),
        (8_192, 10.0),
        (16_384, 7.0),
        (32_768, 3.0),
        (65_536, 3.0),
    ];
    for (bytes, expected) in split {
        assert!((share(bytes) - expected).abs() < 0.5, "{bytes}: {} %", share(bytes));
    }
    assert!((percent(ios.iter().filter(|io| io.0 == "read").count()) - 40.0).abs() < 0.5);
    assert!(ios.iter().all(|io| io.1 % 4096 == 0));
    let hot = ios.iter().filter(|io| io.1 < (1 << 30) / 20).count();
    assert!((percent(hot) - 50.0).abs() < 0.5, "{} %", percent(hot));
    let parts = results.jobs[0].unaligned;
    assert!((percent((parts[0] + parts[1]) as usize) - 10.0).abs() < 0.5, "{parts:?}");
}
