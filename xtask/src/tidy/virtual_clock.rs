//! Determinism of the virtual crates: same inputs and seed, same output on every machine. So no
//! wall clock, no thread, no std hash table (its order changes by process), no unseeded
//! randomness, and no platform mathematics (`libm` gives the same bits everywhere; `sqrt` is exact
//! in IEEE 754 and allowed). clippy.toml bans most of this by type for the whole workspace; here an
//! `allow` attribute does not help.

use super::source::{is_word, words};
use super::{Finding, Tree};

/// Crates that run on the virtual clock.
const VIRTUAL: [&str; 8] = ["rt", "block", "media", "ftl", "fs", "workload", "lab", "crash"];

const WALL_CLOCK: &str = "a wall clock: take the time from the executor";
const PLATFORM: &str = "differs between platforms: use libm";

/// Words that have no business in a virtual crate, and why.
const BANNED: [(&str, &str); 12] = [
    ("SystemTime", WALL_CLOCK),
    ("HashMap", "iterates in another order in each process: use BTreeMap"),
    ("HashSet", "iterates in another order in each process: use BTreeSet"),
    ("RandomState", "seeded by the process"),
    ("DefaultHasher", "changes with the Rust release"),
    ("thread_rng", "unseeded: draw from a named rt::Stream"),
    ("from_os_rng", "unseeded: draw from a named rt::Stream"),
    ("OsRng", "unseeded: draw from a named rt::Stream"),
    ("SysRng", "unseeded: draw from a named rt::Stream"),
    ("thread_local", "context is passed by handle"),
    ("rayon", "threads: everything runs on one executor"),
    ("tokio", "another executor: use rt"),
];

/// Float functions whose last bits differ between platforms.
const PLATFORM_MATH: [&str; 26] = [
    "powf", "powi", "ln", "ln_1p", "log", "log2", "log10", "exp", "exp2", "exp_m1", "sin", "cos",
    "tan", "sin_cos", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "cbrt", "hypot",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| is_virtual(&file.path)) {
        for (at, word) in words(&file.code) {
            if let Some(why) = objection(&file.code, at, word) {
                let message = format!("`{word}`: {why}");
                findings.push(Finding::at(file, at, "virtual-clock", message));
            }
        }
    }
    findings
}

/// Whether a file belongs to a virtual crate. Benchmarks, which measure wall time, do not.
pub(super) fn is_virtual(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates")
        && parts.next().is_some_and(|name| VIRTUAL.contains(&name))
        && parts.next() != Some("benches")
}

/// Why the word at `at` must not stand there, if it must not.
fn objection(code: &str, at: usize, word: &str) -> Option<&'static str> {
    let (before, after) = (code[..at].trim_end(), code[at + word.len()..].trim_start());
    let called = after.starts_with('(');
    if let Some((_, why)) = BANNED.iter().find(|(banned, _)| *banned == word) {
        return Some(why);
    }
    let qualified = |path: &str| before.strip_suffix("::").is_some_and(|b| ends_with_word(b, path));
    match word {
        // An own type may be called so; the standard library's comes from its module `time`.
        "Instant" if after.starts_with("::now") || line_before(before).contains("time::") => {
            Some(WALL_CLOCK)
        }
        "thread" if qualified("std") || (after.starts_with("::") && !before.ends_with("::")) => {
            Some("threads: everything runs on one executor")
        }
        "rng" if called && qualified("rand") => Some("unseeded: draw from a named rt::Stream"),
        _ if !PLATFORM_MATH.contains(&word) => None,
        _ if qualified("f64") || qualified("f32") => Some(PLATFORM),
        // `x.log(…)` is as often a log that something is written to; clippy knows the type.
        _ if called && before.ends_with('.') && word != "log" => Some(PLATFORM),
        _ => None,
    }
}

/// The last line of `code`.
fn line_before(code: &str) -> &str {
    code.rsplit('\n').next().unwrap_or_default()
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word).is_some_and(|rest| !rest.bytes().next_back().is_some_and(is_word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, line: &str) -> usize {
        check(&Tree::of(&[(path, &format!("//! A.\n{line}\n"))])).len()
    }

    #[test]
    fn what_breaks_determinism_is_caught() {
        let bad = [
            "let t = Instant::now();",
            "use std::time::{Duration, Instant};",
            "use std::time::SystemTime;",
            "std::thread::spawn(f);",
            "use std::{fmt, thread}; fn f() { thread::sleep(d) }",
            "let map: HashMap<u32, u32>;",
            "let set = std::collections::HashSet::new();",
            "let r = rand::rng();",
            "let r = StdRng::from_os_rng();",
            "let y = x.powf(2.0);",
            "let y = x.powi(2);",
            "let y = f64::ln(x);",
            "xs.iter().copied().map(f64::exp);",
            "let y = (a + b)\n    .log10();",
        ];
        for line in bad {
            assert_eq!(findings("crates/ftl/src/a.rs", line), 1, "{line}");
            assert_eq!(findings("crates/media/tests/a.rs", line), 1, "{line}");
        }
    }

    #[test]
    fn what_is_deterministic_passes() {
        let good = [
            "let y = libm::pow(x, 2.0) + x.sqrt() + libm::exp(x);",
            "let owner = Owner { thread: 3 }; owner.thread;",
            "// Instant::now() and a HashMap",
            "let s = \"std::thread\";",
            "fn exp(mean: f64) {} fn rng(&self) {} self.rng();",
            "let d = std::time::Duration::ZERO;",
            "self.trims.log(record);",
            "enum Trigger { Instant(Nanos) } Trigger::Instant(at);",
        ];
        for line in good {
            assert_eq!(findings("crates/ftl/src/a.rs", line), 0, "{line}");
        }
    }

    #[test]
    fn live_crates_and_benchmarks_are_free() {
        let line = "let t = Instant::now();";
        for path in ["crates/cli/src/a.rs", "crates/rt/benches/a.rs", "xtask/src/a.rs"] {
            assert_eq!(findings(path, line), 0, "{path}");
        }
    }
}
