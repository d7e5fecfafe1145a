//! Counters that are sums: what was counted in two consecutive periods adds up, and a period is the
//! difference of two snapshots. [`counts!`](crate::counts!) declares a plain struct of them and
//! implements [`Counts`], so that a new counter cannot be left out of either operation.

use crate::time::Nanos;

/// Something that is counted. For every `a` and `b` of sums alone, `(a + b).since(a) == b`.
pub trait Counts {
    /// Adds what was counted in the period directly after this one.
    fn add(&mut self, later: &Self);

    /// What was counted after the snapshot `earlier` of the same counters.
    #[must_use]
    fn since(&self, earlier: &Self) -> Self;

    /// Both periods together.
    #[must_use]
    fn plus(mut self, later: &Self) -> Self
    where
        Self: Sized,
    {
        self.add(later);
        self
    }
}

impl Counts for u64 {
    fn add(&mut self, later: &Self) {
        *self += later;
    }

    fn since(&self, earlier: &Self) -> Self {
        self.saturating_sub(*earlier)
    }
}

impl Counts for Nanos {
    fn add(&mut self, later: &Self) {
        *self += *later;
    }

    fn since(&self, earlier: &Self) -> Self {
        self.saturating_sub(*earlier)
    }
}

/// Element by element; an element that the other does not have counts as zero.
impl<T: Counts + Clone> Counts for Vec<T> {
    fn add(&mut self, later: &Self) {
        self.iter_mut().zip(later).for_each(|(sum, more)| sum.add(more));
        self.extend(later.iter().skip(self.len()).cloned());
    }

    fn since(&self, earlier: &Self) -> Self {
        let known = self.iter().zip(earlier).map(|(now, before)| now.since(before));
        known.chain(self.iter().skip(earlier.len()).cloned()).collect()
    }
}

/// Of what is counted by some: `None` adds nothing.
impl<T: Counts + Clone> Counts for Option<T> {
    fn add(&mut self, later: &Self) {
        match (self.as_mut(), later) {
            (Some(sum), Some(more)) => sum.add(more),
            (None, Some(more)) => *self = Some(more.clone()),
            (_, None) => {}
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        match (self, earlier) {
            (Some(now), Some(before)) => Some(now.since(before)),
            (now, _) => now.clone(),
        }
    }
}

/// Declares a struct of counters and implements [`Counts`](crate::counts::Counts) for it.
///
/// A field is a sum of a type that is [`Counts`](crate::counts::Counts) itself, unless a rule follows
/// its type:
/// - `= max`: the largest value. Of two periods it is the larger one; the maximum since a snapshot is
///   not known, and stays that of the whole.
/// - `= last`: a level or a name, not a sum. Of two periods it is the later one's.
/// - `= first`: a level where a period begins. Of two periods it is the earlier one's; that of a snapshot is
///   not known, and stays that of the whole.
///
/// ```
/// use nandscape_rt::{counts, counts::Counts};
///
/// counts! {
///     /// What a lock counts.
///     #[derive(Clone, Copy, PartialEq, Debug)]
///     pub struct LockCounts {
///         /// Times that it was taken.
///         pub taken: u64,
///         /// Longest wait.
///         pub wait_ns_max: u64 = max,
///     }
/// }
///
/// let mut all = LockCounts { taken: 2, wait_ns_max: 9 };
/// all.add(&LockCounts { taken: 3, wait_ns_max: 4 });
/// assert_eq!(all, LockCounts { taken: 5, wait_ns_max: 9 });
/// ```
#[macro_export]
macro_rules! counts {
    (@add $ours:expr, $later:expr) => { $crate::counts::Counts::add(&mut $ours, &$later) };
    (@add $ours:expr, $later:expr, max) => { $ours = ::core::cmp::Ord::max($ours, $later) };
    (@add $ours:expr, $later:expr, last) => { $ours = ::core::clone::Clone::clone(&$later) };
    (@add $ours:expr, $later:expr, first) => {};
    (@since $ours:expr, $earlier:expr) => { $crate::counts::Counts::since(&$ours, &$earlier) };
    (@since $ours:expr, $earlier:expr, $rule:ident) => { ::core::clone::Clone::clone(&$ours) };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_vis:vis $field:ident: $type:ty $(= $rule:ident)?),* $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$field_meta])* $field_vis $field: $type,)*
        }

        impl $crate::counts::Counts for $name {
            fn add(&mut self, later: &Self) {
                $($crate::counts!(@add self.$field, later.$field $(, $rule)?);)*
            }

            fn since(&self, earlier: &Self) -> Self {
                Self { $($field: $crate::counts!(@since self.$field, earlier.$field $(, $rule)?),)* }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    counts! {
        #[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
        struct Inner {
            hits: u64,
            spent: Nanos,
        }
    }

    counts! {
        #[derive(Clone, PartialEq, Eq, Default, Debug)]
        struct Outer {
            done: u64,
            inner: Inner,
            wait_ns_max: u64 = max,
            name: &'static str = last,
            level: u64 = last,
            before: u64 = first,
            each: Vec<u64>,
            some: Option<Inner>,
        }
    }

    fn inner(hits: u64) -> Inner {
        Inner { hits, spent: Nanos(10 * hits) }
    }

    fn outer(n: u64, each: &[u64]) -> Outer {
        Outer {
            done: n,
            inner: inner(n),
            wait_ns_max: 100 - n,
            name: "buffer",
            level: n,
            before: n,
            each: each.to_vec(),
            some: Some(inner(n)),
        }
    }

    /// Every field follows its rule: sums add, a maximum is the larger one, a level is the later one, that of the
    /// beginning the earlier one.
    #[test]
    fn fields_follow_their_rules() {
        let mut sum = outer(3, &[1, 2]);
        sum.add(&outer(5, &[10, 20, 30]));
        let expected = Outer {
            done: 8,
            inner: inner(8),
            wait_ns_max: 97,
            name: "buffer",
            level: 5,
            before: 3,
            each: vec![11, 22, 30],
            some: Some(inner(8)),
        };
        assert_eq!(sum, expected);
        let late = sum.since(&outer(3, &[1, 2]));
        assert_eq!(late, Outer { wait_ns_max: 97, before: 3, ..outer(5, &[10, 20, 30]) });
    }

    /// What was counted by one of two alone is kept.
    #[test]
    fn options_add_what_is_there() {
        let mut none: Option<u64> = None;
        none.add(&Some(3));
        none.add(&None);
        assert_eq!((none, none.since(&Some(1)), none.since(&None)), (Some(3), Some(2), Some(3)));
    }

    proptest! {
        /// A difference takes back a sum.
        #[test]
        fn since_undoes_add(a in 0_u64..1 << 40, b in 0_u64..1 << 40) {
            let (first, second) = (inner(a), inner(b));
            let mut both = first;
            both.add(&second);
            prop_assert_eq!(both.since(&first), second);
        }
    }
}
