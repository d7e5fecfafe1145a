//! How large I/Os are and where they go: block sizes, alignment, zones, strides, offsets of clones.

use crate::common;

use common::{TestDevice, jobs, run, try_run};
use nandscape_block::{Bio, Op, Placement};
use nandscape_workload::Direction;
use nandscape_workload::engine::EngineError;
use nandscape_workload::fio::BlockSizes;

const SECTORS: u64 = 1 << 16;

fn bios(text: &str) -> Vec<Bio> {
    let mut device = TestDevice::new(SECTORS);
    let results = run(&format!("[job]\n{text}\n"), &mut device);
    assert!(!results.failed());
    device.log.into_iter().map(|(_, bio)| bio).collect()
}

/// Share of the bios of so many sectors, in percent.
fn share(bios: &[Bio], sectors: u32) -> f64 {
    let count = bios.iter().filter(|bio| bio.sectors == sectors).count();
    count as f64 * 100.0 / bios.len() as f64
}

fn near(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() < tolerance, "{value}, expected {expected}");
}

/// Every multiple of the least size is equally likely, in each direction's own range.
#[test]
fn bsrange_is_even() {
    let bios = bios(
        "rw=randrw\nnorandommap\nbsrange=4k-16k,8k-32k\nnumber_ios=40000\nio_size=10g\nrandrepeat=0",
    );
    let (reads, writes): (Vec<Bio>, Vec<Bio>) =
        bios.into_iter().partition(|bio| bio.op == Op::Read);
    for sectors in 1..=4 {
        near(share(&reads, sectors), 25.0, 1.2);
        near(share(&writes, 2 * sectors), 25.0, 1.2);
    }
}

/// Shares are those of `bssplit`; what is left out shares the rest; it wins over `bs`.
#[test]
fn bssplit_has_its_shares() {
    let keys = "norandommap\nbssplit=4k/50:64k/50,4k/10:16k/:32k/\nnumber_ios=40000\nio_size=10g\nbs=8k\nrandrepeat=0";
    let reads = bios(&format!("rw=randread\n{keys}"));
    near(share(&reads, 1), 50.0, 1.0);
    near(share(&reads, 16), 50.0, 1.0);
    let writes = bios(&format!("rw=randwrite\n{keys}"));
    for (sectors, percent) in [(1, 10.0), (4, 45.0), (8, 45.0)] {
        near(share(&writes, sectors), percent, 1.0);
    }
    assert_eq!(bios(&format!("rw=randread\n{keys}")), reads, "the same seed, the same sizes");
}

/// The forms of fio's manual, and what fio makes of percentages that do not add up.
#[test]
fn splits_are_completed_as_in_fio() {
    let split = |text: &str| {
        let file = jobs(&format!("[j]\nbssplit={text}\n"));
        Direction::ALL.map(|direction| file.jobs[0].sizes(direction))
    };
    let both = BlockSizes::Split(vec![(4096, 50), (8192, 25), (16_384, 25)]);
    assert_eq!(split("4k/50:8k/:16k/"), [both.clone(), both.clone(), both.clone()]);
    let small = BlockSizes::Split(vec![(4096, 100)]);
    assert_eq!(split("4k,4k/50:8k/:16k")[..2], [small.clone(), both.clone()]);
    assert_eq!(split("4k,,4k/50:8k:16k"), [small.clone(), BlockSizes::Fixed(4096), both]);
    let short = BlockSizes::Split(vec![(4096, 20), (8192, 80)]);
    assert_eq!(split("4k/20:8k/30")[0], short, "the largest share takes what is left");
    assert_eq!(jobs("[j]\nbsrange=16k-4k\n").jobs[0].sizes(Direction::Read).max(), 16_384);
}

/// With the random map a pass touches every block exactly once, whatever the sizes; an I/O ends
/// where another one has been.
#[test]
fn a_pass_of_different_sizes_covers_every_block_once() {
    for sizes in ["bsrange=4k-64k", "bssplit=4k/10:32k/90", "bsrange=8k-24k"] {
        let mut touched = vec![0; SECTORS as usize];
        for bio in bios(&format!("rw=randwrite\n{sizes}")) {
            let first = bio.lba.0 as usize;
            touched[first..first + bio.sectors as usize].iter_mut().for_each(|count| *count += 1);
        }
        assert!(touched.iter().all(|count| *count == 1), "{sizes}");
    }
}

/// Sequential I/O of different sizes has neither gaps nor overlaps, and counts its bytes.
#[test]
fn sequential_sizes_follow_on_each_other() {
    let mut device = TestDevice::new(SECTORS);
    let results = run("[job]\nrw=write\nbssplit=4k/50:20k/50\nsize=1m\n", &mut device);
    let mut next = 0;
    for (_, bio) in &device.log {
        assert_eq!(bio.lba.0, next);
        next += u64::from(bio.sectors);
    }
    let write = results.jobs[0].direction(Direction::Write);
    assert_eq!((next, write.bytes, write.ios), (256, 1 << 20, device.log.len() as u64));
}

/// Random I/O lies on multiples of `blockalign`, also where it is less than a block; then without
/// the random map. Sequential I/O does not care.
#[test]
fn blockalign_decides_where_random_io_lies() {
    let wide = bios("rw=randread\nblockalign=64k\nnumber_ios=2000\nio_size=1g");
    assert!(wide.iter().all(|bio| bio.lba.0.is_multiple_of(16) && bio.sectors == 1));
    let narrow = bios("rw=randwrite\nbs=16k\nba=4k\nnumber_ios=2000\nsize=1m\nio_size=1g");
    let beyond = |bio: &&Bio| !bio.lba.0.is_multiple_of(4);
    near(narrow.iter().filter(beyond).count() as f64, 1500.0, 80.0);
    assert_eq!(narrow.iter().map(|bio| bio.lba.0).max(), Some(252), "the last one that fits");
    let sequential = bios("rw=write\nba=64k\nnumber_ios=3");
    assert_eq!(sequential.iter().map(|bio| bio.lba.0).collect::<Vec<_>>(), [0, 1, 2]);
}

/// `percentage_random` of the I/Os are random, by direction; the others follow on the one before.
#[test]
fn percentage_random_mixes_in_sequences() {
    let follows = |text: &str| {
        let bios = bios(&format!("{text}\nnorandommap\nnumber_ios=10000"));
        let pairs = bios.windows(2).filter(|pair| pair[1].lba.0 == pair[0].lba.0 + 1);
        pairs.count() as f64 / 100.0
    };
    near(follows("rw=randread\npercentage_random=30"), 70.0, 2.0);
    near(follows("rw=randwrite\npercentage_random=30,90"), 10.0, 1.5);
    near(follows("rw=randread"), 0.0, 0.5);
    let sequential = bios("rw=randread\npercentage_random=0\nsize=1m");
    assert!(sequential.iter().enumerate().all(|(index, bio)| bio.lba.0 == index as u64));
}

/// Zones get their shares of the accesses, in percent of the range or absolute, by direction.
#[test]
fn zones_get_their_shares() {
    let keys = "rw=randread\nnumber_ios=40000\nio_size=1g\nrandom_distribution";
    let within = |bios: &[Bio], range: std::ops::Range<u64>| {
        let hits = bios.iter().filter(|bio| range.contains(&bio.lba.0)).count();
        hits as f64 * 100.0 / bios.len() as f64
    };
    let percent = bios(&format!("{keys}=zoned:60/10:30/20:8/30:2/40"));
    for (share, from, to) in [(60.0, 0, 10), (30.0, 10, 30), (8.0, 30, 60), (2.0, 60, 100)] {
        near(within(&percent, SECTORS * from / 100..SECTORS * to / 100), share, 1.0);
    }
    let absolute = bios(&format!("{keys}=zoned_abs:90/4m:10/16m"));
    near(within(&absolute, 0..1024), 90.0, 1.0);
    near(within(&absolute, 1024..5120), 10.0, 1.0);
    let keys = keys.replace("randread", "randwrite");
    let writes = bios(&format!("{keys}=zoned:60/10:40/90,10/50:90/50"));
    near(within(&writes, 0..SECTORS / 2), 10.0, 1.0);
    let large = "[j]\nrw=randread\nrandom_distribution=zoned_abs:90/4m:10/1g\n";
    let error = try_run(large, &mut TestDevice::new(SECTORS));
    assert!(matches!(error, Err(EngineError::Job { problem, .. }) if problem.contains("zones")));
}

/// I/O stays in a zone until `zonesize` is transferred, and goes on behind the gap; a zone may be
/// read partly or several times.
#[test]
fn strides_leave_gaps() {
    let starts = |keys: &str| {
        let bios = bios(&format!("rw=read\nsize=64k\nbs=4k\n{keys}"));
        bios.iter().map(|bio| bio.lba.0).collect::<Vec<_>>()
    };
    let plain = starts("zonesize=8k\nzoneskip=8k\nio_size=24k");
    assert_eq!(plain, [0, 1, 4, 5, 8, 9], "zonesize alone means strided");
    let part = starts("zonemode=strided\nzonesize=4k\nzonerange=16k\nio_size=20k");
    assert_eq!(part, [0, 4, 8, 12, 16], "zones go on behind the size");
    let twice = starts("zonemode=strided\nzonesize=16k\nzonerange=8k\nio_size=24k");
    assert_eq!(twice, [0, 1, 0, 1, 2, 3]);
    assert_eq!(starts("zonemode=none\nzonesize=4k\nzoneskip=4k\nio_size=12k"), [0, 1, 2]);
    for bio in bios("rw=randwrite\nzonesize=16m\nzonerange=1m\nzoneskip=1m\nio_size=16m") {
        assert!(bio.lba.0 < 256, "random I/O stays in its zone");
    }
}

/// Each clone begins `offset_increment` further on; percentages are rounded up to whole blocks, or
/// to `offset_align`.
#[test]
fn clones_begin_apart() {
    let starts = |keys: &str| {
        let text = format!("[j]\nrw=read\nnumber_ios=1\nnumjobs=3\n{keys}\n");
        let mut device = TestDevice::new(1_000);
        run(&text, &mut device);
        device.targets(Op::Read)
    };
    assert_eq!(starts("offset=4k\noffset_increment=40k\nsize=40k"), [1, 11, 21]);
    assert_eq!(starts("offset_increment=10%\nsize=40k"), [0, 100, 200]);
    assert_eq!(
        starts("offset=1%\noffset_align=64k\noffset_increment=10%\nsize=40k"),
        [16, 112, 224]
    );
    let text = "[j]\nrw=read\nsize=4m\nnumjobs=2\noffset_increment=1m\n";
    let error = try_run(text, &mut TestDevice::new(1_024));
    assert!(matches!(error, Err(EngineError::Job { problem, .. }) if problem.contains("beyond")));
}

/// `rwmixwrite` is the other side of `rwmixread`; the later one counts.
#[test]
fn rwmixwrite_mirrors_rwmixread() {
    assert_eq!(jobs("[j]\nrwmixread=90\nrwmixwrite=30\n").jobs[0].rwmixread, 70);
    assert_eq!(jobs("[j]\nrwmixwrite=30\nrwmixread=90\n").jobs[0].rwmixread, 90);
}

/// Writes carry their hint as a placement; a device with fewer handles refuses the job.
#[test]
fn writes_carry_their_hint() {
    for (hint, placement) in [("none", 0), ("not-set", 0), ("short", 1), ("extreme", 4)] {
        for bio in bios(&format!("rw=rw\nnumber_ios=20\nwrite_hint={hint}")) {
            let expected = if bio.op == Op::Write { placement } else { 0 };
            assert_eq!(bio.placement, Placement(expected));
        }
    }
    let mut device = TestDevice::new(SECTORS);
    device.caps.placement_handles = 2;
    let error = try_run("[j]\nrw=write\nwrite_hint=long\n", &mut device);
    assert!(
        matches!(error, Err(EngineError::Job { problem, .. }) if problem.contains("write_hint"))
    );
}

/// Blocks of different sizes verify.
#[test]
fn different_sizes_verify() {
    for keys in ["rw=randwrite\nbsrange=4k-64k", "rw=randwrite\nbssplit=8k/50:20k/50\nba=4k"] {
        let mut device = TestDevice::new(1_000);
        let results = run(&format!("[j]\n{keys}\niodepth=4\nverify=md5\n"), &mut device);
        assert!(!results.failed());
        assert!(results.jobs[0].verified_sectors > 500, "{keys}");
    }
}
