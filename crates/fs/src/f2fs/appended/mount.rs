//! Mount in an append-only address space: after roll-forward and before anything is written.
//!
//! Logs went on after the last checkpoint, and what they wrote there is not known but for what roll-forward found. The rest
//! takes room of the media, and its addresses cannot be written again. So it is discarded, from the place of each log in the
//! checkpoint on, as far as the log may have come: between two checkpoints no more is written than the media have room
//! for, since nothing is discarded meanwhile. Nothing of it is needed by the checkpoint, nor by an fsync after it; a cut in
//! the midst leaves the same to the next mount. Then logs go on in fresh sections.

use super::Appended;
use super::void::Void;
use crate::contract::Result;
use crate::f2fs::format::{AppendMode, BlockAddr, SegmentType, SpaceSection};
use crate::f2fs::rules::OmittedRule;
use std::collections::BTreeSet;

impl Appended<'_> {
    /// Brings logs and regions together. `clean`: nothing was found beyond the checkpoint of an unmount.
    ///
    /// # Errors
    /// [`FsError::NoSpace`](crate::contract::FsError::NoSpace) if a log finds no fresh section; errors of the device.
    pub(in crate::f2fs) async fn align_space(&self, clean: bool) -> Result<()> {
        match self.append.mode {
            AppendMode::Interval => self.align_logs(clean).await,
            AppendMode::Coupled => self.align_coupled().await,
        }
    }

    /// Each log has a dedicated region.
    async fn align_logs(&self, clean: bool) -> Result<()> {
        // What the discard journal has.
        self.start_discards();
        self.append.drain_discards(&self.volume.mount).await?;
        if !self.volume.mount.omits(OmittedRule::MountDiscard) {
            let nothing = BTreeSet::new();
            let mut void = Void::without(&nothing);
            self.find_void_after_logs(&mut void);
            void.discard(&self.volume.mount, self.append).await?;
        }
        if clean || self.volume.mount.omits(OmittedRule::LogInPlace) {
            return Ok(());
        }
        self.volume.segments.renew_all()
    }

    /// What logs may have written after the last checkpoint, and nothing needs.
    fn find_void_after_logs(&self, void: &mut Void<'_>) {
        let mut segments = self.volume.segments.borrow_mut();
        let per_section = self.volume.mount.layout.segments_per_section();
        let far = self.append.unknown.div_ceil(self.volume.mount.layout.blocks_per_section().into())
            as u32
            + 2;
        for log in SegmentType::ALL {
            let first = segments.block(segments.log(log).segment, 0).unwrap_or_default();
            let next = BlockAddr(first.0 + segments.log(log).next);
            let Some(own) = segments.section_at(first) else { continue };
            let region = own.region;
            let known = segments.last_used(region).unwrap_or(own.index);
            let all = segments.fills().get(region).map_or(0, |fill| fill.sections);
            for index in own.index..own.index.saturating_add(far).max(known + 1).min(all) {
                void.add_section(&segments, SpaceSection { region, index }, next, per_section);
            }
            segments.skip_to(log, known + 1);
        }
    }
}
