//! Damage case by case: what a damaged volume says where it would lead calls astray, structure by
//! structure, and that nothing else of it suffers.

use super::{DEADLINE, IJOURNAL, ME, PAGE, Sector, load, tags};
use crate::common::device::{Device, content, medium, on_device, powered};
use crate::common::image::Image;
use nandscape_block::Fua;
use nandscape_fs::contract::{Data, FileSystem, FsError, Ino, Io, RenameMode};
use nandscape_fs::ext4::format::*;
use nandscape_fs::ext4::mkfs::{DEFAULT_FEATURES, MkfsOptions, mkfs};
use nandscape_fs::ext4::{Ext4, MountOptions};
use nandscape_rt::combine::{join2, timeout};
use nandscape_rt::{Executor, Handle, Nanos};

const BLOCKS: u64 = 4_096;
/// What stands on the volume: `file` of two pages, `dir` with `below` with `last` in it, and `other`.
const FILE: u32 = 12;
const DIR: u32 = 13;
const BELOW: u32 = 14;
const LAST: u32 = 15;
const OTHER: u32 = 16;

fn volume() -> Image {
    volume_with(DEFAULT_FEATURES.without(Features::of(&[Feature::METADATA_CSUM])))
}

fn volume_with(features: Features) -> Image {
    let work = async move |rt: Handle, device: Device| {
        let options = MkfsOptions { features, fresh: true, ..MkfsOptions::new(1) };
        mkfs(&device, &options).await.expect("a file system");
        let (fs, _) = Ext4::mount(&rt, device, MountOptions::default()).await.expect("a mount");
        let root = fs.root();
        let file = fs.create(ME, root, b"file", 0o644).await.expect("room").ino;
        let dir = fs.mkdir(ME, root, b"dir", 0o755).await.expect("room").ino;
        let below = fs.mkdir(ME, dir, b"below", 0o755).await.expect("room").ino;
        let last = fs.mkdir(ME, below, b"last", 0o755).await.expect("room").ino;
        let other = fs.mkdir(ME, root, b"other", 0o755).await.expect("room").ino;
        assert_eq!([file, dir, below, last, other], [FILE, DIR, BELOW, LAST, OTHER].map(at));
        fs.write(ME, file, 0, tags(1, 2), Io::Buffered).await.expect("room");
        fs.unmount().await.expect("an unmount");
    };
    let (_, left, _) = on_device(medium(BLOCKS, Fua::Honoured), None, 0, work);
    Image::of(content(&left))
}

/// The sectors of an image that are not zeroes.
fn sectors_of(image: &Image) -> Vec<(u64, Sector)> {
    let sectors = image.bytes.chunks_exact(PAGE as usize).enumerate();
    let sectors =
        sectors.map(|(lba, bytes)| (lba as u64, Sector::try_from(bytes).expect("a sector")));
    sectors.filter(|(_, bytes)| bytes.iter().any(|byte| *byte != 0)).collect()
}

/// Mounts an image and does something there, or tells why it cannot be mounted.
fn on<T: 'static>(
    image: &Image,
    options: MountOptions,
    work: impl AsyncFnOnce(&Ext4) -> Result<T, FsError> + 'static,
) -> Result<T, FsError> {
    let sectors = sectors_of(image);
    let mounted = async move |rt: Handle, device: Device| {
        load(&device, sectors).await;
        let (fs, _) = Ext4::mount(&rt, device, options).await?;
        timeout(&rt, DEADLINE, work(&fs)).await.expect("no call waits for ever")
    };
    on_device(medium(BLOCKS, Fua::Honoured), None, 0, mounted).0
}

fn at(number: u32) -> Ino {
    Ino(number.into())
}

fn block(image: &mut Image, block: u64) -> &mut [u8] {
    &mut image.bytes[(block * PAGE) as usize..][..PAGE as usize]
}

fn edit_inode(image: &mut Image, number: u32, edit: impl FnOnce(&mut Inode)) {
    let mut inode = image.inode(number);
    edit(&mut inode);
    let place = image.sb.inode_place(number).expect("an inode");
    let table = image.descriptor(place.group).inode_table + place.block(&image.sb);
    let (from, bytes) = (place.offset(&image.sb), image.sb.inode_bytes());
    inode.encode(&mut block(image, table)[from..from + bytes], None);
}

fn edit_group(image: &mut Image, edit: impl FnOnce(&mut GroupDescriptor)) {
    let mut desc = image.descriptor(0);
    edit(&mut desc);
    let (first, from) = image.sb.desc_place(0);
    let sb = image.sb.clone();
    desc.encode(&mut block(image, first)[from..from + sb.desc_bytes()], 0, &sb);
}

/// Leads a name elsewhere.
fn retarget(image: &mut Image, dir: u32, name: &[u8], inode: u32) {
    let names = image.data_blocks(dir)[0];
    let names = block(image, names);
    let found = search_name(names, name, false).expect("the name");
    retarget_entry(names, found.at, inode, 2);
}

/// Says that an inode is free, wherever else it stands.
fn free(image: &mut Image, number: u32) {
    let place = image.sb.inode_place(number).expect("an inode");
    let bitmap = image.descriptor(place.group).inode_bitmap;
    block(image, bitmap)[place.index as usize / 8] &= !(1 << (place.index % 8));
}

fn corrupt(what: &'static str, place: &str) -> FsError {
    FsError::Corrupt { what, place: place.to_owned() }
}

/// A file whose inode counts as free keeps it, and its content.
#[test]
fn inodes_in_use() {
    let mut image = volume();
    free(&mut image, FILE);
    let work = async |fs: &Ext4| {
        fs.write(ME, at(FILE), 0, tags(7, 1), Io::Buffered).await?;
        let made = fs.create(ME, fs.root(), b"new", 0o644).await.map(drop);
        fs.fsync(ME, at(FILE)).await?;
        Ok((made, fs.read(ME, at(FILE), 0, PAGE, Io::Direct).await?))
    };
    let (made, read) = on(&image, MountOptions::default(), work).expect("a file");
    let what = "inode bitmap: an inode in use is free";
    assert_eq!(made, Err(corrupt(what, "inode 12")));
    assert_eq!(read, tags(7, 1));
}

/// What a checksum is wrong of is not believed later either.
#[test]
fn bitmaps_with_wrong_checksums() {
    let mut image = volume_with(DEFAULT_FEATURES);
    free(&mut image, FILE);
    let work = async |fs: &Ext4| {
        for name in [b"a", b"b", b"c"] {
            let made = fs.create(ME, fs.root(), name, 0o644).await.map(drop);
            assert_eq!(made, Err(corrupt("checksum", "inode bitmap of group 0")));
        }
        Ok(())
    };
    on(&image, MountOptions::default(), work).expect("a mount");
}

/// Inodes whose size or blocks no file can have are not files.
#[test]
fn inodes() {
    let own = volume().descriptor(0).inode_table;
    let only = |start| {
        ExtentEntries::Leaf(vec![Extent { logical: 0, blocks: 2, start, unwritten: false }])
    };
    let below =
        |node| ExtentEntries::Index { depth: 1, entries: vec![ExtentIndex { logical: 0, node }] };
    let nobodys = "blocks that no file can have";
    for (entries, size, what) in [
        (only(own + 1), 8192, nobodys),
        (only(BLOCKS - 1), 8192, nobodys),
        (below(own), 8192, nobodys),
        (below(BLOCKS), 8192, nobodys),
        (only(own + 200), 1 << 60, "size beyond the last block of a file"),
    ] {
        let mut image = volume();
        edit_inode(&mut image, FILE, |inode| {
            inode.size = size;
            ExtentNode { entries, ..ExtentNode::empty_root() }.encode(&mut inode.map);
        });
        let said = on(&image, MountOptions::default(), async |fs| fs.getattr(ME, at(FILE)).await);
        assert_eq!(said, Err(corrupt(what, "inode 12")));
    }
    let mut image = volume();
    edit_inode(&mut image, FILE, |inode| inode.file_acl = own);
    let said = on(&image, MountOptions::default(), async |fs| fs.listxattr(ME, at(FILE)).await);
    assert_eq!(said, Err(corrupt(nobodys, &format!("inode 12, block {own}"))));
}

/// Nor may a leaf further down the tree lead there.
#[test]
fn leaves() {
    let mut image = volume();
    let (own, node) = (image.descriptor(0).inode_table, image.data_blocks(FILE)[0]);
    let leaf = vec![Extent { logical: 0, blocks: 1, start: own, unwritten: false }];
    ExtentNode::block_of(ExtentEntries::Leaf(leaf)).encode(block(&mut image, node));
    edit_inode(&mut image, FILE, |inode| {
        let entries =
            ExtentEntries::Index { depth: 1, entries: vec![ExtentIndex { logical: 0, node }] };
        ExtentNode { entries, ..ExtentNode::empty_root() }.encode(&mut inode.map);
    });
    let options = MountOptions::default();
    let said = on(&image, options, async |fs| fs.read(ME, at(FILE), 0, PAGE, Io::Buffered).await);
    let place = format!("inode 12, block {node}");
    assert_eq!(said, Err(corrupt("blocks that no file can have", &place)));
}

/// A name does not lead to its own directory, the root, a free inode, or one that the format keeps.
#[test]
fn names() {
    for wrong in [2, 8, DIR, BELOW, 200, u32::MAX] {
        let mut image = volume();
        retarget(&mut image, DIR, b"below", wrong);
        edit_inode(&mut image, BELOW, |inode| inode.links_count = 0);
        let expected = || corrupt("directory: a name leads nowhere", "inode 13");
        let asked = async |fs: &Ext4| {
            let said = fs.lookup(ME, at(DIR), b"below").await;
            let gone = fs.rmdir(ME, at(DIR), b"below").await;
            let over = (fs.root(), &b"new"[..]);
            let moved = fs.rename(ME, (at(DIR), b"below"), over, RenameMode::Replace).await;
            Ok((said.map(drop), gone, moved))
        };
        let said = on(&image, MountOptions::default(), asked);
        assert_eq!(said, Ok((Err(expected()), Err(expected()), Err(expected()))), "{wrong}");
    }
}

/// Directories whose `..` leads elsewhere stay where they are; no walk up goes on for ever.
#[test]
fn ways_up() {
    let mut image = volume();
    retarget(&mut image, BELOW, b"..", 2);
    let said = on(&image, MountOptions::default(), async |fs| {
        let gone = fs.rmdir(ME, at(DIR), b"below").await;
        let to = (fs.root(), &b"new"[..]);
        Ok((gone, fs.rename(ME, (at(DIR), b"below"), to, RenameMode::Replace).await))
    });
    let expected = || corrupt("directory: .. leads elsewhere", "inode 14");
    assert_eq!(said, Ok((Err(expected()), Err(expected()))));
    let mut image = volume();
    retarget(&mut image, DIR, b"..", BELOW);
    let said = on(&image, MountOptions::default(), async |fs| {
        fs.rename(ME, (fs.root(), b"other"), (at(BELOW), b"new"), RenameMode::Replace).await
    });
    assert_eq!(said, Err(corrupt("directory: .. never reaches the root", "inode 14")));
}

/// Two directories that name each other keep no caller waiting that removes both names at the same time.
#[test]
fn rings() {
    let mut image = volume();
    retarget(&mut image, BELOW, b"last", DIR);
    retarget(&mut image, DIR, b"..", BELOW);
    let said = on(&image, MountOptions::default(), async |fs| {
        let (down, up) = (fs.rmdir(ME, at(DIR), b"below"), fs.rmdir(ME, at(BELOW), b"last"));
        Ok(join2(down, up).await)
    });
    let (down, up) = said.expect("a mount");
    let expected = |dir| Err(corrupt("directory: .. never reaches the root", dir));
    assert!(down == expected("inode 13") || up == expected("inode 14"), "{down:?}, {up:?}");
    assert!(down.is_err() && up.is_err(), "{down:?}, {up:?}");
}

/// A mount that fails half way leaves the device to others: nothing is written behind its back.
#[test]
fn mounts_that_fail() {
    let mut image = volume();
    // The first orphan can be freed, the second cannot.
    let node = image.data_blocks(OTHER)[0];
    edit_inode(&mut image, FILE, |inode| (inode.links_count, inode.dtime) = (0, OTHER));
    edit_inode(&mut image, OTHER, |inode| {
        let entries =
            ExtentEntries::Index { depth: 1, entries: vec![ExtentIndex { logical: 0, node }] };
        ExtentNode { entries, ..ExtentNode::empty_root() }.encode(&mut inode.map);
        inode.links_count = 0;
    });
    image.sb.last_orphan = FILE;
    let sb = image.sb.clone();
    sb.encode(&mut image.bytes[SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES]);
    let sectors = sectors_of(&image);
    let mut executor = Executor::on_virtual_clock();
    let rt = executor.handle();
    let ran = executor.block_on(async move {
        let device = powered(&rt, medium(BLOCKS, Fua::Honoured));
        load(&device.erased(), sectors).await;
        let mounted = Ext4::mount(&rt, device.erased(), MountOptions::default()).await;
        let place = format!("inode {OTHER}, block {node}, byte 0");
        assert_eq!(mounted.err(), Some(corrupt("is not an extent node", &place)));
        let bios = device.with(|device| device.bios);
        rt.sleep(Nanos::from_secs(60)).await;
        assert_eq!(device.with(|device| device.bios), bios, "bios of a volume that is not mounted");
    });
    ran.expect("no task waits for ever");
}

/// A volume is not mounted if parts of the format overlap, or the list of orphans leads astray.
#[test]
fn volumes() {
    let mounted = |image: &Image| on(image, MountOptions::default(), async |_| Ok(()));
    let mut image = volume();
    let log = image.extents(8)[0].start;
    edit_group(&mut image, |desc| desc.inode_bitmap = log + 5);
    let place = format!("block {}", log + 5);
    assert_eq!(mounted(&image), Err(corrupt("two parts of the format overlap", &place)));
    for wrong in [2, 8, 5_000_000] {
        let mut image = volume();
        image.sb.last_orphan = wrong;
        let sb = image.sb.clone();
        sb.encode(&mut image.bytes[SUPERBLOCK_AT..SUPERBLOCK_AT + SUPERBLOCK_BYTES]);
        assert_eq!(mounted(&image), Err(corrupt("list of orphans", "superblock")), "{wrong}");
    }
}

/// Blocks that a bitmap offers are not taken if they are the format's own.
#[test]
fn bitmaps() {
    for commit in [MountOptions::default().commit, IJOURNAL] {
        let mut image = volume();
        let (desc, count) = (image.descriptor(0), image.sb.inode_table_blocks());
        let bitmap = block(&mut image, desc.block_bitmap);
        bitmap.fill(0xff);
        let table = desc.inode_table as u32;
        bitmap::set(bitmap, table..table + count, false);
        edit_group(&mut image, |desc| desc.free_blocks_count = count);
        let options = MountOptions { commit, ..MountOptions::default() };
        let said = on(&image, options, async |fs| {
            fs.write(ME, at(FILE), 2 * PAGE, tags(1, 1), Io::Buffered).await?;
            fs.fsync(ME, at(FILE)).await
        });
        let place = "block bitmap of group 0";
        assert_eq!(said, Err(corrupt("blocks that no file can have", place)));
    }
}

/// A root that has less room than it could have is filled no further than it says.
#[test]
fn small_roots() {
    let mut image = volume();
    edit_inode(&mut image, FILE, |inode| {
        let node = ExtentNode::parse(&inode.map, Place::Inode(FILE)).expect("a root");
        ExtentNode { max: 1, ..node }.encode(&mut inode.map);
    });
    let said = on(&image, MountOptions::default(), async |fs| {
        for page in 1..6 {
            fs.write(ME, at(FILE), page * 3 * PAGE, tags(page, 1), Io::Buffered).await?;
        }
        fs.fsync(ME, at(FILE)).await?;
        let mut read = Vec::new();
        for page in 1..6 {
            read.push(fs.read(ME, at(FILE), page * 3 * PAGE, PAGE, Io::Direct).await?);
        }
        Ok(read)
    });
    let written: Vec<Data> = (1..6).map(|page| tags(page, 1)).collect();
    assert_eq!(said, Ok(written));
}
