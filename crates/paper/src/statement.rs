//! What a statement is, beside the number that was measured: how numbers of it are shown, and the verdict that follows from it.

use crate::model::{Contradiction, Kind, Measure, Measured, PublishedValue, Statement};
use crate::verdict::Judgement;
use nandscape_report::Mean;

/// How numbers of a measure are shown.
pub(crate) fn shower(measure: &Measure) -> impl Fn(f64) -> String {
    |number| measure.metric.show(&Mean::exactly(number))
}

impl Statement {
    /// The verdict once it is known what the statement is: what the source contradicts is that, and what a surrogate or
    /// an unknown of the paper decides is inconclusive, whatever is measured.
    pub(crate) fn weigh(&self, judgement: Judgement) -> Judgement {
        let reason = &judgement.reason;
        if let Some(Contradiction { place, text, value }) = &self.contradicted {
            let value = self.number(*value);
            return Judgement::contradicted(format!("{reason}; {place}: {text}: {value}"));
        }
        let surrogate = self.surrogate.as_ref().map(|of| format!("surrogate: {of}"));
        let why: Vec<String> = surrogate.into_iter().chain(self.undecidable.clone()).collect();
        match why.is_empty() {
            true => judgement,
            false => Judgement::inconclusive(format!("{reason}; {}", why.join("; "))),
        }
    }

    /// A number of its metric in words.
    fn number(&self, number: f64) -> String {
        match &self.measured {
            Measured::As(measure) => shower(measure)(number),
            Measured::Not(_) => number.to_string(),
        }
    }

    /// What is stated, as numbers in words, and the number that contradicts it.
    #[must_use]
    pub fn published(&self) -> String {
        let stated = self.claim.text(&|number| self.number(number));
        let raw = self.contradicted.as_ref().map(|one| self.number(one.value));
        stated + &raw.map(|raw| format!(" (the source's data: {raw})")).unwrap_or_default()
    }

    /// What it is for.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self.input {
            Some(_) => Kind::Input,
            None => Kind::Reproduction,
        }
    }

    /// A verdict on it in words, which of an input say so.
    #[must_use]
    pub fn verdict(&self, judgement: &Judgement) -> String {
        match self.kind() {
            Kind::Input => format!("{} (input)", judgement.name()),
            Kind::Reproduction => judgement.name(),
        }
    }

    /// The numbers that are stated, whichever way.
    #[must_use]
    pub fn numbers(&self) -> Vec<f64> {
        match &self.claim {
            PublishedValue::Readings(values) => values.clone(),
            PublishedValue::AtMost(value) | PublishedValue::AtLeast(value) => vec![*value],
            PublishedValue::Between(low, high) => vec![*low, *high],
        }
    }
}
