//! One seed: load until power is cut, recover (and be cut again on the way), read back, go on;
//! several rounds on one device, and an orderly end.
//!
//! A seed's run is a function of the seed and the options alone. A violation is logged by running the
//! seed once more with the model watching the sector at fault.

use crate::device::drive::{CheckFailure, Driver, End};
use crate::device::load::{LoadSource, Script, windows};
use crate::device::model::Model;
use crate::device::request::{Request, Sender};
use crate::device::subject::{DeviceUnderTest, Recovery};
use crate::draw::plan::{CutPlan, Plan};
use crate::outcome::{Counts, SeedOutcome, Violation};
use nandscape_block::{Flags, Lba};
use nandscape_rt::{Nanos, Stream};

/// Lines of an event log that are kept.
const EVENT_LOG_LINES_MAX: usize = 40;
/// Sectors of a read that checks the device.
const SCAN_SECTORS: u32 = 32;
const SCAN_DEPTH: usize = 8;

/// Runs a plan on a device. `again` makes another one like it, when an event log is needed;
/// `scenario` is what the seed chose, on one line.
pub fn run_device<S: DeviceUnderTest>(
    seed: u64,
    plan: &Plan,
    scenario: String,
    device: S,
    again: impl FnOnce() -> Option<S>,
) -> SeedOutcome {
    let mut run = Run::new(seed, plan, device, None);
    let result = run.rounds();
    let (counts, round) = (run.counts, run.round);
    let violation = result.err().map(|trouble| {
        let watched = trouble.mismatch.as_ref().map(|m| m.lba);
        let event_log =
            watched.map_or_else(Vec::new, |lba| log_of_sector(seed, plan, lba, again()));
        Box::new(violation(seed, round, trouble, event_log, scenario.clone()))
    });
    SeedOutcome { seed, scenario, counts, violation }
}

/// Runs the seed once more and returns the last lines about one sector.
fn log_of_sector<S: DeviceUnderTest>(
    seed: u64,
    plan: &Plan,
    lba: Lba,
    device: Option<S>,
) -> Vec<String> {
    let Some(device) = device else { return Vec::new() };
    let mut run = Run::new(seed, plan, device, Some(lba));
    // It ends as it did before; only the way there is wanted.
    let _ = run.rounds();
    let event_log = run.model.event_log();
    event_log[event_log.len().saturating_sub(EVENT_LOG_LINES_MAX)..].to_vec()
}

fn violation(
    seed: u64,
    round: u32,
    trouble: CheckFailure,
    event_log: Vec<String>,
    scenario: String,
) -> Violation {
    let what = trouble.what;
    let (lba, got, expected) = match trouble.mismatch {
        Some(m) => (Some(m.lba), m.got, m.expected),
        None => (None, String::new(), Vec::new()),
    };
    Violation { seed, round, what, lba, expected, got, event_log, scenario }
}

/// A seed under way.
struct Run<'a, S> {
    plan: &'a Plan,
    device: Option<S>,
    model: Model,
    counts: Counts,
    round: u32,
    now: Nanos,
    window: u32,
    scan_window: u32,
    load_rng: Stream,
    scan_rng: Stream,
}

/// Whether the device can go on.
enum RecoveryResult {
    Serving,
    WornOut,
}

impl<'a, S: DeviceUnderTest> Run<'a, S> {
    fn new(seed: u64, plan: &'a Plan, device: S, watched: Option<Lba>) -> Self {
        let caps = device.caps();
        let window = if caps.max_sectors == 0 { SCAN_SECTORS } else { caps.max_sectors };
        let window = window.min(SCAN_SECTORS);
        Self {
            plan,
            model: Model::new(caps.sectors, watched),
            counts: Counts::default(),
            round: 0,
            now: device.ready_at(),
            window,
            scan_window: if plan.unreadable { 1 } else { window },
            load_rng: Stream::new(seed, "load"),
            scan_rng: Stream::new(seed, "scan"),
            device: Some(device),
        }
    }

    fn rounds(&mut self) -> Result<(), CheckFailure> {
        self.fill()?;
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

    fn fill(&mut self) -> Result<(), CheckFailure> {
        let device = self.model.sectors();
        let filled = device * u64::from(self.plan.load.fill_percent) / 100;
        let writes = windows(filled, self.window).map(|(lba, sectors)| {
            let first = lba.0 % device;
            let sectors = u64::from(sectors).min(device - first);
            Request::Write(Lba(first), sectors as u32, Flags::NONE, Sender::ANONYMOUS)
        });
        let mut script = Script {
            requests: writes.chain([Request::Flush(Sender::ANONYMOUS)]),
            depth: SCAN_DEPTH,
        };
        self.drive(|driver| driver.run(&mut script, None)).map(|_| ())
    }

    fn load_until_cut(&mut self, cut: &CutPlan) -> Result<Nanos, CheckFailure> {
        let (plan, sectors) = (self.plan, self.model.sectors());
        let mut rng = self.load_rng.clone();
        let mut source = LoadSource::new(&plan.load, sectors, &mut rng);
        let end = self.drive(|driver| driver.run(&mut source, Some(cut)))?;
        self.load_rng = rng;
        match end {
            End::Cut(at) => Ok(at),
            End::Finished => Err(CheckFailure::new("the planned cut never came")),
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
        let (mut remains, mut at) = (device.cut(at), at);
        self.model.forget(&S::forgotten(&remains));
        let mut off_after = cut.recovery_cuts.iter().copied();
        loop {
            let limit = off_after.next();
            match S::recover(remains, at, limit) {
                Recovery::Up(device) => {
                    self.now = device.ready_at().max(at);
                    self.device = Some(device);
                    return Ok(RecoveryResult::Serving);
                }
                Recovery::CutAgain(left, off) if limit.is_some() => {
                    remains = left;
                    at = off.max(at) + Nanos(1);
                    S::cut_remains(&mut remains, at);
                    self.model.forget(&S::forgotten(&remains));
                    self.counts.cuts += 1;
                    self.counts.cuts_in_recovery += 1;
                    self.model.tell(|| format!("power cut again in recovery, at {at}"));
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

    fn check_recovered(&mut self) -> Result<(), CheckFailure> {
        self.check_invariants("after recovery")?;
        let mut script = Script { requests: self.scan().into_iter(), depth: SCAN_DEPTH };
        let seen = self.drive(|driver| driver.read_all(&mut script))?;
        let checked = self.model.check_recovered(&seen);
        checked.map_err(|m| CheckFailure::content("wrong content after a power cut", m))
    }

    /// The reads that look at the device after a recovery.
    fn scan(&mut self) -> Vec<Request> {
        let percent = u64::from(self.plan.scan_percent);
        windows(self.model.sectors(), self.scan_window)
            .filter(|_| percent >= 100 || self.scan_rng.below(100) < percent)
            .map(|(lba, sectors)| Request::Read(lba, sectors))
            .collect()
    }

    /// A last load without a cut, then everything is flushed and read.
    fn end_orderly(&mut self) -> Result<(), CheckFailure> {
        let (plan, sectors) = (self.plan, self.model.sectors());
        let mut rng = self.load_rng.clone();
        let mut source = LoadSource::new(&plan.load, sectors, &mut rng);
        self.drive(|driver| driver.run(&mut source, None))?;
        let reads = windows(sectors, self.scan_window).map(|(lba, n)| Request::Read(lba, n));
        let mut script = Script {
            requests: [Request::Flush(Sender::ANONYMOUS)].into_iter().chain(reads),
            depth: SCAN_DEPTH,
        };
        self.drive(|driver| driver.run(&mut script, None))?;
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
        phase: impl FnOnce(&mut Driver<'_, S>) -> Result<T, CheckFailure>,
    ) -> Result<T, CheckFailure> {
        let device = self.device.as_mut().expect("driven while a device serves");
        let (model, counts) = (&mut self.model, &mut self.counts);
        let mut driver = Driver::new(device, model, counts, self.plan.faulty, self.now);
        let result = phase(&mut driver);
        self.now = driver.now();
        result
    }
}
