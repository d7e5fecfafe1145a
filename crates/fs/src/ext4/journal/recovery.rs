//! Recovery in three passes, after `fs/jbd2/recovery.c`: *scan* finds where the log ends, *revoke*
//! collects what must not be replayed, *replay* writes the newest copies home.
//!
//! It may be cut and begun again at any point: home writes are durable before the superblock says that
//! the log is empty. A log that contradicts itself is an error before anything is written.

use super::disk::{
    Codec, Commit, FileArea, Header, Kind, Position, Revokes, Superblock, Tag, Tags, unescape,
};
use super::error::{JournalError, LogPlace};
use super::extents::LogExtents;
use super::superblock::{read_superblock, write_superblock};
use super::tid::Tid;
use crate::ext4::rules::OmittedRule;
use nandscape_block::{AsyncDevice, Flags, Lba, SectorBytes, SectorData};
use std::collections::BTreeMap;

use super::buffers::Runs;

/// Log blocks read at once.
const WINDOW_BLOCKS: u32 = 64;
/// Home writes in flight at once.
const WRITES_IN_FLIGHT: usize = 64;

/// What a recovery found and did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Recovered {
    /// Transactions that were committed.
    pub transactions: u32,
    /// Blocks written home.
    pub blocks: u64,
    /// Copies that were revoked.
    pub revoked: u64,
    /// The error that had aborted the journal, as Linux's negative number; 0 for none.
    pub errno: i32,
}

/// Brings home what the log holds, and empties it. Does nothing if it is empty.
///
/// # Errors
/// What is wrong with the log, or with the device. Nothing was written of a log that is corrupt.
pub async fn recover(
    device: &AsyncDevice,
    extents: &LogExtents,
) -> Result<Recovered, JournalError> {
    recover_omitting(device, extents, None).await
}

/// The same without one rule, for campaigns that must notice.
///
/// # Errors
/// Those of [`recover`].
pub async fn recover_omitting(
    device: &AsyncDevice,
    extents: &LogExtents,
    omit: Option<OmittedRule>,
) -> Result<Recovered, JournalError> {
    let omits = |rule| omit == Some(rule);
    let mut superblock = read_superblock(device, extents).await?;
    let start = superblock.start();
    let errno = superblock.errno();
    if start.block == 0 {
        return of_empty_log(device, extents, superblock).await;
    }
    let mut log = LogReader::new(device, extents, &superblock);
    log.checks = !omits(OmittedRule::LogChecksums);
    let found = scan(&mut log, start).await?;
    let mut revoked = revokes(&found);
    if omits(OmittedRule::RevokeOrder) {
        revoked.values_mut().for_each(|tid| *tid = found.end);
    }
    let (homes, hits) = copies(&mut log, &found, &revoked).await?;
    let blocks = homes.len() as u64;
    write_homes(device, homes).await?;
    if !omits(OmittedRule::RecoveryFlush) {
        device.flush().await?;
    }
    // What the first unfinished transaction left in the log must not be taken for the next one's.
    superblock.set_start(Position { tid: found.end.next(), block: 0 });
    fix_files(&mut superblock, found.end);
    if omits(OmittedRule::RecordCover) {
        count_all_files(&mut superblock);
    }
    write_superblock(device, extents, &superblock, true).await?;
    Ok(Recovered { transactions: found.end.since(start.tid), blocks, revoked: hits, errno })
}

/// Empties a log of which the volume says that it needs no recovery: nothing is written home.
///
/// # Errors
/// Those of [`recover`].
pub async fn discard(
    device: &AsyncDevice,
    extents: &LogExtents,
) -> Result<Recovered, JournalError> {
    let mut superblock = read_superblock(device, extents).await?;
    let start = superblock.start();
    if start.block != 0 {
        let mut log = LogReader::new(device, extents, &superblock);
        // Later transactions must not be taken for what is left of these.
        let end = scan(&mut log, start).await?.end;
        superblock.set_start(Position { tid: end.next(), block: 0 });
        write_superblock(device, extents, &superblock, true).await?;
    }
    of_empty_log(device, extents, superblock).await
}

/// What is left to do where the log holds nothing.
async fn of_empty_log(
    device: &AsyncDevice,
    extents: &LogExtents,
    mut superblock: Superblock,
) -> Result<Recovered, JournalError> {
    let tid = superblock.start().tid;
    if fix_files(&mut superblock, tid) {
        superblock.set_start(Position { tid: tid.next(), block: 0 });
        write_superblock(device, extents, &superblock, true).await?;
    }
    Ok(Recovered { errno: superblock.errno(), ..Recovered::default() })
}

/// Fixes which file-level records count: those of the first transaction that is not committed and
/// of later ones. Says whether there is anything to fix; what an earlier recovery has fixed stands.
fn fix_files(superblock: &mut Superblock, end: Tid) -> bool {
    let Some(layout) = superblock.files() else { return false };
    if layout.applying.is_none() {
        superblock.set_files(FileArea { applying: Some(end), ..layout });
    }
    layout.applying.is_none()
}

/// Without [`OmittedRule::RecordCover`]: all records count that were written since the area is in use.
fn count_all_files(superblock: &mut Superblock) {
    if let Some(layout) = superblock.files() {
        superblock.set_files(FileArea { applying: Some(Tid(layout.epoch)), ..layout });
    }
}

/// Where the log ends, and what its committed transactions say.
struct Found {
    /// The first transaction that is not committed.
    end: Tid,
    records: Vec<Record>,
}

/// A descriptor or revoke block.
enum Record {
    Copies {
        tid: Tid,
        /// Log block of the first copy.
        first: u32,
        tags: Vec<Tag>,
    },
    Revokes {
        tid: Tid,
        blocks: Vec<u64>,
    },
}

/// Walks the log to the first block that does not belong to it.
async fn scan(log: &mut LogReader<'_>, start: Position) -> Result<Found, JournalError> {
    let mut scan = Scan { checks: log.checks, ..Scan::new(log.codec, start, log.len()) };
    while !scan.over {
        let content = log.read(scan.at).await?;
        // Blocks of the log are written as bytes; a tag is a page of `data=journal`.
        let Some(bytes) = content.bytes() else { break };
        scan.step(&bytes)?;
        scan.at = log.after(scan.at, scan.taken);
    }
    scan.records.truncate(scan.committed);
    Ok(Found { end: scan.tid, records: scan.records })
}

/// The state of the first pass.
struct Scan {
    codec: Codec,
    /// The block to look at.
    at: u32,
    /// The transaction that is expected there.
    tid: Tid,
    /// Blocks that the last step passed.
    taken: u32,
    /// Blocks that are left before the walk would come round.
    left: u32,
    records: Vec<Record>,
    /// How many of them belong to committed transactions.
    committed: usize,
    last_commit: Option<Commit>,
    /// A block of this transaction has a wrong checksum: it may be a leftover of long ago.
    doubtful: Option<u32>,
    over: bool,
    /// Whether it looks at checksums.
    checks: bool,
}

impl Scan {
    const fn new(codec: Codec, start: Position, left: u32) -> Self {
        Self {
            codec,
            at: start.block,
            tid: start.tid,
            taken: 0,
            left,
            records: Vec::new(),
            committed: 0,
            last_commit: None,
            doubtful: None,
            over: false,
            checks: true,
        }
    }

    fn step(&mut self, block: &SectorBytes) -> Result<(), JournalError> {
        self.taken = 1;
        match Header::parse(block).filter(|header| header.tid == self.tid).map(|header| header.kind)
        {
            Some(Kind::Descriptor) => self.descriptor(block),
            Some(Kind::Revoke) => self.revoke(block),
            Some(Kind::Commit) => self.commit(block)?,
            Some(Kind::SuperblockV1 | Kind::SuperblockV2) | None => self.over = true,
        }
        // A descriptor of more copies than there is room for is a leftover of long ago.
        self.left = self.left.saturating_sub(self.taken);
        self.over |= self.left == 0;
        Ok(())
    }

    fn descriptor(&mut self, block: &SectorBytes) {
        let tags = Tags::parse(&self.codec, block);
        if !tags.checksum_holds() {
            self.doubtful = Some(self.at);
        }
        let tags: Vec<Tag> = tags.collect();
        self.taken += tags.len() as u32;
        // The first copy follows the descriptor; the reader takes it round the end of the log.
        self.records.push(Record::Copies { tid: self.tid, first: self.at, tags });
    }

    fn revoke(&mut self, block: &SectorBytes) {
        match Revokes::parse(&self.codec, block) {
            Some(revokes) if !self.checks || revokes.checksum_holds() => {
                self.records.push(Record::Revokes { tid: self.tid, blocks: revokes.collect() });
            }
            _ => self.doubtful = Some(self.at),
        }
    }

    /// A transaction ends here. One with wrong checksums ends the log if its time says that it is an
    /// older one's leftover; else it is corrupt.
    fn commit(&mut self, block: &SectorBytes) -> Result<(), JournalError> {
        let commit = Commit::parse(block);
        if !Commit::checksum_holds(&self.codec, block) {
            self.doubtful.get_or_insert(self.at);
        }
        if let Some(at) = self.doubtful.filter(|_| self.checks) {
            if self.last_commit.is_none_or(|last| commit >= last) {
                return Err(corrupt(at, "wrong checksum"));
            }
            self.over = true;
            return Ok(());
        }
        self.last_commit = Some(commit);
        self.committed = self.records.len();
        self.tid = self.tid.next();
        Ok(())
    }
}

/// The last transaction that revoked each block.
fn revokes(found: &Found) -> BTreeMap<u64, Tid> {
    let mut revoked = BTreeMap::new();
    for record in &found.records {
        if let Record::Revokes { tid, blocks } = record {
            revoked.extend(blocks.iter().map(|&block| (block, *tid)));
        }
    }
    revoked
}

/// The newest copy of each home block that is not revoked, and how many are.
async fn copies(
    log: &mut LogReader<'_>,
    found: &Found,
    revoked: &BTreeMap<u64, Tid>,
) -> Result<(BTreeMap<u64, SectorData>, u64), JournalError> {
    let (mut homes, mut hits) = (BTreeMap::new(), 0);
    for record in &found.records {
        let Record::Copies { tid, first, tags } = record else { continue };
        for (tag, index) in tags.iter().zip(1..) {
            if revoked.get(&tag.block).is_some_and(|revoke| revoke.reached(*tid)) {
                hits += 1;
                continue;
            }
            let copy = log.read(log.after(*first, index)).await?;
            homes.insert(tag.block, original(log, *tid, tag, copy)?);
        }
    }
    Ok((homes, hits))
}

/// The content of which `copy` is the copy, once it is checked.
fn original(
    log: &LogReader<'_>,
    tid: Tid,
    tag: &Tag,
    copy: SectorData,
) -> Result<SectorData, JournalError> {
    let place = LogPlace::Copy { tid, block: tag.block };
    if tag.block >= log.device_blocks {
        return Err(JournalError::Corrupt { place, what: "beyond the device" });
    }
    if log.checks && !tag.holds(&log.codec, tid, &copy) {
        return Err(JournalError::Corrupt { place, what: "wrong checksum" });
    }
    if !tag.escaped {
        return Ok(copy);
    }
    unescape(&copy).ok_or(JournalError::Corrupt { place, what: "content not kept" })
}

async fn write_homes(
    device: &AsyncDevice,
    homes: BTreeMap<u64, SectorData>,
) -> Result<(), JournalError> {
    let mut runs = Runs::new(device.caps().max_sectors);
    let mut bios = Vec::new();
    for (block, content) in homes {
        bios.extend(runs.push(Lba(block), content));
    }
    bios.extend(runs.take());
    let mut bios = bios.into_iter().map(|run| run.into_bio(Flags::META)).peekable();
    while bios.peek().is_some() {
        let batch = bios.by_ref().take(WRITES_IN_FLIGHT);
        let pending: Vec<_> = batch.map(|bio| device.submit(bio)).collect();
        for reply in pending {
            reply.await?;
        }
    }
    Ok(())
}

/// Reads log blocks, some at once.
struct LogReader<'a> {
    device: &'a AsyncDevice,
    extents: &'a LogExtents,
    codec: Codec,
    device_blocks: u64,
    first: u32,
    end: u32,
    /// The blocks read last, and which is the first of them.
    window: Vec<SectorData>,
    window_at: u32,
    /// Whether checksums are looked at.
    checks: bool,
}

impl<'a> LogReader<'a> {
    fn new(device: &'a AsyncDevice, extents: &'a LogExtents, superblock: &Superblock) -> Self {
        Self {
            device,
            extents,
            codec: superblock.codec(),
            device_blocks: device.caps().sectors,
            first: superblock.first(),
            end: superblock.blocks(),
            window: Vec::new(),
            window_at: 0,
            checks: true,
        }
    }

    const fn len(&self) -> u32 {
        self.end - self.first
    }

    /// The block `count` after `block`, round the log.
    const fn after(&self, block: u32, count: u32) -> u32 {
        self.first + (block - self.first + count) % self.len()
    }

    async fn read(&mut self, block: u32) -> Result<SectorData, JournalError> {
        let known = block.checked_sub(self.window_at).and_then(|at| self.window.get(at as usize));
        if let Some(content) = known {
            return Ok(content.clone());
        }
        let (at, in_one_piece) = self.extents.locate(block)?;
        let most = u64::from(self.end - block).min(in_one_piece);
        let largest = match self.device.caps().max_sectors {
            0 => WINDOW_BLOCKS,
            max => max.min(WINDOW_BLOCKS),
        };
        let blocks = most.min(u64::from(largest)) as u32;
        let payload = self.device.read(at, blocks).await?;
        self.window = (0..blocks).map(|index| payload.sector(index)).collect();
        self.window_at = block;
        Ok(payload.sector(0))
    }
}

const fn corrupt(block: u32, what: &'static str) -> JournalError {
    JournalError::Corrupt { place: LogPlace::Block(block), what }
}
