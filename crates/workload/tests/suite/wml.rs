//! Filebench's language: a corpus that has every construct, and a wrong file for each kind of error
//! that says, in its first line, where and how it must be refused.

use nandscape_rt::Nanos;
use nandscape_workload::wml::{OPS, Op, WmlError, Workload, parse};
use std::path::{Path, PathBuf};

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension() == Some("f".as_ref())).collect();
    files.sort();
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

fn read(name: &str, text: &str) -> Result<Workload, WmlError> {
    parse(text, name, &[])
}

/// Each wrong file is refused at the place and with the words that it says itself.
#[test]
fn wrong_files_say_where() {
    let files = files("tests/wml/wrong");
    assert!(files.len() > 70);
    let mut wrong = Vec::new();
    for (name, text) in files {
        let expected = text.lines().next().and_then(|line| line.strip_prefix("#: ")).unwrap();
        let found =
            read(&name, &text).map_or_else(|error| error.to_string(), |_| "accepted".into());
        if !found.starts_with(&format!("{name}:{expected}")) {
            wrong.push(format!("{name}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The corpus and the examples are understood, and between them use every flowop.
#[test]
fn the_corpus_is_understood() {
    let mut used: Vec<Op> = Vec::new();
    for (name, text) in [files("tests/wml"), files("../../examples")].concat() {
        let workload = read(&name, &text).unwrap_or_else(|error| panic!("{error}"));
        used.extend(workload.threads.iter().flat_map(|thread| &thread.simple).map(|(_, op)| *op));
    }
    let unused: Vec<&str> =
        OPS.iter().filter(|(_, op)| !used.contains(op)).map(|(name, _)| *name).collect();
    assert_eq!(unused, [] as [&str; 0]);
}

/// Examples are read without a word about what has no effect.
#[test]
fn examples_are_clean() {
    for (name, text) in files("../../examples") {
        assert_eq!(read(&name, &text).unwrap().notices, [], "{name}");
    }
}

/// What is accepted without effect gets a notice, with its place.
#[test]
fn what_has_no_effect_is_reported() {
    let text = "define file name=a,path=/tmp\n\
                define process name=p,nice=5 {\n\
                thread name=t,ioprio=3 { flowop delay name=d,value=1,fd=5 } }";
    let texts: Vec<String> =
        read("n.f", text).unwrap().notices.iter().map(ToString::to_string).collect();
    let expected = [
        "n.f:2:1: there is no run command",
        "n.f:2:23: nice has no effect",
        "n.f:3:15: ioprio has no effect",
        "n.f:3:54: fd has no effect on delay",
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:?}");
    for start in expected {
        assert!(texts.iter().any(|line| line.starts_with(start)), "{start}: {texts:?}");
    }
    let after =
        "define process name=p { thread name=t { flowop delay name=d,value=1 } }\nrun 1\nrun 2";
    let notices = read("n.f", after).unwrap().notices;
    assert_eq!(notices[0].to_string(), "n.f:3:1: what follows is never reached");
}

/// A name that is a word of Filebench's language gets a notice: Filebench would refuse it.
#[test]
fn names_that_filebench_refuses_are_reported() {
    let text = "define fileset entries=9,dirwidth=9,name=files,path=/t\n\
                define process name=shadow { thread name=client {\n\
                flowop createfile name=create,filesetname=files,fd=1\n\
                flowop closefile name=\"run\",fd=1 } }\n\
                run 1";
    let notices = read("n.f", text).unwrap().notices;
    let texts: Vec<String> = notices.iter().map(ToString::to_string).collect();
    let expected = [(1, 42, "files"), (2, 42, "client"), (3, 24, "create"), (3, 43, "files")];
    let expected = expected.map(|(line, column, name)| {
        format!(
            "n.f:{line}:{column}: Filebench takes `{name}` for a word of its language, not a name"
        )
    });
    assert_eq!(texts, expected);
}

/// Variables may be set from outside, if the file sets them.
#[test]
fn variables_are_set_from_outside() {
    let text = "set $n=5\nset $twice=$n * 2\n\
                define process name=p { thread name=t,instances=$twice { flowop delay name=d,value=1 } }\n\
                run $n";
    let set = |name: &str, value: &str| parse(text, "o.f", &[(name.to_owned(), value.to_owned())]);
    let workload = set("n", "1k").unwrap();
    let length = Some(Nanos::from_secs(1_024));
    assert_eq!((workload.length, workload.threads[0].instances), (length, 2_048));
    let refused = set("m", "5").unwrap_err().to_string();
    assert_eq!(refused, "o.f: no variable of the file is called \"m\"; known: n, twice");
    let random = "define randvar name=$n,type=uniform,mean=3\ndefine process name=p \
                  { thread name=t,instances=$n { flowop delay name=d,value=1 } }\nrun 5";
    assert!(
        parse(random, "r.f", &[]).unwrap_err().to_string().contains("a random variable cannot")
    );
    let fixed = parse(random, "r.f", &[("n".to_owned(), "7".to_owned())]).unwrap();
    assert_eq!(fixed.threads[0].instances, 7, "a random variable may be given a value, too");
    assert!(set("n", "some").unwrap_err().to_string().starts_with("o.f:2:12: expected a number"));
}

/// Definitions see what variables are when the run begins.
#[test]
fn definitions_are_looked_at_last() {
    let text = "set $n=5\ndefine process name=p { thread name=t,instances=$n { flowop delay name=d,value=1 } }\n\
                set $n=7\nrun 1";
    assert_eq!(read("l.f", text).unwrap().threads[0].instances, 7);
}

/// Whatever is in a file, it is read or refused.
#[test]
fn any_text_is_read_or_refused() {
    use proptest::prelude::*;
    let words = prop::sample::select(vec![
        "set",
        "$a",
        "=",
        "5k",
        "-",
        "define",
        "fileset",
        "process",
        "flowop",
        "thread",
        "name",
        ",",
        "{",
        "}",
        "(",
        ")",
        "randvar",
        "cvar",
        "type",
        "tabular",
        "randtable",
        "\"x$a\"",
        "run",
        "\n",
        "read",
        "path",
        "/t",
        "*",
        "psrun",
        "-3",
        "é",
        "\"",
    ]);
    let text = prop::collection::vec(words, 0..60).prop_map(|words| words.join(" "));
    proptest!(ProptestConfig::with_cases(2_000), |(text in text)| {
        if let Err(error) = read("any.f", &text) {
            prop_assert!(error.to_string().starts_with("any.f:"));
        }
    });
}
