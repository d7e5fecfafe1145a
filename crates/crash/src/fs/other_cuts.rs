//! What else a power cut could have left: at one instant, the hostile device may keep other subsets of what no
//! flush has covered. A load is dear and a mount is cheap, so each load is judged by several cuts; where writers
//! scatter, also by cuts on the way.

use super::glances::Glanced;
use super::model::Model;
use super::power_switch::{Device, Medium};
use super::rounds::{Run, check_account, count_losses, failed, mount_env, verify};
use super::tree::read_tree;
use crate::device::drive::CheckFailure;
use nandscape_rt::{Handle, Stream};
use std::cell::RefCell;
use std::rc::Rc;

/// Cuts of a load beside the one after which the seed goes on.
const OTHER_CUTS: u32 = 4;

impl Run<'_> {
    /// Judges other cuts at this instant, where the device can tell what they leave.
    pub(super) fn verify_other_cuts(&mut self, medium: &Medium) -> Result<(), CheckFailure> {
        for number in 0..OTHER_CUTS {
            let name = format!("other-cut-{}-{number}", self.mounts);
            let Some(left) = medium.after_another_cut(Stream::new(self.seed, &name)) else {
                return Ok(());
            };
            self.counts.cuts += 1;
            let models = self.models.clone();
            self.verify_copy(left, models).map_err(|failure| {
                let what = format!("after another cut at this instant: {}", failure.what);
                CheckFailure { what, ..failure }
            })?;
        }
        Ok(())
    }

    /// Judges cuts on the way.
    pub(super) fn verify_glanced(&mut self, glanced: &Glanced) -> Result<(), CheckFailure> {
        for (left, models) in glanced.take() {
            self.counts.cuts += 1;
            let models = models.into_iter().map(|model| Rc::new(RefCell::new(model))).collect();
            self.verify_copy(left, models).map_err(|failure| {
                let what = format!("after a cut on the way: {}", failure.what);
                CheckFailure { what, ..failure }
            })?;
        }
        Ok(())
    }

    /// Mounts what a cut left, and judges it; the seed goes on as if that had not happened.
    fn verify_copy(
        &mut self,
        medium: Medium,
        models: Vec<Rc<RefCell<Model>>>,
    ) -> Result<(), CheckFailure> {
        let before = (self.counts, self.now, self.mounts);
        let config = self.next_config();
        let event_log = Rc::new(RefCell::new(Vec::new()));
        let events = Rc::clone(&event_log);
        let (coverage, account) = (Rc::clone(&self.coverage), self.account);
        let work = move |handle: Handle, device: Device| async move {
            let mounted = config.mount(mount_env(&handle, &device)).await;
            let (fs, _) = mounted.map_err(failed("mount"))?;
            let tree = read_tree(&fs).await.map_err(failed("reading the tree"))?;
            verify(&tree, &models, &event_log, Model::verify)?;
            count_losses(&tree, &models, &coverage);
            check_account(&fs, account).await
        };
        let ended = self.stretch(medium, work);
        (self.counts, self.now, self.mounts) = before;
        let (verified, _) = ended?;
        if verified.is_err() {
            self.event_log = events.take();
        }
        verified
    }
}
