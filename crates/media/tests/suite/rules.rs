//! The rules against a naive model: any sequence of commands, legal or not, on any geometry, is
//! taken or refused alike, and leaves the same chunk report and the same sectors.

use crate::common;

use common::chunk;
use nandscape_block::{SectorData, Tag};
use nandscape_media::{
    ChunkId, ChunkState, DeviceTiming, Fault, Geometry, Kind, Media, MediaConfig, OpenChannel,
    PayloadMode, Ppa, Status, WriteCmd,
};
use nandscape_rt::Nanos;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Command {
    /// Write at the write pointer, off by `skew` sectors.
    Write {
        unit: u32,
        chunk: u32,
        skew: i32,
        sectors: u32,
        data: bool,
    },
    Read {
        unit: u32,
        chunk: u32,
        sector: u32,
        sectors: u32,
    },
    Reset {
        unit: u32,
        chunk: u32,
    },
    FailProgram,
    FailErase,
}

fn command() -> impl Strategy<Value = Command> {
    let skew = prop_oneof![9 => Just(0), 1 => -4..=4i32];
    let sectors = prop_oneof![8 => (0..7u32).prop_map(|n| n * 4), 1 => 0..40u32];
    prop_oneof![
        10 => (0..7u32, 0..5u32, skew, sectors, any::<bool>()).prop_map(
            |(unit, chunk, skew, sectors, data)| Command::Write { unit, chunk, skew, sectors, data }
        ),
        5 => (0..7u32, 0..5u32, 0..26u32, 0..26u32).prop_map(
            |(unit, chunk, sector, sectors)| Command::Read { unit, chunk, sector, sectors }
        ),
        3 => (0..7u32, 0..5u32).prop_map(|(unit, chunk)| Command::Reset { unit, chunk }),
        1 => Just(Command::FailProgram),
        1 => Just(Command::FailErase),
    ]
}

fn geometry() -> impl Strategy<Value = Geometry> {
    (1..=3u32, 1..=2u32, 1..=4u32, 1..=3u32, 1..=2u32, 0..12u32, 0..5u32, 0..3u32).prop_map(
        |(groups, units, ws_min, opts, ws, mw_cunits, maxoc, maxocpu)| Geometry {
            groups,
            units,
            chunks: 4,
            sectors: 4 * opts * ws * ws_min,
            ws_min,
            ws_opt: ws * ws_min,
            mw_cunits: mw_cunits.min(4 * opts * ws * ws_min - 1),
            maxoc,
            maxocpu,
        },
    )
}

#[derive(Clone, Default)]
struct Chunk {
    sectors: Vec<u64>,
    closed: bool,
    failing: bool,
    offline: bool,
    erases: u32,
}

impl Chunk {
    fn state(&self, geometry: &Geometry) -> ChunkState {
        match self {
            _ if self.offline => ChunkState::Offline,
            _ if self.closed => ChunkState::Closed,
            _ if self.sectors.is_empty() => ChunkState::Free,
            _ if self.sectors.len() == geometry.sectors as usize => ChunkState::Closed,
            _ => ChunkState::Open,
        }
    }
}

struct Model {
    geometry: Geometry,
    chunks: Vec<Chunk>,
    seq: u64,
    fail_program: bool,
    fail_erase: bool,
}

impl Model {
    fn new(geometry: Geometry) -> Self {
        let chunks = vec![Chunk::default(); (geometry.total_units() * geometry.chunks) as usize];
        Self { geometry, chunks, seq: 0, fail_program: false, fail_erase: false }
    }

    fn index(&self, id: ChunkId) -> Option<usize> {
        let exists = id.unit.0 < self.geometry.total_units() && id.chunk < self.geometry.chunks;
        exists.then(|| (id.unit.0 * self.geometry.chunks + id.chunk) as usize)
    }

    fn open(&self, unit: Option<u32>) -> u32 {
        let geometry = &self.geometry;
        let on = |i: &usize| unit.is_none_or(|unit| *i as u32 / geometry.chunks == unit);
        let open = |i: &usize| self.chunks[*i].state(geometry) == ChunkState::Open;
        (0..self.chunks.len()).filter(on).filter(open).count() as u32
    }

    fn write(&mut self, id: ChunkId, sector: i64, sectors: u32) -> Option<Status> {
        let index = self.index(id)?;
        let g = self.geometry;
        let state = self.chunks[index].state(&g);
        let wp = self.chunks[index].sectors.len() as u32;
        let may_open = (g.maxoc == 0 || self.open(None) < g.maxoc)
            && (g.maxocpu == 0 || self.open(Some(id.unit.0)) < g.maxocpu);
        let legal = (state == ChunkState::Open || state == ChunkState::Free && may_open)
            && sector == i64::from(wp)
            && sectors > 0
            && sectors.is_multiple_of(g.ws_min)
            && wp + sectors <= g.sectors;
        if !legal {
            return None;
        }
        if std::mem::take(&mut self.fail_program) {
            self.chunks[index].closed = true;
            self.chunks[index].failing = true;
            return Some(Status::ProgramFailed);
        }
        self.chunks[index].sectors.extend(self.seq..self.seq + u64::from(sectors));
        Some(Status::Ok)
    }

    fn readable(&self, id: ChunkId) -> u32 {
        let Some(index) = self.index(id) else { return 0 };
        let chunk = &self.chunks[index];
        match chunk.state(&self.geometry) {
            ChunkState::Offline => 0,
            ChunkState::Open => {
                (chunk.sectors.len() as u32).saturating_sub(self.geometry.mw_cunits)
            }
            _ => chunk.sectors.len() as u32,
        }
    }

    fn reset(&mut self, id: ChunkId) -> Option<Status> {
        let index = self.index(id)?;
        let state = self.chunks[index].state(&self.geometry);
        if !matches!(state, ChunkState::Open | ChunkState::Closed) {
            return None;
        }
        let chunk = &mut self.chunks[index];
        if std::mem::take(&mut self.fail_erase) || chunk.failing {
            chunk.offline = true;
            return Some(Status::EraseFailed);
        }
        *chunk = Chunk { erases: chunk.erases + 1, ..Chunk::default() };
        Some(Status::Ok)
    }
}

/// The packed address, unless its fields overflow into another address.
fn packed(geometry: &Geometry, id: ChunkId, sector: i64) -> Option<Ppa> {
    let sector = u32::try_from(sector).ok()?;
    let at = geometry.ppa(id, sector);
    (geometry.chunk_of(at) == id && geometry.sector_of(at) == sector).then_some(at)
}

fn step(
    media: &mut Media,
    model: &mut Model,
    now: Nanos,
    command: Command,
) -> Result<(), TestCaseError> {
    match command {
        Command::Write { unit, chunk: c, skew, sectors, data } => {
            let id = chunk(unit, c);
            let wp = model.index(id).map_or(0, |index| model.chunks[index].sectors.len() as i64);
            let sector = wp + i64::from(skew);
            let Some(at) = packed(&model.geometry, id, sector) else { return Ok(()) };
            let keys: Vec<u32> = (model.seq as u32..).take(sectors as usize).collect();
            let tags: Vec<SectorData> =
                (model.seq..).take(keys.len()).map(|s| SectorData::Tag(Tag::new(s))).collect();
            let cmd = WriteCmd {
                at,
                kind: Kind::Data,
                seq: model.seq,
                seq_deltas: &[],
                aux: &[],
                keys: &keys,
                data: if data { &tags } else { &[] },
            };
            let outcome = media.write(now, now, cmd).ok().map(|o| o.status);
            prop_assert_eq!(outcome, model.write(id, sector, sectors));
            model.seq += u64::from(sectors);
        }
        Command::Read { unit, chunk: c, sector, sectors } => {
            let id = chunk(unit, c);
            let Some(at) = packed(&model.geometry, id, sector.into()) else { return Ok(()) };
            let legal = sectors > 0 && sector + sectors <= model.readable(id);
            let outcome = common::read(media, now, at, sectors);
            prop_assert_eq!(outcome.is_ok(), legal, "{:?}", outcome);
        }
        Command::Reset { unit, chunk: c } => {
            let id = chunk(unit, c);
            let outcome = media.reset(now, now, id).ok().map(|o| o.status);
            prop_assert_eq!(outcome, model.reset(id));
        }
        Command::FailProgram => {
            media.arm(Fault::Program);
            model.fail_program = true;
        }
        Command::FailErase => {
            media.arm(Fault::Erase);
            model.fail_erase = true;
        }
    }
    Ok(())
}

/// Same chunk report, same sectors.
fn compare(media: &Media, model: &Model) -> Result<(), TestCaseError> {
    for (id, info) in media.report() {
        let chunk = &model.chunks[model.index(id).unwrap()];
        let state = chunk.state(&model.geometry);
        prop_assert_eq!((info.state, info.erases), (state, chunk.erases), "{:?}", id);
        prop_assert_eq!(info.wp as usize, chunk.sectors.len());
        for (sector, &seq) in chunk.sectors.iter().enumerate().filter(|_| !chunk.offline) {
            let at: Ppa = model.geometry.ppa(id, sector as u32);
            let oob = media.oob(at);
            prop_assert_eq!((u64::from(oob.key), oob.seq, oob.kind), (seq, seq, Kind::Data));
            if let SectorData::Tag(tag) = media.data(at) {
                prop_assert_eq!(tag.bits(), seq);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn device_and_naive_model_agree(
        geometry in geometry(),
        commands in prop::collection::vec((command(), 0..400_000u64), 1..120),
        preset in 0..DeviceTiming::PRESETS.len(),
    ) {
        let timing = DeviceTiming::preset(DeviceTiming::PRESETS[preset]).unwrap().nand;
        let payload = PayloadMode::Tags;
        let config = MediaConfig { timing, payload, ..MediaConfig::new(geometry) };
        let mut media = Media::new(config).unwrap();
        let mut model = Model::new(geometry);
        let mut now = Nanos::ZERO;
        for (command, gap) in commands {
            now += Nanos(gap);
            step(&mut media, &mut model, now, command)?;
            compare(&media, &model)?;
        }
    }
}
