//! Files of traces as people have them: compressed, binary, several at once, of several devices; and the
//! formats that traces are written in.

use crate::common;

use common::fio;
use flate2::Compression;
use flate2::write::GzEncoder;
use nandscape_block::Flags;
use nandscape_workload::Direction::{Read, Trim, Write};
use nandscape_workload::trace::{
    Action, Format, Info, LeftOut, ReadOptions, Record, TraceError, TraceReader, TraceWriter,
    WRITABLE,
};
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::io::{Cursor, Write as _};
use std::path::Path;

const TEXT: &str = "0 0 0 8 0\n10 1 8 8 0\n20 0 0 16 1\n";

fn reader(bytes: &[u8]) -> Result<TraceReader, TraceError> {
    TraceReader::new("test.trace", Cursor::new(bytes.to_vec()), ReadOptions::default())
}

fn all(mut reader: TraceReader) -> Result<Vec<Record>, TraceError> {
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok(records)
}

fn read(bytes: &[u8]) -> Result<Vec<Record>, TraceError> {
    all(reader(bytes)?)
}

fn error(bytes: &[u8]) -> String {
    read(bytes).unwrap_err().to_string()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zstd(content: &[u8]) -> Vec<u8> {
    compress_to_vec(content, CompressionLevel::Fastest)
}

/// A zstd frame that holds nothing.
const SKIPPABLE: &[u8] = b"\x51\x2a\x4d\x18\x03\0\0\0abc";

/// Compressed files are read as what they hold, of several members or frames, too.
#[test]
fn compression_makes_no_difference() {
    let plain = read(TEXT.as_bytes()).unwrap();
    let (first, rest) = TEXT.as_bytes().split_at(7);
    for (name, packed) in [
        ("gzip", gzip(TEXT.as_bytes())),
        ("members", [gzip(first), gzip(rest)].concat()),
        ("zstd", zstd(TEXT.as_bytes())),
        ("frames", [SKIPPABLE, &zstd(first), SKIPPABLE, &zstd(rest), SKIPPABLE].concat()),
    ] {
        assert!(reader(&packed).unwrap().is_compressed(), "{name}");
        assert_eq!(read(&packed).unwrap(), plain, "{name}");
    }
    assert!(!reader(TEXT.as_bytes()).unwrap().is_compressed());
}

/// What is damaged, cut off, empty or packed in another way is an error that says so.
#[test]
fn what_cannot_be_unpacked_is_an_error() {
    let long: Vec<u8> =
        (0..9_000_u32).flat_map(|n| format!("{n} 0 0 8 0\n").into_bytes()).collect();
    for (name, packed) in [("gzip", gzip(&long)), ("zstd", zstd(&long))] {
        let cut = error(&packed[..packed.len() - 6]);
        assert!(cut.contains(&format!("damaged or truncated {name} data: ")), "{cut}");
        assert!(cut.starts_with("test.trace:"), "{cut}");
        let mut damaged = packed.clone();
        let checksum = packed.len() - if name == "gzip" { 5 } else { 1 };
        damaged[checksum] ^= 0xff;
        let damaged = error(&damaged);
        assert!(damaged.contains(&format!("damaged or truncated {name} data: ")), "{damaged}");
    }
    assert_eq!(error(b""), "test.trace: the file is empty");
    assert_eq!(error(b"\n"), error(&gzip(b"\n")));
    let xz = error(b"\xfd7zXZ\0\0\x04");
    assert_eq!(xz, "test.trace: the file is xz-compressed: decompress it first (xz -dc)");
    assert!(error(b"BZh91AY&SY").contains("bzip2-compressed"));
    let mut tar = vec![0; 1024];
    tar[257..262].copy_from_slice(b"ustar");
    for archive in [&tar, &gzip(&tar)] {
        assert!(error(archive).contains("the file is a tar archive: extract it first (tar -xf)"));
    }
}

/// An event of blktrace's: time, sector, bytes, action, device, bytes that follow.
type Event = (u64, u64, u32, u32, u32, u16);

const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const READ: u32 = 1 << 16;
const WRITE: u32 = 2 << 16;
const FLUSH: u32 = 4 << 16;
const SYNC: u32 = 8 << 16;
const COMMAND: u32 = 1 << 25;
const NOTIFY: u32 = 1 << 26;
const META: u32 = 1 << 28;
const DISCARD: u32 = 1 << 29;
const FUA: u32 = 1 << 31;
/// 8,0
const SDA: u32 = 8 << 20;

fn blktrace(events: &[Event], is_big: bool) -> Vec<u8> {
    let u64_ = |n: u64| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let u32_ = |n: u32| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let u16_ = |n: u16| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut out = Vec::new();
    for (at, sector, bytes, action, device, more) in events {
        out.extend([u32_(0x6561_7407), u32_(1)].concat());
        out.extend([u64_(*at), u64_(*sector)].concat());
        out.extend([u32_(*bytes), u32_(*action), u32_(300), u32_(*device), u32_(3)].concat());
        out.extend([u16_(0), u16_(*more)].concat());
        out.extend(vec![0x61; usize::from(*more)]);
    }
    out
}

/// The events of tests/traces/blkparse.txt.
const EVENTS: [Event; 9] = [
    (5, 0, 0, NOTIFY | 3, 0, 13),
    (1_000, 0, 4096, QUEUE | WRITE, SDA, 0),
    (1_829, 0, 4096, 4 | WRITE, SDA, 0),
    (3_500, 0, 4096, ISSUE | WRITE, SDA, 0),
    (151_000, 16, 16384, QUEUE | READ, SDA, 0),
    (201_000, 128, 8192, QUEUE | WRITE | DISCARD | SYNC, SDA, 0),
    (201_000, 0, 0, QUEUE | WRITE | FLUSH | SYNC, SDA, 8),
    (301_000, 24, 4096, QUEUE | WRITE | FLUSH | FUA | SYNC | META | 1 << 8, SDA, 8),
    (401_000, 0, 36, QUEUE | COMMAND, SDA, 16),
];

/// The binary form and the text that blkparse makes of it are the same requests, in either byte order.
#[test]
fn binary_and_text_of_blktrace_agree() {
    let without_line = |record: &Record| Record { line: 0, ..*record };
    let text = read(include_bytes!("../traces/blkparse.txt")).unwrap();
    let text: Vec<Record> = text.iter().map(without_line).collect();
    for is_big in [false, true] {
        let bytes = blktrace(&EVENTS, is_big);
        let mut reader = reader(&bytes).unwrap();
        assert_eq!(reader.format(), Format::Blktrace);
        let first = reader.next_record().unwrap().unwrap();
        assert_eq!((reader.device(&first), first.line), ("8,0", 2));
        let binary: Vec<Record> = read(&bytes).unwrap().iter().map(without_line).collect();
        assert_eq!(binary, text);
        assert_eq!(read(&gzip(&bytes)).unwrap().len(), text.len());
    }
    assert_eq!(text[4].flags, Flags::PREFLUSH | Flags::FUA | Flags::SYNC | Flags::META);
    let driver: Vec<Event> = EVENTS.into_iter().filter(|event| event.3 & 0xff != QUEUE).collect();
    assert_eq!(read(&blktrace(&driver, false)).unwrap().len(), 1, "taken at the driver");
}

/// In a stream of all CPUs, whose events come by the buffer, requests are in order of time.
#[test]
fn a_stream_of_all_cpus_is_put_in_order() {
    let event = |at: u64| (at, at, 4096, QUEUE | WRITE, SDA, 0);
    let buffers = [0..500_u64, 1_000..1_500, 500..1_000].map(|buffer| buffer.map(event));
    let events: Vec<Event> = buffers.into_iter().flatten().collect();
    let mut reader = reader(&blktrace(&events, false)).unwrap();
    for at in 0..1_500 {
        assert_eq!(reader.next_record().unwrap().unwrap().at.0, at);
        assert_eq!(reader.counts().requests, at + 1, "those that were read ahead do not count");
    }
    assert_eq!((reader.next_record(), reader.counts().disordered), (Ok(None), 0));
}

/// Hostile binary files are errors with the number of the event.
#[test]
fn damaged_events_are_errors() {
    let bytes = blktrace(&EVENTS, false);
    let cut = error(&bytes[..bytes.len() - 1]);
    assert_eq!(cut, "test.trace:9: the event is truncated: 63 of 64 bytes");
    let cut = error(&bytes[..48 + 13 + 20]);
    assert_eq!(cut, "test.trace:2: the event is truncated: 20 of 48 bytes");
    let mut other = bytes.clone();
    other[48 + 13] = 8;
    assert!(error(&other).starts_with("test.trace:2: version 8 of blktrace's format"));
    other[48 + 13 + 3] = 0;
    assert_eq!(error(&other), "test.trace:2: the magic number of an event is missing");
    let far = blktrace(&[(0, u64::MAX, 512, QUEUE | WRITE, SDA, 0)], false);
    assert!(error(&far).starts_with("test.trace:1: sector 18446744073709551615 overflows"));
}

/// Requests of several files come in order of time; of the same time, those of the first file first.
#[test]
fn files_are_merged_by_time() {
    let cpus = [&EVENTS[..3], &EVENTS[3..6], &EVENTS[6..]].map(|events| blktrace(events, false));
    let merged = [2, 0, 1].map(|cpu: usize| reader(&cpus[cpu]).unwrap());
    let merged = merged.into_iter().reduce(|all, one| all.with(one).unwrap()).unwrap();
    assert_eq!(merged.name(), "test.trace and 2 more");
    let key = |record: &Record| (record.at, record.offset_bytes, record.length_bytes);
    let mut whole: Vec<_> = read(&blktrace(&EVENTS, false)).unwrap().iter().map(key).collect();
    whole.sort_unstable();
    let mut records: Vec<_> = all(merged).unwrap().iter().map(key).collect();
    assert!(records.is_sorted_by_key(|(at, ..)| *at));
    records.sort_unstable();
    assert_eq!(records, whole);
    let odd = reader(TEXT.as_bytes()).unwrap().with(reader(&cpus[0]).unwrap()).unwrap_err();
    assert_eq!(
        odd.to_string(),
        "test.trace: its format is blktrace, that of test.trace is disksim"
    );
}

/// An error in one of several files names that file.
#[test]
fn errors_name_the_file_of_several() {
    let named = |name: &str, text: &str| {
        TraceReader::new(name, Cursor::new(text.to_owned()), ReadOptions::default()).unwrap()
    };
    let bad = named("a", TEXT).with(named("b", "1 0 0 8 0\n1 2\n")).unwrap();
    assert_eq!(all(bad).unwrap_err().to_string(), "b:2: block number is missing");
    let mut good = named("a", TEXT).with(named("b", "5 0 0 8 0\n")).unwrap();
    let (_, second) = (good.next_record().unwrap(), good.next_record().unwrap().unwrap());
    assert_eq!(good.error(&second, "x".to_owned()).to_string(), "b:1: x");
    assert_eq!((good.counts().lines, good.devices()), (3, 2));
}

/// Placed one after another, devices keep their order and share no byte.
#[test]
fn devices_are_placed_one_after_another() {
    let layout = reader(TEXT.as_bytes()).unwrap().layout().unwrap();
    let places = layout.places().iter();
    let places: Vec<_> = places.map(|at| (&*at.device, at.start_bytes, at.size_bytes)).collect();
    assert_eq!(places, [("0", 0, 1 << 20), ("1", 1 << 20, 1 << 20)]);
    let placed = all(reader(TEXT.as_bytes()).unwrap().placed(&layout)).unwrap();
    let offsets: Vec<_> = placed.iter().map(|record| record.offset_bytes).collect();
    assert_eq!(offsets, [0, (1 << 20) + 4096, 0]);
    let only = reader(TEXT.as_bytes()).unwrap().only("1").layout().unwrap();
    assert_eq!(only.places().len(), 1, "of the chosen devices");
}

fn written(bytes: &[u8], format: Format) -> (Vec<u8>, LeftOut) {
    let mut reader = reader(bytes).unwrap();
    let mut out = Vec::new();
    let mut writer = TraceWriter::new(&mut out, format).unwrap();
    while let Some(record) = reader.next_record().unwrap() {
        writer.push(&record, reader.device(&record)).unwrap();
    }
    let left_out = writer.finish().unwrap();
    (out, left_out)
}

/// Written in another format and read again, a trace has the same requests for as many devices.
#[test]
fn formats_are_written() {
    let several = "0 0 0 8 0\n1000000 1 8 8 1\n2000000 0 16 32 0\n";
    let describe = |bytes: &[u8]| {
        let mut reader = reader(bytes).unwrap();
        let mut info = Info::default();
        while let Some(record) = reader.next_record().unwrap() {
            info.add(&record);
        }
        let directions = [Read, Write, Trim].map(|direction| info.direction(direction).clone());
        let rest = (info.flushes(), info.duration(), info.footprint_bytes(), info.unaligned());
        (reader.devices(), directions, rest, reader.counts().disordered)
    };
    for source in [several.as_bytes(), include_bytes!("../traces/fio-v3.log")] {
        for format in WRITABLE {
            let (bytes, left_out) = written(source, format);
            assert_eq!(Format::recognise(&bytes), Some(format));
            let lost = format == Format::Msr && source != several.as_bytes();
            assert_eq!(left_out.requests, if lost { 2 } else { 0 }, "a trim and a flush");
            if !lost {
                assert_eq!(describe(&bytes), describe(source), "{format}");
            }
        }
    }
    let blkparse = include_bytes!("../traces/blkparse.txt");
    let same = |record: &Record| Record { line: 0, ..*record };
    let again = read(&written(blkparse, Format::Blkparse).0).unwrap();
    let first = read(blkparse).unwrap();
    assert_eq!(
        again.iter().map(same).collect::<Vec<_>>(),
        first.iter().map(same).collect::<Vec<_>>(),
        "blkparse keeps flags and nanoseconds"
    );
    assert_eq!(first[3].action, Action::Flush);
    let odd = "1,a b,0,Read,100,1000,0\n2,\u{e9},1,Write,0,512,0\n";
    assert_eq!(written(odd.as_bytes(), Format::Blkparse).1.rounded, 1);
    let fio = String::from_utf8(written(odd.as_bytes(), Format::FioV3).0).unwrap();
    assert!(fio.contains("0 a_b,0 add\n0 a_b,0 open\n0 a_b,0 read 100 1000\n"), "{fio}");
}

/// fio replays the logs that are written for it, request by request.
#[test]
fn fio_replays_converted_logs() {
    let text = "0 0 0 8 0\n1000000 1 8 8 1\n2000000 0 16 33 0\n3000000 1 0 1 1\n";
    for format in [Format::FioV2, Format::FioV3] {
        let Some(mut fio) = fio() else { return };
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("converted-{format}.log"));
        std::fs::write(&path, written(text.as_bytes(), format).0).unwrap();
        let log = format!("--read_iolog={}", path.display());
        let fixed = ["--name=x", "--ioengine=null", "--replay_redirect=null", "--size=1g"];
        let fixed = fixed.into_iter().chain(["--replay_no_stall=1", "--output-format=terse"]);
        let output = fio.arg(&log).args(fixed).output().unwrap();
        let terse = String::from_utf8(output.stdout).unwrap();
        let fields: Vec<&str> = terse.trim().split(';').collect();
        // Terse version 3: the error, then KiB read, and 41 fields later KiB written.
        assert_eq!((fields[4], fields[5], fields[46]), ("0", "4", "20"), "{format}: {terse}");
        std::fs::remove_file(path).unwrap();
    }
}

proptest! {
    /// Whatever bytes follow a magic number, reading ends with requests or an error.
    #[test]
    fn no_bytes_panic(
        magic in prop::sample::select(vec![
            &b"\x07taf"[..], b"ea\x74\x07", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", SKIPPABLE, b"",
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = [magic, &bytes].concat();
        if let Err(error) = read(&bytes) {
            prop_assert!(error.to_string().starts_with("test.trace:"));
        }
    }

    /// Nor do damaged files of which the beginning is whole.
    #[test]
    fn no_damage_panics(which in 0..3_usize, at in 0..200_usize, flip in 1..=255_u8, cut in 0..64_usize) {
        let whole = blktrace(&EVENTS, false);
        let mut bytes = [whole.clone(), gzip(&whole), zstd(&whole)][which].clone();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        bytes.truncate(bytes.len().saturating_sub(cut));
        if let Err(error) = read(&bytes) {
            prop_assert!(error.to_string().starts_with("test.trace"));
        }
    }

    /// Nor damaged lines of any format of CSV, read as any.
    #[test]
    fn no_csv_panics(
        format in prop::sample::select(&Format::ALL[..]),
        lines in prop::collection::vec("([0-9]{0,21}|[RrWw]|[0-9]{1,12}\\.[0-9]{0,12}|.{0,3})(,([0-9]{0,21}|[RW]|0|1)){2,7}", 1..5),
    ) {
        let options = ReadOptions { format: Some(format), skip_bad_lines: 2 };
        let input = Cursor::new(lines.join("\n").into_bytes());
        if let Ok(reader) = TraceReader::new("test.trace", input, options)
            && let Ok(layout) = reader.layout()
        {
            prop_assert!(layout.places().len() <= lines.len());
        }
    }
}
