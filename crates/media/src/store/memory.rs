//! Sectors in memory, in columns (DESIGN decision 11).
//!
//! Columns are flat and indexed by packed address: 4 bytes of key a sector, 8 bytes of
//! sequence and kind a write unit, and 8 bytes of content a sector in the modes that keep content.
//! From the first write whose sectors have sequences of their own, 4 more bytes per sector; from the
//! first write with auxiliary values, 4 more.
//! The operating system backs only what was touched, so an unused device costs nothing and holes in
//! the address space never cost anything. In mode `None` the bytes of metadata lie in an ordered
//! map, trailing zeroes trimmed.
//!
//! A content that is dropped reads as one that was not kept, whatever it was, and its place in the column says so;
//! the other columns stay as they are. Mode `None` does not remember what was dropped.
//!
//! The memory count includes a chunk's share of the columns from its first write on (never-written
//! chunks are not backed), the bytes of contents as they are packed, and [`ENTRY_BYTES`] for each entry
//! of the map.

mod gone;
mod transfer;

pub(crate) use transfer::{Block, HeldBytes};

use super::slab::{COST_BYTES, PLACE_BYTES, Slab};
use super::{PayloadMode, Store, StoreError};
use crate::command::{KEY_EMPTY, Kind, Oob, WriteCmd};
use crate::geometry::{Geometry, Ppa};
use nandscape_block::{Pieces, SECTOR_BYTES, SectorBytes, SectorData, Tag};
use nandscape_column::Column;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bits of a sequence; the byte above holds the kind, and whether sectors have their own sequences.
const SEQ_BITS: u32 = 56;
const SEQ_MASK: u64 = (1 << SEQ_BITS) - 1;
/// Units column: the sectors' sequences are in the column of deltas.
const OWN_SEQS: u64 = 1 << 63;
/// Content column: this bit marks a handle of the slab, without it the value is a tag.
const HANDLE: u64 = 1 << 63;
/// Content column: content was not kept.
const ABSENT: u64 = u64::MAX;
/// Content column: content was dropped.
const DROPPED: u64 = u64::MAX - 1;
/// What an entry of the metadata map counts for: address, pointer and length.
const ENTRY_BYTES: u64 = 24;

/// The in-memory store.
#[derive(Debug)]
pub struct MemoryStore {
    mode: PayloadMode,
    /// Whether tags are dropped as bytes are.
    drops_tags: bool,
    /// Whether any sector of data ever held bytes, or tags that are dropped: on most devices without a file system
    /// none does, and nothing need be looked up.
    may_drop: bool,
    /// Sectors whose content was dropped and that were not erased since.
    dropped: u64,
    /// Key of each sector.
    keys: Column<u32>,
    /// Sequence base and kind of each granule.
    units: Column<u64>,
    /// Sequence of each sector less its granule's, where sectors have their own.
    seq_deltas: Option<Column<u32>>,
    /// Auxiliary value of each sector, once a write had any.
    aux: Option<Column<u32>>,
    /// A granule is 2^this sectors: the largest power of two that divides the write unit, so that
    /// no granule belongs to two units and finding one takes no division.
    granule_bits: u32,
    /// Content of each sector; empty in mode `None`.
    contents: Column<u64>,
    slab: Slab,
    /// Bytes of metadata in mode `None`, by address.
    metadata: BTreeMap<u64, Box<[u8]>>,
    metadata_bytes: u64,
    /// Whether a chunk was ever written, by packed address without its sector.
    touched: Box<[bool]>,
    sector_bits: u32,
    chunk_bytes: u64,
    columns_bytes: u64,
    cap_bytes: u64,
}

const fn kind_of(packed: u64) -> Kind {
    match (packed & !OWN_SEQS) >> SEQ_BITS {
        1 => Kind::Data,
        2 => Kind::Smeta,
        3 => Kind::Emeta,
        4 => Kind::Pad,
        5 => Kind::Map,
        _ => Kind::None,
    }
}

/// Whether a content is a handle of the slab.
const fn is_handle(content: u64) -> bool {
    content & HANDLE != 0 && content != ABSENT && content != DROPPED
}

/// The bytes without their trailing zeroes.
fn trimmed(bytes: &SectorBytes) -> &[u8] {
    let kept = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &bytes[..kept]
}

impl MemoryStore {
    /// An empty store for a device of this shape, which may use `cap_bytes` of RAM. `None` when the
    /// process cannot have the address space.
    #[must_use]
    pub fn new(geometry: &Geometry, mode: PayloadMode, cap_bytes: u64) -> Option<Self> {
        let granule_bits = geometry.ws_min.trailing_zeros();
        let sectors = u64::from(geometry.sectors);
        let contents = if mode == PayloadMode::None { 0 } else { geometry.ppa_end() };
        let content_bytes = if mode == PayloadMode::None { 0 } else { sectors * 8 };
        Some(Self {
            mode,
            drops_tags: false,
            may_drop: false,
            dropped: 0,
            keys: Column::zeroed(geometry.ppa_end())?,
            units: Column::zeroed((geometry.ppa_end() >> granule_bits) + 1)?,
            seq_deltas: None,
            aux: None,
            granule_bits,
            contents: Column::zeroed(contents)?,
            slab: Slab::default(),
            metadata: BTreeMap::new(),
            metadata_bytes: 0,
            touched: vec![false; (geometry.ppa_end() >> geometry.sector_bits()) as usize].into(),
            sector_bits: geometry.sector_bits(),
            chunk_bytes: sectors * 4 + (sectors >> granule_bits) * 8 + content_bytes,
            columns_bytes: 0,
            cap_bytes,
        })
    }

    /// The same, which drops tags as it drops bytes, or not.
    pub(crate) fn dropping_tags(self, drops_tags: bool) -> Self {
        Self { drops_tags, may_drop: self.may_drop || drops_tags, ..self }
    }

    /// Counts a chunk's share of the columns, and checks the cap against all that a write can cost.
    fn admit(&mut self, cmd: &WriteCmd<'_>) -> Result<(), StoreError> {
        if !cmd.seq_deltas.is_empty() && self.seq_deltas.is_none() {
            self.add_seq_column()?;
        }
        if !cmd.aux.is_empty() && self.aux.is_none() {
            self.add_aux_column()?;
        }
        let chunk = (cmd.at.0 >> self.sector_bits) as usize;
        let share = if self.touched[chunk] { 0 } else { self.chunk_bytes };
        let contents: u64 = cmd.data.iter().map(|data| self.cost_bytes(data)).sum();
        if share + contents > 0 && self.memory_bytes() + share + contents > self.cap_bytes {
            return Err(StoreError::Full);
        }
        self.touched[chunk] = true;
        self.columns_bytes += share;
        Ok(())
    }

    /// The most RAM that keeping a content can take, beyond its place in the column.
    fn cost_bytes(&self, data: &SectorData) -> u64 {
        match (self.mode, data) {
            (PayloadMode::None, data) => {
                data.bytes().map_or(0, |bytes| trimmed(&bytes).len() as u64 + ENTRY_BYTES)
            }
            (_, SectorData::Sparse(bytes)) => bytes.own_bytes() + PLACE_BYTES,
            (PayloadMode::Tags, SectorData::Pieces(_)) => Pieces::BYTES + PLACE_BYTES,
            (_, SectorData::Bytes(_) | SectorData::Pieces(_)) => COST_BYTES,
            (PayloadMode::Bytes, SectorData::Tag(tag)) if *tag != Tag::ZERO => COST_BYTES,
            _ => 0,
        }
    }

    /// Keeps the sectors' own sequences: the first of a granule as its base, the others as the
    /// distance from it.
    fn keep_seqs(&mut self, cmd: &WriteCmd<'_>) {
        let Some(column) = &mut self.seq_deltas else { return };
        let (first, granule) = (cmd.at.0 as usize, 1 << self.granule_bits);
        for (index, deltas) in cmd.seq_deltas.chunks(granule).enumerate() {
            let at = first + index * granule;
            let base = cmd.seq + u64::from(deltas[0]);
            self.units[at >> self.granule_bits] =
                OWN_SEQS | (cmd.kind as u64) << SEQ_BITS | (base & SEQ_MASK);
            for (place, delta) in column[at..].iter_mut().zip(deltas) {
                *place = delta.wrapping_sub(deltas[0]);
            }
        }
    }

    /// Keeps the sectors' auxiliary values; 0 for those of a write without.
    fn keep_aux(&mut self, cmd: &WriteCmd<'_>) {
        let Some(column) = &mut self.aux else { return };
        let first = cmd.at.0 as usize;
        let kept = &mut column[first..first + cmd.keys.len()];
        if cmd.aux.is_empty() {
            kept.fill(0);
        } else {
            kept.copy_from_slice(cmd.aux);
        }
    }

    #[cold]
    fn add_seq_column(&mut self) -> Result<(), StoreError> {
        self.seq_deltas = Some(self.another_column()?);
        Ok(())
    }

    #[cold]
    fn add_aux_column(&mut self) -> Result<(), StoreError> {
        self.aux = Some(self.another_column()?);
        Ok(())
    }

    /// A column of 4 bytes per sector, which counts for every chunk.
    fn another_column(&mut self) -> Result<Column<u32>, StoreError> {
        let share = 4 << self.sector_bits;
        let touched = self.touched.iter().filter(|touched| **touched).count() as u64;
        if self.memory_bytes() + touched * share > self.cap_bytes {
            return Err(StoreError::Full);
        }
        let column = Column::zeroed(self.keys.len() as u64).ok_or(StoreError::Full)?;
        self.columns_bytes += touched * share;
        self.chunk_bytes += share;
        Ok(column)
    }

    fn keep_metadata(&mut self, cmd: &WriteCmd<'_>) {
        for (at, data) in (cmd.at.0..).zip(cmd.data) {
            if let Some(bytes) = data.bytes() {
                let bytes: Box<[u8]> = trimmed(&bytes).into();
                self.metadata_bytes += bytes.len() as u64 + ENTRY_BYTES;
                self.metadata.insert(at, bytes);
                self.may_drop |= cmd.kind == Kind::Data;
            }
        }
    }

    fn keep_contents(&mut self, cmd: &WriteCmd<'_>) {
        let first = cmd.at.0 as usize;
        if cmd.data.is_empty() {
            self.contents[first..first + cmd.keys.len()].fill(ABSENT);
        }
        for (at, data) in (first..).zip(cmd.data) {
            self.contents[at] = match data {
                SectorData::Absent => ABSENT,
                SectorData::Tag(tag) if self.mode == PayloadMode::Tags || *tag == Tag::ZERO => {
                    tag.bits()
                }
                SectorData::Tag(_) | SectorData::Pieces(_) if self.mode == PayloadMode::Bytes => {
                    let bytes = data.expand().map(|bytes| SectorData::Bytes(bytes.into()));
                    self.keep_bytes(cmd.kind, &bytes.unwrap_or_default())
                }
                data => self.keep_bytes(cmd.kind, data),
            };
        }
    }

    fn keep_bytes(&mut self, kind: Kind, bytes: &SectorData) -> u64 {
        self.may_drop |= kind == Kind::Data;
        HANDLE | u64::from(self.slab.insert(bytes))
    }

    fn metadata_at(&self, at: Ppa) -> SectorData {
        self.metadata.get(&at.0).map_or(SectorData::Absent, |kept| {
            let mut bytes = [0; SECTOR_BYTES as usize];
            bytes[..kept.len()].copy_from_slice(kept);
            SectorData::Bytes(Arc::new(bytes))
        })
    }
}

impl Store for MemoryStore {
    #[inline]
    fn write(&mut self, cmd: &WriteCmd<'_>) -> Result<(), StoreError> {
        self.admit(cmd)?;
        let (first, sectors) = (cmd.at.0 as usize, cmd.keys.len());
        self.keys[first..first + sectors].copy_from_slice(cmd.keys);
        if cmd.seq_deltas.is_empty() {
            let granules = first >> self.granule_bits..(first + sectors) >> self.granule_bits;
            for (granule, unit) in self.units[granules].iter_mut().enumerate() {
                let seq = cmd.seq + ((granule as u64) << self.granule_bits);
                *unit = (cmd.kind as u64) << SEQ_BITS | (seq & SEQ_MASK);
            }
        } else {
            self.keep_seqs(cmd);
        }
        self.keep_aux(cmd);
        match self.mode {
            PayloadMode::None => self.keep_metadata(cmd),
            PayloadMode::Tags | PayloadMode::Bytes => self.keep_contents(cmd),
        }
        Ok(())
    }

    fn erase(&mut self, from: Ppa, sectors: u32) {
        if !self.metadata.is_empty() {
            self.erase_metadata(from, sectors);
        }
        if self.slab.len() > 0 || self.dropped > 0 {
            self.erase_contents(from, sectors);
        }
    }

    #[inline]
    fn oob(&self, at: Ppa) -> Result<Oob, StoreError> {
        let key = self.keys.get(at.0 as usize).copied().unwrap_or(KEY_EMPTY);
        let unit = self.units.get((at.0 >> self.granule_bits) as usize).copied().unwrap_or(0);
        let offset = match &self.seq_deltas {
            Some(deltas) if unit & OWN_SEQS != 0 => u64::from(deltas[at.0 as usize]),
            _ => at.0 & ((1 << self.granule_bits) - 1),
        };
        let aux = self.aux.as_ref().map_or(0, |column| column[at.0 as usize]);
        Ok(Oob { key, seq: (unit & SEQ_MASK) + offset, kind: kind_of(unit), aux })
    }

    fn data(&self, at: Ppa) -> Result<SectorData, StoreError> {
        Ok(match self.contents.get(at.0 as usize).copied() {
            None => self.metadata_at(at),
            Some(ABSENT | DROPPED) => SectorData::Absent,
            Some(content) if content & HANDLE == 0 => SectorData::Tag(Tag::new(content)),
            Some(content) => self.slab.get(content as u32),
        })
    }

    #[inline]
    fn may_drop(&self) -> bool {
        self.may_drop
    }

    #[inline]
    fn is_droppable(&self, at: Ppa) -> bool {
        self.may_drop && self.would_free(at)
    }

    fn drop_content(&mut self, at: Ppa) -> bool {
        self.drop_one(at)
    }

    #[inline]
    fn is_dropped(&self, at: Ppa) -> bool {
        self.dropped > 0 && self.contents.get(at.0 as usize) == Some(&DROPPED)
    }

    /// Memory is as durable as the device that it stands for.
    fn sync(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    #[inline]
    fn prefetch(&self, at: Ppa) {
        self.keys.prefetch(at.0 as usize);
    }

    #[inline]
    fn memory_bytes(&self) -> u64 {
        self.columns_bytes + self.slab.memory_bytes() + self.metadata_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{ChunkId, UnitId};

    const GEOMETRY: Geometry = Geometry {
        groups: 3,
        units: 1,
        chunks: 5,
        sectors: 48,
        ws_min: 12,
        ws_opt: 24,
        mw_cunits: 0,
        maxoc: 0,
        maxocpu: 0,
    };

    fn store(mode: PayloadMode, cap_bytes: u64) -> MemoryStore {
        MemoryStore::new(&GEOMETRY, mode, cap_bytes).unwrap()
    }

    fn chunk(unit: u32, chunk: u32) -> Ppa {
        GEOMETRY.ppa(ChunkId { unit: UnitId(unit), chunk }, 0)
    }

    fn write(
        store: &mut MemoryStore,
        at: Ppa,
        seq: u64,
        keys: &[u32],
        data: &[SectorData],
    ) -> Result<(), StoreError> {
        store.write(&WriteCmd { at, kind: Kind::Data, seq, seq_deltas: &[], aux: &[], keys, data })
    }

    fn bytes(fill: &[u8]) -> SectorData {
        let mut bytes = [0; SECTOR_BYTES as usize];
        bytes[..fill.len()].copy_from_slice(fill);
        SectorData::Bytes(Arc::new(bytes))
    }

    /// Sectors with sequences of their own get them back, beside units that count on from their first.
    #[test]
    fn sectors_may_have_their_own_sequences() {
        let mut store = store(PayloadMode::None, u64::MAX);
        let first = chunk(1, 2);
        write(&mut store, first, 50, &[9; 12], &[]).unwrap();
        let deltas = [
            0,
            1,
            7,
            8,
            9,
            1_000,
            1_001,
            4_000_000_000,
            4_000_000_001,
            4_000_000_005,
            u32::MAX - 1,
            u32::MAX,
        ];
        let at = first.plus(12);
        let cmd = WriteCmd {
            at,
            kind: Kind::Data,
            seq: 70,
            seq_deltas: &deltas,
            aux: &[],
            keys: &[4; 12],
            data: &[],
        };
        store.write(&cmd).unwrap();
        for (i, delta) in (0..).zip(deltas) {
            assert_eq!(store.oob(first.plus(i)).unwrap().seq, 50 + u64::from(i));
            let expected = Oob { key: 4, seq: 70 + u64::from(delta), kind: Kind::Data, aux: 0 };
            assert_eq!(store.oob(at.plus(i)), Ok(expected));
        }
    }

    /// Auxiliary values come back, also beside writes without any, and after a chunk was written again.
    #[test]
    fn sectors_may_have_auxiliary_values() {
        let mut store = store(PayloadMode::None, u64::MAX);
        let first = chunk(1, 2);
        write(&mut store, first, 50, &[9; 12], &[]).unwrap();
        let plain = store.memory_bytes();
        let aux: Vec<u32> = (0..12).map(|sector| sector * 1_000_003).collect();
        let cmd = WriteCmd {
            at: first.plus(12),
            kind: Kind::Data,
            seq: 70,
            seq_deltas: &[],
            aux: &aux,
            keys: &[4; 12],
            data: &[],
        };
        store.write(&cmd).unwrap();
        assert_eq!(store.memory_bytes(), plain + (4 << GEOMETRY.sector_bits()));
        let found = |store: &MemoryStore, from: Ppa| -> Vec<u32> {
            (0..12).map(|sector| store.oob(from.plus(sector)).unwrap().aux).collect()
        };
        assert_eq!(found(&store, first), [0; 12]);
        assert_eq!(found(&store, first.plus(12)), aux);
        assert_eq!(store.oob(first.plus(13)).unwrap().seq, 71);
        store.erase(first, 48);
        write(&mut store, first.plus(12), 90, &[9; 12], &[]).unwrap();
        assert_eq!(found(&store, first.plus(12)), [0; 12]);
    }

    /// Key, sequence and kind of every sector come back, also when the write unit is not a power of
    /// two, and neighbours do not disturb each other.
    #[test]
    fn out_of_band_data_come_back() {
        let mut store = store(PayloadMode::None, u64::MAX);
        for (i, at) in [chunk(2, 4), chunk(1, 4), chunk(2, 4).plus(12)].into_iter().enumerate() {
            let keys: Vec<u32> = (100 * i as u32..).take(12).collect();
            write(&mut store, at, 1_000 * i as u64 + 7, &keys, &[]).unwrap();
        }
        for sector in 0..24 {
            let (write, offset) = if sector < 12 { (0, sector) } else { (2, sector - 12) };
            let seq = 1_000 * u64::from(write) + 7 + u64::from(offset);
            let expected = Oob { key: 100 * write + offset, seq, kind: Kind::Data, aux: 0 };
            assert_eq!(store.oob(chunk(2, 4).plus(sector)), Ok(expected));
        }
    }

    /// Each mode gives back what it promises to keep, in any mixture.
    #[test]
    fn modes_keep_what_they_promise() {
        let tag = SectorData::Tag(Tag::new(99));
        let data: Vec<SectorData> =
            [SectorData::Absent, tag.clone(), SectorData::Tag(Tag::ZERO), bytes(b"abc")]
                .into_iter()
                .cycle()
                .take(12)
                .collect();
        for mode in [PayloadMode::None, PayloadMode::Tags, PayloadMode::Bytes] {
            let mut store = store(mode, u64::MAX);
            write(&mut store, chunk(0, 1), 0, &[0; 12], &data).unwrap();
            for (i, written) in data.iter().enumerate() {
                let dropped = mode == PayloadMode::None && i % 4 != 3;
                let expected = if dropped { &SectorData::Absent } else { written };
                let data = store.data(chunk(0, 1).plus(i as u32)).unwrap();
                assert_eq!(&data, expected, "{mode:?} {i}");
            }
        }
        let mut bytes_only = store(PayloadMode::Bytes, u64::MAX);
        write(&mut bytes_only, chunk(0, 1), 0, &[0; 12], &data).unwrap();
        assert!(matches!(bytes_only.data(chunk(0, 1).plus(1)), Ok(SectorData::Bytes(_))));
    }

    /// Memory is counted to the byte, goes down at erase, and an unused device counts nothing.
    #[test]
    fn memory_is_counted() {
        let data: Vec<SectorData> = (0..12).map(|_| bytes(b"0123456789")).collect();
        let columns = 48 * 4 + 12 * 8;
        let SectorData::Sparse(sparse) = SectorData::sparse(&[1; 4_096]) else { unreachable!() };
        let line = sparse.own_bytes() - 63 * 64 + PLACE_BYTES;
        for (mode, column, content) in [
            (PayloadMode::None, columns, 10 + 24),
            (PayloadMode::Tags, columns + 48 * 8, line),
            (PayloadMode::Bytes, columns + 48 * 8, line),
        ] {
            let mut store = store(mode, u64::MAX);
            assert_eq!(store.memory_bytes(), 0);
            write(&mut store, chunk(1, 1), 0, &[0; 12], &data).unwrap();
            assert_eq!(store.memory_bytes(), column + 12 * content, "{mode:?}");
            store.erase(chunk(1, 1), 48);
            store.erase(chunk(1, 1), 48);
            let places = if mode == PayloadMode::None { 0 } else { 12 * PLACE_BYTES };
            assert_eq!(store.memory_bytes(), column + places, "{mode:?}");
            write(&mut store, chunk(1, 1), 0, &[0; 12], &data).unwrap();
            assert_eq!(store.memory_bytes(), column + 12 * content, "places are used again");
        }
    }

    /// A content that is dropped takes no memory, and nothing else of its sector or of others is lost, also when the
    /// chunk is erased later. Tags are dropped where that is asked for.
    #[test]
    fn dropped_contents_take_no_memory() {
        let data: Vec<SectorData> = (0..12).map(|_| bytes(b"0123456789")).collect();
        for mode in [PayloadMode::None, PayloadMode::Tags, PayloadMode::Bytes] {
            let mut store = store(mode, u64::MAX);
            let at = chunk(1, 1);
            write(&mut store, at, 7, &[3; 12], &data).unwrap();
            let full = store.memory_bytes();
            assert!(store.is_droppable(at.plus(1)) && store.drop_content(at.plus(1)));
            assert!(!store.is_droppable(at.plus(1)) && !store.drop_content(at.plus(1)));
            assert_eq!(store.data(at.plus(1)), Ok(SectorData::Absent));
            assert_eq!(store.is_dropped(at.plus(1)), mode != PayloadMode::None);
            assert!(!store.is_dropped(at.plus(2)));
            assert_eq!(store.data(at.plus(2)), Ok(bytes(b"0123456789")));
            let oob = Oob { key: 3, seq: 8, kind: Kind::Data, aux: 0 };
            assert_eq!(store.oob(at.plus(1)), Ok(oob));
            let SectorData::Sparse(sparse) = SectorData::sparse(&[1; 4_096]) else {
                unreachable!()
            };
            let one_line = sparse.own_bytes() - 63 * 64;
            let one = if mode == PayloadMode::None { 10 + ENTRY_BYTES } else { one_line };
            assert_eq!(full - store.memory_bytes(), one, "{mode:?}");
            store.erase(at, 48);
            write(&mut store, at, 20, &[3; 12], &data).unwrap();
            assert_eq!(store.memory_bytes(), full, "{mode:?}");
            assert!(!store.is_dropped(at.plus(1)), "{mode:?}");
        }
        let tags = vec![SectorData::Tag(Tag::new(5)); 12];
        for drops_tags in [false, true] {
            let mut store = store(PayloadMode::Tags, u64::MAX).dropping_tags(drops_tags);
            write(&mut store, chunk(0, 0), 0, &[0; 12], &tags).unwrap();
            assert_eq!(store.drop_content(chunk(0, 0)), drops_tags);
            let left = if drops_tags { &SectorData::Absent } else { &tags[0] };
            assert_eq!(&store.data(chunk(0, 0)).unwrap(), left);
        }
    }

    /// A write that does not fit under the cap leaves nothing behind, and smaller ones still work.
    #[test]
    fn cap_refuses_a_write_whole() {
        let columns = 48 * 4 + 12 * 8;
        let mut store = store(PayloadMode::None, columns + 100);
        let data: Vec<SectorData> = (0..12).map(|_| bytes(b"x")).collect();
        assert_eq!(write(&mut store, chunk(0, 0), 0, &[1; 12], &data), Err(StoreError::Full));
        assert_eq!(store.memory_bytes(), 0);
        assert_eq!(write(&mut store, chunk(0, 0), 0, &[1; 12], &[]), Ok(()));
        assert_eq!(write(&mut store, chunk(1, 0), 0, &[1; 12], &[]), Err(StoreError::Full));
    }
}
