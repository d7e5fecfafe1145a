//! What to be careful about when results are read beside each other: devices that differ, runs that were not steady, and the
//! warnings of the runs. This is the one list of it; the text and the JSON of a table and the page are made from it.
//!
//! Warnings of many runs that differ in nothing but their numbers are one entry, with the words of the first.

use crate::point::Point;
use crate::units::bytes;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const SECTOR_BYTES: f64 = 4096.0;
/// Devices that hold as much, but for this part of their spare space, have the same overprovisioning.
const SAME_SPARE: f64 = 0.05;

/// What was noted of the results so far.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Cautions {
    runs: usize,
    unsteady: usize,
    warnings: Vec<Warning>,
    /// The device of each point, by the name of the point.
    devices: BTreeMap<String, Device>,
}

/// A warning of at least one run.
#[derive(Clone, PartialEq, Debug)]
struct Warning {
    /// The text without its numbers.
    shape: String,
    /// The text of the first run, and which run that was.
    text: String,
    who: String,
    /// Runs that have it, and whether all have the same numbers.
    runs: usize,
    same: bool,
}

/// The device under a point.
#[derive(Clone, PartialEq, Debug)]
struct Device {
    /// All of the point but the stack.
    beside: String,
    keys: Map<String, Value>,
    /// Sectors that it holds, and spare ones.
    usable: Option<(f64, f64)>,
}

/// How devices under one load differ.
#[derive(Clone, PartialEq, Default, Debug)]
struct Differences {
    keys: Vec<String>,
    /// The least and the most that one holds, in sectors.
    usable: Option<(f64, f64)>,
}

impl Cautions {
    /// Takes in the result of a run at a point that is called `label`.
    pub fn add(&mut self, point: &Point, label: &str, seed: u64, result: &Value) {
        let ours = &result["nandscape"];
        self.runs += 1;
        self.unsteady += usize::from(ours["steady"] == false);
        let who = format!("{label}, seed {seed}");
        for text in ours["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            self.warn(text, &who);
        }
        if let Some(keys) = ours["device_keys"].as_object() {
            let sectors = |key: &str| ours["capacity"][key].as_f64();
            let usable = sectors("usable_sectors").zip(sectors("physical_sectors"));
            let device = || Device {
                beside: point.without("stack"),
                keys: keys.clone(),
                usable: usable.map(|(usable, physical)| (usable, physical - usable)),
            };
            self.devices.entry(point.to_json().to_string()).or_insert_with(device);
        }
    }

    fn warn(&mut self, text: &str, who: &str) {
        let shape = shape(text);
        match self.warnings.iter_mut().find(|other| other.shape == shape) {
            Some(known) => {
                known.runs += 1;
                known.same &= known.text == text;
            }
            None => {
                let (text, who) = (text.to_owned(), who.to_owned());
                self.warnings.push(Warning { shape, text, who, runs: 1, same: true });
            }
        }
    }

    /// Keys of the device in which stacks differ that have the same load, in order.
    #[must_use]
    pub fn device_differences(&self) -> Vec<String> {
        self.differences().keys
    }

    /// Whether stacks differ in their devices, or in how much those hold.
    #[must_use]
    pub fn devices_differ(&self) -> bool {
        self.differences() != Differences::default()
    }

    fn differences(&self) -> Differences {
        let mut loads: BTreeMap<&str, Vec<&Device>> = BTreeMap::new();
        self.devices.values().for_each(|one| loads.entry(&one.beside).or_default().push(one));
        let mut found = Differences::default();
        for devices in loads.values() {
            let names = devices.iter().flat_map(|device| device.keys.keys());
            for name in names {
                if !found.keys.contains(name) && differs(devices, name) {
                    found.keys.push(name.clone());
                }
            }
            let all = || devices.iter().filter_map(|device| device.usable);
            let least = all().map(|(usable, _)| usable).fold(f64::MAX, f64::min);
            let most = all().map(|(usable, _)| usable).fold(0.0, f64::max);
            let spare = all().map(|(_, spare)| spare).fold(f64::MAX, f64::min);
            if most - least > SAME_SPARE * spare {
                let known = found.usable.unwrap_or((least, most));
                found.usable = Some((known.0.min(least), known.1.max(most)));
            }
        }
        found
    }

    /// Everything, what concerns all runs first.
    #[must_use]
    pub fn list(&self) -> Vec<String> {
        let Self { runs, unsteady, .. } = *self;
        let steady = (runs > 1 && unsteady > 0)
            .then(|| format!("{unsteady} of {runs} runs are not at steady state"));
        let warnings = self.warnings.iter().map(|warning| self.sentence(warning));
        self.devices().into_iter().chain(steady).chain(warnings).collect()
    }

    /// On devices that differ.
    fn devices(&self) -> Option<String> {
        let Differences { keys, usable } = self.differences();
        let usable = usable.map(|(least, most)| {
            format!("hold {} to {}", bytes(least * SECTOR_BYTES), bytes(most * SECTOR_BYTES))
        });
        match (keys.is_empty(), usable) {
            (true, None) => None,
            (true, Some(hold)) => Some(format!(
                "the devices of the stacks {hold}, so they differ in overprovisioning, and the metrics are not of the FTLs alone"
            )),
            (false, usable) => Some(format!(
                "the stacks differ in their devices ({}{}), so the metrics are not of the FTLs alone; \
                 `compare --device STACK` puts all of them on one",
                keys.join(", "),
                usable.map_or_else(String::new, |hold| format!("; they {hold}"))
            )),
        }
    }

    fn sentence(&self, warning: &Warning) -> String {
        let Warning { text, who, runs, same, .. } = warning;
        match (*runs, self.runs) {
            (_, 1) => text.clone(),
            (n, all) if n == all && *same => format!("all runs: {text}"),
            (1, _) => format!("{who}: {text}"),
            (n, all) if *same => format!("{n} of {all} runs: {text}"),
            (n, all) => format!("{n} of {all} runs, as {who}: {text}"),
        }
    }
}

/// Whether devices have different values of a key. One without a value goes with any.
fn differs(devices: &[&Device], key: &str) -> bool {
    let values = devices.iter().map(|device| device.keys.get(key));
    let mut values = values.filter(|value| *value != Some(&Value::Null));
    let first = values.next();
    values.any(|value| Some(value) != first)
}

/// A text without its numbers and their units.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    for word in text.split(' ') {
        let letters: String = word.chars().filter(|c| !c.is_ascii_digit()).collect();
        let is_unit =
            ["B", "KiB", "MiB", "GiB", "TiB"].contains(&letters.trim_matches(['.', ',', ':', ')']));
        if letters.len() == word.len() && !is_unit {
            shape.push_str(word);
            shape.push(' ');
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn result(warnings: &[&str], chunks: &str, usable: u64) -> Value {
        json!({ "nandscape": {
            "steady": warnings.is_empty(), "warnings": warnings, "capacity": { "usable_sectors": usable, "physical_sectors": 1_048_576 },
            "device_keys": { "media.chunks": chunks, "media.mw_cunits": if chunks == "1" { Value::Null } else { "24".into() } },
        } })
    }

    fn of(runs: &[(&str, u64, Value)]) -> Cautions {
        let mut all = Cautions::default();
        for (stack, seed, result) in runs {
            all.add(&Point::new(stack, "job", &[]), stack, *seed, result);
        }
        all
    }

    /// Warnings that differ in numbers alone are one, with the words of the first run that has it.
    #[test]
    fn numbers_tell_no_warnings_apart() {
        let short = |n: u64| format!("not steady: {n} sectors of 1.5{n} GiB");
        let all = of(&[
            ("a", 1, result(&[&short(5), "same"], "1", 10_000)),
            ("a", 2, result(&[&short(7), "same"], "1", 10_000)),
            ("b", 1, result(&["alone"], "1", 10_000)),
            ("b", 2, result(&[], "1", 10_000)),
        ]);
        assert_eq!(
            all.list(),
            [
                "3 of 4 runs are not at steady state",
                "2 of 4 runs, as a, seed 1: not steady: 5 sectors of 1.55 GiB",
                "2 of 4 runs: same",
                "b, seed 1: alone"
            ]
        );
        assert_eq!(of(&[("a", 1, result(&["one"], "1", 1))]).list(), ["one"]);
    }

    /// Devices differ by their keys and by how much they hold; rules that only hosts have tell none apart.
    #[test]
    fn devices_are_compared() {
        let none: &[&str] = &[];
        let same = of(&[("a", 1, result(none, "1", 10_000)), ("b", 1, result(none, "1", 10_005))]);
        assert!(!same.devices_differ() && same.list().is_empty());
        let keys =
            of(&[("a", 1, result(none, "1", 262_144)), ("b", 1, result(none, "2", 524_288))]);
        assert_eq!(keys.device_differences(), ["media.chunks"]);
        let said = &keys.list()[0];
        assert!(said.contains("(media.chunks; they hold 1.00 GiB to 2.00 GiB)"), "{said}");
        let holds =
            of(&[("a", 1, result(none, "1", 262_144)), ("b", 1, result(none, "1", 131_072))]);
        assert!(holds.device_differences().is_empty() && holds.devices_differ());
        assert!(
            holds.list()[0].starts_with("the devices of the stacks hold 512.00 MiB to 1.00 GiB")
        );
    }

    /// What a grid varies is no difference between stacks.
    #[test]
    fn axes_are_no_differences() {
        let mut all = Cautions::default();
        for chunks in ["1", "2"] {
            let point = Point::new("a", "job", &[("media.chunks".to_owned(), chunks.into())]);
            all.add(&point, chunks, 1, &result(&[], chunks, 1));
        }
        assert!(!all.devices_differ());
    }
}
