//! The sectors of the adversary: what is durable, and above it the versions that no flush has covered.
//!
//! A flush looks at the writes that completed since the last one, not at all sectors.

use super::version::Version;
use super::zones::{Spot, Zones};
use crate::address::Lba;
use crate::bio::Owner;
use crate::payload::SectorData;
use crate::tag::Tag;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// The identity by which a scoped flush knows a file's data.
type File = (u64, u32);

pub(super) fn file(owner: Owner) -> File {
    (owner.file, owner.generation)
}

/// Where a write went.
#[derive(Clone)]
pub(super) enum Place {
    /// Sectors outside of zones.
    Sectors(Range<u64>),
    /// A zone.
    Zone(Spot),
}

/// A write that has landed whole, or a zone command that has taken effect.
#[derive(Clone)]
pub(super) struct Write {
    pub(super) number: u64,
    pub(super) place: Place,
    pub(super) file: Option<File>,
}

/// The sectors.
#[derive(Clone)]
pub(super) struct Cache {
    /// The sectors of zones.
    pub(super) zones: Zones,
    /// The other sectors.
    durable: BTreeMap<u64, SectorData>,
    /// The versions of each other sector since it was last durable, in the order in which they landed.
    pub(super) volatile: BTreeMap<u64, Vec<Version>>,
    /// Writes that completed, and that no flush has covered, with the number of the completion.
    completed: VecDeque<(u64, Write)>,
    completions: u64,
    landings: u64,
}

impl Cache {
    pub(super) const fn new(zones: Zones) -> Self {
        Self {
            zones,
            durable: BTreeMap::new(),
            volatile: BTreeMap::new(),
            completed: VecDeque::new(),
            completions: 0,
            landings: 0,
        }
    }

    /// What a sector holds now; none of one that is all zeroes.
    pub(super) fn current(&self, lba: u64) -> Option<&SectorData> {
        if let Some(zone) = self.zones.table().at(Lba(lba)) {
            return self.zones.current(zone, lba);
        }
        let newest = self.volatile.get(&lba).and_then(|versions| versions.last());
        newest.map(|version| &version.data).or_else(|| self.durable.get(&lba))
    }

    /// Writes that completed so far.
    pub(super) const fn completions(&self) -> u64 {
        self.completions
    }

    /// A version lands.
    pub(super) fn land(&mut self, lba: u64, version: Version) {
        self.landings += 1;
        let version = Version { landed: self.landings, ..version };
        self.volatile.entry(lba).or_default().push(version);
    }

    /// Sectors of a write to a zone land, or a zone command takes effect.
    pub(super) fn land_in_zone(&mut self, spot: &Spot, piece: Range<u32>) {
        self.landings += 1;
        self.zones.land(spot, piece, self.landings);
    }

    /// A write that landed completes; a lasting one is durable from here on.
    pub(super) fn complete(&mut self, write: Write, lasting: bool) {
        self.completions += 1;
        if lasting {
            self.cover(&write);
        } else {
            self.completed.push_back((self.completions, write));
        }
    }

    /// Makes durable what had completed when there were so many completions, in this scope.
    pub(super) fn flush(&mut self, completions: u64, scope: Option<File>) {
        let end = self.completed.partition_point(|(number, _)| *number <= completions);
        let mut left: VecDeque<_> = self.completed.drain(..end).collect();
        left.retain(|(_, write)| {
            let covered = scope.is_none() || write.file == scope;
            if covered {
                self.cover(write);
            }
            !covered
        });
        while let Some(write) = left.pop_back() {
            self.completed.push_front(write);
        }
    }

    /// The sectors of a write hold it, or what landed after it, from now on.
    fn cover(&mut self, write: &Write) {
        let range = match &write.place {
            Place::Sectors(range) => range.clone(),
            Place::Zone(spot) => return self.zones.cover(spot),
        };
        for lba in range {
            let Some(versions) = self.volatile.get_mut(&lba) else { continue };
            let place = versions.iter().position(|version| version.write == write.number);
            // One that is not there was overwritten by one that is durable.
            let Some(place) = place else { continue };
            let covered = versions.drain(..=place).next_back();
            if versions.is_empty() {
                self.volatile.remove(&lba);
            }
            self.settle(lba, covered);
        }
    }

    /// Makes a version durable.
    pub(super) fn settle(&mut self, lba: u64, version: Option<Version>) {
        match version.map(|version| version.data) {
            None => {}
            Some(SectorData::Tag(Tag::ZERO) | SectorData::Absent) => {
                self.durable.remove(&lba);
            }
            Some(data) => {
                self.durable.insert(lba, data);
            }
        }
    }

    /// Forgets which writes completed: a power cut has decided about all of them.
    pub(super) fn forget_completed(&mut self) {
        self.completed.clear();
    }
}
