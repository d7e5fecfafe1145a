//! A device with any capabilities: it serves what they say and refuses the rest. For testing hosts
//! against devices that lack something, or have what few devices have: zones, append-only regions,
//! address spaces larger than the media, regions of the device's own with migrations and upcalls.
//!
//! - A bio takes effect when it is submitted; it completes a fixed latency later. Sectors are kept in a
//!   [`MemDevice`], whose crash model they have.
//! - A sector of an append-only region is written only while it reads as zeroes. A region whose data
//!   the device moves takes no write, zoned or append-only, to an address that an uncompleted
//!   migration names.
//! - The device moves only what is durable. The data then read the same at the old and the new address,
//!   and a discard at either reaches them; once the host has completed the upcall with the move, the old
//!   address reads as zeroes. A move is durable at once, as is its completion.
//! - A discard at the new address of a move that the host has not fetched since the power came reaches nothing: the host cannot mean what it
//!   does not know of.
//! - Where append-only regions have superblocks, each is written in order, and takes no more writes after a power cut,
//!   which leaves a part of it without gaps.
//! - After a power cut a zone is written up to some sector between what was covered and what was
//!   written, without gaps, and is closed; migrations that were not completed are offered again.
//! - Without content the device cannot tell which sectors hold data: it moves none, and enforces
//!   neither append-only writes nor the bound on live sectors.

mod migrations;
mod superblocks;

#[cfg(test)]
mod tests;

use crate::address::Lba;
use crate::bio::{Bio, Op};
use crate::caps::{DeviceCaps, Fua};
use crate::device::{Attention, BlockDevice, Completion, Done, Reply, Submit, Token};
use crate::error::BlockError;
use crate::mem::MemDevice;
use crate::payload::{Payload, SectorData};
use crate::region::{Region, RegionError, RegionKind};
use crate::zone::{ZoneAction, ZoneId, ZoneState};
use crate::zone_table::ZoneTable;
use migrations::Migrations;
use nandscape_rt::{Nanos, Stream, invariant};
use std::ops::Range;
use superblocks::SuperblockTable;

/// When the device moves data by itself.
struct Collector {
    /// Written sectors between two collections, and those since the last.
    every: u32,
    written: u32,
    /// Sectors moved in a collection at most.
    moves: u32,
    /// The collector's place: the next victim is the first at or after it, and the next target is sought from it.
    victim: u64,
    target: u64,
}

/// A device that has what its capabilities say.
pub struct FakeDevice {
    caps: DeviceCaps,
    latency: Nanos,
    memory: MemDevice,
    zones: ZoneTable,
    migrations: Migrations,
    collector: Option<Collector>,
    superblocks: SuperblockTable,
    /// Who waits for migrations.
    waiting: Vec<Token>,
    /// The latest instant it was advanced to.
    now: Nanos,
}

impl FakeDevice {
    /// A device with these capabilities, empty. It answers at once, and moves data when
    /// [`FakeDevice::migrate`] says so.
    ///
    /// # Errors
    /// Regions that cannot be those of a device.
    pub fn new(caps: DeviceCaps) -> Result<Self, RegionError> {
        caps.check_regions()?;
        let memory = MemDevice::with_caps(DeviceCaps {
            fua: Fua::Honoured,
            discard_sectors: 1,
            max_sectors: 0,
            ..caps.clone()
        });
        let zones = ZoneTable::of(&caps);
        let (latency, migrations, collector) = (Nanos::ZERO, Migrations::default(), None);
        let superblocks = SuperblockTable::of(&caps);
        let (waiting, now) = (Vec::new(), Nanos::ZERO);
        Ok(Self { caps, latency, memory, zones, migrations, collector, superblocks, waiting, now })
    }

    /// The same device, whose bios complete this much later than they are submitted.
    #[must_use]
    pub fn with_latency(self, latency: Nanos) -> Self {
        Self { latency, ..self }
    }

    /// The same device, which moves data by itself: after each `every` sectors that the host wrote, up
    /// to `moves` sectors of the regions that a device-owned region takes data of, and of that region
    /// itself, go to free addresses of it, round all of them in order of address.
    #[must_use]
    pub fn with_collector(self, every: u32, moves: u32) -> Self {
        let collector = Collector { every, written: 0, moves, victim: 0, target: 0 };
        Self { collector: Some(collector), ..self }
    }

    /// What the sector reads as.
    #[must_use]
    pub fn current(&self, lba: Lba) -> SectorData {
        self.memory.current(self.resolve(lba))
    }

    /// What of it is durable.
    #[must_use]
    pub fn durable(&self, lba: Lba) -> SectorData {
        self.memory.durable(self.resolve(lba))
    }

    /// The number of sectors of a range that hold data, those that were moved away from it not counted.
    #[must_use]
    pub fn live_sectors(&self, range: Range<u64>) -> u64 {
        self.memory.live(range)
    }

    fn resolve(&self, lba: Lba) -> Lba {
        Lba(self.migrations.resolve(lba.0))
    }

    /// Has the media of a zone fail: [`ZoneState::ReadOnly`] or [`ZoneState::Offline`].
    ///
    /// # Errors
    /// [`BlockError::Unsupported`] without zones, [`BlockError::Zone`] without this one.
    pub fn fail_zone(&mut self, zone: ZoneId, state: ZoneState) -> Result<(), BlockError> {
        self.zones()?.fail(zone, state)
    }

    /// Moves sectors as the device's own garbage collection does, from the first address of each
    /// pair to the second, and leaves a record of each for the host.
    ///
    /// # Errors
    /// [`BlockError::Region`] at the first address that rules a move out: the new one is not in a
    /// device-owned region or not free, the old one is not in that region or the one that it takes data
    /// of, or holds no durable data. The moves before it were made.
    pub fn migrate(&mut self, moves: &[(Lba, Lba)]) -> Result<(), BlockError> {
        for &(old, new) in moves {
            let refuse = |lba, what| Err(BlockError::Region { lba, what });
            let Some((source, owned)) = self.owned_pairs().find(|(_, own)| own.contains(&new.0))
            else {
                return refuse(new, "a migration to a region that the device does not own");
            };
            if !source.contains(&old.0) && !owned.contains(&old.0) {
                return refuse(old, "a migration of a sector that the device may not move");
            }
            if self.memory.settled(old.0..old.0 + 1).next().is_none() {
                return refuse(old, "a migration of a sector without durable data");
            }
            if !self.is_free(new.0) {
                return refuse(new, "a migration to an address in use");
            }
            self.relocate(old.0, new.0);
        }
        Ok(())
    }

    /// Power goes and comes back: what was not covered may be lost, and bios in flight are never
    /// answered.
    pub fn cut_power(&mut self, rng: &mut Stream) {
        self.cut_zones(rng);
        self.cut_superblocks(rng);
        self.waiting.clear();
        self.memory.cut_power(rng);
        self.migrations.power_cut();
    }

    /// What a cut leaves of each superblock: of what no flush covered, the first sectors.
    fn cut_superblocks(&mut self, rng: &mut Stream) {
        for written in self.superblocks.power_cut() {
            let uncovered = self.memory.unflushed(written).filter(|lba| self.memory.is_live(*lba));
            let uncovered: Vec<u64> = uncovered.collect();
            let kept = rng.below(uncovered.len() as u64 + 1) as usize;
            for (index, lba) in uncovered.into_iter().enumerate() {
                match index < kept {
                    true => self.memory.make_durable(lba..lba + 1),
                    false => self.memory.clear(lba..lba + 1),
                }
            }
        }
    }

    /// What a cut leaves of each zone.
    fn cut_zones(&mut self, rng: &mut Stream) {
        let infos: Vec<_> = self.zones.infos().copied().collect();
        for (zone, info) in (0..).map(ZoneId).zip(infos) {
            let written = info.start.0..info.write_pointer.0;
            let uncovered = self.memory.unflushed(written.clone()).next().unwrap_or(written.end);
            // What the device moved was durable, as was all before it.
            let settled = self.memory.settled(written.clone()).next_back();
            let moved = self.migrations.last_moved(written.clone());
            let covered = settled.max(moved).map_or(0, |lba| lba + 1);
            let end = rng.within(uncovered.max(covered)..written.end + 1);
            self.memory.make_durable(written.start..end);
            self.memory.clear(end..written.end);
            let known = self.zones.power_cut(zone, Lba(end));
            invariant!(known.is_ok(), "{zone:?} is one of the device");
        }
    }

    /// The device-owned regions, each after the region that it takes data of.
    fn owned_pairs(&self) -> impl Iterator<Item = (Range<u64>, Range<u64>)> + '_ {
        let regions = &self.caps.regions;
        regions.iter().filter_map(|region| match region.kind {
            RegionKind::DeviceOwned { of } => {
                Some((regions.get(usize::from(of))?.range.clone(), region.range.clone()))
            }
            _ => None,
        })
    }

    /// Whether nothing is or may come back at an address, and no record names it.
    fn is_free(&self, lba: u64) -> bool {
        !self.memory.is_used(lba) && !self.migrations.refers_to(lba)
    }

    fn relocate(&mut self, old: u64, new: u64) {
        self.memory.relocate(old, new);
        self.migrations.record(old, new);
    }

    /// The device's own garbage collection, if it is due after these written sectors.
    fn collect(&mut self, sectors: u32) {
        let Some(collector) = &mut self.collector else { return };
        collector.written = collector.written.saturating_add(sectors);
        if collector.written < collector.every {
            return;
        }
        collector.written = 0;
        let moves = collector.moves;
        let pairs: Vec<_> = self.owned_pairs().collect();
        for (source, owned) in pairs {
            for _ in 0..moves {
                self.collect_one(&source, &owned);
            }
        }
    }

    /// Moves one sector, if there is one to move and a free address for it.
    fn collect_one(&mut self, source: &Range<u64>, owned: &Range<u64>) {
        let Some(Collector { victim, target, .. }) = self.collector else { return };
        let first = |range: &Range<u64>, from: u64| {
            let range = range.start.max(from)..range.end;
            if range.is_empty() { None } else { self.memory.settled(range).next() }
        };
        let after = |from| [source, owned].iter().filter_map(|range| first(range, from)).min();
        let Some(old) = after(victim).or_else(|| after(0)) else { return };
        let from = target.clamp(owned.start, owned.end);
        let Some(new) = (from..owned.end).chain(owned.start..from).find(|&lba| self.is_free(lba))
        else {
            return;
        };
        self.relocate(old, new);
        self.collector.iter_mut().for_each(|c| (c.victim, c.target) = (old + 1, new + 1));
    }

    /// The zones, if the device has any.
    fn zones(&mut self) -> Result<&mut ZoneTable, BlockError> {
        if self.zones.is_empty() {
            return Err(BlockError::Unsupported("zones"));
        }
        Ok(&mut self.zones)
    }

    fn serve(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        bio.check(&self.caps)?;
        match bio.op {
            Op::Read => self.read(bio),
            Op::Write => self.write(bio),
            Op::ZoneAppend(zone) => self.append(zone, bio),
            Op::Zone(zone, action) => self.act(zone, action),
            Op::ZoneReport => Ok(self.report(bio.lba, bio.sectors)),
            Op::FetchUpcall => Ok(self.migrations.fetch(bio.sectors)),
            // Answered when it was submitted, or when there is a migration.
            Op::AwaitUpcall => Ok(Reply::None),
            Op::CompleteUpcall(id) => self.migrations.complete(id),
            Op::Flush | Op::Discard => self.delegate(bio),
        }
    }

    /// Has the memory serve a bio that this device has checked by its own rules, at the addresses where
    /// the data are.
    fn delegate(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        if self.migrations.is_empty() || bio.op == Op::Flush {
            return self.submit_to_memory(bio);
        }
        let mut data = Vec::new();
        for index in 0..bio.sectors {
            let named = bio.lba.plus(index.into());
            if bio.op == Op::Discard && self.migrations.is_news(named.0) {
                continue;
            }
            let lba = self.resolve(named);
            let payload = match bio.op {
                Op::Write => Payload::collect(vec![bio.payload.sector(index)]),
                _ => Payload::None,
            };
            let bio = Bio { lba, sectors: 1, payload, ..bio.clone() };
            if let Reply::Data(payload) = self.submit_to_memory(bio)? {
                data.push(payload.sector(0));
            }
        }
        Ok(if data.is_empty() { Reply::None } else { Reply::Data(Payload::collect(data)) })
    }

    fn submit_to_memory(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        match self.memory.submit(Nanos::ZERO, bio, Token::default()) {
            Submit::Done(done) => done.result,
            Submit::Pending => Err(BlockError::Defect("memory without latency".to_owned())),
        }
    }

    fn read(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        self.zones.check_read(bio.lba, bio.sectors)?;
        self.delegate(bio)
    }

    /// Writes as the region allows.
    fn write(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        let Some(Region { kind, .. }) = self.caps.region_of(bio.lba) else {
            return Err(BlockError::Unsupported("addresses outside the regions"));
        };
        let range = bio.lba.0..bio.lba.0 + u64::from(bio.sectors);
        if kind == RegionKind::Append {
            self.check_append(range.clone())?;
            let is_empty = |superblock: Range<u64>| {
                self.memory.live(superblock.clone()) == 0 && !self.migrations.refer_into(superblock)
            };
            self.superblocks.check(&range, is_empty)?;
        }
        self.check_live_sectors(range.clone())?;
        if kind == RegionKind::Append {
            self.superblocks.note(&range);
        }
        if let RegionKind::Zones(_) = kind {
            self.check_not_moved(range)?;
            if let Some(zone) = self.zones.at(bio.lba) {
                self.zones.write(zone, Some(bio.lba), bio.sectors)?;
            }
        }
        self.write_admitted(bio)
    }

    /// Writes what was admitted; then the device may move data.
    fn write_admitted(&mut self, bio: Bio) -> Result<Reply, BlockError> {
        let sectors = bio.sectors;
        let reply = self.delegate(bio)?;
        self.collect(sectors);
        Ok(reply)
    }

    /// The rule of append-only regions.
    fn check_append(&self, range: Range<u64>) -> Result<(), BlockError> {
        match range.clone().find(|&lba| self.memory.is_live(self.migrations.resolve(lba))) {
            Some(lba) => {
                let what = "an overwrite in an append-only region";
                Err(BlockError::Region { lba: Lba(lba), what })
            }
            None => self.check_not_moved(range),
        }
    }

    fn check_not_moved(&self, mut range: Range<u64>) -> Result<(), BlockError> {
        match range.find(|&lba| self.migrations.refers_to(lba)) {
            Some(lba) => {
                let what = "a write to an address whose migration is not completed";
                Err(BlockError::Region { lba: Lba(lba), what })
            }
            None => Ok(()),
        }
    }

    /// The bound on sectors that hold data.
    fn check_live_sectors(&self, range: Range<u64>) -> Result<(), BlockError> {
        let (most, lba) = (self.caps.live_sectors(), Lba(range.start));
        if most == self.caps.sectors {
            return Ok(());
        }
        let added = range.filter(|&lba| !self.memory.is_live(self.migrations.resolve(lba)));
        if self.memory.live(0..u64::MAX) + added.count() as u64 <= most {
            return Ok(());
        }
        Err(BlockError::Region { lba, what: "more live sectors than the device holds" })
    }

    fn append(&mut self, zone: ZoneId, bio: Bio) -> Result<Reply, BlockError> {
        let at = self.zones()?.info(zone)?.write_pointer;
        let range = at.0..at.0 + u64::from(bio.sectors);
        self.check_live_sectors(range.clone())?;
        self.check_not_moved(range)?;
        let went = self.zones()?.write(zone, None, bio.sectors)?;
        self.write_admitted(Bio { op: Op::Write, lba: went, ..bio })?;
        Ok(Reply::Appended(went))
    }

    fn act(&mut self, zone: ZoneId, action: ZoneAction) -> Result<Reply, BlockError> {
        let zones = self.zones()?;
        zones.act(zone, action)?;
        let info = zones.info(zone)?;
        if action == ZoneAction::Reset {
            for lba in info.start.0..info.start.plus(info.capacity).0 {
                let data = self.migrations.resolve(lba);
                self.memory.clear(data..data + 1);
            }
        }
        Ok(Reply::None)
    }

    /// Up to `count` zones that end after `lba`.
    fn report(&self, lba: Lba, count: u32) -> Reply {
        Reply::Zones(self.zones.report(lba, count))
    }
}

impl BlockDevice for FakeDevice {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.now = now;
        let waits = bio.op == Op::AwaitUpcall && !self.migrations.are_pending();
        let result = self.serve(bio);
        if waits && result.is_ok() {
            self.waiting.push(token);
            return Submit::Pending;
        }
        Submit::Done(Done::new(now.saturating_add(self.latency), result))
    }

    fn next_event(&self) -> Option<Nanos> {
        let is_due = !self.waiting.is_empty() && self.migrations.are_pending();
        is_due.then_some(self.now)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.now = now;
        if self.migrations.are_pending() {
            let waiting = std::mem::take(&mut self.waiting).into_iter();
            done.extend(waiting.map(|token| Completion { token, done: Done::ok(now) }));
        }
    }

    fn attention(&self) -> Attention {
        match self.caps.raises_attention && self.migrations.are_pending() {
            true => Attention::UPCALL,
            false => Attention::NONE,
        }
    }
}
