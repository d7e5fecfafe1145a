//! What is counted of a run: by the FTL, its media, a file system and the calls to it; what its series samples of
//! that; and the zones of the device.

use super::device::{RunFtl, serve};
use super::error::RunError;
use super::queue::QueueCounts;
use nandscape_block::zone::{ZoneInfo, ZoneState};
use nandscape_block::{Bio, BlockDevice, Lba, Op, Reply};
use nandscape_fs::FsDetail;
use nandscape_ftl::coupled::CoupledCounts;
use nandscape_ftl::{AnyFtl, Detail, Ftl, FtlReport, SectorCounts};
use nandscape_media::{LinkUse, Utilisation};
use nandscape_rt::counts;
use nandscape_rt::counts::Counts as _;
use nandscape_rt::host::CoreTimes;
use nandscape_workload::target::FileCounts;
use serde_json::{Map, Value, json};

/// What file system, FTL and media counted.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) ftl: FtlReport,
    /// What only this kind of FTL counts.
    pub(super) ftl_detail: Detail,
    pub(super) utilisation: Utilisation,
    pub(super) link: LinkUse,
    /// Requests in the device, over time.
    pub(super) queue: QueueCounts,
    /// For what each core of the host was used.
    pub(super) cores: Vec<CoreTimes>,
    /// `None`: there is no page cache.
    pub(super) fs: Option<FileCounts>,
}

impl Counts {
    /// Adds what the same device counted later.
    pub(super) fn extend(&mut self, later: &Self) {
        self.ftl.add(&later.ftl);
        self.ftl_detail.add(&later.ftl_detail);
        self.utilisation.extend(&later.utilisation);
        self.link.extend(&later.link);
        self.queue.extend(&later.queue);
        self.cores.iter_mut().zip(&later.cores).for_each(|(sum, more)| sum.extend(more));
        if let (Some(fs), Some(later)) = (&mut self.fs, &later.fs) {
            fs.extend(later);
        }
    }
}

counts! {
    /// What was counted until an instant.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct Sample {
        /// Sectors placed.
        pub(super) sectors: SectorCounts,
        /// Of an F2FS.
        pub(super) cleaning: Option<Cleaning>,
        /// Of a coupled SSD.
        pub(super) migrations: Option<CoupledCounts>,
        /// Erase units that are free now.
        pub(super) free_lines: u64 = last,
    }
}

counts! {
    /// Cleaning of an F2FS.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub(super) struct Cleaning {
        /// Blocks that it moved.
        pub(super) blocks: u64,
        /// Time of calls in the foreground.
        pub(super) ns: u64,
        /// Checkpoints, also those that cleaning did not ask for.
        pub(super) checkpoints: u64,
        /// Segments that are free now.
        pub(super) free_segments: u64 = last,
    }
}

impl Sample {
    /// Of an FTL, and of the file system over it.
    pub(super) fn of(ftl: &RunFtl, fs: Option<&FileCounts>) -> Self {
        let cleaning = fs.and_then(|fs| match fs.fs.detail {
            FsDetail::F2fs(counts) => Some(Cleaning {
                blocks: counts.moved_blocks(),
                ns: counts.gc_calls.ns,
                checkpoints: counts.checkpoints,
                free_segments: fs.space.map_or(0, |space| space.free_segments),
            }),
            _ => None,
        });
        let (migrations, free_lines) = (migrations(ftl), ftl.free_erase_units());
        Self { sectors: ftl.sectors(), cleaning, migrations, free_lines }
    }
}

/// What only a coupled SSD counts. Others are not asked for their counts.
fn migrations(ftl: &RunFtl) -> Option<CoupledCounts> {
    match ftl {
        AnyFtl::Coupled(ftl) => Some(ftl.own_counts()),
        _ => None,
    }
}

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

/// The zones of a device at an instant, as `nvme zns report-zones` shows them; sizes and addresses in sectors of 4 KiB.
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
    /// That of a device which has zones.
    pub(super) fn of(ftl: &mut RunFtl) -> Result<Self, RunError> {
        let Reply::Zones(zones) = serve(ftl, Bio::new(Op::ZoneReport, Lba(0), u32::MAX))? else {
            return Err(RunError::Failed("defect: a zone report without zones".to_owned()));
        };
        let caps = ftl.caps();
        let zone_sectors =
            caps.zone(Default::default()).map_or(0, |(_, limits)| limits.zone_sectors);
        let random = caps.random_range();
        Ok(Self { zone_sectors, random_sectors: random.end - random.start, zones })
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
