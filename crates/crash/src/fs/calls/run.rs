//! Runs a case: its calls on a fresh volume, power cuts on the way and at the end, and a judgement of what each left.
//!
//! - A cut on the way comes when a request that changes the device was submitted. It is judged by the model alone: what
//!   was synced is there, what was not may be.
//! - A cut at the end comes when the last call has returned. It is judged by the model and by what the case expects.
//! - On the hostile device one run of the calls gives all cuts, as copies of the device; the end is cut several times, with
//!   other subsets of what no flush covered. On flash the calls run again for each cut.
//! - The first fsync after an orderly unmount may write a checkpoint that others do not. So the volume is synced with a
//!   directory on it before the first call.
//!
//! A case with the same options always ends in the same way.

use super::expect;
use super::player::{Player, Stop};
use crate::calls::{Call, Case, Expectation, Line};
use crate::device::drive::CheckFailure;
use crate::draw::plan::{CutPlan, Trigger};
use crate::fs::FsOptions;
use crate::fs::model::Model;
use crate::fs::power_switch::{Device, Glances, Medium, cut_is_due};
use crate::fs::rounds::{CORES, failed, mount_env};
use crate::fs::seed::base;
use crate::fs::stretch::{Stretch, stretch};
use crate::fs::tree::{Tree, check_links, read_tree};
use crate::kernel_loss::KernelLoss;
use nandscape_fs::FsConfig;
use nandscape_fs::contract::Caller;
use nandscape_rt::combine::{Either, select2};
use nandscape_rt::{Handle, Host, Nanos, Stream};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// The directory that a case takes for the root.
const ROOT_NAME: &str = "root";
/// Cuts at the end of a case on the hostile device.
const END_CUTS: u64 = 8;
/// Requests of a case after which nothing is cut any more.
const CHANGES_MAX: u64 = 1 << 16;

/// At which requests of a case power is cut on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CutPoints {
    /// At each.
    All,
    /// At so many of them, drawn.
    Some(u64),
}

/// What is given for cases.
#[derive(Clone, PartialEq, Debug)]
pub struct CallsOptions {
    /// The device and the file system. Modes that are not given have their defaults.
    pub fs: FsOptions,
    /// Cuts on the way.
    pub cuts: CutPoints,
    /// Source of the device's choices, and of those cuts.
    pub seed: u64,
}

/// What a case showed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CaseOutcome {
    /// Power cuts that were judged, those at the end among them.
    pub cuts: u64,
    /// Cuts after which something was lost as the kernel loses it, by class.
    pub losses: BTreeMap<KernelLoss, u64>,
    /// What a cut left that it must not.
    pub finding: Option<Finding>,
    /// Why the case cannot run: its line, and the reason.
    pub refused: Option<(usize, String)>,
}

/// Something that a power cut must not leave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What is wrong.
    pub what: String,
    /// Calls that had begun when power was cut.
    pub calls: usize,
    /// Whether the cut came when the last of them had returned.
    pub at_end: bool,
    /// What of a case's expectations does not hold, if it is about one.
    pub expected: Option<Line<Expectation>>,
    /// Classes in which the same cut lost something as the kernel does.
    pub losses: Vec<KernelLoss>,
}

/// What a power cut left, and what was known then.
struct Left {
    medium: Medium,
    model: Model,
    calls: usize,
    at_end: bool,
}

/// A run of all calls of a case, or as far as it came.
struct Played {
    ended: Result<(), Ended>,
    lefts: Vec<Left>,
    now: Nanos,
}

/// Why a case ended early.
enum Ended {
    Refused(usize, String),
    Failed(usize, CheckFailure),
}

/// Runs cases with the same options, one after the other.
pub struct CaseRunner<'a> {
    given: &'a CallsOptions,
    options: FsOptions,
    mounts: Cell<u64>,
    /// The volume as it was made, where copies of it can be had.
    made: Option<Volume>,
}

impl<'a> CaseRunner<'a> {
    /// A runner with these options.
    #[must_use]
    pub fn new(given: &'a CallsOptions) -> Self {
        Self { given, options: given.fs.clone(), mounts: Cell::new(0), made: None }
    }

    /// Runs a case with all its cuts.
    pub fn run(&mut self, case: &Case) -> CaseOutcome {
        let mut outcome = CaseOutcome::default();
        // Nothing of a run that panicked is looked at again but its counts.
        let ran = catch_unwind(AssertUnwindSafe(|| self.run_cuts(case, &mut outcome)));
        into_outcome(ran, case, outcome)
    }
}

/// How a case ended, with what its cuts showed.
fn into_outcome(
    ran: Result<Result<(), Ended>, Box<dyn Any + Send>>,
    case: &Case,
    mut outcome: CaseOutcome,
) -> CaseOutcome {
    let all = case.calls.len();
    let ended = ran.unwrap_or_else(|why| {
        Err(Ended::Failed(all, CheckFailure::panicked("the file system or the FTL", &*why)))
    });
    match ended {
        Ok(()) => {}
        Err(Ended::Refused(line, why)) => outcome.refused = Some((line, why)),
        Err(Ended::Failed(calls, failure)) => {
            let what = failure.what;
            let (expected, losses) = (None, Vec::new());
            outcome.finding = Some(Finding { what, calls, at_end: false, expected, losses });
        }
    }
    outcome
}

/// A volume that was made, at an instant.
struct Volume {
    medium: Medium,
    now: Nanos,
}

impl CaseRunner<'_> {
    fn next_config(&self) -> FsConfig {
        self.mounts.set(self.mounts.get() + 1);
        self.options.undrawn(self.given.seed, self.mounts.get())
    }

    fn stream(&self, name: &str) -> Stream {
        Stream::new(self.given.seed, name)
    }

    fn run_cuts(&mut self, case: &Case, outcome: &mut CaseOutcome) -> Result<(), Ended> {
        let volume = match self.made.take() {
            Some(volume) => volume,
            None => self.make().map_err(|failure| Ended::Failed(0, failure))?,
        };
        // The volume is synced: a cut leaves a copy of it. What follows is the same after every mount of it.
        self.mounts.set(1);
        match volume.medium.after_another_cut(self.stream("calls")) {
            Some(medium) => {
                let now = volume.now;
                self.made = Some(volume);
                self.run_on_copies(case, Volume { medium, now }, outcome)
            }
            None => self.run_on_flash(case, volume, outcome),
        }
    }

    /// Makes a volume on the device of the seed.
    fn make(&mut self) -> Result<Volume, CheckFailure> {
        let (_, medium) = base(self.given.seed, &self.given.fs).map_err(|outcome| {
            let why = outcome.violation.map_or_else(String::new, |violation| violation.what);
            CheckFailure::new(format!("no device: {why}"))
        })?;
        self.options = self.given.fs.on(medium.caps());
        self.mounts.set(0);
        let config = self.next_config();
        let began = medium.ready_at();
        let work = async move |_: Handle, device: Device| {
            let made = config.format(&device.erased()).await;
            made.map(drop).map_err(|error| CheckFailure::new(format!("mkfs: {error}")))
        };
        let Stretch { output, medium, now, .. } = stretch(began, medium, work)?;
        output?.map(|()| Volume { medium, now })
    }

    /// All cuts of one run, on copies of the hostile device.
    fn run_on_copies(
        &self,
        case: &Case,
        volume: Volume,
        outcome: &mut CaseOutcome,
    ) -> Result<(), Ended> {
        let Played { ended, lefts, now } = self.play_watched(case, volume)?;
        for left in lefts {
            self.judge(case, left, now, outcome);
            if outcome.finding.is_some() {
                return Ok(());
            }
        }
        ended
    }

    /// Makes the calls, and keeps what cuts would leave.
    fn play_watched(&self, case: &Case, volume: Volume) -> Result<Played, Ended> {
        let model = Rc::new(RefCell::new(self.model()));
        let begun = Rc::new(Cell::new(0));
        let lefts: Rc<RefCell<Vec<Left>>> = Rc::default();
        let glances = self.glances(&model, &begun, &lefts);
        let (config, calls) = (self.next_config(), case.calls.clone());
        let (on_the_way, known) = (Rc::clone(&begun), Rc::clone(&model));
        let ends: Vec<Stream> =
            (0..END_CUTS).map(|number| self.stream(&format!("calls-end-{number}"))).collect();
        let at_end = Rc::clone(&lefts);
        let work = async move |handle: Handle, device: Device| {
            let mut player = mounted(&handle, &device, &config, &known).await?;
            device.with(|switch| switch.glance(glances));
            play(&mut player, &calls, &on_the_way).await?;
            for rng in ends {
                let medium = device.with(|switch| switch.after_another_cut(rng));
                let model = known.borrow().clone();
                let left = |medium| Left { medium, model, calls: calls.len(), at_end: true };
                at_end.borrow_mut().extend(medium.map(left));
            }
            Ok(())
        };
        let failed = |failure| Ended::Failed(begun.get(), failure);
        let Stretch { output, now, .. } =
            stretch(volume.now, volume.medium, work).map_err(failed)?;
        let ended = output.map_err(failed)?;
        Ok(Played { ended, lefts: lefts.take(), now })
    }

    fn model(&self) -> Model {
        Model::with_promises(ROOT_NAME.to_owned(), self.options.fs().promises())
    }

    /// Looks that keep what a cut would leave: at each change, or at some by reservoir sampling.
    fn glances(
        &self,
        model: &Rc<RefCell<Model>>,
        begun: &Rc<Cell<usize>>,
        lefts: &Rc<RefCell<Vec<Left>>>,
    ) -> Glances {
        let (model, begun, lefts) = (Rc::clone(model), Rc::clone(begun), Rc::clone(lefts));
        let (cuts, seed) = (self.given.cuts, self.given.seed);
        let (mut rng, mut changes) = (self.stream("calls-cuts"), 0);
        let look = move |medium: &Medium| {
            changes += 1;
            let slot = match cuts {
                CutPoints::All => None,
                CutPoints::Some(0) => return,
                CutPoints::Some(most) if changes <= most => None,
                CutPoints::Some(most) => match rng.below(changes) {
                    slot if slot < most => Some(slot as usize),
                    _ => return,
                },
            };
            let cut = Stream::new(seed, &format!("calls-cut-{changes}"));
            let Some(medium) = medium.after_another_cut(cut) else { return };
            let model = model.borrow().clone();
            let left = Left { medium, model, calls: begun.get(), at_end: false };
            let mut lefts = lefts.borrow_mut();
            match slot {
                Some(slot) => lefts[slot] = left,
                None => lefts.push(left),
            }
        };
        Glances { after: (1..=CHANGES_MAX).rev().collect(), look: Box::new(look) }
    }

    /// One run for each cut: at the end, then on the way.
    fn run_on_flash(
        &mut self,
        case: &Case,
        volume: Volume,
        outcome: &mut CaseOutcome,
    ) -> Result<(), Ended> {
        let changes = self.cut_on_flash(case, volume, None, outcome)?;
        let mut rng = self.stream("calls-cuts");
        let at: Vec<u64> = match self.given.cuts {
            CutPoints::All => (1..=changes).collect(),
            CutPoints::Some(most) => {
                let draw = |_| 1 + rng.below(changes.max(1));
                (0..most.min(changes)).map(draw).collect()
            }
        };
        for change in at {
            if outcome.finding.is_some() {
                break;
            }
            let volume = self.make().map_err(|failure| Ended::Failed(0, failure))?;
            self.cut_on_flash(case, volume, Some(change), outcome)?;
        }
        Ok(())
    }

    /// Makes the calls until a change, or all of them; cuts power and judges. Returns the changes that there were.
    fn cut_on_flash(
        &self,
        case: &Case,
        volume: Volume,
        change: Option<u64>,
        outcome: &mut CaseOutcome,
    ) -> Result<u64, Ended> {
        let model = Rc::new(RefCell::new(self.model()));
        let begun = Rc::new(Cell::new(0));
        let (config, calls) = (self.next_config(), case.calls.clone());
        let (on_the_way, known) = (Rc::clone(&begun), Rc::clone(&model));
        let work = async move |handle: Handle, device: Device| {
            let mut player = mounted(&handle, &device, &config, &known).await?;
            let before = device.with(|switch| switch.bios().changes);
            let played = play(&mut player, &calls, &on_the_way);
            let at_end = match change {
                None => played.await.map(|()| true)?,
                Some(change) => {
                    let trigger = Trigger::Request(change);
                    let plan = CutPlan { trigger, delay: Nanos::ZERO, recovery_cuts: Vec::new() };
                    match select2(played, cut_is_due(&handle, &device, &plan)).await {
                        Either::First(played) => played.map(|()| true)?,
                        Either::Second(()) => false,
                    }
                }
            };
            let changes = device.with(|switch| switch.bios().changes) - before;
            Ok((changes, at_end))
        };
        let failed = |failure| Ended::Failed(begun.get(), failure);
        let Stretch { output, medium, now, .. } =
            stretch(volume.now, volume.medium, work).map_err(failed)?;
        let (changes, at_end) = output.map_err(failed)??;
        let cut = now + Nanos(1);
        let (medium, ready) = medium.cut(cut).recover(cut, None).up().map_err(failed)?;
        let left = Left { medium, model: model.borrow().clone(), calls: begun.get(), at_end };
        self.judge(case, left, ready, outcome);
        Ok(changes)
    }

    /// Mounts what a cut left, and holds it against the model and the expectations.
    fn judge(&self, case: &Case, left: Left, now: Nanos, outcome: &mut CaseOutcome) {
        outcome.cuts += 1;
        let Left { medium, model, calls, at_end } = left;
        let finding = |what: String, losses: &BTreeMap<KernelLoss, u64>| {
            let losses = losses.keys().copied().collect();
            Some(Finding { what, calls, at_end, expected: None, losses })
        };
        let tree = match self.tree(medium, now) {
            Ok(tree) => tree,
            Err(failure) => {
                outcome.finding = finding(failure.what, &BTreeMap::new());
                return;
            }
        };
        if let Err(what) = model.verify(&tree).and_then(|()| check_links(&tree)) {
            outcome.finding = finding(what, &BTreeMap::new());
            return;
        }
        let losses = model.losses(&tree);
        losses.keys().for_each(|loss| *outcome.losses.entry(*loss).or_default() += 1);
        for expected in case.expectations.iter().filter(|_| at_end) {
            let Expectation { what, unless } = &expected.is;
            if let Err(shown) = expect::check(&tree, ROOT_NAME, what)
                && !unless.iter().any(|loss| losses.contains_key(loss))
            {
                let expected = Some(expected.clone());
                outcome.finding = finding(shown, &losses).map(|it| Finding { expected, ..it });
                return;
            }
        }
    }

    /// What a mount shows.
    fn tree(&self, medium: Medium, now: Nanos) -> Result<Tree, CheckFailure> {
        let config = self.next_config();
        let work = async move |handle: Handle, device: Device| {
            let mounted = config.mount(mount_env(&handle, &device)).await;
            let (fs, _) = mounted.map_err(failed("mount"))?;
            read_tree(&fs).await.map_err(failed("reading the tree"))
        };
        stretch(now, medium, work)?.output?
    }
}

/// Mounts a volume, and makes the directory of the case on it.
async fn mounted(
    handle: &Handle,
    device: &Device,
    config: &FsConfig,
    model: &Rc<RefCell<Model>>,
) -> Result<Player, Ended> {
    let prepared = async {
        let mounted = config.mount(mount_env(handle, device)).await;
        let (fs, _) = mounted.map_err(failed("mount"))?;
        fs.attach_host(&Host::with_cores(CORES));
        let me = Caller::default();
        let root = fs.mkdir(me, fs.root(), ROOT_NAME.as_bytes(), 0o755).await;
        let root = root.map_err(failed("mkdir"))?;
        fs.syncfs(me).await.map_err(failed("sync"))?;
        Ok(Player::new(handle.clone(), fs, root.ino, Rc::clone(model)))
    };
    prepared.await.map_err(|failure| Ended::Failed(0, failure))
}

/// Makes the calls of a case, one after the other.
async fn play(player: &mut Player, calls: &[Line<Call>], begun: &Cell<usize>) -> Result<(), Ended> {
    for (number, Line { line, is }) in (1..).zip(calls) {
        begun.set(number);
        player.play(is).await.map_err(|stop| match stop {
            Stop::Case(why) => Ended::Refused(*line, format!("{is}: {why}")),
            Stop::Failed(CheckFailure { what, mismatch }) => {
                let what = format!("{is}: {what}");
                Ended::Failed(number, CheckFailure { what, mismatch })
            }
        })?;
    }
    Ok(())
}
