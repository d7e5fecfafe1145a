//! What pblk writes for itself: start metadata of lines; trim records are `common::trims`. All integers
//! are little-endian; both formats open with a checksum and a magic. Byte tables: docs/formats/line.md.
//!
//! End metadata holds nothing that out-of-band data does not, so it has no bytes of its own: writing
//! and reading it is charged, and its address list is read from the out-of-band columns.

use crate::common::sealed::{seal, u32_at, u64_at, unseal};
use nandscape_block::{SECTOR_BYTES, SectorData};

/// "pblk", as in the kernel's line header.
pub(super) const SMETA_MAGIC: u32 = 0x7062_6c6b;
/// The frontier of lines that hold mapping blocks.
pub(super) const MAP_FRONTIER: u32 = u32::MAX;

/// Start metadata of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Smeta {
    /// Which formatting of the device the line belongs to.
    pub(super) instance: u64,
    /// Order of opening.
    pub(super) line_seq: u64,
    /// Logical sectors of the device, fixed when it was formatted.
    pub(super) logical_sectors: u64,
    /// The line.
    pub(super) line: u32,
    /// Parallel units of a line, fixed when the device was formatted.
    pub(super) width: u32,
    /// The frontier that it was opened for.
    pub(super) frontier: u32,
}

impl Smeta {
    /// The sector's content.
    pub(super) fn encode(&self) -> SectorData {
        let mut bytes = [0; SECTOR_BYTES as usize];
        bytes[4..8].copy_from_slice(&SMETA_MAGIC.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.instance.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.line_seq.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.logical_sectors.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.line.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.width.to_le_bytes());
        bytes[40..44].copy_from_slice(&self.frontier.to_le_bytes());
        seal(bytes)
    }

    /// Start metadata, if these bytes are one.
    pub(super) fn decode(data: &SectorData) -> Option<Self> {
        let bytes = &*unseal(data, SMETA_MAGIC)?;
        Some(Self {
            instance: u64_at(bytes, 8),
            line_seq: u64_at(bytes, 16),
            logical_sectors: u64_at(bytes, 24),
            line: u32_at(bytes, 32),
            width: u32_at(bytes, 36),
            frontier: u32_at(bytes, 40),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::trims::{
        TRIM_MAGIC, TRIMS_PER_SECTOR, TrimRecord, decode_trims, encode_trims,
    };
    use nandscape_media::{KEY_EMPTY, KEY_MAX, KEY_TRIM, Kind};
    use std::ops::Range;

    #[test]
    fn smeta_survives_and_notices_damage() {
        let smeta = Smeta {
            instance: 7,
            line_seq: 9,
            logical_sectors: 1 << 33,
            line: 3,
            width: 8,
            frontier: 1,
        };
        let data = smeta.encode();
        assert_eq!(Smeta::decode(&data), Some(smeta));
        assert_eq!(Smeta::decode(&data.patched(20, &[0xff]).unwrap()), None);
        assert_eq!(Smeta::decode(&SectorData::Absent), None);
        assert_eq!(decode_trims(&data), None);
    }

    #[test]
    fn a_full_sector_of_trims_survives() {
        let records: Vec<_> = (0..TRIMS_PER_SECTOR as u32)
            .map(|i| TrimRecord { lba: i, sectors: u32::MAX - i, seq: u64::from(i) << 40 })
            .collect();
        assert_eq!(TRIMS_PER_SECTOR, 255);
        assert_eq!(decode_trims(&encode_trims(&records)), Some(records));
        assert_eq!(decode_trims(&encode_trims(&[])), Some(vec![]));
    }

    const DOCUMENT: &str = include_str!("../../../../docs/formats/line.md");

    /// A row of a byte table of the document: where the field lies, and its name.
    #[derive(Debug)]
    struct Field {
        bytes: Range<usize>,
        name: &'static str,
        meaning: &'static str,
    }

    /// The first table of bytes below a heading that begins so, or below a table that does.
    fn table(heading: &str) -> Vec<Field> {
        let (_, section) = DOCUMENT.split_once(heading).expect("the document has this heading");
        let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
        rows.skip(1).take_while(|line| line.starts_with('|')).map(field).collect()
    }

    fn field(row: &'static str) -> Field {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [bytes, name, meaning] = cells[..] else { panic!("not three cells: {row}") };
        let (start, end) = bytes.split_once("..").expect("a range of bytes");
        let at = |text: &str| text.parse().expect("a number of bytes");
        Field { bytes: at(start)..at(end), name, meaning }
    }

    /// Fields follow each other without a gap over all of `bytes`.
    fn assert_covers(fields: &[Field], bytes: usize) {
        let end = fields.iter().fold(0, |end, field| {
            assert_eq!(field.bytes.start, end, "{field:?}");
            field.bytes.end
        });
        assert_eq!(end, bytes);
    }

    /// The little-endian integer that the document puts there.
    fn value(bytes: &[u8], field: &Field) -> u64 {
        let place = &bytes[field.bytes.clone()];
        assert!(place.len() <= 8, "{field:?} is no integer");
        place.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    /// Checks the fields that both kinds of sector open with.
    fn assert_sealed(bytes: &[u8], field: &Field, magic: u32) {
        match field.name {
            "crc" => {
                assert_eq!(field.meaning, "CRC-32C of bytes 4..4096");
                assert_eq!(value(bytes, field), u64::from(crc32c::crc32c(&bytes[4..])));
            }
            "magic" => {
                let hex = format!("`{:#06x}_{:04x}`", magic >> 16, magic & 0xffff);
                assert!(field.meaning.starts_with(&hex), "{field:?}, is {hex}");
                assert_eq!(value(bytes, field), u64::from(magic));
            }
            "" => assert!(bytes[field.bytes.clone()].iter().all(|&byte| byte == 0), "{field:?}"),
            name => panic!("the document has a field {name} that is not written"),
        }
    }

    /// Whoever reads a line by the document finds what the code wrote.
    #[test]
    fn start_metadata_is_as_documented() {
        let smeta = Smeta {
            instance: 0x1112_1314_1516_1718,
            line_seq: 0x2122_2324_2526_2728,
            logical_sectors: 0x3132_3334_3536_3738,
            line: 0x4142_4344,
            width: 0x5152_5354,
            frontier: 0x6162_6364,
        };
        let bytes = smeta.encode().expand().expect("bytes");
        let fields = table("## Start metadata");
        assert_covers(&fields, bytes.len());
        for field in &fields {
            match field.name {
                "instance" => assert_eq!(value(&*bytes, field), smeta.instance),
                "line sequence" => assert_eq!(value(&*bytes, field), smeta.line_seq),
                "logical sectors" => assert_eq!(value(&*bytes, field), smeta.logical_sectors),
                "line" => assert_eq!(value(&*bytes, field), u64::from(smeta.line)),
                "width" => assert_eq!(value(&*bytes, field), u64::from(smeta.width)),
                "frontier" => assert_eq!(value(&*bytes, field), u64::from(smeta.frontier)),
                _ => assert_sealed(&*bytes, field, SMETA_MAGIC),
            }
        }
        assert_eq!(fields.len(), 9);
    }

    #[test]
    fn trim_records_are_as_documented() {
        let record = |i: u32| TrimRecord {
            lba: 0x5152_5354 + i,
            sectors: 0x6162_6364 + i,
            seq: 0x7172_7374_7576_7778 + u64::from(i),
        };
        let records = [0, 1, 2].map(record);
        let bytes = encode_trims(&records).expand().expect("bytes");
        let fields = table("## Trim records");
        assert_covers(&fields, bytes.len());
        for field in &fields {
            match (field.name, field.bytes.clone()) {
                ("records", place) if place.len() > 8 => assert_records(&bytes[place], &records),
                ("records", _) => assert_eq!(value(&*bytes, field), 3),
                _ => assert_sealed(&*bytes, field, TRIM_MAGIC),
            }
        }
        assert_eq!(fields.len(), 5);
    }

    /// The records of a sector, each as the document's second table says; zeroes behind them.
    fn assert_records(place: &[u8], records: &[TrimRecord]) {
        let fields = table("| Bytes of a record |");
        assert_covers(&fields, 16);
        let (used, rest) = place.split_at(16 * records.len());
        for (bytes, record) in used.chunks_exact(16).zip(records) {
            for field in &fields {
                let expected = match field.name {
                    "first sector" => u64::from(record.lba),
                    "sectors" => u64::from(record.sectors),
                    "sequence" => record.seq,
                    name => panic!("the document has a field {name} that is not written"),
                };
                assert_eq!(value(bytes, field), expected, "{field:?}");
            }
        }
        assert!(rest.iter().all(|&byte| byte == 0));
    }

    /// The keys that are no addresses, and the kinds of units, have the documented values.
    #[test]
    fn out_of_band_values_are_as_documented() {
        let (_, section) = DOCUMENT.split_once("## Out-of-band data").expect("the heading");
        let row = |name: &str| section.lines().find(|line| line.starts_with(name)).expect(name);
        let hex = |key: u32| format!("`{:#06x}_{:04x}`", key >> 16, key & 0xffff);
        let key = row("| key |");
        assert!(key.contains(&format!("{} nothing", hex(KEY_EMPTY))), "{key}");
        assert!(key.contains(&format!("{} trim records", hex(KEY_TRIM))), "{key}");
        assert!(section.contains(&format!("last logical address is therefore {}", hex(KEY_MAX))));
        let kinds = [Kind::None, Kind::Data, Kind::Smeta, Kind::Emeta, Kind::Pad, Kind::Map];
        let names = ["never written", "data", "smeta", "emeta", "padding", "mapping block"];
        for (kind, name) in kinds.into_iter().zip(names) {
            assert!(row("| kind |").contains(&format!("{} {name}", kind as u8)), "{name}");
        }
    }
}
