//! How an FTL is connected to its host.

use nandscape_media::{DeviceTiming, LinkTiming};

/// What stands between an FTL and its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attach {
    /// The link between host and device: below an FTL on the host, above one in the device.
    pub link: LinkTiming,
    /// What copying a sector in the host's memory takes: into a write buffer on the host, or out of it.
    pub copy_ns_per_sector: u64,
}

impl Attach {
    /// Copying 4 KiB moves them twice, out of memory and into it, at 8.5 GB/s: a core's share of the
    /// memory bandwidth of a Xeon E5-2620 v4 (docs/formats/stack.md, `fs.copy_ns`).
    pub const COPY_NS_PER_SECTOR: u64 = 1_000;

    /// To a device of this timing. On one without any, copying takes no time either: no virtual time
    /// passes there.
    #[must_use]
    pub fn to(timing: &DeviceTiming) -> Self {
        let is_instant = *timing == DeviceTiming::none();
        let copy_ns_per_sector = if is_instant { 0 } else { Self::COPY_NS_PER_SECTOR };
        Self { link: timing.link, copy_ns_per_sector }
    }
}
