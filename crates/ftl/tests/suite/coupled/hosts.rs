//! A log-structured host that overwrites at random for long: new content goes to the next sector of a superblock in
//! which it has nothing, and the old address is discarded. It keeps by its rules towards upcalls and nothing else.

use crate::coupled::driver::{DATA, Driver, GEOMETRY, LINE, SUPERBLOCK, holds, roomy};
use nandscape_block::{
    Bio, BlockDevice, Completion, Flags, Lba, Op, Payload, Tag, Token, UpcallSignal,
};
use nandscape_ftl::Ftl;
use nandscape_ftl::coupled::Config;
use nandscape_rt::Stream;
use std::collections::{BTreeMap, VecDeque};

/// Records that a host may have fetched and not completed.
const FETCHED_MAX: u64 = (GEOMETRY.chunks * 2) as u64 * LINE / 8;
/// Records of an upcall at most.
const UPCALL: u64 = 256;

struct Host {
    driver: Driver,
    rng: Stream,
    /// Address and tag of each slot; the slot at each address.
    slots: Vec<(u64, u64)>,
    at: BTreeMap<u64, usize>,
    /// Addresses in each superblock of the host that hold something, or that a fetched record names.
    used: Vec<u32>,
    superblock: u64,
    written: u64,
    /// Upcalls that were fetched and not completed.
    fetched: VecDeque<(u64, Vec<(u64, u64)>)>,
    tags: u64,
}

impl Host {
    /// A host whose slots, so many percent of what may be live, are all written.
    fn new(config: Config, percent: u64) -> Self {
        let sizes = config.sizes(&GEOMETRY).expect("fits");
        let slots = sizes.live_sectors * percent / 100;
        let mut host = Self {
            driver: Driver::new(config),
            rng: Stream::new(7, "host"),
            slots: vec![(0, 0); slots as usize],
            at: BTreeMap::new(),
            used: vec![0; sizes.superblocks as usize],
            superblock: 0,
            written: 0,
            fetched: VecDeque::new(),
            tags: 0,
        };
        (0..slots as usize).for_each(|slot| host.write(slot));
        host
    }

    /// The count of an address, if it is one that the host writes.
    fn used_at(&mut self, lba: u64) -> Option<&mut u32> {
        let number = lba.checked_sub(DATA)? / SUPERBLOCK;
        self.used.get_mut(number as usize)
    }

    fn next_address(&mut self) -> u64 {
        if self.written.is_multiple_of(SUPERBLOCK) {
            let all = self.used.len() as u64;
            let mut round = (1..=all).map(|step| (self.superblock + step) % all);
            let is_unused = |number: &u64| self.used[*number as usize] == 0;
            self.superblock = round.find(is_unused).expect("an unused superblock");
        }
        self.written += 1;
        DATA + self.superblock * SUPERBLOCK + (self.written - 1) % SUPERBLOCK
    }

    /// The bio that writes a slot anew, to its next address.
    fn begin(&mut self, slot: usize) -> (u64, u64) {
        let lba = self.next_address();
        self.tags += 1;
        *self.used_at(lba).expect("the host's") += 1;
        let (old, _) = std::mem::replace(&mut self.slots[slot], (lba, self.tags));
        self.at.insert(lba, slot);
        if self.at.remove(&old).is_some() {
            self.driver.discard(old, 1);
            self.used_at(old).into_iter().for_each(|count| *count -= 1);
        }
        (lba, self.tags)
    }

    /// No write waits for what the host does not do: its driver would find nothing in flight.
    fn write(&mut self, slot: usize) {
        let (lba, tag) = self.begin(slot);
        self.driver.write(lba, tag, Flags::NONE);
    }

    /// Writes a slot while other bios wait; those of them that completed.
    fn write_beside(&mut self, slot: usize) -> Vec<Completion> {
        let (lba, tag) = self.begin(slot);
        let bio = Bio::write(Lba(lba), 1, Payload::Run(Tag::new(tag)));
        let mut others = Vec::new();
        let mut ended = self.driver.submit(bio, 1).map(|done| done.at);
        while ended.is_none() {
            let (own, rest): (Vec<_>, _) =
                self.driver.step().into_iter().partition(|of| of.token == Token(1));
            ended = own.first().map(|of| of.done.at);
            others.extend::<Vec<_>>(rest);
        }
        self.driver.now = self.driver.now.max(ended.expect("just looked"));
        self.driver.ftl.advance(self.driver.now, &mut others);
        others
    }

    fn overwrite(&mut self) {
        let slot = self.rng.below(self.slots.len() as u64) as usize;
        self.write(slot);
    }

    /// Fetches so many records at most, and takes over what they say; how many there were. `None` of no upcall.
    fn fetch(&mut self, most: u64) -> Option<u64> {
        let (id, moves) = self.driver.fetch(most as u32)?;
        let count = moves.len() as u64;
        for &(old, new) in &moves {
            match self.at.remove(&old) {
                Some(slot) => {
                    self.slots[slot].0 = new;
                    self.at.insert(new, slot);
                }
                None => self.used_at(old).into_iter().for_each(|count| *count += 1),
            }
        }
        if count > 0 {
            self.fetched.push_back((id, moves));
        }
        Some(count)
    }

    /// Completes the upcall with this place among those fetched.
    fn complete(&mut self, index: usize) {
        let (id, moves) = self.fetched.remove(index).expect("a fetched upcall");
        assert!(self.driver.complete(id).is_ok());
        for (old, _) in moves {
            self.used_at(old).into_iter().for_each(|count| *count -= 1);
        }
    }

    /// Records that were fetched and not completed.
    fn open(&self) -> u64 {
        self.fetched.iter().map(|(_, moves)| moves.len() as u64).sum()
    }

    /// Every slot reads as it was written, and nothing else is there.
    fn check(&mut self) {
        for &(lba, tag) in &self.slots {
            assert_eq!(self.driver.read(lba), holds(tag), "lba {lba}");
        }
        assert_eq!(self.driver.live(), self.slots.len() as u64);
        self.driver.check();
    }
}

/// A host that never fetches anything writes for ever: there is room for one record of each live sector.
#[test]
fn a_host_that_fetches_nothing_writes_for_ever() {
    for config in [roomy(), Config { gc_lines: 1, ..roomy() }] {
        let mut host = Host::new(config, 95);
        for _ in 0..10 {
            (0..5_000).for_each(|_| host.overwrite());
            let own = host.driver.own();
            assert_eq!(own.upcalls, 0);
            assert!(own.opened - own.deleted <= host.slots.len() as u64, "{own:?}");
        }
        assert!(host.driver.own().merged > 1_000, "{:?}", host.driver.own());
        // Records that were deleted before a fetch leave no trace.
        let memory = host.driver.ftl.memory();
        let of_records = memory.map.iter().find(|(part, _)| *part == "records").map(|of| of.1);
        assert!(of_records.is_some_and(|bytes| bytes < 64 * host.slots.len() as u64), "{memory:?}");
        host.check();
    }
}

/// One that fetches as many records as it may, and completes none before it has to, writes for ever as well.
#[test]
fn a_host_that_completes_late_writes_for_ever() {
    let mut host = Host::new(roomy(), 95);
    let mut most = 0;
    for _ in 0..50_000 {
        host.overwrite();
        while host.open() < FETCHED_MAX
            && let Some(count) = host.fetch(UPCALL.min(FETCHED_MAX - host.open()))
            && count > 0
        {}
        most = most.max(host.open());
        if host.open() == FETCHED_MAX {
            host.complete(0);
        }
    }
    assert_eq!(most, FETCHED_MAX);
    assert!(host.driver.own().completed > 1_000, "{:?}", host.driver.own());
    host.check();
}

/// A host that does not complete upcalls of pages which the device had moved before is asked to, when their records
/// keep the device from most of the addresses that are not in use; that ends when it has completed them.
#[test]
fn a_host_that_completes_nothing_is_asked_to() {
    let mut host = Host::new(Config { rho_percent: 300, ..roomy() }, 80);
    let mut is_asked = false;
    for _ in 0..20_000 {
        host.overwrite();
        while let Some(count) = host.fetch(1) {
            is_asked = count == 0;
            if is_asked {
                break;
            }
            let (old, _) = host.fetched.back().expect("just fetched").1[0];
            if host.used_at(old).is_some() {
                host.complete(host.fetched.len() - 1);
            }
        }
        if is_asked {
            break;
        }
    }
    assert!(is_asked, "{} records are open", host.open());
    assert!(host.driver.is_flagged());
    assert_eq!(host.driver.fetch(1), Some((0, Vec::new())), "as long as it has not");
    while !host.fetched.is_empty() {
        host.complete(0);
    }
    assert_eq!(host.driver.fetch(1), None);
    assert!(!host.driver.is_flagged());
    host.check();
}

/// Attention is asked for from the 256th queued record on, on completions as they are delivered, until it was fetched.
#[test]
fn a_whole_upcall_is_flagged() {
    let mut host = Host::new(roomy(), 95);
    let mut flagged = 0;
    for _ in 0..4_000 {
        host.overwrite();
        let own = host.driver.own();
        let queued = own.opened - own.deleted - own.sent;
        assert_eq!(host.driver.is_flagged(), queued >= UPCALL, "{queued} are queued");
        if queued >= UPCALL + 20 {
            flagged += 1;
            host.fetch(UPCALL);
            host.complete(0);
            assert!(!host.driver.is_flagged());
        }
    }
    assert!(flagged > 2);
}

/// With interrupts nothing is flagged; a host that awaits records is answered when there are as many.
#[test]
fn a_whole_upcall_ends_the_wait() {
    let mut host = Host::new(Config { upcall: UpcallSignal::Interrupt, ..roomy() }, 95);
    let awaited = Bio::new(Op::AwaitUpcall, Lba(0), 0);
    let queued = |host: &Host| {
        let own = host.driver.own();
        own.opened - own.deleted - own.sent
    };
    while queued(&host) >= UPCALL {
        host.fetch(UPCALL);
        host.complete(0);
    }
    assert_eq!(host.driver.submit(awaited.clone(), 99), None);
    let mut answered = Vec::new();
    while answered.is_empty() {
        assert!(queued(&host) < UPCALL);
        let slot = host.rng.below(host.slots.len() as u64) as usize;
        answered = host.write_beside(slot);
    }
    assert!(queued(&host) >= UPCALL && !host.driver.is_flagged());
    assert_eq!(answered.len(), 1);
    assert!(host.driver.submit(awaited.clone(), 99).expect("at once").result.is_ok());
    host.fetch(UPCALL);
    assert_eq!(host.driver.submit(awaited, 99), None);
}
