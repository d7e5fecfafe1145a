//! Volumes that a kernel's F2FS filled: what we read of them without a mount is what the kernel read, and
//! our check finds nothing wrong.

use crate::common::Scratch;
use crate::common::examine::{assert_sound, on_image, try_dump};
use crate::common::image::content_of;
use crate::common::tree::{assert_same, shown};
use crate::common::volume::{loaded, run};
use crate::images::Volume;
use nandscape_fs::contract::Timestamp;
use nandscape_fs::f2fs::dump::DumpTarget;
use nandscape_fs::f2fs::format::{BLOCK_BYTES, Nid};
use nandscape_fs::f2fs::raw::{F2fsImage, has_magic};
use nandscape_fs::f2fs::{F2fs, MountOptions};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// An image of such a volume.
pub(crate) fn unpacked(scratch: &Scratch, volume: &Volume) -> PathBuf {
    let (count, blocks) = volume.blocks();
    let path = scratch.image("volume", u64::from(count) * BLOCK_BYTES as u64);
    let file = File::options().write(true).open(&path).expect("an image");
    for (at, block) in blocks {
        file.write_all_at(&block, u64::from(at) * BLOCK_BYTES as u64).expect("a block");
    }
    path
}

/// The lines of a manifest without comments.
fn lines(manifest: &str) -> Vec<&str> {
    manifest.lines().filter(|line| !line.starts_with('#')).collect()
}

/// Paths, attributes, content, blocks, times and extended attributes, of a volume that was unmounted, and of
/// one that lost power, as of its last checkpoint.
#[test]
fn trees_are_those_that_the_kernel_read() {
    for (volume, name) in [(Volume::CLEAN, "manifest"), (Volume::CUT, "before")] {
        let scratch = Scratch::new();
        let path = unpacked(&scratch, &volume);
        let ours = try_dump(&path, DumpTarget::Tree).expect("a tree");
        let theirs = volume.manifest(name);
        assert!(theirs.contains("xattr.") && theirs.lines().count() > 50, "{name}");
        for (ours, theirs) in lines(&ours).iter().zip(lines(&theirs)) {
            assert_eq!(*ours, theirs, "{name}");
        }
        assert_eq!(ours.lines().count(), lines(&theirs).len(), "{name}");
    }
}

/// A mount shows what the kernel read; after a cut, what the kernel's roll-forward made of the volume, but for the
/// times of directories.
#[test]
fn mounts_show_what_the_kernel_showed() {
    for (volume, name) in [(Volume::CLEAN, "manifest"), (Volume::CUT, "after")] {
        let scratch = Scratch::new();
        let path = unpacked(&scratch, &volume);
        let sectors = path.metadata().expect("an image").len() / BLOCK_BYTES as u64;
        let mut ours = run(async move |rt| {
            let device = loaded(&rt, sectors, &content_of(&path)).await.erased();
            let mounted = F2fs::mount(&rt, device, MountOptions::default()).await;
            shown(&mounted.expect("a mount").0).await
        });
        let theirs = volume.manifest(name);
        let recovered = theirs.lines().filter(|line| !line.starts_with('#'));
        for (ours, theirs) in ours.iter_mut().zip(recovered) {
            if name == "after" && ours.letter == 'd' {
                (ours.mtime, ours.ctime) = (time(theirs, "mtime"), time(theirs, "ctime"));
            }
        }
        assert_same(&ours, &theirs);
    }
}

/// A time in a line of a manifest.
fn time(line: &str, key: &str) -> Timestamp {
    let field = line.split(' ').find_map(|field| field.strip_prefix(key)?.strip_prefix('='));
    let (seconds, nanos) = field.and_then(|time| time.split_once('.')).expect("a time");
    let nanos = nanos.parse().expect("nanoseconds");
    Timestamp { seconds: seconds.parse().expect("seconds"), nanos }
}

/// Nothing is wrong with what a kernel wrote; nodes that wait to be rolled forward are no damage.
#[test]
fn volumes_of_the_kernel_are_sound() {
    for volume in [Volume::CLEAN, Volume::CUT] {
        let scratch = Scratch::new();
        let path = unpacked(&scratch, &volume);
        let report = assert_sound(&path);
        assert!(report.inodes > 50 && report.directories > 3, "{report:?}");
        assert!(on_image(&path, async |device| has_magic(&device).await).expect("a device"));
    }
}

/// An inode that is shown names what the raw reader sees of it.
#[test]
fn structures_are_shown() {
    let scratch = Scratch::new();
    let path = unpacked(&scratch, &Volume::CUT);
    let root = on_image(&path, async |device| {
        let image = F2fsImage::open(&device).await.expect("a volume");
        let root = image.inode(image.sb.root_ino).await.expect("the root");
        (root.inode.links, image.node(Nid(3)).await.expect("a node").entry.block_addr.0)
    });
    let shown = |what: &str| try_dump(&path, what.parse().expect("a structure")).expect("text");
    let has = |text: &str, name: &str, value: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert_eq!(line.trim_start_matches(name).trim(), value, "{name}\n{text}");
    };
    has(&shown("inode 3"), "links", &root.0.to_string());
    has(&shown("nat 3"), "block_addr", &root.1.to_string());
    has(&shown("node 3"), "offset", "0 (Inode)");
    has(&shown("super"), "supported", "yes");
    assert!(shown("checkpoint").contains("crc_recovery"));
    assert!(shown("sit 0").contains("valid blocks") && shown("ssa 0").contains("of "));
    assert!("inode".parse::<DumpTarget>().is_err() && "sit x".parse::<DumpTarget>().is_err());
}
