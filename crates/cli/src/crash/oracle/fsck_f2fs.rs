//! fsck.f2fs as a campaign's oracle, on images in temporary files, which never take a place.
//!
//! `fsck.f2fs --dry-run` does not roll forward and exits with 0 on an image that a mount would; so it judges only
//! what our recovery and an unmount left. Its other form without questions, `-p`, finds nothing that it is to find.

use super::Scratch;
use crate::output::Failure;
use anyhow::anyhow;
use nandscape_crash::fs::{Image, Oracle};
use std::process::{Command, Stdio};

const TOOL: &str = "fsck.f2fs";

/// The installed fsck.f2fs.
#[derive(Debug)]
pub(crate) struct FsckF2fs(());

impl FsckF2fs {
    /// The oracle, if the machine has it.
    pub(crate) fn find() -> Result<Self, Failure> {
        let missing = |error| anyhow!("--oracle-every: {TOOL} (package f2fs-tools): {error}");
        let ran = Command::new(TOOL).arg("-V").stdin(Stdio::null()).output();
        ran.map_err(missing).map_err(Failure::Input)?;
        Ok(Self(()))
    }
}

impl Oracle for FsckF2fs {
    fn name(&self) -> &str {
        TOOL
    }

    fn recover(&self, _image: &Image) -> Result<Option<Image>, String> {
        Ok(None)
    }

    fn check(&self, image: &Image) -> Result<(), String> {
        let scratch = Scratch::with(image)?;
        let mut command = Command::new(TOOL);
        let ran = command.arg("--dry-run").arg(scratch.name()).stdin(Stdio::null()).output();
        let output = ran.map_err(|error| format!("{TOOL}: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let is_finding = |line: &&str| {
            line.contains("[FIX]") || line.contains("[ASSERT]") || line.contains("[Fail]")
        };
        let lines: Vec<&str> = text.lines().map(str::trim).filter(is_finding).collect();
        Err(format!("{TOOL} --dry-run: {}: {}", output.status, lines.join("; ")))
    }
}
