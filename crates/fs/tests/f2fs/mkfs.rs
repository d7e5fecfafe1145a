//! What mkfs makes, against mkfs.f2fs: with the same identity, time and checkpoint version the bytes are
//! the same but for the kernel's name, what mkfs.f2fs refuses is refused, and fsck.f2fs finds nothing.

use crate::common::{Scratch, assert_clean, f2fs_tools, run, sparse, text};
use nandscape_block::{
    AsyncDevice, Bio, BlockDevice, Completion, DeviceCaps, ImageDevice, MemDevice, Op, Submit,
    Token,
};
use nandscape_fs::f2fs::format::*;
use nandscape_fs::f2fs::mkfs::{MkfsError, MkfsOptions, least_sectors, mkfs, plan};
use nandscape_rt::{Executor, Nanos};
use std::cell::RefCell;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::rc::Rc;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const UUID: &str = "01234567-89ab-4def-8123-456789abcdef";
/// What `mkfs.f2fs -r` takes as the first checkpoint's version: glibc's first number from seed 0.
const FIXED_VER: u64 = 1_804_289_383;
const ALL_FEATURES: &str =
    "extra_attr,inode_checksum,flexible_inline_xattr,inode_crtime,sb_checksum,lost_found";

fn options() -> MkfsOptions {
    let uuid = u128::from_str_radix(&UUID.replace('-', ""), 16).expect("a number");
    MkfsOptions {
        uuid: uuid.to_be_bytes(),
        checkpoint_ver: FIXED_VER,
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

/// Runs mkfs on a file that is there.
fn make_image(path: &Path, options: &MkfsOptions) {
    let file = File::options().read(true).write(true).open(path).expect("an image");
    let sectors = file.metadata().expect("a size").len() / BLOCK_BYTES as u64;
    make(ImageDevice::new(file, sectors), options).expect("a file system");
}

/// Runs mkfs.f2fs; whether it made a file system.
fn theirs(image: &Path, arguments: &[&str]) -> bool {
    let fixed = ["-q", "-f", "-r", "-T", "0", "-U", UUID, "-R", "0:0"];
    run("mkfs.f2fs", &[&fixed, arguments, &[text(image)]].concat()).status.success()
}

/// The superblock of mkfs.f2fs with our names of the kernel, and with the checksum over them.
fn with_our_version(block: &mut [u8; BLOCK_BYTES], ours: &[u8; BLOCK_BYTES]) {
    let ours = Superblock::parse(&ours[SUPERBLOCK_AT..], 0).expect("our superblock");
    let theirs = Superblock::parse(&block[SUPERBLOCK_AT..], 0).expect("their superblock");
    let Superblock { version, init_version, .. } = ours;
    Superblock { version, init_version, ..theirs }.encode(&mut block[SUPERBLOCK_AT..]);
}

/// Bytes that differ in a block: the first and the last.
fn difference(a: &[u8; BLOCK_BYTES], b: &[u8; BLOCK_BYTES]) -> (usize, usize) {
    let mut differ = (0..BLOCK_BYTES).filter(|at| a[*at] != b[*at]);
    let first = differ.next().unwrap_or(BLOCK_BYTES);
    (first, differ.next_back().unwrap_or(first))
}

/// Makes a volume of this size twice and compares every byte; `None` if both refuse it.
fn compare(bytes: u64, options: &MkfsOptions, arguments: &[&str]) -> Option<Scratch> {
    let scratch = Scratch::new();
    let (ours, reference) = (scratch.image("ours", bytes), scratch.image("theirs", bytes));
    let what = format!("{bytes} bytes {arguments:?}");
    let made = theirs(&reference, arguments);
    let planned = plan(options, bytes / BLOCK_BYTES as u64);
    assert_eq!(planned.is_ok(), made, "{what}: {planned:?}");
    planned.ok()?;
    make_image(&ours, options);
    // Few blocks are written, whatever the size.
    let allocated = ours.metadata().expect("a size").blocks() * 512;
    assert!(allocated < 256 << 10, "{what}: {allocated} bytes are allocated");
    let (left, mut right) = (sparse::blocks(&ours), sparse::blocks(&reference));
    for copy in 0..2 {
        with_our_version(right.get_mut(&copy).expect("a superblock"), &left[&copy]);
    }
    let numbers = |blocks: &std::collections::BTreeMap<u64, _>| -> Vec<u64> {
        blocks.keys().copied().collect()
    };
    assert_eq!(numbers(&left), numbers(&right), "{what}: blocks that are not zeroes");
    let differing = left.iter().zip(&right).filter(|((_, a), (_, b))| a != b);
    let differing: Vec<_> = differing.map(|((at, a), (_, b))| (*at, difference(a, b))).collect();
    assert!(differing.is_empty(), "{what}: blocks and bytes {differing:?}");
    Some(scratch)
}

/// Over sizes of every order, with sections of 1, 4 and 16 segments, the volume is mkfs.f2fs's to the
/// byte: small ones, whose overprovision is searched in coarse steps; sizes that are no multiple of
/// anything; one whose SIT bitmap needs payload.
#[test]
fn volumes_are_those_of_mkfs_f2fs() {
    if !f2fs_tools() {
        return;
    }
    let sizes = [
        52 * MIB,
        64 * MIB,
        127 * MIB + 3 * 4096,
        500 * MIB,
        514 * MIB,
        GIB,
        2 * GIB + 7 * 4096,
        4 * GIB,
        10 * GIB,
        16 * GIB,
        40 * GIB,
        100 * GIB,
        256 * GIB,
        3 * TIB + 512 * GIB,
    ];
    let mut made = 0;
    for segments_per_section in [1, 4, 16] {
        let options = MkfsOptions { segments_per_section, ..options() };
        let sections = segments_per_section.to_string();
        for bytes in sizes {
            made += u32::from(compare(bytes, &options, &["-s", &sections]).is_some());
        }
    }
    // Of sections of 4 and 16 segments mkfs.f2fs refuses the three smallest sizes.
    assert_eq!(made, 3 * 14 - 2 * 3);
    let large = plan(&options(), (3 * TIB + 512 * GIB) / BLOCK_BYTES as u64).expect("a plan");
    assert!(large.superblock.cp_payload > 0);
}

/// Features that are supported change what mkfs.f2fs changes, and fsck.f2fs finds nothing wrong.
#[test]
fn features_are_those_of_mkfs_f2fs() {
    if !f2fs_tools() {
        return;
    }
    let sets = [
        "extra_attr",
        "lost_found",
        "sb_checksum",
        "extra_attr,inode_checksum",
        "extra_attr,flexible_inline_xattr",
        "extra_attr,inode_crtime",
        ALL_FEATURES,
    ];
    for set in sets {
        let named = set.split(',').map(|name| Features::named(name).expect("a feature"));
        let features = named.fold(Features::default(), Features::with);
        for (sections, bytes) in [("1", 100 * MIB), ("4", GIB), ("16", 16 * GIB)] {
            let segments_per_section = sections.parse().expect("a number");
            let options = MkfsOptions { features, segments_per_section, ..options() };
            let scratch = compare(bytes, &options, &["-O", set, "-s", sections]);
            assert_clean(&scratch.expect("a file system").path("ours"));
        }
    }
}

/// Label, zones, overprovision, heap, owner and time as asked for.
#[test]
fn options_are_those_of_mkfs_f2fs() {
    if !f2fs_tools() {
        return;
    }
    let made = |options: MkfsOptions, arguments: &[&str]| {
        compare(GIB, &options, arguments).expect("a file system");
    };
    made(MkfsOptions { label: "a läbel 𝄞".into(), ..options() }, &["-l", "a läbel 𝄞"]);
    let zones = MkfsOptions { segments_per_section: 2, sections_per_zone: 3, ..options() };
    made(zones.clone(), &["-s", "2", "-z", "3"]);
    made(MkfsOptions { heap: true, ..zones }, &["-s", "2", "-z", "3", "-a", "1"]);
    made(MkfsOptions { overprovision: Some(12.5), ..options() }, &["-o", "12.5"]);
    made(MkfsOptions { now_s: 1_700_000_000, ..options() }, &["-T", "1700000000"]);
    made(MkfsOptions { root: (1000, 100), ..options() }, &["-R", "1000:100"]);
}

/// Every size of whole segments up to some is refused if mkfs.f2fs refuses it, and made if it makes it.
#[test]
fn sizes_are_refused_as_mkfs_f2fs_refuses_them() {
    if !f2fs_tools() {
        return;
    }
    let scratch = Scratch::new();
    let mut both = [0, 0];
    for (sections, step, last) in [(1, 2, 72), (4, 6, 210), (16, 32, 700), (3, 14, 140)] {
        let options = MkfsOptions { segments_per_section: sections, ..options() };
        for size in (step..=last).step_by(step as usize) {
            let image = scratch.image("image", size * MIB);
            let made = theirs(&image, &["-s", &sections.to_string()]);
            let planned = plan(&options, size * MIB / BLOCK_BYTES as u64);
            assert_eq!(planned.is_ok(), made, "{size} MiB, -s {sections}: {planned:?}");
            both[usize::from(made)] += 1;
        }
    }
    assert!(both[0] > 40 && both[1] > 20, "{both:?}");
    let beyond = 16 * TIB / BLOCK_BYTES as u64 + 1;
    assert!(matches!(plan(&options(), beyond), Err(MkfsError::Options(_))));
}

/// With few segments reserved, volumes are smaller than mkfs.f2fs makes them, down to the nine sections
/// that the kernel asks for; fsck.f2fs finds nothing wrong with them. One zone less is refused.
#[test]
fn small_volumes_are_sound() {
    let rows = [
        // Areas of seven segments after the one of the superblocks, and nine sections.
        (1, Some(2), 17),
        (1, Some(3), 17),
        (1, Some(4), 18),
        (1, Some(8), 22),
        (1, None, 26),
        (2, Some(4), 2 + 8 + 2 * 9),
        (4, Some(8), 4 + 8 + 4 * 9),
    ];
    for (segments_per_section, reserved_segments, segments) in rows {
        let overprovision = reserved_segments.map(|_| 1.0);
        let small = MkfsOptions { segments_per_section, overprovision, ..options() };
        let options = MkfsOptions { reserved_segments, features: SUPPORTED, ..small };
        let sectors = least_sectors(&options).expect("a size");
        assert_eq!(sectors, segments * 512, "{segments_per_section} {reserved_segments:?}");
        let less = sectors - 512 * u64::from(segments_per_section);
        assert!(plan(&options, less).is_err());
        if f2fs_tools() {
            let scratch = Scratch::new();
            let image = scratch.image("image", sectors * BLOCK_BYTES as u64);
            make_image(&image, &options);
            assert_clean(&image);
        }
    }
    let one = MkfsOptions { reserved_segments: Some(1), ..options() };
    assert!(least_sectors(&one).expect_err("a refusal").to_string().contains("reserved"));
}

/// A device that held something else is cleared as far as a mount reads it: fsck.f2fs finds nothing.
#[test]
fn used_devices_are_made_clean() {
    if !f2fs_tools() {
        return;
    }
    let scratch = Scratch::new();
    let image = scratch.path("image");
    std::fs::write(&image, vec![0xa5; 200 * MIB as usize]).expect("an image");
    let features = SUPPORTED;
    make_image(&image, &MkfsOptions { fresh: false, discard: false, features, ..options() });
    assert_clean(&image);
    let file = File::open(&image).expect("an image");
    let mut block = [0; BLOCK_BYTES];
    let plan = plan(&options(), 200 * MIB / BLOCK_BYTES as u64).expect("a plan");
    let warm = plan.layout.segment_blocks(plan.log(SegmentType::WarmNode)).start.0;
    for (at, byte) in [(warm, 0), (warm + 1, 0xa5)] {
        file.read_exact_at(&mut block, u64::from(at) * BLOCK_BYTES as u64).expect("a block");
        assert!(block.iter().all(|found| *found == byte), "block {at}");
    }
    let pack = u64::from(plan.layout.pack(0).0) * BLOCK_BYTES as u64;
    file.read_exact_at(&mut block, pack).expect("a block");
    assert!(!Checkpoint::parse(&block, 0).expect("a checkpoint").has(CP_TRIMMED));
}

/// NAT bits can be left out: the checkpoint says so, the place of the bits is empty, and fsck.f2fs finds
/// nothing.
#[test]
fn nat_bits_can_be_left_out() {
    if !f2fs_tools() {
        return;
    }
    for nat_bits in [true, false] {
        let scratch = Scratch::new();
        let image = scratch.image("image", 100 * MIB);
        let options = MkfsOptions { nat_bits, ..options() };
        make_image(&image, &options);
        assert_clean(&image);
        let (blocks, plan) = (sparse::blocks(&image), plan(&options, 100 * 256).expect("a plan"));
        let checkpoint = Checkpoint::parse(&blocks[&u64::from(plan.layout.pack(0).0)][..], 0);
        let checkpoint = checkpoint.expect("a checkpoint");
        assert_eq!(checkpoint.has(CP_NAT_BITS), nat_bits);
        let place = plan.layout.nat_bits(0, checkpoint.cp_pack_total_block_count);
        assert_eq!(blocks.contains_key(&place.expect("room").0.into()), nat_bits);
    }
}

/// A bio that reached a device: what, and where.
type Seen = Rc<RefCell<Vec<(Op, u64)>>>;

/// A device that notes its bios.
struct Recorder(MemDevice, Seen);

impl BlockDevice for Recorder {
    fn caps(&self) -> &DeviceCaps {
        self.0.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.1.borrow_mut().push((bio.op, bio.lba.0));
        self.0.submit(now, bio, token)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.0.advance(now, done);
    }
}

/// Old superblocks are void before anything else is written, and the new ones are written after all of
/// it is on the medium: at no time does a half-made file system look like one.
#[test]
fn superblocks_are_written_last() {
    for (discard, first) in [(true, Op::Discard), (false, Op::Write)] {
        let seen = Seen::default();
        let device = Recorder(MemDevice::new(100 * MIB / BLOCK_BYTES as u64), seen.clone());
        make(device, &MkfsOptions { fresh: false, discard, ..options() }).expect("a file system");
        let seen = seen.borrow();
        assert_eq!(seen[..2], [(Op::Write, 0), (Op::Flush, 0)]);
        assert_eq!(seen[2].0, first);
        let (all, end) = seen.split_at(seen.len() - 3);
        assert_eq!(end, [(Op::Flush, 0), (Op::Write, 0), (Op::Flush, 0)]);
        let early = all[2..].iter().filter(|(op, at)| *op == Op::Write && *at < 2);
        assert_eq!(early.count(), 0, "discard: {discard}");
    }
}

/// What contradicts itself or is not supported is refused before anything is written.
#[test]
fn nonsense_is_refused() {
    let refusal = |sectors, options: MkfsOptions| {
        make(MemDevice::new(sectors), &options).expect_err("a refusal").to_string()
    };
    let with = |feature| MkfsOptions { features: SUPPORTED.with(feature), ..options() };
    assert!(refusal(100_000, with(Feature::CASEFOLD)).contains("casefold"));
    assert!(refusal(100_000, with(Feature::COMPRESSION)).contains("compression"));
    let hanging = Features::of(&[Feature::INODE_CRTIME]);
    assert!(
        refusal(100_000, MkfsOptions { features: hanging, ..options() }).contains("extra_attr")
    );
    assert!(refusal(1_000, options()).contains("too small"));
    assert!(
        refusal(100_000, MkfsOptions { label: "x".repeat(513), ..options() }).contains("label")
    );
    let version = "x".repeat(253);
    assert!(refusal(100_000, MkfsOptions { version, ..options() }).contains("version"));
    for percent in [0.0, 100.0, f64::NAN] {
        let options = MkfsOptions { overprovision: Some(percent), ..options() };
        assert!(refusal(100_000, options).contains("overprovision"));
    }
    for [segments_per_section, sections_per_zone] in [[0, 1], [1, 0], [u32::MAX, 2]] {
        let options = MkfsOptions { segments_per_section, sections_per_zone, ..options() };
        assert!(refusal(100_000, options).contains("zone"));
    }
    let options = MkfsOptions { reserved_segments: Some(0), ..options() };
    assert!(refusal(100_000, options).contains("reserved"));
}
