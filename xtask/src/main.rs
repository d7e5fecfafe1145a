//! Repository chores: `cargo xtask tidy` checks what neither the compiler nor clippy can know, `licences` what we build from,
//! `perf` counts instructions, `campaigns` runs crash campaigns, those of the gate and longer ones, `differential` random jobs beside fio, `fuzz` runs fuzz targets, `rules` prints
//! what campaigns need to find a safety rule missing, `mutants` what catches planted defects, `night` all that is too long
//! for the gate, `figures` makes the numbers of pages, `verdicts` prints reproductions of papers as tables, and `picture` takes a plot from a report.
//!
//! Exit codes: 0 nothing to say; 1 findings; 2 called wrongly, or the repository cannot be read.

mod campaigns;
mod cpu;
mod differential;
mod figures;
mod files;
mod fuzz;
mod licences;
mod median;
mod mutants;
mod night;
mod perf;
mod picture;
mod repository;
mod rules;
mod tidy;
mod verdicts;

use repository::Repository;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy
       cargo xtask licences                         of all packages that we build from
       cargo xtask perf [--write] [--binary FILE]   instructions per unit of work, compared with xtask/perf.json
       cargo xtask campaigns gate [GROUP]           the crash campaigns of the gate, such as those of ext4
       cargo xtask campaigns explore [--cpu-seconds N] [--origin WORD]   the same with other seeds, N CPU seconds (600);
                                                    they derive from the word, or the commit
       cargo xtask campaigns long NAME [--jobs N] [--restart]   a long campaign, resumed where it was interrupted
       cargo xtask differential [--jobs N] [--seed S]   N random jobs (100) in fio and here, compared; the seed derives from
                                                    the commit
       cargo xtask night [--restart] [PART...]      what is too long for the gate, resumed where it was interrupted
       cargo xtask night --due                      parts of it that the gate runs: what they cover changed
       cargo xtask fuzz [TARGET] --explore [--cpu-seconds N] [--seed S] [--jobs N]   parsers and image readers under
                                                    libFuzzer, N CPU seconds each (60); what it finds is merged
       cargo xtask fuzz [TARGET] --merge            merges what was found earlier into fuzz/corpus
       cargo xtask fuzz TARGET --input FILE         a target with the input of a finding alone
       cargo xtask rules [--seeds N] [--cuts N] [--only ARGUMENTS]   seeds and cuts that find each safety rule missing;
                                                    of campaigns whose arguments contain these, such as f2fs
                    [--seconds N]                   each for at most so many seconds (600)
                    [--shrink] [--binary FILE]      with --shrink how small these violations become
       cargo xtask mutants [--only TEXT] [--jobs N] [--first] [--long SECONDS] [--list] [--restart]
                                                    planted defects, and which check of the gate catches each; resumed where it was
                                                    interrupted
       cargo xtask mutants --fresh ORIGIN [--only TEXT]   which of them fresh seeds find, such as those of a commit
       cargo xtask figures [NAME...] [--gate]       numbers of pages, made by commands, as files of docs/results/figures
       cargo xtask figures --check [NAME...] [--gate]   the same compared with the files, which stay as they are
       cargo xtask verdicts [--points] PAPER.JSON...   reproductions of papers, as Markdown tables; the points of plots, too
       cargo xtask picture PAGE PLOT FILE           a plot of a report as an SVG file";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let repository = Repository::of_this_run();
    match args.as_slice() {
        ["tidy"] => check_tree(&repository),
        ["licences"] => finish("licences", licences::run(&repository)),
        ["perf", rest @ ..] => match perf_options(rest) {
            Some(options) => finish("perf", perf::run(&repository, &options)),
            None => complain(USAGE),
        },
        ["campaigns", rest @ ..] => match campaigns::Task::of(rest) {
            Some(task) => finish("campaigns", campaigns::run(&repository, &task)),
            None => complain(USAGE),
        },
        ["differential", rest @ ..] => match differential::Options::of(rest) {
            Some(options) => finish("differential", differential::run(&repository, &options)),
            None => complain(USAGE),
        },
        ["night", rest @ ..] => match night::Task::of(rest) {
            Some(task) => finish("night", night::run(&repository, &task)),
            None => complain(USAGE),
        },
        ["mutants", rest @ ..] => match mutant_options(rest) {
            Some(options) => finish("mutants", mutants::run(&repository, &options)),
            None => complain(USAGE),
        },
        ["fuzz", rest @ ..] => match fuzz_options(rest) {
            Some(options) => finish("fuzz", fuzz::run(&repository, &options)),
            None => complain(USAGE),
        },
        ["rules", rest @ ..] => match rule_options(rest) {
            Some(options) => finish("rules", rules::run(&repository, &options)),
            None => complain(USAGE),
        },
        ["figures", rest @ ..] => match figures::Options::of(rest) {
            Some(options) => finish("figures", figures::run(&repository, &options)),
            None => complain(USAGE),
        },
        ["verdicts", "--points", files @ ..] if !files.is_empty() => verdicts(files, true),
        ["verdicts", files @ ..] if !files.is_empty() => verdicts(files, false),
        ["picture", page, plot, file] => match picture::save(page, plot, file) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => complain(&format!("picture: {error}")),
        },
        _ => complain(USAGE),
    }
}

/// Prints the tables of the reproductions in these files.
fn verdicts(files: &[&str], with_points: bool) -> ExitCode {
    match verdicts::tables(files, with_points) {
        Ok(tables) => {
            print!("{tables}");
            ExitCode::SUCCESS
        }
        Err(error) => complain(&format!("verdicts: {error}")),
    }
}

fn perf_options(args: &[&str]) -> Option<perf::Options> {
    let mut options = perf::Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--write" => options.write = true,
            "--binary" => options.binary = Some(PathBuf::from(args.next()?)),
            _ => return None,
        }
    }
    Some(options)
}

fn fuzz_options(args: &[&str]) -> Option<fuzz::Options> {
    let (target, task) = match args {
        [target, task @ ..] if !target.starts_with('-') => (Some((*target).to_owned()), task),
        task => (None, task),
    };
    let task = match task {
        ["--explore", rest @ ..] => fuzz::Task::Explore(exploration(rest)?),
        ["--merge"] => fuzz::Task::Merge,
        ["--input", file] => fuzz::Task::Input(PathBuf::from(file)),
        _ => return None,
    };
    Some(fuzz::Options { target, task })
}

fn exploration(args: &[&str]) -> Option<fuzz::Exploration> {
    let mut exploration = fuzz::Exploration::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--cpu-seconds" => exploration.cpu_seconds = args.next()?.parse().ok()?,
            "--seed" => exploration.seed = args.next()?.parse().ok()?,
            "--jobs" => exploration.jobs = args.next()?.parse().ok()?,
            _ => return None,
        }
    }
    Some(exploration)
}

fn mutant_options(args: &[&str]) -> Option<mutants::Options> {
    let mut options = mutants::Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--only" => options.only = (*args.next()?).to_owned(),
            "--jobs" => options.jobs = args.next()?.parse().ok()?,
            "--long" => options.long = args.next()?.parse().ok()?,
            "--list" => options.list = true,
            "--first" => options.first = true,
            "--fresh" => options.fresh = Some((*args.next()?).to_owned()),
            "--restart" => options.restart = true,
            _ => return None,
        }
    }
    Some(options)
}

fn rule_options(args: &[&str]) -> Option<rules::Options> {
    let mut options = rules::Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match *arg {
            "--seeds" => options.seeds = args.next()?.parse().ok()?,
            "--cuts" => options.cuts = args.next()?.parse().ok()?,
            "--seconds" => options.seconds = args.next()?.parse().ok()?,
            "--only" => options.only = (*args.next()?).to_owned(),
            "--shrink" => options.shrink = true,
            "--binary" => options.binary = Some(PathBuf::from(args.next()?)),
            _ => return None,
        }
    }
    Some(options)
}

/// Prints every finding of the repository.
fn check_tree(repository: &Repository) -> ExitCode {
    let tree = match tidy::Tree::load(repository.root()) {
        Ok(tree) => tree,
        Err(error) => return complain(&format!("tidy: {error}")),
    };
    let findings = tidy::check(&tree);
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("tidy: {} files, {} findings", tree.files.len(), findings.len());
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The exit code of a task that found nothing wrong, or something, or could not be carried out.
fn finish(task: &str, passed: Result<bool, String>) -> ExitCode {
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => complain(&format!("{task}: {error}")),
    }
}

fn complain(what: &str) -> ExitCode {
    eprintln!("{what}");
    ExitCode::from(2)
}
