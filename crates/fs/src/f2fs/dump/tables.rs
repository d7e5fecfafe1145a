//! Superblock, checkpoint, and entries of NAT, SIT and SSA.

use super::{NAME_WIDTH, flags, gc_journal};
use crate::dump::{Dump, inclusive};
use crate::f2fs::format::*;
use crate::f2fs::raw::{F2fsImage, RawError};
use serde_json::{Value, json};

/// Names of the checkpoint's flags.
const CP_FLAGS: [(u32, &str); 15] = [
    (CP_UMOUNT, "umount"),
    (CP_ORPHAN_PRESENT, "orphan_present"),
    (CP_COMPACT_SUM, "compact_sum"),
    (CP_ERROR, "error"),
    (CP_FSCK, "fsck"),
    (CP_FASTBOOT, "fastboot"),
    (CP_CRC_RECOVERY, "crc_recovery"),
    (CP_NAT_BITS, "nat_bits"),
    (CP_TRIMMED, "trimmed"),
    (CP_NOCRC_RECOVERY, "nocrc_recovery"),
    (CP_LARGE_NAT_BITMAP, "large_nat_bitmap"),
    (CP_QUOTA_NEED_FSCK, "quota_need_fsck"),
    (CP_DISABLED, "disabled"),
    (CP_DISABLED_QUICK, "disabled_quick"),
    (CP_RESIZEFS, "resizefs"),
];

pub(super) fn superblock(image: &F2fsImage) -> Dump {
    let sb = &image.sb;
    let mut dump = Dump::new(NAME_WIDTH);
    let hex: String = sb.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    dump.field("copy", image.sb_copy);
    dump.shown("volume_name", format_args!("{:?}", sb.label()), sb.label());
    dump.field("uuid", hex);
    let features = sb.features().names();
    dump.shown("features", features.join(" "), features);
    let refused = sb.check_supported(image.sb_copy);
    let text = refused.as_ref().err().map_or_else(|| "yes".to_owned(), ToString::to_string);
    dump.shown("supported", text, refused.is_ok());
    dump.field("major_ver", sb.major_ver);
    dump.field("minor_ver", sb.minor_ver);
    dump.field("block_count", sb.block_count);
    dump.field("segs_per_sec", sb.segs_per_sec);
    dump.field("secs_per_zone", sb.secs_per_zone);
    dump.field("section_count", sb.section_count);
    dump.field("segment_count", sb.segment_count);
    dump.field("segment_count_ckpt", sb.segment_count_ckpt);
    dump.field("segment_count_sit", sb.segment_count_sit);
    dump.field("segment_count_nat", sb.segment_count_nat);
    dump.field("segment_count_ssa", sb.segment_count_ssa);
    dump.field("segment_count_main", sb.segment_count_main);
    dump.field("cp_blkaddr", sb.cp_blkaddr.0);
    dump.field("sit_blkaddr", sb.sit_blkaddr.0);
    dump.field("nat_blkaddr", sb.nat_blkaddr.0);
    dump.field("ssa_blkaddr", sb.ssa_blkaddr.0);
    dump.field("main_blkaddr", sb.main_blkaddr.0);
    dump.field("root_ino", sb.root_ino.0);
    dump.field("cp_payload", sb.cp_payload);
    let (cold, hot) = sb.extensions();
    let words = |words: Vec<&[u8]>| {
        words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>()
    };
    for (name, extensions) in [("cold extensions", words(cold)), ("hot extensions", words(hot))] {
        dump.shown(name, extensions.join(" "), extensions);
    }
    dump.field("slots", space_text(image));
    dump.field("gc_journal", gc_journal::area_text(image));
    dump.shown("crc", format_args!("{:#010x}", sb.crc), sb.crc);
    add_problems(&mut dump, image);
    dump
}

/// The append-only address space: how it is used, and its regions.
fn space_text(image: &F2fsImage) -> String {
    let Some(space) = image.layout.space() else { return "none".to_owned() };
    let region = |region: &SpaceRegion| {
        let start = u64::from(region.start);
        inclusive(start..start + u64::from(region.blocks))
    };
    let regions: Vec<_> = space.regions().iter().map(region).collect();
    let AddressSpace { mode, capacity, journal_segments, .. } = space;
    let regions = regions.join(" ");
    format!(
        "{}, media of {capacity} blocks, journal of {journal_segments} segments, regions {regions}",
        mode.name()
    )
}

fn add_problems(dump: &mut Dump, image: &F2fsImage) {
    for problem in &image.problems {
        dump.problem(problem);
    }
}

pub(super) async fn checkpoint(image: &F2fsImage) -> Result<Dump, RawError> {
    let cp = &image.checkpoint;
    let mut dump = Dump::new(NAME_WIDTH);
    dump.field("pack", image.pack);
    dump.shown("checkpoint_ver", format_args!("{:#x}", cp.checkpoint_ver), cp.checkpoint_ver);
    flags(&mut dump, "ckpt_flags", cp.ckpt_flags, &CP_FLAGS);
    dump.field("user_block_count", cp.user_block_count);
    dump.field("valid_block_count", cp.valid_block_count);
    dump.field("valid_node_count", cp.valid_node_count);
    dump.field("valid_inode_count", cp.valid_inode_count);
    dump.field("rsvd_segment_count", cp.rsvd_segment_count);
    dump.field("overprov_segment_count", cp.overprov_segment_count);
    dump.field("free_segment_count", cp.free_segment_count);
    dump.field("next_free_nid", cp.next_free_nid.0);
    dump.field("cp_pack_total_block_count", cp.cp_pack_total_block_count);
    dump.field("cp_pack_start_sum", cp.cp_pack_start_sum);
    dump.field("sit_ver_bitmap_bytesize", cp.sit_ver_bitmap_bytesize);
    dump.field("nat_ver_bitmap_bytesize", cp.nat_ver_bitmap_bytesize);
    dump.field("elapsed_time", cp.elapsed_time);
    dump.shown("checksum", format_args!("{:#010x}", image.checkpoint_crc), image.checkpoint_crc);
    for log in SegmentType::ALL {
        let LogPosition { segno, blkoff, ssr } = cp.log(log);
        let way = if ssr { "fills holes" } else { "appends" };
        let text = format!("segment {}, block {blkoff}, {way}", segno.0);
        dump.shown(type_name(log), text, json!({"segno": segno.0, "blkoff": blkoff, "ssr": ssr}));
    }
    let orphans = image.orphans().await?;
    let orphans: Vec<u32> = orphans.iter().map(|nid| nid.0).collect();
    dump.shown("orphans", orphans.len(), orphans.clone());
    for row in orphans.chunks(8) {
        let row: Vec<String> = row.iter().map(u32::to_string).collect();
        dump.note(format_args!("  {}", row.join(", ")));
    }
    add_journals(&mut dump, image);
    add_problems(&mut dump, image);
    Ok(dump)
}

fn add_journals(dump: &mut Dump, image: &F2fsImage) {
    let empty = || Value::Array(Vec::new());
    dump.shown("NAT journal", image.nat_journal.entries.len(), empty());
    for (nid, NatEntry { version, ino, block_addr }) in &image.nat_journal.entries {
        let element = json!({
            "nid": nid.0, "version": version, "ino": ino.0, "block_addr": block_addr.0,
        });
        let line = format_args!(
            "  node {}: version {version}, inode {}, block {}",
            nid.0, ino.0, block_addr.0
        );
        dump.row("nat_journal", line, element);
    }
    dump.shown("SIT journal", image.sit_journal.entries.len(), empty());
    for (segno, entry) in &image.sit_journal.entries {
        let (valid, log) = (entry.valid_blocks, type_name(entry.segment_type));
        let element = json!({"segno": segno.0, "valid_blocks": valid, "type": log});
        dump.row(
            "sit_journal",
            format_args!("  segment {}: {valid} valid, {log}", segno.0),
            element,
        );
    }
}

pub(super) const fn type_name(log: SegmentType) -> &'static str {
    match log {
        SegmentType::HotData => "hot data",
        SegmentType::WarmData => "warm data",
        SegmentType::ColdData => "cold data",
        SegmentType::HotNode => "hot node",
        SegmentType::WarmNode => "warm node",
        SegmentType::ColdNode => "cold node",
    }
}

pub(super) async fn nat(image: &F2fsImage, nid: Nid) -> Result<Dump, RawError> {
    let entry = image.nat_entry(nid).await?;
    let is_new = image.nat_journal.entries.iter().any(|(known, _)| *known == nid);
    let (block, index) = image.layout.nat_place(nid);
    let mut dump = Dump::new(NAME_WIDTH);
    dump.field("version", entry.version);
    dump.field("ino", entry.ino.0);
    dump.field("block_addr", entry.block_addr.0);
    match is_new {
        true => dump.field("in", "journal"),
        false => dump.field("in", format!("NAT block {block}, entry {index}")),
    }
    Ok(dump)
}

pub(super) async fn sit(image: &F2fsImage, segno: SegNo) -> Result<Dump, RawError> {
    let entry = image.sit_entry(segno).await?;
    let is_new = image.sit_journal.entries.iter().any(|(known, _)| *known == segno);
    let (block, index) = image.layout.sit_place(segno);
    let mut dump = Dump::new(NAME_WIDTH);
    let first = image.segment_start(segno);
    dump.shown(
        "first block",
        first.map_or_else(|| "none: a free slot".to_owned(), |at| at.0.to_string()),
        first.map(|at| at.0),
    );
    dump.field("valid blocks", entry.valid_blocks);
    dump.field("type", type_name(entry.segment_type));
    dump.field("mtime", entry.mtime);
    match is_new {
        true => dump.field("in", "journal"),
        false => dump.field("in", format!("SIT block {block}, entry {index}")),
    }
    dump.list("valid");
    let mut from = 0;
    while let Some(start) = entry.map.next_set(from) {
        let end = entry.map.next_clear(start).unwrap_or(BLOCKS_PER_SEGMENT);
        let blocks = inclusive(start as u64..end as u64);
        dump.row("valid", format_args!("  {blocks}"), json!({"first": start, "last": end - 1}));
        from = end;
    }
    Ok(dump)
}

pub(super) async fn ssa(image: &F2fsImage, segno: SegNo) -> Result<Dump, RawError> {
    let summary = image.summary(segno).await?;
    let mut dump = Dump::new(NAME_WIDTH);
    dump.list("entries");
    let kind = if summary.kind == SummaryKind::Node { "nodes" } else { "data" };
    dump.field("of", kind);
    match image.log_of(segno) {
        Some(log) => dump.field("in", format!("checkpoint pack, {} log", type_name(log))),
        None => dump.field("in", "SSA"),
    }
    for (index, entry) in summary.entries.iter().enumerate() {
        let SummaryEntry { nid, version, ofs_in_node } = *entry;
        if *entry != SummaryEntry::default() {
            let element = json!({
                "index": index, "nid": nid.0, "version": version, "ofs_in_node": ofs_in_node,
            });
            dump.row(
                "entries",
                format_args!("  {index:>3} node {}, version {version}, slot {ofs_in_node}", nid.0),
                element,
            );
        }
    }
    Ok(dump)
}
