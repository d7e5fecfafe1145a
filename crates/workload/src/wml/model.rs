//! A workload that can be run: everything looked up, checked, and with its defaults.

use super::error::WmlNotice;
use super::ops::Op;
use super::random::Random;
use crate::place::Place;
use nandscape_rt::Nanos;
use nandscape_rt::rng::Stream;
use std::sync::Arc;

/// A number that is the same whenever it is asked for, or drawn anew.
#[derive(Clone, Debug)]
pub enum Number {
    /// Always this.
    Fixed(u64),
    /// A random variable.
    Drawn(Arc<Random>),
}

impl Number {
    /// Its value now, as a real number.
    pub fn draw_real(&self, rng: &mut Stream) -> f64 {
        match self {
            Self::Fixed(value) => *value as f64,
            Self::Drawn(random) => random.sample(rng),
        }
    }

    /// Its value now, cut to a whole number; what is below 0 is 0.
    pub fn draw(&self, rng: &mut Stream) -> u64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Drawn(random) => random.sample(rng) as u64,
        }
    }
}

/// A set of files below a directory of its own.
#[derive(Clone, Debug)]
pub struct Fileset {
    /// Where it is defined.
    pub place: Place,
    /// Its name, and that of its directory.
    pub name: String,
    /// The directory that this one lies in, step by step.
    pub path: Vec<String>,
    /// Files.
    pub entries: Number,
    /// Empty directories, besides those that files lie in.
    pub leafdirs: Number,
    /// Bytes of a file.
    pub size: Number,
    /// Files of a directory, on average.
    pub dirwidth: Number,
    /// How deep directories go, instead of what width and number of files lead to.
    pub dirdepth: Option<Arc<Random>>,
    /// Shape of the gamma distribution of widths and depths; 0: all are alike.
    pub dirgamma: f64,
    /// How many in a hundred are there when the run begins.
    pub prealloc_percent: u64,
    /// Files of its names that are there already are used.
    pub reuse: bool,
    /// Its files are opened for reading only.
    pub readonly: bool,
    /// Its files are opened for writing only.
    pub writeonly: bool,
    /// Its files are in the page cache when the run begins.
    pub cached: bool,
}

/// What counts of which flowop a limit looks at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Watched {
    /// Everything that the process has done.
    #[default]
    Process,
    /// The flowop with this number in the thread.
    Own(usize),
}

/// The attributes of a flowop.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// Index of the fileset.
    pub fileset: Option<usize>,
    /// Descriptor.
    pub fd: usize,
    /// Descriptor of the file whose size is to be written.
    pub srcfd: usize,
    /// Bytes of an I/O; 0: the whole file, where that is possible.
    pub iosize: Number,
    /// Bytes of a file that random I/O spreads over; 0: all.
    pub workingset: Number,
    /// At random offsets.
    pub random: bool,
    /// Zipf's exponent, where random offsets are not equally popular.
    pub zipf: Option<f64>,
    /// Opened such that each write is durable when it returns.
    pub dsync: bool,
    /// Opened such that I/O goes past the page cache.
    pub directio: bool,
    /// A descriptor after the other, of all that a thread has.
    pub opennext: bool,
    /// Count, seconds, or whatever the flowop counts in.
    pub value: Number,
    /// The text of a `print`.
    pub text: String,
    /// A `sempost` waits while its target is at its high-water mark.
    pub blocking: bool,
    /// How far posts may run ahead of a `semblock`.
    pub highwater: u64,
    /// Which file, by number.
    pub indexed: Option<Number>,
    /// Flowops of any thread that are woken or posted to.
    pub target: String,
    /// Whose counts a limit looks at.
    pub watched: Watched,
}

/// What a flowop does.
#[derive(Clone, Debug)]
pub enum Body {
    /// One operation. The number is the flowop's own in its thread, from 0.
    Simple(usize, Op, Box<Arguments>),
    /// Others, one after the other.
    Composite(Vec<Flowop>),
}

/// A step of a thread.
#[derive(Clone, Debug)]
pub struct Flowop {
    /// Its name; within a composite one, behind that one's name and a dot.
    pub name: String,
    /// How often it is done in a row.
    pub iters: Number,
    /// What it does.
    pub body: Body,
}

/// A thread of a process, and how often there is one.
#[derive(Clone, Debug)]
pub struct Thread {
    /// The process's number, from 0, in the order of the file.
    pub process: usize,
    /// The process's name.
    pub process_name: String,
    /// Instances of the process.
    pub process_instances: u64,
    /// The thread's name.
    pub name: String,
    /// Instances of the thread in each process.
    pub instances: u64,
    /// Its loop.
    pub flowops: Vec<Flowop>,
    /// Simple flowops in it, in order: name and operation.
    pub simple: Vec<(String, Op)>,
}

/// When a run ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum QuitMode {
    /// When its time is over.
    #[default]
    Timeout,
    /// When no thread can go on.
    AllDone,
    /// When one thread cannot go on.
    FirstDone,
}

/// Figures at even distances during a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Period {
    /// Distance.
    pub seconds: u64,
    /// Figures are of the period alone, not since the beginning.
    pub resets: bool,
}

/// A checked workload.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Sets of files, in the order of the file.
    pub filesets: Vec<Fileset>,
    /// Threads, in the order of the file.
    pub threads: Vec<Thread>,
    /// Events a second; 0 or none: limits do not limit.
    pub event_rate: Option<Number>,
    /// When it ends.
    pub quit: QuitMode,
    /// How long it runs at most; `None`: until [`Workload::quit`] says so.
    pub length: Option<Nanos>,
    /// Seconds between the files' creation and the run.
    pub pause_seconds: u64,
    /// Figures on the way.
    pub period: Option<Period>,
    /// The table of flowops shows histograms.
    pub latency_histograms: bool,
    /// What `echo` says.
    pub echoes: Vec<String>,
    /// What has no effect.
    pub notices: Vec<WmlNotice>,
}
