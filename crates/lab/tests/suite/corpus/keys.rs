//! Which keys of a result the corpus holds, and the names under which `corpus.json` has them.

use nandscape_corpus::Keys;

/// A change that renames a key of a result adds the recorded name and the new one to `renamed`; one that adds a key
/// that recorded rows do not have adds it to `skipped`, until rows are recorded again.
pub(crate) const KEYS: Keys<'static> = Keys {
    skipped: &[
        "fio version",
        "timestamp",
        "timestamp_ms",
        "time",
        "global options",
        "disk_util",
        "nandscape/version",
        "nandscape/commit",
        "nandscape/wall_s",
        "nandscape/precondition/wall_s",
        // Where the device came from, which no figure depends on.
        "nandscape/precondition/state",
        "nandscape/precondition/origin",
        // The stack's text and its hash are input.
        "nandscape/resolved_stack",
        "nandscape/resolved_stack_hash",
        // Which way I/O went follows from job and stack.
        "nandscape/io",
        // Follows from the stack, and is newer than the rows.
        "nandscape/fs/victim",
        // Follow from the stack.
        "nandscape/device_label",
        "nandscape/device_keys",
        // Newer than the rows.
        "nandscape/trace/merged",
        "nandscape/trace/issued_bytes",
        "nandscape/trace/rmw_reads",
        "nandscape/series/*/sectors",
        "nandscape/series/*/free_lines",
        "nandscape/series/*/in_flight",
        "nandscape/series/*/*/histogram",
        // Sizes of the simulator's own structures.
        "nandscape/memory/fs",
    ],
    counted: &["nandscape/warnings"],
    renamed: &[],
};

/// Stacks that have got another name: the one in row names, and today's.
pub(crate) const STACKS: &[(&str, &str)] =
    &[("full-house", "combined"), ("ext4-full-house", "ext4-combined")];
