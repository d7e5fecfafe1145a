//! The file-level journal under power cuts, beside commits of JBD2: what an fsync was acknowledged for
//! comes back from the one or from the other.

use crate::common::device::{Device, medium, on_device};
use nandscape_block::{Bio, Fua, Lba, MemDevice, Owner, Payload};
use nandscape_fs::ext4::OmittedRule;
use nandscape_fs::ext4::journal::disk::{Features, Superblock};
use nandscape_fs::ext4::journal::{
    Buffers, Config, FileJournal, FileRecord, Journal, JournalError, LogExtents, file_records,
    recover_omitting,
};
use nandscape_rt::{Handle, Nanos, Stream};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// File `n` has its inode in block `n` and its data in block `FILES + n`; a version stands in both.
const FILES: u64 = 8;
const LOG: u64 = 2 * FILES;
const LOG_BLOCKS: u64 = 96;
const SLOTS: u32 = 2;
const SLOT_BLOCKS: u32 = 12;

/// Versions that each file may have at least.
type Promised = BTreeMap<u64, u64>;

fn log() -> LogExtents {
    let half = LOG + LOG_BLOCKS / 2;
    LogExtents::new([half..LOG + LOG_BLOCKS, LOG..half]).expect("two extents")
}

fn formatted(fua: Fua) -> MemDevice {
    let superblock = Superblock::fresh(LOG_BLOCKS as u32, [9; 16]);
    let bytes = Payload::from_bytes(superblock.bytes()).expect("a sector");
    let write = |_, device: Device| async move {
        let at = log().locate(0).expect("a log").0;
        device.write(at, 1, bytes).await.expect("power is on");
        device.flush().await.expect("power is on");
    };
    on_device(medium(LOG + LOG_BLOCKS, fua), None, 0, write).1
}

fn config(omit: Option<OmittedRule>) -> Config {
    let commit_interval = Nanos::from_us(100);
    Config { commit_interval, omit, ..Config::of_file_system(true, true) }
}

fn content(version: u64) -> [u8; 4_096] {
    let mut bytes = [version as u8; 4_096];
    bytes[..8].copy_from_slice(&version.to_le_bytes());
    bytes
}

fn version(bytes: &[u8; 4_096]) -> Result<u64, String> {
    let version = u64::from_le_bytes(std::array::from_fn(|at| bytes[at]));
    let whole = version == 0 || *bytes == content(version);
    whole.then_some(version).ok_or_else(|| "a mixture of versions".to_owned())
}

fn record(file: u64, version: u64) -> FileRecord {
    // Longer records for some, so that they may be torn.
    let nodes = (0..version % 4).map(|node| (node, Arc::new(content(version)))).collect();
    let image = version.to_le_bytes().to_vec();
    FileRecord { inode: file as u32, generation: 1, image, names: Vec::new(), nodes }
}

/// Writes files and fsyncs them, some by records and some by commits.
struct Task {
    rt: Handle,
    device: Device,
    buffers: Buffers,
    journal: Journal,
    files: FileJournal,
    promised: Rc<RefCell<Promised>>,
    versions: Rc<RefCell<u64>>,
    core: u16,
    rng: Stream,
}

impl Task {
    async fn work(mut self) -> Result<(), JournalError> {
        for _ in 0..25 {
            // A file belongs to one task.
            let file = self.rng.below(FILES / 2) * 2 + u64::from(self.core);
            let version = self.write(file).await?;
            if self.rng.chance(0.2) {
                self.rt.sleep(Nanos(self.rng.below(60_000))).await;
            }
            if self.rng.chance(0.7) {
                self.fsync(file, version).await?;
            }
        }
        Ok(())
    }

    fn owner(&self, file: u64) -> Owner {
        Owner { file, generation: 1, thread: self.core, core: self.core }
    }

    async fn write(&self, file: u64) -> Result<u64, JournalError> {
        let version = {
            let mut last = self.versions.borrow_mut();
            *last += 1;
            *last
        };
        let payload = Payload::from_bytes(&content(version)).expect("a sector");
        let write = Bio::write(Lba(FILES + file), 1, payload);
        self.device.submit(Bio { owner: Some(self.owner(file)), ..write }).await?;
        let buffer = self.buffers.get(file).await?;
        let handle = self.journal.start(1).await?;
        handle.access(&buffer).await;
        handle.update(&buffer, |bytes| *bytes = content(version))?;
        Ok(version)
    }

    async fn fsync(&self, file: u64, version: u64) -> Result<(), JournalError> {
        if !self.files.commit(&record(file, version), self.owner(file)).await? {
            self.journal.commit_all().await?;
        }
        self.promised.borrow_mut().insert(file, version);
        Ok(())
    }
}

/// Runs the load; gives back what is promised, and how many records were written.
async fn load(
    rt: Handle,
    device: Device,
    seed: u64,
    before: Promised,
    stop: bool,
    omit: Option<OmittedRule>,
) -> Result<(Promised, u64), JournalError> {
    let buffers = Buffers::new(&rt, device.clone(), 100);
    let journal = Journal::open(&rt, &buffers, log(), config(omit)).await?;
    journal.start_commits(());
    let files = journal.enable_files(SLOTS, SLOT_BLOCKS).await?;
    let last = before.values().max().copied().unwrap_or(0);
    let (promised, versions) = (Rc::new(RefCell::new(before)), Rc::new(RefCell::new(last + 1_000)));
    let task = |core: u16| {
        let task = Task {
            rt: rt.clone(),
            device: device.clone(),
            buffers: buffers.clone(),
            journal: journal.clone(),
            files: files.clone(),
            promised: Rc::clone(&promised),
            versions: Rc::clone(&versions),
            core,
            rng: Stream::new(seed, &format!("task {core}")),
        };
        rt.spawn("load", task.work())
    };
    for task in [task(0), task(1)] {
        // An error is the power cut; what was promised before it stands.
        let _ = task.await;
    }
    if stop {
        journal.stop().await?;
    }
    let promised = promised.borrow().clone();
    Ok((promised, files.written().0))
}

/// Recovers, applies the records that count, and ends the area; gives back how many there were.
async fn recover_files(
    rt: Handle,
    device: Device,
    omit: Option<OmittedRule>,
) -> Result<usize, JournalError> {
    recover_omitting(&device, &log(), omit).await?;
    let records = file_records(&device, &log()).await?;
    let buffers = Buffers::new(&rt, device, 100);
    let journal = Journal::open(&rt, &buffers, log(), config(None)).await?;
    journal.start_commits(());
    for record in &records {
        let bytes = record.image[..].try_into().expect("eight bytes");
        let handle = journal.start(1).await?;
        let buffer = buffers.get(record.inode.into()).await?;
        handle.update(&buffer, |block| *block = content(u64::from_le_bytes(bytes)))?;
        drop(handle);
        journal.commit_all().await?;
    }
    journal.files_applied().await?;
    journal.stop().await?;
    Ok(records.len())
}

/// One life: a load, a cut, and a recovery that may be cut, too.
struct Life {
    seed: u64,
    cut: Option<u64>,
    recovery_cuts: Vec<u64>,
    omit: Option<OmittedRule>,
}

/// What a life leaves.
struct Left {
    medium: MemDevice,
    found: Promised,
    bios: u64,
    /// Records that recovery needed.
    applied: usize,
}

impl Life {
    /// Lives, and checks what comes back.
    fn live(&self, medium: MemDevice, before: &Promised) -> Result<Left, String> {
        let (seed, cut) = (self.seed, self.cut);
        let run = |rt, device| load(rt, device, seed, before.clone(), cut.is_none(), self.omit);
        let (ended, mut medium, bios) = on_device(medium, cut, seed, run);
        let (promised, _) = ended.unwrap_or_else(|_| (before.clone(), 0));
        let recover = |rt, device| recover_files(rt, device, self.omit);
        for &cut in &self.recovery_cuts {
            medium = on_device(medium, Some(cut), seed ^ cut << 20, recover).1;
        }
        let (applied, medium, _) = on_device(medium, None, 0, recover);
        let applied = applied.map_err(|error| format!("recovery: {error}"))?;
        let mut found = Promised::new();
        for file in 0..FILES {
            let least = promised.get(&file).copied().unwrap_or(0);
            let inode = check(&medium, file, least)
                .map_err(|wrong| format!("seed {seed}, cut {cut:?}, file {file}: {wrong}"))?;
            found.insert(file, inode);
        }
        Ok(Left { medium, found, bios, applied })
    }
}

/// A file is at least what was promised, and its data is no older than its inode.
fn check(medium: &MemDevice, file: u64, least: u64) -> Result<u64, String> {
    let at = |block| version(&medium.current(Lba(block)).expand().expect("content is kept"));
    let (inode, data) = (at(file)?, at(FILES + file)?);
    if inode < least {
        return Err(format!("{inode}, not {least}"));
    }
    if data < inode { Err(format!("{inode} before its data, {data}")) } else { Ok(inode) }
}

/// Cuts a load at each of its bios; gives back how many records recoveries needed.
fn cut_everywhere(seed: u64, omit: Option<OmittedRule>) -> Result<usize, String> {
    let fua = if seed % 4 == 3 { Fua::Refused } else { Fua::Honoured };
    let whole = Life { seed, cut: None, recovery_cuts: Vec::new(), omit };
    let bios = whole.live(formatted(fua), &Promised::new())?.bios;
    let mut rng = Stream::new(seed, "cuts");
    let mut applied = 0;
    for cut in 0..bios {
        let recovery_cuts: Vec<u64> = (0..rng.below(3)).map(|_| rng.below(25)).collect();
        let again = rng.below(60);
        let life = Life { seed, cut: Some(cut), recovery_cuts, omit };
        let left = life.live(formatted(fua), &Promised::new())?;
        applied += left.applied;
        let next = Life { seed: seed + 100, cut: Some(again), ..life };
        next.live(left.medium, &left.found)?;
    }
    Ok(applied)
}

/// Every fsync that was acknowledged is there, and no file goes back or shows what it never held,
/// wherever the power goes, also during recovery and in later lives.
#[test]
fn acknowledged_fsyncs_come_back() {
    let one = |seed| cut_everywhere(seed, None).unwrap_or_else(|wrong| panic!("{wrong}"));
    let applied: usize = (0..12).map(one).sum();
    assert!(applied > 500, "only {applied} records were needed");
}

/// Records are caught without their barriers, or without the rules on which of them count.
#[test]
fn broken_records_are_caught() {
    let rules = [OmittedRule::MissingBarrier, OmittedRule::RecordCover];
    for rule in rules {
        let caught = (0..12).find_map(|seed| cut_everywhere(seed, Some(rule)).err());
        assert!(caught.is_some(), "{} is not caught", rule.name());
    }
}

/// While records may count, the superblock says so, with a shorter log; after a clean end it is as it
/// was before.
#[test]
fn the_mark_comes_and_goes() {
    let superblock = |medium: &MemDevice| {
        let at = log().locate(0).expect("a log").0;
        let bytes = medium.current(at).expand().expect("content is kept");
        Superblock::parse(bytes, LOG_BLOCKS).expect("sound")
    };
    let run = |stop| {
        let run = move |rt, device| load(rt, device, 1, Promised::new(), stop, None);
        let (ended, medium, _) = on_device(formatted(Fua::Honoured), None, 1, run);
        let (_, records) = ended.expect("power is on");
        assert!(records > 10, "{records} records");
        superblock(&medium)
    };
    let (live, clean) = (run(false), run(true));
    assert_eq!(live.features().incompat & Features::IJOURNAL, Features::IJOURNAL);
    assert_eq!(u64::from(live.blocks()), LOG_BLOCKS - u64::from(SLOTS * SLOT_BLOCKS));
    assert_eq!(clean.features(), Features::of_file_system(true, true));
    assert_eq!(u64::from(clean.blocks()), LOG_BLOCKS);
    assert_eq!(clean.start().block, 0);
}
