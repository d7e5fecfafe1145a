//! Media of a small device of each kind of FTL, which was written, in which sectors or chunks are changed: they are mounted,
//! read and written. The first byte chooses the kind.

use crate::input::Numbers;
use nandscape_block::region::RegionKind;
use nandscape_block::{
    Bio, BlockDevice, BlockError, Completion, Lba, Op, Payload, Reply, SectorBytes, SectorData,
    Submit, Tag, Token,
};
use nandscape_ftl::device::config::{BufferConfig, Config as PagesConfig};
use nandscape_ftl::zoned::ZoneConfig;
use nandscape_ftl::{AnyFtl, Ftl, FtlConfig, FtlError, FtlRun, coupled, interval, pblk, zoned};
use nandscape_media::{
    ChunkId, ChunkInfo, ChunkState, Geometry, Kind, LinkTiming, Media, MediaConfig, Oob,
    OpenChannel, WriteCmd,
};
use nandscape_rt::{Nanos, Stream};
use std::sync::Arc;

/// Changes of media at most.
const CHANGES: usize = 32;
/// Events until a bio must have ended.
const EVENTS_MAX: usize = 1_000_000;
/// Erases of a chunk that are repeated on other media.
const ERASES_MAX: u32 = 4;
const KINDS: [Kind; 6] = [Kind::None, Kind::Data, Kind::Smeta, Kind::Emeta, Kind::Pad, Kind::Map];

/// The largest sequence of a unit: they have 56 bits.
const SEQ_MAX: u64 = (1 << 56) - 64;
/// Sectors of a region that are written.
const WRITTEN_MAX: u64 = 1_500;

const fn shape(groups: u32, chunks: u32, sectors: u32, ws_min: u32, mw_cunits: u32) -> Geometry {
    let (units, ws_opt) = (2, 2 * ws_min);
    Geometry { groups, units, chunks, sectors, ws_min, ws_opt, mw_cunits, maxoc: 0, maxocpu: 0 }
}

fn pages(op_percent: u32, buffer_bytes: u64) -> PagesConfig {
    let plain = PagesConfig::default();
    let buffer = BufferConfig { size_bytes: buffer_bytes, ..plain.buffer };
    PagesConfig { op_hundredths: 100 * op_percent, buffer, ..plain }
}

/// A device of each kind of FTL, as small as its tests have it.
fn small_devices() -> [(Geometry, FtlConfig); 5] {
    let pblk = pblk::config::Config { op_percent: Some(20), ..Default::default() };
    let zone = ZoneConfig {
        dies: 2,
        spare_chunks: 12,
        max_open: 3,
        max_active: 4,
        buffer_bytes: 12 << 12,
        ..zoned::Config::default().zone
    };
    let interval = interval::Config {
        partition_bits: 16,
        leaf_bits: 8,
        middle_bits: 4,
        hole_sectors: 8,
        compact_period_ns: 1_000_000,
        pages: PagesConfig { gc_lines: 3, ..pages(30, 256 << 10) },
        ..Default::default()
    };
    let coupled = coupled::Config {
        pages: PagesConfig { instances: 2, ..pages(50, 64 << 12) },
        random_bytes: 14 << 12,
        rho_percent: 800,
        op_hundredths: 3_400,
        gc_lines: 3,
        open_max: 1,
        buffer_bytes: 16 << 12,
        spare_chunks: 12,
        partition_bits: 16,
        ..Default::default()
    };
    [
        (shape(2, 40, 128, 4, 24), FtlConfig::Pblk(pblk)),
        (shape(4, 40, 64, 4, 0), FtlConfig::Device(pages(20, 256 << 10))),
        (shape(4, 24, 24, 2, 0), FtlConfig::Zoned(zoned::Config { zone, ..Default::default() })),
        (shape(4, 40, 64, 4, 0), FtlConfig::Interval(interval)),
        (shape(2, 58, 16, 2, 0), FtlConfig::Coupled(coupled)),
    ]
}

thread_local! {
    static DEVICES: Vec<Device> = Device::all();
}

/// Changes the media of a device and uses it.
pub fn media(input: &[u8]) {
    let mut numbers = Numbers::new(input);
    let choice = numbers.number::<1>() as usize;
    DEVICES.with(|devices| devices[choice % devices.len()].try_changed(&mut numbers));
}

/// A device that was written, without power.
struct Device {
    config: FtlConfig,
    content: Content,
}

impl Device {
    /// One of each kind.
    fn all() -> Vec<Self> {
        small_devices().into_iter().map(|(geometry, config)| Self::new(geometry, config)).collect()
    }

    fn new(geometry: Geometry, config: FtlConfig) -> Self {
        let media = Media::new(MediaConfig::new(geometry)).expect("media");
        let mut ftl =
            config.format(media, FtlRun::default(), LinkTiming::none()).expect("a device");
        fill(&mut ftl);
        let mut media = ftl.power_off();
        media.power_cycle();
        let device = Self { content: Content::of(&media), config };
        if let Err(error) = device.mount(&device.content) {
            panic!("{}: {error}", device.config.kind());
        }
        device
    }

    fn mount(&self, content: &Content) -> Result<AnyFtl<Media>, FtlError> {
        let (media, run) = (content.media(), FtlRun::default());
        self.config.mount(media, run, LinkTiming::none(), Nanos::ZERO).map_err(|(_, error)| error)
    }

    /// Mounts the device after its media were changed as `numbers` say, and uses it.
    ///
    /// # Panics
    /// A bio never ends.
    fn try_changed(&self, numbers: &mut Numbers<'_>) {
        let mut content = self.content.clone();
        for _ in 0..CHANGES {
            if numbers.is_empty() {
                break;
            }
            content.change(numbers);
        }
        if let Ok(mut ftl) = self.mount(&content) {
            try_everything(&mut ftl);
        }
    }
}

/// Serves a bio.
fn serve(ftl: &mut AnyFtl<Media>, bio: Bio) -> Result<Reply, BlockError> {
    let token = Token(1);
    let mut completions: Vec<Completion> = Vec::new();
    if let Submit::Done(done) = ftl.submit(ftl.now(), bio, token) {
        return done.result;
    }
    for _ in 0..EVENTS_MAX {
        let next = ftl.next_event().expect("a bio that is pending ends");
        ftl.advance(next, &mut completions);
        if let Some(ours) = completions.drain(..).find(|completion| completion.token == token) {
            return ours.done.result;
        }
    }
    panic!("a bio never ends");
}

fn tag(lba: u64) -> Payload {
    Payload::Run(Tag::new(lba))
}

/// Writes to every region that takes writes, over and over where it may be, and discards some of it.
fn fill(ftl: &mut AnyFtl<Media>) {
    let regions: Vec<_> = ftl.caps().regions().collect();
    let mut rng = Stream::new(1, "fill");
    for region in regions {
        let (first, sectors) = (region.range.start, region.sectors().min(WRITTEN_MAX));
        let mut write = |lba: u64, sectors: u32| {
            let bio = Bio::write(Lba(lba), sectors, tag(lba));
            serve(ftl, bio).unwrap_or_else(|error| panic!("{lba}: {error}"));
        };
        match region.kind {
            RegionKind::Random => {
                (0..sectors).for_each(|at| write(first + at, 1));
                (0..sectors).for_each(|_| write(first + rng.below(sectors), 1));
                let discard = Bio::discard(Lba(first + sectors / 2), (sectors / 8).max(1) as u32);
                serve(ftl, discard).expect("a discard");
            }
            RegionKind::Zones(limits) => {
                let unit = limits.write_sectors.max(1);
                for (zone, percent) in (0..region.zones().min(4)).zip([100, 50, 100, 10]) {
                    let from = first + zone * limits.zone_sectors;
                    let whole = limits.capacity * percent / 100 / u64::from(unit);
                    (0..whole).for_each(|at| write(from + at * u64::from(unit), unit));
                }
            }
            RegionKind::Append => {
                let sectors = sectors.min(256);
                (0..sectors).for_each(|at| write(first + at, 1));
                serve(ftl, Bio::discard(Lba(first), (sectors / 4) as u32)).expect("a discard");
            }
            RegionKind::DeviceOwned { .. } => {}
        }
        serve(ftl, Bio::flush()).expect("a flush");
    }
}

/// Reads of every region, fetches moves, writes a little, and flushes; all answers will do.
fn try_everything(ftl: &mut AnyFtl<Media>) {
    let regions: Vec<_> = ftl.caps().regions().collect();
    for region in &regions {
        let step = (region.sectors() / 48).max(1) as usize;
        for lba in region.range.clone().step_by(step) {
            drop(serve(ftl, Bio::read(Lba(lba), 1)));
        }
        drop(serve(ftl, Bio::read(Lba(region.range.start), region.sectors().min(8) as u32)));
    }
    if ftl.caps().raises_attention {
        drop(serve(ftl, Bio::new(Op::FetchUpcall, Lba(0), 16)));
    }
    for region in regions.iter().filter(|region| region.kind.is_host_written()) {
        for at in 0..region.sectors().min(32) {
            drop(serve(ftl, Bio::write(Lba(region.range.start + at), 1, tag(at))));
        }
    }
    drop(serve(ftl, Bio::flush()));
    drop((ftl.check_invariants(), ftl.report(), ftl.erase_units()));
}

/// A sector below a write pointer.
#[derive(Clone)]
struct Sector {
    oob: Oob,
    data: SectorData,
    readable: bool,
}

/// A chunk with its sectors.
#[derive(Clone)]
struct Chunk {
    id: ChunkId,
    info: ChunkInfo,
    sectors: Vec<Sector>,
}

/// All that media hold.
#[derive(Clone)]
struct Content {
    geometry: Geometry,
    chunks: Vec<Chunk>,
    /// Those with sectors, by their place in `chunks`.
    written: Vec<usize>,
    /// Sectors that hold bytes, which the data of the host do not: chunk and place in it.
    metadata: Vec<(usize, usize)>,
}

impl Content {
    fn of(media: &Media) -> Self {
        let geometry = *media.geometry();
        let chunk = |id: ChunkId| {
            let info = media.chunk(id);
            let sector = |at| {
                let at = geometry.ppa(id, at);
                Sector { oob: media.oob(at), data: media.data(at), readable: media.readable(at) }
            };
            Chunk { id, info, sectors: (0..info.wp).map(sector).collect() }
        };
        let chunks: Vec<Chunk> = geometry.all_chunks().map(chunk).collect();
        let written = (0..chunks.len()).filter(|at| !chunks[*at].sectors.is_empty()).collect();
        let all = chunks.iter().enumerate();
        let sectors = all.flat_map(|(at, chunk)| {
            (0..).zip(&chunk.sectors).map(move |(i, sector)| (at, i, sector))
        });
        let metadata = sectors.filter(|(.., sector)| sector.data.bytes().is_some());
        let metadata = metadata.map(|(chunk, at, _)| (chunk, at)).collect();
        Self { geometry, chunks, written, metadata }
    }

    /// Changes one sector, or one chunk.
    fn change(&mut self, numbers: &mut Numbers<'_>) {
        let way = numbers.number::<1>();
        if let 8..=10 = way & 15 {
            let place = numbers.number::<2>() as usize % self.metadata.len().max(1);
            let Some(&(chunk, at)) = self.metadata.get(place) else { return };
            let sector = self.chunks[chunk].sectors.get_mut(at);
            return sector
                .into_iter()
                .for_each(|sector| patch(&mut sector.data, way & 15 > 8, numbers));
        }
        let from = self.sector(numbers);
        let other = (way & 15 == 0).then(|| self.sector(numbers)).flatten();
        let copied = other.map(|(chunk, at)| self.chunks[chunk].sectors[at].clone());
        let Some((chunk, at)) = from else { return };
        let (unit, chunk) = (self.geometry.ws_min as usize, &mut self.chunks[chunk]);
        match way & 15 {
            0 => copied.into_iter().for_each(|copied| chunk.sectors[at] = copied),
            1 | 2 => chunk.sectors[at].oob.key = value(numbers),
            3 => chunk.sectors[at].oob.key ^= 1 << (numbers.number::<1>() & 31),
            4 => chunk.sectors[at].oob.seq = numbers.number::<7>().min(SEQ_MAX),
            5 => {
                let seq = &mut chunk.sectors[at].oob.seq;
                *seq =
                    seq.wrapping_add(numbers.number::<2>()).wrapping_sub(1 << 15) & ((1 << 55) - 1);
            }
            6 => {
                let kind = KINDS[numbers.below(KINDS.len())];
                let sectors = chunk.sectors.iter_mut().skip(at / unit * unit).take(unit);
                sectors.for_each(|sector| sector.oob.kind = kind);
            }
            7 => chunk.sectors[at].oob.aux = value(numbers),
            11 => chunk.sectors[at].data = SectorData::Absent,
            12 => chunk.sectors[at].data = SectorData::Tag(Tag::new(numbers.number::<4>())),
            13 => chunk.sectors[at].readable = false,
            14 => chunk.sectors.truncate(at / unit * unit),
            _ => chunk.info.state = ChunkState::Offline,
        }
    }

    /// The place of a sector.
    fn sector(&self, numbers: &mut Numbers<'_>) -> Option<(usize, usize)> {
        let chunk =
            *self.written.get(numbers.number::<2>() as usize % self.written.len().max(1))?;
        let sectors = self.chunks[chunk].sectors.len();
        (numbers.number::<2>() as usize).checked_rem(sectors).map(|at| (chunk, at))
    }

    /// Media that hold this.
    fn media(&self) -> Media {
        let offline = self.chunks.iter().filter(|chunk| chunk.info.state == ChunkState::Offline);
        let bad_chunks = offline.map(|chunk| chunk.id).collect();
        let config = MediaConfig { bad_chunks, ..MediaConfig::new(self.geometry) };
        let mut media = Media::new(config).expect("media");
        let in_service = |chunk: &&Chunk| chunk.info.state != ChunkState::Offline;
        for chunk in self.chunks.iter().filter(in_service) {
            self.put(&mut media, chunk);
        }
        media
    }

    fn put(&self, media: &mut Media, chunk: &Chunk) {
        let now = Nanos::ZERO;
        let unit = self.geometry.ws_min as usize;
        let keys = vec![0; unit];
        let first = self.geometry.ppa(chunk.id, 0);
        for _ in 0..chunk.info.erases.min(ERASES_MAX) {
            let empty = WriteCmd {
                at: first,
                kind: Kind::Pad,
                seq: 0,
                seq_deltas: &[],
                aux: &[],
                keys: &keys,
                data: &[],
            };
            media.write(now, now, empty).expect("a write");
            media.reset(now, now, chunk.id).expect("a reset");
        }
        for (at, sectors) in (0..).zip(chunk.sectors.chunks_exact(unit)) {
            let at = first.plus(at * self.geometry.ws_min);
            let seq = sectors[0].oob.seq.min(SEQ_MAX);
            let deltas: Vec<u32> =
                sectors.iter().map(|sector| sector.oob.seq.wrapping_sub(seq) as u32).collect();
            let plain = deltas.iter().copied().eq(0..self.geometry.ws_min);
            let aux: Vec<u32> = sectors.iter().map(|sector| sector.oob.aux).collect();
            let keys: Vec<u32> = sectors.iter().map(|sector| sector.oob.key).collect();
            let data: Vec<SectorData> = sectors.iter().map(|sector| sector.data.clone()).collect();
            let cmd = WriteCmd {
                at,
                kind: sectors[0].oob.kind,
                seq,
                seq_deltas: if plain { &[] } else { &deltas },
                aux: if aux.iter().all(|aux| *aux == 0) { &[] } else { &aux },
                keys: &keys,
                data: &data,
            };
            media.write(now, now, cmd).expect("a write");
            let unreadable = (0..).zip(sectors).filter(|(_, sector)| !sector.readable);
            unreadable.for_each(|(index, _)| media.mark_unreadable(at.plus(index)));
        }
    }
}

/// A number, often one at which readers go wrong.
fn value(numbers: &mut Numbers<'_>) -> u32 {
    match numbers.number::<1>() % 6 {
        0 => 0,
        1 => u32::MAX,
        2 => u32::MAX - 1,
        3 => numbers.number::<1>() as u32,
        4 => numbers.number::<2>() as u32,
        _ => numbers.number::<4>() as u32,
    }
}

/// The checksum that metadata in these bytes would have, and where, in each of the forms that there are.
fn checksums(bytes: &SectorBytes) -> [(usize, u32); 3] {
    let journal = crc32c::crc32c_append(crc32c::crc32c(&bytes[..20]), &bytes[24..]);
    [(0, crc32c::crc32c(&bytes[4..])), (4, crc32c::crc32c(&bytes[8..52])), (20, journal)]
}

/// Replaces a word of a content, if it has bytes; a checksum that it has holds again if `seals`.
fn patch(data: &mut SectorData, seals: bool, numbers: &mut Numbers<'_>) {
    let at = numbers.number::<2>() as usize % 1_024 * 4;
    let value = value(numbers).to_le_bytes();
    let Some(mut bytes) = data.bytes().map(|bytes| *bytes) else { return };
    let holds = |&(at, sum): &(usize, u32)| bytes[at..at + 4] == sum.to_le_bytes();
    let form = checksums(&bytes).iter().position(holds).filter(|_| seals);
    bytes[at..at + 4].copy_from_slice(&value);
    if let Some(form) = form {
        let (at, sum) = checksums(&bytes)[form];
        bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
    }
    *data = SectorData::Bytes(Arc::new(bytes));
}
