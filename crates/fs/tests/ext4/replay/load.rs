//! Volumes as a kernel leaves them that is cut off: a seeded load on a loop mount, and copies of the image
//! from its midst.

use crate::common::mount::LoopMount;
use crate::common::{Scratch, mke2fs, output, text};
use nandscape_fs::ext4::journal::disk::MAGIC;
use nandscape_rt::Stream;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const PAGE: u64 = 4096;

/// A kind of volume: the options of mke2fs and mount.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm {
    pub(super) options: &'static [&'static str],
    pub(super) mount: &'static str,
}

pub(super) const ARMS: [Arm; 7] = [
    Arm { options: &["-O", "orphan_file"], mount: "data=ordered" },
    Arm { options: &["-O", "orphan_file,^metadata_csum", "-g", "1024"], mount: "data=journal" },
    Arm { options: &["-O", "^orphan_file"], mount: "data=ordered" },
    Arm { options: &["-O", "^orphan_file"], mount: "data=journal" },
    Arm { options: &["-O", "^metadata_csum,^64bit,^orphan_file"], mount: "data=journal" },
    Arm {
        options: &["-O", "^metadata_csum,^flex_bg,^orphan_file", "-g", "2048"],
        mount: "data=writeback",
    },
    Arm {
        options: &["-O", "metadata_csum_seed,^64bit,^dir_index,^orphan_file", "-I", "128"],
        mount: "data=journal",
    },
];

impl Arm {
    /// Copies of the image of one load; `None` where the machine cannot mount.
    pub(super) fn make(self, scratch: &Scratch, seed: u64) -> Option<Vec<PathBuf>> {
        let image = scratch.image("live", 32 << 20);
        mke2fs(&image, &[self.options, &["-J", "size=4", "-N", "4096"]].concat());
        // No commit but those that are asked for, and nothing else in the background.
        let options = format!("{},commit=1000,noinit_itable", self.mount);
        let mount = LoopMount::new(scratch, &image, &options)?;
        let mut load = Load::new(mount.path(), seed);
        // What the log held before, and where it stands.
        (0..load.rng.below(45)).for_each(|_| load.many());
        let mut copies = Vec::new();
        for number in 0..2 {
            let operations = 10 + load.rng.below(80);
            (0..operations).for_each(|_| load.step());
            load.sync();
            if load.rng.below(2) == 0 {
                // What no commit covers is in memory only.
                (0..10).for_each(|_| load.step());
            }
            let copy = scratch.path(&format!("cut-{number}"));
            fs::copy(&image, &copy).expect("a copy");
            copies.push(copy);
        }
        drop(load);
        drop(mount);
        Some(copies)
    }
}

/// A task that works on a mount.
struct Load {
    rng: Stream,
    made: u64,
    files: Vec<PathBuf>,
    /// The first one is the root.
    dirs: Vec<PathBuf>,
    /// Files without a name.
    held: Vec<File>,
}

impl Load {
    fn new(at: &Path, seed: u64) -> Self {
        let rng = Stream::new(seed, "load of a kernel");
        Self { rng, made: 0, files: Vec::new(), dirs: vec![at.to_owned()], held: Vec::new() }
    }

    fn step(&mut self) {
        match self.rng.below(17) {
            0..4 => self.create(),
            4 | 5 => self.write(),
            6 => self.truncate(),
            7 => self.rename(),
            8 | 9 => self.unlink(),
            10 => self.mkdir(),
            11 => self.remove_dir(),
            12 => self.link(),
            13 => self.symlink(),
            14 => self.attributes(),
            15 => self.many(),
            _ => self.sync(),
        }
    }

    fn sync(&mut self) {
        let which = self.rng.below(self.files.len() as u64 + 1) as usize;
        let path = self.files.get(which).filter(|path| path.is_file()).unwrap_or(&self.dirs[0]);
        File::open(path).and_then(|file| file.sync_all()).expect("an fsync");
    }

    fn fresh(&mut self) -> PathBuf {
        let dir = &self.dirs[self.rng.below(self.dirs.len() as u64) as usize];
        self.made += 1;
        dir.join(format!("{}-{:0>1$}", self.made, self.rng.below(60) as usize))
    }

    fn some_file(&mut self) -> Option<usize> {
        let count = self.files.len() as u64;
        (count > 0).then(|| self.rng.below(count) as usize)
    }

    /// Bytes, some pages of which begin as blocks of a journal do.
    fn content(&mut self, most: u64) -> Vec<u8> {
        let length = 1 + self.rng.below(most);
        let fill = self.rng.bits() as u8;
        let mut bytes = vec![fill; length as usize];
        for page in bytes.chunks_mut(PAGE as usize).filter(|page| page.len() >= 12) {
            if self.rng.below(3) == 0 {
                page[..4].copy_from_slice(&MAGIC.to_be_bytes());
                page[4..8].copy_from_slice(&(1 + self.rng.below(5) as u32).to_be_bytes());
                page[8..12].copy_from_slice(&(self.rng.below(30) as u32).to_be_bytes());
            }
        }
        bytes
    }

    fn create(&mut self) {
        let (path, bytes) = (self.fresh(), self.content(30_000));
        fs::write(&path, bytes).expect("room");
        self.files.push(path);
    }

    fn write(&mut self) {
        let Some(at) = self.some_file() else { return };
        let bytes = self.content(20_000);
        let place = self.rng.below(40_000);
        if let Ok(file) = OpenOptions::new().write(true).open(&self.files[at]) {
            file.write_all_at(&bytes, place).expect("room");
        }
    }

    fn truncate(&mut self) {
        let Some(at) = self.some_file() else { return };
        let length = self.rng.below(30_000);
        if let Ok(file) = OpenOptions::new().write(true).open(&self.files[at]) {
            file.set_len(length).expect("a length");
        }
    }

    fn rename(&mut self) {
        let Some(at) = self.some_file() else { return };
        let over = self.some_file().filter(|_| self.rng.below(2) == 0);
        let to = match over {
            Some(over) => self.files[over].clone(),
            None => self.fresh(),
        };
        let from = self.files.swap_remove(at);
        fs::rename(&from, &to).expect("a rename");
        if !self.files.contains(&to) {
            self.files.push(to);
        }
    }

    fn unlink(&mut self) {
        let Some(at) = self.some_file() else { return };
        let path = self.files.swap_remove(at);
        if self.rng.below(2) == 0 {
            self.held.extend(File::open(&path));
        }
        fs::remove_file(&path).expect("a name");
        if self.rng.below(4) == 0 {
            self.held.pop();
        }
    }

    fn mkdir(&mut self) {
        let path = self.fresh();
        fs::create_dir(&path).expect("room");
        self.dirs.push(path);
    }

    fn remove_dir(&mut self) {
        if self.dirs.len() > 1 {
            let at = 1 + self.rng.below(self.dirs.len() as u64 - 1) as usize;
            let path = self.dirs[at].clone();
            fs::remove_dir_all(&path).expect("a directory");
            self.dirs.retain(|dir| !dir.starts_with(&path));
            self.files.retain(|file| !file.starts_with(&path));
        }
    }

    fn link(&mut self) {
        let Some(at) = self.some_file() else { return };
        let path = self.fresh();
        fs::hard_link(&self.files[at], &path).expect("room");
        self.files.push(path);
    }

    fn symlink(&mut self) {
        let (path, length) = (self.fresh(), 1 + self.rng.below(200) as usize);
        std::os::unix::fs::symlink("t".repeat(length), &path).expect("room");
        self.files.push(path);
    }

    /// Of the first file, some that fit the inode and some that do not.
    fn attributes(&mut self) {
        let Some(path) = self.files.iter().find(|path| path.is_file() && !path.is_symlink()) else {
            return;
        };
        let set =
            "import os,sys\nos.setxattr(sys.argv[1],'user.'+sys.argv[2],b'v'*int(sys.argv[3]))";
        let length = [20, 300, 1500][self.rng.below(3) as usize].to_string();
        output("python3", &["-c", set, text(path), &length, &length]);
    }

    /// A large directory, committed and removed, whose blocks are a file's then.
    fn many(&mut self) {
        let dir = self.fresh();
        fs::create_dir(&dir).expect("room");
        for number in 0..60 {
            fs::write(dir.join(format!("{number:0>200}")), b"").expect("room");
        }
        self.sync();
        fs::remove_dir_all(&dir).expect("a directory");
        self.sync();
        let (path, bytes) = (self.fresh(), self.content(200_000));
        fs::write(&path, bytes).expect("room");
        self.files.push(path);
    }
}
