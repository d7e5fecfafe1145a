//! The journal's feature sets, known by name; an unknown incompatible one is refused.

/// Which checksums a journal's blocks carry.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Checksums {
    /// None.
    #[default]
    None,
    /// Of every block; of copies 16 bits of it.
    V2,
    /// Of every block. What the kernel chooses for file systems with `metadata_csum`.
    V3,
}

/// The three sets of feature bits.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Features {
    /// May be ignored by who does not know them.
    pub compat: u32,
    /// Must be known to read the log at all.
    pub incompat: u32,
    /// Must be known to write.
    pub ro_compat: u32,
}

impl Features {
    /// Compatible: one checksum over a whole transaction, in its commit block. Not verified, never
    /// written.
    pub const CHECKSUM: u32 = 1;
    /// Revoke records occur.
    pub const REVOKE: u32 = 1;
    /// Block numbers have 64 bits.
    pub const WIDE: u32 = 1 << 1;
    /// Commit blocks are written before what they commit is durable.
    pub const ASYNC_COMMIT: u32 = 1 << 2;
    /// [`Checksums::V2`].
    pub const CSUM_V2: u32 = 1 << 3;
    /// [`Checksums::V3`].
    pub const CSUM_V3: u32 = 1 << 4;
    /// The end of the log holds fast commits.
    pub const FAST_COMMIT: u32 = 1 << 5;
    /// Ours alone: file-level transactions may wait for recovery in the area behind the log.
    pub const IJOURNAL: u32 = 1 << 31;

    const KNOWN: u32 = Self::REVOKE | Self::WIDE | Self::CSUM_V2 | Self::CSUM_V3 | Self::IJOURNAL;

    /// What the kernel sets when it mounts an ext4 with these properties.
    #[must_use]
    pub const fn of_file_system(metadata_csum: bool, wide: bool) -> Self {
        let incompat = Self::REVOKE
            | if wide { Self::WIDE } else { 0 }
            | if metadata_csum { Self::CSUM_V3 } else { 0 };
        Self { compat: 0, incompat, ro_compat: 0 }
    }

    /// Whether block numbers have 64 bits.
    #[must_use]
    pub const fn is_wide(self) -> bool {
        self.incompat & Self::WIDE != 0
    }

    /// Whether file-level transactions may wait for recovery.
    #[must_use]
    pub const fn has_ijournal(self) -> bool {
        self.incompat & Self::IJOURNAL != 0
    }

    /// The checksums that blocks carry.
    #[must_use]
    pub const fn checksums(self) -> Checksums {
        if self.incompat & Self::CSUM_V3 != 0 {
            Checksums::V3
        } else if self.incompat & Self::CSUM_V2 != 0 {
            Checksums::V2
        } else {
            Checksums::None
        }
    }

    /// What of it keeps us from reading or writing the log, in words.
    #[must_use]
    pub fn refused(self) -> Option<String> {
        let both = Self::CSUM_V2 | Self::CSUM_V3;
        if self.incompat & both == both {
            return Some("features csum_v2 and csum_v3 exclude each other".to_owned());
        }
        if self.incompat & both != 0 && self.compat & Self::CHECKSUM != 0 {
            return Some("features checksum and csum_v2 or csum_v3 exclude each other".to_owned());
        }
        let named = [(Self::ASYNC_COMMIT, "async_commit"), (Self::FAST_COMMIT, "fast_commit")];
        let unknown = self.incompat & !Self::KNOWN;
        if let Some((_, name)) = named.into_iter().find(|(bit, _)| unknown & bit != 0) {
            return Some(format!("feature {name} is not supported"));
        }
        match (unknown, self.ro_compat) {
            (0, 0) => None,
            (0, bits) => Some(format!("unknown read-only compatible features {bits:#x}")),
            (bits, _) => Some(format!("unknown incompatible features {bits:#x}")),
        }
    }
}
