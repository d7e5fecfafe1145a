//! The device as it is before the measured phase: fresh, or preconditioned here or by another run.
//!
//! Preconditioning ends as a power-down in order: everything is flushed, and nothing of the FTL stays
//! but what is on media. A run that measures on it mounts it, which is the same whether the media were
//! written here or come from a state file, and counts as preconditioning too.

use super::device::{self, Flash, RunFtl};
use super::error::RunError;
use super::observer::{Observer, Phase, check_interrupt};
use super::precondition::precondition;
use crate::stack::Stack;
use crate::state::{
    self, Header, Origin, Preconditioned, State, StateCache, StateError, StateKey, StateSource,
};
use nandscape_ftl::{Attach, Ftl};
use nandscape_media::{
    DeviceTiming, Layer, LinkTiming, Media, NandTiming, SnapshotError, sector_memory,
};
use nandscape_rt::{Nanos, Stream};
use std::io::Read;
use std::path::Path;

/// The preset whose NAND the settling phase has.
const SETTLING_NAND: &str = "nvmevirt-970pro";
/// What messages call a state that is in memory.
const BYTES: &str = "the device as the step before left it";

/// Media at rest and without timing.
pub(super) struct PreparedMedia {
    pub(super) media: Media,
    /// How they were preconditioned; `None`: they are fresh.
    pub(super) initial: Option<InitialState>,
    /// The file that they come from.
    pub(super) file: Option<String>,
    /// What a reader should know about it.
    pub(super) warnings: Vec<String>,
}

impl PreparedMedia {
    fn new(media: Media, initial: Option<InitialState>) -> Self {
        Self { media, initial, file: None, warnings: Vec::new() }
    }
}

/// What happened to a device before it was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InitialState {
    /// What was written.
    pub done: Preconditioned,
    /// Names the state that this left.
    pub state: StateKey,
    /// What else wrote it, if not preconditioning.
    pub origin: Option<Origin>,
}

/// Makes or fetches the device of `stack`.
pub(super) fn prepare(
    stack: &Stack,
    seed: u64,
    states: StateSource<'_>,
    program: &str,
    observer: &mut dyn Observer,
) -> Result<PreparedMedia, RunError> {
    if !matches!(states, StateSource::File(_) | StateSource::Bytes(_)) {
        stack.check_makes_fs("--state FILE names one")?;
    }
    let text = state::text(stack, seed);
    let key = StateKey::of(&text);
    let prepared = |(media, done)| {
        Ok(PreparedMedia::new(media, Some(InitialState { done, state: key, origin: None })))
    };
    match states {
        StateSource::File(path) => Ok(warned(stack, from_file(stack, Some(seed), path, program)?)),
        StateSource::Bytes(bytes) => {
            let opened = state::opened(BYTES, bytes)?;
            Ok(warned(stack, from_state(stack, Some(seed), BYTES, opened, program)?))
        }
        _ if stack.precondition.is_none() => Ok(PreparedMedia::new(fresh(stack, seed)?, None)),
        StateSource::Make => preconditioned(stack, seed, observer).and_then(prepared),
        StateSource::Cached(cache) => {
            let wanted = StateRequest { stack, seed, text, key, program };
            wanted.fetch(cache, observer).and_then(prepared)
        }
    }
}

/// A device of a state, with what its origin asks a reader to know.
fn warned(stack: &Stack, (mut prepared, header): (PreparedMedia, Header)) -> PreparedMedia {
    let origin = header.origin().and_then(|origin| origin_warning(stack, origin));
    prepared.warnings.extend(origin);
    prepared
}

/// Makes the preconditioned device of `stack`, as a state.
///
/// # Errors
/// A stack that cannot be built or preconditioned.
pub fn make_state(
    stack: &Stack,
    seed: u64,
    program: &str,
    observer: &mut dyn Observer,
) -> Result<State, RunError> {
    let text = state::text(stack, seed);
    StateRequest { stack, seed, key: StateKey::of(&text), text, program }.state(observer)
}

/// Media that were never written.
pub(super) fn fresh(stack: &Stack, seed: u64) -> Result<Media, RunError> {
    // Drawing the bad chunks of a device that exceeds the memory may take hours.
    sector_memory(&stack.media.blank_config())
        .and_then(|_| Media::new(stack.media.config(seed)))
        .map_err(|error| RunError::media(stack, &error))
}

/// A fresh device, preconditioned and powered down.
fn preconditioned(
    stack: &Stack,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<(Media, Preconditioned), RunError> {
    let media = device::flash(stack, fresh(stack, seed)?, seed);
    let mut ftl = device::format(stack, media, seed)?;
    let report = |fraction| {
        observer.progress(Phase::Precondition, fraction);
        check_interrupt(observer)
    };
    let enable_timing = (!stack.timing().nand.is_instant()).then_some(settling_timing);
    let done = precondition(&mut ftl, stack.precondition, seed, enable_timing, report)
        .map_err(|error| RunError::precondition(stack, error))?;
    let mut media = device::power_off(ftl).into_inner();
    media.set_timing(NandTiming::none());
    Ok((media, done))
}

/// The NAND of the settling phase, of every stack that has timing; the link and the host take no time. From now on
/// collection keeps the pace that the stack gives it.
fn settling_timing(ftl: &mut RunFtl) {
    let nand = DeviceTiming::preset(SETTLING_NAND).map_or(NandTiming::none(), |timing| timing.nand);
    ftl.media_mut().inner_mut().set_timing(nand);
    ftl.attach(Attach {
        host: None,
        link: LinkTiming::none(),
        copy_ns_per_sector: 0,
        times_firmware: false,
    });
}

/// The same FTL after its power was off, in order: what it had flushed is there, and nothing in RAM.
pub(super) fn power_cycle(stack: &Stack, ftl: RunFtl, seed: u64) -> Result<RunFtl, RunError> {
    mount(stack, device::power_off(ftl), seed, None)
}

/// The FTL over preconditioned media; what stops it is bad input if they come from `file`.
pub(super) fn mount(
    stack: &Stack,
    media: Flash,
    seed: u64,
    file: Option<&str>,
) -> Result<RunFtl, RunError> {
    let run = device::ftl_run(stack, seed);
    stack.ftl.mount(media, run, stack.link.untimed(), Nanos::ZERO).map_err(|(_, error)| {
        match (file, RunError::ftl(stack, error)) {
            (Some(file), RunError::Failed(problem)) => StateError::new(file, problem).into(),
            (_, error) => error,
        }
    })
}

/// The seed of the faults behind a mount: they go on differently from those while preconditioning.
pub(super) fn fault_seed(seed: u64) -> u64 {
    Stream::new(seed, "media.faults.mounted").bits()
}

/// A state that a run needs.
struct StateRequest<'a> {
    stack: &'a Stack,
    seed: u64,
    text: String,
    key: StateKey,
    program: &'a str,
}

impl StateRequest<'_> {
    fn state(&self, observer: &mut dyn Observer) -> Result<State, RunError> {
        let (media, done) = preconditioned(self.stack, self.seed, observer)?;
        let header = Header::new(self.stack, self.seed, self.text.clone(), done, self.program);
        Ok(State { header, media })
    }

    /// From the cache, or made here and kept there; other programs that need the same wait meanwhile.
    fn fetch(
        &self,
        cache: &dyn StateCache,
        observer: &mut dyn Observer,
    ) -> Result<(Media, Preconditioned), RunError> {
        if let CacheLookup::Hit(found) = self.look_up(cache)? {
            return Ok(*found);
        }
        let mut result = Err(RunError::Failed("cannot lock the state cache".to_owned()));
        cache.with_exclusive_lock(self.key, &mut || {
            result = match self.look_up(cache) {
                Ok(CacheLookup::Hit(found)) => Ok(*found),
                Ok(CacheLookup::Corrupt(why)) => self.make_and_keep(cache, Some(&why), observer),
                Ok(CacheLookup::Miss) => self.make_and_keep(cache, None, observer),
                Err(error) => Err(error),
            };
        });
        result
    }

    /// In the place of what is damaged, if anything is.
    fn make_and_keep(
        &self,
        cache: &dyn StateCache,
        damage: Option<&str>,
        observer: &mut dyn Observer,
    ) -> Result<(Media, Preconditioned), RunError> {
        let state = self.state(observer)?;
        damage.into_iter().for_each(|why| cache.damaged(self.key, why));
        cache.keep(self.key, &mut |out| state.write(out));
        Ok((state.media, state.header.preconditioned))
    }

    fn look_up(&self, cache: &dyn StateCache) -> Result<CacheLookup, RunError> {
        let Some(mut input) = cache.open(self.key) else { return Ok(CacheLookup::Miss) };
        let mut media = blank(self.stack)?;
        let found = Header::read(&mut input).and_then(|header| {
            if header.text != self.text {
                let what = "state key mismatch".to_owned();
                return Err(SnapshotError::Damaged { at: 0, what });
            }
            media.restore(input, header.bytes())?;
            Ok(header.preconditioned)
        });
        match found {
            Ok(done) => Ok(CacheLookup::Hit(Box::new((media, done)))),
            Err(SnapshotError::MemoryCap) => Err(RunError::memory_cap(self.stack)),
            Err(error) => Ok(CacheLookup::Corrupt(error.to_string())),
        }
    }
}

/// What a cache has of a state.
enum CacheLookup {
    Hit(Box<(Media, Preconditioned)>),
    /// Something that is not it, and why.
    Corrupt(String),
    Miss,
}

/// A device that takes on what a state holds, bad chunks included.
fn blank(stack: &Stack) -> Result<Media, RunError> {
    Media::new(stack.media.blank_config()).map_err(|error| RunError::media(stack, &error))
}

/// The state at `path`, which `stack` must fit, and its seed where one is wanted. What was to be written to a
/// device is no matter where something else was.
pub(super) fn from_file(
    stack: &Stack,
    seed: Option<u64>,
    path: &Path,
    program: &str,
) -> Result<(PreparedMedia, Header), RunError> {
    from_state(stack, seed, &path.display().to_string(), state::open(path)?, program)
}

/// The opened state called `name`, in the same way.
fn from_state(
    stack: &Stack,
    seed: Option<u64>,
    name: &str,
    (header, input): (Header, impl Read),
    program: &str,
) -> Result<(PreparedMedia, Header), RunError> {
    let error = |problem: String| StateError::new(name, problem);
    let origin = header.origin();
    let text = state::text(stack, seed.unwrap_or(header.seed));
    let mut differences = state::differences(&header.text, &text);
    differences.retain(|found| origin.is_none_or(|origin| !origin.explains(&found.key)));
    if let Some(binding) = differences.iter().find(|difference| difference.is_required(&stack.ftl))
    {
        return Err(error(format!("incompatible with stack {}: {binding}", stack.name)).into());
    }
    let mut media = blank(stack)?;
    media.restore(input, header.bytes()).map_err(|problem| match problem {
        SnapshotError::MemoryCap => RunError::memory_cap(stack),
        other => error(other.to_string()).into(),
    })?;
    let warning = |difference| format!("the state is not of this stack and seed: {difference}");
    let mut warnings: Vec<String> = differences.iter().map(warning).collect();
    if header.program != program {
        let (theirs, ours) = (&header.program, program);
        warnings.push(format!("the state was made by another program: {theirs}, not {ours}"));
    }
    let initial = Some(InitialState { done: header.preconditioned, state: header.key, origin });
    Ok((PreparedMedia { media, initial, file: Some(name.to_owned()), warnings }, header))
}

/// What a reader should know about a run on a device of this origin.
fn origin_warning(stack: &Stack, origin: Origin) -> Option<String> {
    let what = match &stack.fs {
        Some(fs) if !fs.config.makes() => return None,
        Some(_) => {
            "the run makes a new file system over it, and what was in it is gone (fs.format = false \
             mounts the one that is there)"
        }
        None => "the run begins on that, not on what [precondition] would write",
    };
    let holds = match origin {
        Origin::Image => "holds an image",
        Origin::Run => "is what another run left",
    };
    Some(format!("the state {holds}; {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::NoObserver;
    use crate::stack::recipes;
    use nandscape_ftl::Ftl;

    /// A recipe that fills leaves a device on which every logical sector is on media, mounted.
    #[test]
    fn recipes_end_with_a_full_device() {
        for recipe in recipes().filter(|name| !["none", "fresh"].contains(name)) {
            let recipe_key = format!("precondition.recipe={recipe}");
            let set = ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35", &recipe_key];
            let stack = Stack::load("pblk", &set).unwrap();
            let (media, done) = preconditioned(&stack, 1, &mut NoObserver).unwrap();
            let ftl = mount(&stack, device::without_faults(media), 1, None).unwrap();
            let valid: u64 = ftl.erase_units().iter().map(|unit| u64::from(unit.valid)).sum();
            assert_eq!(valid, ftl.size().logical_sectors, "{recipe}");
            assert_eq!(done.steady, (recipe == "steady").then_some(true), "{recipe}");
        }
    }
}
