//! One seed: load until power is cut, recover (and be cut again on the way), read back, go on;
//! several rounds on one device, and an orderly end.
//!
//! A seed's run is a function of the seed and the options alone. A violation is logged by running the
//! seed once more with the model watching the sector at fault.

use crate::coverage::Coverage;
use crate::device::drive::{CheckFailure, Driver, End};
use crate::device::host::{HostView, Phase, host_of};
use crate::device::model::{Model, Object};
use crate::device::subject::{DeviceUnderTest, Power, Recovery};
use crate::draw::plan::{CutPlan, Plan};
use crate::event::{EventKind, LogEvent};
use crate::outcome::{Counts, SeedOutcome, Violation};
use crate::settings::Settings;
use nandscape_rt::Nanos;

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
    let mut run = Run::new(seed, plan, device, None);
    let result = run.rounds();
    let violation = result.err().map(|failure| {
        let watched = failure.mismatch.as_ref().map(|mismatch| mismatch.object);
        let log = |object| log_of_object(seed, plan, object, again());
        let event_log = watched.map_or_else(Vec::new, log);
        let lba = watched.map(|object| run.host.address(object));
        let (expected, got) = failure.mismatch.map(|m| (m.expected, m.got)).unwrap_or_default();
        let (round, what, scenario) = (run.round, failure.what, scenario.clone());
        Box::new(Violation { seed, round, what, lba, expected, got, event_log, scenario })
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
    let mut run = Run::new(seed, plan, device, Some(object));
    // It ends as it did before; only the way there is wanted.
    let _ = run.rounds();
    let event_log = run.model.event_log();
    event_log[event_log.len().saturating_sub(EVENTS_MAX)..].to_vec()
}

/// A seed in progress.
struct Run<'a, S> {
    plan: &'a Plan,
    device: Option<S>,
    host: Box<dyn HostView + 'a>,
    model: Model,
    counts: Counts,
    round: u32,
    now: Nanos,
}

/// Whether the device can go on.
enum RecoveryResult {
    Serving,
    WornOut,
}

impl<'a, S: DeviceUnderTest> Run<'a, S> {
    fn new(seed: u64, plan: &'a Plan, mut device: S, watched: Option<Object>) -> Self {
        if !plan.unreadable {
            device.watch_resets();
        }
        Self {
            plan,
            host: host_of(seed, plan, device.caps()),
            model: Model::new(watched),
            counts: Counts::default(),
            round: 0,
            now: device.ready_at(),
            device: Some(device),
        }
    }

    fn rounds(&mut self) -> Result<(), CheckFailure> {
        self.drive(Phase::Fill, |driver| driver.run(None))?;
        for (round, cut) in self.plan.cuts.iter().enumerate() {
            self.round = round as u32;
            let at = self.load_until_cut(cut)?;
            if let RecoveryResult::WornOut = self.cut_and_recover(cut, at)? {
                self.counts.worn_out += 1;
                return Ok(());
            }
            self.check_recovered()?;
        }
        self.round = self.plan.cuts.len() as u32;
        self.end_orderly()
    }

    fn load_until_cut(&mut self, cut: &CutPlan) -> Result<Nanos, CheckFailure> {
        match self.drive(Phase::Load, |driver| driver.run(Some(cut)))? {
            End::Cut(at) => {
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
        let device = self.device.as_mut().expect("driven while a device serves");
        self.host.begin(phase);
        let (host, model, counts) = (&mut *self.host, &mut self.model, &mut self.counts);
        let mut driver = Driver::new(device, host, model, counts, self.plan.faulty, self.now);
        let result = run(&mut driver);
        self.now = driver.now();
        result
    }
}
