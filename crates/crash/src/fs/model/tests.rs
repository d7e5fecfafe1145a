//! The model by short stories: what a cut may leave after them, and what it may not.

use super::*;
use crate::kernel_loss::KernelLoss;
use nandscape_block::Tag;
use nandscape_fs::contract::Ino;

const PAGE: usize = 4_096;

/// A model, and the trees that a file system could show.
struct Story {
    model: Model,
    files: u64,
}

fn page(tag: u64) -> SectorData {
    SectorData::Tag(Tag::new(tag))
}

impl Story {
    fn new(records: bool) -> Self {
        Self::with(records, Stale::Never)
    }

    fn with(records: bool, stale: Stale) -> Self {
        Self { model: Model::new("w".to_owned(), records, stale), files: 0 }
    }

    /// A file of this node's number as inode.
    fn create(&mut self, path: &str) -> Node {
        let (node, undo) = self.model.create(path, 0o644);
        drop(undo);
        self.model.made((Ino(node.0), 1));
        self.model.call_ended();
        self.files += 1;
        node
    }

    fn write(&mut self, node: Node, tag: u64) {
        self.model.write(node, 0, 0..PAGE, &page(tag));
        self.model.call_ended();
    }

    fn sync(&mut self, scope: Scope) {
        let sync = self.model.sync_begins(scope);
        self.model.synced(&sync);
    }

    /// Whether a cut may leave these names, each with its node, length and first page.
    fn may_leave(&self, shown: &[(&str, Node, u64, SectorData)]) -> bool {
        self.model.verify(&tree(shown)).is_ok()
    }
}

fn snapshot(node: Node, kind: Kind, size: u64, pages: Vec<SectorData>) -> FileSnapshot {
    let (links, mode, uid) = (1, 0o644, 0);
    let (target, xattrs) = (Vec::new(), Xattrs::new());
    let identity = (Ino(node.0), 1);
    FileSnapshot { identity, kind, size, links, mode, uid, target, xattrs, pages }
}

fn tree(shown: &[(&str, Node, u64, SectorData)]) -> Tree {
    let root = snapshot(Node(1_000), Kind::Directory, 0, Vec::new());
    let mut tree = Tree::from([("w".to_owned(), root)]);
    for (path, node, size, content) in shown {
        let pages = if *size > 0 { vec![content.clone()] } else { Vec::new() };
        let holds = |(other, ..): &(&str, Node, u64, SectorData)| parent(other) == Some(path);
        let kind = if shown.iter().any(holds) { Kind::Directory } else { Kind::File };
        tree.insert(format!("w/{path}"), snapshot(*node, kind, *size, pages));
    }
    tree
}

const NO: SectorData = SectorData::Tag(Tag::ZERO);

/// Names are those after some operation: never without an earlier one, never from before a sync.
#[test]
fn names_are_those_after_some_operation() {
    let mut story = Story::new(false);
    let a = story.create("a");
    let b = story.create("b");
    drop(story.model.rename("a", "c"));
    story.model.call_ended();
    assert!(story.may_leave(&[]));
    assert!(story.may_leave(&[("a", a, 0, NO)]));
    assert!(story.may_leave(&[("a", a, 0, NO), ("b", b, 0, NO)]));
    assert!(story.may_leave(&[("b", b, 0, NO), ("c", a, 0, NO)]));
    assert!(!story.may_leave(&[("b", b, 0, NO)]), "b was made after a");
    assert!(!story.may_leave(&[("a", a, 0, NO), ("c", a, 0, NO)]), "a rename leaves one name");
    story.sync(Scope::Whole(a));
    assert!(!story.may_leave(&[("a", a, 0, NO), ("b", b, 0, NO)]), "the rename was synced");
    assert!(story.may_leave(&[("b", b, 0, NO), ("c", a, 0, NO)]));
}

/// Two names that change places do so with all below them.
#[test]
fn exchanges_are_whole() {
    let mut story = Story::new(false);
    let (a, b) = (story.create("a"), story.create("b"));
    story.sync(Scope::All);
    drop(story.model.exchange("a", "b"));
    assert!(story.may_leave(&[("a", a, 0, NO), ("b", b, 0, NO)]));
    assert!(story.may_leave(&[("a", b, 0, NO), ("b", a, 0, NO)]));
    assert!(!story.may_leave(&[("a", a, 0, NO), ("b", a, 0, NO)]));
    assert!(!story.may_leave(&[("a", b, 0, NO)]));
}

/// A sync covers what had ended when it began: neither the call that was in progress, nor what came after it.
#[test]
fn a_sync_covers_what_had_ended_when_it_began() {
    let mut story = Story::new(false);
    let a = story.create("a");
    story.write(a, 1);
    story.model.write(a, 0, 0..PAGE, &page(2));
    let sync = story.model.sync_begins(Scope::Whole(a));
    story.model.call_ended();
    story.write(a, 3);
    story.model.synced(&sync);
    let shows = |tag| story.may_leave(&[("a", a, PAGE as u64, page(tag))]);
    assert!(shows(1) && shows(2) && shows(3));
    assert!(!story.may_leave(&[("a", a, PAGE as u64, NO)]), "the first write was synced");
    assert!(!story.may_leave(&[]), "the name was synced");
    story.sync(Scope::Content(a));
    assert!(!story.may_leave(&[("a", a, PAGE as u64, page(2))]), "the last write was synced");
}

/// A name that is changed while a sync of its directory runs is not covered by it.
#[test]
fn a_sync_covers_no_name_that_is_being_made() {
    let mut story = Story::new(false);
    let a = story.create("a");
    let (_, undo) = story.model.create("b", 0o644);
    drop(undo);
    let sync = story.model.sync_begins(Scope::Whole(ROOT));
    story.model.synced(&sync);
    assert!(story.may_leave(&[("a", a, 0, NO)]));
    assert!(!story.may_leave(&[]));
}

/// A refused call leaves the names as they were, and a sync of its directory covers nothing more for it.
#[test]
fn a_refused_call_changes_nothing() {
    let mut story = Story::new(false);
    let a = story.create("a");
    story.sync(Scope::Whole(ROOT));
    drop(story.model.rename("a", "c"));
    story.model.call_ended();
    let (_, undo) = story.model.create("b", 0o644);
    story.model.undo(undo);
    story.model.call_ended();
    assert!(!story.model.names().contains_key("b"));
    let in_root = story.model.changed[&ROOT];
    assert_eq!(in_root.last, 2, "the rename, and not what was refused");
    assert!(story.may_leave(&[("a", a, 0, NO)]) && story.may_leave(&[("c", a, 0, NO)]));
}

/// Content is a version since the covered one, of the file itself; a mixture of two versions is none.
#[test]
fn pages_hold_a_version() {
    let mut story = Story::new(false);
    let a = story.create("a");
    story.write(a, 1);
    story.sync(Scope::Whole(a));
    story.write(a, 2);
    let torn = page(1).overlaid(0..512, &page(2)).unwrap();
    let shows = |content| story.may_leave(&[("a", a, PAGE as u64, content)]);
    assert!(shows(page(1)) && shows(page(2)));
    assert!(!shows(torn) && !shows(NO) && !shows(page(3)));
}

/// A block may show what it held before where promises say so: if it is new, or also if it was written over.
#[test]
fn stale_blocks_are_those_that_are_permitted() {
    let permitted = [
        (Stale::Never, [false; 2]),
        (Stale::NewBlocks, [true, false]),
        (Stale::Written, [true; 2]),
    ];
    for (stale, [in_new, in_overwritten]) in permitted {
        let mut story = Story::with(false, stale);
        let a = story.create("a");
        story.sync(Scope::Whole(a));
        story.write(a, 1);
        assert_eq!(story.may_leave(&[("a", a, PAGE as u64, page(9))]), in_new, "{stale:?}");
        story.sync(Scope::Whole(a));
        assert!(!story.may_leave(&[("a", a, PAGE as u64, page(9))]), "a sync covered it");
        story.write(a, 2);
        assert_eq!(story.may_leave(&[("a", a, PAGE as u64, page(9))]), in_overwritten, "{stale:?}");
    }
}

/// What a cut may have left behind the end of a file may show there once it grows, and nowhere else, until a sync
/// covers a write over it.
#[test]
fn what_lies_behind_the_end_may_show_later() {
    let mut story = Story::new(false);
    let a = story.create("a");
    story.model.write(a, 0, 0..100, &page(1));
    story.model.call_ended();
    story.sync(Scope::Whole(a));
    story.model.write(a, 0, 100..200, &page(2));
    story.model.call_ended();
    let short = NO.overlaid(0..100, &page(1)).unwrap();
    story.model.settle(&tree(&[("a", a, 100, short.clone())]));
    story.model.truncate(a, 300);
    story.model.call_ended();
    let left = short.overlaid(100..200, &page(2)).unwrap();
    let shows =
        |story: &Story, content: &SectorData| story.may_leave(&[("a", a, 300, content.clone())]);
    assert!(shows(&story, &short) && shows(&story, &left));
    assert!(!shows(&story, &short.overlaid(200..210, &page(2)).unwrap()));
    assert!(!shows(&story, &short.overlaid(0..100, &page(2)).unwrap()));
    story.model.write(a, 0, 100..200, &page(3));
    story.model.call_ended();
    story.sync(Scope::Whole(a));
    assert!(!shows(&story, &left), "a sync covered what was written over it");
}

/// Attributes are covered by fsync, not by fdatasync.
#[test]
fn attributes_are_versions() {
    let mut story = Story::new(false);
    let a = story.create("a");
    story.sync(Scope::Whole(a));
    story.model.set_xattr(a, b"user.x", Some(b"1"));
    story.model.call_ended();
    let with = |value: Option<&[u8]>| {
        let mut tree = tree(&[("a", a, 0, NO)]);
        let shown = tree.get_mut("w/a").unwrap();
        shown.xattrs.extend(value.map(|value| (b"user.x".to_vec(), value.to_vec())));
        tree
    };
    story.sync(Scope::Content(a));
    assert!(story.model.verify(&with(None)).is_ok());
    assert!(story.model.verify(&with(Some(b"1"))).is_ok());
    assert!(story.model.verify(&with(Some(b"2"))).is_err());
    story.sync(Scope::Whole(a));
    assert!(story.model.verify(&with(None)).is_err());
}

/// With records a synced new file comes back without what came before it, and must.
#[test]
fn records_bring_single_files_back() {
    for records in [false, true] {
        let mut story = Story::new(records);
        let a = story.create("a");
        let b = story.create("b");
        story.sync(Scope::Whole(b));
        assert_eq!(story.may_leave(&[("b", b, 0, NO)]), records);
        assert!(story.may_leave(&[("a", a, 0, NO), ("b", b, 0, NO)]));
        assert!(!story.may_leave(&[]) && !story.may_leave(&[("a", a, 0, NO)]));
    }
}

/// A record names the directory by its inode, which a rename that is lost leaves where it was.
#[test]
fn records_follow_their_directories() {
    let mut story = Story::new(true);
    let (dir, undo) = story.model.mkdir("d");
    drop(undo);
    story.model.made((Ino(dir.0), 1));
    story.model.call_ended();
    story.create("d/a");
    story.sync(Scope::All);
    let a = story.model.names()["d/a"];
    drop(story.model.rename("d", "e"));
    story.model.call_ended();
    let b = story.create("e/b");
    story.sync(Scope::Whole(b));
    let shown = |at: &str, also: bool| {
        let [a_at, b_at] = ["a", "b"].map(|name| format!("{at}/{name}"));
        let all = [(at, dir, 0, NO), (&*a_at, a, 0, NO), (&*b_at, b, 0, NO)];
        story.may_leave(&all[..if also { 3 } else { 2 }])
    };
    assert!(shown("d", true) && shown("e", true), "the rename may be lost, the new file not");
    assert!(!shown("d", false) && !shown("e", false), "the new file was synced");
}

/// A clean volume holds what was left, to the last byte.
#[test]
fn an_unmounted_volume_is_exact() {
    let mut story = Story::new(false);
    let a = story.create("a");
    story.write(a, 1);
    let exact = |content| story.model.verify_exactly(&tree(&[("a", a, PAGE as u64, content)]));
    assert!(exact(page(1)).is_ok() && exact(NO).is_err());
    assert!(story.model.verify_exactly(&tree(&[])).is_err());
}

/// A later file takes the former name of one that was durable, and the rename is lost: the file is gone, which is
/// counted. Where the rename is there, or the file was removed, nothing is lost.
#[test]
fn a_replaced_file_is_counted() {
    let mut story = Story::new(true);
    let log = story.create("log");
    story.write(log, 7);
    story.sync(Scope::All);
    drop(story.model.rename("log", "log.1"));
    story.model.call_ended();
    let new = story.create("log");
    story.sync(Scope::Whole(new));
    let shown = |names: &[(&str, Node, u64, SectorData)]| {
        assert!(story.may_leave(names));
        story.model.losses(&tree(names))
    };
    let replaced = BTreeMap::from([(KernelLoss::Replaced, 1)]);
    assert_eq!(shown(&[("log", new, 0, NO)]), replaced);
    let kept = [("log", new, 0, NO), ("log.1", log, 4_096, page(7))];
    assert_eq!(shown(&kept), BTreeMap::new());
    drop(story.model.remove("log.1"));
    story.model.call_ended();
    assert_eq!(story.model.losses(&tree(&[("log", new, 0, NO)])), BTreeMap::new());
}

/// A new file that was synced has its directory's former name: counted, unless the directory had that name since.
#[test]
fn a_file_at_a_former_path_is_counted() {
    let mut story = Story::new(true);
    let (dir, undo) = story.model.mkdir("a");
    drop(undo);
    story.model.made((Ino(dir.0), 1));
    story.model.call_ended();
    story.sync(Scope::All);
    drop(story.model.rename("a", "b"));
    story.model.call_ended();
    let file = story.create("b/f");
    story.sync(Scope::Whole(file));
    let at = |path: &str, dir_path: &str| {
        let names = [(dir_path, dir, 0, NO), (path, file, 0, NO)];
        assert!(story.may_leave(&names));
        story.model.losses(&tree(&names))
    };
    assert_eq!(at("a/f", "a"), BTreeMap::from([(KernelLoss::FormerPath, 1)]));
    assert_eq!(at("b/f", "b"), BTreeMap::new());
}

/// A page that was written since its sync shows what its block held before: counted, where that is permitted.
#[test]
fn a_page_with_a_former_block_is_counted() {
    let mut story = Story::with(true, Stale::Written);
    let file = story.create("f");
    story.write(file, 1);
    story.sync(Scope::Whole(file));
    story.write(file, 2);
    let losses = |content| story.model.losses(&tree(&[("f", file, 4_096, content)]));
    assert_eq!(losses(page(3)), BTreeMap::from([(KernelLoss::FormerBlock, 1)]));
    assert_eq!((losses(page(1)), losses(page(2))), (BTreeMap::new(), BTreeMap::new()));
}
