//! Middleware that makes things go wrong: program failures, erase failures and unreadable sectors,
//! seeded or scripted, delays, and the instant at which power goes.
//!
//! A delay keeps a command's unit busy for longer than its timing says. So completions of different units come in
//! any order, those of one unit in the order of its commands, and what a power cut leaves follows from the times
//! that were drawn.
//!
//! Each kind of fault draws from its own random stream, one draw a command of that kind, so that the
//! rate of one never shifts the others. After the cut every command is refused as
//! [`RuleError::POWER_OFF`] and does nothing; the device's owner then calls
//! [`crate::Media::power_cut`] with the same instant and [`FaultInjector::restore_power`]. A fault
//! that strikes a command that breaks a rule stays armed for the next of its kind.

use crate::command::{DataOut, Fault, Kind, OpenChannel, Outcome, RuleError, Status, WriteCmd};
use crate::geometry::{ChunkId, Ppa};
use crate::layer::Layer;
use nandscape_rt::{Nanos, Stream};
use std::collections::BTreeSet;

/// What goes wrong.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Faults {
    /// Probability that a program fails.
    pub program_rate: f64,
    /// Probability that an erase fails.
    pub erase_rate: f64,
    /// Probability that a data write, although it succeeds, leaves one of its sectors uncorrectable.
    pub unreadable_rate: f64,
    /// The same of a write of what an FTL keeps for itself: start and end metadata, and mapping blocks.
    pub unreadable_metadata_rate: f64,
    /// Programs that fail, the first being 0.
    pub programs: BTreeSet<u64>,
    /// Erases that fail, the first being 0.
    pub erases: BTreeSet<u64>,
    /// Data writes that leave one of their sectors uncorrectable, the first being 0.
    pub unreadable: BTreeSet<u64>,
    /// How much longer commands take than their timing says.
    pub delays: Delays,
    /// Commands from this instant on are refused.
    pub cut_at: Option<Nanos>,
    /// Commands after this many (writes, reads and resets) are refused.
    pub cut_after_commands: Option<u64>,
}

/// How much longer commands take than their timing says, each by a draw of its own.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Delays {
    /// Any command up to this much, short delays as often as long ones by order of magnitude; 0 means none.
    pub usual_max_ns: u64,
    /// One command in so many stalls its unit; 0 means never.
    pub stall_one_in: u32,
    /// How long stalls are at most, and half of it at least.
    pub stall_max_ns: u64,
}

impl Delays {
    /// Whether any command is delayed.
    #[must_use]
    pub const fn any(&self) -> bool {
        self.usual_max_ns > 0 || self.stall_one_in > 0
    }

    /// The delay of the next command.
    fn draw(&self, rng: &mut Stream) -> Nanos {
        let (half, stalls) = (self.stall_max_ns / 2, u64::from(self.stall_one_in));
        if stalls > 0 && rng.below(stalls) == 0 {
            return Nanos(half + rng.below(half + 1));
        }
        let magnitudes = u64::from(u64::BITS - self.usual_max_ns.leading_zeros());
        let below = 1 << rng.below(magnitudes + 1).min(63);
        Nanos(rng.below(below).min(self.usual_max_ns))
    }
}

/// Metadata are struck by chance alone.
static NOT_SCRIPTED: BTreeSet<u64> = BTreeSet::new();

/// Faults of one kind.
#[derive(Clone, Debug)]
struct Source {
    rng: Stream,
    seen: u64,
}

impl Source {
    fn new(seed: u64, name: &str) -> Self {
        Self { rng: Stream::new(seed, name), seen: 0 }
    }

    /// Whether the next command fails.
    fn should_fail(&mut self, rate: f64, scripted: &BTreeSet<u64>) -> bool {
        let index = self.seen;
        self.seen += 1;
        self.rng.chance(rate) || (!scripted.is_empty() && scripted.contains(&index))
    }
}

/// Injects [`Faults`] into the device below.
#[derive(Clone, Debug)]
pub struct FaultInjector<M> {
    inner: M,
    faults: Faults,
    program: Source,
    erase: Source,
    unreadable: Source,
    metadata: Source,
    delay: Stream,
    /// Sectors that were made uncorrectable at some time.
    injected: BTreeSet<Ppa>,
    commands: u64,
}

impl<M> FaultInjector<M> {
    /// These faults, drawn from the streams of this seed.
    #[must_use]
    pub fn new(inner: M, faults: Faults, seed: u64) -> Self {
        Self {
            inner,
            faults,
            program: Source::new(seed, "media.faults.program"),
            erase: Source::new(seed, "media.faults.erase"),
            unreadable: Source::new(seed, "media.faults.unreadable"),
            metadata: Source::new(seed, "media.faults.metadata"),
            delay: Stream::new(seed, "media.faults.delay"),
            injected: BTreeSet::new(),
            commands: 0,
        }
    }

    /// What goes wrong from now on; also to move the instant of the cut.
    pub const fn faults_mut(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// Commands (writes, reads and resets) that passed.
    #[must_use]
    pub const fn commands(&self) -> u64 {
        self.commands
    }

    /// Sectors that a fault made uncorrectable at some time, whether or not they were erased since; not those
    /// that a power cut tore.
    pub const fn injected(&self) -> &BTreeSet<Ppa> {
        &self.injected
    }

    /// No cut is planned any more.
    pub const fn restore_power(&mut self) {
        self.faults.cut_at = None;
        self.faults.cut_after_commands = None;
    }

    /// The device within, alone.
    #[must_use]
    pub fn into_inner(self) -> M {
        self.inner
    }

    fn powered(&self, now: Nanos) -> bool {
        self.faults.cut_at.is_none_or(|cut| now < cut)
            && self.faults.cut_after_commands.is_none_or(|count| self.commands < count)
    }
}

impl<M: OpenChannel> FaultInjector<M> {
    fn refuse(&self, op: &'static str, chunk: ChunkId, sector: u32, sectors: u32) -> RuleError {
        let rule = RuleError::POWER_OFF;
        RuleError { op, unit: chunk.unit.0, chunk: chunk.chunk, sector, sectors, rule }
    }

    fn refuse_at(&self, op: &'static str, at: Ppa, sectors: u32) -> RuleError {
        let geometry = self.inner.geometry();
        self.refuse(op, geometry.chunk_of(at), geometry.sector_of(at), sectors)
    }

    /// A command passes: counts it, and delays it.
    fn pass(&mut self) {
        self.commands += 1;
        if self.faults.delays.any() {
            let by = self.faults.delays.draw(&mut self.delay);
            self.inner.arm(Fault::Delay(by));
        }
    }

    /// What decides whether a write of this kind leaves a sector uncorrectable, and which: padding is of no use
    /// to anybody.
    fn flaws(&mut self, kind: Kind) -> Option<(&mut Source, f64, &BTreeSet<u64>)> {
        let Self { faults, unreadable, metadata, .. } = self;
        match kind {
            Kind::Data => Some((unreadable, faults.unreadable_rate, &faults.unreadable)),
            Kind::Smeta | Kind::Emeta | Kind::Map => {
                Some((metadata, faults.unreadable_metadata_rate, &NOT_SCRIPTED))
            }
            Kind::None | Kind::Pad => None,
        }
    }

    /// Makes a sector of a write uncorrectable.
    fn strike(&mut self, kind: Kind, at: Ppa, sectors: usize) {
        let Some((source, ..)) = self.flaws(kind) else { return };
        let at = at.plus(source.rng.below(sectors as u64) as u32);
        self.inner.mark_unreadable(at);
        self.injected.insert(at);
    }
}

impl<M: OpenChannel> Layer for FaultInjector<M> {
    type Inner = M;

    #[inline]
    fn inner(&self) -> &M {
        &self.inner
    }

    #[inline]
    fn inner_mut(&mut self) -> &mut M {
        &mut self.inner
    }

    fn pass_write(
        &mut self,
        now: Nanos,
        ready: Nanos,
        cmd: WriteCmd<'_>,
    ) -> Result<Outcome, RuleError> {
        if !self.powered(now) {
            return Err(self.refuse_at("write", cmd.at, cmd.keys.len() as u32));
        }
        self.pass();
        if self.program.should_fail(self.faults.program_rate, &self.faults.programs) {
            self.inner.arm(Fault::Program);
        }
        let flaws = self.flaws(cmd.kind);
        let flawed =
            flaws.is_some_and(|(source, rate, scripted)| source.should_fail(rate, scripted));
        let outcome = self.inner.write(now, ready, cmd)?;
        if flawed && outcome.status == Status::Ok {
            self.strike(cmd.kind, cmd.at, cmd.keys.len());
        }
        Ok(outcome)
    }

    fn pass_read(
        &mut self,
        now: Nanos,
        ready: Nanos,
        at: Ppa,
        sectors: u32,
        out: &mut impl DataOut,
    ) -> Result<Outcome, RuleError> {
        if !self.powered(now) {
            return Err(self.refuse_at("read", at, sectors));
        }
        self.pass();
        self.inner.read(now, ready, at, sectors, out)
    }

    fn pass_reset(
        &mut self,
        now: Nanos,
        ready: Nanos,
        chunk: ChunkId,
    ) -> Result<Outcome, RuleError> {
        if !self.powered(now) {
            return Err(self.refuse("reset", chunk, 0, 0));
        }
        self.pass();
        if self.erase.should_fail(self.faults.erase_rate, &self.faults.erases) {
            self.inner.arm(Fault::Erase);
        }
        self.inner.reset(now, ready, chunk)
    }
}
