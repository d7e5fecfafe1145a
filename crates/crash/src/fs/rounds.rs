//! One seed: a new volume, then rounds of load, cut, recovery and judgement, and an orderly end.
//!
//! Each stretch between two cuts is a run of its own executor, which ends with every task in it: that
//! is how host memory is lost. Time goes on where the stretch before it ended.

use super::ballast::{self, Ballast, fill, fill_between};
use super::draw::appended::count_collection;
use super::glances::{Glanced, glances};
use super::load::{Ended, Happened, Progress, Shared, Style, Writer};
use super::model::Model;
use super::plan::RoundPlan;
use super::power_switch::{
    Bios, Device, Medium, PowerOnResult, PowerSwitch, PoweredOffMedium, cut_is_due,
};
use super::reduced::{Left, Notes, Operations, last_operation, until_cut};
use super::space::Account;
use super::stretch::{Stretch, stretch};
use super::tree::{Fs, Tree, check_links, read_tree};
use super::{FsOptions, Image, LATENCY, Oracle};
use crate::coverage::Coverage;
use crate::device::drive::CheckFailure;
use crate::draw::plan::CutPlan;
use crate::event::{EventKind, LogEvent, as_case, story};
use crate::outcome::Counts;
use crate::settings::Settings;
use crate::shrink::numbers::Numbers;
use crate::shrink::reduction::Round;
use nandscape_block::{Lba, MemDevice, Payload, SectorData, Tag};
use nandscape_fs::contract::{Caller, FsError};
use nandscape_fs::{FsConfig, MountEnv};
use nandscape_rt::combine::{Either, join_all, select2};
use nandscape_rt::{Handle, Host, Nanos, Stream};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

/// Sectors of a read or write of a whole volume.
const WINDOW: u64 = 32;
/// Cores of the host, for file systems whose work takes some.
pub(super) const CORES: u16 = 4;

/// A seed under way.
pub(crate) struct Run<'a> {
    pub(super) seed: u64,
    pub(super) options: &'a FsOptions,
    oracle: Option<&'a dyn Oracle>,
    style: Style,
    pub(super) models: Vec<Rc<RefCell<Model>>>,
    pub(super) counts: Counts,
    pub(super) coverage: Rc<RefCell<Coverage>>,
    pub(super) round: u32,
    pub(super) now: Nanos,
    pub(super) mounts: u64,
    left: Left,
    /// The account of the new volume.
    pub(super) account: Option<Account>,
    /// What it has of the ballast.
    pub(super) ballast: Option<Ballast>,
    pub(super) notes: Rc<RefCell<Notes>>,
    /// The power cuts so far.
    cuts: Vec<LogEvent>,
    /// Of the writer that is at fault.
    pub(super) event_log: Vec<LogEvent>,
}

/// What a failed call is.
pub(super) fn failed(what: &str) -> impl Fn(FsError) -> CheckFailure + '_ {
    move |error| CheckFailure::new(format!("{what}: {error}"))
}

/// The same of a load, with what made the file system read-only, if anything did.
pub(super) fn failed_on(fs: &Fs, what: &str, error: impl std::fmt::Display) -> CheckFailure {
    let fault = fs.fault().map_or(String::new(), |fault| format!(" ({fault})"));
    CheckFailure::new(format!("{what}: {error}{fault}"))
}

impl<'a> Run<'a> {
    pub(super) fn new(
        seed: u64,
        options: &'a FsOptions,
        oracle: Option<&'a dyn Oracle>,
        left: Left,
    ) -> Self {
        let style = Style::draw(seed, options.scatters(), options.full);
        let promises = options.promises(seed);
        let mut coverage = Coverage::listed(promises);
        if let Some(full) = style.full {
            Happened::list(&mut coverage);
            Happened::Seed.count(full.layer, 1, &mut coverage);
        }
        let model =
            |writer| Rc::new(RefCell::new(Model::with_promises(format!("w{writer}"), promises)));
        Self {
            seed,
            options,
            oracle,
            style,
            models: (0..style.writers).map(model).collect(),
            counts: Counts::default(),
            coverage: Rc::new(RefCell::new(coverage)),
            round: 0,
            now: Nanos::ZERO,
            mounts: 0,
            left,
            account: None,
            ballast: None,
            notes: Rc::default(),
            cuts: Vec::new(),
            event_log: Vec::new(),
        }
    }

    /// What the seed chose beside the device, as keys and values.
    pub(crate) fn settings(&self) -> Settings {
        Settings::default()
            .with("fs", self.options.mode_settings(self.seed))
            .with("rounds", self.options.rounds)
            .with("load", self.style.settings())
            .with("timers", self.options.knob_settings(self.seed))
    }

    pub(crate) fn round(&self) -> u32 {
        self.round
    }

    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    pub(crate) fn coverage(&self) -> Coverage {
        self.coverage.borrow().clone()
    }

    /// The log of the writer at fault; of a reduced run, of all of them, with the power cuts.
    pub(crate) fn event_log(&self) -> Vec<LogEvent> {
        match self.left {
            Left::Reduced(..) => story(&self.whole_log()).to_vec(),
            Left::All | Left::Noted => self.event_log.clone(),
        }
    }

    /// The calls of a reduced run as a case of call sequences.
    pub(crate) fn calls(&self) -> Vec<String> {
        let dirs = self.models.iter().map(|model| model.borrow().root().to_owned());
        match self.left {
            Left::Reduced(..) => as_case(dirs, &self.whole_log()),
            Left::All | Left::Noted => Vec::new(),
        }
    }

    /// The logs of all writers, with the power cuts.
    fn whole_log(&self) -> Vec<LogEvent> {
        let of_writers = self.models.iter().flat_map(|model| model.borrow().named_log());
        let mut all: Vec<LogEvent> = of_writers.chain(self.cuts.iter().cloned()).collect();
        all.sort_by_key(|event| event.at);
        all
    }

    /// Everything that a seed does, or what is left of it.
    pub(crate) fn rounds(&mut self, medium: Medium) -> Result<(), CheckFailure> {
        self.now = medium.ready_at();
        let mut medium = self.make(medium)?;
        for (round, plan) in (0..).zip(RoundPlan::draw(self.seed, self.options.rounds)) {
            self.round = round;
            let Some(RoundPlan { cut, mounts }) = self.left_of(plan) else { continue };
            let Some(cut) = cut else { return self.end(medium) };
            let left = self.load_until(medium, &cut)?;
            medium = self.recover(left, &cut.recovery_cuts)?;
            for cut in mounts {
                let Some(cut) = cut else {
                    self.mounts += 1;
                    continue;
                };
                let left = self.mount_until(medium, &cut)?;
                medium = self.recover(left, &cut.recovery_cuts)?;
            }
            if self.oracle_due() {
                medium = self.run_oracle(medium)?;
            }
            medium = self.damage_copies(medium)?;
        }
        self.round = self.options.rounds;
        self.end(medium)
    }

    /// What is left of a round's power cuts, if anything is; else its mounts are counted all the same.
    fn left_of(&mut self, plan: RoundPlan) -> Option<RoundPlan> {
        let Left::Reduced(left, _) = &self.left else {
            let recovery = plan.cut.as_ref().map_or(0, |cut| cut.recovery_cuts.len() as u32);
            let (recovery, mounts) =
                (Numbers::up_to(recovery), Numbers::up_to(plan.mounts.len() as u32));
            let round = Round { recovery, mounts, ..Round::default() };
            self.notes.borrow_mut().reached.rounds.insert(self.round, round);
            return Some(plan);
        };
        let Some(round) = left.rounds.get(&self.round) else {
            self.mounts += 1 + plan.mounts.len() as u64;
            return None;
        };
        let reached = Round { operations: BTreeMap::new(), ..round.clone() };
        self.notes.borrow_mut().reached.rounds.insert(self.round, reached);
        Some(plan.reduced(round))
    }

    fn oracle_due(&self) -> bool {
        let cut = self.seed.wrapping_mul(self.options.rounds.into()) + u64::from(self.round);
        self.oracle.is_some()
            && !self.options.is_appended()
            && cut.is_multiple_of(self.options.oracle_every.max(1))
    }

    /// How the volume is made and mounted next.
    pub(super) fn next_config(&mut self) -> FsConfig {
        self.mounts += 1;
        self.options.config(self.seed, self.mounts)
    }

    /// Runs something on a medium until it ends.
    pub(super) fn stretch<T: 'static, F: Future<Output = T> + 'static>(
        &mut self,
        medium: Medium,
        work: impl FnOnce(Handle, Device) -> F + 'static,
    ) -> Result<(T, Medium), CheckFailure> {
        let Stretch { output, medium, bios, now } = stretch(self.now, medium, work)?;
        self.now = now;
        self.count(bios);
        Ok((output?, medium))
    }

    fn count(&mut self, bios: Bios) {
        self.counts.requests += bios.requests;
        self.counts.sectors_read += bios.sectors_read;
        self.counts.sectors_written += bios.sectors_written;
        self.counts.sectors_discarded += bios.sectors_discarded;
        self.counts.flushes += bios.flushes;
    }

    pub(super) fn count_commands(&mut self, medium: &Medium) {
        let commands = medium.commands();
        self.counts.programs += commands.programs;
        self.counts.erases += commands.erases;
        if let Some((report, detail)) = medium.report().filter(|_| self.options.is_appended()) {
            count_collection(&report, &detail, &mut self.coverage.borrow_mut());
        }
    }

    /// Makes the volume, the writers' directories, and a file that takes most of the room.
    fn make(&mut self, medium: Medium) -> Result<Medium, CheckFailure> {
        let (config, models) = (self.next_config(), self.models.clone());
        let (spare, is_appended) = (self.style.spare_blocks, self.options.is_appended());
        let full = self.options.full;
        let work = move |handle: Handle, device: Device| async move {
            let made = config.format(&device.erased()).await;
            made.map_err(|error| CheckFailure::new(format!("mkfs: {error}")))?;
            let env = mount_env(&handle, &device);
            let (fs, _) = config.mount(env).await.map_err(failed("mount"))?;
            let account = Account::of(&fs, config.kind())
                .await
                .map_err(failed("the account of the volume"))?;
            for model in models {
                let name = model.borrow().root().to_owned();
                let made = fs.mkdir(Caller::default(), fs.root(), name.as_bytes(), 0o755).await;
                made.map_err(failed("mkdir"))?;
            }
            // What is kept for metadata is no room for writers: where space is to end, they have some all the same.
            let stat = fs.statfs(Caller::default()).await.map_err(failed("statfs"))?;
            let spare = if full { spare + stat.kept } else { spare };
            let filled =
                if is_appended { fill_between(&fs, spare).await } else { fill(&fs, spare).await };
            filled.map_err(failed("ballast"))?;
            let size = ballast::size(&fs).await.map_err(failed("ballast"))?;
            let ballast = Ballast { spare, size };
            fs.unmount().await.map_err(failed("unmount"))?;
            Ok::<_, CheckFailure>((account, ballast))
        };
        let (made, medium) = self.stretch(medium, work)?;
        let (account, ballast) = made?;
        (self.account, self.ballast) = (Some(account), Some(ballast));
        Ok(medium)
    }

    /// Mounts, judges what is there, and lets the load run until power fails.
    fn load_until(
        &mut self,
        medium: Medium,
        cut: &CutPlan,
    ) -> Result<PoweredOffMedium, CheckFailure> {
        let (verified, medium) = self.verify_then_load(medium, Some(cut))?;
        verified?;
        self.cut(medium)
    }

    fn cut(&mut self, medium: Medium) -> Result<PoweredOffMedium, CheckFailure> {
        self.cuts.push(LogEvent { at: self.now + Nanos(1), what: EventKind::PowerCut });
        self.verify_other_cuts(&medium)?;
        Ok(self.power_fails(medium))
    }

    pub(super) fn power_fails(&mut self, medium: Medium) -> PoweredOffMedium {
        self.count_commands(&medium);
        self.counts.cuts += 1;
        self.now += Nanos(1);
        medium.cut(self.now)
    }

    pub(super) fn verify_then_load(
        &mut self,
        medium: Medium,
        cut: Option<&CutPlan>,
    ) -> Result<(Result<(), CheckFailure>, Medium), CheckFailure> {
        let (config, models) = (self.next_config(), self.models.clone());
        let (seed, style, round) = (self.seed, self.style, self.round);
        let (cut, event_log) = (cut.cloned(), Rc::new(RefCell::new(Vec::new())));
        let (left, notes) = (self.left.clone(), Rc::clone(&self.notes));
        let (coverage, account) = (Rc::clone(&self.coverage), self.account);
        let events = Rc::clone(&event_log);
        let glanced = Glanced::default();
        let glances = (self.style.scatter_percent > 0 && cut.is_some()).then(|| {
            let rng = Stream::new(seed, &format!("glances-{}", self.mounts));
            glances(&self.models, &glanced, rng)
        });
        let work = move |handle: Handle, device: Device| async move {
            let mounted = config.mount(mount_env(&handle, &device)).await;
            let (fs, report) = mounted.map_err(failed("mount"))?;
            fs.attach_host(&Host::with_cores(CORES));
            for step in report.steps {
                coverage.borrow_mut().count("recovery", step.name, step.count);
            }
            let tree = read_tree(&fs).await.map_err(failed("reading the tree"))?;
            verify(&tree, &models, &event_log, Model::verify)?;
            check_account(&fs, account).await?;
            settle(&tree, &models, &coverage);
            if let Some(glances) = glances {
                device.with(|switch| switch.glance(glances));
            }
            let progress = Rc::new(Progress::default());
            let operations = Operations::new(&handle, &left, &notes, round);
            operations.load_begins(last_operation(&handle, &device));
            let shared = Shared {
                handle: handle.clone(),
                device: device.clone(),
                fs: Rc::clone(&fs),
                style,
                coverage: Rc::clone(&coverage),
                progress: Rc::clone(&progress),
                operations: operations.clone(),
                account,
                seed,
                round,
            };
            let writers = (0..)
                .zip(&models)
                .map(|(number, model)| Writer::new(shared.clone(), number, model).run());
            let load = run_all(&fs, writers, &models, &event_log);
            let Some(cut) = cut else {
                load.await?;
                return unmount_whole(&fs, account).await;
            };
            let ended = until_cut(load, &handle, &device, &cut, &operations).await;
            if ended.is_ok() {
                let off = device.with(PowerSwitch::is_off);
                operations.cut_comes(last_operation(&handle, &device), off);
            }
            note_cut(&fs, &progress, &mut coverage.borrow_mut());
            ended
        };
        let ended = self.stretch(medium, work);
        self.event_log = events.take();
        if matches!(&ended, Ok((Ok(()), _))) {
            self.verify_glanced(&glanced)?;
        }
        ended
    }

    /// Mounts until power fails.
    fn mount_until(
        &mut self,
        medium: Medium,
        cut: &CutPlan,
    ) -> Result<PoweredOffMedium, CheckFailure> {
        let (config, plan) = (self.next_config(), cut.clone());
        let work = move |handle: Handle, device: Device| async move {
            let due = cut_is_due(&handle, &device, &plan);
            match select2(config.mount(mount_env(&handle, &device)), due).await {
                Either::First(Err(_)) if device.with(PowerSwitch::is_off) => Ok(()),
                Either::First(mounted) => mounted.map(drop).map_err(failed("mount")),
                Either::Second(()) => Ok(()),
            }
        };
        let (mounted, medium) = self.stretch(medium, work)?;
        mounted?;
        self.counts.cuts_in_recovery += 1;
        self.cut(medium)
    }

    /// The FTL's recovery, cut after so many media commands again and again.
    pub(super) fn recover(
        &mut self,
        mut left: PoweredOffMedium,
        cuts: &[u64],
    ) -> Result<Medium, CheckFailure> {
        let mut off_after = cuts.iter().copied();
        loop {
            let limit = off_after.next();
            match left.recover(self.now, limit) {
                PowerOnResult::CutAgain(remains, at) if limit.is_some() => {
                    (left, self.now) = (remains, at);
                    self.cuts.push(LogEvent { at, what: EventKind::PowerCutInRecovery });
                    self.counts.cuts += 1;
                    self.counts.cuts_in_recovery += 1;
                }
                ended => {
                    let (medium, ready) = ended.up()?;
                    self.now = ready;
                    return Ok(medium);
                }
            }
        }
    }

    /// Shows the oracle what the last cut left, and what we make of it.
    fn run_oracle(&mut self, medium: Medium) -> Result<Medium, CheckFailure> {
        let Some(oracle) = self.oracle else { return Ok(medium) };
        let sectors = self.options.volume_sectors();
        let (left, medium) = self.stretch(medium, move |_, device| export(device, sectors))?;
        let left = left?;
        let (ours, after) = self.recover_copy(left.clone())?;
        let name = oracle.name();
        let found = |what| move |text: String| CheckFailure::new(format!("{name}, {what}: {text}"));
        oracle.check(&after).map_err(found("on what our recovery left"))?;
        if self.options.oracle_recovers()
            && let Some(theirs) = oracle.recover(&left).map_err(found("in its recovery"))?
        {
            oracle.check(&theirs).map_err(found("on its own recovery"))?;
            let (theirs, _) = self.recover_copy(theirs)?;
            if let Some(path) = difference(&ours, &theirs) {
                let what = format!("the recovery of {name} left another {path}");
                return Err(CheckFailure::new(what));
            }
        }
        Ok(medium)
    }

    /// Mounts a copy of a volume; its tree, and what an unmount leaves.
    fn recover_copy(&mut self, image: Image) -> Result<(Tree, Image), CheckFailure> {
        let sectors = self.options.volume_sectors();
        let device = MemDevice::new(sectors).with_latency(LATENCY);
        let medium = Medium::Memory(Box::new(device));
        let (counts, now, mounts) = (self.counts, self.now, self.mounts);
        let config = self.next_config();
        let work = move |handle: Handle, device: Device| async move {
            import(&device, image).await?;
            let mounted = config.mount(mount_env(&handle, &device)).await;
            let (fs, _) = mounted.map_err(failed("mount of a copy"))?;
            let tree = read_tree(&fs).await.map_err(failed("reading the tree of a copy"))?;
            fs.unmount().await.map_err(failed("unmount of a copy"))?;
            Ok((tree, export(device, sectors).await?))
        };
        let ended = self.stretch(medium, work);
        // The seed's own run goes on as if the volume had not been read.
        (self.counts, self.now, self.mounts) = (counts, now, mounts);
        ended?.0
    }
}

/// What a mount stands on.
pub(super) fn mount_env(rt: &Handle, device: &Device) -> MountEnv {
    MountEnv { rt: rt.clone(), device: device.erased() }
}

/// Holds what is free and what files have against what the new volume had.
pub(super) async fn check_account(fs: &Fs, new: Option<Account>) -> Result<(), CheckFailure> {
    let Some(new) = new else { return Ok(()) };
    let now = new.again(fs).await.map_err(failed("the account of the volume"))?;
    now.check(&new)
}

/// Unmounts a volume on which everything has ended, of which nothing is lost.
async fn unmount_whole(fs: &Fs, new: Option<Account>) -> Result<(), CheckFailure> {
    fs.syncfs(Caller::default()).await.map_err(failed("syncfs"))?;
    check_account(fs, new).await?;
    fs.unmount().await.map_err(failed("unmount"))
}

/// Where two trees differ.
pub(super) fn difference<'t>(ours: &'t Tree, theirs: &'t Tree) -> Option<&'t String> {
    let differs = |path: &&String| ours.get(*path) != theirs.get(*path);
    ours.keys().chain(theirs.keys()).find(differs)
}

/// Notes what was in progress at a cut, and what the file system had counted.
fn note_cut(fs: &Fs, progress: &Progress, coverage: &mut Coverage) {
    coverage.state(match progress.syncs.get() {
        0 => "cut, no sync in progress",
        _ => "cut, sync in progress",
    });
    if progress.unlinked.get() > 0 {
        coverage.state("cut, unlinked file open");
    }
    progress.driven().for_each(|layer| Happened::Cut.count(layer, 1, coverage));
    let detail = fs.counts().detail;
    let of_append = |name| detail.count("append", name);
    if of_append("upcalls_fetched") > of_append("upcalls_completed") {
        coverage.count("cuts", "upcall fetched, not completed", 1);
    }
    if of_append("void_blocks") > Some(0) {
        coverage.count("cuts", "blocks wait for their discard", 1);
    }
    for group in detail.groups() {
        for (name, count) in group.counts {
            coverage.count(group.name, name, count);
        }
    }
}

/// Runs the writers until all have ended or one fails.
async fn run_all<F: Future<Output = Ended>>(
    fs: &Fs,
    writers: impl Iterator<Item = F>,
    models: &[Rc<RefCell<Model>>],
    event_log: &RefCell<Vec<LogEvent>>,
) -> Result<(), CheckFailure> {
    for (ended, model) in join_all(writers).await.into_iter().zip(models) {
        if let Err(error) = ended {
            *event_log.borrow_mut() = model.borrow().event_log();
            return Err(failed_on(fs, model.borrow().root(), error.what));
        }
    }
    Ok(())
}

/// Holds a tree against every writer's model, and against what the ballast is.
pub(super) fn verify(
    tree: &Tree,
    models: &[Rc<RefCell<Model>>],
    event_log: &RefCell<Vec<LogEvent>>,
    verified: impl Fn(&Model, &Tree) -> Result<(), String>,
) -> Result<(), CheckFailure> {
    for model in models {
        let model = model.borrow();
        if let Err(what) = verified(&model, tree) {
            *event_log.borrow_mut() = model.event_log();
            return Err(CheckFailure::new(what));
        }
    }
    check_links(tree).map_err(CheckFailure::new)?;
    ballast::check(tree)
}

/// Takes over what a cut left, after counting what it lost.
fn settle(tree: &Tree, models: &[Rc<RefCell<Model>>], coverage: &RefCell<Coverage>) {
    count_losses(tree, models, coverage);
    models.iter().for_each(|model| model.borrow_mut().settle(tree));
}

/// Counts what a tree, which holds against every writer's model, has lost by the kernel's rules.
pub(super) fn count_losses(
    tree: &Tree,
    models: &[Rc<RefCell<Model>>],
    coverage: &RefCell<Coverage>,
) {
    for model in models {
        for (loss, count) in model.borrow().losses(tree) {
            coverage.borrow_mut().lost(loss, count);
        }
    }
}

/// Reads a whole volume.
pub(super) async fn export(device: Device, sectors: u64) -> Result<Image, CheckFailure> {
    let mut image = Image::new();
    for first in (0..sectors).step_by(WINDOW as usize) {
        let count = WINDOW.min(sectors - first) as u32;
        let read = device.read(Lba(first), count).await;
        let read = read.map_err(|error| CheckFailure::new(format!("export: {error}")))?;
        image.extend((0..count).map(|index| read.sector(index)));
    }
    Ok(image)
}

/// Writes a whole volume, durably.
pub(super) async fn import(device: &Device, image: Image) -> Result<(), CheckFailure> {
    for (lba, content) in (0..).zip(image) {
        if content != SectorData::Tag(Tag::ZERO) {
            let written = device.write(Lba(lba), 1, Payload::collect(vec![content])).await;
            written.map_err(|error| CheckFailure::new(format!("import: {error}")))?;
        }
    }
    device.flush().await.map_err(|error| CheckFailure::new(format!("import: {error}")))
}
