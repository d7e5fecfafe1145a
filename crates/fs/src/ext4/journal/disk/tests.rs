//! Encoding and parsing are each other's inverse, and parsing takes any bytes.

use super::*;
use crate::ext4::journal::error::JournalError;
use proptest::prelude::*;
use std::sync::Arc;

/// Every layout there is: three kinds of checksum, narrow and wide block numbers.
fn codecs() -> impl Strategy<Value = Codec> {
    (
        prop_oneof![Just(0), Just(Features::CSUM_V2), Just(Features::CSUM_V3)],
        any::<bool>(),
        any::<[u8; 16]>(),
    )
        .prop_map(|(checksums, wide, uuid)| {
            let incompat = checksums | if wide { Features::WIDE } else { 0 };
            Codec::new(Features { incompat, ..Features::default() }, &uuid)
        })
}

/// Any block, often one that begins as the journal's do.
fn blocks() -> impl Strategy<Value = Box<SectorBytes>> {
    let bytes = proptest::collection::vec(any::<u8>(), BLOCK_BYTES);
    (bytes, proptest::option::of(0..7u32), any::<u32>()).prop_map(|(bytes, kind, count)| {
        let mut block: Box<SectorBytes> = bytes.try_into().expect("a block of bytes");
        if let Some(kind) = kind {
            put32(&mut block[..], 0, MAGIC);
            put32(&mut block[..], 4, kind);
            put32(&mut block[..], HEADER_BYTES, count % 5_000);
        }
        block
    })
}

fn block_numbers(codec: &Codec, numbers: &[u64]) -> Vec<u64> {
    let mask = if codec.wide { u64::MAX } else { u64::from(u32::MAX) };
    numbers.iter().map(|number| number & mask).collect()
}

fn content(seed: u64) -> SectorData {
    SectorData::Tag(nandscape_block::Tag::new(seed))
}

proptest! {
    /// Whatever lies on disk, parsing says something about it and ends.
    #[test]
    fn parsing_takes_any_bytes(codec in codecs(), block in blocks(), available in any::<u64>()) {
        let _ = Header::parse(&block);
        let tags = Tags::parse(&codec, &block);
        let _ = tags.checksum_holds();
        prop_assert!(tags.count() <= BLOCK_BYTES / 8);
        if let Some(revokes) = Revokes::parse(&codec, &block) {
            let _ = revokes.checksum_holds();
            prop_assert!(revokes.count() <= codec.block_revokes());
        }
        let _ = (Commit::parse(&block), Commit::checksum_holds(&codec, &block));
        let _ = Superblock::parse(block, available);
    }

    /// A descriptor gives back the tags that went in, up to as many as it says it takes, and its
    /// checksum holds until a bit changes.
    #[test]
    fn descriptors_round_trip(
        codec in codecs(),
        tid in any::<u32>(),
        numbers in proptest::collection::vec(any::<u64>(), 1..600),
        flip in 0..BLOCK_BYTES * 8,
    ) {
        let tid = Tid(tid);
        let mut numbers = block_numbers(&codec, &numbers);
        numbers.truncate(codec.descriptor_copies());
        let tags: Vec<Tag> = numbers
            .iter()
            .map(|&block| Tag::new(&codec, tid, block, &content(block), block % 3 == 0))
            .collect();
        let mut block = [0; BLOCK_BYTES];
        let mut descriptor = Descriptor::new(&codec, tid, &mut block);
        tags.iter().for_each(|tag| descriptor.push(tag));
        descriptor.finish();
        prop_assert_eq!(Header::parse(&block), Some(Header { kind: Kind::Descriptor, tid }));
        let parsed = Tags::parse(&codec, &block);
        prop_assert!(parsed.checksum_holds());
        prop_assert_eq!(parsed.collect::<Vec<_>>(), tags);
        block[flip / 8] ^= 1 << (flip % 8);
        let holds = Tags::parse(&codec, &block).checksum_holds();
        prop_assert_eq!(holds, codec.checksums == Checksums::None);
    }

    /// A tag knows its copy from another one, and from the same copy in another transaction.
    #[test]
    fn tags_know_their_copies(codec in codecs(), tid in any::<u32>(), copy in 1..u64::MAX / 2) {
        let tag = Tag::new(&codec, Tid(tid), 9, &content(copy), false);
        prop_assert!(tag.holds(&codec, Tid(tid), &content(copy)));
        if codec.checksums == Checksums::V3 {
            prop_assert!(!tag.holds(&codec, Tid(tid), &content(copy ^ 1)));
            prop_assert!(!tag.holds(&codec, Tid(tid).next(), &content(copy)));
        }
    }

    /// A revoke block gives back the blocks that went in, and its checksum holds until a bit changes.
    #[test]
    fn revokes_round_trip(
        codec in codecs(),
        tid in any::<u32>(),
        numbers in proptest::collection::vec(any::<u64>(), 0..1_100),
        flip in 0..BLOCK_BYTES * 8,
    ) {
        let mut numbers = block_numbers(&codec, &numbers);
        numbers.truncate(codec.block_revokes());
        let mut block = [0; BLOCK_BYTES];
        encode_revokes(&codec, Tid(tid), &numbers, &mut block);
        let parsed = Revokes::parse(&codec, &block).expect("what was encoded");
        prop_assert!(parsed.checksum_holds());
        prop_assert_eq!(parsed.collect::<Vec<_>>(), numbers);
        block[flip / 8] ^= 1 << (flip % 8);
        let holds = Revokes::parse(&codec, &block).is_some_and(|revokes| revokes.checksum_holds());
        prop_assert!(!holds || codec.checksums == Checksums::None);
    }

    /// A commit block gives back its time, and its checksum holds until a bit changes that it always shows.
    #[test]
    fn commits_round_trip(
        codec in codecs(),
        tid in any::<u32>(),
        seconds in any::<u64>(),
        nanoseconds in any::<u32>(),
        flip in 0..BLOCK_BYTES * 8,
    ) {
        let commit = Commit { seconds, nanoseconds };
        let mut block = [0; BLOCK_BYTES];
        commit.encode(&codec, Tid(tid), &mut block);
        let header = Header { kind: Kind::Commit, tid: Tid(tid) };
        prop_assert_eq!(Header::parse(&block), Some(header));
        prop_assert_eq!(Commit::parse(&block), commit);
        prop_assert!(Commit::checksum_holds(&codec, &block));
        block[flip / 8] ^= 1 << (flip % 8);
        let holds = Commit::checksum_holds(&codec, &block);
        let behind = flip / 8 >= Commit::CHECKED_BYTES;
        prop_assert_eq!(holds, codec.checksums == Checksums::None || behind);
    }

    /// A copy that begins with the magic does not do so in the log, and comes back as it was.
    #[test]
    fn escaping_hides_the_magic(rest in any::<u8>(), magic in any::<bool>()) {
        let mut bytes = Box::new([rest; BLOCK_BYTES]);
        if magic {
            put32(&mut bytes[..], 0, MAGIC);
        }
        let content = SectorData::Bytes(Arc::from(bytes));
        let escaped = escape(&content);
        prop_assert_eq!(escaped.is_some(), magic);
        if let Some(copy) = escaped {
            prop_assert_eq!(&copy.expand().expect("bytes")[..4], [0; 4]);
            prop_assert_eq!(unescape(&copy), Some(content));
        }
    }
}

/// A superblock keeps what is set, whatever its checksums, and one that contradicts itself or asks
/// for what is not supported is refused by name.
#[test]
fn superblocks_keep_what_they_were_given() {
    let mut superblock = Superblock::fresh(100, [3; 16]);
    superblock.set_features(Features::of_file_system(true, true));
    superblock.set_start(Position { tid: Tid(9), block: 44 });
    superblock.set_errno(-5);
    let reread = Superblock::parse(Box::new(*superblock.bytes()), 100).expect("sound");
    assert_eq!(reread, superblock);
    assert_eq!((reread.blocks(), reread.first(), reread.uuid()), (100, 1, [3; 16]));
    assert_eq!((reread.start(), reread.errno()), (Position { tid: Tid(9), block: 44 }, -5));
    assert_eq!(reread.codec().checksums, Checksums::V3);
}

#[test]
fn bad_superblocks_are_refused() {
    let refused = |change: &dyn Fn(&mut SectorBytes)| {
        let mut raw = Box::new(*Superblock::fresh(100, [3; 16]).bytes());
        change(&mut raw);
        match Superblock::parse(raw, 100) {
            Ok(_) => "taken".to_owned(),
            Err(JournalError::Corrupt { what, .. }) => what.to_owned(),
            Err(error) => error.to_string(),
        }
    };
    let set = |at: usize, value: u32| refused(&move |raw| put32(raw, at, value));
    assert_eq!(set(0x10, 100), "taken");
    assert_eq!(set(0, 1), "no journal superblock");
    assert_eq!(set(4, 2), "no journal superblock");
    assert_eq!(set(0x0c, 1_024), "journal: blocks of 1024 bytes, not 4096");
    assert_eq!(set(0x10, 101), "the log is longer than the journal's file");
    assert_eq!(set(0x14, 0), "the log has no first block");
    assert_eq!(set(0x1c, 100), "the log starts outside itself");
    assert_eq!(set(0x28, 0x20), "journal: feature fast_commit is not supported");
    assert_eq!(set(0x28, 0x4), "journal: feature async_commit is not supported");
    assert_eq!(set(0x28, 0x40), "journal: unknown incompatible features 0x40");
    assert_eq!(set(0x2c, 1), "journal: unknown read-only compatible features 0x1");
    assert_eq!(set(0x28, 0x18), "journal: features csum_v2 and csum_v3 exclude each other");
    assert_eq!(set(0x28, 0x10), "journal: checksums of type 0, not crc32c");
    let checksum = refused(&|raw| {
        put32(raw, 0x28, 0x10);
        raw[0x50] = 4;
    });
    assert_eq!(checksum, "wrong checksum");
}

/// As many as the kernel puts into one block: it ends a descriptor with room for a tag and a UUID.
#[test]
fn capacities_are_the_kernels() {
    let codec = |incompat| Codec::new(Features { incompat, ..Features::default() }, &[0; 16]);
    let copies = |incompat| codec(incompat).descriptor_copies();
    assert_eq!(copies(Features::CSUM_V3 | Features::WIDE), 253);
    assert_eq!(copies(Features::CSUM_V2 | Features::WIDE), 289);
    assert_eq!((copies(Features::WIDE), copies(0)), (337, 506));
    assert_eq!(codec(Features::CSUM_V3 | Features::WIDE).block_revokes(), 509);
    assert_eq!(codec(0).block_revokes(), 1_020);
}

const DOCUMENT: &str = include_str!("../../../../../../docs/formats/journal.md");

/// Place and field of each row of the first table below a heading.
fn table(heading: &str) -> Vec<(String, String)> {
    let (_, section) = DOCUMENT.split_once(heading).expect("the document has this heading");
    let rows = section.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let mut cells = row.trim_matches('|').split('|').map(str::trim);
            let mut cell = || cells.next().expect("two cells").to_owned();
            (cell(), cell())
        })
        .collect()
}

fn documented(fields: &[(&str, usize, usize)]) -> Vec<(String, String)> {
    let row = |&(name, at, bytes): &(&str, usize, usize)| {
        (format!("{at:#x}..{:#x}", at + bytes), format!("`{name}`"))
    };
    fields.iter().map(row).collect()
}

/// The superblock and the head of a record are where the document says.
#[test]
fn fields_are_as_documented() {
    let superblock = documented(&super::superblock::FIELDS);
    assert_eq!(table("## Superblock of the journal"), superblock);
    let record = documented(&crate::ext4::journal::files::RECORD_FIELDS);
    assert_eq!(table("## File-level record"), record);
}

/// Where the document places a field of a table.
fn place(heading: &str, field: &str) -> std::ops::Range<usize> {
    let rows = table(heading);
    let (place, _) = rows.iter().find(|(_, name)| *name == format!("`{field}`")).expect(field);
    let (from, to) = place.split_once("..").expect("a range");
    let number = |text: &str| usize::from_str_radix(text.trim_start_matches("0x"), 16);
    number(from).expect("a number")..number(to).expect("a number")
}

/// Headers, tags, revoke and commit blocks, made by the code and read by the document.
#[test]
fn blocks_are_as_documented() {
    let read = |block: &SectorBytes, base: usize, heading: &str, field: &str| {
        let place = place(heading, field);
        let bytes = &block[base + place.start..base + place.end];
        bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
    };
    let codec = |incompat| Codec::new(Features { incompat, ..Features::default() }, &[1; 16]);
    let wide = codec(Features::WIDE | Features::CSUM_V3);
    let mut commit = [0; BLOCK_BYTES];
    Commit { seconds: 7, nanoseconds: 8 }.encode(&wide, Tid(9), &mut commit);
    let header = |field| read(&commit, 0, "## Header of a block", field);
    assert_eq!([header("magic"), header("kind"), header("tid")], [MAGIC.into(), 2, 9]);
    let of_commit = |field| read(&commit, 0, "## Commit block", field);
    assert_eq!([of_commit("seconds"), of_commit("nanoseconds")], [7, 8]);
    assert_eq!(of_commit("checksum"), u64::from(wide.block_checksum(&commit, 0x10)));
    let mut revokes = [0; BLOCK_BYTES];
    encode_revokes(&wide, Tid(9), &[1, 2], &mut revokes);
    assert_eq!(read(&revokes, 0, "## Revoke block", "bytes"), 32);
    for (features, heading) in [
        (Features::WIDE | Features::CSUM_V3, "### Tag with csum_v3"),
        (Features::WIDE | Features::CSUM_V2, "### Tag without"),
    ] {
        let codec = codec(features);
        let mut block = [0; BLOCK_BYTES];
        let mut descriptor = Descriptor::new(&codec, Tid(9), &mut block);
        descriptor.push(&Tag { block: 0x5_0000_0006, escaped: true, checksum: 0xabc });
        descriptor.finish();
        let tag = |field| read(&block, HEADER_BYTES, heading, field);
        assert_eq!([tag("block"), tag("block_high"), tag("flags")], [6, 5, 9], "{heading}");
        assert_eq!(tag("checksum"), 0xabc);
    }
}
