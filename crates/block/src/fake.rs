//! A device with any capabilities: it serves what they say and refuses the rest. For testing whoever
//! sits on a device against devices that lack something, or have what few devices have (zones,
//! migrations with upcalls).
//!
//! It answers at once, and keeps its sectors in a [`MemDevice`]. Migrations are made by the test
//! ([`FakeDevice::migrate`]): the data can be read at both addresses until the host has completed
//! the upcall that tells of it.

mod zones;

#[cfg(test)]
mod tests;

use crate::address::Lba;
use crate::bio::{Bio, Op};
use crate::caps::{DeviceCaps, Fua};
use crate::device::{BlockDevice, Completion, Done, Reply, Submit, Token};
use crate::error::BlockError;
use crate::mem::MemDevice;
use crate::payload::{Payload, SectorData};
use crate::zone::{ZoneAction, ZoneId, ZoneState};
use nandscape_rt::Nanos;
use std::collections::VecDeque;
use std::ops::Range;
use zones::Zones;

/// Migrations that the host has not completed.
struct Batch {
    id: u64,
    moves: Vec<(Lba, Lba)>,
    fetched: bool,
}

/// A device that has what its capabilities say.
pub struct FakeDevice {
    caps: DeviceCaps,
    memory: MemDevice,
    zones: Option<Zones>,
    batches: VecDeque<Batch>,
    next_batch: u64,
}

impl FakeDevice {
    /// A device with these capabilities, empty.
    #[must_use]
    pub fn new(caps: DeviceCaps) -> Self {
        let memory = MemDevice::with_caps(DeviceCaps {
            fua: Fua::Honoured,
            discard_sectors: 1,
            max_sectors: 0,
            ..caps.clone()
        });
        let zones = caps.zones.map(|limits| Zones::new(limits, caps.sectors));
        Self { caps, memory, zones, batches: VecDeque::new(), next_batch: 1 }
    }

    /// What the sector reads as.
    #[must_use]
    pub fn current(&self, lba: Lba) -> SectorData {
        self.memory.current(lba)
    }

    /// What of it is durable.
    #[must_use]
    pub fn durable(&self, lba: Lba) -> SectorData {
        self.memory.durable(lba)
    }

    /// Has the media of a zone fail: [`ZoneState::ReadOnly`] or [`ZoneState::Offline`].
    ///
    /// # Errors
    /// [`BlockError::Unsupported`] without zones, [`BlockError::Zone`] without this one.
    pub fn fail_zone(&mut self, zone: ZoneId, state: ZoneState) -> Result<(), BlockError> {
        self.zones()?.fail(zone, state)
    }

    /// Moves sectors as the device's own garbage collection does, from the first address of each
    /// pair to the second, and leaves an upcall for the host.
    ///
    /// # Errors
    /// [`BlockError::Unsupported`] where the device does not own both addresses.
    pub fn migrate(&mut self, moves: &[(Lba, Lba)]) -> Result<(), BlockError> {
        let owned = |lba: &Lba| self.caps.device_owned.iter().any(|own| own.contains(&lba.0));
        if !moves.iter().all(|(old, new)| owned(old) && owned(new)) {
            return Err(BlockError::Unsupported("migration outside the device's own regions"));
        }
        for &(old, new) in moves {
            let data = Payload::collect(vec![self.memory.current(old)]);
            self.delegate(Bio::write(new, 1, data))?;
        }
        let batch = Batch { id: self.next_batch, moves: moves.to_vec(), fetched: false };
        self.next_batch += 1;
        self.batches.push_back(batch);
        Ok(())
    }

    fn zones(&mut self) -> Result<&mut Zones, BlockError> {
        self.zones.as_mut().ok_or(BlockError::Unsupported("zones"))
    }

    fn serve(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        bio.check(&self.caps)?;
        match bio.op {
            Op::Read => self.read(bio),
            Op::Write => self.write(bio),
            Op::ZoneAppend(zone) => self.append(zone, bio),
            Op::Zone(zone, action) => self.act(zone, action),
            Op::ZoneReport => self.zones()?.report(bio.lba, bio.sectors).map(Reply::Zones),
            Op::FetchUpcall => Ok(self.fetch()),
            Op::CompleteUpcall(id) => self.complete(id),
            Op::Flush | Op::Discard => self.delegate(bio),
        }
    }

    /// Has the memory serve a bio that this device has checked by its own rules.
    fn delegate(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        match self.memory.submit(Nanos::ZERO, bio, Token::default()) {
            Submit::Done(done) => done.result,
            Submit::Pending => Err(BlockError::Defect("memory without latency".to_owned())),
        }
    }

    fn read(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        if let Some(zones) = &self.zones {
            let last = bio.lba.plus(u64::from(bio.sectors) - 1);
            for zone in zones.at(bio.lba)?.0..=zones.at(last)?.0 {
                if zones.info(ZoneId(zone))?.state == ZoneState::Offline {
                    return Err(BlockError::Zone { zone, what: "the zone is offline" });
                }
            }
        }
        self.delegate(bio)
    }

    /// Writes at random where the device allows it, else at the write pointer of a zone.
    fn write(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        let random = &self.caps.random_regions;
        if !random.iter().any(|region| within(&bio, region)) {
            match &mut self.zones {
                Some(zones) => {
                    let zone = zones.at(bio.lba)?;
                    zones.write(zone, Some(bio.lba), bio.sectors)?;
                }
                None if random.is_empty() => {}
                None => return Err(BlockError::Unsupported("writes outside the random regions")),
            }
        }
        self.delegate(bio)
    }

    fn append(&mut self, zone: ZoneId, bio: Bio) -> Result<Reply, BlockError> {
        let went = self.zones()?.write(zone, None, bio.sectors)?;
        self.delegate(Bio { op: Op::Write, lba: went, ..bio })?;
        Ok(Reply::Appended(went))
    }

    fn act(&mut self, zone: ZoneId, action: ZoneAction) -> Result<Reply, BlockError> {
        let zones = self.zones()?;
        zones.act(zone, action)?;
        let info = zones.info(zone)?;
        if action == ZoneAction::Reset {
            self.memory.clear(info.start.0..info.start.plus(info.capacity).0);
        }
        Ok(Reply::None)
    }

    /// The oldest batch that was not fetched.
    fn fetch(&mut self) -> Reply {
        match self.batches.iter_mut().find(|batch| !batch.fetched) {
            Some(batch) => {
                batch.fetched = true;
                Reply::Upcall(batch.id, batch.moves.clone())
            }
            None => Reply::None,
        }
    }

    /// The old addresses of a batch are the device's again.
    fn complete(&mut self, id: u64) -> Result<Reply, BlockError> {
        let fetched = |batch: &Batch| batch.id == id && batch.fetched;
        let batch = self.batches.iter().position(fetched).and_then(|at| self.batches.remove(at));
        let batch = batch.ok_or(BlockError::Malformed("completion of an upcall never fetched"))?;
        for (old, _) in batch.moves {
            self.memory.clear(old.0..old.0 + 1);
        }
        Ok(Reply::None)
    }
}

fn within(bio: &Bio, region: &Range<u64>) -> bool {
    region.start <= bio.lba.0 && bio.lba.0 + u64::from(bio.sectors) <= region.end
}

impl BlockDevice for FakeDevice {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, _token: Token) -> Submit {
        let result = self.serve(bio);
        let upcall_pending = self.batches.iter().any(|batch| !batch.fetched);
        Submit::Done(Done { at: now, result, upcall_pending })
    }

    fn next_event(&self) -> Option<Nanos> {
        None
    }

    fn advance(&mut self, _now: Nanos, _done: &mut Vec<Completion>) {}
}
