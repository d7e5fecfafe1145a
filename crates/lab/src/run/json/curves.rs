//! The part of a result's JSON that is there to be drawn: the course of a run, distributions,
//! utilisation.

use crate::run::series::{CleaningPoint, MigrationPoint, Point};
use nandscape_media::{Geometry, LinkUse, Utilisation};
use nandscape_rt::Nanos;
use nandscape_workload::engine::{GroupTotals, IntervalLatency, JobResult, Latencies, ZoneCounts};
use nandscape_workload::fio::Direction;
use serde_json::{Map, Value, json};

/// What flushes are called, as in fio's JSON.
const SYNC: &str = "sync";

/// What all jobs did together, by direction; rates are null where no time passed.
pub(super) fn totals(totals: &GroupTotals) -> Value {
    let mut out = json!({ "seconds": totals.length.as_secs_f64() });
    for direction in Direction::ALL {
        out[direction.name()] = json!({
            "total_ios": totals.ios[direction as usize],
            "io_bytes": totals.bytes[direction as usize],
            "iops": totals.iops(direction),
            "bw_bytes": totals.bytes_per_s(direction),
        });
    }
    if let Some(zones) = &totals.zones {
        let ZoneCounts { resets, begun, filled, .. } = zones;
        out["zones"] = json!({ "resets": resets, "begun": begun, "filled": filled });
    }
    out
}

/// Size and write rules of the device.
pub(super) fn geometry(geometry: &Geometry) -> Value {
    json!({
        "groups": geometry.groups,
        "units": geometry.units,
        "chunks": geometry.chunks,
        "sectors": geometry.sectors,
        "ws_min": geometry.ws_min,
        "ws_opt": geometry.ws_opt,
        "mw_cunits": geometry.mw_cunits,
    })
}

/// One interval of the course; directions that had no I/O in it are left out.
pub(super) fn point(point: &Point) -> Value {
    let mut out = json!({
        "t_s": point.t_s,
        "iops": point.iops,
        "waf": point.waf.gc,
        "waf_gc_pad": point.waf.gc_pad,
        "waf_media": point.waf.media,
    });
    out["gc_sectors_per_s"] = point.garbage.sectors_per_s.into();
    if let Some(of) = &point.garbage.cleaning {
        out["fs"] = cleaning(of);
    }
    if let Some(of) = &point.garbage.migrations {
        out["coupled"] = migrations(of);
    }
    let [directions @ .., sync] = &point.latency;
    for (at, direction) in Direction::ALL.into_iter().enumerate() {
        if let Some(latency) = &directions[at] {
            out[direction.name()] = interval(latency);
            out[direction.name()]["bytes_per_s"] = (point.bytes_per_s[at] as u64).into();
        }
    }
    if let Some(latency) = sync {
        out[SYNC] = interval(latency);
    }
    out
}

fn cleaning(of: &CleaningPoint) -> Value {
    json!({
        "gc_blocks_per_s": of.blocks_per_s,
        "gc_share": of.share,
        "checkpoints_per_s": of.checkpoints_per_s,
        "free_segments": of.free_segments,
    })
}

fn migrations(of: &MigrationPoint) -> Value {
    json!({
        "moved_per_s": of.moved_per_s,
        "upcalls_per_s": of.upcalls_per_s,
        "open": of.open,
        "record_bytes": of.record_bytes,
        "region_use": of.region_use,
    })
}

fn interval(latency: &IntervalLatency) -> Value {
    json!({
        "ios": latency.count,
        "mean_ns": latency.mean_ns as u64,
        "p50_ns": latency.p50.0,
        "p99_ns": latency.p99.0,
        "max_ns": latency.max.0,
    })
}

/// Shares of `length` in which resources were taken. What was under way at the end counts whole, so
/// the share of a busy unit is cut off at one.
pub(super) fn utilisation(utilisation: &Utilisation, link: &LinkUse, length: Nanos) -> Value {
    let share = |busy: &Nanos| share(*busy, length);
    let both_ways = link.to_device_busy.saturating_add(link.to_host_busy);
    json!({
        "units": utilisation.units.iter().map(share).collect::<Vec<_>>(),
        "channels": utilisation.channels.iter().map(share).collect::<Vec<_>>(),
        "pcie": share(&both_ways),
        "programmed_sectors": utilisation.programmed_sectors,
    })
}

/// What crossed the link in `length`, and the share of it for which either direction was taken.
pub(super) fn link(link: &LinkUse, length: Nanos) -> Value {
    json!({
        "to_device_bytes": link.to_device_bytes,
        "to_host_bytes": link.to_host_bytes,
        "to_device": share(link.to_device_busy, length),
        "to_host": share(link.to_host_busy, length),
    })
}

/// The share of `length` in which something was taken, cut off at one.
fn share(busy: Nanos, length: Nanos) -> f64 {
    match length {
        Nanos::ZERO => 0.0,
        _ => (busy.0 as f64 / length.0 as f64).min(1.0),
    }
}

/// The distribution of latencies over all jobs, by direction, and of flushes.
pub(super) fn latency_cdf(jobs: &[JobResult]) -> Value {
    let mut out = Map::new();
    for one in Direction::ALL {
        let of_job = |job: &JobResult| job.direction(one).latency.clone();
        put_cdf(&mut out, one.name(), jobs.iter().map(of_job));
    }
    put_cdf(&mut out, SYNC, jobs.iter().map(|job| job.sync.clone()));
    Value::Object(out)
}

fn put_cdf(out: &mut Map<String, Value>, name: &str, parts: impl Iterator<Item = Latencies>) {
    let mut all = Latencies::default();
    parts.for_each(|part| all.merge(&part));
    if all.count() > 0 {
        out.insert(name.into(), cdf(&all));
    }
}

/// Points of the distribution function, each latency with the share that is no longer: every percent,
/// then every tenth of what is left, down to single I/Os.
fn cdf(latencies: &Latencies) -> Value {
    let rank = latencies.ranks();
    let (mut ns, mut shares) = (vec![latencies.min().0], vec![1.0 / latencies.count() as f64]);
    let mut put = |value: u64, share: f64| {
        if ns.last().is_some_and(|last| *last < value) {
            ns.push(value);
            shares.push(share);
        } else if let Some(last) = shares.last_mut() {
            *last = share;
        }
    };
    for share in shares_of(latencies.count()) {
        put(rank(share).0, share);
    }
    put(latencies.max().0, 1.0);
    json!({ "ns": ns, "share": shares })
}

/// The shares at which a distribution of so many is asked, in ascending order; at most 171.
fn shares_of(count: u64) -> impl Iterator<Item = f64> {
    let percents = (1..=99).map(|percent| f64::from(percent) / 100.0);
    let tails = (3..=10).map(|digits| 10_u64.pow(digits));
    let tails = tails.take_while(move |whole| *whole <= count);
    let of_tail = |whole: u64| (1..=9).map(move |part| (whole - 10 + part) as f64 / whole as f64);
    percents.chain(tails.flat_map(of_tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(value: &Value) -> Vec<f64> {
        value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    }

    /// A distribution function rises from the shortest to the longest, and few points tell it.
    #[test]
    fn distributions_rise_and_end_at_one() {
        let mut latencies = Latencies::default();
        (0..200_000_u64).for_each(|n| latencies.record(Nanos(1_000 + n * n % 1_000_003)));
        let cdf = cdf(&latencies);
        let (ns, shares) = (numbers(&cdf["ns"]), numbers(&cdf["share"]));
        assert!(ns.len() == shares.len() && (100..=200).contains(&ns.len()), "{}", ns.len());
        assert!(ns.is_sorted_by(|a, b| a < b) && shares.is_sorted_by(|a, b| a <= b));
        assert_eq!((ns[0], shares[shares.len() - 1]), (1_000.0, 1.0));
        assert_eq!(ns[ns.len() - 1], latencies.max().0 as f64);
    }

    /// However many I/Os there are, a distribution has at most 200 points; one I/O is enough for one.
    #[test]
    fn distributions_are_small() {
        assert!(shares_of(u64::MAX).count() < 198);
        assert!(shares_of(u64::MAX).collect::<Vec<_>>().is_sorted());
        let mut one = Latencies::default();
        one.record(Nanos(5));
        assert_eq!(cdf(&one), json!({ "ns": [5], "share": [1.0] }));
    }

    /// A unit that was taken half of the time is busy by a half; nothing is busier than always.
    #[test]
    fn utilisation_is_a_share() {
        let busy = |units: &[u64]| Utilisation {
            units: units.iter().copied().map(Nanos).collect(),
            ..Utilisation::default()
        };
        let shares = utilisation(&busy(&[0, 50, 130]), &LinkUse::default(), Nanos(100));
        assert_eq!(shares["units"], json!([0.0, 0.5, 1.0]));
        let link = LinkUse {
            to_device_bytes: 4_096,
            to_host_bytes: 8_192,
            to_device_busy: Nanos(10),
            to_host_busy: Nanos(15),
        };
        assert_eq!(utilisation(&busy(&[7]), &link, Nanos(100))["pcie"], json!(0.25));
        assert_eq!(utilisation(&busy(&[7]), &link, Nanos::ZERO)["units"], json!([0.0]));
        let expected = json!({
            "to_device_bytes": 4_096, "to_host_bytes": 8_192, "to_device": 0.1, "to_host": 0.15,
        });
        assert_eq!(super::link(&link, Nanos(100)), expected);
    }
}
