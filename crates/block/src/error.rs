//! Errors of block devices: values with a place.

use crate::address::Lba;
use crate::zone::ZoneStatus;
use nandscape_rt::invariant::Defect;
use std::borrow::Cow;
use thiserror::Error;

/// Why a bio failed.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum BlockError {
    /// The device lacks what the bio asks for.
    #[error("the device does not support {0}")]
    Unsupported(&'static str),
    /// The range reaches beyond the device.
    #[error("{lba}, {sectors} sectors: beyond the device's {device_sectors} sectors")]
    OutOfRange {
        /// First sector asked for.
        lba: Lba,
        /// Sectors asked for.
        sectors: u32,
        /// Sectors that the device has.
        device_sectors: u64,
    },
    /// The bio contradicts itself, for example a payload of another length.
    #[error("malformed bio: {0}")]
    Malformed(&'static str),
    /// The media cannot give or take the data.
    #[error("I/O error at {lba}: {what}")]
    Io {
        /// Where.
        lba: Lba,
        /// What happened.
        what: &'static str,
    },
    /// A command breaks a rule of its zone.
    #[error("zone {zone}: {status}")]
    Zone {
        /// Index of the zone.
        zone: u32,
        /// Which rule.
        status: ZoneStatus,
    },
    /// A write breaks the rules of its region.
    #[error("region rule at {lba}: {what}")]
    Region {
        /// Where.
        lba: Lba,
        /// Which rule.
        what: &'static str,
    },
    /// The virtual media would need more RAM than it may take.
    #[error("the virtual media reached its memory cap")]
    MemoryCap,
    /// No more data can be taken; what is stored can be read.
    #[error("the device is read-only: {0}")]
    ReadOnly(Cow<'static, str>),
    /// Stored state contradicts itself.
    #[error("corrupt {kind} at {lba}")]
    Corrupt {
        /// What was read.
        kind: &'static str,
        /// Where.
        lba: Lba,
    },
    /// Power was cut before the bio completed.
    #[error("power was lost")]
    PowerLost,
    /// A broken rule below this device: a defect of the stack itself, with the command that broke it.
    #[error("defect: {0}")]
    Defect(String),
}

impl From<Defect> for BlockError {
    fn from(defect: Defect) -> Self {
        Self::Defect(defect.0)
    }
}
