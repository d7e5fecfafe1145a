//! What a seed chooses, down to the requests of its load. Files here hold for every kind of FTL; `pblk/` holds the choices of pblk.

pub(crate) mod append;
pub(crate) mod coupled;
pub(crate) mod device;
pub(crate) mod draws;
pub(crate) mod edge_cases;
pub mod family;
pub(crate) mod faults;
pub(crate) mod geometry;
pub(crate) mod interval;
pub(crate) mod kind;
pub mod load;
pub(crate) mod pblk;
pub mod plan;
pub(crate) mod sample;
pub mod scenario;
pub mod streams;
mod words;
pub(crate) mod zoned;
