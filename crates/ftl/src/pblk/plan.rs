//! Which write buffers a configuration asks for, and which of them share frontiers.
//!
//! pblk has one buffer and one frontier. Buffers stand in this order: normal ones (one, or one a core
//! or hardware queue), those of fsynced files, the journal's, that of garbage collection. Each has a
//! frontier of its own; where lines are narrower than the device the normal ones share a frontier a
//! stripe, to which their units go in turn (QBLK). Trim records are in buffer 0.

use super::ids::BufferId;
use crate::common::layout::Layout;
use crate::error::FtlError;
use crate::pblk::config::{BaseRouting, Config, FileRouting, GcStream};
use crate::pblk::stats::BufferRole;
use std::ops::Range;

/// Most buffers: a set of them is a word.
const BUFFERS_MAX: u32 = 64;
/// Most frontiers.
const FRONTIERS_MAX: u32 = 255;

/// Which buffers there are, by purpose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// For whatever nothing else claims.
    pub(super) normal: Range<BufferId>,
    /// For files that are fsynced.
    pub(super) fsync: Range<BufferId>,
    /// For the journal.
    pub(super) journal: Option<BufferId>,
    /// For copies.
    pub(super) gc: Option<BufferId>,
    /// Frontiers that the normal buffers share; none if each has its own.
    shared: u32,
}

impl Plan {
    /// What `config` asks for.
    ///
    /// # Errors
    /// Too many buffers, or choices that exclude each other.
    pub(super) fn new(config: &Config, layout: &Layout) -> Result<Self, FtlError> {
        let routing = config.routing;
        check_routing(config)?;
        let normal = if routing.base == BaseRouting::Single { 1 } else { config.write_buffers };
        let fsync = match routing.files {
            FileRouting::None | FileRouting::FsyncInNormal => 0,
            FileRouting::FsyncAware | FileRouting::PerFile => {
                config.fsync_rings.unwrap_or(config.write_buffers)
            }
        };
        let gc = u32::from(config.gc_stream == GcStream::Own);
        let total = normal.saturating_add(fsync).saturating_add(u32::from(routing.journal) + gc);
        let shared = if layout.stripes() > 1 { layout.stripes() } else { 0 };
        if total > BUFFERS_MAX || total.saturating_add(shared) >= FRONTIERS_MAX {
            let why = format!("{total} write buffers, at most {BUFFERS_MAX} are possible");
            return Err(FtlError::Config { key: "ftl.routing", why });
        }
        let (normal, fsync) = (normal as BufferId, fsync as BufferId);
        let mut last = normal + fsync;
        let mut special = |wanted: bool| {
            wanted.then(|| {
                last += 1;
                last - 1
            })
        };
        Ok(Self {
            normal: 0..normal,
            fsync: normal..normal + fsync,
            journal: special(routing.journal),
            gc: special(gc > 0),
            shared,
        })
    }

    /// Buffers.
    pub(super) fn len(&self) -> BufferId {
        self.fsync.end + self.journal.iter().len() as u8 + self.gc.iter().len() as u8
    }

    /// What each buffer is for.
    pub(super) fn roles(&self) -> impl Iterator<Item = BufferRole> {
        (0..self.len()).map(|id| match id {
            id if self.normal.contains(&id) => BufferRole::Normal,
            id if self.fsync.contains(&id) => BufferRole::Fsync,
            id if Some(id) == self.journal => BufferRole::Journal,
            _ => BufferRole::Gc,
        })
    }

    /// Whether a buffer takes the journal and nothing else.
    #[inline]
    pub(super) fn is_journal(&self, buffer: BufferId) -> bool {
        self.journal == Some(buffer)
    }

    /// Frontiers.
    pub(super) fn frontiers(&self) -> u32 {
        let own = if self.shared == 0 { self.len() } else { self.len() - self.normal.end };
        self.shared + u32::from(own)
    }

    /// Frontiers that the normal buffers share.
    pub(super) fn shared(&self) -> u32 {
        self.shared
    }

    /// The group of a buffer: those that share frontiers.
    #[inline]
    pub(super) fn group_of(&self, buffer: BufferId) -> usize {
        if self.shared == 0 {
            usize::from(buffer)
        } else {
            usize::from((buffer + 1).saturating_sub(self.normal.end))
        }
    }

    /// Groups.
    pub(super) fn groups(&self) -> usize {
        self.group_of(self.len() - 1) + 1
    }

    /// The group that garbage collection can always fall back on.
    pub(super) fn copies_group(&self) -> usize {
        self.group_of(self.gc.unwrap_or(0))
    }

    /// Whether any copy may go to a group.
    pub(super) fn collects_into(&self, group: usize) -> bool {
        match self.gc {
            Some(gc) => group == self.group_of(gc),
            None => group <= self.group_of(self.normal.end - 1),
        }
    }
}

/// Choices that exclude each other.
fn check_routing(config: &Config) -> Result<(), FtlError> {
    let refuse = |why: &str| Err(FtlError::Config { key: "ftl.routing", why: why.into() });
    let routing = config.routing;
    if routing.base != BaseRouting::Single && config.write_buffers == 0 {
        return refuse("per-core and per-queue need at least one buffer (ftl.write_buffers)");
    }
    if routing.files == FileRouting::FsyncInNormal && routing.base == BaseRouting::Single {
        return refuse(
            "fsync-in-normal gives a file one of several normal buffers: combine it with per-core or per-queue",
        );
    }
    if matches!(routing.files, FileRouting::FsyncAware | FileRouting::PerFile)
        && config.fsync_rings.unwrap_or(config.write_buffers) == 0
    {
        return refuse("files that are fsynced need at least one buffer (ftl.fsync_rings)");
    }
    Ok(())
}
