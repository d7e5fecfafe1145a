//! The crash campaigns that CI runs, in groups that are its steps. `cargo xtask mutants` runs them, too: they are what
//! has to catch a mutant.

use crate::files::{listed, text};
use crate::repository::{Repository, cores};
use std::path::Path;
use std::process::Command;

/// Part of the product, as tables of mutants name it.
pub(crate) type Area = &'static str;

/// A campaign, by its arguments to `nandscape crash`.
pub(crate) struct Campaign {
    /// The step of CI.
    pub(crate) group: &'static str,
    /// The parts that it is about.
    pub(crate) areas: &'static [Area],
    pub(crate) args: String,
}

const DEVICE: &[Area] = &["pblk", "common"];
const SSD: &[Area] = &["ssd", "interval", "common"];
const ZONED: &[Area] = &["zoned", "common"];
const COUPLED: &[Area] = &["coupled", "zoned", "common"];
const EXT4: &[Area] = &["ext4", "jbd2", "page_cache"];
const F2FS: &[Area] = &["f2fs", "page_cache"];
const GC_JOURNAL: &[Area] = &["f2fs_gc_journal", "f2fs"];
const APPENDED: &[Area] = &["d2fs", "f2fs"];

/// Five power cuts per seed: more than 10,000 in the first campaign. Power cuts alone and with faults, lost sectors too,
/// as the seed draws them; then with one program and one erase in a thousand failing throughout; then a few compositions
/// of policies in which any two choices meet.
const OF_PBLK: [(&str, &str); 3] = [
    ("device", "--seeds 2000"),
    ("faults", "--faults 1000 --seeds 2000"),
    ("compositions", "--matrix pairs --cuts 100"),
];

/// ext4 in each data mode, and with file-level commits.
const EXT4_MODES: [&str; 4] =
    ["fs.data=ordered", "fs.data=journal", "fs.data=writeback", "fs.commit=ijournal"];

/// F2FS in drawn modes; fsck.f2fs sees one cut in fifty.
const OF_F2FS: [(&[Area], &str); 14] = [
    (F2FS, "--base adversary --cuts 1000"),
    (F2FS, "--cuts 300"),
    (F2FS, "--set fs.allocation=adaptive --base adversary --cuts 500"),
    (F2FS, "--set fs.allocation=adaptive --cuts 150"),
    (GC_JOURNAL, "--set fs.reclaim=gc-journal --base adversary --cuts 400"),
    (
        GC_JOURNAL,
        "--set fs.reclaim=gc-journal --set fs.gc_journal=paper --base adversary --cuts 200",
    ),
    (
        GC_JOURNAL,
        "--set fs.reclaim=gc-journal --set fs.allocation=adaptive --base adversary --cuts 200",
    ),
    (GC_JOURNAL, "--set fs.reclaim=gc-journal --cuts 40"),
    (F2FS, "--base adversary-zoned --cuts 400"),
    (GC_JOURNAL, "--set fs.reclaim=gc-journal --base adversary-zoned --cuts 400"),
    (F2FS, "--stack zns --cuts 300"),
    (GC_JOURNAL, "--set fs.reclaim=gc-journal --stack zns --cuts 100"),
    (APPENDED, "--stack iplfs-ssd --cuts 150"),
    (APPENDED, "--stack d2fs-ssd --cuts 150"),
];

/// All of them, in the order of CI.
///
/// # Errors
/// The stacks that ship cannot be read.
pub(crate) fn campaigns(root: &Path) -> Result<Vec<Campaign>, String> {
    let of = |group, areas, args: &str| Campaign { group, areas, args: args.to_owned() };
    let mut all: Vec<Campaign> =
        OF_PBLK.iter().map(|(group, args)| of(group, DEVICE, args)).collect();
    // Every FTL that ships, on small devices of its write rules.
    for stack in stacks(root)? {
        all.push(of("stacks", areas_of(&stack), &format!("--stack {stack} --seeds 150")));
    }
    for ssd in ["ssd", "zns", "iplfs-ssd", "d2fs-ssd"] {
        let power_safe = format!("--stack {ssd} --seeds 500 --set ftl.buffer.power_safe=true");
        all.push(of("stacks", areas_of(ssd), &power_safe));
        all.push(of("stacks", areas_of(ssd), &format!("--stack {ssd} --seeds 500 --edge-cases")));
    }
    // Most cuts in garbage collection, mapping blocks and logs.
    for stack in ["pblk", "dftl", "ssd", "zns", "iplfs-ssd", "d2fs-ssd"] {
        let args = format!("--stack {stack} --seeds 500 --background-cuts");
        all.push(of("stacks", areas_of(stack), &args));
    }
    // The journal is so small that snapshots are taken all the time; chunks are copied after failed programs; chunks that a
    // power-safe buffer needs are few.
    for (areas, args) in [
        (COUPLED, "--stack d2fs-ssd --seeds 1000 --edge-cases --background-cuts"),
        (COUPLED, "--stack d2fs-ssd --seeds 500 --faults 100 --background-cuts"),
        (ZONED, "--stack zns --seeds 500 --edge-cases --set ftl.buffer.power_safe=true"),
    ] {
        all.push(of("stacks", areas, args));
    }
    // On the device that does its worst, on drawn FTLs, and on those that ship; e2fsck sees one cut in ten of these.
    for mode in EXT4_MODES {
        all.push(of("ext4", EXT4, &format!("--fs ext4 --set {mode} --base adversary --cuts 850")));
        all.push(of("ext4", EXT4, &format!("--fs ext4 --set {mode} --cuts 150 --oracle-every 10")));
    }
    for stack in ["js-pblk", "ssd"] {
        all.push(of(
            "ext4",
            EXT4,
            &format!("--fs ext4 --stack {stack} --cuts 40 --oracle-every 10"),
        ));
    }
    for (areas, args) in OF_F2FS {
        all.push(of("f2fs", areas, &format!("--fs f2fs --oracle-every 50 {args}")));
    }
    Ok(all)
}

/// The stacks that ship without a file system.
fn stacks(root: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for file in listed(&root.join("crates/lab/stacks"))? {
        if !text(&file)?.lines().any(|line| line.starts_with("[fs")) {
            names.push(file.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn areas_of(stack: &str) -> &'static [Area] {
    match stack {
        "ssd" | "ssd-970pro" | "iplfs-ssd" => SSD,
        "zns" | "zn540" | "zns-prototype" => ZONED,
        "d2fs-ssd" => COUPLED,
        _ => DEVICE,
    }
}

/// Runs the campaigns of a group on all cores, and returns whether none found a violation.
///
/// # Errors
/// There is no such group, or the program cannot be built or run.
pub(crate) fn run(repository: &Repository, group: &str) -> Result<bool, String> {
    let campaigns = campaigns(repository.root())?;
    let wanted: Vec<&Campaign> = campaigns.iter().filter(|one| one.group == group).collect();
    if wanted.is_empty() {
        let mut groups: Vec<&str> = campaigns.iter().map(|one| one.group).collect();
        groups.dedup();
        return Err(format!("no campaigns {group:?}: expected one of {}", groups.join(", ")));
    }
    let binary = repository.root().join(repository.release_binary()?);
    for campaign in wanted {
        println!("crash {}", campaign.args);
        let status = Command::new(&binary)
            .current_dir(repository.root())
            .arg("crash")
            .args(campaign.args.split(' '))
            .args(["--jobs", &cores().to_string()])
            .status();
        if !status.map_err(|e| format!("{}: {e}", binary.display()))?.success() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each part of the product has a campaign, and each step of CI that runs campaigns names a group.
    #[test]
    fn every_group_is_a_step_of_ci() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let script = std::fs::read_to_string(root.join(".ci/run")).unwrap();
        for campaign in campaigns(&root).unwrap() {
            let step = format!("cargo xtask ci-campaigns {}\n", campaign.group);
            assert!(script.contains(&step), "{}", campaign.group);
        }
    }

    #[test]
    fn stacks_with_a_file_system_are_left_out() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let names = stacks(&root).unwrap();
        assert!(names.contains(&"pblk".to_owned()) && !names.contains(&"ext4-pblk".to_owned()));
    }
}
