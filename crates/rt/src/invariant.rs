//! What holds by construction, said where it is made and where it is relied on.
//!
//! - [`invariant!`](crate::invariant!) states it. Tests, campaigns and fuzzing are builds with debug assertions, which
//!   check it and panic with its words; a release does not compute the condition.
//! - [`defect!`](crate::defect!) is for the branch that an invariant excludes, where an answer can carry that it was
//!   taken all the same: it panics in builds with debug assertions, and is a [`Defect`] in a release, which errors of
//!   devices and file systems are made of. So a broken invariant is an error to a user, and never a success.
//! - [`Shadow`] is what only invariants compare with: a second bookkeeping that builds with debug assertions keep.
//!
//! Nothing that comes from outside is an invariant: input, content of media after a power cut, and what a fault did are
//! answered with errors of their own.

/// How the words of a broken invariant begin.
pub const BROKEN: &str = "invariant: ";

/// An invariant that does not hold, in words: an error of the program, whatever its input.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Defect(pub String);

impl Defect {
    /// What [`defect!`](crate::defect!) makes.
    ///
    /// # Panics
    /// In builds with debug assertions.
    #[cold]
    #[track_caller]
    #[must_use]
    pub fn found(words: std::fmt::Arguments<'_>) -> Self {
        if cfg!(debug_assertions) {
            panic!("{BROKEN}{words}");
        }
        Self(format!("{BROKEN}{words}"))
    }
}

impl std::fmt::Display for Defect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Defect {}

/// States that a condition holds, and in which words. In builds with debug assertions it panics if it does not; in
/// others it is not computed.
#[macro_export]
macro_rules! invariant {
    ($condition:expr, $($words:tt)+) => {
        if cfg!(debug_assertions) && !$condition {
            let _ = $crate::invariant::Defect::found(format_args!($($words)+));
        }
    };
}

/// A [`Defect`], with words for what holds but was found not to: the value of a branch that cannot be reached. In
/// builds with debug assertions it panics.
#[macro_export]
macro_rules! defect {
    ($($words:tt)+) => {
        $crate::invariant::Defect::found(format_args!($($words)+))
    };
}

/// Something that is kept for invariants, in builds with debug assertions alone. It is no part of a structure whose bytes
/// are reported as memory of what is simulated: those are the same in every build.
#[derive(Clone, Copy, Default, Debug)]
pub struct Shadow<T> {
    #[cfg(debug_assertions)]
    kept: T,
    #[cfg(not(debug_assertions))]
    kept: std::marker::PhantomData<T>,
}

impl<T> Shadow<T> {
    /// Begins with what `first` returns, which is not called where nothing is kept.
    #[inline(always)]
    pub fn new(first: impl FnOnce() -> T) -> Self {
        #[cfg(debug_assertions)]
        return Self { kept: first() };
        #[cfg(not(debug_assertions))]
        {
            let _ = first;
            Self { kept: std::marker::PhantomData }
        }
    }

    /// Keeps up with a change.
    #[inline(always)]
    pub fn note(&mut self, change: impl FnOnce(&mut T)) {
        #[cfg(debug_assertions)]
        change(&mut self.kept);
        #[cfg(not(debug_assertions))]
        let _ = (&self.kept, change);
    }

    /// Whether it agrees; true where it is not kept.
    #[inline(always)]
    pub fn agrees(&self, check: impl FnOnce(&T) -> bool) -> bool {
        #[cfg(debug_assertions)]
        return check(&self.kept);
        #[cfg(not(debug_assertions))]
        {
            let _ = (&self.kept, check);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Shadow;

    /// A shadow agrees with what it was notified of, and with everything where it is not kept.
    #[test]
    fn a_shadow_is_kept_with_debug_assertions() {
        let mut shadow = Shadow::new(|| 6);
        assert!(shadow.agrees(|kept| *kept == 6));
        shadow.note(|kept| *kept = 7);
        assert!(shadow.agrees(|kept| *kept == 7));
        assert_eq!(shadow.agrees(|kept| *kept == 8), !cfg!(debug_assertions));
    }

    #[test]
    fn a_condition_that_holds_is_silent() {
        invariant!(1 < 2, "one is less than {}", 2);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "invariant: 2 is less than one"))]
    fn a_condition_that_does_not_hold_panics_in_its_words() {
        invariant!(1 > 2, "{} is less than one", 2);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "invariant: no page"))]
    fn a_branch_that_is_excluded_panics_or_answers() {
        assert_eq!(defect!("no page").to_string(), "invariant: no page");
    }
}
