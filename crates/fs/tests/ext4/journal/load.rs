//! A seeded load on a journal: several tasks change, free and reuse blocks, write data beside the
//! journal, wait for commits, and write metadata back, until they are done or the power goes.

use super::history::History;
use crate::common::device::Device;
use nandscape_block::{Lba, Payload, SectorBytes};
use nandscape_fs::ext4::OmittedRule;
use nandscape_fs::ext4::journal::{
    Buffers, CommitHook, Config, Counts, Journal, JournalError, LogExtents, Tid, disk::Features,
};
use nandscape_rt::{Handle, Nanos, Stream};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Blocks that the load uses, from the first on; the log lies behind them.
pub(crate) const BLOCKS: u64 = 40;

/// What varies between loads.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) log_blocks: u64,
    pub(crate) tasks: u64,
    pub(crate) steps: u64,
    pub(crate) features: Features,
    pub(crate) omit: Option<OmittedRule>,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Stream::new(seed, "plan");
        Self {
            seed,
            log_blocks: rng.within(40..90),
            tasks: rng.within(1..4),
            steps: rng.within(10..40),
            features: Features::of_file_system(rng.chance(0.5), rng.chance(0.5)),
            omit: None,
        }
    }

    /// The log in two pieces, the later one first.
    pub(crate) fn log(&self) -> LogExtents {
        let half = BLOCKS + self.log_blocks / 2;
        LogExtents::new([half..BLOCKS + self.log_blocks, BLOCKS..half]).expect("two extents")
    }

    /// Sectors of the device.
    pub(crate) fn sectors(&self) -> u64 {
        BLOCKS + self.log_blocks
    }

    fn config(&self) -> Config {
        Config {
            commit_interval: Nanos::from_us(50),
            omit: self.omit,
            features: self.features,
            ..Config::of_file_system(true, true)
        }
    }
}

/// The content of a version of a block. Every third begins with the journal's magic.
pub(crate) fn content(block: u64, version: u64) -> SectorBytes {
    let mut bytes = [version as u8; 4096];
    if version.is_multiple_of(3) {
        bytes[..4].copy_from_slice(&0xc03b_3998_u32.to_be_bytes());
    }
    bytes[8..16].copy_from_slice(&block.to_le_bytes());
    bytes[16..24].copy_from_slice(&version.to_le_bytes());
    bytes
}

/// The version that a block's content is of; nothing if it is mixed, or another block's.
pub(crate) fn version(block: u64, bytes: &SectorBytes) -> Option<u64> {
    let version = u64::from_le_bytes(std::array::from_fn(|at| bytes[16 + at]));
    let whole = match version {
        0 => bytes.iter().all(|&byte| byte == 0),
        _ => *bytes == content(block, version),
    };
    whole.then_some(version)
}

/// What a block is used for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Metadata,
    /// Freed in a transaction that is not committed; no task may use it.
    Freed(Tid),
    Data,
}

/// What the tasks share.
struct World {
    history: RefCell<History>,
    uses: RefCell<Vec<Use>>,
    versions: RefCell<u64>,
    /// Data that the commit of a transaction covers.
    covered: RefCell<BTreeMap<u32, Vec<u64>>>,
}

impl World {
    fn next_version(&self) -> u64 {
        *self.versions.borrow_mut() += 1;
        *self.versions.borrow()
    }

    fn pick(&self, rng: &mut Stream, which: fn(Use) -> bool) -> Option<u64> {
        let start = rng.below(BLOCKS);
        let uses = self.uses.borrow();
        (0..BLOCKS).map(|at| (start + at) % BLOCKS).find(|&block| which(uses[block as usize]))
    }
}

/// The journal's hook: tells the world which blocks may be used again.
struct Hook(Rc<World>);

impl CommitHook for Hook {
    async fn write_out(&self, tid: Tid) -> Result<(), nandscape_block::BlockError> {
        let acknowledged = self.0.history.borrow().acknowledged();
        self.0.covered.borrow_mut().insert(tid.0, acknowledged);
        Ok(())
    }

    fn committed(&self, tid: Tid) {
        for used in self.0.uses.borrow_mut().iter_mut() {
            if matches!(used, Use::Freed(by) if tid.reached(*by)) {
                *used = Use::Data;
            }
        }
        // The barrier of the commit covered what had been acknowledged before it.
        if let Some(covered) = self.0.covered.borrow_mut().remove(&tid.0) {
            self.0.history.borrow_mut().flushed(&covered);
        }
        self.0.history.borrow_mut().promise(tid);
    }
}

/// One task's means.
struct Task {
    rt: Handle,
    device: Device,
    buffers: Buffers,
    journal: Journal,
    world: Rc<World>,
    rng: Stream,
}

/// Runs a load until it is over or the power goes; gives back what happened.
pub(crate) async fn run(
    rt: Handle,
    device: Device,
    plan: Plan,
    versions: BTreeMap<u64, u64>,
) -> Result<(History, Counts), JournalError> {
    let buffers = Buffers::new(&rt, device.clone(), 10);
    let journal = Journal::open(&rt, &buffers, plan.log(), plan.config()).await?;
    let history = History::after(journal.committed(), &versions);
    let highest = versions.values().max().copied().unwrap_or(0);
    let world = Rc::new(World {
        history: RefCell::new(history),
        uses: RefCell::new(vec![Use::Metadata; BLOCKS as usize]),
        versions: RefCell::new(highest),
        covered: RefCell::default(),
    });
    journal.start_commits(Hook(Rc::clone(&world)));
    let tasks: Vec<_> = (0..plan.tasks)
        .map(|index| {
            let task = Task {
                rt: rt.clone(),
                device: device.clone(),
                buffers: buffers.clone(),
                journal: journal.clone(),
                world: Rc::clone(&world),
                rng: Stream::new(plan.seed, &format!("task {index}")),
            };
            rt.spawn("load", task.work(plan.steps))
        })
        .collect();
    for task in tasks {
        // An error is the power cut; what was promised before it stands.
        let _ = task.await;
    }
    if plan.seed.is_multiple_of(2) {
        let _ = journal.stop().await;
    }
    let history = world.history.borrow().clone();
    Ok((history, journal.counts()))
}

impl Task {
    async fn work(mut self, steps: u64) -> Result<(), JournalError> {
        for _ in 0..steps {
            match self.rng.below(10) {
                0 => self.free().await?,
                1 => self.write_data().await?,
                2 => self.reuse().await?,
                3 => self.rt.sleep(Nanos(self.rng.below(30_000))).await,
                4 => self.journal.write_back(self.rt.now()).await?,
                5 => self.flush().await?,
                6 => self.journal.commit_all().await?,
                _ => self.change().await?,
            }
        }
        Ok(())
    }

    /// Changes some blocks in one handle, and perhaps waits for the commit.
    async fn change(&mut self) -> Result<(), JournalError> {
        let blocks = self.rng.within(1..5) as u32;
        let handle = self.journal.start(blocks).await?;
        for _ in 0..blocks {
            let Some(block) = self.world.pick(&mut self.rng, |used| used == Use::Metadata) else {
                break;
            };
            let buffer = self.buffers.get(block).await?;
            if self.rng.chance(0.7) {
                handle.access(&buffer).await;
            }
            if self.world.uses.borrow()[block as usize] != Use::Metadata {
                continue;
            }
            let version = self.world.next_version();
            handle.update(&buffer, |bytes| *bytes = content(block, version))?;
            self.world.history.borrow_mut().update(handle.tid(), block, version);
        }
        let tid = handle.stop();
        if self.rng.chance(0.3) {
            self.journal.commit(tid).await?;
        }
        Ok(())
    }

    /// Frees a metadata block.
    async fn free(&mut self) -> Result<(), JournalError> {
        let handle = self.journal.start(self.journal.revoke_credits(1)).await?;
        let metadata = self.world.pick(&mut self.rng, |used| used == Use::Metadata);
        if let Some(block) = metadata {
            handle.forget(block)?;
            self.world.uses.borrow_mut()[block as usize] = Use::Freed(handle.tid());
            self.world.history.borrow_mut().free(handle.tid(), block);
        }
        Ok(())
    }

    /// Writes data where metadata was.
    async fn write_data(&mut self) -> Result<(), JournalError> {
        let free = self.world.pick(&mut self.rng, |used| used == Use::Data);
        let Some(block) = free else { return Ok(()) };
        let version = self.world.next_version();
        let payload = Payload::from_bytes(&content(block, version)).expect("a sector");
        // No task makes it metadata while the write is in flight.
        self.world.uses.borrow_mut()[block as usize] = Use::Freed(Tid(0));
        let write = self.device.write(Lba(block), 1, payload);
        self.world.history.borrow_mut().data(block, version);
        write.await?;
        self.world.history.borrow_mut().acknowledge(version);
        self.world.uses.borrow_mut()[block as usize] = Use::Data;
        Ok(())
    }

    /// Makes metadata of a data block, as a fresh one.
    async fn reuse(&mut self) -> Result<(), JournalError> {
        let handle = self.journal.start(1).await?;
        let data = self.world.pick(&mut self.rng, |used| used == Use::Data);
        if let Some(block) = data {
            let version = self.world.next_version();
            let buffer = handle.fresh(block)?;
            handle.update(&buffer, |bytes| *bytes = content(block, version))?;
            self.world.uses.borrow_mut()[block as usize] = Use::Metadata;
            self.world.history.borrow_mut().update(handle.tid(), block, version);
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), JournalError> {
        let covered = self.world.history.borrow().acknowledged();
        self.device.flush().await?;
        self.world.history.borrow_mut().flushed(&covered);
        Ok(())
    }
}
