//! All call sequences of a bounded space, in the manner of CrashMonkey's ACE (Mohan et al., OSDI '18): a few files and
//! directories that are durable, every call on them, and after each call a sync of something that it touched, or none;
//! after the last one always one.
//!
//! Sequence `n` of a length is a function of both numbers alone. What a call before makes impossible, such as a name that
//! is taken, is no sequence.

use crate::calls::{Call, Case, FileRef, Line, parse};
use crate::fs::model::parent;
use nandscape_fs::contract::Kind;
use std::collections::BTreeMap;

/// The longest sequences.
pub const LENGTH_MAX: u32 = 3;

/// What there is before the first call.
const SETUP: &str = "mkdir A; mkdir A/C; mkdir B; write foo 0 8k o; write A/foo 0 8k p; sync";

/// The calls: on a file of each of two directories, names that are free, and directories.
const CALLS: &str = "
create bar; create A/bar; create B/bar; create A/C/bar; create D/bar; create B/C/bar
mkdir D; mkdir A/D
write foo 0 4k n; write A/foo 0 4k n; write foo 0 4k n direct; write foo 100 200 n; write D/foo 0 4k n
append foo 4k n; append A/foo 100 n
truncate foo 4000; truncate foo 16k; truncate A/foo 0
fallocate foo 8k 8k; fallocate A/foo 8k 8k keep-size; punch foo 0 4k; zero foo 0 4k
setxattr foo user.a v; setxattr A/foo user.a v 600; chmod foo 600
link foo bar; link foo A/bar; link A/foo bar; link A/foo B/bar
symlink bar foo
unlink foo; unlink A/foo; unlink bar; unlink A/bar
rename foo bar; rename foo A/foo; rename foo A/bar; rename A/foo foo; rename A/foo bar
rename A/foo B/bar; rename bar foo; rename A/bar A/foo
rename A D; rename A B; rename A/C D; rename A/C B/C
exchange foo A/foo; exchange A B; exchange A/C B
rmdir B; rmdir A/C
";

/// Syncs that may follow a call: none, of everything, of the first to the third thing that it touched, and of the
/// content of the first.
const SYNCS: u64 = 6;

/// The sequences of a length.
#[derive(Clone, Debug)]
pub struct Enumeration {
    length: u32,
    setup: Vec<Call>,
    calls: Vec<Call>,
}

/// What a name leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Node {
    number: usize,
    kind: Kind,
}

type Names = BTreeMap<String, Node>;

impl Enumeration {
    /// The sequences of so many calls, at most [`LENGTH_MAX`].
    #[must_use]
    pub fn new(length: u32) -> Self {
        Self { length: length.clamp(1, LENGTH_MAX), setup: calls(SETUP), calls: calls(CALLS) }
    }

    /// Numbers of sequences; some of them are none.
    #[must_use]
    pub fn numbers(&self) -> u64 {
        (self.calls.len() as u64 * SYNCS).pow(self.length)
    }

    /// The sequence of a number, if it is one.
    #[must_use]
    pub fn case(&self, number: u64) -> Option<Case> {
        let mut names = Names::new();
        for call in &self.setup {
            apply(&mut names, call)?;
        }
        let (mut rest, mut all) = (number, self.setup.clone());
        for step in 1..=self.length {
            let choice = rest % (self.calls.len() as u64 * SYNCS);
            rest /= self.calls.len() as u64 * SYNCS;
            let call = &self.calls[(choice / SYNCS) as usize];
            apply(&mut names, call)?;
            all.push(call.clone());
            match sync(choice % SYNCS, call, &names)? {
                Some(sync) => all.push(sync),
                None if step < self.length => {}
                None => return None,
            }
        }
        let calls = all.into_iter().zip(1..).map(|(is, line)| Line { line, is }).collect();
        Some(Case {
            name: format!("{} of {}", number, self.length),
            calls,
            expectations: Vec::new(),
        })
    }
}

fn calls(text: &str) -> Vec<Call> {
    let cases = parse(text).unwrap_or_else(|error| unreachable!("{error}"));
    cases.into_iter().flat_map(|case| case.calls).map(|call| call.is).collect()
}

/// The sync of a number after a call; none is one of them. Nothing if there is no such sync.
fn sync(number: u64, call: &Call, names: &Names) -> Option<Option<Call>> {
    let of = |index: usize| touched(call, names).into_iter().nth(index);
    let fsync = |path| Some(Some(Call::Fsync(FileRef::Path(path))));
    match number {
        0 => Some(None),
        1 => Some(Some(Call::Sync)),
        2..=4 => fsync(of(number as usize - 2)?),
        _ => {
            let path = of(0)?;
            let is_file = names.get(&path)?.kind == Kind::File;
            is_file.then_some(Some(Call::Fdatasync(FileRef::Path(path))))
        }
    }
}

/// What a call touched that can be synced now: what it is about, and the directories of its names.
fn touched(call: &Call, names: &Names) -> Vec<String> {
    let paths: Vec<&str> = match call {
        Call::Create(path) | Call::Mkdir(path) => vec![path],
        Call::Link(one, other) | Call::Exchange(one, other) => vec![one, other],
        Call::Rename(from, to) => vec![to, from],
        Call::Symlink(path, _) | Call::Unlink(path) | Call::Rmdir(path) => vec![path],
        Call::Write { file, .. }
        | Call::Append { file, .. }
        | Call::Truncate(file, _)
        | Call::Allocate(file, ..)
        | Call::Chmod(file, _)
        | Call::Chown(file, _)
        | Call::Setxattr(file, ..)
        | Call::Removexattr(file, _)
        | Call::Fsync(file)
        | Call::Fdatasync(file) => match file {
            FileRef::Path(path) => vec![path],
            FileRef::Handle(_) => Vec::new(),
        },
        Call::Open(..) | Call::Close(_) | Call::Sync | Call::Sleep(_) => Vec::new(),
    };
    let dirs = paths.iter().map(|path| parent(path).unwrap_or("."));
    let mut all: Vec<String> = Vec::new();
    for path in paths.iter().copied().chain(dirs) {
        // A symbolic link cannot be opened, so it cannot be synced.
        let is_open = |node: &Node| node.kind != Kind::Symlink;
        let can_be_synced = path == "." || names.get(path).is_some_and(is_open);
        if can_be_synced && !all.iter().any(|known| known == path) {
            all.push(path.to_owned());
        }
    }
    all
}

/// What a call does to names, if it can be made.
fn apply(names: &mut Names, call: &Call) -> Option<()> {
    let is = |names: &Names, path: &str, kind| names.get(path).is_some_and(|it| it.kind == kind);
    let has_dir =
        |names: &Names, path: &str| parent(path).is_none_or(|dir| is(names, dir, Kind::Directory));
    let is_free = |names: &Names, path: &str| !names.contains_key(path) && has_dir(names, path);
    let is_empty = |names: &Names, dir: &str| below(names, dir).is_empty();
    let number = names.values().map(|node| node.number + 1).max().unwrap_or(0);
    let possible = match call {
        Call::Create(path) | Call::Mkdir(path) | Call::Symlink(path, _) => {
            let possible = is_free(names, path);
            let kind = match call {
                Call::Mkdir(_) => Kind::Directory,
                Call::Symlink(..) => Kind::Symlink,
                _ => Kind::File,
            };
            names.insert(path.clone(), Node { number, kind });
            possible
        }
        Call::Link(from, to) => {
            let node = *names.get(from).filter(|node| node.kind == Kind::File)?;
            let possible = is_free(names, to);
            names.insert(to.clone(), node);
            possible
        }
        Call::Unlink(path) => names.remove(path)?.kind != Kind::Directory,
        Call::Rmdir(path) => {
            let possible = is_empty(names, path);
            names.remove(path)?.kind == Kind::Directory && possible
        }
        Call::Rename(from, to) => {
            let fits = names.contains_key(to) || has_dir(names, to);
            fits && rename(names, from, to)?
        }
        Call::Exchange(one, other) => exchange(names, one, other)?,
        Call::Write { file: FileRef::Path(path), .. } => match names.get(path) {
            Some(node) => node.kind == Kind::File,
            None => {
                let possible = is_free(names, path);
                names.insert(path.clone(), Node { number, kind: Kind::File });
                possible
            }
        },
        Call::Append { file: FileRef::Path(path), .. }
        | Call::Truncate(FileRef::Path(path), _)
        | Call::Allocate(FileRef::Path(path), ..)
        | Call::Chmod(FileRef::Path(path), _)
        | Call::Setxattr(FileRef::Path(path), ..) => is(names, path, Kind::File),
        _ => true,
    };
    possible.then_some(())
}

/// Moves a name, if the one that it replaces can go.
fn rename(names: &mut Names, from: &str, to: &str) -> Option<bool> {
    let moved = *names.get(from)?;
    let fits = names.get(to).is_none_or(|node| {
        let [one, other] = [moved, *node].map(|node| node.kind == Kind::Directory);
        node.number != moved.number && one == other && below(names, to).is_empty()
    });
    let tree = below(names, from);
    take(names, from, &tree);
    put(names, to, tree);
    names.insert(to.to_owned(), moved);
    Some(fits && !to.starts_with(&format!("{from}/")))
}

/// Lets two names change places, if neither is below the other.
fn exchange(names: &mut Names, one: &str, other: &str) -> Option<bool> {
    let nodes = [*names.get(one)?, *names.get(other)?];
    let [of_one, of_other] = [one, other].map(|dir| below(names, dir));
    take(names, one, &of_one);
    take(names, other, &of_other);
    put(names, other, of_one);
    put(names, one, of_other);
    names.extend([(one.to_owned(), nodes[1]), (other.to_owned(), nodes[0])]);
    Some(!other.starts_with(&format!("{one}/")))
}

/// What lies below a directory: paths from there.
fn below(names: &Names, dir: &str) -> Vec<(String, Node)> {
    let prefix = format!("{dir}/");
    let all = names.range(prefix.clone()..);
    let all = all.map_while(|(path, node)| Some((path.strip_prefix(&prefix)?.to_owned(), *node)));
    all.collect()
}

fn take(names: &mut Names, dir: &str, tree: &[(String, Node)]) {
    names.remove(dir);
    for (path, _) in tree {
        names.remove(&format!("{dir}/{path}"));
    }
}

fn put(names: &mut Names, to: &str, tree: Vec<(String, Node)>) {
    names.extend(tree.into_iter().map(|(path, node)| (format!("{to}/{path}"), node)));
}
