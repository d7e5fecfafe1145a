//! Nanoseconds of real time per command on the main paths, printed as a table: writes of one
//! one-shot page, reads of one sector, out-of-band look-ups, resets; with timing and without.

use nandscape_media::{
    ChunkId, DeviceTiming, Geometry, Internal, KEY_MAX, Kind, Linked, Media, MediaConfig,
    OpenChannel, PayloadMode, Ppa, UnitId, WriteCmd,
};
use nandscape_rt::{Nanos, Stream};
use std::hint::black_box;
use std::time::Instant;

const GEOMETRY: Geometry = Geometry {
    groups: 2,
    units: 4,
    chunks: 64,
    sectors: 4096,
    ws_min: 4,
    ws_opt: 8,
    mw_cunits: 24,
    maxoc: 0,
    maxocpu: 0,
};

fn device(timing: DeviceTiming, payload: PayloadMode) -> Linked<Media> {
    let config = MediaConfig { timing: timing.nand, payload, ..MediaConfig::new(GEOMETRY) };
    Linked::new(Media::new(config).expect("valid config"), timing.link)
}

fn chunks() -> impl Iterator<Item = ChunkId> {
    let units = GEOMETRY.total_units();
    (0..GEOMETRY.chunks)
        .flat_map(move |chunk| (0..units).map(move |unit| ChunkId { unit: UnitId(unit), chunk }))
}

/// Writes every sector, line by line, unit after unit, as pblk does; returns the time afterwards.
fn fill(media: &mut Linked<Media>, mut now: Nanos, seq: u64) -> Nanos {
    let keys: [u32; 8] = std::array::from_fn(|i| i as u32 % KEY_MAX);
    for line in 0..GEOMETRY.chunks {
        for sector in (0..GEOMETRY.sectors).step_by(8) {
            for unit in 0..GEOMETRY.total_units() {
                let at = GEOMETRY.ppa(ChunkId { unit: UnitId(unit), chunk: line }, sector);
                let cmd =
                    WriteCmd { at, kind: Kind::Data, seq, seq_deltas: &[], keys: &keys, data: &[] };
                now =
                    black_box(media.write(now, now, cmd)).expect("legal write").at.min(now + STEP);
            }
        }
    }
    now
}

/// Virtual time between submissions.
const STEP: Nanos = Nanos(32_000);

fn reset_all(media: &mut Linked<Media>, now: Nanos) {
    for chunk in chunks() {
        black_box(media.reset(now, now, chunk)).expect("legal reset");
    }
}

fn random_reads(media: &mut Linked<Media>, mut now: Nanos, addresses: &[Ppa]) {
    for &at in addresses {
        now += Nanos(12_000);
        black_box(media.read(now, now, at, 1, &mut Internal)).expect("legal read");
    }
}

fn oob_of(media: &Linked<Media>, addresses: &[Ppa]) -> u64 {
    addresses.iter().map(|&at| u64::from(media.oob(at).key)).sum()
}

/// Runs `work` and prints what one of its `commands` took.
#[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn measure<T>(name: &str, commands: u64, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let result = black_box(work());
    let ns = begin.elapsed().as_nanos() as f64 / commands as f64;
    println!("  {name:<38} {ns:>8.1} ns");
    result
}

fn bench(name: &str, timing: DeviceTiming, payload: PayloadMode) {
    println!("{name}, payload {payload:?}");
    let mut media = device(timing, payload);
    let writes = GEOMETRY.total_sectors() / 8;
    let now = measure("write 8 sectors, first touch", writes, || fill(&mut media, Nanos::ZERO, 0));
    measure("reset", chunks().count() as u64, || reset_all(&mut media, now));
    let now = measure("write 8 sectors", writes, || fill(&mut media, now, 1 << 30));
    let mut rng = Stream::new(1, "bench");
    let addresses: Vec<Ppa> = (0..2_000_000)
        .map(|_| {
            let chunk = rng.below(u64::from(GEOMETRY.chunks)) as u32;
            let unit = UnitId(rng.below(u64::from(GEOMETRY.total_units())) as u32);
            let sector = rng.below(u64::from(GEOMETRY.sectors)) as u32;
            GEOMETRY.ppa(ChunkId { unit, chunk }, sector)
        })
        .collect();
    let count = addresses.len() as u64;
    measure("read 1 random sector", count, || random_reads(&mut media, now, &addresses));
    measure("out-of-band data, random", count, || oob_of(&media, &addresses));
}

fn main() {
    let timing = DeviceTiming::preset("nvmevirt-970pro").expect("shipped preset");
    bench("nvmevirt-970pro", timing, PayloadMode::None);
    bench("none", DeviceTiming::none(), PayloadMode::None);
    bench("nvmevirt-970pro", timing, PayloadMode::Tags);
}
