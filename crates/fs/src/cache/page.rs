//! A page and its states.

use nandscape_block::SectorData;

/// 4 KiB of a file in memory.
pub(super) struct Page {
    /// The content; absent while it is being read.
    pub(super) data: SectorData,
    /// The read that will bring the content; 0 when it is there.
    pub(super) fill: u32,
    /// The device does not have this content, and no write of it is under way.
    pub(super) dirty: bool,
    /// A write of it, or of what it held before, is under way.
    pub(super) writing: bool,
    /// The file system has promised it a block.
    pub(super) reserved: bool,
    /// Used since eviction last came by.
    pub(super) referenced: bool,
}

impl Page {
    pub(super) const fn reading(fill: u32) -> Self {
        let data = SectorData::Absent;
        Self { data, fill, dirty: false, writing: false, reserved: false, referenced: true }
    }

    pub(super) const fn clean(data: SectorData) -> Self {
        Self { data, fill: 0, dirty: false, writing: false, reserved: false, referenced: true }
    }

    pub(super) const fn is_there(&self) -> bool {
        self.fill == 0
    }

    pub(super) const fn may_go(&self) -> bool {
        self.is_there() && !self.dirty && !self.writing
    }
}
