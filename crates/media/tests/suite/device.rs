//! The device's life: bad chunks, failures, wear, limits, memory, unreadable sectors.

use crate::common;

use common::{SMALL, append, append_data, chunk, device, info, ppa, read};
use nandscape_block::{SectorData, Tag};
use nandscape_media::{
    ChunkState, Delays, DeviceTiming, Fault, FaultInjector, Faults, Geometry, KEY_EMPTY, Kind,
    Media, MediaConfig, MediaError, NandTiming, OpenChannel, PayloadMode, RuleError, Status,
    Tracer, UnitId, Wear, WriteCmd,
};
use nandscape_rt::Nanos;

const T0: Nanos = Nanos::ZERO;

/// A failed program closes its chunk where it was; what was there before stays readable; the next
/// reset fails after its time and takes the chunk offline.
#[test]
fn failed_program() {
    let mut media = device(SMALL, "qemu-ocssd");
    append(&mut media, T0, chunk(1, 2), 8, 0).unwrap();
    media.arm(Fault::Program);
    let outcome = append(&mut media, T0, chunk(1, 2), 8, 8).unwrap();
    assert_eq!(outcome.status, Status::ProgramFailed);
    assert_eq!(media.chunk(chunk(1, 2)), info(ChunkState::Closed, 8, 0));
    let first = ppa(&media, chunk(1, 2), 0);
    assert_eq!(read(&mut media, T0, first, 8).unwrap().status, Status::Ok);
    assert!(append(&mut media, T0, chunk(1, 2), 8, 8).is_err());
    assert_eq!(append(&mut media, T0, chunk(1, 3), 8, 8).unwrap().status, Status::Ok);
    let now = Nanos::from_secs(1);
    let outcome = media.reset(now, now, chunk(1, 2)).unwrap();
    assert_eq!((outcome.status, outcome.at - now), (Status::EraseFailed, Nanos::from_ms(3)));
    assert_eq!(media.chunk(chunk(1, 2)).state, ChunkState::Offline);
    assert!(media.reset(now, now, chunk(1, 2)).is_err());
}

/// An armed erase fault strikes one reset; a worn chunk fails every reset past its endurance.
#[test]
fn failed_erase_and_endurance() {
    let config = MediaConfig { endurance_erases: Some(2), ..MediaConfig::new(SMALL) };
    let mut media = Media::new(config).unwrap();
    let cycle = |media: &mut Media, unit| {
        append(media, T0, chunk(unit, 0), 8, 0).unwrap();
        media.reset(T0, T0, chunk(unit, 0)).unwrap().status
    };
    media.arm(Fault::Erase);
    assert_eq!(cycle(&mut media, 0), Status::EraseFailed);
    assert_eq!(cycle(&mut media, 1), Status::Ok);
    assert_eq!(cycle(&mut media, 1), Status::Ok);
    assert_eq!(media.wear().erases, 2);
    assert_eq!(cycle(&mut media, 1), Status::EraseFailed);
    let wear = media.wear();
    assert_eq!((wear.offline, wear.chunks, wear.erases_max), (2, 14, 0));
}

/// Factory bad chunks are offline from the start and refuse everything.
#[test]
fn factory_bad_chunks() {
    let config = MediaConfig { bad_chunks: vec![chunk(3, 1)], ..MediaConfig::new(SMALL) };
    let mut media = Media::new(config).unwrap();
    let offline: Vec<_> =
        media.report().filter(|(_, row)| row.state == ChunkState::Offline).collect();
    assert_eq!(offline, [(chunk(3, 1), info(ChunkState::Offline, 0, 0))]);
    let error = append(&mut media, T0, chunk(3, 1), 8, 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "write at unit 3 chunk 1 sector 0, 8 sectors: the chunk is offline"
    );
}

/// Limits on open chunks count open chunks only, a unit's and the device's apart.
#[test]
fn open_chunk_limits() {
    let geometry = Geometry { maxoc: 3, maxocpu: 2, ..SMALL };
    let mut media = device(geometry, "none");
    append(&mut media, T0, chunk(0, 0), 48, 0).unwrap();
    append(&mut media, T0, chunk(0, 1), 8, 0).unwrap();
    append(&mut media, T0, chunk(0, 2), 8, 0).unwrap();
    assert!(append(&mut media, T0, chunk(0, 3), 8, 0).unwrap_err().rule.contains("maxocpu"));
    append(&mut media, T0, chunk(1, 0), 8, 0).unwrap();
    assert!(append(&mut media, T0, chunk(2, 0), 8, 0).unwrap_err().rule.contains("maxoc)"));
    media.reset(T0, T0, chunk(0, 1)).unwrap();
    append(&mut media, T0, chunk(2, 0), 8, 0).unwrap();
}

/// Unreadable sectors make reads that touch them uncorrectable, and heal when the chunk is erased.
#[test]
fn unreadable_sectors() {
    let mut media = device(SMALL, "nvmevirt-970pro");
    append(&mut media, T0, chunk(0, 0), 48, 0).unwrap();
    let first = ppa(&media, chunk(0, 0), 0);
    media.mark_unreadable(first.plus(9));
    assert_eq!(read(&mut media, T0, first, 9).unwrap().status, Status::Ok);
    assert_eq!(read(&mut media, T0, first, 10).unwrap().status, Status::Uncorrectable);
    assert!(media.readable(first.plus(8)) && !media.readable(first.plus(9)));
    media.reset(T0, T0, chunk(0, 0)).unwrap();
    append(&mut media, T0, chunk(0, 0), 48, 48).unwrap();
    assert_eq!(read(&mut media, T0, first, 48).unwrap().status, Status::Ok);
}

/// A 1 TiB device can be made at once and counts next to no memory until it is written.
#[test]
fn a_large_device_costs_nothing_until_written() {
    let geometry = Geometry { groups: 8, units: 8, chunks: 1024, sectors: 4096, ..SMALL };
    assert_eq!(geometry.total_sectors(), 1 << 28);
    let mut media = device(geometry, "none");
    let empty = media.memory_bytes();
    assert!(empty < 2 << 20, "{empty}");
    append(&mut media, T0, chunk(63, 1023), 8, 0).unwrap();
    assert_eq!(media.memory_bytes(), empty + 4096 * 4 + 1024 * 8 + 4096 * 8);
}

/// Shapes and lists from outside that cannot be are refused with their key.
#[test]
fn impossible_configurations() {
    let refuse = |config| Media::new(config).unwrap_err();
    let huge = Geometry { groups: 256, units: 256, chunks: 65_536, sectors: 4096, ..SMALL };
    let too_large = refuse(MediaConfig::new(huge)).to_string();
    assert!(
        too_large.starts_with("geometry: chunks = 65536: must keep the device within 16 TiB"),
        "{too_large}"
    );
    let bad = MediaConfig { bad_chunks: vec![chunk(0, 4)], ..MediaConfig::new(SMALL) };
    assert!(refuse(bad).to_string().starts_with("bad_chunks: unit 0 chunk 4"));
    let slow = MediaConfig { slow_units: vec![(UnitId(4), 200)], ..MediaConfig::new(SMALL) };
    assert!(refuse(slow).to_string().starts_with("slow_units: unit 4"));
    let capped = MediaConfig { memory_cap_bytes: Some(10), ..MediaConfig::new(SMALL) };
    assert!(matches!(refuse(capped), MediaError::Memory { cap_bytes: 10, .. }));
    let odd = Geometry { ws_min: 0, ..SMALL };
    assert!(matches!(refuse(MediaConfig::new(odd)), MediaError::Geometry(_)));
}

/// The memory cap refuses the write that would exceed it, with the command, and nothing else.
#[test]
fn memory_cap_is_an_error_with_the_command() {
    let empty = device(SMALL, "none").memory_bytes();
    let cap = empty + 48 * 4 + 12 * 8 + 48 * 8;
    let config = MediaConfig { memory_cap_bytes: Some(cap), ..MediaConfig::new(SMALL) };
    let mut media = Media::new(config).unwrap();
    append(&mut media, T0, chunk(0, 0), 8, 0).unwrap();
    assert_eq!(media.memory_bytes(), cap);
    let error = append(&mut media, T0, chunk(2, 1), 8, 8).unwrap_err();
    assert_eq!((error.rule, error.unit, error.chunk), (RuleError::MEMORY_CAP, 2, 1));
    assert_eq!(media.chunk(chunk(2, 1)), info(ChunkState::Free, 0, 0));
    append(&mut media, T0, chunk(0, 0), 8, 8).unwrap();
}

/// Preconditioning without timing, then measuring with it, on a device at rest.
#[test]
fn timing_can_change() {
    let mut media = device(SMALL, "qemu-ocssd");
    append(&mut media, T0, chunk(0, 0), 8, 0).unwrap();
    media.set_timing(NandTiming::none());
    assert_eq!(append(&mut media, T0, chunk(0, 0), 8, 8).unwrap().at, T0);
    media.set_timing(DeviceTiming::preset("nvmevirt-970pro").unwrap().nand);
    assert_eq!(append(&mut media, T0, chunk(0, 0), 8, 16).unwrap().at, Nanos(225_960));
}

/// Seeded and scripted faults strike exactly as set, each kind from its own stream.
#[test]
fn injected_faults() {
    let strikes = |faults: Faults| {
        let mut media = FaultInjector::new(device(SMALL, "none"), faults, 7);
        let mut failed = Vec::new();
        for c in 0..16u32 {
            let at = chunk(c % 4, c / 4);
            let program = append(&mut media, T0, at, 8, 0).unwrap().status;
            let erase = media.reset(T0, T0, at).unwrap().status;
            failed.push((program != Status::Ok, erase != Status::Ok));
        }
        failed
    };
    let scripted = Faults { erases: [3, 5].into(), programs: [0].into(), ..Faults::default() };
    let failed = strikes(scripted);
    let hit: Vec<usize> = (0..16).filter(|&i| failed[i].0 || failed[i].1).collect();
    assert_eq!(hit, [0, 3, 5]);
    assert_eq!(failed[0], (true, true), "a failed program fails its chunk's reset");
    let seeded = |erase_rate| {
        let faults = Faults { program_rate: 0.3, erase_rate, ..Faults::default() };
        strikes(faults).into_iter().map(|(program, _)| program).collect::<Vec<_>>()
    };
    assert_eq!(seeded(0.0), seeded(0.9), "one rate does not shift the other's draws");
    assert!((1..12).contains(&seeded(0.0).iter().filter(|&&f| f).count()));
}

/// Delays put completions of units out of order, and keep those of a unit in order; the same seed delays the
/// same commands, and without delays nothing changes.
#[test]
fn delays_reorder_units_and_no_unit() {
    let completions = |delays: Delays, preset| {
        let faults = Faults { delays, ..Faults::default() };
        let mut media = FaultInjector::new(device(SMALL, preset), faults, 3);
        let write = |n: u32| append(&mut media, T0, chunk(n % 4, n / 24), 8, 0).unwrap().at;
        (0..48).map(write).collect::<Vec<Nanos>>()
    };
    let delays = Delays { usual_max_ns: 1_000_000, stall_one_in: 8, stall_max_ns: 40_000_000 };
    for preset in ["qemu-ocssd", "none"] {
        let plain = completions(Delays::default(), preset);
        assert!(plain.is_sorted() || preset != "none", "{plain:?}");
        let delayed = completions(delays, preset);
        assert!(!delayed.is_sorted(), "{delayed:?}");
        let of_unit = |unit: usize| delayed.iter().skip(unit).step_by(4);
        assert!((0..4).all(|unit| of_unit(unit).is_sorted()), "{delayed:?}");
        let later = delayed.iter().zip(&plain).filter(|(delayed, plain)| delayed > plain).count();
        assert!(later > 40, "{later}");
        assert!(delayed.iter().any(|at| at.0 > 20_000_000), "a unit stalls");
        assert_eq!(delayed, completions(delays, preset));
    }
}

/// Seeded and scripted data writes leave exactly one sector that cannot be corrected, until it is
/// erased; other kinds of write are spared.
#[test]
fn injected_unreadable_sectors() {
    let unreadable = |faults: Faults| {
        let mut media = FaultInjector::new(device(SMALL, "none"), faults, 7);
        let smeta = [KEY_EMPTY; 8];
        let at = ppa(&media, chunk(3, 3), 0);
        media
            .write(
                T0,
                T0,
                WriteCmd {
                    at,
                    kind: Kind::Smeta,
                    seq: 0,
                    seq_deltas: &[],
                    aux: &[],
                    keys: &smeta,
                    data: &[],
                },
            )
            .unwrap();
        assert!((0..8).all(|i| media.readable(at.plus(i))));
        let struck = |c: u32| {
            let at = chunk(c % 4, c / 4);
            assert_eq!(append(&mut media, T0, at, 8, 0).unwrap().status, Status::Ok);
            append(&mut media, T0, at, 8, 8).unwrap();
            append(&mut media, T0, at, 8, 16).unwrap();
            let first = ppa(&media, at, 0);
            let lost = (0..24).filter(|&i| !media.readable(first.plus(i))).count();
            let expected = if (0..8).all(|i| media.readable(first.plus(i))) {
                Status::Ok
            } else {
                Status::Uncorrectable
            };
            assert_eq!(read(&mut media, T0, first, 8).unwrap().status, expected);
            media.reset(T0, T0, at).unwrap();
            append(&mut media, T0, at, 8, 0).unwrap();
            lost
        };
        (0..12).map(struck).collect::<Vec<_>>()
    };
    let scripted = Faults { unreadable: [0, 9, 10].into(), ..Faults::default() };
    let lost = unreadable(scripted);
    assert_eq!((lost[0], lost[2], lost.iter().sum::<usize>()), (1, 2, 3));
    let seeded = Faults { unreadable_rate: 0.2, ..Faults::default() };
    assert_eq!(unreadable(seeded.clone()), unreadable(seeded.clone()));
    assert!((2..20).contains(&unreadable(seeded).iter().sum::<usize>()));
    assert_eq!(unreadable(Faults::default()), [0; 12]);
}

/// What an FTL keeps for itself is struck at a rate of its own, padding never, and the injector knows which
/// sectors it struck.
#[test]
fn injected_unreadable_metadata() {
    let faults = Faults { unreadable_metadata_rate: 1.0, ..Faults::default() };
    let mut media = FaultInjector::new(device(SMALL, "none"), faults, 1);
    let kinds = [Kind::Data, Kind::Pad, Kind::Smeta, Kind::Emeta, Kind::Map];
    for (c, kind) in (0..).zip(kinds) {
        let at = ppa(&media, chunk(c % 4, c / 4), 0);
        let (seq, keys, data) = (0, &[KEY_EMPTY; 8][..], &[][..]);
        media
            .write(T0, T0, WriteCmd { at, kind, seq, seq_deltas: &[], aux: &[], keys, data })
            .unwrap();
        let lost: Vec<_> = (0..8).map(|i| at.plus(i)).filter(|&at| !media.readable(at)).collect();
        assert_eq!(lost.len(), usize::from(c >= 2), "{kind:?}");
        assert!(lost.iter().all(|at| media.injected().contains(at)));
    }
    assert_eq!(media.injected().len(), 3);
}

/// From the cut on everything is refused and nothing is done, until power is back.
#[test]
fn injected_power_cut() {
    let cut_at = Some(Nanos(100));
    let faults = Faults { cut_at, cut_after_commands: Some(2), ..Faults::default() };
    let mut media = FaultInjector::new(device(SMALL, "none"), faults, 1);
    append(&mut media, Nanos(99), chunk(0, 0), 8, 0).unwrap();
    assert!(append(&mut media, Nanos(100), chunk(0, 0), 8, 8).unwrap_err().is_power_off());
    let first = ppa(&media, chunk(0, 0), 0);
    assert!(read(&mut media, Nanos(100), first, 8).unwrap_err().is_power_off());
    assert!(media.reset(Nanos(100), Nanos(100), chunk(0, 0)).unwrap_err().is_power_off());
    media.faults_mut().cut_at = None;
    media.reset(Nanos(200), Nanos(200), chunk(0, 0)).unwrap();
    assert!(append(&mut media, Nanos(200), chunk(0, 0), 8, 8).unwrap_err().is_power_off());
    media.restore_power();
    append(&mut media, Nanos(200), chunk(0, 0), 8, 8).unwrap();
    assert_eq!(media.commands(), 3);
}

/// The tracer counts what passed, what failed, and what was refused.
#[test]
fn tracer_counts() {
    let mut media = Tracer::new(device(SMALL, "qemu-ocssd"));
    append(&mut media, T0, chunk(0, 0), 24, 0).unwrap();
    media.arm(Fault::Program);
    append(&mut media, Nanos::from_ms(10), chunk(0, 0), 8, 24).unwrap();
    assert!(append(&mut media, T0, chunk(0, 0), 8, 24).is_err());
    let first = ppa(&media, chunk(0, 0), 0);
    read(&mut media, Nanos::from_ms(20), first, 4).unwrap();
    media.reset(Nanos::from_ms(30), Nanos::from_ms(30), chunk(0, 0)).unwrap();
    let counters = media.take_counters();
    let writes = counters.writes(Kind::Data);
    assert_eq!((writes.commands, writes.sectors, writes.failed, writes.refused), (2, 32, 1, 1));
    assert_eq!(writes.time, Nanos::from_us(4 * 1_900));
    assert_eq!((counters.reads.sectors, counters.reads.time), (4, Nanos::from_us(70)));
    assert_eq!((counters.resets.sectors, counters.resets.failed), (24, 1));
    assert_eq!(counters.sectors_written(), 32);
    assert_eq!(media.counters().sectors_written(), 0);
}

/// Content comes back after other chunks were written, erased and written again.
#[test]
fn content_survives_neighbours() {
    let tags = |from: u64| -> Vec<SectorData> {
        (from..from + 8).map(|bits| SectorData::Tag(Tag::new(bits))).collect()
    };
    for payload in [PayloadMode::Tags, PayloadMode::Bytes] {
        let config = MediaConfig { payload, ..MediaConfig::new(SMALL) };
        let mut media = Media::new(config).unwrap();
        append_data(&mut media, T0, chunk(0, 0), 8, 0, &tags(100)).unwrap();
        for round in 0..3 {
            append_data(&mut media, T0, chunk(1, 0), 8, 0, &tags(200 + round)).unwrap();
            media.reset(T0, T0, chunk(1, 0)).unwrap();
        }
        append_data(&mut media, T0, chunk(1, 0), 8, 0, &tags(300)).unwrap();
        for (at, from) in [(chunk(0, 0), 100), (chunk(1, 0), 300)] {
            for (i, expected) in tags(from).into_iter().enumerate() {
                assert_eq!(media.data(ppa(&media, at, i as u32)), expected);
            }
        }
    }
}

/// Least and most erases are of chunks in service, wherever these are among the others.
#[test]
fn wear_is_of_chunks_in_service() {
    let [free, offline] = [ChunkState::Free, ChunkState::Offline];
    let chunks = [(offline, 1), (free, 5), (free, 3), (free, 7), (offline, 9)];
    let with =
        |wear: Wear, (state, erases): &(ChunkState, u32)| wear.with(info(*state, 0, *erases));
    let wear = chunks.iter().fold(Wear::default(), with);
    let expected = Wear { chunks: 3, offline: 2, erases: 15, erases_min: 3, erases_max: 7 };
    assert_eq!(wear, expected);
}
