//! What each flowop leaves behind on the file system.

use crate::flowops::stand::{CALL, one_thread, run};
use nandscape_rt::Nanos;

const SET: &str = "define fileset name=a,path=$dir,entries=40,dirwidth=8,size=10000,prealloc=50";
const FIRST: &str = "set mode quit firstdone\nrun 5";

/// Filesets are there as their trees say, with names of eight digits and exact sizes.
#[test]
fn filesets_are_made() {
    let text = one_thread(
        "set $s=cvar(type=cvar-gamma,parameters=mean:20000;gamma:1.5)\n\
         define fileset name=a,path=$dir,entries=60,dirwidth=5,size=$s,prealloc=70,leafdirs=9",
        "flowop delay name=d,value=2",
        "run 1",
    );
    let mut ran = run(&text);
    let tree = ran.sets[0].clone();
    let mut sizes: Vec<u64> = ran.files("a").iter().map(|found| found.attr.size).collect();
    let mut expected: Vec<u64> =
        tree.files.iter().filter(|file| file.exists).map(|file| file.bytes).collect();
    sizes.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sizes, expected);
    let leafdirs = tree.leafdirs.iter().filter(|leaf| leaf.exists).count();
    let directories = ran.found().iter().filter(|found| found.is_directory).count();
    assert_eq!(directories, tree.directories.len() + leafdirs);
    let digits = |path: &str| path.split('/').skip(3).all(|step| step.len() == 8);
    assert!(ran.files("a").iter().all(|found| digits(&found.path)));
}

/// Files are made until none is left to be made, and then the run ends.
#[test]
fn createfile_and_writewholefile() {
    let flowops = "flowop createfile name=c,filesetname=a,fd=1\n\
                   flowop writewholefile name=w,fd=1,iosize=4k\n\
                   flowop closefile name=x,fd=1";
    let mut ran = run(&one_thread(SET, flowops, FIRST));
    assert_eq!(ran.report.failure(), None);
    let files = ran.files("a");
    assert_eq!(files.len(), 40);
    assert!(files.iter().all(|found| found.attr.size == 10_000));
    let made = 40 - ran.sets[0].order.len() as u64;
    assert_eq!((ran.row("c").count, ran.row("w").count), (made, made));
    assert_eq!(ran.row("w").bytes, made * 10_000);
}

/// Files are deleted until none is left.
#[test]
fn deletefile() {
    let mut ran = run(&one_thread(SET, "flowop deletefile name=d,filesetname=a", FIRST));
    assert_eq!(ran.files("a"), []);
    assert_eq!(ran.row("d").count, ran.sets[0].order.len() as u64);
}

/// A file that is open is not deleted by anybody else, and is by its own descriptor.
#[test]
fn open_files_stay() {
    let one = "define file name=a,path=$dir,size=4k,prealloc";
    let flowops = "flowop openfile name=o,filesetname=a,fd=1\n\
                   flowop deletefile name=other,filesetname=a\n\
                   flowop deletefile name=own,fd=1\n\
                   flowop finishoncount name=f,value=1";
    let mut ran = run(&one_thread(one, flowops, FIRST));
    assert_eq!((ran.row("other").count, ran.row("own").count), (0, 1));
    assert_eq!(ran.files("a"), []);
}

/// Reads of whole files read what is there, in pieces of `iosize`, and stats ask for existing files.
#[test]
fn openfile_readwholefile_statfile() {
    let flowops = "flowop openfile name=o,filesetname=a,fd=3\n\
                   flowop readwholefile name=r,fd=3,iosize=4k\n\
                   flowop statfile name=own,fd=3\n\
                   flowop closefile name=x,fd=3\n\
                   flowop statfile name=s,filesetname=a\n\
                   flowop finishoncount name=f,value=30,target=s";
    let ran = run(&one_thread(SET, flowops, FIRST));
    let without = flowops.replace(",fd=3\n", "\n").replace(",fd=3,", ",");
    let without = without.replace("flowop statfile name=own\n", "");
    let defaulted = run(&one_thread(SET, &without, FIRST));
    assert_eq!(defaulted.row("r").bytes, 300_000, "the default descriptor is one, too");
    assert_eq!((ran.row("r").count, ran.row("r").bytes), (30, 300_000));
    assert_eq!((ran.row("own").count, ran.row("s").count), (30, 30));
}

/// Appends grow files by what they say, and those at random by less.
#[test]
fn appendfile_appendfilerand() {
    let one = "define file name=a,path=$dir,size=1000,prealloc";
    let flowops = "flowop appendfile name=w,filename=a,iosize=6000,iters=5\n\
                   flowop finishoncount name=f,value=5";
    let mut ran = run(&one_thread(one, flowops, FIRST));
    assert_eq!(ran.files("a")[0].attr.size, 31_000);
    let flowops = "flowop appendfilerand name=w,filename=a,iosize=6000,iters=50\n\
                   flowop finishoncount name=f,value=50";
    let mut ran = run(&one_thread(one, flowops, FIRST));
    let size = ran.files("a")[0].attr.size;
    assert_eq!(size, 1_000 + ran.row("w").bytes);
    assert!((100_000..200_000).contains(&size), "{size}");
}

/// Sequential reads go round; random I/O stays within the file or its working set.
#[test]
fn read_and_write() {
    let one = "define file name=a,path=$dir,size=64k,prealloc";
    let flowops = "flowop read name=s,filename=a,iosize=24k,iters=8\n\
                   flowop read name=r,filename=a,iosize=4k,random,iters=100\n\
                   flowop write name=w,filename=a,iosize=4k,random,workingset=16k,iters=100\n\
                   flowop finishonbytes name=f,value=1";
    let mut ran = run(&one_thread(one, flowops, FIRST));
    // 24 + 24 + 16 KiB, the end, and again.
    // The open that the first read does counts, too.
    assert_eq!((ran.row("s").count, ran.row("s").bytes), (9, 2 * 65_536));
    assert_eq!(ran.row("r").bytes, 100 * 4_096);
    assert_eq!(ran.files("a")[0].attr.size, 65_536);
    let flowops =
        "flowop write name=w,filename=a,iosize=24k,iters=4\nflowop finishoncount name=f,value=4";
    let mut ran = run(&one_thread(one, flowops, FIRST));
    assert_eq!(ran.files("a")[0].attr.size, 96 << 10, "sequential writes go on behind the end");
}

/// Writes by zipf come back to what they have written: they fill fewer pages of an empty file than those that are
/// equally popular, or than a lower exponent. All stay within the file, or its working set.
#[test]
fn zipf_writes_come_back() {
    let filled = |attributes: &str| {
        let one = "define file name=a,path=$dir,size=16m";
        let flowops = format!(
            "flowop createfile name=c,filename=a,fd=1\n\
             flowop write name=w,filename=a,fd=1,iosize=4k,random{attributes},iters=1000\n\
             flowop finishoncount name=f,value=1"
        );
        let mut ran = run(&one_thread(one, &flowops, FIRST));
        assert_eq!(ran.report.failure(), None);
        assert_eq!(ran.row("w").bytes, 1_000 * 4_096);
        let attr = ran.files("a")[0].attr;
        (attr.blocks, attr.size)
    };
    let [even, mild, skewed] = ["", ",zipf=700", ",zipf=990"].map(|text| filled(text).0);
    assert!(skewed * 10 < mild * 9 && mild * 10 < even * 9, "{even} {mild} {skewed}");
    assert!(filled(",zipf=990").1 > 8 << 20, "the hot places are scattered");
    assert!(filled(",zipf=990,workingset=1m").1 <= 1 << 20);
}

/// Syncs, and writes that are synced when they return, take the device's time.
#[test]
fn fsync_fsyncset_dsync_and_directio() {
    use crate::flowops::stand::LATENCY;
    let one = "define file name=a,path=$dir,size=64k,prealloc\n\
               define file name=b,path=$dir,size=64k,prealloc";
    let flowops = "flowop write name=w,filename=a,fd=1,iosize=4k,random\n\
                   flowop write name=w2,filename=a,fd=2,iosize=4k,random\n\
                   flowop fsync name=f,fd=1\n\
                   flowop write name=w3,filename=a,fd=2,iosize=4k,random\n\
                   flowop fsyncset name=fs,filesetname=a\n\
                   flowop write name=sync,filename=b,iosize=4k,random,dsync\n\
                   flowop read name=direct,filename=b,fd=9,iosize=8k,random,directio\n\
                   flowop finishoncount name=x,value=80";
    let ran = run(&one_thread(one, flowops, FIRST));
    assert_eq!(ran.report.failure(), None);
    assert_eq!(ran.row("fs").count, 2 * ran.row("f").count, "two descriptors are of the fileset");
    for name in ["f", "sync", "direct"] {
        assert!(ran.row(name).latency.max() >= LATENCY, "{name}");
    }
    assert!(ran.row("f").latency.min() >= LATENCY);
    assert!(ran.row("w").latency.max() < LATENCY, "buffered writes do not wait");
}

/// Direct I/O is of whole sectors of the device, as on Linux, also where the file is no longer than what is
/// read; files that do not end with one are read as wholes all the same.
#[test]
fn direct_io_is_of_whole_sectors() {
    let failure = |size: &str, flowop: &str| {
        let one = format!("define file name=a,path=$dir,size={size},prealloc");
        let flowops =
            format!("{flowop},filename=a,directio\nflowop finishoncount name=f,value=4,target=r");
        // Opening the file is one of the four.
        let ran = run(&one_thread(&one, &flowops, FIRST));
        (ran.report.failure().unwrap_or_default().to_owned(), ran.report.sums().read_bytes)
    };
    let refused = "flowop r: direct I/O of 1024 bytes at offset 0: with directio, offsets and sizes are \
                   multiples of 4096";
    assert_eq!(failure("1k", "flowop read name=r,iosize=1k"), (refused.to_owned(), 0));
    assert_eq!(failure("1k", "flowop readwholefile name=r,iosize=1k"), (refused.to_owned(), 0));
    assert_eq!(failure("5000", "flowop readwholefile name=r"), (String::new(), 3 * 5000));
    assert_eq!(failure("5000", "flowop readwholefile name=r,iosize=4k"), (String::new(), 3 * 5000));
    let short = failure("5000", "flowop read name=r,iosize=4k,iters=3");
    assert_eq!(short, (String::new(), 5000), "what begins at the end brings nothing");
}

/// Empty directories are made and removed, and directories are listed.
#[test]
fn makedir_removedir_listdir() {
    let dirs = "define fileset name=d,path=$dir,leafdirs=30,dirwidth=6";
    let mut ran = run(&one_thread(dirs, "flowop makedir name=m,filesetname=d", FIRST));
    assert_eq!(ran.row("m").count, 30);
    let inner = ran.sets[0].directories.len();
    assert_eq!(ran.found().len(), 30 + inner);
    let dirs = "define fileset name=d,path=$dir,leafdirs=30,dirwidth=6,prealloc";
    let mut ran = run(&one_thread(dirs, "flowop removedir name=m,filesetname=d", FIRST));
    assert_eq!((ran.row("m").count, ran.found().len()), (30, ran.sets[0].directories.len()));
    let flowops =
        "flowop listdir name=l,filesetname=a,iters=6\nflowop finishoncount name=f,value=6";
    let ran = run(&one_thread(SET, flowops, FIRST));
    assert!(ran.row("l").bytes > 0 && ran.row("l").count == 6);
    let calls = Nanos(4 * CALL.0);
    assert_eq!(ran.row("l").latency.min(), calls, "opened, names, no more names, closed");
}

/// Asynchronous writes are begun without waiting; waiting is for half of them.
#[test]
fn aiowrite_and_aiowait() {
    use crate::flowops::stand::LATENCY;
    let one = "define file name=a,path=$dir,size=64k,prealloc";
    let flowops = "flowop aiowrite name=w,filename=a,iosize=4k,random,dsync,iters=10\n\
                   flowop aiowait name=wait\n\
                   flowop finishoncount name=f,value=33";
    let ran = run(&one_thread(one, flowops, FIRST));
    assert_eq!(ran.row("w").count, 31, "with its open");
    assert!(ran.row("w").latency.max() < LATENCY && ran.row("wait").latency.min() >= LATENCY);
}

/// Files are chosen by number where that is asked for.
#[test]
fn indexed_files() {
    let flowops = "flowop deletefile name=d,filesetname=a,indexed=7\n\
                   flowop finishoncount name=f,value=1";
    let all = SET.replace("prealloc=50", "prealloc=100");
    let mut ran = run(&one_thread(&all, flowops, FIRST));
    let gone = ran.sets[0].files[7];
    let name = format!("{:08}", gone.serial);
    assert_eq!(ran.files("a").len(), 39);
    let siblings = ran.sets[0].files.iter().filter(|file| file.serial == gone.serial).count();
    let left = ran.files("a").iter().filter(|found| found.path.ends_with(&name)).count();
    assert_eq!(left, siblings - 1);
}

/// Descriptors rotate, and each thread that rotates goes round the files by itself.
#[test]
fn opennext_rotates() {
    let flowops = "flowop read name=r,filesetname=a,iosize=1k,random,opennext,iters=20\n\
                   flowop finishoncount name=f,value=40";
    let all = SET.replace("prealloc=50", "prealloc=100");
    let ran = run(&one_thread(&all, flowops, FIRST));
    // Each of the twenty opens a file of its own: an open and a read are two.
    assert_eq!((ran.row("r").count, ran.report.failure()), (40, None));
}

/// What cannot be done ends the run, and says which flowop and why.
#[test]
fn what_fails_says_so() {
    let cases = [
        ("flowop closefile name=c,fd=4", "flowop c: fd 4 is not open"),
        ("flowop fsync name=c,fd=4", "flowop c: fd 4 is not open"),
        ("flowop readwholefile name=c,fd=4", "flowop c: it names no fileset"),
        ("flowop openfile name=c,filesetname=a,fd=1,iters=2", "flowop c: fd 1 is open already"),
        (
            "flowop read name=c,filesetname=a,random,iosize=1m",
            "flowop c: the file, or its workingset",
        ),
        ("flowop write name=c,filesetname=ro,iosize=1k", "flowop c: fileset ro is readonly"),
        (
            "flowop read name=c,filesetname=a,iosize=1k,directio",
            "flowop c: direct I/O of 1024 bytes",
        ),
        (
            "flowop aiowrite name=c,filesetname=a,iosize=1k,random,directio",
            "flowop c: direct I/O of 1024 bytes at offset ",
        ),
        ("flowop print name=c,value=hello", "thread t goes round without taking any time"),
        ("flowop deletefile name=c,filesetname=a", "flowop c: nothing of fileset a exists"),
    ];
    let sets =
        format!("{SET}\ndefine fileset name=ro,path=$dir,entries=3,dirwidth=3,prealloc,readonly");
    for (flowops, expected) in cases {
        let ran = run(&one_thread(&sets, flowops, "run 5"));
        let found = ran.report.failure().unwrap_or_default().to_owned();
        assert!(found.starts_with(expected), "found    {found}\nexpected {expected}");
    }
}
