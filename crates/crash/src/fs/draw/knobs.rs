//! Timers and thresholds as seeds draw them: by their size within the usual range, or at once, or never.

use nandscape_fs::Knob;
use nandscape_rt::Stream;

/// Of so many seeds one has a knob at once, and one never.
const EXTREME_ONE_IN: u64 = 8;

/// The value that a seed draws, from the knob's own stream: another knob more changes no other.
pub(in crate::fs) fn draw_knob(seed: u64, knob: &Knob) -> u64 {
    let rng = &mut Stream::new(seed, knob.name);
    let usual = usual(knob, rng);
    match rng.below(EXTREME_ONE_IN) {
        0 => knob.at_once.unwrap_or(usual),
        1 => knob.never.unwrap_or(usual),
        _ => usual,
    }
}

/// Uniform in the logarithm.
fn usual(knob: &Knob, rng: &mut Stream) -> u64 {
    let Knob { least, most, .. } = *knob;
    let doublings = u64::from((most / least.max(1)).max(1).ilog2()) + 1;
    let low = least.max(1) << rng.below(doublings);
    rng.within(low..(2 * low).min(most + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_fs::FsKind;
    use std::collections::BTreeSet;

    /// Every knob has a name of its own and takes all of its values, extremes and both ends of the range
    /// among them; its value depends on nothing but the seed and its name.
    #[test]
    fn knobs_take_all_their_values() {
        for kind in FsKind::ALL {
            let mut config = kind.config();
            let knobs = config.knobs();
            let names: BTreeSet<_> = knobs.iter().map(|knob| knob.name).collect();
            assert_eq!(names.len(), knobs.len());
            for knob in knobs {
                let drawn: BTreeSet<u64> = (0..2_000).map(|seed| draw_knob(seed, &knob)).collect();
                let extremes = [knob.at_once, knob.never];
                assert!(extremes.iter().flatten().all(|value| drawn.contains(value)), "{knob:?}");
                let usual = |value: &u64| (knob.least..=knob.most).contains(value);
                let others = drawn.iter().filter(|value| !extremes.contains(&Some(**value)));
                assert!(others.clone().all(usual), "{knob:?}");
                assert!(others.clone().any(|value| *value <= knob.least.max(1) * 2), "{knob:?}");
                assert!(others.clone().any(|value| *value >= knob.most / 2), "{knob:?}");
                drawn.iter().for_each(|value| config.set_knob(knob.name, *value).unwrap());
            }
            assert!(config.set_knob("no such knob", 1).is_err());
        }
    }
}
