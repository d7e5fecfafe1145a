//! Several files: whose turn it is, and that each has addresses of its own.

use crate::common;

use common::{TestDevice, jobs};
use nandscape_block::{BlockDevice, Op};
use nandscape_workload::engine::{Engine, EngineError, NoProbe, Options};
use std::collections::BTreeMap;
use std::ops::Range;

const SECTORS: u64 = 1 << 12;

/// The I/Os of a job on files that lie there: file, and sector in it.
fn try_ios(text: &str, files: &[Range<u64>]) -> Result<Vec<(usize, u64)>, EngineError> {
    let mut device = TestDevice::new(SECTORS);
    let options = Options { files: vec![files.to_vec()], ..Options::default() };
    let mut engine = Engine::new(&jobs(&format!("[job]\n{text}\n")), device.caps(), &options)?;
    engine.run_until(&mut device, &mut NoProbe, None)?;
    let results = engine.finish();
    assert!(!results.failed(), "{:?}", results.jobs[0].failures);
    let place = |lba: u64| {
        let file = files.iter().position(|file| file.contains(&lba)).unwrap();
        (file, lba - files[file].start)
    };
    Ok(device.log.iter().map(|(_, bio)| place(bio.lba.0)).collect())
}

fn ios(text: &str, files: &[Range<u64>]) -> Vec<(usize, u64)> {
    try_ios(text, files).unwrap()
}

/// Files of a job, and nothing between them that is theirs.
const THREE: [Range<u64>; 3] = [10..14, 100..102, 200..203];

/// fio's default: one I/O a file in turn; a file that is through is left out.
#[test]
fn files_take_turns() {
    let expected = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (2, 2), (0, 3)];
    assert_eq!(ios("rw=write\nfilesize=8k-16k", &THREE), expected);
    let twice = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (0, 2), (0, 3), (2, 2)];
    assert_eq!(ios("rw=write\nfilesize=8k-16k\nfile_service_type=roundrobin:2", &THREE), twice);
}

/// `sequential` finishes one file before the next, whatever the number behind it.
#[test]
fn sequential_finishes_a_file() {
    let expected = [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)];
    for ios_each in ["", ":1", ":7"] {
        let text = format!("rw=write\nfilesize=8k-16k\nfile_service_type=sequential{ios_each}");
        assert_eq!(ios(&text, &THREE), expected);
    }
}

/// `random` draws a file for so many I/Os; files of the same size get about the same.
#[test]
fn random_draws_files() {
    let files: Vec<Range<u64>> = (0..8).map(|file| 100 * file..100 * file + 64).collect();
    let text = "rw=randwrite\nfilesize=256k\nfile_service_type=random:4";
    let ios = ios(text, &files);
    let runs = ios.chunk_by(|(one, _), (next, _)| one == next);
    assert!(runs.clone().all(|run| run.len() % 4 == 0), "turns of four");
    assert!(runs.count() > 64, "and no file has all of its turns in a row");
    let half: Vec<usize> = ios[..256].iter().map(|(file, _)| *file).collect();
    let counts: Vec<_> =
        (0..8).map(|file| half.iter().filter(|one| **one == file).count()).collect();
    assert!(counts.iter().all(|count| (12..=56).contains(count)), "{counts:?}");
}

/// With the random map a pass touches every block of every file once; a second loop does again.
#[test]
fn every_file_has_a_random_map() {
    for service in ["roundrobin", "random", "sequential"] {
        let text = format!("rw=randwrite\nfilesize=8k-16k\nloops=2\nfile_service_type={service}");
        let mut seen: BTreeMap<(usize, u64), u32> = BTreeMap::new();
        ios(&text, &THREE).into_iter().for_each(|io| *seen.entry(io).or_default() += 1);
        assert_eq!(seen.len(), 9, "{service}");
        assert!(seen.values().all(|count| *count == 2), "{service}: {seen:?}");
    }
}

/// Addresses that are drawn independently never come to an end, and every file gets the same.
#[test]
fn no_map_no_end() {
    let ios = ios("rw=randwrite\nnorandommap\nfilesize=8k-16k\nio_size=120k", &THREE);
    let counts = [0, 1, 2].map(|file| ios.iter().filter(|(of, _)| *of == file).count());
    assert_eq!(counts, [10; 3]);
}

/// `size` is that of all files, from the offset of each on; with `filesize` it is what a loop transfers,
/// from anywhere in the files.
#[test]
fn size_is_of_all_files() {
    let files = [0..5, 100..104, 200..204];
    let expected = [(0, 2), (1, 2), (2, 2), (0, 3), (1, 3), (2, 3), (0, 4)];
    assert_eq!(ios("rw=write\nsize=28k\noffset=8k", &files), expected);
    let files = [0..64, 100..164];
    let some = ios("rw=randwrite\nfilesize=256k\nsize=64k", &files);
    assert_eq!(some.len(), 16);
    assert!(some.iter().any(|(_, sector)| *sector >= 32), "{some:?}");
    let error = try_ios("rw=write\nsize=4k\nbs=4k", &[0..1, 100..101]).unwrap_err();
    assert!(error.to_string().ends_with("its 0 bytes hold no block of 4096"), "{error}");
}

/// What was written is read again in every file, and in none of what lies between them.
#[test]
fn every_file_is_verified() {
    let files = [10..30, 100..130, 200..207];
    let mut device = TestDevice::new(SECTORS);
    let options = Options { files: vec![files.to_vec()], ..Options::default() };
    let text = "[v]\nrw=randwrite\nfilesize=28k-120k\noffset=8k\nverify=crc32c\n";
    let mut engine = Engine::new(&jobs(text), device.caps(), &options).unwrap();
    engine.run_until(&mut device, &mut NoProbe, None).unwrap();
    let results = engine.finish();
    assert!(!results.failed(), "{:?}", results.jobs[0].failures);
    let behind_offset: Vec<u64> = files.iter().flat_map(|file| file.start + 2..file.end).collect();
    assert_eq!(device.targets(Op::Read), behind_offset);
    assert_eq!(results.jobs[0].verified_sectors, behind_offset.len() as u64);
}

/// fio itself visits the same places in the same order, where nothing is drawn.
#[test]
fn turns_are_those_of_fio() {
    let Some(_) = common::fio() else { return };
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("turns");
    // fio appends to logs of an earlier time.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for text in [
        "filesize=16k",
        "filesize=16k\nsize=40k\nfile_service_type=roundrobin:3",
        "size=48k\noffset=8k\nfile_service_type=sequential",
        "filesize=16k\nio_size=100k",
    ] {
        let text = format!("rw=write\nnrfiles=3\n{text}");
        let job = format!("[job]\n{text}\nioengine=null\nwrite_iolog=log\n");
        std::fs::write(folder.join("job.fio"), job).unwrap();
        let ran = common::fio().unwrap().arg("job.fio").current_dir(&folder).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let log = std::fs::read_to_string(folder.join("log")).unwrap();
        std::fs::remove_file(folder.join("log")).unwrap();
        let theirs: Vec<(usize, u64)> = log
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .filter(|words| words.get(2) == Some(&"write"))
            .map(|words| {
                let file = words[1].strip_prefix("job.0.").unwrap().parse().unwrap();
                (file, words[3].parse::<u64>().unwrap() / 4096)
            })
            .collect();
        let sectors = if text.contains("offset") { 6 } else { 4 };
        let files = [0, 100, 200].map(|first| first..first + sectors);
        assert_eq!(ios(&text, &files), theirs, "{text}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
