//! What mkfs makes, against mke2fs: e2fsck finds nothing, dumpe2fs prints the same, and with the same
//! identity and time the bytes are the same.

use crate::common::device::{OpenDevice, powered};
use crate::common::examine::assert_sound;
use crate::common::{Scratch, assert_clean, debugfs, e2fsprogs, mke2fs_at, output, text};
use nandscape_block::{
    AsyncDevice, BlockDevice, DeviceCaps, ImageDevice, Lba, MemDevice, Payload, SectorData, Tag,
};
use nandscape_fs::contract::{Allocate, Caller, Data, FileSystem, FsError, Io};
use nandscape_fs::ext4::format::{BLOCK_BYTES, Feature, Features, Timestamp};
use nandscape_fs::ext4::mkfs::{DEFAULT_FEATURES, MkfsError, MkfsOptions, mkfs};
use nandscape_fs::ext4::{Ext4, MountOptions};
use nandscape_rt::{Executor, Handle};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Larger images are not read as a whole.
const COMPARED_BYTES_MAX: u64 = 2 * GIB + 64 * MIB;
const NOW: i64 = 1_700_000_000;
const UUID: &str = "01234567-89ab-4def-8123-456789abcdef";
const HASH_SEED: &str = "fedcba98-7654-4210-8edc-ba9876543210";

fn options() -> MkfsOptions {
    let bytes =
        |uuid: &str| u128::from_str_radix(&uuid.replace('-', ""), 16).unwrap().to_be_bytes();
    MkfsOptions {
        uuid: bytes(UUID),
        hash_seed: bytes(HASH_SEED),
        now: Timestamp { seconds: NOW, nanos: 0 },
        fresh: true,
        ..MkfsOptions::new(1)
    }
}

/// Runs mkfs on a device.
fn make<D: BlockDevice + 'static>(device: D, options: &MkfsOptions) -> Result<(), MkfsError> {
    let mut executor = Executor::on_virtual_clock();
    let device = AsyncDevice::new(&executor.handle(), device);
    let options = options.clone();
    let made = executor.block_on(async move { mkfs(&device.erased(), &options).await });
    made.expect("mkfs ends").map(drop)
}

fn make_image(bytes: u64, options: &MkfsOptions, path: &Path) {
    let file =
        File::options().read(true).write(true).create(true).truncate(true).open(path).unwrap();
    file.set_len(bytes).unwrap();
    make(ImageDevice::new(file, bytes / BLOCK_BYTES as u64), options).expect("a file system");
}

/// What dumpe2fs prints, but for the count of KiB that mke2fs happened to write, and checksums over it.
fn dumped(path: &Path) -> String {
    let all = output("dumpe2fs", &[text(path)]);
    let same = |line: &&str| !line.starts_with("Lifetime writes") && !line.starts_with("Checksum:");
    all.lines().filter(same).collect::<Vec<_>>().join("\n")
}

/// Byte ranges that differ: block, first and last byte that does.
fn differences(a: &Path, b: &Path) -> Vec<(u64, usize, usize)> {
    let (a, b) = (File::open(a).unwrap(), File::open(b).unwrap());
    let len = a.metadata().unwrap().len();
    assert_eq!(len, b.metadata().unwrap().len());
    let mut found = Vec::new();
    let (mut left, mut right) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    for at in (0..len).step_by(1 << 20) {
        let size = (len - at).min(1 << 20) as usize;
        a.read_exact_at(&mut left[..size], at).unwrap();
        b.read_exact_at(&mut right[..size], at).unwrap();
        if left[..size] == right[..size] {
            continue;
        }
        let blocks = left[..size].chunks(BLOCK_BYTES).zip(right[..size].chunks(BLOCK_BYTES));
        for (index, (left, right)) in (at / BLOCK_BYTES as u64..).zip(blocks) {
            let differs = |at: &usize| left[*at] != right[*at];
            let mut differing = (0..left.len()).filter(differs);
            if let Some(first) = differing.next() {
                found.push((index, first, differing.next_back().unwrap_or(first)));
            }
        }
    }
    found
}

/// Superblocks differ in the KiB ever written, and in their checksum.
fn is_count_of_kib((block, first, last): &(u64, usize, usize), blocks_per_group: u64) -> bool {
    let at = if *block == 0 { 1024 } else { 0 };
    block % blocks_per_group == 0 && *first >= at + 0x178 && *last < at + 1024
}

/// Of a large journal mke2fs leaves old extents behind in the inode, which its checksum covers.
fn without_checksum(stat: &str) -> String {
    stat.lines().filter(|line| !line.starts_with("Inode checksum")).collect::<Vec<_>>().join("\n")
}

/// The number behind a field of what dumpe2fs prints.
fn number(dumped: &str, field: &str) -> u64 {
    let value = dumped.lines().find_map(|line| line.strip_prefix(field));
    value.and_then(|value| value.trim().parse().ok()).expect("a number")
}

fn compare(bytes: u64, ours: &MkfsOptions, theirs: &[&str]) {
    let scratch = Scratch::new();
    let (made, reference) = (scratch.path("ours"), scratch.image("theirs", bytes));
    make_image(bytes, ours, &made);
    let seed = format!("hash_seed={HASH_SEED}");
    mke2fs_at(NOW, &reference, &[&["-U", UUID, "-E", &seed], theirs].concat());
    let (our_dump, their_dump) = (dumped(&made), dumped(&reference));
    for (our, their) in our_dump.lines().zip(their_dump.lines()) {
        assert_eq!(our, their, "{bytes} bytes {theirs:?}");
    }
    assert_eq!(our_dump.len(), their_dump.len(), "{bytes} bytes {theirs:?}");
    for command in ["stat <2>", "stat <7>", "stat <8>", "stat <11>", "ex <8>"] {
        let [our, their] =
            [&made, &reference].map(|image| without_checksum(&debugfs(image, command)));
        assert_eq!(our, their, "{bytes} bytes: {command}");
    }
    assert_clean(&made);
    assert_sound(&made);
    if bytes > COMPARED_BYTES_MAX {
        return;
    }
    let differences = differences(&made, &reference);
    let per_group = number(&our_dump, "Blocks per group:");
    let unexpected: Vec<_> =
        differences.iter().filter(|d| !is_count_of_kib(d, per_group)).collect();
    assert!(unexpected.is_empty(), "{bytes} bytes {theirs:?}: {unexpected:?}");
}

/// Over all sizes at which mke2fs decides something, and around the ends of groups, the volume is
/// mke2fs's to the byte.
#[test]
fn volumes_are_those_of_mke2fs() {
    if !e2fsprogs() {
        return;
    }
    let sizes = [
        2 * MIB,
        5 * MIB,
        16 * MIB,
        128 * MIB,
        132 * MIB,
        300 * MIB,
        512 * MIB,
        GIB,
        2 * GIB + 7 * 4096,
        2 * GIB + 40 * MIB,
        9 * GIB,
        16 * GIB,
        33 * GIB,
        64 * GIB,
        65 * GIB + 3 * MIB,
        200 * GIB,
        1100 * GIB,
    ];
    for bytes in sizes {
        compare(bytes, &options(), &[]);
    }
}

/// With features on and off as well.
#[test]
fn features_are_those_of_mke2fs() {
    if !e2fsprogs() {
        return;
    }
    let lists = [
        "^64bit",
        "^metadata_csum",
        "^metadata_csum,uninit_bg",
        "^flex_bg",
        "^flex_bg,^resize_inode",
        "^dir_index",
        "^resize_inode",
        "^resize_inode,^sparse_super",
        "^has_journal",
        "^huge_file,^extra_isize,^dir_nlink,^large_file",
        "metadata_csum_seed",
        "^ext_attr",
    ];
    for list in lists {
        let mut features = DEFAULT_FEATURES;
        for name in list.split(',') {
            let feature = Features::named(name.trim_start_matches('^')).unwrap();
            features.set(feature, !name.starts_with('^'));
        }
        for bytes in [300 * MIB, 3 * GIB] {
            compare(bytes, &MkfsOptions { features, ..options() }, &["-O", list]);
        }
    }
}

/// Label, inodes, reserve and journal as asked for.
#[test]
fn options_are_those_of_mke2fs() {
    if !e2fsprogs() {
        return;
    }
    let label = MkfsOptions { label: "a label of 16 by".into(), ..options() };
    compare(GIB, &MkfsOptions { label: "a label".into(), ..label }, &["-L", "a label"]);
    let inodes = MkfsOptions { inode_bytes: 128, inode_ratio: Some(65_536), ..options() };
    compare(GIB, &inodes, &["-I", "128", "-i", "65536"]);
    let large = MkfsOptions { inode_bytes: 1024, ..options() };
    compare(GIB, &large, &["-I", "1024"]);
    compare(GIB, &MkfsOptions { reserved_percent: 17, ..options() }, &["-m", "17"]);
    let journal = MkfsOptions { journal_blocks: Some(51_200), ..options() };
    compare(4 * GIB, &journal, &["-J", "size=200"]);
}

/// A device of this many sectors, all of them written before.
async fn used_device(handle: &Handle, sectors: u64, discards: bool) -> OpenDevice {
    let caps = MemDevice::new(sectors).caps().clone();
    let discard_sectors = if discards { caps.discard_sectors } else { 0 };
    let device = MemDevice::with_caps(DeviceCaps { discard_sectors, ..caps });
    let device = powered(handle, device);
    for lba in 0..sectors {
        device.write(Lba(lba), 1, Payload::Run(Tag::new(lba + 1))).await.expect("a write");
    }
    device
}

/// What a file shows of blocks that were never written: zeroes, whatever the device held before; and a
/// file that is written stays what it is.
async fn use_files(fs: &Ext4) -> Result<(), FsError> {
    let caller = Caller::default();
    for number in 0..200_u64 {
        let name = format!("file{number}");
        let ino = fs.create(caller, fs.root(), name.as_bytes(), 0o644).await?.ino;
        let reserved = Allocate::Reserve { keep_size: false };
        fs.fallocate(caller, ino, reserved, 0, 64 << 10).await?;
        let page = Data::Sectors(Payload::Run(Tag::new((1 << 40) + number)), 1);
        fs.write(caller, ino, 8 << 10, page, Io::Buffered).await?;
        fs.write(caller, ino, 100 << 10, Data::Bytes(vec![7; 100]), Io::Buffered).await?;
        for (at, is_zero) in [(0, true), (8 << 10, false), (60 << 10, true), (96 << 10, true)] {
            let read = fs.read(caller, ino, at, 4_096, Io::Buffered).await?;
            assert_eq!(read.to_bytes().iter().all(|byte| *byte == 0), is_zero, "{name} at {at}");
        }
    }
    fs.syncfs(caller).await
}

/// Devices that hold something else are cleared: by discard, or where there is none or it is not wanted,
/// as far as it matters. What they held is never seen in files.
#[test]
fn used_devices_are_made_clean() {
    if !e2fsprogs() {
        return;
    }
    let sectors = 300 * MIB / BLOCK_BYTES as u64;
    let arms = [(true, true), (true, false), (false, true)].map(|(can, want)| (can, want, true));
    for (can, want, checksums) in
        arms.into_iter().chain([(true, true, false), (true, false, false)])
    {
        let scratch = Scratch::new();
        let path = scratch.image("image", 300 * MIB);
        let mut options = MkfsOptions { fresh: false, discard: want, ..options() };
        options.features.set(Feature::METADATA_CSUM, checksums);
        let mut executor = Executor::on_virtual_clock();
        let (handle, image) = (executor.handle(), File::options().write(true).open(&path).unwrap());
        let made = executor.block_on(async move {
            let device = used_device(&handle, sectors, can).await;
            mkfs(&device.erased(), &options).await.expect("a file system");
            let mounted = Ext4::mount(&handle, device.erased(), MountOptions::default()).await;
            let (fs, _) = mounted.expect("a mount");
            use_files(&fs).await.expect("files");
            fs.unmount().await.expect("an unmount");
            for lba in 0..sectors {
                let data = device.with(|device| device.medium.durable(Lba(lba)));
                let bytes = data.expand().expect("content is kept");
                image.write_all_at(&bytes[..], lba * BLOCK_BYTES as u64).unwrap();
            }
        });
        made.expect("mkfs ends");
        assert_clean(&path);
    }
}

/// Big volumes take few writes: nothing is written where nothing lies.
#[test]
fn big_volumes_take_few_writes() {
    let mut executor = Executor::on_virtual_clock();
    let device = powered(&executor.handle(), MemDevice::new(64 * GIB / 4096));
    let counted = device.clone();
    let made = executor.block_on(async move { mkfs(&device.erased(), &options()).await });
    made.expect("mkfs ends").expect("a file system");
    let written = counted.with(|device| {
        let data = (0..64 * GIB / 4096).map(|lba| device.medium.durable(Lba(lba)));
        data.filter(|data| !matches!(data, SectorData::Tag(_))).count()
    });
    assert!(written < 1_500, "{written} sectors");
}

/// What contradicts itself or is not supported is refused before anything is written.
#[test]
fn nonsense_is_refused() {
    let refusal = |sectors, options: MkfsOptions| {
        make(MemDevice::new(sectors), &options).expect_err("a refusal").to_string()
    };
    let with = |features: &[Feature]| {
        let mut all = DEFAULT_FEATURES;
        features.iter().for_each(|feature| all.set(*feature, true));
        MkfsOptions { features: all, ..options() }
    };
    assert!(
        refusal(100_000, with(&[Feature::BIGALLOC, Feature::CASEFOLD]))
            .contains("casefold, bigalloc")
    );
    assert!(refusal(100_000, with(&[Feature::NEEDS_RECOVERY])).contains("needs_recovery"));
    assert!(refusal(100_000, with(&[Feature::UNINIT_BG])).contains("choose one"));
    assert!(refusal(20, options()).contains("too few"));
    assert!(refusal(100, MkfsOptions { blocks: Some(101), ..options() }).contains("do not fit"));
    assert!(
        refusal(100_000, MkfsOptions { journal_blocks: Some(1_023), ..options() })
            .contains("journal")
    );
    assert!(refusal(100_000, MkfsOptions { label: "x".repeat(17), ..options() }).contains("label"));
    assert!(refusal(100_000, MkfsOptions { inode_bytes: 200, ..options() }).contains("inodes"));
}
