//! Ctrl-C, and the polite signal of batch systems; each is answered at once, in a word on standard error.
//! Whoever can stop with something to show asks to be told: the first signal tells him, the second ends the
//! program. Everywhere else the first one does. What was being written to take another file's place is removed
//! before; that file stays as it is.

use crate::output::{Failure, complain};
use crate::replace::abandon;
use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Who is to be told of the next signal.
static ASKED: Mutex<Option<Told>> = Mutex::new(None);

/// How somebody is told.
struct Told {
    flag: Arc<AtomicBool>,
    /// What he does then.
    says: &'static str,
}

/// Answers signals from now on.
#[expect(clippy::disallowed_methods, reason = "people and batch systems signal in real time")]
pub(crate) fn listen() -> Result<(), Failure> {
    let answering = Arc::new(AtomicBool::new(false));
    let listen = || -> std::io::Result<Signals> {
        for signal in [SIGINT, SIGTERM] {
            // An answer that nobody reads holds up no second signal.
            flag::register_conditional_shutdown(signal, 128 + signal, answering.clone())?;
        }
        Signals::new([SIGINT, SIGTERM])
    };
    let mut signals = listen().context("cannot listen to signals").map_err(Failure::Run)?;
    std::thread::spawn(move || {
        for signal in &mut signals {
            answering.store(true, Ordering::Relaxed);
            if !tell() {
                end(signal);
            }
            answering.store(false, Ordering::Relaxed);
        }
    });
    Ok(())
}

/// Tells whoever asked for it, if he was not told before.
fn tell() -> bool {
    let asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Told { flag, says }) = &*asked else { return false };
    let first = !flag.swap(true, Ordering::Relaxed);
    if first {
        complain(&format!("interrupted: {says}; once more ends the program at once"));
    }
    first
}

fn end(signal: i32) -> ! {
    // Held to the end, so that nothing takes a place any more.
    let parts = abandon();
    let files: Vec<_> = parts.values().flatten().map(|file| file.display().to_string()).collect();
    complain(&match files.as_slice() {
        [] => "interrupted".to_owned(),
        files => format!("interrupted: not written: {}", files.join(", ")),
    });
    process::exit(128 + signal)
}

/// Somebody who is told of the first signal while this lives.
pub(crate) struct Asked(Arc<AtomicBool>);

impl Asked {
    /// He `says` what he does then.
    pub(crate) fn new(says: &'static str) -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let told = Told { flag: flag.clone(), says };
        *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        Self(flag)
    }

    /// Whether there was one.
    pub(crate) fn is_told(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        *ASKED.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
