//! Names that are read here and not by Filebench, whose lexer takes them for words of its language
//! (parser_lex.l of version 1.5).

use super::super::error::At;
use super::super::syntax::{Attributes, Command, ValueKind};

/// The words of its language, in order.
const WORDS: [&str; 89] = [
    "alldone",
    "blocking",
    "client",
    "create",
    "cvar",
    "debug",
    "define",
    "dirdepthrv",
    "directio",
    "dirgamma",
    "dirwidth",
    "domultisync",
    "dsync",
    "echo",
    "enable",
    "entries",
    "eventgen",
    "false",
    "fd",
    "file",
    "filename",
    "files",
    "fileset",
    "filesetname",
    "filesets",
    "filesize",
    "firstdone",
    "flowop",
    "gamma",
    "highwater",
    "in",
    "indexed",
    "instances",
    "ioprio",
    "iosize",
    "iters",
    "lathist",
    "leafdirs",
    "list",
    "master",
    "max",
    "mean",
    "memsize",
    "min",
    "mode",
    "multi",
    "name",
    "nice",
    "noreadahead",
    "nousestats",
    "opennext",
    "paralloc",
    "parameters",
    "path",
    "prealloc",
    "process",
    "processes",
    "psrun",
    "quit",
    "rand48",
    "random",
    "randsrc",
    "randtable",
    "randvar",
    "rate",
    "readonly",
    "reuse",
    "round",
    "run",
    "seed",
    "set",
    "size",
    "sleep",
    "srcfd",
    "system",
    "tabular",
    "target",
    "thread",
    "timeout",
    "true",
    "trusttree",
    "type",
    "uniform",
    "urandom",
    "useism",
    "value",
    "version",
    "workingset",
    "writeonly",
];
/// Attributes that give a name or ask for one.
const NAMING: [&str; 4] = ["name", "filename", "filesetname", "target"];

/// Names in a definition that Filebench would refuse, and where they stand.
pub(super) fn refused(command: &Command) -> Vec<(At, &str)> {
    attributes(command).into_iter().flat_map(refused_in).collect()
}

/// All attributes of a definition.
fn attributes(command: &Command) -> Vec<&Attributes> {
    match command {
        Command::Fileset(own) | Command::File(own) => vec![own],
        Command::Flowop(own, flowops) => {
            std::iter::once(own).chain(flowops.iter().map(|flowop| &flowop.attributes)).collect()
        }
        Command::Process(own, threads) => {
            let of_threads = threads.iter().flat_map(|thread| {
                let flowops = thread.flowops.iter().map(|flowop| &flowop.attributes);
                std::iter::once(&thread.attributes).chain(flowops)
            });
            std::iter::once(own).chain(of_threads).collect()
        }
        _ => Vec::new(),
    }
}

fn refused_in(attributes: &Attributes) -> impl Iterator<Item = (At, &str)> {
    let naming = attributes.list.iter().filter(|one| NAMING.contains(&one.name.text.as_str()));
    naming.filter_map(|one| {
        let value = one.value.as_ref()?;
        let ValueKind::Word(name) = &value.kind else { return None };
        WORDS.contains(&name.as_str()).then_some((value.at, name.as_str()))
    })
}
