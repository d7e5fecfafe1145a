//! Compositions: routing x flush scope x line set x garbage-collection stream x map x widths, by name, as
//! `per-core+journal+fsync-aware/file-ring/units-2/own/dftl-serial/wide`. All of them, and a choice of a
//! few in which every two choices meet; and what the FTL says of one that it refuses.

use crate::draw::pblk::maps::{MapChoice, Misses, Replacement};
use nandscape_ftl::pblk::config::{
    BaseRouting, Config, CoreChoice, FileRouting, FlushScope, GcStream, LineSet, Routing,
    StreamUnits,
};
use nandscape_ftl::{FtlError, FtlRun, Pblk};
use nandscape_media::{Geometry, Media, MediaConfig};
use std::collections::BTreeSet;
use std::fmt;

/// A choice of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Composition {
    /// Which write buffer takes a bio.
    pub routing: Routing,
    /// What a flush covers.
    pub flush_scope: FlushScope,
    /// Which chunks make a line.
    pub line_set: LineSet,
    /// Where copies go.
    pub gc_stream: GcStream,
    /// Where the mapping table is.
    pub map: MapChoice,
    /// How wide streams are.
    pub widths: Widths,
}

/// How wide streams are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Widths {
    /// As the line set has it.
    Usual,
    /// Each stream's own number of lines; the seed draws them.
    Wide,
}

/// Choices that are given; the seed draws the others.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pins {
    /// Which write buffer takes a bio.
    pub routing: Option<Routing>,
    /// What a flush covers.
    pub flush_scope: Option<FlushScope>,
    /// Which chunks make a line.
    pub line_set: Option<LineSet>,
    /// Where copies go.
    pub gc_stream: Option<GcStream>,
    /// Where the mapping table is.
    pub map: Option<MapChoice>,
    /// How wide streams are.
    pub widths: Option<Widths>,
}

const BASES: [(BaseRouting, &str); 5] = [
    (BaseRouting::Single, "single"),
    (BaseRouting::PerCore(CoreChoice::Core), "per-core"),
    (BaseRouting::PerCore(CoreChoice::Random), "per-core-random"),
    (BaseRouting::PerCore(CoreChoice::MostFree), "per-core-most-free"),
    (BaseRouting::PerQueue, "per-queue"),
];

const FILES: [(FileRouting, &str); 4] = [
    (FileRouting::None, ""),
    (FileRouting::FsyncAware, "+fsync-aware"),
    (FileRouting::FsyncInNormal, "+fsync-in-normal"),
    (FileRouting::PerFile, "+per-file"),
];

/// Those that keep the promises come first.
const SCOPES: [(FlushScope, &str); 5] = [
    (FlushScope::All, "all"),
    (FlushScope::FileRing, "file-ring"),
    (FlushScope::FileEntries, "file-entries"),
    (FlushScope::SubmittedOnly, "submitted-only"),
    (FlushScope::RoutedRingOnly, "routed-ring-only"),
];
const SAFE_SCOPES: usize = 3;

const LINE_SETS: [(LineSet, &str); 5] = [
    (LineSet::Device, "device"),
    (LineSet::Channel, "channel"),
    (LineSet::Units(2), "units-2"),
    (LineSet::Units(1), "units-1"),
    (LineSet::Units(4), "units-4"),
];
/// Line sets of the matrix: a third width tells nothing new.
const MATRIX_LINE_SETS: usize = 3;

const GC_STREAMS: [(GcStream, &str); 3] =
    [(GcStream::Data, "data"), (GcStream::Own, "own"), (GcStream::ByOrigin, "by-origin")];

/// A name has no part for usual widths.
const WIDTHS: [(Widths, &str); 2] = [(Widths::Usual, "usual"), (Widths::Wide, "wide")];

const RESIDENT: &str = "resident";

const REPLACEMENTS: [(Replacement, &str); 4] = [
    (Replacement::Lru, "lru"),
    (Replacement::Hotness, "hotness"),
    (Replacement::HotnessJournal, "hotness-journal"),
    (Replacement::Dftl, "dftl"),
];

const MISSES: [(Misses, &str); 2] = [(Misses::Overlapped, ""), (Misses::Serial, "-serial")];

/// Every routing, refused ones too.
pub fn routings() -> impl Iterator<Item = Routing> {
    let with = |base, journal, files| Routing { base, journal, files };
    BASES.into_iter().flat_map(move |(base, _)| {
        [false, true].into_iter().flat_map(move |journal| {
            FILES.into_iter().map(move |(files, _)| with(base, journal, files))
        })
    })
}

/// The flush scopes that keep the promises.
pub fn safe_scopes() -> impl Iterator<Item = FlushScope> {
    SCOPES.into_iter().take(SAFE_SCOPES).map(|(scope, _)| scope)
}

/// Line sets, those of the matrix first.
pub fn line_sets() -> impl Iterator<Item = LineSet> {
    LINE_SETS.into_iter().map(|(set, _)| set)
}

/// Every stream for copies.
pub fn gc_streams() -> impl Iterator<Item = GcStream> {
    GC_STREAMS.into_iter().map(|(stream, _)| stream)
}

/// Every map.
pub fn maps() -> impl Iterator<Item = MapChoice> {
    let replacements = REPLACEMENTS.into_iter().map(|(replacement, _)| replacement);
    let cached = replacements.flat_map(|replacement| {
        MISSES.into_iter().map(move |(misses, _)| MapChoice::Cached(replacement, misses))
    });
    [MapChoice::Resident].into_iter().chain(cached)
}

/// Every composition with such widths that should keep the promises, refused ones too. Lines of the device leave
/// streams no choice of width.
#[must_use]
pub fn all(widths: Widths) -> Vec<Composition> {
    let usual = usize::from(widths == Widths::Wide);
    let mut all = Vec::new();
    for routing in routings() {
        for flush_scope in safe_scopes() {
            for line_set in line_sets().take(MATRIX_LINE_SETS).skip(usual) {
                for gc_stream in gc_streams() {
                    all.extend(maps().map(|map| Composition {
                        routing,
                        flush_scope,
                        line_set,
                        gc_stream,
                        map,
                        widths,
                    }));
                }
            }
        }
    }
    all
}

/// A few of these in which any two choices that meet in any of them meet: each next one is the first
/// with most pairs not yet seen.
#[must_use]
pub fn pairwise(all: &[Composition]) -> Vec<Composition> {
    let mut missing: BTreeSet<Pair> = all.iter().flat_map(Composition::pairs).collect();
    let mut chosen = Vec::new();
    while !missing.is_empty() {
        let news = |it: &&Composition| it.pairs().filter(|pair| missing.contains(pair)).count();
        let Some(best) = all.iter().rev().max_by_key(news) else { break };
        best.pairs().for_each(|pair| {
            missing.remove(&pair);
        });
        chosen.push(*best);
    }
    chosen
}

/// Two choices: each a kind and its name.
type Pair = ((usize, &'static str), (usize, &'static str));

/// A device with room for every buffer and line that any composition may want.
const AMPLE: Geometry = Geometry {
    groups: 4,
    units: 4,
    chunks: 160,
    sectors: 64,
    ws_min: 4,
    ws_opt: 8,
    mw_cunits: 24,
    maxoc: 0,
    maxocpu: 0,
};

impl Composition {
    /// What a configuration composes.
    #[must_use]
    pub fn of(config: &Config) -> Self {
        let Config { routing, flush_scope, line_set, gc_stream, stream_units, .. } = *config;
        let map = MapChoice::of(&config.map);
        let usual = stream_units == StreamUnits::default();
        let widths = if usual { Widths::Usual } else { Widths::Wide };
        Self { routing, flush_scope, line_set, gc_stream, map, widths }
    }

    /// The configuration with these choices.
    #[must_use]
    pub fn apply_to(&self, config: Config) -> Config {
        let Self { routing, flush_scope, line_set, gc_stream, map, widths } = *self;
        let map = map.apply_to(config.map);
        let stream_units = match widths {
            Widths::Usual => StreamUnits::default(),
            Widths::Wide => config.stream_units,
        };
        Config { routing, flush_scope, line_set, stream_units, gc_stream, map, ..config }
    }

    fn names(&self) -> [&'static str; 9] {
        let [map, misses] = names_of_map(self.map);
        [
            name_of(&BASES, self.routing.base),
            if self.routing.journal { "+journal" } else { "" },
            name_of(&FILES, self.routing.files),
            name_of(&SCOPES, self.flush_scope),
            name_of(&LINE_SETS, self.line_set),
            name_of(&GC_STREAMS, self.gc_stream),
            map,
            misses,
            if self.widths == Widths::Wide { "/wide" } else { "" },
        ]
    }

    /// Widths are not among them: they are the same in all of a matrix.
    fn pairs(&self) -> impl Iterator<Item = Pair> + use<> {
        let [names @ .., _] = self.names();
        (0..names.len())
            .flat_map(move |a| (a + 1..names.len()).map(move |b| ((a, names[a]), (b, names[b]))))
    }

    /// The FTL's sentence about this composition, if it refuses it on any device.
    pub(crate) fn refusal(&self) -> Option<String> {
        let config = self.apply_to(Config { op_percent: Some(50), ..Config::default() });
        let media = Media::new(MediaConfig::new(AMPLE)).ok()?;
        match Pblk::format(media.into(), config, FtlRun::default()) {
            Err(error @ FtlError::Config { .. }) => Some(error.to_string()),
            _ => None,
        }
    }
}

impl From<Composition> for Pins {
    fn from(all: Composition) -> Self {
        Self {
            routing: Some(all.routing),
            flush_scope: Some(all.flush_scope),
            line_set: Some(all.line_set),
            gc_stream: Some(all.gc_stream),
            map: Some(all.map),
            widths: Some(all.widths),
        }
    }
}

impl fmt::Display for Composition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [base, journal, files, scope, lines, gc, map, misses, widths] = self.names();
        write!(f, "{base}{journal}{files}/{scope}/{lines}/{gc}/{map}{misses}{widths}")
    }
}

impl std::str::FromStr for Pins {
    type Err = String;

    /// Reads a composition's name; `*`, or a name that ends early, leaves choices to the seed. One that ends
    /// with its map has usual widths.
    fn from_str(text: &str) -> Result<Self, String> {
        let whole = text.split('/').count() == 5;
        let text = if whole { format!("{text}/usual") } else { text.to_owned() };
        let mut parts = text.split('/');
        let mut part = || parts.next().unwrap_or("*");
        let [routing, scope, lines, gc, map, widths] = [(); 6].map(|()| part());
        if let Some(further) = parts.next() {
            return Err(format!(
                "{further:?} is too much: expected ROUTING/FLUSH-SCOPE/LINE-SET/GC-STREAM/MAP/WIDTHS, * for any"
            ));
        }
        Ok(Self {
            routing: parse_routing(routing)?,
            flush_scope: parse(&SCOPES, "flush scope", scope)?,
            line_set: parse(&LINE_SETS, "line set", lines)?,
            gc_stream: parse(&GC_STREAMS, "stream of copies", gc)?,
            map: parse_map(map)?,
            widths: parse(&WIDTHS, "choice of widths", widths)?,
        })
    }
}

impl Pins {
    /// Whether a composition has all the choices that are given.
    #[must_use]
    pub fn permit(&self, it: &Composition) -> bool {
        self.routing.is_none_or(|routing| routing == it.routing)
            && self.flush_scope.is_none_or(|scope| scope == it.flush_scope)
            && self.line_set.is_none_or(|set| set == it.line_set)
            && self.gc_stream.is_none_or(|stream| stream == it.gc_stream)
            && self.map.is_none_or(|map| map == it.map)
            && self.widths.is_none_or(|widths| widths == it.widths)
    }
}

/// Where the table is, and how misses come.
fn names_of_map(map: MapChoice) -> [&'static str; 2] {
    match map {
        MapChoice::Resident => [RESIDENT, ""],
        MapChoice::Cached(replacement, misses) => {
            [name_of(&REPLACEMENTS, replacement), name_of(&MISSES, misses)]
        }
    }
}

fn name_of<T: PartialEq>(names: &[(T, &'static str)], value: T) -> &'static str {
    names.iter().find(|(known, _)| *known == value).map_or("other", |(_, name)| name)
}

fn parse<T: Copy>(names: &[(T, &str)], kind: &str, text: &str) -> Result<Option<T>, String> {
    if text == "*" {
        return Ok(None);
    }
    let found = names.iter().find(|(_, name)| *name == text).map(|(value, _)| Some(*value));
    let known = || names.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("{text:?} is no {kind}: expected *, {}", known()))
}

fn parse_routing(text: &str) -> Result<Option<Routing>, String> {
    if text == "*" {
        return Ok(None);
    }
    let name = |routing: &Routing| {
        let journal = if routing.journal { "+journal" } else { "" };
        format!("{}{journal}{}", name_of(&BASES, routing.base), name_of(&FILES, routing.files))
    };
    let found = routings().find(|routing| name(routing) == text).map(Some);
    found.ok_or_else(|| {
        let bases = BASES.map(|(_, name)| name).join(", ");
        format!(
            "{text:?} is no routing: expected * or one of {bases}; then, if wanted, +journal; then, \
             if wanted, +fsync-aware, +fsync-in-normal or +per-file"
        )
    })
}

fn parse_map(text: &str) -> Result<Option<MapChoice>, String> {
    if text == "*" {
        return Ok(None);
    }
    let found = maps().find(|&map| names_of_map(map).concat() == text).map(Some);
    found.ok_or_else(|| {
        let known: Vec<String> = maps().map(|map| names_of_map(map).concat()).collect();
        format!("{text:?} is no map: expected *, {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever two choices some composition has together, one of the chosen has together.
    #[test]
    fn the_pairwise_choice_is_small_and_complete() {
        let legal: Vec<_> = all(Widths::Usual)
            .into_iter()
            .filter(|it| {
                (it.routing.base, it.routing.files)
                    != (BaseRouting::Single, FileRouting::FsyncInNormal)
            })
            .collect();
        let chosen = pairwise(&legal);
        let pairs = |of: &[Composition]| of.iter().flat_map(Composition::pairs).collect();
        let (wanted, met): (BTreeSet<Pair>, BTreeSet<Pair>) = (pairs(&legal), pairs(&chosen));
        assert_eq!(wanted, met);
        assert!(met.len() > 200 && chosen.len() < 50, "{} of {}", chosen.len(), legal.len());
        assert!(chosen.iter().all(|it| legal.contains(it)), "none is made up");
    }

    /// A violation names its composition; that name brings it back.
    #[test]
    fn names_lead_back_to_their_compositions() {
        let mut names = BTreeSet::new();
        for composition in [Widths::Usual, Widths::Wide].into_iter().flat_map(all) {
            assert_eq!(composition.to_string().parse(), Ok(Pins::from(composition)));
            assert!(names.insert(composition.to_string()), "{composition} twice");
        }
        assert_eq!("*/*/*/*".parse(), Ok(Pins::default()));
        let scope = Pins { flush_scope: Some(FlushScope::SubmittedOnly), ..Pins::default() };
        assert_eq!("*/submitted-only/*/*".parse(), Ok(scope));
        assert_eq!("*/submitted-only".parse(), Ok(scope), "what is not named is the seed's");
        let usual = Pins { widths: Some(Widths::Usual), ..Pins::default() };
        assert_eq!("*/*/*/*/*".parse(), Ok(usual));
        assert_eq!("*/*/*/*/*/*".parse(), Ok(Pins::default()));
    }

    #[test]
    fn unknown_names_are_refused_with_those_that_exist() {
        let refused = |text: &str| text.parse::<Pins>().expect_err(text);
        assert!(refused("single/*/*/*/*/*/*").contains("FLUSH-SCOPE"));
        assert!(refused("single/*/*/*/clock").contains("hotness-journal-serial"));
        assert!(refused("single/*/*/*/*/narrow").contains("wide"));
        assert!(refused("single/rings/*/*").contains("file-ring"));
        assert!(refused("journal+single/*/*/*").contains("+journal"));
    }
}
