//! Reads a job file section by section: globals, jobs, included files, environment variables.
//!
//! `[global]` applies to the jobs below it and may come again. An included file is read in the
//! place of its `include` line and holds no section headers, as fio's manual has it; its path is
//! relative to the including file. A file that includes itself, however indirectly, is an error.

use super::error::{JobFileError, Notice, Why};
use super::keys;
use super::lexer::{self, Line};
use super::rules::{IoLog, ZoneMode};
use super::runtime::Runtime;
use super::sources::{COMMAND_LINE, JobSources, JobText};
use super::spec::{JobFile, JobOption, JobSpec, Mix, Pattern};
use super::units::UNIT_BYTES;
use super::value::{Setter, Value};
use super::{known, suggest, zbd};
use crate::direction::Direction;
use crate::place::Place;
use crate::trace::{Format, ReadOptions, Record, TraceReader};
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Includes at most, repeated ones counted again: the text of a few files that each include the next one twice doubles with
/// every file.
const INCLUDES_MAX: u32 = 1_000;

/// What job files may ask of the world around them.
pub trait Environment {
    /// The text of a file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, path: &Path) -> std::io::Result<String>;
    /// The value of an environment variable.
    fn variable(&self, name: &str) -> Option<String>;
}

/// The process's own files and variables.
#[derive(Clone, Copy, Default, Debug)]
pub struct HostEnvironment;

impl Environment for HostEnvironment {
    fn read(&self, path: &Path) -> std::io::Result<String> {
        std::fs::read_to_string(path)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

/// Reads the job file at `path`.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn load(path: &Path, environment: &dyn Environment) -> Result<JobFile, JobFileError> {
    let name = path.display().to_string();
    let text = environment
        .read(path)
        .map_err(|error| JobFileError::new(Place::file(&name), error.to_string()))?;
    parse(&text, &name, environment)
}

/// Reads a job file from `text`; `name` stands in messages and is where includes are relative to.
///
/// # Errors
/// The first thing that is wrong, with its place.
pub fn parse(
    text: &str,
    name: &str,
    environment: &dyn Environment,
) -> Result<JobFile, JobFileError> {
    parse_for(text, name, environment, None)
}

/// The same; every job has this `runtime`, if there is one, whatever the file says.
///
/// # Errors
/// As [`parse`].
pub fn parse_for(
    text: &str,
    name: &str,
    environment: &dyn Environment,
    runtime: Option<Runtime>,
) -> Result<JobFile, JobFileError> {
    read_all(
        &JobSources { files: vec![JobText { name, text }], runtime, ..JobSources::default() },
        environment,
    )
}

/// Reads the jobs of all `sources`.
///
/// # Errors
/// As [`parse`].
pub fn read_all(
    sources: &JobSources<'_>,
    environment: &dyn Environment,
) -> Result<JobFile, JobFileError> {
    let mut reader = Reader::new(sources, environment);
    reader.words(sources.command_line)?;
    for (index, file) in sources.files.iter().enumerate() {
        (reader.index, reader.leaves_out) = (index + 1, false);
        reader.open_files = vec![file.name.into()];
        reader.file(&file.name.into(), file.text)?;
    }
    reader.expect_sections()?;
    let file = resolve(&reader.sections, environment, sources.runtime)?;
    if file.jobs.is_empty() {
        let (place, expected) = match sources.files.last() {
            None => (COMMAND_LINE, "--name=NAME or a job file"),
            Some(file) => (file.name, "at least one section other than [global]"),
        };
        let error = JobFileError::new(Place::file(place), "no job in this file");
        return Err(error.expected(expected));
    }
    Ok(file)
}

/// A key with its value, environment variables replaced.
struct Entry {
    place: Place,
    key: String,
    value: Option<String>,
}

/// A section as it stands in the file.
struct Section {
    place: Place,
    name: String,
    entries: Vec<Entry>,
    /// The number of its file, from 1; 0: the command line.
    file: usize,
}

impl Section {
    fn is_global(&self) -> bool {
        is_global(&self.name)
    }

    /// The last entry of any of these keys, or else the section's header.
    fn place_of(&self, keys: &[&str]) -> Place {
        let entry = self.entries.iter().rev().find(|entry| keys.contains(&entry.key.as_str()));
        entry.map_or(&self.place, |entry| &entry.place).clone()
    }
}

fn is_global(section: &str) -> bool {
    section.eq_ignore_ascii_case("global")
}

struct Reader<'a> {
    environment: &'a dyn Environment,
    /// The only jobs to read; empty: all.
    chosen: &'a [String],
    /// The file being read, behind those that include it.
    open_files: Vec<PathBuf>,
    /// Files that were included so far.
    includes: u32,
    /// Its number, without those that it includes.
    index: usize,
    sections: Vec<Section>,
    /// The jobs that are left out because they are not chosen.
    left_out: Vec<String>,
    /// The current section is one of them.
    leaves_out: bool,
}

impl<'a> Reader<'a> {
    fn new(sources: &JobSources<'a>, environment: &'a dyn Environment) -> Self {
        Self {
            environment,
            chosen: sources.sections,
            open_files: Vec::new(),
            includes: 0,
            index: 0,
            sections: Vec::new(),
            left_out: Vec::new(),
            leaves_out: false,
        }
    }

    /// The options of the command line: those before the first `name` are global, as in fio.
    fn words(&mut self, words: &[JobOption]) -> Result<(), JobFileError> {
        let place = || Place::file(COMMAND_LINE);
        if words.first().is_some_and(|(key, _)| key != "name") {
            self.section(place(), "global");
        }
        for (key, value) in words {
            match (key.as_str(), value.as_deref()) {
                ("name", Some(name)) if !name.is_empty() => self.section(place(), name),
                ("name", _) => {
                    let error = JobFileError::new(place(), "has no value");
                    return Err(error.key(key).expected("a name"));
                }
                (key, value) => self.option(place(), key, value)?,
            }
        }
        Ok(())
    }

    /// A section begins.
    fn section(&mut self, place: Place, name: &str) {
        let is_chosen = self.chosen.is_empty() || self.chosen.iter().any(|chosen| chosen == name);
        self.leaves_out = !is_chosen && !is_global(name);
        match self.leaves_out {
            true => self.left_out.push(name.to_owned()),
            false => self.sections.push(Section {
                place,
                name: name.into(),
                entries: Vec::new(),
                file: self.index,
            }),
        }
    }

    /// Refuses a choice of sections that are not there.
    fn expect_sections(&self) -> Result<(), JobFileError> {
        let is_there = |name: &String| self.sections.iter().any(|section| section.name == *name);
        let Some(missing) = self.chosen.iter().find(|name| !is_there(name)) else { return Ok(()) };
        let jobs = self.sections.iter().filter(|section| !section.is_global());
        let all: Vec<&str> = jobs
            .map(|job| job.name.as_str())
            .chain(self.left_out.iter().map(String::as_str))
            .collect();
        let error = JobFileError::new(Place::file("--section"), format!("no section `{missing}`"));
        Err(error.expected(format!("one of: {}", all.join(", "))))
    }

    fn file(&mut self, name: &Arc<str>, text: &str) -> Result<(), JobFileError> {
        for line in lexer::lines(name, text) {
            let (place, line) = line?;
            match line {
                Line::Section(_) if self.open_files.len() > 1 => {
                    let problem = "a section in an included file";
                    return Err(JobFileError::new(place, problem).expected("keys only"));
                }
                Line::Section(section) => self.section(place, section),
                // fio does not read the rest of a job that it leaves out either.
                _ if self.leaves_out => {}
                Line::Include(path) => self.include(&place, path)?,
                Line::Option { key, value } => self.option(place, key, value)?,
            }
        }
        Ok(())
    }

    fn option(&mut self, place: Place, key: &str, value: Option<&str>) -> Result<(), JobFileError> {
        if self.leaves_out {
            return Ok(());
        }
        let value = value.map(|value| self.expand(&place, key, value)).transpose()?;
        let section = self.sections.last_mut().filter(|section| section.file == self.index);
        let Some(section) = section else {
            let error = JobFileError::new(place, "a key before the first section");
            return Err(error.key(key).expected("[global] or [job name]"));
        };
        section.entries.push(Entry { place, key: key.into(), value });
        Ok(())
    }

    fn include(&mut self, place: &Place, path: &str) -> Result<(), JobFileError> {
        let fail = |problem| Err(JobFileError::new(place.clone(), problem).key("include"));
        let path = self.expand(place, "include", path)?;
        let including = self.open_files.last().and_then(|file| file.parent());
        let path = including.unwrap_or(Path::new("")).join(path);
        let name = path.display().to_string();
        if self.open_files.contains(&path) {
            return fail(format!("{name} includes itself"));
        }
        self.includes += 1;
        if self.includes > INCLUDES_MAX {
            return fail(format!("more than {INCLUDES_MAX} files are included"));
        }
        let text = match self.environment.read(&path) {
            Ok(text) => text,
            Err(error) => return fail(format!("{name}: {error}")),
        };
        self.open_files.push(path);
        self.file(&name.into(), &text)?;
        self.open_files.pop();
        Ok(())
    }

    /// `text` with every `${NAME}` replaced.
    fn expand(&self, place: &Place, key: &str, text: &str) -> Result<String, JobFileError> {
        let value = |name: &str| self.environment.variable(name);
        expand(text, value).map_err(|error| {
            let wrong = |problem| JobFileError::new(place.clone(), problem).key(key);
            match error {
                ExpandError::Unended => wrong(error.to_string()).expected("`}`"),
                ExpandError::Unset(name) => {
                    wrong(format!("the environment variable {name} is not set"))
                }
            }
        })
    }
}

/// Why a text with variables has no meaning.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExpandError {
    /// A name does not end.
    #[error("`${{` without an end")]
    Unended,
    /// The variable is unknown.
    #[error("no variable {0} is set")]
    Unset(String),
}

/// `text` with every `${NAME}` replaced by the variable's value.
///
/// # Errors
/// A name without its `}`, or one that has no value.
pub fn expand(text: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, ExpandError> {
    let (mut expanded, mut rest) = (String::new(), text);
    while let Some((before, from)) = rest.split_once("${") {
        let (name, after) = from.split_once('}').ok_or(ExpandError::Unended)?;
        expanded += before;
        expanded += &value(name).ok_or_else(|| ExpandError::Unset(name.to_owned()))?;
        rest = after;
    }
    Ok(expanded + rest)
}

/// Sections to jobs: globals applied, values understood.
fn resolve(
    sections: &[Section],
    environment: &dyn Environment,
    runtime: Option<Runtime>,
) -> Result<JobFile, JobFileError> {
    let (jobs, notices, options) = Default::default();
    let mut file = JobFile { jobs, notices, options, fits: false };
    let fresh = || (JobSpec::new("", Place::file("")), 1024);
    let (mut global, mut index, mut wall) = (fresh(), 0, false);
    for section in sections {
        // As in fio: the globals of the command line are those of the first file, too, and the first job of a
        // further file waits for those of the file before it.
        if section.file > std::mem::replace(&mut index, section.file).max(1) {
            (global, wall) = (fresh(), !file.jobs.is_empty());
        }
        let (template, kb_base) = &global;
        let (mut job, mut kb_base) = (template.clone(), *kb_base);
        if !section.is_global() {
            job.name.clone_from(&section.name);
        }
        job.place = section.place.clone();
        apply(section, &mut job, &mut kb_base, &mut file.notices)?;
        let options = section.entries.iter().map(|entry| (entry.key.clone(), entry.value.clone()));
        let given = runtime.map(|runtime| ("runtime".to_owned(), Some(runtime.to_string())));
        if section.is_global() {
            file.options.extend(options);
            global = (job, kb_base);
        } else {
            job.stonewall |= std::mem::take(&mut wall);
            job.runtime = runtime.map(Runtime::time).or(job.runtime);
            load_logs(section, &mut job, environment)?;
            check(section, &job)?;
            check_wait(section, &job, &file.jobs)?;
            file.notices.extend(idle_zone_keys(section, &job));
            check_log_file(section, &job, &file.jobs)?;
            job.options = options.chain(given).collect();
            file.jobs.push(job);
        }
    }
    Ok(file)
}

/// Applies a section's keys in order; `kb_base` first, since it decides how the others are read.
fn apply(
    section: &Section,
    job: &mut JobSpec,
    kb_base: &mut u64,
    notices: &mut Vec<Notice>,
) -> Result<(), JobFileError> {
    for entry in section.entries.iter().filter(|entry| entry.key == "kb_base") {
        let value = Value { text: entry.value.as_deref(), kb_base: *kb_base };
        *kb_base = keys::kb_base(&value).map_err(|expected| refused(entry, expected))?;
    }
    for entry in &section.entries {
        let value = Value { text: entry.value.as_deref(), kb_base: *kb_base };
        let remark = match lookup(entry)? {
            Known::Effect(set) => set(job, &value).map_err(|expected| refused(entry, expected))?,
            Known::Machine(why) => Some(why),
        };
        notices.extend(remark.map(|why| Notice {
            place: entry.place.clone(),
            key: entry.key.clone(),
            why,
        }));
    }
    Ok(())
}

fn refused(entry: &Entry, expected: String) -> JobFileError {
    let problem = match &entry.value {
        Some(value) => format!("cannot be `{value}`"),
        None => "has no value".to_owned(),
    };
    JobFileError::new(entry.place.clone(), problem).key(&entry.key).expected(expected)
}

/// What is known about a key.
enum Known {
    /// It changes the job.
    Effect(Setter),
    /// It does nothing here, for this reason.
    Machine(Why),
}

fn lookup(entry: &Entry) -> Result<Known, JobFileError> {
    let key = entry.key.as_str();
    if let Some((_, set)) = keys::all().find(|(names, _)| names.contains(&key)) {
        return Ok(Known::Effect(*set));
    }
    if let Some((why, _)) = known::MACHINE.iter().find(|(_, names)| names.contains(&key)) {
        return Ok(Known::Machine(*why));
    }
    let problem = if known::UNSUPPORTED.contains(&key) {
        "a key of fio that is not supported".to_owned()
    } else {
        match suggest::closest(key) {
            Some(close) => format!("unknown key; did you mean `{close}`?"),
            None => "unknown key".to_owned(),
        }
    };
    Err(JobFileError::new(entry.place.clone(), problem).key(key))
}

/// Reads the logs that the job replays; they say what it does, instead of `rw`.
fn load_logs(
    section: &Section,
    job: &mut JobSpec,
    environment: &dyn Environment,
) -> Result<(), JobFileError> {
    for file in &job.replay.files {
        let records = load_log(file, environment).map_err(|problem| {
            JobFileError::new(section.place_of(&["read_iolog"]), problem).key("read_iolog")
        })?;
        job.replay.logs.push(IoLog { name: file.as_str().into(), records: records.into() });
    }
    if job.replays() {
        job.pattern = Pattern { mix: Mix::ReadWrite, random: false };
    }
    Ok(())
}

fn load_log(file: &str, environment: &dyn Environment) -> Result<Vec<Record>, String> {
    let text = environment.read(Path::new(file)).map_err(|error| format!("{file}: {error}"))?;
    let options = ReadOptions::default();
    let mut reader =
        TraceReader::new(file, Cursor::new(text), options).map_err(|e| e.to_string())?;
    if !matches!(reader.format(), Format::FioV2 | Format::FioV3) {
        let format = reader.format();
        return Err(format!("{file}: a trace in the format {format}; a job replays logs of fio"));
    }
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().map_err(|error| error.to_string())? {
        records.push(record);
    }
    Ok(records)
}

/// Each log that is written needs a job, and a clone, of its own.
fn check_log_file(
    section: &Section,
    job: &JobSpec,
    others: &[JobSpec],
) -> Result<(), JobFileError> {
    let Some(file) = &job.write_iolog else { return Ok(()) };
    let taken = others.iter().find(|other| other.write_iolog.as_ref() == Some(file));
    let problem = match taken {
        Some(other) => format!("{file} is written by {} already", other.name),
        None if job.numjobs > 1 => format!("{file} would be written by each of numjobs clones"),
        None => return Ok(()),
    };
    let error = JobFileError::new(section.place_of(&["write_iolog"]), problem).key("write_iolog");
    Err(error.expected("a file for each job"))
}

/// A job waits for one that stands above it, as in fio.
fn check_wait(section: &Section, job: &JobSpec, others: &[JobSpec]) -> Result<(), JobFileError> {
    let Some(name) = &job.wait_for else { return Ok(()) };
    if others.iter().any(|other| other.name == *name) {
        return Ok(());
    }
    let problem = format!("there is no job {name} above");
    Err(JobFileError::new(section.place_of(&["wait_for"]), problem).key("wait_for"))
}

/// What no single key can know.
fn check(section: &Section, job: &JobSpec) -> Result<(), JobFileError> {
    let fail = |keys: &[&str], problem: &str| {
        Err(JobFileError::new(section.place_of(keys), problem).key(keys[0]))
    };
    let has = |rates: &[Option<u64>; 3]| rates.iter().any(Option::is_some);
    if job.time_based && job.runtime.is_none() {
        return fail(&["time_based"], "needs a runtime, in the job or as --runtime");
    }
    if has(&job.rate) && has(&job.rate_iops) {
        return fail(&["rate", "rate_iops"], "rate and rate_iops exclude each other");
    }
    for direction in Direction::ALL.into_iter().filter(|d| job.pattern.mix.has(*d)) {
        let block = job.sizes(direction).min();
        if matches!(job.size, Some(super::Amount::Bytes(size)) if size < block) {
            return fail(&["size", "bs"], "size is smaller than a block");
        }
    }
    let sizes = |direction| (job.sizes(direction), job.align(direction));
    if job.pattern.mix == Mix::TrimWrite && sizes(Direction::Write) != sizes(Direction::Trim) {
        let keys = ["bs", "blocksize", "bsrange", "blocksize_range", "bssplit", "blockalign", "ba"];
        return fail(&keys, "must be the same for writes and trims of trimwrite");
    }
    let logs = &job.logs;
    if logs.histogram.is_some() && logs.histogram_interval == Nanos::ZERO {
        return fail(&["write_hist_log"], "needs log_hist_msec");
    }
    for (key, amount) in [("offset", job.offset), ("offset_increment", job.offset_increment)] {
        if matches!(amount, super::Amount::Bytes(bytes) if !bytes.is_multiple_of(UNIT_BYTES)) {
            return fail(&[key], "not a multiple of 512 bytes");
        }
    }
    if let Some(problem) = beside_partial_sectors(job) {
        let keys = [
            "bs",
            "blocksize",
            "bsrange",
            "blocksize_range",
            "bssplit",
            "blockalign",
            "ba",
            "offset",
        ];
        return fail(&keys, problem);
    }
    if job.zoning.mode == ZoneMode::Strided && job.zoning.size == 0 {
        return fail(&["zonemode"], "strided needs a zonesize");
    }
    if job.sizes_by_order && job.pattern.random {
        let plain = job.percentage_random == [100; 3] && job.sequence.ios == 1;
        if !plain {
            return fail(&["bs_is_seq_rand"], "does not go with percentage_random or rw=...:N");
        }
    }
    if job.steady.window().is_some_and(|intervals| !(2..=100_000).contains(&intervals)) {
        let keys = ["steadystate_duration", "ss_dur"];
        return fail(&keys, "must hold 2 to 100000 intervals of steadystate_check_interval");
    }
    match zbd::refused(job) {
        Some((keys, problem)) => fail(keys, problem),
        None => Ok(()),
    }
}

/// What does not go together with I/Os that cover sectors of the device in part, if the job has such.
fn beside_partial_sectors(job: &JobSpec) -> Option<&'static str> {
    if job.unit_bytes() == SECTOR_BYTES {
        None
    } else if job.pattern.mix.has(Direction::Trim) {
        Some(
            "trims need sizes, alignments and offsets in multiples of 4096 bytes (the device's sector)",
        )
    } else if job.verify {
        Some(
            "verify needs sizes, alignments and offsets in multiples of 4096 bytes (the device's sector)",
        )
    } else if job.zoning.is_zbd() {
        Some(
            "zonemode=zbd needs sizes and offsets in multiples of 4096 bytes (the device's sector)",
        )
    } else {
        None
    }
}

/// What the job's `zonemode` makes of keys that belong to another one.
fn idle_zone_keys(section: &Section, job: &JobSpec) -> impl Iterator<Item = Notice> {
    zbd::without_effect(job).map(|(key, why)| Notice {
        place: section.place_of(&[key]),
        key: key.into(),
        why: Why::Always(why),
    })
}
