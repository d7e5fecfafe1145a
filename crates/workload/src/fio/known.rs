//! Keys of fio that are recognised without being carried out: those that steer a real machine, which
//! are accepted with a notice, and those that would change the workload, which are refused by name.

use super::error::Why;

/// Accepted with a notice: the reason, and the keys.
pub(super) const MACHINE: &[(Why, &[&str])] = &[
    (Why::Always("ignored: a log is replayed on the simulated block device"), &["replay_redirect"]),
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
            "fill_fs",
            "pre_read",
        ],
    ),
    (
        Why::Always("ignored: files are created before the run and stay open"),
        &[
            "openfiles",
            "filetype",
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
        Why::Always("ignored (simulated)"),
        &[
            "write_barrier",
            "atomic",
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
        Why::Always("ignored: the host's CPUs and memory take no part in the simulation"),
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
            "priohint",
            "comm",
            "gpu_dev_id",
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
        Why::Always("ignored: virtual time has one exact clock"),
        &[
            "clocksource",
            "clock_cpu",
            "gtod_cpu",
            "gtod_reduce",
            "log_unix_epoch",
            "log_alternate_epoch",
            "log_alternate_epoch_clock_id",
            "job_start_clock_id",
        ],
    ),
    (Why::Always("ignored: a run begins with empty caches"), &["invalidate"]),
    (Why::Always("ignored: a log is read before the run"), &["read_iolog_chunked"]),
    (
        Why::Always("ignored: fio itself no longer supports it"),
        &["rwmixcycle", "flow_watermark", "thinkcycles", "verifysort", "verifysort_nr"],
    ),
    (Why::Always("ignored: the random map always fits in memory"), &["softrandommap"]),
    (
        Why::Always("ignored: logs are written as text, without I/O priorities"),
        &[
            "log_compression",
            "log_compression_cpus",
            "log_store_compressed",
            "log_entries",
            "log_prio",
            "log_issue_time",
        ],
    ),
    (
        Why::Always("ignored: no layer compresses or deduplicates content"),
        &[
            "refill_buffers",
            "scramble_buffers",
            "zero_buffers",
            "buffer_pattern",
            "buffer_compress_percentage",
            "buffer_compress_chunk",
            "dedupe_percentage",
            "dedupe_mode",
            "dedupe_global",
            "dedupe_working_set_percentage",
            "verify_pattern",
        ],
    ),
    (
        Why::Always("ignored: the report does not depend on it"),
        &[
            "disk_util",
            "disable_lat",
            "disable_clat",
            "disable_slat",
            "disable_bw_measurement",
            "disable_bw",
            "block_error_percentiles",
            "error_dump",
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
        Why::Always("ignored: reads are checked as they complete, against the whole content"),
        &[
            "verify_fatal",
            "verify_async",
            "verify_async_cpus",
            "verify_interval",
            "verify_offset",
            "verify_dump",
            "verify_pattern_interval",
            "verify_header_seed",
            "verify_write_sequence",
        ],
    ),
];

/// Keys of fio that would change the workload, and that are refused because they are not carried out.
pub(super) const UNSUPPORTED: &[&str] = &[
    "blocksize_unaligned",
    "bs_unaligned",
    "create_only",
    "data_placement",
    "dataplacement",
    "dp_scheme",
    "end_syncfs",
    "experimental_verify",
    "fdp",
    "fdp_pli",
    "fdp_pli_select",
    "merge_blktrace_file",
    "merge_blktrace_iters",
    "merge_blktrace_scalars",
    "num_range",
    "percentage_sequential",
    "plid_select",
    "plids",
    "profile",
    "ramp_size",
    "random_sequence_stride",
    "recover_zbd_write_error",
    "spr_cs",
    "spr_num_regions",
    "spr_op",
    "sprandom",
    "sync_file_range",
    "trim_backlog",
    "trim_backlog_batch",
    "trim_percentage",
    "trim_verify_zero",
    "verify_backlog",
    "verify_backlog_batch",
    "verify_only",
    "verify_policy",
    "verify_state_load",
    "verify_state_save",
    "write_zone_remainder",
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
