//! What is known of one writer's directory: every state that its names may have after a power cut,
//! and what each of its files may hold. Shares nothing with file systems but the words of the contract.
//!
//! The writer says what it does before it does it, so that a cut in the midst of a call leaves what was there
//! before it or what is there after it. A sync covers what had been done when it began: it may run beside
//! other calls ([`Model::sync_begins`], [`Model::synced`]).

mod file;
mod losses;
mod names;
mod versions;

use super::tree::{FileSnapshot, Identity, Tree, Xattrs};
use crate::event::{EventKind, LogEvent};
pub(crate) use file::describe as show_content;
use file::{File, Stale};
use losses::Synced;
use names::{Change, History, Record, State};
pub(crate) use names::{Names, Node, ROOT};
use nandscape_block::SectorData;
use nandscape_fs::Promises;
use nandscape_fs::contract::Kind;
use nandscape_rt::Nanos;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use versions::Moment;

/// Events of the log that are kept.
const EVENTS_MAX: usize = 150;

/// What a sync is to make durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// Content and length of a file (fdatasync).
    Content(Node),
    /// A file or directory, and the names that lead to it or that it holds (fsync).
    Whole(Node),
    /// Everything (syncfs).
    All,
}

/// A sync in progress: what it will have covered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sync {
    scope: Scope,
    began: Moment,
    changed: Changed,
    /// The last operation that had ended when it began.
    newest: State,
}

/// What is not the content of a file.
#[derive(Clone, Debug)]
enum Body {
    File(File),
    Directory,
    /// Its target.
    Symlink(Vec<u8>),
}

/// A call that was refused, to be undone: it is to have changed no name.
#[must_use]
pub(crate) struct Undo {
    change: Change,
    /// What had changed each of these nodes before the call.
    changed: Vec<(Node, Option<Changed>)>,
}

/// The operations on names that changed a node.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Changed {
    /// The last that changed its name, or the names in it, and the one before that.
    last: State,
    before: State,
    /// The one that made it, if that is not covered.
    made: State,
}

/// Everything known of a writer's directory.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    root: String,
    /// Whether files are committed by records of their own.
    records: bool,
    /// Which blocks may show what they held before.
    stale: Stale,
    history: History,
    changed: BTreeMap<Node, Changed>,
    bodies: BTreeMap<Node, Body>,
    recorded: BTreeMap<Node, Record>,
    /// What an fsync or fdatasync made durable, since power came on.
    synced: Synced,
    identities: BTreeMap<Identity, Node>,
    unborn: Option<Node>,
    nodes: u64,
    now: Moment,
    /// What was done before the call in progress, if there is one: the moment, and the operation.
    before_call: Option<(Moment, State)>,
    event_log: VecDeque<LogEvent>,
}

/// The directory of a path, and the name in it.
pub(crate) fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(dir, _)| dir)
}

impl Model {
    fn new(root: String, records: bool, stale: Stale) -> Self {
        Self {
            root,
            records,
            stale,
            history: History::default(),
            changed: BTreeMap::new(),
            bodies: BTreeMap::new(),
            recorded: BTreeMap::new(),
            synced: Synced::default(),
            identities: BTreeMap::new(),
            unborn: None,
            nodes: 1,
            now: 1,
            before_call: None,
            event_log: VecDeque::new(),
        }
    }

    /// One whose file system has these promises.
    pub(crate) fn with_promises(root: String, promises: Promises) -> Self {
        Self::new(root, promises.syncs_single_files, Stale::permitted_by(promises))
    }

    /// The directory's name below the root of the file system.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// Adds a call, or its end, to the event log.
    pub(crate) fn log(&mut self, at: Nanos, what: EventKind) {
        if self.event_log.len() == EVENTS_MAX {
            self.event_log.pop_front();
        }
        self.event_log.push_back(LogEvent { at, what });
    }

    pub(crate) fn event_log(&self) -> Vec<LogEvent> {
        self.event_log.iter().cloned().collect()
    }

    /// The log of a writer among others: its calls and files have the name of its directory.
    pub(crate) fn named_log(&self) -> Vec<LogEvent> {
        let named = |LogEvent { at, what }: &LogEvent| {
            let what = match what.clone() {
                EventKind::Call(call) => EventKind::Call(call.within(&self.root)),
                EventKind::Returned(call) => EventKind::Returned(call.within(&self.root)),
                other => other,
            };
            LogEvent { at: *at, what }
        };
        self.event_log.iter().map(named).collect()
    }

    /// The names as the writer knows them.
    pub(crate) fn names(&self) -> &Names {
        self.history.names()
    }

    pub(crate) fn is_file(&self, node: Node) -> bool {
        matches!(self.bodies.get(&node), Some(Body::File(_)))
    }

    pub(crate) fn is_directory(&self, node: Node) -> bool {
        matches!(self.bodies.get(&node), Some(Body::Directory))
    }

    pub(crate) fn size(&self, node: Node) -> u64 {
        self.file(node).map_or(0, File::size)
    }

    /// Names that lead to a node.
    pub(crate) fn links(&self, node: Node) -> usize {
        self.names().values().filter(|named| **named == node).count()
    }

    fn file(&self, node: Node) -> Option<&File> {
        match self.bodies.get(&node) {
            Some(Body::File(file)) => Some(file),
            _ => None,
        }
    }

    /// The call in progress has ended.
    pub(crate) fn call_ended(&mut self) {
        self.before_call = None;
    }

    fn call_begins(&mut self) {
        let before = (self.now, self.history.last());
        self.before_call.get_or_insert(before);
        self.now += 1;
    }

    /// A file, to be changed now.
    fn change_file(&mut self, node: Node, change: impl FnOnce(&mut File, Moment)) {
        self.call_begins();
        if let Some(Body::File(file)) = self.bodies.get_mut(&node) {
            change(file, self.now);
        }
    }

    /// An operation on names begins: it changes the directories of these paths, and these nodes.
    fn change(&mut self, change: Change, nodes: Vec<Node>) -> Undo {
        self.call_begins();
        let paths: Vec<String> = change.iter().map(|(path, _)| path.clone()).collect();
        let before: Vec<Node> = paths.iter().filter_map(|path| self.directory_of(path)).collect();
        let undo = self.history.push(change);
        let after: Vec<Node> = paths.iter().filter_map(|path| self.directory_of(path)).collect();
        let last = self.history.last();
        let all: BTreeSet<Node> = before.into_iter().chain(after).chain(nodes).collect();
        let earlier = all.iter().map(|node| (*node, self.changed.get(node).copied()));
        let undo = Undo { change: undo, changed: earlier.collect() };
        for node in all {
            let changed = self.changed.entry(node).or_default();
            (changed.before, changed.last) = (changed.last, last);
            if let Some(record) = self.recorded.get_mut(&node) {
                record.certain = false;
            }
        }
        undo
    }

    fn directory_of(&self, path: &str) -> Option<Node> {
        parent(path).map_or(Some(ROOT), |dir| self.names().get(dir).copied())
    }

    /// The call was refused, so that the names are what they were before it.
    pub(crate) fn undo(&mut self, undo: Undo) {
        self.unborn = None;
        drop(self.change(undo.change, Vec::new()));
        for (node, changed) in undo.changed {
            match changed {
                Some(changed) => drop(self.changed.insert(node, changed)),
                None => drop(self.changed.remove(&node)),
            }
        }
    }

    fn make(&mut self, path: &str, body: Body) -> (Node, Undo) {
        let node = Node(self.nodes);
        self.nodes += 1;
        self.bodies.insert(node, body);
        self.unborn = Some(node);
        let undo = self.change(vec![(path.to_owned(), Some(node))], Vec::new());
        let made = self.history.last();
        self.changed.insert(node, Changed { last: made, before: 0, made });
        (node, undo)
    }

    /// A file is being made.
    pub(crate) fn create(&mut self, path: &str, mode: u16) -> (Node, Undo) {
        self.make(path, Body::File(File::new(mode)))
    }

    /// A directory is being made.
    pub(crate) fn mkdir(&mut self, path: &str) -> (Node, Undo) {
        self.make(path, Body::Directory)
    }

    /// A symbolic link is being made.
    pub(crate) fn symlink(&mut self, path: &str, target: &[u8]) -> (Node, Undo) {
        self.make(path, Body::Symlink(target.to_vec()))
    }

    /// It was made, and is this.
    pub(crate) fn made(&mut self, identity: Identity) {
        if let Some(node) = self.unborn.take() {
            self.identities.insert(identity, node);
        }
    }

    /// A file gets one more name.
    pub(crate) fn link(&mut self, node: Node, path: &str) -> Undo {
        self.change(vec![(path.to_owned(), Some(node))], vec![node])
    }

    /// A name is being removed.
    pub(crate) fn remove(&mut self, path: &str) -> Undo {
        let node = self.names().get(path).copied();
        self.change(vec![(path.to_owned(), None)], Vec::from_iter(node))
    }

    /// A name is being moved, with all below it; what the new one led to loses it.
    pub(crate) fn rename(&mut self, from: &str, to: &str) -> Undo {
        let [moved, replaced] = [from, to].map(|path| self.names().get(path).copied());
        if moved == replaced {
            return self.change(Vec::new(), Vec::new());
        }
        let mut change = self.below(from, |child| vec![(child.to_owned(), None)]);
        change.extend([(from.to_owned(), None), (to.to_owned(), moved)]);
        change.extend(self.moved_below(from, to));
        self.change(change, moved.into_iter().chain(replaced).collect())
    }

    /// Two names change places, with all below them.
    pub(crate) fn exchange(&mut self, one: &str, other: &str) -> Undo {
        let nodes = [one, other].map(|path| self.names().get(path).copied());
        let mut change = Vec::new();
        for path in [one, other] {
            change.extend(self.below(path, |child| vec![(child.to_owned(), None)]));
        }
        change.extend([(one.to_owned(), nodes[1]), (other.to_owned(), nodes[0])]);
        change.extend(self.moved_below(one, other));
        change.extend(self.moved_below(other, one));
        self.change(change, nodes.into_iter().flatten().collect())
    }

    fn below(&self, dir: &str, change: impl Fn(&str) -> Change) -> Change {
        self.children(dir).iter().flat_map(|child| change(child)).collect()
    }

    /// What lies below one directory, below another.
    fn moved_below(&self, from: &str, to: &str) -> Change {
        let moved = |child: &str| format!("{to}{}", &child[from.len()..]);
        self.below(from, |child| vec![(moved(child), self.names().get(child).copied())])
    }

    /// All paths below a directory.
    pub(crate) fn children(&self, dir: &str) -> Vec<String> {
        let below = format!("{dir}/");
        let from = self.names().range(below.clone()..).map(|(path, _)| path);
        from.take_while(|path| path.starts_with(&below)).cloned().collect()
    }

    /// Part of a page is being written, with what the page `with` holds there.
    pub(crate) fn write(&mut self, node: Node, page: u64, part: Range<usize>, with: &SectorData) {
        self.change_file(node, |file, at| file.write(at, page, part, with));
    }

    /// The length is being set.
    pub(crate) fn truncate(&mut self, node: Node, size: u64) {
        self.change_file(node, |file, at| file.truncate(at, size));
    }

    /// The file is being made at least so long.
    pub(crate) fn grow(&mut self, node: Node, end: u64) {
        self.change_file(node, |file, at| file.grow(at, end));
    }

    /// A range is being made zeroes.
    pub(crate) fn zero(&mut self, node: Node, range: &Range<u64>) {
        self.change_file(node, |file, at| file.zero(at, range));
    }

    /// Permission bits or owner are being set.
    pub(crate) fn set_owner(&mut self, node: Node, mode: Option<u16>, uid: Option<u32>) {
        self.change_file(node, |file, at| file.set_owner(at, mode, uid));
    }

    /// An extended attribute is being set, or removed.
    pub(crate) fn set_xattr(&mut self, node: Node, name: &[u8], value: Option<&[u8]>) {
        self.change_file(node, |file, at| file.set_xattr(at, name, value));
    }

    /// Extended attributes as the writer knows them.
    pub(crate) fn xattrs(&self, node: Node) -> Xattrs {
        self.file(node).map(File::xattrs).unwrap_or_default()
    }

    /// Where a symbolic link leads.
    pub(crate) fn target(&self, node: Node) -> Option<&[u8]> {
        match self.bodies.get(&node) {
            Some(Body::Symlink(target)) => Some(target),
            _ => None,
        }
    }

    /// Names in a directory, in order; of the writer's own without a path.
    pub(crate) fn names_in(&self, dir: &str) -> Vec<String> {
        let below = if dir.is_empty() { String::new() } else { format!("{dir}/") };
        let paths = self.names().keys().filter_map(|path| path.strip_prefix(&below));
        let mut names: Vec<String> =
            paths.filter(|name| !name.contains('/')).map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    /// The first page of a file that is no zeroes.
    pub(crate) fn first_data(&self, node: Node) -> Option<u64> {
        self.file(node)?.first_data()
    }

    /// A refused call may have done a part of its work: what the file shows now is the newest of it.
    ///
    /// # Errors
    /// The file shows what the call was not to leave.
    pub(crate) fn relearn(&mut self, node: Node, seen: &FileSnapshot) -> Result<(), String> {
        self.call_begins();
        let since = self.before_call.map_or(self.now, |(moment, _)| moment);
        match self.bodies.get_mut(&node) {
            Some(Body::File(file)) => file.relearn(since, self.now, seen, self.stale),
            _ => Ok(()),
        }
    }

    /// Whether a page that is read in operation may show this.
    pub(crate) fn may_show(&self, node: Node, page: u64, content: &SectorData) -> bool {
        self.file(node).is_none_or(|file| file.may_show(page, content))
    }

    /// A sync begins. With records a file may come back by the record of it alone.
    pub(crate) fn sync_begins(&mut self, scope: Scope) -> Sync {
        let (began, newest) = self.before_call.unwrap_or((self.now, self.history.last()));
        let mut changed = match scope {
            Scope::Content(node) | Scope::Whole(node) => {
                self.changed.get(&node).copied().unwrap_or_default()
            }
            Scope::All => Changed::default(),
        };
        if changed.last > newest {
            changed.last = changed.before;
        }
        let Changed { last, made, .. } = changed;
        if let Scope::Content(node) | Scope::Whole(node) = scope
            && self.records
            && last == made
            && last > self.history.first()
            && let Some((path, _)) = self.names().iter().find(|(_, named)| **named == node)
            && let Some(dir) = self.directory_of(path)
        {
            let name = path.rsplit('/').next().unwrap_or_default().to_owned();
            let record = Record { node, dir, name, made, certain: false };
            self.recorded.entry(node).or_insert(record);
        }
        self.now += 1;
        Sync { scope, began, changed, newest }
    }

    /// The call in progress ends with a sync, which covers what it does.
    pub(crate) fn sync_of_call(&mut self, scope: Scope) -> Sync {
        let before = self.before_call.take();
        let sync = self.sync_begins(scope);
        self.before_call = before;
        sync
    }

    /// A sync has ended.
    pub(crate) fn synced(&mut self, sync: &Sync) {
        let Changed { last, made, .. } = sync.changed;
        let (node, state) = match sync.scope {
            Scope::All => {
                for body in self.bodies.values_mut() {
                    if let Body::File(file) = body {
                        file.cover(sync.began);
                    }
                }
                return self.cover_names(sync.newest);
            }
            Scope::Content(node) => (node, made),
            Scope::Whole(node) => (node, last),
        };
        if let Some(Body::File(file)) = self.bodies.get_mut(&node) {
            match sync.scope {
                Scope::Content(_) => file.cover_content(sync.began),
                _ => file.cover(sync.began),
            }
        }
        self.synced.note(node, sync.newest, matches!(sync.scope, Scope::Whole(_)));
        let now = self.changed.get(&node).copied().unwrap_or_default();
        if let Some(record) = self.recorded.get_mut(&node)
            && last == made
        {
            record.certain = now.last == last;
            return;
        }
        self.cover_names(state);
    }

    /// No names before this operation can come back.
    fn cover_names(&mut self, state: State) {
        self.history.cover(state);
        let first = self.history.first();
        self.recorded.retain(|_, record| record.made > first);
    }

    /// What a node of the tree is in the model.
    fn node_of(&self, seen: &FileSnapshot) -> Option<Node> {
        self.identities.get(&seen.identity).copied().or(self.unborn)
    }

    /// What the tree shows in this directory.
    fn shown<'a>(&self, tree: &'a Tree) -> BTreeMap<&'a str, &'a FileSnapshot> {
        let prefix = format!("{}/", self.root);
        let below = tree.range(prefix.clone()..);
        below.map_while(|(path, seen)| Some((path.strip_prefix(&prefix)?, seen))).collect()
    }

    /// Whether a cut may have left this tree.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn verify(&self, tree: &Tree) -> Result<(), String> {
        if !tree.contains_key(&self.root) {
            return Err(format!("{} is gone", self.root));
        }
        let below = self.shown(tree);
        self.judge_names(&below).map_err(|why| format!("{}: {why}", self.root))?;
        for (path, seen) in &below {
            if let Some(node) = self.node_of(seen) {
                self.judge_node(node, seen)
                    .map_err(|why| format!("{}/{path}: {why}", self.root))?;
            }
        }
        Ok(())
    }

    fn judge_names(&self, below: &BTreeMap<&str, &FileSnapshot>) -> Result<(), String> {
        let shown = below.iter().map(|(path, seen)| (*path, self.node_of(seen))).collect();
        let records: Vec<&Record> = self.recorded.values().collect();
        self.history.judge(&shown, &records).map_err(|why| {
            let known = shown.iter().filter_map(|(path, node)| Some(names::show(path, (*node)?)));
            format!("shown {}: {why}", known.collect::<Vec<_>>().join(" "))
        })
    }

    fn judge_node(&self, node: Node, seen: &FileSnapshot) -> Result<(), String> {
        let kind = match self.bodies.get(&node) {
            None => return Ok(()),
            Some(Body::File(file)) if seen.kind == Kind::File => {
                return file.judge(seen, self.stale);
            }
            Some(Body::Symlink(target)) if seen.kind == Kind::Symlink => {
                return match *target == seen.target {
                    true => Ok(()),
                    false => Err("the target is another one".to_owned()),
                };
            }
            Some(Body::File(_)) => Kind::File,
            Some(Body::Directory) => Kind::Directory,
            Some(Body::Symlink(_)) => Kind::Symlink,
        };
        match kind == seen.kind {
            true => Ok(()),
            false => {
                Err(format!("a {}; it was made as a {}", kind_name(seen.kind), kind_name(kind)))
            }
        }
    }

    /// Takes over what a cut left: from here on it is what was covered.
    pub(crate) fn settle(&mut self, tree: &Tree) {
        let below = self.shown(tree);
        let mut names = Names::new();
        for (path, seen) in below {
            let Some(node) = self.node_of(seen) else { continue };
            self.identities.insert(seen.identity, node);
            names.insert(path.to_owned(), node);
            if let Some(Body::File(file)) = self.bodies.get_mut(&node) {
                file.settle(seen, self.stale);
            }
        }
        let kept: BTreeSet<Node> = names.values().copied().collect();
        self.bodies.retain(|node, _| kept.contains(node));
        self.identities.retain(|_, node| kept.contains(node));
        self.changed.clear();
        self.recorded.clear();
        self.synced = Synced::default();
        (self.unborn, self.before_call) = (None, None);
        self.history = History::of(names);
    }

    /// Whether the tree is what the writer left, to the last byte.
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn verify_exactly(&self, tree: &Tree) -> Result<(), String> {
        let mut newest = self.clone();
        let all = newest.sync_begins(Scope::All);
        newest.synced(&all);
        newest.verify(tree)
    }
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Symlink => "symbolic link",
        Kind::Special => "special file",
    }
}

#[cfg(test)]
mod tests;
