//! The virtual open-channel SSD (Open-Channel SSD specification 2.0): geometry, chunk rules, timing
//! by reservation, wear, seeded and scripted faults, power cuts, and storage in columns.
//!
//! FTLs talk to it through [`OpenChannel`], those on the host behind a [`HostLink`]. A rule that an FTL breaks is a [`RuleError`] with the
//! command in it, never silently served.

pub mod command;
pub mod device;
pub mod faults;
pub mod geometry;
mod inflight;
pub mod layer;
pub mod link;
pub mod nand;
mod preset;
mod rules;
pub mod snapshot;
pub mod store;
pub mod tracer;

pub use command::{
    Cause, ChunkInfo, ChunkState, Crossing, DataOut, Fault, Internal, KEY_EMPTY, KEY_MAX, KEY_TRIM,
    Kind, Oob, OpenChannel, Outcome, RuleError, Status, WriteCmd,
};
pub use device::{Media, MediaConfig, MediaError, Utilisation, Wear, sector_memory};
pub use faults::{Delays, FaultInjector, Faults};
pub use geometry::{AddressFormat, ChunkId, Geometry, GeometryError, Ppa, UnitId};
pub use layer::Layer;
pub use link::{Duplex, HostLink, LinkTiming, LinkUse, Linked, ToHost};
pub use nand::{
    Action, Command, LinkScheduling, Log, MultiPlane, NandTiming, ReadPriority, Resource, Span,
};
pub use preset::DeviceTiming;
pub use snapshot::SnapshotError;
pub use store::{MemoryStore, PayloadMode, Store, StoreError};
pub use tracer::{Count, Counters, Tracer};
