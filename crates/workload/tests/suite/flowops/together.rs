//! Flowops that wait: for time, for events, for other threads.

use crate::flowops::stand::{one_thread, run};
use nandscape_rt::Nanos;

/// `delay` takes seconds, `hog` a core's time, which threads share.
#[test]
fn delay_and_hog() {
    let ran = run(&one_thread("", "flowop delay name=d,value=2", "run 9"));
    assert_eq!((ran.row("d").count, ran.row("d").latency.min()), (4, Nanos::from_secs(2)));
    let hogs = "define process name=p { thread name=t,instances=8 {\n\
                flowop hog name=h,value=1000000\n } }\nrun 1";
    let ran = run(hogs);
    assert_eq!(ran.row("h").latency.max(), Nanos::from_ms(2), "eight threads on four cores");
    assert!((3_990..=4_000).contains(&ran.row("h").count), "{}", ran.row("h").count);
}

/// Each kind of limit keeps its own unit at the rate of events.
#[test]
fn limits_keep_their_rate() {
    let file = "define file name=a,path=$dir,size=8m,prealloc\neventgen rate=50";
    let reads = |limit: &str| {
        let flowops = format!(
            "flowop openfile name=o,filename=a,fd=1\nflowop read name=r,filename=a,fd=1,iosize=256k\n\
             flowop closefile name=c,fd=1\nflowop {limit}"
        );
        run(&one_thread(file, &flowops, "run 10")).row("r").count
    };
    for (limit, expected) in [
        ("eventlimit name=l", 500),
        ("iopslimit name=l", 500),
        ("iopslimit name=l,target=r", 500),
        // Three operations of which one is a read.
        ("opslimit name=l", 500 / 3),
        // An event is a megabyte, four reads.
        ("bwlimit name=l,target=r", 2_000),
    ] {
        let found = reads(limit);
        let spread = expected / 10;
        assert!((expected - spread..=expected + spread).contains(&found), "{limit}: {found}");
    }
}

/// Bytes take an event when they begin its megabyte, not when they fill it: the first read is what a limit begins to count behind,
/// and the next one waits, as no event comes in the first second.
#[test]
fn a_megabyte_that_is_begun_takes_an_event() {
    let file = "define file name=a,path=$dir,size=8m,prealloc\neventgen rate=1";
    let flowops = "flowop openfile name=o,filename=a,fd=1\nflowop read name=r,filename=a,fd=1,iosize=64k\n\
         flowop closefile name=c,fd=1\nflowop bwlimit name=l,target=r";
    assert_eq!(run(&one_thread(file, flowops, "run 1")).row("r").count, 2);
}

/// Without events nothing is limited, nor counted.
#[test]
fn no_events_no_limit() {
    let flowops = "flowop statfile name=s,filename=a\nflowop opslimit name=l";
    let ran = run(&one_thread("define file name=a,path=$dir,prealloc", flowops, "run 1"));
    assert!(ran.row("s").count > 50_000);
    assert_eq!(ran.row("l").count, 0);
}

/// One thread creates, wakes another, which deletes and wakes the first.
#[test]
fn block_and_wakeup() {
    let text = "set $dir=/tmp\n\
        define fileset name=a,path=$dir,entries=10,dirwidth=20,size=1k\n\
        define flowop name=make { flowop createfile name=c,filesetname=a,fd=1\n\
                                  flowop closefile name=x,fd=1 }\n\
        define process name=p { thread name=t {\n\
          flowop make name=m,iters=10\n flowop wakeup name=w,target=wait\n flowop block name=hold } }\n\
        define process name=q { thread name=t {\n\
          flowop block name=wait\n flowop deletefile name=d,filesetname=a,iters=10\n\
          flowop wakeup name=v,target=hold } }\n\
        run 1";
    let ran = run(text);
    assert_eq!(ran.report.failure(), None);
    let (made, deleted) = (ran.row("m.c").count, ran.row("d").count);
    assert!(made > 1_000 && made.abs_diff(deleted) <= 10, "{made} made, {deleted} deleted");
}

/// Posts run ahead of who waits for them by no more than the mark.
#[test]
fn semblock_and_sempost() {
    let text = "define process name=w { thread name=t {\n\
          flowop semblock name=wait,value=10,highwater=20\n flowop delay name=d,value=1 } }\n\
        define process name=p { thread name=t {\n\
          flowop hog name=h,value=1000\n flowop sempost name=post,value=1,target=wait,blocking } }\n\
        run 10";
    let ran = run(text);
    let (waits, posts) = (ran.row("wait").count, ran.row("post").count);
    assert!((9..=10).contains(&waits), "{waits}");
    assert!((110..=130).contains(&posts), "{posts}: a mark of 20, and ten more each time");
}

/// Each mode ends a run where it says.
#[test]
fn quit_modes() {
    let text = |mode: &str| {
        format!(
            "set mode quit {mode}\ndefine process name=p {{\n\
             thread name=a {{ flowop delay name=d1,value=1\nflowop finishoncount name=f1,value=1,target=d1 }}\n\
             thread name=b {{ flowop delay name=d2,value=3\nflowop finishoncount name=f2,value=1,target=d2 }}\n\
             }}\nrun 60"
        )
    };
    for (mode, seconds) in [("firstdone", 1), ("alldone", 3), ("timeout", 1)] {
        let ran = run(&text(mode));
        assert_eq!(ran.report.length, Nanos::from_secs(seconds), "{mode}");
        assert_eq!(ran.report.failure(), None);
    }
}

/// Composite flowops hand their variables on, and repeat as their use says.
#[test]
fn composite_flowops() {
    let text = "set $dir=/tmp\n\
        define file name=a,path=$dir,size=64k,prealloc\ndefine file name=b,path=$dir,size=64k,prealloc\n\
        define flowop name=inner, $file, $size=1k { flowop read name=r,filename=$file,fd=1,iosize=$size,random }\n\
        define flowop name=outer, $what, $n {\n\
          flowop inner name=i,$file=$what,iters=$n\n flowop inner name=j,$file=$what,$size=2k\n\
          flowop closefile name=c,fd=1 }\n\
        define process name=p { thread name=t {\n\
          flowop outer name=o1,$what=a,$n=3\n flowop outer name=o2,$what=b,$n=2,iters=4\n\
          flowop finishoncount name=f,value=1,target=o2.c } }\n\
        set mode quit firstdone\nrun 5";
    let ran = run(text);
    let bytes = |name: &str| (ran.row(name).count, ran.row(name).bytes);
    // The first flowop of each round opens the file, which counts.
    assert_eq!((bytes("o1.i.r"), bytes("o1.j.r")), ((4, 3 << 10), (1, 2 << 10)));
    assert_eq!((bytes("o2.i.r"), bytes("o2.j.r")), ((12, 8 << 10), (4, 8 << 10)));
}
