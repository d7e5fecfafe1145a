//! Whether figures are those of a steady state, beyond the course of IOPS and write amplification, which
//! `course.rs` judges by SNIA's criterion. A course can be level and its level that of a transient: while a device
//! lives on free space that it has not reclaimed yet, write amplification is low, and constant. So a stretch of a
//! run is only called steady if
//!
//! - the device was not fresh, or was written several times over since;
//! - as much was written as there is spare space, so that every erase unit that is reclaimed in the stretch can
//!   have been filled in it;
//! - the free space at its end is that of its beginning, but for so little that the write amplification would
//!   have been the same within [`FREE_SHARE_MAX`].
//!
//! A stretch without writes and without collection changes nothing, and its course says all there is.

use super::prepare::InitialState;
use nandscape_ftl::{DeviceSize, Ftl, SectorCounts};
use nandscape_rt::words::grouped;

/// A device on which so many times its size was written is no longer fresh: writes at random
/// have reached 95 % of it by then (1 - 1/e^3), and SNIA's Performance Test Specification calls one that
/// was written twice preconditioned.
const NO_LONGER_FRESH: u64 = 3;
/// The largest share of the write amplification that a change of the free space may account for.
const FREE_SHARE_MAX: f64 = 0.03;

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
}

/// Whether so much written to a fresh device leaves it fresh.
pub(super) fn is_fresh(logical_sectors: u64, written_sectors: u64) -> bool {
    written_sectors <= logical_sectors.saturating_mul(NO_LONGER_FRESH)
}

impl Ground {
    /// `ftl` with what was done to it before.
    pub(super) fn new(ftl: &impl Ftl, before: Option<InitialState>) -> Self {
        Self { fresh: before.is_none(), size: ftl.size() }
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
        let Stretch { written_before, sectors, free } = *stretch;
        if self.fresh && is_fresh(self.size.live_sectors, written_before + sectors.user) {
            return Err("not steady: the device was fresh".to_owned());
        }
        if sectors.user == 0 {
            return match sectors.gc + sectors.stale {
                0 => Ok(()),
                copies => Err(format!(
                    "not steady: nothing was written, and {} sectors were copied",
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
            "not steady: {} sectors were written, fewer than the {} of spare space, so the figures are those of a \
             transient",
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
        "not steady: the free space {how} from {} to {} sectors, which accounts for {:.0} % of the write \
         amplification (at most {:.0})",
        grouped(from),
        grouped(to),
        share * 100.0,
        FREE_SHARE_MAX * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        Stretch { written_before: 0, sectors, free }
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

    /// The spare space has to be written once; what writes and collects nothing needs no spare space.
    #[test]
    fn the_spare_space_is_turned_over() {
        let check = |user, gc| ground(false).check(&stretch(user, gc, (50, 50)));
        assert!(
            check(199, 900).unwrap_err().contains("199 sectors were written, fewer than the 200")
        );
        assert_eq!(check(200, 900), Ok(()));
        assert_eq!(check(0, 0), Ok(()));
        assert!(check(0, 7).unwrap_err().contains("7 sectors were copied"));
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
}
