//! What a run's series knows beside the totals of its jobs: sectors placed, and garbage collection of the file
//! system and of the device.

use super::device::{LabDevice, RunFtl};
use nandscape_fs::FsDetail;
use nandscape_ftl::coupled::CoupledCounts;
use nandscape_ftl::{Detail, Ftl, FtlKind, SectorCounts};
use nandscape_rt::Nanos;
use nandscape_rt::counts;
use nandscape_rt::counts::Counts as _;
use nandscape_workload::engine::Probe;

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
    /// Looks at a device.
    pub(super) fn of<D: LabDevice>(device: &D) -> Self {
        let fs = device.fs_counts();
        let cleaning = fs.and_then(|fs| match fs.fs.detail {
            FsDetail::F2fs(counts) => Some(Cleaning {
                blocks: counts.moved_blocks(),
                ns: counts.gc_calls.ns,
                checkpoints: counts.checkpoints,
                free_segments: fs.space.map_or(0, |space| space.free_segments),
            }),
            _ => None,
        });
        let sectors = device.sectors();
        Self { sectors, cleaning, migrations: device.look(migrations) }
    }
}

/// What only a coupled SSD counts. Others are not asked for a whole report.
fn migrations(ftl: &RunFtl) -> Option<CoupledCounts> {
    if ftl.kind() != FtlKind::Coupled {
        return None;
    }
    match ftl.report().detail {
        Detail::Coupled(counts) => Some(counts),
        _ => None,
    }
}

/// Samples for the series.
#[derive(Default)]
pub(super) struct Sampler {
    /// What was counted before the counters were last reset.
    pub(super) before: Sample,
}

impl<D: LabDevice> Probe<D> for Sampler {
    type Sample = Sample;

    fn sample(&mut self, device: &D, _: Nanos) -> Sample {
        self.before.plus(&Sample::of(device))
    }
}
