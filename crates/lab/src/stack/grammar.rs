//! The keys of a stack file, section by section (DESIGN, "The stack file"): what each may hold, its
//! default, and what it means to the crates below.

use super::document::Table;
use super::place::{Place, StackError};
use super::reader::{Places, Section, Size, SizeRange, Words};
use super::recipe;
use super::timing;
use super::{Hints, Host, MediaFaults, MediaStack, Precondition, Stack};
use nandscape_block::SECTOR_BYTES;
use nandscape_ftl::config::{CapacityRules, Config, Discard, Limiter, Victim};
use nandscape_media::{Faults, Geometry, PayloadMode, UnitId};

/// RAM that the virtual media may take when a stack does not say.
const MEMORY_CAP_BYTES: u64 = 16 << 30;
/// The slowest that a unit may be.
const SLOW_PERCENT_MAX: u32 = 100_000;
/// Choices of `d-choices` when a stack does not say how many.
const DEFAULT_D: u32 = 10;

const PAYLOAD: Words<PayloadMode> = Words {
    here: &[
        ("none", PayloadMode::None),
        ("tags", PayloadMode::Tags),
        ("bytes", PayloadMode::Bytes),
    ],
    later: &[],
};

const CAPACITY_RULES: Words<CapacityRules> = Words {
    here: &[
        ("4.13", CapacityRules::V4_13),
        ("4.16", CapacityRules::V4_16),
        ("5.11", CapacityRules::V5_11),
    ],
    later: &[],
};

const DISCARD: Words<Discard> =
    Words { here: &[("durable", Discard::Durable), ("kernel", Discard::Kernel)], later: &[] };

const VICTIM: Words<Victim> = Words {
    here: &[
        ("pblk-lists", Victim::PblkLists),
        ("greedy", Victim::Greedy),
        ("cost-benefit", Victim::CostBenefit),
        ("fifo", Victim::Fifo),
        ("random", Victim::Random),
        ("d-choices", Victim::DChoices(DEFAULT_D)),
    ],
    later: &[],
};

const FTL_KIND: Words<()> =
    Words { here: &[("pblk", ())], later: &["pagemap", "zoned", "interval", "coupled"] };
const ROUTING: Words<()> = Words {
    here: &[("single", ())],
    later: &["per-core", "per-queue", "journal", "fsync-aware", "fsync-in-normal", "per-file"],
};
const FLUSH_SCOPE: Words<()> =
    Words { here: &[("all", ())], later: &["file-ring", "file-entries"] };
const LINE_SET: Words<()> = Words { here: &[("device", ())], later: &["channel"] };
const GC_STREAM: Words<()> = Words { here: &[("data", ())], later: &["own", "by-origin"] };
const MAP_KIND: Words<()> = Words { here: &[("resident", ())], later: &["cached"] };

/// Reads a whole stack, whose file begins at `place`.
pub(super) fn read(table: &Table, place: &Place) -> Result<Stack, StackError> {
    let mut root = Section::root(table, place);
    let name = root.or("name", "unnamed".to_owned())?;
    let (host, host_text) = read_host(root.section("host", "host")?)?;
    let (media, media_text) = read_media(root.section("media", "media")?)?;
    let (ftl, ftl_text) = read_ftl(root.section("ftl", "ftl")?, media.payload)?;
    let (hints, hints_text) = read_hints(root.section("hints", "hints")?)?;
    let (precondition, precondition_text) =
        read_precondition(root.section("precondition", "precondition")?)?;
    let toml =
        join([root.close()?, host_text, media_text, ftl_text, hints_text, precondition_text]);
    let (places, place) = (Places::new(), place.clone());
    Ok(Stack { name, host, media, ftl, hints, precondition, toml, places, place })
}

/// Closes a section and heads its resolved lines, if it has any.
fn titled(title: &str, section: Section<'_>) -> Result<String, StackError> {
    let lines = section.close()?;
    Ok(if lines.is_empty() { lines } else { format!("[{title}]\n{lines}") })
}

fn read_host(mut host: Section<'_>) -> Result<(Host, String), StackError> {
    let cores = host.optional("cores")?;
    host.check("cores", cores != Some(0), "must be at least 1")?;
    let memory_bytes = host.optional("memory")?.map(|Size(bytes)| bytes);
    Ok((Host { cores, memory_bytes }, titled("host", host)?))
}

fn read_media(mut media: Section<'_>) -> Result<(MediaStack, String), StackError> {
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
    let timing = timing::read(&mut media)?;
    let payload = media.choice("payload", "tags", &PAYLOAD)?;
    let Size(memory_cap_bytes) = media.or("memory_cap", Size(MEMORY_CAP_BYTES))?;
    let endurance_erases = media.optional("endurance_erases")?;
    let (faults, faults_text) = read_faults(media.section("faults", "media.faults")?, &geometry)?;
    let text = join([titled("media", media)?, faults_text]);
    let stack =
        MediaStack { geometry, timing, payload, memory_cap_bytes, endurance_erases, faults };
    Ok((stack, text))
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
    let slow_unit = read_slow_unit(&mut faults, geometry)?;
    let commands = (commands != Faults::default()).then_some(commands);
    Ok((MediaFaults { commands, bad_chunk_rate, slow_unit }, titled("media.faults", faults)?))
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

fn read_ftl(mut ftl: Section<'_>, payload: PayloadMode) -> Result<(Config, String), StackError> {
    ftl.choice("kind", "pblk", &FTL_KIND)?;
    let capacity_rules = ftl.choice("capacity_rules", "4.16", &CAPACITY_RULES)?;
    let op_percent = ftl.optional("op_percent")?;
    let op_fits = op_percent.is_none_or(|percent: u32| (3..=80).contains(&percent));
    ftl.check("op_percent", op_fits, "must be 3 to 80")?;
    ftl.choice("routing", "single", &ROUTING)?;
    ftl.choice("flush_scope", "all", &FLUSH_SCOPE)?;
    ftl.choice("line_set", "device", &LINE_SET)?;
    let limiter = ftl.word("limiter", "kernel", parse_limiter, |_, word| word.to_owned())?;
    let discard = ftl.choice("discard", "durable", &DISCARD)?;
    let ring_sectors = ftl.optional("ring")?;
    let (victim, gc_text) = read_gc(ftl.section("gc", "ftl.gc")?)?;
    let map_text = read_map(ftl.section("map", "ftl.map")?)?;
    let config = Config {
        capacity_rules,
        op_percent,
        ring_sectors,
        limiter,
        discard,
        victim,
        keep_content: payload != PayloadMode::None,
        ..Config::default()
    };
    Ok((config, join([titled("ftl", ftl)?, gc_text, map_text])))
}

fn parse_limiter(word: &str) -> Result<Limiter, String> {
    let reserve = word.strip_prefix("reserve-").and_then(|lines| lines.parse().ok());
    match (word, reserve) {
        ("kernel", _) => Ok(Limiter::Kernel),
        (_, Some(lines)) if lines > 0 => Ok(Limiter::Reserve(lines)),
        _ => Err(format!("expected kernel | reserve-N (N free lines), found \"{word}\"")),
    }
}

fn read_gc(mut gc: Section<'_>) -> Result<(Victim, String), StackError> {
    let d: Option<u32> = gc.unwritten("d")?;
    gc.check("d", d != Some(0), "must be at least 1")?;
    let parse = |word: &str| match (parse_victim(word)?, d) {
        (Victim::DChoices(_), Some(d)) => Ok(Victim::DChoices(d)),
        (_, Some(_)) => Err("`d` goes with victim = \"d-choices\" only".into()),
        (victim, None) => Ok(victim),
    };
    let victim = gc.word("victim", "pblk-lists", parse, |victim, word| match victim {
        Victim::DChoices(d) => format!("d-choices-{d}"),
        _ => word.to_owned(),
    })?;
    gc.choice("stream", "data", &GC_STREAM)?;
    Ok((victim, titled("ftl.gc", gc)?))
}

fn parse_victim(word: &str) -> Result<Victim, String> {
    match word.strip_prefix("d-choices-").and_then(|d| d.parse().ok()) {
        Some(d) if d > 0 => Ok(Victim::DChoices(d)),
        _ => VICTIM.read(word),
    }
}

fn read_map(mut map: Section<'_>) -> Result<String, StackError> {
    map.choice("kind", "resident", &MAP_KIND)?;
    titled("ftl.map", map)
}

fn read_hints(mut hints: Section<'_>) -> Result<(Hints, String), StackError> {
    let range: Option<SizeRange> = hints.optional("journal_range")?;
    let journal_range = range.map(|SizeRange(first, end)| {
        let whole = first.is_multiple_of(SECTOR_BYTES) && end.is_multiple_of(SECTOR_BYTES);
        hints.check("journal_range", whole, "must be whole sectors of 4 KiB")?;
        Ok(first / SECTOR_BYTES..end / SECTOR_BYTES)
    });
    Ok((Hints { journal_range: journal_range.transpose()? }, titled("hints", hints)?))
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

fn join<const N: usize>(texts: [String; N]) -> String {
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}
