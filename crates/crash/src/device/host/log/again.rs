//! Discards that a power cut may have undone: they are sent again. Where media lose sectors that may be any of them, as their
//! records may be lost.

use super::{Entry, Log, is_appendable};
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
            let kept = !entry.old.is_empty() || is_appendable(logs, entry.lba);
            if kept {
                self.superseded.push_back(*object);
            } else {
                self.at.remove(&entry.lba.0);
            }
            kept
        });
    }

    /// Power was cut, and media lose sectors: a mount may not have found the record of any discard. So what was discarded
    /// counts as live until it is discarded again, as by a mount of F2FS.
    pub(super) fn discard_all_again(&mut self) {
        for (&lba, &object) in &self.at {
            self.entries.entry(object).or_insert_with(|| {
                self.superseded.push_back(object);
                let (lba, old) = (Lba(lba), Vec::new());
                Entry { lba, old, written: true, superseded: true, discarded: false }
            });
        }
    }
}
