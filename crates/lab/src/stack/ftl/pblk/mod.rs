//! The keys of `[ftl]` where its kind is pblk.

mod cpu;
mod map;

use super::read_victim;
use crate::stack::Host;
use crate::stack::document::Value;
use crate::stack::place::StackError;
use crate::stack::reader::{Section, Span, Words};
use crate::stack::resolved::{join, titled};
use nandscape_ftl::pblk::config::{
    BaseRouting, CapacityRules, Config, CoreChoice, Discard, FileRouting, FlushScope, GcStream,
    JournalLines, Limiter, LineSet, Pacing, Routing, StreamUnits, Victim,
};
use nandscape_rt::Nanos;

/// Keys of `[ftl]`, in the order in which they are read.
pub(super) const KEYS: [&str; 21] = [
    "capacity_rules",
    "op_percent",
    "routing",
    "core_choice",
    "write_buffers",
    "fsync_rings",
    "fsync_threshold",
    "special_buffer",
    "flush_scope",
    "line_set",
    "normal_units",
    "fsync_units",
    "journal_units",
    "gc_units",
    "limiter",
    "discard",
    "ring",
    "map_update",
    "cpu",
    "gc",
    "map",
];

const CAPACITY_RULES: Words<CapacityRules> = Words {
    here: &[
        ("4.13", CapacityRules::V4_13),
        ("4.16", CapacityRules::V4_16),
        ("5.11", CapacityRules::V5_11),
    ],
};

const DISCARD: Words<Discard> =
    Words { here: &[("durable", Discard::Durable), ("kernel", Discard::Kernel)] };

const JOURNAL_LINES: Words<JournalLines> =
    Words { here: &[("collected", JournalLines::Collected), ("exempt", JournalLines::Exempt)] };
const GC_STREAM: Words<GcStream> = Words {
    here: &[("data", GcStream::Data), ("own", GcStream::Own), ("by-origin", GcStream::ByOrigin)],
};
const IS_PACED: Words<bool> = Words { here: &[("kernel", true), ("immediate", false)] };
const FLUSH_SCOPE: Words<FlushScope> = Words {
    here: &[
        ("all", FlushScope::All),
        ("file-ring", FlushScope::FileRing),
        ("file-entries", FlushScope::FileEntries),
        ("submitted-only", FlushScope::SubmittedOnly),
        ("routed-ring-only", FlushScope::RoutedRingOnly),
    ],
};
const CORE_CHOICE: Words<CoreChoice> = Words {
    here: &[
        ("core", CoreChoice::Core),
        ("random", CoreChoice::Random),
        ("most-free", CoreChoice::MostFree),
    ],
};

/// One word of `routing`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Route {
    Base(BaseRouting),
    Journal,
    Files(FileRouting),
}

const ROUTING: Words<Route> = Words {
    here: &[
        ("single", Route::Base(BaseRouting::Single)),
        ("per-core", Route::Base(BaseRouting::PerCore(CoreChoice::Core))),
        ("per-queue", Route::Base(BaseRouting::PerQueue)),
        ("journal", Route::Journal),
        ("fsync-aware", Route::Files(FileRouting::FsyncAware)),
        ("fsync-in-normal", Route::Files(FileRouting::FsyncInNormal)),
        ("per-file", Route::Files(FileRouting::PerFile)),
    ],
};

/// Reads the rest of the FTL's section.
pub(super) fn read(mut ftl: Section<'_>, host: &Host) -> Result<(Config, String), StackError> {
    let capacity_rules = ftl.choice("capacity_rules", "4.16", &CAPACITY_RULES)?;
    let op_percent = ftl.optional("op_percent")?;
    let op_fits = op_percent.is_none_or(|percent: u32| (3..=80).contains(&percent));
    ftl.check("op_percent", op_fits, "must be 3 to 80")?;
    let mut config = Config { op_percent, capacity_rules, ..Config::default() };
    read_buffers(&mut ftl, &mut config, host)?;
    let limiter = ftl.word("limiter", "kernel", parse_limiter, |_, word| word.to_owned())?;
    let discard = ftl.choice("discard", "durable", &DISCARD)?;
    let ring_sectors = ftl.optional("ring")?;
    let (cpu, map_update) = cpu::read(&mut ftl)?;
    let gc = read_gc(ftl.section("gc", "ftl.gc")?, &Config { limiter, ..config.clone() })?;
    let (map, map_text) = map::read(ftl.section("map", "ftl.map")?)?;
    let config = Config {
        ring_sectors,
        limiter,
        discard,
        victim: gc.victim,
        gc_stream: gc.stream,
        journal_lines: gc.journal_lines,
        gc_pacing: Some(gc.pacing),
        map,
        cpu,
        map_update,
        ..config
    };
    Ok((config, join([titled("ftl", ftl)?, gc.text, map_text])))
}

fn parse_limiter(word: &str) -> Result<Limiter, String> {
    let reserve = word.strip_prefix("reserve-").and_then(|lines| lines.parse().ok());
    match (word, reserve) {
        ("kernel", _) => Ok(Limiter::Kernel),
        (_, Some(lines)) if lines > 0 => Ok(Limiter::Reserve(lines)),
        _ => Err(format!("expected kernel | reserve-N (N free lines), found \"{word}\"")),
    }
}

/// What a stack says of garbage collection.
struct GcKeys {
    victim: Victim,
    stream: GcStream,
    journal_lines: JournalLines,
    pacing: Pacing,
    text: String,
}

fn read_gc(mut gc: Section<'_>, config: &Config) -> Result<GcKeys, StackError> {
    let victim = read_victim(&mut gc, "pblk-lists")?;
    let stream = gc.choice("stream", "data", &GC_STREAM)?;
    let journal_lines = if config.routing.journal {
        gc.choice("journal_lines", "collected", &JOURNAL_LINES)?
    } else {
        gc.refuse(&["journal_lines"], "goes with routing = \"journal\" only")?;
        JournalLines::default()
    };
    let pacing = read_pacing(&mut gc, config.pacing())?;
    Ok(GcKeys { victim, stream, journal_lines, pacing, text: titled("ftl.gc", gc)? })
}

/// When victims are started; by default as it goes with the limiter.
fn read_pacing(gc: &mut Section<'_>, default: Pacing) -> Result<Pacing, StackError> {
    let word = if default == Pacing::Immediate { "immediate" } else { "kernel" };
    let paced = gc.choice("pacing", word, &IS_PACED)?;
    let period = gc.or("period", Span(Pacing::PERIOD))?.0;
    let fits = (Nanos(1_000)..=Nanos::from_secs(3_600)).contains(&period);
    gc.check("period", fits, "must be 1us to 3600s")?;
    Ok(if paced { Pacing::Kernel(period) } else { Pacing::Immediate })
}

/// Which buffers there are, what takes which, and what a flush covers.
fn read_buffers(ftl: &mut Section<'_>, config: &mut Config, host: &Host) -> Result<(), StackError> {
    config.routing = read_routing(ftl)?;
    let choice = ftl.optional_choice("core_choice", &CORE_CHOICE)?;
    match (&mut config.routing.base, choice) {
        (BaseRouting::PerCore(place), Some(choice)) => *place = choice,
        (_, Some(_)) => {
            return Err(ftl.reject("core_choice", "goes with routing = \"per-core\" only"));
        }
        (_, None) => {}
    }
    let buffers = ftl.optional("write_buffers")?;
    ftl.check("write_buffers", buffers != Some(0), "must be at least 1")?;
    config.write_buffers = buffers.unwrap_or_else(|| host.cores_or_default());
    config.fsync_rings = ftl.optional("fsync_rings")?;
    config.fsync_threshold =
        ftl.optional("fsync_threshold")?.unwrap_or(Config::default().fsync_threshold);
    config.special_ring_sectors = ftl.optional("special_buffer")?;
    config.flush_scope = ftl.choice("flush_scope", "all", &FLUSH_SCOPE)?;
    config.line_set = ftl.word("line_set", "device", parse_line_set, |_, word| word.to_owned())?;
    config.stream_units = StreamUnits {
        normal: ftl.optional("normal_units")?,
        fsync: ftl.optional("fsync_units")?,
        journal: ftl.optional("journal_units")?,
        gc: ftl.optional("gc_units")?,
    };
    Ok(())
}

/// A word, or a list of words that do not exclude each other.
fn read_routing(ftl: &mut Section<'_>) -> Result<Routing, StackError> {
    let Some(Value::Array(nodes)) = ftl.node("routing").map(|node| &node.value) else {
        let route = ftl.choice("routing", "single", &ROUTING)?;
        return combine(&[route]).map_err(|why| ftl.reject("routing", why));
    };
    let mut words = Vec::new();
    for node in nodes {
        let Value::String(word) = &node.value else {
            let found = node.value.describe();
            return Err(ftl.reject("routing", format!("expected words, found {found}")));
        };
        words.push(word.as_str());
    }
    let text = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
    let routes: Result<Vec<Route>, String> = words.iter().map(|word| ROUTING.read(word)).collect();
    let routing = routes.and_then(|routes| combine(&routes));
    let routing = routing.map_err(|why| ftl.reject("routing", why))?;
    ftl.write("routing", &format!("[{text}]"));
    Ok(routing)
}

fn combine(routes: &[Route]) -> Result<Routing, String> {
    let mut routing = Routing::default();
    let (mut base, mut files) = (None, None);
    for route in routes {
        let twice = match route {
            Route::Base(chosen) => base.replace(*chosen).is_some(),
            Route::Files(chosen) => files.replace(*chosen).is_some(),
            Route::Journal => std::mem::replace(&mut routing.journal, true),
        };
        if twice {
            return Err("at most one of single | per-core | per-queue, one of fsync-aware | \
                        fsync-in-normal | per-file, and journal can be combined"
                .into());
        }
    }
    Ok(Routing { base: base.unwrap_or_default(), files: files.unwrap_or_default(), ..routing })
}

fn parse_line_set(word: &str) -> Result<LineSet, String> {
    let units = word.strip_prefix("units-").and_then(|units| units.parse().ok());
    match (word, units) {
        ("device", _) => Ok(LineSet::Device),
        ("channel", _) => Ok(LineSet::Channel),
        (_, Some(units)) if units > 0 => Ok(LineSet::Units(units)),
        _ => Err(format!("expected device | channel | units-N, found \"{word}\"")),
    }
}
