//! The end of a read, which every FTL knows when it is submitted.

use crate::error::FtlError;
use nandscape_block::{BlockError, Done, Payload, Reply};
use nandscape_rt::Nanos;

/// What checking and timing a read found: when its last sector arrives, and the first error.
pub(crate) type Found = Result<(Nanos, Option<BlockError>), FtlError>;

/// Completes a read; `content` is asked for only if it succeeded, and is none where nothing is kept or wanted.
#[inline]
pub(crate) fn done(now: Nanos, found: Found, content: impl FnOnce() -> Option<Payload>) -> Done {
    match found {
        Ok((at, None)) => Done::new(at, Ok(content().map_or(Reply::None, Reply::Data))),
        Ok((at, Some(error))) => Done::new(at, Err(error)),
        Err(error) => Done::new(now, Err(error.into())),
    }
}
