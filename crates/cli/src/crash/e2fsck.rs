//! e2fsck as a campaign's oracle, on images in temporary files.
//!
//! `e2fsck -fn` does not replay a journal and still exits with 0, so an image that a power cut left is
//! first recovered by `e2fsck -p`, on a copy.

use crate::output::Failure;
use anyhow::anyhow;
use nandscape_block::{Payload, SECTOR_BYTES, SectorData, Tag};
use nandscape_crash::fs::{Image, Oracle};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};

/// Exit codes from here on mean that something is left uncorrected.
const UNCORRECTED: i32 = 4;

/// The installed e2fsck.
#[derive(Debug)]
pub(crate) struct E2fsck {
    /// Images so far, for their names.
    images: AtomicU64,
}

impl E2fsck {
    /// The oracle, if the machine has it.
    pub(crate) fn find() -> Result<Self, Failure> {
        let missing = |error| anyhow!("--oracle-every: e2fsck (package e2fsprogs): {error}");
        Command::new("e2fsck").arg("-V").output().map_err(missing).map_err(Failure::Input)?;
        Ok(Self { images: AtomicU64::new(0) })
    }

    /// Runs e2fsck on an image; its output, and the image afterwards.
    fn run(&self, how: &str, image: &Image) -> Result<(Output, Image), String> {
        let number = self.images.fetch_add(1, Ordering::Relaxed);
        let name = format!("nandscape-crash-{}-{number}", std::process::id());
        let path = TemporaryFile(std::env::temp_dir().join(name));
        let failed = |error: std::io::Error| format!("{}: {error}", path.0.display());
        save(&path, image).map_err(failed)?;
        let output = Command::new("e2fsck").arg(how).arg(&path.0).output().map_err(failed)?;
        let after = load(&path, image.len()).map_err(failed)?;
        Ok((output, after))
    }
}

impl Oracle for E2fsck {
    fn recover(&self, image: &Image) -> Result<Image, String> {
        let (output, after) = self.run("-p", image)?;
        match output.status.code() {
            Some(code) if code < UNCORRECTED => Ok(after),
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

/// A file that is gone with the value.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // What stays behind lies in the folder for temporary files.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn save(path: &TemporaryFile, image: &Image) -> std::io::Result<()> {
    let mut file = File::create(&path.0)?;
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

fn load(path: &TemporaryFile, sectors: usize) -> std::io::Result<Image> {
    let mut bytes = Vec::new();
    File::open(&path.0)?.read_to_end(&mut bytes)?;
    bytes.resize(sectors * SECTOR_BYTES as usize, 0);
    let zero = SectorData::Tag(Tag::ZERO);
    let content = |sector: &[u8]| match sector.iter().all(|byte| *byte == 0) {
        true => zero.clone(),
        false => Payload::from_bytes(sector).map_or_else(|_| zero.clone(), |data| data.sector(0)),
    };
    Ok(bytes.chunks(SECTOR_BYTES as usize).map(content).collect())
}
