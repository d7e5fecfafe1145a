//! The crash campaigns of the gate, in groups. `cargo xtask mutants` runs their pinned seeds, too: they are what has to
//! catch a mutant.

use super::seeds::{Recorded, Seeds, fresh, with, with_seeds};
use crate::files::{listed, text};
use std::path::Path;

/// Part of the product, as tables of mutants name it.
pub(crate) type Area = &'static str;

/// A campaign, by its arguments to `nandscape crash`.
pub(crate) struct Campaign {
    /// What it is on: `pblk`, `stacks`, `ext4`, `f2fs`, `sequences`.
    pub(crate) group: &'static str,
    /// The parts that it is about.
    pub(crate) areas: &'static [Area],
    /// Its arguments without seeds.
    pub(crate) args: String,
    /// What it runs each time.
    pinned: Pinned,
    /// Seeds that differ from commit to commit.
    fresh: u64,
}

/// What a campaign runs each time, from seed 1 on.
#[derive(Clone, Copy)]
enum Pinned {
    Seeds(u64),
    /// As many seeds as it takes to cut power so often, of a matrix in each composition. Mutants hang on just these runs.
    Cuts(u64),
}

/// Of 119 mutants that a campaign detects, 111 show by seed 64 (docs/results/mutants.md); those above are recorded seeds.
const PINNED: Pinned = Pinned::Seeds(64);
/// A seed of F2FS takes one to four seconds, a hundred times as long as one of an FTL: only the first of its campaigns runs
/// 64. What mutants show in the others, they show by seed 6.
const PINNED_ON_F2FS: Pinned = Pinned::Seeds(8);
/// Chosen: all fresh seeds of a commit take about a minute of two cores.
const FRESH_ON_DEVICES: u64 = 96;
const FRESH_ON_EXT4: u64 = 4;
const FRESH_ON_F2FS: u64 = 1;
/// Sequences of two calls: a mode of a file system takes half a second for these and the pinned ones.
const FRESH_SEQUENCES: u64 = 64;

const DEVICE: &[Area] = &["pblk", "common"];
const SSD: &[Area] = &["ssd", "interval", "common"];
const ZONED: &[Area] = &["zoned", "common"];
const COUPLED: &[Area] = &["coupled", "zoned", "common"];
const EXT4: &[Area] = &["ext4", "jbd2", "page_cache"];
const F2FS: &[Area] = &["f2fs", "page_cache"];
const GC_JOURNAL: &[Area] = &["f2fs_gc_journal", "f2fs"];
const APPENDED: &[Area] = &["d2fs", "f2fs"];

/// ext4 in each data mode, and with file-level commits.
const EXT4_MODES: [&str; 4] =
    ["fs.data=ordered", "fs.data=journal", "fs.data=writeback", "fs.commit=ijournal"];

/// Modes of F2FS by what they promise.
const F2FS_MODES: [&str; 3] =
    ["fs.allocation=lfs", "fs.allocation=adaptive", "fs.fsync_mode=strict"];

/// On the device that does its worst, and there with a GC journal.
const ADVERSE: &str = "--base adversary";
const ADVERSE_GC_JOURNAL: &str = "--set fs.reclaim=gc-journal --base adversary";

/// F2FS in drawn modes; fsck.f2fs sees one cut in fifty.
const OF_F2FS: [(&[Area], &str); 14] = [
    (F2FS, ADVERSE),
    (F2FS, ""),
    (F2FS, "--set fs.allocation=adaptive --base adversary"),
    (F2FS, "--set fs.allocation=adaptive"),
    (GC_JOURNAL, ADVERSE_GC_JOURNAL),
    (GC_JOURNAL, "--set fs.reclaim=gc-journal --set fs.gc_journal=paper --base adversary"),
    (GC_JOURNAL, "--set fs.reclaim=gc-journal --set fs.allocation=adaptive --base adversary"),
    (GC_JOURNAL, "--set fs.reclaim=gc-journal"),
    (F2FS, "--base adversary-zoned"),
    (GC_JOURNAL, "--set fs.reclaim=gc-journal --base adversary-zoned"),
    (F2FS, "--stack zns"),
    (GC_JOURNAL, "--set fs.reclaim=gc-journal --stack zns"),
    (APPENDED, "--stack iplfs-ssd"),
    (APPENDED, "--stack d2fs-ssd"),
];

/// Volumes that are driven to the ends of their space; few seeds show what a leak is, and mutants are no matter of these.
const PINNED_FULL: Pinned = Pinned::Seeds(8);
const PINNED_FULL_ON_F2FS: Pinned = Pinned::Seeds(3);

/// All of them.
///
/// # Errors
/// The stacks that ship cannot be read.
pub(crate) fn campaigns(root: &Path) -> Result<Vec<Campaign>, String> {
    let mut all = of_pblk();
    all.extend(of_stacks(root)?);
    all.extend(of_ext4());
    all.extend(of_f2fs());
    all.extend(of_sequences());
    all.extend(of_full());
    Ok(all)
}

/// FTLs on open-channel media that the seeds draw: power cuts alone and with faults, lost sectors too; with one program and
/// one erase in a thousand failing throughout; on unusual devices; and a few compositions of policies in which any two
/// choices meet.
fn of_pblk() -> Vec<Campaign> {
    let of = |args| Campaign::on_device("pblk", DEVICE, args);
    let pairs = Campaign { pinned: Pinned::Cuts(100), fresh: 0, ..of("--matrix pairs") };
    vec![of(""), of("--faults 1000"), of("--edge-cases"), pairs]
}

/// Every FTL that ships, on small devices of its write rules.
fn of_stacks(root: &Path) -> Result<Vec<Campaign>, String> {
    let of = |stack: &str, rest: &str| {
        Campaign::on_device("stacks", areas_of(stack), &format!("--stack {stack}{rest}"))
    };
    let mut all: Vec<Campaign> = stacks(root)?.iter().map(|stack| of(stack, "")).collect();
    for ssd in ["ssd", "zns", "iplfs-ssd", "d2fs-ssd"] {
        all.push(of(ssd, " --set ftl.buffer.power_safe=true"));
        all.push(of(ssd, " --edge-cases"));
    }
    // Policies that no stack has.
    let kinds = [("pagemap", SSD), ("interval", SSD), ("zoned", ZONED), ("coupled", COUPLED)];
    for (kind, areas) in kinds {
        all.push(Campaign::on_device("stacks", areas, &format!("--ftl {kind}")));
    }
    // All commands of a collection are sent at once.
    for schedule in ["nvmevirt", "femu"] {
        all.push(of("ssd", &format!(" --set ftl.gc.schedule={schedule}")));
    }
    // Most cuts in garbage collection, mapping blocks and logs.
    for stack in ["pblk", "dftl", "ssd", "zns", "iplfs-ssd", "d2fs-ssd"] {
        all.push(of(stack, " --background-cuts"));
    }
    // The journal is so small that snapshots are taken all the time; chunks are copied after failed programs; chunks that a
    // power-safe buffer needs are few.
    all.push(of("d2fs-ssd", " --edge-cases --background-cuts"));
    all.push(of("d2fs-ssd", " --faults 100 --background-cuts"));
    all.push(of("zns", " --edge-cases --set ftl.buffer.power_safe=true"));
    Ok(all)
}

/// On the device that does its worst, on drawn FTLs, and on those that ship; e2fsck sees one cut in ten of these.
fn of_ext4() -> Vec<Campaign> {
    let of = |rest: &str| Campaign {
        group: "ext4",
        areas: EXT4,
        args: with("--fs ext4", rest),
        pinned: PINNED,
        fresh: FRESH_ON_EXT4,
    };
    let mut all = Vec::new();
    for mode in EXT4_MODES {
        all.push(of(&format!("--set {mode} --base adversary")));
        all.push(of(&format!("--set {mode} --oracle-every 10")));
    }
    all.extend(["js-pblk", "ssd"].map(|stack| of(&format!("--stack {stack} --oracle-every 10"))));
    all
}

fn of_full() -> Vec<Campaign> {
    let of = |group, areas, args: &str, pinned| Campaign {
        group,
        areas,
        args: args.to_owned(),
        pinned,
        fresh: 1,
    };
    vec![
        of("ext4", EXT4, "--fs ext4 --full --base adversary", PINNED_FULL),
        of("ext4", EXT4, "--fs ext4 --full", PINNED_FULL),
        of("ext4", EXT4, "--fs ext4 --set fs.commit=ijournal --full", PINNED_FULL),
        of("f2fs", F2FS, "--fs f2fs --full --base adversary", PINNED_FULL_ON_F2FS),
        of("f2fs", APPENDED, "--fs f2fs --full --stack d2fs-ssd", PINNED_FULL_ON_F2FS),
    ]
}

fn of_f2fs() -> Vec<Campaign> {
    let of = |(areas, rest): (&'static [Area], &str)| Campaign {
        group: "f2fs",
        areas,
        args: with("--fs f2fs --oracle-every 50", rest),
        pinned: match rest {
            ADVERSE => PINNED,
            ADVERSE_GC_JOURNAL => Pinned::Cuts(400),
            _ => PINNED_ON_F2FS,
        },
        fresh: FRESH_ON_F2FS,
    };
    OF_F2FS.map(of).into()
}

/// Sequences of two calls, drawn from all of them, in each mode of each file system.
fn of_sequences() -> Vec<Campaign> {
    let of = |kind: &str, areas, mode: &str| Campaign {
        group: "sequences",
        areas,
        args: format!("--fs {kind} --set {mode} --enumerate 2"),
        pinned: PINNED,
        fresh: FRESH_SEQUENCES,
    };
    let ext4 = EXT4_MODES.iter().map(|mode| of("ext4", EXT4, mode));
    ext4.chain(F2FS_MODES.iter().map(|mode| of("f2fs", F2FS, mode))).collect()
}

impl Campaign {
    fn on_device(group: &'static str, areas: &'static [Area], args: &str) -> Self {
        Self { group, areas, args: args.to_owned(), pinned: PINNED, fresh: FRESH_ON_DEVICES }
    }

    /// The arguments of what it runs each time: its first seeds, and those recorded above them, each alone.
    pub(crate) fn pinned(&self, seeds: &Seeds) -> Vec<String> {
        let first = match self.pinned {
            Pinned::Seeds(seeds) => with_seeds(&self.args, 1, seeds),
            Pinned::Cuts(cuts) => with(&self.args, &format!("--cuts {cuts}")),
        };
        let found = seeds.found.iter().filter(|one| one.campaign == self.args);
        std::iter::once(first).chain(found.map(Recorded::args)).collect()
    }

    /// The arguments of the seeds that derive from this origin, such as a commit; `None`: it has none.
    pub(crate) fn fresh(&self, origin: &str) -> Option<String> {
        (self.fresh > 0).then(|| with_seeds(&self.args, fresh(origin, &self.args), self.fresh))
    }

    /// How many these are.
    pub(super) const fn fresh_seeds(&self) -> u64 {
        self.fresh
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn stacks_with_a_file_system_are_left_out() {
        let names = stacks(&root()).unwrap();
        assert!(names.contains(&"pblk".to_owned()) && !names.contains(&"ext4-pblk".to_owned()));
    }

    /// Recorded seeds run: each is of a campaign of the gate, above those that it runs anyway.
    #[test]
    fn recorded_seeds_are_of_campaigns() {
        let (all, seeds) = (campaigns(&root()).unwrap(), Seeds::read(&root()).unwrap());
        assert!(!seeds.found.is_empty());
        for one in &seeds.found {
            let campaign =
                all.iter().find(|campaign| campaign.pinned(&seeds).contains(&one.args()));
            let pinned = campaign.expect("a campaign of the gate").pinned;
            assert!(matches!(pinned, Pinned::Seeds(first) if one.seed > first), "{one:?}");
        }
    }

    /// Two commits look in different places, one in the same each time; the seeds of all commits are above the pinned ones.
    #[test]
    fn commits_have_seeds_of_their_own() {
        for campaign in campaigns(&root()).unwrap() {
            let [one, again, other] = ["a", "a", "b"].map(|commit| campaign.fresh(commit));
            assert_eq!(one, again);
            assert!(one.is_none() || one != other, "{one:?}");
        }
    }
}
