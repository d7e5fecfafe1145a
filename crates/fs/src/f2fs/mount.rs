//! Mount and unmount (fs/f2fs/super.c).
//!
//! Mount goes in this order, each step needing only what the ones before have made sound: the superblock, of two copies;
//! the checkpoint, of two packs; SIT and NAT with their journals; the logs with their summaries; orphans; roll-forward
//! and the GC journal. A volume that was not unmounted, or that had orphans, gets a checkpoint then, and loses the mark
//! of a GC journal.

use super::append::{AppendGeometry, AppendSpace};
use super::appended::Appended;
use super::checkpoints::{Checkpoints, Reason};
use super::cleaner::GcKind;
use super::counts::Rolled;
use super::format::{
    BLOCK_BYTES, BLOCKS_PER_SEGMENT, BlockAddr, CP_COMPACT_SUM, CP_FASTBOOT, CP_NAT_BITS,
    CP_ORPHAN_PRESENT, CP_UMOUNT, Checkpoint, CompactSummaries, DiscardRecords, Feature, Features,
    FormatError, GcJournalArea, GcJournalFormat, Layout, NatBits, NatJournal, Nid, NodeFooter,
    ORPHANS_PER_BLOCK, PackPlan, Place, SIT_ENTRIES_PER_BLOCK, SUPERBLOCK_AT, SUPERBLOCK_BYTES,
    SegNo, SegmentType, SitEntry, SitJournal, SlotMap, SpaceRegion, SummaryBlock, SummaryEntry,
    SummaryKind, Superblock, VersionBitmap, parse_orphans,
};
use super::fs::F2fs;
use super::gc::Cleaning;
use super::gc_journal::read::{GcJournalBlock, blocks_that_count};
use super::inode::{Inode, META_INO, NODE_INO};
use super::mount_info::MountInfo;
use super::moves::GcJournal;
use super::nat::{FreeNids, Nat, NodeParts};
use super::options::{Allocation, MountOptions, Reclaim};
use super::recovery::RollForward;
use super::rules::OmittedRule;
use super::segment::{CurSeg, LOGS, SegmentsAtMount, Slots};
use super::segment_manager::segments_of;
use super::space::Space;
use super::volume::{Volume, VolumeParts};
use super::zones::{ZoneGeometry, Zones};
use crate::cache::flush_in_background;
use crate::contract::{FsError, Result};
use crate::image::ImageReader;
use crate::vfs::VolumeEnv;
use crate::vfs::sync::sync_all;
use crate::vfs::writeback::FileBacking;
use nandscape_block::{AsyncDevice, DeviceCaps, UpcallSignal};
use nandscape_rt::{BoxFuture, Handle};
use std::rc::Rc;

/// What mount found to do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MountReport {
    /// Moves of cleaning that were replayed from the GC journal.
    pub moves: u64,
    /// Files that were rolled forward.
    pub files: u64,
    /// Their node blocks.
    pub nodes: u64,
    /// Data blocks that these brought back.
    pub blocks: u64,
    /// Files whose removal was finished.
    pub orphans: u64,
}

/// A checkpoint pack that was found valid.
struct FoundPack {
    pack: u32,
    checkpoint: Checkpoint,
    crc: u32,
    /// The checkpoint block and its payload.
    head: Vec<u8>,
    plan: PackPlan,
}

/// A copy of the superblock, if it is sound.
async fn read_copy(reader: &ImageReader, copy: u32) -> Result<Result<Superblock, FormatError>> {
    let bytes = reader.block(copy.into()).await?;
    let bytes = &bytes[SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES];
    Ok(Superblock::parse(bytes, copy))
}

/// The superblock: the first of its two copies that is sound (`read_raw_super_block`).
async fn read_superblock(reader: &ImageReader) -> Result<Superblock> {
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
struct Marks {
    /// One of them has.
    any: bool,
    /// All that are sound have: blocks of this format may count.
    live: Option<(GcJournalArea, GcJournalFormat)>,
}

/// The marks of both copies, of which `sb` is the first that is sound.
async fn read_marks(reader: &ImageReader, sb: &Superblock) -> Result<Marks> {
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
async fn read_checkpoint(reader: &ImageReader, layout: &Layout) -> Result<FoundPack> {
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
struct FoundLogs {
    nat: NatJournal,
    sit: SitJournal,
    logs: [CurSeg; LOGS],
    entries: Vec<SitEntry>,
    /// Where segments lie, in an append-only address space.
    slots: Option<SlotMap>,
}

/// The logs with their summaries (`restore_curseg_summaries`).
async fn read_logs(
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
        let at = layout.current_sit_addr(block, bitmap).unwrap_or_default();
        let bytes = reader.block(at.0.into()).await?;
        for index in 0..SIT_ENTRIES_PER_BLOCK {
            let segno = SegNo(entries.len() as u32);
            if segno.0 < count {
                entries.push(SitEntry::read_at(&bytes[..], index, segno)?);
            }
        }
    }
    for (segno, entry) in &journal.entries {
        if let Some(known) = entries.get_mut(segno.0 as usize) {
            *known = *entry;
        }
    }
    Ok(entries)
}

/// Numbers of orphans in a pack.
async fn read_orphans(
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
async fn read_nat_bits(
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
const fn most_orphans(layout: &Layout) -> u32 {
    let others = 2 + LOGS as u32 + layout.payload_blocks();
    BLOCKS_PER_SEGMENT.saturating_sub(others) * ORPHANS_PER_BLOCK as u32
}

impl F2fs {
    /// Mounts the file system on a device: recovers it, starts write-back.
    ///
    /// # Errors
    /// What is wrong with the volume: [`FsError::Incompatible`] by feature's name, [`FsError::Corrupt`] with the place.
    pub fn mount(
        rt: &Handle,
        device: AsyncDevice,
        options: MountOptions,
    ) -> BoxFuture<'_, Result<(Self, MountReport)>> {
        Box::pin(Self::mount_on(rt, device, options))
    }

    async fn mount_on(
        rt: &Handle,
        device: AsyncDevice,
        options: MountOptions,
    ) -> Result<(Self, MountReport)> {
        if !device.caps().keeps_content {
            return Err(FsError::Unsupported("a device that keeps no content"));
        }
        let reader = ImageReader::new(&device);
        let sb = read_superblock(&reader).await?;
        let marks = read_marks(&reader, &sb).await?;
        let layout = Layout::of(&sb)?;
        let zones = find_zones(device.caps(), &sb, &layout, &options)?;
        check_space(device.caps(), &layout, &options)?;
        if layout.blocks() > device.caps().sectors {
            return Err(FsError::corrupt("volume larger than its device", "superblock"));
        }
        let found = read_checkpoint(&reader, &layout).await?;
        let orphans = read_orphans(&reader, &layout, &found).await?;
        let journal = match marks.live {
            Some(live) => {
                let version = found.checkpoint.checkpoint_ver;
                let any_version = options.omit == Some(OmittedRule::GcVersion);
                blocks_that_count(&reader, live, version, any_version).await?
            }
            None => Vec::new(),
        };
        let volume = load_volume(rt, device, options, (sb, layout, zones), &found).await?;
        let clean = found.checkpoint.has(CP_UMOUNT) && orphans.is_empty();
        match volume.complete_recovery((orphans, journal), clean, marks.any).await {
            Ok((rolled, orphans)) => {
                // A checkpoint in the midst of recovery would end the chain that is being followed (`SBI_POR_DOING`).
                start_tasks(&volume);
                let Rolled { files, nodes, blocks, moves } = rolled;
                Ok((Self(volume), MountReport { moves, files, nodes, blocks, orphans }))
            }
            Err(error) => {
                volume.mount.detach();
                Err(error)
            }
        }
    }
}

/// The zones of a volume, if it lies on some.
///
/// # Errors
/// [`FsError::Incompatible`] if it does not fit them, or the mount does not (`blkzoned` permits `mode=lfs` alone).
fn find_zones(
    caps: &DeviceCaps,
    sb: &Superblock,
    layout: &Layout,
    options: &MountOptions,
) -> Result<Option<Zones>> {
    let is_zoned = Features(sb.feature).has(Feature::BLKZONED);
    let refuse = |what: &str| Err(FsError::Incompatible(what.to_owned()));
    if is_zoned && options.allocation != Allocation::Lfs {
        return refuse("blkzoned permits allocation = \"lfs\" alone");
    }
    match ZoneGeometry::of(caps) {
        Ok(Some(_)) if !is_zoned => refuse("a volume without blkzoned on a device with zones"),
        Ok(zones) => Zones::of(zones, layout, options.reclaim == Reclaim::GcJournal),
        Err(why) => Err(FsError::Incompatible(why)),
    }
}

/// The append-only address space of a volume, with the discards that its last checkpoint vouches for.
async fn open_space(
    reader: &ImageReader,
    rt: &Handle,
    options: &MountOptions,
    (layout, found): (&Layout, &FoundPack),
    (valid, signal): (u64, Option<UpcallSignal>),
) -> Result<Option<AppendSpace>> {
    let Some(space) = layout.space() else { return Ok(None) };
    let area = layout.discard_journal(found.pack);
    let mut records = DiscardRecords::default();
    let (mut index, mut blocks) = (0, area.end.0 - area.start.0);
    while index < blocks && options.omit != Some(OmittedRule::DiscardReplay) {
        let block = reader.block((area.start.0 + index).into()).await?;
        let place = (found.checkpoint.checkpoint_ver, index);
        let Some(header) = records.read_block(&block[..], place)? else { break };
        (index, blocks) = (index + 1, blocks.min(header.blocks));
    }
    Ok(Some(AppendSpace::new(rt, (space.mode, space.capacity), signal, valid, records)))
}

/// That a volume and its device have the same append-only regions, and the mount writes them as they must be.
///
/// # Errors
/// [`FsError::Incompatible`].
fn check_space(caps: &DeviceCaps, layout: &Layout, options: &MountOptions) -> Result<()> {
    let refuse = |what: &str| Err(FsError::Incompatible(what.to_owned()));
    let geometry = AppendGeometry::of(caps).map_err(FsError::Incompatible)?;
    let Some(space) = layout.space() else {
        return match geometry {
            Some(_) => refuse("a volume with a main area on a device with append-only regions"),
            None => Ok(()),
        };
    };
    if options.allocation != Allocation::Lfs {
        return refuse("append-only regions permit allocation = \"lfs\" alone");
    }
    if options.reclaim != Reclaim::Checkpoint {
        return refuse("nothing is cleaned in append-only regions: reclaim = \"checkpoint\" alone");
    }
    // A copy may lie on a device without such regions.
    let Some(geometry) = geometry else { return Ok(()) };
    let fits = |(own, of_device): (&SpaceRegion, &SpaceRegion)| {
        own.start == of_device.start && own.blocks <= of_device.blocks
    };
    let is_same = geometry.mode == space.mode
        && space.capacity <= geometry.capacity
        && space.regions().iter().zip(geometry.regions()).all(fits)
        && geometry.superblock.is_none_or(|blocks| blocks == layout.blocks_per_section());
    if is_same { Ok(()) } else { refuse("append-only regions that are not those of the device") }
}

/// The volume as its checkpoint has it.
async fn load_volume(
    rt: &Handle,
    device: AsyncDevice,
    options: MountOptions,
    (sb, layout, zones): (Superblock, Layout, Option<Zones>),
    found: &FoundPack,
) -> Result<Rc<Volume>> {
    let reader = ImageReader::new(&device);
    let FoundPack { checkpoint, pack, crc, head, .. } = found;
    let bitmap =
        |at: std::ops::Range<usize>| VersionBitmap::from_bytes(head.get(at).unwrap_or_default());
    let (sit_bitmap, nat_bitmap) =
        (bitmap(checkpoint.sit_bitmap(&layout)), bitmap(checkpoint.nat_bitmap(&layout)));
    let FoundLogs { nat, sit, logs, entries, slots } =
        read_logs(&reader, &layout, found, &sit_bitmap).await?;
    let valid = entries.iter().map(|entry| u64::from(entry.valid_blocks)).sum();
    let signal = device.caps().has_upcalls().then_some(device.caps().upcall_signal);
    let slots = slots.map(|map| Slots::new(map, layout.sections()));
    let append = open_space(&reader, rt, &options, (&layout, found), (valid, signal)).await?;
    let at_mount =
        SegmentsAtMount { entries, logs, journal: sit, version_bitmap: sit_bitmap, slots };
    let env = VolumeEnv::new(rt, device, options.cache.clone(), options.epoch_s);
    let mount = Rc::new(MountInfo::new(env, options, (sb, layout)));
    let (env, options) = (&mount.env, &mount.options);
    let inode_lists = Rc::new(super::inode::InodeLists::default());
    let special = |number| {
        let parts = super::inode::parse(&[0; BLOCK_BYTES], super::format::InodeFeatures::default());
        Inode::new(rt, &env.cache, number, parts, &inode_lists)
    };
    let believes_stale = options.omit == Some(OmittedRule::StaleNatBits);
    let bits = read_nat_bits(&reader, &layout, found, believes_stale).await?;
    let nat = Nat::new(layout, nat, nat_bitmap, bits, options.nat_entries);
    let first_search = layout.nat_place(checkpoint.next_free_nid).0;
    let first_search = first_search.max(options.nid_search_from);
    let nodes = NodeParts {
        file: special(NODE_INO),
        nat,
        free: FreeNids::new(layout.nat_blocks(), first_search),
        space: Space::new(checkpoint, layout.nids()),
    };
    let mut last = checkpoint.clone();
    if !believes_stale {
        last.ckpt_flags &= !CP_NAT_BITS;
    }
    let checkpoints =
        Checkpoints::new(Rc::clone(&mount), last, (*pack, *crc), most_orphans(&layout));
    let of_zone = zones.as_ref().map(|zones| zones.capacity().of_section());
    let gc_journal = GcJournal::of(mount.sb.gc_journal(), options, of_zone)?;
    let meta = special(META_INO);
    let capacity = zones.as_ref().map(Zones::capacity);
    let segments = segments_of(layout, capacity, options, at_mount);
    let parts = VolumeParts {
        mount: Rc::clone(&mount),
        segments,
        nodes,
        meta,
        checkpoints,
        inode_lists,
        gc_journal,
        zones,
        append,
    };
    Ok(Volume::new(parts))
}

fn start_tasks(volume: &Rc<Volume>) {
    let (env, backing) = (&volume.mount.env, FileBacking(Rc::clone(volume)));
    drop(env.rt.spawn_daemon("flusher", flush_in_background(env.cache.clone(), backing)));
    if volume.mount.options.background_gc && volume.segments.append.is_none() {
        let cleaner = Rc::clone(volume);
        drop(env.rt.spawn_daemon("cleaner", async move {
            Cleaning { volume: &cleaner, kind: GcKind::Background }.run_gc_thread().await
        }));
    }
    let upcalls = Rc::clone(volume);
    if volume.segments.append.as_ref().is_some_and(|append| append.upcalls.is_some()) {
        let handle = async move {
            if let Some(space) = Appended::of(&upcalls) {
                space.handle_upcalls().await;
            }
        };
        drop(env.rt.spawn_daemon("upcalls", handle));
    }
    let timer = Rc::clone(volume);
    drop(
        env.rt.spawn_daemon(
            "checkpoint timer",
            async move { timer.checkpoint_in_background().await },
        ),
    );
}

impl Volume {
    /// Finishes orphans, rolls forward through the GC journal, and takes the mark off. Returns what was rolled forward, and
    /// the number of orphans.
    async fn complete_recovery(
        self: &Rc<Self>,
        (orphans, journal): (Vec<Nid>, Vec<GcJournalBlock>),
        clean: bool,
        is_marked: bool,
    ) -> Result<(Rolled, u64)> {
        let count = orphans.len() as u64;
        for ino in orphans {
            self.checkpoints.orphans.add(ino.0)?;
        }
        let rolled = RollForward { volume: self }.run(clean, journal).await?;
        self.checkpoints.rolled.set(rolled);
        if is_marked {
            self.cleaner.unmark_volume((&self.writes, &self.segments)).await?;
        }
        // Roll-forward may have taken last names away as well.
        if !self.checkpoints.orphans.all().is_empty() {
            for number in self.checkpoints.orphans.all() {
                self.finish_orphan(number).await?;
            }
            self.write_checkpoint(Reason::Recovery).await?;
        }
        if let (Some(zones), Some(journal)) = (&self.segments.zones, &self.cleaner.journal) {
            zones.place_gc_journal(&self.mount, journal).await?;
        }
        Ok((rolled, count))
    }

    /// Removes an inode whose last name was gone before the cut (`recover_orphan_inode`).
    async fn finish_orphan(self: &Rc<Self>, number: u32) -> Result<()> {
        match self.inode(number).await {
            Ok(inode) => {
                inode.raw.borrow_mut().links = 0;
                self.delete_if_unused(&inode).await
            }
            Err(FsError::NoEntry) => {
                self.checkpoints.orphans.remove(number);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Writes everything out and leaves the volume clean.
    ///
    /// # Errors
    /// The first; the rest is done all the same.
    pub(crate) async fn close(self: &Rc<Self>) -> Result<()> {
        self.mount.env.calls.check_open()?;
        self.mount.env.calls.close();
        self.mount.env.calls.ended().await;
        let mut result = Ok(());
        for inode in self.inodes.cache.all() {
            inode.opens.set(0);
            result = result.and(self.delete_if_unused(&inode).await);
        }
        result = result.and(sync_all(self, &self.inodes.cache).await);
        self.mount.env.cache.stop();
        if self.mount.omits(OmittedRule::GcUnmark) {
            self.cleaner.unmark_volume((&self.writes, &self.segments)).await?;
        }
        result.and(self.write_checkpoint(Reason::Umount).await.map(drop))?;
        if let Some(append) = &self.segments.append {
            append.drain_discards(&self.mount).await?;
            self.mount.env.device.flush().await?;
            // The device's next flag is another mount's.
            append.upcalls.iter().for_each(|upcalls| upcalls.poke.notify_one());
        }
        if self.cleaner.is_marked() {
            self.cleaner.unmark_volume((&self.writes, &self.segments)).await
        } else {
            Ok(())
        }
    }
}
