//! The progress bar: on a terminal, on standard error, and only for runs that take long.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;
use terminal_size::{Height, Width, terminal_size_of};

/// Runs shorter than this show no bar.
const PATIENCE_S: f64 = 2.0;
/// Steps of a full bar.
const STEPS: u64 = 1000;

/// Real time since it was started: the one place where this program reads the wall clock.
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts.
    #[expect(
        clippy::disallowed_methods,
        reason = "people wait in real time; no result depends on it"
    )]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Seconds since the start.
    pub(crate) fn seconds(&self) -> f64 {
        self.0.elapsed().as_secs_f64()
    }
}

/// A bar that appears when a run turns out to be long.
pub(crate) struct Progress {
    watch: Stopwatch,
    on_terminal: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// No bar yet.
    pub(crate) fn new() -> Self {
        Self { watch: Stopwatch::start(), on_terminal: std::io::stderr().is_terminal(), bar: None }
    }

    /// Seconds since the beginning.
    pub(crate) fn wall_s(&self) -> f64 {
        self.watch.seconds()
    }

    /// Whether anybody can see a bar.
    pub(crate) const fn on_terminal(&self) -> bool {
        self.on_terminal
    }

    /// `phase` is done to this `fraction`.
    pub(crate) fn update(&mut self, phase: &'static str, fraction: f64) {
        if self.bar.is_none() && self.on_terminal && self.watch.seconds() > PATIENCE_S {
            self.bar = Some(bar());
        }
        if let Some(bar) = &self.bar {
            bar.set_message(phase);
            bar.set_position((fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// What fits a terminal of this size; where that is unknown, of 80 columns.
fn template(size: Option<(Width, Height)>) -> &'static str {
    match size.map_or(80, |(Width(columns), _)| columns) {
        0..20 => "{percent:>3}%",
        20..60 => "{msg:>14} {percent:>3}%",
        60..80 => "{msg:>14} [{bar:20}] {percent:>3}%  {elapsed} ",
        _ => "{msg:>14} [{bar:40}] {percent:>3}%  {elapsed} ",
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(10));
    match ProgressStyle::with_template(template(terminal_size_of(std::io::stderr()))) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}
