//! Stores whose backend fails: a write that was not kept is refused, a read of what was lost is
//! uncorrectable, and neither is a panic.

use crate::common;

use common::{SMALL, append_data, chunk, info, ppa, read};
use nandscape_block::{SectorData, Tag};
use nandscape_media::{
    ChunkState, Media, MediaConfig, MemoryStore, Oob, OpenChannel, PayloadMode, Ppa, RuleError,
    Status, Store, StoreError, WriteCmd,
};
use nandscape_rt::Nanos;
use std::io::ErrorKind;

const T0: Nanos = Nanos::ZERO;

/// A store whose backend refuses writes, or has lost one sector.
struct Failing {
    kept: MemoryStore,
    refuses: bool,
    lost: Option<Ppa>,
}

const BROKEN: StoreError = StoreError::Io(ErrorKind::StorageFull);

impl Store for Failing {
    fn write(&mut self, cmd: &WriteCmd<'_>) -> Result<(), StoreError> {
        if self.refuses { Err(BROKEN) } else { self.kept.write(cmd) }
    }

    fn erase(&mut self, from: Ppa, sectors: u32) {
        self.kept.erase(from, sectors);
    }

    fn oob(&self, at: Ppa) -> Result<Oob, StoreError> {
        self.check(at, 1)?;
        self.kept.oob(at)
    }

    fn data(&self, at: Ppa) -> Result<SectorData, StoreError> {
        self.check(at, 1)?;
        self.kept.data(at)
    }

    fn check(&self, at: Ppa, sectors: u32) -> Result<(), StoreError> {
        let is_lost = |lost: Ppa| (at.0..at.plus(sectors).0).contains(&lost.0);
        if self.lost.is_some_and(is_lost) { Err(BROKEN) } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), StoreError> {
        if self.refuses { Err(BROKEN) } else { self.kept.sync() }
    }

    fn memory_bytes(&self) -> u64 {
        self.kept.memory_bytes()
    }
}

fn device(refuses: bool, lost: Option<Ppa>) -> Media<Failing> {
    let kept = MemoryStore::new(&SMALL, PayloadMode::Tags, u64::MAX).expect("address space");
    Media::with_store(MediaConfig::new(SMALL), Failing { kept, refuses, lost }).expect("valid")
}

/// The write leaves no trace, and says why; so does the flush of the backend.
#[test]
fn a_write_that_was_not_kept_is_refused() {
    let mut media = device(true, None);
    let error = append_data(&mut media, T0, chunk(1, 2), 8, 0, &[]).unwrap_err();
    assert_eq!((error.rule, error.unit, error.chunk), (RuleError::STORE_FAILED, 1, 2));
    assert_eq!(media.chunk(chunk(1, 2)), info(ChunkState::Free, 0, 0));
    assert_eq!(media.sync(), Err(BROKEN));
    assert_eq!(device(false, None).sync(), Ok(()));
}

/// Only commands with the lost sector in them are uncorrectable, and only that sector is unreadable.
#[test]
fn a_sector_that_the_store_lost_is_uncorrectable() {
    let lost = SMALL.ppa(chunk(0, 1), 5);
    let mut media = device(false, Some(lost));
    let data: Vec<_> = (1..=24).map(|bits| SectorData::Tag(Tag::new(bits))).collect();
    append_data(&mut media, T0, chunk(0, 1), 24, 0, &data).unwrap();
    let at = |sector| SMALL.ppa(chunk(0, 1), sector);
    for (sector, sectors, status) in
        [(0, 5, Status::Ok), (4, 2, Status::Uncorrectable), (6, 6, Status::Ok)]
    {
        assert_eq!(read(&mut media, T0, at(sector), sectors).unwrap().status, status, "{sector}");
    }
    let unreadable: Vec<u32> = (0..24).filter(|&sector| !media.readable(at(sector))).collect();
    assert_eq!(unreadable, [5]);
    assert_eq!(media.data(at(4)), data[4]);
    assert_eq!(media.data(at(5)), SectorData::Absent);
    assert_eq!(media.oob(ppa(&media, chunk(0, 1), 6)).key, 6);
}
