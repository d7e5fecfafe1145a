//! What the FTL's work takes of the host's CPU: costs, and what is counted of them.
//!
//! pblk works on the host. A submitting core claims entries under the write buffer's lock, copies into them
//! and changes the mapping under another lock; a writer thread a buffer makes write commands of the entries;
//! another thread copies for garbage collection (Linux `drivers/lightnvm`: pblk-rb.c, pblk-cache.c,
//! pblk-write.c, pblk-gc.c). MT-FTL and QBLK are about these locks and threads, and change nothing else. Where
//! the mapping table is cached one more thread reads and writes its blocks (chosen).

use nandscape_rt::counts;

/// How long each step keeps a core, a lock or a thread. All zero: the host's CPU costs nothing.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CpuCosts {
    /// A request's way to the FTL and back, on the submitting core and outside of any lock.
    pub submit_ns: u64,
    /// A write buffer's lock, for each write that enters the buffer and each flush that covers it.
    pub ring_request_ns: u64,
    /// The same lock, for each sector that enters.
    pub ring_sector_ns: u64,
    /// The mapping's lock, for each sector looked up or changed.
    pub map_sector_ns: u64,
    /// Copying a sector into a buffer, on the submitting core and outside of any lock.
    pub copy_sector_ns: u64,
    /// A buffer's writer thread, for each write command.
    pub writer_unit_ns: u64,
    /// The same thread, for each sector of the command, padding included.
    pub writer_sector_ns: u64,
    /// The collecting thread, for each sector that it puts into a buffer, besides the locks.
    pub gc_sector_ns: u64,
    /// The mapping thread, for each command that reads or writes mapping blocks.
    pub map_command_ns: u64,
    /// The same thread, for each sector of the command, padding included.
    pub map_block_sector_ns: u64,
}

impl CpuCosts {
    /// The longest single cost: 10 s.
    pub const NS_MAX: u64 = 10_000_000_000;

    /// Names of [`CpuCosts::preset`].
    pub const PRESETS: [&str; 3] = ["none", "null-block", "qemu"];

    /// Published measurements, divided among the steps.
    ///
    /// - `none`: nothing costs anything.
    /// - `null-block`: the paper on LightNVM (FAST '17, section 5) sets pblk on a null block device: 2.0 us for
    ///   a 4 KiB write without pblk, 2.9 us with it; cited from memory, the text was not at hand. The 2.0 us are
    ///   a request's own way, and that of a command that the writer thread submits. The 0.9 us are divided in
    ///   equal parts among buffer lock, mapping lock and copying; building a command costs the
    ///   writer, copying for collection its thread, and copying entries of mapping blocks theirs, as much a
    ///   sector as one of them (all of that chosen).
    /// - `qemu`: the papers' machines are guests of qemu-nvme, where a 4 KiB write command takes 55 us at depth
    ///   1 (OpenChannelSSD/qemu-nvme, issue 25). All of it is charged to the thread that submits the command
    ///   (chosen); everything else as in `null-block`.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let null_block = Self {
            submit_ns: 2_000,
            ring_request_ns: 0,
            ring_sector_ns: 300,
            map_sector_ns: 300,
            copy_sector_ns: 300,
            writer_unit_ns: 2_000,
            writer_sector_ns: 300,
            gc_sector_ns: 300,
            map_command_ns: 2_000,
            map_block_sector_ns: 300,
        };
        match name {
            "none" => Some(Self::default()),
            "null-block" => Some(null_block),
            "qemu" => Some(Self { writer_unit_ns: 55_000, map_command_ns: 55_000, ..null_block }),
            _ => None,
        }
    }

    /// Whether nothing costs anything.
    #[must_use]
    pub fn is_free(&self) -> bool {
        *self == Self::default()
    }
}

/// How the mapping is kept consistent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MapUpdate {
    /// By one lock for all of it (pblk's `trans_lock`).
    #[default]
    Locked,
    /// By atomic exchange of single entries: cores do not wait for each other (QBLK).
    Atomic,
}

counts! {
    /// What was counted of a lock.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct LockCounts {
        /// Times that it was taken.
        pub taken: u64,
        /// Time that it was held.
        pub held_ns: u64,
        /// Time that others spun for it.
        pub wait_ns: u64,
        /// The longest of these.
        pub wait_ns_max: u64 = max,
    }
}

counts! {
    /// What was counted of a thread of the FTL.
    #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
    pub struct ThreadCounts {
        /// Commands built, batches copied, or orders of the mapping served.
        pub jobs: u64,
        /// Time that it ran, with all that it spun.
        pub busy_ns: u64,
        /// Time that it had something to do and no core.
        pub wait_ns: u64,
    }
}

counts! {
    /// What was counted of the host's CPU. What was in flight at the end counts whole.
    #[derive(Clone, PartialEq, Eq, Default, Debug)]
    pub struct CpuCounts {
        /// Time that each core ran, with all that it spun.
        pub cores_busy_ns: Vec<u64>,
        /// Requests that were charged for.
        pub requests: u64,
        /// Time that requests waited for their core.
        pub core_wait_ns: u64,
        /// Each write buffer's lock.
        pub rings: Vec<LockCounts>,
        /// The mapping's lock.
        pub map: LockCounts,
        /// Each write buffer's writer thread.
        pub writers: Vec<ThreadCounts>,
        /// The collecting thread.
        pub collector: ThreadCounts,
        /// The mapping thread.
        pub mapper: ThreadCounts,
    }
}

impl CpuCounts {
    /// Nothing counted yet, of so many cores and buffers.
    pub(crate) fn new(cores: usize, buffers: usize) -> Self {
        Self {
            cores_busy_ns: vec![0; cores],
            rings: vec![LockCounts::default(); buffers],
            writers: vec![ThreadCounts::default(); buffers],
            ..Self::default()
        }
    }
}
