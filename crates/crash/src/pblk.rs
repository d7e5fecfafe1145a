//! A pblk over media with faults, as a campaign breaks it.

use crate::campaign::run_subject;
use crate::lookout::Lookout;
use crate::lost::{self, Shape};
use crate::outcome::{CampaignReport, Counts, Progress, SeedOutcome, Violation};
use crate::scenario::{Options, Scenario};
use crate::subject::{CommandCounts, Power, Recovery, Subject, Watch};
use nandscape_block::{
    Bio, BlockDevice, Completion, DeviceCaps, Lba, Op, SectorData, Submit, Token,
};
use nandscape_ftl::pblk::config::Config;
use nandscape_ftl::{Attach, Ftl, FtlError, FtlRun, Pblk};
use nandscape_media::{
    FaultInjector, Faults, Kind, Layer, LinkTiming, Linked, Media, MediaConfig, MemoryStore, Tracer,
};
use nandscape_rt::{Host, Nanos, Stream};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Draws of a seed that the FTL may refuse before the seed counts as a failure.
const DRAWS_MAX: usize = 200;

/// Media commands in a phase after which the FTL counts as working without end.
const COMMANDS_MAX: u64 = 2_000_000;

type Stack = Lookout<Tracer<FaultInjector<Media<MemoryStore>>>>;

/// What survives: the media, and with it what the campaign must not forget.
#[derive(Debug)]
pub(crate) struct Remains {
    media: Stack,
    link: LinkTiming,
    config: Config,
    run: FtlRun,
    shape: Shape,
    rng: Stream,
}

/// The device under test.
pub(crate) struct Target {
    pblk: Pblk<Stack>,
    link: LinkTiming,
    config: Config,
    run: FtlRun,
    shape: Shape,
    rng: Stream,
}

/// Runs one seed. A panic of the FTL is a violation like any other.
#[must_use]
pub fn run_seed(seed: u64, options: &Options) -> SeedOutcome {
    match draw_device(seed, options) {
        Ok((scenario, target)) => {
            // Nothing of a panicked run is looked at again.
            let run = AssertUnwindSafe(|| run_scenario(&scenario, target, options));
            let panicked = |_| broken(&scenario, "the FTL panicked".into());
            catch_unwind(run).unwrap_or_else(panicked)
        }
        Err((scenario, what)) => broken(&scenario, what),
    }
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
        match Target::format(&scenario, options.sectors_min) {
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
    let again = || Target::format(scenario, options.sectors_min).ok();
    let line = scenario.to_string();
    let mut outcome = run_subject(scenario.seed, &scenario.plan, line, target, again);
    outcome.counts.redrawn = scenario.refused.len() as u64;
    outcome
}

/// The outcome of a seed that has no other.
pub(crate) fn broken(scenario: &Scenario, what: String) -> SeedOutcome {
    let seed = scenario.seed;
    let violation = Violation {
        seed,
        round: 0,
        what,
        lba: None,
        expected: Vec::new(),
        got: String::new(),
        story: Vec::new(),
        scenario: scenario.to_string(),
    };
    SeedOutcome {
        seed,
        scenario: scenario.to_string(),
        counts: Counts { redrawn: scenario.refused.len() as u64, ..Counts::default() },
        violation: Some(Box::new(violation)),
    }
}

/// Probability of one in so many; 0 means never.
fn rate(one_in: u32) -> f64 {
    if one_in == 0 { 0.0 } else { 1.0 / f64::from(one_in) }
}

impl Target {
    /// A fresh device; else why there can be none.
    fn format(scenario: &Scenario, sectors_min: u64) -> Result<Self, String> {
        let media = Media::new(MediaConfig {
            timing: scenario.timing.1.nand,
            bad_chunks: scenario.bad_chunks.clone(),
            slow_units: scenario.slow_units.clone(),
            endurance_erases: scenario.endurance_erases,
            ..MediaConfig::new(scenario.geometry)
        });
        let faults = Faults {
            program_rate: rate(scenario.faults.program_one_in),
            erase_rate: rate(scenario.faults.erase_one_in),
            unreadable_rate: rate(scenario.faults.unreadable_one_in),
            unreadable_metadata_rate: rate(scenario.faults.unreadable_one_in),
            ..Faults::default()
        };
        let media = media.map_err(|e| e.to_string())?;
        let media = FaultInjector::new(media, faults, scenario.seed);
        let (config, run) = (scenario.config.clone(), scenario.run);
        let link = scenario.timing.1.link;
        let media = Linked::new(Lookout::new(Tracer::new(media)), link);
        let mut pblk = Pblk::format(media, config.clone(), run).map_err(refusal)?;
        pblk.attach(attach(&config, link));
        if pblk.caps().sectors < sectors_min {
            return Err("no logical space".into());
        }
        let rng = Stream::new(scenario.seed, "cut");
        let emeta_sectors = pblk.capacity().emeta_sectors;
        let shape = Shape { line_set: config.line_set, emeta_sectors };
        Ok(Self { pblk, link, config, run, shape, rng })
    }
}

/// A host with the cores of the configuration, and the link to the device.
fn attach(config: &Config, link: LinkTiming) -> Attach {
    let cores = u16::try_from(config.cores).unwrap_or(u16::MAX);
    Attach { host: Some(Host::with_cores(cores)), link }
}

/// The key at fault where there is one.
fn refusal(error: FtlError) -> String {
    match error {
        FtlError::Config { key, .. } => key.into(),
        other => other.to_string(),
    }
}

/// Sets what may still pass before power goes off; without a limit, so much that only an FTL that
/// works without end meets it.
fn limit(media: &mut Stack, off_after: Option<u64>) {
    let injector = media.inner_mut().inner_mut();
    let limit = injector.commands() + off_after.unwrap_or(COMMANDS_MAX);
    injector.faults_mut().cut_after_commands = Some(limit);
}

fn cut_media(media: &mut Stack, at: Nanos, rng: &mut Stream) {
    let injector = media.inner_mut().inner_mut();
    injector.restore_power();
    injector.inner_mut().power_cut(at, rng);
    media.wait_for(None);
    media.inner_mut().take_counters();
}

impl BlockDevice for Target {
    fn caps(&self) -> &DeviceCaps {
        self.pblk.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.pblk.submit(now, bio, token)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.pblk.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.pblk.advance(now, done);
    }

    fn prefetch_far(&self, lba: Lba) {
        self.pblk.prefetch_far(lba);
    }

    #[inline]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        self.pblk.prefetch_near(op, lba);
    }
}

impl Subject for Target {
    type Remains = Remains;

    fn watch(&mut self, watch: Watch) {
        let media = self.pblk.media_mut();
        let (awaited, off_after) = match watch {
            Watch::Nothing => (None, None),
            Watch::Notice(kind, n) => (Some((kind, n)), None),
            Watch::OffAfter(n) => (None, Some(n)),
        };
        media.wait_for(awaited);
        limit(media, off_after);
    }

    fn power(&self) -> Power {
        let media = self.pblk.media();
        match (media.off_at(), media.noticed_at()) {
            (Some(at), _) => Power::Off(at),
            (None, Some(at)) => Power::Noticed(at),
            (None, None) => Power::On,
        }
    }

    fn ready_at(&self) -> Nanos {
        self.pblk.now()
    }

    fn commands(&self) -> CommandCounts {
        let counters = self.pblk.media().inner().counters();
        let kinds = [Kind::Data, Kind::Smeta, Kind::Emeta, Kind::Pad, Kind::Map];
        let writes = kinds.map(|kind| counters.writes(kind));
        CommandCounts {
            programs: writes.iter().map(|count| count.commands).sum(),
            erases: counters.resets.commands,
            program_failures: writes.iter().map(|count| count.failed).sum(),
            erase_failures: counters.resets.failed,
        }
    }

    fn cut(self, at: Nanos) -> Remains {
        let Self { pblk, link, config, run, shape, mut rng } = self;
        let mut media = pblk.power_off();
        cut_media(&mut media, at, &mut rng);
        Remains { media, link, config, run, shape, rng }
    }

    fn cut_remains(remains: &mut Remains, at: Nanos) {
        cut_media(&mut remains.media, at, &mut remains.rng);
    }

    fn recover(remains: Remains, now: Nanos, off_after: Option<u64>) -> Recovery<Self> {
        let Remains { mut media, link, config, run, shape, rng } = remains;
        limit(&mut media, off_after);
        match Pblk::recover(Linked::new(media, link), config.clone(), run, now) {
            Ok(pblk) if pblk.media().off_at().is_some() => {
                Recovery::Failed("it did not notice that power had failed".into())
            }
            Ok(mut pblk) => {
                pblk.attach(attach(&config, link));
                Recovery::Up(Self { pblk, link, config, run, shape, rng })
            }
            Err((media, error)) => match (media.off_at(), error) {
                (Some(at), _) => {
                    Recovery::CutAgain(Remains { media, link, config, run, shape, rng }, at)
                }
                (None, error @ FtlError::Config { .. }) => Recovery::WornOut(error.to_string()),
                (None, error) => Recovery::Failed(error.to_string()),
            },
        }
    }

    fn unreadable(&self, lba: Lba) -> Vec<SectorData> {
        lost::copies(self.pblk.media().inner().inner(), lba)
    }

    fn forgotten(remains: &Remains) -> Vec<(Lba, SectorData)> {
        lost::forgotten(remains.media.inner().inner(), remains.shape)
    }

    fn check_invariants(&self) -> Result<(), String> {
        self.pblk.check_invariants()
    }
}
