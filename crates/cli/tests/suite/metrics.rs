//! The description of metrics against real results: each number of a result is described exactly once, and each
//! description is that of a number of some result. Then `nandscape keys` and `nandscape metrics` as users meet them.

use crate::common;

use common::{Folder, err, out};
use nandscape_report::metrics::{Entry, entries};
use serde_json::Value;
use std::collections::BTreeSet;

const SMALL: &str = "name = \"small\"\nextends = \"pblk\"\n[media]\nchunks = 48\nsectors = 128\n\
                     [ftl]\nop_percent = 35\n[precondition]\nfill = 1.0\nrandom_overwrite = 0.5\n";
/// A mapping block covers a line of data, so a cached map needs more and shorter lines.
const CACHED: &str = "name = \"cached\"\nextends = \"small.toml\"\n[ftl.map]\nkind = \"cached\"\n\
                      policy = \"dftl\"\n";
const DIRECT: &str = "[global]\ndirect=1\nbs=4k\nsize=16m\n[a]\nrw=randrw\nfsync=50\nnumber_ios=4000\n\
                      [b]\nrw=randtrim\nnumber_ios=50\n";
const UNIFORM: &str = "[a]\nrw=randwrite\ndirect=1\nbs=4k\nnorandommap\nnumber_ios=20000\n";
const BUFFERED: &str = "[a]\nrw=randrw\nbs=4k\nsize=4m\nfsync=10\nnumber_ios=300\n";
const ZONES: &str = "[a]\nrw=write\ndirect=1\nbs=1m\nzonemode=zbd\noffset=192m\nsize=128m\nnumber_ios=130\nfsync=64\n\
                     loops=2\n";
const WORKLOAD: &str = "define fileset name=docs,path=/d,size=16k,entries=20,dirwidth=5,prealloc=80\n\
    define process name=p,instances=1 {\n  thread name=t,memsize=1m,instances=2 {\n\
    flowop openfile name=open,filesetname=docs,fd=1\n    flowop readwholefile name=read,fd=1,iosize=64k\n\
    flowop closefile name=close,fd=1\n    flowop delay name=nap,value=1\n  }\n}\npsrun -1 2\n";
const STEADY: &str = "[a]\nrw=randwrite\ndirect=1\nbs=512\nsize=16m\nruntime=3s\ntime_based\nsteadystate=iops:90%\n\
                      steadystate_duration=2s\n";
const TRACE: &str =
    "fio version 3 iolog\n0 dev add\n0 dev open\n10 dev write 0 16384\n20 dev read 0 4096\n";

/// A run of each kind of FTL, file system and workload, with the options that add to results.
const RUNS: [&str; 16] = [
    "run direct.fio --stack small.toml --set ftl.cpu=qemu",
    "run direct.fio --stack cached.toml",
    "run buffered.fio --stack small.toml --set host.memory_of=all --set host.memory=256MiB",
    "run direct.fio --stack small.toml --until-steady=round=5ms,rounds=5",
    "run direct.fio --stack ssd --set precondition.recipe=none",
    "run uniform.fio --stack small.toml",
    "run zones.fio --stack zns --zones",
    "run direct.fio --stack iplfs-ssd",
    "run buffered.fio --stack small.toml --set fs.kind=ext4 --set host.memory_of=all --set host.memory=256MiB",
    "run buffered.fio --stack f2fs-gcj-ssd --set fs.cpu=estimate",
    "run buffered.fio --stack d2fs-16g --set fs.cpu=estimate",
    "run buffered.fio --stack iplfs-16g",
    "run direct.fio --stack small.toml --set precondition.recipe=none --set ftl.routing=journal",
    "run steady.fio --stack small.toml",
    "run load.f --stack small.toml --set fs.kind=ext4",
    "trace run load.log --stack small.toml",
];

/// Metrics of runs that were interrupted, and of long ones: the device has to move pages.
const NOT_HERE: [&str; 2] = ["interrupted", "fs.cpu.upcall_ns"];

/// The path of each number of a result; those below our key without it. A null is where a number may be.
fn leaves(value: &Value, path: &str, all: &mut BTreeSet<(String, bool)>) {
    let below = |key: &str| match path {
        "" | "nandscape" => key.to_owned(),
        _ => format!("{path}.{key}"),
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| !key.ends_with(" options")) {
                leaves(value, &below(key), all);
            }
        }
        Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                leaves(value, &below(&at.to_string()), all);
            }
        }
        Value::Number(_) | Value::Bool(_) => drop(all.insert((path.to_owned(), true))),
        Value::Null => drop(all.insert((path.to_owned(), false))),
        Value::String(_) => {}
    }
}

fn result(folder: &Folder, words: &str) -> Value {
    let format = if words.starts_with("trace") { "json" } else { "json+" };
    let mut args: Vec<&str> = words.split(' ').collect();
    args.extend(["--output-format", format]);
    let output = folder.run(&args);
    assert_eq!(output.status.code(), Some(0), "{words}: {}", err(&output));
    serde_json::from_str(&out(&output)).unwrap()
}

/// Every number has one description; every description has a number.
#[test]
fn results_are_described() {
    let folder = Folder::new("metrics");
    for (name, text) in [
        ("small.toml", SMALL),
        ("cached.toml", CACHED),
        ("direct.fio", DIRECT),
        ("uniform.fio", UNIFORM),
        ("buffered.fio", BUFFERED),
        ("zones.fio", ZONES),
        ("steady.fio", STEADY),
        ("load.f", WORKLOAD),
        ("load.log", TRACE),
    ] {
        folder.write(name, text);
    }
    let described: Vec<Entry> = entries().filter(|entry| !entry.group.derived).collect();
    let mut found = BTreeSet::from(NOT_HERE.map(str::to_owned));
    for words in RUNS {
        let mut all = BTreeSet::new();
        leaves(&result(&folder, words), "", &mut all);
        for (path, is_number) in all {
            let of: Vec<String> =
                described.iter().filter(|entry| entry.is_at(&path)).map(Entry::path).collect();
            assert!(
                of.len() == 1 || !is_number && of.is_empty(),
                "{words}: {path} is described by {of:?}"
            );
            found.extend(of);
        }
    }
    let missing: Vec<String> =
        described.iter().map(Entry::path).filter(|path| !found.contains(path)).collect();
    assert_eq!(missing, [] as [&str; 0], "no result has them");
}

/// Keys and metrics are printed to be read, as JSON and as CSV; what is not found is bad input with a suggestion.
#[test]
fn descriptions_are_printed() {
    let folder = Folder::new("descriptions");
    let said = |args: &str| {
        let output = folder.run(&args.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(0), "{args}: {}", err(&output));
        out(&output)
    };
    let text = said("keys ftl.gc.period");
    assert!(text.starts_with("ftl.gc.period   (ftl.kind = pblk)\n"), "{text}");
    assert!(text.contains("  values   time, 1us to 3600s\n  default  1s\n"), "{text}");
    let json: Value =
        serde_json::from_str(&said("keys media.groups --output-format json")).unwrap();
    assert_eq!(
        (&json[0]["key"], &json[0]["default"]),
        (&"media.groups".into(), &"required".into())
    );
    assert!(said("metrics all.read.iops").starts_with("all.<direction>.iops   (1/s)\n"));
    let csv = said("metrics waf.media --output-format csv");
    assert!(csv.starts_with("metric,unit,meaning,present\nwaf.media,ratio,"), "{csv}");
    for (args, suggestion) in [("keys gc.victm", "gc.victim"), ("metrics waf.gcc", "waf.gc")] {
        let output = folder.run(&args.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{args}");
        assert!(
            err(&output).contains(&format!("did you mean \"{suggestion}\"?")),
            "{}",
            err(&output)
        );
    }
}
