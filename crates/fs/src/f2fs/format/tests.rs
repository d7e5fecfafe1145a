//! What holds for every structure: no bytes make a parser panic, what was read is written back as it
//! was, a changed bit is noticed, and docs/formats/f2fs.md says what the code reads.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// The superblock that mkfs.f2fs 1.15 makes of 16 GiB.
fn superblock() -> Superblock {
    let mut sb = Superblock::empty();
    sb.magic = SUPERBLOCK_MAGIC;
    [sb.log_sectorsize, sb.log_sectors_per_block, sb.log_blocksize] = [9, 3, 12];
    [sb.log_blocks_per_seg, sb.segs_per_sec, sb.secs_per_zone] = [9, 1, 1];
    sb.block_count = 4 << 20;
    [sb.section_count, sb.segment_count, sb.segment_count_main] = [8135, 8191, 8135];
    [sb.segment_count_ckpt, sb.segment_count_sit] = [2, 2];
    [sb.segment_count_nat, sb.segment_count_ssa] = [36, 16];
    [sb.segment0_blkaddr, sb.cp_blkaddr, sb.sit_blkaddr] = [512, 512, 1536].map(BlockAddr);
    [sb.nat_blkaddr, sb.ssa_blkaddr, sb.main_blkaddr] = [2560, 20992, 29184].map(BlockAddr);
    [sb.root_ino, sb.node_ino, sb.meta_ino] = [3, 1, 2].map(Nid);
    sb.uuid = *b"0123456789abcdef";
    sb.feature = SUPPORTED.0;
    sb.checksum_offset = SUPERBLOCK_CRC_AT as u32;
    sb
}

fn layout() -> Layout {
    Layout::of(&superblock()).expect("a sound superblock")
}

/// The checkpoint that mkfs.f2fs 1.15 makes of it.
fn checkpoint() -> Checkpoint {
    let mut cp = Checkpoint::empty();
    [cp.checkpoint_ver, cp.user_block_count, cp.valid_block_count] = [7, 4_032_000, 2];
    [cp.rsvd_segment_count, cp.overprov_segment_count, cp.free_segment_count] = [135, 260, 8129];
    for (at, log) in (0..).zip(SegmentType::ALL) {
        cp.set_log(log, LogPosition { segno: SegNo(10 * at), blkoff: at as u16, ssr: false });
    }
    [cp.sit_ver_bitmap_bytesize, cp.nat_ver_bitmap_bytesize] = [64, 18 * 64];
    cp.checksum_offset = CHECKPOINT_CRC_AT as u32;
    PackPlan::new(&layout(), 0, Some(1), true).expect("it fits").note(&mut cp, true);
    cp
}

fn superblock_bytes(sb: &Superblock) -> Vec<u8> {
    let mut bytes = vec![0; SUPERBLOCK_BYTES];
    sb.encode(&mut bytes);
    bytes
}

/// Noise, around a few bytes that pass the first checks.
fn hostile(
    bytes: usize,
    heads: &'static [(usize, &'static [u8])],
) -> impl Strategy<Value = Vec<u8>> {
    let noise = prop_oneof![vec(any::<u8>(), bytes), vec(prop_oneof![Just(0), 0..16_u8], bytes)];
    (noise, any::<bool>()).prop_map(move |(mut bytes, headed)| {
        for (at, head) in heads.iter().filter(|_| headed) {
            bytes[*at..*at + head.len()].copy_from_slice(head);
        }
        bytes
    })
}

/// Calls everything that computes with a layout, at an address and a number from outside.
fn exercise(layout: &Layout, number: u32, second: bool) {
    let addr = BlockAddr(number);
    let bitmap = VersionBitmap::from_bytes(&[0x55; 100]);
    let (sit, nat) = (layout.sit_place(SegNo(number)), layout.nat_place(Nid(number)));
    for block in [number, sit.0, nat.0] {
        let copies = [layout.sit_block(block, second), layout.nat_block(block, second)];
        let current = [
            layout.current_sit_addr(block, &bitmap),
            layout.next_sit_addr(block, &bitmap),
            layout.current_nat_addr(block, &bitmap),
            layout.next_nat_addr(block, &bitmap),
        ];
        let areas = [Area::Sit, Area::Nat, Area::Sit, Area::Sit, Area::Nat, Area::Nat];
        for (addr, area) in copies.into_iter().chain(current).zip(areas) {
            assert!(addr.is_none_or(|addr| layout.area_of(addr) == Some(area)));
        }
    }
    let segment = layout.segment_of(addr);
    assert_eq!(
        segment.and_then(|(segno, at)| layout.block(segno, at)).is_some(),
        segment.is_some()
    );
    assert_eq!(layout.area_of(addr) == Some(Area::Main), segment.is_some());
    let section = layout.section_of(SegNo(number));
    let _ = (layout.zone_of(section), layout.section_segments(section), layout.nids());
    let _ = (layout.segment_blocks(SegNo(number)), layout.summary_block(SegNo(number)));
    let _ = (layout.nat_bits(1, number), layout.pack(number), layout.blocks_per_section());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the bytes, superblocks end in a value or in an error.
    #[test]
    fn no_superblock_panics(
        bytes in hostile(SUPERBLOCK_BYTES, &[(0, &[0x10, 0x20, 0xf5, 0xf2]), (0x885, &[0])]),
        cut in 0..SUPERBLOCK_BYTES,
    ) {
        for bytes in [&bytes[..], &bytes[..cut]] {
            if let Ok(sb) = Superblock::parse(bytes, 1) {
                exercise(&Layout::of(&sb).expect("it was checked"), 5_000, true);
            }
            let read = Superblock::read(bytes);
            let _ = (read.check_supported(0), read.label(), read.extensions(), Layout::of(&read));
        }
    }

    /// A sound superblock with any other number in one of its fields is refused, or computed with.
    #[test]
    fn no_field_of_a_superblock_panics(
        field in 0..21_usize,
        value in prop_oneof![any::<u32>(), 0..20_u32, (0..32_u32).prop_map(|n| u32::MAX >> n)],
        payload in 0..600_u32,
        number in any::<u32>(),
        second in any::<bool>(),
    ) {
        let mut sb = superblock();
        let mut bytes = superblock_bytes(&sb);
        crate::wire::put_u32(&mut bytes, 0x8 + 4 * field, value);
        sb = Superblock::read(&bytes);
        sb.cp_payload = payload;
        sb.encode(&mut bytes);
        if let Ok(sb) = Superblock::parse(&bytes, 0) {
            exercise(&Layout::of(&sb).expect("it was checked"), number, second);
        }
    }

    /// Whatever the bytes, checkpoint blocks end in a value or in an error, and so do their plans.
    #[test]
    fn no_checkpoint_panics(
        mut block in hostile(BLOCK_BYTES, &[(0xa4, &[0xfc, 0xf, 0, 0])]),
        crc_at in prop_oneof![Just(4092), 0xc0..4092_u32, any::<u32>()],
    ) {
        let mut cp = Checkpoint::read(&block);
        let _ = (Checkpoint::parse(&block, 0), cp.stored_crc(&block));
        cp.checksum_offset = crc_at;
        cp.encode(&mut block);
        prop_assert_eq!(Checkpoint::parse(&block, 0).is_ok(), (0xc0..=4092).contains(&crc_at));
        let layout = layout();
        let _ = (PackPlan::of(&cp, &layout, 1), cp.check(&layout, 1), cp.stored_crc(&block));
        let _ = (cp.sit_bitmap(&layout), cp.nat_bitmap(&layout));
        let _ = SegmentType::ALL.map(|log| cp.summary_entries(log));
    }

    /// Whatever the bytes, everything else ends in a value or in an error.
    #[test]
    fn no_structure_panics(
        bytes in hostile(2 * BLOCK_BYTES, &[(0, &[5, 0]), (507, &[3, 0]), (4091, &[1])]),
        cut in 0..2 * BLOCK_BYTES,
        counts in [0..600_usize, 0..600_usize, 0..600_usize],
        index in prop_oneof![0..500_usize, any::<usize>()],
    ) {
        let place = Place::Block(BlockAddr(7));
        for bytes in [&bytes[..], &bytes[..cut], &bytes[cut..]] {
            let _ = SitEntry::parse(bytes, SegNo(4));
            let _ = SitEntry::read_at(bytes, index, SegNo(4));
            let _ = NatEntry::read_at(bytes, index);
            let _ = (SitJournal::parse(bytes, place), NatJournal::parse(bytes, place));
            let _ = (SummaryBlock::parse(bytes, place), parse_orphans(bytes, 0));
            let _ = CompactSummaries::parse(bytes, counts, 1);
            let _ = NatBits::parse(bytes, &layout(), 0);
            let mut out = bytes.to_vec();
            SitEntry::default().write_at(&mut out, index);
            NatEntry::default().write_at(&mut out, index);
            SummaryBlock::new(SummaryKind::Node).encode(&mut out);
            NatBits::new(1, &layout()).encode(&mut out);
        }
    }

    /// A superblock that is written over what it was read from changes no byte.
    #[test]
    fn superblocks_round_trip(mut bytes in vec(any::<u8>(), SUPERBLOCK_BYTES)) {
        superblock().write(&mut bytes);
        superblock().encode(&mut bytes);
        let before = bytes.clone();
        let sb = Superblock::parse(&bytes, 0).expect("a sound superblock");
        sb.encode(&mut bytes);
        prop_assert_eq!(bytes, before);
    }

    /// A changed bit of a superblock or a checkpoint with a checksum is noticed.
    #[test]
    fn a_changed_bit_is_noticed(at in 0..SUPERBLOCK_BYTES, bit in 0..8_u32) {
        let mut bytes = superblock_bytes(&superblock());
        // Without its feature bit the superblock has no checksum.
        let feature = at == 0x885 && bit == 3;
        bytes[at] ^= 1 << bit;
        prop_assert!(feature || Superblock::parse(&bytes, 0).is_err());
        let mut block = vec![0; BLOCK_BYTES];
        checkpoint().encode(&mut block);
        prop_assert_eq!(Checkpoint::parse(&block, 0), Ok(checkpoint()));
        block[at] ^= 1 << bit;
        prop_assert!(Checkpoint::parse(&block, 0).is_err());
    }

    /// Maps of valid blocks agree with an array of flags, and with their bytes.
    #[test]
    fn valid_maps_are_arrays_of_flags(
        changes in vec((0..520_u32, any::<bool>()), 0..200),
        from in 0..600_u32,
    ) {
        let (mut map, mut flags) = (ValidMap::default(), [false; 512]);
        for (bit, on) in changes {
            let was = flags.get(bit as usize).is_some_and(|flag| *flag);
            prop_assert_eq!(if on { map.set(bit) } else { map.clear(bit) }, was);
            if let Some(flag) = flags.get_mut(bit as usize) {
                *flag = on;
            }
        }
        let bytes = map.to_bytes();
        prop_assert_eq!(ValidMap::from_bytes(&bytes), map);
        for (bit, flag) in flags.iter().enumerate() {
            prop_assert_eq!(map.get(bit as u32), *flag);
            prop_assert_eq!(bytes[bit / 8] >> (7 - bit % 8) & 1 == 1, *flag);
        }
        let found = |on: bool| (from..512).find(|bit| flags[*bit as usize] == on);
        prop_assert_eq!(map.next_set(from), found(true));
        prop_assert_eq!(map.next_clear(from), found(false));
        let set = |from: u32| (from..512).filter(|bit| flags[*bit as usize]).count() as u32;
        prop_assert_eq!((map.count(), map.count_from(from)), (set(0), set(from)));
    }

    /// Entries of the SIT and of the NAT come back from their blocks and journals, and their neighbours
    /// stay as they are.
    #[test]
    fn entries_round_trip(
        map in any::<[u8; 32]>(),
        kind in 0..6_u32,
        mtime in any::<u64>(),
        nat in any::<(u8, u32, u32)>(),
        index in 0..55_usize,
        noise in vec(any::<u8>(), BLOCK_BYTES),
        entries in 0..9_usize,
    ) {
        let mut bytes = [0; 64];
        bytes[7..39].copy_from_slice(&map);
        let map = ValidMap::from_bytes(&bytes);
        let segment_type = SegmentType::of(kind).expect("a type");
        let sit = SitEntry { valid_blocks: map.count() as u16, segment_type, map, mtime };
        let mut block = noise.clone();
        sit.write_at(&mut block, index);
        prop_assert_eq!(SitEntry::read_at(&block, index, SegNo(1)), Ok(sit));
        let place = index * SIT_ENTRY_BYTES..(index + 1) * SIT_ENTRY_BYTES;
        prop_assert_eq!(&block[..place.start], &noise[..place.start]);
        prop_assert_eq!(&block[place.end..], &noise[place.end..]);

        let nat = NatEntry { version: nat.0, ino: Nid(nat.1), block_addr: BlockAddr(nat.2) };
        let mut block = noise.clone();
        nat.write_at(&mut block, 8 * index);
        prop_assert_eq!(NatEntry::read_at(&block, 8 * index), nat);
        let at = 8 * index * NAT_ENTRY_BYTES;
        prop_assert_eq!(&block[..at], &noise[..at]);
        prop_assert_eq!(&block[at + NAT_ENTRY_BYTES..], &noise[at + NAT_ENTRY_BYTES..]);

        let place = Place::PackSummary(0);
        let mut journal = [0; JOURNAL_BYTES];
        let sits = SitJournal { entries: vec![(SegNo(9), sit); entries] };
        sits.encode(&mut journal);
        let kept = SitJournal::parse(&journal, place).expect("a journal").entries;
        prop_assert_eq!(&kept[..], &sits.entries[..entries.min(SIT_JOURNAL_ENTRIES)]);
        let nats = NatJournal { entries: vec![(Nid(3), nat); 8 * entries] };
        nats.encode(&mut journal);
        let kept = NatJournal::parse(&journal, place).expect("a journal").entries;
        prop_assert_eq!(&kept[..], &nats.entries[..(8 * entries).min(NAT_JOURNAL_ENTRIES)]);
    }

    /// Compacted summaries come back from as many blocks as they say, for any fill of the logs that two
    /// blocks hold; an entry that crosses into the last bytes of a block would be lost.
    #[test]
    fn compact_summaries_round_trip(counts in [0..400_usize, 0..400_usize, 0..400_usize]) {
        let log = |log: usize, count: usize| {
            let entry = |at| SummaryEntry { nid: Nid(at + 1), version: log as u8, ofs_in_node: 7 };
            (0..count as u32).map(entry).collect()
        };
        let [hot, warm, cold] = counts;
        let entries = [log(0, hot), log(1, warm), log(2, cold)];
        let nat = NatEntry { version: 1, ino: Nid(3), block_addr: BlockAddr(4) };
        let nat = NatJournal { entries: vec![(Nid(3), nat)] };
        let sit = SitJournal { entries: vec![(SegNo(9), SitEntry::default())] };
        let summaries = CompactSummaries { nat, sit, entries };
        let total = hot + warm + cold;
        let expected = [(439, 1), (439 + 584, 2)].into_iter().find(|(room, _)| total <= *room);
        prop_assert_eq!(summaries.blocks(), expected.map(|(_, blocks)| blocks));
        if let Some(blocks) = summaries.blocks() {
            let mut bytes = vec![0; blocks as usize * BLOCK_BYTES];
            summaries.encode(&mut bytes);
            prop_assert_eq!(CompactSummaries::parse(&bytes, counts, 0), Ok(summaries));
            prop_assert!(bytes.chunks(BLOCK_BYTES).all(|block| block[4091..] == [0; 5]));
        }
    }
}

/// Areas, copies and packs of the volume in f2fs_fs.h's arithmetic.
#[test]
fn things_are_where_the_kernel_looks() {
    let layout = layout();
    assert_eq!(layout.area(Area::Main), BlockAddr(29184)..BlockAddr(29184 + 8135 * 512));
    assert_eq!([layout.pack(0), layout.pack(1)], [512, 1024].map(BlockAddr));
    assert_eq!([layout.sit_blocks(), layout.nat_blocks(), layout.nids()], [512, 9216, 4_193_280]);
    // The second copy of the SIT lies half the area after the first.
    let sit = |second| layout.sit_block(147, second).map(|addr| addr.0);
    assert_eq!([sit(false), sit(true)], [Some(1683), Some(2195)]);
    assert_eq!(layout.sit_block(512, false), None);
    // Copies of the NAT alternate by segment.
    let nat = |block, second| layout.nat_block(block, second).map(|addr| addr.0);
    assert_eq!([nat(5, false), nat(5, true)], [Some(2565), Some(3077)]);
    assert_eq!([nat(517, false), nat(517, true)], [Some(3589), Some(4101)]);
    assert_eq!(nat(9216, false), None);
    let mut bitmap = VersionBitmap::from_bytes(&[0; 1152]);
    assert_eq!(layout.current_nat_addr(5, &bitmap), Some(BlockAddr(2565)));
    assert_eq!(layout.next_nat_addr(5, &bitmap), Some(BlockAddr(3077)));
    bitmap.flip(5);
    assert_eq!(layout.current_nat_addr(5, &bitmap), Some(BlockAddr(3077)));
    assert_eq!(layout.next_sit_addr(5, &bitmap), Some(BlockAddr(1541)));
    assert_eq!(layout.segment_of(BlockAddr(29184 + 512 + 3)), Some((SegNo(1), 3)));
    assert_eq!(
        [layout.segment_of(BlockAddr(29183)), layout.segment_of(layout.main_end())],
        [None; 2]
    );
    assert_eq!(layout.summary_block(SegNo(8134)), Some(BlockAddr(29126)));
    assert_eq!(layout.nat_bits_blocks(), 1);
    assert_eq!(layout.nat_bits(1, 511), Some(BlockAddr(1535)));
    assert_eq!(layout.nat_bits(1, 512), None);
}

/// Sections are runs of segments, zones runs of sections.
#[test]
fn sections_are_runs_of_segments() {
    let mut sb = superblock();
    [sb.segs_per_sec, sb.secs_per_zone, sb.section_count] = [5, 3, 1627];
    let layout = Layout::of(&sb).expect("a sound superblock");
    assert_eq!([layout.sections(), layout.section_of(SegNo(14)), layout.zone_of(8)], [1627, 2, 2]);
    assert_eq!([layout.section_segments(2), layout.section_segments(1627)], [10..15, 0..0]);
}

/// What contradicts itself is refused, at the field that does.
#[test]
fn unsound_superblocks_are_refused() {
    type Change = fn(&mut Superblock);
    let changes: [(usize, Change); 19] = [
        (0x10, |sb| sb.log_blocksize = 13),
        (0x14, |sb| sb.log_blocks_per_seg = 10),
        (0x8, |sb| sb.log_sectorsize = 8),
        (0xc, |sb| sb.log_sectors_per_block = 4),
        (0x47c, |sb| (sb.extension_count, sb.hot_ext_count) = (40, 25)),
        (0x680, |sb| sb.cp_payload = 511),
        (0x60, |sb| sb.root_ino = Nid(4)),
        (0x30, |sb| sb.segment_count = 8),
        (0x2c, |sb| sb.section_count = 8134),
        (0x18, |sb| sb.segs_per_sec = 0),
        (0x1c, |sb| sb.secs_per_zone = 8136),
        (0x30, |sb| sb.block_count = 8190 * 512),
        (0x4c, |sb| sb.cp_blkaddr = BlockAddr(513)),
        (0x50, |sb| sb.segment_count_ckpt = 3),
        (0x54, |sb| sb.nat_blkaddr = BlockAddr(2559)),
        (0x58, |sb| sb.segment_count_nat = 34),
        (0x5c, |sb| sb.main_blkaddr = BlockAddr(29185)),
        (0x44, |sb| sb.segment_count = 8190),
        (0x899, |sb| sb.devs[0][0] = b'/'),
    ];
    for (at, change) in changes {
        let mut sb = superblock();
        change(&mut sb);
        let error = Superblock::parse(&superblock_bytes(&sb), 1).expect_err("refused");
        let expected = matches!(error, FormatError::Corrupt { place: Place::Superblock(1), byte, .. } if byte == at);
        assert!(expected, "{at:#x}: {error}");
    }
    let mut sb = superblock();
    sb.devs[0][0] = b'/';
    sb.devs[0][64..].copy_from_slice(&8191_u32.to_le_bytes());
    assert!(Superblock::parse(&superblock_bytes(&sb), 0).is_ok());
    assert!(matches!(sb.check_supported(0), Err(FormatError::Incompatible { .. })));
}

/// What does not fit the volume is refused.
#[test]
fn unsound_checkpoints_are_refused() {
    type Change = fn(&mut Checkpoint);
    let changes: [(usize, Change); 13] = [
        (0x18, |cp| cp.rsvd_segment_count = 0),
        (0x18, |cp| cp.rsvd_segment_count = 8135),
        (0x1c, |cp| cp.overprov_segment_count = 0),
        (0x8, |cp| cp.user_block_count = 8135 * 512),
        (0x10, |cp| cp.valid_block_count = 4_032_001),
        (0x90, |cp| cp.valid_node_count = 4_193_278),
        (0x24, |cp| cp.cur_node_segno[2] = SegNo(8135)),
        (0x24, |cp| cp.cur_data_blkoff[1] = 512),
        (0x24, |cp| cp.cur_data_segno[2] = cp.cur_node_segno[0]),
        (0x9c, |cp| cp.sit_ver_bitmap_bytesize = 65),
        (0xa0, |cp| cp.nat_ver_bitmap_bytesize = 64),
        (0xa4, |cp| cp.ckpt_flags |= CP_LARGE_NAT_BITMAP),
        (0x9c, |cp| cp.checksum_offset = 0xc0),
    ];
    assert_eq!(checkpoint().check(&layout(), 0), Ok(()));
    for (at, change) in changes {
        let mut cp = checkpoint();
        change(&mut cp);
        let error = cp.check(&layout(), 1).expect_err("refused");
        let expected = matches!(error, FormatError::Corrupt { place: Place::Checkpoint(1), byte, .. } if byte == at);
        assert!(expected, "{at:#x}: {error}");
    }
}

/// As in the kernel, the areas and the reserve have nine segments at least: a volume with areas of seven
/// has to reserve two.
#[test]
fn a_reserve_of_one_segment_is_refused() {
    let mut sb = superblock();
    [sb.segment_count_nat, sb.segment_count_ssa] = [2, 1];
    [sb.section_count, sb.segment_count_main, sb.segment_count] = [18, 18, 25];
    [sb.ssa_blkaddr, sb.main_blkaddr] = [3584, 4096].map(BlockAddr);
    let layout = Layout::of(&sb).expect("a sound superblock");
    let mut cp = checkpoint();
    cp.user_block_count = 512;
    cp.nat_ver_bitmap_bytesize = 64;
    for (at, log) in (0..).zip(SegmentType::ALL) {
        cp.set_log(log, LogPosition { segno: SegNo(at), blkoff: 0, ssr: false });
    }
    for (reserved, sound) in [(1, false), (2, true), (17, true), (18, false)] {
        cp.rsvd_segment_count = reserved;
        assert_eq!(cp.check(&layout, 0).is_ok(), sound, "{reserved}");
    }
}

/// A plan that is noted in a checkpoint is read back from it; packs end with their segment.
#[test]
fn plans_of_packs_round_trip() {
    let layout = layout();
    for (orphans, compact, nodes) in [(0, Some(1), true), (3, Some(2), false), (1, None, true)] {
        let plan = PackPlan::new(&layout, orphans, compact, nodes).expect("it fits");
        let mut cp = checkpoint();
        plan.note(&mut cp, orphans == 0);
        assert_eq!(PackPlan::of(&cp, &layout, 0), Ok(plan.clone()));
        assert_eq!([cp.has(CP_UMOUNT), cp.has(CP_FASTBOOT)], [orphans == 0, nodes && orphans > 0]);
        assert_eq!(plan.orphans.len() as u32, orphans);
        assert_eq!(plan.blocks(), 2 + orphans + compact.unwrap_or(3) + if nodes { 3 } else { 0 });
    }
    assert!(PackPlan::new(&layout, 504, None, true).is_some());
    assert_eq!(PackPlan::new(&layout, 505, None, true), None);
    assert_eq!(PackPlan::new(&layout, u32::MAX, None, true), None);
    type Change = fn(&mut Checkpoint);
    let changes: [(usize, Change); 5] = [
        (0x88, |cp| cp.cp_pack_total_block_count = 513),
        (0x88, |cp| cp.cp_pack_total_block_count = 4),
        (0x8c, |cp| cp.cp_pack_start_sum = 0),
        (0x8c, |cp| cp.cp_pack_total_block_count += 2),
        (0x8c, |cp| cp.ckpt_flags &= !CP_COMPACT_SUM),
    ];
    for (at, change) in changes {
        let mut cp = checkpoint();
        change(&mut cp);
        let error = PackPlan::of(&cp, &layout, 1).expect_err("refused");
        let expected = matches!(error, FormatError::Corrupt { place: Place::Checkpoint(1), byte, .. } if byte == at);
        assert!(expected, "{at:#x}: {error}");
    }
}

/// The version bitmaps lie one after the other, the SIT's in the payload if there is one, and the NAT's
/// first with `large_nat_bitmap`.
#[test]
fn bitmaps_lie_where_the_kernel_looks() {
    let mut sb = superblock();
    let mut cp = checkpoint();
    assert_eq!([cp.sit_bitmap(&layout()), cp.nat_bitmap(&layout())], [192..256, 256..1408]);
    sb.cp_payload = 1;
    let payload = Layout::of(&sb).expect("a sound superblock");
    assert_eq!([cp.sit_bitmap(&payload), cp.nat_bitmap(&payload)], [4096..4160, 192..1344]);
    assert_eq!(PackPlan::new(&payload, 2, None, true).map(|plan| plan.data), Some(4..7));
    cp.ckpt_flags |= CP_LARGE_NAT_BITMAP;
    cp.checksum_offset = CHECKPOINT_BITMAPS_AT as u32;
    assert_eq!([cp.nat_bitmap(&payload), cp.sit_bitmap(&payload)], [196..1348, 1348..1412]);
    assert_eq!(cp.check(&payload, 0), Ok(()));
}

/// Summary blocks and NAT bits come back from their bytes; orphans from theirs, in several blocks.
#[test]
fn summaries_bits_and_orphans_round_trip() {
    let mut summary = SummaryBlock::new(SummaryKind::Node);
    summary.entries[511] = SummaryEntry { nid: Nid(0x0102_0304), version: 5, ofs_in_node: 0x0607 };
    summary.journal[506] = 9;
    summary.check_sum = 0x0a0b_0c0d;
    let mut block = [0xff; BLOCK_BYTES];
    summary.encode(&mut block);
    assert_eq!(block[3577..3585], [4, 3, 2, 1, 5, 7, 6, 0]);
    assert_eq!(block[4090..], [9, 1, 13, 12, 11, 10]);
    assert_eq!(SummaryBlock::parse(&block, Place::Summary(SegNo(1))), Ok(summary));
    block[4091] = 2;
    assert!(SummaryBlock::parse(&block, Place::Summary(SegNo(1))).is_err());

    let layout = layout();
    let mut bits = NatBits::new(7, &layout);
    bits.set(0, 1);
    bits.set(9, NAT_ENTRIES_PER_BLOCK);
    let mut bytes = vec![0; BLOCK_BYTES];
    bits.encode(&mut bytes);
    assert_eq!([bytes[9], bytes[8 + 1152], bytes[8 + 1153]], [2, 0xfe, 0xfd]);
    assert_eq!(NatBits::parse(&bytes, &layout, 0), Ok(bits.clone()));
    assert!(bits.is_full(9) && !bits.is_empty(9) && !bits.is_full(0) && !bits.is_empty(0));
    assert!(bits.is_empty(8) && !bits.is_full(8) && !bits.is_empty(9216));

    let orphans: Vec<Nid> = (0..1021).map(Nid).collect();
    let blocks = encode_orphans(&orphans);
    let parsed = blocks.iter().flat_map(|block| parse_orphans(block, 0).expect("orphans"));
    assert_eq!(parsed.collect::<Vec<_>>(), orphans);
    assert_eq!(blocks[1][0xff4..0xffc], [2, 0, 2, 0, 1, 0, 0, 0]);
    assert_eq!([blocks.len(), orphan_blocks(1020), orphan_blocks(0)], [2, 1, 0]);
    assert!(encode_orphans(&[]).is_empty());
}

/// A journal that claims more entries than it has room for is refused.
#[test]
fn overfull_journals_are_refused() {
    let place = Place::PackSummary(1);
    let full = |count: usize| {
        let mut journal = [0; JOURNAL_BYTES];
        journal[0] = count as u8;
        journal
    };
    let nat = |count| NatJournal::parse(&full(count), place).map(|journal| journal.entries.len());
    let sit = |count| SitJournal::parse(&full(count), place).map(|journal| journal.entries.len());
    assert_eq!([nat(NAT_JOURNAL_ENTRIES), sit(SIT_JOURNAL_ENTRIES)], [Ok(38), Ok(6)]);
    for refused in [nat(NAT_JOURNAL_ENTRIES + 1), sit(SIT_JOURNAL_ENTRIES + 1)] {
        let expected =
            matches!(refused, Err(FormatError::Corrupt { place: at, .. }) if at == place);
        assert!(expected, "{refused:?}");
    }
}

/// An entry whose count is not the map's, or whose type does not exist, is refused.
#[test]
fn unsound_sit_entries_are_refused() {
    let mut bytes = [0; SIT_ENTRY_BYTES];
    bytes[0] = 1;
    assert!(SitEntry::parse(&bytes, SegNo(3)).is_err());
    bytes[2] = 0x80;
    let entry = SitEntry::parse(&bytes, SegNo(3)).expect("sound");
    assert_eq!((entry.valid_blocks, entry.map.next_set(0)), (1, Some(0)));
    bytes[1] = 4 << 2;
    let entry = SitEntry::parse(&bytes, SegNo(3)).expect("sound");
    assert_eq!(entry.segment_type, SegmentType::WarmNode);
    bytes[1] = 6 << 2;
    assert!(SitEntry::parse(&bytes, SegNo(3)).is_err());
}

const DOCUMENT: &str = include_str!("../../../../../docs/formats/f2fs.md");

/// The rows of the first table below a heading.
fn table(heading: &str) -> Vec<[&'static str; 3]> {
    let (_, section) = DOCUMENT.split_once(heading).expect("the document has this heading");
    let rows = section.lines().skip_while(|line| !line.starts_with("|---"));
    rows.skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            cells[..].try_into().expect("three cells")
        })
        .collect()
}

/// The document has every field that the code reads, and says where it is.
#[test]
fn records_are_as_documented() {
    let records = [
        ("## Superblock\n", Superblock::FIELDS),
        ("### Checkpoint block\n", Checkpoint::FIELDS),
        ("### Orphans\n", OrphanFooter::FIELDS),
        ("### SIT entry\n", SitEntry::FIELDS),
        ("### NAT entry\n", NatEntry::FIELDS),
        ("### Summary entry\n", SummaryEntry::FIELDS),
        ("### GC journal record\n", GcJournalRecord::FIELDS),
        ("### Paper entry\n", PaperEntry::FIELDS),
        ("### Paper footer\n", PaperFooter::FIELDS),
        ("### Safe header\n", SafeHeader::FIELDS),
        ("### Safe entry\n", RawSafeEntry::FIELDS),
    ];
    for (heading, fields) in records {
        let rows = table(heading);
        assert_eq!(rows.len(), fields.len(), "{heading}");
        for (row, field) in rows.iter().zip(fields) {
            let place = format!("{:#x}..{:#x}", field.at, field.at + field.bytes);
            assert_eq!(row[..2], [place, format!("`{}`", field.name)], "{heading}");
        }
    }
}

/// The document lists exactly the features that we support.
#[test]
fn supported_features_are_as_documented() {
    let rows = table("## Features\n");
    let mut listed: Vec<_> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    listed.sort_unstable();
    let mut supported = SUPPORTED.names();
    supported.sort();
    assert_eq!(listed, supported);
}
