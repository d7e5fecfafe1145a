//! The folder in which runs keep preconditioned devices for each other (docs/formats/state.md).
//!
//! Entries are written beside their place and renamed, so that no reader sees half of one. A run that
//! makes an entry holds a lock, so that others who need it wait instead of making it too. When the
//! folder grows beyond its limit, the entries that were used longest ago go first. Nothing here can
//! fail a run: without a folder each run preconditions for itself.

use crate::args::CacheArgs;
use crate::command::COMMIT;
use crate::output::{Failure, complain};
use crate::replace::{Part, make_folder};
use anyhow::{Context, anyhow};
use nandscape_lab::state::{SnapshotError, StateCache, StateKey, StateSource};
use nandscape_lab::sweep::program;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Kind of an entry.
const ENTRY: &str = "state";
/// Kind of an entry that is being written.
const PART: &str = "part";
/// Parts older than this were left behind by a program that was killed.
const FORGOTTEN: Duration = Duration::from_secs(24 * 3600);

/// A folder of states.
pub(crate) struct Cache {
    folder: PathBuf,
    limit_bytes: u64,
    program: String,
}

impl Cache {
    /// The folder that the user wants, made if need be; `None` without one.
    pub(crate) fn open(args: &CacheArgs) -> Result<Option<Self>, Failure> {
        if args.no_state_cache {
            return Ok(None);
        }
        let cache =
            |folder| Self { folder, limit_bytes: args.state_limit.0, program: program(COMMIT) };
        if let Some(folder) = &args.state_dir {
            return make_folder(folder).map(|()| Some(cache(folder.clone())));
        }
        Ok(usual_folder().filter(|folder| fs::create_dir_all(folder).is_ok()).map(cache))
    }

    /// Where a run finds preconditioned devices.
    pub(crate) fn states(cache: Option<&Self>) -> StateSource<'_> {
        cache.map_or(StateSource::Make, |cache| StateSource::Cached(cache))
    }

    /// The file of an entry. Another program makes another state, perhaps, so it looks elsewhere.
    fn path(&self, key: StateKey, kind: &str) -> PathBuf {
        let name = StateKey::of(&format!("{key} {}", self.program));
        self.folder.join(format!("{name}.{kind}"))
    }

    fn try_keep(
        &self,
        key: StateKey,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), SnapshotError>,
    ) -> Result<(), anyhow::Error> {
        // What is left of it where the program is killed is found by `shrink` later.
        let (file, part) = Part::create(&self.path(key, ENTRY), None)?;
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()?;
        Ok(part.take_place()?)
    }

    /// The states, those used longest ago first.
    fn entries(folder: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for file in fs::read_dir(folder)? {
            let file = file?;
            let Some(data) = unless_gone(file.metadata())? else { continue };
            let path = file.path();
            if path.extension().and_then(|kind| kind.to_str()) == Some(ENTRY) {
                entries.push(Entry { used: data.modified()?, bytes: data.len(), path });
            }
        }
        entries.sort();
        Ok(entries)
    }

    /// Removes what was used longest ago, until the rest is within the limit. Other runs and programs
    /// add and remove files meanwhile: one that is gone is no matter.
    fn shrink(&self) -> io::Result<()> {
        self.forget_parts()?;
        let entries = Self::entries(&self.folder)?;
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        for entry in entries {
            if bytes <= self.limit_bytes {
                break;
            }
            unless_gone(fs::remove_file(entry.path))?;
            bytes -= entry.bytes;
        }
        Ok(())
    }

    /// Removes parts that were left behind.
    fn forget_parts(&self) -> io::Result<()> {
        for file in fs::read_dir(&self.folder)? {
            let path = file?.path();
            if path.extension().and_then(|kind| kind.to_str()) != Some(PART) {
                continue;
            }
            let Some(data) = unless_gone(fs::metadata(&path))? else { continue };
            if data.modified()?.elapsed().is_ok_and(|age| age > FORGOTTEN) {
                unless_gone(fs::remove_file(path))?;
            }
        }
        Ok(())
    }
}

/// A state in the folder.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) used: SystemTime,
    pub(crate) bytes: u64,
    pub(crate) path: PathBuf,
}

/// The folder of the cache, whether it exists or not, and its states, those used longest ago first.
pub(crate) fn contents(folder: Option<&Path>) -> Result<(PathBuf, Vec<Entry>), Failure> {
    let none = || {
        Failure::input(anyhow!("there is no cache folder: neither HOME nor XDG_CACHE_HOME is set"))
    };
    let folder = folder.map(Path::to_owned).or_else(usual_folder).ok_or_else(none)?;
    let entries = match Cache::entries(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries,
    };
    let entries = entries.with_context(|| folder.display().to_string()).map_err(Failure::Run)?;
    Ok((folder, entries))
}

/// `None` where the file does not exist any more.
fn unless_gone<T>(outcome: io::Result<T>) -> io::Result<Option<T>> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        outcome => outcome.map(Some),
    }
}

/// The user's cache folder, by the XDG base directory specification.
fn usual_folder() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("nandscape").join("states"))
}

#[expect(clippy::disallowed_methods, reason = "the real time shows what was used longest ago")]
fn touch(file: &File) {
    // A folder that cannot be written to is read nevertheless.
    let _ = file.set_modified(SystemTime::now());
}

impl StateCache for Cache {
    fn open(&self, key: StateKey) -> Option<Box<dyn Read>> {
        let file = File::open(self.path(key, ENTRY)).ok()?;
        touch(&file);
        Some(Box::new(BufReader::new(file)))
    }

    fn with_exclusive_lock(&self, key: StateKey, work: &mut dyn FnMut()) {
        let path = self.path(key, "lock");
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(&path);
        let lock = lock.and_then(|file| file.lock().map(|()| file));
        work();
        if lock.is_ok() {
            // Who waits for it, or makes it anew, finds the entry.
            let _ = fs::remove_file(path);
        }
    }

    fn keep(
        &self,
        key: StateKey,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), SnapshotError>,
    ) {
        let kept = self.try_keep(key, write);
        let kept = kept.and_then(|()| self.shrink().map_err(anyhow::Error::from));
        if let Err(error) = kept {
            complain(&format!(
                "notice: the state is not cached in {}: {error:#}",
                self.folder.display()
            ));
        }
    }

    fn damaged(&self, key: StateKey, why: &str) {
        let path = self.path(key, ENTRY);
        complain(&format!("notice: {}: {why}; preconditioning again", path.display()));
    }
}

/// Where the preconditioned device comes from: a file that was named, or the cache.
pub(crate) fn states<'a>(file: Option<&'a Path>, cache: Option<&'a Cache>) -> StateSource<'a> {
    file.map_or_else(|| Cache::states(cache), StateSource::File)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn cache(name: &str, limit_bytes: u64) -> Cache {
        let folder = std::env::temp_dir().join(format!("nandscape-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Cache { folder, limit_bytes, program: "test".into() }
    }

    fn keep(cache: &Cache, key: u128, bytes: usize) {
        cache.keep(StateKey(key), &mut |out| Ok(out.write_all(&vec![7; bytes])?));
    }

    fn kept(cache: &Cache) -> Vec<u128> {
        (0..10).filter(|key| cache.path(StateKey(*key), ENTRY).exists()).collect()
    }

    /// What was used longest ago goes first, and the folder never stays above its limit.
    #[test]
    fn the_folder_is_bounded() {
        let cache = cache("bounded", 100);
        for key in 0..3 {
            keep(&cache, key, 30);
            let age = Duration::from_secs(1000 - key as u64);
            let file = File::options().write(true).open(cache.path(StateKey(key), ENTRY)).unwrap();
            file.set_modified(file.metadata().unwrap().modified().unwrap() - age).unwrap();
        }
        assert_eq!(kept(&cache), [0, 1, 2]);
        drop(cache.open(StateKey(0)).unwrap());
        keep(&cache, 3, 30);
        assert_eq!(kept(&cache), [0, 2, 3], "0 was used since");
        keep(&cache, 4, 101);
        assert_eq!(kept(&cache), [] as [u128; 0], "larger than all of the room");
        fs::remove_dir_all(&cache.folder).unwrap();
    }

    /// Locks and parts of other runs come and go while the folder is searched.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "other runs are on threads of their own, too")]
    fn files_of_other_runs_may_vanish() {
        let cache = cache("vanish", 100);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let locks = (0..40).map(|key| cache.path(StateKey(key), "lock"));
                    locks.clone().for_each(|path| fs::write(path, "").unwrap());
                    locks.for_each(|path| fs::remove_file(path).unwrap());
                }
            });
            let outcomes: Vec<_> = (0..2_000).map(|_| cache.shrink()).collect();
            over.store(true, Ordering::Relaxed);
            assert!(
                outcomes.iter().all(Result::is_ok),
                "{:?}",
                outcomes.iter().find(|o| o.is_err())
            );
        });
        fs::remove_dir_all(&cache.folder).unwrap();
    }

    /// An entry that could not be written whole is not there.
    #[test]
    fn no_half_entries() {
        let cache = cache("half", 100);
        cache.keep(StateKey(1), &mut |out| {
            out.write_all(&[1; 20])?;
            Err(SnapshotError::Io("no more room".into()))
        });
        assert_eq!(fs::read_dir(&cache.folder).unwrap().count(), 0);
        fs::remove_dir_all(&cache.folder).unwrap();
    }
}
