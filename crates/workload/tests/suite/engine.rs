//! fio's semantics in virtual time: which I/O is issued, when, and how often.

use crate::common;

use common::{Defect, TestDevice, jobs, run, try_run};
use nandscape_block::{BlockDevice, Flags, Fua, Op};
use nandscape_rt::{Executor, Nanos};
use nandscape_workload::Direction;
use nandscape_workload::engine::{self, Engine, EngineError, NoProbe, Options, Probe, RunState};

const SECTORS: u64 = 1_000;

fn device() -> TestDevice {
    TestDevice::new(SECTORS)
}

fn sorted(mut values: Vec<u64>) -> Vec<u64> {
    values.sort_unstable();
    values
}

/// With the random map, a pass touches every block exactly once.
#[test]
fn a_random_pass_covers_every_block_once() {
    let mut device = device();
    run("[job]\nrw=randwrite\niodepth=7\nloops=3\n", &mut device);
    let targets = device.targets(Op::Write);
    let passes: Vec<&[u64]> = targets.chunks(SECTORS as usize).collect();
    assert_eq!(passes.len(), 3);
    for pass in &passes {
        assert_eq!(sorted(pass.to_vec()), (0..SECTORS).collect::<Vec<_>>());
    }
}

/// Reads and writes of a mixed pass share the map, as in fio.
#[test]
fn a_mixed_pass_covers_every_block_once_in_all() {
    let mut device = device();
    run("[job]\nrw=randrw\nrwmixread=30\n", &mut device);
    let (reads, writes) = (device.targets(Op::Read), device.targets(Op::Write));
    assert!((200..400).contains(&reads.len()), "{}", reads.len());
    assert_eq!(sorted([reads, writes].concat()), (0..SECTORS).collect::<Vec<_>>());
}

/// Without the map, draws repeat; skewed ones repeat more.
#[test]
fn independent_draws_repeat() {
    let distinct = |keys: &str| {
        let mut device = device();
        run(&format!("[job]\nrw=randread\n{keys}\n"), &mut device);
        let mut targets = sorted(device.targets(Op::Read));
        assert_eq!(targets.len() as u64, SECTORS);
        targets.dedup();
        targets.len()
    };
    let uniform = distinct("norandommap");
    assert!((600..665).contains(&uniform), "{uniform}, of 632 expected");
    for skewed in ["zipf:1.2", "pareto:0.1", "normal:5"] {
        let skewed = distinct(&format!("random_distribution={skewed}"));
        assert!(skewed < 500, "{skewed}");
    }
}

/// Sequential I/O wraps at the end of its range when there is more to transfer than fits.
#[test]
fn sequential_io_wraps_in_its_range() {
    let mut device = device();
    run("[job]\nrw=read\noffset=40k\nsize=20k\nio_size=32k\n", &mut device);
    assert_eq!(device.targets(Op::Read), [10, 11, 12, 13, 14, 10, 11, 12]);
}

/// Percentages are of the device, and of `size` for `io_size`.
#[test]
fn sizes_can_be_percentages() {
    let mut device = device();
    run("[job]\nrw=read\noffset=50%\nsize=1%\nio_size=50%\n", &mut device);
    assert_eq!(device.targets(Op::Read), [500, 501, 502, 503, 504]);
}

/// Each direction has its own block size.
#[test]
fn block_sizes_differ_by_direction() {
    let mut device = device();
    run("[job]\nrw=rw\nbs=4k,16k\nio_size=400k\n", &mut device);
    for (_, bio) in &device.log {
        assert_eq!(bio.sectors, if bio.op == Op::Write { 4 } else { 1 });
        assert_eq!(bio.lba.0 % u64::from(bio.sectors), 0);
    }
}

/// `number_ios` and `loops` multiply, and the range is passed over as if it were one loop.
#[test]
fn number_ios_and_loops_multiply() {
    let mut device = device();
    let results = run("[job]\nrw=write\nnumber_ios=3\nloops=2\n", &mut device);
    assert_eq!(device.targets(Op::Write), [0, 1, 2, 3, 4, 5]);
    assert_eq!(results.jobs[0].direction(Direction::Write).bytes, 6 * 4096);
}

/// Exactly `iodepth` requests are in flight, from the first instant on.
#[test]
fn the_queue_is_kept_full() {
    let mut device = device();
    device.spread_ns = 0;
    let results = run("[job]\nrw=randread\niodepth=8\nnumber_ios=80\n", &mut device);
    for (round, batch) in device.log.chunks(8).enumerate() {
        assert!(batch.iter().all(|(at, _)| *at == Nanos(10_000 * round as u64)));
    }
    let job = &results.jobs[0];
    assert_eq!((job.runtime, job.iops(Direction::Read)), (Nanos(100_000), 800_000.0));
    let latency = &job.direction(Direction::Read).latency;
    assert_eq!((latency.min(), latency.max()), (Nanos(10_000), Nanos(10_000)));
    assert_eq!(latency.mean_ns(), 10_000.0);
}

/// The nth I/O starts exactly when the rate allows it, to the nanosecond.
#[test]
fn rates_are_exact_in_virtual_time() {
    let mut device = device();
    run("[job]\nrw=randread\niodepth=4\nrate_iops=3000\nnumber_ios=100\n", &mut device);
    for (n, (at, _)) in device.log.iter().enumerate() {
        assert_eq!(at.0, n as u64 * 1_000_000_000 / 3_000);
    }
    let mut device = TestDevice::new(SECTORS);
    run("[job]\nrw=rw\niodepth=4\nrate=,4m\nnumber_ios=200\n", &mut device);
    let writes: Vec<Nanos> =
        device.log.iter().filter(|(_, bio)| bio.op == Op::Write).map(|(at, _)| *at).collect();
    for (n, at) in writes.iter().enumerate() {
        assert!(at.0 >= n as u64 * 1_000_000_000 / 1_024, "write {n} came too early");
    }
}

/// `thinktime` begins when all that was in flight is back.
#[test]
fn thinking_waits_for_what_is_in_flight() {
    let mut device = device();
    device.spread_ns = 0;
    run("[job]\nrw=read\niodepth=2\nthinktime=1ms\nnumber_ios=6\n", &mut device);
    let starts: Vec<u64> = device.log.iter().map(|(at, _)| at.0).collect();
    assert_eq!(starts, [0, 0, 1_010_000, 1_010_000, 2_020_000, 2_020_000]);
}

/// `runtime` ends a job that has more to do; `time_based` prolongs one that has less.
#[test]
fn time_limits_hold() {
    let mut device = device();
    device.spread_ns = 0;
    let cut = run("[job]\nrw=read\nruntime=105us\n", &mut device);
    assert_eq!(cut.jobs[0].direction(Direction::Read).ios, 11);
    let text = "[job]\nrw=read\nsize=8k\ntime_based\nruntime=1ms\n";
    assert_eq!(run(text, &mut device).jobs[0].direction(Direction::Read).ios, 100);
}

/// What completes under the ramp is not counted, and the ramp comes on top of the runtime.
#[test]
fn the_ramp_is_left_out() {
    let mut device = device();
    device.spread_ns = 0;
    let text = "[job]\nrw=read\ntime_based\nruntime=1ms\nramp_time=501us\n";
    let results = run(text, &mut device);
    let job = &results.jobs[0];
    assert_eq!(device.log.len(), 151);
    assert_eq!(job.direction(Direction::Read).ios, 101);
    assert_eq!(job.runtime, Nanos(1_009_000));
}

/// A flush comes behind every Nth write but the last, and nothing else of the job before it is back.
#[test]
fn fsync_flushes_behind_every_nth_write() {
    let mut device = device();
    let results = run("[job]\nrw=write\nfsync=3\nfdatasync=4\nnumber_ios=12\n", &mut device);
    let ops: String =
        device.log.iter().map(|(_, bio)| if bio.op == Op::Flush { 'f' } else { 'w' }).collect();
    assert_eq!(ops, "wwwfwfwwfwwfwfwww");
    assert_eq!(results.jobs[0].sync.count(), 5);
    let mut device = TestDevice::new(SECTORS);
    run("[job]\nrw=randwrite\niodepth=16\nfsync=5\nnumber_ios=100\n", &mut device);
    for pair in device.log.windows(2).filter(|pair| pair[0].1.op == Op::Flush) {
        assert!(pair[1].0 >= pair[0].0 + Nanos(10_000), "a write passed an fsync");
    }
}

/// `sync` is FUA where the device has it, and a flush behind each write where it has not; then the
/// write's latency includes the flush.
#[test]
fn sync_writes_are_durable_when_they_complete() {
    let mut device = device();
    device.spread_ns = 0;
    run("[job]\nrw=write\nsync=1\nnumber_ios=4\n", &mut device);
    assert!(device.log.iter().all(|(_, bio)| bio.flags.has(Flags::FUA)));
    let mut device = TestDevice::new(SECTORS);
    device.spread_ns = 0;
    device.caps.fua = Fua::Refused;
    let results = run("[job]\nrw=write\nsync=dsync\nnumber_ios=4\n", &mut device);
    let ops: Vec<Op> = device.log.iter().map(|(_, bio)| bio.op).collect();
    assert_eq!(ops, [Op::Write, Op::Flush].repeat(4));
    let writes = results.jobs[0].direction(Direction::Write);
    assert_eq!((writes.ios, writes.latency.min()), (4, Nanos(20_000)));
}

/// `trimwrite` writes each block when its trim is back.
#[test]
fn trimwrite_trims_and_then_writes() {
    for keys in ["rw=trimwrite", "rw=randtrimwrite\niodepth=4"] {
        let mut device = device();
        let results = run(&format!("[job]\n{keys}\nnumber_ios=50\n"), &mut device);
        assert_eq!(
            sorted(device.targets(Op::Discard)),
            sorted(device.targets(Op::Write)),
            "{keys}"
        );
        for (trimmed, bio) in device.log.iter().filter(|(_, bio)| bio.op == Op::Discard) {
            let write = device.log.iter().find(|(_, w)| w.op == Op::Write && w.lba == bio.lba);
            assert!(write.is_some_and(|(at, _)| *at > *trimmed));
        }
        assert_eq!(results.jobs[0].direction(Direction::Trim).ios, 50);
        assert_eq!(results.jobs[0].direction(Direction::Write).ios, 50);
    }
}

/// `end_fsync` flushes once, behind the last write.
#[test]
fn end_fsync_is_the_last_request() {
    let mut device = device();
    run("[job]\nrw=randwrite\niodepth=9\nend_fsync\n", &mut device);
    let flushes: Vec<usize> =
        (0..device.log.len()).filter(|i| device.log[*i].1.op == Op::Flush).collect();
    assert_eq!(flushes, [SECTORS as usize]);
    assert!(device.log[SECTORS as usize].0 >= device.log[SECTORS as usize - 1].0 + Nanos(10_000));
}

/// Jobs run together; a stonewall waits for all before it; `startdelay` counts from there.
#[test]
fn stonewalls_and_delays_order_jobs() {
    let mut device = device();
    device.spread_ns = 0;
    let text = "[global]\nrw=write\nnumber_ios=2\n[a]\n[b]\noffset=400k\nsize=128k\n\
                startdelay=1ms\n[c]\nstonewall\noffset=800k\nsize=128k\n";
    run(text, &mut device);
    let log: Vec<(u64, u64)> = device.log.iter().map(|(at, bio)| (at.0, bio.lba.0)).collect();
    let expected = [
        (0, 0),
        (10_000, 1),
        (1_000_000, 100),
        (1_010_000, 101),
        (1_020_000, 200),
        (1_030_000, 201),
    ];
    assert_eq!(log, expected);
}

/// Each clone draws when it begins between the bounds of `startdelay`, and the seed decides.
#[test]
fn clones_begin_apart() {
    let text = "[job]\nrw=write\nnumber_ios=1\nnumjobs=8\nstartdelay=1ms-2ms\n";
    let starts = |seed: u64| {
        let mut device = device();
        let options = Options { seed, ..Options::default() };
        let mut engine = Engine::new(&jobs(text), device.caps(), &options).unwrap();
        engine.run_until(&mut device, &mut NoProbe, None).unwrap();
        device.log.iter().map(|(at, _)| at.0).collect::<Vec<u64>>()
    };
    let (one, other) = (starts(1), starts(2));
    assert!(one.iter().all(|at| (1_000_000..=2_000_000).contains(at)), "{one:?}");
    let mut distinct = one.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), 8, "{one:?}");
    assert_ne!(one, other);
    assert_eq!(one, starts(1));
}

/// Clones draw different addresses from the same range, and one report holds them all.
#[test]
fn group_reporting_merges_clones() {
    let mut device = device();
    let text = "[job]\nrw=randread\nnumjobs=4\nnumber_ios=100\n";
    let apart = run(text, &mut device);
    let together = run(&format!("{text}group_reporting\n"), &mut TestDevice::new(SECTORS));
    assert_eq!((apart.jobs.len(), together.jobs.len()), (4, 1));
    let merged = &together.jobs[0];
    assert_eq!((merged.jobs, merged.direction(Direction::Read).latency.count()), (4, 400));
    assert_eq!(merged.runtime, apart.jobs.iter().map(|job| job.runtime).max().unwrap());
    let reads = device.targets(Op::Read);
    let first: Vec<u64> = reads.iter().step_by(4).copied().collect();
    assert_ne!(first, reads.iter().skip(1).step_by(4).copied().collect::<Vec<_>>());
}

/// The same seed gives the same run; another seed, name or `randseed` another one.
#[test]
fn runs_are_determined_by_their_seed() {
    let trace = |text: &str, seed: u64| {
        let mut device = device();
        let options = Options { seed, ..Options::default() };
        let mut engine = Engine::new(&jobs(text), device.caps(), &options).unwrap();
        engine.run_until(&mut device, &mut NoProbe, None).unwrap();
        (engine.finish(), device.log)
    };
    let text = "[job]\nrw=randrw\niodepth=8\nfsync=10\nnumjobs=2\n";
    assert_eq!(trace(text, 7), trace(text, 7));
    assert_ne!(trace(text, 7).1, trace(text, 8).1);
    assert_ne!(trace(text, 7).1, trace(&text.replace("[job]", "[bob]"), 7).1);
    assert_ne!(trace(text, 7).1, trace(&format!("{text}randseed=5\n"), 7).1);
}

const MIXED: &str = "[a]\nrw=randrw\nbs=4k,32k\niodepth=8\nfsync=7\nnumjobs=2\nverify=crc32c\n\
                     size=50%\n[b]\nrw=randtrimwrite\nsize=50%\noffset=50%\nrate_iops=20000\n\
                     [c]\nstonewall\nrw=write\nsync=1\nthinktime=20\nnumber_ios=50\n";

/// Whether a device answers at once or later makes no difference, nor does splitting bios, nor
/// stopping on the way, nor running as a task beside others.
#[test]
fn ways_of_running_agree() {
    // So widely spread that no two requests complete at the same instant.
    let mut prompt = device();
    prompt.spread_ns = 1 << 30;
    let mut later = prompt.clone();
    later.pending = true;
    let text = MIXED.replace("rate_iops=20000", "rate_iops=20");
    let prompt = run(&text, &mut prompt);
    assert!(!prompt.failed());
    assert_eq!(run(&text, &mut later), prompt, "answers that come later");

    let mut plain = device();
    plain.spread_ns = 0;
    let reference = run(MIXED, &mut plain);
    assert!(!reference.failed());

    let mut small = device();
    small.spread_ns = 0;
    small.caps.max_sectors = 3;
    assert_eq!(run(MIXED, &mut small).jobs, reference.jobs, "small bios");

    let mut sliced = device();
    sliced.spread_ns = 0;
    let mut engine = Engine::new(&jobs(MIXED), sliced.caps(), &Options::default()).unwrap();
    let mut until = Nanos::ZERO;
    while engine.run_until(&mut sliced, &mut NoProbe, Some(until)).unwrap() == RunState::Paused {
        assert_eq!(engine.now(), until);
        until += Nanos(7_777);
    }
    assert_eq!(engine.finish(), reference, "in slices");

    let mut beside = device();
    beside.spread_ns = 0;
    let mut executor = Executor::on_virtual_clock();
    let handle = executor.handle();
    let clock = handle.clone();
    handle.spawn_daemon("clock", async move {
        loop {
            clock.sleep(Nanos(3_333)).await;
        }
    });
    let results = executor.block_on(async move {
        let mut engine = Engine::new(&jobs(MIXED), beside.caps(), &Options::default()).unwrap();
        engine::run(&handle, &mut engine, &mut beside, &mut NoProbe).await.unwrap();
        engine.finish()
    });
    assert_eq!(results.unwrap(), reference, "as a task");
}

/// Points come at even distances, hold totals, and show what the probe sees.
#[test]
fn the_series_samples_totals() {
    struct Requests;
    impl Probe<TestDevice> for Requests {
        type Sample = usize;
        fn sample(&mut self, device: &TestDevice, _: Nanos) -> usize {
            device.log.len()
        }
    }
    let mut device = device();
    device.spread_ns = 0;
    let file = jobs("[job]\nrw=randwrite\ntime_based\nruntime=9995us\n");
    let options = Options { interval: Nanos::from_ms(1), ..Options::default() };
    let mut engine = Engine::new(&file, device.caps(), &options).unwrap();
    engine.run_until(&mut device, &mut Requests, None).unwrap();
    let series = engine.finish().series;
    assert_eq!(series.points.len(), 10);
    for (index, point) in series.points.iter().enumerate() {
        let n = index as u64 + 1;
        assert_eq!(point.at, Nanos::from_ms(n));
        assert_eq!((point.ios[1], point.bytes[1]), (100 * n, 409_600 * n));
        assert_eq!(point.sample, (100 * n + u64::from(n < 10)) as usize);
    }
}

/// An I/O error ends its job, with its place; the others go on.
#[test]
fn an_io_error_ends_its_job() {
    let mut device = device();
    device.defect = Some(Defect::Fails(17));
    let text = "[a]\nrw=write\niodepth=4\n[b]\nrw=read\noffset=50%\n";
    let results = run(text, &mut device);
    assert!(results.failed());
    let [a, b] = results.jobs.as_slice() else { panic!() };
    assert!(a.failed() && !b.failed());
    assert_eq!((a.errors, a.failures[0].lba.0), (1, 17));
    assert!((17..24).contains(&a.direction(Direction::Write).ios));
    assert_eq!(b.direction(Direction::Read).ios, 500);
    let tolerant = run(&text.replace("[b]", "continue_on_error=write\n[b]"), &mut device);
    assert!(!tolerant.failed());
    assert_eq!(tolerant.jobs[0].errors, 1);
    assert_eq!(tolerant.jobs[0].direction(Direction::Write).ios, 999);
}

/// Requests that never complete are named.
#[test]
fn a_device_that_hangs_is_found_out() {
    let mut device = device();
    device.defect = Some(Defect::Hangs);
    match try_run("[job]\nrw=write\niodepth=3\n", &mut device) {
        Err(EngineError::Stuck { waiting, .. }) => {
            assert_eq!(waiting.iter().map(|w| w.lba.0).collect::<Vec<_>>(), [0, 1, 2]);
        }
        other => panic!("{other:?}"),
    }
}

/// Where time stands still and only time could end the job, the run ends with an error; a job with
/// a size ends by itself.
#[test]
fn standing_time_is_found_out() {
    let mut device = device();
    (device.base_ns, device.spread_ns) = (0, 0);
    let file = jobs("[job]\nrw=read\ntime_based\nruntime=1\n");
    let options = Options { ios_without_progress_max: 10_000, ..Options::default() };
    let mut engine = Engine::<()>::new(&file, device.caps(), &options).unwrap();
    let end = engine.run_until(&mut device, &mut NoProbe, None);
    assert!(matches!(end, Err(EngineError::TimeStandsStill { .. })), "{end:?}");
    assert_eq!(run("[job]\nrw=read\n", &mut device).ended, Nanos::ZERO);
}

/// What does not fit the device is refused before anything runs, with the job's place.
#[test]
fn jobs_that_do_not_fit_are_refused() {
    let mut poor = device();
    poor.caps.discard_sectors = 0;
    poor.caps.keeps_content = false;
    for (keys, problem) in [
        ("rw=read\nsize=1g", "beyond the device"),
        ("rw=read\noffset=100%", "no block"),
        ("rw=trim", "trims"),
        ("rw=write\nverify=md5", "content"),
    ] {
        match try_run(&format!("\n[job]\n{keys}\n"), &mut poor) {
            Err(EngineError::Job { place, problem: found, .. }) => {
                assert_eq!(place.line, 2);
                assert!(found.contains(problem), "{found}");
            }
            other => panic!("{keys}: {other:?}"),
        }
    }
    let deep = try_run("[job]\niodepth=65536\nnumjobs=65536\n", &mut poor);
    assert!(matches!(deep, Err(EngineError::TooDeep { .. })));
}
