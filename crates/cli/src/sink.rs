//! Files that are written to while a run goes on: the first error of a disk is kept, and reported at the end. Then
//! those that could be written take their places, if the run is one to keep.

use crate::output::{Failure, wrote};
use crate::replace::{Part, begin, with_path};
use anyhow::Context;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What became of the files of a run, shared by all of them.
#[derive(Clone, Default, Debug)]
pub(crate) struct Streams(Rc<RefCell<Ended>>);

#[derive(Default, Debug)]
struct Ended {
    first_error: Option<Failure>,
    /// Those that are whole, and what is to take their places.
    whole: Vec<(PathBuf, Part)>,
}

impl Streams {
    /// Keeps the error of `result`, unless there is one already. Whether there is none in it.
    fn note(&self, result: Result<()>, path: &Path) -> bool {
        let error = with_path(path, result).err();
        let is_well = error.is_none();
        let first = &mut self.0.borrow_mut().first_error;
        *first = first.take().or(error);
        is_well
    }

    /// The files have ended, and take their places if they are `kept`. The first error of all.
    pub(crate) fn end(self, kept: bool) -> std::result::Result<(), Failure> {
        let whole = std::mem::take(&mut self.0.borrow_mut().whole);
        for (path, part) in whole.into_iter().filter(|_| kept) {
            if self.note(part.take_place(), &path) {
                wrote("log", &path);
            }
        }
        let first = self.0.borrow_mut().first_error.take();
        first.map_or(Ok(()), Err)
    }
}

/// A file that is written to while a run goes on. It ends with the value.
#[derive(Debug)]
pub(crate) struct Stream {
    path: PathBuf,
    out: BufWriter<File>,
    part: Option<Part>,
    is_well: bool,
    streams: Streams,
}

impl Stream {
    /// One of these `streams`.
    pub(crate) fn begin(path: &Path, streams: &Streams) -> std::result::Result<Self, Failure> {
        let begun = begin(path).with_context(|| format!("cannot write {}", path.display()));
        let (file, part) = begun.map_err(Failure::Input)?;
        let (path, out, streams) = (path.to_owned(), BufWriter::new(file), streams.clone());
        Ok(Self { path, out, part, is_well: true, streams })
    }

    /// Writes to it, unless something went wrong already.
    pub(crate) fn put(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> Result<()>) {
        if self.is_well {
            self.is_well = self.streams.note(write(&mut self.out), &self.path);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.put(BufWriter::flush);
        if let Some(part) = self.part.take().filter(|_| self.is_well) {
            self.streams.0.borrow_mut().whole.push((std::mem::take(&mut self.path), part));
        }
    }
}
