//! Ctrl-C, the polite signal of batch systems, and that of a terminal that went away, unless the program was started to
//! outlive it (nohup); each is answered at once, in a word on standard error.
//! A command that can stop with something to show asks for the first signal; the second one ends the
//! program. Everywhere else the first one does. What was being written to take another file's place is removed
//! before; that file stays as it is. If standard error takes no message, one more signal ends the program.

use crate::output::{Failure, complain};
use crate::replace::abandon;
use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// What the next signal is for, if not the end of the program.
static ASKED: Mutex<Option<Request>> = Mutex::new(None);

/// A command's request for the next signal.
struct Request {
    flag: Arc<AtomicBool>,
    /// What the command does then.
    says: &'static str,
}

/// What is said, and done when it has been.
struct Answer {
    text: String,
    then: OnSignal,
}

enum OnSignal {
    Set(Arc<AtomicBool>),
    Exit(i32),
}

/// Answers signals from now on.
#[expect(clippy::disallowed_methods, reason = "people and batch systems signal in real time")]
pub(crate) fn listen() -> Result<(), Failure> {
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hangup));
    let signals = signals.context("cannot listen to signals").map_err(Failure::Run)?;
    let (speaker, answers) = channel();
    // They are two, so that an answer which is not read holds up no second signal.
    std::thread::spawn(move || answer(signals, &speaker));
    std::thread::spawn(move || answers.into_iter().for_each(say));
    Ok(())
}

/// Whether who started the program had it ignore a signal. Where the system does not say so it is not.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Has every signal answered.
fn answer(mut signals: Signals, speaker: &Sender<Answer>) {
    let mut signals = signals.forever();
    let say = |text, then| speaker.send(Answer { text, then }).unwrap_or_default();
    while let Some(signal) = signals.next() {
        let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Request { flag, says }) = asked {
            let text = format!("interrupted: {says} (Ctrl-C again to abort)");
            say(text, OnSignal::Set(flag));
            continue;
        }
        let code = 128 + signal;
        // Held to the end, so that nothing takes a place any more.
        let parts = abandon();
        let files: Vec<_> =
            parts.values().flatten().map(|file| file.display().to_string()).collect();
        let unwritten = format!("interrupted: not written: {}", files.join(", "));
        let text = if files.is_empty() { "interrupted".to_owned() } else { unwritten };
        say(text, OnSignal::Exit(code));
        signals.next();
        process::exit(code);
    }
}

fn say(answer: Answer) {
    complain(&answer.text);
    match answer.then {
        OnSignal::Set(flag) => flag.store(true, Ordering::Relaxed),
        OnSignal::Exit(code) => process::exit(code),
    }
}

/// A request for the first signal, while it lives.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// `says`: what the command does then.
    pub(crate) fn new(says: &'static str) -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let request = Request { flag: flag.clone(), says };
        *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
        Self(flag)
    }

    /// Whether the signal came.
    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
