//! The byte tables of docs/formats/coupled.md say what the code writes.

use super::config::Config;
use super::journal::{ENTRIES, Entry, JournalSector};
use super::snapshot::{Head, SavedLine, Snapshot};
use nandscape_block::{Lba, SECTOR_BYTES};
use nandscape_media::Geometry;

const DOCUMENT: &str = include_str!("../../../../docs/formats/coupled.md");

/// The cells of the rows of the first table below a heading.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let (_, section) = DOCUMENT.split_once(heading).expect("the document has this heading");
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| row.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

/// Bytes and name of each field of a table; they follow each other without a gap over so many bytes.
fn fields(heading: &str, bytes: usize) -> Vec<(std::ops::Range<usize>, &'static str)> {
    let mut end = 0;
    let fields: Vec<_> = table(heading)
        .into_iter()
        .map(|cells| {
            let (from, to) = cells[0].split_once("..").expect("a range of bytes");
            let number = |text: &str| text.parse().expect("a number of bytes");
            let place: std::ops::Range<usize> = number(from)..number(to);
            assert_eq!(place.start, end, "{cells:?}");
            end = place.end;
            (place, cells[1])
        })
        .collect();
    assert_eq!(end, bytes);
    fields
}

/// A little-endian integer.
fn value(bytes: &[u8]) -> u64 {
    assert!(bytes.len() <= 8);
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

fn assert_zero(bytes: &[u8]) {
    assert!(bytes.iter().all(|&byte| byte == 0));
}

/// Of each kind one, and the words that the document gives it.
fn entries() -> [(Entry, [u64; 3]); 5] {
    let (logical, line, generation) = (0x1112_1314, 0x2122_2324, 0x3132_3334);
    let (old, from, to) = (Lba(0x4142_4344), Lba(0x5152_5354), Lba(0x6162_6364));
    [
        (Entry::Opened { logical, line, generation }, [logical, line, generation].map(u64::from)),
        (Entry::Discarded { lba: old, sectors: 0x7172_7374 }, [old.0, 0x7172_7374, 0]),
        (Entry::Moved { old, from, to }, [old.0, from.0, to.0]),
        (Entry::Shortened { old, to }, [old.0, to.0, 0]),
        (Entry::Closed { old }, [old.0, 0, 0]),
    ]
}

/// What the document calls the words of a kind of entry, and those of [`entries`].
fn assert_entry(bytes: &[u8], kind: usize, words: [u64; 3]) {
    let read = fields("## Entry", 16).into_iter().map(|(place, name)| (name, value(&bytes[place])));
    let expected = ["kind", "first word", "second word", "third word"];
    let values = [kind as u64 + 1, words[0], words[1], words[2]];
    assert!(read.eq(expected.into_iter().zip(values)), "kind {}", kind + 1);
}

/// The document's list of kinds, and how many words of each are not always zero.
#[test]
fn kinds_of_entries_are_as_documented() {
    let (_, below) = DOCUMENT.split_once("| Kind | Words |").expect("the table of kinds");
    let rows = below.lines().skip(2).take_while(|line| line.starts_with('|'));
    let listed: Vec<(&str, &str)> = rows
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            (cells[0], cells[1])
        })
        .collect();
    let expected = [
        ("1, opened", "logical line, line, generation"),
        ("2, discarded", "address, sectors, 0"),
        ("3, moved", "old address, from, to"),
        ("4, shortened", "old address, new address, 0"),
        ("5, closed", "old address, 0, 0"),
    ];
    assert_eq!(listed, expected);
}

#[test]
fn journal_sectors_are_as_documented() {
    let (mount, number) = (0x8182_8384, 0x9192_9394_9596_9798);
    let written = entries().map(|(entry, _)| entry).to_vec();
    let bytes = JournalSector { mount, number, entries: written }.encode();
    for (place, name) in fields("## Journal sector", SECTOR_BYTES as usize) {
        let bytes_of = &bytes[place.clone()];
        match name {
            "magic" => assert_eq!(bytes_of, b"CDFL"),
            "mount" => assert_eq!(value(bytes_of), mount.into()),
            "number" => assert_eq!(value(bytes_of), number),
            "entries" if place.len() == 4 => assert_eq!(value(bytes_of), 5),
            "entries" => {
                assert_eq!(place.len(), 16 * ENTRIES);
                for (kind, (_, words)) in entries().into_iter().enumerate() {
                    assert_entry(&bytes_of[16 * kind..], kind, words);
                }
                assert_zero(&bytes_of[16 * entries().len()..]);
            }
            "crc" => {
                let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..20]), &bytes[24..]);
                assert_eq!(value(bytes_of), crc.into());
            }
            "" => assert_zero(bytes_of),
            name => panic!("the document has a field {name} that is not written"),
        }
    }
    assert!(DOCUMENT.contains("`0x4c46_4443`, \"CDFL\"") && ENTRIES == 254);
}

fn snapshot() -> Snapshot {
    let line = |base: u32| SavedLine {
        logical: base,
        line: base + 1,
        generation: base + 2,
        written: base + 3,
        bitmap: vec![0x1112_1314_1516_1718 + u64::from(base), 1 << 63],
    };
    Snapshot {
        number: 0x2122_2324_2526_2728,
        start: 0x3132_3334_3536_3738,
        mount: 0x4142_4344,
        lines: vec![line(0x5152_5354), line(0x6162_6364), line(0x7172_7374)],
        records: [
            vec![(Lba(0x8182_8384), Lba(0x9192_9394)), (Lba(3), Lba(4))],
            vec![(Lba(0xa1a2_a3a4), Lba(0xb1b2_b3b4))],
        ],
    }
}

#[test]
fn snapshot_heads_are_as_documented() {
    let snapshot = snapshot();
    let (head, body) = snapshot.encode();
    for (place, name) in fields("## Snapshot head", SECTOR_BYTES as usize) {
        let bytes = &head[place];
        match name {
            "magic" => assert_eq!(bytes, b"CDNS"),
            "crc" => assert_eq!(value(bytes), crc32c::crc32c(&head[8..52]).into()),
            "number" => assert_eq!(value(bytes), snapshot.number),
            "start" => assert_eq!(value(bytes), snapshot.start),
            "mount" => assert_eq!(value(bytes), snapshot.mount.into()),
            "lines" => assert_eq!(value(bytes), 3),
            "data records" => assert_eq!(value(bytes), 2),
            "node records" => assert_eq!(value(bytes), 1),
            "length" => assert_eq!(value(bytes), body.len() as u64),
            "body crc" => assert_eq!(value(bytes), crc32c::crc32c(&body).into()),
            "" => assert_zero(bytes),
            name => panic!("the document has a field {name} that is not written"),
        }
    }
    assert!(DOCUMENT.contains("`0x534e_4443`, \"CDNS\""));
}

/// What has numbers that no device reaches is no journal sector and no head, although its checksum holds.
#[test]
fn numbers_beyond_any_device_are_refused() {
    let is_sector = |mount| {
        let sector = JournalSector { mount, number: 1, entries: Vec::new() };
        JournalSector::decode(&sector.encode()).is_some()
    };
    assert!(is_sector(u32::MAX - 1) && !is_sector(u32::MAX));
    let is_head = |number, start, mount| {
        let (head, _) = Snapshot { number, start, mount, ..Snapshot::default() }.encode();
        Head::decode(&head).is_some()
    };
    let end = 1 << 56;
    assert!(is_head(end - 1, end - 1, u32::MAX - 1));
    assert!(!is_head(end, 1, 1) && !is_head(1, end, 1) && !is_head(1, 1, u32::MAX));
}

#[test]
fn snapshot_bodies_are_as_documented() {
    let snapshot = snapshot();
    let (_, body) = snapshot.encode();
    let rows = table("## Snapshot body");
    let part_of = |row: usize| rows[..=row].iter().rev().find(|cells| !cells[0].is_empty());
    let of = |part: &str| {
        let is_of = |row: &usize| part_of(*row).is_some_and(|cells| cells[0] == part);
        (0..rows.len()).filter(is_of).map(|row| (rows[row][1], rows[row][2])).collect::<Vec<_>>()
    };
    let mut rest = &body[..];
    let mut take = |bytes: usize| {
        let (field, behind) = rest.split_at(bytes);
        rest = behind;
        value(field)
    };
    for line in &snapshot.lines {
        for (name, bytes) in of("Line") {
            match name {
                "valid bitmap: a bit per sector, the first one lowest" => {
                    assert_eq!(bytes, "8 per 64 sectors of a line, rounded up");
                    line.bitmap.iter().for_each(|word| assert_eq!(take(8), *word));
                    continue;
                }
                _ => assert_eq!(bytes, "4", "{name}"),
            }
            let expected = match name {
                "logical line" => line.logical,
                "line" => line.line,
                "generation" => line.generation,
                "sectors written" => line.written,
                name => panic!("the document has a field {name} that is not written"),
            };
            assert_eq!(take(4), expected.into(), "{name}");
        }
    }
    for (old, new) in snapshot.records.iter().flatten() {
        assert_eq!(of("Record"), [("old address", "4"), ("new address", "4")]);
        assert_eq!((take(4), take(4)), (old.0, new.0));
    }
    assert!(rest.is_empty());
}

/// Slots and ring are as long as the document says.
#[test]
fn places_are_as_documented() {
    for text in [
        "one per sector of these lines, and one more per eight sectors",
        "as much as a slot would with one record per eight sectors of the lines, at least 64 sectors",
    ] {
        assert!(DOCUMENT.contains(text), "{text}");
    }
    let geometry = |chunks| Geometry {
        groups: 8,
        units: 2,
        chunks,
        sectors: 256,
        ws_min: 4,
        ws_opt: 8,
        mw_cunits: 0,
        maxoc: 0,
        maxocpu: 0,
    };
    for chunks in [512, 1_024, 4_096] {
        let geometry = geometry(chunks);
        let config = Config { spare_chunks: 8, op_hundredths: 3_000, ..Config::default() };
        let sizes = config.sizes(&geometry).expect("fits");
        let (lines, line) = (u64::from(chunks) * 4, 4 * 256);
        let slot_of = |records: u64| 1 + (lines * (16 + line / 8) + 8 * records).div_ceil(4_096);
        let (all, fetched) = (lines * line, lines * line / 8);
        let journal = sizes.journal;
        assert_eq!(u64::from(journal.records), all + fetched);
        assert_eq!((journal.start, journal.slot), (sizes.random_sectors, slot_of(all + fetched)));
        assert_eq!(journal.ring, slot_of(fetched).max(64));
    }
}
