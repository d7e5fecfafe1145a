//! Mount and unmount.
//!
//! Mount goes in this order, each step needing only what the ones before have made sound: the
//! superblock's features, the journal's recovery, the superblock and the descriptors once more, the mark
//! that recovery is needed, the list of orphans.

use super::file_commit::FileCommit;
use super::format::{
    BLOCK_BYTES, ERRORS_NOTED, Feature, FormatError, GroupDescriptor, JOURNAL_INODE, Place,
    STATE_ERRORS, SUPERBLOCK_AT, SUPERBLOCK_BYTES, Superblock,
};
use super::fs::Ext4;
use super::journal::{
    Buffers, Config, Journal, LogExtents, Recovered, discard, file_records, recover_omitting,
};
use super::meta::Meta;
use super::meta::alloc::Allocator;
use super::meta::group::Group;
use super::options::MountOptions;
use super::orphan::Orphans;
use super::orphan_file::OrphanFile;
use super::raw::Ext4Image;
use super::sync::VolumeHook;
use super::system_zone::SystemZone;
use super::volume::Volume;
use crate::cache::flush_in_background;
use crate::contract::{FsError, Result, Timestamp};
use crate::image::{BlockBytes, ImageReader};
use crate::vfs::sync::sync_all;
use crate::vfs::writeback::FileBacking;
use crate::vfs::{InodeCache, VolumeEnv};
use nandscape_block::{AsyncDevice, Bio, Flags, Fua, Lba, Payload, SectorData};
use nandscape_rt::sync::RwLock;
use nandscape_rt::{BoxFuture, Handle};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// What mount found to do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MountReport {
    /// What the journal held.
    pub recovered: Recovered,
    /// Files whose removal or truncation was finished.
    pub orphans: u32,
    /// Files whose records were applied.
    pub files: u32,
}

/// A volume whose features are all supported, and which has a journal inside.
async fn open(device: &AsyncDevice) -> Result<Ext4Image> {
    let raw = Ext4Image::open(device).await?;
    let mut features = raw.sb.features();
    if features.has(Feature::ORPHAN_FILE) {
        // What the file names is seen to.
        features.set(Feature::ORPHAN_PRESENT, false);
    }
    features.check(true)?;
    if !raw.sb.has(Feature::HAS_JOURNAL) || raw.sb.journal_inum != JOURNAL_INODE {
        return Err(FsError::Incompatible(
            "a file system without a journal, or with one elsewhere, is not mounted".to_owned(),
        ));
    }
    Ok(raw)
}

/// Writes the superblock, durably.
async fn write_superblock(device: &AsyncDevice, sb: &Superblock) -> Result<()> {
    let mut bytes = ImageReader::new(device).block(0).await?;
    sb.encode(&mut bytes[SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES]);
    write_first_block(device, bytes).await
}

async fn write_first_block(device: &AsyncDevice, bytes: BlockBytes) -> Result<()> {
    let payload = Payload::collect(vec![SectorData::Bytes(Arc::from(bytes))]);
    let fua = device.caps().fua == Fua::Honoured;
    let durable = if fua { Flags::FUA } else { Flags::NONE };
    device.submit(Bio::write(Lba(0), 1, payload).with(Flags::META | durable)).await?;
    if !fua {
        device.flush().await?;
    }
    Ok(())
}

/// Brings back what `before`, the first block before recovery, notes of errors: a copy of it in the log may
/// be older than they are.
async fn keep_errors(device: &AsyncDevice, before: &BlockBytes) -> Result<()> {
    let superblock = SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES;
    let noted = Superblock::parse(&before[superblock.clone()], 0)?;
    let mut bytes = ImageReader::new(device).block(0).await?;
    let now = &mut bytes[superblock.clone()];
    let mut sb = Superblock::parse(now, 0)?;
    let forgotten = noted.state & STATE_ERRORS & !sb.state;
    let fields = &before[superblock][ERRORS_NOTED];
    if forgotten == 0 && now[ERRORS_NOTED] == *fields {
        return Ok(());
    }
    now[ERRORS_NOTED].copy_from_slice(fields);
    sb.state |= forgotten;
    sb.error_count = noted.error_count;
    sb.encode(now);
    write_first_block(device, bytes).await
}

/// Where the log lies: the blocks of the journal's inode.
async fn log_extents(raw: &Ext4Image) -> Result<LogExtents> {
    let (inode, _) = raw.inode(JOURNAL_INODE).await?;
    let extents = raw.extents(JOURNAL_INODE, &inode).await?;
    Ok(LogExtents::new(extents.iter().map(|extent| extent.start..extent.end()))?)
}

async fn read_groups(raw: &Ext4Image) -> Result<Vec<Group>> {
    let sb = &raw.sb;
    let mut groups = Vec::with_capacity(sb.groups() as usize);
    for block in 1..=u64::from(sb.desc_blocks()) {
        let bytes = raw.reader().block(block).await?;
        for slot in bytes.chunks_exact(sb.desc_bytes()).take(BLOCK_BYTES / sb.desc_bytes()) {
            let group = groups.len() as u32;
            if group == sb.groups() {
                break;
            }
            let desc = GroupDescriptor::parse(slot, group, sb)?;
            check_group(&desc, group, sb)?;
            groups.push(Group::new(desc));
        }
    }
    Ok(groups)
}

/// What a descriptor points at must be on the volume.
fn check_group(desc: &GroupDescriptor, group: u32, sb: &Superblock) -> Result<(), FormatError> {
    let table_end = desc.inode_table.saturating_add(sb.inode_table_blocks().into());
    let end = desc.block_bitmap.max(desc.inode_bitmap).saturating_add(1).max(table_end);
    let inside = end <= sb.blocks_count && desc.block_bitmap > 0 && desc.inode_bitmap > 0;
    if inside && desc.inode_table > 0 {
        return Ok(());
    }
    let (place, what) = (Place::GroupDescriptor(group), "points beyond the volume");
    Err(FormatError::Corrupt { place, byte: 0, what })
}

impl Ext4 {
    /// Mounts the file system on a device: recovers the journal, finishes orphans, starts write-back.
    ///
    /// # Errors
    /// What is wrong with the volume: [`FsError::Incompatible`] by feature's name,
    /// [`FsError::Corrupt`] with the place.
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
        let raw = open(&device).await?;
        let log = log_extents(&raw).await?;
        let recovered = if raw.sb.has(Feature::NEEDS_RECOVERY) {
            recover_omitting(&device, &log, options.omit).await?
        } else {
            // Another tool chose to do without what the log holds, if it holds anything.
            discard(&device, &log).await?
        };
        if recovered.blocks > 0 {
            keep_errors(&device, &raw.first_block).await?;
        }
        let records = file_records(&device, &log).await?;
        let raw = open(&device).await?;
        let groups = read_groups(&raw).await?;
        let orphan_file = OrphanFile::find(&raw).await?;
        let mut sb = raw.sb;
        let mut features = sb.features();
        features.set(Feature::NEEDS_RECOVERY, true);
        sb.set_features(features);
        if recovered.errno != 0 {
            // The journal forgets it now; who checks volumes must not.
            sb.state |= STATE_ERRORS;
        }
        sb.mnt_count = sb.mnt_count.saturating_add(1);
        sb.mtime = Timestamp::at(options.epoch_s, rt.now()).seconds as u32;
        write_superblock(&device, &sb).await?;
        let system_zone = SystemZone::new(&sb, groups.iter().map(|group| &group.desc), &log)?;
        let buffers = Buffers::new(rt, device.clone(), options.buffers);
        let journal = Journal::open(rt, &buffers, log, journal_config(&sb, &options)).await?;
        let alloc = Allocator::new(rt, groups, system_zone, options.seed);
        let meta = Meta::new(sb, buffers, journal, alloc, options.omit);
        let volume = Rc::new(new_volume(rt, device, meta, options));
        start_tasks(&volume);
        let files = records.len() as u32;
        match volume.complete_recovery(orphan_file, records).await {
            Ok(orphans) => Ok((Self(volume), MountReport { recovered, orphans, files })),
            Err(error) => {
                volume.detach();
                Err(error)
            }
        }
    }
}

fn journal_config(sb: &Superblock, options: &MountOptions) -> Config {
    Config {
        commit_interval: options.commit_interval,
        transaction_percent: options.transaction_percent,
        tail_move_percent: options.tail_move_percent,
        epoch_s: options.epoch_s.max(0) as u64,
        omit: options.omit,
        ..Config::of_file_system(sb.has(Feature::METADATA_CSUM), sb.has(Feature::BIT64))
    }
}

fn new_volume(rt: &Handle, device: AsyncDevice, meta: Meta, options: MountOptions) -> Volume {
    Volume {
        env: VolumeEnv::new(rt, device, options.cache.clone(), options.epoch_s),
        meta,
        inodes: InodeCache::new(options.inodes),
        file_commit: FileCommit::new(&options),
        options,
        namespace: RwLock::new(rt, "names", ()),
        orphans: Orphans::new(rt),
        ordered: RefCell::default(),
    }
}

fn start_tasks(volume: &Rc<Volume>) {
    volume.meta.journal.start_commits(VolumeHook(Rc::downgrade(volume)));
    let (env, backing) = (&volume.env, FileBacking(Rc::clone(volume)));
    drop(env.rt.spawn_daemon("flusher", flush_in_background(env.cache.clone(), backing)));
    let home = Rc::clone(volume);
    drop(env.rt.spawn_daemon("metadata flusher", async move {
        loop {
            home.env.rt.sleep(home.options.home_period).await;
            let (now, age) = (home.env.rt.now(), home.options.home_age);
            if home.env.calls.check_open().is_err() || home.meta.journal.aborted().is_some() {
                return;
            }
            if now >= age {
                // An error aborts the journal, which every call then says.
                let _ = home.meta.journal.write_back(now - age).await;
            }
        }
    }));
}

impl Volume {
    /// Ends what runs in the background, so that the device can be used by others; nothing is written.
    fn detach(&self) {
        self.env.calls.close();
        self.env.cache.stop();
        self.meta.journal.abandon();
    }

    /// Writes everything out and leaves the volume clean.
    ///
    /// # Errors
    /// The first; the rest is done all the same. A volume on which an operation was left half done is
    /// marked as one with errors.
    pub(crate) async fn close(self: &Rc<Self>) -> Result<()> {
        self.env.calls.check_open()?;
        self.env.calls.close();
        self.env.calls.ended().await;
        let mut result = Ok(());
        for inode in self.inodes.all() {
            inode.opens.set(0);
            result = result.and(self.delete_if_unused(&inode).await);
        }
        result = result.and(sync_all(self, &self.inodes).await);
        self.env.cache.stop();
        self.meta.journal.stop().await?;
        let sb = {
            let mut sb = self.meta.sb.borrow_mut();
            let mut features = sb.features();
            features.set(Feature::NEEDS_RECOVERY, false);
            sb.set_features(features);
            sb.free_blocks_count = self.meta.alloc.free_blocks.get();
            sb.free_inodes_count = self.meta.alloc.free_inodes.get() as u32;
            if self.meta.partial_update.get() {
                sb.state |= STATE_ERRORS;
            }
            sb.wtime = self.env.now().seconds as u32;
            sb.clone()
        };
        write_superblock(&self.env.device, &sb).await?;
        self.env.device.flush().await?;
        result
    }
}
