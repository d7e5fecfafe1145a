//! Host writes a second of real time over a map that is cached in part, beside the resident map in the
//! same run: the stacks of selective mapping-table loading and DFTL as they ship, on an eighth of their
//! device, with 32 % of the table in RAM. Four fifths of the writes go to a fifth of the device. *Filled*
//! is the paper's device, written four fifths full before; *steady* has been overwritten until garbage
//! collection moves several sectors for each that the host writes.
//!
//! `cargo bench -p nandscape-lab --bench mapcache [STACK]`; of the stacks, those whose name begins so.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures wall time")]

use nandscape_block::{Bio, BlockDevice, Flags, Lba, Payload, Submit, Token};
use nandscape_ftl::{AnyFtl, Detail, Ftl, FtlRun};
use nandscape_lab::stack::Stack;
use nandscape_media::Media;
use nandscape_rt::{Nanos, Stream};
use std::time::Instant;

const STACKS: [&str; 4] = ["selective-lru", "selective-hotness", "selective-journal", "dftl"];
/// Share of the device that is written before.
const FILL: f64 = 0.8;
const DEPTH: usize = 32;
const WRITES: u64 = 500_000;
/// Sectors of the circular journal, which takes one write in ten.
const JOURNAL: u64 = 32 << 10;

/// A host that keeps writes in flight.
struct Host {
    ftl: AnyFtl<Media>,
    now: Nanos,
    in_flight: usize,
    rng: Stream,
    /// Sectors that are written, from the first on.
    used: u64,
    journaled: u64,
}

impl Host {
    fn new(stack: &str, cache: &str) -> Self {
        let set = ["media.chunks=128", "media.payload=none", cache];
        let stack = Stack::load(stack, &set).expect("a shipped stack");
        let mut media = Media::new(stack.media.config(1)).expect("sound");
        media.set_timing(stack.media.timing.nand);
        let run = FtlRun { keep_content: false, ..FtlRun::default() };
        let ftl = stack.ftl.format(media, run, stack.link).expect("fits");
        let used = (ftl.caps().sectors as f64 * FILL) as u64;
        let rng = Stream::new(1, "load");
        let mut host = Self { now: ftl.now(), ftl, in_flight: 0, rng, used, journaled: 0 };
        for lba in (0..used).step_by(64) {
            host.write(Bio::write(Lba(lba), 64.min(used - lba) as u32, Payload::None));
        }
        host
    }

    fn write(&mut self, bio: Bio) {
        match self.ftl.submit(self.now, bio, Token(0)) {
            Submit::Done(done) => assert!(done.result.is_ok(), "{done:?}"),
            Submit::Pending => self.in_flight += 1,
        }
        let mut done = Vec::new();
        while self.in_flight >= DEPTH {
            self.now = self.now.max(self.ftl.next_event().expect("something moves"));
            self.ftl.advance(self.now, &mut done);
            self.in_flight -= done.len();
            done.clear();
        }
    }

    fn overwrite(&mut self, writes: u64) {
        let data = self.used - JOURNAL;
        for _ in 0..writes {
            let bio = if self.rng.chance(0.1) {
                self.journaled += 1;
                let lba = Lba(self.journaled % JOURNAL);
                Bio::write(lba, 1, Payload::None).with(Flags::JOURNAL)
            } else {
                let span = if self.rng.chance(0.8) { data / 5 } else { data };
                Bio::write(Lba(JOURNAL + self.rng.below(span)), 1, Payload::None)
            };
            self.write(bio);
        }
    }

    /// Writes a second; the share of look-ups that hit, and sectors written to media a host write.
    fn measure(&mut self) -> (f64, f64, f64) {
        self.ftl.reset_counts();
        let started = Instant::now();
        self.overwrite(WRITES);
        let per_s = WRITES as f64 / started.elapsed().as_secs_f64();
        let report = self.ftl.report();
        let Detail::Pblk(detail) = self.ftl.detail() else { panic!("a pblk") };
        let hits = detail.map.map_or(1.0, |map| map.hit_ratio());
        let moved = report.sectors;
        let written = moved.user + moved.gc + moved.pad + moved.line_meta + moved.map;
        (per_s, hits, written as f64 / WRITES as f64)
    }
}

fn print(name: &str, (per_s, hits, written): (f64, f64, f64)) {
    println!(
        "{name:<36} {:>6.2} M host writes/s  {:>5.1} % hits  {written:>5.2} sectors to media a write",
        per_s / 1e6,
        100.0 * hits
    );
}

fn main() {
    let asked = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let asked = asked.unwrap_or_default();
    for stack in STACKS.into_iter().filter(|stack| stack.starts_with(&asked)) {
        for (cache, key) in [("100 %", "ftl.map.cache=100%"), ("32 %", "ftl.map.cache=32%")] {
            let mut host = Host::new(stack, key);
            print(&format!("{stack}, {cache}, filled"), host.measure());
            host.overwrite(host.used);
            print(&format!("{stack}, {cache}, steady"), host.measure());
        }
    }
}
