//! Two stacks under one job: where the media is what both wait for, their bandwidths are to each other as
//! the media's time for each sector of the user, which is write amplification and what collection reads.

use super::media::Limits;
use super::{Checked, Facts, Finding, holds, name};
use crate::answers::{Answer, Answers};
use nandscape_report::{Point, plain};
use std::collections::BTreeSet;

/// Mean share of the time that units are taken for, from which on the media is what a run waits for.
const BOUND: f64 = 0.9;
/// What waiting for channels, line metadata and unequal units may make of it.
const SLACK: f64 = 1.25;

/// A run that waits for its media.
struct Bound {
    /// Sectors of the user a second.
    rate: f64,
    /// Least and most time of units for each of them, of all units together.
    media_s: (f64, f64),
}

/// All pairs of points that differ in their stack alone, seed by seed; each pair of runs once.
pub(super) fn check<'a>(answers: impl Iterator<Item = (&'a str, &'a Answers)>) -> Checked {
    let text = "where the media is the limit, bandwidths are as write amplification has it";
    let mut checked = Checked::new("bandwidth and write amplification", text);
    let mut seen = BTreeSet::new();
    for (experiment, answers) in answers {
        let bound = |answer: Answer<'a>| Some((answer, Bound::of(&Facts::of(answer.result))?));
        let bound: Vec<(Answer<'_>, Bound)> = answers.results().filter_map(bound).collect();
        for (at, (one, of_one)) in bound.iter().enumerate() {
            for (other, of_other) in &bound[at + 1..] {
                let pair = (one.run.min(other.run), one.run.max(other.run));
                let alike = one.seed == other.seed && differ_in_stack(one.point, other.point);
                if alike && seen.insert(pair) {
                    let other = plain(other.point.at("stack"));
                    let place = || format!("{} beside {other}", name(experiment, *one));
                    checked.note(of_one.beside(of_other), place);
                }
            }
        }
    }
    checked
}

fn differ_in_stack(one: &Point, other: &Point) -> bool {
    one.at("stack") != other.at("stack") && one.differs_only_in("stack", other)
}

impl Bound {
    fn of(facts: &Facts<'_>) -> Option<Self> {
        let limits = Limits::of(facts.stack.as_ref()?);
        let shares = facts.at("/utilisation/units")?.as_array()?;
        let shares: Vec<f64> = shares.iter().filter_map(|share| share.as_f64()).collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let user = facts.count("/sectors/user").filter(|user| *user > 0)? as f64;
        let seconds = facts.number("/virtual_s").filter(|seconds| *seconds > 0.0)?;
        if mean < BOUND || limits.program_s == 0.0 {
            return None;
        }
        let written = facts.count("/utilisation/programmed_sectors")? as f64 * limits.written_s();
        let read = facts.count("/reads/sectors")? + facts.count("/sectors/gc")?;
        let read = read as f64 + facts.number("/map/read_sectors").unwrap_or(0.0);
        let media_s = |read_s: f64| (written + read * read_s) / (user * limits.units);
        Some(Self {
            rate: user / seconds,
            media_s: (media_s(limits.read_s.0), media_s(limits.read_s.1)),
        })
    }

    fn beside(&self, other: &Self) -> Finding {
        let ratio = self.rate / other.rate;
        let low = other.media_s.0 / self.media_s.1 / SLACK;
        let high = other.media_s.1 / self.media_s.0 * SLACK;
        holds((low..=high).contains(&ratio), || {
            format!(
                "bandwidth is {ratio:.3} times the other, the media's work allows {low:.3} to {high:.3}"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A run of eight units, whose media are all that it waits for, with so many sectors read by the host and by collection.
    fn of_run(host: u64, gc: u64) -> Bound {
        let result = json!({ "nandscape": {
            "resolved_stack": "name = \"bound\"\n[media]\ngroups = 2\nunits = 4\nchunks = 72\nsectors = 128\nws_min = 4\n\
                               ws_opt = 8\nmw_cunits = 24\ntiming = \"nvmevirt-970pro\"\n[ftl]\nop_percent = 40\n",
            "virtual_s": 2.0,
            "utilisation": { "units": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], "programmed_sectors": 400 },
            "sectors": { "user": 100, "gc": gc },
            "reads": { "sectors": host },
        } });
        Bound::of(&Facts::of(&result)).unwrap()
    }

    /// The time of the media is that of programs and of all reads, of the host and of collection: 32 KiB take 185 us of cells,
    /// 4 KiB take 5.12 us of a channel, and a read at least an eighth of 30.013 us and at most 42.013 us.
    #[test]
    fn the_work_of_the_media_is_programs_and_reads() {
        let bound = of_run(30, 50);
        assert_eq!(bound.rate, 50.0);
        let programs = 400.0 * (185e-6 / 8.0 + 5.12e-6);
        let least = programs + 80.0 * (30.013e-6 / 8.0 + 5.12e-6);
        let most = programs + 80.0 * (42.013e-6 + 5.12e-6);
        let near = |measured: f64, expected: f64| (measured / expected - 1.0).abs() < 1e-9;
        assert!(near(bound.media_s.0, least / 800.0), "{:?}", bound.media_s);
        assert!(near(bound.media_s.1, most / 800.0), "{:?}", bound.media_s);
    }

    fn bound(rate: f64, media_s: f64) -> Bound {
        Bound { rate, media_s: (media_s, media_s * 1.1) }
    }

    /// Twice the work of the media for each sector is half the bandwidth.
    #[test]
    fn bandwidth_follows_the_work_of_the_media() {
        assert_eq!(bound(100.0, 1.0).beside(&bound(50.0, 2.0)), Some(Ok(())));
        assert!(matches!(bound(100.0, 1.0).beside(&bound(100.0, 2.0)), Some(Err(_))));
        assert!(matches!(bound(100.0, 1.0).beside(&bound(25.0, 2.0)), Some(Err(_))));
    }
}
