//! Writing a device into the state in which it is to be measured: a sequential fill in large bios,
//! then random 4 KiB overwrites, both through the same write path as the measured phase and without
//! timing: no virtual time passes.

use super::RunError;
use crate::stack::Precondition;
use nandscape_block::{Bio, BlockDevice, Completion, Lba, Payload, Submit, Tag, Token};
use nandscape_rt::{Nanos, Stream};

/// Sectors of a bio of the fill, where the device takes as many.
const FILL_SECTORS: u32 = 1024;
/// Bios under way at once.
const DEPTH: u32 = 32;
/// Sectors between two progress reports.
const REPORT_SECTORS: u64 = 1 << 16;

/// What preconditioning did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Preconditioned {
    /// Sectors of the sequential fill.
    pub fill_sectors: u64,
    /// Sectors of the random overwrites.
    pub overwrite_sectors: u64,
}

/// Writes what `plan` asks for and drains it. `progress` hears of the fraction done.
pub(super) fn precondition<D: BlockDevice>(
    device: &mut D,
    plan: Precondition,
    seed: u64,
    mut progress: impl FnMut(f64),
) -> Result<Preconditioned, RunError> {
    let logical = device.caps().sectors;
    let fill_sectors = (plan.fill * logical as f64) as u64;
    let overwrite_sectors = (plan.random_overwrite * logical as f64) as u64;
    let total = (fill_sectors + overwrite_sectors).max(1) as f64;
    let mut writer = Writer::new(device);
    let step = FILL_SECTORS.min(writer.max_sectors());
    let mut at = 0;
    while at < fill_sectors {
        let sectors = u64::from(step).min(fill_sectors - at) as u32;
        writer.write(Lba(at), sectors)?;
        at += u64::from(sectors);
        if at.is_multiple_of(REPORT_SECTORS) {
            progress(at as f64 / total);
        }
    }
    let mut addresses = Stream::new(seed, "precondition");
    for written in 0..overwrite_sectors {
        writer.write(Lba(addresses.below(logical)), 1)?;
        if written.is_multiple_of(REPORT_SECTORS) {
            progress((fill_sectors + written) as f64 / total);
        }
    }
    writer.finish()?;
    Ok(Preconditioned { fill_sectors, overwrite_sectors })
}

/// Keeps a device busy with writes, [`DEPTH`] at a time.
struct Writer<'a, D> {
    device: &'a mut D,
    under_way: u32,
    written: u64,
    keeps_content: bool,
    completions: Vec<Completion>,
}

impl<'a, D: BlockDevice> Writer<'a, D> {
    fn new(device: &'a mut D) -> Self {
        let keeps_content = device.caps().keeps_content;
        Self { device, under_way: 0, written: 0, keeps_content, completions: Vec::new() }
    }

    fn max_sectors(&self) -> u32 {
        match self.device.caps().max_sectors {
            0 => u32::MAX,
            sectors => sectors,
        }
    }

    /// Every sector written gets a tag of its own.
    fn write(&mut self, lba: Lba, sectors: u32) -> Result<(), RunError> {
        let payload = match self.keeps_content {
            true => Payload::Run(Tag::new((1 << 62) + self.written)),
            false => Payload::None,
        };
        self.written += u64::from(sectors);
        self.submit(Bio::write(lba, sectors, payload))?;
        while self.under_way >= DEPTH {
            self.step()?;
        }
        Ok(())
    }

    fn submit(&mut self, bio: Bio) -> Result<(), RunError> {
        match self.device.submit(Nanos::ZERO, bio, Token(0)) {
            Submit::Done(done) => {
                done.result?;
            }
            Submit::Pending => self.under_way += 1,
        }
        Ok(())
    }

    /// Lets the device act on its next event.
    fn step(&mut self) -> Result<(), RunError> {
        if self.device.next_event().ok_or(RunError::Stuck)? > Nanos::ZERO {
            return Err(RunError::TimePassed);
        }
        self.device.advance(Nanos::ZERO, &mut self.completions);
        for completion in self.completions.drain(..) {
            self.under_way -= 1;
            completion.done.result?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), RunError> {
        self.submit(Bio::flush())?;
        while self.under_way > 0 {
            self.step()?;
        }
        Ok(())
    }
}
