//! Our check against e2fsck on damaged volumes: one field is changed, checksums are mended behind it, and
//! both say whether the volume is sound.
//!
//! They say the same, but for what stands in [`OURS_ALONE`] and [`THEIRS_ALONE`], each with its reason; and
//! neither check nor dump panics. `NANDSCAPE_FS_DIFFER` sets the rounds of each kind of volume, and
//! `NANDSCAPE_FS_DIFFER_FROM` the first of them.

mod damage;
mod volumes;

use crate::common::examine::{check_image, dumped_or_refused};
use crate::common::image::Image;
use crate::common::{Scratch, asked, e2fsprogs, run, text};
use damage::{Change, Kind, Target, damage, mend, targets};
use nandscape_fs::ext4::dump::DumpTarget;
use nandscape_rt::Stream;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use volumes::{ARMS, Arm};

use Kind::{
    Directory, ExtentNode, File as Regular, JournalSuperblock, Link, Pointers, Reserved, Special,
    Superblock,
};

/// A difference that is meant: structures that are damaged, and a part of what is then said.
type Meant = (&'static [Kind], &'static str);

/// What we find and e2fsck does not look for: each keeps Linux from using something, or is in use where
/// nothing may be.
const OURS_ALONE: &[Meant] = &[
    // Linux refuses the file, the journal, the volume.
    (&[ExtentNode, Regular, Directory, Link, Reserved], "too deep"),
    (&[ExtentNode], "is at another depth than the node above says"),
    (&[Reserved], "extra fields do not fit the inode"),
    (&[Reserved], "are not all in the volume"),
    (&[Reserved], "a journal of"),
    (&[JournalSuperblock], "the log has no first block"),
    (&[Superblock], "refers to a journal that does not exist"),
    // Its resizing refuses: e2fsck looks at a quarter of them.
    (&[Pointers], "does not refer to this block"),
    (&[Pointers], ", expected "),
    // We support none of these, whatever e2fsck makes of them.
    (&[Regular, Directory, Link, Special], "which is not supported"),
    (&[JournalSuperblock], "is not supported"),
    // Nothing uses them; e2fsck looks at some of their fields.
    (&[Reserved], "reserved inode is not empty"),
    (&[Reserved], "is a file, but lists bad blocks"),
    // A bad block that the format uses itself.
    (&[Reserved], "has more than one owner"),
    // Linux takes the upper halves of these without 64bit, too.
    (&[Superblock], "reserves more than half of the blocks"),
    (&[Superblock], "free blocks: "),
    // It asks for a check, of which nothing is left then.
    (&[Superblock], "the error flag is set"),
    // A mount follows the list, which e2fsck -n does not.
    (&[Superblock], "the orphan list"),
    (&[Superblock], "has an unknown file type"),
];

/// What e2fsck finds and we do not look for.
const THEIRS_ALONE: &[Meant] = &[
    // We have no clock.
    (&[Superblock], "in the future"),
    // Without quotas nothing reads it.
    (&[Superblock], "quota inode"),
    (&[Superblock], "has invalid inode #"),
];

/// What one of the two says.
struct Verdict {
    sound: bool,
    said: String,
}

/// e2fsck reports things that do not count in its exit code.
fn theirs(path: &Path) -> Verdict {
    let checked = run("e2fsck", &["-fn", text(path)]);
    let out = [checked.stdout, checked.stderr].concat();
    let said = String::from_utf8_lossy(&out).into_owned();
    let silent = ["? no", "IGNORED", "Found invalid", "Setting filetype"];
    let asked = silent.iter().any(|part| said.contains(part));
    Verdict { sound: checked.status.code() == Some(0) && !asked, said }
}

/// Features that are not supported, and what else is refused, are no verdict on the volume: `None`.
fn ours(path: &Path) -> Option<Verdict> {
    match check_image(path) {
        Ok(report) => {
            Some(Verdict { sound: report.is_clean(), said: crate::common::examine::shown(&report) })
        }
        Err(error) if error.to_string().contains("not supported") => None,
        Err(error) => Some(Verdict { sound: false, said: error.to_string() }),
    }
}

/// One change of a volume.
struct Round<'a> {
    path: &'a Path,
    file: &'a File,
    image: &'a mut Image,
    target: Target,
}

impl Round<'_> {
    /// Both look at the damaged volume, which is as before afterwards. `Err` tells how they differ.
    fn judge(&mut self, rng: &mut Stream) -> Result<bool, String> {
        let Some(change) = damage(self.image, self.target, rng) else { return Ok(false) };
        let mut changes = vec![change];
        changes.extend(mend(self.image, self.target));
        changes.iter().for_each(|change| self.put(change.at, &change.after));
        let differ = self.compare();
        for change in changes.iter().rev() {
            self.put(change.at, &change.before);
            let end = change.at + change.before.len();
            self.image.bytes[change.at..end].copy_from_slice(&change.before);
        }
        differ.map(|()| true).map_err(|what| self.described(&changes, &what))
    }

    fn put(&self, at: usize, bytes: &[u8]) {
        self.file.write_all_at(bytes, at as u64).expect("an image");
    }

    fn compare(&self) -> Result<(), String> {
        let looked = catch_unwind(AssertUnwindSafe(|| {
            let inode = match self.target.kind {
                Kind::Descriptor | Kind::BlockBitmap | Kind::InodeBitmap | Kind::Superblock => 2,
                _ => self.target.owner,
            };
            let of_inode = [
                DumpTarget::Inode(inode),
                DumpTarget::Directory(inode),
                DumpTarget::Extents(inode),
            ];
            let all = [DumpTarget::Superblock, DumpTarget::Groups, DumpTarget::Journal];
            of_inode.into_iter().chain(all).for_each(|what| dumped_or_refused(self.path, what));
            ours(self.path)
        }));
        let ours = looked.map_err(|_| "panic".to_owned())?;
        let Some(ours) = ours else { return Ok(()) };
        let theirs = theirs(self.path);
        let explained = |meant: &[Meant], said: &str| {
            meant
                .iter()
                .any(|(kinds, part)| kinds.contains(&self.target.kind) && said.contains(part))
        };
        match (ours.sound, theirs.sound) {
            (false, true) if !explained(OURS_ALONE, &ours.said) => {
                Err(format!("e2fsck finds nothing, we say:\n{}", ours.said))
            }
            (true, false) if !explained(THEIRS_ALONE, &theirs.said) => {
                Err(format!("we find nothing, e2fsck says:\n{}", theirs.said))
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

/// The rounds of one kind of volume: how they differ.
fn rounds(arm: Arm, seeds: std::ops::Range<u64>) -> Vec<String> {
    let scratch = Scratch::new();
    let path = arm.make(&scratch);
    let mut image = Image::load(&path);
    let mut kinds: BTreeMap<Kind, Vec<Target>> = BTreeMap::new();
    for target in targets(&image) {
        kinds.entry(target.kind).or_default().push(target);
    }
    let expected = [Kind::Pointers, Kind::OrphanFile, Kind::ExtentNode, Kind::Attributes];
    for kind in expected {
        assert_eq!(kinds.contains_key(&kind), arm.has(kind), "{arm:?}: {kind:?}");
    }
    let kinds: Vec<Vec<Target>> = kinds.into_values().collect();
    let file = File::options().write(true).open(&path).expect("an image");
    let (mut differ, mut tried) = (Vec::new(), 0);
    for seed in seeds.clone() {
        let mut rng = Stream::new(seed, "damage");
        let targets = &kinds[rng.below(kinds.len() as u64) as usize];
        let target = targets[rng.below(targets.len() as u64) as usize];
        let mut round = Round { path: &path, file: &file, image: &mut image, target };
        match round.judge(&mut rng) {
            Ok(changed) => tried += u64::from(changed),
            Err(what) => differ.push(format!("{}, seed {seed}: {what}", arm.features)),
        }
    }
    assert!(tried + differ.len() as u64 >= (seeds.end - seeds.start) / 2, "too few changes");
    differ
}

/// Whatever field is changed, our check and e2fsck find something, or neither does.
#[test]
fn damage_is_judged_as_e2fsck_judges_it() {
    if !e2fsprogs() {
        return;
    }
    let from = asked("NANDSCAPE_FS_DIFFER_FROM", 0);
    let seeds = from..from + asked("NANDSCAPE_FS_DIFFER", 60);
    let differ: Vec<String> = ARMS.iter().flat_map(|arm| rounds(*arm, seeds.clone())).collect();
    assert!(differ.is_empty(), "{} differ\n{}", differ.len(), differ.join("\n"));
}
