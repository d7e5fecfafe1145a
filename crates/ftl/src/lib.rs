//! Flash translation layers. Every kind is an [`Ftl`], and a run holds an [`AnyFtl`]. One pblk, many
//! policies: a variant is a [`pblk::config::Config`], never a copy of the FTL.

pub mod any;
mod common;
pub mod coupled;
pub mod detail;
pub mod device;
pub mod error;
pub mod face;
pub mod kind;
pub mod pblk;
pub mod report;
pub mod zoned;

pub use any::{AnyFtl, FtlConfig, VictimLaw};
pub use coupled::CoupledFtl;
pub use detail::Detail;
pub use device::DeviceFtl;
pub use device::interval::{self, IntervalFtl};
pub use error::FtlError;
pub use face::{
    Attach, CpuSpan, CpuTrack, CpuWork, DeviceSize, EraseUnit, EraseUnitState, Ftl, MemoryUse, Rest,
};
pub use kind::{FtlKind, FtlRun, OmittedRule, Side};
pub use pblk::costs::{CpuCounts, LockCounts, ThreadCounts};
pub use pblk::stats::{BufferCounts, MapCounts};
pub use pblk::{Capacity, Pblk};
pub use report::{
    FirmwareCounts, FlushTime, FtlReport, GcCounts, HostIo, MediaErrors, SectorCounts,
};
pub use zoned::ZonedFtl;
