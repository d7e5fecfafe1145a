//! Processes, threads and flowops, from their attributes; composite flowops are taken apart.

use super::Resolver;
use super::values::{Given, Item, Scope, Variables};
use crate::wml::error::WmlError;
use crate::wml::model::{Arguments, Body, Flowop, Number, Thread, Watched};
use crate::wml::ops::{ATTRIBUTES, OPS, Op};
use crate::wml::syntax::{Attribute, Attributes, FlowopSyntax, ThreadSyntax, Word};

/// Attributes of a process.
const PROCESS: [&str; 3] = ["name", "instances", "nice"];
/// Attributes of a thread; those that concern its memory mean nothing here.
const THREAD: [&str; 5] = ["name", "instances", "memsize", "useism", "ioprio"];
/// Attributes of a composite flowop.
const COMPOSITE: [&str; 2] = ["name", "iters"];
/// Descriptors of a thread.
pub(in crate::wml) const DESCRIPTORS: usize = 128;
/// Threads of a workload at most.
const THREADS_MAX: u64 = u16::MAX as u64;
/// Composite flowops within each other at most.
const NESTING_MAX: u32 = 32;
/// Flowops of all threads at most, composite ones taken apart; instances are not counted.
const FLOWOPS_MAX: usize = 10_000;
/// Highest value of a `semblock`'s mark.
const HIGHWATER_MAX: u64 = 1 << 31;
/// Thousandths of zipf's exponent at most, as in fio.
const ZIPF_MAX: u64 = 10_000;

/// A composite flowop as it was defined.
pub(super) struct Composite<'a> {
    name: String,
    attributes: &'a Attributes,
    flowops: &'a [FlowopSyntax],
}

/// The flowops of a thread being put together.
struct Assembly<'r, 'a> {
    resolver: &'r mut Resolver<'a>,
    /// Simple flowops so far.
    simple: Vec<(String, Op)>,
    /// Targets of limits, which may come later in the thread.
    watched: Vec<(Word, usize)>,
    /// Composite flowops around the present one.
    nesting: u32,
}

impl<'a> Resolver<'a> {
    /// `define flowop`
    pub(super) fn composite(
        &mut self,
        attributes: &'a Attributes,
        flowops: &'a [FlowopSyntax],
    ) -> Result<(), WmlError> {
        let given = Given::new(self.scope(), "a composite flowop", attributes, &COMPOSITE, true)?;
        let name = given.required_text("name")?;
        let at = given.place("name");
        if Op::named(&name).is_some() || self.composites.iter().any(|known| known.name == name) {
            return Err(self.source.error(at, format!("there is a flowop \"{name}\" already")));
        }
        self.composites.push(Composite { name, attributes, flowops });
        Ok(())
    }

    /// `define process`
    pub(super) fn process(
        &mut self,
        attributes: &Attributes,
        threads: &'a [ThreadSyntax],
    ) -> Result<(), WmlError> {
        let given = Given::new(self.scope(), "a process", attributes, &PROCESS, false)?;
        let process_name = given.required_text("name")?;
        let process_instances = given.count_or("instances", 1, 1..=THREADS_MAX)?;
        let idle = given.find("nice").map(|nice| (nice.name.at, "nice"));
        self.processes += 1;
        for syntax in threads {
            self.thread(syntax, &process_name, process_instances)?;
        }
        self.note_idle(idle);
        Ok(())
    }

    fn thread(
        &mut self,
        syntax: &'a ThreadSyntax,
        process_name: &str,
        process_instances: u64,
    ) -> Result<(), WmlError> {
        let given = Given::new(self.scope(), "a thread", &syntax.attributes, &THREAD, false)?;
        let name = given.required_text("name")?;
        let instances = given.count_or("instances", 1, 1..=THREADS_MAX)?;
        let idle = given.find("ioprio").map(|priority| (priority.name.at, "ioprio"));
        let before: u64 = self.threads.iter().map(|t| t.process_instances * t.instances).sum();
        if before + process_instances * instances > THREADS_MAX {
            let problem = format!("more than {THREADS_MAX} threads");
            return Err(given.error(given.place("instances"), problem));
        }
        self.note_idle(idle);
        let visible = self.composites.len();
        let mut assembly =
            Assembly { resolver: self, simple: Vec::new(), watched: Vec::new(), nesting: 0 };
        let mut flowops = assembly.list(&syntax.flowops, "", None, visible)?;
        let Assembly { simple, watched, .. } = assembly;
        for (target, flowop) in watched {
            let Some(index) = simple.iter().position(|(name, _)| *name == target.text) else {
                let names = simple.iter().map(|(name, _)| name.as_str());
                let what = "no flowop of this thread";
                return Err(self.source.unknown(target.at, what, &target.text, names));
            };
            let limit = simple[flowop].1;
            if simple[index].1.way().is_none() && limit.watches_data() {
                let problem = format!("{} reads and writes nothing", target.text);
                return Err(self.source.error(target.at, problem));
            }
            watch(&mut flowops, flowop, index);
        }
        self.threads.push(Thread {
            process: self.processes - 1,
            process_name: process_name.to_owned(),
            process_instances,
            name,
            instances,
            flowops,
            simple,
        });
        Ok(())
    }

    fn note_idle(&mut self, found: Option<(crate::wml::error::At, &str)>) {
        if let Some((at, name)) = found {
            self.note(at, format!("{name} has no effect: all threads are alike to the host"));
        }
    }

    /// Targets of wake-ups and posts are flowops that wait for them.
    pub(super) fn check_targets(&self) -> Result<(), WmlError> {
        for (target, op) in &self.targets {
            let waits = if *op == Op::Wakeup { Op::Block } else { Op::Semblock };
            let simple = self.threads.iter().flat_map(|thread| &thread.simple);
            let mut names = simple.filter(|(_, op)| *op == waits).map(|(name, _)| name.as_str());
            if !names.clone().any(|name| name == target.text) {
                let what = format!("no flowop {}", waits.name());
                return Err(self.source.unknown(target.at, &what, &target.text, names.by_ref()));
            }
        }
        Ok(())
    }
}

/// Has the limit with number `flowop` look at the flowop with number `at`.
fn watch(flowops: &mut [Flowop], flowop: usize, at: usize) {
    for each in flowops {
        match &mut each.body {
            Body::Simple(index, _, arguments) if *index == flowop => {
                arguments.watched = Watched::Own(at);
            }
            Body::Simple(..) => {}
            Body::Composite(inner) => watch(inner, flowop, at),
        }
    }
}

impl<'a> Assembly<'_, 'a> {
    /// Flowops in order, each named behind `prefix`; of composite ones, the first `visible` are known.
    fn list(
        &mut self,
        list: &'a [FlowopSyntax],
        prefix: &str,
        locals: Option<&Variables>,
        visible: usize,
    ) -> Result<Vec<Flowop>, WmlError> {
        list.iter().map(|syntax| self.flowop(syntax, prefix, locals, visible)).collect()
    }

    fn flowop(
        &mut self,
        syntax: &'a FlowopSyntax,
        prefix: &str,
        locals: Option<&Variables>,
        visible: usize,
    ) -> Result<Flowop, WmlError> {
        let kind = syntax.kind.text.as_str();
        if let Some(op) = Op::named(kind) {
            return self.simple(op, &syntax.attributes, prefix, locals);
        }
        let composites = &self.resolver.composites[..visible];
        if let Some(index) = composites.iter().position(|known| known.name == kind) {
            return self.composite(index, &syntax.attributes, prefix, locals);
        }
        if kind == "testrandvar" {
            let problem = "\"testrandvar\" is not supported: it tests Filebench itself";
            return Err(self.resolver.source.error(syntax.kind.at, problem));
        }
        let names = OPS.iter().map(|(name, _)| *name);
        let names = names.chain(composites.iter().map(|known| known.name.as_str()));
        Err(self.resolver.source.unknown(syntax.kind.at, "no flowop", kind, names))
    }

    fn scope<'s>(&'s self, locals: Option<&'s Variables>) -> Scope<'s> {
        Scope { locals, ..self.resolver.scope() }
    }

    /// A composite flowop in use: its own variables, with the values that the use gives them.
    fn composite(
        &mut self,
        index: usize,
        attributes: &Attributes,
        prefix: &str,
        locals: Option<&Variables>,
    ) -> Result<Flowop, WmlError> {
        let Composite { attributes: defined, flowops, .. } = self.resolver.composites[index];
        let scope = self.scope(locals);
        let given = Given::new(scope, "a composite flowop", attributes, &COMPOSITE, true)?;
        let definition =
            Given::new(self.scope(None), "a composite flowop", defined, &COMPOSITE, true)?;
        let own = own_variables(&definition, &given)?;
        let name = format!("{prefix}{}", given.required_text("name")?);
        let iters = match given.find("iters") {
            Some(_) => given.number_or("iters", 1)?,
            None => definition.number_or("iters", 1)?,
        };
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            let problem = format!("more than {NESTING_MAX} composite flowops within each other");
            return Err(self.resolver.source.error(attributes.at, problem));
        }
        let inner = self.list(flowops, &format!("{name}."), Some(&own), index)?;
        self.nesting -= 1;
        Ok(Flowop { name, iters, body: Body::Composite(inner) })
    }

    fn simple(
        &mut self,
        op: Op,
        attributes: &Attributes,
        prefix: &str,
        locals: Option<&Variables>,
    ) -> Result<Flowop, WmlError> {
        let given = Given::new(self.scope(locals), "a flowop", attributes, &ATTRIBUTES, false)?;
        let name = format!("{prefix}{}", given.required_text("name")?);
        let iters = given.number_or("iters", 1)?;
        let arguments = self.resolver.arguments(op, &given)?;
        let target = given.find("target").and(given.value("target")?);
        let target = target.map(|value| Word { at: value.at, text: arguments.target.clone() });
        let idle = attributes.list.iter().filter(|given| !op.takes(&given.name.text));
        for Attribute { name, .. } in idle {
            let text = format!("{} has no effect on {}", name.text, op.name());
            self.resolver.note(name.at, text);
        }
        let index = self.simple.len();
        if self.resolver.flowops >= FLOWOPS_MAX {
            let problem = format!("more than {FLOWOPS_MAX} flowops in the workload");
            return Err(self.resolver.source.error(attributes.at, problem));
        }
        self.resolver.flowops += 1;
        self.simple.push((name.clone(), op));
        match (op, target) {
            (Op::Wakeup | Op::Sempost, Some(target)) => self.resolver.targets.push((target, op)),
            (Op::Wakeup | Op::Sempost, None) => {
                let problem = format!("{} needs target=…", op.name());
                return Err(self.resolver.source.error(attributes.at, problem));
            }
            (_, Some(target)) if op.takes("target") => self.watched.push((target, index)),
            _ => {}
        }
        Ok(Flowop { name, iters, body: Body::Simple(index, op, Box::new(arguments)) })
    }
}

/// The variables of a composite flowop in use.
fn own_variables(definition: &Given<'_>, used: &Given<'_>) -> Result<Variables, WmlError> {
    let variables = |given: &Given<'_>| -> Vec<Attribute> {
        let own = given.list().iter().filter(|attribute| attribute.name.text.starts_with('$'));
        own.cloned().collect()
    };
    let known = variables(definition);
    let mut own = Variables::new();
    for Attribute { name, value } in &known {
        if let Some(value) = value {
            own.insert(name.text[1..].to_owned(), definition.scope.item(value)?);
        }
    }
    for Attribute { name, value } in variables(used) {
        if !known.iter().any(|known| known.name.text == name.text) {
            let names = known.iter().map(|known| known.name.text.as_str());
            let what = "no variable of this flowop";
            return Err(used.scope.source.unknown(name.at, what, &name.text, names));
        }
        let item = value.map_or(Ok(Item::Flag(true)), |value| used.scope.item(&value))?;
        own.insert(name.text[1..].to_owned(), item);
    }
    Ok(own)
}

/// Zipf's exponent, which is given in thousandths, as gammas are.
fn exponent(given: &Given<'_>, random: bool) -> Result<Option<f64>, WmlError> {
    if given.find("zipf").is_none() {
        return Ok(None);
    }
    if !random {
        return Err(given.error(given.place("zipf"), "zipf is for random I/O only: say random"));
    }
    Ok(Some(given.count_or("zipf", 0, 1..=ZIPF_MAX)? as f64 / 1000.0))
}

impl Resolver<'_> {
    fn arguments(&self, op: Op, given: &Given<'_>) -> Result<Arguments, WmlError> {
        let descriptors = 0..=DESCRIPTORS as u64 - 1;
        let fd = given.count_or("fd", 0, descriptors.clone())? as usize;
        let srcfd = given.count_or("srcfd", 0, descriptors)? as usize;
        let fileset = self.fileset_of(given)?;
        // Others may find their descriptor open.
        let picks = matches!(op, Op::Deletefile | Op::Statfile) && fd == 0;
        if fileset.is_none() && (op.needs_fileset() || picks) {
            let problem = format!("{} needs filesetname=…", op.name());
            return Err(given.error(given.at(), problem));
        }
        if op.takes("noreadahead") && given.flag("noreadahead")? {
            let problem = "noreadahead is not supported: set fs.read_ahead in the stack";
            return Err(given.error(given.place("noreadahead"), problem));
        }
        let iosize = given.number_or("iosize", 0)?;
        let needs_size =
            op.way().is_some() && !matches!(op, Op::Readwholefile | Op::Writewholefile);
        if needs_size && matches!(iosize, Number::Fixed(0)) {
            let problem = match given.find("iosize") {
                Some(_) => format!("iosize is 0, and {} moves at least a byte", op.name()),
                None => format!("{} needs iosize=…", op.name()),
            };
            return Err(given.error(given.place("iosize"), problem));
        }
        let random = given.flag("random")?;
        if op == Op::Aiowrite && !random {
            return Err(given.error(given.at(), "aiowrite is for random I/O only: say random"));
        }
        let zipf = exponent(given, random)?;
        let (value, text) = match op {
            Op::Print => (Number::Fixed(0), given.required_text("value")?),
            _ => (given.number_or("value", 0)?, String::new()),
        };
        let indexed = given.value("indexed")?.map(|value| given.scope.number(value)).transpose()?;
        Ok(Arguments {
            fileset,
            fd,
            srcfd,
            iosize,
            workingset: given.number_or("workingset", 0)?,
            random,
            zipf,
            dsync: given.flag("dsync")?,
            directio: given.flag("directio")?,
            opennext: given.flag("opennext")?,
            value,
            text,
            blocking: given.flag("blocking")?,
            highwater: given.count_or("highwater", 1, 0..=HIGHWATER_MAX)?,
            indexed,
            target: given.text("target")?.unwrap_or_default(),
            watched: Watched::Process,
        })
    }

    /// The fileset that a flowop names, under either name of the attribute.
    fn fileset_of(&self, given: &Given<'_>) -> Result<Option<usize>, WmlError> {
        let attribute = if given.find("filename").is_some() { "filename" } else { "filesetname" };
        let Some(name) = given.text(attribute)? else { return Ok(None) };
        let index = self.filesets.iter().position(|fileset| fileset.name == name);
        index.map(Some).ok_or_else(|| {
            let names = self.filesets.iter().map(|fileset| fileset.name.as_str());
            self.source.unknown(given.place(attribute), "no fileset", &name, names)
        })
    }
}
