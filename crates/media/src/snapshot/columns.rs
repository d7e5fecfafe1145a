//! Columns of a block in a stream: each value as its difference from the one before, and of all
//! differences first the lowest bytes, then the next ones, so that what is alike lies together.

use super::SnapshotError;
use super::frames::FrameReader;
use crate::store::{Block, HeldBytes, MemoryStore};
use nandscape_block::SECTOR_BYTES;
use std::io::{self, Read, Write};

/// Writes the columns of a block.
pub(super) fn put_block(out: &mut impl Write, block: &Block) -> io::Result<()> {
    put_column::<4>(out, block.keys.iter().map(|key| u64::from(*key)))?;
    put_column::<8>(out, block.units.iter().copied())?;
    put_column::<4>(out, block.seq_deltas.iter().map(|delta| u64::from(*delta)))?;
    put_column::<4>(out, block.aux.iter().map(|aux| u64::from(*aux)))?;
    put_column::<8>(out, block.contents.iter().copied())?;
    out.write_all(&(block.bytes.len() as u32).to_le_bytes())?;
    for (sector, bytes) in &block.bytes {
        out.write_all(&sector.to_le_bytes())?;
        out.write_all(&(bytes.len() as u32).to_le_bytes())?;
        out.write_all(bytes)?;
    }
    Ok(())
}

/// Reads the columns of a block of so many sectors.
pub(super) fn get_block<R: Read>(
    input: &mut FrameReader<R>,
    store: &MemoryStore,
    sectors: u32,
) -> Result<Block, SnapshotError> {
    let keys = get_column::<_, 4>(input, sectors)?;
    let units = get_column::<_, 8>(input, store.granules(sectors))?;
    let seq_deltas = get_column::<_, 4>(input, if store.keeps_seqs() { sectors } else { 0 })?;
    let aux = get_column::<_, 4>(input, if store.keeps_aux() { sectors } else { 0 })?;
    let contents = if store.keeps_contents() { sectors } else { 0 };
    let contents = get_column::<_, 8>(input, contents)?;
    let bytes = get_bytes(input, sectors)?;
    let marked = |(sector, content): (u32, &u64)| (*content == Block::BYTES).then_some(sector);
    let marks = (0..).zip(&contents).filter_map(marked);
    if store.keeps_contents() && !marks.eq(bytes.iter().map(|(sector, _)| *sector)) {
        return Err(input.damaged("bytes and their places do not agree"));
    }
    let marks = [Block::BYTES, Block::DROPPED, u64::MAX];
    let is_content = |content: &u64| content >> 63 == 0 || marks.contains(content);
    if !contents.iter().all(is_content) {
        return Err(input.damaged("a content that cannot be"));
    }
    let keys = keys.into_iter().map(|key| key as u32).collect();
    let seq_deltas = seq_deltas.into_iter().map(|delta| delta as u32).collect();
    let aux = aux.into_iter().map(|aux| aux as u32).collect();
    Ok(Block { keys, units, seq_deltas, aux, contents, bytes })
}

fn get_bytes<R: Read>(
    input: &mut FrameReader<R>,
    sectors: u32,
) -> Result<Vec<HeldBytes>, SnapshotError> {
    let mut all = Vec::new();
    let mut least = 0;
    for _ in 0..next_u32(input)? {
        let (sector, length) = (next_u32(input)?, next_u32(input)?);
        if sector < least || sector >= sectors || u64::from(length) > SECTOR_BYTES {
            return Err(input.damaged("bytes of a sector that cannot be"));
        }
        least = sector + 1;
        let mut bytes = vec![0; length as usize];
        input.fill(&mut bytes)?;
        all.push((sector, bytes.into()));
    }
    Ok(all)
}

fn next_u32<R: Read>(input: &mut FrameReader<R>) -> Result<u32, SnapshotError> {
    let mut bytes = [0; 4];
    input.fill(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

/// Writes a column of values of `BYTES` bytes each.
fn put_column<const BYTES: usize>(
    out: &mut impl Write,
    values: impl ExactSizeIterator<Item = u64>,
) -> io::Result<()> {
    let count = values.len();
    let mut planes = vec![0; count * BYTES];
    let mut before = 0_u64;
    for (index, value) in values.enumerate() {
        let difference = value.wrapping_sub(before).to_le_bytes();
        before = value;
        for plane in 0..BYTES {
            planes[plane * count + index] = difference[plane];
        }
    }
    out.write_all(&planes)
}

/// Reads a column of `count` values of `BYTES` bytes each.
fn get_column<R: Read, const BYTES: usize>(
    input: &mut FrameReader<R>,
    count: u32,
) -> Result<Vec<u64>, SnapshotError> {
    let count = count as usize;
    let mut planes = vec![0; count * BYTES];
    input.fill(&mut planes)?;
    let mut before = 0_u64;
    let value = |index: usize| {
        let mut difference = [0; 8];
        for plane in 0..BYTES {
            difference[plane] = planes[plane * count + index];
        }
        before = before.wrapping_add(u64::from_le_bytes(difference));
        before & u64::MAX >> (64 - 8 * BYTES)
    };
    Ok((0..count).map(value).collect())
}
