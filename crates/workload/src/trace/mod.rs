//! Block traces: files in, requests out.
//!
//! [`TraceReader`] streams the requests of files, of each of which it never holds more than a line beyond
//! its buffers. [`TraceWriter`] writes them in another format, [`Info`] describes them, and a `Fitter` makes them fit
//! a device. What each format means, and where this reading of it differs from other tools', is in
//! docs/formats/trace.md.

mod alibaba;
mod blkparse;
mod blktrace;
mod decompress;
mod devices;
mod disksim;
mod error;
mod fields;
mod fit;
mod footprint;
mod format;
mod info;
mod input;
mod iolog;
mod line;
mod msr;
mod reader;
mod record;
mod spc;
mod systor;
mod tencent;
mod write;

pub use devices::{Layout, Place};
pub use error::TraceError;
pub use fit::FitCounts;
pub(crate) use fit::{Extent, Extents, Fitter};
pub use footprint::Footprint;
pub use format::Format;
pub use info::{DirectionInfo, Info, SIZE_CLASSES};
pub use input::{ReadCounts, ReadOptions};
pub use reader::TraceReader;
pub use record::{Action, Record};
pub use write::{LeftOut, TraceWriter, WRITABLE};
