//! e2fsck as a campaign's oracle, on images in temporary files, which never take a place.
//!
//! `e2fsck -fn` does not replay a journal and still exits with 0, so an image that a power cut left is
//! first recovered by `e2fsck -p`, on a copy.

use super::Scratch;
use crate::output::Failure;
use anyhow::anyhow;
use nandscape_crash::fs::{Image, Oracle};
use std::process::{Command, Output};

/// Exit codes from here on mean that something is left uncorrected.
const UNCORRECTED: i32 = 4;

/// The installed e2fsck.
#[derive(Debug)]
pub(crate) struct E2fsck(());

impl E2fsck {
    /// The oracle, if the machine has it.
    pub(crate) fn find() -> Result<Self, Failure> {
        let missing = |error| anyhow!("--oracle-every: e2fsck (package e2fsprogs): {error}");
        Command::new("e2fsck").arg("-V").output().map_err(missing).map_err(Failure::Input)?;
        Ok(Self(()))
    }

    /// Runs e2fsck on an image; its output, and the image afterwards.
    fn run(&self, how: &str, image: &Image) -> Result<(Output, Image), String> {
        let mut scratch = Scratch::with(image)?;
        let output = Command::new("e2fsck").arg(how).arg(scratch.name()).output();
        let output = output.map_err(|error| format!("e2fsck: {error}"))?;
        Ok((output, scratch.load()?))
    }
}

impl Oracle for E2fsck {
    fn name(&self) -> &str {
        "e2fsck"
    }

    fn recover(&self, image: &Image) -> Result<Option<Image>, String> {
        let (output, after) = self.run("-p", image)?;
        match output.status.code() {
            Some(code) if code < UNCORRECTED => Ok(Some(after)),
            _ => Err(said("e2fsck -p", &output)),
        }
    }

    fn check(&self, image: &Image) -> Result<(), String> {
        let (output, _) = self.run("-fn", image)?;
        if output.status.success() { Ok(()) } else { Err(said("e2fsck -fn", &output)) }
    }
}

fn said(command: &str, output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    format!("{command}: {}: {}", output.status, lines.join("; "))
}
