//! Streams that write to several lines at once: where their units go, what that gains, and what a power cut
//! leaves.

use crate::common::{Driver, GEOMETRY, config};
use nandscape_block::{Bio, Flags, Lba, Payload, Tag};
use nandscape_ftl::pblk::config::{Config, GcStream, LineSet, Routing, StreamUnits};
use nandscape_ftl::{Ftl, FtlError, FtlRun, Pblk};
use nandscape_media::{ChunkId, Geometry, Kind, Media, MediaConfig, OpenChannel, UnitId};

const TIMED: &str = "nvmevirt-970pro";

/// Lines of one of 4 parallel units, a journal, and copies of their own.
fn narrow(stream_units: StreamUnits) -> Config {
    let routing = Routing { journal: true, ..Routing::default() };
    let (line_set, gc_stream) = (LineSet::Units(1), GcStream::Own);
    Config { op_percent: Some(50), routing, line_set, gc_stream, stream_units, ..config() }
}

fn journal_of(units: u32) -> Config {
    narrow(StreamUnits { journal: Some(units), ..StreamUnits::default() })
}

/// The chunks that hold data, with the units of data in each.
fn chunks_with_data(driver: &Driver) -> Vec<(ChunkId, u32)> {
    let media = driver.ftl.media();
    let count = |chunk: ChunkId| {
        let first = |row| GEOMETRY.ppa(chunk, row * GEOMETRY.ws_opt);
        let rows = media.chunk(chunk).wp / GEOMETRY.ws_opt;
        (0..rows).filter(|&row| media.oob(first(row)).kind == Kind::Data).count() as u32
    };
    let counted = GEOMETRY.all_chunks().map(|chunk| (chunk, count(chunk)));
    counted.filter(|&(_, units)| units > 0).collect()
}

/// Units of data on each parallel unit that has any.
fn programmed(driver: &Driver) -> Vec<(u32, u32)> {
    let chunks = chunks_with_data(driver);
    let on = |unit| chunks.iter().filter(|(chunk, _)| chunk.unit.0 == unit).map(|(_, n)| n).sum();
    let all = (0..GEOMETRY.total_units()).map(|unit| (unit, on(unit)));
    all.filter(|&(_, units)| units > 0).collect()
}

/// A journal of two lines programs a unit in one and a unit in the other, in turn; on different channels.
#[test]
fn units_of_a_stream_go_to_its_lines_in_turn() {
    for (width, lines) in [(1, 1), (2, 2), (4, 4)] {
        let mut driver = Driver::new("none", journal_of(width));
        for unit in 0..8 {
            driver.write_sectors(u64::from(unit) * 8, 8, u64::from(unit), Flags::JOURNAL);
            driver.flush();
            let found = programmed(&driver);
            let each = unit / lines;
            let further = unit % lines + 1;
            assert_eq!(found.iter().map(|(_, units)| units).sum::<u32>(), unit + 1);
            let ahead = found.iter().filter(|&&(_, units)| units == each + 1).count() as u32;
            assert_eq!(ahead, further, "{width} wide, after {} units: {found:?}", unit + 1);
        }
        let found = programmed(&driver);
        assert_eq!(found.len() as u32, lines, "{found:?}");
        let groups: std::collections::BTreeSet<u32> =
            found.iter().map(|&(unit, _)| GEOMETRY.group_of(UnitId(unit))).collect();
        assert_eq!(groups.len(), (lines as usize).min(2), "channels of {found:?}");
        driver.ftl.check_invariants().expect("invariants");
    }
}

/// Virtual time that a journal of many units takes, all submitted at once.
fn journal_ns(config: Config) -> u64 {
    let mut driver = Driver::new(TIMED, config);
    let begin = driver.now;
    let (count, mut done) = (200, 0);
    for unit in 0..count {
        let bio = Bio::write(Lba(unit * 8), 8, Payload::Run(Tag::new(unit)));
        done += u64::from(driver.submit(bio.with(Flags::JOURNAL), unit).is_some());
    }
    while done < count {
        done += driver.step().len() as u64;
    }
    driver.flush();
    let found = programmed(&driver);
    assert_eq!(found.iter().map(|&(_, units)| u64::from(units)).sum::<u64>(), count);
    (driver.now - begin).0
}

/// A journal that writes to twice the units is written twice as fast. To all of them it shares each with the metadata
/// of its own next lines, a fifth of such short ones.
#[test]
fn a_wider_journal_is_written_faster() {
    let [one, two, four] = [1, 2, 4].map(|width| journal_ns(journal_of(width)));
    assert_eq!(one, journal_ns(narrow(StreamUnits::default())), "one line is what it had");
    let percent = |narrow: u64, wide: u64| 100 * narrow / wide;
    assert!((190..=200).contains(&percent(one, two)), "{one} and {two} ns");
    assert!((310..=400).contains(&percent(one, four)), "{one} and {four} ns");
}

/// Devices whose streams have several lines each keep going when full and come back with what was flushed, where
/// open chunks are limited, too, and with other widths than they were left with.
#[test]
fn wide_streams_survive_a_full_device_and_power_cuts() {
    let with = |normal, journal, gc| StreamUnits { normal, journal, gc, ..StreamUnits::default() };
    let widths = [
        with(None, Some(2), Some(4)),
        with(Some(1), Some(4), Some(1)),
        with(Some(2), None, Some(2)),
        with(None, None, None),
    ];
    for (case, limit) in (0..).zip([0, 60, 0, 60]) {
        let geometry = Geometry { maxocpu: limit, ..GEOMETRY };
        let mut driver = Driver::on(geometry, "none", narrow(widths[case]));
        let mut expected: Vec<u64> = (0..driver.sectors()).collect();
        driver.write_run(0, driver.sectors(), 0);
        for round in 0..3 {
            driver.overwrite(&mut expected, 0, driver.sectors() / 2, 10 * case as u64 + round);
            for i in 0..60 {
                let tag = 1_000_000 * (round + 1) + i;
                driver.write(i, tag, Flags::JOURNAL);
                expected[i as usize] = tag;
            }
            driver.flush();
            driver.ftl.check_invariants().unwrap_or_else(|why| panic!("case {case}: {why}"));
            let next = widths[(case + usize::from(round == 1)) % widths.len()];
            driver = driver.power_cut(narrow(next));
            driver.check(&expected);
        }
    }
}

/// After a power cut a wide stream goes on in the lines that it had.
#[test]
fn a_wide_stream_goes_on_in_its_lines() {
    let mut driver = Driver::new("none", journal_of(4));
    for unit in 0..4 {
        driver.write_sectors(unit * 8, 8, unit * 8, Flags::JOURNAL);
    }
    driver.flush();
    let before = chunks_with_data(&driver);
    assert_eq!(before.iter().map(|&(_, units)| units).collect::<Vec<_>>(), [1; 4]);
    let mut driver = driver.power_cut(journal_of(4));
    for unit in 4..8 {
        driver.write_sectors(unit * 8, 8, unit * 8, Flags::JOURNAL);
    }
    driver.flush();
    let twice = |(chunk, units): &(ChunkId, u32)| (*chunk, 2 * units);
    assert_eq!(chunks_with_data(&driver), before.iter().map(twice).collect::<Vec<_>>());
    driver.check(&(0..64).collect::<Vec<_>>());
}

/// Each frontier may keep a line, so wide streams need a device with as many more.
#[test]
fn frontiers_are_counted_into_what_a_device_needs() {
    let refused = |stream_units, geometry: Geometry| {
        let config = narrow(stream_units);
        let media = Media::new(MediaConfig::new(geometry)).expect("a device");
        match Pblk::format(media.into(), config, FtlRun::default()) {
            Ok(_) => None,
            Err(FtlError::Config { key, .. }) => Some(key),
            Err(error) => panic!("{error}"),
        }
    };
    let usual = StreamUnits::default();
    let wide = StreamUnits { journal: Some(4), gc: Some(4), ..usual };
    // Four lines at most of each frontier: 6 frontiers, then 12.
    let open = |maxocpu| Geometry { maxocpu, ..GEOMETRY };
    assert_eq!(refused(usual, open(24)), None);
    assert_eq!((refused(wide, open(47)), refused(wide, open(48))), (Some("media.maxocpu"), None));
    let least_of = |stream_units, maxocpu| {
        let geometry = |chunks| Geometry { chunks, maxocpu, ..GEOMETRY };
        let fits = |&chunks: &u32| refused(stream_units, geometry(chunks)).is_none();
        (1..=GEOMETRY.chunks).find(fits).expect("the whole device")
    };
    let least = |stream_units| least_of(stream_units, 0);
    assert!(least(wide) > least(usual), "{} and {}", least(wide), least(usual));
    // Where open chunks are limited a power cut uses up a line of each frontier of the widest stream.
    let limited = least_of(usual, 60);
    assert!(limited > least(usual), "{limited} and {}", least(usual));
}
