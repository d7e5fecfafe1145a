//! The `[fs]` section of a stack file: the file system between workload and FTL. Keys that every kind has
//! are read here, those of one kind in its own file.

mod ext4;

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
const KIND: Words<FsKind> = Words { here: &[("ext4", FsKind::Ext4)], later: &["f2fs"] };
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
    };
    let chosen = fs.chosen().to_vec();
    Ok((Some(FsStack { config, chosen }), titled("fs", fs)?))
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
    if ext4::CHECKED_KEYS.contains(&key) { format!("fs.{key}") } else { "fs".to_owned() }
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
