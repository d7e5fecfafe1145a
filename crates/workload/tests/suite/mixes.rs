//! Rates by direction beside a mix: each direction keeps its own, whatever the mix asks for.

use crate::common::{TestDevice, run};
use nandscape_workload::Direction;

const SECTORS: u64 = 1 << 12;

/// I/Os or KiB a second of reads and writes over so many seconds.
fn rates(keys: &str, seconds: u64) -> [f64; 2] {
    let mut device = TestDevice::new(SECTORS);
    device.pending = true;
    let text = format!("[mix]\nnorandommap\ntime_based\nruntime={seconds}s\n{keys}\n");
    let results = run(&text, &mut device);
    let of = |direction: Direction| {
        let job = &results.jobs[0].directions[direction as usize];
        let count = if keys.contains("rate=") { job.bytes >> 10 } else { job.ios };
        count as f64 / seconds as f64
    };
    [of(Direction::Read), of(Direction::Write)]
}

fn assert_near(keys: &str, seconds: u64, expected: [f64; 2], percent: f64) {
    let got = rates(keys, seconds);
    for (got, expected) in got.into_iter().zip(expected) {
        let off = (got - expected).abs() * 100.0 / expected;
        assert!(off <= percent, "{keys}: {got}, expected {expected}");
    }
}

/// As fio 3.33 on its null engine, within 1 %.
#[test]
fn each_direction_keeps_its_rate() {
    for (keys, expected) in [
        ("rw=randrw\niodepth=8\nrate_iops=900,100", [900.0, 100.0]),
        ("rw=randrw\niodepth=8\nrate_iops=100,900", [100.0, 900.0]),
        ("rw=rw\niodepth=8\nrate_iops=900,100", [900.0, 100.0]),
        ("rw=randrw\niodepth=8\nrate_iops=2000,500", [2_000.0, 500.0]),
        ("rw=randrw\nrate=8m,1m", [8_192.0, 1_024.0]),
        ("rw=randrw\nbs=4k,64k\nrate=4m,4m", [4_096.0, 4_096.0]),
        ("rw=randrw\nbssplit=4k/50:8k/50,16k/100\nrate=2m,8m", [2_048.0, 8_192.0]),
        ("rw=randrw\nrwmixread=70\nrate_iops=100,100", [100.0, 100.0]),
        ("rw=randrw\nrwmixread=90\nrate_iops=100,100", [100.0, 100.0]),
        ("rw=randrw\nrwmixread=90\nrate_iops=90,10", [90.0, 10.0]),
        ("rw=randrw:4\nrate_iops=300,60", [300.0, 60.0]),
        ("rw=randrw\nserialize_overlap=1\niodepth=4\nrate_iops=300,60", [300.0, 60.0]),
    ] {
        assert_near(keys, 10, expected, 1.0);
    }
}

/// Arrivals at random times keep the mean of each direction.
#[test]
fn each_direction_keeps_its_poisson_rate() {
    for (keys, expected) in [
        ("rw=randrw\niodepth=64\nrate_process=poisson\nrate_iops=900,100", [900.0, 100.0]),
        ("rw=randrw\niodepth=64\nrate_process=poisson\nrate=8m,1m", [8_192.0, 1_024.0]),
    ] {
        assert_near(keys, 300, expected, 2.0);
    }
}

/// A direction without a rate has all that the other one leaves.
#[test]
fn a_direction_without_a_rate_is_not_held_up() {
    let [reads, writes] = rates("rw=randrw\niodepth=8\nrate_iops=,100", 10);
    assert!((99.0..=101.0).contains(&writes), "{writes}");
    assert!(reads > 400_000.0, "{reads}");
}

/// Without reads or writes in the mix there is nothing to turn to.
#[test]
fn a_mix_of_one_direction_keeps_its_rate() {
    for (percent, rates_of) in [(100, [100.0, 0.0]), (0, [0.0, 50.0])] {
        let got = rates(&format!("rw=randrw\nrwmixread={percent}\nrate_iops=100,50"), 10);
        assert!(
            (got[0] - rates_of[0]).abs() < 1.0 && (got[1] - rates_of[1]).abs() < 1.0,
            "{got:?}"
        );
    }
}

/// With `trimwrite`, the rate of writes is that of the pairs, as in fio.
#[test]
fn pairs_keep_the_rate_of_writes() {
    for (rate_iops, ios) in [(",200", 200), ("100,200,50", 200)] {
        let mut device = TestDevice::new(SECTORS);
        let text =
            format!("[j]\nrw=randtrimwrite\ntime_based\nruntime=1s\nrate_iops={rate_iops}\n");
        let results = run(&text, &mut device);
        for direction in [Direction::Trim, Direction::Write] {
            assert_eq!(results.jobs[0].directions[direction as usize].ios, ios, "{rate_iops}");
        }
    }
}
