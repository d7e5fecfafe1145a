//! Whether figures are those of a steady state. The course of IOPS and write amplification is judged by SNIA's
//! criterion (Solid State Storage Performance Test Specification 2.0.2).
//!
//! A course can be level and its level that of a transient: while a device
//! lives on free space that it has not reclaimed yet, write amplification is low, and constant. So a stretch of a
//! run is only called steady if
//!
//! - the device was not fresh, or was written several times over since;
//! - as much was written as there is spare space, so that every erase unit that is reclaimed in the stretch can
//!   have been filled in it;
//! - the free space at its end is that of its beginning, but for so little that the write amplification would
//!   have been the same within [`FREE_SHARE_MAX`].
//!
//! A stretch without writes and without collection changes nothing, and its course says all there is. One of which nothing
//! reached the device says nothing of it.

use super::series::Totals;
use nandscape_ftl::{DeviceSize, Ftl, SectorCounts};
use nandscape_rt::words::grouped;

/// A device on which so many times its size was written is no longer fresh: writes at random
/// have reached 95 % of it by then (1 - 1/e^3), and SNIA's Performance Test Specification calls one that
/// was written twice preconditioned.
const NO_LONGER_FRESH: u64 = 3;
/// The largest share of the write amplification that a change of the free space may account for.
const FREE_SHARE_MAX: f64 = 0.03;

/// Windows that a run is judged by, as many as SNIA's measurement window has rounds.
pub(super) const WINDOWS: usize = 5;
/// Largest spread of the windows, in parts of their mean.
const RANGE_MAX: f64 = 0.20;
/// Largest drift of their best linear fit from end to end, likewise.
const DRIFT_MAX: f64 = 0.10;

/// What [`steady`] asks, or [`settled`] of rounds, in words.
pub(super) fn criterion(in_rounds: bool) -> String {
    let over = match in_rounds {
        true => format!("over the last {WINDOWS} rounds:"),
        false => format!("over the whole measured phase: in {WINDOWS} equal windows"),
    };
    format!(
        "SNIA PTS 2.0.2, {over} neither IOPS nor write amplification ranges over more than {:.0} % \
         of its mean or drifts by more than {:.0} %",
        RANGE_MAX * 100.0,
        DRIFT_MAX * 100.0
    )
}

/// SNIA's steady state (Solid State Storage Performance Test Specification 2.0.2, "steady state"),
/// asked of the whole measured phase, since every figure is an average over all of it. [`criterion`]
/// says what is asked.
///
/// # Errors
/// What was not steady.
pub(super) fn steady(totals: &[Totals]) -> Result<(), String> {
    let windows = windows(totals).ok_or("the run was too short to tell whether it was steady")?;
    let iops: Vec<f64> = windows.iter().map(|(from, to)| to.iops_since(from)).collect();
    check("IOPS", &iops)?;
    let waf: Option<Vec<f64>> = windows.iter().map(|(from, to)| to.waf_since(from).gc).collect();
    waf.map_or(Ok(()), |waf| check("write amplification", &waf))
}

/// The course in [`WINDOWS`] windows of about the same length.
fn windows(totals: &[Totals]) -> Option<Vec<(&Totals, &Totals)>> {
    let intervals = totals.len().saturating_sub(1);
    let edge = |window: usize| &totals[window * intervals / WINDOWS];
    (intervals >= WINDOWS)
        .then(|| (0..WINDOWS).map(|window| (edge(window), edge(window + 1))).collect())
}

/// Whether the last [`WINDOWS`] of `values`, one a round, are steady.
///
/// # Errors
/// What was not, or that there are too few.
pub(super) fn settled(what: &str, values: &[f64]) -> Result<(), String> {
    match values.len().checked_sub(WINDOWS) {
        Some(first) => check(what, &values[first..]),
        None => Err(format!("fewer than {WINDOWS} rounds")),
    }
}

fn check(what: &str, values: &[f64]) -> Result<(), String> {
    let (range, drift) = spread(values);
    if range <= RANGE_MAX && drift <= DRIFT_MAX {
        return Ok(());
    }
    Err(format!(
        "not at steady state (SNIA PTS): {what} excursion {:.0} % of the mean (limit {:.0} %), slope {:.0} % \
         (limit {:.0} %), over {WINDOWS} windows",
        range * 100.0,
        RANGE_MAX * 100.0,
        drift * 100.0,
        DRIFT_MAX * 100.0
    ))
}

/// Range, and drift of the least-squares line from end to end, both in parts of the mean.
fn spread(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if mean == 0.0 {
        return (0.0, 0.0);
    }
    let low = values.iter().fold(f64::MAX, |low, value| low.min(*value));
    let high = values.iter().fold(f64::MIN, |high, value| high.max(*value));
    let centre = (n - 1.0) / 2.0;
    let offsets = || (0..values.len()).map(|i| i as f64 - centre);
    let covariance: f64 = offsets().zip(values).map(|(x, y)| x * (y - mean)).sum();
    let slope = covariance / offsets().map(|x| x * x).sum::<f64>();
    ((high - low) / mean, (slope * (n - 1.0)).abs() / mean)
}

/// The device on which a load runs, as far as a verdict depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Ground {
    /// Nothing was written to it before the measured phase.
    pub(super) fresh: bool,
    size: DeviceSize,
}

/// What happened to a device in a stretch of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Stretch {
    /// User sectors written since the measured phase began.
    pub(super) written_before: u64,
    /// Sectors placed in the stretch.
    pub(super) sectors: SectorCounts,
    /// Free data sectors at its beginning and at its end.
    pub(super) free: (u64, u64),
    /// Requests that reached the device in it.
    pub(super) requests: u64,
}

/// Whether so much written to a fresh device leaves it fresh.
pub(super) fn is_fresh(logical_sectors: u64, written_sectors: u64) -> bool {
    written_sectors <= logical_sectors.saturating_mul(NO_LONGER_FRESH)
}

impl Ground {
    /// `ftl`, which is `fresh` if nothing was written to it before.
    pub(super) fn new(ftl: &impl Ftl, fresh: bool) -> Self {
        Self { fresh, size: ftl.size() }
    }

    /// User sectors below which a round does not end, once it has written anything: those of a measurement window
    /// reach the spare space.
    pub(super) fn round_min(&self, rounds: u64) -> u64 {
        self.size.spare_sectors().div_ceil(rounds)
    }

    /// Whether a stretch may be called steady.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check(&self, stretch: &Stretch) -> Result<(), String> {
        let Stretch { written_before, sectors, free, requests } = *stretch;
        if requests == 0 {
            return Err("not at steady state: nothing reached the device".to_owned());
        }
        if self.fresh && is_fresh(self.size.live_sectors, written_before + sectors.user) {
            return Err("not at steady state: the device was fresh".to_owned());
        }
        if sectors.user == 0 {
            return match sectors.gc + sectors.stale {
                0 => Ok(()),
                copies => Err(format!(
                    "not at steady state: the host wrote nothing, and {} sectors were copied by GC",
                    grouped(copies)
                )),
            };
        }
        self.turned_over(sectors.user)?;
        level(&sectors, free)
    }

    fn turned_over(&self, user: u64) -> Result<(), String> {
        let spare = self.size.spare_sectors();
        if user >= spare {
            return Ok(());
        }
        Err(format!(
            "not at steady state: {} sectors were written, fewer than the {} of spare space; the metrics are those \
             of a transient",
            grouped(user),
            grouped(spare)
        ))
    }
}

/// Whether the free space did not change by so much that it matters: to make up for a sector of it, collection
/// would have had to copy as many sectors as it copies for one that users write.
fn level(sectors: &SectorCounts, (from, to): (u64, u64)) -> Result<(), String> {
    let copies = (sectors.gc + sectors.stale) as f64;
    let share =
        from.abs_diff(to) as f64 / sectors.user as f64 * copies / (copies + sectors.user as f64);
    if share <= FREE_SHARE_MAX {
        return Ok(());
    }
    let how = if to < from { "fell" } else { "rose" };
    Err(format!(
        "not at steady state: free space {how} from {} to {} sectors, which accounts for {:.0} % of the write \
         amplification (limit {:.0} %)",
        grouped(from),
        grouped(to),
        share * 100.0,
        FREE_SHARE_MAX * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::series::tests::run;

    fn ground(fresh: bool) -> Ground {
        let size = DeviceSize {
            physical_sectors: 1_200,
            logical_sectors: 1_000,
            live_sectors: 1_000,
            erase_units: 12,
            erase_unit_sectors: 100,
            erase_unit_data_sectors: 100,
        };
        Ground { fresh, size }
    }

    fn stretch(user: u64, gc: u64, free: (u64, u64)) -> Stretch {
        let sectors = SectorCounts { user, gc, ..SectorCounts::default() };
        Stretch { written_before: 0, sectors, free, requests: 1 }
    }

    /// A device ceases to be fresh when it was written several times over.
    #[test]
    fn fresh_devices_are_never_steady() {
        let check = |written_before| {
            ground(true).check(&Stretch { written_before, ..stretch(500, 500, (50, 50)) })
        };
        assert!(check(0).unwrap_err().contains("fresh"));
        assert!(check(2_500).unwrap_err().contains("fresh"));
        assert_eq!(check(2_501), Ok(()));
        assert!(ground(true).check(&stretch(0, 0, (0, 0))).unwrap_err().contains("fresh"));
    }

    /// Where nothing reached the device there is no state of it.
    #[test]
    fn nothing_is_not_steady() {
        let nothing = Stretch { requests: 0, ..stretch(0, 0, (50, 50)) };
        let why = ground(false).check(&nothing).unwrap_err();
        assert!(why.ends_with("nothing reached the device"), "{why}");
    }

    /// The spare space has to be written once; what writes and collects nothing needs no spare space.
    #[test]
    fn the_spare_space_is_turned_over() {
        let check = |user, gc| ground(false).check(&stretch(user, gc, (50, 50)));
        assert!(
            check(199, 900).unwrap_err().contains("199 sectors were written, fewer than the 200")
        );
        assert_eq!(check(200, 900), Ok(()));
        assert_eq!(check(0, 0), Ok(()));
        assert!(check(0, 7).unwrap_err().contains("7 sectors were copied by GC"));
    }

    /// Free space that falls or rises counts by what collection would have copied for it.
    #[test]
    fn the_free_space_is_level() {
        let check = |user, gc, free| ground(false).check(&stretch(user, gc, free));
        assert!(check(1_000, 9_000, (100, 60)).unwrap_err().contains("fell from 100 to 60"));
        assert!(check(1_000, 9_000, (60, 100)).unwrap_err().contains("rose from 60 to 100"));
        assert_eq!(check(1_000, 9_000, (100, 70)), Ok(()));
        assert_eq!(check(1_000, 0, (100, 0)), Ok(()), "without copies nothing is saved");
    }

    /// The drift is that of the least-squares line from the first window to the last: 96 to 104 is 8 % of the mean.
    #[test]
    fn drift_is_from_end_to_end() {
        let (range, drift) = spread(&[96.0, 98.0, 100.0, 102.0, 104.0]);
        assert!((range - 0.08).abs() < 1e-12 && (drift - 0.08).abs() < 1e-12, "{range} {drift}");
        // A line through these falls by 2 from end to end.
        let (range, drift) = spread(&[100.0, 105.0, 95.0, 100.0, 100.0]);
        assert!((range - 0.1).abs() < 1e-12 && (drift - 0.02).abs() < 1e-12, "{range} {drift}");
    }

    /// A constant rate is steady; a ramp, a cliff and a burst are not; five points are too few.
    #[test]
    fn drift_and_range_are_noticed() {
        assert_eq!(steady(&run(1_000, |at| 3 * at)), Ok(()));
        assert!(steady(&run(1_000, |at| at * at)).unwrap_err().contains("IOPS"));
        assert!(steady(&run(1_000, |at| 3 * at.min(800))).is_err());
        assert!(steady(&run(1_000, |at| 3 * at + if at >= 500 { 900 } else { 0 })).is_err());
        assert!(steady(&run(4, |at| at)).unwrap_err().contains("too short"));
    }
}
