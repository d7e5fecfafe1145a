//! What only F2FS counts: checkpoints, blocks per log, cleaning, discards, roll-forward.

use super::append::AppendCounts;
use super::cpu::CpuTimes;
use super::format::{SPACE_REGIONS, SegmentType};
use super::gc_parts::GcParts;
use super::segment::{Blocks, LOGS};
use crate::counts::CountGroup;
use nandscape_rt::Nanos;
use nandscape_rt::words::counted;

/// Counts of a mounted F2FS.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Blocks of packs, NAT and SIT that they wrote.
    pub checkpoint_blocks: u64,
    /// Blocks of SSA: a segment that is full has its summaries written.
    pub summary_blocks: u64,
    /// Blocks written to each log, in the order of [`SegmentType::ALL`](super::format::SegmentType::ALL).
    pub log_blocks: [u64; LOGS],
    /// Blocks among them that filled holes of dirty segments.
    pub threaded_blocks: u64,
    /// Blocks of data written over where they lay, in no log.
    pub in_place_blocks: u64,
    /// Sections cleaned in the foreground.
    pub foreground_sections: u64,
    /// Sections cleaned in the background.
    pub background_sections: u64,
    /// Data blocks that cleaning moved.
    pub moved_data_blocks: u64,
    /// Node blocks that cleaning moved.
    pub moved_node_blocks: u64,
    /// Blocks that were not valid in sections cleaned in the foreground.
    pub reclaimed_blocks: u64,
    /// Blocks in use, summed over blocks that users wrote.
    pub in_use: InUseSums,
    /// Calls of cleaning in the foreground.
    pub gc_calls: CallTimes,
    /// What their time went to.
    pub gc_parts: GcParts,
    /// Checkpoints that cleaning asked for.
    pub gc_checkpoints: u64,
    /// Blocks of directories, nodes, NAT, SIT, SSA and packs that these wrote.
    pub gc_checkpoint_blocks: u64,
    /// Blocks of the GC journal written.
    pub journal_blocks: u64,
    /// Moves in them.
    pub journal_entries: u64,
    /// Segments that they made free.
    pub journal_segments: u64,
    /// Checkpoints because the GC journal had no room.
    pub journal_full: u64,
    /// Times that the volume was marked, for the GC journal.
    pub journal_marks: u64,
    /// Discard requests sent.
    pub discards: u64,
    /// Zones that were reset.
    pub zone_resets: u64,
    /// Zones that mounts finished before they were full.
    pub zone_finishes: u64,
    /// Writes to zones that waited for those before them.
    pub zone_waits: u64,
    /// Files that mount rolled forward.
    pub rolled_files: u64,
    /// Their node blocks.
    pub rolled_nodes: u64,
    /// Data blocks that these brought back.
    pub rolled_blocks: u64,
    /// Moves that mount found in the GC journal, and replayed.
    pub replayed_moves: u64,
    /// In an append-only address space.
    pub append: AppendCounts,
    /// How much of it is in use now.
    pub space: SpaceCounts,
    /// Time of the host's cores.
    pub cpu: CpuTimes,
}

/// How much of an append-only address space is in use, at the time of asking.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SpaceCounts {
    /// Slots.
    pub slots: u64,
    /// Slots in use.
    pub slots_used: u64,
    /// Blocks that wait for their discard, or for the checkpoint before it.
    pub void_blocks: u64,
    /// Sections in use of each region, in order of address.
    pub sections_used: [u64; SPACE_REGIONS],
}

impl SpaceCounts {
    fn named(&self) -> [(&'static str, u64); 9] {
        let [first, second, third, fourth, fifth, sixth] = self.sections_used;
        [
            ("slots", self.slots),
            ("slots_used", self.slots_used),
            ("void_blocks", self.void_blocks),
            ("sections_used_region_1", first),
            ("sections_used_region_2", second),
            ("sections_used_region_3", third),
            ("sections_used_region_4", fourth),
            ("sections_used_region_5", fifth),
            ("sections_used_region_6", sixth),
        ]
    }
}

/// How long calls took.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CallTimes {
    /// Time of all.
    pub ns: u64,
    /// Calls that took less than 1 ms, less than 2 ms and not less than 1 ms, and so on; the last ones took 1,024 ms or
    /// more.
    pub by_time: [u64; TIMES],
}

/// Classes of [`CallTimes`].
const TIMES: usize = 12;
/// Their names.
const TIME_NAMES: [&str; TIMES] = [
    "under_1ms",
    "under_2ms",
    "under_4ms",
    "under_8ms",
    "under_16ms",
    "under_32ms",
    "under_64ms",
    "under_128ms",
    "under_256ms",
    "under_512ms",
    "under_1024ms",
    "longer",
];

impl CallTimes {
    /// A call took so long.
    pub(crate) fn note(&mut self, time: Nanos) {
        const MS: u64 = 1_000_000;
        let class = (time.0 / MS).checked_ilog2().map_or(0, |power| power as usize + 1);
        self.ns += time.0;
        self.by_time[class.min(TIMES - 1)] += 1;
    }

    fn zip(&mut self, other: &Self, merge: impl Fn(&mut u64, u64)) {
        merge(&mut self.ns, other.ns);
        self.by_time.iter_mut().zip(other.by_time).for_each(|(ours, theirs)| merge(ours, theirs));
    }

    fn named(&self) -> Vec<(&'static str, u64)> {
        let sums = [("count", self.by_time.iter().sum()), ("time_ns", self.ns)];
        sums.into_iter().chain(TIME_NAMES.into_iter().zip(self.by_time)).collect()
    }
}

/// What was in use when a block was written back or written past the cache, summed over these blocks; those that
/// cleaning moved are left out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct InUseSums {
    /// The blocks that were written.
    pub written: u64,
    /// Data blocks of segments that are not free.
    pub data: u64,
    /// Valid ones among them.
    pub valid_data: u64,
    /// Node blocks of segments that are not free.
    pub nodes: u64,
    /// Valid ones among them.
    pub valid_nodes: u64,
}

impl InUseSums {
    /// So many blocks are written while so much is in use.
    pub(crate) const fn note(&mut self, written: u64, [data, nodes]: [Blocks; 2]) {
        self.written += written;
        self.data += written * data.in_use;
        self.valid_data += written * data.valid;
        self.nodes += written * nodes.in_use;
        self.valid_nodes += written * nodes.valid;
    }

    fn zip(&mut self, other: &Self, merge: impl Fn(&mut u64, u64)) {
        merge(&mut self.written, other.written);
        merge(&mut self.data, other.data);
        merge(&mut self.valid_data, other.valid_data);
        merge(&mut self.nodes, other.nodes);
        merge(&mut self.valid_nodes, other.valid_nodes);
    }

    fn means(&self) -> Vec<(&'static str, Option<f64>)> {
        let mean = |sum: u64| (self.written > 0).then(|| sum as f64 / self.written as f64);
        vec![
            ("in_use_data_blocks_mean", mean(self.data)),
            ("valid_data_blocks_mean", mean(self.valid_data)),
            ("in_use_node_blocks_mean", mean(self.nodes)),
            ("valid_node_blocks_mean", mean(self.valid_nodes)),
        ]
    }
}

/// Names of the logs' counts, in the order of [`SegmentType::ALL`](super::format::SegmentType::ALL).
const LOG_NAMES: [&str; LOGS] =
    ["hot_data", "warm_data", "cold_data", "hot_node", "warm_node", "cold_node"];

impl Counts {
    /// Applies `merge` to each count and its counterpart in `other`.
    pub(crate) fn zip(&mut self, other: &Self, merge: impl Fn(&mut u64, u64)) {
        merge(&mut self.checkpoints, other.checkpoints);
        merge(&mut self.checkpoint_blocks, other.checkpoint_blocks);
        merge(&mut self.summary_blocks, other.summary_blocks);
        for (ours, theirs) in self.log_blocks.iter_mut().zip(other.log_blocks) {
            merge(ours, theirs);
        }
        merge(&mut self.threaded_blocks, other.threaded_blocks);
        merge(&mut self.in_place_blocks, other.in_place_blocks);
        merge(&mut self.foreground_sections, other.foreground_sections);
        merge(&mut self.background_sections, other.background_sections);
        merge(&mut self.moved_data_blocks, other.moved_data_blocks);
        merge(&mut self.moved_node_blocks, other.moved_node_blocks);
        merge(&mut self.reclaimed_blocks, other.reclaimed_blocks);
        self.in_use.zip(&other.in_use, &merge);
        self.gc_calls.zip(&other.gc_calls, &merge);
        self.gc_parts.zip(&other.gc_parts, &merge);
        merge(&mut self.gc_checkpoints, other.gc_checkpoints);
        merge(&mut self.gc_checkpoint_blocks, other.gc_checkpoint_blocks);
        merge(&mut self.journal_blocks, other.journal_blocks);
        merge(&mut self.journal_entries, other.journal_entries);
        merge(&mut self.journal_segments, other.journal_segments);
        merge(&mut self.journal_full, other.journal_full);
        merge(&mut self.journal_marks, other.journal_marks);
        merge(&mut self.discards, other.discards);
        merge(&mut self.zone_resets, other.zone_resets);
        merge(&mut self.zone_finishes, other.zone_finishes);
        merge(&mut self.zone_waits, other.zone_waits);
        merge(&mut self.rolled_files, other.rolled_files);
        merge(&mut self.rolled_nodes, other.rolled_nodes);
        merge(&mut self.rolled_blocks, other.rolled_blocks);
        merge(&mut self.replayed_moves, other.replayed_moves);
        self.append.zip(&other.append, &merge);
        self.cpu.zip(&other.cpu, merge);
    }

    pub(crate) fn groups(&self) -> Vec<CountGroup> {
        let checkpoint = vec![
            ("count", self.checkpoints),
            ("blocks", self.checkpoint_blocks),
            ("summary_blocks", self.summary_blocks),
            ("metadata_blocks", self.metadata_blocks()),
        ];
        let gc = vec![
            ("sections", self.sections()),
            ("foreground_sections", self.foreground_sections),
            ("background_sections", self.background_sections),
            ("blocks_moved", self.moved_blocks()),
            ("data_blocks", self.moved_data_blocks),
            ("node_blocks", self.moved_node_blocks),
            ("reclaimed_blocks", self.reclaimed_blocks),
            ("checkpoints", self.gc_checkpoints),
            ("checkpoint_blocks", self.gc_checkpoint_blocks),
            ("metadata_blocks", self.gc_checkpoint_blocks + self.journal_blocks),
        ];
        let gc_journal = vec![
            ("blocks", self.journal_blocks),
            ("entries", self.journal_entries),
            ("segments", self.journal_segments),
            ("full_checkpoints", self.journal_full),
            ("marks", self.journal_marks),
        ];
        let roll_forward = vec![
            ("files", self.rolled_files),
            ("nodes", self.rolled_nodes),
            ("blocks", self.rolled_blocks),
            ("moves", self.replayed_moves),
        ];
        let zones = vec![
            ("resets", self.zone_resets),
            ("finishes", self.zone_finishes),
            ("waits", self.zone_waits),
        ];
        let adaptive =
            vec![("ssr_blocks", self.threaded_blocks), ("in_place_blocks", self.in_place_blocks)];
        let mut groups = vec![
            CountGroup::of("checkpoint", checkpoint),
            CountGroup::of("adaptive", adaptive),
            CountGroup::of("log_blocks", LOG_NAMES.into_iter().zip(self.log_blocks).collect()),
            CountGroup { name: "gc", counts: gc, means: self.in_use.means() },
            CountGroup::of("gc_calls", self.gc_calls.named()),
            CountGroup {
                name: "gc_parts",
                counts: self.gc_parts.named().to_vec(),
                means: self.gc_cost(),
            },
            CountGroup::of("gc_journal", gc_journal),
            CountGroup::of("discard", vec![("requests", self.discards)]),
            CountGroup::of("roll_forward", roll_forward),
        ];
        if zones.iter().any(|(_, count)| *count > 0) {
            groups.push(CountGroup::of("zones", zones));
        }
        if self.space.slots > 0 {
            let named = self.append.named().into_iter().chain(self.space.named());
            groups.push(CountGroup::of("append", named.collect()));
        }
        if self.cpu.busy_ns() > 0 {
            groups.push(CountGroup::of("cpu", self.cpu.named()));
        }
        groups
    }

    const fn sections(&self) -> u64 {
        self.foreground_sections + self.background_sections
    }

    /// Blocks of nodes, NAT, SIT, SSA, packs and of the GC journal.
    fn metadata_blocks(&self) -> u64 {
        let logs = SegmentType::ALL.into_iter().zip(self.log_blocks);
        let nodes: u64 = logs.filter(|(log, _)| log.is_node()).map(|(_, blocks)| blocks).sum();
        nodes + self.checkpoint_blocks + self.summary_blocks + self.journal_blocks
    }

    /// Time of cleaning calls in the foreground per section, per block moved and per block reclaimed.
    fn gc_cost(&self) -> Vec<(&'static str, Option<f64>)> {
        let mean = |count: u64| (count > 0).then(|| self.gc_calls.ns as f64 / count as f64);
        vec![
            ("section_ns_mean", mean(self.foreground_sections)),
            ("moved_block_ns_mean", mean(self.moved_blocks())),
            ("reclaimed_block_ns_mean", mean(self.reclaimed_blocks)),
        ]
    }

    /// Blocks that cleaning moved.
    #[must_use]
    pub const fn moved_blocks(&self) -> u64 {
        self.moved_data_blocks + self.moved_node_blocks
    }

    pub(crate) fn phrases(&self) -> Vec<String> {
        let mut phrases = vec![format!(
            "{} of {}, {} in logs",
            counted(self.checkpoints, ["checkpoint", "checkpoints"]),
            counted(self.checkpoint_blocks, ["block", "blocks"]),
            counted(self.log_blocks.iter().sum(), ["block", "blocks"]),
        )];
        if self.threaded_blocks + self.in_place_blocks > 0 {
            phrases.push(format!(
                "{} in holes, {} in place",
                counted(self.threaded_blocks, ["block", "blocks"]),
                counted(self.in_place_blocks, ["block", "blocks"]),
            ));
        }
        if self.sections() > 0 {
            phrases.push(format!(
                "{} cleaned, {} moved",
                counted(self.sections(), ["section", "sections"]),
                counted(self.moved_blocks(), ["block", "blocks"]),
            ));
        }
        if self.journal_blocks > 0 {
            phrases.push(format!(
                "{} of the GC journal",
                counted(self.journal_blocks, ["block", "blocks"]),
            ));
        }
        if self.cpu.busy_ns() > 0 {
            phrases.push(format!("{} of cores", Nanos(self.cpu.busy_ns())));
        }
        phrases
    }
}

/// What cleaning did since mount.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct GcCounts {
    /// Calls in the foreground.
    pub(crate) calls: CallTimes,
    /// What their time went to.
    pub(crate) parts: GcParts,
    pub(crate) foreground_sections: u64,
    pub(crate) background_sections: u64,
    pub(crate) data_blocks: u64,
    pub(crate) node_blocks: u64,
    pub(crate) reclaimed_blocks: u64,
}

/// What roll-forward brought back.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Rolled {
    pub(crate) files: u64,
    pub(crate) nodes: u64,
    pub(crate) blocks: u64,
    /// Moves of the GC journal.
    pub(crate) moves: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call is in the class whose bound is above it.
    #[test]
    fn calls_are_classed_by_their_time() {
        let mut times = CallTimes::default();
        for us in [0, 999, 1_000, 1_999, 2_000, 1_023_999, 1_024_000, 9_000_000] {
            times.note(Nanos(us * 1_000));
        }
        assert_eq!(times.by_time, [2, 2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
        let named = times.named();
        assert_eq!(named[..3], [("count", 8), ("time_ns", 11_053_997_000), ("under_1ms", 2)]);
        assert_eq!(named.last(), Some(&("longer", 2)));
    }
}
