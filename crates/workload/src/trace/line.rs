//! What a line of a trace holds, whatever format it is in.

use super::record::Record;

/// A request with the device that it was for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Request<'a> {
    pub(super) device: &'a str,
    pub(super) record: Record,
}

/// What a line holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Line<'a> {
    Request(Request<'a>),
    /// Nothing to be replayed.
    Nothing,
    /// The names of the columns, by which a format is recognised.
    Header,
    /// The end of the trace.
    End,
}
