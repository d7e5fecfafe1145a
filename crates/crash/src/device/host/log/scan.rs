//! What the host of append-only regions fills a device with, and what it reads of it.

use super::super::Requests;
use super::{Log, is_appendable};
use crate::request::{Request, Sender};
use crate::shrink::keep::Keep;
use nandscape_block::{Flags, Lba};

impl<'a> Log<'a> {
    /// Runs of sectors whose objects lie one after the other, and that the host may read.
    fn runs(&self) -> Vec<(Lba, u32)> {
        let fixed = self.fixed.clone().map(|lba| (lba, 1 + lba - self.fixed.start));
        let read = |(lba, object): (&u64, &u64)| {
            let entry = self.entries.get(object)?;
            let at = Lba(*lba);
            let old = entry.old.contains(&at);
            // A discarded address of the device may be used again at any time.
            let given_up =
                entry.discarded && entry.old.is_empty() && !is_appendable(&self.logs, at);
            let shown = (entry.lba == at || old) && !given_up;
            shown.then_some((*lba, *object))
        };
        let mut runs: Vec<(Lba, u32, u64)> = Vec::new();
        for (lba, object) in fixed.chain(self.at.iter().filter_map(read)) {
            match runs.last_mut() {
                Some((first, count, from))
                    if *count < self.scan_window
                        && first.0 + u64::from(*count) == lba
                        && *from + u64::from(*count) == object =>
                {
                    *count += 1;
                }
                _ => runs.push((Lba(lba), 1, object)),
            }
        }
        runs.into_iter().map(|(lba, count, _)| (lba, count)).collect()
    }

    /// Writes slots in order, then flushes.
    pub(super) fn fill(&mut self, keep: Keep) -> Requests<'a> {
        let percent = u64::from(self.plan.load.fill_percent.min(100));
        let filled = self.slots.len() as u64 * percent / 100;
        let window = self.window;
        let (mut slot, mut number, mut requests) = (0, 0, Vec::new());
        while slot < filled {
            let count = u64::from(window).min(filled - slot) as u32;
            number += 1;
            if !keep.has(number) {
                slot += u64::from(count);
                continue;
            }
            let write = self.write(slot, count, Flags::NONE, Sender::ANONYMOUS);
            let Some(Request::Write(_, sectors, ..)) = write else { break };
            slot += u64::from(sectors);
            requests.extend(write);
        }
        Requests::filling(requests, keep)
    }

    pub(super) fn inspect(&mut self) -> Vec<Request> {
        let percent = u64::from(self.plan.scan_percent);
        let runs = self.runs().into_iter();
        let seen = runs.filter(|_| percent >= 100 || self.scan_rng.below(100) < percent);
        seen.map(|(lba, sectors)| Request::Read(lba, sectors)).collect()
    }

    pub(super) fn finish(&self) -> Vec<Request> {
        let reads = self.runs().into_iter().map(|(lba, sectors)| Request::Read(lba, sectors));
        [Request::Flush(Sender::ANONYMOUS)].into_iter().chain(reads).collect()
    }
}
