//! Volumes that mkfs.f2fs made and sload.f2fs filled: what we read is what was loaded, and nothing is
//! wrong with them.

use crate::common::examine::{assert_sound, try_dump};
use crate::common::oracle::{fsck, mkfs, sload};
use crate::common::source::{expected, fill};
use crate::common::{Scratch, f2fs_tools};
use nandscape_fs::f2fs::dump::DumpTarget;
use std::path::Path;

/// Features that volumes are made with.
pub(crate) const FEATURES: [&str; 3] = [
    "",
    "extra_attr,inode_checksum,flexible_inline_xattr,inode_crtime,sb_checksum,lost_found",
    "extra_attr,inode_crtime",
];

/// A volume of so many MiB with these features, filled from a folder of its own.
pub(crate) fn filled(
    scratch: &Scratch,
    name: &str,
    mib: u64,
    features: &str,
    names: u32,
) -> std::path::PathBuf {
    let image = scratch.image(name, mib << 20);
    let options: &[&str] = if features.is_empty() { &[] } else { &["-O", features] };
    mkfs(&image, options);
    let source = scratch.path(&format!("{name}-source"));
    // With this feature sload.f2fs 1.15 writes addresses over inline attributes, and the check that ends it
    // takes them away: content beyond the inode is lost.
    fill(&source, names, !features.contains("flexible_inline_xattr"));
    sload(&image, &source);
    image
}

/// A field of a manifest's line.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split(' ').find_map(|field| field.strip_prefix(key)?.strip_prefix('='))
}

fn assert_tree(image: &Path, source: &Path, lost_found: bool) {
    let manifest = try_dump(image, DumpTarget::Tree).expect("a tree");
    let mut lines: Vec<&str> = manifest.lines().collect();
    assert!(!lines.iter().any(|line| line.starts_with('#')), "{manifest}");
    if lost_found {
        let before = lines.len();
        lines.retain(|line| !line.starts_with("/lost+found "));
        assert_eq!(lines.len(), before - 1);
    }
    let expected = expected(source);
    assert_eq!(lines.len(), expected.len());
    for (line, (path, fields)) in lines.iter().zip(&expected) {
        let path = String::from_utf8_lossy(path);
        assert_eq!(line.split(' ').next(), Some(&path[..]));
        for wanted in fields.split(' ') {
            let (key, value) = wanted.split_once('=').expect("a field");
            // The root of the volume is not the folder.
            if path != "/" || key != "mode" {
                assert_eq!(field(line, key), Some(value), "{path}: {key}");
            }
        }
    }
}

/// The tree of a volume that sload.f2fs filled is the one that it was filled from; neither our check nor
/// fsck.f2fs finds anything.
#[test]
fn loaded_trees_are_read() {
    if !f2fs_tools() {
        return;
    }
    for features in FEATURES {
        let scratch = Scratch::new();
        let image = filled(&scratch, "volume", 100, features, 900);
        let theirs = fsck(&image);
        assert!(theirs.sound, "{}", theirs.said);
        let report = assert_sound(&image);
        assert!(report.inodes > 900 && report.directories >= 8, "{report:?}");
        assert_tree(&image, &scratch.path("volume-source"), features.contains("lost_found"));
    }
}

/// Volumes as mkfs.f2fs makes them are sound, of whatever size and sections.
#[test]
fn empty_volumes_are_sound() {
    if !f2fs_tools() {
        return;
    }
    for (mib, options) in
        [(64, &[][..]), (304, &["-s", "4"]), (2_000, &["-s", "4", "-z", "2"]), (20_000, &[])]
    {
        let scratch = Scratch::new();
        let image = scratch.image("volume", mib << 20);
        mkfs(&image, options);
        let theirs = fsck(&image);
        assert!(theirs.sound, "{mib} MiB {options:?}: {}", theirs.said);
        let report = assert_sound(&image);
        assert_eq!((report.inodes, report.directories, report.blocks), (1, 1, 2), "{mib} MiB");
    }
}
