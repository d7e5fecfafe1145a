//! Filebench workloads on stacks: what a result holds, and what is refused.

use nandscape_ftl::Detail;
use nandscape_lab::run::{NoObserver, Outcome, RunError, RunOptions, run_workload};
use nandscape_lab::stack::Stack;
use nandscape_lab::workload::wml::{Workload, parse};
use std::path::Path;

/// A small device, on which every run is short.
const SMALL: [&str; 4] =
    ["media.chunks=48", "media.sectors=128", "ftl.op_percent=35", "host.memory=16MiB"];

fn stack(name: &str) -> Stack {
    Stack::load(name, &SMALL).unwrap()
}

fn example(name: &str, set: &[(&str, &str)]) -> Workload {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let set: Vec<_> =
        set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    parse(&text, name, &set).unwrap()
}

fn text(text: &str) -> Workload {
    parse(text, "t.f", &[]).unwrap()
}

fn run(stack_name: &str, workload: &Workload) -> Result<Outcome, RunError> {
    run_workload(&stack(stack_name), workload, 1, RunOptions::default(), &mut NoObserver)
}

fn mail() -> Workload {
    example("varmail.f", &[("messages", "200"), ("threads", "4"), ("seconds", "1")])
}

/// A run is a function of stack, workload and seed, whatever an fsync commits.
#[test]
fn same_input_same_result() {
    for name in ["ext4-js-pblk", "ext4-fa-ftl"] {
        let json = || run(name, &mail()).unwrap().to_json("wml").to_string();
        assert_eq!(json(), json(), "{name}");
    }
}

/// The result holds the flowops, and everything that runs on files have: the journal's sectors, fsyncs,
/// a job for each thread, points over time.
#[test]
fn a_result_is_whole() {
    let outcome = run("ext4-js-pblk", &mail()).unwrap();
    let json = outcome.to_json("wml");
    let ours = &json["nandscape"];
    let flowops = ours["wml"]["flowops"].as_array().unwrap();
    let ops: u64 = flowops.iter().map(|flowop| flowop["ops"].as_u64().unwrap()).sum();
    assert_eq!(ours["wml"]["summary"]["ops"].as_u64(), Some(ops));
    assert!(ours["wml"]["failure"].is_null() && ours["virtual_s"] == 1.0);
    let syncs = |name: &str| {
        let found = flowops.iter().find(|flowop| flowop["name"] == name).unwrap();
        found["ops"].as_u64().unwrap()
    };
    let counted = syncs("sync-new") + syncs("sync-old");
    assert!((counted..=counted + 4).contains(&ours["fs"]["fsyncs"].as_u64().unwrap()));
    assert!(ours["sectors"]["journal"].as_u64().unwrap() > 0);
    let job = &json["jobs"][0];
    assert_eq!(job["jobname"], "mailserver.session");
    assert_eq!(job["sync"]["total_ios"].as_u64(), Some(counted));
    assert!(job["read"]["total_ios"].as_u64().unwrap() > 0);
    assert!(ours["series"].as_array().unwrap().len() > 100);
    assert_eq!(outcome.ftl.media_errors.mismatches, 0);
}

/// The time of fsyncs is the sum of its parts, waiting for a core that other threads share included.
#[test]
fn the_time_of_fsyncs_has_parts() {
    let workload = text(
        "define fileset name=a,path=/tmp,entries=8,dirwidth=8,prealloc\n\
         define process name=p { thread name=t,instances=8 {\n\
         flowop openfile name=o,filesetname=a,fd=1\n\
         flowop appendfile name=w,iosize=16k,fd=1\n\
         flowop fsync name=s,fd=1\n\
         flowop closefile name=c,fd=1\n\
         flowop finishoncount name=f,value=20,target=s } }\n\
         set mode quit alldone\nrun 10",
    );
    let outcome = run("ext4-pblk", &workload).unwrap();
    let (fs, sync) = (outcome.fs.unwrap(), &outcome.workload.jobs[0].sync);
    let json = outcome.to_json("wml");
    let times = json["nandscape"]["fs"]["fsync_times"].as_object().unwrap().values();
    let parts: u64 = times.map(|ns| ns.as_u64().unwrap()).sum();
    assert_eq!((sync.count(), sync.mean_ns()), (fs.fsyncs, parts as f64 / fs.fsyncs as f64));
    assert!(fs.fsyncs == 160 && fs.fsync_thread_ns > 160 * 1000, "{fs:?}");
}

/// The device was off and on again once filesets were there: what they hold comes from media, not from a
/// write buffer that still has it.
#[test]
fn write_buffers_begin_empty() {
    let workload = text(
        "define fileset name=a,path=/tmp,entries=8,dirwidth=8,size=8k,prealloc\n\
         define process name=p { thread name=t {\n\
         flowop openfile name=o,filesetname=a,fd=1\n\
         flowop readwholefile name=r,fd=1\n\
         flowop closefile name=c,fd=1\n\
         flowop finishoncount name=f,value=8,target=r } }\n\
         set mode quit alldone\nrun 10",
    );
    let read = run("ext4-pblk", &workload).unwrap();
    assert!(read.ftl.host.read >= 16, "{}", read.ftl.host.read);
    assert_eq!(read.ftl.host.buffer_hits, 0);
}

/// Every example runs on a small device.
#[test]
fn examples_run() {
    let cases: [(&str, &[(&str, &str)]); 7] = [
        ("varmail.f", &[("messages", "100"), ("seconds", "1")]),
        ("fileserver.f", &[("files", "400"), ("size", "32k"), ("threads", "4")]),
        ("webserver.f", &[("pages", "100"), ("threads", "8")]),
        ("webproxy.f", &[("pages", "200"), ("threads", "8"), ("rate", "200")]),
        ("oltp.f", &[("clients", "8"), ("writers", "2"), ("filesize", "2m"), ("seconds", "1")]),
        ("videoserver.f", &[("videosize", "1m"), ("rate", "8")]),
        ("mongo.f", &[("documents", "100")]),
    ];
    for (name, set) in cases {
        let outcome = run("ext4-pblk", &example(name, set)).unwrap();
        let report = outcome.flowops.unwrap();
        assert_eq!(report.failure(), None, "{name}");
        assert!(report.sums().ops > 100, "{name}");
    }
}

/// What comes before a run takes no part in it; figures come at their distances.
#[test]
fn pauses_and_periods() {
    let define = "define file name=a,path=/tmp,size=64k,prealloc\n\
                  define process name=p { thread name=t {\n\
                  flowop read name=r,filename=a,iosize=4k,random flowop delay name=d,value=1 } }\n";
    let outcome = run("ext4-pblk", &text(&format!("{define}sleep 7\npsrun -2 6"))).unwrap();
    assert_eq!(outcome.virtual_time.as_secs_f64(), 6.0);
    let report = outcome.flowops.unwrap();
    let at: Vec<f64> = report.snapshots.iter().map(|snapshot| snapshot.at.as_secs_f64()).collect();
    assert_eq!(at, [2.0, 4.0, 6.0]);
    let ops: u64 = report.snapshots.iter().map(|snapshot| snapshot.sums.ops).sum();
    assert_eq!(ops, report.sums().ops, "each period is counted by itself");
    let outcome = run("ext4-pblk", &text(&format!("{define}psrun 2 6"))).unwrap();
    let report = outcome.flowops.unwrap();
    assert_eq!(report.snapshots.last().unwrap().sums, report.sums(), "each counts from the start");
}

/// What runs out of files, or waits for itself, ends with a reason and keeps what it counted.
#[test]
fn early_ends_have_reasons() {
    let define = "define fileset name=a,path=/tmp,entries=10,dirwidth=10,prealloc\n\
                  define process name=p { thread name=t { flowop ";
    let failure = |rest: &str| {
        let outcome = run("ext4-pblk", &text(&format!("{define}{rest}"))).unwrap();
        let report = outcome.flowops.unwrap();
        (report.failure().unwrap_or_default().to_owned(), report.sums().ops)
    };
    let (why, ops) = failure("deletefile name=d,filesetname=a } }\nrun 5");
    assert!(why.contains("use more entries, fewer seconds") && ops == 10, "{why}, {ops}");
    let (why, _) = failure("block name=b } }\nset mode quit firstdone\nrun");
    let hung = "no flowop completed since 0ns, and none would within an hour: task `thread` waits";
    assert!(why.starts_with(hung), "{why}");
    let (why, ops) = failure("statfile name=s,filesetname=a flowop block name=b } }\nrun 5");
    assert!(why.contains("none would within an hour: task `thread` waits") && ops == 1, "{why}");
    let (why, _) = failure("write name=w,filesetname=a,iosize=2k,directio } }\nrun 5");
    assert!(why.contains("direct I/O") && why.matches("multiples").count() == 1, "{why}");
    let late = "delay name=l,value=9 } }\nset mode quit firstdone\nrun 5";
    assert_eq!(failure(late), (String::new(), 0), "what only takes long is none");
}

/// Input that does not fit is refused before anything runs.
#[test]
fn what_does_not_fit_is_refused() {
    let refused = |stack: &str, workload: &Workload| {
        let error = run(stack, workload).unwrap_err();
        assert!(error.is_bad_input(), "{error}");
        error.to_string()
    };
    let none = refused("pblk", &mail());
    assert!(none.contains("the stack pblk has none; these have: ext4-"), "{none}");
    let large = example("videoserver.f", &[("videosize", "1g")]);
    let found = refused("ext4-pblk", &large);
    let expected = "videoserver.f:13:8: fileset watched of 8192.0 MiB does not fit the file system; \
                    wanted in all: 20480.0 MiB in 20 files; free: 1";
    assert!(found.starts_with(expected), "{found}");
    let endless = text(
        "set $e=randvar(type=uniform,mean=0)\n\
         define fileset name=a,path=/tmp,entries=$e,dirwidth=5\n\
         define process name=p { thread name=t { flowop statfile name=s,filesetname=a } }",
    );
    let found = refused("ext4-pblk", &endless);
    assert!(found.starts_with("t.f:2:8: fileset a: its random number of entries"), "{found}");
}

/// One core serves threads of a workload and threads of the FTL: it is never used for longer than the run
/// lasts, and what is counted of it covers all of the run.
#[test]
fn a_filebench_thread_and_the_writer_thread_share_a_core() {
    let hog_ns = 200_000;
    let workload = text(&format!(
        "define fileset name=a,path=/tmp,entries=1,dirwidth=2,size=1m,prealloc\n\
         define process name=p {{\n\
         thread name=hog {{ flowop hog name=h,value={hog_ns} }}\n\
         thread name=writer {{\n\
         flowop openfile name=o,filesetname=a,fd=1\n\
         flowop write name=w,iosize=64k,fd=1\n\
         flowop fsync name=s,fd=1\n\
         flowop closefile name=c,fd=1 }} }}\n\
         run 1"
    ));
    let charged = [&SMALL[..], &["host.cores=1", "ftl.cpu=qemu"]].concat();
    let stack = Stack::load("ext4-pblk", &charged).unwrap();
    let outcome =
        run_workload(&stack, &workload, 1, RunOptions::default(), &mut NoObserver).unwrap();
    let rows = outcome.flowops.as_ref().unwrap().rows.iter();
    let hogs = rows.filter(|row| row.name == "h").map(|row| row.count).sum::<u64>();
    let Detail::Pblk(pblk) = &outcome.ftl_detail else { panic!("a pblk") };
    let ftl = pblk.cpu.as_ref().unwrap().cores_busy_ns[0];
    let elapsed = outcome.virtual_time.0;
    assert!(hogs > 100 && ftl > elapsed / 20, "{hogs} rounds, {ftl} ns of the FTL");
    assert!(hogs * hog_ns + ftl <= elapsed, "{} + {ftl} ns in {elapsed}", hogs * hog_ns);
    let [core] = outcome.cores[..] else { panic!("{:?}", outcome.cores) };
    assert!(core.threads.0 >= hogs * hog_ns && core.ftl.0 <= ftl, "{core:?}");
    assert_eq!(core.threads + core.ftl + core.idle, outcome.virtual_time);
}
