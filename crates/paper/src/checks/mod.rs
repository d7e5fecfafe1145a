//! Physical sense: what must hold of every result, whatever a paper says. Each check reads the JSON of a
//! result alone (docs/formats/result.md), so it judges what users see; none shares code with what it judges.

mod coupled;
mod flush;
mod map;
mod media;
mod pairs;
mod sectors;

use crate::answers::{Answer, Answers, each_run};
use nandscape_lab::stack::Stack;
use serde_json::Value;

/// What a check finds: nothing if it does not apply, else whether it holds, or why not.
type Finding = Option<Result<(), String>>;

/// A check of one result.
struct Check {
    name: &'static str,
    text: &'static str,
    look: fn(&Facts<'_>) -> Finding,
}

/// All checks of one result.
const CHECKS: [Check; 21] = [
    Check {
        name: "sectors",
        text: "what the FTL counts by cause is what the media programmed",
        look: sectors::add_up,
    },
    Check {
        name: "write amplification",
        text: "its three kinds follow from the sectors",
        look: sectors::amplification,
    },
    Check {
        name: "buffers",
        text: "what all write buffers placed and collected is what the FTL did",
        look: sectors::buffers,
    },
    Check {
        name: "accepted",
        text: "what was accepted is on media, but for what fits the write buffers",
        look: sectors::accepted,
    },
    Check {
        name: "victims",
        text: "GC copies are the valid sectors of the victims, journal lines included",
        look: sectors::victims,
    },
    Check {
        name: "erases",
        text: "lines that were collected or freed are lines that were erased",
        look: sectors::erases,
    },
    Check {
        name: "program rate",
        text: "units program no faster than their cells allow",
        look: media::program_rate,
    },
    Check {
        name: "channel rate",
        text: "channels carry no more than their bandwidth",
        look: media::channel_rate,
    },
    Check {
        name: "busy time",
        text: "units were taken for at least as long as their programs last",
        look: media::busy_time,
    },
    Check {
        name: "user rate",
        text: "users write no faster than cells and channels program that and what is written for it",
        look: media::user_rate,
    },
    Check {
        name: "link rate",
        text: "the link carries no more than its bandwidth",
        look: media::link_rate,
    },
    Check {
        name: "flush",
        text: "the time of flushes is the sum of its parts",
        look: flush::parts,
    },
    Check {
        name: "fsync",
        text: "fsyncs last as long as their parts: on a block device a flush; on files thread, data, commit and flush",
        look: flush::fsyncs,
    },
    Check {
        name: "latency",
        text: "no percentile is below a lower one, nor the mean outside of its bounds",
        look: flush::latencies,
    },
    Check {
        name: "look-ups",
        text: "hits and misses of the map's cache are the sectors that were asked for",
        look: map::look_ups,
    },
    Check {
        name: "map reads",
        text: "mapping sectors read are misses, merges and copies, in whole blocks",
        look: map::reads,
    },
    Check {
        name: "map writes",
        text: "mapping sectors written are write-backs in whole blocks, copies and padding",
        look: map::writes,
    },
    Check {
        name: "migrations",
        text: "pages that an SSD moved have records, which ended or are open",
        look: coupled::migrations,
    },
    Check {
        name: "upcalls",
        text: "an upcall has at least one record, and at most a page of them",
        look: coupled::upcalls,
    },
    Check {
        name: "record memory",
        text: "the memory of migration records holds those that are open",
        look: coupled::memory,
    },
    Check {
        name: "no cleaning",
        text: "a file system in an append-only address space moves no block",
        look: coupled::cleaning,
    },
];

/// A check with all that it found.
#[derive(Clone, PartialEq, Debug)]
pub struct Checked {
    /// The name of the check.
    pub name: &'static str,
    /// What must hold.
    pub text: &'static str,
    /// Results, or pairs of them, that it applied to.
    pub runs_checked: usize,
    /// Those in which it does not hold.
    pub failures: Vec<Failure>,
}

/// A result that makes no sense.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// Experiment, point and seed.
    pub run: String,
    /// What does not hold, with its numbers.
    pub why: String,
}

impl Checked {
    fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, runs_checked: 0, failures: Vec::new() }
    }

    fn note(&mut self, finding: Finding, run: impl FnOnce() -> String) {
        self.runs_checked += usize::from(finding.is_some());
        self.failures.extend(finding.and_then(Result::err).map(|why| Failure { run: run(), why }));
    }
}

/// What is read out of a result.
pub(crate) struct Facts<'a> {
    result: &'a Value,
    /// As the result itself resolves it.
    stack: Option<Stack>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(result: &'a Value) -> Self {
        let text = result["nandscape"]["resolved_stack"].as_str();
        let stack = text.and_then(|text| Stack::parse("resolved stack", text, &[] as &[&str]).ok());
        Self { result, stack }
    }

    /// A value of ours, by the pointer below `nandscape`.
    fn at(&self, pointer: &str) -> Option<&'a Value> {
        self.result.get("nandscape")?.pointer(pointer)
    }

    fn count(&self, pointer: &str) -> Option<u64> {
        self.at(pointer)?.as_u64()
    }

    fn number(&self, pointer: &str) -> Option<f64> {
        self.at(pointer)?.as_f64()
    }

    /// The sum of a key over the write buffers.
    fn of_buffers(&self, key: &str) -> Option<u64> {
        self.at("/buffers")?.as_array()?.iter().map(|buffer| buffer[key].as_u64()).sum()
    }

    fn jobs(&self) -> impl Iterator<Item = &'a Value> {
        self.result["jobs"].as_array().into_iter().flatten()
    }
}

/// Whether a rule holds, or the words for why not.
fn holds(rule: bool, why: impl FnOnce() -> String) -> Finding {
    Some(if rule { Ok(()) } else { Err(why()) })
}

/// All checks of all answers, each with the name of its experiment; every run is looked at once.
#[must_use]
pub fn check<'a>(answers: impl Iterator<Item = (&'a str, &'a Answers)> + Clone) -> Vec<Checked> {
    let mut all: Vec<Checked> =
        CHECKS.iter().map(|check| Checked::new(check.name, check.text)).collect();
    for (experiment, answer) in each_run(answers.clone()) {
        let facts = Facts::of(answer.result);
        for (checked, check) in all.iter_mut().zip(&CHECKS) {
            checked.note((check.look)(&facts), || name(experiment, answer));
        }
    }
    all.push(pairs::check(answers));
    all
}

fn name(experiment: &str, Answer { point, seed, .. }: Answer<'_>) -> String {
    format!("{experiment}: {point}, seed {seed}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Results in which everything is as it should be: of pblk with a cached map, and of F2FS on a coupled SSD.
    const SOUND: [&str; 2] = [include_str!("sound.json"), include_str!("coupled.json")];

    /// A sound result, but for what `change` does.
    fn changed(sound: &str, change: impl Fn(&mut Value)) -> Value {
        let mut result: Value = serde_json::from_str(sound).unwrap();
        change(&mut result["nandscape"]);
        result
    }

    fn result(change: impl Fn(&mut Value)) -> Value {
        changed(SOUND[0], change)
    }

    fn look(name: &str, result: &Value) -> Finding {
        let check = CHECKS.iter().find(|check| check.name == name).unwrap();
        (check.look)(&Facts::of(result))
    }

    /// Every check applies to a sound result, and holds in those to which it applies.
    #[test]
    fn sound_results_pass() {
        let results = SOUND.map(|sound| changed(sound, |_| ()));
        for check in &CHECKS {
            let findings = results.iter().filter_map(|result| (check.look)(&Facts::of(result)));
            let findings: Vec<_> = findings.collect();
            assert!(!findings.is_empty(), "{}", check.name);
            assert!(findings.iter().all(|finding| finding.is_ok()), "{}: {findings:?}", check.name);
        }
    }

    /// Every check fails on a result in which a number that it is about is off.
    #[test]
    fn a_wrong_number_is_caught() {
        let wrong = [
            ("sectors", "/sectors/gc", true),
            ("sectors", "/utilisation/programmed_sectors", true),
            ("write amplification", "/waf/gc", false),
            ("write amplification", "/waf/media", false),
            ("buffers", "/buffers/0/pad", true),
            ("buffers", "/gc/victims", true),
            ("accepted", "/writes/sectors", true),
            ("victims", "/buffers/0/victim_valid", true),
            ("victims", "/sectors/gc", true),
            ("victims", "/gc/valid_ratio_mean", false),
            ("erases", "/erases", true),
            ("erases", "/gc/empty_victims", true),
            ("program rate", "/utilisation/programmed_sectors", true),
            ("channel rate", "/utilisation/programmed_sectors", true),
            ("busy time", "/utilisation/programmed_sectors", true),
            ("flush", "/flush/gc_ns", true),
            ("flush", "/flush/total_ns", true),
            ("fsync", "/flush/total_ns", true),
            ("look-ups", "/map/host_lookups/misses", true),
            ("look-ups", "/map/hit_ratio", false),
            ("map reads", "/map/loads", true),
            ("map writes", "/map/writebacks", true),
            ("map writes", "/sectors/map", true),
        ];
        for (name, pointer, is_whole) in wrong {
            is_caught(SOUND[0], name, pointer, is_whole);
        }
    }

    /// A check fails if one number of a sound result is larger, a whole one or another.
    fn is_caught(sound: &str, name: &str, pointer: &str, is_whole: bool) {
        let more = |value: &mut Value| *value = json!(value.as_f64().unwrap() * 1.5 + 1e6);
        let whole = |value: &mut Value| *value = json!(value.as_u64().unwrap() * 2 + 1_000_000);
        let result = changed(sound, |ours| {
            let value = ours.pointer_mut(pointer).unwrap();
            if is_whole { whole(value) } else { more(value) }
        });
        let finding = look(name, &result);
        assert!(matches!(finding, Some(Err(_))), "{name} {pointer}: {finding:?}");
    }

    /// The same of what only a coupled SSD has, and of rates, which any result has.
    #[test]
    fn a_wrong_number_of_a_coupled_ssd_is_caught() {
        let counts = ["moved", "opened", "merged", "deleted", "completed", "carried", "open"];
        for count in counts {
            is_caught(SOUND[1], "migrations", &format!("/coupled/{count}"), true);
        }
        let wrong = [
            ("user rate", "/sectors/user", true),
            ("user rate", "/waf/media", false),
            ("link rate", "/writes/sectors", true),
            ("link rate", "/reads/sectors", true),
            ("flush", "/flush/padding_ns", true),
            ("upcalls", "/coupled/upcalls", true),
            ("upcalls", "/coupled/sent", true),
            ("record memory", "/coupled/open", true),
            ("no cleaning", "/fs/gc/blocks_moved", true),
        ];
        for (name, pointer, is_whole) in wrong {
            is_caught(SOUND[1], name, pointer, is_whole);
        }
        let none = changed(SOUND[1], |ours| ours["map"]["records_bytes"] = json!(0));
        assert!(matches!(look("record memory", &none), Some(Err(_))));
    }

    /// What cleans nothing is a file system on append-only regions, of either kind of SSD that has some.
    #[test]
    fn cleaning_is_judged_in_append_only_spaces() {
        let on = |kind: &str| {
            changed(SOUND[1], |ours| {
                ours[kind] = ours.as_object_mut().unwrap().remove("coupled").unwrap();
                ours["fs"]["gc"]["blocks_moved"] = json!(1);
            })
        };
        for kind in ["coupled", "interval"] {
            assert!(matches!(look("no cleaning", &on(kind)), Some(Err(_))), "{kind}");
        }
        assert_eq!(look("no cleaning", &on("device")), None);
    }

    /// Two addresses of every open record lie in memory, to the byte; an upcall has a page of records at most.
    #[test]
    fn records_take_what_they_take() {
        let with = |bytes: u64, sent: u64| {
            changed(SOUND[1], |ours| {
                ours["coupled"]["open"] = json!(1_000);
                ours["map"]["records_bytes"] = json!(bytes);
                ours["coupled"]["upcalls"] = json!(10);
                ours["coupled"]["sent"] = json!(sent);
            })
        };
        assert_eq!(look("record memory", &with(8_000, 0)), Some(Ok(())));
        assert!(matches!(look("record memory", &with(7_999, 0)), Some(Err(_))));
        for (sent, fits) in [(9, false), (10, true), (2_560, true), (2_561, false)] {
            assert_eq!(look("upcalls", &with(0, sent)) == Some(Ok(())), fits, "{sent}");
        }
    }

    /// Of several buffers one hands back prepared lines, which are erased once more for it; a single one does not.
    #[test]
    fn lines_that_are_handed_back_are_erased_again() {
        let with = |buffers: usize, line_meta: u64| {
            result(|ours| {
                let buffer = ours["buffers"][0].clone();
                ours["buffers"] = Value::Array(vec![buffer; buffers]);
                ours["erases"] = json!(330 + 27 * 8 + 72 * 8 + 2_000);
                ours["sectors"]["line_meta"] = json!(line_meta);
            })
        };
        let fits = |buffers, line_meta| look("erases", &with(buffers, line_meta)) == Some(Ok(()));
        assert!(fits(2, 8 * 3_000));
        assert!(!fits(2, 8 * 100) && !fits(1, 8 * 3_000));
    }

    /// What victims held was copied, padded, or superseded by what the host wrote: it does not vanish.
    #[test]
    fn what_victims_held_leaves_a_trace() {
        let result = result(|ours| {
            for part in ["user", "gc", "pad"] {
                ours["sectors"][part] = json!(1);
            }
        });
        let finding = look("victims", &result);
        assert!(matches!(finding, Some(Err(_))), "{finding:?}");
    }

    /// Both directions share the bandwidth of a link, unless it is full duplex: then one has all of it. Of an FTL on the
    /// host only what crossed counts.
    #[test]
    fn a_link_has_its_bandwidth() {
        let with = |share: [f64; 2], stack: [&str; 2]| {
            changed(SOUND[1], |ours| {
                let can = ours["virtual_s"].as_f64().unwrap() * 3_360e6;
                let bytes = share.map(|share| (share * can) as u64 + (32 << 20));
                ours["link"] = json!({ "to_device_bytes": bytes[0], "to_host_bytes": bytes[1] });
                let text = ours["resolved_stack"].as_str().unwrap();
                ours["resolved_stack"] = text.replace(stack[0], stack[1]).into();
            })
        };
        let fits = |share, stack| look("link rate", &with(share, stack)) == Some(Ok(()));
        let full = ["duplex = \"shared\"", "duplex = \"full\""];
        assert!(fits([0.6, 0.4], ["", ""]) && !fits([0.6, 0.5], ["", ""]));
        assert!(fits([0.6, 0.99], full) && !fits([0.6, 1.1], full));
    }

    /// Latencies are checked where fio has them.
    #[test]
    fn wrong_latencies_are_caught() {
        for (key, value) in [("mean", json!(1e18)), ("min", json!(u64::MAX))] {
            let mut result = result(|_| ());
            result["jobs"][0]["write"]["clat_ns"][key] = value;
            assert!(matches!(look("latency", &result), Some(Err(_))), "{key}");
        }
        let mut result = result(|_| ());
        result["jobs"][0]["write"]["clat_ns"]["percentile"]["50.000000"] = json!(u64::MAX);
        assert!(matches!(look("latency", &result), Some(Err(_))));
    }

    /// On files an fsync is the wait for its thread, its data, a commit and a flush: without any one of
    /// them, or with more of it, the sum is another.
    #[test]
    fn an_fsync_of_a_file_has_parts() {
        let times = json!({ "cpu_wait_ns": 20, "data_ns": 300, "commit_ns": 600, "flush_ns": 80 });
        let with = |times: &Value| {
            json!({
                "nandscape": { "fs": { "fsyncs": 2, "fsync_times": times } },
                "jobs": [{ "sync": { "lat_ns": { "N": 2, "mean": 500.0 } } }],
            })
        };
        assert_eq!(look("fsync", &with(&times)), Some(Ok(())));
        for (part, ns) in times.as_object().unwrap() {
            for wrong in [0, ns.as_u64().unwrap() + 1] {
                let mut times = times.clone();
                times[part] = wrong.into();
                assert!(matches!(look("fsync", &with(&times)), Some(Err(_))), "{part} {wrong}");
            }
        }
    }

    /// Where cores cost something, their parts of a flush count, and a write may be under way in a writer.
    #[test]
    fn the_host_takes_its_time() {
        let with_host = |cpu_ns: u64, late: u64| {
            result(|ours| {
                let total = ours["flush"]["total_ns"].as_u64().unwrap() + 50;
                ours["flush"]["total_ns"] = total.into();
                ours["host_cpu"] = json!({ "flush": { "cpu_ns": cpu_ns, "writer_ns": 20 } });
                let programmed = ours["utilisation"]["programmed_sectors"].as_u64().unwrap();
                ours["utilisation"]["programmed_sectors"] = (programmed - late).into();
            })
        };
        assert_eq!(look("flush", &with_host(30, 0)), Some(Ok(())));
        assert!(matches!(look("flush", &with_host(31, 0)), Some(Err(_))));
        assert_eq!(look("sectors", &with_host(30, 8)), Some(Ok(())));
        assert!(matches!(look("sectors", &with_host(30, 9)), Some(Err(_))));
    }

    /// What a result lacks is not judged.
    #[test]
    fn nothing_is_made_up() {
        let empty = json!({ "nandscape": {}, "jobs": [] });
        for check in &CHECKS {
            let finding = (check.look)(&Facts::of(&empty));
            assert!(finding.is_none_or(|finding| finding.is_ok()), "{}", check.name);
        }
    }
}
