//! F2FS in append-only address spaces: IPLFS, a region per log, and D2FS, a device that moves blocks.

mod cuts;
mod devices;
mod format;
mod life;
mod space;
mod trees;
mod upcalls;
