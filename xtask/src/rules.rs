//! What campaigns need to find each safety rule missing: `nandscape crash --omit RULE` until the first seed that is
//! caught, as a Markdown table. Rules that no campaign finds within the limits have a test that violates them ([`STAGED`]):
//! for these no campaign runs, and the table names the test.

mod score;

use crate::mutants::{KILLED, TIMED_OUT};
use crate::repository::Repository;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Rules to leave out, one after the other, in a campaign.
struct Group {
    /// Arguments of `nandscape crash`.
    args: &'static str,
    rules: &'static [&'static str],
}

/// Rules that campaigns do not find within their limits, and the test of the gate that violates each: it takes states that no
/// load comes to, or hardly ever. A campaign would run to its limits and find nothing.
const STAGED: [(&str, &str); 14] = [
    ("torn-units", "ftl suite a_torn_unit_is_not_read"),
    ("completion-durable", "ftl suite coupled::rules"),
    ("offered-merge", "ftl suite coupled::rules"),
    ("append-orphan", "fs ext4 an_append_without_its_length_does_not_show"),
    ("record-place", "fs ext4 posix::rules"),
    ("moved-flush", "fs f2fs an_fsync_leads_to_no_page"),
    ("gcj-reuse", "fs f2fs journal_blocks_come_between_moves_and_reuse"),
    ("gcj-checkpoint", "fs f2fs journal_blocks_come_between_moves_and_reuse"),
    ("gcj-settle", "fs f2fs journal_blocks_come_between_moves_and_reuse"),
    ("gcj-chain-nodes", "fs f2fs journal_blocks_come_between_moves_and_reuse"),
    ("gcj-unmark", "fs f2fs the_mark_brackets_the_journal"),
    ("gcj-location", "fs f2fs reused_addresses_move_nothing_else"),
    ("gcj-chain", "fs f2fs replay_passes_through_roll_forward"),
    ("gcj-fsynced", "fs f2fs the_journal_leaves_the_chain_alone"),
];

const GROUPS: [Group; 20] = [
    Group {
        args: "",
        rules: &[
            "settled-gate",
            "moved-trims",
            "trim-sequence",
            "relog-gate",
            "trim-gate",
            "erase-gate",
            "program-order",
            "flush-completion",
            "file-trims",
            "drop-early",
        ],
    },
    Group {
        args: "--stack ssd",
        rules: &[
            "settled-gate",
            "trim-sequence",
            "compacted-trims",
            "buffered-trims",
            "copy-completion",
            "fua-instances",
            "trim-gate",
            "erase-gate",
            "drop-early",
        ],
    },
    Group {
        args: "--stack zns",
        rules: &[
            "zone-save",
            "reset-record",
            "program-order",
            "preflush-drain",
            "torn-pages",
            "stale-records",
        ],
    },
    Group { args: "--stack zns --set ftl.buffer.power_safe=true", rules: &["buffer-save"] },
    Group {
        args: "--stack iplfs-ssd",
        rules: &[
            "sequence",
            "erase-rule",
            "preflush-drain",
            "lost-trims",
            "one-shot-flush",
            "erase-gate",
            "settled-gate",
            "trim-gate",
            "trim-sequence",
            "fua-instances",
            "copy-completion",
            "compacted-trims",
            "buffered-trims",
            "drop-early",
        ],
    },
    Group { args: "--stack iplfs-ssd --set ftl.buffer.power_safe=true", rules: &["buffer-save"] },
    Group {
        args: "--stack d2fs-ssd",
        rules: &[
            "preflush-drain",
            "lost-trims",
            "program-order",
            "zone-save",
            "torn-pages",
            "copy-completion",
            "record-journal",
            "completion-durable",
            "record-reference",
            "offered-merge",
            "redirected-discard",
            "stale-generation",
            "redirect-chain",
        ],
    },
    Group { args: "--stack d2fs-ssd --set ftl.buffer.power_safe=true", rules: &["buffer-save"] },
    Group { args: "--stack ssd --edge-cases", rules: &["torn-units"] },
    Group {
        args: "--fs ext4 --base adversary",
        rules: &[
            "missing-barrier",
            "commit-before-data",
            "commit-preflush",
            "commit-fua",
            "copies-wait",
            "ordered-wait",
            "tail-flush",
            "fsync-flush",
            "barrier-sent",
            "empty-flush",
            "recovery-flush",
            "tail-before-checkpoint",
            "late-home",
            "home-wait",
            "claimed-home",
            "forgotten-home",
            "home-in-flight",
            "frozen-copies",
            "missing-revoke",
            "revoke-order",
            "log-checksums",
            "orphan-unlink",
            "unwritten-early",
            "fallocate-written",
            "direct-written",
            "append-size",
            "append-orphan",
            "redirtied-page",
            "sync-wait",
            "fdatasync-size",
            "reservation",
            "dropped-reservation",
            "reuse-before-commit",
            "open-unlink",
            "rename-orphan",
            "link-sync",
            "rename-sync",
            "link-count",
            "xattr-logged",
            "xattr-sync",
        ],
    },
    Group { args: "--fs ext4 --base adversary --set fs.data=journal", rules: &["tail-fua"] },
    Group { args: "--fs f2fs --base adversary --full", rules: &["refused-inode"] },
    Group {
        args: "--fs ext4 --base adversary --set fs.commit=ijournal",
        rules: &[
            "orphan-truncate",
            "record-preflush",
            "record-fua",
            "record-place",
            "record-cover",
            "record-link",
            "record-unlink",
            "record-rename",
            "record-xattr",
        ],
    },
    Group {
        args: "--fs f2fs --base adversary",
        rules: &[
            "checkpoint-preflush",
            "checkpoint-fua",
            "prefree-reuse",
            "early-discard",
            "nat-in-place",
            "sit-in-place",
            "stale-nat-bits",
            "checkpoint-dentries",
            "checkpoint-wait",
            "checkpoint-orphans",
            "fsync-mark",
            "dentry-mark",
            "fsync-flush",
            "appended-flush",
            "fsync-node-wait",
            "fsync-rename",
            "fsync-link",
            "fsync-parent",
            "roll-version",
            "roll-checkpoint",
            "growth-tail",
        ],
    },
    Group {
        args: "--fs f2fs --base adversary-zoned",
        rules: &[
            "zone-early-reset",
            "zone-lost-reset",
            "zone-stale-log",
            "zone-finish",
            "moved-flush",
        ],
    },
    Group {
        args: "--fs f2fs --stack iplfs-ssd",
        rules: &["discard-journal", "discard-replay", "mount-discard", "log-in-place", "slot-map"],
    },
    Group {
        args: "--fs f2fs --stack d2fs-ssd",
        rules: &[
            "mount-discard",
            "log-in-place",
            "slot-map",
            "upcall-checkpoint",
            "upcall-discards",
            "upcall-reads",
            "upcall-stale",
            "upcall-recheck",
            "section-reuse",
            "known-discard",
        ],
    },
    Group {
        args: "--fs f2fs --base adversary --set fs.allocation=adaptive",
        rules: &["kept-blocks", "updated-flush"],
    },
    Group {
        args: "--fs f2fs --base adversary --set fs.reclaim=gc-journal",
        rules: &[
            "gcj-reuse",
            "gcj-preflush",
            "gcj-fua",
            "gcj-settle",
            "gcj-discard",
            "gcj-pinned",
            "gcj-keep-new",
            "gcj-checkpoint",
            "gcj-full",
            "gcj-node-content",
            "gcj-dir-content",
            "gcj-chain-nodes",
            "gcj-mark",
            "gcj-unmark",
            "gcj-version",
            "gcj-location",
            "gcj-chain",
            "gcj-last-copies",
        ],
    },
    Group {
        args: "--fs f2fs --base adversary --set fs.reclaim=gc-journal --set fs.gc_journal=paper",
        rules: &["gcj-fsynced"],
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

/// The test that stands in for a campaign.
fn staged_test(rule: &str) -> Option<&'static str> {
    STAGED.iter().find(|(staged, _)| *staged == rule).map(|(_, test)| *test)
}

/// Prints the table, and returns whether every rule was found missing, or has a test.
///
/// # Errors
/// The program cannot be built or run.
pub(crate) fn run(repository: &Repository, options: &Options) -> Result<bool, String> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => repository.root().join(repository.checked_binary()?),
    };
    let of_group = |group: &'static Group| group.rules.iter().map(|name| (group.args, *name));
    let groups = GROUPS.iter().filter(|group| group.args.contains(&options.only));
    let rules = groups.flat_map(of_group);
    if options.shrink {
        let by_campaign = rules.filter(|(_, name)| staged_test(name).is_none());
        return score::run(&binary, repository.root(), by_campaign, options);
    }
    println!("| Rule left out | Campaign | Seeds | Cuts | What was noticed |");
    println!("|---|---|---|---|---|");
    let (mut all, mut found_missing, mut staged) = (0, 0, 0);
    for (args, name) in rules {
        all += 1;
        let last = if let Some(test) = staged_test(name) {
            staged += 1;
            format!("not run | | checked by the test {test}")
        } else {
            match first_violation(&binary, repository.root(), name, args, options)? {
                End::Found(Found { seeds, cuts, what }) => {
                    found_missing += 1;
                    format!("{seeds} | {cuts} | {what}")
                }
                End::NotFound => "not found | | ".to_owned(),
                End::OutOfTime => format!("not found in {} s | | ", options.seconds),
            }
        };
        let campaign = format!("crash {args}");
        println!("| `{name}` | `{}` | {last} |", campaign.trim_end());
    }
    println!("\n{found_missing} of {all} safety rules were found missing; {staged} have a test");
    Ok(found_missing + staged == all)
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
    // `timeout` is killed with the program that does not end when it is asked to.
    if let Some(TIMED_OUT | KILLED) | None = output.status.code() {
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
