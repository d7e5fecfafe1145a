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

/// Cores of the host that an FTL runs on; 1 where it does not.
pub(crate) fn cores(config: &FtlConfig) -> u16 {
    pblk::of(config).map_or(1, |config| u16::try_from(config.write_buffers).unwrap_or(u16::MAX))
}

/// Whether a kind has compositions.
#[must_use]
pub fn has_compositions(kind: FtlKind) -> bool {
    kind == pblk::KIND
}

/// The names of all rules that some kind can leave out.
pub fn rule_names() -> impl Iterator<Item = &'static str> {
    FtlKind::ALL.into_iter().flat_map(|kind| kind.rules()).map(|rule| rule.name())
}
