//! Published devices by name: what their NAND and their link take.

use crate::link::{LinkTiming, presets as links};
use crate::nand::{NandTiming, presets as nands};

/// Timing of a whole device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceTiming {
    /// Its units and channels.
    pub nand: NandTiming,
    /// Its controller and the host's link to it.
    pub link: LinkTiming,
}

impl DeviceTiming {
    /// The names that [`DeviceTiming::preset`] knows.
    pub const PRESETS: &[&str] =
        &["nvmevirt-970pro", "nvmevirt-zn540", "nvmevirt-zns-prototype", "qemu-ocssd", "none"];

    /// The preset of this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        let (nand, link) = match name {
            "nvmevirt-970pro" => (nands::NVMEVIRT_970PRO, links::NVMEVIRT_970PRO),
            "nvmevirt-zn540" => (nands::NVMEVIRT_ZN540, links::NVMEVIRT_ZN540),
            "nvmevirt-zns-prototype" => {
                (nands::NVMEVIRT_ZNS_PROTOTYPE, links::NVMEVIRT_ZNS_PROTOTYPE)
            }
            "qemu-ocssd" => (nands::QEMU_OCSSD, LinkTiming::none()),
            "none" => (NandTiming::none(), LinkTiming::none()),
            _ => return None,
        };
        Some(Self { nand, link })
    }

    /// Everything takes no time.
    #[must_use]
    pub const fn none() -> Self {
        Self { nand: NandTiming::none(), link: LinkTiming::none() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every advertised name exists, and no other.
    #[test]
    fn names_and_presets_agree() {
        assert!(DeviceTiming::PRESETS.iter().all(|name| DeviceTiming::preset(name).is_some()));
        assert_eq!(DeviceTiming::preset("970pro"), None);
        assert_eq!(DeviceTiming::preset("none"), Some(DeviceTiming::none()));
        assert!(NandTiming::none().is_instant());
        let timed = &DeviceTiming::PRESETS[..DeviceTiming::PRESETS.len() - 1];
        let is_instant = |name: &&str| DeviceTiming::preset(name).unwrap().nand.is_instant();
        assert!(!timed.iter().any(is_instant));
    }
}
