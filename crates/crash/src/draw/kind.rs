//! Kinds of FTL, as far as a campaign has to know them: how a seed draws the configuration of one, and
//! how that reads. A new kind has a folder beside `pblk/` and an arm in each `match` here.

use crate::draw::append::RegionsWanted;
use crate::draw::coupled;
use crate::draw::device;
use crate::draw::draws::{Draws, KindDraw};
use crate::draw::interval;
use crate::draw::pblk::composition::Pins;
use crate::draw::pblk::config as pblk;
use crate::draw::zoned;
use crate::settings::Settings;
use nandscape_ftl::{FtlConfig, FtlKind};
use std::fmt;

/// The kind that seeds draw where neither a stack nor a kind is given.
pub(crate) const DEFAULT: FtlKind = pblk::KIND;

/// The draw of a kind; of a stack's choices on a small device where they are given.
pub(crate) fn draw_of(
    kind: FtlKind,
    given: Option<&FtlConfig>,
    pins: &Pins,
    wanted: Option<RegionsWanted>,
    draws: &mut Draws<'_>,
) -> Box<dyn KindDraw> {
    let append = wanted.map(|wanted| wanted.append);
    match kind {
        pblk::KIND => Box::new(pblk::ConfigDraw::begin(given, *pins, draws)),
        device::KIND => Box::new(device::ConfigDraw::begin(given)),
        zoned::KIND => {
            let zones = wanted.map(|wanted| wanted.zones);
            Box::new(zoned::ConfigDraw::begin(given, zones, draws))
        }
        interval::KIND => Box::new(interval::ConfigDraw::begin(given, append)),
        coupled::KIND => Box::new(coupled::ConfigDraw::begin(given, append)),
    }
}

/// What a campaign makes of a stack's choices: keys of its `[ftl]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GivenKeys {
    /// What every seed has as it is given.
    pub kept: Vec<&'static str>,
    /// What a seed scales down to its small device, or draws.
    pub drawn: Vec<&'static str>,
}

/// What a campaign on a stack of this kind keeps, and what seeds draw.
#[must_use]
pub fn given_keys(kind: FtlKind) -> GivenKeys {
    let (kept, drawn): (&[&[&str]], &[&[&str]]) = match kind {
        pblk::KIND => (&[pblk::KEPT], &[pblk::SIZED]),
        device::KIND => (&[device::KEPT, device::KEPT_UNZONED], &[device::SIZED]),
        zoned::KIND => (&[device::KEPT, zoned::KEPT], &[device::SIZED, zoned::SIZED]),
        interval::KIND => {
            (&[device::KEPT, device::KEPT_UNZONED], &[device::SIZED, interval::SIZED])
        }
        coupled::KIND => (&[coupled::KEPT, device::KEPT_UNZONED], &[coupled::SIZED]),
    };
    GivenKeys { kept: kept.concat(), drawn: drawn.concat() }
}

impl fmt::Display for GivenKeys {
    /// On one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kept, drawn } = self;
        write!(
            f,
            "stack, as given in all seeds: timing, {}; scaled or drawn: media, {}",
            kept.join(", "),
            drawn.join(", ")
        )
    }
}

/// The choices, as keys and values.
pub(crate) fn describe(config: &FtlConfig) -> Settings {
    let kind = Settings::default().with("kind", config.kind().name());
    kind.and(match config {
        FtlConfig::Pblk(config) => pblk::describe(config),
        FtlConfig::Device(config) => device::describe(config),
        FtlConfig::Zoned(config) => zoned::describe(config),
        FtlConfig::Interval(config) => interval::describe(config),
        FtlConfig::Coupled(config) => coupled::describe(config),
    })
}

/// The kinds that seeds can draw.
#[must_use]
pub const fn ftl_kinds() -> [FtlKind; FtlKind::ALL.len()] {
    FtlKind::ALL
}

/// The kind of this name.
#[must_use]
pub fn kind_of_name(name: &str) -> Option<FtlKind> {
    FtlKind::ALL.into_iter().find(|kind| kind.name() == name)
}

/// Cores of the host that an FTL runs on; 1 where it does not.
pub(crate) fn cores(config: &FtlConfig) -> u16 {
    pblk::of(config).map_or(1, |config| u16::try_from(config.write_buffers).unwrap_or(u16::MAX))
}

/// Whether a kind has compositions.
#[must_use]
pub fn has_compositions(kind: FtlKind) -> bool {
    kind == pblk::KIND
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::scenario::{Options, Scenario, StackChoice};
    use nandscape_ftl::device::Schedule;
    use nandscape_ftl::device::config::{BufferConfig, Victim};
    use nandscape_ftl::{
        coupled as coupled_ftl, device as device_ftl, pblk as pblk_ftl, zoned as zoned_ftl,
    };
    use nandscape_media::{DeviceTiming, Geometry};
    use std::collections::BTreeSet;

    const GEOMETRY: Geometry = Geometry {
        groups: 8,
        units: 2,
        chunks: 512,
        sectors: 256,
        ws_min: 8,
        ws_opt: 8,
        mw_cunits: 0,
        maxoc: 0,
        maxocpu: 0,
    };

    /// Choices that no kind has by default.
    fn pages() -> device_ftl::Config {
        let buffer = BufferConfig { power_safe: true, ..device_ftl::Config::default().buffer };
        device_ftl::Config {
            victim: Victim::CostBenefit,
            schedule: Schedule::Nvmevirt,
            instances: 2,
            buffer,
            ..device_ftl::Config::default()
        }
    }

    /// What seeds make of a configuration, each with its settings of these names.
    fn drawn(config: &FtlConfig, keys: &[&str], edge_cases: bool) -> BTreeSet<Vec<String>> {
        let timing = ("none".to_owned(), DeviceTiming::none());
        let stack = StackChoice { geometry: GEOMETRY, config: config.clone(), timing };
        let options = Options { stack: Some(stack), edge_cases, ..Options::default() };
        let of = |seed| {
            let scenario = Scenario::draw(seed, Vec::new(), &options);
            let settings = describe(&scenario.config);
            let value = |key: &&str| {
                let found = settings.iter().find(|(name, _)| name == key);
                found.map(|(_, value)| value.to_string()).unwrap_or_default()
            };
            keys.iter().map(value).collect()
        };
        (0..80).map(of).collect()
    }

    /// Whatever is drawn, policies are those of the stack; sizes differ from seed to seed.
    #[test]
    fn policies_of_a_stack_are_those_of_every_seed() {
        const PAGES: [&str; 4] = ["victim", "schedule", "power_safe", "early_completion"];
        let of_pages = ["\"cost-benefit\"", "\"nvmevirt\"", "true", "true"];
        let zoned = zoned_ftl::Config { pages: pages(), ..zoned_ftl::Config::default() };
        let upcall = nandscape_block::UpcallSignal::Interrupt;
        let coupled =
            coupled_ftl::Config { pages: pages(), upcall, ..coupled_ftl::Config::default() };
        let pblk = pblk_ftl::config::Config {
            victim: Victim::CostBenefit,
            limiter: pblk_ftl::config::Limiter::Reserve(3),
            ..pblk_ftl::config::Config::default()
        };
        let cases: [(FtlConfig, &[&str], &[&str], &str); 4] = [
            (FtlConfig::Device(pages()), &PAGES, &of_pages, "op_hundredths"),
            (FtlConfig::Zoned(zoned), &PAGES, &of_pages, "op_hundredths"),
            (
                FtlConfig::Coupled(coupled),
                &["upcall", "power_safe", "early_completion"],
                &["\"interrupt\"", "true", "true"],
                "rho_percent",
            ),
            (
                FtlConfig::Pblk(pblk),
                &["victim", "limiter"],
                &["\"cost-benefit\"", "\"reserve-3\""],
                "op_percent",
            ),
        ];
        for (config, keys, values, size) in cases {
            for edge_cases in [false, true] {
                let kept = BTreeSet::from([values.iter().map(ToString::to_string).collect()]);
                assert_eq!(drawn(&config, keys, edge_cases), kept, "{}", config.kind());
            }
            assert!(drawn(&config, &[size], false).len() > 4, "{}: {size}", config.kind());
        }
        let instances = drawn(&FtlConfig::Device(pages()), &["instances"], false);
        assert!(instances.len() <= 2 && instances.contains(&vec!["2".to_owned()]), "{instances:?}");
    }
}
