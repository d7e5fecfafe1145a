//! Discards that a power cut may have undone: they are sent again.

use super::{Log, Moment, is_appendable};
use nandscape_block::Lba;

impl Log<'_> {
    /// Power was cut: what was in flight has ended, and discards may have been lost. Those at addresses of
    /// the device are not sent again: if they were not lost, the device may have used the address again.
    pub(super) fn discard_again(&mut self) {
        let (at, entries) = (&self.at, &self.entries);
        self.freed.retain(|freed| {
            let entry = at.get(&freed.lba.0).and_then(|object| entries.get(object));
            entry.is_none_or(|entry| {
                !entry.discarded || entry.lba != freed.lba && !entry.old.contains(&freed.lba)
            })
        });
        let logs = &self.logs;
        self.entries.retain(|object, entry| {
            entry.written = true;
            if !std::mem::take(&mut entry.discarded) {
                return true;
            }
            if !entry.old.is_empty() || is_appendable(logs, entry.lba) {
                self.superseded.push_back(*object);
            } else {
                entry.discarded = true;
                self.doubtful.push_back((*object, self.now));
            }
            true
        });
    }

    /// Discards again what a power cut may have undone at addresses of the device, once every move of that time is known:
    /// until then the device may have used an address again.
    pub(super) fn settle_doubts(&mut self) {
        while let Some((object, _)) = self.doubtful.pop_front_if(|(_, since)| *since < self.quiet) {
            if let Some(entry) = self.entries.get_mut(&object).filter(|entry| entry.discarded) {
                entry.discarded = false;
                self.superseded.push_back(object);
            }
        }
    }

    /// The device uses an address again: the discard of what was there was not undone.
    pub(super) fn give_up(&mut self, lba: Lba) {
        let doubted = |(object, _): &(u64, Moment)| self.at.get(&lba.0) == Some(object);
        if let Some(index) = self.doubtful.iter().position(doubted)
            && let Some((object, _)) = self.doubtful.remove(index)
        {
            self.entries.remove(&object);
            self.at.remove(&lba.0);
        }
    }
}
