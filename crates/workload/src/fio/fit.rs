//! `--fit`: the sizes of jobs that were written for a larger device, scaled down in proportion.

use super::spec::{JobFile, JobSpec};
use super::units::{Amount, UNIT_BYTES};
use nandscape_block::SECTOR_BYTES;

/// A factor up to 1, as a fraction.
#[derive(Clone, Copy, Debug)]
struct Factor {
    room: u64,
    asked: u64,
}

impl Factor {
    const ONE: Self = Self { room: 1, asked: 1 };

    fn is_below(self, other: Self) -> bool {
        u128::from(self.room) * u128::from(other.asked)
            < u128::from(other.room) * u128::from(self.asked)
    }

    /// So much of `bytes`, in whole blocks, sectors or units, as they were before.
    fn of(self, bytes: u64, block: u64) -> u64 {
        let scaled = u128::from(bytes) * u128::from(self.room) / u128::from(self.asked);
        let scaled = u64::try_from(scaled).unwrap_or(bytes);
        let steps = [block, SECTOR_BYTES, UNIT_BYTES, 1];
        let step = steps.into_iter().find(|step| *step > 0 && bytes.is_multiple_of(*step));
        scaled - scaled % step.unwrap_or(1)
    }
}

impl JobFile {
    /// The same jobs, whose sizes are to be scaled to the device.
    #[must_use]
    pub fn fit(self) -> Self {
        Self { fits: true, ..self }
    }

    /// The jobs with all sizes and offsets scaled down so that they fit a device of so many bytes, and the factor;
    /// `None` where they fit as they are, or need not.
    #[must_use]
    pub fn fitted(&self, device_bytes: u64) -> Option<(Self, f64)> {
        let factors = self.jobs.iter().filter_map(|spec| factor(spec, device_bytes));
        let factor = factors.fold(Factor::ONE, |a, b| if b.is_below(a) { b } else { a });
        if !self.fits || !factor.is_below(Factor::ONE) {
            return None;
        }
        let mut file = self.clone();
        file.jobs.iter_mut().for_each(|spec| scale(spec, factor));
        Some((file, factor.room as f64 / factor.asked as f64))
    }
}

/// What a job's sizes in bytes must be multiplied by; percentages stay.
fn factor(spec: &JobSpec, device_bytes: u64) -> Option<Factor> {
    if spec.replays() {
        return None;
    }
    let clones = u64::from(spec.numjobs) - 1;
    let block = spec.largest_block();
    // Where the rest of the device is meant, a block of it must be left.
    let size = spec.size.unwrap_or(Amount::Bytes(block));
    let parts = [(spec.offset, 1), (spec.offset_increment, clones), (size, 1)];
    let (mut room, mut asked) = (device_bytes, 0_u64);
    for (amount, times) in parts {
        match amount {
            Amount::Bytes(bytes) => asked = asked.saturating_add(bytes.saturating_mul(times)),
            // A percentage as a size is cut at the device's end.
            Amount::Percent(_) if amount == size => {}
            Amount::Percent(_) => {
                room = room.saturating_sub(amount.of(device_bytes).saturating_mul(times));
            }
        }
    }
    let sizes_of_zones = spec.zones.iter().map(|zones| {
        let bytes = zones.iter().map(|zone| match zone.size {
            Amount::Bytes(bytes) => bytes,
            Amount::Percent(_) => 0,
        });
        bytes.fold(0, u64::saturating_add)
    });
    let asked = sizes_of_zones.fold(asked, u64::max);
    let asked = asked.max(if spec.zoning.is_strided() { spec.zoning.range() } else { 0 });
    (asked > 0).then_some(Factor { room, asked })
}

/// Scales everything of a job that is in bytes of the device.
fn scale(spec: &mut JobSpec, factor: Factor) {
    let (block, least) = (spec.largest_block(), spec.least_block());
    let scaled = |amount: Amount, min: u64| match amount {
        Amount::Bytes(bytes) if bytes > 0 => Amount::Bytes(factor.of(bytes, least).max(min)),
        other => other,
    };
    spec.offset = scaled(spec.offset, 0);
    spec.offset_increment = scaled(spec.offset_increment, 0);
    spec.size = spec.size.map(|size| scaled(size, block));
    spec.io_size = spec.io_size.map(|size| scaled(size, block));
    for zone in spec.zones.iter_mut().flatten() {
        zone.size = scaled(zone.size, least);
    }
    if spec.zoning.is_strided() {
        let zoning = &mut spec.zoning;
        for (bytes, min) in
            [(&mut zoning.size, block), (&mut zoning.range, block), (&mut zoning.skip, 0)]
        {
            if *bytes > 0 {
                *bytes = factor.of(*bytes, least).max(min);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HostEnvironment, parse};
    use super::*;

    fn fitted(text: &str, device_bytes: u64) -> Option<(JobFile, f64)> {
        parse(text, "a.fio", &HostEnvironment).unwrap().fit().fitted(device_bytes)
    }

    /// All jobs shrink by what the largest needs; percentages and block sizes stay.
    #[test]
    fn sizes_shrink_together() {
        let text = "[a]\nrw=randwrite\nsize=1g\nbs=64k\n[b]\nrw=read\nbs=16k\noffset=3g\nsize=1g\nio_size=8g\n\
                    [c]\nsize=50%\n[d]\nnumjobs=2\noffset_increment=2g\n";
        let (file, factor) = fitted(text, 1 << 30).unwrap();
        assert!((factor - 0.25).abs() < 1e-12, "{factor}");
        let [a, b, c, d] = &file.jobs[..] else { panic!() };
        assert_eq!((a.size, a.block_bytes[1]), (Some(Amount::Bytes(1 << 28)), 65_536));
        assert_eq!((b.offset, b.size), (Amount::Bytes(3 << 28), Some(Amount::Bytes(1 << 28))));
        assert_eq!(b.io_size, Some(Amount::Bytes(2 << 30)));
        assert_eq!(
            (c.size, d.offset_increment),
            (Some(Amount::Percent(50)), Amount::Bytes(1 << 29))
        );
    }

    /// What fits stays, unless it was not asked for; results are whole blocks within the device.
    #[test]
    fn what_fits_stays() {
        assert!(fitted("[a]\nsize=1g\n", 1 << 30).is_none());
        let unasked = parse("[a]\nsize=1g\n", "a.fio", &HostEnvironment).unwrap();
        assert!(unasked.fitted(1 << 20).is_none());
        for device_bytes in [10_000_000, 12_345_678, 77 << 20] {
            let text = "[a]\nrw=write\nbs=12k\noffset=10%\nsize=1200000k\n";
            let (file, _) = fitted(text, device_bytes).unwrap();
            let Some(Amount::Bytes(bytes)) = file.jobs[0].size else { panic!() };
            assert!(bytes > 0 && bytes % 12_288 == 0, "{bytes}");
            assert!(bytes + device_bytes / 10 <= device_bytes);
        }
    }
}
