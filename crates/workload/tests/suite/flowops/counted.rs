//! What is counted and shown, and that it is the same each time.

use crate::flowops::stand::{CALL, one_thread, run, run_with};
use nandscape_rt::Nanos;
use nandscape_workload::wml::engine::summary_line;

const BUSY: &str = "set $dir=/tmp\nset $app=randvar(type=gamma,min=512,mean=8k,round=512)\n\
    define fileset name=a,path=$dir,entries=200,dirwidth=10,size=12k,prealloc=80\n\
    define process name=p,instances=2 { thread name=t,instances=3 {\n\
      flowop deletefile name=del,filesetname=a\n\
      flowop createfile name=new,filesetname=a,fd=1\n\
      flowop appendfile name=app,iosize=$app,fd=1\n\
      flowop fsync name=sync,fd=1\n\
      flowop closefile name=close,fd=1\n\
      flowop openfile name=open,filesetname=a,fd=1\n\
      flowop readwholefile name=read,fd=1,iosize=1m\n\
      flowop closefile name=close2,fd=1 } }\nrun 1";

/// Two runs are equal to the last digit; another seed is another run.
#[test]
fn a_run_repeats() {
    let (first, second) = (run(BUSY), run(BUSY));
    assert_eq!(first.report, second.report);
    assert_ne!(run_with(BUSY, 2).report, first.report);
}

/// Sums are the sums of flowops, reads and writes are counted apart, and one loop counts each once.
#[test]
fn sums_add_up() {
    let ran = run(BUSY);
    assert_eq!(ran.report.failure(), None);
    let table = ran.report.table();
    let sums = ran.report.sums();
    assert_eq!(sums.ops, table.iter().map(|row| row.count).sum::<u64>());
    assert_eq!((sums.reads, sums.writes), (ran.row("read").count, ran.row("app").count));
    assert_eq!(sums.bytes(), ran.row("read").bytes + ran.row("app").bytes);
    let counts: Vec<u64> = table.iter().map(|row| row.count).collect();
    let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
    assert!(spread <= 6, "six threads are at most one loop apart: {counts:?}");
    let names: Vec<&str> = table.iter().map(|row| row.name.as_str()).collect();
    let expected = ["close2", "read", "open", "close", "sync", "app", "new", "del"];
    assert_eq!(names, expected, "the last flowop comes first");
}

/// What listing directories took is part of the bytes of a workload, and neither read nor written.
#[test]
fn listing_moves_bytes() {
    let set = "define fileset name=a,path=$dir,entries=40,dirwidth=4,prealloc";
    let flowops =
        "flowop listdir name=l,filesetname=a,iters=6\nflowop finishoncount name=f,value=6";
    let ran = run(&one_thread(set, flowops, "set mode quit firstdone\nrun 5"));
    let (sums, bytes) = (ran.report.sums(), ran.row("l").bytes);
    assert!(bytes > 0);
    assert_eq!((sums.bytes(), sums.read_bytes, sums.written_bytes), (bytes, 0, 0));
}

/// A flowop takes at least what its call takes of a core; nothing that is counted takes less.
#[test]
fn latencies_have_their_parts() {
    let ran = run(BUSY);
    for row in ran.report.table() {
        assert!(row.latency.min() >= CALL, "{}: {}", row.name, row.latency.min());
        assert_eq!(row.latency.count(), row.count);
    }
    assert!(ran.row("sync").latency.mean_ns() > ran.row("close").latency.mean_ns());
}

/// Threads with nothing between them share cores: one on a core has it alone.
#[test]
fn calls_take_core_time() {
    let stat = |threads: u32| {
        let text = format!(
            "define file name=a,path=/tmp,prealloc\n\
             define fileset name=s,path=/tmp,entries=64,dirwidth=100,prealloc\n\
             define process name=p {{ thread name=t,instances={threads} {{\n\
             flowop statfile name=s,filesetname=s }} }}\nrun 1"
        );
        run(&text).row("s").count
    };
    assert_eq!(stat(1), 100_000, "a call of 10 us after the other");
    assert!((399_900..=400_000).contains(&stat(8)), "four cores");
}

/// The summary and the table have Filebench's form.
#[test]
fn output_has_its_form() {
    let flowops = "flowop read name=r,filename=a,iosize=64k,iters=2\nflowop delay name=d,value=1";
    let ran = run(&one_thread("define file name=a,path=$dir,size=1m,prealloc", flowops, "run 4"));
    let text = ran.report.to_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "Per-Operation Breakdown");
    assert!(lines[1].starts_with("d                    3ops        1ops/s   0.0mb/s 1000.000ms/op [1000.000ms - 1000.000ms]"), "{}", lines[1]);
    assert!(
        lines[2].starts_with("r                    9ops        2ops/s   0.1mb/s "),
        "{}",
        lines[2]
    );
    assert!(
        lines[3].starts_with("IO Summary:     9 ops 2.250 ops/s 2/0 rd/wr   0.1mb/s "),
        "{}",
        lines[3]
    );
    assert_eq!(lines.len(), 4);
    let half = summary_line(&ran.report.sums(), Nanos::from_secs(8));
    assert!(half.starts_with("IO Summary:     9 ops 1.125 ops/s 1/0 rd/wr"), "{half}");
}

/// Histograms are shown where they are asked for, and hold every flowop.
#[test]
fn histograms_are_shown() {
    let flowops = "flowop statfile name=s,filename=a\nflowop delay name=d,value=1";
    let definitions = "enable lathist\ndefine file name=a,path=$dir,prealloc";
    let ran = run(&one_thread(definitions, flowops, "run 3"));
    let text = ran.report.to_text();
    let line = text.lines().find(|line| line.starts_with("s ")).unwrap();
    let shown = line.split("\t[ ").nth(1).unwrap().trim_end_matches(']');
    let counts: Vec<u64> = shown.split_whitespace().map(|count| count.parse().unwrap()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 3);
    assert_eq!(counts[14], 3, "10,000 ns lie between 8,192 and 16,384");
}

/// Messages are kept, and what `echo` says.
#[test]
fn messages_are_kept() {
    let flowops = "flowop print name=p,value=\"here I am\"\nflowop delay name=d,value=1";
    let ran = run(&one_thread("set $n=7\necho \"n is $n\"", flowops, "run 2"));
    assert_eq!(ran.report.echoes, ["n is 7"]);
    assert_eq!(ran.report.messages.len(), 3, "at 0, 1 and 2 s");
    assert!(ran.report.messages[0].ends_with("thread 1: here I am"), "{:?}", ran.report.messages);
}
