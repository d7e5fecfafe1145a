//! Features of a file system, under the names that e2fsprogs gives them, and which of them we support.
//!
//! - Supported for reading and writing: `has_journal`, `ext_attr`, `resize_inode`, `dir_index`;
//!   `filetype`, `needs_recovery`, `extent`, `64bit`, `flex_bg`, `metadata_csum_seed`; `sparse_super`,
//!   `large_file`, `huge_file`, `uninit_bg`, `dir_nlink`, `extra_isize`, `metadata_csum`.
//! - Required: `filetype` and `extent`.
//! - Everything else is refused by name, unknown bits by number. A read-only-compatible feature that is
//!   not supported refuses writing only.

use super::error::{FormatError, Place};

/// How a program must treat a feature that it does not know.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// It may be ignored (we refuse it all the same).
    Compat,
    /// The file system must not be touched.
    Incompat,
    /// The file system must not be written.
    RoCompat,
}

/// One feature.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Feature {
    /// In which of the three words it stands.
    pub class: Class,
    /// Its bit there.
    pub bit: u32,
}

macro_rules! features {
    ($( $class:ident $bit:literal $constant:ident $name:literal, )*) => {
        impl Feature {
            $(
                #[doc = concat!("`", $name, "`")]
                pub const $constant: Self = Self { class: Class::$class, bit: $bit };
            )*
        }

        /// Every feature that has a name, in the order of e2fsprogs.
        const NAMES: &[(Feature, &str)] = &[ $( (Feature::$constant, $name), )* ];
    };
}

features! {
    Compat 0x1 DIR_PREALLOC "dir_prealloc",
    Compat 0x4 HAS_JOURNAL "has_journal",
    Compat 0x2 IMAGIC_INODES "imagic_inodes",
    Compat 0x8 EXT_ATTR "ext_attr",
    Compat 0x20 DIR_INDEX "dir_index",
    Compat 0x10 RESIZE_INODE "resize_inode",
    Compat 0x40 LAZY_BG "lazy_bg",
    Compat 0x100 SNAPSHOT_BITMAP "snapshot_bitmap",
    Compat 0x200 SPARSE_SUPER2 "sparse_super2",
    Compat 0x400 FAST_COMMIT "fast_commit",
    Compat 0x800 STABLE_INODES "stable_inodes",
    Compat 0x1000 ORPHAN_FILE "orphan_file",
    RoCompat 0x1 SPARSE_SUPER "sparse_super",
    RoCompat 0x2 LARGE_FILE "large_file",
    RoCompat 0x8 HUGE_FILE "huge_file",
    RoCompat 0x10 UNINIT_BG "uninit_bg",
    RoCompat 0x20 DIR_NLINK "dir_nlink",
    RoCompat 0x40 EXTRA_ISIZE "extra_isize",
    RoCompat 0x100 QUOTA "quota",
    RoCompat 0x200 BIGALLOC "bigalloc",
    RoCompat 0x400 METADATA_CSUM "metadata_csum",
    RoCompat 0x800 REPLICA "replica",
    RoCompat 0x1000 READ_ONLY "read-only",
    RoCompat 0x2000 PROJECT "project",
    RoCompat 0x4000 SHARED_BLOCKS "shared_blocks",
    RoCompat 0x8000 VERITY "verity",
    RoCompat 0x10000 ORPHAN_PRESENT "orphan_present",
    Incompat 0x1 COMPRESSION "compression",
    Incompat 0x2 FILETYPE "filetype",
    Incompat 0x4 NEEDS_RECOVERY "needs_recovery",
    Incompat 0x8 JOURNAL_DEV "journal_dev",
    Incompat 0x40 EXTENT "extent",
    Incompat 0x10 META_BG "meta_bg",
    Incompat 0x80 BIT64 "64bit",
    Incompat 0x100 MMP "mmp",
    Incompat 0x200 FLEX_BG "flex_bg",
    Incompat 0x400 EA_INODE "ea_inode",
    Incompat 0x1000 DIRDATA "dirdata",
    Incompat 0x2000 METADATA_CSUM_SEED "metadata_csum_seed",
    Incompat 0x4000 LARGE_DIR "large_dir",
    Incompat 0x8000 INLINE_DATA "inline_data",
    Incompat 0x10000 ENCRYPT "encrypt",
    Incompat 0x20000 CASEFOLD "casefold",
}

/// What is read and written.
pub const SUPPORTED: Features = Features::of(&[
    Feature::HAS_JOURNAL,
    Feature::EXT_ATTR,
    Feature::RESIZE_INODE,
    Feature::DIR_INDEX,
    Feature::ORPHAN_FILE,
    Feature::FILETYPE,
    Feature::NEEDS_RECOVERY,
    Feature::EXTENT,
    Feature::BIT64,
    Feature::FLEX_BG,
    Feature::METADATA_CSUM_SEED,
    Feature::SPARSE_SUPER,
    Feature::LARGE_FILE,
    Feature::HUGE_FILE,
    Feature::UNINIT_BG,
    Feature::DIR_NLINK,
    Feature::EXTRA_ISIZE,
    Feature::METADATA_CSUM,
]);

/// What a file system must have.
pub const REQUIRED: Features = Features::of(&[Feature::FILETYPE, Feature::EXTENT]);

/// The three words of features.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Features {
    /// Compatible ones.
    pub compat: u32,
    /// Incompatible ones.
    pub incompat: u32,
    /// Read-only-compatible ones.
    pub ro_compat: u32,
}

impl Features {
    /// These features and no others.
    #[must_use]
    pub const fn of(features: &[Feature]) -> Self {
        let mut set = Self { compat: 0, incompat: 0, ro_compat: 0 };
        let mut i = 0;
        while i < features.len() {
            match features[i].class {
                Class::Compat => set.compat |= features[i].bit,
                Class::Incompat => set.incompat |= features[i].bit,
                Class::RoCompat => set.ro_compat |= features[i].bit,
            }
            i += 1;
        }
        set
    }

    fn word(&mut self, class: Class) -> &mut u32 {
        match class {
            Class::Compat => &mut self.compat,
            Class::Incompat => &mut self.incompat,
            Class::RoCompat => &mut self.ro_compat,
        }
    }

    /// Whether a feature is on.
    #[must_use]
    pub fn has(mut self, feature: Feature) -> bool {
        *self.word(feature.class) & feature.bit != 0
    }

    /// Turns a feature on or off.
    pub fn set(&mut self, feature: Feature, on: bool) {
        let word = self.word(feature.class);
        *word = if on { *word | feature.bit } else { *word & !feature.bit };
    }

    /// What is on here and not in `others`.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self {
            compat: self.compat & !others.compat,
            incompat: self.incompat & !others.incompat,
            ro_compat: self.ro_compat & !others.ro_compat,
        }
    }

    /// The feature of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Feature> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(feature, _)| *feature)
    }

    /// The names of what is on, in the order of e2fsprogs; unnamed bits by class and number, as there.
    #[must_use]
    pub fn names(mut self) -> Vec<String> {
        let mut names = Vec::new();
        for class in [Class::Compat, Class::Incompat, Class::RoCompat] {
            let word = *self.word(class);
            let bits = (0..32).map(|bit| Feature { class, bit: 1 << bit });
            names.extend(bits.filter(|f| word & f.bit != 0).map(Feature::name));
        }
        names
    }

    /// Refuses by name what is not supported, or lacks. With `write`, read-only-compatible features
    /// must be supported too.
    ///
    /// # Errors
    /// [`FormatError::Incompatible`] with all the names.
    pub fn check(self, write: bool) -> Result<(), FormatError> {
        let mut foreign = self.without(SUPPORTED);
        if !write {
            foreign.ro_compat = 0;
        }
        let complain =
            |what: String| FormatError::Incompatible { place: Place::Superblock(0), what };
        if foreign != Self::default() {
            let names = foreign.names().join(", ");
            return Err(complain(format!("features that are not supported: {names}")));
        }
        let missing = REQUIRED.without(self);
        if missing != Self::default() {
            let names = missing.names().join(", ");
            return Err(complain(format!("features that are needed and not on: {names}")));
        }
        Ok(())
    }
}

impl Feature {
    /// Its name, or class and bit number for one without.
    #[must_use]
    pub fn name(self) -> String {
        let unnamed = || {
            let class = match self.class {
                Class::Compat => 'C',
                Class::Incompat => 'I',
                Class::RoCompat => 'R',
            };
            format!("FEATURE_{class}{}", self.bit.trailing_zeros())
        };
        let known = NAMES.iter().find(|(feature, _)| *feature == self);
        known.map_or_else(unnamed, |(_, name)| (*name).to_owned())
    }
}
