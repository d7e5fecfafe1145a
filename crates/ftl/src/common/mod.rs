//! What every log-structured FTL needs, whatever buffers it has and wherever it runs: how lines lie on
//! the device and how they live, which are victims, the logical-to-physical table, completions in time
//! order, the end of a read, and the replay of out-of-band data after a power cut.
//!
//! Nothing here knows how data are buffered, routed or admitted: durability is the owner's
//! knowledge and comes in as a sequence.

pub(crate) mod bits;
pub(crate) mod dead;
pub(crate) mod events;
pub(crate) mod firmware;
pub(crate) mod free_space;
pub(crate) mod ids;
pub(crate) mod l2p;
pub(crate) mod layout;
pub(crate) mod lines;
pub(crate) mod oob;
pub(crate) mod reads;
pub(crate) mod replay;
pub(crate) mod sealed;
pub(crate) mod shadow;
pub(crate) mod stripes;
pub(crate) mod table;
pub(crate) mod trims;
pub(crate) mod victims;
pub(crate) mod waits;
