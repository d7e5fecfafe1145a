//! How a host uses the address space of a device: which requests it sends, at which addresses, and which
//! object of the model lies at which address.
//!
//! - [`Random`] writes anywhere; an object is an address.
//! - [`Zoned`] writes at the write pointers of zones and resets them; an object is an address, too.
//!   After a power cut each zone holds the beginning of one generation, up to its write pointer.
//! - [`Log`] appends: an object is written once, to the next address of a log, and discarded when it is
//!   superseded. Where the device moves data in regions of its own, the host fetches and completes the
//!   batches of moves, as D2FS's host does (FAST'25).
//!
//! All draw their requests from the same loads. A new kind of host implements [`HostView`] and is chosen
//! in [`host_of`].

mod log;
mod random;
mod zoned;

use crate::device::model::{Mismatch, Object};
use crate::draw::load::{LoadSource, Next};
use crate::draw::plan::Plan;
use crate::request::{Request, Sender};
use crate::shrink::keep::Keep;
use crate::shrink::numbers::Numbers;
use log::Log;
use nandscape_block::zone::ZoneStatus;
use nandscape_block::{DeviceCaps, Lba, RegionKind, Reply, SectorData};
use nandscape_rt::Stream;
use random::Random;
use std::vec;
use zoned::Zoned;

/// Sectors of a read that checks the device.
const SCAN_SECTORS: u32 = 32;
/// Requests in flight while a device is filled or checked.
const SCAN_DEPTH: usize = 8;

/// What a host does until it has no more requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Writes a fresh device, in order.
    Fill,
    /// The load that the seed chose.
    Load,
    /// Reads what a recovery left, or the share of it that the seed chose.
    Inspect,
    /// Flushes and reads everything.
    Finish,
}

/// A host's use of an address space. Requests take effect in the order in which they are submitted,
/// as far as they concern the same sectors or the same zone.
pub(crate) trait HostView {
    /// Begins a phase, with what is left of its numbered requests.
    fn begin(&mut self, phase: Phase, keep: Keep);

    /// The requests of the phase.
    fn requests(&self) -> &Requests<'_>;

    /// Where the draws of the load are.
    fn load_rng(&mut self) -> &mut Stream;

    /// What comes next in this phase.
    fn next(&mut self) -> Next;

    /// The object at an address. Those of the sectors that follow in a request are the next ones.
    fn object(&self, lba: Lba) -> Object;

    /// Where an object lies.
    fn address(&self, object: Object) -> Lba;

    /// A request is about to be submitted, as the model's event of this number.
    fn sent(&mut self, _request: &Request, _number: u64) {}

    /// A request has ended; without a reply it was refused.
    ///
    /// # Errors
    /// What the reply contradicts.
    fn ended(&mut self, _request: &Request, _reply: Option<&Reply>) -> Result<(), String> {
        Ok(())
    }

    /// Whether a zone may refuse a request like this where media fail.
    fn may_refuse(&self, _request: &Request, _status: ZoneStatus) -> bool {
        false
    }

    /// Power was cut: what is in flight will never be answered.
    fn power_cut(&mut self) {}

    /// Checks what was read in [`Phase::Inspect`] by the rules of the address space; the model has
    /// checked each object.
    ///
    /// # Errors
    /// The first object that breaks one.
    fn check_recovered(&self, _seen: &[(Object, SectorData)]) -> Result<(), Mismatch> {
        Ok(())
    }
}

/// The host that a device takes, by the regions that it has.
pub(crate) fn host_of<'a>(seed: u64, plan: &'a Plan, caps: &DeviceCaps) -> Box<dyn HostView + 'a> {
    let appends = caps.regions().any(|region| region.kind == RegionKind::Append);
    match (appends, caps.has_zones()) {
        (true, _) => Box::new(Log::new(seed, plan, caps)),
        (false, true) => Box::new(Zoned::new(seed, plan, caps)),
        (false, false) => Box::new(Random::new(seed, plan, caps)),
    }
}

/// The requests of a phase: a list, the writes that fill a device, or what a load draws. Those of the last two are
/// numbered from 1.
pub(crate) enum Requests<'a> {
    Listed(vec::IntoIter<Request>),
    /// The writes that are left, and a flush.
    Filling {
        requests: vec::IntoIter<Request>,
        writes: usize,
        keep: Keep,
    },
    Drawn(LoadSource<'a>),
}

impl Requests<'_> {
    fn listed(requests: Vec<Request>) -> Self {
        Self::Listed(requests.into_iter())
    }

    fn filling(mut requests: Vec<Request>, keep: Keep) -> Self {
        let writes = requests.len();
        requests.push(Request::Flush(Sender::ANONYMOUS));
        Self::Filling { requests: requests.into_iter(), writes, keep }
    }

    /// Requests in flight at once.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::Listed(_) | Self::Filling { .. } => SCAN_DEPTH,
            Self::Drawn(load) => load.depth(),
        }
    }

    /// The number of the last request that a load has drawn.
    pub(crate) const fn drawn(&self) -> u32 {
        if let Self::Drawn(load) = self { load.drawn() } else { 0 }
    }

    /// Whether a load has drawn its last request.
    pub(crate) fn is_drawn(&self) -> bool {
        if let Self::Drawn(load) = self { load.is_drawn() } else { false }
    }

    /// The numbered requests that were sent.
    pub(crate) fn sent(&self) -> Numbers {
        match self {
            Self::Listed(_) => Numbers::default(),
            Self::Filling { requests, writes, keep } => {
                keep.first((writes + 1 - requests.len()).min(*writes))
            }
            Self::Drawn(load) => load.sent(),
        }
    }

    fn next(&mut self, rng: &mut Stream) -> Next {
        match self {
            Self::Listed(requests) | Self::Filling { requests, .. } => {
                requests.next().map_or(Next::End, Next::Submit)
            }
            Self::Drawn(load) => load.next(rng),
        }
    }
}

/// Longest request of a host that fills or checks a device.
fn window_of(caps: &DeviceCaps) -> u32 {
    if caps.max_sectors == 0 { SCAN_SECTORS } else { caps.max_sectors.min(SCAN_SECTORS) }
}
