//! ext4 against the reference model: seeded sequences of operations, in every data mode, with tags and
//! with bytes, on roomy and on nearly full volumes. After each the volume is unmounted, e2fsck finds
//! nothing, and a new mount shows the model's tree.

mod both_ways;
mod drive;
mod model;
mod oracle;
pub(crate) mod stand;

use crate::common::{Scratch, asked, e2fsprogs};
use drive::{Drive, Style, check_tree};
use nandscape_fs::cache::CacheConfig;
use nandscape_fs::contract::FileSystem;
use nandscape_fs::ext4::{DataMode, Ext4, MountOptions};
use nandscape_rt::Executor;

const MODES: [DataMode; 3] = [DataMode::Ordered, DataMode::Writeback, DataMode::Journal];

struct Case<'a> {
    seed: u64,
    mib: u64,
    data: DataMode,
    style: Style,
    operations: u64,
    features: &'a [&'a str],
    cache_pages: u64,
}

/// One sequence, from mke2fs to e2fsck.
fn sequence(case: &Case<'_>) {
    eprintln!("seed {}, {:?}", case.seed, case.data);
    let scratch = Scratch::new();
    let path = stand::image(&scratch, case.mib, case.features);
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let cache = CacheConfig { pages: case.cache_pages, ..CacheConfig::default() };
    let options = MountOptions { data: case.data, cache, seed: case.seed, ..Default::default() };
    let (seed, style, operations) = (case.seed, case.style, case.operations);
    let done = executor.block_on(async move {
        let device = stand::load(&handle, &path).await;
        let mounted = Ext4::mount(&handle, device.erased(), options.clone()).await;
        let mut drive = Drive::new(&handle, mounted.expect("a mount").0, seed, style).await;
        drive.run(operations).await;
        drive.close_all().await;
        check_tree(&drive.fs, &drive.model).await;
        drive.fs.unmount().await.expect("an unmount");
        let image = stand::check(&device, &scratch);
        oracle::check_image(&image, &scratch, &drive.model);
        let (again, _) =
            Ext4::mount(&handle, device.erased(), options).await.expect("another mount");
        check_tree(&again, &drive.model).await;
    });
    done.unwrap_or_else(|deadlock| panic!("seed {seed}: {deadlock}"));
}

/// Seeds from `first` on: `few` of them, or as many as `NANDSCAPE_FS_SEQUENCES` says.
fn seeds(first: u64, few: u64) -> std::ops::Range<u64> {
    first..first + asked("NANDSCAPE_FS_SEQUENCES", few)
}

/// What a sequence does depends on its seed.
fn case(seed: u64) -> Case<'static> {
    Case {
        seed,
        mib: 64,
        data: MODES[seed as usize % 3],
        style: Style {
            tags: seed.is_multiple_of(2),
            direct: 0.2,
            write_max: 100_000,
            coarse_times: false,
        },
        operations: 400,
        features: &[],
        cache_pages: if seed.is_multiple_of(4) { 64 } else { 4096 },
    }
}

/// Any sequence leaves what the model says, sound for e2fsck.
#[test]
fn sequences_leave_what_the_model_says() {
    if e2fsprogs() {
        seeds(0, 12).for_each(|seed| sequence(&case(seed)));
    }
}

/// Also where the volume runs full again and again.
#[test]
fn full_volumes_stay_sound() {
    if e2fsprogs() {
        for seed in seeds(10_000, 6) {
            let style = Style { write_max: 400_000, ..case(seed).style };
            sequence(&Case { mib: 12, style, ..case(seed) });
        }
    }
}

/// With features on and off.
#[test]
fn features_make_no_difference() {
    if e2fsprogs() {
        let lists: [&[&str]; 7] = [
            &["-O", "orphan_file,metadata_csum_seed"],
            &["-O", "^64bit"],
            &["-O", "^metadata_csum"],
            &["-O", "^metadata_csum,uninit_bg"],
            &["-O", "^flex_bg"],
            &["-O", "^dir_index"],
            &["-I", "128"],
        ];
        for (seed, features) in (200..).zip(lists) {
            let coarse_times = features[0] == "-I";
            let style = Style { coarse_times, ..case(seed).style };
            sequence(&Case { features, style, ..case(seed) });
        }
    }
}
