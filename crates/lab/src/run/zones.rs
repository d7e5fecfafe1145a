//! The zones of a device, as `nvme zns report-zones` shows them: at the end of a run, and for jobs that follow
//! their write pointers from the beginning.

use super::device::{LabDevice, serve};
use super::error::RunError;
use nandscape_block::zone::{ZoneInfo, ZoneState};
use nandscape_block::{Bio, BlockDevice, DeviceCaps, Lba, Op, Reply};
use serde_json::{Map, Value, json};

/// What every zone is of type.
pub const ZONE_TYPE: &str = "SEQWRITE_REQ";

/// All states, in the order of their codes.
const STATES: [ZoneState; 7] = [
    ZoneState::Empty,
    ZoneState::ImplicitlyOpened,
    ZoneState::ExplicitlyOpened,
    ZoneState::Closed,
    ZoneState::ReadOnly,
    ZoneState::Full,
    ZoneState::Offline,
];

/// The zones of a device at an instant; sizes and addresses in sectors of 4 KiB.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneReport {
    /// From one zone to the next.
    pub zone_sectors: u64,
    /// Of the region in front of the zones that is written at random.
    pub random_sectors: u64,
    /// In order of address.
    pub zones: Vec<ZoneInfo>,
}

impl ZoneReport {
    /// That of a device; none of one without zones.
    pub(super) fn of(device: &mut impl LabDevice) -> Result<Option<Self>, RunError> {
        let caps: DeviceCaps = device.look(|ftl| ftl.caps().clone());
        if !caps.has_zones() {
            return Ok(None);
        }
        let all = Bio::new(Op::ZoneReport, Lba(0), u32::MAX);
        let Reply::Zones(zones) = device.with(|ftl, _| serve(ftl, all))? else {
            return Err(RunError::Failed("defect: a zone report without zones".to_owned()));
        };
        let zone_sectors =
            caps.zone(Default::default()).map_or(0, |(_, limits)| limits.zone_sectors);
        let random = caps.random_range();
        Ok(Some(Self { zone_sectors, random_sectors: random.end - random.start, zones }))
    }

    /// What can be written of a zone.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.zones.first().map_or(0, |zone| zone.capacity)
    }

    /// How many zones are in each state that occurs.
    pub fn states(&self) -> impl Iterator<Item = (&'static str, usize)> + '_ {
        let count = |state: ZoneState| self.zones.iter().filter(|zone| zone.state == state).count();
        STATES
            .into_iter()
            .map(move |state| (state.name(), count(state)))
            .filter(|(_, count)| *count > 0)
    }

    /// Counts, without the zones themselves.
    pub(super) fn json(&self) -> [(&'static str, Value); 5] {
        let states: Map<_, _> =
            self.states().map(|(name, count)| (name.to_owned(), count.into())).collect();
        [
            ("count", self.zones.len().into()),
            ("zone_sectors", self.zone_sectors.into()),
            ("capacity_sectors", self.capacity().into()),
            ("random_sectors", self.random_sectors.into()),
            ("states", states.into()),
        ]
    }

    /// Each zone, under the keys of `nvme zns report-zones`.
    #[must_use]
    pub fn list(&self) -> Value {
        let zone = |zone: &ZoneInfo| {
            json!({
                "slba": zone.start.0,
                "wp": zone.write_pointer.0,
                "cap": zone.capacity,
                "state": zone.state.name(),
                "type": ZONE_TYPE,
                "attrs": 0,
            })
        };
        self.zones.iter().map(zone).collect()
    }
}
