//! The names of a writer's directory: they change one operation after the other, so a power cut leaves
//! the names after some operation: none before the last that a sync covered, none after the one in
//! progress. With file-level commits a new file that was synced may come back without what came before.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A file, directory or symbolic link of the model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Node(pub(crate) u64);

/// The writer's directory itself.
pub(crate) const ROOT: Node = Node(0);

/// Names by path from the writer's directory.
pub(crate) type Names = BTreeMap<String, Node>;

/// What one operation does to names: what each of these paths leads to afterwards.
pub(super) type Change = Vec<(String, Option<Node>)>;

/// What a tree shows: what each path leads to; `None` is nothing that was made.
pub(super) type Shown<'a> = BTreeMap<&'a str, Option<Node>>;

/// Number of an operation on names; 0 has the names that power came back with.
pub(super) type State = u64;

/// A file that a record of its own may bring back.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) node: Node,
    /// The directory that it comes back in, wherever that is then.
    pub(super) dir: Node,
    pub(super) name: String,
    /// The operation that made it.
    pub(super) made: State,
    /// Whether its sync has ended and nothing happened to its name since.
    pub(super) certain: bool,
}

/// All names that a cut may leave.
#[derive(Clone, Default, Debug)]
pub(super) struct History {
    /// The names after operation `first`.
    oldest: Names,
    first: State,
    /// What the operations after it did.
    changes: VecDeque<Change>,
    newest: Names,
}

impl History {
    /// Nothing but these names.
    pub(super) fn of(names: Names) -> Self {
        Self { newest: names.clone(), oldest: names, ..Self::default() }
    }

    pub(super) const fn names(&self) -> &Names {
        &self.newest
    }

    pub(super) const fn first(&self) -> State {
        self.first
    }

    pub(super) fn last(&self) -> State {
        self.first + self.changes.len() as u64
    }

    /// The names after the oldest operation that a cut may leave.
    pub(super) const fn oldest(&self) -> &Names {
        &self.oldest
    }

    /// Shows the names after each operation that a cut may leave, oldest first, with its number.
    pub(super) fn walk(&self, mut look: impl FnMut(State, &Names)) {
        let mut names = self.oldest.clone();
        look(self.first, &names);
        for (state, change) in (self.first + 1..).zip(&self.changes) {
            apply(&mut names, change);
            look(state, &names);
        }
    }

    /// An operation begins that leaves these names. Returns what undoes it.
    pub(super) fn push(&mut self, change: Change) -> Change {
        let undo = change.iter().map(|(path, _)| (path.clone(), self.newest.get(path).copied()));
        let undo = undo.collect();
        apply(&mut self.newest, &change);
        self.changes.push_back(change);
        undo
    }

    /// No names before this operation can come back.
    pub(super) fn cover(&mut self, state: State) {
        while self.first < state
            && let Some(change) = self.changes.pop_front()
        {
            apply(&mut self.oldest, &change);
            self.first += 1;
        }
    }

    /// Whether a cut may have left what is shown.
    ///
    /// # Errors
    /// The oldest names, and where the newest ones differ.
    pub(super) fn judge<'a>(
        &'a self,
        shown: &Shown<'a>,
        records: &[&'a Record],
    ) -> Result<(), String> {
        let shown_at = |path: &str| shown.get(path).copied().flatten();
        let is_there = |record: &Record, path: &str| {
            let (dir, name) = path
                .rsplit_once('/')
                .map_or((Some(ROOT), path), |(dir, name)| (shown_at(dir), name));
            dir == Some(record.dir) && name == record.name && shown_at(path) == Some(record.node)
        };
        if let Some((path, _)) = shown.iter().find(|(_, node)| node.is_none()) {
            return Err(format!("{path} is nothing that was made"));
        }
        let mut names: BTreeMap<&str, Node> =
            self.oldest.iter().map(|(path, node)| (path.as_str(), *node)).collect();
        let paths: BTreeSet<&str> = names.keys().chain(shown.keys()).copied().collect();
        let mut differ: BTreeSet<&str> =
            paths.into_iter().filter(|path| names.get(path).copied() != shown_at(path)).collect();
        let is_missing =
            |record: &Record| record.certain && !shown.keys().any(|path| is_there(record, path));
        let missing: Vec<&Record> =
            records.iter().copied().filter(|record| is_missing(record)).collect();
        let mut changes = self.changes.iter();
        for state in self.first.. {
            let alive = || records.iter().filter(move |record| record.made > state);
            let brought = |path: &str| alive().any(|record| is_there(record, path));
            let is_missing = missing.iter().any(|record| record.made > state);
            if !is_missing && differ.iter().all(|path| brought(path)) {
                return Ok(());
            }
            let Some(change) = changes.next() else { break };
            for (path, node) in change {
                match node {
                    Some(node) => names.insert(path, *node),
                    None => names.remove(path.as_str()),
                };
                match names.get(path.as_str()).copied() == shown_at(path) {
                    true => differ.remove(path.as_str()),
                    false => differ.insert(path),
                };
            }
        }
        let oldest = self.oldest.iter().map(|(path, node)| show(path, *node)).collect::<Vec<_>>();
        Err(format!(
            "no state between operation {} (synced) and operation {} has these names; after operation {}: {}; \
             names that differ from those after the last operation: {}",
            self.first,
            self.last(),
            self.first,
            oldest.join(" "),
            differ.into_iter().collect::<Vec<_>>().join(" ")
        ))
    }
}

/// A name and the node that it leads to.
pub(super) fn show(path: &str, node: Node) -> String {
    format!("{path}:{}", node.0)
}

fn apply(names: &mut Names, change: &Change) {
    for (path, node) in change {
        match node {
            Some(node) => names.insert(path.clone(), *node),
            None => names.remove(path),
        };
    }
}
