//! The choices that make a pblk: every variant is a set of policies, never a copy of the FTL.

/// Which kernel's capacity, reserve and ring rules apply (pblk changed them over its life).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum CapacityRules {
    /// Linux 4.13: limiter threshold of an eighth of all chunks.
    V4_13,
    /// Linux 4.16: threshold from overprovisioning, one line reserved.
    #[default]
    V4_16,
    /// Linux 5.11: as 4.16, at least `ceil(100 / op)` lines reserved, a larger ring.
    V5_11,
}

/// What shares the write buffer between user writes and garbage collection.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Limiter {
    /// The kernel's rate limiter.
    #[default]
    Kernel,
    /// Collect whenever fewer than N lines are free; user writes stall meanwhile.
    Reserve(u32),
}

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

/// What happens to discards.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Discard {
    /// Logged with a sequence, durable at flush.
    #[default]
    Durable,
    /// As the kernel's pblk: forgotten by a power cut.
    Kernel,
}

/// Safety rules left out on purpose, so that a crash campaign can prove that it notices.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Broken {
    /// Nothing left out.
    #[default]
    No,
    /// Recovery replays in line order and ignores sequences.
    Sequence,
    /// A line is erased without waiting for what invalidated it to be durable.
    EraseRule,
    /// A write with PREFLUSH does not wait for what it covers.
    PreflushDrain,
    /// Discards are not logged.
    LostTrims,
}

/// All choices of one pblk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Capacity, reserve and ring rules.
    pub capacity_rules: CapacityRules,
    /// Overprovisioning in percent; `None` takes the rules' default (20 for 4.13, else 11).
    pub op_percent: Option<u32>,
    /// Write-buffer entries; `None` takes the rules' size.
    pub ring_sectors: Option<u32>,
    /// Sharing of the write buffer.
    pub limiter: Limiter,
    /// Treatment of discards.
    pub discard: Discard,
    /// Victim choice.
    pub victim: Victim,
    /// Seed of the run; the FTL's random streams derive from it.
    pub seed: u64,
    /// Whether sectors carry content; without, recovery of content cannot be checked.
    pub keep_content: bool,
    /// Test-only damage.
    pub broken: Broken,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            capacity_rules: CapacityRules::default(),
            op_percent: None,
            ring_sectors: None,
            limiter: Limiter::default(),
            discard: Discard::default(),
            victim: Victim::default(),
            seed: 1,
            keep_content: true,
            broken: Broken::No,
        }
    }
}
