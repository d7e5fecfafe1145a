//! Traces, of the format that the first byte names or of one that is recognised, compressed or not: all records, the
//! devices, and what the trace is like.

use nandscape_workload::trace::{Format, Info, ReadOptions, TraceReader};
use std::io::Cursor;

/// Bytes of requests of which [`Info`], whose memory grows with the sectors that they touch, is kept.
const TOUCHED_BYTES_MAX: u64 = 2 << 30;
/// Requests that are read: a few bytes may unpack to millions.
const REQUESTS_MAX: usize = 200_000;

/// Reads a trace, and places it on the devices that it names.
pub fn trace(input: &[u8]) {
    let Some((first, trace)) = input.split_first() else { return };
    let options = ReadOptions {
        format: Format::ALL.get(usize::from(first & 0x1f)).copied(),
        skip_bad_lines: u64::from(first >> 5),
    };
    let open = || TraceReader::new("trace", Cursor::new(trace.to_vec()), options);
    let Ok(mut reader) = open() else { return };
    let (mut info, mut touched) = (Info::default(), 0_u64);
    let mut at = Default::default();
    for _ in 0..REQUESTS_MAX {
        let Ok(Some(record)) = reader.next_record() else { break };
        assert!(record.at >= at, "requests are in order of time");
        at = record.at;
        drop((reader.device(&record).len(), reader.error(&record, String::new())));
        touched = touched.saturating_add(record.length_bytes);
        if touched <= TOUCHED_BYTES_MAX {
            info.add(&record);
        }
    }
    let _ = (info.footprint_bytes(), info.end_bytes(), reader.counts(), reader.devices());
    if let (Ok(first), Ok(second)) = (open(), open()) {
        let merged = first.with(second).and_then(TraceReader::layout);
        let placed = merged.and_then(|layout| Ok(open()?.placed(&layout)));
        if let Ok(mut placed) = placed {
            (0..REQUESTS_MAX)
                .take_while(|_| matches!(placed.next_record(), Ok(Some(_))))
                .for_each(drop);
        }
    }
}
