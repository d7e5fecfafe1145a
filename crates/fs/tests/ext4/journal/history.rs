//! What was done to each block, and from it what the block may hold after a power cut. Knows
//! transactions and flushes, and nothing of how the journal works.

use nandscape_fs::ext4::journal::Tid;
use std::collections::BTreeMap;

/// Something that happened to a block.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// Changed as metadata, in a transaction; it holds this version since.
    Update { tid: Tid, version: u64 },
    /// Freed, in a transaction.
    Freed { tid: Tid },
    /// Written as data, without the journal.
    Data { version: u64, safety: Safety },
}

/// How sure a write of data is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Safety {
    Issued,
    Acknowledged,
    /// A flush that began after it was acknowledged has ended.
    Flushed,
}

/// Everything that happened, and which transactions are promised.
#[derive(Clone, Default)]
pub(crate) struct History {
    blocks: BTreeMap<u64, Vec<Event>>,
    last: Tid,
    /// Whose commit was acknowledged.
    promised: Tid,
}

impl History {
    /// A history that begins after `tid`, with blocks as they are.
    pub(crate) fn after(tid: Tid, versions: &BTreeMap<u64, u64>) -> Self {
        let data = |&version| vec![Event::Data { version, safety: Safety::Flushed }];
        let blocks = versions.iter().map(|(&block, version)| (block, data(version))).collect();
        Self { blocks, last: tid, promised: tid }
    }

    pub(crate) fn update(&mut self, tid: Tid, block: u64, version: u64) {
        self.last = if tid.reached(self.last) { tid } else { self.last };
        self.blocks.entry(block).or_default().push(Event::Update { tid, version });
    }

    pub(crate) fn free(&mut self, tid: Tid, block: u64) {
        self.last = if tid.reached(self.last) { tid } else { self.last };
        self.blocks.entry(block).or_default().push(Event::Freed { tid });
    }

    /// A write of data was submitted.
    pub(crate) fn data(&mut self, block: u64, version: u64) {
        let event = Event::Data { version, safety: Safety::Issued };
        self.blocks.entry(block).or_default().push(event);
    }

    /// It was acknowledged.
    pub(crate) fn acknowledge(&mut self, version: u64) {
        self.change(&[version], Safety::Acknowledged);
    }

    /// Data that is acknowledged: what a flush that begins now will cover.
    pub(crate) fn acknowledged(&self) -> Vec<u64> {
        let version = |event: &Event| match event {
            Event::Data { version, safety: Safety::Acknowledged } => Some(*version),
            _ => None,
        };
        self.blocks.values().flatten().filter_map(version).collect()
    }

    /// A flush has covered this.
    pub(crate) fn flushed(&mut self, covered: &[u64]) {
        self.change(covered, Safety::Flushed);
    }

    fn change(&mut self, which: &[u64], to: Safety) {
        for event in self.blocks.values_mut().flatten() {
            if let Event::Data { version, safety } = event
                && which.contains(version)
            {
                *safety = to;
            }
        }
    }

    pub(crate) fn promise(&mut self, tid: Tid) {
        self.promised = if tid.reached(self.promised) { tid } else { self.promised };
    }

    /// Whether these versions are what some prefix of the transactions leaves, one that has all
    /// promised ones; if not, why not, for the prefix that comes closest.
    pub(crate) fn check(&self, versions: &BTreeMap<u64, u64>) -> Result<(), String> {
        let mut worst = String::new();
        let mut tid = self.promised;
        loop {
            let wrong: Vec<String> =
                self.blocks.keys().filter_map(|&block| self.wrong(block, versions, tid)).collect();
            if wrong.is_empty() {
                return Ok(());
            }
            if worst.is_empty() || wrong.len() < worst.lines().count() {
                worst = wrong.join("\n");
            }
            if tid == self.last || !self.last.reached(tid) {
                return Err(format!("promised {}, last {}:\n{worst}", self.promised, self.last));
            }
            tid = tid.next();
        }
    }

    /// What is wrong with a block if exactly the transactions up to `tid` count.
    fn wrong(&self, block: u64, versions: &BTreeMap<u64, u64>, tid: Tid) -> Option<String> {
        let found = versions.get(&block).copied().unwrap_or(0);
        let counts = |event: &Event| match event {
            Event::Update { tid: of, .. } | Event::Freed { tid: of } => tid.reached(*of),
            Event::Data { .. } => true,
        };
        let events: Vec<Event> = self.blocks[&block].iter().copied().filter(counts).collect();
        let metadata = events.iter().rposition(|event| !matches!(event, Event::Data { .. }));
        if let Some(at) = metadata
            && let Event::Update { tid: of, version } = events[at]
        {
            let right = found == version;
            return (!right)
                .then(|| format!("block {block}: {found}, not {version} of {of}, at {tid}"));
        }
        let since = &events[metadata.map_or(0, |at| at + 1)..];
        let sure = since
            .iter()
            .rposition(|event| matches!(event, Event::Data { safety: Safety::Flushed, .. }))?;
        let allowed = since[sure..].iter().filter_map(|event| match event {
            Event::Data { version, .. } => Some(*version),
            _ => None,
        });
        let allowed: Vec<u64> = allowed.collect();
        let right = allowed.contains(&found);
        (!right).then(|| format!("block {block}: {found}, not one of {allowed:?}, at {tid}"))
    }
}
