//! File systems by kind: what is made is recognised, described, checked and shown without its type.

use crate::common::device::{OpenDevice, powered};
use nandscape_block::{Lba, MemDevice, Payload, Tag};
use nandscape_fs::contract::Caller;
use nandscape_fs::{ConfigError, FormatError, FormatRequest, FsKind, ImageError, MountEnv, Probe};
use nandscape_rt::{Executor, Handle};

/// Sectors of the device: 64 MiB, of which F2FS takes some for its logs.
const SECTORS: u64 = 16_384;

/// Runs a body on a device to which nothing was written.
fn on_device(body: impl AsyncFnOnce(&Handle, OpenDevice) + 'static) {
    let mut executor = Executor::on_virtual_clock();
    let rt = executor.handle();
    let ran = executor.block_on(async move {
        let device = powered(&rt, MemDevice::new(SECTORS));
        body(&rt, device).await;
    });
    ran.expect("no deadlock");
}

const REQUEST: FormatRequest<'static> = FormatRequest {
    label: "data",
    features: &[],
    journal_sectors: Some(1_024),
    inode_ratio: None,
    inode_bytes: None,
    reserved_percent: None,
    segments_per_section: None,
    sections_per_zone: None,
    overprovision: None,
    gc_journal_area: false,
    seed: 7,
    now_s: 1_000,
    fresh: true,
};

/// What is made is found again, and is unclean while it is mounted.
#[test]
fn what_is_made_is_recognised() {
    for kind in FsKind::ALL {
        on_device(async move |rt, device| {
            let device = device.erased();
            assert_eq!(FsKind::probe(&device).await, Ok(None), "nothing is there");
            let journal_sectors = REQUEST.journal_sectors.filter(|_| kind == FsKind::Ext4);
            let request = FormatRequest { journal_sectors, ..REQUEST };
            let mut config = kind.config_to_format(&request).expect("choices");
            let made = config.format(&device).await.expect("a file system");
            assert_eq!(made.sectors, SECTORS);
            let expected = Probe {
                label: "data".to_owned(),
                sectors: SECTORS,
                clean: true,
                has_errors: false,
                last_write_s: 1_000,
            };
            assert_eq!(FsKind::probe(&device).await, Ok(Some((kind, expected))));
            config.resume_after(2_000_000_000);
            let env = MountEnv { rt: rt.clone(), device: device.clone() };
            let (fs, report) = config.mount(env).await.expect("a mount");
            assert!(report.steps.iter().all(|step| step.count == 0), "{report:?}");
            let me = Caller::default();
            fs.mkdir(me, fs.root(), b"dir", 0o755).await.expect("a directory");
            fs.syncfs(me).await.expect("a sync");
            let (_, found) =
                FsKind::probe(&device).await.expect("readable").expect("a file system");
            assert_eq!((found.clean, found.last_write_s), (false, 2_000_000_000));
            fs.unmount().await.expect("an unmount");
            assert!(kind.identify(&device).await.expect("a file system").clean);
        });
    }
}

/// A check lists findings with their places, and a dump takes what the kind knows.
#[test]
fn what_is_made_is_checked_and_shown() {
    on_device(async |_, device| {
        let (medium, device) = (device.clone(), device.erased());
        let kind = FsKind::Ext4;
        let config = kind.config_to_format(&REQUEST).expect("choices");
        config.format(&device).await.expect("a file system");
        let report = kind.check(&device).await.expect("a file system");
        assert!(report.is_clean() && report.inodes >= 4 && report.directories == 2, "{report:?}");
        let shown = kind.dump(&device, "super").await.expect("a dump").text;
        assert!(shown.contains("\"data\""), "{shown}");
        assert!(kind.dump(&device, "inode 2").await.expect("a dump").text.contains("mode"));
        for wrong in ["", "inode", "inode x", "node 2"] {
            let refused = kind.dump(&device, wrong).await;
            assert!(matches!(refused, Err(ImageError::Request(_))), "{wrong}: {refused:?}");
        }
        // The first block of group descriptors becomes noise.
        let junk = Payload::Run(Tag::new(9));
        medium.write(Lba(1), 1, junk).await.expect("power is on");
        let findings = kind.check(&device).await.expect("a file system").findings;
        assert!(!findings.is_empty() && findings[0].to_string().contains(": "), "{findings:?}");
    });
}

/// Choices that cannot be met are named as a stack names them.
#[test]
fn choices_that_cannot_be_met_are_named() {
    on_device(async |_, device| {
        let device = device.erased();
        let kind = FsKind::Ext4;
        let features = ["no_such_feature".to_owned()];
        let unknown = kind.config_to_format(&FormatRequest { features: &features, ..REQUEST });
        assert_eq!(unknown.expect_err("no feature").key, "features");
        let large = FormatRequest { journal_sectors: Some(SECTORS - 192), ..REQUEST };
        let config = kind.config_to_format(&large).expect("choices");
        let error = config.check(device.caps()).expect_err("no room");
        assert_eq!(error.key, "journal");
        assert_eq!(config.format(&device).await, Err(FormatError::Config(error)));
        let mut config = kind.config();
        assert!(!config.makes());
        assert_eq!(config.choose("data", "journal"), Ok(()));
        assert_eq!(config.choices(), [("data", "journal"), ("commit", "jbd2")]);
        for (key, value) in [("data", "jbd2"), ("commit", "journal"), ("label", "x")] {
            let refused = config.choose(key, value);
            assert!(matches!(refused, Err(ConfigError { key: named, .. }) if named == key));
        }
        for rule in kind.rules() {
            assert_eq!(config.omit(rule.name), Ok(()));
        }
        assert!(config.omit("no-such-rule").is_err());
    });
}
