//! Closed lines by stripe: where lines are narrower than the device each stripe has its victims, and
//! the stripe that is shortest of free lines is collected first (QBLK collects each channel by
//! itself). With lines over the whole device there is one stripe, and this is its victim index.

use super::ids::LineId;
use super::layout::{Layout, StripeOrder};
use super::victims::{Victim, Victims};

/// The victim indexes of all stripes.
#[derive(Debug)]
pub(crate) struct Stripes {
    stripes: Vec<Victims>,
    layout: Layout,
}

impl Stripes {
    /// No closed lines yet.
    pub(crate) fn new(
        policy: Victim,
        layout: Layout,
        chunks: u32,
        line_sectors: u32,
        seed: u64,
    ) -> Self {
        let index = |_| Victims::new(policy, chunks, line_sectors, seed);
        Self { stripes: (0..layout.stripes()).map(index).collect(), layout }
    }

    #[inline]
    fn of(&mut self, line: LineId) -> (&mut Victims, LineId) {
        let (stripe, index) = (self.layout.stripe_of(line), self.layout.chunk(line, 0).chunk);
        (&mut self.stripes[stripe as usize], index)
    }

    /// Takes in a line that has just closed.
    pub(crate) fn insert(&mut self, line: LineId, valid: u32, werr: bool) {
        let (victims, index) = self.of(line);
        victims.insert(index, valid, werr);
    }

    /// Notes that a closed line lost valid sectors.
    #[inline]
    pub(crate) fn lower(&mut self, line: LineId, valid: u32) {
        let (victims, index) = self.of(line);
        victims.lower(index, valid);
    }

    /// Removes a line: it is freed, or a victim.
    pub(crate) fn remove(&mut self, line: LineId) {
        let (victims, index) = self.of(line);
        victims.remove(index);
    }

    /// Notes that a write failed in a closed line.
    pub(crate) fn mark_werr(&mut self, line: LineId) {
        let (victims, index) = self.of(line);
        victims.mark_werr(index);
    }

    /// Whether lines with write errors wait for collection.
    pub(crate) fn has_werr(&self) -> bool {
        self.stripes.iter().any(Victims::has_werr)
    }

    /// Stripes, that with the least valid line first.
    pub(crate) fn by_gain(&self, eligible: impl Fn(LineId) -> bool) -> StripeOrder {
        let mut order: StripeOrder = (0..self.layout.stripes()).collect();
        if order.len() > 1 {
            order.sort_by_cached_key(|&stripe| {
                let victims = &self.stripes[stripe as usize];
                let eligible = |index| eligible(self.layout.line(index, stripe));
                let best = victims.least_valid(u32::MAX, eligible);
                best.map_or(u32::MAX, |index| victims.valid(index))
            });
        }
        order
    }

    /// The least valid line of a stripe with anything to gain among those that are `eligible`.
    pub(crate) fn least_valid(
        &self,
        stripe: u32,
        eligible: impl Fn(LineId) -> bool,
    ) -> Option<LineId> {
        let line = |index| self.layout.line(index, stripe);
        let found =
            self.stripes[stripe as usize].least_valid(u32::MAX, |index| eligible(line(index)));
        found.map(line)
    }

    /// The first line that `choose` finds in a stripe's index, asked for each stripe in `order`.
    pub(crate) fn find(
        &mut self,
        order: impl IntoIterator<Item = u32>,
        mut choose: impl FnMut(&mut Victims, u32) -> Option<LineId>,
    ) -> Option<LineId> {
        let layout = self.layout;
        let mut found = order.into_iter().filter_map(|stripe| {
            let index = choose(&mut self.stripes[stripe as usize], stripe)?;
            Some(layout.line(index, stripe))
        });
        found.next()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.stripes.iter().map(Victims::bytes).sum()
    }
}
