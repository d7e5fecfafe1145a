//! Features of a file system, under the names that mkfs.f2fs gives them, and which of them we support.
//! Bits: fs/f2fs/f2fs.h (`F2FS_FEATURE_...`).
//!
//! - Supported for reading and writing: `blkzoned`, `extra_attr`, `inode_checksum`, `flexible_inline_xattr`,
//!   `inode_crtime`, `lost_found`, `sb_checksum`.
//! - Everything else is refused by name, unknown bits by number. The kernel ignores bits that it does
//!   not know; we cannot say what they change, and refuse them.

use super::error::{FormatError, Place};

/// One feature: its bit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Feature(u32);

macro_rules! features {
    ($( $bit:literal $constant:ident $name:literal, )*) => {
        impl Feature {
            $(
                #[doc = concat!("`", $name, "`")]
                pub const $constant: Self = Self($bit);
            )*
        }

        /// Every feature that has a name, by its bit.
        const NAMES: &[(Feature, &str)] = &[ $( (Feature::$constant, $name), )* ];
    };
}

features! {
    0x1 ENCRYPT "encrypt",
    0x2 BLKZONED "blkzoned",
    0x4 ATOMIC_WRITE "atomic_write",
    0x8 EXTRA_ATTR "extra_attr",
    0x10 PROJECT_QUOTA "project_quota",
    0x20 INODE_CHECKSUM "inode_checksum",
    0x40 FLEXIBLE_INLINE_XATTR "flexible_inline_xattr",
    0x80 QUOTA_INO "quota",
    0x100 INODE_CRTIME "inode_crtime",
    0x200 LOST_FOUND "lost_found",
    0x400 VERITY "verity",
    0x800 SB_CHECKSUM "sb_checksum",
    0x1000 CASEFOLD "casefold",
    0x2000 COMPRESSION "compression",
    0x4000 RO "ro",
}

/// What a volume may be made with; `blkzoned` is on where the device has zones, and only there.
pub const SUPPORTED: Features = Features::of(&[
    Feature::EXTRA_ATTR,
    Feature::INODE_CHECKSUM,
    Feature::FLEXIBLE_INLINE_XATTR,
    Feature::INODE_CRTIME,
    Feature::LOST_FOUND,
    Feature::SB_CHECKSUM,
]);

/// Features whose fields lie in the extra attributes of inodes: they need `extra_attr`.
const IN_EXTRA_ATTR: Features = Features::of(&[
    Feature::PROJECT_QUOTA,
    Feature::INODE_CHECKSUM,
    Feature::FLEXIBLE_INLINE_XATTR,
    Feature::INODE_CRTIME,
    Feature::COMPRESSION,
]);

/// A set of features: the word `feature` of the superblock.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Features(pub u32);

impl Features {
    /// A set of these.
    #[must_use]
    pub const fn of(features: &[Feature]) -> Self {
        let (mut rest, mut bits) = (features, 0);
        while let [first, more @ ..] = rest {
            bits |= first.0;
            rest = more;
        }
        Self(bits)
    }

    /// Whether a feature is in it.
    #[must_use]
    pub const fn has(self, feature: Feature) -> bool {
        self.0 & feature.0 != 0
    }

    /// The set with a feature.
    #[must_use]
    pub const fn with(self, feature: Feature) -> Self {
        Self(self.0 | feature.0)
    }

    /// The set without a feature.
    #[must_use]
    pub const fn without(self, feature: Feature) -> Self {
        Self(self.0 & !feature.0)
    }

    /// The feature of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Feature> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(feature, _)| *feature)
    }

    /// The names, by bit; bits without a name as their number.
    #[must_use]
    pub fn names(self) -> Vec<String> {
        let bits = (0..32).map(|shift| Feature(1 << shift)).filter(|bit| self.has(*bit));
        bits.map(Feature::name).collect()
    }

    /// Nothing, if all of them are supported.
    ///
    /// # Errors
    /// The names of those that are not, or of those that need `extra_attr`, which is off.
    pub fn check(self, place: Place) -> Result<(), FormatError> {
        let refused = Self(self.0 & !SUPPORTED.with(Feature::BLKZONED).0);
        if refused != Self::default() {
            let what = format!("features that are not supported: {}", refused.names().join(", "));
            return Err(FormatError::Incompatible { place, what });
        }
        let hanging = Self(self.0 & IN_EXTRA_ATTR.0);
        if hanging != Self::default() && !self.has(Feature::EXTRA_ATTR) {
            let what = format!("{} without extra_attr", hanging.names().join(", "));
            return Err(FormatError::Incompatible { place, what });
        }
        Ok(())
    }
}

impl Feature {
    /// Its name, or its bit.
    #[must_use]
    pub fn name(self) -> String {
        let named = NAMES.iter().find(|(feature, _)| *feature == self);
        named.map_or_else(|| format!("{:#x}", self.0), |(_, name)| (*name).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bit has one name that leads back to it, or stands as a number.
    #[test]
    fn features_have_names() {
        let names = Features(!0).names();
        assert_eq!(names.len(), 32);
        assert_eq!(names[..2], ["encrypt", "blkzoned"]);
        assert_eq!(names[31], "0x80000000");
        let named: Vec<_> = names.iter().filter_map(|name| Features::named(name)).collect();
        assert_eq!(named.len(), NAMES.len());
        assert!(named.iter().zip(&names).all(|(feature, name)| feature.name() == *name));
    }

    /// What is not supported is refused by its name, a bit without a name by its number; a feature in
    /// the extra attributes needs them.
    #[test]
    fn features_are_refused_by_name() {
        let place = Place::Superblock(0);
        assert_eq!(SUPPORTED.check(place), Ok(()));
        assert_eq!(Features::default().check(place), Ok(()));
        for bit in (0..32).map(|shift| Feature(1 << shift)) {
            let alone = SUPPORTED.with(bit).check(place);
            let is_read = SUPPORTED.has(bit) || bit == Feature::BLKZONED;
            assert_eq!(alone.is_ok(), is_read, "{}", bit.name());
            if let Err(error) = alone {
                assert!(error.to_string().ends_with(&format!(": {}", bit.name())), "{error}");
            }
        }
        let hanging = SUPPORTED.without(Feature::EXTRA_ATTR).check(place).expect_err("refused");
        assert!(hanging.to_string().contains("inode_checksum"), "{hanging}");
        assert_eq!(Features::of(&[Feature::LOST_FOUND]).check(place), Ok(()));
    }
}
