//! Syncs of files, directories and everything; beside other calls, too.

use super::{Ended, SYNCS_MAX, Target, Writer};
use crate::calls::{Call, FileRef};
use crate::device::drive::CheckFailure;
use crate::event::EventKind;
use crate::fs::model::{ROOT, Scope};
use nandscape_fs::contract::{Ino, OpenFlags};
use nandscape_rt::Aborted;
use std::rc::Rc;

/// A sync that is to be made.
#[derive(Clone, Debug)]
struct Wanted {
    scope: Scope,
    /// Of all but [`Scope::All`].
    ino: Ino,
    name: FileRef,
}

impl Writer {
    pub(super) async fn sync(&mut self) -> Ended {
        let wanted = self.any_sync().await?;
        self.make_durable(wanted).await
    }

    pub(super) async fn sync_all(&mut self) -> Ended {
        let wanted = self.everything();
        self.make_durable(wanted).await
    }

    fn everything(&self) -> Wanted {
        Wanted { scope: Scope::All, ino: self.dir, name: FileRef::Path(String::new()) }
    }

    /// A sync that runs beside the calls that follow.
    pub(super) async fn sync_beside(&mut self) -> Ended {
        let wanted = self.any_sync().await?;
        self.begin_sync(wanted).await
    }

    async fn any_sync(&mut self) -> Ended<Wanted> {
        match self.rng.below(20) {
            0 => Ok(self.everything()),
            1..=3 => self.any_directory_sync().await,
            kind => match self.any_file().await? {
                Some(target) if kind < 10 => Ok(content_of(&target)),
                Some(target) => Ok(whole(&target)),
                None => self.any_directory_sync().await,
            },
        }
    }

    async fn any_directory_sync(&mut self) -> Ended<Wanted> {
        let (path, is) = self.any_directory();
        self.directory_sync(if is { &path } else { "" }).await
    }

    async fn directory_sync(&self, path: &str) -> Ended<Wanted> {
        let node = self.directory(path).unwrap_or(ROOT);
        let ino = self.walk(path).await?.ino;
        let path = if path.is_empty() { "." } else { path };
        Ok(Wanted { scope: Scope::Whole(node), ino, name: FileRef::Path(path.to_owned()) })
    }

    pub(super) async fn sync_directory(&mut self, path: &str) -> Ended {
        let wanted = self.directory_sync(path).await?;
        self.make_durable(wanted).await
    }

    pub(super) async fn fsync(&mut self, target: &Target) -> Ended {
        self.make_durable(whole(target)).await
    }

    pub(super) async fn fdatasync(&mut self, target: &Target) -> Ended {
        self.make_durable(content_of(target)).await
    }

    /// Makes durable what a call has just done to a file, now and then: little else is in the transaction.
    pub(super) async fn maybe_fsync(&mut self, target: &Target) -> Ended {
        match self.rng.below(8) {
            0 => self.fdatasync(target).await,
            1 | 2 => self.fsync(target).await,
            _ => Ok(()),
        }
    }

    /// Begins an fsync that runs beside the calls that follow.
    pub(super) async fn begin_fsync(&mut self, target: &Target) -> Ended {
        self.begin_sync(whole(target)).await
    }

    async fn make_durable(&mut self, wanted: Wanted) -> Ended {
        self.call_ended();
        if let Scope::Content(node) | Scope::Whole(node) = wanted.scope
            && node != ROOT
            && !self.is_named(node)
        {
            self.reached("sync of an unlinked file");
        }
        self.syncing(wanted).await
    }

    /// The sync itself. A future that needs no writer.
    fn syncing(&self, wanted: Wanted) -> impl Future<Output = Ended> + use<> {
        let Wanted { scope, ino, name } = wanted;
        let (fs, caller, handle) = (self.fs.clone(), self.caller, self.handle.clone());
        let (model, coverage) = (Rc::clone(&self.model), Rc::clone(&self.coverage));
        let progress = Rc::clone(&self.progress);
        async move {
            let sync = model.borrow_mut().sync_begins(scope);
            let is_file = matches!(scope, Scope::Whole(node) if model.borrow().is_file(node));
            let call = match scope {
                Scope::All => "syncfs",
                Scope::Content(_) => "fdatasync",
                Scope::Whole(_) if is_file => "fsync of a file",
                Scope::Whole(_) => "fsync of a directory",
            };
            coverage.borrow_mut().call(call);
            let call = match scope {
                Scope::All => Call::Sync,
                Scope::Content(_) => Call::Fdatasync(name),
                Scope::Whole(_) => Call::Fsync(name),
            };
            model.borrow_mut().log(handle.now(), EventKind::Call(call.clone()));
            progress.syncs.set(progress.syncs.get() + 1);
            match scope {
                Scope::All => fs.syncfs(caller).await?,
                Scope::Content(_) => fs.fdatasync(caller, ino).await?,
                Scope::Whole(_) => fs.fsync(caller, ino).await?,
            }
            progress.syncs.set(progress.syncs.get() - 1);
            model.borrow_mut().log(handle.now(), EventKind::Returned(call));
            model.borrow_mut().synced(&sync);
            Ok(())
        }
    }

    /// Starts a task for a sync. The inode stays open for it.
    async fn begin_sync(&mut self, wanted: Wanted) -> Ended {
        self.call_ended();
        self.end_syncs(SYNCS_MAX - 1).await?;
        let (fs, caller, ino) = (self.fs.clone(), self.caller, wanted.ino);
        fs.open(caller, ino, OpenFlags::default()).await?;
        let sync = self.syncing(wanted);
        let sync = async move {
            sync.await?;
            Ok(fs.close(caller, ino).await?)
        };
        let name = format!("sync of writer {}", self.caller.thread);
        self.syncs.push(self.handle.spawn(name, sync));
        Ok(())
    }

    /// Waits until no more syncs than these run beside the calls.
    pub(super) async fn end_syncs(&mut self, left: usize) -> Ended {
        while self.syncs.len() > left {
            let ended = self.syncs.remove(0).await;
            ended.map_err(|Aborted| CheckFailure::new("a sync was aborted"))??;
        }
        Ok(())
    }
}

fn whole(target: &Target) -> Wanted {
    Wanted { scope: Scope::Whole(target.node), ino: target.ino, name: target.name.clone() }
}

fn content_of(target: &Target) -> Wanted {
    Wanted { scope: Scope::Content(target.node), ..whole(target) }
}
