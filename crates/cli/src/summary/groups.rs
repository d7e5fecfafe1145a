//! The lines with which fio ends its output: for each group of jobs and direction, the bandwidth of all of them, the
//! smallest and largest of one, the amount, and the shortest and longest run time.

use nandscape_lab::workload::Direction;
use nandscape_lab::workload::engine::JobResult;
use nandscape_rt::Nanos;
use std::fmt::Write;

/// Prefixes of the powers of 1024, and of 1000.
const BINARY: (u64, [&str; 6]) = (1024, ["", "Ki", "Mi", "Gi", "Ti", "Pi"]);
const DECIMAL: (u64, [&str; 6]) = (1000, ["", "k", "M", "G", "T", "P"]);

/// The lines of all groups.
pub(super) fn status_groups(jobs: &[JobResult]) -> String {
    let mut text = String::new();
    for group in jobs.chunk_by(|one, next| one.group == next.group) {
        if !text.is_empty() {
            text.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Run status group {} (all jobs):", group[0].group);
        Direction::ALL.iter().filter_map(|one| line(group, *one)).for_each(|line| text += &line);
    }
    text
}

fn line(group: &[JobResult], direction: Direction) -> Option<String> {
    let ran = |job: &&JobResult| job.direction(direction).ios > 0 && job.runtime > Nanos::ZERO;
    let jobs: Vec<&JobResult> = group.iter().filter(ran).collect();
    let all: u64 = jobs.iter().map(|job| job.direction(direction).bytes).sum();
    let times = || jobs.iter().map(|job| job.runtime);
    let (least, most) = (times().min()?, times().max()?);
    let rates = || jobs.iter().map(|job| job.bytes_per_s(direction));
    let (min, max) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
    let whole = all as f64 / most.as_secs_f64();
    let range = |base| format!("{}-{}", rate(min, base), rate(max, base));
    Some(format!(
        "{:>7}: bw={} ({}), {} ({}), io={} ({}), run={}-{}msec\n",
        direction.name().to_uppercase(),
        rate(whole, BINARY),
        rate(whole, DECIMAL),
        range(BINARY),
        range(DECIMAL),
        amount(all as f64, BINARY),
        amount(all as f64, DECIMAL),
        least.0 / 1_000_000,
        most.0 / 1_000_000,
    ))
}

fn rate(bytes_per_s: f64, base: (u64, [&str; 6])) -> String {
    amount(bytes_per_s, base) + "/s"
}

/// In the smallest unit of which it has less than ten thousand, and in four characters.
fn amount(bytes: f64, (base, prefixes): (u64, [&str; 6])) -> String {
    let mut number = bytes;
    let mut prefix = prefixes[0];
    for next in &prefixes[1..] {
        if number < 10_000.0 {
            break;
        }
        (number, prefix) = (number / base as f64, *next);
    }
    let decimals = match number {
        _ if prefix.is_empty() => 0,
        n if n < 10.0 => 2,
        n if n < 100.0 => 1,
        _ => 0,
    };
    format!("{number:.decimals$}{prefix}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Debian's fio 3.33 printed these numbers.
    #[test]
    fn numbers_are_those_of_fio() {
        for (bytes, binary, decimal) in [
            (8_388_608.0, "8192KiB", "8389kB"),
            (41_943_040.0, "40.0MiB", "41.9MB"),
            (1_048_576_000.0, "1000MiB", "1049MB"),
            (470_810_624.0, "449MiB", "471MB"),
            (512.0, "512B", "512B"),
        ] {
            assert_eq!(
                (amount(bytes, BINARY), amount(bytes, DECIMAL)),
                (binary.into(), decimal.into())
            );
        }
    }

    fn job(group: u32, bytes: u64, ms: u64) -> JobResult {
        let mut job = JobResult { group, runtime: Nanos::from_ms(ms), ..JobResult::default() };
        (job.directions[1].ios, job.directions[1].bytes) = (1, bytes);
        job
    }

    /// The bandwidth of a group is over its longest run time, and that of each job over its own.
    #[test]
    fn a_group_is_as_long_as_its_longest_job() {
        let text = status_groups(&[job(0, 20 << 20, 79), job(0, 20 << 20, 89), job(1, 4096, 2000)]);
        let expected = "Run status group 0 (all jobs):\n  \
             WRITE: bw=449MiB/s (471MB/s), 225MiB/s-253MiB/s (236MB/s-265MB/s), io=40.0MiB (41.9MB), run=79-89msec\n\n\
             Run status group 1 (all jobs):\n  \
             WRITE: bw=2048B/s (2048B/s), 2048B/s-2048B/s (2048B/s-2048B/s), io=4096B (4096B), run=2000-2000msec\n";
        assert_eq!(text, expected);
        assert_eq!(status_groups(&[]), "");
    }
}
