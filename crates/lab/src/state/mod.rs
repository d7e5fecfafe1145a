//! Device states: a preconditioned device as a file (docs/formats/state.md), named by what it follows
//! from, so that runs that need the same state take it instead of making it again. What an image or a run
//! left on a device is kept in the same form.
//!
//! A state is the virtual media after the FTL was powered down in order. Whether a device is
//! preconditioned here or comes from a state, the run mounts it by the FTL's own recovery, so that no
//! figure depends on which it was.

mod header;
mod key;
mod origin;

pub use header::{Header, Preconditioned};
pub(crate) use key::differences;
pub use key::{Difference, StateKey, text};
pub use origin::Origin;

pub use nandscape_media::SnapshotError;
use nandscape_media::{ChunkId, ChunkInfo, ChunkState, Media, Wear, snapshot};
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;
use thiserror::Error;

/// Version of the format; also part of what names a state.
pub const FORMAT_VERSION: u32 = 3;

/// Why a state cannot be used: bad input.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("{file}: {problem}")]
pub struct StateError {
    /// What the state is called.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

impl StateError {
    /// Of a state called `file`.
    pub fn new(file: &str, problem: impl ToString) -> Self {
        Self { file: file.to_owned(), problem: problem.to_string() }
    }
}

/// Where runs of the same program keep states for each other.
pub trait StateCache: Sync {
    /// What is kept under `key`, to be read.
    fn open(&self, key: StateKey) -> Option<Box<dyn Read>>;

    /// Calls `work` while no other program works under this key.
    fn with_exclusive_lock(&self, key: StateKey, work: &mut dyn FnMut());

    /// Keeps what `write` writes, whole or not at all.
    fn keep(
        &self,
        key: StateKey,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), SnapshotError>,
    );

    /// What is kept under `key` is damaged, as `why` says; it is made again, and will be kept.
    fn damaged(&self, key: StateKey, why: &str);
}

/// Where a preconditioned device comes from.
#[derive(Clone, Copy, Default)]
pub enum StateSource<'a> {
    /// It is made for this run.
    #[default]
    Make,
    /// From a cache, or made and kept there.
    Cached(&'a dyn StateCache),
    /// From this file, whatever the stack says of preconditioning.
    File(&'a Path),
    /// From these bytes, which are those of such a file, in the same way.
    Bytes(&'a [u8]),
}

/// Opens the state at `path`: its header, and the rest to be restored.
///
/// # Errors
/// A file that cannot be read or is no state.
pub fn open(path: &Path) -> Result<(Header, impl Read), StateError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| StateError::new(&name, error))?;
    opened(&name, BufReader::new(file))
}

/// The state called `name` that `input` holds: its header, and the rest to be restored.
pub(crate) fn opened<R: Read>(name: &str, mut input: R) -> Result<(Header, R), StateError> {
    let header = Header::read(&mut input).map_err(|error| StateError::new(name, error))?;
    Ok((header, input))
}

/// What the chunks of a state show.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StateSummary {
    /// Wear of all chunks.
    pub wear: Wear,
    /// Lines, by what is written in them.
    pub lines: LineCounts,
}

/// Lines: chunks of the same index.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LineCounts {
    /// With nothing but closed chunks, or none that can be written.
    pub written: u32,
    /// With chunks that are partly written, or only some of them.
    pub open: u32,
    /// With nothing but erased chunks.
    pub erased: u32,
}

impl LineCounts {
    fn add(&mut self, states: &[ChunkState]) {
        let all = |wanted| states.iter().all(|state| [wanted, ChunkState::Offline].contains(state));
        match () {
            () if all(ChunkState::Closed) => self.written += 1,
            () if all(ChunkState::Free) => self.erased += 1,
            () => self.open += 1,
        }
    }
}

/// What the state at `path` is of; its content is not read.
///
/// # Errors
/// It cannot be read, or does not begin as a state.
pub fn header(path: &Path) -> Result<Header, StateError> {
    open(path).map(|(header, _)| header)
}

/// Reads the state at `path` whole, checks it, and returns what it is of.
///
/// # Errors
/// A file that cannot be read or is damaged.
pub fn inspect(path: &Path) -> Result<(Header, StateSummary), StateError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| StateError::new(&name, error))?;
    inspect_from(&name, BufReader::new(file))
}

/// The same of the state called `name` that `input` holds.
///
/// # Errors
/// Input that is damaged.
pub fn inspect_from(name: &str, input: impl Read) -> Result<(Header, StateSummary), StateError> {
    let (header, input) = opened(name, input)?;
    let mut summary = StateSummary::default();
    let units = header.geometry.total_units() as usize;
    let mut line = Vec::with_capacity(units);
    let each = |_: ChunkId, info: ChunkInfo| {
        summary.wear = summary.wear.with(info);
        line.push(info.state);
        if line.len() == units {
            summary.lines.add(&line);
            line.clear();
        }
    };
    snapshot::inspect(&header.geometry, input, header.bytes(), each)
        .map_err(|error| StateError::new(name, error))?;
    Ok((header, summary))
}

/// A state that is not in a file yet.
#[derive(Debug)]
pub struct State {
    /// What it is of.
    pub header: Header,
    /// The device.
    pub(crate) media: Media,
}

impl State {
    /// Writes it.
    ///
    /// # Errors
    /// What the output answered.
    pub fn write(&self, out: &mut dyn Write) -> Result<(), SnapshotError> {
        out.write_all(&self.header.encode())?;
        self.media.save(out)
    }
}
