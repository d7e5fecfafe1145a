//! Numbers that a report draws, against arithmetic: results are made up so that each is known by hand.

use nandscape_report::{Report, Run};
use serde_json::{Value, json};

/// Intervals of a millisecond; in the k-th of them users write 100 sectors, and 60 + k more are written for these.
const INTERVALS: u64 = 40;

fn report() -> Report {
    let interval = |at: u64| {
        json!({
            "t_s": 0.001 * (at + 1) as f64, "iops": 20_000.0, "free_lines": 7,
            "sectors": { "user": 100, "gc": 50 + at, "stale": 2, "pad": 1, "meta": 3, "map": 4 },
            "write": { "ios": 100, "mean_ns": 5_000, "bytes_per_s": 409_600_000 },
        })
    };
    let result = json!({
        "jobs": [{ "jobname": "job", "write": { "iops": 1.0, "total_ios": 4_000 } }],
        "nandscape": {
            "stack": "pblk", "seed": 1, "virtual_s": 0.04,
            "flush": { "waited": 4, "empty": 6, "queue_ns": 4, "gc_ns": 8, "padding_ns": 12, "program_ns": 16 },
            "series": (0..INTERVALS).map(interval).collect::<Vec<_>>(),
        },
    });
    let (source, stack, job) = ("file".into(), "pblk".into(), "job".into());
    Report::new("figures", vec![Run { source, stack, job, keys: Vec::new(), seed: 1, result }])
}

fn spec(id: &str) -> Value {
    report().plots().iter().find(|plot| plot.id == id).unwrap().standalone()
}

/// The numbers of a series of a plot.
fn numbers(id: &str, series: &str, channel: &str) -> Vec<f64> {
    let spec = spec(id);
    let rows = spec["data"]["values"].as_array().unwrap().iter();
    let of_series = rows.filter(|row| row["series"] == series);
    of_series.filter_map(|row| row[channel].as_f64()).collect()
}

fn near(measured: f64, expected: f64) {
    assert!((measured - expected).abs() < 1e-9 * expected.abs(), "{measured}, not {expected}");
}

/// 100 sectors of 4 KiB in a millisecond are 390.625 MiB/s, 400 KiB of them each millisecond.
#[test]
fn bandwidth_is_in_the_unit_of_its_axis() {
    let of_users = numbers("media-bandwidth", "user data", "y");
    assert_eq!(of_users.len(), INTERVALS as usize);
    of_users.into_iter().for_each(|rate| near(rate, 390.625));
    near(numbers("bandwidth", "Write", "y")[0], 390.625);
}

/// 5 % of 4,000 sectors are those of two intervals, so each point from the second on is of two.
#[test]
fn amplification_is_of_a_window() {
    let all = numbers("waf", "all media writes (window)", "y");
    assert_eq!(all.len(), INTERVALS as usize - 1);
    // 100 + 60 + k in the k-th.
    all.iter().zip(1..).for_each(|(waf, k)| near(*waf, (320 + 2 * k - 1) as f64 / 200.0));
    let user_and_gc = numbers("waf", "user + GC (window)", "y");
    user_and_gc.iter().zip(1..).for_each(|(waf, k)| near(*waf, (300 + 2 * k - 1) as f64 / 200.0));
    let since = numbers("waf", "all media writes (since the start)", "y");
    // The mean of 60 + k over k from 0 to 39 is 79.5.
    near(since[since.len() - 1], 1.795);
}

/// Parts of a flush are means over those that waited, not over those that found nothing to wait for.
#[test]
fn a_flush_is_the_mean_of_those_that_waited() {
    let parts = [
        "waiting for other I/O",
        "waiting for GC and erases",
        "programming padding",
        "programming data",
    ];
    let means = parts.map(|part| numbers("flush", part, "x"));
    assert_eq!(means, [1.0, 2.0, 3.0, 4.0].map(|ns| vec![ns]));
}

/// Amounts and rates are drawn from zero, so that heights are as the numbers.
#[test]
fn amounts_begin_at_zero() {
    for (id, axis) in
        [("iops", "y"), ("bandwidth", "y"), ("waf", "y"), ("free-lines", "y"), ("flush", "x")]
    {
        let spec = spec(id);
        assert_eq!(
            spec["encoding"][axis]["scale"]["zero"], true,
            "{id}: {}",
            spec["encoding"][axis]
        );
    }
}
