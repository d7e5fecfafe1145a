//! pblk on virtual media: what it stores can be read, its invariants hold under load, and a clean
//! device survives a remount.

mod any;
mod buffers;
use crate::common;
mod cpu;
mod dead;
mod faults;
mod host;
mod link;
mod map;
mod streams;
mod widths;

use common::{Driver, GEOMETRY, config, holds};
use nandscape_block::{Bio, BlockDevice, Flags, Lba};
use nandscape_ftl::pblk::config::{
    CacheSize, Config, Limiter, MapConfig, MapKind, MapPolicy, Victim,
};
use nandscape_ftl::{EraseUnitState, Ftl, FtlError, FtlRun, Pblk};
use nandscape_media::{ChunkId, Geometry, Media, MediaConfig, UnitId};
use nandscape_rt::{Nanos, Stream};

/// Random overwrites, flushes and discards; returns what each sector must hold.
fn load(driver: &mut Driver, operations: u64, seed: u64) -> Vec<u64> {
    let sectors = driver.sectors();
    let mut expected = vec![0; sectors as usize];
    let mut rng = Stream::new(seed, "load");
    for tag in 1..=operations {
        let lba = rng.below(sectors);
        match rng.below(100) {
            0..3 => drop(driver.flush()),
            3..6 => {
                driver.run(Bio::discard(Lba(lba), 1));
                expected[lba as usize] = 0;
            }
            kind => {
                let flags = match kind {
                    6 => Flags::FUA,
                    7 => Flags::PREFLUSH | Flags::FUA,
                    _ => Flags::NONE,
                };
                driver.write(lba, tag, flags);
                expected[lba as usize] = tag;
            }
        }
        if tag.is_multiple_of(500) {
            driver.ftl.check_invariants().expect("invariants");
        }
    }
    expected
}

fn survives(timing: &str, config: Config) {
    let mut driver = Driver::new(timing, config.clone());
    let expected = load(&mut driver, 60_000, 7);
    driver.check(&expected);
    driver.ftl.check_invariants().expect("invariants");
    let stats = driver.report();
    assert!(stats.gc.victims > 20, "garbage was collected: {stats:?}");
    assert_eq!(stats.media_errors.mismatches, 0);
    driver.flush();
    let mut driver = driver.power_cut(config);
    driver.check(&expected);
    assert!(driver.ftl.erase_units().iter().any(|line| line.state == EraseUnitState::Free));
}

#[test]
fn a_load_survives_without_timing() {
    survives("none", config());
}

#[test]
fn a_load_survives_with_timing() {
    survives("nvmevirt-970pro", config());
}

#[test]
fn a_load_survives_with_every_victim_policy() {
    let policies =
        [Victim::Greedy, Victim::CostBenefit, Victim::Fifo, Victim::Random, Victim::DChoices(4)];
    for victim in policies {
        let limiter = Limiter::Reserve(2);
        survives(
            "qemu-ocssd",
            Config { op_percent: Some(25), victim, limiter, ..Config::default() },
        );
    }
}

/// Mounting again and again without writing costs at most the open line: old trim sectors on lines
/// that are free, but not yet erased, do not come back to life.
#[test]
fn mounting_many_times_keeps_lines_free() {
    let mut driver = Driver::new("none", config());
    let expected = load(&mut driver, 40_000, 3);
    driver.flush();
    let free = |driver: &Driver| {
        driver.ftl.erase_units().iter().filter(|line| line.state == EraseUnitState::Free).count()
    };
    let free_before = free(&driver);
    for _ in 0..8 {
        driver = driver.power_cut(config());
    }
    assert!(free(&driver) + 1 >= free_before, "{} of {free_before} free", free(&driver));
    driver.check(&expected);
    let expected = load(&mut driver, 20_000, 4);
    driver.flush();
    let rewritten = expected.iter().enumerate().filter(|(_, tag)| **tag != 0);
    for (lba, &tag) in rewritten.take(1_000) {
        assert_eq!(driver.read(lba as u64), holds(tag));
    }
}

/// What a fresh device refuses, a device that was formatted otherwise refuses in the same words; what one
/// takes, the other takes.
#[test]
fn a_mount_takes_what_a_fresh_device_takes() {
    let map = |bytes| {
        let config = MapConfig {
            block_bytes: 4_096,
            cache: CacheSize::Bytes(bytes),
            policy: MapPolicy::Lru,
            loads_max: 8,
            ..MapConfig::default()
        };
        MapKind::Cached(config)
    };
    let made = Config { op_percent: Some(40), ..Config::default() };
    let media = |bad: u32| {
        let bad_chunks = (0..bad).map(|chunk| ChunkId { unit: UnitId(chunk % 3), chunk }).collect();
        Media::new(MediaConfig { bad_chunks, ..MediaConfig::new(GEOMETRY) }).expect("a device")
    };
    let others = [
        Config { map: map(4_096), ..made.clone() },
        Config { map: map(0), ..made.clone() },
        Config { map: map(1 << 20), ..made.clone() },
        Config { limiter: Limiter::Reserve(0), ..made.clone() },
        Config { limiter: Limiter::Reserve(1), ..made.clone() },
        Config { limiter: Limiter::Reserve(30), ..made.clone() },
        Config { ring_sectors: Some(64), ..made.clone() },
        Config { ring_sectors: Some(1 << 10), ..made.clone() },
    ];
    let run = FtlRun::default();
    let mut refused = Vec::new();
    for (bad, other) in [0, 1, 7].into_iter().flat_map(|bad| others.iter().map(move |o| (bad, o))) {
        let fresh =
            Pblk::format(media(bad).into(), other.clone(), run).map(|pblk| *pblk.capacity());
        let formatted = Pblk::format(media(bad).into(), made.clone(), run).expect("fits");
        let mounted = Pblk::recover(formatted.power_off().into(), other.clone(), run, Nanos::ZERO);
        let mounted = mounted.map(|pblk| *pblk.capacity()).map_err(|(_, error)| error);
        assert_eq!(mounted, fresh, "{bad} bad chunks: {other:?}");
        refused.extend(fresh.err());
    }
    for key in ["ftl.map.cache", "ftl.limiter", "ftl.op_percent", "ftl.ring"] {
        let of_key =
            |error: &FtlError| matches!(error, FtlError::Config { key: of, .. } if *of == key);
        assert!(refused.iter().any(of_key), "{key}: {refused:?}");
    }
}

/// Where the tail that media refuse to read is no multiple of a write unit, a unit that power was cut in
/// is served as a whole from the first mount on: no part of it turns up at a later one.
#[test]
fn a_torn_unit_is_served_whole_whatever_the_tail() {
    let geometry = Geometry { sectors: 120, ws_opt: 12, mw_cunits: 5, ..GEOMETRY };
    let sectors = 60;
    for overwrites in 12..=sectors {
        let mut driver = Driver::on(geometry, "qemu-ocssd", config());
        driver.write_run(0, sectors, 1);
        driver.flush();
        driver.write_run(0, overwrites, 1_000);
        let ends = driver.ftl.next_event().expect("programs are under way");
        driver.now = ends.saturating_sub(Nanos(1));
        let mut driver = driver.power_cut(config());
        let seen: Vec<_> = (0..sectors).map(|lba| driver.read(lba)).collect();
        for mount in 0..3 {
            driver = driver.power_cut(config());
            let again: Vec<_> = (0..sectors).map(|lba| driver.read(lba)).collect();
            assert_eq!(again, seen, "{overwrites} overwrites, mount {mount}");
        }
    }
}
