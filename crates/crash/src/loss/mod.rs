//! What media lost, and whether a mount can know of it.

pub(crate) mod pblk;
