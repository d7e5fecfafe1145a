//! Cleaning: the valid blocks of a section go to the ends of logs, and its segments become prefree. After fs/f2fs/gc.c.
//!
//! In the foreground, before an operation that makes pages dirty, sections are cleaned until there are enough free ones;
//! in the background, when nothing else happens, one at a time ([`victim`](super::victim) chooses).
//!
//! What is read for a segment is read together, as the kernel's read-ahead does it: nodes that lead to its blocks, then
//! those of its pages that are not in memory. A data block is moved by making its page dirty, marked for the cold log; a
//! node block by making the node dirty.
//! What leads to a moved block is written with the next checkpoint, which makes the segment free, or the GC journal says
//! where it is ([`gc_journal`](super::gc_journal)); then nodes and blocks of directories are copied
//! ([`gc_copy`](super::gc_copy)).

use super::appended::Appended;
use super::balance::Balance;
use super::checkpoints::Reason;
use super::cleaner::GcKind;
use super::cpu::Work;
use super::format::{BlockAddr, MovedBlock, SegNo, SummaryEntry};
use super::gc_parts::GcStep;
use super::inode::Inode;
use super::node::NodeWrite;
use super::options::GcCheckpoint;
use super::rules::OmittedRule;
use super::victim::VictimSearch;
use super::volume::Volume;
use crate::cache::{begin_fetch, read_pages};
use crate::contract::{FsError, Kind, Result};
use crate::vfs::writeback::{FileBacking, write_run};
use nandscape_rt::defect;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Sections that cleaning in the foreground fails to empty before it gives up (`MAX_SKIP_GC_COUNT`).
const MAX_SKIPPED: u32 = 16;

/// Tries to move a page that goes elsewhere at the same time.
const MAX_TRIES: u32 = 4;

/// A page whose block is to be moved.
struct Moving {
    at: BlockAddr,
    summary: SummaryEntry,
    inode: Rc<Inode>,
    page: u64,
}

/// A block of a directory, or of a long symbolic link, that is to be moved.
pub(super) struct DirBlock {
    pub(super) at: BlockAddr,
    pub(super) summary: SummaryEntry,
    pub(super) dir: Rc<Inode>,
    pub(super) page: u64,
}

impl Volume {
    /// Makes room before an operation that makes pages dirty (`f2fs_balance_fs`). The caller has no share of the
    /// checkpoint lock, and no file's `invalidate_lock`.
    ///
    /// # Errors
    /// Those of cleaning and of checkpoints.
    pub(crate) async fn balance_fs(&self) -> Result<()> {
        if let Some(append) = &self.segments.append {
            let Some(volume) = Balance::of(self).lack(append).and_then(|_| self.this()) else {
                return Ok(());
            };
            // On the heap, as few calls find too little: the future of every write would be as large.
            return Box::pin(Appended { volume: &volume, append }.make_room()).await;
        }
        if !Balance::of(self).lacks_free_sections(0) {
            return Ok(());
        }
        let Some(volume) = self.this() else {
            return Err(defect!("a volume that is written to is mounted").into());
        };
        let _alone = self.cleaner.lock.lock().await;
        if !Balance::of(self).lacks_free_sections(0) {
            return Ok(());
        }
        let began = self.mount.env.rt.now();
        // On the heap, as few calls clean: the future of every write would be as large.
        let cleaning = Cleaning { volume: &volume, kind: GcKind::Foreground };
        let cleaned = Box::pin(cleaning.run()).await;
        let mut counts = self.cleaner.counts.get();
        counts.calls.note(self.mount.env.rt.now().saturating_sub(began));
        self.cleaner.counts.set(counts);
        cleaned
    }

    /// The same before a removal. Where nothing is cleaned, only removals make room then, and they need no more than is left
    /// for a checkpoint.
    ///
    /// # Errors
    /// As [`Volume::balance_fs`], without [`FsError::NoSpace`] where nothing is cleaned.
    pub(crate) async fn balance_for_removal(&self) -> Result<()> {
        match self.balance_fs().await {
            Err(FsError::NoSpace) if self.segments.append.is_some() => Ok(()),
            balanced => balanced,
        }
    }
}

/// Cleaning of one kind.
pub(super) struct Cleaning<'a> {
    pub(super) volume: &'a Rc<Volume>,
    pub(super) kind: GcKind,
}

impl Cleaning<'_> {
    /// The section to clean next.
    fn victim(&self) -> Option<u32> {
        let search = VictimSearch {
            segments: &self.volume.segments.borrow(),
            checkpoint_blocks: self
                .volume
                .cleaner
                .journals_moves()
                .then(|| Balance::of(self.volume).checkpoint_blocks()),
            mounted_before_s: self.volume.checkpoints.mounted_before_s,
        };
        self.volume.cleaner.victim(self.kind, &search)
    }

    /// Cleans sections in the foreground until there are enough (`f2fs_gc`).
    async fn run(self) -> Result<()> {
        if self.is_checkpoint_due(None) {
            self.reclaim().await?;
        }
        let (mut freed, mut skipped) = (0, 0);
        while Balance::of(self.volume).lacks_free_sections(freed) && skipped <= MAX_SKIPPED {
            let Some(section) = self.victim() else { break };
            if self.is_checkpoint_due(Some(section)) {
                self.reclaim().await?;
                freed = 0;
                continue;
            }
            let is_empty = self.clean_section(section).await?;
            self.volume.cleaner.step((GcStep::Reclaim, self.kind), self.journal_moves()).await?;
            if !is_empty {
                skipped += 1;
            } else if !self.volume.segments.borrow().is_free_section(section) {
                freed += 1;
            }
            if Balance::of(self.volume).must_reclaim() {
                self.reclaim().await?;
                freed = 0;
            }
        }
        if self.ends_with_checkpoint(freed) {
            self.reclaim().await?;
        }
        Ok(())
    }

    /// Makes prefree segments free by a checkpoint; at once where a run leaves that out of cleaning.
    async fn reclaim(&self) -> Result<()> {
        if self.volume.mount.options.gc_without.checkpoint() {
            let freed = self.volume.segments.borrow_mut().release_prefree();
            self.volume.note_freed(freed);
            self.volume.segments.reset_freed().await;
            return Ok(());
        }
        let written = self.volume.write_checkpoint(Reason::Space);
        self.volume.cleaner.step((GcStep::Reclaim, self.kind), written).await.map(drop)
    }

    /// Whether a call that has emptied so many sections writes a checkpoint at its end. If not, what it emptied is free
    /// already, or the next call begins with one.
    fn ends_with_checkpoint(&self, freed: u32) -> bool {
        let is_left = match self.volume.mount.options.gc_checkpoint {
            _ if self.volume.cleaner.journals_moves() => {
                !Balance::of(self.volume).lacks_free_sections(0)
            }
            GcCheckpoint::Call => false,
            GcCheckpoint::Reuse => !Balance::of(self.volume).lacks_free_sections(freed),
        };
        !is_left && (freed > 0 || self.volume.segments.borrow().prefree_segments() > 0)
    }

    /// Whether prefree segments are made free by a checkpoint before a section is cleaned: without a GC journal always
    /// before the first one, and with it if cleaning the section would cost more blocks than the checkpoint.
    fn is_checkpoint_due(&self, section: Option<u32>) -> bool {
        let segments = self.volume.segments.borrow();
        let is_cheaper = match section {
            None => !self.volume.cleaner.journals_moves(),
            Some(section) => {
                let moved = u64::from(segments.section_valid(section));
                self.volume.cleaner.journals_moves()
                    && Balance::of(self.volume).checkpoint_blocks() < moved
            }
        };
        is_cheaper && segments.prefree_segments() > 0
    }

    /// Cleans a section in the background, if one is worth it. Whether there was one.
    pub(crate) async fn clean_in_background(&self) -> Result<bool> {
        let _alone = self.volume.cleaner.lock.lock().await;
        let Some(section) = self.victim() else { return Ok(false) };
        self.clean_section(section).await?;
        Ok(true)
    }

    /// Moves the valid blocks of a section; whether none is left (`do_garbage_collect`).
    async fn clean_section(&self, section: u32) -> Result<bool> {
        let valid = self.volume.segments.borrow().section_valid(section);
        self.volume.cleaner.cleaning.set(Some(section));
        let moved = self.move_section(section).await;
        self.volume.cleaner.cleaning.set(None);
        moved?;
        if let Some(zones) = &self.volume.segments.zones
            && self.volume.mount.omits(OmittedRule::ZoneEarlyReset)
        {
            zones.reset_prefree(&self.volume.segments).await;
        }
        let mut counts = self.volume.cleaner.counts.get();
        match self.kind {
            GcKind::Foreground => {
                counts.foreground_sections += 1;
                counts.reclaimed_blocks +=
                    u64::from(self.volume.segments.capacity.of_section().saturating_sub(valid));
                self.volume.cleaner.background_victims.borrow_mut().remove(&section);
            }
            GcKind::Background => {
                counts.background_sections += 1;
                self.volume.cleaner.background_victims.borrow_mut().insert(section);
            }
        }
        self.volume.cleaner.counts.set(counts);
        Ok(self.volume.segments.borrow().section_valid(section) == 0)
    }

    /// Moves what is valid in the segments of a section.
    async fn move_section(&self, section: u32) -> Result<()> {
        let per_section = self.volume.mount.layout.segments_per_section();
        for number in section * per_section..(section + 1) * per_section {
            let segment = SegNo(number);
            let found = self
                .volume
                .segments
                .borrow()
                .segment(segment)
                .map(|found| (found.valid, found.kind));
            let Some((valid, log)) = found else { break };
            if valid == 0 {
                continue;
            }
            let found = self
                .volume
                .cleaner
                .step((GcStep::Find, self.kind), self.volume.segments.summaries_of(segment))
                .await;
            let summaries = found?;
            let copies = self.volume.cleaner.journals_moves()
                && self.kind == GcKind::Foreground
                && !self.volume.mount.omits(OmittedRule::GcNodeContent);
            if log.is_node() && copies {
                self.volume
                    .cleaner
                    .step((GcStep::Write, self.kind), self.copy_nodes(&summaries))
                    .await?;
            } else if log.is_node() {
                self.volume
                    .cleaner
                    .step((GcStep::Write, self.kind), self.move_nodes(&summaries))
                    .await?;
            } else {
                self.move_data(&summaries).await?;
            }
        }
        Ok(())
    }

    /// Moves node blocks (`gc_node_segment`).
    async fn move_nodes(&self, blocks: &[(BlockAddr, SummaryEntry)]) -> Result<()> {
        self.volume.nodes.read_nodes(blocks.iter().map(|(_, summary)| summary.nid).collect()).await;
        let op = self.volume.operations.begin().await?;
        let mut moved = Vec::new();
        for (at, summary) in blocks {
            self.volume.mount.pay(Work::Move).await;
            if self.volume.nodes.node_entry(summary.nid).await?.block_addr != *at {
                continue;
            }
            if still_there(self.volume.nodes.edit_node(&op, summary.nid, |_| ()).await)?.is_some() {
                moved.push(summary.nid.0);
            }
        }
        let mut counts = self.volume.cleaner.counts.get();
        counts.node_blocks += moved.len() as u64;
        self.volume.cleaner.counts.set(counts);
        if self.kind == GcKind::Foreground {
            NodeWrite { volume: self.volume, op: &op, marks: None }.send_list(&moved).await?;
            if self.volume.mount.omits(OmittedRule::GcNodeContent) {
                self.note_rewritten(blocks);
            }
            drop(op);
            self.volume.nodes.nodes_written(&moved).await?;
        }
        Ok(())
    }

    /// Notes nodes that were moved as memory has them, which breaks a rule.
    fn note_rewritten(&self, blocks: &[(BlockAddr, SummaryEntry)]) {
        for (at, summary) in blocks {
            let known = self.volume.nodes.nat.borrow().known(summary.nid);
            if let Some(known) = known.filter(|known| known.block_addr != *at) {
                self.volume.cleaner.note_move(*at, known.block_addr, MovedBlock::Node(summary.nid));
            }
        }
    }

    /// Moves data blocks (`gc_data_segment`).
    async fn move_data(&self, blocks: &[(BlockAddr, SummaryEntry)]) -> Result<()> {
        let found =
            self.volume.cleaner.step((GcStep::Find, self.kind), self.find_pages(blocks)).await?;
        self.move_found(found).await
    }

    /// The pages that data blocks belong to, of those that still belong to one.
    async fn find_pages(&self, blocks: &[(BlockAddr, SummaryEntry)]) -> Result<Vec<Moving>> {
        self.volume.nodes.read_nodes(blocks.iter().map(|(_, summary)| summary.nid).collect()).await;
        let mut found = Vec::with_capacity(blocks.len());
        for &(at, summary) in blocks {
            self.volume.mount.pay(Work::Move).await;
            let owner = still_there(self.volume.owner_of(at, &summary).await)?;
            let Some((ino, page)) = owner.flatten() else { continue };
            if let Some(inode) = still_there(self.volume.inode(ino).await)? {
                found.push(Moving { at, summary, inode, page });
            }
        }
        Ok(found)
    }

    /// Moves pages; in the foreground they are on the device then.
    async fn move_found(&self, found: Vec<Moving>) -> Result<()> {
        let copies = self.volume.cleaner.journals_moves()
            && self.kind == GcKind::Foreground
            && !self.volume.mount.omits(OmittedRule::GcDirContent);
        let (copied, found): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|of| copies && of.inode.kind() != Kind::File);
        self.volume.cleaner.step((GcStep::Read, self.kind), self.read_moving(&found)).await;
        self.volume.cleaner.step((GcStep::Write, self.kind), self.rewrite(found)).await?;
        let block = |Moving { at, summary, inode: dir, page }| DirBlock { at, summary, dir, page };
        let copied = copied.into_iter().map(block).collect();
        self.volume.cleaner.step((GcStep::Write, self.kind), self.copy_dirs(copied)).await
    }

    /// Makes pages dirty for the cold log; in the foreground they are on the device then.
    async fn rewrite(&self, found: Vec<Moving>) -> Result<()> {
        let mut files: BTreeMap<u32, (Rc<Inode>, BTreeSet<u64>)> = BTreeMap::new();
        for of in found {
            if still_there(self.mark_moving(&of).await)?.unwrap_or(false) {
                let pages = files.entry(of.inode.number).or_insert((of.inode, BTreeSet::new()));
                pages.1.insert(of.page);
            }
        }
        let mut counts = self.volume.cleaner.counts.get();
        counts.data_blocks += files.values().map(|(_, pages)| pages.len() as u64).sum::<u64>();
        self.volume.cleaner.counts.set(counts);
        if self.kind == GcKind::Background {
            return Ok(());
        }
        for (inode, pages) in files.values() {
            self.write_moved(inode, pages).await?;
        }
        Ok(())
    }

    /// Reads pages that are not in memory: all reads are submitted before the first is waited for.
    async fn read_moving(&self, found: &[Moving]) {
        let backing = FileBacking(Rc::clone(self.volume));
        let mut fetches = Vec::with_capacity(found.len());
        for of in found {
            // An error shows again where the page is moved.
            let fetch = begin_fetch(&backing, &of.inode.pages, of.page..of.page + 1).await;
            fetches.extend(fetch);
        }
        for fetch in fetches {
            let _ = fetch.finish(|| ()).await;
        }
    }

    /// Makes a page dirty for the cold log, if its block is still the one to be moved.
    async fn mark_moving(&self, of: &Moving) -> Result<bool> {
        let Moving { at, summary, inode, page } = of;
        let (at, page) = (*at, *page);
        let _uncut = inode.invalidate_lock.read().await;
        let Some(_no_direct_write) = inode.gc_rwsem.try_write() else { return Ok(false) };
        let backing = FileBacking(Rc::clone(self.volume));
        inode.pages.written(page..page + 1).await;
        for _ in 0..MAX_TRIES {
            let changes = inode.address_changes.get();
            if self.volume.owner_of(at, summary).await?.is_none() || inode.deleted.get() {
                return Ok(false);
            }
            let mut content = None;
            if !inode.pages.waiting(&(page..page + 1)).0 {
                content = read_pages(&backing, &inode.pages, u16::MAX, page..page + 1).await?.pop();
            }
            if let Some(content) = content
                && !inode.pages.waiting(&(page..page + 1)).0
            {
                // A page that went elsewhere while it was read need not be moved.
                if inode.address_changes.get() != changes {
                    continue;
                }
                inode.pages.write(page, content, false);
            }
            inode.moving.borrow_mut().insert(page);
            return Ok(true);
        }
        Ok(false)
    }

    /// Writes pages that are being moved, and waits for them.
    async fn write_moved(&self, inode: &Rc<Inode>, pages: &BTreeSet<u64>) -> Result<()> {
        if inode.kind() != Kind::File {
            let op = self.volume.operations.begin().await?;
            self.volume.send_dir(&op, inode).await?;
            drop(op);
        } else {
            for &page in pages {
                if let Some(run) = inode.pages.take_run(page..page + 1, 1) {
                    write_run(self.volume, inode, run, false).await?;
                }
            }
        }
        for &page in pages {
            inode.pages.written(page..page + 1).await;
        }
        inode.pages.take_error()
    }
}

/// What was found; nothing if it was removed meanwhile: cleaning keeps no operation out.
///
/// # Errors
/// All others.
fn still_there<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(FsError::NoEntry) => Ok(None),
        Err(error) => Err(error),
    }
}
