//! Which FTLs there are, on which side of the host link each runs, and what a run adds to the choices of
//! a configuration.

use std::fmt;
use std::str::FromStr;

/// A kind of FTL. Closed on purpose: whatever depends on the kind is a `match`, so that the compiler
/// lists every place that a new kind has to be added to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum FtlKind {
    /// pblk, on the host (Linux `drivers/lightnvm`).
    #[default]
    Pblk,
    /// A conventional SSD: page-mapped, in its controller.
    PageMap,
    /// A zoned SSD (NVMe ZNS).
    Zoned,
    /// An SSD with append-only regions and interval maps (IPLFS).
    Interval,
    /// An SSD that collects garbage in place of the file system (D2FS).
    Coupled,
}

/// Where an FTL runs, and thereby what crosses the host link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// In the host's kernel: the link is below the FTL, and garbage collection crosses it.
    Host,
    /// In the SSD's controller: the link is above the FTL.
    Device,
}

impl FtlKind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Pblk, Self::PageMap, Self::Zoned, Self::Interval, Self::Coupled];

    /// The name in stack files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pblk => "pblk",
            Self::PageMap => "pagemap",
            Self::Zoned => "zoned",
            Self::Interval => "interval",
            Self::Coupled => "coupled",
        }
    }

    /// Where it runs.
    #[must_use]
    pub const fn side(self) -> Side {
        match self {
            Self::Pblk => Side::Host,
            Self::PageMap | Self::Zoned | Self::Coupled | Self::Interval => Side::Device,
        }
    }

    /// The safety rules that it can leave out.
    #[must_use]
    pub const fn rules(self) -> &'static [OmittedRule] {
        match self {
            Self::Pblk => &OmittedRule::PBLK,
            Self::PageMap => &OmittedRule::PAGE_MAP,
            Self::Zoned => &OmittedRule::ZONED,
            Self::Interval => &OmittedRule::INTERVAL,
            Self::Coupled => &OmittedRule::COUPLED,
        }
    }
}

impl fmt::Display for FtlKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FtlKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let expected = Self::ALL.map(Self::name).join(" | ");
            format!("expected {expected}, found \"{name}\"")
        })
    }
}

/// The rules, from one list: variant, name, and, as its documentation, what goes wrong without it.
macro_rules! omitted_rules {
    ($($(#[doc = $about:literal])+ $rule:ident = $name:literal,)+) => {
        /// A safety rule that an FTL leaves out, so that a crash campaign can prove that it notices.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum OmittedRule {
            $($(#[doc = $about])+ $rule,)+
        }

        impl OmittedRule {
            /// The name on the command line.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)+
                }
            }

            /// What goes wrong without it: a sentence without its full stop.
            #[must_use]
            pub fn without(self) -> &'static str {
                let about = match self {
                    $(Self::$rule => concat!($($about),+),)+
                };
                about.trim().trim_end_matches('.')
            }
        }
    };
}

omitted_rules! {
    /// Recovery replays in line order and ignores sequences.
    Sequence = "sequence",
    /// A line is erased without waiting for what invalidated it to be durable.
    EraseRule = "erase-rule",
    /// A write with PREFLUSH does not wait for what it covers.
    PreflushDrain = "preflush-drain",
    /// Discards are not logged.
    LostTrims = "lost-trims",
    /// Recovery takes the newest mapping block on media for the truth.
    StaleMap = "stale-map",
    /// Mapping blocks are written back, and evicted, while they name slots of a write buffer.
    MapPins = "map-pins",
    /// Recovery takes a sector that media cannot correct for one that was never written.
    Unreadable = "unreadable",
    /// A flush does not program pages that are partly filled.
    OneShotFlush = "one-shot-flush",
    /// When power fails a power-safe buffer is not saved.
    BufferSave = "buffer-save",
    /// A line is erased one sequence before what superseded its sectors is durable.
    EraseGate = "erase-gate",
    /// Sectors that were superseded while they waited for their program do not delay the erase of their line.
    SettledGate = "settled-gate",
    /// A line may be erased before the records of the discards that superseded its sectors are durable.
    TrimGate = "trim-gate",
    /// Trim records do not raise the sequence that recovery goes on with.
    TrimSequence = "trim-sequence",
    /// Trim records that change places in a write buffer are awaited at their old place.
    MovedTrims = "moved-trims",
    /// A flush completes with the last program that it covers, although earlier ones are in flight.
    ProgramOrder = "program-order",
    /// A flush completes when what it covers is submitted.
    FlushCompletion = "flush-completion",
    /// A flush of a file does not cover discards.
    FileTrims = "file-trims",
    /// The gate of a line does not wait for what replaced its trim records.
    RelogGate = "relog-gate",
    /// A write with FUA waits for the FTL instance of its last piece alone.
    FuaInstances = "fua-instances",
    /// A victim is erased when its copies are submitted.
    CopyCompletion = "copy-completion",
    /// Recovery takes mapping units of which a power cut left a part.
    TornUnits = "torn-units",
    /// Trim records are compacted before everything in the buffer is durable.
    CompactedTrims = "compacted-trims",
    /// Trim records are compacted before there are places for all records that come of it.
    RecordPlaces = "record-places",
    /// A trim record is dropped when its units were written again, durable or not.
    BufferedTrims = "buffered-trims",
    /// Media drop what a sector holds when it is superseded, durably or not.
    DropEarly = "drop-early",
    /// A flush does not save pages of zones that are partly filled.
    ZoneSave = "zone-save",
    /// Recovery takes pages of zones that a power cut tore for whole ones.
    TornPages = "torn-pages",
    /// The reset of a zone whose first page was saved leaves no record.
    ResetRecord = "reset-record",
    /// Records that were saved before a power cut are kept after it.
    StaleRecords = "stale-records",
    /// A victim is erased before the records of what was moved from it are durable: after a cut its pages are
    /// found at no address.
    RecordJournal = "record-journal",
    /// An upcall completes before that is durable in the journal: its records come back after a cut.
    CompletionDurable = "completion-durable",
    /// A superblock is written again although records have addresses in it: its addresses and the redirects
    /// of older data contradict each other.
    RecordReference = "record-reference",
    /// A page that is moved again has one record, although the host knows the intermediate address: nothing
    /// is found there.
    OfferedMerge = "offered-merge",
    /// A discard of an old address does not apply to the page: discarded data show, and occupy space forever.
    RedirectedDiscard = "redirected-discard",
    /// A mount assigns the line that the journal names, whatever its generation: data of other addresses
    /// show.
    StaleGeneration = "stale-generation",
    /// Redirects end with the first record: a page that was moved twice is not found at its first address.
    RedirectChain = "redirect-chain",
}

impl OmittedRule {
    /// Those of pblk.
    const PBLK: [Self; 17] = [
        Self::Sequence,
        Self::EraseRule,
        Self::PreflushDrain,
        Self::LostTrims,
        Self::StaleMap,
        Self::MapPins,
        Self::Unreadable,
        Self::EraseGate,
        Self::SettledGate,
        Self::TrimGate,
        Self::TrimSequence,
        Self::MovedTrims,
        Self::ProgramOrder,
        Self::FlushCompletion,
        Self::FileTrims,
        Self::RelogGate,
        Self::DropEarly,
    ];

    /// Those of a page-mapped SSD.
    const PAGE_MAP: [Self; 17] = [
        Self::Sequence,
        Self::EraseRule,
        Self::PreflushDrain,
        Self::LostTrims,
        Self::OneShotFlush,
        Self::BufferSave,
        Self::EraseGate,
        Self::SettledGate,
        Self::TrimGate,
        Self::TrimSequence,
        Self::FuaInstances,
        Self::CopyCompletion,
        Self::TornUnits,
        Self::CompactedTrims,
        Self::RecordPlaces,
        Self::BufferedTrims,
        Self::DropEarly,
    ];

    /// Those of an SSD with interval maps, whose mapping units are sectors: none is torn.
    const INTERVAL: [Self; 16] = [
        Self::Sequence,
        Self::EraseRule,
        Self::PreflushDrain,
        Self::LostTrims,
        Self::OneShotFlush,
        Self::BufferSave,
        Self::EraseGate,
        Self::SettledGate,
        Self::TrimGate,
        Self::TrimSequence,
        Self::FuaInstances,
        Self::CopyCompletion,
        Self::CompactedTrims,
        Self::RecordPlaces,
        Self::BufferedTrims,
        Self::DropEarly,
    ];

    /// Those of a zoned SSD.
    const ZONED: [Self; 7] = [
        Self::PreflushDrain,
        Self::BufferSave,
        Self::ProgramOrder,
        Self::ZoneSave,
        Self::TornPages,
        Self::ResetRecord,
        Self::StaleRecords,
    ];

    /// Those of a coupled SSD.
    const COUPLED: [Self; 14] = [
        Self::PreflushDrain,
        Self::LostTrims,
        Self::BufferSave,
        Self::ProgramOrder,
        Self::ZoneSave,
        Self::TornPages,
        Self::CopyCompletion,
        Self::RecordJournal,
        Self::CompletionDurable,
        Self::RecordReference,
        Self::OfferedMerge,
        Self::RedirectedDiscard,
        Self::StaleGeneration,
        Self::RedirectChain,
    ];

    /// The rule of some kind that has this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let mut rules = FtlKind::ALL.into_iter().flat_map(|kind| kind.rules());
        rules.find(|rule| rule.name() == name).copied()
    }
}

/// What a run decides, beside the choices of a configuration: two configurations are equal exactly when
/// they make the same device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FtlRun {
    /// Seed of the run; the FTL's random streams derive from it.
    pub seed: u64,
    /// Whether sectors carry content; without, recovery of content cannot be checked.
    pub keep_content: bool,
    /// A safety rule to leave out; tests only.
    pub omit: Option<OmittedRule>,
}

impl Default for FtlRun {
    fn default() -> Self {
        Self { seed: 1, keep_content: true, omit: None }
    }
}

impl FtlRun {
    /// Whether the run leaves out any rule: what follows from all of them need not hold then.
    #[inline]
    pub(crate) const fn omits_any(&self) -> bool {
        self.omit.is_some()
    }

    /// Whether the run leaves out `rule`.
    #[inline]
    #[must_use]
    pub fn omits(&self, rule: OmittedRule) -> bool {
        self.omit == Some(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names lead back to kinds and rules, and no two are equal.
    #[test]
    fn names_are_unique() {
        for kind in FtlKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            for &rule in kind.rules() {
                assert_eq!(OmittedRule::named(rule.name()), Some(rule));
            }
        }
        assert_eq!(
            "pagemp".parse::<FtlKind>().unwrap_err().split(',').next_back(),
            Some(" found \"pagemp\"")
        );
        assert_eq!(OmittedRule::named("no-rule"), None);
    }

    /// The manual has the rules of coupled SSDs in a table; those that no other kind has in the same words.
    #[test]
    fn rules_are_documented() {
        const DOCUMENT: &str = include_str!("../../../docs/semantics/device.md");
        let others: Vec<OmittedRule> = FtlKind::ALL
            .into_iter()
            .filter(|kind| *kind != FtlKind::Coupled)
            .flat_map(|kind| kind.rules().iter().copied())
            .collect();
        for &rule in FtlKind::Coupled.rules() {
            let row = format!("| `{}` | ", rule.name());
            let rows: Vec<&str> =
                DOCUMENT.lines().filter_map(|line| line.strip_prefix(&row)).collect();
            assert_eq!(rows.len(), 1, "{}", rule.name());
            if !others.contains(&rule) {
                assert_eq!(rows[0], format!("{} |", rule.without()));
            }
        }
    }
}
