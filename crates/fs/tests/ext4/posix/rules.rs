//! Rules that a mount can leave out: without each of these a promise is broken after the same few calls, with it
//! never. What needs races, or a device that completes out of order, is for campaigns.

use super::*;
use crate::common::device::on_device;
use nandscape_block::MemDevice;
use nandscape_fs::FsKind;
use nandscape_fs::ext4::{Commit, OmittedRule};
use std::panic::{AssertUnwindSafe, catch_unwind};

const JBD2: Commit = Commit::Jbd2;
/// One small ring of records.
const RECORDS: Commit = Commit::Ijournal { slots: 1, slot_blocks: 24 };
const SECTORS: u64 = 32 * MIB / 4096;
const SEEDS: u64 = 6;

fn config(commit: Commit, omit: Option<OmittedRule>) -> FsConfig {
    let format = MkfsOptions { fresh: true, ..MkfsOptions::new(1) };
    let mount = MountOptions { commit, omit, ..MountOptions::default() };
    FsConfig::Ext4(Config { format: Some(format), mount })
}

/// Runs `before` on a new volume until power goes, and `after` on what that leaves, which must be sound.
fn live(
    seed: u64,
    config: &FsConfig,
    before: impl AsyncFn(&Fs, &Handle) + Copy + 'static,
    after: impl AsyncFn(&Fs) + Copy + 'static,
) {
    let new = MemDevice::new(SECTORS).with_latency(Nanos::from_us(20));
    let first = config.clone();
    let (_, medium, _) = on_device(new, Some(u64::MAX), seed, async move |rt, device| {
        first.format(&device).await.expect("mkfs");
        let (fs, _) = first.mount(MountEnv { rt: rt.clone(), device }).await.expect("a mount");
        before(&fs, &rt).await;
    });
    let second = config.clone();
    on_device(medium, None, seed, async move |rt, device| {
        let env = MountEnv { rt, device: device.clone() };
        let (fs, _) = second.mount(env).await.expect("a mount");
        after(&fs).await;
        fs.unmount().await.expect("an unmount");
        let report = FsKind::Ext4.check(&device).await.expect("a file system");
        assert!(report.is_clean(), "{:?}", report.findings);
    });
}

/// With the rule every seed must hold, without it one must fail.
fn needs(
    rule: OmittedRule,
    commit: Commit,
    before: impl AsyncFn(&Fs, &Handle) + Copy + 'static,
    after: impl AsyncFn(&Fs) + Copy + 'static,
) {
    (0..SEEDS).for_each(|seed| live(seed, &config(commit, None), before, after));
    let broken = config(commit, Some(rule));
    let fails = |seed| catch_unwind(AssertUnwindSafe(|| live(seed, &broken, before, after)));
    assert!((0..SEEDS).any(|seed| fails(seed).is_err()), "{} changes nothing", rule.name());
}

async fn set(fs: &Fs, ino: Ino, value: u8, len: usize) {
    let value = vec![value; len];
    fs.setxattr(ME, ino, b"user.a", &value, XattrMode::Set).await.expect("an attribute");
}

async fn has(fs: &Fs, name: &str, value: u8, len: usize) {
    let file = lookup(fs, fs.root(), name).await.expect("the file").ino;
    let found = fs.getxattr(ME, file, b"user.a").await;
    assert!(found == Ok(vec![value; len]), "not the attribute");
}

/// A durable file `f` of four pages.
async fn old_file(fs: &Fs) -> Ino {
    let file = create(fs, fs.root(), "f").await;
    write(fs, file, 0, &[7; 16_384]).await;
    fs.syncfs(ME).await.expect("a sync");
    file
}

#[test]
fn links_are_synced_and_counted() {
    let links = async |fs: &Fs| {
        for name in ["f", "g"] {
            let attr = lookup(fs, fs.root(), name).await.expect("the file");
            assert_eq!(attr.links, 2);
        }
    };
    let of_file = async |fs: &Fs, _: &Handle| {
        let file = old_file(fs).await;
        fs.link(ME, file, fs.root(), b"g").await.expect("a link");
        fs.fsync(ME, file).await.expect("a sync");
    };
    needs(OmittedRule::LinkSync, JBD2, of_file, links);
    needs(OmittedRule::RecordLink, RECORDS, of_file, links);
    let of_dir = async |fs: &Fs, _: &Handle| {
        let file = old_file(fs).await;
        fs.link(ME, file, fs.root(), b"g").await.expect("a link");
        fs.fsync(ME, fs.root()).await.expect("a sync");
    };
    needs(OmittedRule::LinkCount, JBD2, of_dir, links);
}

#[test]
fn names_that_go_are_synced() {
    let renamed = async |fs: &Fs| {
        assert_eq!(lookup(fs, fs.root(), "g").await.map(|attr| attr.size), Ok(16_384));
    };
    let rename = async |fs: &Fs, _: &Handle| {
        let (file, root) = (old_file(fs).await, fs.root());
        fs.rename(ME, (root, b"f"), (root, b"g"), RenameMode::Replace).await.expect("a move");
        fs.fsync(ME, file).await.expect("a sync");
    };
    needs(OmittedRule::RenameSync, JBD2, rename, renamed);
    needs(OmittedRule::RecordRename, RECORDS, rename, renamed);
    let unlink = async |fs: &Fs, _: &Handle| {
        let file = old_file(fs).await;
        fs.link(ME, file, fs.root(), b"g").await.expect("a link");
        fs.syncfs(ME).await.expect("a sync");
        fs.unlink(ME, fs.root(), b"f").await.expect("no file");
        fs.fsync(ME, file).await.expect("a sync");
    };
    needs(OmittedRule::RecordUnlink, RECORDS, unlink, renamed);
}

#[test]
fn files_without_names_are_freed() {
    let nothing = async |_: &Fs| {};
    let flags = OpenFlags::default();
    let unlink = async move |fs: &Fs, _: &Handle| {
        let file = old_file(fs).await;
        fs.open(ME, file, flags).await.expect("a handle");
        fs.unlink(ME, fs.root(), b"f").await.expect("no name");
        fs.fsync(ME, fs.root()).await.expect("a sync");
    };
    needs(OmittedRule::OpenUnlink, JBD2, unlink, nothing);
    needs(OmittedRule::OrphanUnlink, JBD2, unlink, nothing);
    let rename = async move |fs: &Fs, _: &Handle| {
        let (file, root) = (old_file(fs).await, fs.root());
        fs.open(ME, file, flags).await.expect("a handle");
        create(fs, root, "g").await;
        fs.rename(ME, (root, b"g"), (root, b"f"), RenameMode::Replace).await.expect("a move");
        fs.fsync(ME, root).await.expect("a sync");
    };
    needs(OmittedRule::RenameOrphan, JBD2, rename, nothing);
}

#[test]
fn attributes_are_synced() {
    let small = async |fs: &Fs, _: &Handle| {
        let file = old_file(fs).await;
        set(fs, file, 1, 10).await;
        fs.fsync(ME, file).await.expect("a sync");
    };
    needs(OmittedRule::XattrSync, JBD2, small, async |fs| has(fs, "f", 1, 10).await);
    let large = async |fs: &Fs, _: &Handle| {
        let file = old_file(fs).await;
        for value in [1, 2] {
            set(fs, file, value, 2_000).await;
            fs.fsync(ME, file).await.expect("a sync");
        }
    };
    let newest = async |fs: &Fs| has(fs, "f", 2, 2_000).await;
    needs(OmittedRule::XattrLogged, JBD2, large, newest);
    needs(OmittedRule::RecordXattr, RECORDS, large, newest);
}

#[test]
fn lengths_are_synced() {
    let grow = async |fs: &Fs, _: &Handle| {
        let file = old_file(fs).await;
        resize(fs, file, 50_000).await;
        fs.fdatasync(ME, file).await.expect("a sync");
    };
    needs(OmittedRule::FdatasyncSize, JBD2, grow, async |fs| {
        assert_eq!(lookup(fs, fs.root(), "f").await.map(|attr| attr.size), Ok(50_000));
    });
}

#[test]
fn preallocated_blocks_read_as_zeroes() {
    let reuse = async |fs: &Fs, _: &Handle| {
        let old = create(fs, fs.root(), "old").await;
        write(fs, old, 0, &vec![9; 400_000]).await;
        fs.fsync(ME, old).await.expect("a sync");
        fs.unlink(ME, fs.root(), b"old").await.expect("no file");
        fs.syncfs(ME).await.expect("a sync");
        let new = create(fs, fs.root(), "new").await;
        let what = Allocate::Reserve { keep_size: false };
        fs.fallocate(ME, new, what, 0, 400_000).await.expect("blocks");
        fs.fsync(ME, new).await.expect("a sync");
    };
    needs(OmittedRule::FallocateWritten, JBD2, reuse, async |fs| {
        let new = lookup(fs, fs.root(), "new").await.expect("the file").ino;
        assert!(read(fs, new).await.iter().all(|byte| *byte == 0), "old data");
    });
}

/// A page that is written to while it is on its way is on the device when the next sync ends.
#[test]
fn pages_that_are_dirtied_again_are_synced() {
    let twice = async |fs: &Fs, rt: &Handle| {
        let file = old_file(fs).await;
        write(fs, file, 0, &[1; 4_096]).await;
        let first = fs.fsync(ME, file);
        let second = async {
            rt.sleep(Nanos::from_us(5)).await;
            write(fs, file, 0, &[2; 4_096]).await;
            fs.fsync(ME, file).await
        };
        let (first, second) = nandscape_rt::combine::join2(first, second).await;
        first.and(second).expect("syncs");
    };
    needs(OmittedRule::RedirtiedPage, JBD2, twice, async |fs| {
        let file = lookup(fs, fs.root(), "f").await.expect("the file").ino;
        assert_eq!(read(fs, file).await[..4_096], [2; 4_096]);
    });
}

/// What was written has a block to go to.
#[test]
fn accepted_pages_find_space() {
    let fill = async |fs: &Fs, _: &Handle| {
        let file = create(fs, fs.root(), "f").await;
        let page = Data::Sectors(Payload::Run(Tag::new(1)), 64);
        let mut at = 0;
        while fs.write(ME, file, at, page.clone(), Io::Buffered).await.is_ok() {
            at += 64 * 4_096;
            assert!(at <= SECTORS * 4_096, "more than there is");
        }
        fs.fsync(ME, file).await.expect("what was accepted has blocks");
    };
    needs(OmittedRule::Reservation, JBD2, fill, async |_| {});
}

/// No record gets the place of one that counts.
#[test]
fn records_keep_their_places() {
    let many = async |fs: &Fs, _: &Handle| {
        let mut files = Vec::new();
        for number in 0..40 {
            files.push(create(fs, fs.root(), &format!("f{number}")).await);
        }
        fs.syncfs(ME).await.expect("a sync");
        for &file in &files {
            write(fs, file, 0, &[5; 5_000]).await;
            fs.fsync(ME, file).await.expect("a sync");
        }
    };
    needs(OmittedRule::RecordPlace, RECORDS, many, async |fs| {
        for number in 0..40 {
            let attr = lookup(fs, fs.root(), &format!("f{number}")).await.expect("the file");
            assert_eq!(attr.size, 5_000, "f{number}");
        }
    });
}
