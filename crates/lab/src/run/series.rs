//! The course of a run over virtual time: totals at instants, and rates between them.

use super::counts::Sample;
use nandscape_ftl::SectorCounts;
use nandscape_rt::Nanos;
use nandscape_rt::counts::Counts as _;
use nandscape_workload::engine::Point as Counted;
use nandscape_workload::latency::{IntervalLatency, LatencyTotals};
use serde::Serialize;

/// Totals at one instant of the measured phase.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Totals {
    /// When.
    pub(super) at: Nanos,
    /// Completed I/Os.
    pub(super) ios: u64,
    /// Bytes of them, by direction.
    pub(super) bytes: [u64; 3],
    /// Their latencies, by direction, and those of flushes.
    pub(super) latency: [LatencyTotals; 4],
    /// I/Os in flight, if the load counts them.
    pub(super) in_flight: Option<u32>,
    /// What was sampled.
    pub(super) sample: Sample,
}

impl From<&Counted<Sample>> for Totals {
    fn from(point: &Counted<Sample>) -> Self {
        Self {
            at: point.at,
            ios: point.ios.iter().sum(),
            bytes: point.bytes,
            latency: point.latency.clone(),
            in_flight: point.in_flight,
            sample: point.sample,
        }
    }
}

impl Totals {
    /// I/Os a second since `earlier`.
    pub(super) fn iops_since(&self, earlier: &Self) -> f64 {
        self.per_second(earlier, self.ios.saturating_sub(earlier.ios))
    }

    fn per_second(&self, earlier: &Self, count: u64) -> f64 {
        let seconds = self.at.saturating_sub(earlier.at).as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }

    /// Sectors written to media since `earlier`.
    fn sectors_since(&self, earlier: &Self) -> SectorCounts {
        self.sample.sectors.since(&earlier.sample.sectors)
    }

    /// Write amplification since `earlier`.
    pub(super) fn waf_since(&self, earlier: &Self) -> WriteAmplification {
        WriteAmplification::of(&self.sectors_since(earlier))
    }

    /// Garbage collection since `earlier`.
    fn garbage_since(&self, earlier: &Self) -> GarbagePoint {
        let since = self.sample.since(&earlier.sample);
        let rate = |count: u64| self.per_second(earlier, count);
        let cleaning = since.cleaning.map(|cleaning| CleaningPoint {
            blocks_per_s: rate(cleaning.blocks),
            share: rate(cleaning.ns) / 1e9,
            checkpoints_per_s: rate(cleaning.checkpoints),
            free_segments: cleaning.free_segments,
        });
        let migrations = since.migrations.map(|counts| MigrationPoint {
            moved_per_s: rate(counts.moved),
            upcalls_per_s: rate(counts.upcalls),
            open: counts.open,
            record_bytes: counts.record_bytes,
            region_use: counts.region_lines as f64 / counts.region_lines_all.max(1) as f64,
        });
        GarbagePoint { sectors_per_s: rate(since.sectors.gc), cleaning, migrations }
    }
}

/// Collection of garbage in an interval: by the device, and by the file system.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct GarbagePoint {
    /// Sectors a second that the FTL copied.
    pub sectors_per_s: f64,
    /// Of an F2FS.
    pub cleaning: Option<CleaningPoint>,
    /// Of a coupled SSD.
    pub migrations: Option<MigrationPoint>,
}

/// Cleaning of an F2FS in an interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CleaningPoint {
    /// Blocks a second that it moved.
    #[serde(rename = "gc_blocks_per_s")]
    pub blocks_per_s: f64,
    /// Share of the interval for which calls in the foreground took; a call counts where it ends.
    #[serde(rename = "gc_share")]
    pub share: f64,
    /// Checkpoints a second.
    pub checkpoints_per_s: f64,
    /// Segments that are free at its end.
    pub free_segments: u64,
}

/// Migrations of a coupled SSD in an interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct MigrationPoint {
    /// Pages a second that collection moved.
    pub moved_per_s: f64,
    /// Upcalls a second that the host fetched.
    pub upcalls_per_s: f64,
    /// Records that are open at its end.
    pub open: u64,
    /// Bytes of RAM of records and of the tables that find them, at its end.
    pub record_bytes: u64,
    /// Share of the region to which data is moved that is in use, at its end.
    pub region_use: f64,
}

/// One interval of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// End of the interval, from the beginning of the measured phase.
    pub t_s: f64,
    /// I/Os a second in it.
    pub iops: f64,
    /// Bytes a second in it, by direction.
    pub bytes_per_s: [f64; 3],
    /// Write amplification in it.
    pub waf: WriteAmplification,
    /// Latencies of the I/Os that completed in it, by direction, and of flushes.
    pub latency: [Option<IntervalLatency>; 4],
    /// Sectors written to media in it.
    pub sectors: SectorCounts,
    /// Erase units that are free at its end.
    pub free_lines: u64,
    /// I/Os in flight at its end; `None`: the load does not count them.
    pub in_flight: Option<u32>,
    /// Collection of garbage in it.
    pub garbage: GarbagePoint,
}

/// The intervals between totals, of which the first are those of the beginning.
pub(super) fn points(totals: &[Totals]) -> Vec<Point> {
    let began = totals.first().map_or(Nanos::ZERO, |first| first.at);
    let point = |pair: &[Totals]| {
        let (from, to) = (&pair[0], &pair[1]);
        let bytes = |at: usize| to.bytes[at].saturating_sub(from.bytes[at]);
        Point {
            t_s: to.at.saturating_sub(began).as_secs_f64(),
            iops: to.iops_since(from),
            bytes_per_s: std::array::from_fn(|at| to.per_second(from, bytes(at))),
            waf: to.waf_since(from),
            latency: std::array::from_fn(|at| to.latency[at].since(&from.latency[at])),
            sectors: to.sectors_since(from),
            free_lines: to.sample.free_lines,
            in_flight: to.in_flight,
            garbage: to.garbage_since(from),
        }
    };
    totals.windows(2).map(point).collect()
}

/// Write amplification, three ways (DESIGN, decision 10). `None` without user writes.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct WriteAmplification {
    /// (user + garbage collection) / user.
    pub gc: Option<f64>,
    /// (user + garbage collection + padding) / user: what pblk reports.
    pub gc_pad: Option<f64>,
    /// All media writes / user.
    pub media: Option<f64>,
}

impl WriteAmplification {
    /// From counted sectors.
    #[must_use]
    pub fn of(sectors: &SectorCounts) -> Self {
        let per_user = |sum: u64| (sectors.user > 0).then(|| sum as f64 / sectors.user as f64);
        let gc = sectors.user + sectors.gc;
        let media = Self::media_sectors(sectors);
        Self { gc: per_user(gc), gc_pad: per_user(gc + sectors.pad), media: per_user(media) }
    }

    /// All sectors that were written to media.
    pub(super) const fn media_sectors(sectors: &SectorCounts) -> u64 {
        sectors.user + sectors.gc + sectors.pad + sectors.line_meta + sectors.map + sectors.trim
    }
}

/// What media were written for, in media sectors per user sector; the parts add up to
/// [`WriteAmplification::media`]. Copies that became stale count as padding in the factor that pblk reports.
pub(super) fn amplification_parts(sectors: &SectorCounts) -> [(&'static str, f64); 6] {
    written_parts(sectors).map(|(name, part)| (name, part as f64 / sectors.user.max(1) as f64))
}

/// The sectors of these parts, whose sum is all that was written to media.
pub(super) fn written_parts(sectors: &SectorCounts) -> [(&'static str, u64); 6] {
    [
        ("user", sectors.user),
        ("gc", sectors.gc),
        ("stale", sectors.stale),
        ("pad", sectors.pad.saturating_sub(sectors.stale)),
        ("meta", sectors.line_meta + sectors.trim),
        ("map", sectors.map),
    ]
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::run::counts::Cleaning;

    /// Totals each millisecond of a run with so many I/Os until then.
    pub(in crate::run) fn run(ms: u64, ios_until: impl Fn(u64) -> u64) -> Vec<Totals> {
        let totals = |at| {
            let ios = ios_until(at);
            let sectors = SectorCounts { user: ios, gc: ios, ..SectorCounts::default() };
            let sample = Sample { sectors, ..Sample::default() };
            Totals { at: Nanos::from_ms(7 + at), ios, sample, ..Totals::default() }
        };
        (0..=ms).map(totals).collect()
    }

    /// A point has the levels at its end, and the sectors written within it.
    #[test]
    fn points_have_levels_at_their_ends() {
        let mut totals = run(3, |at| 5 * at);
        for (at, totals) in totals.iter_mut().enumerate() {
            totals.sample.free_lines = 10 - at as u64;
            totals.in_flight = Some(at as u32);
        }
        let points = points(&totals);
        let levels: Vec<_> = points.iter().map(|p| (p.free_lines, p.in_flight)).collect();
        assert_eq!(levels, [(9, Some(1)), (8, Some(2)), (7, Some(3))]);
        assert!(points.iter().all(|p| (p.sectors.user, p.sectors.gc) == (5, 5)));
    }

    /// Points are rates within intervals, on a clock that begins with the measured phase.
    #[test]
    fn points_are_differences() {
        let points = points(&run(50, |at| 3 * at));
        assert_eq!(points.len(), 50);
        assert_eq!(points[49].t_s, 0.05);
        assert!(points.iter().all(|p| (p.iops - 3_000.0).abs() < 1e-6 && p.waf.gc == Some(2.0)));
        assert!(super::points(&run(1, |_| 9)).iter().all(|p| p.iops == 0.0 && p.waf.gc.is_none()));
    }

    /// The parts are the whole, and stale copies are no padding.
    #[test]
    fn parts_add_up() {
        let sectors = SectorCounts {
            user: 1_000,
            gc: 8_307,
            pad: 40,
            stale: 30,
            line_meta: 20,
            trim: 3,
            map: 7,
            journal: 5,
        };
        let parts = amplification_parts(&sectors);
        let sum: f64 = parts.iter().map(|(_, part)| part).sum();
        assert!((sum - WriteAmplification::of(&sectors).media.unwrap()).abs() < 1e-12);
        assert_eq!(parts[2..4], [("stale", 0.03), ("pad", 0.01)]);
    }

    /// Each factor has its causes and no other: copies that became stale are padding, of which the first factor has none.
    #[test]
    fn factors_are_quotients_of_their_causes() {
        let sectors = SectorCounts {
            user: 1_000,
            gc: 8_000,
            pad: 400,
            stale: 300,
            line_meta: 60,
            trim: 20,
            map: 10,
            journal: 5,
        };
        let WriteAmplification { gc, gc_pad, media } = WriteAmplification::of(&sectors);
        assert_eq!((gc, gc_pad, media), (Some(9.0), Some(9.4), Some(9.49)));
    }

    /// Cleaning that took half a second of two is a quarter, wherever the clock stands.
    #[test]
    fn cleaning_has_a_share_of_the_time() {
        let totals = |at, ns, blocks| {
            let cleaning = Cleaning { blocks, ns, checkpoints: 0, free_segments: 0 };
            let sample = Sample { cleaning: Some(cleaning), ..Sample::default() };
            Totals { at: Nanos::from_secs(at), sample, ..Totals::default() }
        };
        let points = points(&[totals(5, 1_000, 7), totals(7, 500_001_000, 107)]);
        let cleaning = points[0].garbage.cleaning.unwrap();
        assert!((cleaning.share - 0.25).abs() < 1e-12, "{cleaning:?}");
        assert_eq!((points[0].t_s, cleaning.blocks_per_s), (2.0, 50.0));
    }
}
