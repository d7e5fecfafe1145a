//! One seed: load until power is cut, recover (and be cut again on the way), read back, go on;
//! several rounds on one device, and an orderly end.
//!
//! A seed's run is a function of the seed and the options alone. A violation is logged by running the
//! seed once more with the model watching the sector at fault. Of a reduced run only some rounds and requests
//! are left (`reduced`).

use crate::coverage::Coverage;
use crate::device::drive::{CheckFailure, Driver, End};
use crate::device::host::{HostView, Phase, host_of};
use crate::device::model::{Model, Object};
use crate::device::subject::{DeviceUnderTest, Power, Recovery};
use crate::draw::plan::{CutPlan, Plan};
use crate::event::{EventKind, LogEvent};
use crate::outcome::{Counts, SeedOutcome, Violation};
use crate::settings::Settings;
use crate::shrink::keep::Keep;
use crate::shrink::numbers::Numbers;
use crate::shrink::reduction::{Cut, Reduction, Round, Source};
use nandscape_rt::{Nanos, Stream};
use std::collections::BTreeMap;

/// Events of a log that are kept.
const EVENTS_MAX: usize = 40;

/// Runs a plan on a device. `again` makes another one like it, when an event log is needed;
/// `scenario` is what the seed chose.
pub fn run_device<S: DeviceUnderTest>(
    seed: u64,
    plan: &Plan,
    scenario: Settings,
    device: S,
    again: impl FnOnce() -> Option<S>,
) -> SeedOutcome {
    let mut run = Run::new(seed, plan, device, Model::new(None), Left::All);
    let result = run.rounds();
    let violation = result.err().map(|failure| {
        let watched = failure.object();
        let mut violation = run.violation(seed, failure, &scenario);
        let log = |object| log_of_object(seed, plan, object, again());
        violation.event_log = watched.map_or_else(Vec::new, log);
        Box::new(violation)
    });
    SeedOutcome { seed, scenario, counts: run.counts, coverage: Coverage::default(), violation }
}

/// Runs the seed once more and returns the last events about one object.
fn log_of_object<S: DeviceUnderTest>(
    seed: u64,
    plan: &Plan,
    object: Object,
    device: Option<S>,
) -> Vec<LogEvent> {
    let Some(device) = device else { return Vec::new() };
    let mut run = Run::new(seed, plan, device, Model::new(Some(object)), Left::All);
    // It ends as it did before; only the way there is wanted.
    let _ = run.rounds();
    let event_log = run.model.event_log();
    event_log[event_log.len().saturating_sub(EVENTS_MAX)..].to_vec()
}

/// Where the draws of each round's load begin.
pub(crate) type LoadStreams = BTreeMap<u32, Stream>;

/// What is left of a seed's run.
#[derive(Clone, Copy)]
pub(crate) enum Left<'a> {
    /// All of it.
    All,
    /// All of it; what it reaches is noted.
    Noted,
    /// This, in which the loads begin there; what it reaches is noted.
    Reduced(&'a Reduction, &'a LoadStreams),
}

/// A seed in progress.
pub(crate) struct Run<'a, S> {
    plan: &'a Plan,
    left: Left<'a>,
    device: Option<S>,
    host: Box<dyn HostView + 'a>,
    pub(crate) model: Model,
    pub(crate) counts: Counts,
    phase: Phase,
    pub(crate) round: u32,
    now: Nanos,
    /// What was reached of the run, with the instants of its power cuts, and where its loads began.
    pub(crate) reached: Reduction,
    pub(crate) pins: BTreeMap<u32, Cut>,
    pub(crate) streams: LoadStreams,
}

/// How the load of a round ends.
enum Ending {
    /// The round is left out.
    LeftOut,
    Cut(CutPlan),
    Orderly,
}

/// Whether the device can go on.
enum RecoveryResult {
    Serving,
    WornOut,
}

impl<'a, S: DeviceUnderTest> Run<'a, S> {
    pub(crate) fn new(
        seed: u64,
        plan: &'a Plan,
        mut device: S,
        model: Model,
        left: Left<'a>,
    ) -> Self {
        if !plan.unreadable {
            device.watch_resets();
        }
        Self {
            plan,
            left,
            host: host_of(seed, plan, device.caps()),
            model,
            counts: Counts::default(),
            phase: Phase::Fill,
            round: 0,
            now: device.ready_at(),
            device: Some(device),
            reached: Reduction {
                faults: match left {
                    Left::Reduced(left, _) => left.faults,
                    _ => plan.faulty,
                },
                ..Reduction::default()
            },
            pins: BTreeMap::new(),
            streams: LoadStreams::new(),
        }
    }

    /// Everything that the seed does, or what is left of it.
    pub(crate) fn rounds(&mut self) -> Result<(), CheckFailure> {
        self.drive(Phase::Fill, |driver| driver.run(None))?;
        for round in 0..=self.plan.cuts.len() as u32 {
            self.round = round;
            match self.ending() {
                Ending::LeftOut => {}
                Ending::Orderly => return self.end_orderly(),
                Ending::Cut(cut) => {
                    let at = self.load_until_cut(&cut)?;
                    if let RecoveryResult::WornOut = self.cut_and_recover(&cut, at)? {
                        self.counts.worn_out += 1;
                        return Ok(());
                    }
                    self.check_recovered()?;
                }
            }
        }
        Ok(())
    }

    /// How the load of this round ends.
    fn ending(&mut self) -> Ending {
        let drawn = self.plan.cuts.get(self.round as usize);
        let Left::Reduced(left, _) = self.left else {
            let recovery = drawn.map_or(0, |cut| cut.recovery_cuts.len() as u32);
            let reached = Round { recovery: Numbers::up_to(recovery), ..Round::default() };
            self.reached.rounds.insert(self.round, reached);
            return drawn.cloned().map_or(Ending::Orderly, Ending::Cut);
        };
        let Some(round) = left.rounds.get(&self.round) else { return Ending::LeftOut };
        self.reached.rounds.insert(self.round, round.clone());
        drawn.and_then(|drawn| drawn.reduced(round)).map_or(Ending::Orderly, Ending::Cut)
    }

    fn load_until_cut(&mut self, cut: &CutPlan) -> Result<Nanos, CheckFailure> {
        match self.drive(Phase::Load, |driver| driver.run(Some(cut)))? {
            End::Cut(at, pin) => {
                self.pins.insert(self.round, pin);
                self.check_at_cut()?;
                Ok(at)
            }
            End::Finished => Err(CheckFailure::new("the planned cut never came")),
        }
    }

    /// Whatever is in flight, the state of a device agrees with itself; where power went off between two media
    /// commands the device is in the middle of a step.
    fn check_at_cut(&self) -> Result<(), CheckFailure> {
        let device = self.device.as_ref().expect("a device serves until the cut");
        match device.power() {
            Power::Off(_) => Ok(()),
            _ => self.check_invariants("before a power cut"),
        }
    }

    fn cut_and_recover(
        &mut self,
        cut: &CutPlan,
        at: Nanos,
    ) -> Result<RecoveryResult, CheckFailure> {
        let device = self.device.take().expect("a device serves between two cuts");
        self.counts.cuts += 1;
        self.count_commands(&device);
        self.model.power_cut();
        self.model.log(at, || EventKind::PowerCut);
        self.host.power_cut();
        let (mut remains, mut at) = (device.cut(at), at);
        self.forget(&remains);
        let mut off_after = cut.recovery_cuts.iter().copied();
        loop {
            let limit = off_after.next();
            match S::recover(remains, at, limit) {
                Recovery::Up(device) => {
                    self.now = device.ready_at().max(at);
                    self.device = Some(device);
                    self.drive(Phase::Inspect, |driver| driver.check_resets())?;
                    return Ok(RecoveryResult::Serving);
                }
                Recovery::CutAgain(left, off) if limit.is_some() => {
                    remains = left;
                    at = off.max(at) + Nanos(1);
                    S::cut_remains(&mut remains, at);
                    self.forget(&remains);
                    self.counts.cuts += 1;
                    self.counts.cuts_in_recovery += 1;
                    self.model.log(at, || EventKind::PowerCutInRecovery);
                }
                Recovery::CutAgain(..) => {
                    return Err(CheckFailure::new("recovery does not terminate"));
                }
                Recovery::WornOut(_) if self.plan.faulty => return Ok(RecoveryResult::WornOut),
                Recovery::WornOut(why) | Recovery::Failed(why) => {
                    return Err(CheckFailure::new(format!("recovery failed: {why}")));
                }
            }
        }
    }

    /// What the cut left without an address.
    fn forget(&mut self, remains: &S::PoweredOff) {
        let forgotten = S::forgotten(remains).into_iter();
        let host = &self.host;
        self.model.forget(forgotten.map(|(lba, data)| (host.object(lba), data)));
    }

    fn check_recovered(&mut self) -> Result<(), CheckFailure> {
        self.check_invariants("after recovery")?;
        let seen = self.drive(Phase::Inspect, |driver| driver.read_all())?;
        let checked = self.model.check_recovered(&seen);
        let checked = checked.and_then(|()| self.host.check_recovered(&seen));
        checked.map_err(|m| CheckFailure::content("wrong content after a power cut", m))
    }

    /// A last load without a cut, then everything is flushed and read.
    fn end_orderly(&mut self) -> Result<(), CheckFailure> {
        self.drive(Phase::Load, |driver| driver.run(None))?;
        self.drive(Phase::Finish, |driver| driver.run(None))?;
        self.check_invariants("at the end")?;
        let device = self.device.take().expect("a device serves at the end");
        self.count_commands(&device);
        Ok(())
    }

    fn check_invariants(&self, when: &str) -> Result<(), CheckFailure> {
        let device = self.device.as_ref().expect("checked while a device serves");
        device.check_invariants().map_err(|e| CheckFailure::new(format!("{when}: {e}")))
    }

    fn count_commands(&mut self, device: &S) {
        let commands = device.commands();
        self.counts.programs += commands.programs;
        self.counts.erases += commands.erases;
        self.counts.program_failures += commands.program_failures;
        self.counts.erase_failures += commands.erase_failures;
    }

    fn drive<T>(
        &mut self,
        phase: Phase,
        run: impl FnOnce(&mut Driver<'_, 'a, S>) -> Result<T, CheckFailure>,
    ) -> Result<T, CheckFailure> {
        let keep = self.begin_phase(phase);
        let device = self.device.as_mut().expect("driven while a device serves");
        self.host.begin(phase, keep);
        let (host, model, counts) = (&mut *self.host, &mut self.model, &mut self.counts);
        let mut driver = Driver::new(device, host, model, counts, self.plan.faulty, self.now);
        let result = run(&mut driver);
        self.now = driver.now();
        self.note_sent();
        result
    }

    /// What is left of the numbered requests of a phase.
    fn begin_phase(&mut self, phase: Phase) -> Keep {
        self.phase = phase;
        self.model.load_runs(phase == Phase::Load);
        let rng = self.host.load_rng();
        match (self.left, phase) {
            (Left::Reduced(left, _), Phase::Fill) => Keep::only(left.fill.clone()),
            (Left::Reduced(left, streams), Phase::Load) => {
                streams.get(&self.round).into_iter().for_each(|stream| rng.clone_from(stream));
                let round = left.rounds.get(&self.round);
                Keep::only(round.map_or_else(Numbers::default, |round| round.of(Source::Host)))
            }
            (Left::Noted, Phase::Load) => {
                self.streams.insert(self.round, rng.clone());
                Keep::default()
            }
            _ => Keep::default(),
        }
    }

    /// Notes what was sent of the numbered requests.
    fn note_sent(&mut self) {
        if matches!(self.left, Left::All) {
            return;
        }
        let sent = self.host.requests().sent();
        match self.phase {
            Phase::Fill => self.reached.fill = sent,
            Phase::Load => {
                let round = self.reached.rounds.entry(self.round).or_default();
                round.operations.insert(Source::Host, sent);
            }
            Phase::Inspect | Phase::Finish => {}
        }
    }

    /// The violation that a failure is, without its log; and what the run has reached ends there.
    pub(crate) fn violation(
        &mut self,
        seed: u64,
        failure: CheckFailure,
        scenario: &Settings,
    ) -> Violation {
        self.note_sent();
        if self.phase == Phase::Load && !self.pins.contains_key(&self.round) {
            self.reached.rounds.entry(self.round).or_default().cut = Cut::None;
        }
        let lba = failure.object().map(|object| self.host.address(object));
        let (expected, got) = failure.mismatch.map(|m| (m.expected, m.got)).unwrap_or_default();
        let (round, what, scenario) = (self.round, failure.what, scenario.clone());
        let (event_log, calls) = (Vec::new(), Vec::new());
        Violation { seed, round, what, lba, expected, got, event_log, calls, scenario }
    }
}
