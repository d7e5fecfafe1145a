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

/// The recipes, by name, and what each is.
pub const RECIPES: &[(&str, &str)] = &[
    ("none", "nothing: a fresh device"),
    ("fresh", "the same"),
    ("fill", "every logical sector once, in order"),
    ("sequential", "the same"),
    ("snia-wipc", "every logical sector twice, in order"),
    ("random", "every logical sector once, in order; then twice the logical space at random"),
    (
        "steady",
        "every logical sector once, in order; then at random until write amplification is steady",
    ),
];

const PLANS: Words<Precondition> = Words {
    here: &[
        ("none", plan(0.0, 0.0, 0.0)),
        ("fresh", plan(0.0, 0.0, 0.0)),
        ("fill", plan(1.0, 0.0, 0.0)),
        ("sequential", plan(1.0, 0.0, 0.0)),
        ("snia-wipc", plan(2.0, 0.0, 0.0)),
        ("random", plan(1.0, 2.0, 0.0)),
        ("steady", plan(1.0, 0.0, STEADY_TIMES_MAX)),
    ],
    later: &[],
};

/// The plan of the recipe in `section`; of `none` without one.
pub(super) fn read(section: &mut Section<'_>) -> Result<Precondition, StackError> {
    let word: Option<String> = section.unwritten("recipe")?;
    let word = word.unwrap_or_else(|| "none".to_owned());
    PLANS.read(&word).map_err(|message| section.reject("recipe", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every recipe is described, in the same order.
    #[test]
    fn recipes_are_described() {
        assert!(RECIPES.iter().map(|(name, _)| name).eq(PLANS.here.iter().map(|(name, _)| name)));
    }
}
