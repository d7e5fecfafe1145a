//! The end of a seed: a last load, and what is unmounted then is whole and sound. Where volumes are driven to their ends,
//! everything is removed, under power cuts, too. Then all is free that was free when the volume was new, also after one more
//! cut; and the volume can be filled again.

use super::ballast::{self, Ballast};
use super::draw::appended::holds_valid_blocks;
use super::model::Model;
use super::plan::draw_load_cut;
use super::power_switch::{Device, Medium, PowerSwitch, PoweredOffMedium, cut_is_due};
use super::rounds::{Run, check_account, failed, failed_on, mount_env, verify};
use super::space::{Account, remove_all};
use super::tree::{Fs, read_tree};
use crate::device::drive::CheckFailure;
use crate::draw::plan::CutPlan;
use nandscape_fs::FsConfig;
use nandscape_fs::contract::Caller;
use nandscape_rt::combine::{Either, select2};
use nandscape_rt::{Handle, Stream};
use std::cell::RefCell;
use std::rc::Rc;

/// Cuts of the removal, at most.
const CUTS_MAX: u64 = 2;

impl Run<'_> {
    /// A last load without a cut; what is unmounted then is whole and sound. Where volumes are driven to their ends, it then
    /// becomes empty again.
    pub(super) fn end(&mut self, medium: Medium) -> Result<(), CheckFailure> {
        let medium = self.end_load(medium)?;
        let medium = if self.options.full { self.empty(medium)? } else { medium };
        self.count_commands(&medium);
        Ok(())
    }

    fn end_load(&mut self, medium: Medium) -> Result<Medium, CheckFailure> {
        let (verified, medium) = self.verify_then_load(medium, None)?;
        verified?;
        let (config, models) = (self.next_config(), self.models.clone());
        let event_log = Rc::new(RefCell::new(Vec::new()));
        let events = Rc::clone(&event_log);
        let is_appended = self.options.is_appended();
        let account = self.account;
        let work = move |handle: Handle, device: Device| async move {
            check_volume(&config, &device).await?;
            if is_appended {
                holds_valid_blocks(&device).await?;
            }
            let mounted = config.mount(mount_env(&handle, &device)).await;
            let (fs, _) = mounted.map_err(failed("mount"))?;
            let tree = read_tree(&fs).await.map_err(failed("reading the tree"))?;
            verify(&tree, &models, &event_log, Model::verify_exactly)?;
            check_account(&fs, account).await?;
            // The device keeps its power: what a host fetched of it and did not complete is not offered to the next one.
            fs.unmount().await.map_err(failed("unmount"))
        };
        let ended = self.stretch(medium, work);
        self.event_log = events.take();
        let (sound, medium) = ended?;
        sound.map(|()| medium)
    }

    /// Removes all, looks whether all is free again, and fills the volume.
    fn empty(&mut self, mut medium: Medium) -> Result<Medium, CheckFailure> {
        let (Some(new), Some(ballast)) = (self.account, self.ballast) else { return Ok(medium) };
        let rng = &mut Stream::new(self.seed, "full-empty");
        for _ in 0..rng.below(CUTS_MAX + 1) {
            let cut = draw_load_cut(rng);
            let left = self.remove_until(medium, &cut, new)?;
            medium = self.recover(left, &cut.recovery_cuts)?;
        }
        let config = self.next_config();
        let work = move |handle: Handle, device: Device| async move {
            let fs = mount(&config, &handle, &device).await?;
            remove_all(&fs).await.map_err(failed("removal"))?;
            check_empty(&fs, &new).await.map_err(named("everything was removed"))
        };
        let (emptied, medium) = self.stretch(medium, work)?;
        emptied?;
        let left = self.power_fails(medium);
        let medium = self.recover(left, &[])?;
        let config = self.next_config();
        let work = move |handle: Handle, device: Device| async move {
            let fs = mount(&config, &handle, &device).await?;
            let emptied = check_empty(&fs, &new).await;
            emptied.map_err(named("everything was removed and power failed"))?;
            fill_again(&fs, ballast, &new).await?;
            fs.unmount().await.map_err(failed("unmount"))?;
            check_volume(&config, &device).await
        };
        let (filled, medium) = self.stretch(medium, work)?;
        filled.map(|()| medium)
    }

    /// Removes all until power fails.
    fn remove_until(
        &mut self,
        medium: Medium,
        cut: &CutPlan,
        new: Account,
    ) -> Result<PoweredOffMedium, CheckFailure> {
        let (config, plan) = (self.next_config(), cut.clone());
        let work = move |handle: Handle, device: Device| async move {
            let fs = mount(&config, &handle, &device).await?;
            check_account(&fs, Some(new)).await.map_err(named("power failed in a removal"))?;
            let due = cut_is_due(&handle, &device, &plan);
            match select2(remove_all(&fs), due).await {
                Either::First(Err(_)) if device.with(PowerSwitch::is_off) => Ok(()),
                Either::First(removed) => removed.map_err(failed("removal")),
                Either::Second(()) => Ok(()),
            }
        };
        let (removed, medium) = self.stretch(medium, work)?;
        removed?;
        Ok(self.power_fails(medium))
    }
}

/// Finds nothing wrong with a volume that was unmounted.
async fn check_volume(config: &FsConfig, device: &Device) -> Result<(), CheckFailure> {
    let checked = config.kind().check(&device.erased()).await;
    let report = checked.map_err(|error| CheckFailure::new(format!("check: {error}")))?;
    match report.findings.first() {
        None => Ok(()),
        Some(finding) => Err(CheckFailure::new(format!("after an unmount: {finding}"))),
    }
}

/// Mounts without a report.
async fn mount(config: &FsConfig, handle: &Handle, device: &Device) -> Result<Fs, CheckFailure> {
    let mounted = config.mount(mount_env(handle, device)).await;
    mounted.map(|(fs, _)| fs).map_err(failed("mount"))
}

/// When a check failed.
fn named(when: &str) -> impl Fn(CheckFailure) -> CheckFailure + '_ {
    move |failure| CheckFailure { what: format!("after {when}: {}", failure.what), ..failure }
}

/// All is free that was free when the volume was new, once what was removed is durable.
async fn check_empty(fs: &Fs, new: &Account) -> Result<(), CheckFailure> {
    fs.syncfs(Caller::default()).await.map_err(failed("syncfs"))?;
    let now = new.again(fs).await.map_err(failed("the account of the volume"))?;
    now.check_empty(new)
}

/// The ballast is written as it was to the new volume: it finds as much room at least, and is what was written.
async fn fill_again(fs: &Fs, first: Ballast, new: &Account) -> Result<(), CheckFailure> {
    let filled = ballast::fill(fs, first.spare).await;
    filled.map_err(|error| failed_on(fs, "filling the volume again", error))?;
    let tree = read_tree(fs).await.map_err(failed("reading the tree"))?;
    ballast::check(&tree)?;
    let size = ballast::size(fs).await.map_err(failed("ballast"))?;
    if size < first.size {
        let first = first.size;
        let what = format!(
            "the volume was emptied, and takes {size} bytes; it took {first} when it was new"
        );
        return Err(CheckFailure::new(what));
    }
    check_account(fs, Some(*new)).await
}
