//! The figures in `xtask/perf.json`: a commit, and its instructions per unit by load.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// Figures of one commit.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Base {
    pub(super) commit: String,
    /// By load.
    pub(super) instructions: BTreeMap<String, f64>,
}

impl Base {
    pub(super) fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        Self::parse(&text)
            .ok_or_else(|| format!("{}: expected a commit and figures", file.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let json: Value = serde_json::from_str(text).ok()?;
        let figures = json["instructions"].as_object()?.iter();
        let instructions = figures.map(|(load, it)| Some((load.clone(), it.as_f64()?)));
        Some(Self {
            commit: json["commit"].as_str()?.into(),
            instructions: instructions.collect::<Option<_>>()?,
        })
    }

    pub(super) fn write(&self, file: &Path) -> Result<(), String> {
        std::fs::write(file, self.text()).map_err(|e| format!("{}: {e}", file.display()))
    }

    fn text(&self) -> String {
        format!("{:#}\n", json!({ "commit": self.commit, "instructions": self.instructions }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let instructions = BTreeMap::from([("read".into(), 12.5), ("steady".into(), 100.0)]);
        let base = Base { commit: "abc".into(), instructions };
        assert_eq!(Base::parse(&base.text()), Some(base));
        assert_eq!(Base::parse("{ \"commit\": \"abc\" }"), None);
        assert_eq!(Base::parse("{ \"commit\": \"a\", \"instructions\": { \"x\": \"y\" } }"), None);
    }
}
