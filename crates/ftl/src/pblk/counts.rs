//! What a pblk counts while it runs, but for [`FlashCounts`](super::flash::FlashCounts). Beside [`FtlReport`](crate::report::FtlReport), which is made of it,
//! so that the write path changes plain fields.

use super::stats::{BufferCounts, BufferRole};
use crate::report::{FlushTime, GcCounts, HostIo};

/// Counts since the last reset.
#[derive(Default, Debug)]
pub(super) struct PblkCounts {
    pub(super) host: HostIo,
    pub(super) gc: GcCounts,
    pub(super) flush: FlushTime,
    /// Each write buffer.
    pub(super) buffers: Vec<BufferCounts>,
    /// Units written by their sectors of padding, from one on.
    pub(super) pad_units: Vec<u64>,
}

impl PblkCounts {
    /// Nothing counted yet, by a pblk with such buffers that writes units of this many sectors.
    pub(super) fn new(unit_sectors: u32, roles: impl Iterator<Item = BufferRole>) -> Self {
        let buffers = roles.map(|role| BufferCounts { role, ..BufferCounts::default() }).collect();
        Self { pad_units: vec![0; unit_sectors as usize], buffers, ..Self::default() }
    }

    /// Sectors of writes and discards that were let in.
    pub(super) fn admitted_sectors(&self) -> u64 {
        self.host.written + self.host.discarded
    }
}
