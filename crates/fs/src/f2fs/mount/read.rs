//! What a mount reads of a volume: superblocks, checkpoint packs, logs with their summaries, SIT, orphans, NAT bits.

use crate::contract::{FsError, Result};
use crate::f2fs::format::{
    BLOCK_BYTES, BLOCKS_PER_SEGMENT, BlockAddr, CP_COMPACT_SUM, CP_FASTBOOT, CP_NAT_BITS,
    CP_ORPHAN_PRESENT, CP_UMOUNT, Checkpoint, CompactSummaries, FormatError, GcJournalArea,
    GcJournalFormat, Layout, NatBits, NatJournal, Nid, NodeFooter, ORPHANS_PER_BLOCK, PackPlan,
    Place, SIT_ENTRIES_PER_BLOCK, SUPERBLOCK_AT, SUPERBLOCK_BYTES, SegNo, SegmentType, SitEntry,
    SitJournal, SlotMap, SummaryBlock, SummaryEntry, SummaryKind, Superblock, VersionBitmap,
    parse_orphans,
};
use crate::f2fs::segment::{CurSeg, LOGS};
use crate::image::ImageReader;
use nandscape_rt::defect;

/// A checkpoint pack that was found valid.
pub(super) struct FoundPack {
    pub(super) pack: u32,
    pub(super) checkpoint: Checkpoint,
    pub(super) crc: u32,
    /// The checkpoint block and its payload.
    pub(super) head: Vec<u8>,
    pub(super) plan: PackPlan,
}

/// A copy of the superblock, if it is sound.
async fn read_copy(reader: &ImageReader, copy: u32) -> Result<Result<Superblock, FormatError>> {
    let bytes = reader.block(copy.into()).await?;
    let bytes = &bytes[SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES];
    Ok(Superblock::parse(bytes, copy))
}

/// The superblock: the first of its two copies that is sound (`read_raw_super_block`).
pub(super) async fn read_superblock(reader: &ImageReader) -> Result<Superblock> {
    let mut error = None;
    for copy in 0..2 {
        let parsed = read_copy(reader, copy).await?;
        match parsed.and_then(|sb| sb.check_supported(copy).map(|()| sb)) {
            Ok(sb) => return Ok(sb),
            Err(wrong) => error = error.or(Some(wrong)),
        }
    }
    Err(error.map_or(FsError::ReadOnly, FsError::from))
}

/// Which copies of the superblock have the mark of a GC journal.
pub(super) struct Marks {
    /// One of them has.
    pub(super) any: bool,
    /// All that are sound have: blocks of this format may count.
    pub(super) live: Option<(GcJournalArea, GcJournalFormat)>,
}

/// The marks of both copies, of which `sb` is the first that is sound.
pub(super) async fn read_marks(reader: &ImageReader, sb: &Superblock) -> Result<Marks> {
    let second = read_copy(reader, 1).await?.map(|second| second.is_marked());
    let all = sb.is_marked() && second.as_ref().is_ok_and(|marked| *marked) || second.is_err();
    let area = sb.gc_journal();
    let live = area.filter(|_| all).and_then(|area| Some((area, area.live()?)));
    Ok(Marks { any: sb.is_marked() || second.is_ok_and(|marked| marked), live })
}

/// A pack, if it is valid (`validate_checkpoint`).
async fn read_pack(reader: &ImageReader, layout: &Layout, pack: u32) -> Result<FoundPack> {
    let start = u64::from(layout.pack(pack).0);
    let first = reader.block(start).await?;
    let checkpoint = Checkpoint::parse(&first[..], pack)?;
    checkpoint.check(layout, pack)?;
    let plan = PackPlan::of(&checkpoint, layout, pack)?;
    let last = reader.block(start + u64::from(plan.last)).await?;
    if Checkpoint::parse(&last[..], pack)?.checkpoint_ver != checkpoint.checkpoint_ver {
        let what = "the last block is of another version";
        return Err(FormatError::Corrupt { place: Place::Checkpoint(pack), byte: 0, what }.into());
    }
    let crc = checkpoint.stored_crc(&first[..]);
    let head = reader.blocks(start, 1 + layout.payload_blocks()).await?;
    Ok(FoundPack { pack, checkpoint, crc, head, plan })
}

/// The newer of the valid packs (`f2fs_get_valid_checkpoint`).
pub(super) async fn read_checkpoint(reader: &ImageReader, layout: &Layout) -> Result<FoundPack> {
    let packs = [read_pack(reader, layout, 0).await, read_pack(reader, layout, 1).await];
    match packs {
        [Ok(first), Ok(second)] => {
            let newer = second.checkpoint.checkpoint_ver > first.checkpoint.checkpoint_ver;
            Ok(if newer { second } else { first })
        }
        [Ok(found), Err(_)] | [Err(_), Ok(found)] => Ok(found),
        [Err(error), Err(_)] => Err(error),
    }
}

/// What a pack says beside its head: both journals, and the summaries of the six logs; and the SIT.
pub(super) struct FoundLogs {
    pub(super) nat: NatJournal,
    pub(super) sit: SitJournal,
    pub(super) logs: [CurSeg; LOGS],
    pub(super) entries: Vec<SitEntry>,
    /// Where segments lie, in an append-only address space.
    pub(super) slots: Option<SlotMap>,
}

/// The logs with their summaries (`restore_curseg_summaries`).
pub(super) async fn read_logs(
    reader: &ImageReader,
    layout: &Layout,
    found: &FoundPack,
    sit_bitmap: &VersionBitmap,
) -> Result<FoundLogs> {
    let FoundPack { checkpoint, plan, pack, .. } = found;
    let start = u64::from(layout.pack(*pack).0);
    let bytes =
        reader.blocks(start + u64::from(plan.data.start), plan.data.end - plan.data.start).await?;
    let mut logs = SegmentType::ALL.map(|log| {
        let position = checkpoint.log(log);
        let kind = if log.is_node() { SummaryKind::Node } else { SummaryKind::Data };
        CurSeg {
            segment: position.segno,
            next: position.blkoff.into(),
            ssr: position.ssr,
            stale: false,
            summary: SummaryBlock::new(kind),
        }
    });
    let (nat, sit);
    let data = [SegmentType::HotData, SegmentType::WarmData, SegmentType::ColdData];
    if checkpoint.has(CP_COMPACT_SUM) {
        let counts = data.map(|log| checkpoint.summary_entries(log));
        let compact = CompactSummaries::parse(&bytes, counts, *pack)?;
        for (log, entries) in data.into_iter().zip(&compact.entries) {
            logs[log.number()].summary.entries[..entries.len()].copy_from_slice(entries);
        }
        (nat, sit) = (compact.nat, compact.sit);
    } else {
        for (log, block) in data.into_iter().zip(bytes.chunks_exact(BLOCK_BYTES)) {
            logs[log.number()].summary = SummaryBlock::parse(block, Place::PackSummary(*pack))?;
        }
        let journal = |log: SegmentType| &logs[log.number()].summary.journal[..];
        nat = NatJournal::parse(journal(SegmentType::HotData), Place::PackSummary(*pack))?;
        sit = SitJournal::parse(journal(SegmentType::ColdData), Place::PackSummary(*pack))?;
    }
    if let Some((nid, _)) = nat.entries.iter().find(|(nid, _)| nid.0 >= layout.nids()) {
        return Err(outside_of_tables(Place::NatEntry(*nid)).into());
    }
    let entries = read_sit(reader, layout, sit_bitmap, &sit).await?;
    let slots = slots_of(layout, &entries, &logs)?;
    let nodes = [SegmentType::HotNode, SegmentType::WarmNode, SegmentType::ColdNode];
    if checkpoint.has(CP_UMOUNT | CP_FASTBOOT) {
        let first = start + u64::from(plan.nodes.start);
        let bytes = reader.blocks(first, plan.nodes.end - plan.nodes.start).await?;
        for (log, block) in nodes.into_iter().zip(bytes.chunks_exact(BLOCK_BYTES)) {
            logs[log.number()].summary = SummaryBlock::parse(block, Place::PackSummary(*pack))?;
        }
    } else {
        for log in nodes {
            let log = &mut logs[log.number()];
            let first = match &slots {
                None => layout.block(log.segment, 0),
                Some(slots) => slots.block(log.segment, 0),
            };
            restore_node_summary(reader, first, log).await?;
        }
    }
    Ok(FoundLogs { nat, sit, logs, entries, slots })
}

/// Where segments lie, in an append-only address space.
///
/// # Errors
/// The first entry that contradicts the others.
fn slots_of(
    layout: &Layout,
    entries: &[SitEntry],
    logs: &[CurSeg; LOGS],
) -> Result<Option<SlotMap>> {
    let Some(space) = layout.space() else { return Ok(None) };
    let open: Vec<SegNo> = logs.iter().map(|log| log.segment).collect();
    let (slots, wrong) = SlotMap::of_entries(layout, space, entries, &open);
    wrong.into_iter().next().map_or(Ok(Some(slots)), |error| Err(error.into()))
}

/// Summaries of a node log, from the footers of its blocks (`f2fs_restore_node_summary`).
async fn restore_node_summary(
    reader: &ImageReader,
    first: Option<BlockAddr>,
    log: &mut CurSeg,
) -> Result<()> {
    let Some(first) = first else { return Ok(()) };
    let written = if log.ssr { BLOCKS_PER_SEGMENT } else { log.next };
    let bytes = reader.blocks(first.0.into(), written).await?;
    for (entry, block) in log.summary.entries.iter_mut().zip(bytes.as_chunks::<BLOCK_BYTES>().0) {
        let nid = Nid(NodeFooter::parse(block).nid);
        *entry = SummaryEntry { nid, version: 0, ofs_in_node: 0 };
    }
    Ok(())
}

/// An entry of a journal is of a node or a segment that the volume does not have: the next checkpoint would move it to the
/// tables.
const fn outside_of_tables(place: Place) -> FormatError {
    FormatError::corrupt(place, 0, "is in the journal, and not there")
}

/// All SIT entries (`build_sit_entries`).
async fn read_sit(
    reader: &ImageReader,
    layout: &Layout,
    bitmap: &VersionBitmap,
    journal: &SitJournal,
) -> Result<Vec<SitEntry>> {
    let count = layout.main_segments();
    let mut entries = Vec::with_capacity(count as usize);
    for block in 0..count.div_ceil(SIT_ENTRIES_PER_BLOCK as u32) {
        let at = layout.current_sit_addr(block, bitmap);
        let at = at.ok_or_else(|| defect!("the SIT has entries for all segments"))?;
        let bytes = reader.block(at.0.into()).await?;
        for index in 0..SIT_ENTRIES_PER_BLOCK {
            let segno = SegNo(entries.len() as u32);
            if segno.0 < count {
                entries.push(SitEntry::read_at(&bytes[..], index, segno)?);
            }
        }
    }
    for (segno, entry) in &journal.entries {
        let known = entries.get_mut(segno.0 as usize);
        *known.ok_or(outside_of_tables(Place::Segment(*segno)))? = *entry;
    }
    Ok(entries)
}

/// Numbers of orphans in a pack.
pub(super) async fn read_orphans(
    reader: &ImageReader,
    layout: &Layout,
    found: &FoundPack,
) -> Result<Vec<Nid>> {
    let mut orphans = Vec::new();
    if found.checkpoint.has(CP_ORPHAN_PRESENT) {
        for block in found.plan.orphans.clone() {
            let at = u64::from(layout.pack(found.pack).0 + block);
            orphans.extend(parse_orphans(&reader.block(at).await?[..], found.pack)?);
        }
    }
    Ok(orphans)
}

/// NAT bits of a pack, if they are there and hold for its checkpoint (`__get_nat_bitmaps`).
pub(super) async fn read_nat_bits(
    reader: &ImageReader,
    layout: &Layout,
    found: &FoundPack,
    believe: bool,
) -> Result<Option<NatBits>> {
    let FoundPack { pack, checkpoint, crc, plan, .. } = found;
    let at = layout.nat_bits(*pack, plan.blocks()).filter(|_| checkpoint.has(CP_NAT_BITS));
    let Some(at) = at else { return Ok(None) };
    let bytes = reader.blocks(at.0.into(), layout.nat_bits_blocks()).await?;
    let bits = NatBits::parse(&bytes, layout, *pack)?;
    let version = NatBits::version_of(checkpoint.checkpoint_ver, *crc);
    Ok((bits.version == version || believe).then_some(bits))
}

/// Orphans that a pack has room for.
pub(super) const fn most_orphans(layout: &Layout) -> u32 {
    let others = 2 + LOGS as u32 + layout.payload_blocks();
    BLOCKS_PER_SEGMENT.saturating_sub(others) * ORPHANS_PER_BLOCK as u32
}
