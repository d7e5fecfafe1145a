//! Damaged copies: what checksums are there for.
//!
//! - In a copy of what a cut left, a sector of the live log is torn, lost or has a bit flipped. The mount
//!   refuses with an error that names a place, or shows what it shows of a log that ends before the
//!   sector's transaction. Bytes that the format lets pass change nothing.
//! - In a copy of a volume that was recovered and unmounted, a bit of a sector in use is flipped. Mounting
//!   and reading everything fails, or shows the same, but for one page of one file at most: data has no
//!   checksum. ext4 has none in the blocks of long targets of symbolic links either: one target may differ.
//!   F2FS has none in most of its metadata: there it is enough that mounting, reading and unmounting end, whatever
//!   they show.
//!
//! Records of file-level journals are not damaged. The seed's own run goes on as if there had been no copies.

use super::power_switch::{Device, Medium};
use super::rounds::{Run, difference, export, import, mount_env};
use super::tree::{FileSnapshot, Tree, read_tree};
use super::{Image, LATENCY};
use crate::device::drive::CheckFailure;
use nandscape_block::{Lba, MemDevice, SECTOR_BYTES, SectorData, Tag};
use nandscape_fs::LogSector;
use nandscape_fs::contract::FsError;
use nandscape_rt::{Handle, Stream};
use std::collections::BTreeSet;
use std::fmt;

/// Bytes that a torn sector keeps together.
const PIECE_BYTES: usize = 512;
const PIECES: usize = SECTOR_BYTES as usize / PIECE_BYTES;
const ZERO: SectorData = SectorData::Tag(Tag::ZERO);

/// What became of a sector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Damage {
    /// It consists of pieces of an older and a newer content.
    Torn,
    /// The newer content never came.
    Lost,
    /// A bit is wrong.
    Flipped,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Torn => "torn write at",
            Self::Lost => "lost write at",
            Self::Flipped => "flipped bit in",
        })
    }
}

/// A tree, and what an unmount leaves.
type Shown = (Tree, Image);

impl Run<'_> {
    /// Damages copies of what a cut left, if the seed has it so.
    pub(super) fn damage_copies(&mut self, medium: Medium) -> Result<Medium, CheckFailure> {
        let rng = &mut Stream::new(self.seed, &format!("damage-{}", self.round));
        match self.options.damage_every {
            _ if self.options.is_appended() => return Ok(medium),
            0 => return Ok(medium),
            every if rng.below(every) != 0 => return Ok(medium),
            _ => {}
        }
        let sectors = self.options.volume_sectors();
        let (left, medium) = self.stretch(medium, move |_, device| export(device, sectors))?;
        let left = left?;
        self.damage_log(&left, rng)?;
        let whole = self.mount_copy(left)?;
        let (tree, image) = whole.map_err(|error| wrong("a copy without damage", &error))?;
        self.flip_anywhere(&tree, image, rng)?;
        Ok(medium)
    }

    /// Damages a sector of the live log.
    fn damage_log(&mut self, left: &Image, rng: &mut Stream) -> Result<(), CheckFailure> {
        let live = self.live_log(left.clone())?;
        if live.is_empty() {
            return Ok(());
        }
        let LogSector { lba, transaction, checked_bytes } =
            live[rng.below(live.len() as u64) as usize];
        // What lay there before belongs to an older transaction, if to any.
        let before = live.iter().take_while(|sector| sector.transaction != transaction).count();
        let older = match rng.below(3) {
            1 | 2 if before > 0 => {
                left[live[rng.below(before as u64) as usize].lba.0 as usize].clone()
            }
            _ => ZERO,
        };
        let damage = [Damage::Torn, Damage::Lost, Damage::Flipped][rng.below(3) as usize];
        let content = spoilt(damage, &left[lba.0 as usize], &older, rng);
        if has_the_same_checksum(&content, &left[lba.0 as usize]) {
            return Ok(());
        }
        let is_noticed = differs_within(&content, &left[lba.0 as usize], checked_bytes);
        let (mut damaged, mut permitted) = (left.clone(), left.clone());
        damaged[lba.0 as usize] = content;
        let shown = match self.mount_copy(damaged)? {
            Err(error) if is_noticed => return names_a_place(&error),
            Err(error) => return Err(wrong("with bytes wrong that nothing reads", &error)),
            Ok((shown, _)) => shown,
        };
        if is_noticed {
            permitted[transaction.0 as usize] = ZERO;
        }
        let permitted = self.mount_copy(permitted)?;
        let (permitted, _) = permitted.map_err(|error| {
            let what = format!("{damage} {lba} of the log went unnoticed; without its transaction");
            wrong(&what, &error)
        })?;
        match difference(&shown, &permitted) {
            None => Ok(()),
            Some(path) => Err(CheckFailure::new(format!(
                "{damage} {lba} of the log ({}; its transaction begins at {transaction}): the mount \
                 shows wrong content at {path}",
                if is_noticed { "a checksum covers it" } else { "no checksum covers it" }
            ))),
        }
    }

    /// Flips a bit of a sector in use.
    fn flip_anywhere(
        &mut self,
        tree: &Tree,
        mut image: Image,
        rng: &mut Stream,
    ) -> Result<(), CheckFailure> {
        let used: Vec<usize> = (0..image.len()).filter(|lba| image[*lba] != ZERO).collect();
        let Some(&lba) = used.get(rng.below(used.len().max(1) as u64) as usize) else {
            return Ok(());
        };
        image[lba] = spoilt(Damage::Flipped, &image[lba], &ZERO, rng);
        // Whatever the error: it was noticed.
        let Ok((shown, _)) = self.mount_copy(image)? else { return Ok(()) };
        if !self.options.notices_flips() {
            return Ok(());
        }
        match more_than_a_page(tree, &shown) {
            None => Ok(()),
            Some(path) => Err(CheckFailure::new(format!(
                "with a bit of {} flipped {path} is another, and no error says so",
                Lba(lba as u64)
            ))),
        }
    }

    /// The sectors of a copy's log that recovery would use.
    fn live_log(&mut self, image: Image) -> Result<Vec<LogSector>, CheckFailure> {
        let kind = self.options.fs().kind();
        self.on_copy(image, move |_, device| async move {
            let live = kind.live_log(&device.erased()).await;
            live.map_err(|error| CheckFailure::new(format!("the log of a copy: {error}")))
        })
    }

    /// What a mount of a copy shows, and what an unmount leaves; or how the mount failed.
    fn mount_copy(&mut self, image: Image) -> Result<Result<Shown, FsError>, CheckFailure> {
        let (config, mounts) = (self.next_config(), self.mounts);
        self.mounts = mounts - 1;
        let sectors = self.options.volume_sectors();
        self.on_copy(image, move |handle, device| async move {
            let shown = async {
                let (fs, _) = config.mount(mount_env(&handle, &device)).await?;
                let tree = read_tree(&fs).await?;
                fs.unmount().await?;
                Ok(tree)
            };
            match shown.await {
                Err(error) => Ok(Err(error)),
                Ok(tree) => Ok(Ok((tree, export(device, sectors).await?))),
            }
        })
    }

    /// Runs something on a copy.
    fn on_copy<T, F>(
        &mut self,
        image: Image,
        work: impl FnOnce(Handle, Device) -> F + 'static,
    ) -> Result<T, CheckFailure>
    where
        T: 'static,
        F: Future<Output = Result<T, CheckFailure>> + 'static,
    {
        let device = MemDevice::new(self.options.volume_sectors()).with_latency(LATENCY);
        let (counts, now) = (self.counts, self.now);
        let ended =
            self.stretch(Medium::Memory(Box::new(device)), move |handle, device| async move {
                import(&device, image).await?;
                work(handle, device).await
            });
        (self.counts, self.now) = (counts, now);
        ended?.0
    }
}

fn wrong(what: &str, error: &FsError) -> CheckFailure {
    CheckFailure::new(format!("{what}: {error}"))
}

/// A damaged log is refused as corrupt, at a place.
fn names_a_place(error: &FsError) -> Result<(), CheckFailure> {
    match error {
        FsError::Corrupt { place, .. } if !place.is_empty() => Ok(()),
        // Bits of an inode may say anything.
        FsError::Unsupported(_) => Ok(()),
        other => Err(wrong("a damaged log is refused with", other)),
    }
}

/// Whether a CRC-32C cannot tell two contents apart. A superblock of ext4 ends with the CRC-32C of what is before
/// it, and so do the blocks of extent trees: JBD2's, which goes over that too, is the same for all valid contents of
/// such a block. One that is lost from the log, so that an older one stands there, is not noticed in Linux either.
fn has_the_same_checksum(one: &SectorData, other: &SectorData) -> bool {
    match (one.expand(), other.expand()) {
        (Some(one), Some(other)) => crc32c::crc32c(&one[..]) == crc32c::crc32c(&other[..]),
        _ => false,
    }
}

/// Whether two contents differ in their first bytes.
fn differs_within(content: &SectorData, other: &SectorData, bytes: usize) -> bool {
    match (content.expand(), other.expand()) {
        (Some(content), Some(other)) => content[..bytes] != other[..bytes],
        _ => false,
    }
}

/// A content after a damage; `older` is what the sector held before.
fn spoilt(
    damage: Damage,
    content: &SectorData,
    older: &SectorData,
    rng: &mut Stream,
) -> SectorData {
    let Some(mut bytes) = content.expand() else { return SectorData::Absent };
    match damage {
        Damage::Lost => return older.clone(),
        Damage::Flipped => {
            let bit = rng.below(SECTOR_BYTES * 8);
            bytes[bit as usize / 8] ^= 1 << (bit % 8);
        }
        Damage::Torn => {
            let Some(older) = older.expand() else { return SectorData::Absent };
            let pieces = rng.within(1..(1 << PIECES) - 1);
            for piece in (0..PIECES).filter(|piece| pieces >> piece & 1 == 1) {
                let part = piece * PIECE_BYTES..(piece + 1) * PIECE_BYTES;
                bytes[part.clone()].copy_from_slice(&older[part]);
            }
        }
    }
    SectorData::Bytes(std::sync::Arc::from(bytes))
}

/// A path that tells two trees apart, unless one page of one file or the target of one link is all that does.
fn more_than_a_page(before: &Tree, now: &Tree) -> Option<String> {
    // A file may have several names.
    let mut changed = BTreeSet::new();
    for path in before.keys().chain(now.keys()) {
        let (Some(was), Some(is)) = (before.get(path), now.get(path)) else {
            return Some(path.clone());
        };
        let all_but_content = |it: &FileSnapshot| {
            let FileSnapshot { identity, kind, size, links, mode, uid, xattrs, .. } = it.clone();
            (identity, kind, size, links, mode, uid, xattrs)
        };
        if all_but_content(was) != all_but_content(is) {
            return Some(path.clone());
        }
        let pages = was.pages.iter().zip(&is.pages).enumerate();
        let differ = pages.filter(|(_, (was, is))| was != is).map(|(page, _)| page);
        changed.extend(differ.map(|page| (was.identity, page)));
        if was.target != is.target {
            changed.insert((was.identity, 0));
        }
        if changed.len() > 1 {
            return Some(path.clone());
        }
    }
    None
}
