//! Directories: sound blocks, names that are unique and lead to inodes in use, an index that finds
//! them.

use super::checker::{Checker, Directory};
use super::inodes::is_reserved;
use crate::ext4::format::*;
use crate::image::BlockBytes;
use nandscape_block::BlockError;
use std::collections::BTreeSet;

/// Bytes of the record of `.` at most: another could follow where there are more.
const DOT_BYTES_MAX: usize = 24;

/// A directory while it is looked into.
pub(super) struct DirCheck {
    pub(super) number: u32,
    pub(super) seed: Option<CsumSeed>,
    pub(super) has_tail: bool,
    names: BTreeSet<Vec<u8>>,
}

impl DirCheck {
    pub(super) fn place(&self, block: u64) -> Place {
        Place::InodeBlock { inode: self.number, block }
    }
}

impl Checker {
    /// Looks into every directory.
    pub(super) async fn check_directories(&mut self) -> Result<(), BlockError> {
        if self.inodes.get(&ROOT_INODE).is_none_or(|root| root.file_type != mode::DIR) {
            self.report.find(Place::Inode(ROOT_INODE), "is the root, but not a directory");
        }
        for directory in std::mem::take(&mut self.directories) {
            self.report.directories += 1;
            self.check_directory(&directory).await?;
        }
        Ok(())
    }

    async fn check_directory(&mut self, directory: &Directory) -> Result<(), BlockError> {
        let seed = self.sb.csum_seed();
        let seed = seed.map(|seed| seed.of_inode(directory.number, directory.generation));
        let mut looking = DirCheck {
            number: directory.number,
            seed,
            has_tail: seed.is_some(),
            names: BTreeSet::new(),
        };
        let blocks = directory.runs.iter().flat_map(|run| run.start..run.end());
        let blocks: Vec<u64> = blocks.filter(|block| *block < self.sb.blocks_count).collect();
        if directory.indexed {
            return self.check_index(&mut looking, &blocks).await;
        }
        for (index, &block) in blocks.iter().enumerate() {
            let bytes = self.read(block).await?;
            self.check_leaf(&mut looking, block, &bytes, index == 0, |_| true);
        }
        Ok(())
    }

    /// A block of names. `first`: it begins with `.` and `..`. `belongs`: whether a name may be here.
    pub(super) fn check_leaf(
        &mut self,
        looking: &mut DirCheck,
        block: u64,
        bytes: &BlockBytes,
        first: bool,
        belongs: impl Fn(&[u8]) -> bool,
    ) {
        let place = looking.place(block);
        let sealed = check_dir_block(&bytes[..], looking.seed, place);
        self.report.sound(place, sealed);
        let mut index = 0;
        for entry in dir_entries(&bytes[..], looking.has_tail, place) {
            let Some(entry) = self.report.sound(place, entry) else { return };
            index += 1;
            match index {
                1 | 2 if first => self.check_dot(looking.number, index, bytes, &entry, place),
                _ if entry.inode == 0 => {}
                _ => {
                    if !belongs(entry.name) {
                        let what = format!(
                            "{} is not in the block that the index gives for its hash",
                            shown(entry.name)
                        );
                        self.report.find(place, what);
                    }
                    self.check_name(looking, &entry, place);
                }
            }
        }
        if first && index < 2 {
            self.report.find(place, "has no . and ..");
        }
    }

    /// The first two names of a directory.
    pub(super) fn check_dot(
        &mut self,
        number: u32,
        index: u32,
        bytes: &BlockBytes,
        entry: &DirEntry<'_>,
        place: Place,
    ) {
        let (name, wrong) = match index {
            1 => (&b"."[..], entry.inode != number),
            _ => (&b".."[..], false),
        };
        let ended = bytes[entry.name_end()] == 0;
        let long = index == 1 && entry.record_bytes > DOT_BYTES_MAX;
        if entry.name != name || wrong || entry.file_type != file_type_of(mode::DIR) {
            self.report.find(place, format!("{} stands for {}", shown(entry.name), shown(name)));
        } else if !ended || long {
            self.report.find(place, format!("{} has no end where it should", shown(name)));
        }
        if let Some(seen) = self.inodes.get_mut(&number).filter(|_| index == 2) {
            seen.above = Some(entry.inode);
        }
        if let Some(seen) = self.inodes.get_mut(&entry.inode) {
            seen.names += 1;
        }
    }

    fn check_name(&mut self, looking: &mut DirCheck, entry: &DirEntry<'_>, place: Place) {
        let name = shown(entry.name);
        if entry.name == b"." || entry.name == b".." {
            self.report.find(place, format!("{name} is after the first two names"));
            return;
        }
        if !looking.names.insert(entry.name.to_vec()) {
            self.report.find(place, format!("{name} is a duplicate"));
        }
        if entry.inode == ROOT_INODE || is_reserved(entry.inode, &self.sb) {
            self.report.find(place, format!("{name} refers to reserved inode {}", entry.inode));
        }
        let Some(seen) = self.inodes.get_mut(&entry.inode) else {
            self.report.find(place, format!("{name} refers to unused inode {}", entry.inode));
            return;
        };
        seen.names += 1;
        let second = seen.is_dir() && seen.parent.replace(looking.number).is_some();
        if file_type_of(seen.file_type) != entry.file_type {
            self.report
                .find(place, format!("{name} has another file type than inode {}", entry.inode));
        }
        if second {
            self.report.find(place, format!("{name} is a second name of a directory"));
        }
    }
}

/// A name as text, whatever its bytes.
pub(super) fn shown(name: &[u8]) -> String {
    format!("\"{}\"", name.escape_ascii())
}
