//! Which zones a job may open: limits of the device, of all jobs and of each.

use super::job::ZonedJob;
use super::table::Zones;

impl Zones {
    /// Whether another zone may be opened by this job.
    pub(super) fn has_room(&self, job: &ZonedJob) -> bool {
        let own = || {
            self.open_zones().iter().filter(|zone| self.zone(**zone).opened_by == Some(job.index))
        };
        let within = job.max_open == 0 || (own().count() as u32) < job.max_open;
        within && (self.open_zones().len() as u32) < self.max_open
    }

    /// Whether the job may write to this zone, which may open it.
    pub(super) fn can_open(&self, job: &ZonedJob, index: u32) -> bool {
        let zone = self.zone(index);
        // Of a zone that is full when content is verified, a reset would lose what is to be read again.
        if !zone.writable || (job.keeps_data && zone.is_full(job.least_write())) {
            return false;
        }
        match zone.is_open() {
            _ if !self.limits_open() => true,
            true => zone.pointer < zone.end,
            false => self.has_room(job),
        }
    }

    /// Takes zones that were active before the run as open ones, as far as the limit allows; the others are to
    /// be reset before the job's first I/O.
    pub(in crate::engine) fn adopt(&mut self, job: &mut ZonedJob) {
        let active = self.active.clone();
        for index in active.into_iter().filter(|index| job.span.zones.contains(index)) {
            if self.zone(index).is_open() || job.to_reset.contains(&index) {
                continue;
            }
            match self.can_open(job, index) {
                true => self.open(job.index, index),
                false => job.to_reset.push_back(index),
            }
        }
    }
}
