//! Rules that a mount can leave out: how a kind of file system lists its own. Each is one promise broken as a
//! plausible bug would break it, for campaigns, which must notice.

use std::fmt;

/// With what a part of a file system is at work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Where {
    /// Always.
    Always,
    /// With this value of a key of `[fs]`.
    Mode(&'static str, &'static str),
    /// On devices with zones.
    Zones,
    /// On devices with append-only address spaces.
    AppendOnly,
    /// On devices that move pages and tell the host.
    Upcalls,
}

impl fmt::Display for Where {
    /// Nothing where it is always at work.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => Ok(()),
            Self::Mode(key, value) => write!(f, "fs.{key} = \"{value}\""),
            Self::Zones => f.write_str("devices with zones"),
            Self::AppendOnly => f.write_str("devices with append-only address spaces"),
            Self::Upcalls => f.write_str("coupled SSDs"),
        }
    }
}

/// A rule that a mount can leave out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// The documentation of its variant.
    pub(crate) about: &'static str,
    /// The part of the file system that it is about.
    pub part: &'static str,
    /// With what that part is at work.
    pub applies: Where,
}

impl Rule {
    /// What goes wrong without it: a sentence without its full stop.
    #[must_use]
    pub fn without(&self) -> &'static str {
        self.about.trim().trim_end_matches('.')
    }
}

/// The rules of a kind, from one list: parts, and of each the variant, the name, and, as its documentation, what goes wrong
/// without it. The document is the manual, whose table has the same sentences.
macro_rules! omitted_rules {
    (
        documented in $document:literal;
        $($part:literal, $applies:expr => {
            $($(#[doc = $about:literal])+ $rule:ident = $name:literal,)+
        })+
    ) => {
        /// A rule that is left out.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum OmittedRule {
            $($($(#[doc = $about])+ $rule,)+)+
        }

        /// All rules.
        pub(crate) const RULES: [crate::rules::Rule; OmittedRule::ALL.len()] = [$($(
            crate::rules::Rule {
                name: $name,
                about: concat!($($about),+),
                part: $part,
                applies: $applies,
            }
        ),+),+];

        impl OmittedRule {
            /// All of them.
            pub const ALL: [Self; [$($(Self::$rule),+),+].len()] = [$($(Self::$rule),+),+];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$rule => $name,)+)+
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
            use super::{OmittedRule, RULES};
            use crate::rules::check_document;
            use std::collections::BTreeSet;

            /// A name is one rule's, and leads back to it.
            #[test]
            fn names_are_unique() {
                let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
                assert_eq!(names.len(), OmittedRule::ALL.len());
                for rule in OmittedRule::ALL {
                    assert_eq!(OmittedRule::named(rule.name()), Some(rule));
                }
                assert_eq!(OmittedRule::named("no-such-rule"), None);
            }

            /// The manual's table is made of the sentences here. `NANDSCAPE_DOCUMENTS=write` replaces it.
            #[test]
            fn rules_are_documented() {
                let at = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join($document);
                check_document(&at, &RULES);
            }
        }
    };
}

pub(crate) use omitted_rules;

/// The head of a table of rules.
#[cfg(test)]
const TABLE: &str = "| Rule | Without it |\n|---|---|\n";

/// The table of rules, as the manual has it.
#[cfg(test)]
fn table(rules: &[Rule]) -> String {
    let mut table = TABLE.to_owned();
    for (index, rule) in rules.iter().enumerate() {
        if index == 0 || rules[index - 1].part != rule.part {
            let with = match rule.applies {
                Where::Always => String::new(),
                mode @ Where::Mode(..) => format!(" (`{mode}`)"),
                device => format!(" ({device})"),
            };
            table.push_str(&format!("| **{}**{with} | |\n", rule.part));
        }
        table.push_str(&format!("| `{}` | {} |\n", rule.name, rule.without()));
    }
    table
}

/// Holds the table of a document against the rules, or replaces it.
#[cfg(test)]
pub(crate) fn check_document(at: &std::path::Path, rules: &[Rule]) {
    let text = std::fs::read_to_string(at).expect("the manual");
    let start = text.find(TABLE).expect("a table of rules");
    let rest = &text[start..];
    let lines = rest.split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let end = start + lines.map(str::len).sum::<usize>();
    let made = table(rules);
    if std::env::var("NANDSCAPE_DOCUMENTS").is_ok_and(|what| what == "write") {
        let written = format!("{}{made}{}", &text[..start], &text[end..]);
        std::fs::write(at, written).expect("the manual");
        return;
    }
    let place = format!("{}: NANDSCAPE_DOCUMENTS=write replaces it", at.display());
    assert_eq!(&text[start..end], made, "{place}");
}
