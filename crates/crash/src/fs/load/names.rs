//! Calls on names: they come one after the other in a writer's directory.

use super::{DIRS, Ended, FILES, OPEN_MAX, Opened, Target, Writer, handle_of};
use crate::calls::{Call, FileRef, Repeated};
use crate::device::drive::CheckFailure;
use crate::fs::model::Node;
use crate::fs::tree::identity;
use nandscape_fs::contract::{OpenFlags, RenameMode};

/// Bytes of targets of symbolic links: in the inode, and in a block of its own.
const SHORT_TARGET: usize = 20;
pub(super) const LONG_TARGET: usize = 900;

impl Writer {
    /// The file at a path, made if need be; nothing if it is none, or there was no space for it.
    pub(super) async fn file(&mut self, path: &str) -> Ended<Option<Target>> {
        let known = self.model.borrow().names().get(path).copied();
        if let Some(node) = known {
            let is_file = self.model.borrow().is_file(node);
            return if is_file { Ok(Some(self.target(path, node).await?)) } else { Ok(None) };
        }
        let (dir, name) = self.place(path).await?;
        let mode = [0o644, 0o600, 0o755][self.rng.below(3) as usize];
        let (node, undo) = self.model.borrow_mut().create(path, mode);
        self.log(Call::Create(path.to_owned()));
        self.called("create");
        let made = self.fs.create(self.caller, dir, name, mode).await;
        let Some(attr) = self.named(made, undo, "create: no space").await? else { return Ok(None) };
        self.model.borrow_mut().made(identity(&attr));
        let name = FileRef::Path(path.to_owned());
        Ok(Some(Target { ino: attr.ino, node, name, opened: None }))
    }

    pub(super) async fn make_symlink(&mut self) -> Ended {
        let path = self.any_path();
        if self.model.borrow().names().contains_key(&path) {
            return Ok(());
        }
        let long = self.rng.chance(0.5);
        self.symlink(&path, if long { LONG_TARGET } else { SHORT_TARGET }).await
    }

    /// Makes a symbolic link with a target of so many bytes.
    pub(super) async fn symlink(&mut self, path: &str, length: usize) -> Ended {
        let repeated = Repeated { word: format!("{:x}/", self.next_tag), length };
        let target = repeated.bytes();
        let (dir, name) = self.place(path).await?;
        let (_, undo) = self.model.borrow_mut().symlink(path, &target);
        self.log(Call::Symlink(path.to_owned(), repeated));
        self.called(if length == LONG_TARGET { "symlink, long" } else { "symlink, short" });
        let made = self.fs.symlink(self.caller, dir, name, &target).await;
        if let Some(attr) = self.named(made, undo, "create: no space").await? {
            self.model.borrow_mut().made(identity(&attr));
        }
        Ok(())
    }

    pub(super) async fn make_link(&mut self) -> Ended {
        let to = self.any_path();
        let Some((from, node)) = self.any_name(|model, node| !model.is_directory(node)) else {
            return Ok(());
        };
        if self.model.borrow().names().contains_key(&to) {
            return Ok(());
        }
        let target = self.target(&from, node).await?;
        if !self.link_to(&target, &to).await? {
            return Ok(());
        }
        self.maybe_fsync(&Target { name: FileRef::Path(to), ..target }).await
    }

    /// Gives a file one more name. Returns whether there was space for it, and no such name.
    pub(super) async fn link_to(&mut self, target: &Target, path: &str) -> Ended<bool> {
        if self.model.borrow().names().contains_key(path) {
            return Ok(false);
        }
        let (dir, name) = self.place(path).await?;
        let undo = self.model.borrow_mut().link(target.node, path);
        self.log(Call::Link(target.name.to_string(), path.to_owned()));
        self.called("link");
        let made = self.fs.link(self.caller, target.ino, dir, name).await;
        Ok(self.named(made, undo, "link: no space").await?.is_some())
    }

    pub(super) async fn unlink(&mut self) -> Ended {
        match self.any_name(|model, node| !model.is_directory(node)) {
            Some((path, _)) => self.unlink_path(&path).await,
            None => Ok(()),
        }
    }

    pub(super) async fn unlink_path(&mut self, path: &str) -> Ended {
        let (dir, name) = self.place(path).await?;
        let node = self.model.borrow().names().get(path).copied();
        drop(self.model.borrow_mut().remove(path));
        self.log(Call::Unlink(path.to_owned()));
        self.called("unlink");
        self.lost_a_name(node, "unlink of an open file");
        Ok(self.fs.unlink(self.caller, dir, name).await?)
    }

    /// A node has lost a name; if it was the last, it stays while it is open.
    fn lost_a_name(&mut self, node: Option<Node>, state: &'static str) {
        if let Some(node) = node
            && self.is_open(node)
            && !self.is_named(node)
        {
            self.reached(state);
            self.progress.unlinked.set(self.progress.unlinked.get() + 1);
        }
    }

    /// Renames anything but a directory.
    pub(super) async fn rename(&mut self) -> Ended {
        let to = self.any_path();
        let Some((from, _)) = self.any_name(|model, node| !model.is_directory(node)) else {
            return Ok(());
        };
        self.move_name(&from, &to).await?;
        let moved = self.model.borrow().names().get(&to).copied();
        match moved {
            Some(node) => {
                let target = self.target(&to, node).await?;
                self.maybe_fsync(&target).await
            }
            None => Ok(()),
        }
    }

    pub(super) async fn move_name(&mut self, from: &str, to: &str) -> Ended {
        let (from_place, to_place) = (self.place(from).await?, self.place(to).await?);
        let (replaced, moved) = {
            let model = self.model.borrow();
            (model.names().get(to).copied(), model.names().get(from).copied())
        };
        if replaced == moved {
            return Ok(());
        }
        let mode = match replaced {
            None if self.rng.chance(0.3) => RenameMode::NoReplace,
            _ => RenameMode::Replace,
        };
        let undo = self.model.borrow_mut().rename(from, to);
        self.log(Call::Rename(from.to_owned(), to.to_owned()));
        let is_directory = moved.is_some_and(|node| self.model.borrow().is_directory(node));
        self.called(match (is_directory, replaced, mode) {
            (true, ..) => "rename of a directory",
            (_, _, RenameMode::NoReplace) => "rename: no replace",
            (_, Some(_), _) => "rename: replace",
            _ => "rename: new name",
        });
        let ended = self.fs.rename(self.caller, from_place, to_place, mode).await;
        if self.named(ended, undo, "link: no space").await?.is_some() {
            self.lost_a_name(replaced, "rename over a file that is open");
        }
        Ok(())
    }

    /// Two names change places: of files, links and directories.
    pub(super) async fn exchange(&mut self) -> Ended {
        let any = |_: &crate::fs::model::Model, _| true;
        let (Some((one, node)), Some((other, other_node))) =
            (self.any_name(any), self.any_name(any))
        else {
            return Ok(());
        };
        let below = |one: &str, other: &str| other.starts_with(&format!("{one}/"));
        // Directories keep names of their own, and nothing moves below itself.
        let [is, other_is] = [node, other_node].map(|node| self.model.borrow().is_directory(node));
        if node == other_node || is != other_is || below(&one, &other) || below(&other, &one) {
            return Ok(());
        }
        let (one_place, other_place) = (self.place(&one).await?, self.place(&other).await?);
        let undo = self.model.borrow_mut().exchange(&one, &other);
        self.log(Call::Exchange(one.clone(), other.clone()));
        self.called("rename: exchange");
        let ended = self.fs.rename(self.caller, one_place, other_place, RenameMode::Exchange).await;
        self.named(ended, undo, "link: no space").await.map(drop)
    }

    /// A directory's name, and whether there is one.
    pub(super) fn any_directory(&mut self) -> (String, bool) {
        let path = format!("d{}", self.rng.below(DIRS));
        let exists = self.model.borrow().names().contains_key(&path);
        (path, exists)
    }

    pub(super) async fn make_directory(&mut self) -> Ended {
        match self.any_directory() {
            (path, false) => self.mkdir(&path).await.map(drop),
            _ => Ok(()),
        }
    }

    /// Makes a directory. Returns whether there was space for it.
    pub(super) async fn mkdir(&mut self, path: &str) -> Ended<bool> {
        let (dir, name) = self.place(path).await?;
        self.log(Call::Mkdir(path.to_owned()));
        self.called("mkdir");
        let (_, undo) = self.model.borrow_mut().mkdir(path);
        let made = self.fs.mkdir(self.caller, dir, name, 0o755).await;
        let Some(attr) = self.named(made, undo, "mkdir: no space").await? else {
            return Ok(false);
        };
        self.model.borrow_mut().made(identity(&attr));
        Ok(true)
    }

    /// Removes a directory with the files in it.
    pub(super) async fn remove_directory(&mut self) -> Ended {
        match self.any_directory() {
            (path, true) => self.remove_whole(&path).await,
            _ => Ok(()),
        }
    }

    /// Removes a directory with all that is in it.
    pub(super) async fn remove_whole(&mut self, path: &str) -> Ended {
        let (dirs, files): (Vec<String>, Vec<String>) = {
            let model = self.model.borrow();
            let is_dir = |path: &String| {
                model.names().get(path).is_some_and(|node| model.is_directory(*node))
            };
            model.children(path).into_iter().partition(is_dir)
        };
        for file in files {
            self.unlink_path(&file).await?;
        }
        for dir in dirs.iter().rev() {
            self.rmdir(dir).await?;
        }
        self.rmdir(path).await
    }

    async fn rmdir(&mut self, path: &str) -> Ended {
        let (dir, name) = self.place(path).await?;
        drop(self.model.borrow_mut().remove(path));
        self.log(Call::Rmdir(path.to_owned()));
        self.called("rmdir");
        Ok(self.fs.rmdir(self.caller, dir, name).await?)
    }

    pub(super) async fn move_directory(&mut self) -> Ended {
        let ((from, is), (to, taken)) = (self.any_directory(), self.any_directory());
        if !is || taken {
            return Ok(());
        }
        self.move_name(&from, &to).await
    }

    /// Opens a file, with flags.
    pub(super) async fn open(&mut self) -> Ended {
        let Some((path, node)) = self.any_name(|model, node| model.is_file(node)) else {
            return Ok(());
        };
        if self.open.len() == OPEN_MAX || self.is_open(node) {
            return Ok(());
        }
        let [append, sync, dsync, direct] = [0.3, 0.15, 0.15, 0.3].map(|p| self.rng.chance(p));
        let flags = OpenFlags { append, sync, dsync, direct };
        self.open_path(&path, node, flags).await
    }

    pub(super) async fn open_path(&mut self, path: &str, node: Node, flags: OpenFlags) -> Ended {
        let ino = self.walk(path).await?.ino;
        self.log(Call::Open(path.to_owned(), handle_of(node), flags));
        self.called("open");
        let fh = self.fs.open(self.caller, ino, flags).await?;
        self.open.push(Opened { fh, node });
        Ok(())
    }

    pub(super) async fn close_any(&mut self) -> Ended {
        if self.open.is_empty() {
            return Ok(());
        }
        let index = self.rng.below(self.open.len() as u64) as usize;
        let opened = self.open.remove(index);
        self.close(opened).await
    }

    pub(super) async fn close(&mut self, Opened { fh, node }: Opened) -> Ended {
        self.log(Call::Close(handle_of(node)));
        self.called("close");
        if !self.is_named(node) {
            self.progress.unlinked.set(self.progress.unlinked.get() - 1);
        }
        Ok(self.fs.close(self.caller, fh.ino).await?)
    }

    /// Names, targets and attributes are what the model knows.
    pub(super) async fn look(&mut self) -> Ended {
        let (dir, is) = self.any_directory();
        let dir = if is { dir } else { String::new() };
        let ino = self.walk(&dir).await?.ino;
        self.called("readdir");
        let mut shown: Vec<String> = Vec::new();
        let mut cookie = 0;
        loop {
            let some = self.fs.readdir(self.caller, ino, cookie, 7).await?;
            let Some(last) = some.last() else { break };
            cookie = last.cookie;
            let names = some.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned());
            shown.extend(names.filter(|name| name != "." && name != ".."));
        }
        shown.sort_unstable();
        let known = self.model.borrow().names_in(&dir);
        if shown != known {
            return Err(CheckFailure::new(format!(
                "directory \"{dir}\" lists {}; expected {}",
                shown.join(", "),
                known.join(", ")
            )));
        }
        self.called("statfs");
        let stat = self.fs.statfs(self.caller).await?;
        if stat.free > stat.blocks {
            return Err(CheckFailure::new(format!(
                "{} of {} blocks are free",
                stat.free, stat.blocks
            )));
        }
        self.look_at_link().await
    }

    async fn look_at_link(&mut self) -> Ended {
        let Some((path, node)) = self.any_name(|model, node| model.target(node).is_some()) else {
            return Ok(());
        };
        let ino = self.walk(&path).await?.ino;
        self.called("readlink");
        let target = self.fs.readlink(self.caller, ino).await?;
        match self.model.borrow().target(node) == Some(&target[..]) {
            true => Ok(()),
            false => Err(CheckFailure::new(format!("{path} leads to another target"))),
        }
    }

    /// A name for a file that has none here yet.
    pub(super) fn new_path(&mut self) -> Option<String> {
        let path = format!("f{}", FILES + self.rng.below(2));
        (!self.model.borrow().names().contains_key(&path)).then_some(path)
    }
}
