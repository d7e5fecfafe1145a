//! The `[link]` section of a stack file: the host's link to the device, and the device's controller.

use super::place::StackError;
use super::reader::{Section, Words};
use super::resolved::titled;
use super::timing::{PLACING, check_time};
use nandscape_media::{Duplex, LinkTiming};

type Parameter = (&'static str, fn(&mut LinkTiming) -> &mut u64);

const PARAMETERS: [Parameter; 8] = [
    ("bytes_per_s", |link| &mut link.bytes_per_s),
    ("command_ns", |link| &mut link.command_ns),
    ("read_small_ns", |link| &mut link.read_small_ns),
    ("read_large_ns", |link| &mut link.read_large_ns),
    ("read_small_bytes", |link| &mut link.read_small_bytes),
    ("buffer_base_ns", |link| &mut link.buffer_base_ns),
    ("buffer_sector_ns", |link| &mut link.buffer_sector_ns),
    ("mdts_bytes", |link| &mut link.mdts_bytes),
];

/// Keys that only a link that takes time has.
const OF_PCIE: [&str; 10] = [
    "bytes_per_s",
    "command_ns",
    "read_small_ns",
    "read_large_ns",
    "read_small_bytes",
    "buffer_base_ns",
    "buffer_sector_ns",
    "mdts_bytes",
    "duplex",
    "placing",
];

/// Whether the link takes time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Pcie,
    None,
}

const KIND: Words<Kind> = Words { here: &[("pcie", Kind::Pcie), ("none", Kind::None)] };

const DUPLEX: Words<Duplex> = Words { here: &[("shared", Duplex::Shared), ("full", Duplex::Full)] };

/// Reads `[link]`, whose defaults are those of the preset that `media.timing` names.
pub(super) fn read(
    mut section: Section<'_>,
    preset: LinkTiming,
) -> Result<(LinkTiming, String), StackError> {
    let default = if preset == LinkTiming::none() { "none" } else { "pcie" };
    if section.choice("kind", default, &KIND)? == Kind::None {
        section.refuse(&OF_PCIE, "goes with link.kind = \"pcie\"")?;
        return Ok((LinkTiming::none(), titled("link", section)?));
    }
    let mut link = preset;
    for (key, parameter) in PARAMETERS {
        let value = parameter(&mut link);
        *value = section.or(key, *value)?;
        check_time(&section, key, *value)?;
    }
    link.duplex = section.choice("duplex", "shared", &DUPLEX)?;
    link.placing = section.choice("placing", "backfill", &PLACING)?;
    Ok((link, titled("link", section)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_media::{DeviceTiming, LinkScheduling};

    /// Every key that is read belongs to a link that takes time, and every preset's link has the
    /// defaults of the keys that are no numbers.
    #[test]
    fn keys_and_presets_agree() {
        assert!(PARAMETERS.iter().all(|(key, _)| OF_PCIE.contains(key)));
        assert_eq!(PARAMETERS.len() + 2, OF_PCIE.len());
        for name in DeviceTiming::PRESETS {
            let link = DeviceTiming::preset(name).map(|device| device.link);
            let modes = link.map(|link| (link.duplex, link.placing));
            assert_eq!(modes, Some((Duplex::Shared, LinkScheduling::Backfill)), "{name}");
        }
    }
}
