//! What is known of one writer's directory: every state that its names may have after a power cut,
//! and what each of its files may hold. Shares nothing with file systems but the words of the contract.
//!
//! - Names change one operation after the other, so a cut leaves the names after some operation: none
//!   before the last that a sync has covered, none behind the one under way. With file-level commits
//!   ([`Model::records`]) a new file that was synced may have come back without what came before it.
//! - A page holds what it held when a sync covered it, or anything it was meant to hold since. Zeroes
//!   are what a hole holds, and what was cut off.
//! - A length is one that the file had since a sync covered it, or the beginning of what a write made
//!   longer: write-back moves the length page by page.
//! - With `data=writeback`, a page that may have got its block since may hold anything.

use super::tree::{FileSnapshot, Identity, PAGE, Tree, cut_page};
use nandscape_block::{SectorData, Tag};
use nandscape_fs::contract::Kind;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A file or directory of the model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Node(pub(crate) u64);

/// The writer's directory itself.
pub(crate) const ROOT: Node = Node(0);

/// Names by path from the writer's directory.
pub(crate) type Names = BTreeMap<String, Node>;

/// Lines of the event log that are kept.
const EVENT_LOG_LINES_MAX: usize = 100;

const ZERO: SectorData = SectorData::Tag(Tag::ZERO);

/// What a page may hold.
#[derive(Clone, Debug)]
struct Page {
    covered: SectorData,
    later: Vec<SectorData>,
    /// What may lie behind the end of the file in this page, of writes that a cut took the length of.
    behind: Vec<SectorData>,
}

impl Default for Page {
    fn default() -> Self {
        Self { covered: ZERO, later: Vec::new(), behind: Vec::new() }
    }
}

impl Page {
    fn newest(&self) -> &SectorData {
        self.later.last().unwrap_or(&self.covered)
    }

    fn values(&self) -> impl Iterator<Item = &SectorData> {
        [&self.covered].into_iter().chain(&self.later).chain(&self.behind)
    }

    /// Whether it may have got its block since it was covered.
    fn may_be_new(&self) -> bool {
        !self.later.is_empty() && self.values().any(|value| *value == ZERO)
    }
}

/// What a file may be.
#[derive(Clone, Default, Debug)]
struct Content {
    size: u64,
    sizes: Vec<u64>,
    pages: BTreeMap<u64, Page>,
}

impl Content {
    fn newest_size(&self) -> u64 {
        self.sizes.last().copied().unwrap_or(self.size)
    }

    fn may_have(&self, size: u64) -> bool {
        let all = || self.sizes.iter().copied().chain([self.size]);
        let (least, most) = (all().min().unwrap_or(0), all().max().unwrap_or(0));
        all().any(|known| known == size)
            || (least..=most).contains(&size) && size.is_multiple_of(PAGE)
    }

    fn cover(&mut self) {
        self.size = self.newest_size();
        self.sizes.clear();
        for page in self.pages.values_mut() {
            if matches!(page.later.last(), Some(SectorData::Tag(_))) {
                page.behind.clear();
            }
            page.covered = page.later.pop().unwrap_or_else(|| page.covered.clone());
            page.later.clear();
        }
    }
}

/// A file that a record of its own may bring back.
#[derive(Clone, Debug)]
struct Record {
    node: Node,
    path: String,
    /// Whether its sync has ended and nothing happened to its name since.
    certain: bool,
}

/// Everything known of a writer's directory.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    root: String,
    /// Whether files are committed by records of their own.
    records: bool,
    /// Whether new blocks may show what they held before.
    stale_allowed: bool,
    /// The states that the names may have, oldest first; never empty.
    states: VecDeque<Names>,
    /// Number of the oldest state.
    first: u64,
    /// The state in which a node's name, or the names in it, changed last; and that in which it came to
    /// be, if that is not covered.
    changed: BTreeMap<Node, (u64, u64)>,
    files: BTreeMap<Node, Content>,
    recorded: BTreeMap<Node, (u64, Record)>,
    identities: BTreeMap<Identity, Node>,
    unborn: Option<Node>,
    nodes: u64,
    event_log: VecDeque<String>,
}

/// The directory of a path, and the name in it.
pub(crate) fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(dir, _)| dir)
}

impl Model {
    pub(crate) fn new(root: String, records: bool, stale_allowed: bool) -> Self {
        Self {
            root,
            records,
            stale_allowed,
            states: VecDeque::from([Names::new()]),
            first: 0,
            changed: BTreeMap::new(),
            files: BTreeMap::new(),
            recorded: BTreeMap::new(),
            identities: BTreeMap::new(),
            unborn: None,
            nodes: 1,
            event_log: VecDeque::new(),
        }
    }

    /// The directory's name below the root of the file system.
    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// Adds a line to the event log.
    pub(crate) fn tell(&mut self, line: String) {
        if self.event_log.len() == EVENT_LOG_LINES_MAX {
            self.event_log.pop_front();
        }
        self.event_log.push_back(line);
    }

    pub(crate) fn event_log(&self) -> Vec<String> {
        self.event_log.iter().cloned().collect()
    }

    /// The names as the writer knows them.
    pub(crate) fn names(&self) -> &Names {
        &self.states[self.states.len() - 1]
    }

    pub(crate) fn is_file(&self, node: Node) -> bool {
        self.files.contains_key(&node)
    }

    pub(crate) fn size(&self, node: Node) -> u64 {
        self.files.get(&node).map_or(0, Content::newest_size)
    }

    fn newest(&self) -> u64 {
        self.first + self.states.len() as u64 - 1
    }

    /// An operation on names begins, after which they are these: it changes the directories of these
    /// paths, and these nodes.
    fn change(&mut self, names: Names, paths: &[&str], nodes: &[Node]) {
        self.states.push_back(names);
        let newest = self.newest();
        let names = self.names();
        let dir = |path: &&str| parent(path).map_or(Some(ROOT), |dir| names.get(dir).copied());
        let dirs: Vec<Node> = paths.iter().filter_map(dir).collect();
        for node in dirs.into_iter().chain(nodes.iter().copied()) {
            self.changed.entry(node).or_default().0 = newest;
            if let Some((_, record)) = self.recorded.get_mut(&node) {
                record.certain = false;
            }
        }
    }

    /// A file or directory is being made.
    pub(crate) fn make(&mut self, path: &str, kind: Kind) -> Node {
        let node = Node(self.nodes);
        self.nodes += 1;
        let mut names = self.names().clone();
        names.insert(path.to_owned(), node);
        if kind == Kind::File {
            self.files.insert(node, Content::default());
        }
        self.unborn = Some(node);
        self.change(names, &[path], &[]);
        self.changed.insert(node, (self.newest(), self.newest()));
        node
    }

    /// It was made, and is this.
    pub(crate) fn made(&mut self, identity: Identity) {
        if let Some(node) = self.unborn.take() {
            self.identities.insert(identity, node);
        }
    }

    /// A name is being removed.
    pub(crate) fn remove(&mut self, path: &str) {
        let mut names = self.names().clone();
        let node = names.remove(path);
        self.change(names, &[path], node.as_slice());
    }

    /// A name is being moved, with all below it; what the new one led to loses it.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let mut names = self.names().clone();
        let replaced = names.remove(to);
        let moved = names.remove(from);
        names.extend(moved.map(|node| (to.to_owned(), node)));
        let below = format!("{from}/");
        let children: Vec<String> =
            names.keys().filter(|p| p.starts_with(&below)).cloned().collect();
        for child in children {
            if let Some(node) = names.remove(&child) {
                names.insert(format!("{to}/{}", &child[below.len()..]), node);
            }
        }
        let nodes: Vec<Node> = moved.into_iter().chain(replaced).collect();
        self.change(names, &[from, to], &nodes);
    }

    /// Pages are being written, with these contents.
    pub(crate) fn write(&mut self, node: Node, first: u64, contents: &[SectorData]) {
        let Some(file) = self.files.get_mut(&node) else { return };
        for (page, content) in (first..).zip(contents) {
            file.pages.entry(page).or_default().later.push(content.clone());
        }
        let size = file.newest_size().max((first + contents.len() as u64) * PAGE);
        file.sizes.push(size);
    }

    /// The length is being set.
    pub(crate) fn truncate(&mut self, node: Node, size: u64) {
        let Some(file) = self.files.get_mut(&node) else { return };
        file.sizes.push(size);
        for (index, page) in file.pages.range_mut(size / PAGE..) {
            let kept = size.saturating_sub(index * PAGE);
            let behind: Vec<_> = page.behind.iter().map(|value| cut_page(value, kept)).collect();
            page.behind.extend(behind);
            let content = cut_page(page.newest(), kept);
            page.later.push(content);
        }
    }

    /// A sync of a file begins; with records it may be all that comes back.
    pub(crate) fn sync_begins(&mut self, node: Node, path: &str) {
        let made = self.changed.get(&node).copied().unwrap_or_default();
        if self.records && made.0 == made.1 && made.0 > self.first {
            let record = Record { node, path: path.to_owned(), certain: false };
            self.recorded.entry(node).or_insert((made.1, record));
        }
    }

    /// A sync of a file or directory has ended. Nothing has happened since it began.
    pub(crate) fn synced(&mut self, node: Node, data_only: bool) {
        if let Some(file) = self.files.get_mut(&node) {
            file.cover();
        }
        let (changed, made) = self.changed.get(&node).copied().unwrap_or_default();
        if let Some((_, record)) = self.recorded.get_mut(&node)
            && changed == made
        {
            record.certain = true;
            return;
        }
        self.cover_names(if data_only { made } else { changed });
    }

    /// A sync of everything has ended. Nothing has happened since it began.
    pub(crate) fn synced_all(&mut self) {
        self.files.values_mut().for_each(Content::cover);
        self.cover_names(self.newest());
    }

    /// No state before this one can come back.
    fn cover_names(&mut self, state: u64) {
        while self.first < state {
            self.states.pop_front();
            self.first += 1;
        }
        let first = self.first;
        self.recorded.retain(|_, (made, _)| *made > first);
    }

    /// What a node of the tree is in the model.
    fn node_of(&self, seen: &FileSnapshot) -> Option<Node> {
        self.identities.get(&seen.identity).copied().or(self.unborn)
    }

    /// What the tree shows in this directory.
    fn below<'a>(&self, tree: &'a Tree) -> BTreeMap<&'a str, &'a FileSnapshot> {
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
        let below = self.below(tree);
        self.judge_names(&below)?;
        for (path, seen) in &below {
            let node = self.node_of(seen).filter(|node| self.is_file(*node));
            if let (Some(node), Kind::File) = (node, seen.kind) {
                self.judge_file(node, seen).map_err(|e| format!("{}/{path}: {e}", self.root))?;
            }
        }
        Ok(())
    }

    fn judge_names(&self, below: &BTreeMap<&str, &FileSnapshot>) -> Result<(), String> {
        let shown: BTreeMap<&str, Option<Node>> =
            below.iter().map(|(path, seen)| (*path, self.node_of(seen))).collect();
        let mut newest = String::new();
        for (index, names) in self.states.iter().enumerate().rev() {
            match self.fits(names, self.first + index as u64, &shown) {
                Ok(()) => return Ok(()),
                Err(why) if newest.is_empty() => newest = why,
                Err(_) => {}
            }
        }
        let (first, last) = (self.first, self.newest());
        let shown: Vec<String> = shown.iter().map(|(path, node)| show(path, *node)).collect();
        let oldest: Vec<String> =
            self.states[0].iter().map(|(path, node)| show(path, Some(*node))).collect();
        Err(format!(
            "{}: the names are those after none of the operations {first} to {last}: shown {}; after \
             operation {first} {}; from the last it differs in {newest}",
            self.root,
            shown.join(" "),
            oldest.join(" ")
        ))
    }

    /// Whether these are the names after an operation, and what records bring back.
    fn fits(
        &self,
        names: &Names,
        number: u64,
        shown: &BTreeMap<&str, Option<Node>>,
    ) -> Result<(), String> {
        let records = self.recorded.values().filter(|(made, _)| *made > number);
        let records: BTreeMap<&str, &Record> =
            records.map(|(_, record)| (record.path.as_str(), record)).collect();
        let paths: BTreeSet<&str> = names
            .keys()
            .map(String::as_str)
            .chain(shown.keys().copied())
            .chain(records.keys().copied())
            .collect();
        for path in paths {
            let known = names.get(path).copied();
            let seen = match shown.get(path) {
                Some(None) => return Err(format!("{path}, which is nothing that was made")),
                Some(node) => *node,
                None => None,
            };
            let fits = match records.get(path) {
                Some(record) if record.certain => seen == Some(record.node),
                Some(record) => seen == known || seen == Some(record.node),
                None => seen == known,
            };
            if !fits {
                return Err(path.to_owned());
            }
        }
        Ok(())
    }

    fn judge_file(&self, node: Node, seen: &FileSnapshot) -> Result<(), String> {
        let Some(file) = self.files.get(&node) else { return Ok(()) };
        if !file.may_have(seen.size) {
            let (size, sizes) = (file.size, &file.sizes);
            return Err(format!("length {}; covered {size}, later {sizes:?}", seen.size));
        }
        let unknown = Page::default();
        for (index, content) in (0..).zip(&seen.pages) {
            let page = file.pages.get(&index).unwrap_or(&unknown);
            let len = (seen.size - index * PAGE).min(PAGE);
            let known = page.values().any(|value| cut_page(value, len) == *content);
            let permitted = known || self.stale_allowed && page.may_be_new();
            if !permitted {
                let (content, covered) = (describe(content), describe(&page.covered));
                let later: Vec<String> = page.later.iter().map(describe).collect();
                return Err(format!(
                    "page {index} holds {content}; covered {covered}, later {}",
                    later.join(" ")
                ));
            }
        }
        Ok(())
    }

    /// Takes over what a cut left: from here on it is what was covered.
    pub(crate) fn settle(&mut self, tree: &Tree) {
        let below = self.below(tree);
        let mut names = Names::new();
        for (path, seen) in below {
            let Some(node) = self.node_of(seen) else { continue };
            self.identities.insert(seen.identity, node);
            names.insert(path.to_owned(), node);
            if let Some(file) = self.files.get_mut(&node) {
                let pages = (0..).zip(&seen.pages).map(|(index, covered)| {
                    let len = seen.size - index * PAGE;
                    let known = file.pages.get(&index).filter(|_| len < PAGE);
                    let values = known.into_iter().flat_map(Page::values);
                    let behind = values.filter(|value| cut_page(value, len) == *covered).cloned();
                    let behind = behind.collect();
                    (index, Page { covered: covered.clone(), later: Vec::new(), behind })
                });
                let pages = pages.collect();
                *file = Content { size: seen.size, sizes: Vec::new(), pages };
            }
        }
        let kept: BTreeSet<Node> = names.values().copied().collect();
        self.files.retain(|node, _| kept.contains(node));
        self.identities.retain(|_, node| kept.contains(node));
        self.changed.clear();
        self.recorded.clear();
        self.unborn = None;
        self.first = 0;
        self.states = VecDeque::from([names]);
    }

    /// Whether the tree is what the writer left, to the last byte.
    ///
    /// # Errors
    /// What is not.
    pub(crate) fn verify_exactly(&self, tree: &Tree) -> Result<(), String> {
        let mut newest = self.clone();
        newest.synced_all();
        newest.verify(tree)
    }
}

fn show(path: &str, node: Option<Node>) -> String {
    node.map_or_else(|| format!("{path}:?"), |Node(node)| format!("{path}:{node}"))
}

/// A content in few words.
fn describe(content: &SectorData) -> String {
    match content {
        SectorData::Absent => "nothing that was kept".to_owned(),
        SectorData::Tag(Tag::ZERO) => "zeroes".to_owned(),
        SectorData::Tag(tag) => format!("tag {:x}", tag.bits()),
        bytes => bytes
            .bytes()
            .map_or_else(String::new, |bytes| format!("bytes {:02x?}...", &bytes[..16])),
    }
}
