//! A small coupled SSD, driven one bio at a time or by hand. A page's tag is the address to which the host wrote it.

use crate::common::driver as any;
use crate::common::ssd;

pub(crate) use any::holds;

use nandscape_block::{
    Attention, Bio, BlockDevice, BlockError, Flags, Lba, Op, Payload, Reply, Tag,
};
use nandscape_ftl::coupled::{Config, CoupledCounts};
use nandscape_ftl::device::config::{BufferConfig, Config as PagesConfig};
use nandscape_ftl::{CoupledFtl, Ftl, FtlError, FtlRun, OmittedRule};
use nandscape_media::{Faults, Geometry, LinkTiming};
use nandscape_rt::Nanos;
use ssd::{Nand, Setup};

/// 2 instances of 2 units.
pub(crate) const GEOMETRY: Geometry = Geometry {
    groups: 2,
    units: 2,
    chunks: 58,
    sectors: 16,
    ws_min: 2,
    ws_opt: 4,
    mw_cunits: 0,
    maxoc: 0,
    maxocpu: 0,
};
/// Sectors of a line, and of a superblock.
pub(crate) const LINE: u64 = 32;
pub(crate) const SUPERBLOCK: u64 = 2 * LINE;
/// Sectors of a partition.
const PARTITION: u64 = 1 << 16;
/// The regions of data and of nodes, each followed by that to which its pages are moved.
pub(crate) const DATA: u64 = PARTITION;
pub(crate) const MOVED_DATA: u64 = 3 * PARTITION;
pub(crate) const NODES: u64 = 4 * PARTITION;
pub(crate) const MOVED_NODES: u64 = 7 * PARTITION;

pub(crate) type Ssd = CoupledFtl<Nand>;

pub(crate) type Driver = any::Driver<Ssd, Setup<Config>>;

impl ssd::Ssd for Ssd {
    type Config = Config;

    fn make(nand: Nand, config: Config, run: FtlRun, link: LinkTiming) -> Result<Self, FtlError> {
        Self::format(nand, config, run, link)
    }

    fn mount(
        nand: Nand,
        config: Config,
        run: FtlRun,
        link: LinkTiming,
        now: Nanos,
    ) -> Result<Self, Box<(Nand, FtlError)>> {
        Self::recover(nand, config, run, link, now).map_err(Box::new)
    }
}

/// A device with many addresses: two of three sectors of the lines may hold data.
pub(crate) fn roomy() -> Config {
    let plain = PagesConfig::default();
    let buffer = BufferConfig { size_bytes: 64 << 12, ..plain.buffer };
    Config {
        pages: PagesConfig { instances: 2, op_hundredths: 5_000, buffer, ..plain },
        random_bytes: 14 << 12,
        rho_percent: 800,
        op_hundredths: 3_400,
        gc_lines: 3,
        open_max: 1,
        buffer_bytes: 16 << 12,
        spare_chunks: 12,
        partition_bits: PARTITION.ilog2(),
        ..Config::default()
    }
}

/// One that keeps most lines free, so that it collects although little is written.
pub(crate) fn eager() -> Config {
    Config { gc_lines: 18, op_hundredths: 9_000, ..roomy() }
}

impl Driver {
    pub(crate) fn new(config: Config) -> Self {
        Self::with(Faults::default(), config, None)
    }

    pub(crate) fn with(faults: Faults, config: Config, omit: Option<OmittedRule>) -> Self {
        let run = FtlRun { omit, ..FtlRun::default() };
        Self::on(GEOMETRY, "nvmevirt-970pro", faults, config, run)
    }

    pub(crate) fn check(&self) {
        self.ftl.check_invariants().expect("invariants");
    }

    /// What only this kind counts.
    pub(crate) fn own(&self) -> CoupledCounts {
        self.ftl.own_counts()
    }

    /// Sectors of the regions that hold something.
    pub(crate) fn live(&self) -> u64 {
        self.ftl.appended_sectors()
    }

    /// Cuts power now, and mounts what that left.
    pub(crate) fn power_cut(self) -> Self {
        let now = self.now;
        self.cut(now)
    }

    /// Writes sectors, each with its address as tag.
    pub(crate) fn put(&mut self, lba: u64, sectors: u32) -> Result<Reply, BlockError> {
        self.run(Bio::write(Lba(lba), sectors, Payload::Run(Tag::new(lba)))).result
    }

    pub(crate) fn discard(&mut self, lba: u64, sectors: u64) {
        let bio = Bio::discard(Lba(lba), sectors as u32);
        assert_eq!(self.run(bio).result, Ok(Reply::None));
    }

    /// The tag of a sector; 0 where nothing is.
    pub(crate) fn tag(&mut self, lba: u64) -> u64 {
        match self.read(lba) {
            Ok(Reply::Data(Payload::Run(tag))) => tag.bits(),
            other => panic!("{lba}: {other:?}"),
        }
    }

    /// Fetches so many records at most: the identity of the upcall, and old and new addresses.
    pub(crate) fn fetch(&mut self, most: u32) -> Option<(u64, Vec<(u64, u64)>)> {
        match self.run(Bio::new(Op::FetchUpcall, Lba(0), most)).result {
            Ok(Reply::None) => None,
            Ok(Reply::Upcall(id, moves)) => {
                Some((id, moves.into_iter().map(|(old, new)| (old.0, new.0)).collect()))
            }
            other => panic!("{other:?}"),
        }
    }

    /// All records that are queued.
    pub(crate) fn fetch_all(&mut self) -> Vec<(u64, u64)> {
        let batches = std::iter::from_fn(|| self.fetch(u32::MAX));
        batches.take_while(|(_, moves)| !moves.is_empty()).flat_map(|(_, moves)| moves).collect()
    }

    pub(crate) fn complete(&mut self, id: u64) -> Result<Reply, BlockError> {
        self.run(Bio::new(Op::CompleteUpcall(id), Lba(0), 0)).result
    }

    /// Whether the host's attention is asked for.
    pub(crate) fn is_flagged(&self) -> bool {
        self.ftl.attention().has(Attention::UPCALL)
    }

    /// Writes the first `sectors` of superblock after superblock of a region, from `next` on, until so many pages more
    /// were moved; the superblock that follows.
    pub(crate) fn press(&mut self, region: u64, next: u64, sectors: u32, moved: u64) -> u64 {
        let wanted = self.own().moved + moved;
        (next..)
            .find(|number| {
                let lba = region + number * SUPERBLOCK;
                self.write_sectors(lba, sectors, lba, Flags::NONE);
                self.own().moved >= wanted
            })
            .map_or(next, |number| number + 1)
    }
}
