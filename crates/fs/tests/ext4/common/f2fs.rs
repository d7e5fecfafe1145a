//! fsck.f2fs on what a device in memory holds. Where it is not installed nothing is checked, unless
//! `NANDSCAPE_REQUIRE_F2FS` is set.

use super::{Scratch, found, run, text};
use nandscape_block::{BlockDevice, Lba, MemDevice, SectorData, Tag};
use std::io::{Seek, SeekFrom, Write};

/// fsck.f2fs finds nothing on a medium.
pub(crate) fn assert_sound(medium: &MemDevice) {
    let required = std::env::var_os("NANDSCAPE_REQUIRE_F2FS").is_some();
    if !found("fsck.f2fs") {
        assert!(!required, "NANDSCAPE_REQUIRE_F2FS is set, but f2fs-tools are not installed");
        return;
    }
    let scratch = Scratch::new();
    let sectors = medium.caps().sectors;
    let path = scratch.image("f2fs", sectors * 4096);
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).expect("an image");
    for lba in 0..sectors {
        let content = medium.current(Lba(lba));
        if content != SectorData::Tag(Tag::ZERO) {
            let bytes = content.expand().expect("content is kept");
            file.seek(SeekFrom::Start(lba * 4096)).expect("a place");
            file.write_all(&*bytes).expect("a block");
        }
    }
    let checked = run("fsck.f2fs", &["--dry-run", "-d", "1", text(&path)]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(0), "fsck.f2fs: {said}");
    let faults = ["[ASSERT]", "[FIX]", "[Fail]", "Invalid"];
    assert!(!faults.iter().any(|fault| said.contains(fault)), "fsck.f2fs: {said}");
}
