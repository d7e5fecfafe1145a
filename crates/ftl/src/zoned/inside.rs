//! Zones as other firmware uses them: as erase units of superblocks whose data it moves (`coupled/`). Everything that is
//! no copy comes as a bio, at addresses of this device.
//!
//! - A copy goes from the buffer or from media to the write pointer of another zone, and crosses no link.
//! - Each time that a zone is opened it has another generation, by which it is known after a power cut.

use super::read::{Extent, Reading};
use super::store::Store;
use crate::common::firmware::Walk;
use crate::common::reads::Found;
use crate::device::DeviceFtl;
use crate::error::FtlError;
use crate::face::{EraseUnit, Ftl};
use crate::report::FirmwareCounts;
use nandscape_block::zone::{ZoneId, ZoneState};
use nandscape_block::{Bio, Lba, SectorData, Submit, Token};
use nandscape_media::{HostLink, OpenChannel};
use nandscape_rt::Nanos;

/// A sector on its way to another zone.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) data: SectorData,
    /// Media have lost its content.
    pub(crate) lost: bool,
    /// When it was read.
    pub(crate) ready: Nanos,
}

impl<M: OpenChannel> Store<M> {
    /// Time has passed, and nothing was due.
    pub(crate) fn pass(&mut self, now: Nanos) {
        self.now = self.now.max(now);
    }

    /// The address of a sector of a zone.
    pub(crate) const fn address(&self, zone: u32, sector: u32) -> Lba {
        self.zones.shape.start_of(zone).plus(sector as u64)
    }

    /// The generation of what a zone holds; 0: nothing.
    pub(crate) fn generation(&self, zone: u32) -> u32 {
        self.zones.get(zone).generation
    }

    /// Sectors of a zone that are on media or in the buffer.
    pub(crate) fn admitted(&self, zone: u32) -> u32 {
        self.zones.get(zone).admitted as u32
    }

    /// Sectors that a zone holds at most.
    pub(crate) const fn capacity(&self) -> u64 {
        self.zones.shape.capacity
    }

    /// Whether media take no more of a zone.
    pub(crate) fn is_failed(&self, zone: u32) -> bool {
        self.zones.get(zone).failed
    }

    /// Whether nothing waits for its turn in a zone.
    pub(crate) fn is_idle(&self, zone: u32) -> bool {
        self.zones.get(zone).queue.is_empty()
    }

    /// Programs and erases of a zone that are on their way.
    pub(crate) fn in_flight(&self, zone: u32) -> u32 {
        self.zones.get(zone).in_flight
    }

    /// How long units read and program for copies since counting began.
    pub(crate) const fn copy_ns(&self) -> u64 {
        self.counts.copy_ns
    }

    /// How long units erased for resets of a zone since this was last asked.
    pub(crate) fn take_erase_ns(&mut self, zone: u32) -> u64 {
        std::mem::take(&mut self.zones.erase_ns[zone as usize])
    }

    /// Pages that lie side by side on the parallel units of a zone.
    pub(crate) const fn pages_of_row(&self) -> u32 {
        self.zones.shape.dies
    }

    /// The end of the page of a zone that a sector lies in.
    pub(crate) const fn page_end(&self, sector: u32) -> u32 {
        sector - sector % self.zones.shape.page + self.zones.shape.page
    }

    /// Whether a zone takes no more writes.
    pub(crate) fn is_full(&self, zone: u32) -> bool {
        self.table.info(ZoneId(zone)).is_ok_and(|info| info.state == ZoneState::Full)
    }

    /// Opens an empty zone: its generation from now on. `None` while the chunks for it are not there.
    pub(crate) fn open(&mut self, zone: u32) -> Result<Option<u32>, FtlError> {
        let was_open = self.zones.get(zone).generation > 0;
        if !self.open_zone(zone)? {
            return Ok(None);
        }
        if was_open {
            self.zones.begin_generation(zone);
        }
        Ok(Some(self.generation(zone)))
    }

    /// Appends a copy to a zone.
    ///
    /// # Errors
    /// The zone is full, or not open.
    pub(crate) fn append_copy(&mut self, zone: u32, copy: Copy) -> Result<(), FtlError> {
        self.table.write(ZoneId(zone), None, 1)?;
        let (stream, local) = self.zones.shape.split(self.zones.get(zone).admitted);
        let id = self.zones.page_for(zone, stream, local / self.zones.shape.page);
        let page = self.zones.pages.get_mut(id);
        page.copies = true;
        page.lost |= u64::from(copy.lost) << page.filled();
        let data = if self.rules.run.keep_content { copy.data } else { SectorData::Absent };
        self.counts.sectors.gc += 1;
        self.push_sector(zone, id, data, copy.ready)?;
        self.zones.dirty.insert(zone);
        self.zones.clean(zone);
        Ok(())
    }

    /// A sector of a zone, as it is copied when it was read.
    pub(crate) fn copy_of(&mut self, zone: u32, sector: u32, ready: Nanos) -> Copy {
        let (data, lost) = self.sector(zone, sector);
        self.counts.media_errors.uncorrectable += u64::from(lost);
        Copy { data, lost, ready }
    }

    /// Reads for the host: when the last sector arrives, and the first error. `unwritten` sectors are zeroes.
    pub(crate) fn read_extents(
        &mut self,
        extents: impl IntoIterator<Item = Extent>,
        sectors: u32,
        unwritten: u32,
    ) -> Found {
        let ready = self.front.link().read_ready(self.begins(), sectors);
        let mut reading = Reading::new(ready);
        reading.unwritten = unwritten;
        for (zone, from, to) in extents {
            self.read_zone(&mut reading, zone, from.into(), to.into())?;
        }
        self.counts.host.read += u64::from(sectors);
        Ok(self.arrive(reading))
    }

    /// Has the firmware make the accesses of a walk; when it has made them.
    #[inline]
    pub(crate) fn access(&mut self, walk: &mut Walk) -> Nanos {
        self.front.access(self.now, walk)
    }

    /// What the core of the firmware counts.
    pub(crate) fn firmware_counts(&self) -> Option<FirmwareCounts> {
        self.front.pages().map(|pages| pages.firmware().counts())
    }

    /// Whether the page-mapped region has found that power is off.
    pub(crate) fn has_lost_power(&self) -> bool {
        self.front.pages().is_some_and(DeviceFtl::has_lost_power)
    }

    /// Erase units of the page-mapped region.
    pub(crate) fn page_units(&self) -> Vec<EraseUnit> {
        self.front.pages().map(Ftl::erase_units).unwrap_or_default()
    }

    /// Sectors of the page-mapped region that hold something.
    pub(crate) fn mapped_pages(&self) -> u64 {
        self.front.pages().map_or(0, Ftl::mapped_sectors)
    }

    /// When the controller has accepted a command without data.
    pub(crate) fn accepted(&self) -> Nanos {
        self.front.link().accepted(self.begins())
    }

    /// Sends sectors from the controller's memory to the host; when they are there.
    pub(crate) fn send(&mut self, sectors: u32) -> Nanos {
        let begins = self.begins();
        self.front.parts().1.read_unwritten(begins, sectors)
    }

    /// Whether everything of a zone before a sector is durable, or gone with the generation that held it.
    pub(crate) fn is_durable_or_gone(&self, zone: u32, generation: u32, end: u32) -> bool {
        self.generation(zone) != generation
            || self.rules.config.keeps_buffer()
            || self.durable(zone) >= u64::from(end)
    }

    /// Whether what flushes cover need not be durable: by the rule that they follow, or as the run leaves out one of its
    /// rules.
    pub(crate) fn may_break_promises(&self) -> bool {
        self.rules.run.omits_any() || self.waits_for_idle()
    }

    /// Sends what a zone has in its buffer on its way to media.
    pub(crate) fn make_durable(&mut self, zone: u32) -> Result<(), FtlError> {
        self.cover_zone(zone).map(drop)
    }

    /// Has the page-mapped region serve a bio of the firmware, whose data cross `inside` in place of the host's link.
    pub(crate) fn submit_inside(
        &mut self,
        bio: Bio,
        token: Token,
        inside: &mut HostLink,
    ) -> Submit {
        std::mem::swap(self.front.parts().1, inside);
        let submit = self.submit_to_front(bio, token);
        std::mem::swap(self.front.parts().1, inside);
        submit
    }
}
