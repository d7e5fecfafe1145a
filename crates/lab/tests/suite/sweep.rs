//! Sweep files: which runs they stand for, and that what is wrong with one is reported with its place.

use nandscape_lab::run::{NoObserver, RunOptions};
use nandscape_lab::sweep::{FinishedRow, Sweep};
use nandscape_lab::workload::fio::{Environment, HostEnvironment};
use std::io;
use std::path::Path;

const GRID: &str = "seeds = [7, 3]
[jobs]
w = \"\"\"
[w]
rw=randwrite
direct=1
number_ios=100
\"\"\"
r = \"[r]\\nrw=randread\\ndirect=1\\nnumber_ios=100\\n\"
[set]
media.chunks = 48
media.sectors = 128
precondition.random_overwrite = 0.0
[grid]
ftl.op_percent = [35, 40]
ftl.gc.victim = [\"greedy\", \"fifo\"]
";

/// A world with one job file.
struct OneFile;

impl Environment for OneFile {
    fn read(&self, path: &Path) -> io::Result<String> {
        match path.to_str() {
            Some("folder/job.fio") => Ok("[f]\nrw=write\ndirect=1\nsize=1m\n".into()),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }
    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

fn parse(text: &str) -> Result<Sweep, String> {
    Sweep::parse("folder/grid.toml", text, &OneFile).map_err(|error| error.to_string())
}

/// The order of points is that of the file: jobs, then keys, the last key fastest, then seeds.
#[test]
fn points_stand_in_the_order_of_the_file() {
    let sweep = parse(GRID).unwrap();
    assert_eq!((sweep.name.as_str(), sweep.runs()), ("grid", 16));
    let labels: Vec<_> = (0..16).step_by(2).map(|at| sweep.at(at).0.label()).collect();
    assert_eq!(
        labels[..5],
        [
            "pblk w ftl.op_percent=35 ftl.gc.victim=\"greedy\"",
            "pblk w ftl.op_percent=35 ftl.gc.victim=\"fifo\"",
            "pblk w ftl.op_percent=40 ftl.gc.victim=\"greedy\"",
            "pblk w ftl.op_percent=40 ftl.gc.victim=\"fifo\"",
            "pblk r ftl.op_percent=35 ftl.gc.victim=\"greedy\"",
        ]
    );
    assert_eq!([sweep.at(0).1, sweep.at(1).1, sweep.at(2).1], [7, 3, 7]);
    assert!((0..16).all(|at| sweep.at(at).0.stack.media.geometry.chunks == 48));
}

/// The name of a run changes with its stack, job, seed and program, and with nothing else.
#[test]
fn runs_are_named_by_what_they_follow_from() {
    let ids = |text: &str, program: &str| parse(text).unwrap().ids(program);
    let all = ids(GRID, "1");
    assert!(all.iter().enumerate().all(|(at, id)| !all[..at].contains(id)));
    assert_eq!(all, ids(&format!("name = \"x\"\nreport = \"waf.gc\"\n{GRID}"), "1"));
    let reversed = ids(&GRID.replace("[35, 40]", "[40, 35]"), "1");
    assert_eq!((&all[..4], &all[4..8]), (&reversed[4..8], &reversed[..4]));
    for other in [ids(GRID, "2"), ids(&GRID.replace("random_overwrite = 0.0", "fill = 0.5"), "1")] {
        assert!(all.iter().all(|id| !other.contains(id)));
    }
    let other_job = ids(&GRID.replacen("number_ios=100", "number_ios=101", 1), "1");
    assert!(all[..8].iter().all(|id| !other_job.contains(id)));
    assert_eq!(all[8..], other_job[8..]);
}

/// A row is the same whenever its run is run, names its run, and carries no wall time.
#[test]
fn a_row_follows_from_its_run_alone() {
    let sweep = parse(GRID).unwrap();
    let row = sweep.run(5, "commit", RunOptions::default(), &mut NoObserver).unwrap();
    assert_eq!(row, sweep.run(5, "commit", RunOptions::default(), &mut NoObserver).unwrap());
    assert!(!row.contains('\n') && !row.contains("wall_s"), "{row}");
    let read = FinishedRow::parse(&row).unwrap();
    assert_eq!(read.id, sweep.ids(&nandscape_lab::sweep::program("commit"))[5]);
    assert!(!read.failed());
    assert_eq!(read.result["jobs"][0]["write"]["total_ios"], 100);
}

/// Whatever is wrong is reported with file, line, column and key.
#[test]
fn what_is_wrong_is_reported_with_its_place() {
    let cases = [
        ("seeds = [7, 3]", "sedes = 2", ":1:1: sedes: unknown key; did you mean \"seeds\"?"),
        ("seeds = [7, 3]", "seeds = 0", ":1:9: seeds: expected how many"),
        ("seeds = [7, 3]", "seeds = [7, 7]", ":1:9: seeds: expected how many"),
        ("seeds = [7, 3]", "report = [\"a\", 1]", ":1:16: report: expected strings, found 1"),
        ("seeds = [7, 3]", "stacks = [\"pblkk\"]", ":1:11: stacks: unknown stack \"pblkk\""),
        ("rw=randwrite", "wr=randwrite", ":3:5: jobs.w: folder/jobs.w (inline):2"),
        ("[35, 40]", "[35, 4000]", ":15:23: ftl.op_percent: "),
        ("[35, 40]", "35", ":15:18: grid.ftl.op_percent: expected a list of values, found 35"),
        ("[35, 40]", "[35, 35]", ":14:2: grid: duplicate run"),
        ("[35, 40]", "[]", ":15:18: grid.ftl.op_percent: expected a list of values"),
        ("op_percent", "opercent", ":15:5: ftl.opercent: unknown key"),
        ("media.sectors = 128", "media.sectors = \"big\"", ":12:17: media.sectors: expected"),
        ("[grid]", "[gird]", ":14:2: gird: unknown key; did you mean \"grid\"?"),
        ("[grid]", "[grid", ":14:6: "),
        ("seeds = [7, 3]", "seeds = 30000", ":14:2: grid: more than 100000 runs"),
        ("128", "\"${wide}\"", ":12:17: sectors: no variable var.wide is set"),
        ("128", "128\nvar = 3", ":13:7: var: expected a table of variables, found 3"),
        ("128", "128\nvar.a = 3\nvar.b = {a = 3}", ":14:14: var.a: the variable is set twice"),
        ("128", "128\nvar.a = [3]", ":13:9: var.a: expected text or a number"),
        ("[grid]", "[[line]]\nvalue = 1\n[grid]", ":14:1: line.figure: is missing"),
        ("[grid]", "[[line]]\nfigure = 1\n[grid]", ":15:10: line.figure: expected a string"),
        ("[grid]", "[[line]]\nfigure = \"a\"\nlable = 1\n[grid]", ":14:1: line.value: is missing"),
        ("[grid]", "[line]\nvalue = 1\n[grid]", ":14:1: line: expected [[line]] tables"),
    ];
    for (from, to, expected) in cases {
        let error = parse(&GRID.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains(&format!("folder/grid.toml{expected}")), "{to}: {error}");
    }
    let of_files = |jobs: &str| parse(&format!("jobs = {jobs}\n"));
    assert_eq!(of_files("\"job.fio\"").unwrap().runs(), 1);
    assert!(
        of_files("[\"job.fio\", \"none.fio\"]").unwrap_err().contains(":1:20: jobs: cannot read")
    );
    assert!(of_files("[]").unwrap_err().contains(":1:8: jobs: "));
    assert!(parse("").unwrap_err().contains("folder/grid.toml:1:1: jobs: is missing"));
}

/// A variable changes a job and its stack together; a value that is a table sets several at once.
#[test]
fn variables_change_jobs_and_stacks_together() {
    let sweep = parse(
        "jobs = { a = \"[a]\\nrw=write\\ndirect=1\\nsize=${size}\\nnumber_ios=${count}\\n\" }
        [set]
        hints.journal_range = [\"0\", \"${size}\"]
        [grid]
        var.both = [{size = \"1m\", count = 3}, {size = \"2m\", count = 5}]
        ",
    )
    .expect("sound");
    let labels: Vec<_> = sweep.cases.iter().map(|case| case.label()).collect();
    assert_eq!(
        labels,
        [
            "pblk a var.both.size=\"1m\" var.both.count=3",
            "pblk a var.both.size=\"2m\" var.both.count=5"
        ]
    );
    for (case, size) in sweep.cases.iter().zip(["1MiB", "2MiB"]) {
        let range = format!("journal_range = [\"0\", \"{size}\"]");
        assert!(case.stack.toml.contains(&range), "{}", case.stack.toml);
    }
    assert_ne!(sweep.cases[0].job, sweep.cases[1].job);
}

/// One variable may be two things of one name, to a job of fio's and to a workload: that is reported, and not
/// where only one of them reads it.
#[test]
fn one_name_for_two_things_is_refused() {
    let text = |set: &str| {
        format!(
            "stacks = \"ext4-pblk\"
            [jobs]
            a = \"[a]\\nrw=write\\ndirect=1\\nsize=${{size}}\\n\"
            \"a.f\" = \"{set} define file name=a,path=/a,size=$size define process name=p
            {{ thread name=t {{ flowop statfile name=s,filename=a }} }}\"
            [set]
            var.size = \"1m\"
            "
        )
        .replace("name=p\n", "name=p")
    };
    for set in ["set $size=4k", "define randvar name=$size,type=uniform,mean=4k"] {
        let notices = parse(&text(set)).unwrap().notices();
        let expected = "notice: var.size stands for ${size} in a and takes the place of $size in a.f; if \
                        these are two things, one needs another name";
        assert!(notices.contains(&expected.to_owned()), "{notices:?}");
    }
    let other = text("set $bytes=4k").replace("size=$size", "size=$bytes");
    assert!(!parse(&other).unwrap().notices().iter().any(|notice| notice.contains("var.size")));
}

/// A workload of Filebench is a job like any other: its variables are the sweep's where they have the same
/// name, a run is another one where they differ, and its figures stand in the row.
#[test]
fn workloads_are_jobs() {
    let text = "stacks = \"ext4-pblk\"
        [jobs]
        \"files.f\" = \"\"\"
        set $files=10
        set $size=4k
        define fileset name=all,path=/d,entries=$files,size=$size,dirwidth=20,prealloc=100
        define process name=p
        {
          thread name=t
          {
            flowop readwholefile name=read,filesetname=all,iters=$files
            flowop finishoncount name=end,value=$files
          }
        }
        run 1
        \"\"\"
        [set]
        media.chunks = 48
        media.sectors = 128
        ftl.op_percent = 35
        host.memory = \"16MiB\"
        [grid]
        var.files = [3, 7]
        ";
    let sweep = parse(text).expect("sound");
    let ids = sweep.ids("1");
    assert_ne!(ids[0], ids[1]);
    let read = |index| {
        let row = sweep.run(index, "", RunOptions::default(), &mut NoObserver).expect("a row");
        let row = FinishedRow::parse(&row).expect("a row");
        assert!(!row.failed());
        row.result["nandscape"]["wml"]["filesets"][0]["files"].as_u64()
    };
    assert_eq!([read(0), read(1)], [Some(3), Some(7)]);
    let unread = parse(&text.replace("var.files", "var.fils")).unwrap_err();
    assert!(unread.contains("var.fils: no job and no key of a stack names ${fils}"), "{unread}");
    let set = text.replace("media.sectors = 128", "media.sectors = 128\nvar.fils = 3");
    let unread = parse(&set).unwrap_err();
    assert!(unread.contains("grid.toml:20:5: var.fils: no job"), "{unread}");
    let endless = parse(&format!("until_steady = true\n{text}")).unwrap_err();
    assert!(endless.contains("files.f defines its own run time"), "{endless}");
    let wrong = parse(&text.replace("prealloc=100", "prealoc=100")).unwrap_err();
    assert!(wrong.contains("jobs.files.f (inline):3:79: no attribute"), "{wrong}");
}

/// A point whose device cannot be is refused before anything has run, at the key of the grid.
#[test]
fn a_device_that_cannot_be_is_refused_at_once() {
    let error = parse(&GRID.replace("[35, 40]", "[40, 5]")).unwrap_err();
    assert!(error.starts_with("folder/grid.toml:15:"), "{error}");
    assert!(error.contains("ftl.op_percent: ") && error.contains("not enough lines"), "{error}");
}

/// Every sweep that ships is one that can be run to its end.
#[test]
fn examples_are_sound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut sweeps = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            let sweep = Sweep::parse(path.to_str().unwrap(), &text, &HostEnvironment);
            assert!(sweep.is_ok_and(|sweep| sweep.runs() > 1), "{}", path.display());
            sweeps += 1;
        }
    }
    assert!(sweeps > 5, "{sweeps}");
}
