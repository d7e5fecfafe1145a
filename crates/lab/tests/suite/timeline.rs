//! A timeline is the run: valid JSON however the run ends, nothing outside its window, nothing twice at
//! the same time, and the same commands that the counters count.

use nandscape_ftl::Detail;
use nandscape_lab::run::{Observer, Outcome, Phase, RunError, RunOptions, run};
use nandscape_lab::stack::Stack;
use nandscape_lab::timeline::{Timeline, Window, Written};
use nandscape_lab::workload::fio::{HostEnvironment, parse};
use nandscape_rt::Nanos;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{Cursor, Seek, SeekFrom, Write};
use std::rc::Rc;

const STACK: &str = "name = \"timeline\"
[media]
groups = 2
units = 2
chunks = 64
sectors = 128
ws_min = 4
ws_opt = 8
mw_cunits = 24
[media.timing]
preset = \"nvmevirt-970pro\"
erase_ns = 1000000
[ftl]
op_percent = 35
[precondition]
fill = 1.0
random_overwrite = 0.5
";

const JOB: &str = "[global]
bs=4k
norandommap
[readers]
rw=randread
direct=1
iodepth=2
number_ios=1000
[writers]
rw=randwrite
direct=1
iodepth=4
number_ios=2000
fsync=100
";

/// A file that the test can look into.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Cursor<Vec<u8>>>>);

impl Shared {
    fn document(&self) -> Value {
        serde_json::from_slice(self.0.borrow().get_ref()).expect("valid JSON")
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.borrow_mut().seek(to)
    }
}

/// Watches a run, and looks at the file whenever the run reports.
struct Watcher {
    timeline: Timeline,
    file: Shared,
    looks: u32,
}

impl Observer for Watcher {
    fn wall_s(&self) -> f64 {
        0.0
    }
    fn progress(&mut self, phase: Phase, _: f64) {
        if phase == Phase::Measure && self.looks < 20 {
            self.looks += 1;
            self.file.document();
        }
    }
    fn timeline(&mut self) -> Option<&mut Timeline> {
        Some(&mut self.timeline)
    }
}

fn trace_job(
    set: &[&str],
    job: &str,
    window: Window,
) -> (Result<Outcome, RunError>, Value, Written) {
    let stack = Stack::parse("timeline.toml", STACK, set).unwrap();
    let job = parse(job, "timeline.fio", &HostEnvironment).unwrap();
    let file = Shared::default();
    let timeline = Timeline::new(Box::new(file.clone()), window).unwrap();
    file.document();
    let mut watcher = Watcher { timeline, file: file.clone(), looks: 0 };
    let outcome = run(&stack, &job, 1, RunOptions::default(), &mut watcher);
    let written = watcher.timeline.finish().unwrap();
    (outcome, file.document(), written)
}

fn trace(set: &[&str], window: Window) -> (Outcome, Value, Written) {
    let (outcome, document, written) = trace_job(set, JOB, window);
    (outcome.unwrap(), document, written)
}

const ALL: Window =
    Window { start: Nanos::ZERO, length: Nanos::from_secs(3600), events_max: u64::MAX };

fn events<'a>(document: &'a Value, phase: &str) -> Vec<&'a Value> {
    let events = document["traceEvents"].as_array().unwrap();
    events.iter().filter(|event| event["ph"] == phase).collect()
}

/// Nanoseconds of a time in microseconds.
fn ns(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1e3).round() as u64
}

/// Begin and end of each slice, by track.
fn tracks(document: &Value) -> BTreeMap<(u64, u64), Vec<(u64, u64)>> {
    let mut tracks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for slice in events(document, "X") {
        let track = (slice["pid"].as_u64().unwrap(), slice["tid"].as_u64().unwrap());
        let start = ns(&slice["ts"]);
        tracks.entry(track).or_default().push((start, start + ns(&slice["dur"])));
    }
    tracks.values_mut().for_each(|slices| slices.sort_unstable());
    tracks
}

const PRIORITIES: [&str; 3] = ["none", "ahead", "suspend"];

/// Units and links do one thing at a time, also where reads go ahead.
#[test]
fn slices_of_a_track_do_not_overlap() {
    for priority in PRIORITIES {
        let set = format!("media.timing.read_priority={priority}");
        let (_, document, _) = trace(&[&set], ALL);
        let tracks = tracks(&document);
        assert_eq!(tracks.len(), 4 + 2 + 1, "units, channels, PCIe");
        for (track, slices) in tracks {
            assert!(slices.windows(2).all(|two| two[0].1 <= two[1].0), "{track:?} {priority}");
        }
    }
}

/// Where the host's CPU costs something its cores, threads and locks have tracks, which do one thing at a
/// time; what runs on a core is shown there for as long as it was counted.
#[test]
fn the_hosts_tracks_are_there_when_it_costs_something() {
    let set = ["ftl.cpu=null-block", "ftl.routing=per-core", "host.cores=2", "ftl.op_percent=60"];
    let (outcome, document, _) = trace(&set, ALL);
    let tracks = tracks(&document);
    for (track, slices) in &tracks {
        assert!(slices.windows(2).all(|two| two[0].1 <= two[1].0), "{track:?}");
    }
    for track in [(3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2), (5, 1_000)] {
        assert!(tracks.contains_key(&track), "{track:?} of {:?}", tracks.keys());
    }
    let busy = |track| tracks[&track].iter().map(|(start, end)| end - start).sum::<u64>();
    let Detail::Pblk(detail) = outcome.ftl_detail else { panic!("a pblk") };
    let counts = detail.cpu.unwrap();
    assert_eq!([busy((3, 1)), busy((3, 2))], counts.cores_busy_ns[..]);
    assert_eq!(busy((4, 1)), counts.writers[0].busy_ns);
    assert_eq!(busy((5, 1_000)), counts.map.held_ns);
}

/// Programs and erases on the timeline are those that the FTL counted, sector by sector and by cause.
#[test]
fn a_whole_run_shows_what_the_counters_count() {
    for priority in PRIORITIES {
        let set = format!("media.timing.read_priority={priority}");
        let (outcome, document, _) = trace(&[&set], ALL);
        let mut commands = BTreeMap::new();
        for slice in events(&document, "X").into_iter().filter(|slice| slice["pid"] == 1) {
            commands.insert(slice["args"]["command"].as_u64().unwrap(), slice);
        }
        let sum = |kind: &str, key: &str| -> u64 {
            let of_kind = commands.values().filter(|slice| slice["args"]["kind"] == kind);
            of_kind.map(|slice| slice["args"][key].as_u64().unwrap()).sum()
        };
        let sectors = &outcome.ftl.sectors;
        assert_eq!(sum("data", "user"), sectors.user, "{priority}");
        assert_eq!(sum("data", "sectors") + sum("pad", "sectors"), {
            sectors.user + sectors.gc + sectors.pad + sectors.trim
        });
        assert_eq!(sum("smeta", "sectors") + sum("emeta", "sectors"), sectors.line_meta);
        let erases = commands.values().filter(|slice| slice["name"] == "erase").count();
        assert_eq!(erases as u64, outcome.ftl.erases);
        let looks: Vec<(&str, &str)> = commands
            .values()
            .map(|slice| (slice["name"].as_str().unwrap(), slice["cat"].as_str().unwrap()))
            .collect();
        for name in ["read", "program", "GC read", "program metadata"] {
            assert!(looks.iter().any(|look| look.0 == name), "no {name}");
        }
        for category in ["user", "gc", "padding", "metadata", "erase"] {
            assert!(looks.iter().any(|look| look.1.split(',').any(|part| part == category)));
        }
    }
}

/// Requests of each job are there, with begin before end, under their job's name.
#[test]
fn requests_are_slices_of_their_job() {
    let (outcome, document, _) = trace(&[], ALL);
    let mut open = BTreeMap::new();
    let mut counted = BTreeMap::new();
    for event in document["traceEvents"].as_array().unwrap() {
        let key = (event["pid"].as_u64(), event["id"].as_u64());
        match event["ph"].as_str().unwrap() {
            "b" => assert!(open.insert(key, ns(&event["ts"])).is_none(), "two at once: {key:?}"),
            "e" => {
                assert!(open.remove(&key).unwrap() <= ns(&event["ts"]));
                let name = event["name"].as_str().unwrap();
                *counted.entry((key.0.unwrap(), name)).or_insert(0_u64) += 1;
            }
            _ => {}
        }
    }
    assert!(open.is_empty());
    assert_eq!(counted[&(10, "read")], 1_000);
    assert_eq!(counted[&(11, "write")], 2_000);
    assert_eq!(counted[&(11, "flush")], outcome.workload.jobs[1].sync.count());
    let names: Vec<&str> = events(&document, "M")
        .into_iter()
        .filter(|event| event["name"] == "process_name")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["parallel units", "links", "counters", "job 0: readers", "job 1: writers"]);
}

/// A window shows what happens in it and nothing else, and what lasts beyond its ends is cut there.
#[test]
fn events_lie_in_the_window() {
    let window =
        Window { start: Nanos::from_ms(5), length: Nanos::from_ms(7), ..Window::default() };
    let (_, document, written) = trace(&[], window);
    let (start, end) = (window.start.0, (window.start + window.length).0);
    let tracks = tracks(&document);
    let slices: Vec<_> = tracks.values().flatten().collect();
    assert!(slices.iter().all(|(from, to)| start <= *from && from <= to && *to <= end));
    assert!(slices.iter().any(|(from, _)| *from == start), "a slice reaches in from before");
    assert!(slices.iter().any(|(_, to)| *to == end), "a slice reaches out");
    for event in events(&document, "b").into_iter().chain(events(&document, "e")) {
        assert!((start..=end).contains(&ns(&event["ts"])));
    }
    assert_eq!(written.cut_at, None);
    let whole = self::tracks(&trace(&[], ALL).1);
    let within = |slice: &&(u64, u64)| slice.0 < end && slice.1 > start;
    assert_eq!(slices.len(), whole.values().flatten().filter(within).count());
}

/// Levels of device and load at each pause: what is in flight is what the jobs have, and lines are used and freed.
#[test]
fn counters_have_the_levels() {
    let (outcome, document, _) = trace(&[], ALL);
    let counters = events(&document, "C");
    let of = |name: &str| -> Vec<f64> {
        let own = counters.iter().filter(|event| event["name"] == name);
        own.map(|event| event["args"]["value"].as_f64().unwrap()).collect()
    };
    let in_flight = of("requests in flight");
    assert!(in_flight.len() > 20, "{}", in_flight.len());
    let [first, last] = [in_flight[1], in_flight[in_flight.len() - 1]];
    assert!((4.0..=7.0).contains(&first) && last <= 1.0, "{first} {last}");
    assert!(in_flight.iter().all(|count| *count <= 7.0), "2 + 4 and a flush");
    let free = of("free lines");
    assert!(free.iter().any(|lines| *lines != free[0]), "{free:?}");
    assert_eq!(*free.last().unwrap(), outcome.series.last().unwrap().free_lines as f64);
    let valid = of("valid sectors of full lines (%)");
    assert!(valid.iter().all(|percent| (20.0..100.0).contains(percent)), "{valid:?}");
}

/// A window that begins after the end of the run is reported.
#[test]
fn a_window_beyond_the_run_is_reported() {
    let window = Window { start: Nanos::from_secs(900), ..Window::default() };
    let (_, document, written) = trace(&[], window);
    assert!(written.events == 0 && events(&document, "X").is_empty());
    let (missed, ended) = written.missed.unwrap();
    assert!(missed == window && ended < window.start);
    assert_eq!(trace(&[], ALL).2.missed, None);
}

/// There are never more events than allowed, and the file says where it was cut.
#[test]
fn a_timeline_is_bounded_and_says_so() {
    let (_, document, written) = trace(&[], Window { events_max: 501, ..ALL });
    let counted =
        ["X", "b", "e", "C"].map(|phase| events(&document, phase).len()).iter().sum::<usize>();
    assert!((500..=501).contains(&counted), "{counted}");
    assert_eq!(written.events, counted as u64);
    assert!(written.cut_at.is_some());
    assert_eq!(events(&document, "i").len(), 1);
}

/// Looking changes nothing: same result with and without a timeline.
#[test]
fn a_timeline_changes_no_result() {
    let json = |outcome: &Outcome| outcome.to_json("timeline");
    let short = Window { length: Nanos::from_ms(3), ..ALL };
    let (all, document, _) = trace(&[], ALL);
    assert_eq!(json(&all), json(&trace(&[], short).0));
    assert_eq!(document, trace(&[], ALL).1, "and the timeline is the same each time");
    let stack = Stack::parse("timeline.toml", STACK, &[] as &[&str]).unwrap();
    let job = parse(JOB, "timeline.fio", &HostEnvironment).unwrap();
    let plain =
        run(&stack, &job, 1, RunOptions::default(), &mut nandscape_lab::run::NoObserver).unwrap();
    assert_eq!(json(&plain), json(&all));
}

/// A run that fails half-way leaves a timeline of what it did.
#[test]
fn a_failed_run_leaves_a_valid_timeline() {
    let set = ["media.faults.erase_rate=1.0", "precondition.random_overwrite=0.0"];
    let job = "[w]\nrw=randwrite\ndirect=1\nbs=4k\niodepth=4\nnorandommap\nio_size=1g\n";
    let (outcome, document, _) = trace_job(&set, job, ALL);
    assert!(outcome.is_err() || outcome.unwrap().workload.jobs[0].failed());
    let failed = events(&document, "X").into_iter();
    assert!(failed.filter(|slice| slice["args"]["status"] == "erase failed").count() > 0);
}
