//! Free space of a device: what it can take before it has to reclaim anything.

use nandscape_ftl::{EraseUnitState, Ftl};

/// Data sectors that can be written to free and open erase units, and to those that only wait to be erased.
pub(super) fn free_sectors(ftl: &impl Ftl) -> u64 {
    let unit_sectors = ftl.size().erase_unit_data_sectors;
    let units = ftl.erase_units().into_iter();
    let free = units.map(|unit| match unit.state {
        EraseUnitState::Free => unit_sectors,
        EraseUnitState::Open => unit_sectors.saturating_sub(unit.written),
        EraseUnitState::Full if unit.valid == 0 => unit_sectors,
        EraseUnitState::Full | EraseUnitState::Corrupt | EraseUnitState::Bad => 0,
    });
    free.map(u64::from).sum()
}
