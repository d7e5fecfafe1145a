//! NAT bits: written by an unmount, believed by the next mount alone, and not after a cut.

use crate::common::volume::{Device, after_cut, assert_sound, made, mounted, run};
use nandscape_fs::contract::{Caller, Data, FileSystem, Ino, Io};
use nandscape_fs::f2fs::check::check;
use nandscape_fs::f2fs::format::{
    CP_NAT_BITS, CP_UMOUNT, Checkpoint, Features, NAT_ENTRIES_PER_BLOCK, NatBits,
};
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_fs::f2fs::{F2fs, MountOptions, OmittedRule};

const ME: Caller = Caller { thread: 0, core: 0, uid: 0, gid: 0 };
/// More files than the numbers of a NAT block.
const FILES: usize = NAT_ENTRIES_PER_BLOCK * 3;

/// What a volume's newest pack says.
struct Found {
    checkpoint: Checkpoint,
    journal: usize,
    /// Bits that hold for it.
    bits: Option<NatBits>,
}

async fn found(device: &Device) -> Found {
    let device = device.erased();
    let image = F2fsImage::open(&device).await.expect("a volume");
    let at = image.layout.nat_bits(image.pack, image.plan.blocks()).expect("room");
    let blocks = image.layout.nat_bits_blocks();
    let bytes = image.reader().blocks(at.0.into(), blocks).await.expect("blocks");
    let bits = NatBits::parse(&bytes, &image.layout, image.pack).expect("bits");
    let version = image.checkpoint.checkpoint_ver | u64::from(image.checkpoint_crc) << 32;
    let holds = image.checkpoint.has(CP_NAT_BITS) && bits.version == version;
    Found {
        journal: image.nat_journal.entries.len(),
        bits: holds.then_some(bits),
        checkpoint: image.checkpoint.clone(),
    }
}

async fn create(fs: &F2fs, name: &str) -> Ino {
    fs.create(ME, fs.root(), name.as_bytes(), 0o644).await.expect("a file").ino
}

async fn fill(fs: &F2fs, prefix: &str, files: usize) {
    for number in 0..files {
        create(fs, &format!("{prefix}{number}")).await;
    }
}

/// An unmount writes bits that say what the NAT holds, over any number of mounts; our fsck compares them with the NAT,
/// and f2fs-tools find them sound.
#[test]
fn an_unmount_writes_bits() {
    let device = run(async |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let options = MountOptions::default();
        for round in 0..3 {
            let fs = mounted(&rt, &device, &options).await;
            fill(&fs, &format!("r{round}-"), FILES / 2).await;
            if round == 2 {
                for number in 0..FILES / 2 {
                    fs.unlink(ME, fs.root(), format!("r1-{number}").as_bytes())
                        .await
                        .expect("gone");
                }
            }
            fs.unmount().await.expect("an unmount");
            let Found { checkpoint, journal, bits } = found(&device).await;
            assert!(checkpoint.has(CP_UMOUNT) && journal == 0);
            let bits = bits.expect("bits of this checkpoint");
            assert!(bits.is_full(0) && !bits.is_empty(0) && bits.is_empty(5));
            // Files of the second round have all numbers of this block.
            let fill = (bits.is_empty(2), bits.is_full(2));
            assert_eq!(fill, (round != 1, round == 1), "round {round}");
            let report = check(&device.erased()).await.expect("a check");
            assert!(report.is_clean(), "{:?}", report.findings);
        }
        device
    });
    assert_sound(&device);
}

/// Bits hold for an unmount: other checkpoints do not claim any, and what a cut left has none, nor what follows.
#[test]
fn a_cut_loses_bits() {
    let device = run(async |rt| {
        let device = made(&rt, 64, Features::default()).await;
        let fs = mounted(&rt, &device, &MountOptions::default()).await;
        fill(&fs, "a", 10).await;
        fs.syncfs(ME).await.expect("a checkpoint");
        let device = after_cut(&rt, &device, 1).await;
        assert!(!found(&device).await.checkpoint.has(CP_NAT_BITS));
        let fs = mounted(&rt, &device, &MountOptions::default()).await;
        fill(&fs, "b", 10).await;
        fs.unmount().await.expect("an unmount");
        let Found { checkpoint, bits, .. } = found(&device).await;
        assert!(checkpoint.has(CP_UMOUNT) && !checkpoint.has(CP_NAT_BITS) && bits.is_none());
        device
    });
    assert_sound(&device);
}

/// A mount that believes the bits of another checkpoint takes numbers that are in use; one that compares versions does
/// not.
#[test]
fn stale_bits_are_not_believed() {
    for (omit, expected) in [(None, true), (Some(OmittedRule::StaleNatBits), false)] {
        let kept = run(async move |rt| {
            let device = made(&rt, 64, Features::default()).await;
            let options = MountOptions { nid_search_from: 2, omit, ..MountOptions::default() };
            let fs = mounted(&rt, &device, &options).await;
            let ino = create(&fs, "kept").await;
            let data = Data::Bytes(vec![3; 5_000]);
            fs.write_all(ME, ino, 0, data, Io::Buffered).await.expect("a write");
            // More than the journal of the NAT holds.
            fill(&fs, "c", 60).await;
            fs.syncfs(ME).await.expect("a checkpoint");
            // The pack of the volume's making is written again, without bits; those at its end are stale.
            fill(&fs, "a", 1).await;
            fs.syncfs(ME).await.expect("a checkpoint");
            let device = after_cut(&rt, &device, 1).await;
            let fs = mounted(&rt, &device, &options).await;
            fill(&fs, "b", 4).await;
            fs.syncfs(ME).await.expect("a checkpoint");
            let device = after_cut(&rt, &device, 1).await;
            let Ok((fs, _)) = F2fs::mount(&rt, device.erased(), options).await else {
                return false;
            };
            let Ok(found) = fs.lookup(ME, fs.root(), b"kept").await else { return false };
            let read = fs.read(ME, ino, 0, 6_000, Io::Buffered).await;
            found.ino == ino && read.is_ok_and(|data| data.to_bytes() == vec![3; 5_000])
        });
        assert_eq!(kept, expected, "{omit:?}");
    }
}
