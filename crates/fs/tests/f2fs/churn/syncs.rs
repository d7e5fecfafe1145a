//! Calls that end with an fsync of what they changed: what roll-forward is for.

use super::{Churn, ME, Named};
use nandscape_fs::contract::{FileSystem, FsError, Kind};

impl Churn {
    /// Makes so many calls, most of them synced.
    pub(crate) async fn run_synced(&mut self, calls: u64) {
        for _ in 0..calls {
            let names = self.names().await;
            self.step_and_sync(&names).await;
        }
    }

    async fn step_and_sync(&mut self, names: &[Named]) {
        let files: Vec<&Named> = names.iter().filter(|named| named.kind == Kind::File).collect();
        let file =
            (!files.is_empty()).then(|| files[self.rng.below(files.len() as u64) as usize].clone());
        let (what, is_synced) = (self.rng.below(20), self.rng.chance(0.85));
        let file = match (what, file) {
            (0..5, _) | (_, None) => match self.make_file(names).await {
                Some(made) => made,
                None => return,
            },
            (_, Some(file)) => file,
        };
        match what {
            0..11 => self.write(&file).await,
            11..13 => self.truncate(&file).await,
            13..15 => self.allocate(&file).await,
            15..17 => self.xattr(&file).await,
            17 => self.change_attributes(&file).await,
            _ => return self.step(names).await,
        }
        if is_synced {
            self.sync(&file).await;
        }
    }

    /// A new file in a directory that there is.
    async fn make_file(&mut self, names: &[Named]) -> Option<Named> {
        let dirs = names.iter().filter(|named| named.kind == Kind::Directory);
        let dirs: Vec<_> = dirs.map(|named| named.ino).chain([self.fs.root()]).collect();
        let dir = dirs[self.rng.below(dirs.len() as u64) as usize];
        let name = self.new_name();
        let ours = match self.fs.create(ME, dir, &name, 0o640).await {
            Err(FsError::NoSpace | FsError::Exists) => return None,
            ours => ours.expect("a file"),
        };
        let model = self.model.create(ME, self.of_model(dir), &name, 0o640).await;
        self.inos.insert(ours.ino.0, model.expect("a file as in F2FS").ino);
        Some(Named { dir, name, ino: ours.ino, kind: Kind::File })
    }

    pub(super) async fn sync(&mut self, file: &Named) {
        let ours = match self.rng.chance(0.7) {
            true => self.fs.fsync(ME, file.ino).await,
            false => self.fs.fdatasync(ME, file.ino).await,
        };
        self.agree("fsync", &ours, &Ok(()));
    }
}
