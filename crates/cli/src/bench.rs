//! `nandscape bench`: how fast this program is, as ratios of speeds measured in one run, so that
//! they mean the same on every machine. Wall clock, one core.

use crate::args::{Bench, BenchArgs};
use crate::logs::Watch;
use crate::output::{Failure, classify, print};
use crate::progress::Stopwatch;
use crate::summary::{bytes, count};
use nandscape_column::{Column, Pod};
use nandscape_lab::run::{Outcome, RunOptions, run as run_in_lab};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use nandscape_lab::workload::latency::Latencies;
use nandscape_rt::{Nanos, Stream};

const ALL: [Bench; 6] =
    [Bench::Steady, Bench::Empty, Bench::Read, Bench::Fill, Bench::Ram, Bench::Growth];

/// I/Os of a measured phase.
const IOS: u64 = 8_000_000;

/// Runs the chosen measurements.
pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let chosen = if args.what.is_empty() { &ALL[..] } else { &args.what };
    for bench in chosen {
        match bench {
            Bench::Steady => steady()?,
            Bench::Empty => empty()?,
            Bench::Read => read()?,
            Bench::Fill => fill()?,
            Bench::Ram => ram()?,
            Bench::Growth => growth()?,
        }
    }
    Ok(())
}

/// A run of `rw` on the benchmark stack.
fn measure(rw: &str, ios: u64, set: &[String]) -> Result<Outcome, Failure> {
    let stack = Stack::load("bench-8g", set).map_err(Failure::input)?;
    let text = format!(
        "[bench]\nrw={rw}\ndirect=1\nbs=4k\niodepth=32\nnorandommap\nnumber_ios={ios}\nloops=1\nio_size={}\n",
        ios.saturating_mul(4096)
    );
    let job = parse(&text, "bench.fio", &HostEnvironment).map_err(Failure::input)?;
    run_in_lab(&stack, &job, 1, RunOptions::default(), &mut Watch::new()).map_err(classify)
}

fn placed_per_s(outcome: &Outcome) -> f64 {
    let sectors = &outcome.ftl.sectors;
    (sectors.user + sectors.gc) as f64 / outcome.wall.measured_s
}

fn user_per_s(outcome: &Outcome) -> f64 {
    outcome.ftl.host.written as f64 / outcome.wall.measured_s
}

fn steady() -> Result<(), Failure> {
    let outcome = measure("randwrite", IOS, &[])?;
    let waf = outcome.write_amplification().gc.unwrap_or(0.0);
    print(&format!(
        "steady  {} media sectors/s, {} host writes/s at WAF {waf:.2} ({})\n",
        count(placed_per_s(&outcome)),
        count(user_per_s(&outcome)),
        if outcome.is_steady() { "steady state" } else { "not at steady state" },
    ))
}

fn empty() -> Result<(), Failure> {
    let set = ["precondition.fill=0".into(), "precondition.random_overwrite=0".into()];
    let outcome = measure("randwrite", 1_000_000, &set)?;
    print(&format!(
        "empty   {} host writes/s, {} GC copies\n",
        count(user_per_s(&outcome)),
        outcome.ftl.sectors.gc
    ))
}

fn read() -> Result<(), Failure> {
    let outcome = measure("randread", IOS, &[])?;
    let reads_per_s = outcome.ftl.host.read as f64 / outcome.wall.measured_s;
    let bare_per_s = bare_reads_per_s(&outcome);
    print(&format!(
        "read    {} reads/s, {:.2} of a bare loop's {}\n",
        count(reads_per_s),
        reads_per_s / bare_per_s,
        count(bare_per_s)
    ))
}

fn fill() -> Result<(), Failure> {
    let set = ["media.chunks=2048".into(), "precondition.random_overwrite=0".into()];
    let outcome = measure("randwrite", 32, &set)?;
    print(&format!(
        "fill    {} sequentially in {:.2} s wall time; RAM: FTL {}, media {}\n",
        bytes(outcome.preconditioned.fill_sectors as f64 * 4096.0),
        outcome.wall.precondition_s,
        bytes(outcome.memory.total() as f64),
        bytes(outcome.media_bytes as f64)
    ))
}

fn ram() -> Result<(), Failure> {
    for payload in ["none", "tags"] {
        let set = [
            "media.chunks=4096".to_owned(),
            format!("media.payload={payload}"),
            "precondition.random_overwrite=0".to_owned(),
        ];
        let outcome = measure("randwrite", IOS, &set)?;
        print(&format!(
            "ram     512 GiB, payload {payload}: {} total; FTL {}, media {}\n",
            bytes((outcome.memory.total() + outcome.media_bytes) as f64),
            bytes(outcome.memory.total() as f64),
            bytes(outcome.media_bytes as f64),
        ))?;
    }
    Ok(())
}

fn growth() -> Result<(), Failure> {
    for gib in [8, 64, 256, 1024_u64] {
        let set = [
            format!("media.chunks={}", gib * 8),
            "precondition.random_overwrite=0".to_owned(),
            "media.memory_cap=64GiB".to_owned(),
        ];
        let outcome = measure("randwrite", IOS, &set)?;
        let bare_per_s = bare_writes_per_s(&outcome);
        let ram = (outcome.memory.total() + outcome.media_bytes) as f64;
        print(&format!(
            "growth  {gib:>4} GiB: {} host writes/s ({} media sectors/s), bare loop {}; RAM {} per GiB\n",
            count(user_per_s(&outcome)),
            count(placed_per_s(&outcome)),
            count(bare_per_s),
            bytes(ram / gib as f64)
        ))?;
    }
    Ok(())
}

/// Random reads with nothing but a look-up, a check of the out-of-band key and a histogram.
fn bare_reads_per_s(outcome: &Outcome) -> f64 {
    let logical = outcome.size.logical_sectors;
    let map = shuffled_map(logical, outcome.size.physical_sectors);
    let mut keys = column(outcome.size.physical_sectors);
    map.iter().enumerate().for_each(|(lba, ppa)| keys[*ppa as usize] = lba as u32);
    let mut histogram = Latencies::default();
    let mut rng = Stream::new(1, "bare");
    let mut mismatches = 0_u64;
    let watch = Stopwatch::start();
    for _ in 0..IOS {
        let lba = rng.below(logical);
        let ppa = map[lba as usize];
        mismatches += u64::from(u64::from(keys[ppa as usize]) != lba);
        histogram.record(Nanos(u64::from(ppa)));
    }
    let seconds = watch.seconds();
    assert_eq!(std::hint::black_box((mismatches, &histogram)).0, 0, "the map is a bijection");
    IOS as f64 / seconds
}

/// Random writes with nothing but a map update, a valid bit cleared and a valid count lowered.
fn bare_writes_per_s(outcome: &Outcome) -> f64 {
    let physical = outcome.size.physical_sectors;
    let line_sectors = u64::from(outcome.size.erase_unit_sectors);
    let mut map = shuffled_map(outcome.size.logical_sectors, physical);
    let mut valid = column::<u64>(physical.div_ceil(64));
    valid.fill(u64::MAX);
    let mut counts = vec![u32::MAX; physical.div_ceil(line_sectors) as usize];
    let mut rng = Stream::new(1, "bare");
    let watch = Stopwatch::start();
    for next in 0..IOS {
        let entry = &mut map[rng.below(outcome.size.logical_sectors) as usize];
        let old = u64::from(std::mem::replace(entry, (next % physical) as u32));
        valid[(old / 64) as usize] &= !(1 << (old % 64));
        counts[(old / line_sectors) as usize] -= 1;
    }
    let seconds = watch.seconds();
    std::hint::black_box((&map[..], &valid[..], &counts));
    IOS as f64 / seconds
}

/// A table in the same kind of memory as the FTL's own.
fn column<T: Pod>(len: u64) -> Column<T> {
    Column::zeroed(len).expect("a measured device had a larger one")
}

/// A map as random writes leave it: every sector somewhere else.
fn shuffled_map(logical: u64, physical: u64) -> Column<u32> {
    let mut map = column(logical);
    map.iter_mut().zip(0..).for_each(|(entry, lba)| *entry = (lba % physical) as u32);
    let mut rng = Stream::new(1, "shuffle");
    for index in (1..map.len()).rev() {
        map.swap(index, rng.below(index as u64 + 1) as usize);
    }
    map
}
