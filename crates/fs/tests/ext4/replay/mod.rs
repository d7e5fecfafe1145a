//! Our recovery against the kernel's and e2fsck's: volumes whose kernel was cut off, as it left them and
//! with damage in the log, are recovered by each. All end with the same blocks, or refuse.
//!
//! `NANDSCAPE_FS_REPLAY` sets the loads of each kind of volume, `NANDSCAPE_FS_REPLAY_FROM` the first of them,
//! and `NANDSCAPE_FS_REPLAY_DAMAGE` how often the log of each image is damaged: never, if it says nothing,
//! since what a kernel leaves is another image each time, and what it makes of damage may be another kernel's.

mod compare;
mod damage;
mod load;

use crate::common::image::Image;
use crate::common::mount::LoopMount;
use crate::common::{Scratch, asked, assert_clean, debugfs_write, e2fsprogs, run, text};
use crate::foreign::through;
use crate::tree::stand;
use compare::differences;
use damage::Log;
use load::{ARMS, Arm};
use nandscape_rt::Stream;
use std::fs;
use std::path::{Path, PathBuf};

/// The kernel mounts a copy and unmounts it; `Err` if it refuses.
fn by_kernel(scratch: &Scratch, image: &Path) -> Result<PathBuf, String> {
    let copy = scratch.path("by-kernel");
    fs::copy(image, &copy).expect("a copy");
    let mounted = LoopMount::attempt(scratch, &copy, "noinit_itable").expect("a mount before");
    mounted.map(|mount| {
        drop(mount);
        copy
    })
}

/// e2fsck recovers a copy; `Err` if it asks for a manual check.
fn by_e2fsck(scratch: &Scratch, image: &Path) -> Result<PathBuf, String> {
    let copy = scratch.path("by-e2fsck");
    fs::copy(image, &copy).expect("a copy");
    let checked = run("e2fsck", &["-p", text(&copy)]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    if checked.status.code().is_some_and(|code| code <= 1) { Ok(copy) } else { Err(said) }
}

fn by_us(scratch: &Scratch, image: &Path) -> Result<PathBuf, String> {
    through(scratch, image, async |_| ()).map_err(|error| error.to_string())
}

/// What differs of a volume as its kernel left it.
fn judge(scratch: &Scratch, image: &Path) -> Vec<String> {
    let kernel = by_kernel(scratch, image).expect("a volume of the kernel's");
    let e2fsck = by_e2fsck(scratch, image).expect("a volume of the kernel's");
    assert_clean(&kernel);
    let ours = match by_us(scratch, image) {
        Ok(ours) => ours,
        Err(error) => return vec![format!("we refuse: {error}")],
    };
    let mut found = differences(&ours, &kernel, &[]);
    let to_e2fsck = differences(&ours, &e2fsck, &[]);
    found.extend(to_e2fsck.into_iter().map(|what| format!("e2fsck: {what}")));
    found
}

/// What differs of a volume with a damaged log. e2fsck mends where the others refuse, and is no judge.
fn judge_damaged(scratch: &Scratch, image: &Path) -> Vec<String> {
    match (by_kernel(scratch, image), by_us(scratch, image)) {
        (Err(_), Err(_)) => Vec::new(),
        (Ok(kernel), Ok(ours)) => differences(&ours, &kernel, &[]),
        (Err(said), Ok(_)) => vec![format!("the kernel refuses: {said}")],
        (Ok(_), Err(error)) => vec![format!("we refuse: {error}")],
    }
}

/// The log of a volume damaged again and again; how we differ then.
fn damages(scratch: &Scratch, image: &Path, name: &str) -> Vec<String> {
    let sound = Image::load(image);
    let log = Log::of(&sound);
    let mut rng = Stream::new(0, &format!("damage to the log of {name}"));
    let mut found = Vec::new();
    for _ in 0..asked("NANDSCAPE_FS_REPLAY_DAMAGE", 0) {
        let mut damaged = Image { bytes: sound.bytes.clone(), sb: sound.sb.clone() };
        let Some(how) = log.damage(&mut damaged, &mut rng) else { continue };
        let path = scratch.path("damaged");
        fs::write(&path, &damaged.bytes).expect("an image");
        let differ = judge_damaged(scratch, &path);
        found.extend(differ.into_iter().map(|what| format!("{how}: {what}")));
    }
    found
}

/// One load; `None` where the machine cannot mount.
fn load(arm: &Arm, seed: u64) -> Option<Vec<String>> {
    let scratch = Scratch::new();
    let mut found = Vec::new();
    for (number, copy) in arm.make(&scratch, seed)?.iter().enumerate() {
        let name = format!("{}, {}, seed {seed}, copy {number}", arm.options.join(" "), arm.mount);
        let differ = [judge(&scratch, copy), damages(&scratch, copy, &name)].concat();
        found.extend(differ.into_iter().map(|what| format!("{name}: {what}")));
    }
    found.iter().for_each(|what| eprintln!("{what}"));
    Some(found)
}

/// Volumes of a kernel that was cut off come back the same, and damage to their logs ends the same.
#[test]
fn logs_of_the_kernel_are_recovered_as_it_recovers_them() {
    if !e2fsprogs() {
        return;
    }
    let from = asked("NANDSCAPE_FS_REPLAY_FROM", 0);
    let seeds = from..from + asked("NANDSCAPE_FS_REPLAY", 1);
    let mut differ = Vec::new();
    for (arm, seed) in ARMS.iter().flat_map(|arm| seeds.clone().map(move |seed| (arm, seed))) {
        let Some(found) = load(arm, seed) else { return };
        differ.extend(found);
    }
    assert!(differ.is_empty(), "{} differ\n{}", differ.len(), differ.join("\n"));
}

/// Files whose truncation or removal a power cut has interrupted, in the superblock's list of orphans: what is
/// left of them is what the kernel leaves, and what lies behind a new end is zeroes.
#[test]
fn orphans_are_finished_as_the_kernel_finishes_them() {
    if !e2fsprogs() {
        return;
    }
    for options in ["metadata_csum,^orphan_file", "^metadata_csum,^64bit,^orphan_file"] {
        let scratch = Scratch::new();
        let image = stand::image(&scratch, 32, &["-O", options]);
        let Some(mount) = LoopMount::new(&scratch, &image, "noinit_itable") else { return };
        for name in ["short", "shorter", "even", "whole", "gone"] {
            fs::write(mount.path().join(name), vec![b'x'; 40_000]).expect("a file");
        }
        drop(mount);
        let lengths = [("short", 5_000), ("shorter", 1), ("even", 8_192), ("whole", 40_000)];
        let mut script: String =
            lengths.iter().map(|(name, length)| format!("sif {name} size {length}\n")).collect();
        script += "unlink gone\nsif <16> links_count 0\n";
        let list = [("short", 13), ("shorter", 14), ("even", 15), ("whole", 16), ("<16>", 0)];
        script.extend(list.map(|(name, next)| format!("sif {name} dtime {next}\n")));
        script += "ssv last_orphan 12\n";
        debugfs_write(&image, &script);
        let kernel = by_kernel(&scratch, &image).expect("a mount");
        let ours = by_us(&scratch, &image).expect("a mount");
        let differ = differences(&ours, &kernel, &[12, 13, 14, 15]);
        assert!(differ.is_empty(), "{options}\n{}", differ.join("\n"));
        assert_clean(&ours);
    }
}
