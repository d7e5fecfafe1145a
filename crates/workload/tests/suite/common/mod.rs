//! A device for tests: keeps content, logs every bio, answers at once or later, and misbehaves when
//! asked to.

use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, DeviceCaps, Done, Flags, Op, Payload, Reply,
    SectorData, Submit, Tag, Token,
};
use nandscape_rt::Nanos;
use nandscape_workload::engine::{Engine, EngineError, NoProbe, Options, Results};
use nandscape_workload::fio::{Environment, JobFile, parse};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// What a broken device does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code, reason = "not every test file breaks its device")]
pub(crate) enum Defect {
    /// Every so many writes, one is acknowledged and lost.
    LosesWrite(u64),
    /// Every so many writes, one lands a sector further on.
    MisplacesWrite(u64),
    /// Discards are acknowledged and lost.
    LosesDiscard,
    /// I/O on this sector fails.
    Fails(u64),
    /// Nothing ever completes.
    Hangs,
}

/// The device. Time of service: `base_ns`, plus up to `spread_ns` that depend on the address.
#[derive(Clone, Debug)]
pub(crate) struct TestDevice {
    pub(crate) caps: DeviceCaps,
    pub(crate) base_ns: u64,
    pub(crate) spread_ns: u64,
    /// Answers `Pending` and completes in `advance`.
    pub(crate) pending: bool,
    pub(crate) defect: Option<Defect>,
    /// Everything submitted.
    pub(crate) log: Vec<(Nanos, Bio)>,
    content: BTreeMap<u64, SectorData>,
    waiting: BTreeMap<(Nanos, u64), Completion>,
    writes: u64,
}

#[allow(dead_code, reason = "not every test file uses all of it")]
impl TestDevice {
    pub(crate) fn new(sectors: u64) -> Self {
        let caps = DeviceCaps { volatile_cache: false, ..DeviceCaps::conventional(sectors) };
        Self {
            caps,
            base_ns: 10_000,
            spread_ns: 5_000,
            pending: false,
            defect: None,
            log: Vec::new(),
            content: BTreeMap::new(),
            waiting: BTreeMap::new(),
            writes: 0,
        }
    }

    /// The sectors that were the target of `op`, in order of submission.
    pub(crate) fn targets(&self, op: Op) -> Vec<u64> {
        self.log.iter().filter(|(_, bio)| bio.op == op).map(|(_, bio)| bio.lba.0).collect()
    }

    fn serve(&mut self, bio: &Bio) -> Result<Reply, BlockError> {
        bio.check(&self.caps)?;
        let sectors = bio.lba.0..bio.lba.0 + u64::from(bio.sectors);
        if matches!(self.defect, Some(Defect::Fails(lba)) if sectors.contains(&lba)) {
            return Err(BlockError::Io { lba: bio.lba, what: "on request" });
        }
        match bio.op {
            Op::Write => self.write(bio),
            Op::Discard if self.defect != Some(Defect::LosesDiscard) => {
                sectors.for_each(|sector| drop(self.content.remove(&sector)));
            }
            Op::Read if !bio.flags.has(Flags::NO_DATA) => {
                let zero = SectorData::Tag(Tag::ZERO);
                let read = sectors.map(|sector| self.content.get(&sector).unwrap_or(&zero).clone());
                return Ok(Reply::Data(Payload::collect(read.collect())));
            }
            _ => {}
        }
        Ok(Reply::None)
    }

    fn write(&mut self, bio: &Bio) {
        self.writes += 1;
        let shift = match self.defect {
            Some(Defect::LosesWrite(n)) if self.writes.is_multiple_of(n) => return,
            Some(Defect::MisplacesWrite(n)) if self.writes.is_multiple_of(n) => 1,
            _ => 0,
        };
        for index in 0..bio.sectors {
            let sector = bio.lba.0 + u64::from(index) + shift;
            self.content.insert(sector, bio.payload.sector(index));
        }
    }
}

impl BlockDevice for TestDevice {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        let result = self.serve(&bio);
        let spread = bio.lba.0.wrapping_mul(0x9e37_79b9) % (self.spread_ns + 1);
        let at = now + Nanos(self.base_ns + spread);
        self.log.push((now, bio));
        if self.defect == Some(Defect::Hangs) {
            return Submit::Pending;
        }
        let done = Done::new(at, result);
        if !self.pending {
            return Submit::Done(done);
        }
        self.waiting.insert((at, self.log.len() as u64), Completion { token, done });
        Submit::Pending
    }

    fn next_event(&self) -> Option<Nanos> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while self.next_event().is_some_and(|at| at <= now) {
            done.extend(self.waiting.pop_first().map(|(_, completion)| completion));
        }
    }
}

/// Files and variables that exist only in a test.
#[derive(Default)]
pub(crate) struct FakeEnvironment {
    pub(crate) files: BTreeMap<&'static str, &'static str>,
    pub(crate) variables: BTreeMap<&'static str, &'static str>,
}

impl Environment for FakeEnvironment {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        let text = path.to_str().and_then(|path| self.files.get(path));
        text.map(|text| (*text).to_owned()).ok_or(std::io::ErrorKind::NotFound.into())
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|value| (*value).to_owned())
    }
}

/// The job file `text`, which must be right.
pub(crate) fn jobs(text: &str) -> JobFile {
    parse(text, "test.fio", &FakeEnvironment::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs `text` on `device` to the end.
#[allow(dead_code, reason = "not every test file runs jobs")]
pub(crate) fn try_run(text: &str, device: &mut TestDevice) -> Result<Results<()>, EngineError> {
    let mut engine = Engine::new(&jobs(text), device.caps(), &Options::default())?;
    engine.run_until(device, &mut NoProbe, None)?;
    Ok(engine.finish())
}

/// Runs `text` on `device`, which must work.
#[allow(dead_code, reason = "not every test file runs jobs")]
pub(crate) fn run(text: &str, device: &mut TestDevice) -> Results<()> {
    try_run(text, device).unwrap_or_else(|error| panic!("{error}"))
}

/// fio itself, where it is installed; `NANDSCAPE_REQUIRE_FIO` says that it must be.
#[allow(dead_code, reason = "not every test file asks fio")]
pub(crate) fn fio() -> Option<Command> {
    let installed = Command::new("fio").arg("--version").output().is_ok();
    let required = std::env::var_os("NANDSCAPE_REQUIRE_FIO").is_some();
    assert!(installed || !required, "NANDSCAPE_REQUIRE_FIO is set, but fio is not installed");
    installed.then(|| Command::new("fio"))
}
