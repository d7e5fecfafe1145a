//! Discards that a power cut may have undone: they are sent again.

use super::{Log, is_appendable};

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
}
