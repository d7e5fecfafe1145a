//! `--omit`: the rule that a campaign must find missing, of whichever kind involved has one of that name.

use crate::output::Failure;
use anyhow::anyhow;
use nandscape_crash::Options;
use nandscape_fs::FsConfig;

/// Leaves out a rule of the FTL, or of the file system on it.
pub(super) fn rule(
    name: &str,
    device: &mut Options,
    fs: Option<&mut FsConfig>,
) -> Result<(), Failure> {
    let kind = device.kind();
    if let Some(rule) = kind.rules().iter().find(|rule| rule.name() == name) {
        device.omit = Some(*rule);
        return Ok(());
    }
    let mut kinds = kind.to_string();
    let mut valid: Vec<&str> = kind.rules().iter().map(|rule| rule.name()).collect();
    if let Some(fs) = fs {
        if fs.omit(name).is_ok() {
            return Ok(());
        }
        kinds = format!("{kinds} or {}", fs.kind().name());
        valid.extend(fs.kind().rules());
    }
    let valid = valid.join(", ");
    Err(Failure::input(anyhow!("--omit {name}: no rule of {kinds}: expected one of {valid}")))
}
