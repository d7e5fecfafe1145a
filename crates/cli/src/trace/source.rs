//! The files of a trace, which may be read several times.

use crate::args::{STDIO, TraceFileArgs};
use crate::output::Failure;
use anyhow::anyhow;
use nandscape_lab::workload::trace::{Layout, ReadOptions, TraceReader};
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// A trace that a user named.
pub(super) struct Source<'a> {
    args: &'a TraceFileArgs,
    /// Where its devices are, with --merge.
    pub(super) layout: Option<Layout>,
}

impl<'a> Source<'a> {
    /// The trace; with --merge it is read once to find out how large its devices are.
    pub(super) fn of(args: &'a TraceFileArgs) -> Result<Self, Failure> {
        let plain = Self { args, layout: None };
        let is_stdin = |file: &&PathBuf| file.as_path() == Path::new(STDIO);
        if args.files.iter().filter(is_stdin).count() > 1 {
            return Err(Failure::input(anyhow!("standard input is named twice")));
        }
        if !args.merge {
            return Ok(plain);
        }
        if !plain.is_repeatable() {
            let why = "--merge: a trace on standard input or in a pipe cannot be read twice";
            return Err(Failure::input(anyhow!("{why}; give a file")));
        }
        let layout = plain.open()?.layout().map_err(Failure::input)?;
        Ok(Self { layout: Some(layout), ..plain })
    }

    /// Whether all of it are files, which can be read again.
    pub(super) fn is_repeatable(&self) -> bool {
        self.args.files.iter().all(|file| file.as_path() != Path::new(STDIO) && file.is_file())
    }

    /// Bytes of its files; nothing if these do not say how long the trace is.
    pub(super) fn bytes(&self, reader: &TraceReader) -> Option<u64> {
        let is_known = self.is_repeatable() && !reader.is_compressed();
        let files = self.args.files.iter();
        is_known.then(|| files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum())
    }

    /// The requests, from the first.
    pub(super) fn open(&self) -> Result<TraceReader, Failure> {
        let readers = self.args.files.iter().map(|file| self.open_file(file));
        let merge = |all: TraceReader, one: TraceReader| all.with(one).map_err(Failure::input);
        let merged = readers.reduce(|all, one| merge(all?, one?));
        // clap asks for a file.
        let merged = merged.unwrap_or_else(|| Err(Failure::input(anyhow!("no trace is named"))))?;
        let devices = self.args.device.iter();
        let chosen = devices.fold(merged, |reader, device| reader.only(device));
        Ok(match &self.layout {
            Some(layout) => chosen.placed(layout),
            None => chosen,
        })
    }

    fn open_file(&self, file: &Path) -> Result<TraceReader, Failure> {
        let TraceFileArgs { format, skip_bad_lines, .. } = *self.args;
        let options = ReadOptions { format, skip_bad_lines };
        let reader = match file.to_str() {
            Some(STDIO) => {
                TraceReader::new("standard input", BufReader::new(std::io::stdin()), options)
            }
            _ => TraceReader::open(file, options),
        };
        reader.map_err(Failure::input)
    }
}
