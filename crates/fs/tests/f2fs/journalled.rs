//! A mount that journals what cleaning moves: in which order it writes, and what it leaves out of the journal.

use crate::common::image::sectors;
use crate::common::volume::{assert_sound, loaded, run};
use crate::common::watched::{Seen, Watched};
use nandscape_block::{AsyncDevice, Bio, Flags, Lba, MemDevice, Op};
use nandscape_fs::contract::{Caller, Data, FileSystem, Ino, Io};
use nandscape_fs::f2fs::format::GcJournalFormat::{self, Paper, Safe};
use nandscape_fs::f2fs::format::*;
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::raw::{F2fsImage, GcJournalBlock};
use nandscape_fs::f2fs::{F2fs, MountOptions, OmittedRule, Reclaim};
use nandscape_rt::{Handle, Nanos, Stream};
use std::collections::BTreeSet;

pub(crate) const SECTORS: u64 = 100 << 8;
pub(crate) const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
/// Pages of the file that is written over here and there.
pub(crate) const SCATTERED: u64 = 6_000;
/// Looks at the journal.
const ROUNDS: usize = 8;
/// Pages of the file that is synced.
pub(crate) const SYNCED: u64 = 500;

pub(crate) fn options(gc_journal: GcJournalFormat, omit: Option<OmittedRule>) -> MountOptions {
    let reclaim = Reclaim::GcJournal;
    let checkpoint_cost = u32::MAX;
    MountOptions { reclaim, gc_journal, checkpoint_cost, omit, ..MountOptions::default() }
}

/// A new volume with the area, on a watched device.
pub(crate) async fn made(rt: &Handle) -> (AsyncDevice<Watched>, Seen, GcJournalArea) {
    let seen = Seen::default();
    let device = MemDevice::new(SECTORS).with_latency(Nanos::from_us(20));
    let device = AsyncDevice::new(rt, Watched::new(device, &seen));
    let made = MkfsOptions { gc_journal: true, fresh: true, ..MkfsOptions::new(1) };
    let sb = mkfs(&device.erased(), &made).await.expect("mkfs");
    seen.take();
    (device, seen, sb.gc_journal().expect("an area"))
}

pub(crate) async fn create(fs: &F2fs, name: &str) -> Ino {
    fs.create(ME, fs.root(), name.as_bytes(), 0o644).await.expect("a file").ino
}

pub(crate) async fn write(fs: &F2fs, ino: Ino, page: u64, pages: u64) {
    let data = Data::Bytes(vec![page as u8; (pages * 4_096) as usize]);
    fs.write_all(ME, ino, page * 4_096, data, Io::Buffered).await.expect("a write");
}

/// What writes over pages here and there, some of them of a file that is synced each time.
pub(crate) struct Load {
    fs: F2fs,
    scattered: Ino,
    synced: Ino,
    rng: Stream,
}

impl Load {
    /// Fills a volume.
    pub(crate) async fn new(fs: F2fs) -> Self {
        let (scattered, synced) = (create(&fs, "scattered").await, create(&fs, "synced").await);
        for page in (0..SCATTERED).step_by(100) {
            write(&fs, scattered, page, 100).await;
        }
        write(&fs, synced, 0, SYNCED).await;
        fs.syncfs(ME).await.expect("a checkpoint");
        Self { fs, scattered, synced, rng: Stream::new(1, "pages") }
    }

    /// Writes until so many journal blocks are on the device.
    pub(crate) async fn run(&mut self, blocks: usize, written: impl Fn() -> usize) {
        for _ in 0..20_000 {
            if written() >= blocks {
                return;
            }
            write(&self.fs, self.scattered, self.rng.below(SCATTERED), 1).await;
            if self.rng.chance(0.3) {
                write(&self.fs, self.synced, self.rng.below(SYNCED), 1).await;
                self.fs.fdatasync(ME, self.synced).await.expect("a sync");
            }
        }
        panic!("{} journal blocks", written());
    }
}

/// Bios to the area.
pub(crate) fn to_area(seen: &[Bio], area: GcJournalArea) -> impl Iterator<Item = &Bio> {
    let blocks = u64::from(area.blocks().start.0)..u64::from(area.blocks().end.0);
    seen.iter().filter(move |bio| bio.op == Op::Write && blocks.contains(&bio.lba.0))
}

/// The order of what changes the mark, and makes durable: copies of the superblock, flushes, the last blocks of checkpoint
/// packs (PREFLUSH and FUA), blocks of the journal.
fn order(seen: &[Bio], area: GcJournalArea) -> Vec<&'static str> {
    let name = |bio: &Bio| match (bio.op, bio.lba) {
        (Op::Flush, _) => Some("flush"),
        (Op::Write, Lba(0)) => Some("copy 0"),
        (Op::Write, Lba(1)) => Some("copy 1"),
        (Op::Write, at) if at.0 >= u64::from(area.blocks().start.0) => Some("journal"),
        (Op::Write, _) if bio.flags.has(Flags::PREFLUSH | Flags::FUA) => Some("checkpoint"),
        _ => None,
    };
    seen.iter().filter_map(name).collect()
}

/// Both copies are marked durably, the second one first, before the first block of the journal; each block waits for what
/// precedes it and is durable when it ends. An unmount takes the mark off, the first copy first, once its checkpoint
/// is durable; without that rule it does so before.
#[test]
fn the_mark_brackets_the_journal() {
    for omit in [None, Some(OmittedRule::GcUnmark)] {
        let device = run(async move |rt| {
            let (device, seen, area) = made(&rt).await;
            let (fs, _) = F2fs::mount(&rt, device.erased(), options(Safe, omit)).await.expect("ok");
            let written = || to_area(&seen.borrow(), area).count();
            Load::new(fs.clone()).await.run(2, written).await;
            let before = seen.take();
            let marks = ["copy 1", "flush", "copy 0", "flush"];
            let all = order(&before, area);
            let first = all.iter().position(|step| step.starts_with("copy")).expect("a mark");
            assert_eq!(all[first..first + 4], marks);
            assert_eq!(all.iter().position(|step| *step == "journal"), Some(first + 4));
            assert_eq!(all.iter().filter(|step| step.starts_with("copy")).count(), 2);
            for bio in to_area(&before, area) {
                assert!(bio.flags.has(Flags::META | Flags::PREFLUSH | Flags::FUA), "{bio:?}");
            }
            fs.unmount().await.expect("an unmount");
            let after = order(&seen.take(), area);
            let marks = ["copy 0", "flush", "copy 1", "flush"];
            let off = after.iter().position(|step| step.starts_with("copy")).expect("no mark");
            assert_eq!(after[off..off + 4], marks);
            let last = after.iter().rposition(|step| *step == "checkpoint").expect("one");
            assert_eq!(last < off, omit.is_none(), "{after:?}");
            let content = device.with(|watched| sectors(&watched.device));
            loaded(&rt, SECTORS, &content).await
        });
        assert_sound(&device);
    }
}

/// Places that nodes of the chain of fsyncs have, and places that these name.
async fn chain_of(image: &F2fsImage) -> (BTreeSet<BlockAddr>, BTreeSet<BlockAddr>) {
    let log = image.checkpoint.log(SegmentType::WarmNode);
    let mut at = image.layout.block(log.segno, log.blkoff.into()).expect("a block");
    let version = image.checkpoint.checkpoint_ver | u64::from(image.checkpoint_crc) << 32;
    let (mut places, mut named) = (BTreeSet::new(), BTreeSet::new());
    while image.layout.is_main(at) && !places.contains(&at) {
        let bytes = image.reader().block(at.0.into()).await.expect("a block");
        let footer = NodeFooter::parse(&bytes);
        if footer.cp_ver != version {
            break;
        }
        places.insert(at);
        let addrs = match footer.is_inode() {
            true => InodeLayout::of(&bytes, image.inode_features()).addrs(),
            false => AddrSlots::DIRECT,
        };
        named.extend(addrs.iter(&bytes).filter(|address| address.is_block()));
        at = BlockAddr(footer.next_blkaddr);
    }
    (places, named)
}

/// Which entries of the journal that counts have an old place in the chain, and which have one that the chain names.
fn entries_in_chain(format: GcJournalFormat, omit: Option<OmittedRule>) -> [usize; 2] {
    run(async move |rt| {
        let (device, seen, area) = made(&rt).await;
        let mounted = F2fs::mount(&rt, device.erased(), options(format, omit)).await;
        let mut load = Load::new(mounted.expect("a mount").0).await;
        let mut found = [0, 0];
        for round in 1..=ROUNDS {
            load.run(2 * round, || to_area(&seen.borrow(), area).count()).await;
            let content = device.with(|watched| sectors(&watched.device));
            let copy = loaded(&rt, SECTORS, &content).await;
            let image = F2fsImage::open(&copy.erased()).await.expect("a volume");
            let (places, named) = chain_of(&image).await;
            for block in image.gc_journal_blocks().await.expect("blocks") {
                let old: Vec<BlockAddr> = match block {
                    GcJournalBlock::Safe(block) => block.entries.iter().map(|e| e.old).collect(),
                    GcJournalBlock::Paper(block) => block.entries.iter().map(|e| e.old).collect(),
                };
                found[0] += old.iter().filter(|old| places.contains(old)).count();
                found[1] += old.iter().filter(|old| named.contains(old)).count();
            }
        }
        found
    })
}

/// No entry stands for the place of a node of the chain, nor, in the paper's format, for a place that such a node names;
/// without the rule some do.
#[test]
fn the_journal_leaves_the_chain_alone() {
    assert_eq!(entries_in_chain(Safe, None)[0], 0);
    assert_eq!(entries_in_chain(Paper, None), [0, 0]);
    assert!(entries_in_chain(Paper, Some(OmittedRule::GcFsynced))[1] > 0);
}
