//! The timing model against arithmetic: every ceiling that follows from NVMeVirt's parameters, and
//! how resources are shared.

use crate::common;

use common::{append, chunk, linked, ppa, read};
use nandscape_media::{
    DataOut, DeviceTiming, Duplex, Geometry, HostLink, Layer, LinkScheduling, LinkTiming, LinkUse,
    Linked, Media, MediaConfig, MultiPlane, NandTiming, OpenChannel, ReadPriority, UnitId,
};
use nandscape_rt::Nanos;

const fn geometry(groups: u32, units: u32) -> Geometry {
    Geometry {
        groups,
        units,
        chunks: 4,
        sectors: 4608,
        ws_min: 8,
        ws_opt: 8,
        mw_cunits: 0,
        maxoc: 0,
        maxocpu: 0,
    }
}

fn preset(name: &str) -> DeviceTiming {
    DeviceTiming::preset(name).unwrap()
}

/// A device behind its link, both of a preset.
fn device(geometry: Geometry, name: &str) -> Linked<Media> {
    linked(preset(name), MediaConfig::new(geometry))
}

/// The 970 Pro with other NAND.
fn changed(change: impl FnOnce(&mut NandTiming)) -> DeviceTiming {
    let mut timing = preset("nvmevirt-970pro");
    change(&mut timing.nand);
    timing
}

/// Every unit writes `programs` times, each as soon as its last write completed, the unit that is
/// free first going first. Returns bytes per second.
fn program_rate(media: &mut impl OpenChannel, sectors: u32, programs: u32) -> f64 {
    let mut free = vec![Nanos::ZERO; media.geometry().total_units() as usize];
    let total = programs as usize * free.len();
    for seq in 0..total as u64 {
        let (unit, &now) = free.iter().enumerate().min_by_key(|(_, at)| **at).unwrap();
        free[unit] = append(media, now, chunk(unit as u32, 0), sectors, seq).unwrap().at;
    }
    let end = free.into_iter().max().unwrap();
    total as f64 * f64::from(sectors) * 4096.0 / end.as_secs_f64()
}

/// One 970 Pro unit programs 32 KiB every 40.96 + 185 us: 145 MB/s.
#[test]
fn one_unit_programs_at_145_mb_per_s() {
    let rate = program_rate(device(geometry(1, 1), "nvmevirt-970pro").inner_mut(), 8, 500);
    assert!((144.9e6..145.1e6).contains(&rate), "{rate}");
}

/// A host that has one write in flight per unit waits for the link as well: 4 + 8 x 0.46 + 9.753 us
/// before each program, so 135 MB/s.
#[test]
fn one_unit_programs_at_135_mb_per_s_over_the_link() {
    let rate = program_rate(&mut device(geometry(1, 1), "nvmevirt-970pro"), 8, 500);
    let each = 4_000 + 8 * 460 + 9_753 + 40_960 + 185_000;
    let expected = 8.0 * 4096.0 / (f64::from(each) * 1e-9);
    assert!((rate / expected - 1.0).abs() < 1e-6, "{rate}, expected {expected}");
    assert!((134.5e6..135e6).contains(&rate), "{rate}");
}

/// Programs of 40 units on 8 channels are limited by the link, and what is read takes its share of it,
/// unless it is full duplex.
#[test]
fn the_link_saturates_at_its_bandwidth() {
    let mut media = device(geometry(40, 1), "nvmevirt-970pro");
    let rate = program_rate(&mut media, 8, 200);
    assert!((3.3e9..=3.36e9).contains(&rate), "{rate}");
    let crossing = |duplex| {
        let mut link = HostLink::new(LinkTiming { duplex, ..preset("nvmevirt-970pro").link });
        let sent = link.data_in(Nanos::ZERO, Nanos::ZERO, 64);
        let arrived = link.data_out(8).piece(Nanos::ZERO, sent.start, 8);
        (arrived.end - sent.start).0
    };
    assert_eq!(crossing(Duplex::Shared), 78_020 + 9_753);
    assert_eq!(crossing(Duplex::Full), 9_753);
}

/// 16 units on 8 channels do not disturb each other: 2.3 GB/s.
#[test]
fn sixteen_units_program_at_2_3_gb_per_s() {
    let rate = program_rate(device(geometry(8, 2), "nvmevirt-970pro").inner_mut(), 8, 500);
    assert!((2.31e9..2.33e9).contains(&rate), "{rate}");
}

/// Ten units on one channel are limited by the channel: 800 MB/s, whichever way transfers are placed.
#[test]
fn a_channel_saturates_at_its_bandwidth() {
    for placing in [LinkScheduling::Backfill, LinkScheduling::Fifo] {
        let timing = changed(|nand| nand.placing = placing);
        let mut media = linked(timing, MediaConfig::new(geometry(1, 10)));
        let rate = program_rate(media.inner_mut(), 8, 500);
        assert!((795e6..=800e6).contains(&rate), "{placing:?} {rate}");
    }
}

/// A 4 KiB read of an idle 970 Pro takes firmware + tR + channel + PCIe: 57.6 us from an LSB page,
/// 69.6 us from an MSB page; pages alternate.
#[test]
fn single_sector_read() {
    let mut media = device(geometry(8, 2), "nvmevirt-970pro");
    let mut now = append(&mut media, Nanos::ZERO, chunk(3, 0), 32, 0).unwrap().at;
    for (sector, ns) in [(0, 57_600), (7, 57_600), (8, 69_600), (15, 69_600), (16, 57_600)] {
        let at = ppa(&media, chunk(3, 0), sector);
        let done = read(&mut media, now, at, 1).unwrap().at;
        assert_eq!(done - now, Nanos(ns), "sector {sector}");
        now = done;
    }
}

/// The 970 Pro accepts 4 KiB in 4 + 0.46 us and moves them in 1.22 us; the others likewise.
#[test]
fn buffered_write() {
    let latency = |name, sectors| {
        let mut link = HostLink::new(preset(name).link);
        link.data_in(Nanos::ZERO, Nanos::ZERO, sectors).end.0
    };
    assert_eq!(latency("nvmevirt-970pro", 1), 5_680);
    assert_eq!(latency("nvmevirt-970pro", 8), 4_000 + 8 * 460 + 9_753);
    assert_eq!(latency("nvmevirt-zn540", 1), 5_600 + 600 + 1_343);
    assert_eq!(latency("nvmevirt-zns-prototype", 1), 1_280);
    assert_eq!(latency("none", 64), 0);
}

/// One program of each other preset, by hand: transfer, added channel latency, tPROG a one-shot page.
#[test]
fn programs_of_the_other_presets() {
    let program = |preset, sectors| {
        let mut media = device(geometry(1, 1), preset);
        append(media.inner_mut(), Nanos::ZERO, chunk(0, 0), sectors, 0).unwrap().at.0
    };
    assert_eq!(program("nvmevirt-zn540", 24), 218_454 + 561_000);
    assert_eq!(program("nvmevirt-zns-prototype", 32), 163_840 + 32 * 413 + 1_913_640);
    assert_eq!(program("qemu-ocssd", 8), 1_900_000);
    assert_eq!(program("nvmevirt-970pro", 64), 327_680 + 8 * 185_000);
    assert_eq!(program("none", 64), 0);
}

/// A read over two flash pages: each is sensed and moved in pieces of 16 KiB, and a piece crosses
/// PCIe while the next one is on the channel.
#[test]
fn read_of_two_pages_overlaps_pcie() {
    let mut media = device(geometry(1, 1), "nvmevirt-970pro");
    let now = append(&mut media, Nanos::ZERO, chunk(0, 0), 16, 0).unwrap().at;
    let first = ppa(&media, chunk(0, 0), 0);
    let done = read(&mut media, now, first, 16).unwrap().at;
    let on_unit = 30_490 + (30_013 + 40_960) + (42_013 + 40_960);
    assert_eq!((done - now).0, on_unit + 4_877, "the last piece of 16 KiB crosses PCIe alone");
}

/// Units serve first come, first served: a read behind an erase waits for it.
#[test]
fn a_read_waits_for_the_erase_before_it() {
    let mut media = device(geometry(1, 1), "qemu-ocssd");
    for c in [0, 1] {
        append(&mut media, Nanos::ZERO, chunk(0, c), 8, 0).unwrap();
    }
    let now = Nanos::from_ms(100);
    assert_eq!(media.reset(now, now, chunk(0, 0)).unwrap().at, now + Nanos::from_ms(3));
    let first = ppa(&media, chunk(0, 1), 0);
    let done = read(&mut media, now, first, 1).unwrap().at;
    assert_eq!(done, now + Nanos::from_ms(3) + Nanos::from_us(70));
}

/// A command that waits for its unit does not block the channel for others, unless transfers are
/// placed first in, first out.
#[test]
fn waiting_for_a_unit_does_not_block_the_channel() {
    let finish = |placing| {
        let timing = changed(|nand| nand.placing = placing);
        let mut media = linked(timing, MediaConfig::new(geometry(1, 2)));
        for seq in [0, 8] {
            append(media.inner_mut(), Nanos::ZERO, chunk(0, 0), 8, seq).unwrap();
        }
        append(media.inner_mut(), Nanos::ZERO, chunk(1, 0), 8, 16).unwrap().at.0
    };
    assert_eq!(finish(LinkScheduling::Backfill), 2 * 40_960 + 185_000);
    assert_eq!(finish(LinkScheduling::Fifo), 225_960 + 2 * 40_960 + 185_000);
}

/// A slow unit's cells take longer; its channel does not.
#[test]
fn slow_unit() {
    let slow_units = vec![(UnitId(1), 250)];
    let config = MediaConfig { slow_units, ..MediaConfig::new(geometry(2, 1)) };
    let mut media = linked(preset("nvmevirt-970pro"), config);
    let done = |media: &mut Linked<Media>, unit| {
        append(media.inner_mut(), Nanos::ZERO, chunk(unit, 0), 8, 0).unwrap().at.0
    };
    assert_eq!(done(&mut media, 0), 40_960 + 185_000);
    assert_eq!(done(&mut media, 1), 40_960 + 462_500);
}

/// So does its erase: 3 ms at 250 % are 7.5 ms.
#[test]
fn a_slow_unit_erases_slowly() {
    let slow_units = vec![(UnitId(1), 250)];
    let config = MediaConfig { slow_units, ..MediaConfig::new(geometry(2, 1)) };
    let mut media = linked(preset("qemu-ocssd"), config);
    let now = Nanos::from_secs(1);
    for (unit, expected) in [(0, 3_000), (1, 7_500)] {
        append(media.inner_mut(), Nanos::ZERO, chunk(unit, 0), 8, 0).unwrap();
        let done = media.inner_mut().reset(now, now, chunk(unit, 0)).unwrap().at;
        assert_eq!(done, now + Nanos::from_us(expected));
    }
}

/// A program takes tPROG for each one-shot page that it begins: 24 sectors on a ZN540, so 32 take two, and 8 one. What is counted
/// is what was programmed, not pages, and a unit is not busy between two commands.
#[test]
fn a_page_that_is_begun_takes_its_time() {
    let zn540 = preset("nvmevirt-zn540").nand;
    let mut media =
        Media::new(MediaConfig { timing: zn540, ..MediaConfig::new(geometry(1, 1)) }).unwrap();
    // 131,072 and 32,768 bytes at 450 MB/s, rounded up.
    let (long, short) = (291_272 + 2 * 561_000, 72_818 + 561_000);
    assert_eq!(append(&mut media, Nanos::ZERO, chunk(0, 0), 32, 0).unwrap().at, Nanos(long));
    let later = Nanos::from_secs(1);
    let done = append(&mut media, later, chunk(0, 0), 8, 32).unwrap().at;
    assert_eq!(done, later + Nanos(short));
    let busy = media.utilisation();
    assert_eq!((busy.units, busy.programmed_sectors), (vec![Nanos(long + short)], 40));
}

/// Busy times are exactly what was reserved, and start anew when asked.
#[test]
fn utilisation_counts_reservations() {
    let mut media = device(geometry(2, 1), "nvmevirt-970pro");
    let now = append(&mut media, Nanos::ZERO, chunk(1, 0), 8, 0).unwrap().at;
    let first = ppa(&media, chunk(1, 0), 0);
    read(&mut media, now, first, 1).unwrap();
    let busy = media.inner().utilisation();
    assert_eq!(busy.units, [Nanos(0), Nanos(225_960 + 29_760 + 5_120)]);
    assert_eq!(busy.channels, [Nanos(0), Nanos(40_960 + 5_120)]);
    let link = media.link().counts();
    assert_eq!((link.to_device_busy, link.to_host_busy), (Nanos(9_753), Nanos(1_220)));
    assert_eq!((link.to_device_bytes, link.to_host_bytes), (8 * 4_096, 4_096));
    media.inner_mut().reset_utilisation();
    media.link_mut().reset_counts();
    assert_eq!(media.link().counts(), LinkUse::default());
    assert_eq!(media.inner().utilisation().units, [Nanos(0), Nanos(0)]);
}

/// What a 970 Pro unit of four planes takes for a write and then a read of these sectors.
fn four_planes(multi_plane: MultiPlane, first: u32, sectors: u32) -> (u64, u64) {
    let timing = changed(|nand| (nand.planes, nand.multi_plane) = (4, multi_plane));
    let mut media = linked(timing, MediaConfig::new(geometry(1, 1)));
    let write = append(media.inner_mut(), Nanos::ZERO, chunk(0, 0), 8, 0).unwrap().at;
    let at = ppa(&media, chunk(0, 0), first);
    (write.0, (read(&mut media, write, at, sectors).unwrap().at - write).0)
}

/// All planes at once, a write unit takes one tPROG and a flash page one tR, as in the presets; one plane
/// after the other, it is one for each plane that is touched. The channel carries the same.
#[test]
fn planes_work_at_once_or_one_after_the_other() {
    use MultiPlane::{Both, None, Program, Read};
    let together = 40_960 + 185_000;
    let apart = 40_960 + 4 * 185_000;
    let page = 30_490 + 30_013 + 40_960 + 4_877;
    let parts = 30_490 + 4 * (30_013 + 10_240) + 2_439;
    assert_eq!(four_planes(Both, 0, 8), (together, page));
    assert_eq!(four_planes(Program, 0, 8), (together, parts));
    assert_eq!(four_planes(Read, 0, 8), (apart, page));
    assert_eq!(four_planes(None, 0, 8), (apart, parts));
}

/// A read costs a sense for each plane that it touches, and no more.
#[test]
fn a_read_senses_only_the_planes_that_it_touches() {
    let read = |first, sectors| four_planes(MultiPlane::Program, first, sectors).1;
    let firmware = 21_500;
    assert_eq!(read(2, 2), firmware + 30_013 + 10_240 + 2_439, "the second plane's two sectors");
    let halves = 2 * (29_760 + 5_120) + 1_220;
    assert_eq!(read(3, 2), firmware + halves, "one sector on each of two planes");
}

/// Numbers from outside, however silly, neither panic nor divide by zero.
#[test]
fn absurd_timing_is_bounded() {
    let nand = NandTiming {
        program_ns: u64::MAX,
        erase_ns: u64::MAX,
        read_page_lsb_ns: u64::MAX,
        flash_page_bytes: 0,
        one_shot_bytes: 1,
        max_transfer_bytes: 0,
        channel_bytes_per_s: 1,
        planes: u64::MAX,
        multi_plane: MultiPlane::None,
        read_priority: ReadPriority::Suspend,
        max_read_preemption_ns: u64::MAX,
        max_suspensions: u64::MAX,
        erase_suspend_ns: u64::MAX,
        resume_ns: u64::MAX,
        ..NandTiming::none()
    };
    let link = LinkTiming {
        buffer_base_ns: u64::MAX,
        buffer_sector_ns: u64::MAX,
        read_small_bytes: u64::MAX,
        bytes_per_s: u64::MAX,
        ..LinkTiming::none()
    };
    let slow_units = vec![(UnitId(0), u32::MAX)];
    let config = MediaConfig { slow_units, ..MediaConfig::new(geometry(1, 1)) };
    let mut media = linked(DeviceTiming { nand, link }, config);
    let now = append(&mut media, Nanos::ZERO, chunk(0, 0), 64, 0).unwrap().at;
    let first = ppa(&media, chunk(0, 0), 0);
    read(&mut media, now, first, 64).unwrap();
    media.reset(now, now, chunk(0, 0)).unwrap();
    let now = Nanos::from_ms(1);
    assert!(media.link_mut().data_in(now, now, 64).end > now);
}
