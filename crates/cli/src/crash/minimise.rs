//! Violations that are printed in full are minimised first: in the order of seeds, on one thread, so that the report does not
//! depend on the number of threads.

use super::findings::{End, Found};
use crate::args::CrashArgs;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use nandscape_crash::{Budget, Minimised, OnRun};
use std::panic;

/// Searches for the least part of the run of a violation.
pub(super) type Shrink<'a> = dyn Fn(&Found<'_>, Budget, &mut OnRun<'_>) -> Option<Minimised> + 'a;

/// What a signal makes a search do.
const ON_SIGNAL: &str = "the search for a smaller run ends";

/// Minimises what is printed in full, unless the campaign was interrupted or runs a part of a seed already.
pub(super) fn minimise(found: &mut [Found<'_>], args: &CrashArgs, end: End, shrink: &Shrink<'_>) {
    let is_wanted = !args.no_shrink && args.only.is_none() && end != End::Interrupted;
    if found.is_empty() || !is_wanted {
        return;
    }
    let budget = if args.on_fs.fs.is_some() { Budget::FILES } else { Budget::DEVICE };
    let in_full = if args.verbose { found.len() } else { 1 };
    let (stop, mut progress) = (Interrupt::new(ON_SIGNAL), Progress::new());
    // A violation that is a panic panics in each run that shows it: once was enough to see its message.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    for one in found.iter_mut().take(in_full) {
        let mut runs = 0;
        one.minimised = shrink(one, budget, &mut || {
            runs += 1;
            progress.update("minimising", f64::from(runs) / f64::from(budget.runs));
            !stop.has_come()
        });
    }
    panic::set_hook(hook);
}
