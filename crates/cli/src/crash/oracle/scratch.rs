//! Images in temporary files, for tools that are run as processes. A file is removed with its value.

use crate::replace::Part;
use nandscape_block::{Payload, SECTOR_BYTES, SectorData, Tag};
use nandscape_crash::fs::Image;
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

/// An image in a file.
pub(super) struct Scratch {
    file: File,
    part: Part,
    sectors: usize,
}

impl Scratch {
    /// A file that holds this image.
    pub(super) fn with(image: &Image) -> std::result::Result<Self, String> {
        let folder = std::env::temp_dir();
        let (file, part) = Part::create(&folder.join("nandscape-crash"), None)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut scratch = Self { file, part, sectors: image.len() };
        let saved = save(&mut scratch.file, image);
        saved.map_err(|error| scratch.failed(&error))?;
        Ok(scratch)
    }

    /// Its name.
    pub(super) fn name(&self) -> &Path {
        self.part.name()
    }

    /// What it holds now.
    pub(super) fn load(&mut self) -> std::result::Result<Image, String> {
        load(&mut self.file, self.sectors).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &Error) -> String {
        format!("{}: {error}", self.name().display())
    }
}

fn save(file: &mut File, image: &Image) -> Result<()> {
    file.set_len(image.len() as u64 * SECTOR_BYTES)?;
    for (lba, content) in (0..).zip(image) {
        if *content != SectorData::Tag(Tag::ZERO) {
            let bytes = content.expand().ok_or(ErrorKind::InvalidData)?;
            file.seek(SeekFrom::Start(lba * SECTOR_BYTES))?;
            file.write_all(&*bytes)?;
        }
    }
    Ok(())
}

fn load(file: &mut File, sectors: usize) -> Result<Image> {
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
