//! Keys of fio that are recognised without being carried out: those that steer a real machine, which
//! are accepted with a notice, and those that would change the workload, which are refused by name.

use super::error::Why;

/// Accepted with a notice: the reason, and the keys.
pub(super) const MACHINE: &[(Why, &[&str])] = &[
    (Why::Always("a log is replayed on the one block device of the stack"), &["replay_redirect"]),
    (
        Why::NotOnFiles,
        &[
            "filename_format",
            "unique_filename",
            "opendir",
            "overwrite",
            "unlink_each_loop",
            "fsync_on_close",
            "file_append",
            "fill_device",
            "pre_read",
        ],
    ),
    (
        Why::Always("files, where there are any, are laid out before the run begins and stay open"),
        &[
            "openfiles",
            "fallocate",
            "create_serialize",
            "create_fsync",
            "create_on_open",
            "unlink",
            "allow_file_create",
            "fadvise_hint",
            "lockfile",
            "allow_mounted_write",
        ],
    ),
    (
        Why::Always("I/O is issued in virtual time, by an engine of its own"),
        &[
            "hipri",
            "sqthread_poll",
            "sqthread_poll_cpu",
            "registerfiles",
            "fixedbufs",
            "nonvectored",
            "uncached",
            "userspace_reap",
            "force_async",
            "io_submit_mode",
        ],
    ),
    (
        Why::Always("the host's processors and memory play no part in virtual time"),
        &[
            "thread",
            "cpus_allowed",
            "cpus_allowed_policy",
            "cpumask",
            "numa_cpu_nodes",
            "numa_mem_policy",
            "nice",
            "prio",
            "prioclass",
            "uid",
            "gid",
            "mem",
            "iomem",
            "iomem_align",
            "mem_align",
            "hugepage-size",
            "lockmem",
            "cgroup",
            "cgroup_weight",
            "cgroup_nodelete",
            "ioscheduler",
            "exec_prerun",
            "exec_postrun",
        ],
    ),
    (
        Why::Always("virtual time has one exact clock"),
        &[
            "clocksource",
            "clock_cpu",
            "gtod_cpu",
            "gtod_reduce",
            "log_unix_epoch",
            "log_alternate_epoch",
        ],
    ),
    (Why::Always("a run begins with nothing cached"), &["invalidate"]),
    (Why::Always("a log is read before the run begins"), &["read_iolog_chunked"]),
    (Why::Always("fio itself does nothing with it any more"), &["rwmixcycle", "flow_watermark"]),
    (
        Why::Always("content is a pattern that no layer compresses or deduplicates"),
        &[
            "refill_buffers",
            "scramble_buffers",
            "zero_buffers",
            "buffer_pattern",
            "verify_pattern",
            "random_generator",
        ],
    ),
    (
        Why::Always("what is reported does not depend on it"),
        &[
            "disk_util",
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement",
            "bwavgtime",
            "iopsavgtime",
            "stats",
            "lat_percentiles",
            "clat_percentiles",
            "slat_percentiles",
            "percentile_list",
            "significant_figures",
            "unit_base",
            "status_interval",
            "continue_reporting",
            "unified_rw_reporting",
            "group_id",
        ],
    ),
    (
        Why::Always("reads are checked as they complete, against the whole content"),
        &[
            "verify_fatal",
            "verify_async",
            "verify_async_cpus",
            "verify_interval",
            "verify_offset",
            "verify_dump",
        ],
    ),
];

/// Keys of fio that would change the workload, and that are refused because they are not carried out.
pub(super) const UNSUPPORTED: &[&str] = &[
    "bs_is_seq_rand",
    "bs_unaligned",
    "buffer_compress_percentage",
    "dedupe_percentage",
    "end_syncfs",
    "exitall",
    "exitall_on_error",
    "experimental_verify",
    "fdp",
    "ignore_error",
    "merge_blktrace_file",
    "merge_blktrace_iters",
    "merge_blktrace_scalars",
    "num_range",
    "plid_select",
    "profile",
    "rate_cycle",
    "rate_iops_min",
    "rate_min",
    "rw_sequencer",
    "serialize_overlap",
    "softrandommap",
    "steadystate",
    "steadystate_duration",
    "steadystate_ramp_time",
    "sync_file_range",
    "trim_backlog",
    "trim_backlog_batch",
    "trim_percentage",
    "trim_verify_zero",
    "verify_backlog",
    "verify_backlog_batch",
    "verify_only",
    "verify_state_load",
    "verify_state_save",
    "wait_for",
    "write_barrier",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::{HostEnvironment, keys, parse};

    /// Every key of fio that is not carried out is refused by name, with file and line, and never as
    /// a typing error.
    #[test]
    fn unsupported_keys_are_named() {
        for key in UNSUPPORTED {
            let error = parse(&format!("[j]\n{key}=1\n"), "a.fio", &HostEnvironment).unwrap_err();
            let expected = format!("a.fio:2:1: {key}: a key of fio that is not supported");
            assert_eq!(error.to_string(), expected);
        }
    }

    /// Every key that steers a machine is accepted with a notice, whatever its value.
    #[test]
    fn machine_keys_give_notices() {
        for (why, names) in MACHINE {
            for key in *names {
                let file = parse(&format!("[j]\n{key}=x\n"), "a.fio", &HostEnvironment).unwrap();
                assert_eq!(file.notices[0].to_string(), format!("a.fio:2:1: {key}: {why}"));
            }
        }
    }

    /// No key stands in two tables.
    #[test]
    fn a_key_has_one_meaning() {
        let machine = MACHINE.iter().flat_map(|(_, names)| names.iter().copied());
        let all = keys::supported_keys().chain(machine).chain(UNSUPPORTED.iter().copied());
        let mut names: Vec<&str> = all.collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
