//! Which keys of a result the corpus holds, and the names under which `corpus.json` has them.

use nandscape_corpus::Keys;

/// Whoever renames a key of a result adds the recorded name and the new one to `renamed`; whoever adds a key
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
        // Newer than the recorded rows.
        "nandscape/host",
        "nandscape/memory/host",
    ],
    counted: &["nandscape/warnings"],
    renamed: &[
        ("nandscape/gc/free_rides", "nandscape/gc/empty_victims"),
        ("nandscape/gc/forced_drains", "nandscape/gc/forced_flushes"),
        ("nandscape/buffers/*/free_rides", "nandscape/buffers/*/empty_victims"),
        ("nandscape/reads/ring_hits", "nandscape/reads/write_buffer_hits"),
        ("nandscape/flush/drained", "nandscape/flush/drained_sectors"),
        ("nandscape/map/no_slot", "nandscape/map/all_slots_pinned"),
        ("nandscape/map/host_lookups/joined", "nandscape/map/host_lookups/joined_loads"),
        ("nandscape/map/internal_lookups/joined", "nandscape/map/internal_lookups/joined_loads"),
        ("nandscape/host_cpu/collector", "nandscape/host_cpu/gc_thread"),
        ("nandscape/host_cpu/ring_locks/*/taken", "nandscape/host_cpu/ring_locks/*/acquisitions"),
        ("nandscape/host_cpu/map_lock/taken", "nandscape/host_cpu/map_lock/acquisitions"),
        ("nandscape/trace/disordered", "nandscape/trace/out_of_order"),
        ("nandscape/trace/folded", "nandscape/trace/wrapped"),
        ("nandscape/trace/bad_lines", "nandscape/trace/malformed_lines"),
        ("nandscape/trace/late", "nandscape/trace/issued_late"),
        ("nandscape/trace/late_max_ns", "nandscape/trace/issued_late_max_ns"),
        ("nandscape/fs/records", "nandscape/fs/ijournal_records"),
        ("nandscape/fs/fsync_times/thread_ns", "nandscape/fs/fsync_times/cpu_wait_ns"),
    ],
};

/// Stacks that have got another name: the one in row names, and today's.
pub(crate) const STACKS: &[(&str, &str)] = &[];
