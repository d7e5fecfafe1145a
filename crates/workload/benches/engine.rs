//! What the engine itself costs: I/Os a second against a device that answers `Done(now + constant)`
//! at once, beside a bare loop that draws an address, calls the same device and records a latency.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures wall time")]

use hdrhistogram::Histogram;
use nandscape_block::{Bio, BlockDevice, Completion, DeviceCaps, Done, Lba, Submit, Token};
use nandscape_rt::{Nanos, Stream};
use nandscape_workload::engine::{Engine, NoProbe, Options};
use nandscape_workload::fio::{HostEnvironment, parse};
use nandscape_workload::latency::Latencies;
use std::hint::black_box;
use std::time::Instant;

/// I/Os a measurement, unless the first number among the arguments says otherwise.
const IOS: u64 = 5_000_000;

/// Answers everything after a fixed time.
struct Null(DeviceCaps);

impl BlockDevice for Null {
    fn caps(&self) -> &DeviceCaps {
        &self.0
    }

    #[inline]
    fn submit(&mut self, now: Nanos, bio: Bio, _: Token) -> Submit {
        Submit::Done(Done::ok(now + Nanos(10_000 + (black_box(bio.lba).0 & 1_023))))
    }

    fn next_event(&self) -> Option<Nanos> {
        None
    }

    fn advance(&mut self, _: Nanos, _: &mut Vec<Completion>) {}
}

fn null() -> Null {
    Null(DeviceCaps { sectors: 1 << 21, ..DeviceCaps::default() })
}

/// Nanoseconds an I/O of the engine, running this job.
fn engine_ns(keys: &str, ios: u64) -> f64 {
    let text = format!("[bench]\n{keys}\nnumber_ios={ios}\nio_size=1p\n");
    let file = parse(&text, "bench", &HostEnvironment).expect("a valid job");
    let mut device = null();
    let mut engine = Engine::new(&file, device.caps(), &Options::default()).expect("it fits");
    let start = Instant::now();
    engine.run_until(&mut device, &mut NoProbe, None).expect("it runs");
    let elapsed_ns = start.elapsed().as_nanos() as f64;
    let results = engine.finish();
    let counted: u64 = results.jobs[0].directions.iter().map(|direction| direction.ios).sum();
    assert_eq!(counted % ios, 0);
    elapsed_ns / counted as f64
}

/// Nanoseconds of the same without an engine, one request at a time.
fn bare_ns(ios: u64) -> f64 {
    let mut device = null();
    let mut random = Stream::new(1, "bare");
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).expect("valid bounds");
    let mut now = Nanos::ZERO;
    let start = Instant::now();
    for _ in 0..ios {
        let lba = Lba(random.below(1 << 21));
        if let Submit::Done(done) = device.submit(now, Bio::read(lba, 1), Token(0)) {
            histogram.saturating_record((done.at - now).0);
            now = done.at;
        }
    }
    black_box((histogram.len(), now));
    start.elapsed().as_nanos() as f64 / ios as f64
}

/// Nanoseconds of a call of `record` with latencies that vary as those of the device.
fn record_ns(ios: u64, mut record: impl FnMut(u64)) -> f64 {
    let start = Instant::now();
    (0..ios).for_each(|io| record(black_box(10_000 + ((io * 7) & 1_023))));
    start.elapsed().as_nanos() as f64 / ios as f64
}

/// Our histogram beside the library's, both with three significant digits.
fn compare_histograms(ios: u64) {
    let mut flat = Latencies::default();
    let mut library = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).expect("valid bounds");
    let flat_ns = record_ns(ios, |ns| flat.record(Nanos(ns)));
    let library_ns = record_ns(ios, |ns| library.saturating_record(ns));
    assert_eq!(flat.count(), library.len());
    println!("record a latency: ours {flat_ns:.1} ns, hdrhistogram {library_ns:.1} ns");
}

/// The best of three: the others were disturbed.
fn best(measure: impl Fn() -> f64) -> f64 {
    (0..3).map(|_| measure()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let ios = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(IOS);
    let bare = best(|| bare_ns(ios));
    compare_histograms(ios);
    println!("bare loop, one at a time             {bare:6.1} ns/IO");
    for (name, keys) in [
        ("randwrite norandommap iodepth=32", "rw=randwrite\nnorandommap\niodepth=32"),
        ("randwrite iodepth=32", "rw=randwrite\niodepth=32"),
        ("randread iodepth=1", "rw=randread\niodepth=1"),
        ("randread iodepth=256", "rw=randread\niodepth=256"),
        ("write iodepth=32", "rw=write\niodepth=32"),
        ("randrw iodepth=32 fsync=16", "rw=randrw\niodepth=32\nfsync=16"),
        ("4 jobs randrw iodepth=8", "rw=randrw\niodepth=8\nnumjobs=4\ngroup_reporting"),
    ] {
        let ns = best(|| engine_ns(keys, ios));
        let ratio = ns / bare;
        println!("{name:36} {ns:6.1} ns/IO {:6.1} M/s, {ratio:.1} x bare", 1e3 / ns);
    }
}
