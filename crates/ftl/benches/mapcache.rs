//! Host writes a second of real time over a map that is cached in part, beside the resident map in the
//! same run: 32 % of the table in RAM, nine of ten writes to a fifth of the device, steady state.

use nandscape_block::{Bio, BlockDevice, Lba, Payload, Submit, Token};
use nandscape_ftl::Pblk;
use nandscape_ftl::config::{CacheSize, Config, HotnessConfig, MapConfig, MapKind, MapPolicy};
use nandscape_media::{Geometry, Media, MediaConfig, PayloadMode, Timing};
use nandscape_rt::{Nanos, Stream};
use std::time::Instant;

/// 8 GiB.
const GEOMETRY: Geometry = Geometry {
    groups: 2,
    units: 4,
    chunks: 128,
    sectors: 2_048,
    ws_min: 4,
    ws_opt: 8,
    mw_cunits: 24,
    maxoc: 0,
    maxocpu: 0,
};
const CACHE_PERCENT: u32 = 32;
const DEPTH: usize = 32;
const WRITES: u64 = 2_000_000;

/// A host that keeps writes in flight.
struct Host {
    pblk: Pblk<Media>,
    now: Nanos,
    in_flight: usize,
    rng: Stream,
}

impl Host {
    fn new(map: MapKind) -> Self {
        let timing = Timing::preset("nvmevirt-970pro").expect("a preset");
        let media =
            MediaConfig { timing, payload: PayloadMode::None, ..MediaConfig::new(GEOMETRY) };
        let media = Media::new(media).expect("sound");
        let config = Config { map, keep_content: false, op_percent: Some(20), ..Config::default() };
        let pblk = Pblk::format(media, config).expect("fits");
        let mut host = Self { now: pblk.now(), pblk, in_flight: 0, rng: Stream::new(1, "load") };
        for lba in (0..host.sectors()).step_by(64) {
            host.write(Lba(lba), 64.min(host.sectors() - lba) as u32);
        }
        host.overwrite(host.sectors());
        host
    }

    fn sectors(&self) -> u64 {
        self.pblk.caps().sectors
    }

    fn write(&mut self, lba: Lba, sectors: u32) {
        let bio = Bio::write(lba, sectors, Payload::None);
        match self.pblk.submit(self.now, bio, Token(0)) {
            Submit::Done(done) => assert!(done.result.is_ok(), "{done:?}"),
            Submit::Pending => self.in_flight += 1,
        }
        let mut done = Vec::new();
        while self.in_flight >= DEPTH {
            self.now = self.now.max(self.pblk.next_event().expect("something moves"));
            self.pblk.advance(self.now, &mut done);
            self.in_flight -= done.len();
            done.clear();
        }
    }

    fn overwrite(&mut self, writes: u64) {
        let sectors = self.sectors();
        for _ in 0..writes {
            let span = if self.rng.chance(0.9) { sectors / 5 } else { sectors };
            let lba = Lba(self.rng.below(span));
            self.write(lba, 1);
        }
    }

    /// Writes a second, and the share of look-ups that hit.
    #[allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    fn measure(&mut self) -> (f64, f64) {
        self.pblk.reset_stats();
        let started = Instant::now();
        self.overwrite(WRITES);
        let per_s = WRITES as f64 / started.elapsed().as_secs_f64();
        let hits = self.pblk.stats().map.map_or(1.0, |map| map.hit_ratio());
        (per_s, hits)
    }
}

fn main() {
    let cached = |policy| {
        let cache = CacheSize::Percent(CACHE_PERCENT);
        MapKind::Cached(MapConfig { block_bytes: 4_096, cache, policy, ..MapConfig::default() })
    };
    let (resident_per_s, _) = Host::new(MapKind::Resident).measure();
    println!("{:<18} {:>6.2} M host writes/s", "resident", resident_per_s / 1e6);
    let policies = [
        ("lru", MapPolicy::Lru),
        ("hotness", MapPolicy::Hotness(HotnessConfig::history())),
        ("hotness-journal", MapPolicy::Hotness(HotnessConfig::journal())),
        ("dftl", MapPolicy::Dftl { protected_percent: 80 }),
    ];
    for (name, policy) in policies {
        let (per_s, hits) = Host::new(cached(policy)).measure();
        println!(
            "{name:<18} {:>6.2} M host writes/s, {:.2} of resident, {:.1} % hits",
            per_s / 1e6,
            per_s / resident_per_s,
            100.0 * hits
        );
    }
}
