//! Which write buffer takes a bio. The journal's comes first, then that of a file that is fsynced,
//! then the normal ones.
//!
//! A file is known by its owner: identity and generation, so that a reused identity inherits nothing.
//! For each file this room remembers how often it was fsynced, the buffer that it is bound to, and how
//! far in each buffer its data reaches; the last is what a flush of the file must cover, also what
//! was written before the file was bound, and what went elsewhere since.

use super::buffers::Buffer;
use super::ids::{BufferId, FileKey, file_of};
use super::plan::Plan;
use crate::pblk::config::{BaseRouting, Config, CoreChoice, FileRouting, FlushScope, Routing};
use nandscape_block::{Bio, Flags, FlushScope as BioScope, Owner};
use nandscape_rt::Stream;
use std::collections::BTreeMap;

/// Files remembered before those without a trace are forgotten.
const FILES_MAX: usize = 1 << 16;

/// What is known of a file.
#[derive(Clone, Default, Debug)]
struct File {
    fsyncs: u32,
    bound: Option<BufferId>,
    /// End of its data in each buffer that may hold any.
    ends: Vec<(BufferId, u64)>,
}

/// Chooses buffers.
#[derive(Debug)]
pub(super) struct Router {
    routing: Routing,
    threshold: u32,
    plan: Plan,
    /// Whether anybody asks about files.
    knows_files: bool,
    files: BTreeMap<FileKey, File>,
    /// The file that each buffer for fsynced files belongs to, and when it was last bound or used.
    holders: Vec<(Option<FileKey>, u64)>,
    uses: u64,
    /// Files bound so far, to buffers in turn.
    bound: u32,
    /// Victims whose copies were spread over buffers in turn.
    spread: u32,
    rng: Stream,
    forgotten_at: usize,
}

impl Router {
    /// Nothing bound yet; random choices derive from `seed`.
    pub(super) fn new(config: &Config, seed: u64, plan: Plan) -> Self {
        let scoped = matches!(config.flush_scope, FlushScope::FileRing | FlushScope::FileEntries);
        Self {
            routing: config.routing,
            threshold: config.fsync_threshold,
            knows_files: scoped || config.routing.files != FileRouting::None,
            holders: vec![(None, 0); plan.fsync.len()],
            plan,
            files: BTreeMap::new(),
            uses: 0,
            bound: 0,
            spread: 0,
            rng: Stream::new(seed, "ftl.routing"),
            forgotten_at: FILES_MAX,
        }
    }

    /// The buffer that takes a write.
    #[inline]
    pub(super) fn route(&mut self, bio: &Bio, buffers: &[Buffer]) -> BufferId {
        if buffers.len() == 1 {
            return 0;
        }
        if let Some(journal) = self.plan.journal.filter(|_| bio.flags.has(Flags::JOURNAL)) {
            return journal;
        }
        self.bound(bio.owner).unwrap_or_else(|| self.base(bio.owner, buffers))
    }

    /// The buffer that the bio's file is bound to.
    fn bound(&mut self, owner: Option<Owner>) -> Option<BufferId> {
        if self.routing.files == FileRouting::None {
            return None;
        }
        let bound = self.files.get(&file_of(owner)?)?.bound?;
        self.uses += 1;
        if let Some(index) = self.holder_of(bound) {
            self.holders[index].1 = self.uses;
        }
        Some(bound)
    }

    fn base(&mut self, owner: Option<Owner>, buffers: &[Buffer]) -> BufferId {
        let count = self.plan.normal.len();
        let core = || owner.map_or(0, |owner| usize::from(owner.core) % count) as BufferId;
        match self.routing.base {
            BaseRouting::Single => 0,
            BaseRouting::PerCore(CoreChoice::Core) | BaseRouting::PerQueue => core(),
            BaseRouting::PerCore(CoreChoice::Random) => self.rng.below(count as u64) as BufferId,
            BaseRouting::PerCore(CoreChoice::MostFree) => {
                let free = |id: &BufferId| buffers[usize::from(*id)].rb.free();
                self.plan.normal.clone().rev().max_by_key(free).unwrap_or(0)
            }
        }
    }

    /// The normal buffer whose turn it is to take copies.
    pub(super) fn copies_in_turn(&mut self) -> BufferId {
        let count = self.plan.normal.len() as u32;
        if count == 1 {
            return 0;
        }
        self.spread = self.spread.wrapping_add(1);
        (self.spread % count) as BufferId
    }

    /// A file's data reaches to `end` in a buffer now.
    #[inline]
    pub(super) fn note(&mut self, file: Option<FileKey>, buffer: BufferId, end: u64) {
        let Some(key) = file.filter(|_| self.knows_files) else { return };
        let ends = &mut self.file(key).ends;
        match ends.iter_mut().find(|(other, _)| *other == buffer) {
            Some(place) => place.1 = end,
            None => ends.push((buffer, end)),
        }
    }

    /// The state of a file; a new generation ends what older ones had a right to. How far their data
    /// reaches is remembered: whoever still flushes them must find it.
    fn file(&mut self, key: FileKey) -> &mut File {
        if !self.files.contains_key(&key) {
            let (file, generation) = key;
            for (older, state) in self.files.range_mut((file, 0)..(file, generation)) {
                (state.fsyncs, state.bound) = (0, None);
                for holder in self.holders.iter_mut().filter(|holder| holder.0 == Some(*older)) {
                    holder.0 = None;
                }
            }
        }
        self.files.entry(key).or_default()
    }

    /// Somebody fsyncs a file: counts it, and binds the file to a buffer once it is due.
    pub(super) fn fsynced(&mut self, key: FileKey, buffers: &[Buffer]) {
        let threshold = self.threshold;
        let file = self.file(key);
        file.fsyncs = file.fsyncs.saturating_add(1);
        if file.fsyncs > threshold && file.bound.is_none() {
            let bound = self.bind(key, buffers);
            self.file(key).bound = bound;
        }
        self.forget_traceless(buffers);
    }

    /// A buffer for a file that is fsynced.
    fn bind(&mut self, key: FileKey, buffers: &[Buffer]) -> Option<BufferId> {
        match self.routing.files {
            FileRouting::None => None,
            FileRouting::PerFile => self.take_own(key, buffers),
            files => {
                let of_fsync = files == FileRouting::FsyncAware;
                let from = if of_fsync { &self.plan.fsync } else { &self.plan.normal };
                let buffer = from.start + (self.bound as usize % from.len()) as BufferId;
                self.bound = self.bound.wrapping_add(1);
                Some(buffer)
            }
        }
    }

    /// A buffer that nobody has, else the one that was idle for longest; its file goes back to the
    /// normal buffers.
    fn take_own(&mut self, key: FileKey, buffers: &[Buffer]) -> Option<BufferId> {
        let first = self.plan.fsync.start;
        let idle = |index: &usize| {
            let buffer = &buffers[usize::from(first) + index];
            !buffer.rb.is_dirty() && buffer.queue.is_empty()
        };
        let index = (0..self.holders.len())
            .filter(|index| self.holders[*index].0.is_none() || idle(index))
            .min_by_key(|&index| (self.holders[index].0.is_some(), self.holders[index].1))?;
        self.uses += 1;
        let old = std::mem::replace(&mut self.holders[index], (Some(key), self.uses));
        if let Some(file) = old.0.and_then(|old| self.files.get_mut(&old)) {
            file.bound = None;
        }
        Some(first + index as BufferId)
    }

    fn holder_of(&self, buffer: BufferId) -> Option<usize> {
        let own = self.routing.files == FileRouting::PerFile;
        (own && self.plan.fsync.contains(&buffer))
            .then(|| usize::from(buffer - self.plan.fsync.start))
    }

    /// The buffers that hold anything of a file that is not durable, a bit each.
    pub(super) fn dirty_of(&mut self, key: FileKey, buffers: &[Buffer]) -> u64 {
        let Some(file) = self.files.get_mut(&key) else { return 0 };
        file.ends.retain(|&(buffer, end)| end > buffers[usize::from(buffer)].rb.sync);
        file.ends.iter().fold(0, |set, &(buffer, _)| set | 1 << buffer)
    }

    /// Forgets files that are not bound and have nothing in any buffer, when there are many.
    fn forget_traceless(&mut self, buffers: &[Buffer]) {
        if self.files.len() < self.forgotten_at {
            return;
        }
        let holds = |&(buffer, end): &(BufferId, u64)| end > buffers[usize::from(buffer)].rb.sync;
        self.files.retain(|_, file| file.bound.is_some() || file.ends.iter().any(holds));
        self.forgotten_at = FILES_MAX.max(2 * self.files.len());
    }

    /// Whether a flush of this bio's scope concerns one file only, and which.
    pub(super) fn flushed_file(&self, bio: &Bio) -> Option<FileKey> {
        file_of(bio.owner).filter(|_| bio.scope == BioScope::Owner && self.knows_files)
    }

    /// Buffers by purpose.
    pub(super) const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let file = size_of::<(FileKey, File)>() + 2 * size_of::<(BufferId, u64)>();
        (self.files.len() * file) as u64
    }
}
