//! Read priority and suspension: what they are worth, and that they neither lose nor make up time.

use crate::common;

use common::{append, chunk, linked, ppa};
use nandscape_media::ReadPriority::{self, Ahead, Suspend, SuspendErase, SuspendProgram};
use nandscape_media::{
    Action, DeviceTiming, Geometry, Layer, LinkTiming, Media, MediaConfig, NandTiming, OpenChannel,
    Resource, Span,
};
use nandscape_rt::{Nanos, Stream};
use std::collections::BTreeMap;

const GEOMETRY: Geometry = Geometry {
    groups: 1,
    units: 2,
    chunks: 8,
    sectors: 4096,
    ws_min: 8,
    ws_opt: 8,
    mw_cunits: 0,
    maxoc: 0,
    maxocpu: 0,
};
const PRIORITIES: [ReadPriority; 5] =
    [ReadPriority::None, Ahead, SuspendErase, SuspendProgram, Suspend];
const READ: Nanos = Nanos::from_us(70);
const PROGRAM: Nanos = Nanos::from_us(1_900);

/// tR 70 us, tPROG 1.9 ms, tBERS 3 ms, and nothing else takes time; reads may make others 1 ms late.
fn timing() -> NandTiming {
    let preset = DeviceTiming::preset("qemu-ocssd").unwrap().nand;
    NandTiming { read_priority: Ahead, max_read_preemption_ns: 1_000_000, ..preset }
}

/// A device on which chunk 1 of unit 0 can be read, and when it is idle.
fn device(timing: NandTiming) -> (Media, Nanos) {
    let mut media = Media::new(MediaConfig { timing, ..MediaConfig::new(GEOMETRY) }).unwrap();
    append(&mut media, Nanos::ZERO, chunk(0, 1), 64, 0).unwrap();
    (media, Nanos::from_ms(100))
}

fn read(media: &mut Media, now: Nanos) -> Nanos {
    let at = ppa(media, chunk(0, 1), 0);
    common::read(media, now, at, 1).unwrap().at
}

fn program(media: &mut Media, now: Nanos) -> Nanos {
    append(media, now, chunk(0, 0), 8, 0).unwrap().at
}

/// A read waits for the program in progress, goes ahead of the one behind it, and what is submitted
/// later pays for it.
#[test]
fn a_read_goes_ahead_of_what_has_not_begun() {
    let (mut media, t) = device(timing());
    assert_eq!(program(&mut media, t), t + PROGRAM);
    assert_eq!(program(&mut media, t), t + PROGRAM + PROGRAM);
    assert_eq!(read(&mut media, t + Nanos::from_ms(1)), t + PROGRAM + READ);
    let all = t + PROGRAM + PROGRAM + READ;
    assert_eq!(program(&mut media, t + Nanos::from_ms(2)), all + PROGRAM);
}

/// Without priority the same read waits for both.
#[test]
fn without_priority_units_serve_in_order() {
    let (mut media, t) = device(NandTiming { read_priority: ReadPriority::None, ..timing() });
    program(&mut media, t);
    program(&mut media, t);
    assert_eq!(read(&mut media, t + Nanos::from_ms(1)), t + PROGRAM + PROGRAM + READ);
}

/// A read suspends a program and an erase so often as they may be, at their cost; a read that comes
/// meanwhile goes ahead too; and the time of it all is found again behind.
#[test]
fn a_read_suspends_what_is_in_progress() {
    let once = NandTiming { max_suspensions: 1, resume_ns: 10_000, ..timing() };
    let (mut media, t) = device(NandTiming { read_priority: Suspend, ..once });
    program(&mut media, t);
    let suspended = t + Nanos::from_us(200 + 100);
    assert_eq!(read(&mut media, t + Nanos::from_us(200)), suspended + READ);
    assert_eq!(read(&mut media, t + Nanos::from_us(250)), suspended + READ + READ);
    let end = t + PROGRAM + Nanos::from_us(100 + 10) + READ + READ;
    assert_eq!(read(&mut media, t + Nanos::from_ms(1)), end + READ, "not twice");
    let idle = t + Nanos::from_ms(50);
    assert_eq!(media.reset(idle, idle, chunk(0, 0)).unwrap().at, idle + Nanos::from_ms(3));
    assert_eq!(read(&mut media, idle), idle + READ, "it had not begun");
    let asked = idle + Nanos::from_ms(1);
    assert_eq!(read(&mut media, asked), asked + Nanos::from_us(700) + READ);
}

/// A unit that suspends a program is busy with the program, the read, and with suspending and resuming.
#[test]
fn suspending_takes_the_time_of_a_unit() {
    let timing = NandTiming { read_priority: Suspend, resume_ns: 10_000, ..timing() };
    let (mut media, t) = device(timing);
    media.reset_utilisation();
    program(&mut media, t);
    read(&mut media, t + Nanos::from_us(200));
    let expected = PROGRAM + Nanos::from_us(100 + 10) + READ;
    assert_eq!(media.utilisation().units, [expected, Nanos::ZERO]);
    assert_eq!(
        program(&mut media, t),
        t + expected + PROGRAM,
        "the next one begins behind all of it"
    );
}

/// Programs and erases are suspended only where the stack says so.
#[test]
fn only_what_may_be_suspended_is() {
    let waits = |read_priority, erase: bool| {
        let (mut media, t) = device(NandTiming { read_priority, ..timing() });
        program(&mut media, Nanos::ZERO);
        let end =
            if erase { media.reset(t, t, chunk(0, 0)).unwrap().at } else { program(&mut media, t) };
        read(&mut media, t + Nanos::from_us(10)) == end + READ
    };
    assert_eq!(PRIORITIES.map(|priority| waits(priority, false)), [true, true, true, false, false]);
    assert_eq!(PRIORITIES.map(|priority| waits(priority, true)), [true, true, false, true, false]);
}

/// What is nearly done is not suspended.
#[test]
fn suspending_must_be_worth_it() {
    let (mut media, t) = device(NandTiming { read_priority: Suspend, ..timing() });
    program(&mut media, t);
    assert_eq!(read(&mut media, t + Nanos::from_us(1_850)), t + PROGRAM + READ);
}

/// However many reads come, a program that waits is late by the bound and one read at most.
#[test]
fn a_stream_of_reads_cannot_starve_a_program() {
    let (mut media, t) = device(timing());
    program(&mut media, t);
    media.start_log(usize::MAX);
    let reported = program(&mut media, t);
    for i in 0..100 {
        read(&mut media, t + Nanos::from_us(20 * i));
    }
    let log = media.end_log().unwrap();
    let end = log.spans.iter().filter(|span| span.command == 0).map(|span| span.end).max().unwrap();
    let bound = Nanos(timing().max_read_preemption_ns);
    assert!(
        end >= reported + bound && end < reported + bound + READ,
        "reported {reported}, ended {end}"
    );
}

/// A log of random commands on two busy units, and the time that they were busy.
fn random_log(nand: NandTiming, link: LinkTiming, seed: u64) -> (nandscape_media::Log, Vec<Nanos>) {
    let mut media = linked(DeviceTiming { nand, link }, MediaConfig::new(GEOMETRY));
    let mut t = Nanos::ZERO;
    for unit in [0, 1] {
        t = t.max(append(&mut media, t, chunk(unit, 1), 64, 0).unwrap().at);
    }
    media.inner_mut().reset_utilisation();
    media.inner_mut().start_log(usize::MAX);
    let mut rng = Stream::new(seed, "priority");
    for _ in 0..2_000 {
        t += Nanos(rng.below(400_000));
        let unit = rng.below(2) as u32;
        match rng.below(20) {
            0 => media.reset(t, t, chunk(unit, 0)).map(|_| ()).unwrap_or_default(),
            1..4 => append(&mut media, t, chunk(unit, 0), 8, 0).map(|_| ()).unwrap_or_default(),
            _ => {
                let at = ppa(&media, chunk(unit, 1), rng.below(50) as u32);
                common::read(&mut media, t, at, 1 + rng.below(12) as u32).unwrap();
            }
        }
    }
    (media.inner_mut().end_log().unwrap(), media.inner().utilisation().units)
}

fn spans_on(log: &nandscape_media::Log, on: Resource) -> Vec<Span> {
    let mut spans: Vec<Span> = log.spans.iter().filter(|span| span.on == on).copied().collect();
    spans.sort_by_key(|span| span.start);
    spans
}

/// Whatever goes ahead of what: a unit and a link do one thing at a time, and a unit's spans are exactly
/// the time that it was busy.
#[test]
fn no_time_is_lost_or_shared() {
    for seed in 0..60 {
        let DeviceTiming { nand: preset, link } = DeviceTiming::preset("nvmevirt-zn540").unwrap();
        let timing = NandTiming {
            erase_ns: 3_000_000,
            read_priority: PRIORITIES[seed as usize % PRIORITIES.len()],
            max_read_preemption_ns: 500_000 * (seed % 3),
            max_suspensions: seed % 4,
            resume_ns: 7_000,
            ..preset
        };
        let (log, busy) = random_log(timing, link, seed);
        for on in [Resource::Unit(0), Resource::Unit(1), Resource::Channel(0), Resource::Pcie] {
            let spans = spans_on(&log, on);
            assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start), "{on:?} {seed}");
            if let Resource::Unit(unit) = on {
                let sum: Nanos = spans.iter().map(|span| span.end - span.start).sum();
                assert_eq!(sum, busy[unit as usize], "unit {unit}, seed {seed}");
            }
        }
    }
}

/// Reads end when reported, and no program or erase ends later than reported by more than the bound, a read
/// and a suspension.
#[test]
fn lateness_is_bounded() {
    for seed in 0..20 {
        let timing = NandTiming { read_priority: Suspend, ..timing() };
        let slack = Nanos(timing.max_read_preemption_ns + timing.erase_suspend_ns) + READ + READ;
        let (log, _) = random_log(timing, LinkTiming::none(), seed);
        let mut ends = BTreeMap::new();
        for span in log.spans.iter().filter(|span| matches!(span.on, Resource::Unit(_))) {
            let end = ends.entry(span.command).or_insert(span.end);
            *end = span.end.max(*end);
        }
        for (number, command) in (0..).zip(&log.commands) {
            let end = ends[&number];
            match command.action {
                Action::Read => assert_eq!(end, command.done, "seed {seed}"),
                _ => assert!(end >= command.done && end <= command.done + slack, "seed {seed}"),
            }
        }
    }
}

/// Where nothing but the units takes time, reads that go ahead change the order of work, not its amount.
#[test]
fn priority_conserves_work() {
    for seed in 0..10 {
        let busy = |nand| random_log(nand, LinkTiming::none(), seed).1;
        let in_turn = NandTiming { read_priority: ReadPriority::None, ..timing() };
        assert_eq!(busy(timing()), busy(in_turn), "seed {seed}");
    }
}
