//! The invariants, checked the slow way: for tests and campaigns.

use super::CoupledFtl;
use super::lines::{LineState, Lines, NONE};
use super::space::Class;
use crate::face::Ftl;
use crate::zoned::Store;
use nandscape_media::OpenChannel;
use std::collections::{BTreeMap, BTreeSet};

fn hold(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// A device that is looked at.
pub(super) struct Check<'a, M> {
    pub(super) device: &'a CoupledFtl<M>,
    pub(super) store: &'a Store<M>,
    pub(super) lines: &'a Lines,
}

impl<M: OpenChannel> Check<'_, M> {
    pub(super) fn all(&self) -> Result<(), String> {
        self.device.flash.zones.check_invariants()?;
        self.check_lines()?;
        self.check_records()?;
        let own = self.device.own_counts();
        hold(own.moved == own.opened + own.merged, || {
            format!(
                "{} pages moved, {} records opened, {} merged",
                own.moved, own.opened, own.merged
            )
        })?;
        let ended = own.completed + own.deleted;
        hold(own.carried + own.opened == own.open + ended, || {
            format!(
                "{} records carried, {} opened, {} are open, {ended} ended",
                own.carried, own.opened, own.open
            )
        })
    }

    /// Map, lines and zones agree.
    fn check_lines(&self) -> Result<(), String> {
        let mut live = 0;
        for line in 0..self.lines.count() {
            let of = *self.lines.get(line);
            let bits: u32 = self.lines.bitmap(line).iter().map(|word| word.count_ones()).sum();
            hold(bits == of.valid, || format!("line {line} has {bits} bits, not {}", of.valid))?;
            live += u64::from(of.valid);
            let is_held = of.state.holds_data();
            hold(is_held == (of.logical != NONE), || format!("line {line} is {of:?}"))?;
            if is_held {
                hold(self.lines.of(of.logical) == Some(line), || {
                    format!("line {line} is not that of logical line {}", of.logical)
                })?;
                let generation = self.store.generation(line);
                hold(generation == of.generation, || {
                    format!("line {line} was opened as {}, and is {generation}", of.generation)
                })?;
                let instance = self.device.rules.space.instance(of.logical);
                hold(instance == line % self.device.rules.space.instances, || {
                    format!("line {line} serves instance {instance}")
                })?;
            }
            let is_empty = of.state != LineState::Free || self.store.admitted(line) == 0;
            hold(is_empty, || format!("line {line} is free and holds something"))?;
        }
        let copying = (0..self.lines.count())
            .filter(|&line| self.lines.get(line).state == LineState::Copying)
            .count();
        let victims: Vec<_> = self.device.gc.copying().collect();
        let is_victim = |line: &u32| self.lines.get(*line).state == LineState::Copying;
        hold(victims.len() == copying && victims.iter().all(is_victim), || {
            format!("{copying} lines are being moved, and {victims:?} are victims")
        })?;
        hold(live == self.lines.live(), || {
            format!("{live} valid sectors, not {}", self.lines.live())
        })
    }

    /// Records name what is there, and their references are counted.
    fn check_records(&self) -> Result<(), String> {
        let class_of = |lba| self.device.rules.space.class_at(lba);
        let (mut named, mut count) = (BTreeMap::new(), 0);
        let (mut olds, mut news) = (BTreeSet::new(), BTreeSet::new());
        for (old, new) in
            Class::ALL.into_iter().flat_map(|of| self.device.records.list(class_of, of))
        {
            count += 1;
            hold(olds.insert(old) && news.insert(new), || {
                format!("{old} to {new} is there twice")
            })?;
            for lba in [old, new] {
                let (logical, _) =
                    self.device.rules.space.line(lba).ok_or(format!("a record names {lba}"))?;
                *named.entry(logical).or_insert(0) += 1;
            }
            let home = self.device.rules.space.line(old);
            let home = home.and_then(|(logical, at)| Some((self.lines.of(logical)?, at)));
            let is_there = home.is_some_and(|(line, sector)| self.lines.is_valid(line, sector));
            hold(!is_there, || format!("{old} was moved to {new}, and is there"))?;
        }
        hold(count == self.device.records.open(), || {
            format!("{count} records, not {}", self.device.records.open())
        })?;
        for logical in 0..self.device.rules.space.logical_lines() {
            let names = named.get(&logical).copied().unwrap_or(0);
            let known = self.lines.references(logical);
            hold(names == known, || {
                format!("{names} names in logical line {logical}, not {known}")
            })?;
        }
        Ok(())
    }
}
