//! Our check against fsck.f2fs on damaged volumes: bytes of metadata are changed, and both say whether the
//! volume is sound.
//!
//! - Neither check nor dump panics, nor runs without end, whatever is damaged.
//! - They say the same, but for what stands in [`OURS_ALONE`] and [`THEIRS_ALONE`], each with its reason, as
//!   in docs/formats/f2fs.md ("Differences from fsck.f2fs").
//!
//! `NANDSCAPE_F2FS_DIFFER` sets the rounds of all volumes together, and `NANDSCAPE_F2FS_DIFFER_FROM` the
//! first seed.

mod damage;
mod differ;
mod places;
