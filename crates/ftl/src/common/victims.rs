//! The closed lines, indexed for victim choice. No operation on the write path grows with the device:
//! an invalidation moves a line to the neighbouring bucket, in constant time.
//!
//! pblk keeps lists by class of valid count and scans a list for its minimum, first in list order
//! (pblk-gc.c, pblk-core.c `pblk_line_gc_list`). As the classes are ordered by valid count, that is
//! the minimum of all, and among equals the line that entered its class first: a stamp a line.

use super::ids::{LineId, NO_LINE};
use nandscape_rt::{Stream, invariant};
use std::collections::VecDeque;

/// Which closed line is collected next.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Victim {
    /// pblk's lists: by class of valid count, least valid first, earliest in its class on ties.
    #[default]
    PblkLists,
    /// Least valid sectors; the line closed first on ties.
    Greedy,
    /// Highest (1 - u) / 2u x age.
    CostBenefit,
    /// Line closed first.
    Fifo,
    /// Uniformly at random.
    Random,
    /// Least valid of this many random lines.
    DChoices(u32),
}

/// pblk's classes by valid count, best victims first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Class {
    #[default]
    High,
    Mid,
    Low,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    prev: LineId,
    next: LineId,
    /// Valid sectors; the bucket.
    valid: u32,
    /// Position in `order` (an index), for random choice.
    index: u32,
    /// Order of entry into the class (pblk's lists) or of closing.
    stamp: u64,
    /// Order of closing.
    closed: u64,
    class: Class,
    werr: bool,
}

const FREE_NODE: Node = Node {
    prev: NO_LINE,
    next: NO_LINE,
    valid: 0,
    index: u32::MAX,
    stamp: 0,
    closed: 0,
    class: Class::High,
    werr: false,
};

/// Closed lines and the policy that chooses among them.
#[derive(Debug)]
pub(crate) struct Victims {
    policy: Victim,
    line_sectors: u32,
    nodes: Box<[Node]>,
    /// First line of each bucket of equal valid count.
    heads: Box<[LineId]>,
    /// A bit for each bucket that has a line.
    occupied: Box<[u64]>,
    /// Every closed line, in no particular order.
    members: Vec<LineId>,
    /// Closed lines in order of closing; entries whose line has left are skipped.
    queue: VecDeque<(LineId, u64)>,
    /// Lines with write errors, collected first.
    werr: VecDeque<LineId>,
    stamps: u64,
    rng: Stream,
}

impl Victims {
    /// No closed lines yet.
    pub(crate) fn new(policy: Victim, lines: u32, line_sectors: u32, seed: u64) -> Self {
        Self {
            policy,
            line_sectors,
            nodes: vec![FREE_NODE; lines as usize].into_boxed_slice(),
            heads: vec![NO_LINE; line_sectors as usize + 1].into_boxed_slice(),
            occupied: vec![0; line_sectors as usize / 64 + 1].into_boxed_slice(),
            members: Vec::new(),
            queue: VecDeque::new(),
            werr: VecDeque::new(),
            stamps: 0,
            rng: Stream::new(seed, "ftl.gc.victim"),
        }
    }

    /// Takes in a line that has just closed.
    pub(crate) fn insert(&mut self, line: LineId, valid: u32, werr: bool) {
        self.stamps += 1;
        let node = &mut self.nodes[line as usize];
        invariant!(node.index == u32::MAX, "a line is a victim once");
        *node = Node {
            valid,
            index: self.members.len() as u32,
            stamp: self.stamps,
            closed: self.stamps,
            class: class(valid, self.line_sectors),
            werr,
            ..FREE_NODE
        };
        self.members.push(line);
        if werr {
            self.werr.push_back(line);
        }
        if self.policy == Victim::Fifo {
            self.queue.push_back((line, self.stamps));
        }
        self.link(line, valid);
    }

    /// Notes that a closed line lost valid sectors.
    #[inline]
    pub(crate) fn lower(&mut self, line: LineId, valid: u32) {
        self.unlink(line);
        let node = &mut self.nodes[line as usize];
        node.valid = valid;
        if self.policy == Victim::PblkLists {
            let class = class(valid, self.line_sectors);
            if class != node.class {
                node.class = class;
                self.stamps += 1;
                node.stamp = self.stamps;
            }
        }
        self.link(line, valid);
    }

    /// What a closed line weighs.
    pub(crate) fn valid(&self, line: LineId) -> u32 {
        self.nodes[line as usize].valid
    }

    /// Removes a line: it is freed, or a victim.
    pub(crate) fn remove(&mut self, line: LineId) {
        self.unlink(line);
        let node = std::mem::replace(&mut self.nodes[line as usize], FREE_NODE);
        self.members.swap_remove(node.index as usize);
        if let Some(&moved) = self.members.get(node.index as usize) {
            self.nodes[moved as usize].index = node.index;
        }
        if node.werr {
            self.werr.retain(|&other| other != line);
        }
    }

    /// Whether lines with write errors wait for collection.
    pub(crate) fn has_werr(&self) -> bool {
        !self.werr.is_empty()
    }

    /// A write to a closed line turned out to have failed.
    pub(crate) fn mark_werr(&mut self, line: LineId) {
        if !std::mem::replace(&mut self.nodes[line as usize].werr, true) {
            self.werr.push_back(line);
        }
    }

    /// The next victim among lines that are `eligible`; it stays until removed. Lines that are
    /// valid throughout gain nothing and are passed over by every policy.
    pub(crate) fn choose(&mut self, eligible: impl Fn(LineId) -> bool) -> Option<LineId> {
        if let Some(line) = self.choose_werr(&eligible) {
            return Some(line);
        }
        match self.policy {
            Victim::PblkLists | Victim::Greedy => self.least_valid(self.line_sectors, eligible),
            Victim::CostBenefit => self.best_benefit(eligible),
            Victim::Fifo => self.oldest(eligible),
            Victim::Random => self.least_of(1, eligible),
            Victim::DChoices(d) => self.least_of(d, eligible),
        }
    }

    /// The first line with write errors, wanted however much is free.
    pub(crate) fn choose_werr(&self, eligible: impl Fn(LineId) -> bool) -> Option<LineId> {
        self.werr.iter().copied().find(|&line| eligible(line))
    }

    /// The least valid line with anything to gain among those `eligible`, of those that weigh up to `most`.
    pub(crate) fn least_valid(
        &self,
        most: u32,
        eligible: impl Fn(LineId) -> bool,
    ) -> Option<LineId> {
        self.buckets_with_gain().take_while(|&valid| valid <= most).find_map(|valid| {
            self.bucket(valid)
                .filter(|&line| eligible(line))
                .min_by_key(|&line| self.nodes[line as usize].stamp)
        })
    }

    /// Within a bucket the oldest line is the best, so one candidate a bucket is weighed.
    fn best_benefit(&self, eligible: impl Fn(LineId) -> bool) -> Option<LineId> {
        let oldest = self.buckets_with_gain().filter_map(|valid| {
            self.bucket(valid)
                .filter(|&line| eligible(line))
                .min_by_key(|&line| self.nodes[line as usize].closed)
        });
        oldest
            .map(|line| (self.benefit(line), line))
            .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
            .map(|(_, line)| line)
    }

    /// (1 - u) / 2u x age, age in lines closed since (Rosenblum and Ousterhout 1992, for flash
    /// Kawaguchi et al. 1995).
    fn benefit(&self, line: LineId) -> f64 {
        let node = &self.nodes[line as usize];
        let used = f64::from(node.valid) / f64::from(self.line_sectors);
        let age = (self.stamps - node.closed) as f64 + 1.0;
        (1.0 - used) / (2.0 * used).max(f64::MIN_POSITIVE) * age
    }

    fn oldest(&mut self, eligible: impl Fn(LineId) -> bool) -> Option<LineId> {
        if self.queue.len() > 2 * self.members.len() {
            let nodes = &self.nodes;
            self.queue.retain(|&(line, closed)| nodes[line as usize].closed == closed);
        }
        let gains = |&&(line, closed): &&(LineId, u64)| {
            let node = &self.nodes[line as usize];
            node.closed == closed && node.valid < self.line_sectors
        };
        self.queue.iter().filter(gains).map(|&(line, _)| line).find(|&line| eligible(line))
    }

    /// The least valid of `d` lines drawn with replacement.
    fn least_of(&mut self, d: u32, eligible: impl Fn(LineId) -> bool) -> Option<LineId> {
        let members = self.members.len() as u64;
        if members == 0 {
            return None;
        }
        let drawn = (0..d.max(1)).map(|_| self.members[self.rng.below(members) as usize]);
        let drawn: Option<LineId> = drawn
            .filter(|&line| eligible(line) && self.nodes[line as usize].valid < self.line_sectors)
            .min_by_key(|&line| self.nodes[line as usize].valid);
        drawn.or_else(|| self.least_valid(self.line_sectors, eligible))
    }

    fn bucket(&self, valid: u32) -> impl Iterator<Item = LineId> {
        let head = Some(self.heads[valid as usize]).filter(|&line| line != NO_LINE);
        std::iter::successors(head, |&line| {
            Some(self.nodes[line as usize].next).filter(|&next| next != NO_LINE)
        })
    }

    /// Buckets with lines that are not valid throughout, least valid first.
    fn buckets_with_gain(&self) -> impl Iterator<Item = u32> {
        let words = self.occupied.iter().zip(0..);
        let bits = words.flat_map(|(&word, index)| {
            let rest = |word: &u64| Some(word & word.wrapping_sub(1));
            std::iter::successors(Some(word), rest)
                .take_while(|&word| word != 0)
                .map(move |word| index * 64 + word.trailing_zeros())
        });
        bits.take_while(|&valid| valid < self.line_sectors)
    }

    #[inline]
    fn link(&mut self, line: LineId, valid: u32) {
        let head = std::mem::replace(&mut self.heads[valid as usize], line);
        let node = &mut self.nodes[line as usize];
        node.prev = NO_LINE;
        node.next = head;
        if head != NO_LINE {
            self.nodes[head as usize].prev = line;
        }
        self.occupied[valid as usize / 64] |= 1 << (valid % 64);
    }

    #[inline]
    fn unlink(&mut self, line: LineId) {
        let Node { prev, next, valid, .. } = self.nodes[line as usize];
        if prev == NO_LINE {
            self.heads[valid as usize] = next;
            if next == NO_LINE {
                self.occupied[valid as usize / 64] &= !(1 << (valid % 64));
            }
        } else {
            self.nodes[prev as usize].next = next;
        }
        if next != NO_LINE {
            self.nodes[next as usize].prev = prev;
        }
    }

    /// Bytes of the index.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(&*self.nodes)
            + size_of_val(&*self.heads)
            + self.members.capacity() * size_of::<LineId>()
            + self.queue.capacity() * size_of::<(LineId, u64)>()) as u64
    }
}

/// pblk's class of a closed line (pblk-core.c `pblk_line_gc_list`; thresholds of pblk-init.c).
const fn class(valid: u32, line_sectors: u32) -> Class {
    if valid < line_sectors / 4 {
        Class::High
    } else if valid < line_sectors / 2 {
        Class::Mid
    } else {
        Class::Low
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LINES: u32 = 12;
    const SECTORS: u32 = 16;
    const POLICIES: [Victim; 7] = [
        Victim::PblkLists,
        Victim::Greedy,
        Victim::CostBenefit,
        Victim::Fifo,
        Victim::Random,
        Victim::DChoices(1),
        Victim::DChoices(4),
    ];

    /// A closed line, as a reader of the papers would note it.
    #[derive(Clone, Copy, Debug)]
    struct Row {
        line: LineId,
        valid: u32,
        /// Lines closed before it.
        closed: u64,
        werr: bool,
    }

    /// The closed lines in order of closing, and pblk's lists, all scanned linearly.
    #[derive(Default)]
    struct Naive {
        rows: Vec<Row>,
        lists: [Vec<LineId>; 3],
        closed: u64,
    }

    /// High below a quarter, mid below a half, low for the rest.
    fn list_of(valid: u32) -> usize {
        if valid < SECTORS / 4 {
            0
        } else if valid < SECTORS / 2 {
            1
        } else {
            2
        }
    }

    impl Naive {
        fn find(&self, line: LineId) -> Option<usize> {
            self.rows.iter().position(|row| row.line == line)
        }

        fn insert(&mut self, line: LineId, valid: u32, werr: bool) {
            self.rows.push(Row { line, valid, closed: self.closed, werr });
            self.lists[list_of(valid)].push(line);
            self.closed += 1;
        }

        fn lower(&mut self, index: usize, valid: u32) {
            let row = &mut self.rows[index];
            let (line, from, to) = (row.line, list_of(row.valid), list_of(valid));
            row.valid = valid;
            if from != to {
                self.lists[from].retain(|&other| other != line);
                self.lists[to].push(line);
            }
        }

        fn remove(&mut self, index: usize) {
            let line = self.rows.remove(index).line;
            self.lists.iter_mut().for_each(|list| list.retain(|&other| other != line));
        }

        fn benefit(&self, row: &Row) -> f64 {
            let used = f64::from(row.valid) / f64::from(SECTORS);
            (1.0 - used) / (2.0 * used) * (self.closed - row.closed) as f64
        }

        /// The kernel's scan: list by list, the first line of the least valid count.
        fn pblk_lists(&self, eligible: &[Row]) -> Option<LineId> {
            self.lists.iter().find_map(|list| {
                let rows = list.iter().filter_map(|&line| {
                    eligible.iter().find(|row| row.line == line && row.valid < SECTORS)
                });
                rows.min_by_key(|row| row.valid).map(|row| row.line)
            })
        }

        /// Whether the policy may have chosen `chosen`.
        fn allows(&self, policy: Victim, mask: u32, chosen: Option<LineId>) -> bool {
            let rows = self.rows.iter().filter(|row| mask >> row.line & 1 != 0);
            let eligible: Vec<Row> = rows.copied().collect();
            if let Some(first) = eligible.iter().find(|row| row.werr) {
                return chosen == Some(first.line);
            }
            let gaining = || eligible.iter().filter(|row| row.valid < SECTORS);
            let line = |row: &Row| row.line;
            match policy {
                Victim::PblkLists => chosen == self.pblk_lists(&eligible),
                Victim::Greedy => chosen == gaining().min_by_key(|row| row.valid).map(line),
                Victim::Fifo => chosen == gaining().next().map(line),
                Victim::CostBenefit => {
                    let best = gaining().map(|row| self.benefit(row)).reduce(f64::max);
                    let found = gaining().find(|row| Some(row.line) == chosen);
                    found.map(|row| self.benefit(row)) == best
                }
                Victim::Random | Victim::DChoices(_) => match chosen {
                    None => gaining().count() == 0,
                    Some(chosen) => gaining().any(|row| row.line == chosen),
                },
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// Closes a line that is not closed.
        Insert(LineId, u32, bool),
        /// Invalidates some sectors of a closed line; one stays, or it would be freed.
        Lower(LineId, u32),
        Remove(LineId),
        /// Chooses among the lines of this mask.
        Choose(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..LINES, 1..=SECTORS, prop::bool::weighted(0.05))
                .prop_map(|(line, valid, werr)| Step::Insert(line, valid, werr)),
            6 => (0..LINES, 1..6u32).prop_map(|(line, by)| Step::Lower(line, by)),
            1 => (0..LINES).prop_map(Step::Remove),
            2 => (0u32..1 << LINES).prop_map(Step::Choose),
            3 => Just(Step::Choose(u32::MAX)),
        ]
    }

    /// Applies one step to index and model; whether the index chose what the model allows.
    fn apply(policy: Victim, index: &mut Victims, naive: &mut Naive, step: &Step) -> bool {
        match *step {
            Step::Insert(line, valid, werr) if naive.find(line).is_none() => {
                index.insert(line, valid, werr);
                naive.insert(line, valid, werr);
            }
            Step::Lower(line, by) => {
                if let Some(at) = naive.find(line) {
                    let valid = naive.rows[at].valid.saturating_sub(by).max(1);
                    index.lower(line, valid);
                    naive.lower(at, valid);
                }
            }
            Step::Remove(line) => {
                if let Some(at) = naive.find(line) {
                    index.remove(line);
                    naive.remove(at);
                }
            }
            Step::Choose(mask) => {
                let chosen = index.choose(|line| mask >> line & 1 != 0);
                return naive.allows(policy, mask, chosen);
            }
            Step::Insert(..) => {}
        }
        index.has_werr() == naive.rows.iter().any(|row| row.werr)
    }

    proptest! {
        /// Whatever closes, loses sectors or leaves, each policy chooses as a linear scan would:
        /// lines with write errors first, no line that is valid throughout, and a line whenever there
        /// is one to gain from.
        #[test]
        fn every_policy_chooses_as_a_linear_scan_would(
            policy in prop::sample::select(&POLICIES[..]),
            steps in prop::collection::vec(step(), 1..120),
        ) {
            let mut index = Victims::new(policy, LINES, SECTORS, 1);
            let mut naive = Naive::default();
            for (number, step) in steps.iter().enumerate() {
                prop_assert!(
                    apply(policy, &mut index, &mut naive, step),
                    "{policy:?}, step {number}, {step:?}: lines {:?}", naive.rows
                );
            }
        }
    }

    fn closed(policy: Victim, valid: &[u32]) -> Victims {
        let mut index = Victims::new(policy, LINES, SECTORS, 1);
        for (line, &valid) in (0..).zip(valid) {
            index.insert(line, valid, false);
        }
        index
    }

    /// The two that differ only on ties: greedy takes the line closed first, pblk the line that came
    /// first into its list.
    #[test]
    fn ties_go_by_closing_or_by_entry_into_the_class() {
        for (policy, first) in [(Victim::Greedy, 0), (Victim::PblkLists, 1)] {
            let mut index = closed(policy, &[12, 12]);
            index.lower(1, 7);
            index.lower(0, 7);
            assert_eq!(index.choose(|_| true), Some(first), "{policy:?}");
        }
    }

    #[test]
    fn a_line_valid_throughout_is_never_a_victim() {
        for policy in POLICIES {
            assert_eq!(closed(policy, &[SECTORS]).choose(|_| true), None, "{policy:?}");
        }
    }

    #[test]
    fn a_line_with_write_errors_goes_first() {
        for policy in POLICIES {
            let mut index = closed(policy, &[1, 2, 3]);
            index.insert(3, SECTORS, true);
            assert_eq!(index.choose(|_| true), Some(3), "{policy:?}");
            index.remove(3);
            assert!(!index.has_werr());
            assert_ne!(index.choose(|_| true), Some(3), "{policy:?}");
        }
    }

    /// Age outweighs a few sectors: what greedy would take is not always the best.
    #[test]
    fn cost_benefit_prefers_an_old_line_to_a_slightly_emptier_one() {
        let mut index = closed(Victim::CostBenefit, &[9, 16, 16, 16, 16, 8]);
        assert_eq!(index.choose(|_| true), Some(0));
        assert_eq!(closed(Victim::Greedy, &[9, 16, 16, 16, 16, 8]).choose(|_| true), Some(5));
    }

    /// More choices, emptier victims; one choice is uniform over all lines.
    #[test]
    fn more_choices_find_emptier_lines() {
        let mean = |policy| {
            let mut index = closed(policy, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
            let chosen = |_| index.choose(|_| true).map_or(0, |line| line + 1);
            f64::from((0..2_000).map(chosen).sum::<u32>()) / 2_000.0
        };
        let means = [Victim::Random, Victim::DChoices(2), Victim::DChoices(8)].map(mean);
        // Of the least of d draws from 1..=12: 6.5, then 4.51, then 1.89.
        for (mean, expected) in means.into_iter().zip([6.5, 4.51, 1.89]) {
            assert!((mean - expected).abs() < 0.35, "{means:?}");
        }
    }
}
