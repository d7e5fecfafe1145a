//! Rules that a mount can leave out: how a kind of file system lists its own. Each is one promise broken as a
//! plausible bug would break it, for campaigns, which must notice.

/// The rules of a kind, from one list: variant, name, and, as its documentation, what goes wrong without it. The
/// document is the manual, which names each of them once in a table.
macro_rules! omitted_rules {
    (
        documented in $document:literal;
        $($(#[doc = $about:literal])+ $rule:ident = $name:literal,)+
    ) => {
        /// A rule that is left out.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum OmittedRule {
            $($(#[doc = $about])+ $rule,)+
        }

        /// Names of all rules.
        pub(crate) const NAMES: [&str; OmittedRule::ALL.len()] = [$($name),+];

        impl OmittedRule {
            /// All of them.
            pub const ALL: [Self; [$(Self::$rule),+].len()] = [$(Self::$rule),+];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$rule => $name,)+
                }
            }

            /// The rule of this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|rule| rule.name() == name)
            }
        }

        #[cfg(test)]
        mod tests {
            use super::{NAMES, OmittedRule};
            use std::collections::BTreeSet;

            /// What the manual says of power cuts.
            const DOCUMENT: &str = include_str!($document);

            /// A name is one rule's, and leads back to it.
            #[test]
            fn names_are_unique() {
                let names: BTreeSet<&str> = NAMES.into_iter().collect();
                assert_eq!(names.len(), OmittedRule::ALL.len());
                for rule in OmittedRule::ALL {
                    assert_eq!(OmittedRule::named(rule.name()), Some(rule));
                }
                assert_eq!(OmittedRule::named("no-such-rule"), None);
            }

            /// The manual names each rule once in its table.
            #[test]
            fn rules_are_documented() {
                for name in NAMES {
                    let rows = DOCUMENT.matches(&format!("| `{name}` |")).count();
                    assert_eq!(rows, 1, "{name}");
                }
            }
        }
    };
}

pub(crate) use omitted_rules;
