//! What a file system holds, as a list to compare: read by debugfs, and by the running kernel through
//! a loop mount.

use super::{Scratch, output, text};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file, directory or whatever stands at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    /// Type and permissions.
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    pub(crate) links: u64,
    /// Seconds and nanoseconds.
    pub(crate) mtime: (i64, i64),
    /// Bytes of a regular file, target of a link; of anything else nothing.
    pub(crate) content: Vec<u8>,
}

/// Entries by path; the root is the empty one.
pub(crate) type Tree = BTreeMap<String, Entry>;

/// Everything below a folder, but for lost+found.
pub(crate) fn by_kernel(at: &Path) -> Tree {
    let mut tree = Tree::new();
    walk(at, "", &mut tree);
    tree
}

fn walk(at: &Path, name: &str, tree: &mut Tree) {
    let metadata = std::fs::symlink_metadata(at).expect("an inode");
    let content = if metadata.is_file() {
        std::fs::read(at).expect("a file")
    } else if metadata.is_symlink() {
        std::fs::read_link(at).expect("a link").as_os_str().as_bytes().to_vec()
    } else {
        Vec::new()
    };
    let size = if metadata.is_dir() { 0 } else { metadata.size() };
    let entry = Entry {
        mode: metadata.mode(),
        uid: metadata.uid(),
        gid: metadata.gid(),
        size,
        links: metadata.nlink(),
        mtime: (metadata.mtime(), metadata.mtime_nsec()),
        content,
    };
    tree.insert(name.to_owned(), entry);
    if metadata.is_dir() {
        for below in std::fs::read_dir(at).expect("a directory") {
            let below = below.expect("a name");
            let file_name = below.file_name();
            let file_name = file_name.to_str().expect("names of tests are text");
            if !(name.is_empty() && file_name == "lost+found") {
                walk(&below.path(), &format!("{name}/{file_name}"), tree);
            }
        }
    }
}

/// Everything in an image as debugfs reads it, but for lost+found.
pub(crate) fn by_debugfs(scratch: &Scratch, image: &Path) -> Tree {
    let mut tree = Tree::new();
    // Inodes of one level of the tree, by path.
    let mut level = vec![(String::new(), 2)];
    while !level.is_empty() {
        let stats = ask(scratch, image, level.iter().map(|(_, inode)| format!("stat <{inode}>")));
        let entries: Vec<Entry> = stats.iter().map(|stat| parse_stat(stat)).collect();
        let read = |entry: &Entry| matches!(entry.mode & KIND, REGULAR | SYMLINK);
        let wanted = level.iter().zip(&entries).filter(|(_, entry)| read(entry));
        let path = |inode: u32| scratch.path(&format!("dumped-{inode}"));
        let dumps = wanted.map(|((_, inode), _)| format!("dump <{inode}> {}", text(&path(*inode))));
        ask(scratch, image, dumps);
        let dirs = level.iter().zip(&entries).filter(|(_, entry)| entry.mode & KIND == DIRECTORY);
        let dirs: Vec<_> = dirs.map(|(at, _)| at.clone()).collect();
        let lists = ask(scratch, image, dirs.iter().map(|(_, inode)| format!("ls -p <{inode}>")));
        for ((name, inode), mut entry) in level.drain(..).zip(entries) {
            if read(&entry) && entry.content.is_empty() {
                // Another name of the same inode reads it again.
                entry.content = std::fs::read(path(inode)).expect("what debugfs dumped");
            }
            tree.insert(name, entry);
        }
        for ((above, _), list) in dirs.iter().zip(lists) {
            level.extend(names(&list).map(|(inode, name)| (format!("{above}/{name}"), inode)));
        }
        level.retain(|(name, _)| name != "/lost+found");
    }
    tree
}

const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;

/// What debugfs answers to each of these commands.
fn ask(scratch: &Scratch, image: &Path, commands: impl Iterator<Item = String>) -> Vec<String> {
    let commands: Vec<String> = commands.collect();
    if commands.is_empty() {
        return Vec::new();
    }
    let script = scratch.path("commands");
    std::fs::write(&script, commands.join("\n") + "\n").expect("a file of commands");
    let said = output("debugfs", &["-f", text(&script), text(image)]);
    // Each command is repeated before its answer.
    let answers: Vec<String> = said.split("debugfs: ").skip(1).map(str::to_owned).collect();
    assert_eq!(answers.len(), commands.len());
    answers
}

/// Inodes and names of `ls -p`: `/inode/mode/uid/gid/name/size/`.
fn names(list: &str) -> impl Iterator<Item = (u32, String)> {
    list.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split('/').collect();
        let [_, inode, _, _, _, name, ..] = fields[..] else { return None };
        let inode = inode.parse().ok().filter(|inode| *inode != 0)?;
        (!matches!(name, "." | "..")).then(|| (inode, name.to_owned()))
    })
}

/// Everything but the content of files and long links.
fn parse_stat(stat: &str) -> Entry {
    let words: Vec<&str> = stat.split_whitespace().collect();
    let after = |key: &str| {
        let at = words.iter().position(|word| *word == key);
        at.and_then(|at| words.get(at + 1)).copied().unwrap_or_else(|| panic!("{key} in {stat}"))
    };
    let kinds = [
        ("regular", REGULAR),
        ("directory", DIRECTORY),
        ("symlink", SYMLINK),
        ("FIFO", 0o010_000),
        ("character", 0o020_000),
        ("block", 0o060_000),
        ("socket", 0o140_000),
    ];
    let kind = kinds.iter().find(|(name, _)| *name == after("Type:")).expect("a type").1;
    let number = |key: &str| after(key).parse().unwrap_or_else(|_| panic!("{key} in {stat}"));
    let target = stat.split("Fast link dest: \"").nth(1).and_then(|rest| rest.split('"').next());
    Entry {
        mode: kind | u32::from_str_radix(after("Mode:"), 8).expect("a mode"),
        uid: number("User:") as u32,
        gid: number("Group:") as u32,
        size: if kind == DIRECTORY { 0 } else { number("Size:") },
        links: number("Links:"),
        mtime: parse_time(after("mtime:")),
        content: target.unwrap_or_default().into(),
    }
}

/// `0xSECONDS:EXTRA`, the upper bits of the seconds in the lowest two of the extra word.
fn parse_time(text: &str) -> (i64, i64) {
    let hex = |word: &str| u32::from_str_radix(word, 16).expect("a word of time");
    let (low, extra) = text.trim_start_matches("0x").split_once(':').unwrap_or((text, "0"));
    let (low, extra) = (hex(low), hex(extra));
    (i64::from(low as i32) + (i64::from(extra & 3) << 32), i64::from(extra >> 2))
}
