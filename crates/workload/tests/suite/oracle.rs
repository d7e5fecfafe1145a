//! What jobs do, I/O by I/O, beside what fio itself does with them: on a file that is longer than the
//! jobs reach, fio behaves as on a device.

use crate::common;

use common::TestDevice;
use nandscape_block::Op;
use std::path::PathBuf;

/// 4 MiB.
const SECTORS: u64 = 1 << 10;

/// An I/O: the first letter of what it is, first sector, sectors.
type Io = (char, u64, u64);

/// What ours does.
fn ours(keys: &str) -> Vec<Io> {
    let mut device = TestDevice::new(SECTORS);
    assert!(!common::run(keys, &mut device).failed(), "{keys}");
    let io = |bio: &nandscape_block::Bio| match bio.op {
        Op::Read => ('r', bio.lba.0, bio.sectors.into()),
        Op::Write => ('w', bio.lba.0, bio.sectors.into()),
        Op::Discard => ('t', bio.lba.0, bio.sectors.into()),
        _ => ('s', 0, 0),
    };
    device.log.iter().map(|(_, bio)| io(bio)).collect()
}

/// What fio does, in sectors.
fn theirs(name: &str, keys: &str) -> Option<Vec<Io>> {
    let in_sectors = |(what, offset, bytes): Io| (what, offset / 4096, bytes / 4096);
    theirs_in_bytes(name, keys).map(|ios| ios.into_iter().map(in_sectors).collect())
}

/// What fio does, from its log of it, in bytes.
fn theirs_in_bytes(name: &str, keys: &str) -> Option<Vec<Io>> {
    let mut fio = common::fio()?;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("oracle-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = std::fs::File::create(folder.join("device")).unwrap();
    file.set_len(SECTORS * 4096).unwrap();
    let global = "[global]\nfilename=device\nioengine=psync\nwrite_iolog=log\n";
    std::fs::write(folder.join("job.fio"), format!("{global}{keys}")).unwrap();
    let output = fio.arg("job.fio").current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{keys}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(parse_log(&std::fs::read_to_string(folder.join("log")).unwrap()))
}

/// The I/Os of a log of fio's.
fn parse_log(log: &str) -> Vec<Io> {
    let io = |line: &str| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, _, "sync" | "datasync", ..] => Some(('s', 0, 0)),
        [_, _, what, offset, bytes] => {
            let [offset, bytes] = [offset, bytes].map(|text| text.parse::<u64>().unwrap());
            what.chars().next().map(|what| (what, offset, bytes))
        }
        _ => None,
    };
    log.lines().skip(1).filter_map(io).collect()
}

/// What ours asks for, from its own log, in bytes.
fn ours_in_bytes(keys: &str) -> Vec<Io> {
    let mut device = TestDevice::new(SECTORS);
    let results = common::run(&format!("[global]\nwrite_iolog=log\n{keys}"), &mut device);
    assert!(!results.failed(), "{keys}");
    let mut log = Vec::new();
    results.iologs[0].write_to(&mut log).unwrap();
    parse_log(&String::from_utf8(log).unwrap())
}

/// Both ask for the same bytes, where nothing is random.
fn agree_in_bytes(name: &str, jobs: &[&str]) {
    for (number, keys) in jobs.iter().enumerate() {
        let Some(theirs) = theirs_in_bytes(&format!("{name}-{number}"), keys) else { return };
        assert!(!theirs.is_empty(), "{keys}");
        assert_eq!(ours_in_bytes(keys), theirs, "{keys}");
    }
}

/// Both do the same, where nothing is random.
fn agree(name: &str, jobs: &[&str]) {
    for (number, keys) in jobs.iter().enumerate() {
        let Some(theirs) = theirs(&format!("{name}-{number}"), keys) else { return };
        assert!(!theirs.is_empty(), "{keys}");
        assert_eq!(ours(&format!("[global]\n{keys}")), theirs, "{keys}");
    }
}

/// A value for some directions leaves those of `[global]` for the others.
#[test]
fn values_by_direction_leave_the_others() {
    agree(
        "directions",
        &[
            "bs=8k\n[j]\nrw=read\nsize=64k\nbs=,16k\n",
            "bs=8k\n[j]\nrw=write\nsize=64k\nbs=16k,\n",
            "bssplit=8k/100\n[j]\nrw=read\nsize=64k\nbssplit=,16k/100\n",
            "bsrange=8k-8k\n[j]\nrw=write\nsize=64k\nbsrange=16k-16k,\n",
            "percentage_random=0\n[j]\nrw=randread\nsize=64k\npercentage_random=,100\n",
        ],
    );
}

/// Loops spend `io_size` and `number_ios` together, and none begins again before its range is through.
#[test]
fn loops_go_on_where_the_range_is_not_through() {
    agree(
        "loops",
        &[
            "[j]\nrw=read\nsize=64k\nio_size=160k\nloops=2\n",
            "[j]\nrw=read\nsize=64k\nio_size=32k\nloops=2\n",
            "[j]\nrw=read\nsize=64k\nio_size=32k\nloops=5\n",
            "[j]\nrw=read\nsize=64k\nio_size=152k\n",
            "[j]\nrw=write\nsize=64k\nnumber_ios=11\nloops=3\nend_fsync=1\n",
            "[j]\nrw=read\nsize=64k\nnumber_ios=40\n",
            "[j]\nrw=read\nsize=64k\nloops=3\n",
        ],
    );
}

/// With `time_based`, time alone ends a pass before its range is through.
#[test]
fn time_based_jobs_pass_over_all_of_their_range() {
    for limit in ["io_size=16k", "number_ios=4", "loops=2"] {
        let keys = format!("[j]\nrw=read\nsize=64k\ntime_based\nruntime=1ms\n{limit}\n");
        let sectors: Vec<u64> = ours(&keys).iter().map(|io| io.1).collect();
        assert!(sectors.len() > 40, "{keys}");
        let theirs = theirs(&format!("time-{}", &limit[..2]), &keys.replace("1ms", "20ms"));
        let theirs = theirs.unwrap_or_default();
        for (number, io) in theirs.iter().take(200).enumerate() {
            assert_eq!(*io, ('r', number as u64 % 16, 1), "{keys}");
        }
        assert!(sectors.iter().enumerate().all(|(number, sector)| *sector == number as u64 % 16));
    }
}

/// The last block of a sequence may end behind `size`; percentages are whole blocks of the least size
/// of any direction.
#[test]
fn the_last_block_ends_behind_the_size() {
    agree(
        "ends",
        &[
            "[j]\nrw=read\nbs=64k\nsize=500k\nloops=2\n",
            "[j]\nrw=write\nbs=12k\nsize=100k\n",
            "[j]\nrw=read\nbs=64k,4k\nsize=10%\n",
            "[j]\nrw=read\nbs=64k\nsize=10%\n",
            "[j]\nrw=read\nbs=64k,4k\noffset=10%\nsize=128k\n",
        ],
    );
}

/// Zones go on behind `size`, up to the device's end, and begin again there.
#[test]
fn zones_reach_to_the_end_of_the_device() {
    let zones = "zonemode=strided\nzonesize=32k";
    agree(
        "zones",
        &[
            &format!("[j]\nrw=read\nbs=16k\nsize=128k\n{zones}\nzoneskip=4k\n"),
            &format!("[j]\nrw=read\nbs=16k\nsize=128k\n{zones}\nzonerange=64k\n"),
            &format!("[j]\nrw=read\nbs=16k\nsize=100k\n{zones}\nzonerange=16k\nzoneskip=48k\n"),
            &format!("[j]\nrw=write\nbs=12k\nsize=100k\n{zones}\n"),
            &format!("[j]\nrw=read\nbs=16k\nsize=128k\noffset=64k\n{zones}\nzoneskip=1504k\n"),
        ],
    );
}

/// A sync comes behind every so many writes, but behind the last one only with `end_fsync`.
#[test]
fn syncs_come_between_writes() {
    agree(
        "syncs",
        &[
            "[j]\nrw=write\nbs=64k\nsize=256k\nfsync=2\n",
            "[j]\nrw=write\nbs=64k\nsize=256k\nfsync=2\nend_fsync=1\n",
            "[j]\nrw=write\nbs=64k\nsize=256k\nfsync=3\nfdatasync=2\n",
            "[j]\nrw=write\nbs=64k\nsize=256k\nfsync=1\nnumber_ios=3\n",
            "[j]\nrw=write\nbs=64k\nsize=256k\nfdatasync=4\nend_fsync=1\n",
        ],
    );
}

/// Reads and writes of a mixed sequence each pass over the whole range, however long the job runs.
#[test]
fn each_direction_passes_over_the_range() {
    let keys = "[j]\nrw=rw\nsize=64k\ntime_based\nruntime=20ms\n";
    let (ours, theirs) = (ours(keys), theirs("mixed", keys).unwrap_or_default());
    for direction in ['r', 'w'] {
        let sectors = |ios: &[Io]| -> Vec<u64> {
            ios.iter().filter(|io| io.0 == direction).map(|io| io.1).take(100).collect()
        };
        // How far fio comes in real time is the machine's business.
        let (ours, theirs) = (sectors(&ours), sectors(&theirs));
        assert_eq!(ours, (0..100).map(|number| number % 16).collect::<Vec<_>>());
        assert_eq!(theirs, ours[..theirs.len()], "{direction}");
    }
}

/// Blocks, offsets and sizes may be parts of the device's sectors.
#[test]
fn blocks_may_be_parts_of_sectors() {
    agree_in_bytes(
        "parts",
        &[
            "[j]\nrw=write\nbs=512\nsize=8k\n",
            "[j]\nrw=read\nbs=1536\nsize=20k\n",
            "[j]\nrw=read\nbs=5k\noffset=512\nsize=30k\n",
            "[j]\nrw=read\nbs=4k\noffset=3k\nsize=64k\n",
            "[j]\nrw=write\nbs=1k\nsize=16k\nfsync=3\n",
            "[j]\nrw=read\nbs=2k\nsize=64k\nzonemode=strided\nzonesize=6k\nzoneskip=512\n",
            "[j]\nrw=read\nbs=512\noffset=1%\nsize=8k\n",
        ],
    );
}

/// The modifier of `rw` skips bytes after each sequential I/O, also backwards.
#[test]
fn sequences_skip_bytes() {
    agree_in_bytes(
        "skips",
        &[
            "[j]\nrw=read:4k\nsize=64k\n",
            "[j]\nrw=read:4k\nsize=4m\nnumber_ios=1100\n",
            "[j]\nrw=write:12k\nbs=8k\nsize=100k\n",
            "[j]\nrw=read:4k\nsize=64k\nio_size=96k\n",
            "[j]\nrw=read:-8k\nsize=64k\n",
            "[j]\nrw=write:-16k\nbs=8k\nsize=128k\n",
            "[j]\nrw=read:-2k\nbs=1k\nsize=16k\n",
            "[j]\nrw=read:4k\nsize=64k\nloops=2\n",
        ],
    );
}

/// Random I/Os come in runs whose first one has a random offset; the others follow it, or repeat it.
#[test]
fn random_offsets_come_once_a_run() {
    for (sequencer, distance) in [("sequential", 1), ("identical", 0)] {
        let keys = format!("[j]\nrw=randread:8\nrw_sequencer={sequencer}\nsize=2m\n");
        for ios in [Some(ours(&keys)), theirs(sequencer, &keys)].into_iter().flatten() {
            // fio ends where a run leaves the range.
            assert!(ios.len() > 100, "{keys}");
            let jumps = ios.windows(2).enumerate().filter(|(_, pair)| {
                let wraps = pair[0].1 == 511 && distance == 1;
                pair[1].1 != pair[0].1 + distance && !wraps
            });
            assert!(jumps.clone().count() > 10, "{keys}");
            for (number, pair) in jumps {
                assert_eq!((number + 1) % 8, 0, "{keys}: {pair:?} at {number}");
            }
        }
    }
}
