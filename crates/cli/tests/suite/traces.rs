//! `nandscape trace` on files as people have them: compressed, several, of several devices, converted.

use crate::common;

use common::{Folder, err, out};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::io::Write;

/// Two devices of which the addresses overlap, and a write of a part of a sector.
const TRACE: &str = "0 2 0 8 0\n1000000 10 0 8 1\n2000000 2 16 8 0\n3000000 10 1 2 0\n";

fn json(folder: &Folder, args: &[&str]) -> Value {
    let output = folder.command(args).args(["--output-format", "json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    serde_json::from_str(&out(&output)).unwrap()
}

fn described(folder: &Folder, files: &[&str], more: &[&str]) -> Value {
    json(folder, &[&["trace", "info"], files, more].concat())
}

/// What is said of a trace but its file and format.
fn content(mut info: Value) -> Value {
    info["file"] = Value::Null;
    info["format"] = Value::Null;
    info
}

/// Converted, a trace is described as it was, compressed or not, and whether its devices are merged first.
#[test]
fn a_converted_trace_is_described_as_before() {
    let folder = Folder::new("trace-convert");
    folder.write("t.trace", TRACE);
    for to in ["fio-v3", "fio-v2", "msr", "blkparse"] {
        for (output, more) in [("plain", &[][..]), ("packed.gz", &[]), ("merged", &["--merge"])] {
            let args = ["trace", "convert", "t.trace", "--to", to, "--output", output];
            let converted = folder.command(&args).args(more).output().unwrap();
            assert_eq!(converted.status.code(), Some(0), "{}", err(&converted));
            assert!(converted.stdout.is_empty() && converted.stderr.is_empty());
            let (mut before, mut after) =
                (described(&folder, &["t.trace"], more), described(&folder, &[output], &[]));
            assert_eq!(after["format"], to);
            if output == "merged" {
                assert_eq!((&before["devices"], &after["devices"]), (&2.into(), &1.into()));
                before["devices"] = 1.into();
                before["layout"].take();
            }
            after["layout"].take();
            assert_eq!(content(after), content(before), "{to} {output}");
        }
    }
    let packed = std::fs::read(folder.0.join("packed.gz")).unwrap();
    assert_eq!(packed[..2], [0x1f, 0x8b], "compressed by the name");
}

/// Times are scaled and cut, one device is taken, and what a format cannot hold is said.
#[test]
fn a_part_of_a_trace_is_converted() {
    let folder = Folder::new("trace-part");
    folder.write("t.trace", TRACE);
    let convert = |more: &[&str]| {
        let output = folder.command(&["trace", "convert"]).args(more).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        (out(&output), err(&output))
    };
    let part = ["t.trace", "--to", "msr", "--scale", "0.5", "--runtime", "1500us"];
    let expected = "0,host,2,Write,0,4096,0\n5000,host,10,Read,0,4096,0\n\
                    10000,host,2,Write,8192,4096,0\n";
    assert_eq!(convert(&part), (expected.to_owned(), String::new()));
    let (text, _) = convert(&["t.trace", "--to", "fio-v3", "--device", "10"]);
    assert!(text.contains("\n0 10 read 0 4096\n2000 10 write 512 1024\n"), "{text}");
    folder.write("f.log", "fio version 3 iolog\n0 a trim 0 4096\n1 a sync 0 0\n2 a read 1 1\n");
    let lost = "nandscape: 2 requests left out: msr has no trims and no flushes\n";
    assert_eq!(convert(&["f.log", "--to", "msr"]).1, lost);
    let rounded = "nandscape: 1 request rounded out to the 512-byte sectors of blkparse\n";
    assert_eq!(convert(&["f.log", "--to", "blkparse"]).1, rounded);
}

/// Several files, compressed or not, are one trace in order of time, and replay as the whole does.
#[test]
fn files_are_one_trace() {
    let folder = Folder::new("trace-files");
    let lines: Vec<&str> = TRACE.split_inclusive('\n').collect();
    folder.write("whole.trace", TRACE);
    folder.write("even.trace", &[lines[0], lines[2]].concat());
    let mut odd = GzEncoder::new(Vec::new(), Compression::default());
    odd.write_all([lines[1], lines[3]].concat().as_bytes()).unwrap();
    std::fs::write(folder.0.join("odd.trace.gz"), odd.finish().unwrap()).unwrap();
    let parts = ["odd.trace.gz", "even.trace"];
    let whole = content(described(&folder, &["whole.trace"], &[]));
    assert_eq!(content(described(&folder, &parts, &[])), whole);
    let replayed = |files: &[&str]| {
        let args = [&["trace", "run"], files, &["--stack", "small.toml", "--merge"]].concat();
        let mut result = json(&folder, &args);
        (result["jobs"][0]["write"].take(), result["nandscape"]["trace"].take())
    };
    assert_eq!(replayed(&parts), replayed(&["whole.trace"]));
    let (write, trace) = replayed(&["whole.trace"]);
    assert_eq!((&write["io_bytes"], &trace["merged"]), (&(2 * 4096 + 1024).into(), &true.into()));
    assert_eq!((&trace["issued_bytes"]["write"], &trace["rmw_reads"]), (&12288.into(), &1.into()));
    let again =
        folder.run(&["trace", "run", "even.trace", "odd.trace.gz", "--stack", "small.toml"]);
    let text = out(&again);
    for expected in [
        "trace run even.trace odd.trace.gz --stack small.toml --seed 1",
        "2 devices share one address space",
        "1 unaligned, rounded out to 4 KiB (+3.00 KiB): ",
        "; 1 read of 4 KiB for read-modify-write",
    ] {
        assert!(text.contains(expected), "{expected} in:\n{text}");
    }
}

/// Devices are placed one after another if asked for, and listed with their places.
#[test]
fn devices_are_merged() {
    let folder = Folder::new("trace-merge");
    folder.write("t.trace", TRACE);
    let text = out(&folder.run(&["trace", "info", "t.trace"]));
    assert!(text.contains("note: 2 devices share one address space"), "{text}");
    let text = out(&folder.run(&["trace", "info", "t.trace", "--merge"]));
    assert!(text.contains("  2 devices placed one after another:\n"), "{text}");
    assert!(text.contains("    2            1.00 MiB from 0 B\n"), "{text}");
    let merged = described(&folder, &["t.trace"], &["--merge"]);
    let expected = serde_json::json!([
        { "device": "2", "start_bytes": 0, "size_bytes": 1 << 20 },
        { "device": "10", "start_bytes": 1 << 20, "size_bytes": 1 << 20 },
    ]);
    assert_eq!(merged["layout"], expected);
    assert_eq!(merged["end_bytes"], (1 << 20) + 4096);
    let one = described(&folder, &["t.trace"], &["--device", "2", "--merge"]);
    assert_eq!((&one["devices"], &one["requests"]), (&1.into(), &2.into()));
}

/// What cannot be read is bad input, which the error describes.
#[test]
fn unreadable_files_are_bad_input() {
    let folder = Folder::new("trace-bad");
    folder.write("empty", "");
    folder.write("t.trace", TRACE);
    folder.write("other.csv", "1,R,0,4096,5\n");
    std::fs::write(folder.0.join("t.xz"), b"\xfd7zXZ\0\0\x04").unwrap();
    std::fs::write(folder.0.join("cut.gz"), b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01").unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["empty"], "nandscape: empty: the file is empty\n"),
        (&["t.xz"], "t.xz: the file is xz-compressed: decompress it first (xz -dc)\n"),
        (&["cut.gz"], "cut.gz: damaged or truncated gzip data: "),
        (&["job.fio"], "job.fio: unrecognized trace format; specify it with --format (fio-v2, "),
        (&["t.trace", "other.csv"], "other.csv: its format is alibaba, that of t.trace is disksim"),
        (&["-", "-"], "standard input is named twice"),
        (&["-", "--merge"], "--merge: a trace on standard input or in a pipe cannot be read twice"),
        (&["t.trace", "--device", "7"], "t.trace: no request of the chosen devices; it has: 2; 10"),
    ];
    for (args, expected) in cases {
        let output = folder.command(&["trace", "info"]).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(err(&output).contains(expected), "{args:?}: {}", err(&output));
    }
    let same = ["trace", "convert", "t.trace", "--to", "msr", "--output", "t.trace"];
    assert_eq!(folder.run(&same).status.code(), Some(2), "a file that is read");
    assert_eq!(std::fs::read_to_string(folder.0.join("t.trace")).unwrap(), TRACE);
}
