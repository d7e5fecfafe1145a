//! The calls of a sequence, each made on F2FS and on the model.

use super::{Churn, LENGTH, ME, Named, PAGE};
use nandscape_block::{Payload, Tag};
use nandscape_fs::contract::{
    Allocate, Attr, Data, FileSystem, FsError, Io, Kind, RenameMode, SetAttr, Timestamp, XattrMode,
};
use nandscape_rt::Nanos;

impl Churn {
    pub(super) fn new_name(&mut self) -> Vec<u8> {
        let length =
            if self.rng.chance(0.1) { 1 + self.rng.below(255) } else { 1 + self.rng.below(8) };
        (0..length).map(|_| b'a' + self.rng.below(26) as u8).collect()
    }

    pub(super) async fn step(&mut self, names: &[Named]) {
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
            (75..82, Some(file), _) => self.sync(&file).await,
            (82..84, ..) => {
                let ours = self.fs.syncfs(ME).await;
                self.agree("syncfs", &ours, &Ok(()));
            }
            (84..90, _, Some(any)) => self.xattr(&any).await,
            (90..93, _, Some(any)) => self.change_attributes(&any).await,
            (93..96, Some(file), _) => self.compare_content(file.ino).await,
            (96..99, ..) => self.rt.sleep(Nanos::from_ms(1 + self.rng.below(2_000))).await,
            _ => {}
        }
    }

    pub(super) async fn change_attributes(&mut self, any: &Named) {
        let mode = Some(self.rng.below(0o1000) as u16);
        let owner = self.rng.chance(0.3).then(|| self.rng.below(1 << 32) as u32);
        // Before 1970 and after 2106 as well.
        let seconds = self.rng.below(12_000_000_000) as i64 - 4_000_000_000;
        let time = Timestamp { seconds, nanos: self.rng.below(1_000_000_000) as u32 };
        let mtime = self.rng.chance(0.3).then_some(time);
        let change = SetAttr { mode, uid: owner, gid: owner, mtime, ..SetAttr::default() };
        let of_model = self.of_model(any.ino);
        let ours = self.fs.setattr(ME, any.ino, change).await;
        let model = self.model.setattr(ME, of_model, change).await;
        if let (Ok(ours), Some(mtime)) = (&ours, mtime) {
            assert_eq!(ours.mtime, mtime, "seed {} call {}", self.seed, self.calls);
        }
        let seen = |attr: Attr| (attr.mode, attr.uid, attr.gid);
        self.agree("setattr", &ours.map(seen), &model.map(seen));
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

    pub(super) async fn write(&mut self, file: &Named) {
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

    pub(super) async fn truncate(&mut self, file: &Named) {
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

    pub(super) async fn allocate(&mut self, file: &Named) {
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
            // What a zero range took away stays away, and what could be reserved stays reserved.
            if let (Ok(before), Ok(now)) = (before, self.fs.getattr(ME, file.ino).await) {
                let grew = now.size > before && now.size < offset + length;
                assert!(now.size == before || !keep_size && grew);
            }
            return self.relieve(file).await;
        }
        let model = self.model.fallocate(ME, self.of_model(file.ino), what, offset, length).await;
        self.agree("fallocate", &ours, &model);
    }

    pub(super) async fn xattr(&mut self, any: &Named) {
        if any.kind == Kind::Symlink {
            return;
        }
        let number = self.rng.below(12);
        let name = format!("user.{number}").into_bytes();
        let of_model = self.of_model(any.ino);
        if self.rng.chance(0.3) {
            let ours = self.fs.removexattr(ME, any.ino, &name).await;
            let model = self.model.removexattr(ME, of_model, &name).await;
            return self.agree("removexattr", &ours, &model);
        }
        // All of them fit a block, which is all that the model has room for; F2FS has some in the inode, too.
        let length = self.rng.below(if number < 2 { 1_500 } else { 60 });
        let value = vec![self.rng.below(256) as u8; length as usize];
        let ours = self.fs.setxattr(ME, any.ino, &name, &value, XattrMode::Set).await;
        if ours == Err(FsError::NoSpace) {
            return;
        }
        let model = self.model.setxattr(ME, of_model, &name, &value, XattrMode::Set).await;
        self.agree("setxattr", &ours, &model);
    }
}
