//! Between devices in memory and image files.

use nandscape_block::{AsyncDevice, BlockDevice, Lba, MemDevice, Payload, SectorData, Tag};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a sector.
const SECTOR: u64 = 4_096;

/// What a device holds, as far as it is not zeroes.
pub(crate) type Content = BTreeMap<u64, SectorData>;

/// Writes content to a sparse file of its length.
pub(crate) fn save_content(content: &Content, path: &Path) {
    let file = File::options().write(true).open(path).expect("an image");
    for (at, sector) in content {
        let block = sector.expand().expect("content is kept");
        file.write_all_at(&*block, at * SECTOR).expect("a block");
    }
}

/// What a device in memory holds.
pub(crate) fn content(device: &AsyncDevice<MemDevice>) -> Content {
    device.with(|medium| sectors(medium))
}

/// The same of the device itself.
pub(crate) fn sectors(medium: &MemDevice) -> Content {
    let all = (0..medium.caps().sectors).map(|at| (at, medium.current(Lba(at))));
    all.filter(|(_, content)| *content != SectorData::Tag(Tag::ZERO)).collect()
}

/// What an image file holds.
pub(crate) fn content_of(path: &Path) -> Content {
    let blocks = super::sparse::blocks(path).into_iter();
    blocks.map(|(at, bytes)| (at, SectorData::Bytes(Arc::from(bytes)))).collect()
}

/// Writes content to a device.
pub(crate) async fn put(device: &AsyncDevice, content: &Content) {
    for (at, sector) in content {
        let payload = Payload::collect(vec![sector.clone()]);
        device.write(Lba(*at), 1, payload).await.expect("a write");
    }
    device.flush().await.expect("a flush");
}
