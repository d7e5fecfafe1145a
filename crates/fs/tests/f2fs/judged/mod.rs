//! Volumes that our F2FS and a kernel's both read and change, for `tests/kernel-f2fs/check.py --ours`, which
//! runs these tests between its boots.
//!
//! The folder of the volumes is `NANDSCAPE_F2FS_JUDGED`. [`ours`] makes volumes there that the kernel judges;
//! [`theirs`] reads, recovers and changes volumes that the kernel has filled. Beside each image lies what we
//! show of it as a manifest.

mod areas;
mod ours;
mod theirs;
mod zoned;

use crate::common::image::{Content, save_content};
use crate::common::tree::{assert_same, shown};
use nandscape_block::AsyncDevice;
use nandscape_fs::contract::FileSystem;
use nandscape_fs::f2fs::dump::{DumpTarget, dump};
use nandscape_fs::f2fs::{F2fs, MountOptions, MountReport};
use nandscape_rt::Handle;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Where the volumes are.
fn folder() -> PathBuf {
    let folder = std::env::var_os("NANDSCAPE_F2FS_JUDGED");
    PathBuf::from(folder.expect("NANDSCAPE_F2FS_JUDGED is a folder for volumes"))
}

/// Writes a volume of so many sectors to `NAME.img`.
fn write_image(name: &str, sectors: u64, content: &Content) -> PathBuf {
    let path = folder().join(format!("{name}.img"));
    let file = File::create(&path).expect("an image");
    file.set_len(sectors * 4_096).expect("a sparse file");
    save_content(content, &path);
    path
}

/// Writes a manifest, or another text.
fn write_text(name: &str, text: &str) {
    std::fs::write(folder().join(name), text).expect("a file");
}

/// Sectors of an image file.
fn sectors_of(path: &Path) -> u64 {
    path.metadata().expect("an image").len() / 4_096
}

/// The tree of a volume that is not mounted, read without a mount.
async fn manifest(device: &AsyncDevice) -> String {
    let manifest = dump(device, DumpTarget::Tree).await.expect("a tree").text;
    assert!(!manifest.contains("\n#"), "what cannot be read: {manifest}");
    manifest
}

/// Unmounts; what the mount showed is what a reader without a mount sees then. Returns that.
async fn unmount(device: &AsyncDevice, fs: &F2fs) -> String {
    let shown = shown(fs).await;
    fs.unmount().await.expect("an unmount");
    let manifest = manifest(device).await;
    assert_same(&shown, &manifest);
    manifest
}

/// What our recovery makes of a volume, with what mount found to do.
async fn recover(
    device: &AsyncDevice,
    rt: &Handle,
    options: &MountOptions,
) -> (MountReport, String) {
    let (fs, report) =
        F2fs::mount(rt, device.clone(), options.clone()).await.expect("a mount that recovers");
    (report, unmount(device, &fs).await)
}
