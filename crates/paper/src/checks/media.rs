//! Media and link: no run programs faster than the cells and the channels of its stack allow, or carries more over its
//! link. The limits follow from geometry and timing of the resolved stack.

use super::{Facts, Finding, holds};
use nandscape_lab::stack::{MediaStack, Stack};
use nandscape_lab::{FtlKind, SECTOR_BYTES};
use nandscape_media::Duplex;

/// Write units that a unit may have under way at an end of the measured phase.
const UNITS_UNDER_WAY: f64 = 8.0;
/// Bytes that may be on their way over the link at an end of the measured phase: they count where they are sent.
const LINK_UNDER_WAY: u64 = 64 << 20;
/// Rounding of shares and times.
const SLACK: f64 = 1.01;

/// What the media of a stack can do.
pub(super) struct Limits {
    /// Units in all.
    pub(super) units: f64,
    /// Channels.
    channels: f64,
    /// Time of a unit's cells for each sector programmed.
    pub(super) program_s: f64,
    /// Time of a channel for each sector; zero if transfers take none.
    channel_s: f64,
    /// The least and the most time of a unit that reading a sector takes.
    pub(super) read_s: (f64, f64),
    /// Sectors that one command may have under way on a unit.
    write_unit: f64,
}

impl Limits {
    pub(super) fn of(stack: &Stack) -> Self {
        let MediaStack { geometry, timing, .. } = &stack.media;
        let timing = &timing.nand;
        let sectors = |bytes: u64| (bytes / SECTOR_BYTES).max(1) as f64;
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let channel_s = match timing.channel_bytes_per_s {
            0 => 0.0,
            bytes => SECTOR_BYTES as f64 / bytes as f64,
        };
        let sense_min = seconds(timing.read_page_lsb_ns.min(timing.read_page_msb_ns));
        let sense_max = seconds(timing.read_sector_msb_ns.max(timing.read_page_msb_ns));
        Self {
            units: f64::from(geometry.groups) * f64::from(geometry.units),
            channels: f64::from(geometry.groups),
            program_s: seconds(timing.program_ns) / sectors(timing.one_shot_bytes),
            channel_s,
            read_s: (
                sense_min / sectors(timing.flash_page_bytes) + channel_s,
                sense_max + channel_s,
            ),
            write_unit: f64::from(geometry.ws_opt),
        }
    }

    /// Sectors that may be on their way to cells at an end of the measured phase.
    fn under_way(&self) -> f64 {
        UNITS_UNDER_WAY * self.units * self.write_unit
    }

    /// Time that programming each sector takes at least, where all units and channels work.
    fn sector_s(&self) -> f64 {
        (self.program_s / self.units).max(self.channel_s / self.channels)
    }

    /// Time of a unit for each sector programmed, transfer and all.
    pub(super) fn written_s(&self) -> f64 {
        self.program_s + self.channel_s
    }
}

/// Programmed sectors, less those that may still have been under way.
fn programmed(facts: &Facts<'_>, limits: &Limits) -> Option<f64> {
    let all = facts.count("/utilisation/programmed_sectors")? as f64;
    Some((all - limits.under_way()).max(0.0))
}

/// All units together program no more than all of their cells can.
pub(super) fn program_rate(facts: &Facts<'_>) -> Finding {
    let limits = Limits::of(facts.stack.as_ref()?);
    let (sectors, seconds) = (programmed(facts, &limits)?, facts.number("/virtual_s")?);
    let can = limits.units * seconds / limits.program_s;
    holds(sectors <= can * SLACK, || {
        format!("{sectors:.0} sectors programmed in {seconds} s, cells allow {can:.0}")
    })
}

/// All channels together carry no more than their bandwidth.
pub(super) fn channel_rate(facts: &Facts<'_>) -> Finding {
    let limits = Limits::of(facts.stack.as_ref()?);
    let (sectors, seconds) = (programmed(facts, &limits)?, facts.number("/virtual_s")?);
    let can = limits.channels * seconds / limits.channel_s;
    holds(sectors <= can * SLACK, || {
        format!("{sectors:.0} sectors carried in {seconds} s, channels allow {can:.0}")
    })
}

/// What users wrote, with all that was written for it, is no more than cells and channels program.
pub(super) fn user_rate(facts: &Facts<'_>) -> Finding {
    let limits = Limits::of(facts.stack.as_ref()?);
    let (user, waf) = (facts.count("/sectors/user")? as f64, facts.number("/waf/media")?);
    let seconds = facts.number("/virtual_s")?;
    let buffered = (facts.count("/memory/buffers_bytes")? / SECTOR_BYTES) as f64;
    let media_s = (user * waf - limits.under_way() - buffered) * limits.sector_s();
    holds(media_s <= seconds * SLACK, || {
        format!("{user} sectors written {waf} times take media {media_s} s, and took {seconds} s")
    })
}

/// What crossed the link fits its bandwidth: all that did, and of an SSD what the host wrote and read.
pub(super) fn link_rate(facts: &Facts<'_>) -> Finding {
    let stack = facts.stack.as_ref()?;
    let seconds = facts.number("/virtual_s")?;
    let bytes_per_s = Some(stack.link.bytes_per_s).filter(|bytes| *bytes > 0)? as f64;
    let crossed = [facts.count("/link/to_device_bytes")?, facts.count("/link/to_host_bytes")?];
    let of_host = [facts.count("/writes/sectors")?, facts.count("/reads/sectors")?];
    let is_ssd = stack.ftl.kind() != FtlKind::Pblk;
    let of_host = of_host.map(|sectors| if is_ssd { sectors * SECTOR_BYTES } else { 0 });
    let [to_device, to_host] = [0, 1].map(|way| crossed[way].max(of_host[way]));
    let bytes = match stack.link.duplex {
        Duplex::Shared => to_device + to_host,
        Duplex::Full => to_device.max(to_host),
    };
    let can = seconds * bytes_per_s;
    holds(bytes.saturating_sub(LINK_UNDER_WAY) as f64 <= can * SLACK, || {
        format!("{bytes} bytes crossed the link in {seconds} s, which carries {can:.0}")
    })
}

/// The time that units were taken holds the time of the programs.
pub(super) fn busy_time(facts: &Facts<'_>) -> Finding {
    let limits = Limits::of(facts.stack.as_ref()?);
    let shares = facts.at("/utilisation/units")?.as_array()?;
    let busy: f64 = shares.iter().filter_map(|share| share.as_f64()).sum();
    let busy_s = busy * facts.number("/virtual_s")?;
    let cells_s = programmed(facts, &limits)? * limits.program_s;
    holds(cells_s <= busy_s * SLACK, || {
        format!("programs last {cells_s} s in all, units were taken for {busy_s} s")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn stack(timing: &str, duplex: &str) -> String {
        format!(
            "name = \"limits\"\n[media]\ngroups = 2\nunits = 4\nchunks = 72\nsectors = 128\nws_min = 4\nws_opt = 8\n\
             mw_cunits = 24\ntiming = {timing}\n[link]\nkind = \"pcie\"\nbytes_per_s = 1000000000\nduplex = \"{duplex}\"\n\
             [ftl]\nop_percent = 40\n"
        )
    }

    /// What cells program at once is a one-shot page, not the page that one sense brings up: 185 us are of 16 sectors here,
    /// and 30.013 us of 8.
    #[test]
    fn limits_are_those_of_the_pages() {
        let timing = "{ preset = \"nvmevirt-970pro\", one_shot_bytes = 65536 }";
        let stack = stack(timing, "shared");
        let limits = Limits::of(&Stack::parse("limits", &stack, &[] as &[&str]).unwrap());
        let near = |measured: f64, expected: f64| (measured / expected - 1.0).abs() < 1e-9;
        assert_eq!((limits.units, limits.channels), (8.0, 2.0));
        assert!(near(limits.program_s, 185e-6 / 16.0), "{}", limits.program_s);
        assert!(near(limits.written_s(), 185e-6 / 16.0 + 5.12e-6));
        assert!(near(limits.read_s.0, 30.013e-6 / 8.0 + 5.12e-6), "{:?}", limits.read_s);
        assert!(near(limits.read_s.1, 42.013e-6 + 5.12e-6), "{:?}", limits.read_s);
    }

    /// A shared link carries both directions together, a full-duplex one each of them: 60 GB each way are too many for 100 s of a
    /// shared gigabyte per second alone.
    #[test]
    fn directions_share_a_link_that_is_shared() {
        let carried = |duplex: &str| -> Finding {
            let result: Value = json!({ "nandscape": {
                "resolved_stack": stack("\"nvmevirt-970pro\"", duplex), "virtual_s": 100.0,
                "link": { "to_device_bytes": 60_000_000_000_u64, "to_host_bytes": 60_000_000_000_u64 },
                "writes": { "sectors": 0 }, "reads": { "sectors": 0 },
            } });
            link_rate(&Facts::of(&result))
        };
        assert!(matches!(carried("shared"), Some(Err(_))));
        assert_eq!(carried("full"), Some(Ok(())));
    }
}
