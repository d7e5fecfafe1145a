//! What campaigns need to find each safety rule missing: `nandscape crash --omit RULE` until the first seed that is
//! caught, as a Markdown table, beside what the campaigns of CI found at commit a4bee96: before media had delays and
//! resets were watched, and before file systems stood on a hostile device under loads that use every call.

mod score;

pub(crate) use score::median;

use crate::mutants::{KILLED, TIMED_OUT};
use crate::repository::Repository;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Rules to leave out, one after the other, in a campaign.
struct Group {
    /// Arguments of `nandscape crash`.
    args: &'static str,
    /// Each with where the campaigns of CI noticed, at commit a4bee96 with the rule added.
    rules: &'static [(&'static str, &'static str)],
}

const NOTHING: &str = "not found";
/// What the rule is about came later.
const LATER: &str = "later";

const GROUPS: [Group; 19] = [
    Group {
        args: "",
        rules: &[
            ("settled-gate", NOTHING),
            ("moved-trims", NOTHING),
            ("trim-sequence", NOTHING),
            ("relog-gate", "`--faults 1000`, seed 213"),
            ("trim-gate", "seed 883"),
            ("erase-gate", "seed 15"),
            ("program-order", "seed 12"),
            ("flush-completion", "seed 4"),
            ("file-trims", "seed 43"),
            ("drop-early", LATER),
        ],
    },
    Group {
        args: "--stack ssd",
        rules: &[
            ("settled-gate", NOTHING),
            ("trim-sequence", NOTHING),
            ("compacted-trims", NOTHING),
            ("buffered-trims", NOTHING),
            ("copy-completion", "seed 32"),
            ("fua-instances", "seed 9"),
            ("trim-gate", "seed 30"),
            ("erase-gate", "seed 12"),
            ("drop-early", LATER),
        ],
    },
    Group {
        args: "--stack zns",
        rules: &[
            ("zone-save", LATER),
            ("reset-record", LATER),
            ("program-order", LATER),
            ("preflush-drain", LATER),
            ("torn-pages", LATER),
            ("stale-records", LATER),
        ],
    },
    Group {
        args: "--stack zns --set ftl.buffer.power_safe=true",
        rules: &[("buffer-save", LATER)],
    },
    Group {
        args: "--stack iplfs-ssd",
        rules: &[
            ("sequence", LATER),
            ("erase-rule", LATER),
            ("preflush-drain", LATER),
            ("lost-trims", LATER),
            ("one-shot-flush", LATER),
            ("erase-gate", LATER),
            ("settled-gate", LATER),
            ("trim-gate", LATER),
            ("trim-sequence", LATER),
            ("fua-instances", LATER),
            ("copy-completion", LATER),
            ("compacted-trims", LATER),
            ("buffered-trims", LATER),
            ("drop-early", LATER),
        ],
    },
    Group {
        args: "--stack iplfs-ssd --set ftl.buffer.power_safe=true",
        rules: &[("buffer-save", LATER)],
    },
    Group {
        args: "--stack d2fs-ssd",
        rules: &[
            ("preflush-drain", LATER),
            ("lost-trims", LATER),
            ("program-order", LATER),
            ("zone-save", LATER),
            ("torn-pages", LATER),
            ("copy-completion", LATER),
            ("record-journal", LATER),
            ("completion-durable", LATER),
            ("record-reference", LATER),
            ("offered-merge", LATER),
            ("redirected-discard", LATER),
            ("stale-generation", LATER),
            ("redirect-chain", LATER),
        ],
    },
    Group {
        args: "--stack d2fs-ssd --set ftl.buffer.power_safe=true",
        rules: &[("buffer-save", LATER)],
    },
    Group { args: "--stack ssd --edge-cases", rules: &[("torn-units", "seed 55")] },
    Group {
        args: "--fs ext4 --base adversary",
        rules: &[
            ("missing-barrier", "ordered, journal, writeback, js-pblk, ssd, ijournal"),
            ("commit-before-data", "ordered, journal, writeback, js-pblk, ssd, ijournal"),
            ("commit-preflush", "ordered, journal, writeback, js-pblk, ssd, ijournal"),
            ("commit-fua", "ordered, journal, writeback, js-pblk, ssd, ijournal"),
            ("copies-wait", "ijournal"),
            ("ordered-wait", NOTHING),
            ("tail-flush", "js-pblk, ssd"),
            ("fsync-flush", "ordered, writeback, js-pblk, ssd, ijournal"),
            ("barrier-sent", NOTHING),
            ("empty-flush", NOTHING),
            ("recovery-flush", "js-pblk, ssd"),
            ("tail-before-checkpoint", "ordered, journal, writeback, ijournal"),
            ("late-home", NOTHING),
            ("home-wait", NOTHING),
            ("claimed-home", NOTHING),
            ("forgotten-home", "ordered, writeback, js-pblk, ssd, ijournal"),
            ("home-in-flight", NOTHING),
            ("frozen-copies", "ordered, journal, writeback, js-pblk, ssd, ijournal"),
            ("missing-revoke", "ordered, writeback, js-pblk, ssd, ijournal"),
            ("revoke-order", "ordered, journal, writeback, js-pblk, ssd, ijournal"),
            ("log-checksums", NOTHING),
            ("orphan-unlink", "ordered, journal, writeback, js-pblk, ssd"),
            ("unwritten-early", NOTHING),
            ("fallocate-written", NOTHING),
            ("direct-written", NOTHING),
            ("append-size", NOTHING),
            ("append-orphan", NOTHING),
            ("redirtied-page", NOTHING),
            ("sync-wait", NOTHING),
            ("fdatasync-size", "journal"),
            ("reservation", NOTHING),
            ("reuse-before-commit", "js-pblk, ssd, ijournal"),
            ("open-unlink", NOTHING),
            ("rename-orphan", NOTHING),
            ("link-sync", NOTHING),
            ("rename-sync", "ordered, writeback, ssd"),
            ("link-count", NOTHING),
            ("xattr-logged", NOTHING),
            ("xattr-sync", NOTHING),
        ],
    },
    Group {
        args: "--fs ext4 --base adversary --set fs.data=journal",
        rules: &[("tail-fua", NOTHING)],
    },
    Group {
        args: "--fs ext4 --base adversary --set fs.commit=ijournal",
        rules: &[
            ("orphan-truncate", NOTHING),
            ("record-preflush", "ijournal"),
            ("record-fua", "ijournal"),
            ("record-place", NOTHING),
            ("record-cover", "ijournal"),
            ("record-link", NOTHING),
            ("record-unlink", NOTHING),
            ("record-rename", NOTHING),
            ("record-xattr", NOTHING),
        ],
    },
    Group {
        args: "--fs f2fs --base adversary",
        rules: &[
            ("checkpoint-preflush", LATER),
            ("checkpoint-fua", LATER),
            ("prefree-reuse", LATER),
            ("early-discard", LATER),
            ("nat-in-place", LATER),
            ("sit-in-place", LATER),
            ("stale-nat-bits", LATER),
            ("checkpoint-dentries", LATER),
            ("checkpoint-wait", LATER),
            ("checkpoint-orphans", LATER),
            ("fsync-mark", LATER),
            ("dentry-mark", LATER),
            ("fsync-flush", LATER),
            ("appended-flush", LATER),
            ("fsync-node-wait", LATER),
            ("fsync-rename", LATER),
            ("fsync-link", LATER),
            ("fsync-parent", LATER),
            ("roll-version", LATER),
            ("roll-checkpoint", LATER),
            ("growth-tail", LATER),
        ],
    },
    Group {
        args: "--fs f2fs --base adversary-zoned",
        rules: &[
            ("zone-early-reset", LATER),
            ("zone-lost-reset", LATER),
            ("zone-stale-log", LATER),
            ("zone-finish", LATER),
            ("moved-flush", LATER),
        ],
    },
    Group {
        args: "--fs f2fs --stack iplfs-ssd",
        rules: &[
            ("discard-journal", LATER),
            ("discard-replay", LATER),
            ("mount-discard", LATER),
            ("log-in-place", LATER),
            ("slot-map", LATER),
        ],
    },
    Group {
        args: "--fs f2fs --stack d2fs-ssd",
        rules: &[
            ("mount-discard", LATER),
            ("log-in-place", LATER),
            ("slot-map", LATER),
            ("upcall-checkpoint", LATER),
            ("upcall-discards", LATER),
            ("upcall-reads", LATER),
            ("upcall-stale", LATER),
            ("upcall-recheck", LATER),
            ("section-reuse", LATER),
            ("known-discard", LATER),
        ],
    },
    Group {
        args: "--fs f2fs --base adversary --set fs.allocation=adaptive",
        rules: &[("kept-blocks", LATER), ("updated-flush", LATER)],
    },
    Group {
        args: "--fs f2fs --base adversary --set fs.reclaim=gc-journal",
        rules: &[
            ("gcj-reuse", LATER),
            ("gcj-preflush", LATER),
            ("gcj-fua", LATER),
            ("gcj-settle", LATER),
            ("gcj-discard", LATER),
            ("gcj-pinned", LATER),
            ("gcj-keep-new", LATER),
            ("gcj-checkpoint", LATER),
            ("gcj-full", LATER),
            ("gcj-node-content", LATER),
            ("gcj-dir-content", LATER),
            ("gcj-chain-nodes", LATER),
            ("gcj-mark", LATER),
            ("gcj-unmark", LATER),
            ("gcj-version", LATER),
            ("gcj-location", LATER),
            ("gcj-chain", LATER),
            ("gcj-last-copies", LATER),
        ],
    },
    Group {
        args: "--fs f2fs --base adversary --set fs.reclaim=gc-journal --set fs.gc_journal=paper",
        rules: &[("gcj-fsynced", LATER)],
    },
];

/// After how much a rule counts as not found.
pub(crate) struct Options {
    /// Of a campaign on a device alone.
    pub(crate) seeds: u64,
    /// Of a campaign on a file system.
    pub(crate) cuts: u64,
    /// Of any campaign, by the clock: a program without a rule may not end.
    pub(crate) seconds: u64,
    /// What the arguments of a campaign contain; others are left out.
    pub(crate) only: String,
    /// Whether violations are minimised, and the table is about that.
    pub(crate) shrink: bool,
    /// The program, if it is not to be built.
    pub(crate) binary: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        let (only, shrink, binary) = (String::new(), false, None);
        Self { seeds: 10_000, cuts: 100_000, seconds: 600, only, shrink, binary }
    }
}

/// How a campaign ended.
enum End {
    Found(Found),
    NotFound,
    OutOfTime,
}

/// What a campaign found first.
struct Found {
    /// Seeds up to the one that found it, from 1 on: that is its number.
    seeds: u64,
    cuts: u64,
    what: String,
}

/// Prints the table, and returns whether every rule was found missing.
///
/// # Errors
/// The program cannot be built or run.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => repository.root().join(repository.checked_binary()?),
    };
    let (mut found_missing, mut rules_run) = (0, 0);
    let of_group = |group: &'static Group| {
        group.rules.iter().map(|(name, before)| (group.args, *name, *before))
    };
    let groups = GROUPS.iter().filter(|group| group.args.contains(&options.only));
    let rules = groups.flat_map(of_group);
    if options.shrink {
        return score::run(
            &binary,
            repository.root(),
            rules.map(|(args, name, _)| (args, name)),
            options,
        );
    }
    println!("| Rule left out | Campaign | CI before | Seeds | Cuts | What was noticed |");
    println!("|---|---|---|---|---|---|");
    for (args, name, before) in rules {
        let end = first_violation(&binary, repository.root(), name, args, options)?;
        rules_run += 1;
        found_missing += u32::from(matches!(end, End::Found(_)));
        let last = match end {
            End::Found(Found { seeds, cuts, what }) => format!("{seeds} | {cuts} | {what}"),
            End::NotFound => format!("{NOTHING} | | "),
            End::OutOfTime => format!("{NOTHING} in {} s | | ", options.seconds),
        };
        let campaign = format!("crash {args}");
        println!("| `{name}` | `{}` | {before} | {last} |", campaign.trim_end());
    }
    println!("\n{found_missing} of {rules_run} safety rules were found missing");
    Ok(found_missing == rules_run)
}

/// The first seed in which a rule is missed, and the power cuts up to there. A campaign ends there, or when its time is over.
fn first_violation(
    binary: &Path,
    root: &Path,
    rule: &str,
    args: &str,
    options: &Options,
) -> Result<End, String> {
    let amount = match args.contains("--fs") {
        true => ["--cuts".to_owned(), options.cuts.to_string()],
        false => ["--seeds".to_owned(), options.seeds.to_string()],
    };
    let output = Command::new("timeout")
        .current_dir(root)
        .args(["-k", "5", &options.seconds.to_string()])
        .arg(binary)
        .arg("crash")
        .args(args.split_whitespace())
        .args(["--omit", rule, "--first", "1", "--no-shrink", "--output-format", "json"])
        .args(amount)
        .stderr(Stdio::null())
        .output()
        .map_err(|e| format!("timeout: {e}"))?;
    if let Some(TIMED_OUT | KILLED) = output.status.code() {
        return Ok(End::OutOfTime);
    }
    let report = serde_json::from_slice::<serde_json::Value>(&output.stdout)
        .map_err(|e| format!("crash --omit {rule}: no report: {e}"))?;
    let Some(violation) = report["violations"].as_array().and_then(|all| all.first()) else {
        return Ok(End::NotFound);
    };
    let seeds = violation["seed"].as_u64().unwrap_or(0);
    let cuts = report["counts"]["cuts"].as_u64().unwrap_or(0);
    let what = violation["message"].as_str().unwrap_or_default();
    Ok(End::Found(Found { seeds, cuts, what: in_general(what) }))
}

/// A message without its numbers.
fn in_general(message: &str) -> String {
    let words = message.split(' ').map(|word| {
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        if is_number { "N" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_their_numbers() {
        let message = "a reset of unit 4 chunk 11 at 198.1ms erases";
        assert_eq!(in_general(message), "a reset of unit N chunk N at N erases");
    }
}
