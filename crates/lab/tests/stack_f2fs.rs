//! Stacks with F2FS: what their keys mean, and what the shipped ones are for.

#[path = "common/complete.rs"]
mod complete;

use complete::{MEDIA, NONE, error};
use nandscape_fs::FsConfig;
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::f2fs::format::{Feature, Features};
use nandscape_fs::f2fs::mkfs::MkfsOptions;
use nandscape_fs::f2fs::{self, Allocation, DiscardPolicy, FsyncMode};
use nandscape_lab::stack::Stack;
use nandscape_rt::Nanos;

/// The choices of its F2FS.
fn f2fs(stack: &Stack) -> f2fs::Config {
    match &stack.fs.as_ref().expect("a file system").config {
        FsConfig::F2fs(config) => config.clone(),
        other => panic!("not an F2FS: {other:?}"),
    }
}

/// The file system's keys reach mkfs and mount, with the kernel's and mkfs.f2fs's defaults.
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
    let full = fs("allocation = \"lfs\"\nactive_logs = 4\nfsync_mode = \"strict\"\n\
                   discard_policy = \"aggressive\"\ndata_order = \"ordered\"\n\
                   inline_data = false\ninline_dentry = false\ninline_xattr = false\n\
                   checkpoint_interval = \"5s\"\nbackground_gc = false\n\
                   features = [\"extra_attr\", \"inode_checksum\"]\nlabel = \"data\"\n\
                   segments_per_section = 16\nsections_per_zone = 2\noverprovision = 12.5\n\
                   discard = false\ndirty_background_percent = 5\ndirty_percent = 6\n\
                   writeback_age = \"1s\"\nwriteback_period = \"2s\"\nread_ahead = 0\n\
                   [host]\nmemory = \"8MiB\"\n");
    let mount = f2fs::MountOptions {
        active_logs: 4,
        fsync_mode: FsyncMode::Strict,
        discard_policy: DiscardPolicy::Aggressive,
        inline_data: false,
        inline_dentry: false,
        inline_xattr: false,
        checkpoint_interval: Nanos::from_secs(5),
        ordered_data: true,
        background_gc: false,
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
        discard: false,
        ..MkfsOptions::new(0)
    };
    assert_eq!(full, f2fs::Config { format: Some(format), mount });
    assert_eq!(fs("format = false\n").format, None);
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
    assert_eq!(of("f2fs-970pro"), expected(256, 16, DiscardPolicy::Aggressive));
    assert_eq!(of("f2fs-vanilla-970pro"), expected(256, 16, DiscardPolicy::Kernel));
}

/// Mistakes about an F2FS are answered where they stand.
#[test]
fn an_f2fs_that_cannot_be_is_refused() {
    let cases = [
        (
            "[fs]\nkind = \"f2fs\"\nallocation = \"adaptive\"\n",
            "my.toml:13:14: fs.allocation: \"adaptive\" is not in this version; expected lfs",
        ),
        ("[fs]\nkind = \"f2fs\"\nactive_logs = 3\n", "my.toml:13:15: fs.active_logs: must be 2, 4"),
        ("[fs]\nkind = \"f2fs\"\ncommit = \"jbd2\"\n", "my.toml:13:1: fs.commit: unknown key"),
        ("[fs]\nkind = \"f2fs\"\noverprovision = 100\n", "my.toml:13:17: fs.overprovision: must"),
        ("[fs]\nkind = \"f2fs\"\nsections_per_zone = 0\n", "my.toml:13:21: fs.sections_per_zone: "),
        (
            "[fs]\nkind = \"f2fs\"\nfeatures = [\"quota\"]\n",
            "my.toml:13:12: fs.features: quota is not supported",
        ),
        (
            "[fs]\nkind = \"f2fs\"\nformat = false\nlabel = \"x\"\n",
            "my.toml:14:9: fs.label: goes with format = true",
        ),
    ];
    for (lines, expected) in cases {
        let found = error(&format!("{MEDIA}\n{lines}"));
        assert!(found.starts_with(expected), "found    {found}\nexpected {expected}");
    }
}
