//! Making, checking and showing volumes in append-only address spaces, and what stock tools say of them.

use super::devices::{METADATA, SEGMENT, checked, coupled, device, interval, made, options};
use super::life::ME;
use crate::common::image::save_content;
use crate::common::slow::with;
use crate::common::{Scratch, f2fs_tools, run, text};
use nandscape_block::{Bio, BlockDevice, DeviceCaps, Lba, Payload, SectorData, Tag};
use nandscape_fs::contract::{FileSystem, FsError};
use nandscape_fs::f2fs::dump::{DumpTarget, dump};
use nandscape_fs::f2fs::format::{AppendMode, BLOCK_BYTES, SIT_ENTRY_BYTES, SegNo};
use nandscape_fs::f2fs::mkfs::{MkfsOptions, plan};
use nandscape_fs::f2fs::raw::F2fsImage;
use nandscape_fs::f2fs::{AppendGeometry, F2fs, MountOptions};
use nandscape_fs::{FsConfig, FsKind, f2fs};
use std::collections::BTreeMap;

/// A new volume of either mode is sound, and the device holds what it has.
#[test]
fn new_volumes_are_sound() {
    for (caps, mode) in [(interval(), AppendMode::Interval), (coupled(), AppendMode::Coupled)] {
        let geometry = AppendGeometry::of(&caps).expect("regions for F2FS").expect("some");
        assert_eq!(geometry.mode, mode);
        let plan = plan(&options(&caps, 1), caps.sectors).expect("a plan");
        let space = plan.layout.space().copied().expect("an address space");
        assert_eq!(space.regions(), geometry.regions(), "all that the device has");
        assert!(plan.user_blocks() < u64::from(geometry.capacity));
        assert!(plan.layout.main_start().0 <= geometry.metadata, "metadata where it may be");
        drop(super::devices::assert_exact(made(device(caps, 0), 1)));
    }
}

/// Of a device with more addresses than media as much of each region is used as rho says; more than it has is refused under
/// that key.
#[test]
fn rho_limits_the_regions() {
    let sections = |rho| {
        let options = MkfsOptions { rho: Some(rho), ..options(&coupled(), 1) };
        let plan = plan(&options, coupled().sectors).map_err(|error| error.to_string())?;
        let space = plan.layout.space().copied().expect("an address space");
        Ok::<_, String>(space.regions().iter().map(|one| one.blocks / 512).collect::<Vec<_>>())
    };
    assert_eq!(sections(1.25), Ok(vec![50; 4]));
    assert_eq!(sections(1.6), Ok(vec![64; 4]));
    for rho in [1.7, 0.5, f64::NAN, f64::INFINITY] {
        assert!(sections(rho).is_err(), "{rho}");
    }
    let key = |caps: &DeviceCaps, rho| {
        let format = MkfsOptions { rho: Some(rho), ..MkfsOptions::new(1) };
        let config = f2fs::Config { format: Some(format), mount: MountOptions::default() };
        FsConfig::F2fs(config).check(caps).map_err(|error| error.key)
    };
    assert_eq!(key(&coupled(), 1.5), Ok(()));
    for caps in [coupled(), interval(), DeviceCaps::conventional(1 << 16)] {
        assert_eq!(key(&caps, 2.0), Err("rho"));
    }
}

/// A device that moves blocks moves none before nearly all of its sections are written: with fewer slots a volume would be
/// full long before its media are. Where the metadata has no room for so many it is refused.
#[test]
fn each_section_has_a_slot_where_blocks_are_moved() {
    const SECTIONS: u64 = 4_000;
    let slots = |metadata: u64| {
        let mut caps = coupled();
        caps.regions[0].range = 0..metadata * SEGMENT;
        for (index, region) in caps.regions.iter_mut().skip(1).enumerate() {
            let start = (metadata + index as u64 * SECTIONS) * SEGMENT;
            region.range = start..start + SECTIONS * SEGMENT;
        }
        caps.sectors = caps.regions[4].range.end;
        caps.live_sectors_max = (metadata + SECTIONS * 10 / 16) * SEGMENT;
        let plan = plan(&options(&caps, 1), caps.sectors).map_err(|error| error.to_string());
        plan.map(|plan| u64::from(plan.layout.main_segments()))
    };
    let found: Vec<_> = (16..48).map(slots).collect();
    let made: Vec<_> = found.iter().flatten().copied().collect();
    assert!(made.iter().all(|slots| *slots >= SECTIONS), "{made:?}");
    assert_eq!(made.last(), Some(&(2 * SECTIONS)), "as many as are wanted, if there is room");
    let refused: Vec<_> = found.iter().filter_map(|slots| slots.as_ref().err()).collect();
    assert!(refused.iter().all(|why| why.contains("the metadata takes at least")), "{refused:?}");
    assert!(!refused.is_empty() && made[0] < 2 * SECTIONS, "{found:?}");
}

/// The last addresses, which stand for no block, are no sections.
#[test]
fn the_end_of_the_addresses_is_not_used() {
    let mut caps = coupled();
    let region = &mut caps.regions[4].range;
    (region.start, region.end) = ((1 << 32) - 64 * SEGMENT, 1 << 32);
    caps.sectors = 1 << 32;
    let plan = plan(&options(&caps, 1), caps.sectors).expect("a plan");
    let space = plan.layout.space().copied().expect("an address space");
    let last = space.regions()[3];
    assert_eq!(u64::from(last.start) + u64::from(last.blocks), (1 << 32) - SEGMENT);
}

/// Regions that no volume fits are refused with the reason.
#[test]
fn other_regions_are_refused() {
    let refused = |caps: &DeviceCaps| AppendGeometry::of(caps).is_err();
    let mut few = interval();
    few.regions = few.regions[..6].into();
    let mut coarse = interval();
    coarse.discard_sectors = 8;
    let mut narrow = coupled();
    narrow.superblocks.iter_mut().for_each(|superblocks| superblocks.open_max = 2);
    let without = DeviceCaps { superblocks: None, ..coupled() };
    assert!([few, coarse, narrow, without].iter().all(refused));
    assert_eq!(AppendGeometry::of(&DeviceCaps::conventional(1 << 16)), Ok(None));
    let config = |allocation| {
        let mut config = FsKind::F2fs.config();
        config.choose("allocation", allocation).expect("a choice");
        config.check(&interval()).map_err(|error| error.key)
    };
    assert_eq!((config("lfs"), config("adaptive")), (Ok(()), Err("allocation")));
}

/// A slot whose address is another section's, or no section's, is found; a mount refuses it.
#[test]
fn wrong_slots_are_found() {
    for (address, expected) in [
        (None, "has another slot"),
        (Some(7 * SEGMENT), "outside of the address space"),
        (Some(METADATA * SEGMENT + 512 + 3), "another place of its section"),
    ] {
        let fresh = made(device(coupled(), 0), 1);
        let (damaged, said) = with(fresh, async move |rt, device| {
            let fs =
                F2fs::mount(&rt, device.clone(), MountOptions::default()).await.expect("a mount").0;
            // Enough to fill the journal of the SIT, so that entries go to its blocks.
            for number in 0..40 {
                let name = format!("{number}");
                let dir =
                    fs.mkdir(ME, fs.root(), name.as_bytes(), 0o755).await.expect("a directory");
                fs.create(ME, dir.ino, b"file", 0o644).await.expect("a file");
            }
            fs.unmount().await.expect("an unmount");
            let image = F2fsImage::open(&device).await.expect("a volume");
            let (mut live, mut in_table) = (Vec::new(), Vec::new());
            for segment in 0..image.layout.main_segments() {
                let entry = image.sit_entry(SegNo(segment)).await.expect("an entry");
                if entry.valid_blocks > 0 {
                    live.push((segment, entry.address().0));
                    let journal = &image.sit_journal.entries;
                    in_table.push(journal.iter().all(|(one, _)| one.0 != segment));
                }
            }
            let chosen = in_table.iter().position(|in_table| *in_table).expect("one in the table");
            let segment = live[chosen].0;
            let other = live[(chosen + 1) % live.len()].1;
            let address = address.unwrap_or(other.into());
            let (block, index) = image.layout.sit_place(SegNo(segment));
            let at = u64::from(image.sit_addr(block).expect("a block").0);
            let mut bytes = image.reader().block(at).await.expect("a block");
            let place = index * SIT_ENTRY_BYTES + 0x42;
            bytes[place..place + 8].copy_from_slice(&address.to_le_bytes());
            let payload = Payload::from_bytes(&bytes[..]).expect("a block");
            device.submit(Bio::write(Lba(at), 1, payload)).await.expect("a write");
            let mounted = F2fs::mount(&rt, device, MountOptions::default()).await;
            mounted.err()
        });
        assert!(matches!(said, Some(FsError::Corrupt { .. })), "{said:?}");
        let (_, report, _) = checked(damaged);
        let found = report.findings.iter().any(|finding| finding.to_string().contains(expected));
        assert!(found, "{expected}: {:?}", report.findings);
    }
}

/// Stock tools refuse a volume in either mode; our dump shows how it is used.
#[test]
fn stock_tools_refuse_slots() {
    for (caps, words) in [(interval(), "iplfs, media of"), (coupled(), "d2fs, media of")] {
        let fresh = made(device(caps, 0), 1);
        let sectors = METADATA * SEGMENT;
        let all = (0..sectors).map(|at| (at, fresh.fake.current(Lba(at))));
        let content: BTreeMap<u64, SectorData> =
            all.filter(|(_, content)| *content != SectorData::Tag(Tag::ZERO)).collect();
        let bytes = fresh.caps().sectors * BLOCK_BYTES as u64;
        let (_, shown) = with(fresh, async |_, device| dump(&device, DumpTarget::Superblock).await);
        assert!(shown.expect("a superblock").text.contains(words));
        if f2fs_tools() {
            let scratch = Scratch::new();
            let image = scratch.image("volume", bytes);
            save_content(&content, &image);
            let said = run("fsck.f2fs", &["--dry-run", text(&image)]);
            assert_ne!(said.status.code(), Some(0), "fsck.f2fs takes it");
        }
    }
}

/// A volume of another mode, or with a main area, is refused by a mount.
#[test]
fn mounts_need_the_same_regions() {
    let fresh = made(device(interval(), 0), 1);
    let (interval_device, _) = with(fresh, async |_, _| ());
    let all = (0..METADATA * SEGMENT).map(|at| (at, interval_device.fake.current(Lba(at))));
    let content: Vec<_> = all.filter(|(_, one)| *one != SectorData::Tag(Tag::ZERO)).collect();
    let (_, said) = with(device(coupled(), 0), async move |rt, device| {
        for (at, sector) in content {
            let payload = Payload::collect(vec![sector]);
            device.write(Lba(at), 1, payload).await.expect("a write");
        }
        F2fs::mount(&rt, device, MountOptions::default()).await.err()
    });
    assert!(matches!(said, Some(FsError::Incompatible(_) | FsError::Corrupt { .. })), "{said:?}");
}
