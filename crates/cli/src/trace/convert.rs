//! `nandscape trace convert`: a trace in another format.

use super::source::Source;
use crate::args::TraceConvertArgs;
use crate::output::{Failure, complain};
use crate::replace::replace;
use crate::writable::expect_writable;
use flate2::Compression;
use flate2::write::GzEncoder;
use nandscape_lab::workload::trace::{Record, TraceReader, TraceWriter};
use nandscape_rt::Nanos;
use nandscape_rt::words::counted;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;

/// The device of all requests with --merge.
const MERGED: &str = "merged";

/// Reads the trace to its end and writes it.
pub(super) fn convert(args: &TraceConvertArgs) -> Result<(), Failure> {
    expect_writable([args.output.as_deref()], args.trace.files.iter().map(PathBuf::as_path))?;
    let reader = Source::of(&args.trace)?.open()?;
    match &args.output {
        None => match write(args, reader, &mut io::stdout().lock()) {
            Err(Failure::Run(error)) if is_closed_pipe(&error) => Ok(()),
            written => written,
        },
        Some(path) => replace(path, |out| {
            if path.extension().is_none_or(|suffix| suffix != "gz") {
                return write(args, reader, out);
            }
            let mut packed = GzEncoder::new(out, Compression::default());
            write(args, reader, &mut packed)?;
            packed.finish().map(drop).map_err(Failure::run)
        }),
    }
}

/// A reader that went away is not an error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}

fn write(
    args: &TraceConvertArgs,
    mut reader: TraceReader,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut writer = TraceWriter::new(BufWriter::new(out), args.to).map_err(Failure::run)?;
    let end = args.runtime.map_or(Nanos::MAX, |runtime| runtime.time());
    while let Some(record) = reader.next_record().map_err(Failure::input)? {
        let at = Nanos((record.at.0 as f64 * args.scale) as u64);
        if at >= end {
            break;
        }
        let device = if args.trace.merge { MERGED } else { reader.device(&record) };
        writer.push(&Record { at, ..record }, device).map_err(Failure::run)?;
    }
    let left_out = writer.finish().map_err(Failure::run)?;
    let (name, request) = (args.to.name(), ["request", "requests"]);
    if left_out.requests > 0 {
        let requests = counted(left_out.requests, request);
        complain(&format!("{requests} left out: {name} has no trims and no flushes"));
    }
    if left_out.rounded > 0 {
        let requests = counted(left_out.rounded, request);
        complain(&format!("{requests} rounded out to the 512-byte sectors of {name}"));
    }
    Ok(())
}
