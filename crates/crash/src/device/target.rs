//! An FTL of any kind over media with faults, as a campaign breaks it.

use crate::coverage::Coverage;
use crate::device::campaign::run_device;
use crate::device::drive::CheckFailure;
use crate::device::reduced::Repeated;
use crate::device::resets::{LostCopy, ResetWatch};
use crate::device::subject::{CommandCounts, DeviceUnderTest, Power, Recovery, TriggerMode};
use crate::device::trigger::CommandTrigger;
use crate::draw::faults::FaultRates;
use crate::draw::kind::cores;
use crate::draw::scenario::{Options, Scenario};
use crate::loss::{self, Faulty, Loss};
use crate::outcome::{CampaignReport, Counts, Progress, SeedOutcome, Violation};
use crate::settings::Settings;
use crate::shrink::minimised::{Minimised, OnRun};
use crate::shrink::search::Budget;
use nandscape_block::{
    Attention, Bio, BlockDevice, Completion, DeviceCaps, Lba, Op, SectorData, Submit, Token,
};
use nandscape_ftl::{
    AnyFtl, Attach, Detail, Ftl, FtlConfig, FtlError, FtlReport, FtlRun, SectorCounts,
};
use nandscape_media::{
    DeviceTiming, FaultInjector, Faults, Kind, Layer, Media, MediaConfig, Tracer,
};
use nandscape_rt::{Host, Nanos, Stream};
use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Draws of a seed that the FTL may refuse before the seed counts as a failure.
const DRAWS_MAX: usize = 2_000;

/// Media commands in a phase after which the FTL counts as not terminating.
const COMMANDS_MAX: u64 = 2_000_000;

/// The media, watched.
type Watched = CommandTrigger<ResetWatch<Tracer<Faulty>>>;

/// What survives: the media, and with it what the campaign must not forget.
#[derive(Debug)]
pub(crate) struct PoweredOffDevice {
    media: Watched,
    timing: DeviceTiming,
    config: FtlConfig,
    run: FtlRun,
    loss: Box<dyn Loss>,
    rng: Stream,
}

/// The device under test.
pub(crate) struct Target {
    ftl: AnyFtl<Watched>,
    timing: DeviceTiming,
    config: FtlConfig,
    run: FtlRun,
    loss: Box<dyn Loss>,
    rng: Stream,
}

/// Runs one seed. A panic of the FTL is a violation like any other.
#[must_use]
pub fn run_seed(seed: u64, options: &Options) -> SeedOutcome {
    match draw_device(seed, options) {
        Ok((scenario, target)) => match &options.only {
            Some(only) => repeated(&scenario, options, |mut repeated| repeated.run(only)),
            None => {
                // Nothing of a panicked run is looked at again.
                let run = AssertUnwindSafe(|| run_scenario(&scenario, target, options));
                let panicked = |why: Box<dyn Any + Send>| {
                    broken(&scenario, CheckFailure::panicked("the FTL", &*why).what)
                };
                catch_unwind(run).unwrap_or_else(panicked)
            }
        },
        Err((scenario, what)) => broken(&scenario, what),
    }
}

/// Shrinks the violation of a seed, if it has one, within a budget; `on_run` hears
/// of each, and says whether to go on.
pub fn shrink_seed(
    seed: u64,
    options: &Options,
    budget: Budget,
    on_run: &mut OnRun<'_>,
) -> Option<Minimised> {
    let (scenario, _) = draw_device(seed, options).ok()?;
    repeated(&scenario, options, |mut repeated| repeated.shrink(budget, on_run))
}

/// A scenario that is run several times.
fn repeated<T>(
    scenario: &Scenario,
    options: &Options,
    work: impl FnOnce(Repeated<'_, Target>) -> T,
) -> T {
    let settings = scenario.settings();
    let without_faults = Scenario { faults: FaultRates::default(), ..scenario.clone() };
    let mut make = |faults| {
        let scenario = if faults { scenario } else { &without_faults };
        Target::format(scenario, options).ok()
    };
    let (seed, plan) = (scenario.seed, &scenario.plan);
    work(Repeated { seed, plan, scenario: &settings, make: &mut make })
}

/// The first scenario of a seed that the FTL does not refuse, and its fresh device; else the last one
/// drawn, and why there is none.
pub(crate) fn draw_device(
    seed: u64,
    options: &Options,
) -> Result<(Scenario, Target), (Box<Scenario>, String)> {
    let mut refused = Vec::new();
    loop {
        let scenario = Scenario::draw(seed, refused, options);
        match Target::format(&scenario, options) {
            Ok(target) => return Ok((scenario, target)),
            Err(why) if scenario.refused.len() + 1 < DRAWS_MAX => {
                refused = scenario.refused;
                refused.push(why);
            }
            Err(why) => {
                let what = format!("none of {DRAWS_MAX} drawn devices was formatted, last: {why}");
                return Err((Box::new(scenario), what));
            }
        }
    }
}

/// Runs these seeds, until they end or there are violations enough.
pub fn run_campaign(
    options: &Options,
    seeds: Range<u64>,
    mut on_progress: impl FnMut(&Progress),
) -> CampaignReport {
    let mut report = CampaignReport::default();
    for seed in seeds {
        report.add(run_seed(seed, options));
        on_progress(&report.progress());
        if report.violations.len() >= options.violations_max.max(1) {
            break;
        }
    }
    report
}

fn run_scenario(scenario: &Scenario, target: Target, options: &Options) -> SeedOutcome {
    let again = || Target::format(scenario, options).ok();
    let mut outcome = run_device(scenario.seed, &scenario.plan, scenario.settings(), target, again);
    outcome.counts.rejected_configs = scenario.refused.len() as u64;
    outcome
}

/// The outcome of a seed that has no other.
pub(crate) fn broken(scenario: &Scenario, what: String) -> SeedOutcome {
    let mut outcome = without_device(scenario.seed, scenario.settings(), what);
    outcome.counts.rejected_configs = scenario.refused.len() as u64;
    outcome
}

/// The outcome of a seed whose device cannot be made.
pub(crate) fn without_device(seed: u64, scenario: Settings, what: String) -> SeedOutcome {
    let violation = Violation {
        seed,
        round: 0,
        what,
        lba: None,
        expected: Vec::new(),
        got: String::new(),
        event_log: Vec::new(),
        calls: Vec::new(),
        scenario: scenario.clone(),
    };
    SeedOutcome {
        seed,
        scenario,
        counts: Counts::default(),
        coverage: Coverage::default(),
        violation: Some(Box::new(violation)),
    }
}

/// Probability of one in so many; 0 means never.
fn rate(one_in: u32) -> f64 {
    if one_in == 0 { 0.0 } else { 1.0 / f64::from(one_in) }
}

impl Target {
    /// A fresh device; else why there can be none.
    fn format(scenario: &Scenario, options: &Options) -> Result<Self, String> {
        let media = Media::new(MediaConfig {
            timing: scenario.timing.1.nand,
            bad_chunks: scenario.bad_chunks.clone(),
            slow_units: scenario.slow_units.clone(),
            endurance_erases: scenario.endurance_erases,
            drops_tags: true,
            ..MediaConfig::new(scenario.geometry)
        });
        let faults = Faults {
            program_rate: rate(scenario.faults.program_one_in),
            erase_rate: rate(scenario.faults.erase_one_in),
            unreadable_rate: rate(scenario.faults.unreadable_one_in),
            unreadable_metadata_rate: rate(scenario.faults.unreadable_one_in),
            delays: scenario.delays,
            ..Faults::default()
        };
        let media = media.map_err(|e| e.to_string())?;
        let media = FaultInjector::new(media, faults, scenario.seed);
        let (config, run, timing) = (scenario.config.clone(), scenario.run, scenario.timing.1);
        let media = CommandTrigger::new(ResetWatch::new(Tracer::new(media)));
        let mut ftl = config.format(media, run, timing.link).map_err(refusal)?;
        ftl.attach(attach(&config, &timing));
        if ftl.caps().sectors < options.sectors_min || lacks_room(ftl.caps(), options) {
            return Err("no logical space".into());
        }
        let rng = Stream::new(scenario.seed, "cut");
        let loss = loss::of(&config, &scenario.geometry);
        let loss = loss.ok_or("what media lose on such a device is not known")?;
        Ok(Self { ftl, timing, config, run, loss, rng })
    }
}

/// Whether append-only regions hold less than is wanted of them.
fn lacks_room(caps: &DeviceCaps, options: &Options) -> bool {
    let held = caps.live_sectors() - caps.random_range().end;
    let wanted = options.wanted.filter(|_| caps.has_append_only());
    wanted.is_some_and(|wanted| held < wanted.append.live)
}

/// A host with the cores of the configuration, and the link to the device.
fn attach(config: &FtlConfig, timing: &DeviceTiming) -> Attach {
    Attach::new(Some(Host::with_cores(cores(config))), timing, Attach::COPY_NS_PER_SECTOR)
}

/// The key at fault where there is one.
fn refusal(error: FtlError) -> String {
    match error {
        FtlError::Config { key, .. } => key.into(),
        other => other.to_string(),
    }
}

/// Sets what may still pass before power goes off; without a limit, so much that only an FTL that
/// does not terminate reaches it.
fn limit(media: &mut Watched, off_after: Option<u64>) {
    let injector = media.inner_mut().inner_mut().inner_mut();
    let limit = injector.commands() + off_after.unwrap_or(COMMANDS_MAX);
    injector.faults_mut().cut_after_commands = Some(limit);
}

/// The media below everything that watches them.
fn faulty(media: &Watched) -> &Faulty {
    media.inner().inner().inner()
}

fn cut_media(media: &mut Watched, at: Nanos, rng: &mut Stream) {
    let injector = media.inner_mut().inner_mut().inner_mut();
    injector.restore_power();
    injector.inner_mut().power_cut(at, rng);
    media.wait_for(None);
    media.inner_mut().inner_mut().take_counters();
}

impl Target {
    /// What the FTL has counted since the device became ready, recovery left out.
    pub(crate) fn report(&self) -> FtlReport {
        self.ftl.report()
    }

    /// What only its kind has counted since then.
    pub(crate) fn detail(&self) -> Detail {
        self.ftl.detail()
    }

    /// Sectors of append-only regions that hold something.
    pub(crate) fn appended_sectors(&self) -> u64 {
        self.ftl.appended_sectors()
    }
}

impl BlockDevice for Target {
    fn caps(&self) -> &DeviceCaps {
        self.ftl.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.ftl.submit(now, bio, token)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.ftl.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.ftl.advance(now, done);
    }

    fn attention(&self) -> Attention {
        self.ftl.attention()
    }

    fn prefetch_far(&self, lba: Lba) {
        self.ftl.prefetch_far(lba);
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        self.ftl.prefetch_near(op, lba);
    }
}

impl DeviceUnderTest for Target {
    type PoweredOff = PoweredOffDevice;

    fn watch(&mut self, watch: TriggerMode) {
        let media = self.ftl.media_mut();
        let (awaited, off_after) = match watch {
            TriggerMode::Nothing => (None, None),
            TriggerMode::Notice(kind, n) => (Some((kind, n)), None),
            TriggerMode::OffAfter(n) => (None, Some(n)),
        };
        media.wait_for(awaited);
        limit(media, off_after);
    }

    fn power(&self) -> Power {
        let media = self.ftl.media();
        match (media.off_at(), media.noticed_at()) {
            (Some(at), _) => Power::Off(at),
            (None, Some(at)) => Power::Noticed(at),
            (None, None) => Power::On,
        }
    }

    fn ready_at(&self) -> Nanos {
        self.ftl.now()
    }

    fn commands(&self) -> CommandCounts {
        let counters = self.ftl.media().inner().inner().counters();
        let kinds = [Kind::Data, Kind::Smeta, Kind::Emeta, Kind::Pad, Kind::Map];
        let writes = kinds.map(|kind| counters.writes(kind));
        CommandCounts {
            programs: writes.iter().map(|count| count.commands).sum(),
            erases: counters.resets.commands,
            program_failures: writes.iter().map(|count| count.failed).sum(),
            erase_failures: counters.resets.failed,
        }
    }

    fn media_commands(&self) -> u64 {
        faulty(self.ftl.media()).commands()
    }

    fn background_sectors(&self) -> u64 {
        let SectorCounts { gc, map, trim, .. } = self.ftl.sectors();
        gc + map + trim
    }

    fn cut(self, at: Nanos) -> PoweredOffDevice {
        let Self { mut ftl, timing, config, run, loss, mut rng } = self;
        // A device that saves its buffer with residual energy does it after the cut.
        cut_media(ftl.media_mut(), at, &mut rng);
        let mut media = ftl.power_off();
        media.inner_mut().look_again();
        PoweredOffDevice { media, timing, config, run, loss, rng }
    }

    fn cut_remains(remains: &mut PoweredOffDevice, at: Nanos) {
        cut_media(&mut remains.media, at, &mut remains.rng);
        remains.media.inner_mut().look_again();
    }

    fn recover(remains: PoweredOffDevice, now: Nanos, off_after: Option<u64>) -> Recovery<Self> {
        let PoweredOffDevice { mut media, timing, config, run, loss, rng } = remains;
        limit(&mut media, off_after);
        match config.mount(media, run, timing.link, now) {
            Ok(ftl) if ftl.media().off_at().is_some() => {
                Recovery::Failed("it did not notice that power had failed".into())
            }
            Ok(mut ftl) => {
                ftl.attach(attach(&config, &timing));
                Recovery::Up(Self { ftl, timing, config, run, loss, rng })
            }
            Err((media, error)) => match (media.off_at(), error) {
                (Some(at), _) => {
                    let remains = PoweredOffDevice { media, timing, config, run, loss, rng };
                    Recovery::CutAgain(remains, at)
                }
                (None, error @ FtlError::Config { .. }) => Recovery::WornOut(error.to_string()),
                (None, error) => Recovery::Failed(error.to_string()),
            },
        }
    }

    fn unreadable(&self, sectors: Range<u64>) -> Vec<(Lba, SectorData)> {
        self.loss.copies(faulty(self.ftl.media()), sectors)
    }

    fn watch_resets(&mut self) {
        let unit = self.loss.durable_unit();
        self.ftl.media_mut().inner_mut().watch(unit);
    }

    fn lost_copies(&mut self) -> Vec<LostCopy> {
        self.ftl.media_mut().inner_mut().take_lost()
    }

    fn forgotten(remains: &PoweredOffDevice) -> Vec<(Lba, SectorData)> {
        remains.loss.forgotten(faulty(&remains.media))
    }

    fn check_invariants(&self) -> Result<(), String> {
        self.ftl.check_invariants()
    }
}
