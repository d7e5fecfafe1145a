//! Mount and unmount (fs/f2fs/super.c).
//!
//! Mount goes in this order, each step needing only what the ones before have made sound: the superblock, of two copies;
//! the checkpoint, of two packs; SIT and NAT with their journals; the logs with their summaries; orphans; roll-forward
//! and the GC journal. A volume that was not unmounted, or that had orphans, gets a checkpoint then, and loses the mark
//! of a GC journal.

mod read;

use self::read::{
    FoundLogs, FoundPack, most_orphans, read_checkpoint, read_logs, read_marks, read_nat_bits,
    read_orphans, read_superblock,
};
use super::append::{AppendGeometry, AppendSpace};
use super::appended::Appended;
use super::checkpoints::{Checkpoints, Reason};
use super::cleaner::{Cleaner, GcKind};
use super::counts::Rolled;
use super::format::{
    BLOCK_BYTES, CP_NAT_BITS, CP_UMOUNT, Checkpoint, DiscardRecords, Feature, Features, Layout,
    Nid, SpaceRegion, Superblock, VersionBitmap,
};
use super::fs::F2fs;
use super::gc::Cleaning;
use super::gc_journal::read::{GcJournalBlock, blocks_that_count};
use super::inode::{Inode, META_INO, NODE_INO};
use super::inode_table::InodeTable;
use super::meta_pages::MetaPages;
use super::mount_info::MountInfo;
use super::moves::GcJournal;
use super::nat::{FreeNids, Nat, NodeParts, Nodes};
use super::operations::Operations;
use super::options::{Allocation, MountOptions, Reclaim};
use super::recovery::RollForward;
use super::rules::OmittedRule;
use super::segment::{SegmentsAtMount, Slots};
use super::segment_manager::{SegmentManager, segments_of};
use super::sending::Writes;
use super::space::Space;
use super::volume::Volume;
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
    let inode_lists = Rc::new(super::inode::InodeLists::default());
    let special = |number| {
        let parts = super::inode::parse(&[0; BLOCK_BYTES], super::format::InodeFeatures::default());
        Inode::new(rt, &mount.env.cache, number, parts, &inode_lists)
    };
    let believes_stale = mount.omits(OmittedRule::StaleNatBits);
    let bits = read_nat_bits(&reader, &layout, found, believes_stale).await?;
    let nat = Nat::new(layout, nat, nat_bitmap, bits, mount.options.nat_entries);
    let nodes = node_parts(&mount, checkpoint, nat, special(NODE_INO));
    let mut last = checkpoint.clone();
    if !believes_stale {
        last.ckpt_flags &= !CP_NAT_BITS;
    }
    let orphans = most_orphans(&layout);
    let checkpoints = Checkpoints::new(Rc::clone(&mount), last, (*pack, *crc), orphans);
    let of_zone = zones.as_ref().map(|zones| zones.capacity().of_section());
    let journal = GcJournal::of(mount.sb.gc_journal(), &mount.options, of_zone)?;
    let meta = MetaPages::new(Rc::clone(&mount), special(META_INO));
    let capacity = zones.as_ref().map(Zones::capacity);
    let segments = segments_of(layout, capacity, &mount.options, at_mount);
    let is_ordered = zones.is_some() || append.as_ref().is_some_and(AppendSpace::is_coupled);
    let operations = Operations::new(Rc::clone(&mount));
    let zone_blocks = zones.as_ref().map(|zones| zones.geometry.blocks);
    let writes = Writes::new(Rc::clone(&mount), zone_blocks, is_ordered);
    let inodes = InodeTable::new(Rc::clone(&mount), inode_lists);
    let cleaner = Cleaner::new(Rc::clone(&mount), journal);
    let area = (zones, append);
    let segments = SegmentManager::new(Rc::clone(&mount), meta.clone(), segments, area);
    let nodes = Nodes::new(Rc::clone(&mount), meta, nodes);
    Ok(Rc::new_cyclic(|this| {
        let this = this.clone();
        Volume { mount, segments, nodes, checkpoints, inodes, operations, cleaner, writes, this }
    }))
}

/// The NAT with free numbers and what is in use; `file` has the node pages.
fn node_parts(mount: &MountInfo, checkpoint: &Checkpoint, nat: Nat, file: Rc<Inode>) -> NodeParts {
    let layout = mount.layout;
    let first_search = layout.nat_place(checkpoint.next_free_nid).0;
    let first_search = first_search.max(mount.options.nid_search_from);
    let free = FreeNids::new(layout.nat_blocks(), first_search);
    NodeParts { file, nat, free, space: Space::new(checkpoint, layout.nids()) }
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
