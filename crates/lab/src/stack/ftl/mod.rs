//! The `[ftl]` section of a stack file. Its key `kind` comes first and chooses the reader of all others;
//! a key that only another kind has is refused with that kind's name.

mod pblk;

use super::Host;
use super::place::StackError;
use super::reader::Section;
use super::units::did_you_mean;
use nandscape_ftl::{FtlConfig, FtlKind};

/// The kind of a stack that names none.
const DEFAULT_KIND: &str = FtlKind::Pblk.name();

/// Reads the FTL's section.
pub(super) fn read(mut ftl: Section<'_>, host: &Host) -> Result<(FtlConfig, String), StackError> {
    let kind = ftl.word("kind", DEFAULT_KIND, read_kind, |kind, _| kind.to_string())?;
    for other in FtlKind::ALL.into_iter().filter(|&other| other != kind) {
        ftl.foreign(keys(other), &format!("goes with ftl.kind = {other} only"));
    }
    match kind {
        FtlKind::Pblk => {
            let (config, text) = pblk::read(ftl, host)?;
            Ok((FtlConfig::Pblk(config), text))
        }
    }
}

fn read_kind(name: &str) -> Result<FtlKind, String> {
    name.parse().map_err(|why| {
        let names = FtlKind::ALL.map(FtlKind::name);
        format!("{why}{}", did_you_mean(name, names))
    })
}

/// Keys of a kind, but for `kind` itself.
const fn keys(kind: FtlKind) -> &'static [&'static str] {
    match kind {
        FtlKind::Pblk => &pblk::KEYS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Stack;

    /// Every key that a kind asks for is among the keys that other kinds refuse by its name.
    #[test]
    fn keys_of_a_kind_are_all_its_keys() {
        for kind in FtlKind::ALL {
            let set = [format!("ftl.kind={kind}"), "ftl.no_such_key=1".to_owned()];
            let refused = Stack::load("pblk", &set).unwrap_err().to_string();
            let (_, known) = refused.split_once("(known here: ").unwrap();
            let known: Vec<&str> = known.trim_end_matches(')').split(", ").collect();
            let mut expected = vec!["kind"];
            expected.extend(keys(kind));
            assert_eq!(known, expected);
        }
    }
}
