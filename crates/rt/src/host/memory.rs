//! The host's memory as a budget. Parts of the stack that keep data in host memory reserve it here under a
//! name; a reservation that would exceed the budget is refused. The budget counts bytes and owns none.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use thiserror::Error;

/// A reservation that does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Error, Debug)]
#[error("{name} needs {bytes} bytes of host memory, and {left} of {limit} bytes are left")]
pub struct OverBudget {
    /// What the memory is for.
    pub name: &'static str,
    /// Bytes asked for.
    pub bytes: u64,
    /// Bytes that are not reserved.
    pub left: u64,
    /// Bytes of the whole budget.
    pub limit: u64,
}

#[derive(Debug)]
struct Inner {
    limit: Option<u64>,
    /// Bytes by name. An entry stays, with zero bytes, when its last lease is dropped.
    parts: BTreeMap<&'static str, u64>,
}

impl Inner {
    fn used(&self) -> u64 {
        self.parts.values().sum()
    }

    fn left(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.used()))
    }
}

/// The memory of a host. Clones share one budget.
#[derive(Clone, Debug)]
pub struct MemoryBudget(Rc<RefCell<Inner>>);

impl MemoryBudget {
    /// A budget of so many bytes, or without a limit.
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self(Rc::new(RefCell::new(Inner { limit, parts: BTreeMap::new() })))
    }

    /// Reserves `bytes` for `name`, for as long as the lease lives.
    ///
    /// # Errors
    /// The budget has fewer bytes left.
    pub fn reserve(&self, name: &'static str, bytes: u64) -> Result<Lease, OverBudget> {
        let mut inner = self.0.borrow_mut();
        let left = inner.left();
        if bytes > left {
            let limit = inner.limit.unwrap_or(u64::MAX);
            return Err(OverBudget { name, bytes, left, limit });
        }
        *inner.parts.entry(name).or_default() += bytes;
        Ok(Lease { budget: self.clone(), name, bytes })
    }

    /// Bytes of the whole budget; none: no limit.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        self.0.borrow().limit
    }

    /// Bytes that are not reserved; `u64::MAX` without a limit.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.0.borrow().left()
    }

    /// Bytes reserved, by name, in order of names.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, u64)> {
        self.0.borrow().parts.iter().map(|(name, bytes)| (*name, *bytes)).collect()
    }
}

/// Memory reserved of a budget; returned when dropped.
#[derive(Debug)]
#[must_use = "the memory is returned when the lease is dropped"]
pub struct Lease {
    budget: MemoryBudget,
    name: &'static str,
    bytes: u64,
}

impl Lease {
    /// Bytes reserved.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(part) = self.budget.0.borrow_mut().parts.get_mut(self.name) {
            *part -= self.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leases of one name add up, a refused reservation changes nothing, and a dropped lease is returned.
    #[test]
    fn a_budget_is_never_exceeded() {
        let budget = MemoryBudget::new(Some(100));
        let map = budget.reserve("map", 60).unwrap();
        let _rings = budget.reserve("rings", 30).unwrap();
        let refused = budget.reserve("map", 11).unwrap_err();
        assert_eq!(refused, OverBudget { name: "map", bytes: 11, left: 10, limit: 100 });
        assert!(
            refused.to_string().starts_with("map needs 11 bytes of host memory, and 10 of 100")
        );
        let more = budget.reserve("map", 10).unwrap();
        assert_eq!((budget.parts(), budget.left()), (vec![("map", 70), ("rings", 30)], 0));
        drop(map);
        assert_eq!((budget.parts(), budget.left()), (vec![("map", 10), ("rings", 30)], 60));
        assert_eq!((more.bytes(), budget.limit()), (10, Some(100)));
    }

    /// Without a limit everything fits, and is counted all the same.
    #[test]
    fn a_budget_without_a_limit_counts() {
        let budget = MemoryBudget::new(None);
        let _lease = budget.reserve("map", 1 << 40).unwrap();
        assert_eq!((budget.parts(), budget.left()), (vec![("map", 1 << 40)], u64::MAX));
    }
}
