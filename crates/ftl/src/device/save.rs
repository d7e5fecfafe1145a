//! Saving a power-safe buffer when power fails: the energy that the device has left programs what is in the buffer,
//! with the sequences that it has, into the erase unit of each instance that is kept erased for that. The next
//! mount finds it there as it finds everything else, beside whatever the cut left of programs in flight.

use super::DeviceFtl;
use super::flash::Flash;
use super::region::RegionMap;
use crate::common::ids::LineId;
use crate::common::l2p::MapEntry;
use crate::common::oob::key_lba;
use crate::common::trims::encode_trims;
use crate::error::FtlError;
use crate::kind::OmittedRule;
use nandscape_block::{Lba, SectorData};
use nandscape_media::{ChunkState, KEY_EMPTY, KEY_TRIM, Kind, OpenChannel, Ppa, WriteCmd};
use nandscape_rt::invariant;

/// A sector to be saved: its sequence, key and content.
type Saved = (u64, u32, SectorData);

impl<M: OpenChannel, P: RegionMap> DeviceFtl<M, P> {
    /// Everything in RAM is gone, but for a power-safe buffer, which is saved.
    pub(super) fn lose_power(mut self) -> M {
        if self.flash.rules.config.keeps_buffer()
            && !self.flash.rules.run.omits(OmittedRule::BufferSave)
        {
            for instance in 0..self.instances.len() {
                // Media that refuse are off already: the cut reached them first.
                if self.save_buffer(instance).is_err() {
                    break;
                }
            }
        }
        self.flash.media
    }

    /// Programs what the buffer holds of an instance into its spare erase unit.
    fn save_buffer(&mut self, instance: usize) -> Result<(), FtlError> {
        let Some(line) = self.instances[instance].spare else {
            invariant!(
                self.stopped.is_some(),
                "power-safe buffer: instance {instance} has an erase unit to save it"
            );
            return Ok(());
        };
        let mut saved = self.buffered(instance);
        // What compaction has yet to send replaces records that are still on media.
        if instance == 0 && self.discards.log.has_pending() && !self.discards.log.overflows() {
            let records = self.discards.log.emit(self.flash.next_seq);
            saved.push((self.flash.next_seq, KEY_TRIM, encode_trims(&records)));
            for index in 1..u64::from(self.flash.rules.sizes.unit) {
                saved.push((self.flash.next_seq + index, KEY_EMPTY, SectorData::Absent));
            }
        }
        self.flash.write_saved(line, &saved)
    }

    /// The sectors in the buffer that the table points at, and trim records, by sequence.
    fn buffered(&self, instance: usize) -> Vec<Saved> {
        let mut saved = Vec::new();
        for (id, page) in self.buffer.filled_pages() {
            if self.flash.rules.layout.stripe_of(page.line) != instance as u32 {
                continue;
            }
            let first = self.buffer.first_slot(id);
            for slot in (first..first + page.filled).step_by(self.flash.rules.sizes.unit as usize) {
                let key = self.buffer.key(slot);
                let live = match key_lba(key) {
                    Some(lba) => {
                        let unit = Lba(self.flash.map.unit_of(lba));
                        self.flash.map.get(unit) == MapEntry::Buffered(slot)
                    }
                    None => key == KEY_TRIM,
                };
                let unit = slot..slot + if live { self.flash.rules.sizes.unit } else { 0 };
                saved.extend(unit.map(|slot| {
                    let data = self.buffer.data(slot).clone();
                    (self.buffer.seq(slot), self.buffer.key(slot), data)
                }));
            }
        }
        saved.sort_by_key(|(seq, ..)| *seq);
        saved
    }
}

impl<M: OpenChannel, P: RegionMap> Flash<M, P> {
    /// Whether an erase unit has enough good chunks to save the buffer.
    pub(super) fn can_save(&self, line: LineId) -> bool {
        self.lines.get(line).capacity >= self.rules.sizes.saved_sectors()
    }

    /// Writes sectors page by page, round the good chunks of an erase unit.
    fn write_saved(&mut self, line: LineId, saved: &[Saved]) -> Result<(), FtlError> {
        let mut pages = saved.chunks(self.rules.sizes.page as usize);
        for row in 0..self.rules.geometry.sectors / self.rules.sizes.page {
            for index in 0..self.rules.layout.width {
                let chunk = self.rules.layout.chunk(line, index);
                let info = self.media.chunk(chunk);
                let takes = matches!(info.state, ChunkState::Free | ChunkState::Open);
                if !takes || info.wp != row * self.rules.sizes.page {
                    continue;
                }
                let Some(page) = pages.next() else { return Ok(()) };
                let at = self.rules.layout.format.ppa(chunk, info.wp);
                self.write_saved_page(at, page)?;
            }
        }
        invariant!(pages.next().is_none(), "power-safe buffer: erase unit {line} takes all of it");
        Ok(())
    }

    /// Writes one page of sectors, which takes no time and is not undone by the cut.
    fn write_saved_page(&mut self, at: Ppa, page: &[Saved]) -> Result<(), FtlError> {
        let sectors = self.rules.sizes.page as usize;
        let seq = page.first().map_or(0, |(seq, ..)| *seq);
        let rest = sectors - page.len();
        let padding = std::iter::repeat_n((u64::MAX, KEY_EMPTY, SectorData::Absent), rest);
        let (mut keys, mut deltas, mut data) = (Vec::new(), Vec::new(), Vec::new());
        for (own, key, content) in page.iter().cloned().chain(padding) {
            keys.push(key);
            // Padding has no sequence of its own.
            deltas.push(u32::try_from(own.saturating_sub(seq)).unwrap_or(u32::MAX));
            data.push(content);
        }
        let cmd = WriteCmd {
            at,
            kind: Kind::Data,
            seq,
            seq_deltas: &deltas,
            keys: &keys,
            aux: &[],
            data: &data,
        };
        self.media.write_residual(cmd)?;
        Ok(())
    }
}
