//! e2fsck as a campaign's oracle, on images in temporary files, which never take a place.
//!
//! `e2fsck -fn` does not replay a journal and still exits with 0, so an image that a power cut left is
//! first recovered by `e2fsck -p`, on a copy.

use crate::output::Failure;
use crate::replace::Part;
use anyhow::anyhow;
use nandscape_block::{Payload, SECTOR_BYTES, SectorData, Tag};
use nandscape_crash::fs::{Image, Oracle};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
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
        let folder = std::env::temp_dir();
        let (mut file, part) = Part::create(&folder.join("nandscape-crash"), None)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let failed = |error: std::io::Error| format!("{}: {error}", part.name().display());
        save(&mut file, image).map_err(failed)?;
        let output = Command::new("e2fsck").arg(how).arg(part.name()).output().map_err(failed)?;
        let after = load(&mut file, image.len()).map_err(failed)?;
        Ok((output, after))
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

fn save(file: &mut File, image: &Image) -> std::io::Result<()> {
    file.set_len(image.len() as u64 * SECTOR_BYTES)?;
    for (lba, content) in (0..).zip(image) {
        if *content != SectorData::Tag(Tag::ZERO) {
            let bytes = content.expand().ok_or(std::io::ErrorKind::InvalidData)?;
            file.seek(SeekFrom::Start(lba * SECTOR_BYTES))?;
            file.write_all(&*bytes)?;
        }
    }
    Ok(())
}

fn load(file: &mut File, sectors: usize) -> std::io::Result<Image> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    bytes.resize(sectors * SECTOR_BYTES as usize, 0);
    let zero = SectorData::Tag(Tag::ZERO);
    let content = |sector: &[u8]| match sector.iter().all(|byte| *byte == 0) {
        true => zero.clone(),
        false => Payload::from_bytes(sector).map_or_else(|_| zero.clone(), |data| data.sector(0)),
    };
    Ok(bytes.chunks(SECTOR_BYTES as usize).map(content).collect())
}
