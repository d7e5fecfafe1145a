//! Commands into a workload that can be run.
//!
//! Commands take effect in order. Definitions are looked at when the run begins, as in Filebench, so
//! that a variable set behind a definition still counts; what stands behind `run` is never reached.

mod files;
mod flowops;
mod names;
mod randoms;
mod values;

use super::error::{At, Source, WmlError, WmlNotice};
use super::model::{Fileset, Number, Period, QuitMode, Thread, Workload};
use super::ops::Op;
use super::syntax::{Attributes, Command, SetValue, Statement, Value, Word};
use crate::place::Place;
use flowops::Composite;
pub(super) use flowops::DESCRIPTORS;
use nandscape_rt::Nanos;
use values::{Given, Item, Scope, Variables};

/// Seconds of a run that ends when its time is over and does not say when.
const SECONDS_DEFAULT: u64 = 60;
/// Seconds between figures that are wanted without saying how often.
const PERIOD_DEFAULT: u64 = 10;
/// The longest run: a year.
const SECONDS_MAX: u64 = 366 * 86_400;

/// A workload being put together.
struct Resolver<'a> {
    source: &'a Source<'a>,
    /// Variables that the caller has set.
    overridden: Vec<String>,
    globals: Variables,
    filesets: Vec<Fileset>,
    composites: Vec<Composite<'a>>,
    threads: Vec<Thread>,
    /// Simple flowops of all threads.
    flowops: usize,
    processes: usize,
    /// Flowops that wake others, and whom.
    targets: Vec<(Word, Op)>,
    quit: QuitMode,
    pause_seconds: u64,
    latency_histograms: bool,
    echoes: Vec<String>,
    notices: Vec<WmlNotice>,
}

/// What ends the commands.
struct Run {
    seconds: Option<u64>,
    period: Option<Period>,
}

/// The workload that these commands describe. `overrides` are variables and what they are instead of
/// what the file sets them to.
pub(super) fn resolve(
    source: &Source<'_>,
    statements: &[Statement],
    overrides: &[(String, String)],
) -> Result<Workload, WmlError> {
    let mut resolver = Resolver::new(source, statements, overrides)?;
    let mut run = None;
    let mut ran = statements.len();
    for (index, statement) in statements.iter().enumerate() {
        run = resolver.execute(statement)?;
        if run.is_some() || statement.command == Command::Quit {
            ran = index + 1;
            break;
        }
    }
    if let Some(next) = statements.get(ran) {
        resolver.note(next.at, "what follows is never reached".to_owned());
    }
    let last = statements.last().map_or(At { line: 1, column: 1 }, |statement| statement.at);
    if run.is_none() {
        resolver.note(last, "there is no run command: it runs as if there were".to_owned());
    }
    let definitions = &statements[..ran];
    for (at, name) in definitions.iter().flat_map(|one| names::refused(&one.command)) {
        resolver
            .note(at, format!("Filebench takes `{name}` for a word of its language, not a name"));
    }
    let event_rate = resolver.define(definitions)?;
    resolver.finish(run.unwrap_or(Run { seconds: None, period: None }), event_rate, last)
}

impl<'a> Resolver<'a> {
    fn new(
        source: &'a Source<'a>,
        statements: &[Statement],
        overrides: &[(String, String)],
    ) -> Result<Self, WmlError> {
        let mut globals = Variables::new();
        for (name, text) in overrides {
            let set = statements.iter().filter_map(|statement| statement.command.variable());
            if !set.clone().any(|known| known == name) {
                let WmlError { place, problem, .. } =
                    source.unknown(At::default(), "no variable of the file", name, set);
                let place = Place { line: 0, column: 0, ..place };
                return Err(WmlError { place, problem, line: String::new() });
            }
            globals.insert(name.clone(), outside_item(text));
        }
        Ok(Self {
            source,
            overridden: overrides.iter().map(|(name, _)| name.clone()).collect(),
            globals,
            filesets: Vec::new(),
            composites: Vec::new(),
            threads: Vec::new(),
            flowops: 0,
            processes: 0,
            targets: Vec::new(),
            quit: QuitMode::default(),
            pause_seconds: 0,
            latency_histograms: false,
            echoes: Vec::new(),
            notices: Vec::new(),
        })
    }

    fn scope(&self) -> Scope<'_> {
        Scope { source: self.source, globals: &self.globals, locals: None }
    }

    fn note(&mut self, at: At, text: String) {
        let notice = WmlNotice { place: self.source.place(at), text };
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }

    /// Carries a command out, but for definitions; some when it begins the run.
    fn execute(&mut self, statement: &Statement) -> Result<Option<Run>, WmlError> {
        match &statement.command {
            Command::Set(name, value) => self.set(name, value)?,
            Command::Randvar(attributes) => {
                let (name, random) = randoms::randvar(self.scope(), attributes)?;
                let name = name.ok_or_else(|| {
                    self.source.error(statement.at, "a randvar needs name=$variable")
                })?;
                self.give(name, Item::Random(random));
            }
            Command::Mode(words) => self.mode(words)?,
            Command::Sleep(value) => {
                let seconds = self.seconds(value)?;
                self.pause_seconds = self.pause_seconds.saturating_add(seconds).min(SECONDS_MAX);
            }
            Command::Echo(value) => {
                let text = self.scope().item(value)?.shown();
                self.echoes.push(text);
            }
            Command::LatencyHistograms => self.latency_histograms = true,
            Command::Run(seconds) => {
                let seconds = seconds.as_ref().map(|value| self.seconds(value)).transpose()?;
                return Ok(Some(Run { seconds, period: None }));
            }
            Command::Psrun(period, seconds) => {
                return self.psrun(period.as_ref(), seconds.as_ref());
            }
            _ => {}
        }
        Ok(None)
    }

    fn seconds(&self, value: &Value) -> Result<u64, WmlError> {
        let seconds = self.scope().fixed(value)?;
        if seconds > SECONDS_MAX {
            return Err(self.source.error(value.at, "that is longer than a year"));
        }
        Ok(seconds)
    }

    fn psrun(
        &self,
        period: Option<&Value>,
        seconds: Option<&Value>,
    ) -> Result<Option<Run>, WmlError> {
        let given = match period {
            None => PERIOD_DEFAULT as i64,
            Some(value) => match self.scope().item(value)? {
                Item::Number(0) => PERIOD_DEFAULT as i64,
                Item::Number(number) if number.unsigned_abs() <= SECONDS_MAX => number,
                _ => return Err(self.source.error(value.at, "expected a number of seconds")),
            },
        };
        let period = Some(Period { seconds: given.unsigned_abs(), resets: given < 0 });
        let seconds = seconds.map(|value| self.seconds(value)).transpose()?;
        Ok(Some(Run { seconds, period }))
    }

    fn set(&mut self, name: &Word, value: &SetValue) -> Result<(), WmlError> {
        let item = match value {
            SetValue::Random(attributes) => {
                let (inner, random) = randoms::randvar(self.scope(), attributes)?;
                if inner.is_some() {
                    return Err(self
                        .source
                        .error(attributes.at, "the randvar has its name already"));
                }
                Item::Random(random)
            }
            SetValue::Custom(attributes) => Item::Random(randoms::cvar(self.scope(), attributes)?),
            SetValue::Plain(first, rest) => self.computed(first, rest)?,
        };
        self.give(name.text.clone(), item);
        Ok(())
    }

    /// Gives a variable its value, unless the caller has.
    fn give(&mut self, name: String, item: Item) {
        if !self.overridden.contains(&name) {
            self.globals.insert(name, item);
        }
    }

    /// A value, or the result of operators from left to right.
    fn computed(&self, first: &Value, rest: &[(char, Value)]) -> Result<Item, WmlError> {
        let item = self.scope().item(first)?;
        if rest.is_empty() {
            return Ok(item);
        }
        let mut result = self.scope().fixed(first)?;
        for (operator, value) in rest {
            let operand = self.scope().fixed(value)?;
            let next = match operator {
                '+' => result.checked_add(operand),
                '-' => result.checked_sub(operand),
                '*' => result.checked_mul(operand),
                _ => result.checked_div(operand),
            };
            let next = next.filter(|next| i64::try_from(*next).is_ok());
            let problem = || format!("{result} {operator} {operand} is no number");
            result = next.ok_or_else(|| self.source.error(value.at, problem()))?;
        }
        Ok(Item::Number(result as i64))
    }

    fn mode(&mut self, words: &[Word]) -> Result<(), WmlError> {
        let modes = [
            ("timeout", QuitMode::Timeout),
            ("alldone", QuitMode::AllDone),
            ("firstdone", QuitMode::FirstDone),
        ];
        match words {
            [word] if word.text == "nousestats" => Ok(()),
            [quit, mode] if quit.text == "quit" => {
                let found = modes.iter().find(|(name, _)| *name == mode.text);
                let names = modes.iter().map(|(name, _)| *name);
                let unknown = || self.source.unknown(mode.at, "no mode", &mode.text, names);
                self.quit = found.ok_or_else(unknown)?.1;
                Ok(())
            }
            [word, ..] => {
                let known = ["quit", "nousestats"].into_iter();
                Err(self.source.unknown(word.at, "no mode", &word.text, known))
            }
            [] => Ok(()),
        }
    }

    /// Looks at all definitions; the event rate.
    fn define(&mut self, statements: &'a [Statement]) -> Result<Option<Number>, WmlError> {
        let mut rate = None;
        for statement in statements {
            let added = match &statement.command {
                Command::Fileset(attributes) => Some(files::fileset(self.scope(), attributes)?),
                Command::File(attributes) => Some(files::file(self.scope(), attributes)?),
                Command::Eventgen(attributes) => {
                    rate = Some(self.event_rate(attributes)?);
                    None
                }
                _ => None,
            };
            self.filesets.extend(self.checked(statement.at, added)?);
        }
        for statement in statements {
            if let Command::Flowop(attributes, flowops) = &statement.command {
                self.composite(attributes, flowops)?;
            }
        }
        for statement in statements {
            if let Command::Process(attributes, threads) = &statement.command {
                self.process(attributes, threads)?;
            }
        }
        self.check_targets()?;
        Ok(rate)
    }

    /// A fileset whose name is new.
    fn checked(&self, at: At, added: Option<Fileset>) -> Result<Option<Fileset>, WmlError> {
        let Some(fileset) = &added else { return Ok(None) };
        if self.filesets.iter().any(|known| known.name == fileset.name) {
            let problem = format!("there is a fileset \"{}\" already", fileset.name);
            return Err(self.source.error(at, problem));
        }
        Ok(added)
    }

    fn event_rate(&self, attributes: &Attributes) -> Result<Number, WmlError> {
        let given = Given::new(self.scope(), "an eventgen", attributes, &["rate"], false)?;
        self.scope().number(given.required("rate")?)
    }

    fn finish(self, run: Run, event_rate: Option<Number>, at: At) -> Result<Workload, WmlError> {
        if self.threads.is_empty() {
            return Err(self.source.error(at, "there is no process that could run"));
        }
        let given = run.seconds.filter(|seconds| *seconds > 0);
        let default = (self.quit == QuitMode::Timeout).then_some(SECONDS_DEFAULT);
        Ok(Workload {
            filesets: self.filesets,
            threads: self.threads,
            event_rate,
            quit: self.quit,
            length: given.or(default).map(Nanos::from_secs),
            pause_seconds: self.pause_seconds,
            period: run.period,
            latency_histograms: self.latency_histograms,
            echoes: self.echoes,
            notices: self.notices,
        })
    }
}

/// The value of a variable that is set from outside.
fn outside_item(text: &str) -> Item {
    match (super::lexer::number(text), text) {
        (Some(number), _) => Item::Number(number),
        (None, "true") => Item::Flag(true),
        (None, "false") => Item::Flag(false),
        (None, _) => Item::Text(text.to_owned()),
    }
}
