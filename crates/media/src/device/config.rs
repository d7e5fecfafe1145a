//! What a virtual device is made of, and why one cannot be made.

use crate::geometry::{ChunkId, Geometry, GeometryError, UnitId};
use crate::nand::NandTiming;
use crate::store::PayloadMode;
use thiserror::Error;

/// Everything that makes a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaConfig {
    /// Shape and write rules.
    pub geometry: Geometry,
    /// Timing of units and channels.
    pub timing: NandTiming,
    /// How much content is kept.
    pub payload: PayloadMode,
    /// Whether tags are dropped as bytes are. That frees nothing: it shows a reader of what was dropped too early.
    pub drops_tags: bool,
    /// RAM that the device may use, its chunk table included.
    pub memory_cap_bytes: Option<u64>,
    /// Chunks that are offline from the start.
    pub bad_chunks: Vec<ChunkId>,
    /// Units whose cells are slower (or faster): time in percent of the preset's.
    pub slow_units: Vec<(UnitId, u32)>,
    /// Erases after which every further erase of a chunk fails.
    pub endurance_erases: Option<u32>,
}

impl MediaConfig {
    /// A sound device without timing, that keeps tags and bytes.
    #[must_use]
    pub const fn new(geometry: Geometry) -> Self {
        Self {
            geometry,
            timing: NandTiming::none(),
            payload: PayloadMode::Tags,
            drops_tags: false,
            memory_cap_bytes: None,
            bad_chunks: Vec::new(),
            slow_units: Vec::new(),
            endurance_erases: None,
        }
    }
}

/// Why a device cannot be made.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum MediaError {
    /// The geometry makes no sense.
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    /// A bad chunk or a slow unit that the geometry does not have.
    #[error("{key}: unit {unit} chunk {chunk} is beyond the geometry")]
    NoSuchChunk {
        /// The key at fault.
        key: &'static str,
        /// Its unit.
        unit: u32,
        /// Its chunk.
        chunk: u32,
    },
    /// An empty device already exceeds the cap, or the process cannot have the address space.
    #[error("memory: the empty device needs {needed_bytes} bytes, the limit is {cap_bytes}")]
    Memory {
        /// Bytes needed.
        needed_bytes: u64,
        /// Bytes allowed.
        cap_bytes: u64,
    },
    /// The process cannot have the address space of the columns.
    #[error("memory: there is no address space for {sectors} sectors")]
    AddressSpace {
        /// Sectors of the device.
        sectors: u64,
    },
}
