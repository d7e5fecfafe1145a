//! What tidy lets pass, each with its reason. Short on purpose: an entry that allows nothing any
//! more is a finding.

use super::Finding;

/// Findings of one rule that may stand.
pub(super) struct Allowed {
    /// The rule.
    rule: &'static str,
    /// The file.
    path: &'static str,
    /// A part of the finding's message, such as the name of a function.
    about: &'static str,
    /// Why.
    why: &'static str,
}

/// The list.
pub(super) const ALLOWED: &[Allowed] = &[
    Allowed {
        rule: "virtual-clock",
        path: "crates/rt/src/clock.rs",
        about: "`Instant`",
        why: "the real clock reads the system's",
    },
    Allowed {
        rule: "virtual-clock",
        path: "crates/rt/tests/suite/threads.rs",
        about: "`thread`",
        why: "the injector is for other threads; order and outcome are asserted, no times",
    },
];

/// The findings that no entry allows, and the entries that allow nothing.
pub(super) fn filter(findings: Vec<Finding>, allowed: &[Allowed]) -> Vec<Finding> {
    let unused = allowed.iter().filter(|entry| !findings.iter().any(|f| entry.covers(f)));
    let unused: Vec<Finding> = unused.map(Allowed::complain).collect();
    let left = findings.into_iter().filter(|f| !allowed.iter().any(|entry| entry.covers(f)));
    left.chain(unused).collect()
}

impl Allowed {
    fn covers(&self, finding: &Finding) -> bool {
        self.rule == finding.rule
            && self.path == finding.path
            && finding.message.contains(self.about)
    }

    fn complain(&self) -> Finding {
        Finding {
            path: file!().to_owned(),
            line: 1,
            rule: "allow",
            message: format!("nothing to allow: {} {} ({})", self.path, self.rule, self.why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Allowed = Allowed { rule: "length", path: "a.rs", about: "`f`", why: "a table" };

    fn finding(path: &str, message: &str) -> Finding {
        Finding { path: path.to_owned(), line: 1, rule: "length", message: message.to_owned() }
    }

    #[test]
    fn an_entry_covers_only_what_it_names() {
        let found = vec![finding("a.rs", "`f` is long"), finding("a.rs", "`g` is long")];
        let left = filter(found, &[ENTRY]);
        assert_eq!(left, [finding("a.rs", "`g` is long")]);
    }

    #[test]
    fn an_unused_entry_is_caught() {
        let left = filter(vec![finding("b.rs", "`f` is long")], &[ENTRY]);
        assert_eq!(left.len(), 2);
        assert!(left[1].to_string().ends_with("nothing to allow: a.rs length (a table)"));
    }
}
