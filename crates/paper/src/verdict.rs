//! Verdicts: whether a measured number is what a paper states, by tolerances that stand beside the
//! statement. Pure functions of numbers; how a number is shown is the caller's to say.
//!
//! A number *agrees* if it is within the tolerance of the stated one, relative to that. It agrees *partly*
//! if it is within the wider one, or, where the figure is a ratio to a baseline, if it is on the stated side
//! of 1 by at least a tenth of the stated effect. Else it *disagrees*. It *cannot be told* without a
//! number, or if the 95 % interval over the seeds reaches from agreement to disagreement.

use crate::model::Claim;
use nandscape_report::Mean;

/// Part of the stated effect that a measured one must have for its direction to count.
const EFFECT_MIN: f64 = 0.1;

/// How a measured number stands to a stated one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// As stated.
    Agrees,
    /// Roughly, or at least in its direction.
    Partly,
    /// Otherwise than stated.
    Disagrees,
    /// Nobody can say.
    CannotBeTold,
}

impl Verdict {
    /// All, in order.
    pub const ALL: [Self; 4] = [Self::Agrees, Self::Partly, Self::Disagrees, Self::CannotBeTold];

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Partly => "partly",
            Self::Disagrees => "disagrees",
            Self::CannotBeTold => "cannot be told",
        }
    }
}

/// How far off still counts, relative to what is stated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    /// As agreement.
    pub within: f64,
    /// As agreement in part.
    pub partly: f64,
    /// Whether the right side of 1 counts as agreement in part, where a figure is relative.
    pub direction: bool,
}

/// A verdict with its reason in words.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, with the numbers in it.
    pub reason: String,
}

impl Judgement {
    /// That nothing can be told, for this reason.
    #[must_use]
    pub fn untold(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::CannotBeTold, reason: reason.into() }
    }
}

/// What a statement claims of a number, and how strictly.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// How strictly.
    pub tolerance: Tolerance,
    /// Whether the number is a ratio to a baseline, so that 1 is no effect.
    pub relative: bool,
}

/// What a claim's reading asks for: the two ends of what agrees without any tolerance.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    /// How far outside a number is, relative to the end that it misses.
    fn miss(self, number: f64) -> f64 {
        let (distance, end) = match number {
            n if n < self.low => (self.low - n, self.low),
            n if n > self.high => (n - self.high, self.high),
            _ => return 0.0,
        };
        distance / end.abs()
    }

    /// The stated effect that is the least: of a relative figure, the end that is next to 1.
    fn effect(self) -> f64 {
        match (self.low, self.high) {
            (low, _) if low > 1.0 => low - 1.0,
            (_, high) if high < 1.0 => high - 1.0,
            _ => 0.0,
        }
    }
}

impl Claim {
    fn ranges(&self) -> Vec<Range> {
        match self {
            Self::Readings(values) => {
                values.iter().map(|value| Range { low: *value, high: *value }).collect()
            }
            Self::AtMost(high) => vec![Range { low: f64::NEG_INFINITY, high: *high }],
            Self::AtLeast(low) => vec![Range { low: *low, high: f64::INFINITY }],
            Self::Between(low, high) => vec![Range { low: *low, high: *high }],
        }
    }

    /// The claim in words.
    #[must_use]
    pub fn text(&self, show: &dyn Fn(f64) -> String) -> String {
        match self {
            Self::Readings(values) => {
                values.iter().map(|value| show(*value)).collect::<Vec<_>>().join(" or ")
            }
            Self::AtMost(value) => format!("at most {}", show(*value)),
            Self::AtLeast(value) => format!("at least {}", show(*value)),
            Self::Between(low, high) => format!("{} to {}", show(*low), show(*high)),
        }
    }
}

/// The verdict on a number under one reading, with what speaks for it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Told {
    verdict: Verdict,
    miss: f64,
    by_direction: bool,
}

impl Rule<'_> {
    fn tell(&self, range: Range, number: f64) -> Told {
        let miss = range.miss(number);
        let Tolerance { within, partly, direction } = self.tolerance;
        let effect = range.effect();
        let right = effect != 0.0 && (number - 1.0) / effect >= EFFECT_MIN;
        let by_direction = miss > partly && right && direction && self.relative;
        let verdict = match miss {
            miss if miss <= within => Verdict::Agrees,
            miss if miss <= partly => Verdict::Partly,
            _ if by_direction => Verdict::Partly,
            _ => Verdict::Disagrees,
        };
        Told { verdict, miss, by_direction }
    }

    /// Under the reading that fits best.
    fn best(&self, number: f64) -> Option<(Range, Told)> {
        let told = self.claim.ranges().into_iter().map(|range| (range, self.tell(range, number)));
        told.min_by(|(_, one), (_, other)| {
            one.verdict.cmp(&other.verdict).then(one.miss.total_cmp(&other.miss))
        })
    }

    /// The verdict on a measured number.
    #[must_use]
    pub fn judge(&self, measured: Option<Mean>, show: &dyn Fn(f64) -> String) -> Judgement {
        let Some(mean) = measured else {
            return Judgement::untold("no result has this number at every point that counts");
        };
        if !mean.mean.is_finite() {
            return Judgement::untold("what was measured is no number");
        }
        let Some((range, told)) = self.best(mean.mean) else {
            return Judgement::untold("nothing is stated");
        };
        let mut reason = self.explain(range, told, mean.mean, show);
        if let Some(half) = mean.half_width {
            let ends = [mean.mean - half, mean.mean + half];
            if self.reaches_across(told, ends) {
                let [low, high] = ends.map(show);
                return Judgement::untold(format!(
                    "{reason}; but over the seeds it is {low} to {high}, some of which agrees and some \
                     of which does not: more seeds would tell"
                ));
            }
            reason.push_str(&spread(mean.mean, half));
        }
        Judgement { verdict: told.verdict, reason }
    }

    /// Whether the mean or an end of the interval agrees and another of them disagrees.
    fn reaches_across(&self, told: Told, ends: [f64; 2]) -> bool {
        let ends = ends.into_iter().filter_map(|end| self.best(end));
        let all: Vec<Verdict> = ends.map(|(_, told)| told.verdict).chain([told.verdict]).collect();
        all.contains(&Verdict::Agrees) && all.contains(&Verdict::Disagrees)
    }

    fn explain(
        &self,
        range: Range,
        told: Told,
        number: f64,
        show: &dyn Fn(f64) -> String,
    ) -> String {
        let Tolerance { within, partly, .. } = self.tolerance;
        let reading = self.reading(range, show);
        let off = match told.miss {
            0.0 => format!("{} is {reading}", show(number)),
            miss => {
                let side = if number < range.low { "below" } else { "above" };
                format!("{} is {} {side} {reading}", show(number), percent(miss))
            }
        };
        match (told.verdict, told.by_direction) {
            (Verdict::Agrees, _) if told.miss == 0.0 => off,
            (Verdict::Agrees, _) => format!("{off}, within {}", percent(within)),
            (Verdict::Partly, false) => {
                format!("{off}, past {} and within {}", percent(within), percent(partly))
            }
            (Verdict::Partly, true) => {
                format!("{off}, past {}, but on the stated side of 1", percent(partly))
            }
            _ => format!("{off}, past {}", percent(partly)),
        }
    }

    /// What the number is held against.
    fn reading(&self, range: Range, show: &dyn Fn(f64) -> String) -> String {
        match self.claim {
            Claim::Readings(values) if values.len() > 1 => {
                format!("{} (the reading that fits best)", show(range.low))
            }
            claim => claim.text(show),
        }
    }
}

/// Half the width of the interval beside its mean.
fn spread(mean: f64, half: f64) -> String {
    match half {
        0.0 => "; the same for every seed".to_owned(),
        half => format!("; ± {} over the seeds", percent(half / mean.abs())),
    }
}

/// A share as percent, to two digits or whole.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if !p.is_finite() => "infinitely far".to_owned(),
        p if p >= 10.0 || p == p.trunc() => format!("{p:.0} %"),
        p if p >= 0.1 => format!("{p:.1} %"),
        p => format!("{p:.2} %"),
    }
}
