//! The global directory: where on media the newest version of each mapping block lies. Hotness and
//! cache slot of a block, which the paper keeps here too, lie with the policy that uses them.

use nandscape_media::Ppa;
use nandscape_rt::invariant;

/// Bytes of a directory entry in the paper's example (section 3.1, below equation 1).
const PAPER_ENTRY_BYTES: u64 = 40;

/// Locations and versions by block.
#[derive(Debug)]
pub(super) struct Directory {
    /// Packed address + 1; zero: never written.
    locations: Box<[u64]>,
    /// Version at that location, counted from 1 by write-backs.
    versions: Box<[u32]>,
}

impl Directory {
    pub(super) fn new(blocks: u32) -> Self {
        Self {
            locations: vec![0; blocks as usize].into_boxed_slice(),
            versions: vec![0; blocks as usize].into_boxed_slice(),
        }
    }

    pub(super) fn blocks(&self) -> u32 {
        self.versions.len() as u32
    }

    #[inline]
    pub(super) fn location(&self, block: u32) -> Option<Ppa> {
        self.locations[block as usize].checked_sub(1).map(Ppa)
    }

    #[inline]
    pub(super) fn version(&self, block: u32) -> u32 {
        self.versions[block as usize]
    }

    /// A version has been written; returns where the one before it is dead now.
    pub(super) fn written(&mut self, block: u32, at: Ppa, version: u32) -> Option<Ppa> {
        invariant!(
            version > self.version(block),
            "version {version} of block {block} is younger than what the directory has"
        );
        let before = self.location(block);
        self.locations[block as usize] = at.0 + 1;
        self.versions[block as usize] = version;
        before
    }

    /// A copy has been made; whether it was of the newest version still.
    pub(super) fn moved(&mut self, block: u32, from: Ppa, to: Ppa) -> bool {
        let newest = self.location(block) == Some(from);
        if newest {
            self.locations[block as usize] = to.0 + 1;
        }
        newest
    }

    /// A version was found on media; returns where the older of it and what was known lies. Of two
    /// copies of one version, the one found later stays.
    pub(super) fn adopt(&mut self, block: u32, at: Ppa, version: u32) -> Option<Ppa> {
        if version < self.version(block) {
            return Some(at);
        }
        let before = self.location(block);
        self.locations[block as usize] = at.0 + 1;
        self.versions[block as usize] = version;
        before
    }

    pub(super) fn bytes(&self) -> u64 {
        (size_of_val(&*self.locations) + size_of_val(&*self.versions)) as u64
    }

    /// Bytes by the paper's equation 1.
    pub(super) fn paper_bytes(&self) -> u64 {
        u64::from(self.blocks()) * PAPER_ENTRY_BYTES
    }
}
