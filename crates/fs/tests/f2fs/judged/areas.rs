//! Volumes with the area of a GC journal, unmarked, marked, and with a mark on one copy of the superblock. The
//! kernel mounts or refuses them, and fills those without a mark. The file `areas` has a line for each: its
//! name, and the first block of the area.

use super::{folder, manifest, write_text};
use crate::common::examine::{assert_sound, on_image};
use crate::common::{assert_clean, f2fs_tools};
use nandscape_block::{AsyncDevice, BlockDevice, ImageDevice, Lba, Payload};
use nandscape_fs::f2fs::format::*;
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_rt::Executor;
use std::fmt::Write;
use std::fs::File;

/// Copies of the superblock that are marked, with the name of that.
const MARKS: [(&str, &[u32]); 4] =
    [("plain", &[]), ("marked", &[1, 0]), ("first", &[0]), ("second", &[1])];

/// Makes a volume of a file, its area full of blocks of a former checkpoint; gives the area's first block.
async fn make_area<D: BlockDevice + 'static>(
    device: AsyncDevice<D>,
    options: MkfsOptions,
    marked: &[u32],
) -> u32 {
    let device = device.erased();
    let area = mkfs(&device, &options).await.expect("a volume").gc_journal().expect("an area");
    let write = async |at: u32, block: [u8; BLOCK_BYTES]| {
        let payload = Payload::from_bytes(&block).expect("a block");
        device.write(Lba(at.into()), 1, payload).await.expect("a write");
    };
    for index in 0..GC_JOURNAL_BLOCKS {
        let mut block = [0; BLOCK_BYTES];
        SafeBlock { checkpoint_ver: 1, index, ..SafeBlock::default() }.encode(&mut block);
        write(area.block(index).expect("a block").0, block).await;
    }
    for copy in marked {
        let image = F2fsImage::open(&device).await.expect("a volume");
        let mut block = *image.reader().block((*copy).into()).await.expect("a superblock");
        mark(&mut block[SUPERBLOCK_AT..], *copy, GcJournalFormat::Safe).expect("a mark");
        write(*copy, block).await;
    }
    device.flush().await.expect("a flush");
    area.blocks().start.0
}

#[test]
#[ignore = "makes volumes for tests/kernel-f2fs/check.py"]
fn make() {
    assert!(f2fs_tools(), "f2fs-tools are needed");
    let mut list = String::new();
    for (features, set) in [("", Features::default()), ("-checksum", SUPPORTED)] {
        for segments_per_section in [1, 4] {
            for (kind, marked) in MARKS {
                let name = format!("area-{kind}-{segments_per_section}{features}");
                let path = folder().join(format!("{name}.img"));
                let sectors = if segments_per_section == 1 { 25_603 } else { 76_805 };
                let open = File::options().read(true).write(true).create_new(true).open(&path);
                let file = open.expect("an image");
                file.set_len(sectors * BLOCK_BYTES as u64).expect("a sparse file");
                let base = MkfsOptions {
                    features: set,
                    gc_journal: true,
                    fresh: true,
                    ..MkfsOptions::new(7)
                };
                let options = MkfsOptions { segments_per_section, ..base };
                let mut executor = Executor::on_virtual_clock();
                let device = AsyncDevice::new(&executor.handle(), ImageDevice::new(file, sectors));
                let made = executor.block_on(make_area(device, options, marked));
                let _ = writeln!(list, "{name} {}", made.expect("mkfs ends"));
            }
        }
    }
    write_text("areas", &list);
    assert_eq!(list.lines().count(), 16);
}

/// What the kernel has filled is sound for us, has its area, and no mark.
#[test]
#[ignore = "reads volumes for tests/kernel-f2fs/check.py"]
fn read() {
    let areas = std::fs::read_to_string(folder().join("areas")).expect("a list");
    let mut count = 0;
    for name in areas.lines().filter_map(|line| line.split(' ').next()) {
        if name.starts_with("area-marked") {
            continue;
        }
        let path = folder().join(format!("{name}.img"));
        assert_clean(&path);
        assert!(assert_sound(&path).inodes > 50, "{name} was filled");
        let (live, marked, manifest) = on_image(&path, async |device| {
            let image = F2fsImage::open(&device).await.expect("a volume");
            assert!(image.sb.gc_journal().is_some());
            (image.gc_journal_live, image.sb.is_marked(), manifest(&device).await)
        });
        assert_eq!((live, marked), (None, false), "{name}");
        write_text(&format!("{name}.manifest"), &manifest);
        count += 1;
    }
    assert_eq!(count, 12);
}
