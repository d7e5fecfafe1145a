//! Blocks of directories: records that follow each other without a gap, and with `metadata_csum` a
//! checksum that looks like an unused record. Source: Documentation/filesystems/ext4/directory.rst.
//!
//! Everything works on the bytes of a block, so that what it does not touch stays as it was. What
//! changes a block leaves its checksum to [`seal_dir_block`].

use super::checksum::{CsumSeed, Editable};
use super::error::{FormatError, Place};
use super::inode::mode;
use crate::wire::{put_u16, put_u32, u16_at, u32_at};
use nandscape_rt::invariant;

/// Bytes of a name at most.
pub const NAME_BYTES_MAX: usize = 255;
/// Bytes of the record that holds a block's checksum.
pub const DIR_TAIL_BYTES: usize = 12;

/// What the type of a checksum's record says.
const TAIL_TYPE: u8 = 0xde;
/// Bytes of a record before its name.
const HEAD_BYTES: usize = 8;

/// A record of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirEntry<'a> {
    /// Where the record begins in its block.
    pub at: usize,
    /// Bytes of the record.
    pub record_bytes: usize,
    /// The inode, 0 in a record that is not in use.
    pub inode: u32,
    /// Type of file, see [`file_type_of`].
    pub file_type: u8,
    /// The name.
    pub name: &'a [u8],
}

impl DirEntry<'_> {
    /// Where the byte behind the name stands in the block.
    #[must_use]
    pub const fn name_end(&self) -> usize {
        self.at + HEAD_BYTES + self.name.len()
    }
}

/// The type of file that a record shows for an inode of this mode.
#[must_use]
pub const fn file_type_of(mode: u16) -> u8 {
    match mode & mode::TYPE {
        mode::REGULAR => 1,
        mode::DIR => 2,
        mode::CHAR => 3,
        mode::BLOCK => 4,
        mode::FIFO => 5,
        mode::SOCKET => 6,
        mode::SYMLINK => 7,
        _ => 0,
    }
}

/// Bytes that a record of a name needs.
#[must_use]
pub const fn record_bytes(name_bytes: usize) -> usize {
    (HEAD_BYTES + name_bytes + 3) & !3
}

/// The bytes of a block that hold records: without its checksum.
const fn end_of_records(bytes: &[u8], has_tail: bool) -> usize {
    if has_tail { bytes.len().saturating_sub(DIR_TAIL_BYTES) } else { bytes.len() }
}

/// The records of a block, those that are not in use included, its checksum left out.
#[derive(Clone, Debug)]
struct Records<'a> {
    bytes: &'a [u8],
    end: usize,
    at: usize,
    place: Place,
}

/// Goes through the records of a block; `has_tail` with `metadata_csum`. Ends behind the first error.
pub fn dir_entries(
    bytes: &[u8],
    has_tail: bool,
    place: Place,
) -> impl Iterator<Item = Result<DirEntry<'_>, FormatError>> {
    records(bytes, has_tail, place).map(move |entry| entry.and_then(|entry| named(entry, place)))
}

/// The same without a look at what the names are made of, for callers that know which name to look for.
const fn records(bytes: &[u8], has_tail: bool, place: Place) -> Records<'_> {
    Records { bytes, end: end_of_records(bytes, has_tail), at: 0, place }
}

fn named(entry: DirEntry<'_>, place: Place) -> Result<DirEntry<'_>, FormatError> {
    if entry.inode != 0 && entry.name.iter().any(|&byte| byte == 0 || byte == b'/') {
        let what = "name has a character that none may have";
        return Err(FormatError::corrupt(place, entry.at + HEAD_BYTES, what));
    }
    Ok(entry)
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<DirEntry<'a>, FormatError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let entry = entry_at(&self.bytes[..self.end], self.at, self.place);
        self.at = entry.as_ref().map_or(self.end, |entry| self.at + entry.record_bytes);
        Some(entry)
    }
}

#[inline]
fn entry_at(bytes: &[u8], at: usize, place: Place) -> Result<DirEntry<'_>, FormatError> {
    let corrupt = |byte, what| Err(FormatError::corrupt(place, at + byte, what));
    let record = &bytes[at..];
    let head = record.first_chunk::<HEAD_BYTES>().map_or(0, |head| u64::from_le_bytes(*head));
    let (inode, length) = (head as u32, usize::from((head >> 32) as u16));
    let (name_bytes, file_type) = (usize::from((head >> 48) as u8), (head >> 56) as u8);
    if length < record_bytes(1) || !length.is_multiple_of(4) || length > record.len() {
        return corrupt(4, "record's length is out of range");
    }
    if record_bytes(name_bytes) > length || (name_bytes == 0 && inode != 0) {
        return corrupt(6, "name does not fit its record");
    }
    let name = &record[HEAD_BYTES..HEAD_BYTES + name_bytes];
    Ok(DirEntry { at, record_bytes: length, inode, file_type, name })
}

/// Where a name stands in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameAt {
    /// Where its record begins.
    pub at: usize,
    /// Where the record before it begins, if it is not the first.
    pub before: Option<usize>,
    /// The inode that it leads to.
    pub inode: u32,
}

/// Looks at whether a block is all of records.
///
/// # Errors
/// The first that is unsound.
pub fn check_records(bytes: &[u8], has_tail: bool, place: Place) -> Result<(), FormatError> {
    records(bytes, has_tail, place).try_for_each(|entry| entry.map(drop))
}

/// Looks for a name in a block that [`check_records`] found sound; in others up to where they are not.
///
/// # Errors
/// The name is not there; with the first record that has room for it, if there is one.
pub fn search_name(bytes: &[u8], name: &[u8], has_tail: bool) -> Result<NameAt, Option<Room>> {
    let records = &bytes[..end_of_records(bytes, has_tail)];
    let need = record_bytes(name.len());
    let (mut at, mut before, mut room) = (0, None, None);
    while let Some(head) = records.get(at..).and_then(<[u8]>::first_chunk::<HEAD_BYTES>) {
        let head = u64::from_le_bytes(*head);
        let (inode, length) = (head as u32, usize::from((head >> 32) as u16));
        let name_bytes = usize::from((head >> 48) as u8);
        if name_bytes == name.len() && inode != 0 {
            let stored = records.get(at + HEAD_BYTES..at + HEAD_BYTES + name.len());
            // Names of one directory mostly differ at their ends.
            if stored.is_some_and(|stored| stored.last() == name.last() && stored == name) {
                return Ok(NameAt { at, before, inode });
            }
        }
        let used = if inode == 0 { 0 } else { record_bytes(name_bytes) };
        if room.is_none() && length >= used + need && at + length <= records.len() {
            room = Some(Room { at, used, length });
        }
        if length < HEAD_BYTES {
            break;
        }
        before = Some(at);
        at += length;
    }
    Err(room)
}

/// Makes a block of no names.
pub fn init_dir_block(bytes: &mut [u8], has_tail: bool) {
    bytes.fill(0);
    let end = end_of_records(bytes, has_tail);
    put_u16(bytes, 4, end as u16);
    if has_tail {
        init_tail(&mut bytes[end..]);
    }
}

/// Makes the first block of a new directory: `.` and `..`.
pub fn init_first_dir_block(bytes: &mut [u8], inode: u32, parent: u32, has_tail: bool) {
    init_dir_block(bytes, has_tail);
    let fits = insert_name(bytes, b".", inode, 2, has_tail)
        && insert_name(bytes, b"..", parent, 2, has_tail);
    invariant!(fits, "a block has room for two names");
}

fn init_tail(tail: &mut [u8]) {
    tail.fill(0);
    put_u16(tail, 4, DIR_TAIL_BYTES as u16);
    tail[7] = TAIL_TYPE;
}

/// Adds a name that is not there yet where the first record has room for it. Whether it did.
#[must_use]
pub fn insert_name(
    bytes: &mut [u8],
    name: &[u8],
    inode: u32,
    file_type: u8,
    has_tail: bool,
) -> bool {
    let Err(Some(room)) = search_name(bytes, name, has_tail) else { return false };
    insert_at(bytes, room, name, inode, file_type);
    true
}

/// A record with room for another one behind its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Where it begins.
    at: usize,
    /// The bytes that it uses, 0 if it is not in use.
    used: usize,
    /// All of its bytes.
    length: usize,
}

/// Adds a name where there is room for it, in a block that has not changed since.
pub fn insert_at(
    bytes: &mut (impl Editable + ?Sized),
    room: Room,
    name: &[u8],
    inode: u32,
    file_type: u8,
) {
    invariant!(
        (1..=NAME_BYTES_MAX).contains(&name.len()),
        "a name has 1 to {NAME_BYTES_MAX} bytes"
    );
    let Room { at, used, length } = room;
    if used > 0 {
        put_u16(bytes.part(at + 4..at + 6), 0, used as u16);
    }
    let at = at + used;
    let record = bytes.part(at..at + record_bytes(name.len()));
    write_record(record, length - used, inode, file_type, name);
}

/// Fills a record of this length. What stands behind the name stays.
fn write_record(bytes: &mut [u8], length: usize, inode: u32, file_type: u8, name: &[u8]) {
    put_u32(bytes, 0, inode);
    put_u16(bytes, 4, length as u16);
    bytes[6] = name.len() as u8;
    bytes[7] = file_type;
    bytes[HEAD_BYTES..HEAD_BYTES + name.len()].copy_from_slice(name);
}

/// Takes a name out of a block that has not changed since it was found there: its record goes to the
/// one before, or is marked as not in use.
pub fn remove_at(bytes: &mut (impl Editable + ?Sized), name: NameAt) {
    let length = |at| u16_at(bytes.as_ref(), at + 4);
    match name.before {
        Some(before) => {
            let length = length(before) + length(name.at);
            put_u16(bytes.part(before + 4..before + 6), 0, length);
        }
        None => bytes.part(name.at..name.at + 4).fill(0),
    }
}

/// Leads the record at `at` to another inode.
pub fn retarget_entry(bytes: &mut (impl Editable + ?Sized), at: usize, inode: u32, file_type: u8) {
    let head = bytes.part(at..at + HEAD_BYTES);
    put_u32(head, 0, inode);
    head[7] = file_type;
}

/// Makes a block of these names (inode, type, name), without room between them. Whether they fit.
#[must_use]
pub fn pack_dir_block(bytes: &mut [u8], names: &[(u32, u8, &[u8])], has_tail: bool) -> bool {
    init_dir_block(bytes, has_tail);
    let end = end_of_records(bytes, has_tail);
    let need: usize = names.iter().map(|(_, _, name)| record_bytes(name.len())).sum();
    if need > end {
        return false;
    }
    let mut at = 0;
    for (index, (inode, file_type, name)) in names.iter().enumerate() {
        let last = index + 1 == names.len();
        let next = if last { end } else { at + record_bytes(name.len()) };
        write_record(&mut bytes[at..next], next - at, *inode, *file_type, name);
        at = next;
    }
    true
}

/// Writes a block's checksum; `seed` is the directory's.
pub fn seal_dir_block(bytes: &mut (impl Editable + ?Sized), seed: Option<CsumSeed>) {
    if let Some(seed) = seed {
        let end = end_of_records(bytes.as_ref(), true);
        let computed = seed.block_up_to(bytes, end);
        let tail = bytes.part(end..end + DIR_TAIL_BYTES);
        init_tail(tail);
        put_u32(tail, 8, computed);
    }
}

/// Whether a block's checksum is there and holds.
///
/// # Errors
/// [`FormatError`].
pub fn check_dir_block(
    bytes: &[u8],
    seed: Option<CsumSeed>,
    place: Place,
) -> Result<(), FormatError> {
    let Some(seed) = seed else { return Ok(()) };
    let end = end_of_records(bytes, true);
    let tail = &bytes[end..];
    if u32_at(tail, 0) != 0
        || u16_at(tail, 4) != DIR_TAIL_BYTES as u16
        || tail[6..8] != [0, TAIL_TYPE]
    {
        return Err(FormatError::corrupt(place, end, "has no checksum"));
    }
    FormatError::checksum(place, u32_at(tail, 8), seed.block_up_to(bytes, end))
}
