//! Devices that are cornered by hand: free lines are taken away.

use super::*;
use crate::common::layout::StripeSet;
use crate::common::lines::LineState;
use crate::common::trims::TrimRecord;
use crate::face::Ftl;
use crate::kind::FtlRun;
use crate::pblk::Capacity;
use crate::pblk::config::{
    Config, GcStream, JournalLines, Limiter, LineSet, Pacing, Routing, StreamUnits,
};
use nandscape_block::{Bio, BlockDevice, Flags, Lba, Payload, Submit, Tag, Token};
use nandscape_media::{Geometry, LinkTiming, Linked, Media, MediaConfig, PayloadMode};
use nandscape_rt::Nanos;
use std::collections::BTreeSet;

const GEOMETRY: Geometry = Geometry {
    groups: 1,
    units: 2,
    chunks: 38,
    sectors: 40,
    ws_min: 4,
    ws_opt: 8,
    mw_cunits: 24,
    maxoc: 0,
    maxocpu: 0,
};

fn device(geometry: Geometry, config: Config) -> Pblk<Media> {
    limited(geometry, config, Limiter::Reserve(1))
}

fn limited(geometry: Geometry, config: Config, limiter: Limiter) -> Pblk<Media> {
    let media = MediaConfig { payload: PayloadMode::Tags, ..MediaConfig::new(geometry) };
    let media = Linked::new(Media::new(media).expect("a device"), LinkTiming::none());
    let config = Config { op_percent: Some(40), limiter, ..config };
    Pblk::format(media, config, FtlRun::default()).expect("fits")
}

/// A buffer for the journal beside the other.
fn journal(gc_stream: GcStream) -> Config {
    let routing = Routing { journal: true, ..Routing::default() };
    Config { routing, gc_stream, gc_pacing: Some(Pacing::Immediate), ..Config::default() }
}

/// Serves a bio; its outcome, unless the device goes on for ever.
fn serve(pblk: &mut Pblk<Media>, bio: Bio) -> Result<(), BlockError> {
    let mut done = Vec::new();
    if let Submit::Done(done) = pblk.submit(pblk.flash.now, bio, Token(0)) {
        return done.result.map(|_| ());
    }
    for _ in 0..100_000 {
        let at = pblk.next_event().expect("something is under way");
        pblk.advance(at, &mut done);
        if let Some(completion) = done.pop() {
            return completion.done.result.map(|_| ());
        }
    }
    panic!("the device does not come to rest")
}

fn write(pblk: &mut Pblk<Media>, lba: u64, flags: Flags) {
    let bio = Bio::write(Lba(lba), 1, Payload::Run(Tag::new(lba))).with(flags);
    assert_eq!(serve(pblk, bio), Ok(()));
}

fn take_free_lines(pblk: &mut Pblk<Media>) {
    while pblk.flash.lines.take_free(StripeSet::ALL, false).is_some() {}
    pblk.supply().limiter_update();
}

/// What copies leave of a unit is padded in each buffer that has any: where each line gains less than that, two
/// of different streams would gain nothing.
#[test]
fn copies_of_forced_victims_go_to_one_buffer() {
    let mut pblk = device(GEOMETRY, journal(GcStream::ByOrigin));
    let flags = |lba| if lba % 2 == 0 { Flags::JOURNAL } else { Flags::NONE };
    for lba in (0..256).chain(0..6).chain(128..134) {
        write(&mut pblk, lba, flags(lba));
    }
    assert_eq!(serve(&mut pblk, Bio::flush()), Ok(()));
    pblk.recycle_all();
    pblk.collector.takes_all = true;
    assert_eq!(pblk.supply().fill_victims(), Ok(true));
    let collected = pblk.flash.lines.iter().filter(|(_, line)| line.state == LineState::Gc);
    let origins: BTreeSet<_> = collected.map(|(_, line)| line.origin).collect();
    let targets: BTreeSet<_> = pblk.collector.pending_copies().map(|(buffer, _)| buffer).collect();
    assert_eq!((origins.len(), targets.len()), (2, 1), "{origins:?} to {targets:?}");
}

/// As long as another line finds room its copies fill the unit that was begun, and nothing is padded.
#[test]
fn copies_wait_for_others_before_they_are_padded() {
    let mut pblk = device(GEOMETRY, journal(GcStream::Data));
    pblk.collector.gathers_in = Some((0, pblk.stats.admitted_sectors()));
    assert!(!pblk.collector.is_gathering(&pblk.buffers, &pblk.stats), "nothing is left of a unit");
    pblk.buffers.all[0].rb.push(0, crate::pblk::rb::Origin::Gc, 1);
    assert!(pblk.collector.is_gathering(&pblk.buffers, &pblk.stats));
    pblk.stats.host.written += 1;
    assert!(!pblk.collector.is_gathering(&pblk.buffers, &pblk.stats), "a write found room");
}

/// Trim records that collection logs anew come to a buffer for which no line is left.
#[test]
fn trim_records_are_written_to_a_line_of_another_stream() {
    let mut pblk = device(GEOMETRY, journal(GcStream::Own));
    write(&mut pblk, 0, Flags::JOURNAL);
    assert_eq!(serve(&mut pblk, Bio::flush()), Ok(()));
    assert!(pblk.frontiers.return_line(&mut pblk.flash, 0, i64::MAX).is_some());
    pblk.frontiers.return_line(&mut pblk.flash, 1, i64::MAX);
    pblk.supply().limiter_update();
    take_free_lines(&mut pblk);
    let record = TrimRecord { lba: 7, sectors: 1, seq: pblk.flash.next_seq };
    pblk.buffers.log_trim(&mut pblk.flash, &mut pblk.progress, record);
    assert_eq!(serve(&mut pblk, Bio::flush()), Ok(()));
    assert_eq!(pblk.check_invariants(), Ok(()));
}

/// A stream that has nothing to write lends the last unit of its line, which it would keep for what it may pad: trim
/// records in a buffer without a line hold back lines that are empty.
#[test]
fn the_last_unit_of_an_idle_stream_is_lent() {
    let mut pblk = device(GEOMETRY, journal(GcStream::Own));
    let line = pblk.capacity().line_data_sectors;
    (0..u64::from(line - GEOMETRY.ws_opt)).for_each(|lba| write(&mut pblk, lba, Flags::JOURNAL));
    assert_eq!(serve(&mut pblk, Bio::flush()), Ok(()));
    for f in 0..2 {
        pblk.frontiers.return_line(&mut pblk.flash, f, i64::MAX);
    }
    take_free_lines(&mut pblk);
    assert_eq!(pblk.flash.left_of(&pblk.frontiers.all[0]), 0);
    assert_eq!(pblk.flash.left_of(&pblk.frontiers.all[1]), u64::from(GEOMETRY.ws_opt));
    let record = TrimRecord { lba: 70, sectors: 1, seq: pblk.flash.next_seq };
    pblk.buffers.log_trim(&mut pblk.flash, &mut pblk.progress, record);
    assert_eq!(serve(&mut pblk, Bio::flush()), Ok(()));
    assert_eq!(pblk.check_invariants(), Ok(()));
}

/// The buffers whose lines are collected where no line is free, given how many sectors the oldest lines of the data and of
/// the journal lost, of which the latter is exempt.
fn origins_of_victims(of_data: u64, of_journal: u64) -> Vec<u8> {
    let exempt = Config { journal_lines: JournalLines::Exempt, ..journal(GcStream::Data) };
    let mut pblk = device(GEOMETRY, exempt);
    let lines = 4 * u64::from(pblk.capacity().line_data_sectors);
    for lba in (0..lines).chain(0..of_data) {
        write(&mut pblk, lba, Flags::NONE);
    }
    for lba in (lines..2 * lines).chain(lines..lines + of_journal) {
        write(&mut pblk, lba, Flags::JOURNAL);
    }
    assert_eq!(serve(&mut pblk, Bio::flush()), Ok(()));
    pblk.recycle_all();
    take_free_lines(&mut pblk);
    assert_eq!(pblk.supply().fill_victims(), Ok(true));
    let collected = pblk.flash.lines.iter().filter(|(_, line)| line.state == LineState::Gc);
    collected.map(|(_, line)| line.origin).collect()
}

/// A line that gains less than a unit may be copied into as much as it held, for ever: where users stand still, lines of
/// the journal that gain more are victims although they are exempt. As long as another line helps they are not.
#[test]
fn exempt_lines_are_collected_where_no_other_line_helps() {
    let unit = u64::from(GEOMETRY.ws_opt);
    assert_eq!(origins_of_victims(2, 4 * unit), [1], "the journal's helps alone");
    assert_eq!(origins_of_victims(2 * unit, 4 * unit), [0], "another line helps");
    assert_eq!(origins_of_victims(2, 2), [0], "none helps");
}

/// The collector's thread collects one line a run: where each gains less than a unit, and its copies are padded before the
/// next, nothing is gained for ever. After a while the copies of several share a unit, and a write finds room.
#[test]
fn copies_of_lines_that_gain_little_share_their_padding() {
    let pacing = Some(Pacing::Kernel(Nanos(100_000)));
    let config = Config { gc_pacing: pacing, ..journal(GcStream::Own) };
    let mut pblk = limited(GEOMETRY, config, Limiter::Reserve(4));
    let (lines, line) = (12, u64::from(pblk.capacity().line_data_sectors));
    let little = u64::from(GEOMETRY.ws_opt - 1);
    let again = (0..lines).flat_map(|first| first * line..first * line + little);
    for lba in (0..lines * line).chain(again) {
        write(&mut pblk, lba, Flags::NONE);
    }
    assert_eq!(serve(&mut pblk, Bio::flush()), Ok(()));
    pblk.recycle_all();
    for f in 0..3 {
        pblk.frontiers.return_line(&mut pblk.flash, f, i64::MAX);
    }
    while pblk.flash.lines.free().1 > 3 {
        let id = pblk.flash.lines.take_free(StripeSet::ALL, false).expect("a free line");
        pblk.flash.lines.write_off(id, u32::MAX);
    }
    pblk.supply().start_thread();
    pblk.progress.needs_pump = true;
    write(&mut pblk, 0, Flags::NONE);
}

/// Padding makes media serve what was written before, and is not padded for in turn: lines that hold nothing else
/// are freed, and would take padding without end.
#[test]
fn padding_is_not_padded_for() {
    let (groups, sectors, ws_min, ws_opt, mw_cunits) = (2, 3, 1, 1, 2);
    let geometry = Geometry { groups, sectors, ws_min, ws_opt, mw_cunits, ..GEOMETRY };
    let config = Config { gc_pacing: Some(Pacing::Kernel(Nanos(1_000))), ..Config::default() };
    let mut pblk = device(geometry, config);
    pblk.supply().start_thread();
    pblk.progress.needs_pump = true;
    write(&mut pblk, 0, Flags::FUA);
    let pads = (0..100).take_while(|_| {
        pblk.progress.pads = 0;
        let padded = pblk.pad_one().expect("on");
        while let Some(at) = pblk.next_at() {
            pblk.run_round(at);
        }
        pblk.recycle_all();
        padded
    });
    let pads = pads.count();
    assert!((1..20).contains(&pads), "{pads} units");
}

/// Padding leaves a ring when it is on media, whether or not they serve it: a line that holds nothing else is freed and
/// filled for another stream, for which a ring would wait.
#[test]
fn padding_that_is_not_served_leaves_a_ring() {
    let mut pblk = device(GEOMETRY, Config::default());
    write(&mut pblk, 0, Flags::FUA);
    assert!(!pblk.recycle_all(), "media serve nothing yet");
    while pblk.pad_one() == Ok(true) {
        while let Some(at) = pblk.next_at() {
            pblk.run_round(at);
        }
        pblk.recycle_all();
    }
    assert!(pblk.buffers.all[0].is_empty(), "padding is left");
}

/// Copies may fill a ring as often as padding empties it, and a write that waits at another must not wait for their
/// end: rings that are full are padded in turn.
#[test]
fn rings_that_are_full_are_padded_in_turn() {
    let (ws_min, ws_opt, mw_cunits, ring) = (1, 1, 2, 8);
    let geometry = Geometry { ws_min, ws_opt, mw_cunits, ..GEOMETRY };
    let (normal, journal_units) = (Some(2), Some(2));
    let config = Config {
        line_set: LineSet::Units(1),
        stream_units: StreamUnits { normal, journal: journal_units, ..StreamUnits::default() },
        ring_sectors: Some(ring),
        ..journal(GcStream::Data)
    };
    let mut pblk = device(geometry, config);
    for stream in [Flags::NONE, Flags::JOURNAL] {
        write(&mut pblk, 0, Flags::FUA | stream);
        // A unit that is slow takes nothing more, so that the oldest entry is served last.
        pblk.flash.busy[0] = true;
        (1..u64::from(ring)).for_each(|lba| write(&mut pblk, lba, Flags::FUA | stream));
        pblk.flash.busy[0] = false;
    }
    for buffer in 0..2 {
        assert_eq!(pblk.make_ring_room(buffer, 1), 0, "ring {buffer} is full");
    }
    for _ in 0..2 {
        assert_eq!(pblk.pad_one(), Ok(true));
        while let Some(at) = pblk.next_at() {
            pblk.run_round(at);
        }
    }
    let pads: Vec<u64> = pblk.stats.buffers.iter().map(|buffer| buffer.pad).collect();
    assert_eq!(pads, [1, 1]);
}

/// Steps that gain nothing come to an end; whatever the host is served, or more room, begins anew.
#[test]
fn steps_that_gain_nothing_end() {
    let mut pblk = device(GEOMETRY, Config::default());
    let mut steps = || (0..100_000).find(|_| pblk.gains_nothing()).expect("an end");
    let most = steps();
    assert!(most > 38 * 8, "{most} steps");
    assert_eq!(steps(), 0, "still nothing");
    pblk.stats.host.written += 1;
    assert!(!pblk.gains_nothing());
    pblk.flash.lines.writable += 1;
    assert!((0..most).all(|_| !pblk.gains_nothing()) && pblk.gains_nothing());
}

/// A copy enters a ring only beside free slots for trim records: a ring that never has as many would never be
/// collected for.
#[test]
fn a_ring_without_room_for_a_copy_is_refused() {
    let (units, ws_min, ws_opt, mw_cunits) = (1, 1, 1, 0);
    let geometry = Geometry { units, ws_min, ws_opt, mw_cunits, ..GEOMETRY };
    let chunks = u64::from(geometry.chunks);
    let with = |ring| Config {
        ring_sectors: Some(ring),
        op_percent: Some(40),
        limiter: Limiter::Reserve(1),
        ..Config::default()
    };
    let refused = Capacity::of(&geometry, &with(2), chunks);
    assert!(matches!(refused, Err(FtlError::Config { key: "ftl.ring", .. })), "{refused:?}");
    assert_eq!(Capacity::of(&geometry, &with(4), chunks).map(|sizes| sizes.ring_sectors), Ok(4));
}
