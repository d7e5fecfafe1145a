//! The model beside fio itself, which thinks zones into a file: the same draws lead to the same I/Os, and to as
//! many resets. The model is what our jobs are compared with, so all three agree.

use crate::common;
use crate::zbd::jobs::{Job, Shape};
use crate::zbd::model::Event;
use std::path::{Path, PathBuf};

/// 1 MiB zones of which 768 KiB can be written.
const SHAPE: Shape = Shape { zone: 256, capacity: 192, random: 0, zones: 8, max_open: 0 };
const FULL: Shape = Shape { capacity: 256, ..SHAPE };

/// The I/Os of a job: the first letter of a direction, and the first sector.
type Ios = Vec<(char, u64)>;

const fn job(rw: &'static str, ios: u64) -> Job {
    let range = (0, SHAPE.zones);
    Job { rw, block: 16, ios, reads_beyond: false, threshold: 0.0, frequency: 0.0, range }
}

/// Logs and resets of each job, in a folder of this name.
fn run_fio(
    folder: &Path,
    shape: &Shape,
    global: &str,
    texts: &[String],
) -> Option<(Vec<Ios>, Vec<u64>)> {
    let mut fio = common::fio()?;
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder).unwrap();
    let device = std::fs::File::create(folder.join("device")).unwrap();
    device.set_len(shape.zones * shape.zone * 4096).unwrap();
    let mut text = format!("[global]\nfilename=device\nrandrepeat=1\n{global}");
    for (number, job) in texts.iter().enumerate() {
        text += &format!("{job}write_iolog=log{number}\n");
    }
    std::fs::write(folder.join("job.fio"), &text).unwrap();
    let output = fio.arg("job.fio").current_dir(folder).output().unwrap();
    let text_of_fio = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text}\n{text_of_fio}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let log = |number| {
        let log = std::fs::read_to_string(folder.join(format!("log{number}"))).unwrap_or_default();
        log.lines().filter_map(io).collect()
    };
    // A job that wrote has a line of its writes, which ends with its resets.
    let resets = text_of_fio.lines().filter_map(|line| {
        line.strip_suffix(" zone resets")?.rsplit(' ').next()?.parse::<u64>().ok()
    });
    Some(((0..texts.len()).map(log).collect(), resets.collect()))
}

/// An I/O of a log: the first letter of its direction, and its first sector.
fn io(line: &str) -> Option<(char, u64)> {
    match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, _, what @ ("read" | "write" | "trim"), offset, _] => {
            let offset: u64 = offset.parse().ok()?;
            what.chars().next().map(|letter| (letter, offset / 4096))
        }
        _ => None,
    }
}

/// fio's I/Os in zones are those that the model makes of fio's draws without zones.
fn agree(name: &str, shape: &Shape, list: &[Job]) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("zbd-{name}"));
    let drawn: Vec<String> = list.iter().map(|job| job.drawn(shape)).collect();
    let zoned: Vec<String> = list.iter().map(|job| job.drawn(shape) + &job.zoned()).collect();
    let Some((draws, _)) = run_fio(&folder.join("drawn"), shape, "ioengine=null\n", &drawn) else {
        return;
    };
    let global = shape.global(true).replace("direct=1", "ioengine=psync");
    let Some((ios, resets)) = run_fio(&folder.join("zoned"), shape, &global, &zoned) else {
        return;
    };
    let (mut model, mut expected_resets) = (shape.model(), Vec::new());
    for (number, job) in list.iter().enumerate() {
        let mut draws = draws[number].clone();
        if job.rw.ends_with("rw") {
            // Which direction comes next depends on what fio has issued: what it did is taken.
            draws.truncate(ios[number].len());
            draws.iter_mut().zip(&ios[number]).for_each(|(draw, io)| draw.0 = io.0);
        }
        let events = model.pass(job.rules(shape), &draws);
        let expected: Vec<(char, u64)> = events
            .iter()
            .filter_map(|event| match event {
                Event::Read(lba) => Some(('r', *lba)),
                Event::Write(lba) => Some(('w', *lba)),
                Event::Trim(_) | Event::Reset(_) => None,
            })
            .collect();
        let transfers: Vec<_> = ios[number].iter().copied().filter(|io| io.0 != 't').collect();
        assert_eq!(transfers, expected, "{name}: {}", zoned[number]);
        if expected.iter().any(|io| io.0 == 'w') {
            let count = events.iter().filter(|event| matches!(event, Event::Reset(_))).count();
            expected_resets.push(count as u64);
        }
    }
    assert_eq!(resets, expected_resets, "{name}");
}

/// A sequence from zone to zone, and again; a part of the zones.
#[test]
fn sequences() {
    agree("sequence", &SHAPE, &[job("write", 96), job("write", 96), job("read", 200)]);
    agree("full", &FULL, &[job("write", 128), job("write", 50), job("read", 200)]);
    let part = |rw, first, zones| Job { range: (first, zones), ..job(rw, 200) };
    agree("parts", &SHAPE, &[part("write", 2, 3), part("read", 0, 8), part("write", 0, 8)]);
    agree(
        "blocks",
        &SHAPE,
        &[Job { block: 8, ..job("write", 40) }, Job { block: 4, ..job("read", 900) }],
    );
}

/// Random writes, with and without a limit for open zones.
#[test]
fn random_writes() {
    for max_open in [0, 1, 3] {
        let shape = Shape { max_open, ..SHAPE };
        agree(
            &format!("random-{max_open}"),
            &shape,
            &[job("randwrite", 400), job("randwrite", 100)],
        );
        let part = Job { range: (1, 3), ..job("randwrite", 150) };
        agree(
            &format!("random-part-{max_open}"),
            &shape,
            &[part, job("write", 60), job("randwrite", 90)],
        );
    }
}

/// Reads at random find the nearest zone with data, and mixed jobs begin with a write.
#[test]
fn random_reads() {
    let few = Job { range: (3, 2), ..job("write", 17) };
    agree("reads", &SHAPE, &[few, job("randread", 120)]);
    agree("beyond", &SHAPE, &[few, Job { reads_beyond: true, ..job("randread", 120) }]);
    for max_open in [0, 3] {
        agree(&format!("mixed-{max_open}"), &Shape { max_open, ..SHAPE }, &[job("randrw", 120)]);
    }
}

/// A trim empties zones: what is written behind it needs no reset.
#[test]
fn trims() {
    let some = Job { range: (0, 3), ..job("trim", 3) };
    agree("trims", &SHAPE, &[job("write", 96), some, job("write", 96)]);
    agree("random-trims", &SHAPE, &[job("write", 50), job("randtrim", 6), job("write", 96)]);
}

/// Resets above a threshold, every so many writes.
#[test]
fn resets_above_a_threshold() {
    for (number, (threshold, frequency)) in
        [(0.0, 0.1), (0.5, 0.3), (0.7, 1.0)].into_iter().enumerate()
    {
        let job = Job { threshold, frequency, ..job("randwrite", 300) };
        agree(&format!("threshold-{number}"), &SHAPE, &[job]);
        let shape = Shape { max_open: 3, ..SHAPE };
        agree(
            &format!("threshold-open-{number}"),
            &shape,
            &[job, Job { rw: "write", ios: 96, ..job }],
        );
    }
}
