//! `precondition.recipe`: names for what is written before measuring. A recipe stands for values of the
//! other keys of its section; those that are given beside it or laid over it win one by one.
//!
//! Source of the SNIA recipe: Solid State Storage Performance Test Specification 2.0.2, "workload
//! independent preconditioning": twice the capacity in order. Its workload dependent part, the workload
//! itself until steady state, is `--until-steady`.

use super::Precondition;
use super::place::StackError;
use super::reader::{Section, Words};

/// Random overwrites of `steady` at most, times the logical space.
const STEADY_TIMES_MAX: f64 = 10.0;

const fn plan(fill: f64, random_overwrite: f64, steady_overwrite: f64) -> Precondition {
    Precondition { fill, random_overwrite, steady_overwrite }
}

const PLANS: Words<Precondition> = Words {
    here: &[
        // Nothing: a fresh device.
        ("none", plan(0.0, 0.0, 0.0)),
        ("fresh", plan(0.0, 0.0, 0.0)),
        // Every logical sector once, in order.
        ("fill", plan(1.0, 0.0, 0.0)),
        ("sequential", plan(1.0, 0.0, 0.0)),
        ("snia-wipc", plan(2.0, 0.0, 0.0)),
        ("random", plan(1.0, 2.0, 0.0)),
        ("steady", plan(1.0, 0.0, STEADY_TIMES_MAX)),
    ],
};

/// The names of all recipes.
pub fn recipes() -> impl Iterator<Item = &'static str> {
    PLANS.here.iter().map(|(name, _)| *name)
}

/// The plan of the recipe in `section`; of `none` without one.
pub(super) fn read(section: &mut Section<'_>) -> Result<Precondition, StackError> {
    let word: Option<String> = section.unwritten("recipe")?;
    let word = word.unwrap_or_else(|| "none".to_owned());
    PLANS.read(&word).map_err(|message| section.reject("recipe", message))
}
