//! Block traces: text in, requests out, and their replay on a block device in virtual time.
//!
//! [`TraceReader`] streams the requests of a file, of which it never holds more than a line beyond its
//! buffers. [`Replay`] issues them, at their own times or as fast as the device takes them; [`Info`]
//! describes them. What each format means, and where this reading of it differs from other tools', is
//! in docs/formats/trace.md.

mod blkparse;
mod disksim;
mod error;
mod fields;
mod fit;
mod footprint;
mod format;
mod info;
mod iolog;
mod line;
mod msr;
mod reader;
mod record;
mod replay;

pub use error::{ReplayError, TraceError};
pub use fit::FitCounts;
pub(crate) use fit::Fitter;
pub use footprint::Footprint;
pub use format::Format;
pub use info::{DirectionInfo, Info, SIZE_CLASSES};
pub use reader::{ReadCounts, ReadOptions, TraceReader};
pub use record::{Action, Record};
pub use replay::{Pace, Replay, ReplayOptions, TraceCounts, check};
