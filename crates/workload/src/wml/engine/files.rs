//! Flowops on files as wholes, and on directories.

use super::super::model::{Arguments, Number};
use super::super::ops::Op;
use super::super::tree::leaf_name;
use super::Set;
use super::pool::{By, FileState, Pool};
use super::runner::{Descriptor, FlowopCall, Open, Runner, Step, Stop};
use crate::target::{FILE_MODE, FOLDER_MODE};
use nandscape_fs::contract::{FsError, Ino, Io, OpenFlags};

/// Names that are listed at once.
const LISTED: usize = 256;
/// Bytes of an entry besides its name, as `struct dirent` has them on Linux.
const ENTRY_BYTES: u64 = 279;

pub(super) fn failed(error: &FsError) -> Stop {
    Stop::Failed(error.to_string())
}

impl Set {
    /// The directory in which a file lies, and its name there.
    fn place(&self, file: u32) -> (Ino, String) {
        let leaf = self.tree.files[file as usize];
        (self.directories[leaf.parent as usize], leaf_name(leaf.serial))
    }

    fn place_of_directory(&self, leafdir: u32) -> (Ino, String) {
        let leaf = self.tree.leafdirs[leafdir as usize];
        (self.directories[leaf.parent as usize], leaf_name(leaf.serial))
    }
}

impl Runner {
    /// The fileset that a flowop names.
    fn set_of(&self, arguments: &Arguments) -> Step<usize> {
        arguments.fileset.ok_or_else(|| Stop::Failed("it names no fileset".to_owned()))
    }

    /// The descriptor that a flowop is about.
    pub(super) fn descriptor(&mut self, arguments: &Arguments) -> usize {
        if arguments.fd > 0 || !arguments.opennext {
            return arguments.fd;
        }
        self.rotor = self.rotor.checked_sub(1).unwrap_or(self.descriptors.len() - 1);
        self.rotor
    }

    /// Takes a file of the fileset.
    async fn pick(&mut self, arguments: &Arguments, set: usize, want: FileState) -> Step<u32> {
        let by = match &arguments.indexed {
            Some(number) => {
                let files = self.shared.sets[set].files.len().max(1) as u64;
                By::Index((self.index(number, 1.0) % files) as u32)
            }
            // Descriptors that rotate have rounds of their own.
            None if want == FileState::Present && arguments.opennext => By::Rotation(self.id),
            None => By::Rotation(0),
        };
        self.pick_from(&self.shared.sets[set].files, want, by, set).await
    }

    /// Takes an empty directory, or the place of one.
    async fn pick_directory(
        &mut self,
        arguments: &Arguments,
        set: usize,
        want: FileState,
    ) -> Step<u32> {
        let by = match &arguments.indexed {
            Some(number) => {
                let all = self.shared.sets[set].leafdirs.len().max(1) as u64;
                By::Index((self.index(number, (all / 2) as f64) % all) as u32)
            }
            None => By::Rotation(0),
        };
        self.pick_from(&self.shared.sets[set].leafdirs, want, by, set).await
    }

    fn index(&mut self, number: &Number, factor: f64) -> u64 {
        (number.draw_real(&mut self.rng) * factor) as u64
    }

    async fn pick_from(&self, pool: &Pool, want: FileState, by: By, set: usize) -> Step<u32> {
        pool.pick(want, by).await.ok_or_else(|| {
            let name = &self.shared.workload.filesets[set].name;
            let what = if want == FileState::Present { "exists" } else { "is left to be made" };
            Stop::NoFile(format!("nothing of fileset {name} {what} that is unused"))
        })
    }

    pub(super) async fn open_file(&mut self, doing: FlowopCall<'_>) -> Step {
        let fd = self.descriptor(doing.arguments);
        self.open(doing, fd).await
    }

    /// Opens a file that exists.
    pub(super) async fn open(&mut self, doing: FlowopCall<'_>, fd: usize) -> Step {
        self.check_closed(fd)?;
        let set = self.set_of(doing.arguments)?;
        let file = self.pick(doing.arguments, set, FileState::Present).await?;
        self.open_picked(doing, fd, (set, file), false).await
    }

    pub(super) async fn create_file(&mut self, doing: FlowopCall<'_>) -> Step {
        let fd = self.descriptor(doing.arguments);
        self.check_closed(fd)?;
        let set = self.set_of(doing.arguments)?;
        let file = self.pick(doing.arguments, set, FileState::Absent).await?;
        self.open_picked(doing, fd, (set, file), true).await
    }

    fn check_closed(&self, fd: usize) -> Step {
        match self.descriptors[fd].open {
            Some(_) => Err(Stop::Failed(format!("fd {fd} is open already"))),
            None => Ok(()),
        }
    }

    async fn open_picked(
        &mut self,
        doing: FlowopCall<'_>,
        fd: usize,
        (set, file): (usize, u32),
        is_new: bool,
    ) -> Step {
        let began = self.now();
        self.enter().await;
        let (fs, caller) = (&self.shared.fs, self.caller);
        let (directory, name) = self.shared.sets[set].place(file);
        let made = match is_new {
            true => fs.create(caller, directory, name.as_bytes(), FILE_MODE).await,
            false => Err(FsError::Exists),
        };
        let found = match made {
            Err(FsError::Exists) => fs.lookup(caller, directory, name.as_bytes()).await,
            made => made,
        };
        let ino = found.map_err(|error| failed(&error))?.ino;
        fs.open(caller, ino, OpenFlags::default()).await.map_err(|error| failed(&error))?;
        let io = if doing.arguments.directio { Io::Direct } else { Io::Buffered };
        let open = Open { ino, position: 0, io, is_sync: doing.arguments.dsync };
        self.descriptors[fd] = Descriptor { file: Some((set, file)), open: Some(open) };
        let pool = &self.shared.sets[set].files;
        if is_new {
            pool.appeared(file);
        }
        pool.opened(file);
        self.record(doing, began, 0);
        Ok(())
    }

    pub(super) async fn close_file(&mut self, doing: FlowopCall<'_>) -> Step {
        let fd = self.descriptor(doing.arguments);
        let Descriptor { file: Some((set, file)), open: Some(open) } = self.descriptors[fd] else {
            return Err(Stop::Failed(format!("fd {fd} is not open")));
        };
        self.shared.sets[set].files.take(file).await;
        let began = self.now();
        self.enter().await;
        let closed = self.shared.fs.close(self.caller, open.ino).await;
        closed.map_err(|error| failed(&error))?;
        self.descriptors[fd].open = None;
        self.shared.sets[set].files.closed(file);
        self.record(doing, began, 0);
        Ok(())
    }

    /// Deletes the descriptor's file, or one of the fileset. One that another thread has open stays.
    pub(super) async fn delete_file(&mut self, doing: FlowopCall<'_>) -> Step {
        let fd = self.descriptor(doing.arguments);
        let held = self.descriptors[fd];
        let own = held.file.filter(|_| fd > 0);
        let (set, file) = match own {
            Some((set, file)) => {
                self.descriptors[fd].file = None;
                self.shared.sets[set].files.take(file).await;
                (set, file)
            }
            None => {
                let set = self.set_of(doing.arguments)?;
                (set, self.pick(doing.arguments, set, FileState::Present).await?)
            }
        };
        let by_us = u32::from(own.is_some() && held.open.is_some());
        let files = &self.shared.sets[set].files;
        if files.opens(file) > by_us {
            files.give_back(file);
            return Ok(());
        }
        let began = self.now();
        self.enter().await;
        let (directory, name) = self.shared.sets[set].place(file);
        let gone = self.shared.fs.unlink(self.caller, directory, name.as_bytes()).await;
        gone.map_err(|error| failed(&error))?;
        let files = &self.shared.sets[set].files;
        files.vanished(file);
        files.give_back(file);
        self.record(doing, began, 0);
        Ok(())
    }

    pub(super) async fn stat_file(&mut self, doing: FlowopCall<'_>) -> Step {
        let fd = self.descriptor(doing.arguments);
        if let Some(open) = self.descriptors[fd].open.filter(|_| fd > 0) {
            let began = self.now();
            self.enter().await;
            let found = self.shared.fs.getattr(self.caller, open.ino).await;
            found.map_err(|error| failed(&error))?;
            self.record(doing, began, 0);
            return Ok(());
        }
        let set = self.set_of(doing.arguments)?;
        let file = self.pick(doing.arguments, set, FileState::Present).await?;
        let began = self.now();
        self.enter().await;
        let (directory, name) = self.shared.sets[set].place(file);
        let found = self.shared.fs.lookup(self.caller, directory, name.as_bytes()).await;
        found.map_err(|error| failed(&error))?;
        self.shared.sets[set].files.give_back(file);
        self.record(doing, began, 0);
        Ok(())
    }

    pub(super) async fn fsync(&mut self, doing: FlowopCall<'_>) -> Step {
        let fd = self.descriptor(doing.arguments);
        let Some(open) = self.descriptors[fd].open else {
            return Err(Stop::Failed(format!("fd {fd} is not open")));
        };
        self.fsync_one(doing, open.ino).await
    }

    /// Syncs every file of the fileset that this thread has open.
    pub(super) async fn fsync_set(&mut self, doing: FlowopCall<'_>) -> Step {
        let set = self.set_of(doing.arguments)?;
        for fd in 0..self.descriptors.len() {
            let Descriptor { file, open } = self.descriptors[fd];
            if let Some(open) = open.filter(|_| file.is_some_and(|(of, _)| of == set)) {
                self.fsync_one(doing, open.ino).await?;
            }
        }
        Ok(())
    }

    async fn fsync_one(&mut self, doing: FlowopCall<'_>, ino: Ino) -> Step {
        let began = self.now();
        self.enter().await;
        let entered = self.now();
        self.make_durable(ino).await?;
        let thread_ns = &self.shared.stats.fsync_thread_ns;
        thread_ns.set(thread_ns.get() + (entered - began).0);
        self.record(doing, began, 0);
        Ok(())
    }

    pub(super) async fn make_durable(&self, ino: Ino) -> Step {
        self.shared.stats.fsyncs.set(self.shared.stats.fsyncs.get() + 1);
        self.shared.fs.fsync(self.caller, ino).await.map_err(|error| failed(&error))
    }

    pub(super) async fn make_directory(&mut self, doing: FlowopCall<'_>) -> Step {
        self.change_directory(doing, FileState::Absent).await
    }

    pub(super) async fn remove_directory(&mut self, doing: FlowopCall<'_>) -> Step {
        self.change_directory(doing, FileState::Present).await
    }

    /// Makes an empty directory that is not there, or removes one that is.
    async fn change_directory(&mut self, doing: FlowopCall<'_>, want: FileState) -> Step {
        let set = self.set_of(doing.arguments)?;
        let leafdir = self.pick_directory(doing.arguments, set, want).await?;
        let began = self.now();
        self.enter().await;
        let (parent, name) = self.shared.sets[set].place_of_directory(leafdir);
        let (fs, caller) = (&self.shared.fs, self.caller);
        let changed = match doing.op {
            Op::Makedir => fs.mkdir(caller, parent, name.as_bytes(), FOLDER_MODE).await.map(|_| ()),
            _ => fs.rmdir(caller, parent, name.as_bytes()).await,
        };
        changed.map_err(|error| failed(&error))?;
        let pool = &self.shared.sets[set].leafdirs;
        match want {
            FileState::Absent => pool.appeared(leafdir),
            FileState::Present => pool.vanished(leafdir),
        }
        pool.give_back(leafdir);
        self.record(doing, began, 0);
        Ok(())
    }

    /// Reads all names of a directory that holds something.
    pub(super) async fn list_directory(&mut self, doing: FlowopCall<'_>) -> Step {
        let set = self.set_of(doing.arguments)?;
        let pool = &self.shared.sets[set].folders;
        let index = self.pick_from(pool, FileState::Present, By::Rotation(0), set).await?;
        let began = self.now();
        let directory = self.shared.sets[set].directories[index as usize];
        let bytes = self.list(directory).await.map_err(|error| failed(&error))?;
        self.shared.sets[set].folders.give_back(index);
        self.record(doing, began, bytes);
        Ok(())
    }

    /// Opens a directory, reads all its names, and closes it; the bytes that they take.
    async fn list(&mut self, directory: Ino) -> Result<u64, FsError> {
        self.enter().await;
        self.shared.fs.open(self.caller, directory, OpenFlags::default()).await?;
        let (mut cookie, mut bytes) = (0, 0);
        loop {
            self.enter().await;
            let names = self.shared.fs.readdir(self.caller, directory, cookie, LISTED).await?;
            let Some(last) = names.last() else { break };
            cookie = last.cookie;
            bytes += names.iter().map(|each| each.name.len() as u64 + ENTRY_BYTES).sum::<u64>();
        }
        self.enter().await;
        self.shared.fs.close(self.caller, directory).await?;
        Ok(bytes)
    }
}
