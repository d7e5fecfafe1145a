//! Superblock, checkpoint, and entries of NAT, SIT and SSA.

use super::{Lines, flag_names, gc_journal};
use crate::f2fs::format::*;
use crate::f2fs::raw::{F2fsImage, RawError};

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

pub(super) fn superblock(image: &F2fsImage) -> String {
    let sb = &image.sb;
    let mut lines = Lines::default();
    let hex: String = sb.uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    lines.field("copy", image.sb_copy);
    lines.field("volume_name", format_args!("{:?}", sb.label()));
    lines.field("uuid", hex);
    lines.field("features", sb.features().names().join(" "));
    let refused = sb.check_supported(image.sb_copy);
    lines.field("supported", refused.map_or_else(|error| error.to_string(), |()| "yes".into()));
    lines.field("major_ver", sb.major_ver);
    lines.field("minor_ver", sb.minor_ver);
    lines.field("block_count", sb.block_count);
    lines.field("segs_per_sec", sb.segs_per_sec);
    lines.field("secs_per_zone", sb.secs_per_zone);
    lines.field("section_count", sb.section_count);
    lines.field("segment_count", sb.segment_count);
    lines.field("segment_count_ckpt", sb.segment_count_ckpt);
    lines.field("segment_count_sit", sb.segment_count_sit);
    lines.field("segment_count_nat", sb.segment_count_nat);
    lines.field("segment_count_ssa", sb.segment_count_ssa);
    lines.field("segment_count_main", sb.segment_count_main);
    lines.field("cp_blkaddr", sb.cp_blkaddr.0);
    lines.field("sit_blkaddr", sb.sit_blkaddr.0);
    lines.field("nat_blkaddr", sb.nat_blkaddr.0);
    lines.field("ssa_blkaddr", sb.ssa_blkaddr.0);
    lines.field("main_blkaddr", sb.main_blkaddr.0);
    lines.field("root_ino", sb.root_ino.0);
    lines.field("cp_payload", sb.cp_payload);
    let (cold, hot) = sb.extensions();
    let words = |words: Vec<&[u8]>| {
        words.iter().map(|word| word.escape_ascii().to_string()).collect::<Vec<_>>().join(" ")
    };
    lines.field("cold extensions", words(cold));
    lines.field("hot extensions", words(hot));
    lines.field("slots", space_text(image));
    lines.field("gc_journal", gc_journal::area_text(image));
    lines.field("crc", format_args!("{:#010x}", sb.crc));
    add_problems(&mut lines, image);
    lines.0
}

/// The append-only address space: how it is used, and its regions.
fn space_text(image: &F2fsImage) -> String {
    let Some(space) = image.layout.space() else { return "none".to_owned() };
    let region =
        |region: &SpaceRegion| format!("{}..{}", region.start, region.start + region.blocks);
    let regions: Vec<_> = space.regions().iter().map(region).collect();
    let AddressSpace { mode, capacity, journal_segments, .. } = space;
    let regions = regions.join(" ");
    format!(
        "{}, media of {capacity} blocks, journal of {journal_segments} segments, regions {regions}",
        mode.name()
    )
}

fn add_problems(lines: &mut Lines, image: &F2fsImage) {
    for problem in &image.problems {
        lines.add(format_args!("unsound: {problem}"));
    }
}

pub(super) async fn checkpoint(image: &F2fsImage) -> Result<String, RawError> {
    let cp = &image.checkpoint;
    let mut lines = Lines::default();
    lines.field("pack", image.pack);
    lines.field("checkpoint_ver", format_args!("{:#x}", cp.checkpoint_ver));
    lines.field("ckpt_flags", flag_names(cp.ckpt_flags, &CP_FLAGS));
    lines.field("user_block_count", cp.user_block_count);
    lines.field("valid_block_count", cp.valid_block_count);
    lines.field("valid_node_count", cp.valid_node_count);
    lines.field("valid_inode_count", cp.valid_inode_count);
    lines.field("rsvd_segment_count", cp.rsvd_segment_count);
    lines.field("overprov_segment_count", cp.overprov_segment_count);
    lines.field("free_segment_count", cp.free_segment_count);
    lines.field("next_free_nid", cp.next_free_nid.0);
    lines.field("cp_pack_total_block_count", cp.cp_pack_total_block_count);
    lines.field("cp_pack_start_sum", cp.cp_pack_start_sum);
    lines.field("sit_ver_bitmap_bytesize", cp.sit_ver_bitmap_bytesize);
    lines.field("nat_ver_bitmap_bytesize", cp.nat_ver_bitmap_bytesize);
    lines.field("elapsed_time", cp.elapsed_time);
    lines.field("checksum", format_args!("{:#010x}", image.checkpoint_crc));
    for log in SegmentType::ALL {
        let LogPosition { segno, blkoff, ssr } = cp.log(log);
        let way = if ssr { "fills holes" } else { "appends" };
        lines.field(type_name(log), format_args!("segment {}, block {blkoff}, {way}", segno.0));
    }
    let orphans = image.orphans().await?;
    lines.field("orphans", orphans.len());
    lines.list(orphans.iter().map(|nid| nid.0));
    lines.field("NAT journal", image.nat_journal.entries.len());
    for (nid, entry) in &image.nat_journal.entries {
        lines.add(format_args!("  node {}: {}", nid.0, nat_text(entry)));
    }
    lines.field("SIT journal", image.sit_journal.entries.len());
    for (segno, entry) in &image.sit_journal.entries {
        let log = type_name(entry.segment_type);
        lines.add(format_args!("  segment {}: {} valid, {log}", segno.0, entry.valid_blocks));
    }
    add_problems(&mut lines, image);
    Ok(lines.0)
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

fn nat_text(entry: &NatEntry) -> String {
    let NatEntry { version, ino, block_addr } = *entry;
    format!("version {version}, inode {}, block {}", ino.0, block_addr.0)
}

pub(super) async fn nat(image: &F2fsImage, nid: Nid) -> Result<String, RawError> {
    let entry = image.nat_entry(nid).await?;
    let is_new = image.nat_journal.entries.iter().any(|(known, _)| *known == nid);
    let (block, index) = image.layout.nat_place(nid);
    let mut lines = Lines::default();
    lines.field("version", entry.version);
    lines.field("ino", entry.ino.0);
    lines.field("block_addr", entry.block_addr.0);
    match is_new {
        true => lines.field("in", "journal"),
        false => lines.field("in", format_args!("NAT block {block}, entry {index}")),
    }
    Ok(lines.0)
}

pub(super) async fn sit(image: &F2fsImage, segno: SegNo) -> Result<String, RawError> {
    let entry = image.sit_entry(segno).await?;
    let is_new = image.sit_journal.entries.iter().any(|(known, _)| *known == segno);
    let (block, index) = image.layout.sit_place(segno);
    let mut lines = Lines::default();
    let first = image.segment_start(segno);
    lines.field(
        "first block",
        first.map_or_else(|| "none: a free slot".to_owned(), |at| at.0.to_string()),
    );
    lines.field("valid blocks", entry.valid_blocks);
    lines.field("type", type_name(entry.segment_type));
    lines.field("mtime", entry.mtime);
    match is_new {
        true => lines.field("in", "journal"),
        false => lines.field("in", format_args!("SIT block {block}, entry {index}")),
    }
    let mut from = 0;
    while let Some(start) = entry.map.next_set(from) {
        let end = entry.map.next_clear(start).unwrap_or(BLOCKS_PER_SEGMENT);
        lines.add(format_args!("  {start}..{end}"));
        from = end;
    }
    Ok(lines.0)
}

pub(super) async fn ssa(image: &F2fsImage, segno: SegNo) -> Result<String, RawError> {
    let summary = image.summary(segno).await?;
    let mut lines = Lines::default();
    let kind = if summary.kind == SummaryKind::Node { "nodes" } else { "data" };
    lines.field("of", kind);
    match image.log_of(segno) {
        Some(log) => lines.field("in", format_args!("checkpoint pack, {} log", type_name(log))),
        None => lines.field("in", "SSA"),
    }
    for (index, entry) in summary.entries.iter().enumerate() {
        let SummaryEntry { nid, version, ofs_in_node } = *entry;
        if *entry != SummaryEntry::default() {
            lines.add(format_args!(
                "  {index:>3} node {}, version {version}, slot {ofs_in_node}",
                nid.0
            ));
        }
    }
    Ok(lines.0)
}
