//! Rounds of damage, and what each of the two checks says.

use super::damage::{Change, Kind, Map, Target, map};
use crate::common::examine::{check_image, shown, try_dump};
use crate::common::oracle::{asked, fsck};
use crate::common::{Scratch, f2fs_tools};
use crate::images::Volume;
use crate::kernel::unpacked;
use crate::read::filled;
use Kind::{
    Checkpoint, Direct, Directory, File as Regular, Indirect, Link, PackSummary, Superblock,
};
use nandscape_fs::f2fs::dump::DumpTarget;
use nandscape_rt::Stream;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// A difference that is meant: structures that are damaged, and a part of what is then said.
type Meant = (&'static [Kind], &'static str);

/// What we find and fsck.f2fs does not look for.
const OURS_ALONE: &[Meant] = &[
    // It takes the other copy, as the kernel does, and says nothing of the unsound one.
    (&[Superblock], "superblock"),
    // It writes over the kind when it reads them.
    (&[PackSummary], "is a summary neither of data nor of nodes"),
    (&[PackSummary], "whose summary is of the other kind"),
    // It knows the place from the way that it came, and newer kernels refuse the node.
    (&[Regular, Directory, Link, Direct, Indirect], "in its footer, expected "),
    // It looks at the footer of their node only.
    (&[Kind::Xattr, Regular, Directory, Link], "extended attribute"),
    // The kernel does not find such names.
    (&[Directory], "where no search for it comes"),
    (&[Directory], "more levels of names"),
    (&[Directory], "blocks have names"),
    // The kernel refuses the volume.
    (&[Checkpoint], "number of blocks for users out of range"),
    (&[Checkpoint], "more valid blocks than users may take"),
    (&[Checkpoint], "pack has no room for its summaries"),
    (&[Checkpoint], "take another number of blocks"),
    // The kernel refuses the inode.
    (&[Regular, Directory, Link], "size of extra attributes is out of range"),
    // It counts names from two on.
    (&[Regular, Link], "link count is 0, counted 1"),
    // It clears the flag before it goes on.
    (&[Regular, Directory, Link], "says that it is compressed"),
];

/// What fsck.f2fs finds and we do not look for.
const THEIRS_ALONE: &[Meant] = &[];

/// A volume that is damaged.
#[derive(Clone, Copy, Debug)]
enum Arm {
    /// Made by mkfs.f2fs with these features, and filled by sload.f2fs.
    Loaded(&'static str),
    /// Filled by a kernel.
    Kernel,
}

const ARMS: [Arm; 4] = [
    Arm::Loaded(""),
    Arm::Loaded(
        "extra_attr,inode_checksum,flexible_inline_xattr,inode_crtime,sb_checksum,lost_found",
    ),
    Arm::Loaded("extra_attr,inode_checksum,inode_crtime"),
    Arm::Kernel,
];

impl Arm {
    fn make(self, scratch: &Scratch) -> PathBuf {
        match self {
            Self::Loaded(features) => filled(scratch, "volume", 100, features, 500),
            Self::Kernel => unpacked(scratch, &Volume::CLEAN),
        }
    }

    /// Kinds of structures that the volume has; an arm that lacks one would not try it.
    fn has(self, kind: Kind) -> bool {
        match (kind, self) {
            (Direct | Indirect, Self::Loaded(features)) => {
                !features.contains("flexible_inline_xattr")
            }
            (Kind::Xattr, Self::Loaded(_)) => false,
            _ => true,
        }
    }
}

struct Round<'a> {
    path: &'a Path,
    file: &'a File,
    bytes: &'a mut Vec<u8>,
    map: &'a Map,
    target: Target,
}

impl Round<'_> {
    /// Both look at the damaged volume, which is as before afterwards. `Err` says how they differ.
    fn judge(&mut self, rng: &mut Stream) -> Result<bool, String> {
        let Some(change) = self.map.damage(self.bytes, self.target, rng) else { return Ok(false) };
        let mut changes = vec![change];
        // One in eight keeps a checksum that does not hold.
        if rng.below(8) != 0 {
            changes.extend(self.map.mend(self.bytes, self.target, &changes[0]));
        }
        changes.iter().for_each(|change| self.put(change.at, &change.after));
        let differ = self.compare();
        for change in changes.iter().rev() {
            self.put(change.at, &change.before);
            let end = change.at + change.before.len();
            self.bytes[change.at..end].copy_from_slice(&change.before);
        }
        differ.map(|()| true).map_err(|what| self.described(&changes, &what))
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        self.file.write_all_at(bytes, at as u64).expect("an image");
    }

    fn compare(&self) -> Result<(), String> {
        let owner = self.target.owner;
        let looked = catch_unwind(AssertUnwindSafe(|| {
            use DumpTarget as D;
            let all = [D::Superblock, D::Checkpoint, D::Tree, D::Inode(owner), D::Node(owner)];
            let more = [D::Nat(owner), D::Sit(owner), D::Ssa(owner), D::Inode(3)];
            for what in all.into_iter().chain(more) {
                drop(try_dump(self.path, what));
            }
            check_image(self.path)
        }));
        let ours = match looked.map_err(|_| "panic".to_owned())? {
            Ok(report) => (report.is_clean(), shown(&report)),
            // What is not supported is no verdict.
            Err(error) if error.to_string().contains("not supported") => return Ok(()),
            Err(error) => (false, error.to_string()),
        };
        let theirs = fsck(self.path);
        let explained = |meant: &[Meant], said: &str| {
            let is =
                |(kinds, part): &Meant| kinds.contains(&self.target.kind) && said.contains(part);
            meant.iter().any(is)
        };
        match (ours.0, theirs.sound) {
            (false, true) if !explained(OURS_ALONE, &ours.1) => {
                Err(format!("fsck.f2fs finds nothing, we say:\n{}", ours.1))
            }
            (true, false) if !explained(THEIRS_ALONE, &theirs.said) => {
                let said: Vec<&str> = theirs.said.lines().filter(|l| l.starts_with('[')).collect();
                Err(format!("we find nothing, fsck.f2fs says:\n{}", said.join("\n")))
            }
            _ => Ok(()),
        }
    }

    fn described(&self, changes: &[Change], what: &str) -> String {
        let Target { kind, at, owner, .. } = self.target;
        let mut text = format!("{kind:?} of {owner}");
        for Change { at: byte, before, after } in &changes[..1] {
            let _ = write!(text, ", byte {:#x}: {before:x?} is now {after:x?}", byte - at);
        }
        format!("{text}: {what}")
    }
}

/// The rounds of one volume: how they differ.
fn rounds(arm: Arm, seeds: std::ops::Range<u64>) -> Vec<String> {
    let scratch = Scratch::new();
    let path = arm.make(&scratch);
    let map = map(&path);
    let original = std::fs::read(&path).expect("an image");
    let mut bytes = original.clone();
    let mut kinds: BTreeMap<Kind, Vec<Target>> = BTreeMap::new();
    for target in &map.targets {
        kinds.entry(target.kind).or_default().push(*target);
    }
    for kind in [Indirect, Direct, Kind::Xattr, Kind::Names, Kind::Ssa, Link] {
        assert_eq!(kinds.contains_key(&kind), arm.has(kind), "{arm:?}: {kind:?}");
    }
    let kinds: Vec<Vec<Target>> = kinds.into_values().collect();
    let file = File::options().write(true).open(&path).expect("an image");
    let (mut differ, mut tried) = (Vec::new(), 0);
    for seed in seeds.clone() {
        let mut rng = Stream::new(seed, "damage");
        let targets = &kinds[rng.below(kinds.len() as u64) as usize];
        let target = targets[rng.below(targets.len() as u64) as usize];
        let (path, file, bytes, map) = (&path, &file, &mut bytes, &map);
        match (Round { path, file, bytes, map, target }).judge(&mut rng) {
            Ok(changed) => tried += u64::from(changed),
            Err(what) => differ.push(format!("{arm:?}, seed {seed}: {what}")),
        }
    }
    assert!(tried + differ.len() as u64 >= (seeds.end - seeds.start) / 2, "too few changes");
    assert!(std::fs::read(&path).expect("an image") == original, "a check changed the volume");
    differ
}

/// Whatever is changed, our check and fsck.f2fs find something, or neither does.
#[test]
fn damage_is_judged_as_fsck_judges_it() {
    if !f2fs_tools() {
        return;
    }
    let from = asked("NANDSCAPE_F2FS_DIFFER_FROM", 0);
    let each = asked("NANDSCAPE_F2FS_DIFFER", 120).div_ceil(ARMS.len() as u64);
    let seeds = from..from + each;
    let differ: Vec<String> = ARMS.iter().flat_map(|arm| rounds(*arm, seeds.clone())).collect();
    assert!(differ.is_empty(), "{} differ\n{}", differ.len(), differ.join("\n"));
}
