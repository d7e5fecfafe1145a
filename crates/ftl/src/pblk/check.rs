//! The FTL's invariants, checked the slow way; for tests and campaigns.

use super::Pblk;
use super::l2p::Place;
use super::line::{LineId, LineState};
use super::rb::Ring;
use super::rl::RateLimiter;
use nandscape_block::Lba;
use nandscape_media::{Kind, OpenChannel, Ppa};

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

impl<M: OpenChannel> Pblk<M> {
    /// Whether table, ring, lines and media agree.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
    pub fn check_invariants(&self) -> Result<(), String> {
        self.check_pointers()?;
        let mapped = self.check_table()?;
        self.check_valid_bits(mapped)?;
        self.check_space()
    }

    fn check_pointers(&self) -> Result<(), String> {
        self.buffers.iter().try_for_each(|buffer| check_buffer(&buffer.rb, &buffer.rl))
    }

    /// Every table entry points at its sector. How many are on media.
    fn check_table(&self) -> Result<u64, String> {
        let mut mapped = 0;
        for lba in (0..self.l2p.len()).map(Lba) {
            match self.l2p.get(lba) {
                Place::Nowhere => {}
                Place::Cached(slot) => {
                    let rb = self.ring_of(slot);
                    let back = rb.position_of(slot);
                    let holds = back >= rb.l2p_update && u64::from(rb.key(back)) == lba.0;
                    ensure(holds, || format!("{lba} points at slot {slot}, which is another's"))?;
                }
                Place::Media(at) => {
                    mapped += 1;
                    let oob = self.media.oob(at);
                    let holds = oob.kind == Kind::Data && u64::from(oob.key) == lba.0;
                    ensure(holds, || format!("{lba} points at {at:?}, which holds {oob:?}"))?;
                    ensure(self.lines.is_valid(at), || format!("{lba} at {at:?} is not valid"))?;
                    ensure(self.is_served(at), || format!("{lba} at {at:?} is not served yet"))?;
                }
            }
        }
        Ok(mapped)
    }

    /// Bits, counts and mapped sectors agree; the rest of the bits are trim records.
    fn check_valid_bits(&self, mapped: u64) -> Result<(), String> {
        let mut valid = 0;
        for (id, line) in self.lines.iter() {
            let bits: u32 =
                self.line_sectors(id).map(|at| u32::from(self.lines.is_valid(at))).sum();
            ensure(bits == line.valid, || format!("line {id}: {bits} bits, counted {line:?}"))?;
            let empty =
                matches!(line.state, LineState::Free | LineState::Cooling | LineState::Next);
            ensure(!empty || bits == 0, || format!("line {id} is empty but valid: {line:?}"))?;
            valid += u64::from(bits);
        }
        ensure(valid >= mapped, || format!("{valid} valid sectors, {mapped} mapped"))
    }

    fn line_sectors(&self, id: LineId) -> impl Iterator<Item = Ppa> {
        (0..self.layout.width).flat_map(move |index| {
            let first = self.geometry.ppa(self.chunk_at(id, index), 0);
            (0..self.geometry.sectors).map(move |i| first.plus(i))
        })
    }

    fn check_space(&self) -> Result<(), String> {
        let (mut writable, mut in_use, mut free_chunks) = (0, 0, 0);
        for (_, line) in self.lines.iter() {
            in_use += u64::from(line.data);
            match line.state {
                LineState::Free => {
                    writable += u64::from(line.capacity);
                    free_chunks += line.chunks;
                }
                LineState::Next | LineState::Open => writable += u64::from(line.left),
                _ => {}
            }
        }
        let counted = (self.lines.writable, self.lines.in_use, self.lines.free_chunks);
        ensure(counted == (writable, in_use, free_chunks), || {
            format!(
                "writable, in use, free chunks: counted {counted:?}, are {:?}",
                (writable, in_use, free_chunks)
            )
        })
    }
}

fn check_buffer(rb: &Ring, rl: &RateLimiter) -> Result<(), String> {
    let ordered = rb.l2p_update <= rb.sync
        && rb.sync <= rb.subm
        && rb.subm <= rb.mem
        && rb.mem - rb.l2p_update <= u64::from(rb.size());
    ensure(ordered, || format!("ring pointers out of order: {rb:?}"))?;
    let entries = rl.entries();
    ensure(u64::from(entries) == rb.mem - rb.sync, || {
        format!("the limiter counts {entries} entries, the ring {}", rb.mem - rb.sync)
    })
}
