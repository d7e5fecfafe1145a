//! The promises of docs/semantics/posix.md, each kept by ext4 in every data mode. The number of a
//! promise stands at its test.

use crate::common::device::{OpenDevice, powered};
use nandscape_block::{Lba, MemDevice, Payload, SectorData, Tag};
use nandscape_fs::contract::{
    Allocate, Attr, Caller, Data, FileSystem, FsError, Ino, Io, Kind, RenameMode, SetAttr,
    Timestamp, XattrMode,
};
use nandscape_fs::ext4::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::ext4::{DataMode, Ext4, MountOptions};
use nandscape_rt::{Executor, Handle, Nanos, Stream};
use std::collections::BTreeMap;

type Fs = Ext4;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const MIB: u64 = 1 << 20;
const MODES: [DataMode; 3] = [DataMode::Journal, DataMode::Ordered, DataMode::Writeback];

fn device(handle: &Handle, sectors: u64) -> OpenDevice {
    powered(handle, MemDevice::new(sectors).with_latency(Nanos::from_us(20)))
}

fn options(data: DataMode) -> MountOptions {
    MountOptions { data, ..MountOptions::default() }
}

/// Runs a body on a new volume in one mode, and gives the device back.
fn on_one<B>(mib: u64, data: DataMode, body: B) -> OpenDevice
where
    B: AsyncFn(&Fs, &Handle) + 'static,
{
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let ran = executor.block_on(async move {
        let device = device(&handle, mib * MIB / 4096);
        mkfs(&device.erased(), &MkfsOptions { fresh: true, ..MkfsOptions::new(1) })
            .await
            .expect("mkfs");
        let (fs, _) = Ext4::mount(&handle, device.erased(), options(data)).await.expect("a mount");
        body(&fs, &handle).await;
        device
    });
    ran.unwrap_or_else(|deadlock| panic!("{data:?}: {deadlock}"))
}

/// Runs a body on a new volume of each mode.
fn on_each(mib: u64, body: impl AsyncFn(&Fs, &Handle) + Copy + 'static) {
    for data in MODES {
        on_one(mib, data, body);
    }
}

/// Runs a body, cuts the power, and runs another on what is left, over some seeds.
fn over_cuts(
    before: impl AsyncFn(&Fs, &Handle) + Copy + 'static,
    after: impl AsyncFn(&Fs) + Copy + 'static,
) {
    for (seed, data) in (0..4).flat_map(|seed| MODES.map(|data| (seed, data))) {
        let cut = on_one(32, data, before);
        let mut rng = Stream::new(seed, "cut");
        let left: Vec<SectorData> = cut.with(|device| {
            device.medium.cut_power(&mut rng);
            (0..32 * MIB / 4096).map(|lba| device.medium.current(Lba(lba))).collect()
        });
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let ran = executor.block_on(async move {
            let device = device(&handle, left.len() as u64);
            for (lba, data) in left.into_iter().enumerate() {
                if data != SectorData::Tag(Tag::ZERO) {
                    let payload = Payload::collect(vec![data]);
                    device.write(Lba(lba as u64), 1, payload).await.expect("a write");
                }
            }
            let (fs, _) =
                Ext4::mount(&handle, device.erased(), options(data)).await.expect("a mount");
            after(&fs).await;
            fs.unmount().await.expect("an unmount");
        });
        ran.unwrap_or_else(|deadlock| panic!("{data:?}, seed {seed}: {deadlock}"));
    }
}

async fn create(fs: &Fs, dir: Ino, name: &str) -> Ino {
    fs.create(ME, dir, name.as_bytes(), 0o644).await.expect("a file").ino
}

async fn mkdir(fs: &Fs, dir: Ino, name: &str) -> Ino {
    fs.mkdir(ME, dir, name.as_bytes(), 0o755).await.expect("a directory").ino
}

async fn lookup(fs: &Fs, dir: Ino, name: &str) -> Result<Attr, FsError> {
    fs.lookup(ME, dir, name.as_bytes()).await
}

async fn write(fs: &Fs, ino: Ino, offset: u64, bytes: &[u8]) {
    let written = fs.write(ME, ino, offset, Data::Bytes(bytes.to_vec()), Io::Buffered).await;
    assert_eq!(written, Ok(bytes.len() as u64));
}

async fn read(fs: &Fs, ino: Ino) -> Vec<u8> {
    fs.read(ME, ino, 0, 1 << 40, Io::Buffered).await.expect("data").to_bytes()
}

async fn resize(fs: &Fs, ino: Ino, size: u64) {
    let change = SetAttr { size: Some(size), ..SetAttr::default() };
    assert_eq!(fs.setattr(ME, ino, change).await.expect("a new length").size, size);
}

async fn free(fs: &Fs) -> u64 {
    fs.statfs(ME).await.expect("space").free
}

async fn names(fs: &Fs, dir: Ino) -> BTreeMap<Vec<u8>, Ino> {
    let (mut all, mut cookie) = (BTreeMap::new(), 0);
    loop {
        let some = fs.readdir(ME, dir, cookie, 10).await.expect("names");
        let Some(last) = some.last() else { return all };
        cookie = last.cookie;
        for entry in some {
            assert_eq!(all.insert(entry.name, entry.ino), None, "listed once");
        }
    }
}

/// 1, 2: a name leads to what was made under it, and a taken name is refused.
#[test]
fn names_lead_to_what_was_made() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        assert_eq!(lookup(fs, root, "f").await, Err(FsError::NoEntry));
        let made = create(fs, root, "f").await;
        let found = lookup(fs, root, "f").await.expect("the file");
        assert_eq!((found.ino, found.kind, found.links), (made, Kind::File, 1));
        assert_eq!(fs.create(ME, root, b"f", 0o600).await, Err(FsError::Exists));
        assert_eq!(fs.mkdir(ME, root, b"f", 0o600).await, Err(FsError::Exists));
        assert_eq!(fs.symlink(ME, root, b"f", b"t").await, Err(FsError::Exists));
        assert_eq!(fs.link(ME, made, root, b"f").await, Err(FsError::Exists));
        assert_eq!(lookup(fs, root, "f").await, Ok(found));
        assert_eq!(lookup(fs, made, "x").await, Err(FsError::NotDirectory));
    });
}

/// 3: which names there can be.
#[test]
fn names_are_up_to_255_bytes() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        for name in [vec![b'n'; 255], vec![1], vec![0xff, 0xfe, b' ']] {
            let made = fs.create(ME, root, &name, 0o644).await.expect("a file");
            assert_eq!(fs.lookup(ME, root, &name).await, Ok(made));
        }
        let long = fs.create(ME, root, &[b'n'; 256], 0o644).await;
        assert_eq!(long, Err(FsError::NameTooLong));
        for name in [&b"a/b"[..], b"a\0b", b".", b""] {
            assert!(fs.create(ME, root, name, 0o644).await.is_err());
        }
    });
}

/// 4: what is removed how.
#[test]
fn removal_knows_what_it_removes() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        let dir = mkdir(fs, root, "d").await;
        let file = create(fs, dir, "f").await;
        assert_eq!(fs.unlink(ME, root, b"d").await, Err(FsError::IsDirectory));
        assert_eq!(fs.rmdir(ME, dir, b"f").await, Err(FsError::NotDirectory));
        assert_eq!(fs.rmdir(ME, root, b"d").await, Err(FsError::NotEmpty));
        fs.unlink(ME, dir, b"f").await.expect("no file");
        assert_eq!(fs.getattr(ME, file).await, Err(FsError::NoEntry));
        fs.rmdir(ME, root, b"d").await.expect("no directory");
        assert_eq!(lookup(fs, root, "d").await, Err(FsError::NoEntry));
    });
}

/// 5, 6, 7: renames.
#[test]
fn renames_move_names() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        let (a, b) = (create(fs, root, "a").await, create(fs, root, "b").await);
        let dir = mkdir(fs, root, "d").await;
        let rename = async |from: (Ino, &str), to: (Ino, &str), mode| {
            fs.rename(ME, (from.0, from.1.as_bytes()), (to.0, to.1.as_bytes()), mode).await
        };
        let refused = rename((root, "a"), (root, "b"), RenameMode::NoReplace).await;
        assert_eq!(refused, Err(FsError::Exists));
        assert_eq!(rename((root, "a"), (root, "d"), RenameMode::Exchange).await, Ok(()));
        let kinds = (lookup(fs, root, "a").await, lookup(fs, root, "d").await);
        assert_eq!((kinds.0.unwrap().ino, kinds.1.unwrap().ino), (dir, a));
        assert_eq!(rename((root, "a"), (root, "d"), RenameMode::Exchange).await, Ok(()));
        assert_eq!(rename((root, "a"), (dir, "x"), RenameMode::NoReplace).await, Ok(()));
        assert_eq!(lookup(fs, root, "a").await, Err(FsError::NoEntry));
        assert_eq!(rename((root, "b"), (dir, "x"), RenameMode::Replace).await, Ok(()));
        assert_eq!(lookup(fs, dir, "x").await.unwrap().ino, b);
        assert_eq!(fs.getattr(ME, a).await, Err(FsError::NoEntry));
        fs.link(ME, b, root, b"y").await.expect("a link");
        assert_eq!(rename((root, "y"), (dir, "x"), RenameMode::Replace).await, Ok(()));
        assert_eq!(lookup(fs, root, "y").await.unwrap().links, 2);
    });
}

/// 8: no directory moves below itself; one that moves knows its new parent.
#[test]
fn directories_move_with_their_tree() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        let (a, c) = (mkdir(fs, root, "a").await, mkdir(fs, root, "c").await);
        let b = mkdir(fs, a, "b").await;
        let into = fs.rename(ME, (root, b"a"), (b, b"x"), RenameMode::Replace).await;
        assert!(matches!(into, Err(FsError::Invalid(_))));
        fs.rename(ME, (root, b"a"), (c, b"a"), RenameMode::Replace).await.expect("a move");
        assert_eq!(names(fs, a).await[&b".."[..]], c);
        let links = [root, c, a].map(|dir| (dir, [4, 3, 3][usize::from(dir != root)]));
        for (dir, expected) in links {
            assert_eq!(fs.getattr(ME, dir).await.unwrap().links, expected);
        }
    });
}

/// 9: links are counted, and only files have several.
#[test]
fn links_are_counted() {
    on_each(16, async |fs, _| {
        let root = fs.root();
        let (file, dir) = (create(fs, root, "f").await, mkdir(fs, root, "d").await);
        assert_eq!(fs.link(ME, dir, root, b"x").await, Err(FsError::NotPermitted));
        write(fs, file, 0, b"shared").await;
        assert_eq!(fs.link(ME, file, dir, b"g").await.unwrap().links, 2);
        fs.unlink(ME, root, b"f").await.expect("one name less");
        let found = lookup(fs, dir, "g").await.unwrap();
        assert_eq!((found.ino, found.links), (file, 1));
        assert_eq!(read(fs, file).await, b"shared");
    });
}

/// 10: a name that stays is listed once, whatever others do, through every growth of a directory.
#[test]
fn listing_shows_what_stays_once() {
    on_each(64, async |fs, _| {
        let dir = mkdir(fs, fs.root(), "d").await;
        for number in 0..60 {
            create(fs, dir, &format!("stays-{number:0>100}")).await;
        }
        let (mut cookie, mut seen, mut made) = (0, BTreeMap::new(), 0_u32);
        loop {
            let some = fs.readdir(ME, dir, cookie, 3).await.expect("names");
            let Some(last) = some.last() else { break };
            cookie = last.cookie;
            for entry in some {
                *seen.entry(entry.name).or_insert(0) += 1;
            }
            for _ in 0..40_u32.min(2_000 - made) {
                create(fs, dir, &format!("comes-{made:0>120}")).await;
                made += 1;
            }
            if seen.len().is_multiple_of(9) {
                let gone = format!("comes-{:0>120}", made - 1 - seen.len() as u32 / 9);
                let _ = fs.unlink(ME, dir, gone.as_bytes()).await;
            }
        }
        let stay = |name: &[u8]| name.starts_with(b"stays") || name.starts_with(b".");
        let stayed: Vec<_> = seen.iter().filter(|(name, _)| stay(name)).collect();
        assert_eq!(stayed.len(), 62);
        assert!(stayed.iter().all(|(_, count)| **count == 1));
    });
}

/// 11: symbolic links hold what they were given.
#[test]
fn symbolic_links_hold_their_target() {
    on_each(16, async |fs, _| {
        for len in [1, 59, 60, 4095] {
            let target = vec![b't'; len];
            let name = format!("link{len}");
            let link = fs.symlink(ME, fs.root(), name.as_bytes(), &target).await.expect("a link");
            assert_eq!((link.kind, link.size), (Kind::Symlink, len as u64));
            assert_eq!(fs.readlink(ME, link.ino).await, Ok(target));
        }
        let long = fs.symlink(ME, fs.root(), b"l", &[b't'; 4096]).await;
        assert_eq!(long, Err(FsError::NameTooLong));
    });
}

/// 12, 13, 14: what is read is what was written last; else zeroes; nothing behind the end.
#[test]
fn content_is_what_was_written() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        write(fs, file, 5_000, b"one").await;
        write(fs, file, 4_998, b"two").await;
        let mut expected = vec![0; 4_998];
        expected.extend_from_slice(b"twone");
        assert_eq!(read(fs, file).await, expected);
        let behind = fs.read(ME, file, 6_000, 10, Io::Buffered).await.unwrap();
        assert!(behind.is_empty());
        resize(fs, file, 4_999).await;
        resize(fs, file, 9_000).await;
        expected[4_999..].fill(0);
        expected.resize(9_000, 0);
        assert_eq!(read(fs, file).await, expected);
    });
}

/// 15: a tag comes back as that tag, and a part written over it leaves the rest of its pattern.
#[test]
fn tags_are_content() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let tags = Data::Sectors(Payload::Run(Tag::new(77)), 3);
        fs.write(ME, file, 0, tags.clone(), Io::Buffered).await.expect("a write");
        fs.fsync(ME, file).await.expect("a sync");
        assert_eq!(fs.read(ME, file, 0, 12_288, Io::Direct).await, Ok(tags));
        write(fs, file, 4_100, b"patch").await;
        let mut expected = Tag::new(78).expand();
        expected[4..9].copy_from_slice(b"patch");
        assert_eq!(read(fs, file).await[4096..8192], expected[..]);
    });
}

/// 16: buffered and direct I/O see each other.
#[test]
fn direct_and_buffered_agree() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        for round in 0..4_u8 {
            let (one, two) = (vec![round; 8192], vec![round + 100; 4096]);
            write(fs, file, 0, &one).await;
            let seen = fs.read(ME, file, 0, 8192, Io::Direct).await.expect("data");
            assert_eq!(seen.to_bytes(), one);
            let direct = Data::Bytes(two.clone());
            fs.write(ME, file, 4096, direct, Io::Direct).await.expect("a write");
            assert_eq!(read(fs, file).await, [&one[..4096], &two[..]].concat());
        }
        let odd = fs.write(ME, file, 1, Data::Bytes(vec![0; 4096]), Io::Direct).await;
        assert!(odd.is_err() || odd == Ok(4096));
    });
}

/// 17, 18: space ahead of data, and holes.
#[test]
fn blocks_come_ahead_and_go_again() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let before = free(fs).await;
        let ahead = Allocate::Reserve { keep_size: true };
        fs.fallocate(ME, file, ahead, 0, MIB).await.expect("blocks");
        assert_eq!((fs.getattr(ME, file).await.unwrap().size, free(fs).await), (0, before - 256));
        fs.fallocate(ME, file, Allocate::Reserve { keep_size: false }, 0, MIB).await.unwrap();
        assert_eq!(read(fs, file).await, vec![0; MIB as usize]);
        write(fs, file, 0, &vec![7; MIB as usize]).await;
        fs.fsync(ME, file).await.expect("a sync");
        fs.fallocate(ME, file, Allocate::PunchHole, 1, 20_000).await.expect("a hole");
        let mut expected = vec![7; MIB as usize];
        expected[1..20_001].fill(0);
        assert_eq!(read(fs, file).await, expected);
        assert_eq!(free(fs).await, before - 256 + 3);
        let zero = Allocate::ZeroRange { keep_size: true };
        fs.fallocate(ME, file, zero, 8192, 8192).await.expect("zeroes");
        assert_eq!(read(fs, file).await, expected);
    });
}

/// 29: what is made and written is taken at once, and comes back when it goes.
#[test]
fn space_is_told() {
    on_each(16, async |fs, _| {
        let told = async || fs.statfs(ME).await.map(|told| (told.free, told.files_free)).unwrap();
        let (blocks, inodes) = told().await;
        write(fs, create(fs, fs.root(), "f").await, 0, &[7; 40_960]).await;
        assert_eq!(told().await, (blocks - 10, inodes - 1), "before a block was chosen");
        fs.unlink(ME, fs.root(), b"f").await.expect("no file");
        assert_eq!(told().await, (blocks, inodes));
    });
}

/// 19: a write that cannot find space says so at once; what was taken stays good.
#[test]
fn no_space_is_told_at_the_write() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let mut taken = 0;
        loop {
            let data = Data::Sectors(Payload::Run(Tag::new(1 + taken / 4096)), 16);
            match fs.write(ME, file, taken, data, Io::Buffered).await {
                Ok(written) => taken += written,
                Err(error) => break assert_eq!(error, FsError::NoSpace),
            }
        }
        assert!(taken > 4 * MIB);
        fs.fsync(ME, file).await.expect("all that was taken has its place");
        for page in 0..taken / 4096 {
            let read = fs.read(ME, file, page * 4096, 4096, Io::Direct).await;
            assert_eq!(read, Ok(Data::Sectors(Payload::Run(Tag::new(1 + page)), 1)));
        }
        fs.unlink(ME, fs.root(), b"f").await.expect("no file");
        let again = create(fs, fs.root(), "g").await;
        write(fs, again, 0, &vec![1; 4 << 20]).await;
    });
}

/// 20: an open file outlives its last name; its space comes back with the last close.
#[test]
fn open_files_outlive_their_names() {
    on_each(16, async |fs, _| {
        let before = free(fs).await;
        let file = create(fs, fs.root(), "f").await;
        write(fs, file, 0, &vec![9; 100_000]).await;
        fs.open(ME, file).await.expect("open");
        fs.unlink(ME, fs.root(), b"f").await.expect("no name");
        write(fs, file, 100_000, b"more").await;
        fs.fsync(ME, file).await.expect("a sync");
        assert_eq!(read(fs, file).await.len(), 100_004);
        assert!(free(fs).await <= before - 25);
        fs.close(ME, file).await.expect("closed");
        assert_eq!(fs.getattr(ME, file).await, Err(FsError::NoEntry));
        assert_eq!(free(fs).await, before);
    });
}

/// 21, 22: attributes are what they were set to, and times move with changes.
#[test]
fn attributes_are_kept() {
    on_each(16, async |fs, handle| {
        let root = fs.root();
        let file = create(fs, root, "f").await;
        let time = Timestamp { seconds: 4_000_000_000, nanos: 123_456_789 };
        let change = SetAttr {
            mode: Some(0o4751),
            uid: Some(70_000),
            gid: Some(80_000),
            size: Some(10),
            atime: Some(time),
            mtime: Some(time),
        };
        let attr = fs.setattr(ME, file, change).await.expect("new attributes");
        assert_eq!((attr.mode, attr.uid, attr.gid, attr.size), (0o4751, 70_000, 80_000, 10));
        assert_eq!((attr.atime, attr.mtime), (time, time));
        handle.sleep(Nanos::from_secs(1)).await;
        write(fs, file, 0, b"x").await;
        let written = fs.getattr(ME, file).await.unwrap();
        assert!(written.mtime != time && written.ctime > attr.ctime);
        let dir = fs.getattr(ME, root).await.unwrap();
        handle.sleep(Nanos::from_secs(1)).await;
        create(fs, root, "g").await;
        assert!(fs.getattr(ME, root).await.unwrap().mtime > dir.mtime);
    });
}

/// 23: extended attributes.
#[test]
fn extended_attributes_are_kept() {
    on_each(16, async |fs, _| {
        let file = create(fs, fs.root(), "f").await;
        let set = async |name: &[u8], len, mode| {
            fs.setxattr(ME, file, name, &vec![b'v'; len], mode).await
        };
        assert_eq!(fs.getxattr(ME, file, b"user.a").await, Err(FsError::NoData));
        assert_eq!(set(b"user.a", 3, XattrMode::Replace).await, Err(FsError::NoData));
        for (name, len) in [(&b"user.a"[..], 3), (b"user.b", 2_000), (b"security.c", 0)] {
            set(name, len, XattrMode::Create).await.expect("a new attribute");
            assert_eq!(fs.getxattr(ME, file, name).await.unwrap().len(), len);
        }
        assert_eq!(set(b"user.a", 9, XattrMode::Create).await, Err(FsError::Exists));
        assert_eq!(fs.listxattr(ME, file).await.unwrap().len(), 3);
        fs.removexattr(ME, file, b"user.b").await.expect("one less");
        assert_eq!(fs.getxattr(ME, file, b"user.b").await, Err(FsError::NoData));
        assert!(set(b"user.big", 5_000, XattrMode::Set).await.is_err());
        assert!(set(b"other.x", 1, XattrMode::Set).await.is_err());
    });
}

/// 24: after `fsync`, content, attributes and name survive a power cut.
#[test]
fn fsync_survives_power_cuts() {
    let before = async |fs: &Fs, _: &Handle| {
        let dir = mkdir(fs, fs.root(), "d").await;
        for number in 0..10_u8 {
            let file = create(fs, dir, &format!("f{number}")).await;
            write(fs, file, 0, &vec![number; 5_000 * usize::from(number)]).await;
            fs.fsync(ME, file).await.expect("a sync");
        }
        create(fs, dir, "unsynced").await;
    };
    over_cuts(before, async |fs| {
        let dir = lookup(fs, fs.root(), "d").await.expect("the directory").ino;
        for number in 0..10_u8 {
            let file = lookup(fs, dir, &format!("f{number}")).await.expect("the file");
            assert_eq!(read(fs, file.ino).await, vec![number; 5_000 * usize::from(number)]);
        }
    });
}

/// 25: after `fdatasync`, content and length do.
#[test]
fn fdatasync_survives_power_cuts() {
    let before = async |fs: &Fs, _: &Handle| {
        let file = create(fs, fs.root(), "f").await;
        fs.fsync(ME, file).await.expect("a sync");
        for round in 0..20_u64 {
            write(fs, file, round * 3_000, &[round as u8; 3_000]).await;
            fs.fdatasync(ME, file).await.expect("a sync");
        }
        write(fs, file, 0, &[99; 3_000]).await;
        fs.fdatasync(ME, file).await.expect("a sync of old blocks");
    };
    over_cuts(before, async |fs| {
        let file = lookup(fs, fs.root(), "f").await.expect("the file").ino;
        let bytes = read(fs, file).await;
        assert_eq!(bytes.len(), 60_000);
        let expected = |at: usize| if at < 3_000 { 99 } else { (at / 3_000) as u8 };
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == expected(at)));
    });
}

/// 26: after `syncfs`, everything does; a rename and a removal too.
#[test]
fn syncfs_survives_power_cuts() {
    let before = async |fs: &Fs, _: &Handle| {
        let root = fs.root();
        for number in 0..20_u8 {
            let file = create(fs, root, &format!("f{number}")).await;
            write(fs, file, 0, &[number; 10_000]).await;
        }
        fs.syncfs(ME).await.expect("a sync");
        fs.rename(ME, (root, b"f0"), (root, b"f1"), RenameMode::Replace).await.expect("a move");
        fs.unlink(ME, root, b"f2").await.expect("no file");
        fs.syncfs(ME).await.expect("a sync");
    };
    over_cuts(before, async |fs| {
        let root = fs.root();
        for (name, number) in [("f1", 0), ("f3", 3), ("f19", 19)] {
            let file = lookup(fs, root, name).await.expect("the file").ino;
            assert_eq!(read(fs, file).await, [number; 10_000]);
        }
        for gone in ["f0", "f2"] {
            assert_eq!(lookup(fs, root, gone).await, Err(FsError::NoEntry));
        }
    });
}

/// 27: what was not synced is there or not, but never half: a name leads to a sound file.
#[test]
fn power_cuts_leave_a_sound_tree() {
    over_cuts(
        async |fs, handle| {
            let root = fs.root();
            for number in 0..90_u64 {
                let name = format!("f{}", number % 30);
                let _ = fs.unlink(ME, root, name.as_bytes()).await;
                let file = create(fs, root, &name).await;
                let tags = Data::Sectors(Payload::Run(Tag::new(1 + number * 64)), 8);
                fs.write(ME, file, 0, tags, Io::Buffered).await.expect("a write");
                if number.is_multiple_of(3) {
                    fs.fsync(ME, file).await.expect("a sync");
                }
                handle.sleep(Nanos::from_ms(100)).await;
            }
        },
        async |fs| {
            for (name, ino) in names(fs, fs.root()).await {
                if !name.starts_with(b"f") {
                    continue;
                }
                let size = fs.getattr(ME, ino).await.expect("attributes").size;
                assert!(size == 0 || size == 32_768, "{size}");
                assert_eq!(read(fs, ino).await.len() as u64, size);
            }
        },
    );
}

/// 28: unmount leaves nothing to recover, and the next mount shows all of it.
#[test]
fn unmount_leaves_a_clean_volume() {
    for data in MODES {
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let ran = executor.block_on(async move {
            let device = device(&handle, 16 * MIB / 4096);
            mkfs(&device.erased(), &MkfsOptions { fresh: true, ..MkfsOptions::new(1) })
                .await
                .expect("mkfs");
            let mount = async || Ext4::mount(&handle, device.erased(), options(data)).await;
            let (fs, _) = mount().await.expect("a mount");
            let file = create(&fs, fs.root(), "f").await;
            write(&fs, file, 0, &[3; 50_000]).await;
            fs.unmount().await.expect("an unmount");
            assert!(fs.getattr(ME, file).await.is_err());
            let (again, report) = mount().await.expect("another mount");
            assert_eq!((report.recovered.transactions, report.orphans), (0, 0));
            assert_eq!(read(&again, file).await, [3; 50_000]);
        });
        ran.expect("no deadlock");
    }
}
