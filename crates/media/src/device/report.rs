//! What a device tells about itself: the chunk report, wear, utilisation, memory.

use super::{Media, table_bytes};
use crate::command::{ChunkInfo, ChunkState, OpenChannel};
use crate::geometry::{ChunkId, UnitId};
use crate::store::Store;
use nandscape_rt::Nanos;

/// Wear over all chunks that are not offline.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Wear {
    /// Chunks in service.
    pub chunks: u32,
    /// Chunks offline.
    pub offline: u32,
    /// Completed erases of chunks in service.
    pub erases: u64,
    /// Erases of the chunk that was erased least.
    pub erases_min: u32,
    /// Erases of the chunk that was erased most.
    pub erases_max: u32,
}

impl Wear {
    /// With one chunk more.
    #[must_use]
    pub fn with(mut self, info: ChunkInfo) -> Self {
        if info.state == ChunkState::Offline {
            return Self { offline: self.offline + 1, ..self };
        }
        let first = self.chunks == 0;
        self.chunks += 1;
        self.erases += u64::from(info.erases);
        self.erases_min = if first { info.erases } else { self.erases_min.min(info.erases) };
        self.erases_max = self.erases_max.max(info.erases);
        self
    }
}

/// Time that each resource was taken, and what was programmed, since the counts were last reset.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Utilisation {
    /// By unit; waiting for the channel within a command is included.
    pub units: Vec<Nanos>,
    /// By channel.
    pub channels: Vec<Nanos>,
    /// Sectors that units programmed, whatever for, programs that failed included.
    pub programmed_sectors: u64,
}

impl Utilisation {
    /// Adds what the same device counted later.
    pub fn extend(&mut self, later: &Self) {
        let add = |sum: &mut [Nanos], more: &[Nanos]| {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
        };
        add(&mut self.units, &later.units);
        add(&mut self.channels, &later.channels);
        self.programmed_sectors += later.programmed_sectors;
    }
}

impl<S: Store> Media<S> {
    /// The whole chunk report, unit by unit within each chunk index.
    pub fn report(&self) -> impl Iterator<Item = (ChunkId, ChunkInfo)> {
        let geometry = self.geometry();
        let units = geometry.total_units();
        (0..geometry.chunks)
            .flat_map(move |chunk| {
                (0..units).map(move |unit| ChunkId { unit: UnitId(unit), chunk })
            })
            .map(|id| (id, self.chunk(id)))
    }

    /// Wear of the whole device.
    #[must_use]
    pub fn wear(&self) -> Wear {
        self.report().fold(Wear::default(), |wear, (_, info)| wear.with(info))
    }

    /// Busy time of every unit and channel.
    #[must_use]
    pub fn utilisation(&self) -> Utilisation {
        Utilisation {
            units: self.schedule.units_busy().collect(),
            channels: self.schedule.channels_busy().collect(),
            programmed_sectors: self.schedule.programmed_sectors(),
        }
    }

    /// Resets the busy times.
    pub fn reset_utilisation(&mut self) {
        self.schedule.reset_busy();
    }

    /// Bytes of RAM in use: tables, columns of chunks ever written, contents.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        table_bytes(self.geometry()) + self.store.memory_bytes()
    }
}
