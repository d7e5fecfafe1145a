//! The `[fs]` section of a stack file: the file system between workload and FTL. Keys that every kind has
//! are read here, those of one kind in its own file.

mod cpu;
mod ext4;
mod f2fs;

use super::document::Value;
use super::place::StackError;
use super::reader::{Section, Words};
use super::resolved::titled;
use super::{Fsync, Hints, Host};
use nandscape_block::DeviceCaps;
use nandscape_fs::{ConfigError, FsConfig, FsKind};
use nandscape_media::PayloadMode;

/// Page cache of a host that a stack does not describe.
pub(super) const MEMORY_BYTES: u64 = 4 << 30;
/// The least page cache.
pub(crate) const MEMORY_BYTES_MIN: u64 = 1 << 20;
const KIND: Words<FsKind> = Words { here: &[("ext4", FsKind::Ext4), ("f2fs", FsKind::F2fs)] };

/// `[fs]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FsStack {
    /// How it is made and mounted; identity and seeds are set when a run begins.
    pub config: FsConfig,
    /// Keys that are not as they would be if nothing was said.
    chosen: Vec<&'static str>,
}

/// Reads the section; nothing without one.
pub(super) fn read(
    mut fs: Section<'_>,
    host: &Host,
    payload: PayloadMode,
) -> Result<(Option<FsStack>, String), StackError> {
    if fs.is_absent() {
        return Ok((None, String::new()));
    }
    let kind = fs.choice("kind", FsKind::Ext4.name(), &KIND)?;
    fs.check("kind", payload != PayloadMode::None, "needs media.payload = \"tags\" or \"bytes\"")?;
    let config = match kind {
        FsKind::Ext4 => FsConfig::Ext4(ext4::read(&mut fs, host)?),
        FsKind::F2fs => FsConfig::F2fs(f2fs::read(&mut fs, host)?),
    };
    let chosen = fs.chosen().to_vec();
    Ok((Some(FsStack { config, chosen }), titled("fs", fs)?))
}

/// Whether a file system is made; where the one on the device is mounted, the keys that say how are refused.
fn read_format(fs: &mut Section<'_>, mkfs_keys: &[&'static str]) -> Result<bool, StackError> {
    let format: Option<bool> = fs.unwritten("format")?;
    if let Some(format) = format {
        fs.write_unless("true", "format", &format.to_string());
    }
    if format == Some(false) {
        fs.refuse(
            mkfs_keys,
            "goes with format = true: with format = false no file system is made",
        )?;
    }
    Ok(format != Some(false))
}

/// The defaults with the list's changes: names turn features on, or off with ^ in front.
fn read_features<F>(
    fs: &mut Section<'_>,
    defaults: F,
    change: impl Fn(F, &str) -> Result<F, String>,
) -> Result<F, StackError> {
    let mut features = defaults;
    let Some(node) = fs.node("features") else { return Ok(features) };
    let Value::Array(names) = &node.value else {
        let found = node.value.describe();
        let expected = "expected a list of features such as [\"^metadata_csum\"]";
        return Err(fs.reject("features", format!("{expected}, found {found}")));
    };
    let mut words = Vec::new();
    for name in names {
        let Value::String(word) = &name.value else {
            let found = name.value.describe();
            return Err(fs.reject("features", format!("expected names of features, found {found}")));
        };
        features = change(features, word).map_err(|why| fs.reject("features", why))?;
        words.push(format!("\"{word}\""));
    }
    fs.write_unless("[]", "features", &format!("[{}]", words.join(", ")));
    Ok(features)
}

/// Refuses what a file system says itself.
pub(super) fn check_alone(hints: &Hints) -> Result<(), (&'static str, &'static str)> {
    if hints.journal_range.is_some() {
        return Err((
            "hints.journal_range",
            "a file system flags its journal itself: leave this out, or [fs]",
        ));
    }
    if hints.fsync != Fsync::Device {
        return Err((
            "hints.fsync",
            "a file system says itself what an fsync covers: leave this out, or [fs]",
        ));
    }
    Ok(())
}

/// The key of a stack that makes a choice; `fs` for one that no key makes.
fn key_path(key: &str) -> String {
    let is_checked = ext4::CHECKED_KEYS.contains(&key) || f2fs::CHECKED_KEYS.contains(&key);
    if is_checked { format!("fs.{key}") } else { "fs".to_owned() }
}

impl super::Stack {
    /// Refuses, for this reason, what `[fs]` asks for besides `keys`: whatever is not as it would be if
    /// nothing was said.
    ///
    /// # Errors
    /// The first such key.
    pub fn check_fs_keys(&self, keys: &[&str], why: &str) -> Result<(), StackError> {
        let chosen = self.fs.iter().flat_map(|fs| &fs.chosen);
        let other = chosen.copied().find(|key| !keys.contains(key));
        other.map_or(Ok(()), |key| Err(self.error(&format!("fs.{key}"), why)))
    }

    /// Refuses a file system that is to be on the device already, with this advice.
    ///
    /// # Errors
    /// `fs.format`.
    pub(crate) fn check_makes_fs(&self, advice: &str) -> Result<(), StackError> {
        match &self.fs {
            Some(fs) if !fs.config.makes() => {
                let why = format!("false needs a device with a file system: {advice}");
                Err(self.error("fs.format", &why))
            }
            _ => Ok(()),
        }
    }

    /// The same stack on a device that holds its file system already.
    pub(crate) fn on_its_file_system(&self) -> Self {
        let mut stack = self.clone();
        if let Some(fs) = &mut stack.fs {
            fs.config = fs.config.clone().without_format();
        }
        stack
    }

    /// Whether a device with these capabilities can hold the file system, if one is made.
    ///
    /// # Errors
    /// The key at fault.
    pub(crate) fn check_fs(&self, caps: &DeviceCaps) -> Result<(), StackError> {
        let checked = self.fs.as_ref().map_or(Ok(()), |fs| fs.config.check(caps));
        checked.map_err(|error| self.fs_error(&error))
    }

    /// A choice about the file system that cannot be met, at its key.
    pub(crate) fn fs_error(&self, error: &ConfigError) -> StackError {
        self.error(&key_path(error.key), &error.why)
    }
}
