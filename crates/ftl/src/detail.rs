//! What only one kind of FTL counts between two resets, beside the [`FtlReport`](crate::report::FtlReport) that every kind
//! fills. Closed, as [`FtlKind`](crate::kind::FtlKind) is.

use crate::coupled::CoupledCounts;
use crate::device::{DeviceReport, IntervalReport};
use crate::pblk::stats::PblkReport;
use crate::zoned::ZoneCounts;
use nandscape_rt::counts::Counts;
use nandscape_rt::invariant;

/// What only one kind of FTL counts.
#[derive(Clone, PartialEq, Debug)]
pub enum Detail {
    /// pblk's write buffers, padding, cached map and host CPU.
    Pblk(Box<PblkReport>),
    /// A conventional SSD's read-modify-writes.
    Device(DeviceReport),
    /// A zoned SSD's commands.
    Zoned(ZoneCounts),
    /// The compactions of interval maps.
    Interval(IntervalReport),
    /// A coupled SSD's moves and upcalls.
    Coupled(CoupledCounts),
}

impl Default for Detail {
    fn default() -> Self {
        Self::Pblk(Box::default())
    }
}

impl Counts for Detail {
    fn add(&mut self, later: &Self) {
        match (self, later) {
            (Self::Pblk(sum), Self::Pblk(more)) => sum.add(more),
            (Self::Device(sum), Self::Device(more)) => sum.add(more),
            (Self::Zoned(sum), Self::Zoned(more)) => sum.add(more),
            (Self::Interval(sum), Self::Interval(more)) => sum.add(more),
            (Self::Coupled(sum), Self::Coupled(more)) => sum.add(more),
            (
                Self::Pblk(_)
                | Self::Device(_)
                | Self::Zoned(_)
                | Self::Interval(_)
                | Self::Coupled(_),
                _,
            ) => invariant!(false, "reports that are added are of one kind"),
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        match (self, earlier) {
            (Self::Pblk(now), Self::Pblk(before)) => Self::Pblk(Box::new(now.since(before))),
            (Self::Device(now), Self::Device(before)) => Self::Device(now.since(before)),
            (Self::Zoned(now), Self::Zoned(before)) => Self::Zoned(now.since(before)),
            (Self::Interval(now), Self::Interval(before)) => Self::Interval(now.since(before)),
            (Self::Coupled(now), Self::Coupled(before)) => Self::Coupled(now.since(before)),
            (
                Self::Pblk(_)
                | Self::Device(_)
                | Self::Zoned(_)
                | Self::Interval(_)
                | Self::Coupled(_),
                _,
            ) => self.clone(),
        }
    }
}
