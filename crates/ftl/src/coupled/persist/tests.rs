//! The journal on its way to media: snapshots, what fails with the journal, where a mount stops reading.

use super::*;
use crate::coupled::config::Config;
use crate::device;
use crate::device::config::BufferConfig;
use crate::kind::FtlRun;
use nandscape_block::{Flags, Lba, Tag};
use nandscape_media::{DeviceTiming, Geometry, LinkTiming, Media, MediaConfig, PayloadMode};

const GEOMETRY: Geometry = Geometry {
    groups: 1,
    units: 2,
    chunks: 58,
    sectors: 16,
    ws_min: 2,
    ws_opt: 4,
    mw_cunits: 0,
    maxoc: 0,
    maxocpu: 0,
};

fn coupled() -> CoupledFtl<Media> {
    let plain = device::Config::default();
    let buffer = BufferConfig { size_bytes: 64 << 12, ..plain.buffer };
    let config = Config {
        pages: device::Config { instances: 1, op_hundredths: 5_000, buffer, ..plain },
        random_bytes: 14 << 12,
        op_hundredths: 5_000,
        buffer_bytes: 16 << 12,
        spare_chunks: 12,
        partition_bits: 16,
        gc_lines: 1,
        open_max: 1,
        ..Config::default()
    };
    let timing = DeviceTiming::preset("nvmevirt-970pro").expect("a preset").nand;
    let media = MediaConfig { timing, payload: PayloadMode::Tags, ..MediaConfig::new(GEOMETRY) };
    let media = Media::new(media).expect("a device");
    CoupledFtl::format(media, config, FtlRun::default(), LinkTiming::none()).expect("fits")
}

/// A snapshot says what the journal has up to the end of a sector: a mount applies none of these entries again.
#[test]
fn snapshots_are_taken_at_the_end_of_a_sector() {
    let mut ftl = coupled();
    let CoupledFtl { flash, lines, records, persist, .. } = &mut ftl;
    persist.note(flash, Entry::Closed { old: Lba(1) }).expect("room");
    let filled = persist.journal.number;
    persist.begin_snapshot(flash, lines, records).expect("room");
    let start = persist.snapshot.as_ref().map(|taking| taking.start);
    assert_eq!((start, persist.journal.is_fresh()), (Some(filled + 1), true));
}

/// A sector that an earlier mount wrote behind the end of the journal is not read after one of a later mount, although its
/// number follows.
#[test]
fn the_ring_ends_where_an_earlier_mount_goes_on() {
    let CoupledFtl { flash, persist, .. } = &mut coupled();
    let start = persist.journal.number;
    for (number, mount) in (start..).zip([1, 2, 1, 2]) {
        let sector = JournalSector { mount, number, entries: vec![Entry::Closed { old: Lba(1) }] };
        let bio = Bio::write(persist.journal.address(number), 1, payload(sector.encode()));
        assert!(flash.submit_inside(bio, Own::JournalWrite).expect("power is on").is_some());
    }
    let sectors = flash.read_ring(&persist.journal, start, 1).expect("power is on");
    let read: Vec<_> = sectors.iter().map(|of| (of.number, of.mount)).collect();
    assert_eq!(read, [(start, 1), (start + 1, 2)]);
}

/// What waits for the journal fails when that cannot be written: flushes, writes with PREFLUSH to the page-mapped region
/// and to superblocks, the first one as well as those behind it.
#[test]
fn what_waits_for_the_journal_fails_with_it() {
    let start = coupled().rules.space.start(0);
    let write = |lba| Bio::write(lba, 1, Payload::Run(Tag::new(1))).with(Flags::PREFLUSH);
    for bio in [Bio::flush(), write(Lba(0)), write(start)] {
        let mut ftl = coupled();
        let now = ftl.flash.now;
        // A sector is on its way.
        ftl.persist.writing = 1;
        for token in [1, 2].map(Token) {
            assert_eq!(ftl.submit(now, bio.clone(), token), Submit::Pending);
        }
        ftl.persist.journal_written(Done::ok(now)).expect("one was on its way");
        // The next one would lie beyond the region.
        ftl.persist.note(&mut ftl.flash, Entry::Closed { old: Lba(1) }).expect("room");
        ftl.persist.journal.sizes.start = u64::from(u32::MAX);
        ftl.flash.stirred = true;
        let error = ftl.pump().expect_err("the journal cannot be written");
        ftl.stop(error.into());
        let mut failed: Vec<_> = ftl.done.iter().map(|done| done.token).collect();
        failed.sort_unstable();
        assert_eq!(failed, [1, 2].map(Token), "{bio:?}");
        assert!(ftl.done.iter().all(|done| done.done.result.is_err()));
    }
}

/// A line whose data are being moved is in a snapshot: what was not moved yet is nowhere else.
#[test]
fn lines_that_are_being_moved_are_in_a_snapshot() {
    let mut ftl = coupled();
    let line_sectors = u64::from(ftl.rules.sizes.line_sectors);
    let (mut done, most) = (Vec::new(), ftl.rules.sizes.lines);
    for number in 0..2 {
        let start = ftl.rules.space.start(0).plus(number * line_sectors);
        let write = Bio::write(start, 28, Payload::Run(Tag::new(1)));
        ftl.submit(ftl.flash.now, write, Token(number));
        while let Some(at) = ftl.next_event() {
            ftl.advance(at, &mut done);
        }
    }
    assert_eq!(ftl.make_free(0, most), Ok(false));
    let victim = ftl.gc.copying().next().expect("more than may be on its way at once");
    let CoupledFtl { flash, lines, records, persist, .. } = &ftl;
    let snapshot = persist.snapshot(1, &flash.zones.store, lines, records);
    assert!(snapshot.lines.iter().any(|saved| saved.line == victim));
}

/// The head of a snapshot is written when what it says is durable, in the lines as well.
#[test]
fn lines_are_durable_before_the_snapshot_counts() {
    let mut ftl = coupled();
    let start = ftl.rules.space.start(0);
    let write = Bio::write(start, 1, Payload::Run(Tag::new(1)));
    ftl.submit(ftl.flash.now, write, Token(1));
    let line = ftl.lines.of(0).expect("was opened");
    let CoupledFtl { flash, lines, records, persist, .. } = &mut ftl;
    let store = &flash.zones.store;
    let generation = store.generation(line);
    assert!(!store.is_durable_or_gone(line, generation, 1), "it is in the buffer");
    persist.begin_snapshot(flash, lines, records).expect("room");
    let is_settling = |ftl: &CoupledFtl<Media>| {
        ftl.persist.snapshot.as_ref().is_none_or(|taking| taking.head.is_some())
    };
    while is_settling(&ftl) {
        ftl.flash.now = ftl.flash.zones.next_event().expect("a snapshot on its way");
        ftl.run_round().expect("power is on");
    }
    let store = &ftl.flash.zones.store;
    assert_eq!(store.generation(line), generation);
    assert!(store.is_durable_or_gone(line, generation, 1));
}
