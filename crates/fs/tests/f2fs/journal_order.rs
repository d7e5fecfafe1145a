//! What a block of the GC journal vouches for is on the device before it, and nothing is written where it came from before
//! the block is durable: seen from the bios of a busy volume that is slow to answer.

use crate::common::volume::run;
use crate::journalled::{ME, SCATTERED, SECTORS, create, write};
use nandscape_block::{
    AsyncDevice, Bio, BlockDevice, Completion, DeviceCaps, Flags, MemDevice, Op, Payload, Submit,
    Token,
};
use nandscape_fs::contract::FileSystem;
use nandscape_fs::f2fs::format::{
    BLOCK_BYTES, GcJournalArea, MovedBlock, NodeFooter, SafeBlock, SafeEntry,
};
use nandscape_fs::f2fs::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::f2fs::{AllocMode, F2fs, MountOptions, OmittedRule, Reclaim};
use nandscape_rt::{Handle, Nanos, Stream};
use std::collections::BTreeMap;
use std::ops::Range;

/// Files that are synced after each write, all at a time: their nodes are written while a journal block is.
const SYNCED: u32 = 128;
/// Journal blocks that are looked at.
const BLOCKS: usize = 60;

/// When a bio was submitted and when it had ended, in bios submitted before.
#[derive(Clone, Copy)]
struct Span {
    from: usize,
    to: usize,
}

/// A device that is slow to make things durable, and to write some blocks, and notes its bios.
struct Slow {
    device: MemDevice,
    seen: Vec<(Bio, Span)>,
    /// By when they end; which bio each is.
    in_flight: BTreeMap<(Nanos, usize), Completion>,
    rng: Stream,
}

impl Slow {
    /// How long a bio takes.
    fn latency(&mut self, bio: &Bio) -> Nanos {
        let is_durable = bio.flags.has(Flags::PREFLUSH | Flags::FUA);
        let is_slow = bio.op == Op::Write && self.rng.chance(0.02);
        match (is_durable, is_slow) {
            (true, _) => Nanos::from_ms(40),
            (false, true) => Nanos::from_ms(50),
            (false, false) => Nanos::from_us(200),
        }
    }
}

impl BlockDevice for Slow {
    fn caps(&self) -> &DeviceCaps {
        self.device.caps()
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        let ends = now.saturating_add(self.latency(&bio));
        let number = self.seen.len();
        self.seen.push((bio.clone(), Span { from: number, to: usize::MAX }));
        let Submit::Done(mut done) = self.device.submit(now, bio, token) else {
            panic!("the memory has no latency")
        };
        done.at = ends;
        self.in_flight.insert((ends, number), Completion { token, done });
        Submit::Pending
    }

    fn next_event(&self) -> Option<Nanos> {
        self.in_flight.keys().next().map(|(ends, _)| *ends)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        let later = self.in_flight.split_off(&(now.saturating_add(Nanos(1)), 0));
        for ((_, number), completion) in std::mem::replace(&mut self.in_flight, later) {
            self.seen[number].1.to = self.seen.len();
            done.push(completion);
        }
    }
}

/// Writes of a run.
struct Trace {
    /// Those to each block.
    writes: BTreeMap<u64, Vec<Span>>,
    /// Blocks of the journal.
    journal: Vec<(Span, SafeBlock)>,
    /// Ends of checkpoints.
    checkpoints: Vec<Span>,
    /// All bios.
    seen: Vec<(Bio, Span)>,
}

impl Trace {
    fn of(seen: Vec<(Bio, Span)>, area: GcJournalArea, packs: &Range<u64>) -> Self {
        let mut trace = Self {
            writes: BTreeMap::new(),
            journal: Vec::new(),
            checkpoints: Vec::new(),
            seen: Vec::new(),
        };
        for (bio, span) in seen.iter().filter(|(bio, _)| bio.op == Op::Write) {
            for lba in bio.lba.0..bio.lba.0 + u64::from(bio.sectors) {
                trace.writes.entry(lba).or_default().push(*span);
            }
            if bio.flags.has(Flags::PREFLUSH | Flags::FUA) && packs.contains(&bio.lba.0) {
                trace.checkpoints.push(*span);
            }
            let first = u64::from(area.blocks().start.0);
            for (index, bytes) in (0u32..).zip(blocks(bio)).filter(|_| bio.lba.0 >= first) {
                let index = (bio.lba.0 - first) as u32 + index;
                let block = SafeBlock::parse(&*bytes, index).expect("a block of the journal");
                trace.journal.push((*span, block));
            }
        }
        trace.seen = seen;
        trace
    }

    /// The last write to a block that was submitted before.
    fn last(&self, lba: u64, before: usize) -> Option<Span> {
        self.writes.get(&lba)?.iter().copied().rfind(|span| span.from < before)
    }

    /// Entries, each with its block's and its moved block's write.
    fn entries(&self) -> impl Iterator<Item = (Span, Span, &SafeEntry)> {
        self.journal.iter().flat_map(move |(at, block)| {
            block.entries.iter().map(move |entry| {
                let moved =
                    self.last(entry.new.0.into(), at.from).expect("a moved block was written");
                (*at, moved, entry)
            })
        })
    }

    /// How many entries have a new place that was still being written when their block was submitted.
    fn in_flight(&self) -> usize {
        self.entries().filter(|(at, moved, _)| moved.to > at.from).count()
    }

    /// How many have an old place that was written to after the move, before their block was durable.
    fn reused(&self) -> usize {
        let is_early = |(at, moved, entry): &(Span, Span, &SafeEntry)| {
            let reused = self.last(entry.old.0.into(), at.to);
            reused.is_some_and(|reused| reused.from > moved.from)
        };
        self.entries().filter(is_early).count()
    }

    /// How many are of a node that was written since the checkpoint: roll-forward may follow the chain there.
    fn chained(&self) -> usize {
        let is_chained = |block: &SafeBlock, entry: &SafeEntry, at: Span| {
            let Some(span) = self.last(entry.old.0.into(), at.from) else { return false };
            let bio = &self.seen[span.from].0;
            let bytes = &blocks(bio)[(u64::from(entry.old.0) - bio.lba.0) as usize];
            NodeFooter::parse(bytes).cp_ver as u32 == block.checkpoint_ver as u32
        };
        let of_block = |(at, block): &(Span, SafeBlock)| {
            let nodes = block.entries.iter().filter(|e| matches!(e.moved, MovedBlock::Node(_)));
            nodes.filter(|entry| is_chained(block, entry, *at)).count()
        };
        self.journal.iter().map(of_block).sum()
    }

    /// How many are of a move that a checkpoint has, which their block follows.
    fn stale(&self) -> usize {
        let is_stale = |(at, moved, _): &(Span, Span, &SafeEntry)| {
            self.checkpoints.iter().any(|of| moved.to <= of.from && of.to <= at.from)
        };
        self.entries().filter(is_stale).count()
    }
}

/// Bytes of the sectors of a write.
fn blocks(bio: &Bio) -> Vec<Box<[u8; BLOCK_BYTES]>> {
    let Payload::Sectors(sectors) = &bio.payload else { return Vec::new() };
    sectors.iter().map(|sector| sector.expand().expect("bytes")).collect()
}

/// Waits for the end of a pause: there is one of 100 ms after each 100 ms, in which cleaning in the background begins.
async fn pause(rt: &Handle) {
    let since = rt.now().0 % 200_000_000;
    if since >= 100_000_000 {
        rt.sleep(Nanos(200_000_000 - since)).await;
    }
}

/// What a busy volume writes until so many journal blocks are there.
fn trace(omit: Option<OmittedRule>) -> Trace {
    run(async move |rt| {
        let device = MemDevice::new(SECTORS);
        let rng = Stream::new(1, "latencies");
        let device = Slow { device, seen: Vec::new(), in_flight: BTreeMap::new(), rng };
        let device = AsyncDevice::new(&rt, device);
        let made = MkfsOptions { gc_journal: true, fresh: true, ..MkfsOptions::new(1) };
        let sb = mkfs(&device.erased(), &made).await.expect("mkfs");
        let area = sb.gc_journal().expect("an area");
        let options = MountOptions {
            reclaim: Reclaim::GcJournal,
            alloc_mode: AllocMode::Reuse,
            checkpoint_cost: u32::MAX,
            idle_interval: Nanos::from_us(1),
            gc_min_sleep: Nanos::from_ms(1),
            gc_max_sleep: Nanos::from_ms(2),
            gc_no_gc_sleep: Nanos::from_ms(2),
            omit,
            ..MountOptions::default()
        };
        let (fs, _) = F2fs::mount(&rt, device.erased(), options).await.expect("a mount");
        let scattered = create(&fs, "scattered").await;
        for page in (0..SCATTERED).step_by(100) {
            write(&fs, scattered, page, 100).await;
        }
        fs.syncfs(ME).await.expect("a checkpoint");
        let mut tasks = Vec::new();
        for number in 0..SYNCED {
            let ino = create(&fs, &format!("synced-{number}")).await;
            let (fs, rt) = (fs.clone(), rt.clone());
            let task = rt.clone().spawn("sync", async move {
                for page in 0.. {
                    pause(&rt).await;
                    write(&fs, ino, page % 4, 1).await;
                    fs.fdatasync(ME, ino).await.expect("a sync");
                }
            });
            tasks.push(task);
        }
        let mut rng = Stream::new(1, "pages");
        let first = u64::from(area.blocks().start.0);
        for step in 0..100_000 {
            pause(&rt).await;
            write(&fs, scattered, rng.below(SCATTERED), 1).await;
            let blocks =
                |slow: &Slow| slow.seen.iter().filter(|(bio, _)| bio.lba.0 >= first).count();
            if step % 200 == 199 {
                fs.fdatasync(ME, scattered).await.expect("a sync");
                if step % 1_000 == 999 {
                    fs.syncfs(ME).await.expect("a checkpoint");
                }
                if device.with(|slow| blocks(slow)) >= BLOCKS {
                    break;
                }
            }
        }
        for task in &tasks {
            task.abort();
        }
        let packs = u64::from(sb.cp_blkaddr.0)..u64::from(sb.sit_blkaddr.0);
        device.with(|slow| Trace::of(std::mem::take(&mut slow.seen), area, &packs))
    })
}

/// With all rules none of these happens; without its rule each does.
#[test]
fn journal_blocks_come_between_moves_and_reuse() {
    let found = |omit| {
        let trace = trace(omit);
        assert!(trace.journal.len() >= BLOCKS);
        [trace.in_flight(), trace.reused(), trace.chained(), trace.stale()]
    };
    assert_eq!(found(None), [0, 0, 0, 0]);
    assert!(found(Some(OmittedRule::GcSettle))[0] > 0);
    assert!(found(Some(OmittedRule::GcReuse))[1] > 0);
    assert!(found(Some(OmittedRule::GcChainNodes))[2] > 0);
    assert!(found(Some(OmittedRule::GcCheckpoint))[3] > 0);
}
