//! A volume in an append-only address space, as IPLFS (Kim et al., ATC '22) and D2FS (Kim et al., FAST '25) have it:
//! nothing is cleaned, no hole is filled, nothing is written over.
//!
//! - *Discards* ([`discards`]). Every block that becomes void is discarded, once a checkpoint without it is durable: the
//!   media hold less than there are addresses, and the device alone collects garbage.
//! - *Space* ([`space`]). What waits for its discard takes room of the media as valid blocks do, so writers wait for
//!   checkpoints and discards before the device is overfilled.
//! - *Upcalls* ([`upcalls`], [`migrate`]). What the device has moved is found at its new place by its files before the device
//!   forgets the old one.
//! - *Mount* ([`mount`]). What was written after the last checkpoint, and nothing leads to, is discarded before logs go on.

mod coupled;
mod discards;
mod migrate;
mod mount;
mod space;
mod upcalls;
mod void;

use super::append::AppendSpace;
use super::volume::Volume;
use std::rc::Rc;

/// A mounted volume with its append-only address space.
pub(super) struct Appended<'a> {
    pub(super) volume: &'a Rc<Volume>,
    pub(super) append: &'a AppendSpace,
}

impl<'a> Appended<'a> {
    /// A volume with its append-only address space, if it has one.
    pub(super) fn of(volume: &'a Rc<Volume>) -> Option<Self> {
        volume.segments.append.as_ref().map(|append| Self { volume, append })
    }
}
