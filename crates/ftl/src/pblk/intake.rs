//! The intake side of a pblk: all write buffers, which of them takes a bio, the log of durable discards, and
//! what waits for durability.

use super::buffers::Buffer;
use super::flush::Flushes;
use super::route::Router;
use super::trimmed::Trimmed;
use crate::common::trims::TrimLog;

/// The write buffers of a pblk, what chooses among them, and what waits for their durability.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) all: Vec<Buffer>,
    /// The ring of a slot is found by shifting its number by so many bits.
    pub(super) slot_spacing: u32,
    pub(super) router: Router,
    /// The buffer that may write first next time.
    pub(super) writer: usize,
    pub(super) trims: TrimLog,
    pub(super) trimmed: Trimmed,
    pub(super) flushes: Flushes,
}
