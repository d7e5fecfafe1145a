//! The keys of a stack file, section by section (DESIGN, "The stack file"): what each may hold, its
//! default, and what it means to the crates below.

use super::cache::{self, Defaults};
use super::document::Table;
use super::place::{Place, StackError};
use super::reader::{Places, Section, Size, SizeRange, Words};
use super::resolved::{join, titled};
use super::{
    FaultsFrom, Fsync, Hints, Host, MediaFaults, MediaStack, MemoryOf, Precondition, Stack,
};
use super::{fs, ftl, link, recipe, timing};
use nandscape_block::SECTOR_BYTES;
use nandscape_fs::contract::SyscallCost;
use nandscape_ftl::Attach;
use nandscape_media::{Faults, Geometry, LinkTiming, PayloadMode, UnitId};
use nandscape_rt::Nanos;

/// Time of a system call when a stack does not say.
const SYSCALL_NS: u64 = 1_000;
/// The longest system call, and the longest copy: 1 s.
const CALL_NS_MAX: u64 = 1_000_000_000;
/// RAM that the virtual media may take when a stack does not say.
const MEMORY_CAP_BYTES: u64 = 16 << 30;
/// The slowest that a unit may be.
const SLOW_PERCENT_MAX: u32 = 100_000;

const FAULTS_FROM: Words<FaultsFrom> =
    Words { here: &[("start", FaultsFrom::Start), ("measured", FaultsFrom::Measured)] };

const PAYLOAD: Words<PayloadMode> = Words {
    here: &[
        ("none", PayloadMode::None),
        ("tags", PayloadMode::Tags),
        ("bytes", PayloadMode::Bytes),
    ],
};

/// The name of what content is kept.
#[must_use]
pub fn payload_name(payload: PayloadMode) -> &'static str {
    PAYLOAD.here.iter().find(|(_, mode)| *mode == payload).map_or("", |(name, _)| name)
}

const MEMORY_OF: Words<MemoryOf> =
    Words { here: &[("page-cache", MemoryOf::PageCache), ("all", MemoryOf::All)] };

const FSYNC: Words<Fsync> = Words { here: &[("device", Fsync::Device), ("file", Fsync::File)] };

/// Reads a whole stack, whose file begins at `place`.
pub(super) fn read(table: &Table, place: &Place) -> Result<Stack, StackError> {
    let mut root = Section::root(table, place);
    let name = root.or("name", "unnamed".to_owned())?;
    let fs = root.section("fs", "fs")?;
    let (host, host_text) = read_host(root.section("host", "host")?, !fs.is_absent())?;
    let (media, preset, media_text) = read_media(root.section("media", "media")?)?;
    let (link, link_text) = link::read(root.section("link", "link")?, preset)?;
    let (ftl, ftl_text) = ftl::read(root.section("ftl", "ftl")?, &host)?;
    let (fs, fs_text) = fs::read(fs, &host, media.payload)?;
    let (hints, hints_text) = read_hints(root.section("hints", "hints")?)?;
    let (precondition, precondition_text) =
        read_precondition(root.section("precondition", "precondition")?)?;
    let texts =
        [host_text, media_text, link_text, ftl_text, fs_text, hints_text, precondition_text];
    let toml = join([root.close()?, join(texts)]);
    let (places, place) = (Places::new(), place.clone());
    let set = Vec::new();
    Ok(Stack { name, host, media, link, ftl, fs, hints, precondition, set, toml, places, place })
}

/// Why a key of a page cache is refused.
const NEEDS_CACHE: &str = "needs a page cache: a file system, [fs], or host.page_cache = true";

/// Keys of a host without a page cache are refused.
fn read_host(mut host: Section<'_>, has_fs: bool) -> Result<(Host, String), StackError> {
    let cores = host.optional("cores")?;
    host.check("cores", cores != Some(0), "must be at least 1")?;
    let memory = if has_fs {
        Some(host.or("memory", Size(fs::MEMORY_BYTES))?)
    } else {
        host.optional("memory")?
    };
    let memory_bytes = memory.map(|Size(bytes)| bytes);
    let is_enough = memory_bytes.is_none_or(|bytes| bytes >= fs::MEMORY_BYTES_MIN);
    host.check("memory", is_enough, "must be at least 1MiB")?;
    let has_cache = has_fs || host.optional("page_cache")?.unwrap_or(true);
    let memory_of = match (has_fs, has_cache) {
        (true, _) => host.choice("memory_of", "page-cache", &MEMORY_OF)?,
        (false, true) => host.optional_choice("memory_of", &MEMORY_OF)?.unwrap_or_default(),
        (false, false) => MemoryOf::default(),
    };
    let cost = read_cost(&mut host, has_fs, has_cache)?;
    let mut config = Host { cores, memory_bytes, memory_of, cost, device_cache: None };
    if has_fs {
        host.refuse(
            &["page_cache"],
            "a file system, [fs], has its own: direct=1 of a job bypasses it",
        )?;
        host.refuse(&cache::KEYS, "goes into [fs], where there is one")?;
    } else if has_cache {
        let memory = config.memory_or_default();
        config.device_cache = Some(cache::read(&mut host, memory, Defaults::Left)?);
    } else {
        host.refuse(&["memory_of"], NEEDS_CACHE)?;
        host.refuse(&cache::KEYS, NEEDS_CACHE)?;
    }
    Ok((config, titled("host", host)?))
}

/// What the host's work takes of its cores; system calls are those that go to a page cache.
fn read_cost(
    host: &mut Section<'_>,
    has_fs: bool,
    has_cache: bool,
) -> Result<SyscallCost, StackError> {
    let call: u64 = match (has_fs, has_cache) {
        (true, _) => host.or("syscall_ns", SYSCALL_NS)?,
        (false, true) => host.optional("syscall_ns")?.unwrap_or(SYSCALL_NS),
        (false, false) => 0,
    };
    let copy: u64 = host.or("copy_ns", Attach::COPY_NS_PER_SECTOR)?;
    for (key, cost) in [("syscall_ns", call), ("copy_ns", copy)] {
        host.check(key, cost <= CALL_NS_MAX, "must be at most 1,000,000,000, which is a second")?;
    }
    host.refuse(if has_cache { &[] } else { &["syscall_ns"] }, NEEDS_CACHE)?;
    Ok(SyscallCost { call: Nanos(call), copy: Nanos(copy) })
}

/// The device, the link that goes with its timing, and both as text.
fn read_media(mut media: Section<'_>) -> Result<(MediaStack, LinkTiming, String), StackError> {
    let geometry = Geometry {
        groups: media.required("groups")?,
        units: media.required("units")?,
        chunks: media.required("chunks")?,
        sectors: media.required("sectors")?,
        ws_min: media.required("ws_min")?,
        ws_opt: media.required("ws_opt")?,
        mw_cunits: media.required("mw_cunits")?,
        maxoc: media.or("maxoc", 0)?,
        maxocpu: media.or("maxocpu", 0)?,
    };
    geometry.check().map_err(|error| media.reject(error.key, error.rule))?;
    let (timing, link) = timing::read(&mut media)?;
    let payload = media.choice("payload", "tags", &PAYLOAD)?;
    let Size(memory_cap_bytes) = media.or("memory_cap", Size(MEMORY_CAP_BYTES))?;
    let endurance_erases = media.optional("endurance_erases")?;
    let (faults, faults_text) = read_faults(media.section("faults", "media.faults")?, &geometry)?;
    let text = join([titled("media", media)?, faults_text]);
    let stack =
        MediaStack { geometry, timing, payload, memory_cap_bytes, endurance_erases, faults };
    Ok((stack, link, text))
}

fn read_faults(
    mut faults: Section<'_>,
    geometry: &Geometry,
) -> Result<(MediaFaults, String), StackError> {
    if faults.is_absent() {
        return Ok((MediaFaults::default(), String::new()));
    }
    let mut rate = |key, rule| -> Result<f64, StackError> {
        let rate = faults.or(key, 0.0)?;
        faults.check(key, (0.0..=1.0).contains(&rate), rule)?;
        Ok(rate)
    };
    let commands = Faults {
        program_rate: rate("program_rate", "must be 0 to 1, failures a command")?,
        erase_rate: rate("erase_rate", "must be 0 to 1, failures a command")?,
        unreadable_rate: rate("unreadable_rate", "must be 0 to 1, lost sectors a write command")?,
        ..Faults::default()
    };
    let bad_chunk_rate = rate("bad_chunk_rate", "must be 0 to 1, a share of all chunks")?;
    let from = faults.optional_choice("from", &FAULTS_FROM)?.unwrap_or_default();
    let slow_unit = read_slow_unit(&mut faults, geometry)?;
    let commands = (commands != Faults::default()).then_some(commands);
    let read = MediaFaults { commands, from, bad_chunk_rate, slow_unit };
    Ok((read, titled("media.faults", faults)?))
}

/// A unit, and its cell times in percent.
fn read_slow_unit(
    faults: &mut Section<'_>,
    geometry: &Geometry,
) -> Result<Option<(UnitId, u32)>, StackError> {
    let unit: Option<u32> = faults.optional("slow_unit")?;
    let percent: Option<u32> = faults.optional("slow_percent")?;
    let exists = unit.is_none_or(|unit| unit < geometry.total_units());
    faults.check("slow_unit", exists, "must be less than groups x units")?;
    let sane = percent.is_none_or(|percent| (1..=SLOW_PERCENT_MAX).contains(&percent));
    faults.check(
        "slow_percent",
        sane,
        "must be 1 to 100,000 percent of the preset's cell times",
    )?;
    match (unit, percent) {
        (Some(unit), Some(percent)) => Ok(Some((UnitId(unit), percent))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(faults.reject("slow_unit", "goes with slow_percent")),
        (None, Some(_)) => Err(faults.reject("slow_percent", "goes with slow_unit")),
    }
}

fn read_hints(mut hints: Section<'_>) -> Result<(Hints, String), StackError> {
    let range: Option<SizeRange> = hints.optional("journal_range")?;
    let journal_range = range.map(|SizeRange(first, end)| {
        let whole = first.is_multiple_of(SECTOR_BYTES) && end.is_multiple_of(SECTOR_BYTES);
        hints.check("journal_range", whole, "must be whole sectors of 4 KiB")?;
        Ok(first / SECTOR_BYTES..end / SECTOR_BYTES)
    });
    let journal_range = journal_range.transpose()?;
    let fsync = hints.choice("fsync", "device", &FSYNC)?;
    Ok((Hints { journal_range, fsync }, titled("hints", hints)?))
}

fn read_precondition(mut section: Section<'_>) -> Result<(Precondition, String), StackError> {
    let recipe = recipe::read(&mut section)?;
    let mut times = |key, default: f64, most: f64, rule| -> Result<f64, StackError> {
        let times = section.or(key, default)?;
        section.check(key, (0.0..=most).contains(&times), rule)?;
        Ok(times)
    };
    let thousand = "must be 0 to 1000 times the logical space";
    let plan = Precondition {
        fill: times("fill", recipe.fill, 100.0, "must be 0 to 100 times the logical space")?,
        random_overwrite: times("random_overwrite", recipe.random_overwrite, 1000.0, thousand)?,
        steady_overwrite: times("steady_overwrite", recipe.steady_overwrite, 1000.0, thousand)?,
    };
    Ok((plan, titled("precondition", section)?))
}
