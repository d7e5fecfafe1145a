//! Mount on a device that moves blocks by itself (D2FS), after roll-forward.
//!
//! 1. What the device has moved is fetched and applied. It offers all that was not completed before the power went, what
//!    a checkpoint has already among it: the old addresses of such records still lead to the blocks, so none of them may be
//!    discarded before the record is completed.
//! 2. Sections of data and of nodes without a slot are discarded as a whole, and what was moved out of them meanwhile is
//!    fetched: one that no record names can be written then, and the logs go on in such sections.
//! 3. A checkpoint, which the volume writes after this ([`Appended::finish_space`] follows it).
//! 4. All else that the SIT calls invalid is discarded, the device's own regions included: a power cut undoes discards that
//!    no flush covered. There, the device knows which of its moves the volume has not heard of, and keeps these.
//! 5. Batches are completed.
//!
//! So there is no discard journal: what it would say, the SIT says, and any valid block that a discard would hit is one
//! that the SIT has, or one that the device protects.

use super::Appended;
use super::migrate::Migration;
use super::upcalls::Left;
use super::void::Void;
use crate::contract::Result;
use crate::f2fs::append::Fetched;
use crate::f2fs::checkpoints::Reason;
use crate::f2fs::format::{BlockAddr, SpaceSection};
use crate::f2fs::rules::OmittedRule;
use crate::f2fs::segment::Segments;
use std::collections::BTreeSet;

impl Appended<'_> {
    /// Learns of moved blocks, and has logs go on in fresh sections.
    pub(super) async fn align_coupled(&self) -> Result<()> {
        self.fetch_at_mount().await?;
        if !self.volume.mount.omits(OmittedRule::MountDiscard) {
            let fetched = self.append.fetched.borrow().clone();
            let mut void = Void::without(&fetched.kept);
            let is_unknown = |segments: &Segments, section: &SpaceSection| {
                let is_own =
                    segments.space().is_some_and(|space| !space.is_device_owned(section.region));
                is_own && segments.slot_of(*section).is_none() && !fetched.named.contains(section)
            };
            self.add_sections(&mut void, is_unknown);
            void.discard(&self.volume.mount, self.append).await?;
        }
        self.fetch_at_mount().await?;
        for section in &self.append.fetched.borrow().named {
            self.volume.segments.borrow_mut().withhold(*section);
        }
        if !self.volume.mount.omits(OmittedRule::LogInPlace) {
            self.volume.segments.renew_all()?;
        }
        self.volume.segments.borrow_mut().begin_turns();
        Ok(())
    }

    /// Adds what nothing needs of some sections.
    fn add_sections(
        &self,
        void: &mut Void<'_>,
        is_wanted: impl Fn(&Segments, &SpaceSection) -> bool,
    ) {
        let segments = self.volume.segments.borrow();
        let per_section = self.volume.mount.layout.segments_per_section();
        for (region, fill) in segments.fills().iter().enumerate() {
            let sections = (0..fill.sections).map(|index| SpaceSection { region, index });
            for section in sections.filter(|section| is_wanted(&segments, section)) {
                void.add_section(&segments, section, BlockAddr::NULL, per_section);
            }
        }
    }

    /// Fetches and applies what there is.
    async fn fetch_at_mount(&self) -> Result<()> {
        let Some(upcalls) = &self.append.upcalls else { return Ok(()) };
        loop {
            let (batches, left) = self.append.fetch_batches(&self.volume.mount, upcalls).await?;
            Migration { volume: self.volume }.read_ahead(&batches).await?;
            for (id, batch) in batches {
                Migration { volume: self.volume }.apply_batch(&batch).await?;
                self.append.fetched.borrow_mut().add(id, batch);
            }
            if left != Left::Some {
                break;
            }
        }
        let Fetched { records, kept, named, .. } = &mut *self.append.fetched.borrow_mut();
        let segments = self.volume.segments.borrow();
        // A block that was moved on lies where its last move says.
        let mut live: BTreeSet<BlockAddr> = BTreeSet::new();
        for (old, new) in records.iter().rev() {
            if segments.is_valid(*new) || live.contains(new) {
                live.insert(*old);
            }
        }
        let is_free = |section: &SpaceSection| segments.slot_of(*section).is_none();
        let olds = records.iter().filter_map(|(old, _)| segments.section_at(*old));
        *named = olds.filter(is_free).collect();
        if !self.volume.mount.omits(OmittedRule::KnownDiscard) {
            *kept = live;
        }
        Ok(())
    }

    /// The end of a mount, whose recovery has written its checkpoint, if it was needed for that: discards what is void, and
    /// completes what was fetched.
    ///
    /// # Errors
    /// Those of the device and of the checkpoint.
    pub(in crate::f2fs) async fn finish_space(&self, clean: bool) -> Result<()> {
        if !self.append.is_mounting.get() {
            return Ok(());
        }
        let Fetched { ids, kept, named, .. } = self.append.fetched.take();
        if clean && !ids.is_empty() {
            self.volume.write_checkpoint(Reason::Recovery).await?;
        }
        let mut retired: BTreeSet<_> =
            self.volume.segments.borrow_mut().take_retired().into_iter().collect();
        retired.extend(named);
        if !self.volume.mount.omits(OmittedRule::MountDiscard) {
            let mut void = Void::without(&kept);
            let is_left = |segments: &Segments, section: &SpaceSection| {
                let is_own =
                    segments.space().is_some_and(|space| !space.is_device_owned(section.region));
                !is_own || segments.slot_of(*section).is_some() || retired.contains(section)
            };
            self.add_sections(&mut void, is_left);
            void.discard(&self.volume.mount, self.append).await?;
            // Now the device may use the addresses that it owns again.
            self.volume.mount.env.device.flush().await?;
        }
        self.append.is_mounting.set(false);
        let is_own = |section: &SpaceSection| {
            let segments = self.volume.segments.borrow();
            segments.space().is_some_and(|space| !space.is_device_owned(section.region))
        };
        let (of_host, of_device): (Vec<_>, Vec<_>) = retired.into_iter().partition(is_own);
        self.volume.segments.give_back(of_device);
        let Some(upcalls) = &self.append.upcalls else {
            self.volume.segments.give_back(of_host);
            return Ok(());
        };
        upcalls.retire(of_host);
        if upcalls.note_drained() {
            upcalls.poke.notify_one();
        }
        self.append.complete_upcalls(&self.volume.segments, ids).await;
        Ok(())
    }
}
