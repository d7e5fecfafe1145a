//! Opening a volume: superblock, checkpoint pack, version bitmaps, summaries and journals
//! (`f2fs_fill_super`, `f2fs_get_valid_checkpoint`, `restore_curseg_summaries`).

use super::{F2fsImage, LOGS, RawError};
use crate::f2fs::format::*;
use crate::image::ImageReader;
use nandscape_block::{AsyncDevice, BlockError};

/// What is collected on the way.
struct Opening {
    reader: ImageReader,
    layout: Layout,
    problems: Vec<FormatError>,
}

/// The summaries of a pack.
struct PackSummaries {
    summaries: [Option<SummaryBlock>; LOGS],
    nat: NatJournal,
    sit: SitJournal,
    slots: Option<SlotMap>,
}

/// A pack whose checkpoint blocks are sound and agree.
struct Pack {
    number: u32,
    checkpoint: Checkpoint,
    crc: u32,
}

impl F2fsImage {
    /// Reads superblock, checkpoint, summaries and journals.
    ///
    /// # Errors
    /// No F2FS volume, one larger than the device, one without a sound checkpoint. Whether its features are
    /// supported is not looked at.
    pub async fn open(device: &AsyncDevice) -> Result<Self, RawError> {
        let reader = ImageReader::new(device);
        let mut problems = Vec::new();
        let FoundSuperblock { sb, copy: sb_copy, live } =
            superblock(&reader, &mut problems).await?;
        let layout = Layout::of(&sb)?;
        let mut opening = Opening { reader, layout, problems };
        let Pack { number: pack, checkpoint, crc } = opening.newest_pack().await?;
        checkpoint.check(&layout, pack)?;
        let plan = PackPlan::of(&checkpoint, &layout, pack)?;
        let head = opening.pack_blocks(pack, 0, 1 + layout.payload_blocks()).await?;
        let bitmap = |range| VersionBitmap::from_bytes(head.get(range).unwrap_or_default());
        let sit_bitmap = bitmap(checkpoint.sit_bitmap(&layout));
        let nat_bitmap = bitmap(checkpoint.nat_bitmap(&layout));
        let found = opening.summaries(&checkpoint, &plan, pack, &sit_bitmap).await?;
        let Opening { reader, problems, .. } = opening;
        Ok(Self {
            reader,
            sb,
            sb_copy,
            gc_journal_live: live,
            layout,
            checkpoint,
            pack,
            checkpoint_crc: crc,
            plan,
            summaries: found.summaries,
            nat_journal: found.nat,
            sit_journal: found.sit,
            slots: found.slots,
            problems,
            sit_bitmap,
            nat_bitmap,
        })
    }
}

/// All SIT entries, those of the journal over those of the table.
async fn read_entries(
    reader: &ImageReader,
    layout: &Layout,
    bitmap: &VersionBitmap,
    journal: &SitJournal,
) -> Result<Vec<Result<SitEntry, FormatError>>, RawError> {
    let count = layout.main_segments();
    let mut entries = Vec::with_capacity(count as usize);
    for block in 0..count.div_ceil(SIT_ENTRIES_PER_BLOCK as u32) {
        // The superblock was checked: the SIT has entries for all segments.
        let Some(at) = layout.current_sit_addr(block, bitmap) else { break };
        let bytes = reader.block(at.0.into()).await?;
        let first = block * SIT_ENTRIES_PER_BLOCK as u32;
        let of_block = (first..count).take(SIT_ENTRIES_PER_BLOCK).enumerate();
        entries.extend(
            of_block.map(|(index, segno)| SitEntry::read_at(&bytes[..], index, SegNo(segno))),
        );
    }
    for (segno, entry) in &journal.entries {
        if let Some(known) = entries.get_mut(segno.0 as usize) {
            *known = Ok(*entry);
        }
    }
    Ok(entries)
}

/// A copy of the superblock that is sound, and of a volume that fits the device.
fn fitting(bytes: &[u8], copy: u32, sectors: u64) -> Result<Superblock, FormatError> {
    let sb = Superblock::parse(bytes, copy)?;
    if sb.block_count > sectors {
        let what = format!("{} blocks do not fit the device's {sectors}", sb.block_count);
        return Err(FormatError::Incompatible { place: Place::Superblock(copy), what });
    }
    Ok(sb)
}

/// The copy of the superblock that is used.
struct FoundSuperblock {
    sb: Superblock,
    copy: u32,
    /// The format of GC journal blocks that may count: both copies are marked, or the one that is sound.
    live: Option<GcJournalFormat>,
}

/// The first sound copy of the superblock. A copy that is not sound is a problem; a mark on one of the copies
/// is none, but what a power cut leaves between two writes.
async fn superblock(
    reader: &ImageReader,
    problems: &mut Vec<FormatError>,
) -> Result<FoundSuperblock, RawError> {
    let mut found: Option<FoundSuperblock> = None;
    for copy in 0..2 {
        if u64::from(copy) >= reader.sectors() {
            break;
        }
        let block = reader.block(copy.into()).await?;
        match fitting(&block[SUPERBLOCK_AT..], copy, reader.sectors()) {
            Ok(sb) => match &mut found {
                None => {
                    let live = sb.gc_journal().and_then(GcJournalArea::live);
                    found = Some(FoundSuperblock { sb, copy, live });
                }
                Some(first) => {
                    first.live = first.live.filter(|_| sb.is_marked());
                    if !first.sb.is_like(&sb) {
                        let place = Place::Superblock(copy);
                        problems.push(FormatError::corrupt(place, 0, "is not like the first copy"));
                    }
                }
            },
            Err(error) => problems.push(error),
        }
    }
    let place = Place::Superblock(0);
    let none = || FormatError::corrupt(place, 0, "is not there: no F2FS file system here");
    match found {
        Some(found) => Ok(found),
        None => Err(problems.drain(..).next().unwrap_or_else(none).into()),
    }
}

impl Opening {
    /// Blocks of a pack, from the pack's block `from` on.
    async fn pack_blocks(&self, pack: u32, from: u32, count: u32) -> Result<Vec<u8>, BlockError> {
        let first = u64::from(self.layout.pack(pack).0) + u64::from(from);
        self.reader.blocks(first, count).await
    }

    /// A pack, if its first and its last block are sound and of one version (`validate_checkpoint`).
    async fn pack(&self, number: u32) -> Result<Pack, RawError> {
        let place = Place::Checkpoint(number);
        let first = self.pack_blocks(number, 0, 1).await?;
        let checkpoint = Checkpoint::parse(&first, number)?;
        let blocks = checkpoint.cp_pack_total_block_count;
        if !(1..=BLOCKS_PER_SEGMENT).contains(&blocks) {
            return Err(FormatError::corrupt(place, 0x88, "pack is larger than its segment").into());
        }
        let last = self.pack_blocks(number, blocks - 1, 1).await?;
        let last = Checkpoint::parse(&last, number)?;
        if last.checkpoint_ver != checkpoint.checkpoint_ver {
            let what = "first and last block are of different versions";
            return Err(FormatError::corrupt(place, 0, what).into());
        }
        let crc = checkpoint.stored_crc(&first);
        Ok(Pack { number, checkpoint, crc })
    }

    /// The newest sound pack. That the other one is not sound is what a power cut leaves.
    async fn newest_pack(&self) -> Result<Pack, RawError> {
        let first = self.pack(0).await;
        let second = self.pack(1).await;
        // Versions are compared as the kernel does, so that they may wrap around.
        let newer = |a: &Pack, b: &Pack| {
            a.checkpoint.checkpoint_ver.wrapping_sub(b.checkpoint.checkpoint_ver) as i64 > 0
        };
        match (first, second) {
            (Ok(first), Ok(second)) if newer(&second, &first) => Ok(second),
            (Ok(first), _) => Ok(first),
            (Err(RawError::Device(error)), _) => Err(error.into()),
            (Err(_), Ok(second)) => Ok(second),
            (Err(error), Err(_)) => Err(error),
        }
    }

    /// The summaries of the logs, and the journals in them.
    async fn summaries(
        &mut self,
        checkpoint: &Checkpoint,
        plan: &PackPlan,
        pack: u32,
        sit_bitmap: &VersionBitmap,
    ) -> Result<PackSummaries, RawError> {
        let mut found = PackSummaries {
            summaries: [const { None }; LOGS],
            nat: NatJournal::default(),
            sit: SitJournal::default(),
            slots: None,
        };
        let data = self.pack_blocks(pack, plan.data.start, plan.data.end - plan.data.start).await?;
        match plan.compact {
            true => self.compacted(&data, checkpoint, pack, &mut found),
            false => self.whole(&data, pack, &mut found),
        }
        found.slots = self.slots(checkpoint, sit_bitmap, &found.sit).await?;
        let nodes = plan.nodes.clone();
        let blocks = self.pack_blocks(pack, nodes.start, nodes.end - nodes.start).await?;
        for (log, bytes) in SegmentType::ALL[3..].iter().zip(blocks.chunks(BLOCK_BYTES)) {
            let parsed = SummaryBlock::parse(bytes, Place::PackSummary(pack));
            found.summaries[log.number()] = self.sound(parsed);
        }
        if nodes.is_empty() {
            for log in &SegmentType::ALL[3..] {
                let entries = checkpoint.summary_entries(*log) as u32;
                let segno = checkpoint.log(*log).segno;
                let first = match &found.slots {
                    None => self.layout.block(segno, 0),
                    Some(slots) => slots.block(segno, 0),
                };
                found.summaries[log.number()] = Some(self.footers_summary(first, entries).await?);
            }
        }
        Ok(found)
    }

    /// Where segments lie, in an append-only address space.
    async fn slots(
        &mut self,
        checkpoint: &Checkpoint,
        bitmap: &VersionBitmap,
        journal: &SitJournal,
    ) -> Result<Option<SlotMap>, RawError> {
        let Some(space) = self.layout.space().copied() else { return Ok(None) };
        let entries = read_entries(&self.reader, &self.layout, bitmap, journal).await?;
        // Entries that cannot be read are found by those who read the SIT.
        let found: Vec<_> = entries.into_iter().map(Result::unwrap_or_default).collect();
        let logs = SegmentType::ALL.map(|log| checkpoint.log(log).segno);
        let (slots, wrong) = SlotMap::of_entries(&self.layout, &space, &found, &logs);
        self.problems.extend(wrong);
        Ok(Some(slots))
    }

    /// Compacted summaries of the data logs, with both journals before them.
    fn compacted(
        &mut self,
        blocks: &[u8],
        checkpoint: &Checkpoint,
        pack: u32,
        found: &mut PackSummaries,
    ) {
        let logs = [SegmentType::HotData, SegmentType::WarmData, SegmentType::ColdData];
        let counts = logs.map(|log| checkpoint.summary_entries(log));
        let parsed = CompactSummaries::parse(blocks, counts, pack);
        let Some(compact) = self.sound(parsed) else {
            // The NAT's journal may be sound if the rest is not.
            let nat = NatJournal::parse(
                blocks.get(..JOURNAL_BYTES).unwrap_or_default(),
                Place::PackSummary(pack),
            );
            found.nat = nat.unwrap_or_default();
            return;
        };
        for (log, entries) in logs.iter().zip(&compact.entries) {
            let mut summary = SummaryBlock::new(SummaryKind::Data);
            for (to, from) in summary.entries.iter_mut().zip(entries) {
                *to = *from;
            }
            found.summaries[log.number()] = Some(summary);
        }
        (found.nat, found.sit) = (compact.nat, compact.sit);
    }

    /// A summary block of each data log; the first holds the NAT's journal, the last the SIT's.
    fn whole(&mut self, blocks: &[u8], pack: u32, found: &mut PackSummaries) {
        let place = Place::PackSummary(pack);
        for (log, bytes) in SegmentType::ALL[..3].iter().zip(blocks.chunks(BLOCK_BYTES)) {
            let journal = bytes.get(JOURNAL_AT..SUMMARY_FOOTER_AT).unwrap_or_default();
            match log {
                SegmentType::HotData => {
                    let parsed = NatJournal::parse(journal, place);
                    found.nat = self.sound(parsed).unwrap_or_default();
                }
                SegmentType::ColdData => {
                    let parsed = SitJournal::parse(journal, place);
                    found.sit = self.sound(parsed).unwrap_or_default();
                }
                _ => {}
            }
            let parsed = SummaryBlock::parse(bytes, place);
            found.summaries[log.number()] = self.sound(parsed);
        }
    }

    /// The summary of a node log that the pack does not hold, from the nodes themselves
    /// (`f2fs_restore_node_summary`).
    async fn footers_summary(
        &self,
        first: Option<BlockAddr>,
        entries: u32,
    ) -> Result<SummaryBlock, BlockError> {
        let mut summary = SummaryBlock::new(SummaryKind::Node);
        let Some(first) = first else { return Ok(summary) };
        for (index, entry) in (0..entries).zip(summary.entries.iter_mut()) {
            let node = self.reader.block(u64::from(first.0) + u64::from(index)).await?;
            entry.nid = Nid(NodeFooter::parse(&node).nid);
        }
        Ok(summary)
    }

    /// The value; what is unsound is noted.
    fn sound<T>(&mut self, parsed: Result<T, FormatError>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(error) => {
                self.problems.push(error);
                None
            }
        }
    }
}
