//! A file of trace events that is valid JSON whenever it is left: each batch of events is written together
//! with the end of the document, which the next batch overwrites.
//!
//! Format: Trace Event Format, JSON object form; Perfetto and Chrome's trace viewer read it.

use std::io::{self, Seek, SeekFrom, Write};

/// Somewhere to write where going back is possible: a file.
pub trait Output: Write + Seek {}

impl<T: Write + Seek> Output for T {}

const HEAD: &str = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
const END: &str = "\n]}\n";

/// Writes events as they come.
pub(super) struct Sink {
    out: Box<dyn Output>,
    batch: String,
    is_first: bool,
    /// Why nothing more can be written.
    failed: Option<io::Error>,
}

impl Sink {
    /// A document without events.
    pub(super) fn new(mut out: Box<dyn Output>) -> io::Result<Self> {
        out.write_all([HEAD, END].concat().as_bytes())?;
        out.flush()?;
        Ok(Self { out, batch: String::new(), is_first: true, failed: None })
    }

    /// Adds an event, a JSON object.
    pub(super) fn push(&mut self, event: std::fmt::Arguments<'_>) {
        self.batch.push_str(if std::mem::take(&mut self.is_first) { "\n" } else { ",\n" });
        // Writing to a string cannot fail.
        let _ = std::fmt::Write::write_fmt(&mut self.batch, event);
    }

    /// Writes what was added. Whether that was possible.
    pub(super) fn flush(&mut self) -> bool {
        if self.failed.is_none() && !self.batch.is_empty() {
            self.failed = self.write().err();
        }
        self.batch.clear();
        self.failed.is_none()
    }

    fn write(&mut self) -> io::Result<()> {
        self.batch.push_str(END);
        self.out.seek(SeekFrom::Current(-(END.len() as i64)))?;
        self.out.write_all(self.batch.as_bytes())?;
        self.out.flush()
    }

    /// Writes the rest.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush();
        self.failed.map_or(Ok(()), Err)
    }
}
