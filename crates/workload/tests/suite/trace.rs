//! Reading traces: each format's lines mean what they should, bad ones are reported with file and line,
//! no text makes the reader panic, and totals agree with an independent computation.

use crate::common;

use common::TestDevice;
use nandscape_block::Flags;
use nandscape_workload::Direction::{self, Read, Trim, Write};
use nandscape_workload::engine::{NoProbe, Options, RunState};
use nandscape_workload::replay::{Pace, Replay, ReplayOptions};
use nandscape_workload::trace::{
    Action, Format, Info, ReadCounts, ReadOptions, Record, TraceError, TraceReader,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::{BufReader, Cursor, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A trace as its name, its format and its content.
const SAMPLES: [(&str, Format, &str); 10] = [
    ("fio-v2.log", Format::FioV2, include_str!("../traces/fio-v2.log")),
    ("fio-v3.log", Format::FioV3, include_str!("../traces/fio-v3.log")),
    ("blkparse.txt", Format::Blkparse, include_str!("../traces/blkparse.txt")),
    ("msr.csv", Format::Msr, include_str!("../traces/msr.csv")),
    ("alibaba.csv", Format::Alibaba, include_str!("../traces/alibaba.csv")),
    ("tencent.csv", Format::Tencent, include_str!("../traces/tencent.csv")),
    ("systor17.csv", Format::Systor17, include_str!("../traces/systor17.csv")),
    ("financial.spc", Format::Spc, include_str!("../traces/financial.spc")),
    ("disksim.trace", Format::DiskSim, include_str!("../traces/disksim.trace")),
    ("mqsim.trace", Format::DiskSim, include_str!("../traces/mqsim.trace")),
];

fn reader(text: &str, options: ReadOptions) -> Result<TraceReader, TraceError> {
    TraceReader::new("test.trace", Cursor::new(text.to_owned()), options)
}

/// Everything in a trace, or the first error.
fn read(text: &str, options: ReadOptions) -> Result<(Vec<Record>, ReadCounts), TraceError> {
    let mut reader = reader(text, options)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok((records, reader.counts()))
}

fn as_format(format: Format) -> ReadOptions {
    ReadOptions { format: Some(format), ..ReadOptions::default() }
}

/// The requests of a sample: time in ns, direction (none for a flush), offset, length.
fn requests(name: &str) -> Vec<(u64, Option<Direction>, u64, u64)> {
    let (_, _, text) = SAMPLES.into_iter().find(|sample| sample.0 == name).unwrap();
    let (records, _) = read(text, ReadOptions::default()).unwrap();
    let row = |record: &Record| {
        let direction = match record.action {
            Action::Io(direction) => Some(direction),
            Action::Flush => None,
        };
        (record.at.0, direction, record.offset_bytes, record.length_bytes)
    };
    records.iter().map(row).collect()
}

/// The same four requests, as three tools write them.
#[test]
fn fio_and_blkparse_lines_mean_what_they_say() {
    let expected = [
        (0, Some(Write), 0, 4096),
        (150_000, Some(Read), 8192, 16384),
        (200_000, Some(Trim), 65536, 8192),
        (200_000, None, 0, 0),
    ];
    assert_eq!(requests("fio-v2.log"), expected);
    assert_eq!(requests("fio-v3.log"), expected);
    let blkparse = requests("blkparse.txt");
    assert_eq!(blkparse[..4], expected);
    assert_eq!(blkparse[4..], [(300_000, Some(Write), 12288, 4096)], "the summary ends the trace");
}

#[test]
fn csv_and_disksim_lines_mean_what_they_say() {
    let expected = [
        (0, Some(Write), 0, 4096),
        (150_000, Some(Read), 8192, 16384),
        (200_000, Some(Write), 7_014_609_920, 24576),
    ];
    for name in ["msr.csv", "alibaba.csv", "systor17.csv", "financial.spc"] {
        assert_eq!(requests(name), expected, "{name}");
    }
    let mut whole_seconds = expected;
    (whole_seconds[1].0, whole_seconds[2].0) = (0, 2_000_000_000);
    assert_eq!(requests("tencent.csv"), whole_seconds);
    let begin = [
        (0, Some(Write), 0, 4096),
        (150_000, Some(Read), 8192, 16384),
        (200_000, Some(Write), 65536, 8192),
    ];
    assert_eq!(requests("disksim.trace")[..3], begin, "times with a point are milliseconds");
    assert_eq!(requests("disksim.trace")[3], (12_000_001, Some(Read), 512, 512));
    assert_eq!(requests("mqsim.trace")[..3], begin, "times without one are nanoseconds");
}

/// An F before the direction orders, one behind it makes durable.
#[test]
fn blkparse_flags_are_kept() {
    let (records, _) = read(SAMPLES[2].2, ReadOptions::default()).unwrap();
    let journal = records.last().unwrap().flags;
    assert_eq!(journal, Flags::PREFLUSH | Flags::FUA | Flags::SYNC | Flags::META);
    assert_eq!(records[0].flags, Flags::NONE);
}

/// A trace taken at the driver alone has no queue events; then those of the driver count.
#[test]
fn blkparse_without_queue_events_is_read_at_the_driver() {
    let issued = SAMPLES[2].2.replace("  Q ", "  I ");
    let (records, _) = read(&issued, ReadOptions::default()).unwrap();
    assert_eq!(records.iter().map(|record| record.line).collect::<Vec<_>>(), [4]);
}

#[test]
fn formats_are_recognised() {
    for (name, format, text) in SAMPLES {
        assert_eq!(Format::recognise(text.as_bytes()), Some(format), "{name}");
        let named = read(text, as_format(format));
        assert_eq!(named, read(text, ReadOptions::default()), "{name}");
    }
    for none in ["\n\n", "hello\n", "fio version 1 iolog\n", "1 2 3\n", "1,2,3,4,5\n"] {
        let error = read(none, ReadOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with("test.trace: unrecognized trace format; specify"), "{error}");
    }
    let error = read("", ReadOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "test.trace: the file is empty");
}

/// Columns are recognised by their names, too, in any case.
#[test]
fn headers_are_recognised() {
    for (header, format) in [
        ("Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime", Format::Msr),
        ("device_id, opcode, offset, length, timestamp", Format::Alibaba),
        ("timestamp,offset,size,iotype,volumeid", Format::Tencent),
        ("Timestamp,Response,IOType,LUN,Offset,Size", Format::Systor17),
    ] {
        assert_eq!(Format::recognise(header.as_bytes()), Some(format));
        assert_eq!(read(header, ReadOptions::default()).unwrap().0, [], "{header}");
    }
}

/// A malformed line is reported with file, line and field.
#[test]
fn errors_name_file_and_line() {
    let cases = [
        (Format::Alibaba, "1,T,0,1,1\n", "test.trace:1: opcode \"T\" is neither R nor W"),
        (Format::Alibaba, "1,R,0,1\n", "test.trace:1: timestamp is missing"),
        (
            Format::Alibaba,
            "1,R,0,1,99999999999999999\n",
            "test.trace:1: time \"99999999999999999\"",
        ),
        (Format::Tencent, "1,0,8,2,5\n", "test.trace:1: IOType \"2\" is neither 0 nor 1"),
        (
            Format::Tencent,
            "1,36028797018963968,8,1,5\n",
            "test.trace:1: Offset 36028797018963968 o",
        ),
        (Format::Systor17, "1.5,0,R,x,0,1\n", "test.trace:1: LUN \"x\": invalid digit"),
        (Format::Systor17, "1.5,0,R,0,0,1,1\n", "test.trace:1: \"1\" after the last field"),
        (Format::Spc, "0,1,8,R\n", "test.trace:1: timestamp is missing"),
        (Format::Spc, "0,1,8,R,1e3\n", "test.trace:1: time \"1e3\": invalid digit"),
        (Format::FioV2, "a b\n", "test.trace:1: unknown action \"b\""),
        (Format::FioV2, "\na read 0\n", "test.trace:2: length is missing"),
        (Format::FioV2, "a read 0 0\n", "test.trace:1: a read of 0 bytes"),
        (Format::FioV2, "a open 1\n", "test.trace:1: \"1\" after the last field"),
        (Format::FioV3, "1 a wait 10 0\n", "test.trace:1: unknown action \"wait\""),
        (Format::FioV3, "-1 a read 0 1\n", "test.trace:1: time \"-1\": invalid digit"),
        (Format::FioV3, "1 a trim 18446744073709551615 1\n", "test.trace:1: offset 1844674407370"),
        (Format::Blkparse, "8 0 1 0.0 1 Q W 0 + 8\n", "test.trace:1: \"8\" is no major,minor"),
        (Format::Blkparse, "8,0 0 1 0.x 1 Q W 0 + 8\n", "test.trace:1: time \"0.x\": no decimal"),
        (Format::Blkparse, "8,0 0 1 0.0 1 Q W 0 - 8\n", "test.trace:1: \"-\" where + was expected"),
        (Format::Blkparse, "8,0 0 1 0.0 1 Q W [x]\n", "test.trace:1: the sectors are missing"),
        (Format::Msr, "1,a,0,Trim,0,1,0\n", "test.trace:1: type \"Trim\" is neither"),
        (Format::Msr, "1,a,b,Read,0,1,0\n", "test.trace:1: host or disk number is missing"),
        (Format::Msr, "1,a,0,Read,0,99999999999,0\n", "test.trace:1: a read of 99999999999 bytes"),
        (Format::DiskSim, "1 0 8 8 1\n1 0 8\n", "test.trace:2: size is missing"),
        (Format::DiskSim, "1 0 8 8 1 9\n", "test.trace:1: \"9\" after the last field"),
        (Format::DiskSim, "1 0 8 8 w\n", "test.trace:1: flags \"w\": invalid digit"),
        (Format::DiskSim, "1 0 99999999999999999999 8 1\n", "test.trace:1: block number"),
        (Format::DiskSim, "1 0 36028797018963968 8 1\n", "test.trace:1: block number"),
    ];
    for (format, text, expected) in cases {
        let error = read(text, as_format(format)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
    let long = format!("1 0 {} 8 1\n", "9".repeat(1 << 17));
    let error = read(&long, as_format(Format::DiskSim)).unwrap_err().to_string();
    assert_eq!(error, "test.trace:1: the line is longer than 65536 bytes");
}

/// As many bad lines are left out as was said, and not one more.
#[test]
fn bad_lines_are_skipped_up_to_a_bound() {
    let text = "1 0 8 8 1\nbad\n2 0 8 8 1\nworse\n3 0 8 8 1\n";
    let skipping = |skip_bad_lines| read(text, ReadOptions { skip_bad_lines, format: None });
    let (records, counts) = skipping(2).unwrap();
    assert_eq!((records.len(), counts.malformed_lines, counts.lines), (3, 2, 5));
    let error = skipping(1).unwrap_err().to_string();
    assert!(error.starts_with("test.trace:4: time \"worse\""), "{error}");
    assert!(error.ends_with("(1 bad lines were skipped before)"), "{error}");
}

/// Times begin with the first request and never go back.
#[test]
fn disorder_is_counted_and_put_right() {
    let text = "500 0 8 8 1\n700 0 8 8 1\n600 0 8 8 1\n100 0 8 8 1\n900 0 8 8 1\n";
    let (records, counts) = read(text, ReadOptions::default()).unwrap();
    let times: Vec<u64> = records.iter().map(|record| record.at.0).collect();
    assert_eq!(times, [0, 200, 200, 200, 400]);
    assert_eq!(counts.disordered, 2);
}

/// A trace is never in memory as a whole: of an endless one, little more than the head is read.
#[test]
fn reading_streams() {
    let endless = std::io::repeat(b'\n').take(1 << 40);
    let input = Cursor::new("1 0 8 8 1\n2 0 8 8 1\n").chain(BufReader::new(endless));
    let mut reader = TraceReader::new("endless", input, ReadOptions::default()).unwrap();
    for _ in 0..2 {
        assert!(reader.next_record().unwrap().is_some());
    }
    assert_eq!(reader.counts().bytes, 20);
}

fn info(path: &Path) -> Info {
    let mut reader = TraceReader::open(path, ReadOptions::default()).unwrap();
    let mut info = Info::default();
    while let Some(record) = reader.next_record().unwrap() {
        info.add(&record);
    }
    info
}

/// Our own DiskSim samples, and those that MQSim publishes (tests/traces/mqsim/LICENSE).
fn disksim_files() -> Vec<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = ["mqsim.trace", "disksim.trace"].map(|name| manifest.join("tests/traces").join(name));
    let published = manifest.join("tests/traces/mqsim");
    let published = ["tpcc-small.trace", "wsrch-small.trace"].map(|name| published.join(name));
    own.into_iter().chain(published).collect()
}

/// Reads, writes, bytes read, bytes written, and distinct sectors of 4 KiB.
const AWK: &str =
    "{ read = $5 % 2; n[read]++; bytes[read] += $4 * 512; last = int(($3 + $4 - 1) / 8)
    for (s = int($3 / 8); s <= last; s++) sectors[s] = 1 }
    END { for (s in sectors) count++;
    printf \"%.0f %.0f %.0f %.0f %.0f\\n\", n[1], n[0], bytes[1], bytes[0], count * 4096 }";

/// Counts, bytes and footprint are those that awk computes.
#[test]
fn totals_agree_with_awk() {
    for path in disksim_files() {
        let Ok(output) = Command::new("awk").arg(AWK).arg(&path).output() else { return };
        let printed = String::from_utf8(output.stdout).unwrap();
        let expected: Vec<u64> = printed.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let info = info(&path);
        let (read, write) = (info.direction(Read), info.direction(Write));
        let [footprint, ..] = info.footprint_bytes();
        let got = [read.requests, write.requests, read.bytes, write.bytes, footprint];
        assert_eq!(got, expected[..], "{}", path.display());
    }
}

/// A replay touches exactly the sectors that make up the footprint, and counts every request.
#[test]
fn replays_cover_the_footprint() {
    for path in disksim_files() {
        let info = info(&path);
        let mut device = TestDevice::new(info.end_bytes().div_ceil(4096));
        let reader = TraceReader::open(&path, ReadOptions::default()).unwrap();
        let how = ReplayOptions { pace: Pace::Timed(1.0), iodepth: 32, fold: false, runtime: None };
        let caps = device.caps.clone();
        let mut replay = Replay::new(reader, &caps, how, &Options::default()).unwrap();
        while replay.run_for(&mut device, &mut NoProbe, 1_000).unwrap() == RunState::Paused {}
        let job = &replay.finish().0.jobs[0];
        for direction in Direction::ALL {
            assert_eq!(job.direction(direction).ios, info.direction(direction).requests);
        }
        let bios = device.log.iter().map(|(_, bio)| bio);
        let touched: BTreeSet<u64> =
            bios.flat_map(|bio| bio.lba.0..bio.lba.0 + u64::from(bio.sectors)).collect();
        assert_eq!(touched.len() as u64 * 4096, info.footprint_bytes()[0], "{}", path.display());
    }
}

/// One device of several is taken by its name, and a name that is not there is refused with those that are.
#[test]
fn one_device_of_several() {
    let disksim = "0 0 0 8 0\n10 1 8 8 0\n20 0 0 16 1\n";
    let msr = "1,usr,0,Write,0,4096,1\n2,usr,1,Read,0,4096,1\n3,src,1,Read,0,8192,1\n";
    let count = |text: &str, device: &str| {
        let mut reader = reader(text, ReadOptions::default()).unwrap().only(device);
        let mut requests = 0;
        while reader.next_record()?.is_some() {
            requests += 1;
        }
        assert_eq!(reader.counts().requests, requests);
        Ok::<_, nandscape_workload::trace::TraceError>((requests, reader.devices()))
    };
    assert_eq!(count(disksim, "0"), Ok((2, 1)));
    assert_eq!(count(disksim, "1"), Ok((1, 1)));
    assert_eq!((count(msr, "0"), count(msr, "1")), (Ok((1, 1)), Ok((2, 2))));
    assert_eq!(count(msr, "src,1"), Ok((1, 1)));
    let error = count(msr, "7").unwrap_err().to_string();
    let expected = "no request of the chosen devices; it has: src,1; usr,0; usr,1";
    assert!(error.contains(expected), "{error}");
    let numbers = "0 10 0 8 0\n1 9 0 8 0\n2 1 0 8 0\n";
    let error = count(numbers, "7").unwrap_err().to_string();
    assert!(error.ends_with("it has: 1; 9; 10"), "numbers are in order: {error}");
}

/// What `info` says of a trace small enough to be counted by hand.
#[test]
fn info_describes() {
    let text = "0 0 0 8 0\n10 0 8 8 0\n30 0 0 16 0\n40 0 0 1 1\n90 0 1 16 1\n";
    let mut reader = reader(text, ReadOptions::default()).unwrap();
    let mut info = Info::default();
    while let Some(record) = reader.next_record().unwrap() {
        info.add(&record);
    }
    let (read, write) = (info.direction(Read), info.direction(Write));
    assert_eq!((write.requests, write.sequential, write.min_bytes), (3, 1, 4096));
    assert_eq!((read.requests, read.sequential, read.max_bytes), (2, 1, 8192));
    assert_eq!(
        (write.sizes[..3].to_vec(), read.sizes[..3].to_vec()),
        (vec![2, 1, 0], vec![1, 1, 0])
    );
    assert_eq!(info.footprint_bytes(), [3 * 4096, 3 * 4096, 2 * 4096]);
    assert_eq!((info.unaligned(), info.end_bytes(), info.duration().0), (2, 17 * 512, 90));
    let updates = info.update_intervals();
    assert_eq!((updates.count(), updates.min().0, updates.max().0), (2, 20, 30));
}

proptest! {
    /// Whatever a file holds, reading ends with requests or an error that names a line.
    #[test]
    fn no_text_panics(text in "(?s).{0,200}", format in 0..11_usize, skip_bad_lines in 0..4_u64) {
        let format = Format::ALL.get(format).copied();
        if let Err(error) = read(&text, ReadOptions { format, skip_bad_lines }) {
            prop_assert!(error.to_string().starts_with("test.trace:"));
        }
    }

    /// Nor does a valid trace in which some fields were replaced.
    #[test]
    fn no_change_of_a_field_panics(
        sample in 0..SAMPLES.len(),
        at in 0..60_usize,
        field in "[0-9]{1,22}|[-+.,A-Za-z]{0,6}|\u{ff}",
    ) {
        let (_, format, text) = SAMPLES[sample];
        let mut fields: Vec<&str> = text.split_inclusive([' ', ',', '\n']).collect();
        let replaced = format!("{field} ");
        let at = at % fields.len();
        fields[at] = &replaced;
        let options = ReadOptions { format: Some(format), skip_bad_lines: 1 };
        if let Ok((records, _)) = read(&fields.concat(), options) {
            let mut info = Info::default();
            records.iter().filter(|r| r.length_bytes < 1 << 24).for_each(|r| info.add(r));
        }
    }
}
