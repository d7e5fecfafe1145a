//! Volumes on images in memory: made and filled once, then damaged and used again and again.
//!
//! A damaged volume is checked, or shown, or mounted, read, changed a little and unmounted: one of these for an input, so
//! that an input takes milliseconds. All of that ends: a call that waits forever, or for longer than [`DEADLINE`] in
//! virtual time, is a panic.

use crate::input::Numbers;
use nandscape_block::{AsyncDevice, ImageDevice, SECTOR_BYTES};
use nandscape_fs::contract::{
    Attr, Caller, Data, FsError, Ino, Io, Kind, OpenFlags, SetAttr, XattrMode,
};
use nandscape_fs::{FormatRequest, FsConfig, FsKind, MountEnv, MountedFs};
use nandscape_rt::combine::timeout;
use nandscape_rt::{Executor, Handle, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::rc::Rc;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const PAGE: usize = SECTOR_BYTES as usize;
/// What files are filled with, so that their blocks are not taken for metadata.
const CONTENT: u8 = 0xda;
/// Inodes that are looked at; a damaged tree may lead anywhere.
const INODES: usize = 100;
/// Names that are read of one directory.
const NAMES: usize = 400;
/// Places that are damaged at most.
const PATCHES: usize = 32;
/// No use of so small a volume takes longer, in virtual time.
const DEADLINE: Nanos = Nanos::from_secs(3_600);

type Block = [u8; PAGE];

/// A kind of volume, and how it is mounted.
pub(crate) struct Variant {
    /// Features, turned off by `^` before the name.
    pub(crate) features: &'static [&'static str],
    /// Choices of the mount: keys and values as in `[fs]`.
    pub(crate) choices: &'static [(&'static str, &'static str)],
    /// Whether there is room for a GC journal.
    pub(crate) gc_journal: bool,
    /// Unmounted; otherwise the mount has to recover.
    pub(crate) clean: bool,
}

/// A volume that is sound.
pub(crate) struct Volume {
    config: FsConfig,
    image: Rc<Vec<u8>>,
    /// The blocks that hold metadata.
    places: Vec<u64>,
}

impl Volume {
    /// A volume of so many sectors that was filled.
    ///
    /// # Panics
    /// If it cannot be made.
    pub(crate) fn new(kind: FsKind, sectors: u64, variant: &Variant) -> Self {
        let features: Vec<String> =
            variant.features.iter().map(|name| (*name).to_owned()).collect();
        let request = FormatRequest {
            features: &features,
            journal_sectors: (kind == FsKind::Ext4).then_some(1_024),
            gc_journal_area: variant.gc_journal,
            seed: 1,
            fresh: true,
            ..FormatRequest::default()
        };
        let mut config = kind.config_to_format(&request).expect("features that go together");
        for (key, value) in variant.choices {
            config.choose(key, value).expect("a choice");
        }
        let empty = Rc::new(vec![0; (sectors * SECTOR_BYTES) as usize]);
        let image = filled(&config, Image::new(empty), variant.clean).into_bytes();
        let is_metadata =
            |block: &[u8]| ![0, CONTENT].iter().any(|byte| block.iter().all(|b| b == byte));
        let blocks = (0..).zip(image.chunks_exact(PAGE));
        let places = blocks.filter(|(_, block)| is_metadata(block)).map(|(at, _)| at).collect();
        Self { config: config.without_format(), image: Rc::new(image), places }
    }

    /// The image with a few words replaced, as `numbers` say; `seal` may recompute the checksum of a block, of which it
    /// gets the content before.
    fn damaged(&self, numbers: &mut Numbers<'_>, seal: fn(&Block, &mut Block)) -> Image {
        let mut image = Image::new(Rc::clone(&self.image));
        for _ in 0..PATCHES {
            if numbers.is_empty() {
                break;
            }
            let at = self.places[numbers.below(self.places.len())];
            let way = numbers.number::<1>();
            let block = image.block_mut(at);
            damage(block, way, numbers);
            if way & 0x80 != 0 {
                let before = &self.image[at as usize * PAGE..][..PAGE];
                seal(before.try_into().expect("a block"), block);
            }
        }
        image
    }

    /// Uses the volume in this image.
    ///
    /// # Panics
    /// A task waits forever.
    fn examine(&self, image: Image, by: Use) {
        let (config, kind) = (self.config.clone(), self.config.kind());
        let done = on_device(image, async move |rt, device| {
            drop(FsKind::probe(&device).await);
            match by {
                Use::Check => drop(kind.check(&device).await),
                Use::Show(what) => drop(kind.dump(&device, what).await),
                Use::ShowLog => drop(kind.live_log(&device).await),
                Use::Mount => {
                    return timeout(&rt.clone(), DEADLINE, try_everything(rt, device, config))
                        .await;
                }
            }
            Ok(())
        });
        done.0.expect("no call waits for so long");
    }
}

/// What is done with a volume.
enum Use {
    Check,
    /// A structure is shown.
    Show(&'static str),
    /// The live part of the log is shown.
    ShowLog,
    Mount,
}

/// Damages one of the volumes as an input says, and uses it; `shown` are structures of which one is shown, and `seal` may
/// recompute checksums.
pub(crate) fn try_damaged(
    volumes: &[Volume],
    shown: &[&'static str],
    seal: fn(&Block, &mut Block),
    input: &[u8],
) {
    let mut numbers = Numbers::new(input);
    let volume = &volumes[numbers.number::<1>() as usize % volumes.len()];
    let by = match numbers.below(3 * shown.len()) {
        choice if choice < shown.len() => Use::Show(shown[choice]),
        choice if choice < 2 * shown.len() => Use::Mount,
        choice if choice == 2 * shown.len() => Use::ShowLog,
        _ => Use::Check,
    };
    volume.examine(volume.damaged(&mut numbers, seal), by);
}

/// Replaces a word of a block, most often one that is not zero.
fn damage(block: &mut Block, way: u64, numbers: &mut Numbers<'_>) {
    let used: Vec<usize> = (0..PAGE).filter(|at| block[*at] != 0).collect();
    let at = match used.get(numbers.below(used.len())) {
        Some(at) if way & 0x40 == 0 => *at,
        _ => numbers.below(PAGE),
    };
    let width = 1 << (way & 3);
    let at = at / width * width;
    let value = match way >> 2 & 7 {
        0 => 0,
        1 => u64::MAX,
        2 => u64::from(block[at]) ^ 1 << (numbers.number::<1>() & 63),
        3 => u64::from(block[at]).wrapping_add(1),
        4 => u64::from(block[at]).wrapping_sub(1),
        5 => numbers.number::<1>(),
        6 => numbers.number::<2>(),
        _ => numbers.number::<8>(),
    };
    block[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// Runs something on the device of an image; the image as it is afterwards.
fn on_device<T: 'static>(
    image: Image,
    work: impl AsyncFnOnce(Handle, AsyncDevice) -> T + 'static,
) -> (T, Image) {
    let sectors = image.base.len() as u64 / SECTOR_BYTES;
    let mut executor = Executor::on_virtual_clock();
    let rt = executor.handle();
    let device = AsyncDevice::new(&rt, ImageDevice::new(image, sectors));
    let erased = device.erased();
    let done = executor.block_on(async move { work(rt, erased).await });
    let done = done.unwrap_or_else(|deadlock| panic!("{deadlock}"));
    drop(executor);
    let device = device.into_inner().expect("nothing else holds the device");
    (done, device.into_stream())
}

/// The image with a file system that holds something of everything.
fn filled(config: &FsConfig, image: Image, clean: bool) -> Image {
    let config = config.clone();
    let fill = async move |rt: Handle, device: AsyncDevice| {
        config.format(&device).await.expect("a file system");
        let config = config.without_format();
        let (fs, _) = config.mount(MountEnv { rt, device }).await.expect("a mount");
        fill(&*fs).await.expect("room");
        if clean {
            fs.unmount().await.expect("an unmount");
        }
    };
    on_device(image, fill).1
}

/// Directories large and deep, a file with holes, links, attributes, a file that is synced again and again, and one
/// that waits to be deleted.
async fn fill(fs: &dyn MountedFs) -> Result<(), FsError> {
    let root = fs.root();
    let pages = |pages: usize| Data::Bytes(vec![CONTENT; pages * PAGE]);
    let many = fs.mkdir(ME, root, b"many", 0o755).await?.ino;
    let name = |number: u32| format!("{number:0>120}").into_bytes();
    for number in 0..60 {
        let file = fs.create(ME, many, &name(number), 0o644).await?.ino;
        if number % 10 == 0 {
            fs.write_all(ME, file, 0, pages(2), Io::Buffered).await?;
        }
    }
    let deep = fs.mkdir(ME, root, b"deep", 0o755).await?.ino;
    let deeper = fs.mkdir(ME, deep, b"er", 0o755).await?.ino;
    let holes = fs.create(ME, deeper, b"holes", 0o644).await?.ino;
    for page in 0..350 {
        fs.write_all(ME, holes, page * 2 * SECTOR_BYTES, pages(1), Io::Buffered).await?;
    }
    let short = fs.create(ME, deep, b"short", 0o600).await?.ino;
    fs.write_all(ME, short, 0, Data::Bytes(b"a few bytes".to_vec()), Io::Buffered).await?;
    fs.symlink(ME, root, b"link", b"deep/er").await?;
    fs.symlink(ME, root, b"long", &[b'x'; 500]).await?;
    fs.setxattr(ME, deep, b"user.small", b"value", XattrMode::Set).await?;
    fs.setxattr(ME, many, b"user.large", &[7; 900], XattrMode::Set).await?;
    let orphan = fs.create(ME, root, b"orphan", 0o644).await?.ino;
    fs.write_all(ME, orphan, 0, pages(3), Io::Buffered).await?;
    fs.open(ME, orphan, OpenFlags::default()).await?;
    fs.syncfs(ME).await?;
    fs.unlink(ME, root, b"orphan").await?;
    let synced = fs.create(ME, root, b"synced", 0o644).await?.ino;
    for page in 0..20 {
        fs.write_all(ME, synced, page * SECTOR_BYTES, pages(1), Io::Buffered).await?;
        fs.fsync(ME, synced).await?;
    }
    fs.unlink(ME, many, &name(10)).await?;
    fs.rename(ME, (many, &name(11)), (deep, b"moved"), Default::default()).await?;
    fs.fsync(ME, short).await
}

/// Uses a volume; all answers will do.
async fn try_everything(rt: Handle, device: AsyncDevice, config: FsConfig) {
    let Ok((fs, _)) = config.mount(MountEnv { rt, device }).await else { return };
    let fs = &*fs;
    let mut seen = BTreeSet::new();
    let mut waiting = vec![fs.root()];
    while let Some(dir) = waiting.pop() {
        for (name, ino) in names(fs, dir).await {
            if seen.len() == INODES || !seen.insert(ino) {
                continue;
            }
            let Ok(attr) = fs.lookup(ME, dir, &name).await else { continue };
            if attr.kind == Kind::Directory {
                waiting.push(ino);
            }
            drop(look(fs, &attr).await);
        }
        drop(change(fs, dir).await);
    }
    drop(fs.statfs(ME).await);
    drop(fs.syncfs(ME).await);
    drop(fs.unmount().await);
}

/// Names of a directory and what they lead to.
async fn names(fs: &dyn MountedFs, dir: Ino) -> Vec<(Vec<u8>, Ino)> {
    let (mut names, mut cookie) = (Vec::new(), 0);
    while names.len() < NAMES {
        let Ok(entries) = fs.readdir(ME, dir, cookie, 64).await else { break };
        let Some(last) = entries.last() else { break };
        cookie = last.cookie;
        names.extend(entries.into_iter().map(|entry| (entry.name, entry.ino)));
    }
    names.retain(|(name, _)| name != b"." && name != b"..");
    names
}

/// Reads what there is to read, of a file its beginning, its middle and its end.
async fn look(fs: &dyn MountedFs, attr: &Attr) -> Result<(), FsError> {
    for name in fs.listxattr(ME, attr.ino).await? {
        fs.getxattr(ME, attr.ino, &name).await?;
    }
    if attr.kind == Kind::Symlink {
        fs.readlink(ME, attr.ino).await?;
    }
    for from in [0, attr.size / 2, attr.size.saturating_sub(2 * SECTOR_BYTES)] {
        fs.read(ME, attr.ino, from, 16 * SECTOR_BYTES, Io::Buffered).await?;
    }
    fs.read(ME, attr.ino, 0, 4 * SECTOR_BYTES, Io::Direct).await.map(drop)
}

/// Makes a file, writes and cuts it, and removes it.
async fn change(fs: &dyn MountedFs, dir: Ino) -> Result<(), FsError> {
    let file = fs.create(ME, dir, b"new", 0o644).await?.ino;
    fs.write(ME, file, 0, Data::Bytes(vec![CONTENT; 3 * PAGE]), Io::Buffered).await?;
    fs.fsync(ME, file).await?;
    fs.setattr(ME, file, SetAttr { size: Some(5), ..SetAttr::default() }).await?;
    fs.unlink(ME, dir, b"new").await
}

/// An image: bytes that are shared, and the blocks of them that were written over.
struct Image {
    base: Rc<Vec<u8>>,
    written: BTreeMap<u64, Box<Block>>,
    /// The next byte of the stream.
    at: u64,
}

impl Image {
    const fn new(base: Rc<Vec<u8>>) -> Self {
        Self { base, written: BTreeMap::new(), at: 0 }
    }

    /// The shared content of a block; zeroes after the end.
    fn shared(&self, block: u64) -> &[u8] {
        self.base.get(block as usize * PAGE..).unwrap_or_default()
    }

    fn block_mut(&mut self, block: u64) -> &mut Block {
        let base = &self.base;
        self.written.entry(block).or_insert_with(|| {
            let mut bytes = Box::new([0; PAGE]);
            let shared = base.get(block as usize * PAGE..).unwrap_or_default();
            let length = shared.len().min(PAGE);
            bytes[..length].copy_from_slice(&shared[..length]);
            bytes
        })
    }

    /// All bytes.
    fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.base.to_vec();
        for (block, content) in self.written {
            bytes[block as usize * PAGE..][..PAGE].copy_from_slice(&content[..]);
        }
        bytes
    }
}

impl Read for Image {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (block, from) = (self.at / SECTOR_BYTES, self.at as usize % PAGE);
        let content = match self.written.get(&block) {
            Some(content) => &content[from..],
            None => self.shared(block).get(from..).unwrap_or_default(),
        };
        let length = buffer.len().min(content.len()).min(PAGE - from);
        buffer[..length].copy_from_slice(&content[..length]);
        self.at += length as u64;
        Ok(length)
    }
}

impl Write for Image {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let (block, from) = (self.at / SECTOR_BYTES, self.at as usize % PAGE);
        let length = buffer.len().min(PAGE - from);
        self.block_mut(block)[from..from + length].copy_from_slice(&buffer[..length]);
        self.at += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Image {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(at) = to else { return Err(io::ErrorKind::Unsupported.into()) };
        self.at = at;
        Ok(at)
    }
}
