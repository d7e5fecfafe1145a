//! The stand on which a file system is tried: a device in memory with an image in it.

use crate::common::device::{OpenDevice, powered};
use crate::common::{Scratch, assert_clean, mke2fs};
use nandscape_block::{Lba, MemDevice, Payload, SectorData, Tag};
use nandscape_rt::{Handle, Nanos};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const SECTOR: usize = 4096;

/// A device in memory that holds the content of an image file.
pub(crate) async fn load(handle: &Handle, path: &Path) -> OpenDevice {
    let mut file = File::open(path).expect("an image");
    let sectors = file.metadata().expect("an image").len() / SECTOR as u64;
    let device = powered(handle, MemDevice::new(sectors).with_latency(Nanos::from_us(20)));
    let mut block = vec![0; SECTOR * 256];
    for first in (0..sectors).step_by(256) {
        let bytes = &mut block[..SECTOR * 256.min((sectors - first) as usize)];
        file.read_exact(bytes).expect("sectors of an image");
        for (index, sector) in bytes.chunks_exact(SECTOR).enumerate() {
            if sector.iter().any(|byte| *byte != 0) {
                let payload = Payload::from_bytes(sector).expect("a sector");
                device.write(Lba(first + index as u64), 1, payload).await.expect("a write");
            }
        }
    }
    device.flush().await.expect("a flush");
    device
}

/// Writes the device's content to an image file.
pub(crate) fn save(device: &OpenDevice, path: &Path) {
    let mut file = File::create(path).expect("a file");
    let sectors = device.caps().sectors;
    file.set_len(sectors * SECTOR as u64).expect("a sparse file");
    for lba in 0..sectors {
        let data = device.with(|device| device.medium.current(Lba(lba)));
        if data != SectorData::Tag(Tag::ZERO) {
            file.seek(SeekFrom::Start(lba * SECTOR as u64)).expect("a place");
            let bytes = data.expand().expect("content is kept");
            file.write_all(&bytes[..]).expect("a write");
        }
    }
}

/// A new image, made by mke2fs.
pub(crate) fn image(scratch: &Scratch, mib: u64, options: &[&str]) -> PathBuf {
    let path = scratch.image("image", mib << 20);
    mke2fs(&path, options);
    path
}

/// Saves the device's content and lets e2fsck look at it.
pub(crate) fn check(device: &OpenDevice, scratch: &Scratch) -> PathBuf {
    let path = scratch.path("result");
    save(device, &path);
    assert_clean(&path);
    path
}
