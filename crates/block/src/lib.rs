//! The contract between what issues I/O and what serves it: what a bio carries, what a device
//! can and cannot do, and how completions travel.
//!
//! `fs` and `workload` know this crate and nothing below it; FTLs implement [`BlockDevice`].

pub mod address;
pub mod adversary;
pub mod bio;
pub mod bits;
pub mod caps;
pub mod check;
pub mod device;
pub mod error;
pub mod face;
pub mod fake;
pub mod image;
pub mod mem;
pub mod payload;
pub mod pieces;
pub mod region;
pub mod sparse;
pub mod tag;
pub mod zone;
pub mod zone_table;

pub use address::{Lba, SECTOR_BYTES, SectorBytes};
pub use adversary::AdversaryDevice;
pub use bio::{Bio, Flags, FlushScope, Op, Owner, Placement};
pub use caps::{DeviceCaps, Fua, Superblocks, UpcallSignal};
pub use device::{Attention, BlockDevice, Completion, Done, Reply, Submit, Token};
pub use error::BlockError;
pub use face::{AsyncDevice, Barriers};
pub use fake::FakeDevice;
pub use image::ImageDevice;
pub use mem::MemDevice;
pub use payload::{Payload, SectorData};
pub use pieces::Pieces;
pub use region::{Region, RegionError, RegionKind};
pub use sparse::SparseBytes;
pub use tag::Tag;
pub use zone_table::ZoneTable;
