//! What lies before the zones: a page-mapped region, or nothing. The media and the link are its own, and lent to
//! the zones, so that everything crosses one link and takes its turn on one schedule.

use super::config::{Config, Sizes};
use crate::common::firmware::Walk;
use crate::device::DeviceFtl;
use crate::error::FtlError;
use crate::face::Ftl;
use crate::kind::FtlRun;
use nandscape_block::{BlockDevice, Completion};
use nandscape_media::{HostLink, LinkTiming, OpenChannel};
use nandscape_rt::Nanos;

/// The media, with the region that it holds beside the zones.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a device has one")]
pub(super) enum Front<M> {
    /// No such region.
    Bare { media: M, link: HostLink },
    /// A page-mapped region, on the first chunks of every unit.
    Pages(Box<DeviceFtl<M>>),
}

impl<M: OpenChannel> Front<M> {
    /// A fresh region.
    pub(super) fn format(
        media: M,
        config: &Config,
        sizes: &Sizes,
        (run, link): (FtlRun, LinkTiming),
    ) -> Result<Self, FtlError> {
        if sizes.random_sectors == 0 {
            return Ok(Self::Bare { media, link: HostLink::new(link) });
        }
        let geometry = Config::random_geometry(media.geometry(), sizes.random_chunks);
        let pages = DeviceFtl::format_on(media, geometry, config.pages.clone(), run, link)?;
        Ok(Self::Pages(Box::new(pages)))
    }

    /// What a power cut left of it.
    pub(super) fn recover(
        media: M,
        config: &Config,
        sizes: &Sizes,
        (run, link): (FtlRun, LinkTiming),
        now: Nanos,
    ) -> Result<Self, (M, FtlError)> {
        if sizes.random_sectors == 0 {
            return Ok(Self::Bare { media, link: HostLink::new(link) });
        }
        let geometry = Config::random_geometry(media.geometry(), sizes.random_chunks);
        let pages = DeviceFtl::recover_on(media, geometry, config.pages.clone(), (run, link), now)?;
        Ok(Self::Pages(Box::new(pages)))
    }

    #[inline]
    pub(super) fn media(&self) -> &M {
        match self {
            Self::Bare { media, .. } => media,
            Self::Pages(pages) => pages.media(),
        }
    }

    #[inline]
    pub(super) fn media_mut(&mut self) -> &mut M {
        match self {
            Self::Bare { media, .. } => media,
            Self::Pages(pages) => pages.media_mut(),
        }
    }

    #[inline]
    pub(super) fn link(&self) -> &HostLink {
        match self {
            Self::Bare { link, .. } => link,
            Self::Pages(pages) => pages.link(),
        }
    }

    /// Both at once.
    #[inline]
    pub(super) fn parts(&mut self) -> (&mut M, &mut HostLink) {
        match self {
            Self::Bare { media, link } => (media, link),
            Self::Pages(pages) => pages.media_and_link(),
        }
    }

    #[inline]
    pub(super) fn pages(&self) -> Option<&DeviceFtl<M>> {
        match self {
            Self::Bare { .. } => None,
            Self::Pages(pages) => Some(pages),
        }
    }

    #[inline]
    pub(super) fn pages_mut(&mut self) -> Option<&mut DeviceFtl<M>> {
        match self {
            Self::Bare { .. } => None,
            Self::Pages(pages) => Some(pages),
        }
    }

    #[inline]
    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.pages().and_then(BlockDevice::next_event)
    }

    pub(super) fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        if let Some(pages) = self.pages_mut() {
            pages.advance(now, done);
        }
    }

    /// When the firmware takes up what comes now. Without pages it has no map that takes accesses.
    #[inline]
    pub(super) fn begins(&self, now: Nanos) -> Nanos {
        self.pages().map_or(now, |pages| pages.firmware().begins(now))
    }

    /// Has the firmware make the accesses of a walk; when it has made them.
    #[inline]
    pub(super) fn access(&mut self, now: Nanos, walk: &mut Walk) -> Nanos {
        self.pages_mut().map_or(now, |pages| pages.firmware_mut().access(now, walk))
    }

    /// When it came up.
    pub(super) fn now(&self) -> Nanos {
        self.pages().map_or(Nanos::ZERO, Ftl::now)
    }

    /// The media, as a power cut leaves them.
    pub(super) fn power_off(self) -> M {
        match self {
            Self::Bare { media, .. } => media,
            Self::Pages(pages) => pages.power_off(),
        }
    }
}
