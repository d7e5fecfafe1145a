//! Seeded sequences of calls on a volume with little free space, each made on F2FS and on the contract in memory
//! (`memfs`): both answer the same, show the same tree after a remount, and fsck.f2fs finds the volume sound.

use crate::common::oracle::asked;
use crate::common::{Scratch, assert_clean, f2fs_tools};
use nandscape_block::{AsyncDevice, Lba, MemDevice, Payload, Tag};
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::{
    Allocate, Caller, Data, FileSystem, FsError, Ino, Io, Kind, RenameMode, Result, SetAttr,
    XattrMode,
};
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::{CpuCosts, F2fs, MountOptions, VictimPolicy};
use nandscape_fs::memfs::{Config, MemFs};
use nandscape_fs::{ImageReader, MountedFs};
use nandscape_rt::{Executor, Handle, Host, Nanos, Stream};
use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
const PAGE: u64 = 4_096;
/// Longest file.
const LENGTH: u64 = 6 << 20;
/// Sectors of the volume: 64 MiB, the least that mkfs.f2fs makes.
const SECTORS: u64 = 16_384;

/// Sequences, and calls of each: a few, or as many as `NANDSCAPE_F2FS_CHURN` and `NANDSCAPE_F2FS_CALLS` say.
fn sizes() -> (u64, u64, u64) {
    (
        asked("NANDSCAPE_F2FS_CHURN_FROM", 1),
        asked("NANDSCAPE_F2FS_CHURN", 4),
        asked("NANDSCAPE_F2FS_CALLS", 1_500),
    )
}

/// The two file systems, and what their names lead to.
struct Churn {
    rt: Handle,
    device: AsyncDevice,
    options: MountOptions,
    fs: F2fs,
    model: MemFs,
    /// Inode numbers of the model by those of F2FS.
    inos: BTreeMap<u64, Ino>,
    rng: Stream,
    tags: u64,
    seed: u64,
    calls: u64,
}

/// A name, and what it leads to.
#[derive(Clone, Debug)]
struct Named {
    dir: Ino,
    name: Vec<u8>,
    ino: Ino,
    kind: Kind,
}

fn mount_options(seed: u64) -> MountOptions {
    let mut rng = Stream::new(seed, "options");
    MountOptions {
        active_logs: [2, 4, 6, 6][rng.below(4) as usize],
        inline_data: rng.chance(0.8),
        inline_dentry: rng.chance(0.8),
        inline_xattr: rng.chance(0.8),
        cache: CacheConfig { pages: 64 + rng.below(4_096), ..CacheConfig::default() },
        nat_entries: rng.below(2_000) as usize,
        inodes: 1 + rng.below(300) as usize,
        checkpoint_interval: Nanos::from_ms(1 + rng.below(60_000)),
        gc_min_sleep: Nanos::from_ms(10 + rng.below(1_000)),
        gc_max_sleep: Nanos::from_ms(2_000),
        idle_interval: Nanos::from_ms(rng.below(50)),
        victim: VictimPolicy::ALL[(seed % 2) as usize],
        cpu: CpuCosts::preset(if seed.is_multiple_of(3) { "estimate" } else { "none" })
            .expect("a preset"),
        seed,
        ..MountOptions::default()
    }
}

impl Churn {
    async fn begin(rt: &Handle, seed: u64) -> Self {
        let medium = MemDevice::new(SECTORS).with_latency(Nanos::from_us(20));
        let device = AsyncDevice::new(rt, medium).erased();
        let mut rng = Stream::new(seed, "churn");
        let made = MkfsOptions { fresh: true, ..MkfsOptions::new(seed) };
        mkfs(&device, &made).await.expect("a file system");
        let options = mount_options(seed);
        let (fs, _) = F2fs::mount(rt, device.clone(), options.clone()).await.expect("a mount");
        fs.attach_host(&Host::with_cores(2));
        let model =
            MemFs::new(rt, Config { blocks: 1 << 20, inodes: 1 << 20, epoch_s: 1_700_000_000 });
        let inos = BTreeMap::from([(fs.root().0, model.root())]);
        let tags = rng.bits() >> 8;
        Self { rt: rt.clone(), device, options, fs, model, inos, rng, tags, seed, calls: 0 }
    }

    fn of_model(&self, ino: Ino) -> Ino {
        *self.inos.get(&ino.0).unwrap_or_else(|| panic!("inode {} is not known", ino.0))
    }

    /// All names, directories before what is in them.
    async fn names(&self) -> Vec<Named> {
        let mut names = Vec::new();
        let mut dirs = vec![self.fs.root()];
        while let Some(dir) = dirs.pop() {
            for entry in list(&self.fs, dir).await {
                if entry.0 != b"." && entry.0 != b".." {
                    let named = Named { dir, name: entry.0, ino: entry.1, kind: entry.2 };
                    if named.kind == Kind::Directory {
                        dirs.push(named.ino);
                    }
                    names.push(named);
                }
            }
        }
        names
    }

    fn agree<T: PartialEq + std::fmt::Debug>(
        &self,
        call: &str,
        ours: &Result<T>,
        model: &Result<T>,
    ) {
        let same = match (ours, model) {
            (Ok(ours), Ok(model)) => ours == model,
            (Err(ours), Err(model)) => ours.errno() == model.errno(),
            _ => false,
        };
        assert!(
            same,
            "seed {} call {}: {call}: {ours:?}, expected {model:?}",
            self.seed, self.calls
        );
    }

    fn new_name(&mut self) -> Vec<u8> {
        let length =
            if self.rng.chance(0.1) { 1 + self.rng.below(255) } else { 1 + self.rng.below(8) };
        (0..length).map(|_| b'a' + self.rng.below(26) as u8).collect()
    }

    async fn step(&mut self, names: &[Named]) {
        self.calls += 1;
        let root = Named {
            dir: self.fs.root(),
            name: b".".to_vec(),
            ino: self.fs.root(),
            kind: Kind::Directory,
        };
        let mut dirs: Vec<&Named> =
            names.iter().filter(|named| named.kind == Kind::Directory).collect();
        dirs.push(&root);
        let dir = dirs[self.rng.below(dirs.len() as u64) as usize].clone();
        let files: Vec<&Named> = names.iter().filter(|named| named.kind == Kind::File).collect();
        let file =
            (!files.is_empty()).then(|| files[self.rng.below(files.len() as u64) as usize].clone());
        let any =
            (!names.is_empty()).then(|| names[self.rng.below(names.len() as u64) as usize].clone());
        match (self.rng.below(100), file, any) {
            (0..14, ..) => self.make(&dir).await,
            (14..22, _, Some(any)) => self.remove(&any).await,
            (22..27, _, Some(any)) => self.rename(&any, &dir, names).await,
            (27..29, Some(file), _) => self.link(&file, &dir).await,
            (29..62, Some(file), _) => self.write(&file).await,
            (62..68, Some(file), _) => self.truncate(&file).await,
            (68..75, Some(file), _) => self.allocate(&file).await,
            (75..82, Some(file), _) => {
                let ours = if self.rng.chance(0.5) {
                    self.fs.fsync(ME, file.ino).await
                } else {
                    self.fs.fdatasync(ME, file.ino).await
                };
                self.agree("fsync", &ours, &Ok(()));
            }
            (82..84, ..) => {
                let ours = self.fs.syncfs(ME).await;
                self.agree("syncfs", &ours, &Ok(()));
            }
            (84..90, _, Some(any)) => self.xattr(&any).await,
            (90..93, _, Some(any)) => {
                let change =
                    SetAttr { mode: Some(self.rng.below(0o1000) as u16), ..SetAttr::default() };
                let ours = self.fs.setattr(ME, any.ino, change).await.map(|attr| attr.mode);
                let model = self.model.setattr(ME, self.of_model(any.ino), change).await;
                self.agree("setattr", &ours, &model.map(|attr| attr.mode));
            }
            (93..96, Some(file), _) => self.compare_content(file.ino).await,
            (96..99, ..) => self.rt.sleep(Nanos::from_ms(1 + self.rng.below(2_000))).await,
            _ => {}
        }
    }

    async fn make(&mut self, dir: &Named) {
        let name = self.new_name();
        let (what, of_model) = (self.rng.below(10), self.of_model(dir.ino));
        let target = vec![b'x'; 1 + self.rng.below(4_000) as usize];
        let (fs, model) = (&self.fs, &self.model);
        let ours = match what {
            0..7 => fs.create(ME, dir.ino, &name, 0o644).await,
            7 | 8 => fs.mkdir(ME, dir.ino, &name, 0o755).await,
            _ => fs.symlink(ME, dir.ino, &name, &target).await,
        };
        if ours == Err(FsError::NoSpace) {
            return;
        }
        let made = match what {
            0..7 => model.create(ME, of_model, &name, 0o644).await,
            7 | 8 => model.mkdir(ME, of_model, &name, 0o755).await,
            _ => model.symlink(ME, of_model, &name, &target).await,
        };
        self.agree(
            "make",
            &ours.clone().map(|attr| (attr.kind, attr.mode, attr.links)),
            &made.clone().map(|attr| (attr.kind, attr.mode, attr.links)),
        );
        if let (Ok(ours), Ok(made)) = (ours, made) {
            self.inos.insert(ours.ino.0, made.ino);
        }
    }

    async fn remove(&mut self, any: &Named) {
        let dir = self.of_model(any.dir);
        let (ours, model) = if any.kind == Kind::Directory {
            (
                self.fs.rmdir(ME, any.dir, &any.name).await,
                self.model.rmdir(ME, dir, &any.name).await,
            )
        } else {
            (
                self.fs.unlink(ME, any.dir, &any.name).await,
                self.model.unlink(ME, dir, &any.name).await,
            )
        };
        self.agree("remove", &ours, &model);
    }

    async fn rename(&mut self, any: &Named, dir: &Named, names: &[Named]) {
        let other = names[self.rng.below(names.len() as u64) as usize].clone();
        let mode = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange]
            [self.rng.below(3) as usize];
        let to =
            if self.rng.chance(0.5) { (dir.ino, self.new_name()) } else { (other.dir, other.name) };
        let ours = self.fs.rename(ME, (any.dir, &any.name), (to.0, &to.1), mode).await;
        if ours == Err(FsError::NoSpace) {
            return;
        }
        let from = (self.of_model(any.dir), &any.name[..]);
        let model = self.model.rename(ME, from, (self.of_model(to.0), &to.1), mode).await;
        // Of several reasons for a refusal either may be named.
        if ours.is_ok() || model.is_ok() {
            self.agree("rename", &ours, &model);
        }
    }

    async fn link(&mut self, file: &Named, dir: &Named) {
        let name = self.new_name();
        let ours = self.fs.link(ME, file.ino, dir.ino, &name).await.map(|attr| attr.links);
        if ours == Err(FsError::NoSpace) {
            return;
        }
        let (of_file, of_dir) = (self.of_model(file.ino), self.of_model(dir.ino));
        let model = self.model.link(ME, of_file, of_dir, &name).await.map(|attr| attr.links);
        self.agree("link", &ours, &model);
    }

    fn data(&mut self, offset: u64, length: u64) -> Data {
        self.tags += 1 + length;
        if offset.is_multiple_of(PAGE) && length.is_multiple_of(PAGE) && self.rng.chance(0.8) {
            return Data::Sectors(Payload::Run(Tag::new(self.tags)), (length / PAGE) as u32);
        }
        let salt = self.tags as u8 | 1;
        Data::Bytes((0..length).map(|at| salt.wrapping_mul(1 + (at % 251) as u8)).collect())
    }

    async fn write(&mut self, file: &Named) {
        let long = self.rng.chance(0.1);
        let most = if self.rng.chance(0.7) { 64 << 10 } else { LENGTH };
        let mut offset = self.rng.below(most);
        let mut length = 1 + self.rng.below(if long { 512 << 10 } else { 16 << 10 });
        let direct = self.rng.chance(0.3);
        if direct || self.rng.chance(0.5) {
            offset -= offset % PAGE;
            length = length.next_multiple_of(PAGE);
        }
        let io = if direct { Io::Direct } else { Io::Buffered };
        let data = self.data(offset, length);
        let of_model = self.of_model(file.ino);
        let ours = self.fs.write(ME, file.ino, offset, data.clone(), io).await;
        let written = match &ours {
            Err(FsError::NoSpace) => return self.relieve(file).await,
            Ok(written) => *written,
            Err(_) => length,
        };
        let bytes = data.to_bytes();
        let part = Data::Bytes(bytes[..written.min(length) as usize].to_vec());
        let model = self.model.write(ME, of_model, offset, part, Io::Buffered).await;
        self.agree("write", &ours, &model);
    }

    /// The volume is full: the file goes to nothing.
    async fn relieve(&mut self, file: &Named) {
        let change = SetAttr { size: Some(0), ..SetAttr::default() };
        let ours = self.fs.setattr(ME, file.ino, change).await.map(|attr| attr.size);
        let model = self.model.setattr(ME, self.of_model(file.ino), change).await;
        self.agree("relieve", &ours, &model.map(|attr| attr.size));
    }

    async fn truncate(&mut self, file: &Named) {
        let most = if self.rng.chance(0.7) { 40 << 10 } else { LENGTH };
        let size = self.rng.below(most);
        let change = SetAttr { size: Some(size), ..SetAttr::default() };
        let ours = self.fs.setattr(ME, file.ino, change).await.map(|attr| attr.size);
        if ours == Err(FsError::NoSpace) {
            return;
        }
        let model = self.model.setattr(ME, self.of_model(file.ino), change).await;
        self.agree("truncate", &ours, &model.map(|attr| attr.size));
    }

    async fn allocate(&mut self, file: &Named) {
        let keep_size = self.rng.chance(0.5);
        let what = [
            Allocate::Reserve { keep_size },
            Allocate::PunchHole,
            Allocate::ZeroRange { keep_size },
        ][self.rng.below(3) as usize];
        let (offset, length) = (self.rng.below(LENGTH / 4), 1 + self.rng.below(300 << 10));
        let before = self.fs.getattr(ME, file.ino).await.map(|attr| attr.size);
        let ours = self.fs.fallocate(ME, file.ino, what, offset, length).await;
        if ours == Err(FsError::NoSpace) {
            // What a zero range took away stays away.
            assert_eq!(self.fs.getattr(ME, file.ino).await.map(|attr| attr.size), before);
            return self.relieve(file).await;
        }
        let model = self.model.fallocate(ME, self.of_model(file.ino), what, offset, length).await;
        self.agree("fallocate", &ours, &model);
    }

    async fn xattr(&mut self, any: &Named) {
        if any.kind == Kind::Symlink {
            return;
        }
        let name = format!("user.{}", self.rng.below(12)).into_bytes();
        let of_model = self.of_model(any.ino);
        if self.rng.chance(0.3) {
            let ours = self.fs.removexattr(ME, any.ino, &name).await;
            let model = self.model.removexattr(ME, of_model, &name).await;
            return self.agree("removexattr", &ours, &model);
        }
        let length = if self.rng.chance(0.8) { self.rng.below(60) } else { self.rng.below(1_500) };
        let value = vec![self.rng.below(256) as u8; length as usize];
        let ours = self.fs.setxattr(ME, any.ino, &name, &value, XattrMode::Set).await;
        if ours == Err(FsError::NoSpace) {
            return;
        }
        let model = self.model.setxattr(ME, of_model, &name, &value, XattrMode::Set).await;
        self.agree("setxattr", &ours, &model);
    }

    async fn compare_content(&self, ino: Ino) {
        let size = self.model.getattr(ME, self.of_model(ino)).await.expect("an inode").size;
        let ours =
            self.fs.read(ME, ino, 0, size + 1, Io::Buffered).await.expect("content").to_bytes();
        let model = self.model.read(ME, self.of_model(ino), 0, size + 1, Io::Buffered).await;
        let model = model.expect("content").to_bytes();
        if ours != model {
            let at = ours.iter().zip(&model).position(|(ours, model)| ours != model);
            panic!(
                "seed {} call {}: inode {}: {} bytes, expected {}; byte {at:?} differs",
                self.seed,
                self.calls,
                ino.0,
                ours.len(),
                model.len()
            );
        }
    }

    /// Both trees are the same.
    async fn compare(&self) {
        for Named { dir, name, ino, kind } in self.names().await {
            let of_model = self.model.lookup(ME, self.of_model(dir), &name).await;
            let of_model =
                of_model.unwrap_or_else(|error| panic!("seed {}: {name:?}: {error}", self.seed));
            assert_eq!(of_model.ino, self.of_model(ino), "seed {}", self.seed);
            let attr = self.fs.getattr(ME, ino).await.expect("an inode");
            let seen = (attr.kind, attr.mode, attr.links, attr.uid, attr.gid);
            let expected =
                (of_model.kind, of_model.mode, of_model.links, of_model.uid, of_model.gid);
            assert_eq!(seen, expected, "seed {}: {name:?}", self.seed);
            match kind {
                Kind::File => {
                    assert_eq!(attr.size, of_model.size, "seed {}: {name:?}", self.seed);
                    self.compare_content(ino).await;
                }
                Kind::Symlink => {
                    let ours = self.fs.readlink(ME, ino).await;
                    assert_eq!(
                        ours,
                        self.model.readlink(ME, of_model.ino).await,
                        "seed {}",
                        self.seed
                    );
                }
                _ => assert_eq!(
                    list(&self.fs, ino).await.len(),
                    list(&self.model, of_model.ino).await.len()
                ),
            }
            let mut ours = self.fs.listxattr(ME, ino).await.expect("attributes");
            let mut model = self.model.listxattr(ME, of_model.ino).await.expect("attributes");
            ours.sort();
            model.sort();
            assert_eq!(ours, model, "seed {}: {name:?}", self.seed);
            for xattr in ours {
                let value = self.fs.getxattr(ME, ino, &xattr).await;
                assert_eq!(value, self.model.getxattr(ME, of_model.ino, &xattr).await);
            }
        }
        let root = list(&self.model, self.model.root()).await.len();
        assert_eq!(list(&self.fs, self.fs.root()).await.len(), root, "seed {}", self.seed);
    }

    async fn remount(&mut self) {
        self.fs.unmount().await.expect("an unmount");
        let mounted = F2fs::mount(&self.rt, self.device.clone(), self.options.clone()).await;
        self.fs = mounted.expect("a mount").0;
        self.fs.attach_host(&Host::with_cores(2));
    }
}

async fn list(fs: &impl FileSystem, dir: Ino) -> Vec<(Vec<u8>, Ino, Kind)> {
    let (mut all, mut cookie) = (Vec::new(), 0);
    loop {
        let some = fs.readdir(ME, dir, cookie, 37).await.expect("names");
        let Some(last) = some.last() else { return all };
        cookie = last.cookie;
        all.extend(some.into_iter().map(|entry| (entry.name, entry.ino, entry.kind)));
    }
}

/// Writes what a device holds to a sparse file.
async fn save(device: &AsyncDevice, path: &Path) {
    let reader = ImageReader::new(device);
    let mut file = std::fs::File::create(path).expect("a file");
    file.set_len(SECTORS * PAGE).expect("a sparse file");
    for sector in 0..SECTORS {
        let content = device.read(Lba(sector), 1).await.expect("a sector").sector(0);
        if content == nandscape_block::SectorData::Tag(Tag::ZERO) {
            continue;
        }
        let bytes = reader.block(sector).await.expect("a sector");
        file.seek(SeekFrom::Start(sector * PAGE)).expect("a place");
        file.write_all(&bytes[..]).expect("a block");
    }
}

async fn run(rt: Handle, seed: u64, calls: u64, image: std::path::PathBuf) -> (u64, u64) {
    let mut churn = Churn::begin(&rt, seed).await;
    let mut names = Vec::new();
    for call in 0..calls {
        if call.is_multiple_of(5) {
            names = churn.names().await;
        }
        churn.step(&names).await;
        if std::env::var_os("NANDSCAPE_F2FS_EACH").is_some() {
            churn.compare().await;
        }
        if churn.rng.chance(0.002) {
            churn.compare().await;
            churn.remount().await;
        }
        // Names that changed meanwhile are gone from the list.
        names = if call % 5 == 4 { names } else { churn.names().await };
    }
    churn.compare().await;
    let cleaned = churn.fs.counts().detail.count("gc", "foreground_sections").unwrap_or(0);
    let background = churn.fs.counts().detail.count("gc", "background_sections").unwrap_or(0);
    churn.fs.unmount().await.expect("an unmount");
    save(&churn.device, &image).await;
    (cleaned, background)
}

/// Calls answer as the contract in memory does, and leave a sound volume.
#[test]
fn calls_leave_what_the_model_has() {
    if !f2fs_tools() {
        return;
    }
    let (from, sequences, calls) = sizes();
    let scratch = Scratch::new();
    for seed in from..from + sequences {
        let image = scratch.path("churn.img");
        let mut executor = Executor::on_virtual_clock();
        let rt = executor.handle();
        let counts =
            executor.block_on(run(rt, seed, calls, image.clone())).expect("no task waits for ever");
        eprintln!("seed {seed}: {counts:?}");
        if let Ok(kept) = std::env::var("NANDSCAPE_F2FS_KEEP") {
            let _ = std::fs::copy(&image, kept);
        }
        assert_clean(&image);
    }
}
