//! The load: writers, each in a directory of its own, that use every call of the contract and sync often, and
//! say to their [`Model`] what they do before they do it.
//!
//! - Names, content and attributes change one call after the other; syncs also run beside them.
//! - The volume is nearly full, so that blocks of removed files are soon those of others, and some seeds run
//!   out of space: a call that is refused for that is to have changed nothing but what it may have done in part.
//! - What calls return is held against the model, too.

mod content;
mod full;
mod names;
mod scenes;
mod style;
mod syncs;

use super::model::{Model, Node, ROOT, Undo, parent};
use super::power_switch::Device;
use super::reduced::{Operations, last_operation};
use super::space::Account;
use super::tree::{Fs, see};
use crate::calls::{Call, FileRef};
use crate::coverage::Coverage;
use crate::device::drive::CheckFailure;
use crate::event::EventKind;
pub(crate) use full::{Happened, Layer};
use nandscape_fs::contract::{Attr, Caller, Fh, FsError, Ino, Io, StatFs};
use nandscape_rt::{Handle, JoinHandle, Nanos, Stream};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use style::Step;
pub(crate) use style::Style;

/// Directories below a writer's, and names of files in each.
const DIRS: u64 = 3;
const FILES: u64 = 3;
/// Pages that a file has at most, but for special ones.
const PAGES: u64 = 12;
/// Files that a writer keeps open at most, and syncs that it has running beside its calls.
const OPEN_MAX: usize = 3;
const SYNCS_MAX: usize = 2;
/// Sectors written in a stretch after which writers stop: where a full volume cleans before every call, so many take
/// minutes.
const SECTORS_MAX: u64 = 200_000;
/// Free blocks with which a refusal for lack of space is wrong: at least, and beside those that are kept for metadata.
const ROOMY_BLOCKS: u64 = 160;
const ROOMY_BESIDE_KEPT: u64 = 112;
/// Directories that are changed now and then: only the oldest transactions of a log know of them.
const SHELF: &str = "shelf";

/// How a part of the load ends.
pub(crate) type Ended<T = ()> = Result<T, CheckFailure>;

/// One writer.
pub(crate) struct Writer {
    handle: Handle,
    device: Device,
    fs: Fs,
    caller: Caller,
    style: Style,
    model: Rc<RefCell<Model>>,
    coverage: Rc<RefCell<Coverage>>,
    rng: Stream,
    next_tag: u64,
    /// The writer's directory.
    dir: Ino,
    open: Vec<Opened>,
    syncs: Vec<JoinHandle<Ended>>,
    /// How each file was written last.
    last_io: BTreeMap<Node, Io>,
    progress: Rc<Progress>,
    operations: Operations,
    /// Calls that were refused for lack of space.
    refusals: u64,
    /// The account of the new volume.
    account: Option<Account>,
}

/// What the writers of a round are about, for what cuts power.
#[derive(Default, Debug)]
pub(crate) struct Progress {
    /// Syncs in progress.
    pub(crate) syncs: Cell<u32>,
    /// Open files without a name.
    pub(crate) unlinked: Cell<u32>,
    /// Layers that writers drive to their ends.
    driven: Cell<[i32; Layer::ALL.len()]>,
}

impl Progress {
    /// One writer more, or less, drives a layer to its end.
    fn drive(&self, layer: Layer, writers: i32) {
        let mut driven = self.driven.get();
        driven[layer as usize] += writers;
        self.driven.set(driven);
    }

    /// Layers that are driven to their ends.
    pub(crate) fn driven(&self) -> impl Iterator<Item = Layer> {
        let driven = self.driven.get();
        Layer::ALL.into_iter().filter(move |layer| driven[*layer as usize] > 0)
    }
}

/// What all writers of a round have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) device: Device,
    pub(crate) fs: Fs,
    pub(crate) style: Style,
    pub(crate) coverage: Rc<RefCell<Coverage>>,
    pub(crate) progress: Rc<Progress>,
    pub(crate) operations: Operations,
    pub(crate) account: Option<Account>,
    pub(crate) seed: u64,
    pub(crate) round: u32,
}

/// A file that a writer has open.
#[derive(Clone, Copy, Debug)]
struct Opened {
    fh: Fh,
    node: Node,
}

/// A file to work on.
#[derive(Clone, Debug)]
struct Target {
    ino: Ino,
    node: Node,
    /// What the event log calls it.
    name: FileRef,
    opened: Option<Fh>,
}

/// The handle of a file that is open, in the event log.
fn handle_of(node: Node) -> String {
    node.0.to_string()
}

impl Writer {
    /// The writer of a model; the round keeps its tags from being those of another round.
    pub(crate) fn new(shared: Shared, number: u16, model: &Rc<RefCell<Model>>) -> Self {
        let Shared { handle, device, fs, style, coverage, progress, operations, .. } = shared;
        let Shared { account, seed, round, .. } = shared;
        Self {
            handle,
            device,
            dir: fs.root(),
            fs,
            caller: Caller { thread: number, core: number, uid: 0, gid: 0 },
            style,
            model: Rc::clone(model),
            coverage,
            rng: Stream::new(seed, &format!("writer-{number}-{round}")),
            next_tag: u64::from(number + 1) << 48 | u64::from(round + 1) << 32,
            open: Vec::new(),
            syncs: Vec::new(),
            last_io: BTreeMap::new(),
            progress,
            operations,
            refusals: 0,
            account,
        }
    }

    /// Works until it has done enough.
    pub(crate) async fn run(mut self) -> Ended {
        let root = self.model.borrow().root().to_owned();
        self.dir = self.fs.lookup(self.caller, self.fs.root(), root.as_bytes()).await?.ino;
        if self.begins(0) && self.rng.chance(0.3) {
            self.grow_all().await?;
        }
        for number in 1..=self.style.operations as u32 {
            if self.device.with(|switch| switch.bios().sectors_written) > SECTORS_MAX {
                break;
            }
            if self.begins(number) {
                self.step().await?;
                self.call_ended();
            }
        }
        while let Some(opened) = self.open.pop() {
            self.close(opened).await?;
        }
        self.end_syncs(0).await
    }

    /// Whether an operation is left of the run.
    fn begins(&mut self, number: u32) -> bool {
        let last = || last_operation(&self.handle, &self.device);
        self.operations.begins(self.caller.thread, number, &mut self.rng, last)
    }

    async fn step(&mut self) -> Ended {
        let scatter = self.style.scatter_percent;
        if scatter > 0 && self.rng.below(100) < scatter {
            return self.scatter().await;
        }
        if let Some(full) = self.style.full
            && self.rng.below(100) < full.percent
        {
            return self.drive_to_the_end(full).await;
        }
        if self.rng.below(100) < self.style.sync_percent {
            return self.sync().await;
        }
        match self.style.step(&mut self.rng) {
            Step::Write => self.write().await,
            Step::WritePart => self.write_part().await,
            Step::Append => self.append().await,
            Step::UseOpen => self.use_open().await,
            Step::Read => self.read().await,
            Step::Truncate => self.truncate().await,
            Step::Allocate => self.allocate().await,
            Step::Owner => self.set_owner().await,
            Step::Xattr => self.change_xattr().await,
            Step::Look => self.look().await,
            Step::Symlink => self.make_symlink().await,
            Step::Link => self.make_link().await,
            Step::Unlink => self.unlink().await,
            Step::Rename => self.rename().await,
            Step::Exchange => self.exchange().await,
            Step::MakeDirectory => self.make_directory().await,
            Step::RemoveDirectory => self.remove_directory().await,
            Step::MoveDirectory => self.move_directory().await,
            Step::Open => self.open().await,
            Step::Close => self.close_any().await,
            Step::SyncBeside => self.sync_beside().await,
            Step::Pause => self.pause().await,
            Step::BlocksAgain => self.use_blocks_again().await,
            Step::Shelf => self.use_shelf().await,
            Step::Redirty => self.redirty().await,
            Step::GrowAndSync => self.grow_and_sync().await,
            Step::Preallocate => self.preallocate().await,
            Step::Replace => self.replace().await,
            Step::Orphan => self.orphan().await,
            Step::ManyExtents => self.many_extents().await,
            Step::Fill => self.fill().await,
        }
    }

    async fn pause(&mut self) -> Ended {
        if self.style.pause_ns > 0 {
            let pause = Nanos(self.rng.below(self.style.pause_ns));
            self.handle.sleep(pause).await;
        }
        Ok(())
    }

    fn log(&self, call: Call) {
        self.model.borrow_mut().log(self.handle.now(), EventKind::Call(call));
    }

    /// What was done last has ended: a sync that begins now covers it.
    fn call_ended(&self) {
        self.model.borrow_mut().call_ended();
    }

    fn called(&self, call: &'static str) {
        self.coverage.borrow_mut().call(call);
    }

    fn reached(&self, state: &'static str) {
        self.coverage.borrow_mut().state(state);
    }

    /// A path where a file may be: in a directory that exists.
    fn any_path(&mut self) -> String {
        let (dir, name) = (self.rng.below(DIRS + 1), self.rng.below(FILES));
        let path = format!("d{dir}/f{name}");
        let model = self.model.borrow();
        match parent(&path).is_some_and(|dir| model.names().contains_key(dir)) {
            true => path,
            false => format!("f{name}"),
        }
    }

    /// A name of those that the load uses all the time, for which `fits` holds; if there is any.
    fn any_name(&mut self, fits: impl Fn(&Model, Node) -> bool) -> Option<(String, Node)> {
        let model = self.model.borrow();
        let names = || {
            let busy = model.names().iter().filter(|(path, _)| !path.starts_with(SHELF));
            busy.filter(|(_, node)| fits(&model, **node))
        };
        let count = names().count() as u64;
        let index = (count > 0).then(|| self.rng.below(count))?;
        names().nth(index as usize).map(|(path, node)| (path.clone(), *node))
    }

    /// A file that exists, if there is any: one that is open now and then, even if it has lost its names.
    async fn any_file(&mut self) -> Ended<Option<Target>> {
        if !self.open.is_empty() && self.rng.chance(0.25) {
            let index = self.rng.below(self.open.len() as u64) as usize;
            return Ok(Some(self.opened(self.open[index])));
        }
        match self.any_name(Model::is_file) {
            Some((path, node)) => Ok(Some(self.target(&path, node).await?)),
            None => Ok(None),
        }
    }

    async fn target(&self, path: &str, node: Node) -> Ended<Target> {
        let ino = self.walk(path).await?.ino;
        Ok(Target { ino, node, name: FileRef::Path(path.to_owned()), opened: None })
    }

    fn opened(&self, Opened { fh, node }: Opened) -> Target {
        let name = FileRef::Handle(handle_of(node));
        Target { ino: fh.ino, node, name, opened: Some(fh) }
    }

    fn is_open(&self, node: Node) -> bool {
        self.open.iter().any(|opened| opened.node == node)
    }

    fn is_named(&self, node: Node) -> bool {
        self.model.borrow().links(node) > 0
    }

    /// Walks to a path from the writer's directory; the empty one is that directory.
    async fn walk(&self, path: &str) -> Result<Attr, FsError> {
        let mut names = path.split('/').filter(|name| !name.is_empty()).peekable();
        let mut at = self.dir;
        while let Some(name) = names.next() {
            let attr = self.fs.lookup(self.caller, at, name.as_bytes()).await?;
            at = attr.ino;
            if names.peek().is_none() {
                self.called("lookup");
                return Ok(attr);
            }
        }
        self.called("getattr");
        self.fs.getattr(self.caller, at).await
    }

    /// The directory of a path, and the last name.
    async fn place<'a>(&self, path: &'a str) -> Result<(Ino, &'a [u8]), FsError> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let dir = match parent(path) {
            Some(dir) => self.walk(dir).await?.ino,
            None => self.dir,
        };
        Ok((dir, name.as_bytes()))
    }

    /// What a directory that is to be synced is called and is: the writer's own without a path.
    fn directory(&self, path: &str) -> Option<Node> {
        match path {
            "" => Some(ROOT),
            path => self.model.borrow().names().get(path).copied(),
        }
    }

    /// Passes on what a call that changes names returned; if there was no space for it, it has changed none.
    async fn named<T>(
        &mut self,
        ended: Result<T, FsError>,
        undo: Undo,
        call: &'static str,
    ) -> Ended<Option<T>> {
        match ended {
            Err(FsError::NoSpace) => {
                self.called(call);
                self.model.borrow_mut().undo(undo);
                self.check_refusal().await?;
                Ok(None)
            }
            other => Ok(Some(other?)),
        }
    }

    /// Looks at a file of which a call was refused for lack of space.
    async fn refused(&mut self, target: &Target, call: &'static str) -> Ended {
        self.check_refusal().await?;
        self.look_again(target, call).await
    }

    /// Looks at a file of which a call was refused: the call may have done a part of its work.
    async fn look_again(&mut self, target: &Target, call: &'static str) -> Ended {
        self.called(call);
        let attr = self.fs.getattr(self.caller, target.ino).await?;
        let seen = see(&self.fs, &attr).await?;
        let learned = self.model.borrow_mut().relearn(target.node, &seen);
        learned.map_err(|why| CheckFailure::new(format!("{}: {why}", target.name)))
    }

    fn note_refusal(&mut self) {
        self.refusals += 1;
        self.reached("space ran out");
        self.model.borrow_mut().log(self.handle.now(), EventKind::NoSpace);
    }

    /// There was no space for a call: there is little, unless others have given some back since.
    async fn check_refusal(&mut self) -> Ended {
        self.note_refusal();
        let StatFs { free, kept, files_free, .. } = self.fs.statfs(self.caller).await?;
        let roomy = ROOMY_BLOCKS.max(ROOMY_BESIDE_KEPT + kept);
        match free < roomy || files_free == 0 || self.style.writers > 1 {
            true => Ok(()),
            false => Err(CheckFailure::new(format!("no space, though {free} blocks are free"))),
        }
    }
}
