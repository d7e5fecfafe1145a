//! `[fs]` of a stack, key by key, and the stacks that have an F2FS.

use crate::common::complete::{MEDIA, NONE, error};
use nandscape_fs::FsConfig;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::SyscallCost;
use nandscape_fs::ext4::mkfs::DEFAULT_FEATURES;
use nandscape_fs::ext4::{self, Commit, MountOptions};
use nandscape_fs::f2fs::format::{Feature, Features, GcJournalFormat};
use nandscape_fs::f2fs::mkfs::MkfsOptions;
use nandscape_fs::f2fs::{
    self, AllocMode, Allocation, CpuCosts, DiscardPolicy, FsyncMode, GcCheckpoint, Reclaim,
    SmallVolume, VictimPolicy,
};
use nandscape_lab::stack::Stack;
use nandscape_rt::Nanos;

/// The choices of its ext4.
pub(crate) fn ext4(stack: &Stack) -> ext4::Config {
    match &stack.fs.as_ref().expect("a file system").config {
        FsConfig::Ext4(config) => config.clone(),
        other => panic!("not an ext4: {other:?}"),
    }
}

/// The choices of its F2FS.
fn f2fs(stack: &Stack) -> f2fs::Config {
    match &stack.fs.as_ref().expect("a file system").config {
        FsConfig::F2fs(config) => config.clone(),
        other => panic!("not an F2FS: {other:?}"),
    }
}

/// The same of F2FS, with the kernel's and mkfs.f2fs's defaults.
#[test]
fn an_f2fs_is_described_key_by_key() {
    let fs = |lines: &str| {
        let text = format!("{MEDIA}\n[fs]\nkind = \"f2fs\"\n{lines}");
        let stack = Stack::parse("my.toml", &text, &NONE).unwrap();
        let again = Stack::parse("resolved", &stack.toml, &NONE).unwrap();
        assert_eq!((&again.fs, &again.host, &again.toml), (&stack.fs, &stack.host, &stack.toml));
        f2fs(&stack)
    };
    let plain = fs("");
    assert_eq!(plain, f2fs::Config { format: Some(MkfsOptions::new(0)), ..Default::default() });
    let full = fs(
        "allocation = \"adaptive\"\nsmall_volume = \"off\"\nalloc_mode = \"reuse\"\nreclaim = \"gc-journal\"\n\
                   gc_journal = \"paper\"\ncheckpoint_cost = 99\nactive_logs = 4\nfsync_mode = \"strict\"\n\
                   discard_policy = \"aggressive\"\ndata_order = \"ordered\"\n\
                   inline_data = false\ninline_dentry = false\ninline_xattr = false\n\
                   checkpoint_interval = \"5s\"\nbackground_gc = false\n\
                   victim = \"age-threshold\"\nage_threshold = \"90s\"\n\
                   cpu = \"estimate\"\n\
                   features = [\"extra_attr\", \"inode_checksum\"]\nlabel = \"data\"\n\
                   segments_per_section = 16\nsections_per_zone = 2\noverprovision = 12.5\n\
                   gc_journal_area = true\n\
                   discard = false\ndirty_background_percent = 5\ndirty_percent = 6\n\
                   writeback_age = \"1s\"\nwriteback_period = \"2s\"\nread_ahead = 0\n\
                   [host]\nmemory = \"8MiB\"\n",
    );
    let mount = f2fs::MountOptions {
        allocation: Allocation::Adaptive,
        small_volume: SmallVolume::Off,
        alloc_mode: AllocMode::Reuse,
        reclaim: Reclaim::GcJournal,
        gc_journal: GcJournalFormat::Paper,
        checkpoint_cost: 99,
        active_logs: 4,
        fsync_mode: FsyncMode::Strict,
        discard_policy: DiscardPolicy::Aggressive,
        inline_data: false,
        inline_dentry: false,
        inline_xattr: false,
        checkpoint_interval: Nanos::from_secs(5),
        ordered_data: true,
        background_gc: false,
        victim: VictimPolicy::AgeThreshold,
        age_threshold: Nanos::from_secs(90),
        cpu: CpuCosts::preset("estimate").unwrap(),
        cache: CacheConfig {
            pages: 2048,
            background_percent: 5,
            dirty_percent: 6,
            period: Nanos::from_secs(2),
            age: Nanos::from_secs(1),
            read_ahead_pages: 0,
        },
        ..f2fs::MountOptions::default()
    };
    let format = MkfsOptions {
        features: Features::of(&[Feature::EXTRA_ATTR, Feature::INODE_CHECKSUM]),
        label: "data".to_owned(),
        segments_per_section: 16,
        sections_per_zone: 2,
        overprovision: Some(12.5),
        gc_journal: true,
        discard: false,
        ..MkfsOptions::new(0)
    };
    assert_eq!(full, f2fs::Config { format: Some(format), mount });
    assert_eq!(fs("format = false\n").format, None);
    assert_eq!(fs("gc_checkpoint = \"reuse\"\n").mount.gc_checkpoint, GcCheckpoint::Reuse);
}

/// What F2FS costs the host's cores is a preset, or a table over one with a scale; the resolved stack has each cost.
#[test]
fn cpu_costs_of_f2fs_are_a_preset_with_overrides() {
    let cpu = |lines: &str, set: &[&str]| {
        let text = format!("{MEDIA}\n[fs]\nkind = \"f2fs\"\n{lines}");
        let stack = Stack::parse("my.toml", &text, set).unwrap();
        let again = Stack::parse("resolved", &stack.toml, &NONE).unwrap();
        assert_eq!((&again.fs, &again.toml), (&stack.fs, &stack.toml));
        f2fs(&stack).mount.cpu
    };
    let estimate = CpuCosts::preset("estimate").unwrap();
    assert!(cpu("", &[]).is_free() && cpu("cpu = \"none\"\n", &[]).is_free());
    assert_eq!(cpu("", &["fs.cpu=estimate"]), estimate);
    let refined = CpuCosts { move_ns: 7, ..estimate };
    assert_eq!(cpu("cpu = \"estimate\"\n", &["fs.cpu.move_ns=7"]), refined);
    let half = CpuCosts { lookup_ns: 4, ..estimate }.scaled(0.5);
    assert_eq!(cpu("[fs.cpu]\npreset = \"estimate\"\nscale = 0.5\nlookup_ns = 4\n", &[]), half);
    let alone = CpuCosts { checkpoint_ns: 5, ..CpuCosts::default() };
    assert_eq!(cpu("[fs.cpu]\ncheckpoint_ns = 5\n", &[]), alone);
    for (lines, expected) in [
        (
            "cpu = \"estimates\"\n",
            "fs.cpu: expected none | estimate, found \"estimates\"; did you mean",
        ),
        ("[fs.cpu]\nlook_ns = 5\n", "fs.cpu.look_ns: unknown key"),
        ("[fs.cpu]\nscale = -1\n", "fs.cpu.scale: must be 0 to 1,000,000"),
        ("[fs.cpu]\nmove_ns = 10000000001\n", "fs.cpu.move_ns: must be at most"),
        ("age_threshold = \"1s\"\n", "fs.age_threshold: goes with victim"),
        (
            "victim = \"age-threshold\"\nage_threshold = \"1500ms\"\n",
            "fs.age_threshold: must be whole",
        ),
        ("allocation = \"ssr\"\n", "fs.allocation: expected lfs | adaptive"),
        ("small_volume = \"off\"\n", "fs.small_volume: goes with allocation"),
        ("reclaim = \"journal\"\n", "fs.reclaim: expected checkpoint | gc-journal"),
        ("gc_journal = \"safe\"\n", "fs.gc_journal: goes with reclaim"),
        (
            "reclaim = \"gc-journal\"\ngc_checkpoint = \"call\"\n",
            "fs.gc_checkpoint: goes with reclaim",
        ),
        ("checkpoint_cost = 1\n", "fs.checkpoint_cost: goes with reclaim"),
        (
            "reclaim = \"gc-journal\"\ngc_journal_area = false\n",
            "fs.gc_journal_area: must be true with reclaim",
        ),
        ("victim = \"greedy\"\n", "fs.victim: expected cost-benefit | age-threshold"),
    ] {
        let found = error(&format!("{MEDIA}\n[fs]\nkind = \"f2fs\"\n{lines}"));
        assert!(found.contains(expected), "found    {found}\nexpected {expected}");
    }
}

/// F2FS's stacks are what their names say, on 256 GiB of NAND where it is a 970 Pro's.
#[test]
fn stacks_of_f2fs_differ_in_what_they_are_for() {
    let of = |name: &str| {
        let stack = Stack::load(name, &NONE).unwrap();
        let bytes = stack.media.geometry.total_sectors() * 4096;
        let config = f2fs(&stack);
        let sections = config.format.unwrap().segments_per_section;
        (bytes, config.mount.allocation, sections, config.mount.discard_policy)
    };
    let expected = |gib: u64, sections, policy| (gib << 30, Allocation::Lfs, sections, policy);
    assert_eq!(of("f2fs-lfs-ssd"), expected(8, 1, DiscardPolicy::Kernel));
    let adaptive = (8 << 30, Allocation::Adaptive, 1, DiscardPolicy::Kernel);
    assert_eq!(of("f2fs-ssd"), adaptive);
    assert_eq!(of("f2fs-gcj-ssd"), expected(8, 1, DiscardPolicy::Kernel));
    let journalled = f2fs(&Stack::load("f2fs-gcj-ssd", &NONE).unwrap());
    assert_eq!(journalled.mount.reclaim, Reclaim::GcJournal);
    assert_eq!(journalled.mount.gc_journal, GcJournalFormat::Safe);
    assert!(journalled.format.unwrap().gc_journal);
    assert_eq!(of("f2fs-970pro"), expected(256, 16, DiscardPolicy::Aggressive));
    assert_eq!(of("f2fs-vanilla-970pro"), expected(256, 16, DiscardPolicy::Kernel));
}

/// The file system's keys reach mkfs and mount, with the kernel's and mke2fs's defaults.
#[test]
fn a_file_system_is_described_key_by_key() {
    let fs = |lines: &str| {
        let text = format!("{MEDIA}\n[fs]\n{lines}");
        let stack = Stack::parse("my.toml", &text, &NONE).unwrap();
        let again = Stack::parse("resolved", &stack.toml, &NONE).unwrap();
        assert_eq!((&again.fs, &again.host, &again.toml), (&stack.fs, &stack.host, &stack.toml));
        let config = ext4(&stack);
        (stack.fs.unwrap(), config, stack.host)
    };
    let (_, plain, host) = fs("kind = \"ext4\"\n");
    assert_eq!(plain.mount, MountOptions::default());
    let plain_mkfs = plain.format.unwrap();
    assert_eq!(plain_mkfs.features, DEFAULT_FEATURES);
    assert_eq!((plain_mkfs.journal_blocks, plain_mkfs.reserved_percent), (None, 5));
    let lines = "data = \"journal\"\ncommit = \"ijournal\"\nijournal_area = \"64KiB\"\n\
                 commit_interval = \"500ms\"\njournal = \"32MiB\"\n\
                 features = [\"^metadata_csum\", \"^64bit\"]\n\
                 discard = false\n\
                 dirty_background_percent = 5\ndirty_percent = 6\nwriteback_age = \"1s\"\n\
                 writeback_period = \"2s\"\nread_ahead = 0\ninode_ratio = \"64KiB\"\n\
                 reserved_percent = 0\n[host]\ncores = 3\nmemory = \"8MiB\"\n\
                 syscall_ns = 7\ncopy_ns = 8\n";
    assert_eq!(host.cost, SyscallCost { call: Nanos(1_000), copy: Nanos(1_000) });
    let (stack, full, host) = fs(lines);
    let full_mkfs = full.format.clone().unwrap();
    assert_eq!(stack.config.choices(), [("data", "journal"), ("commit", "ijournal")]);
    assert_eq!(host.cost, SyscallCost { call: Nanos(7), copy: Nanos(8) });
    assert_eq!((plain_mkfs.discard, full_mkfs.discard), (true, false));
    assert_eq!(full.mount.commit, Commit::Ijournal { slots: 3, slot_blocks: 16 });
    assert_eq!(full.mount.commit_interval, Nanos::from_ms(500));
    let cache = CacheConfig {
        pages: 2048,
        background_percent: 5,
        dirty_percent: 6,
        period: Nanos::from_secs(2),
        age: Nanos::from_secs(1),
        read_ahead_pages: 0,
    };
    assert_eq!(full.mount.cache, cache);
    assert_eq!((full_mkfs.journal_blocks, full_mkfs.reserved_percent), (Some(8192), 0));
    assert_eq!(full_mkfs.inode_ratio, Some(65_536));
    let off = DEFAULT_FEATURES.without(full_mkfs.features).names();
    assert_eq!(off, ["64bit", "metadata_csum"]);
}
