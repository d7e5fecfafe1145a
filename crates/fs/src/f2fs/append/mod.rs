//! What a mounted volume keeps of an append-only address space: its geometry, discards and upcalls on their way, counts.
//! [`appended`](super::appended) does the work.

mod discards;
mod geometry;
mod state;
mod upcalls;

pub use geometry::AppendGeometry;
pub use state::AppendCounts;
pub(crate) use state::{AppendSpace, Forced};
pub(crate) use upcalls::{Fetched, Upcalls};
