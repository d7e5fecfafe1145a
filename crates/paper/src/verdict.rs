//! Verdicts: whether a measured number is what a paper states, by tolerances that stand beside the
//! statement. Pure functions of numbers; how a number is shown is the caller's to say.
//!
//! A number *agrees* if it is within the tolerance of the stated one, relative to that. It agrees *partially*
//! if it is within the wider one; where the figure is a ratio to a baseline and an effect is stated, if it
//! is on the stated side of 1 by at least a tenth of that effect. Else it *disagrees*. It is *inconclusive* without a
//! number, or if the 95 % interval of the mean over the seeds holds numbers of more than one verdict. What a single seed of a
//! reduced run gave is inconclusive, and looks like a verdict at most. Of a statement that the authors' own data exclude the
//! verdict is that the *source contradicts itself*, whatever is measured.

use crate::model::{PublishedValue, Tolerance};
use nandscape_report::Mean;

/// Part of the stated effect that a measured one must have for its direction to count.
const EFFECT_MIN: f64 = 0.1;

/// How a measured number stands to a stated one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// As stated.
    Agrees,
    /// Roughly, or at least in its direction.
    Partially,
    /// Otherwise than stated.
    Disagrees,
    /// The authors' own data exclude what is stated.
    Contradicted,
    /// The runs do not decide it.
    Inconclusive,
}

impl Verdict {
    /// All, in order.
    pub const ALL: [Self; 5] =
        [Self::Agrees, Self::Partially, Self::Disagrees, Self::Contradicted, Self::Inconclusive];

    /// Whether something is to be explained that the verdict itself does not say.
    #[must_use]
    pub const fn needs_reason(self) -> bool {
        !matches!(self, Self::Agrees | Self::Contradicted)
    }

    /// In words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Partially => "partially",
            Self::Disagrees => "disagrees",
            Self::Contradicted => "source contradicts itself",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// A verdict with its reason in words.
#[derive(Clone, PartialEq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What a single seed would say, where that decides nothing.
    pub looks_like: Option<Verdict>,
    /// Why, with the numbers in it.
    pub reason: String,
}

impl Judgement {
    /// No verdict, for this reason.
    #[must_use]
    pub fn inconclusive(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::Inconclusive, looks_like: None, reason: reason.into() }
    }

    /// What is stated cannot be, for this reason.
    #[must_use]
    pub const fn contradicted(reason: String) -> Self {
        Self { verdict: Verdict::Contradicted, looks_like: None, reason }
    }

    /// The same of a single seed that decides nothing: inconclusive, whatever it looks like.
    #[must_use]
    pub fn of_one_seed(self) -> Self {
        let Self { verdict, reason, .. } = self;
        let looks_like = Some(verdict).filter(|verdict| *verdict != Verdict::Inconclusive);
        let more =
            if looks_like.is_some() { ", which is no verdict: more seeds would tell" } else { "" };
        Self { looks_like, ..Self::inconclusive(reason + more) }
    }

    /// The verdict in words, and what it looks like.
    #[must_use]
    pub fn name(&self) -> String {
        let name = self.verdict.name();
        let looks_like = self.looks_like.map(|verdict| format!(" (looks like {})", verdict.name()));
        name.to_owned() + &looks_like.unwrap_or_default()
    }
}

/// What a statement claims of a number, and how strictly.
#[derive(Clone, Copy, Debug)]
pub struct Rule<'a> {
    /// The claim.
    pub claim: &'a PublishedValue,
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

impl PublishedValue {
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
struct Comparison {
    verdict: Verdict,
    miss: f64,
    /// Within the wider tolerance.
    near: bool,
}

impl Rule<'_> {
    fn compare(&self, range: Range, number: f64) -> Comparison {
        let miss = range.miss(number);
        let Tolerance { within, partially, direction } = self.tolerance;
        let effect = range.effect();
        let right = effect != 0.0 && (number - 1.0) / effect >= EFFECT_MIN;
        let directed = direction && self.relative && effect != 0.0;
        let near = miss <= partially;
        let verdict = match miss {
            miss if miss <= within => Verdict::Agrees,
            _ if directed && right => Verdict::Partially,
            _ if directed => Verdict::Disagrees,
            _ if near => Verdict::Partially,
            _ => Verdict::Disagrees,
        };
        Comparison { verdict, miss, near }
    }

    /// Under the reading that fits best.
    fn best(&self, number: f64) -> Option<(Range, Comparison)> {
        let compared =
            self.claim.ranges().into_iter().map(|range| (range, self.compare(range, number)));
        compared.min_by(|(_, one), (_, other)| {
            one.verdict.cmp(&other.verdict).then(one.miss.total_cmp(&other.miss))
        })
    }

    /// The verdict on what was measured, a number for each seed.
    #[must_use]
    pub fn judge(&self, seeds: &[f64], show: &dyn Fn(f64) -> String) -> Judgement {
        let Some(mean) = Mean::of(seeds) else {
            return Judgement::inconclusive("no result has this number at every point that counts");
        };
        if !mean.mean.is_finite() {
            return Judgement::inconclusive("what was measured is no number");
        }
        let Some((range, compared)) = self.best(mean.mean) else {
            return Judgement::inconclusive("nothing is stated");
        };
        let reason = self.explain(range, compared, mean.mean, show) + &spread(seeds, mean, show);
        let half = mean.half_width.unwrap_or(0.0);
        let interval = Range { low: mean.mean - half, high: mean.mean + half };
        let Some(other) = self.verdicts(interval).find(|verdict| *verdict != compared.verdict)
        else {
            return Judgement { verdict: compared.verdict, looks_like: None, reason };
        };
        let [low, high] = [interval.low, interval.high].map(show);
        Judgement::inconclusive(format!(
            "{reason}; from {low} to {high}, where it lies with 95 % confidence, verdicts differ ({}, {}): \
             more seeds would tell",
            compared.verdict.name(),
            other.name()
        ))
    }

    /// Verdicts on the ends of an interval, and on all within it that is as stated.
    fn verdicts(&self, interval: Range) -> impl Iterator<Item = Verdict> {
        let stated = self.claim.ranges().into_iter().flat_map(|range| [range.low, range.high]);
        let within = stated.filter(move |end| interval.miss(*end) == 0.0);
        let numbers = [interval.low, interval.high].into_iter().chain(within);
        numbers.filter_map(|number| self.best(number)).map(|(_, compared)| compared.verdict)
    }

    fn explain(
        &self,
        range: Range,
        compared: Comparison,
        number: f64,
        show: &dyn Fn(f64) -> String,
    ) -> String {
        let Tolerance { within, partially, .. } = self.tolerance;
        if compared.miss == 0.0 {
            return format!("{} is {}, as stated", show(number), self.claim.text(show));
        }
        let (side, end) = match number < range.low {
            true => ("below", range.low),
            false => ("above", range.high),
        };
        let best = match self.claim {
            PublishedValue::Readings(values) if values.len() > 1 => ", the reading that fits best",
            _ => "",
        };
        let off = percent(compared.miss);
        let off = format!("{} is {off} {side} the stated {}{best}", show(number), show(end));
        let (within, partially) = (percent(within), percent(partially));
        match (compared.verdict, compared.near) {
            (Verdict::Agrees, _) => format!("{off}, within {within}"),
            (Verdict::Partially, true) => format!("{off}, past {within} and within {partially}"),
            (Verdict::Partially, false) => {
                format!("{off}, past {partially}, but on the stated side of 1")
            }
            (_, true) => format!("{off}, within {partially}, but not on the stated side of 1"),
            (_, false) => format!("{off}, past {partially}"),
        }
    }
}

/// How many seeds there are, and how far apart.
fn spread(seeds: &[f64], mean: Mean, show: &dyn Fn(f64) -> String) -> String {
    let n = seeds.len();
    match mean.half_width {
        None => "; of one seed".to_owned(),
        Some(0.0) => format!("; the same for {n} seeds"),
        Some(half) => {
            let least = seeds.iter().copied().fold(f64::INFINITY, f64::min);
            let most = seeds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let [least, most, half] = [least, most, half].map(show);
            format!("; {n} seeds from {least} to {most}, their mean ± {half}")
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: Tolerance = Tolerance { within: 0.1, partially: 0.2, direction: true };

    /// Two seeds with this mean, and half the width of its interval (Student's t of one degree of freedom).
    fn two(mean: f64, half_width: f64) -> [f64; 2] {
        let distance = half_width / 12.706;
        [mean - distance, mean + distance]
    }

    fn judge(claim: &PublishedValue, relative: bool, seeds: &[f64]) -> (Verdict, String) {
        let rule = Rule { claim, tolerance: TENTH, relative };
        let judgement = rule.judge(seeds, &|number| format!("{number:.2}"));
        (judgement.verdict, judgement.reason)
    }

    fn verdict(claim: &PublishedValue, relative: bool, number: f64) -> Verdict {
        judge(claim, relative, &[number]).0
    }

    /// Each verdict has its band, and the direction counts for ratios to a baseline alone.
    #[test]
    fn bands_make_verdicts() {
        use Verdict::{Agrees, Disagrees, Partially};
        let claim = PublishedValue::Readings(vec![1.5]);
        let cases = [
            (1.5, Agrees, Agrees),
            (1.64, Agrees, Agrees),
            (1.36, Agrees, Agrees),
            (1.75, Partially, Partially),
            (1.25, Partially, Partially),
            (1.1, Disagrees, Partially),
            (1.06, Disagrees, Partially),
            (3.0, Disagrees, Partially),
            (1.04, Disagrees, Disagrees),
            (0.9, Disagrees, Disagrees),
        ];
        for (number, absolute, relative) in cases {
            assert_eq!(verdict(&claim, false, number), absolute, "{number}");
            assert_eq!(verdict(&claim, true, number), relative, "{number}");
        }
    }

    /// Deviations are in parts of what is stated, and what is off by a tolerance exactly is within it: of 2, a quarter is from
    /// 1.5 to 2.5, and a half from 1 to 3.
    #[test]
    fn tolerances_are_of_what_is_stated() {
        use Verdict::{Agrees, Disagrees, Partially};
        let claim = PublishedValue::Readings(vec![2.0]);
        let tolerance = Tolerance { within: 0.25, partially: 0.5, direction: false };
        let rule = Rule { claim: &claim, tolerance, relative: false };
        let cases = [
            (0.99, Disagrees),
            (1.0, Partially),
            (1.49, Partially),
            (1.5, Agrees),
            (2.5, Agrees),
            (2.51, Partially),
            (3.0, Partially),
            (3.01, Disagrees),
        ];
        for (number, expected) in cases {
            let judgement = rule.judge(&[number], &|number| number.to_string());
            assert_eq!(judgement.verdict, expected, "{number}: {}", judgement.reason);
        }
    }

    /// The stated effect of a ratio is its distance from 1, and a tenth of it is on the stated side: of 1.5 that is 1.05, and
    /// of 0.5 it is 0.95.
    #[test]
    fn effects_are_counted_from_one() {
        use Verdict::{Disagrees, Partially};
        for (stated, number, expected) in [
            (1.5, 1.051, Partially),
            (1.5, 1.049, Disagrees),
            (1.5, 0.8, Disagrees),
            (0.5, 0.949, Partially),
            (0.5, 0.951, Disagrees),
            (0.5, 1.2, Disagrees),
        ] {
            let claim = PublishedValue::Readings(vec![stated]);
            assert_eq!(verdict(&claim, true, number), expected, "{number} for {stated}");
        }
    }

    /// Bounds are open on one side, and what states no effect has no direction.
    #[test]
    fn bounds_are_bounds() {
        use Verdict::{Agrees, Disagrees, Partially};
        let cases = [
            (
                PublishedValue::AtMost(0.8),
                [(0.1, Agrees), (0.87, Agrees), (0.97, Partially), (1.2, Disagrees)],
            ),
            (
                PublishedValue::AtLeast(2.0),
                [(9.0, Agrees), (1.85, Agrees), (1.2, Partially), (0.9, Disagrees)],
            ),
            (
                PublishedValue::Between(1.2, 1.4),
                [(1.3, Agrees), (1.5, Agrees), (1.8, Partially), (1.01, Disagrees)],
            ),
            (
                PublishedValue::AtMost(1.05),
                [(0.2, Agrees), (1.1, Agrees), (1.2, Partially), (1.5, Disagrees)],
            ),
        ];
        for (claim, numbers) in cases {
            for (number, expected) in numbers {
                assert_eq!(verdict(&claim, true, number), expected, "{claim:?} {number}");
            }
        }
    }

    /// Of several readings the one that fits best counts, and the reason names it.
    #[test]
    fn the_best_reading_counts() {
        let claim = PublishedValue::Readings(vec![2.6, 1.6]);
        let (verdict, reason) = judge(&claim, true, &[1.64]);
        assert_eq!(verdict, Verdict::Agrees);
        assert_eq!(
            reason,
            "1.64 is 2.5 % above the stated 1.60, the reading that fits best, within 10 %; of one seed"
        );
        assert_eq!(judge(&claim, true, &[2.5]).0, Verdict::Agrees);
        assert_eq!(judge(&claim, true, &[0.7]).0, Verdict::Disagrees);
    }

    /// Numbers, tolerances and seeds are in the reason.
    #[test]
    fn reasons_have_the_numbers() {
        let claim = PublishedValue::Readings(vec![1.5]);
        let reason = |seeds: &[f64]| judge(&claim, true, seeds).1;
        assert_eq!(reason(&[1.5]), "1.50 is 1.50, as stated; of one seed");
        assert_eq!(
            reason(&[1.75; 3]),
            "1.75 is 17 % above the stated 1.50, past 10 % and within 20 %; the same for 3 seeds"
        );
        assert_eq!(
            reason(&two(3.0, 0.3)),
            "3.00 is 100 % above the stated 1.50, past 20 %, but on the stated side of 1; 2 seeds from 2.98 to \
             3.02, their mean ± 0.30"
        );
        let bound = judge(&PublishedValue::AtLeast(2.0), false, &[1.0]).1;
        assert_eq!(bound, "1.00 is 50 % below the stated 2.00, past 20 %; of one seed");
    }

    /// Without a number there is no verdict.
    #[test]
    fn some_things_are_inconclusive() {
        let claim = PublishedValue::Readings(vec![1.5]);
        let cases: [&[f64]; 3] = [&[], &[f64::NAN], &[1.5, f64::INFINITY]];
        for seeds in cases {
            assert_eq!(judge(&claim, true, seeds).0, Verdict::Inconclusive, "{seeds:?}");
        }
        assert_eq!(
            judge(&PublishedValue::Readings(Vec::new()), true, &[1.0]).0,
            Verdict::Inconclusive
        );
    }

    /// A verdict is conclusive if the interval of the mean lies on one side of every border, and what agrees may
    /// lie within an interval whose mean and ends do not.
    #[test]
    fn borders_within_the_spread_are_inconclusive() {
        use Verdict::{Agrees, Disagrees, Inconclusive, Partially};
        let claim = PublishedValue::Readings(vec![1.5]);
        let cases = [
            (1.5, 0.14, Agrees),
            (1.5, 0.16, Inconclusive),
            (1.45, 0.2, Inconclusive),
            (1.75, 0.04, Partially),
            (1.75, 0.2, Inconclusive),
            (1.0, 0.04, Disagrees),
            (1.0, 0.06, Inconclusive),
            (2.5, 0.8, Partially),
            (2.5, 1.2, Inconclusive),
        ];
        for (mean, half_width, expected) in cases {
            let (verdict, reason) = judge(&claim, true, &two(mean, half_width));
            assert_eq!(verdict, expected, "{mean} ± {half_width}: {reason}");
            assert_eq!(reason.contains("more seeds would tell"), expected == Inconclusive);
        }
        let (_, reason) = judge(&claim, true, &two(1.75, 0.2));
        let end = "from 1.55 to 1.95, where it lies with 95 % confidence, verdicts differ (partially, agrees): \
                   more seeds would tell";
        assert!(reason.ends_with(end), "{reason}");
        let apart = PublishedValue::Readings(vec![1.5, 3.0]);
        assert_eq!(judge(&apart, true, &two(2.3, 0.1)).0, Partially);
        let absolute = |half_width| judge(&claim, false, &two(2.2, half_width)).0;
        assert_eq!((absolute(0.3), absolute(1.2)), (Disagrees, Inconclusive));
    }

    /// A single seed looks like a verdict and is none.
    #[test]
    fn one_seed_looks_like_a_verdict() {
        let claim = PublishedValue::Readings(vec![1.5]);
        let rule = Rule { claim: &claim, tolerance: TENTH, relative: false };
        let one = rule.judge(&[9.0], &|number| number.to_string()).of_one_seed();
        assert_eq!(
            (one.verdict, one.name().as_str()),
            (Verdict::Inconclusive, "inconclusive (looks like disagrees)")
        );
        assert!(
            one.reason.ends_with("of one seed, which is no verdict: more seeds would tell"),
            "{}",
            one.reason
        );
        let none = rule.judge(&[], &|number| number.to_string());
        assert_eq!(none.clone().of_one_seed(), none);
    }

    /// A statement of nothing at all agrees with nothing at all.
    #[test]
    fn zero_is_a_number() {
        let claim = PublishedValue::AtMost(0.0);
        assert_eq!(verdict(&claim, false, 0.0), Verdict::Agrees);
        let (verdict, reason) = judge(&claim, false, &[1.0]);
        assert_eq!(verdict, Verdict::Disagrees);
        assert!(reason.contains("infinitely far above the stated 0.00"), "{reason}");
    }
}
