//! `nandscape trace info`: what a block trace is like, as text and as JSON.

use super::source::Source;
use crate::args::{OutputFormat, TraceInfoArgs};
use crate::output::{Failure, pretty};
use crate::replace::deliver;
use crate::summary::{bytes, count, latencies, time};
use crate::writable::expect_writable;
use nandscape_lab::SECTOR_BYTES;
use nandscape_lab::workload::Direction;
use nandscape_lab::workload::latency::Latencies;
use nandscape_lab::workload::trace::{DirectionInfo, Info, Layout, SIZE_CLASSES, TraceReader};
use nandscape_rt::words::{counted, grouped};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;

/// Percentiles of rewrite intervals.
const PERCENTILES: [f64; 5] = [10.0, 50.0, 90.0, 99.0, 99.9];
/// Devices of which text has the places.
const LISTED_MAX: usize = 16;

/// Describes a trace.
pub(super) fn info(args: &TraceInfoArgs) -> Result<(), Failure> {
    expect_writable([args.output.file()], args.trace.files.iter().map(PathBuf::as_path))?;
    let source = Source::of(&args.trace)?;
    let mut reader = source.open()?;
    let mut info = Info::default();
    while let Some(record) = reader.next_record().map_err(Failure::input)? {
        info.add(&record);
    }
    let text = match args.output.output_format {
        OutputFormat::Normal => description(&reader, &info, source.layout.as_ref()),
        OutputFormat::Json => pretty(&to_json(&reader, &info, source.layout.as_ref()))?,
    };
    deliver(&text, args.output.file())
}

fn to_json(reader: &TraceReader, info: &Info, layout: Option<&Layout>) -> Value {
    let counts = reader.counts();
    let [all, read, write] = info.footprint_bytes();
    json!({
        "file": reader.name(),
        "format": reader.format().name(),
        "requests": info.requests(),
        "flushes": info.flushes(),
        "devices": reader.devices(),
        "layout": layout.map(layout_json),
        "duration_s": info.duration().as_secs_f64(),
        "end_bytes": info.end_bytes(),
        "footprint_bytes": { "all": all, "read": read, "write": write },
        "unaligned": info.unaligned(),
        "out_of_order": counts.disordered,
        "malformed_lines": counts.malformed_lines,
        "read": direction_json(info.direction(Direction::Read)),
        "write": direction_json(info.direction(Direction::Write)),
        "trim": direction_json(info.direction(Direction::Trim)),
        "update_interval_ns": intervals_json(info.update_intervals()),
    })
}

fn layout_json(layout: &Layout) -> Vec<Value> {
    let places = layout.places().iter();
    let place = places.map(|place| {
        json!({
            "device": place.device,
            "start_bytes": place.start_bytes,
            "size_bytes": place.size_bytes,
        })
    });
    place.collect()
}

fn direction_json(direction: &DirectionInfo) -> Value {
    let sizes = direction.sizes.iter().enumerate();
    let sizes = sizes.map(|(class, n)| json!({ "max_bytes": class_bytes(class), "requests": n }));
    json!({
        "requests": direction.requests,
        "bytes": direction.bytes,
        "min_bytes": direction.min_bytes,
        "mean_bytes": direction.mean_bytes(),
        "max_bytes": direction.max_bytes,
        "sequential": direction.sequential,
        "sizes": sizes.collect::<Vec<_>>(),
    })
}

/// The largest size of a class; `None` for the last, which has no end.
fn class_bytes(class: usize) -> Option<u64> {
    (class + 1 < SIZE_CLASSES).then(|| SECTOR_BYTES << class)
}

fn intervals_json(intervals: &Latencies) -> Value {
    let rank = intervals.percentiles();
    let at = |percent: f64| rank(percent / 100.0).map(|ns| ns.0);
    let ranks = PERCENTILES.map(|percent| (format!("{percent:.6}"), at(percent).into()));
    json!({
        "N": intervals.count(),
        "min": intervals.min().0,
        "max": intervals.max().0,
        "mean": intervals.mean_ns(),
        "percentile": Value::Object(ranks.into_iter().filter(|_| intervals.count() > 0).collect()),
    })
}

fn description(reader: &TraceReader, info: &Info, layout: Option<&Layout>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = describe(&mut text, reader, info, layout);
    text
}

fn describe(
    out: &mut String,
    reader: &TraceReader,
    info: &Info,
    layout: Option<&Layout>,
) -> std::fmt::Result {
    let seconds = info.duration().as_secs_f64();
    let requests = info.requests();
    let rate = |requests: u64| match seconds > 0.0 {
        true => format!(" ({} IOPS)", count(requests as f64 / seconds)),
        false => String::new(),
    };
    writeln!(
        out,
        "{}: {}, {}, {} in {}{}\n",
        reader.name(),
        reader.format(),
        counted(requests, ["request", "requests"]),
        counted(info.flushes(), ["flush", "flushes"]),
        time(info.duration()),
        rate(requests)
    )?;
    for direction in Direction::ALL {
        describe_direction(out, direction, info.direction(direction), requests)?;
    }
    let [all, read, write] = info.footprint_bytes().map(|sum| bytes(sum as f64));
    let end = bytes(info.end_bytes() as f64);
    writeln!(
        out,
        "\n  footprint      {all} in distinct 4 KiB sectors: {read} read, {write} written"
    )?;
    writeln!(out, "  address range  {end} (on a smaller device: use --fold)")?;
    let updates = info.update_intervals();
    if updates.count() > 0 {
        let sectors = counted(updates.count(), ["sector", "sectors"]);
        writeln!(out, "  rewrites       {sectors}")?;
        writeln!(out, "                 interval {}", latencies(updates))?;
    }
    describe_devices(out, reader, layout)?;
    describe_oddities(out, reader, info)
}

/// Where the devices are, or that they share addresses.
fn describe_devices(
    out: &mut String,
    reader: &TraceReader,
    layout: Option<&Layout>,
) -> std::fmt::Result {
    let devices = counted(reader.devices(), ["device", "devices"]);
    let Some(layout) = layout else {
        return match reader.devices() {
            0 | 1 => Ok(()),
            _ => writeln!(
                out,
                "  note: {devices} share one address space (--device selects one, --merge places \
                 them one after another)"
            ),
        };
    };
    writeln!(out, "  {devices} placed one after another:")?;
    for place in layout.places().iter().take(LISTED_MAX) {
        let [start, size] = [place.start_bytes, place.size_bytes].map(|n| bytes(n as f64));
        writeln!(out, "    {:<12} {size} from {start}", place.device)?;
    }
    match layout.places().len().saturating_sub(LISTED_MAX) {
        0 => Ok(()),
        more => writeln!(out, "    and {} more", grouped(more as u64)),
    }
}

fn describe_direction(
    out: &mut String,
    direction: Direction,
    info: &DirectionInfo,
    requests: u64,
) -> std::fmt::Result {
    if info.requests == 0 {
        return Ok(());
    }
    let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
    writeln!(
        out,
        "  {:<6} {} ({:.1} %), {}, {:.1} % sequential; mean {}, {} to {}",
        direction.name(),
        grouped(info.requests),
        share(info.requests, requests),
        bytes(info.bytes as f64),
        share(info.sequential, info.requests),
        bytes(info.mean_bytes()),
        bytes(info.min_bytes as f64),
        bytes(info.max_bytes as f64)
    )?;
    let used = info.sizes.iter().enumerate().filter(|(_, n)| **n > 0);
    let sizes = used.map(|(class, n)| {
        let class = class_bytes(class)
            .map_or_else(|| "larger".to_owned(), |max| format!("<= {}", bytes(max as f64)));
        format!("{class}: {:.1} %", share(*n, info.requests))
    });
    writeln!(out, "         {}", sizes.collect::<Vec<_>>().join(", "))
}

fn describe_oddities(out: &mut String, reader: &TraceReader, info: &Info) -> std::fmt::Result {
    let counts = reader.counts();
    let unaligned = ["request not 4 KiB-aligned", "requests not 4 KiB-aligned"];
    let notes = [
        (info.unaligned(), unaligned),
        (counts.disordered, ["request out of order", "requests out of order"]),
        (counts.malformed_lines, ["malformed line skipped", "malformed lines skipped"]),
    ];
    let mut notes = notes.into_iter().filter(|(n, _)| *n > 0);
    notes.try_for_each(|(n, what)| writeln!(out, "  note: {}", counted(n, what)))
}
