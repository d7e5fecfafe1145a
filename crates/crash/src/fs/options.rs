//! What is given to campaigns on a file system; the seed chooses the rest.

use super::draw::knobs::draw_knob;
use super::draw::zones::{self, ZonedVolume};
use super::draw::{
    FsDraw, Mounted, appended, device_sectors, drawn_modes, ftl_kind, full_device_sectors,
    may_fill, media_sectors_min, volume_sectors,
};
use crate::device::target::draw_device;
use crate::draw::append::RegionsWanted;
use crate::draw::scenario::Options;
use crate::settings::Settings;
use crate::shrink::reduction::Reduction;
use nandscape_block::{BlockDevice, DeviceCaps};
use nandscape_fs::f2fs::{Allocation, Reclaim};
use nandscape_fs::{ConfigError, FsConfig, FsKind, Knob, Promises};
use nandscape_ftl::FtlKind;
use std::fmt;

/// What the file system stands on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Base {
    /// An FTL and media that the seed draws, or whose stack is given.
    Flash(Box<Options>),
    /// A device in memory that does whatever the crash model permits
    /// ([`nandscape_block::AdversaryDevice`]).
    Adversary,
    /// The same with zones behind a part that is writable at random.
    ZonedAdversary,
}

/// Of so many cuts one leaves copies that are damaged, by default.
pub const DAMAGE_EVERY: u64 = 20;

/// What is given from outside; the seed chooses the rest.
#[derive(Clone, PartialEq, Debug)]
pub struct FsOptions {
    /// What the file system stands on.
    pub base: Base,
    /// The file system: its modes, and the rule that it leaves out, if any.
    fs: FsConfig,
    /// Modes of it that are given, by the names of [`FsConfig::choices`]; a seed draws others that its kind has
    /// drawn.
    pub given: Vec<&'static str>,
    /// Rounds a seed, one cut each at least.
    pub rounds: u32,
    /// The oracle sees one in so many cuts.
    pub oracle_every: u64,
    /// Copies of what one in so many cuts left are damaged, by a draw of the seed; 0: none.
    pub damage_every: u64,
    /// What is left of each seed's run; `None`: all of it.
    pub only: Option<Reduction>,
    /// Whether the load drives each part of the stack to its end and back.
    pub full: bool,
    /// What the zones of a seed's device make of its volume.
    zones: Option<ZonedVolume>,
    /// Whether that device has append-only regions.
    is_appended: bool,
    /// Sectors of a volume that is to fill its device.
    filled: Option<u64>,
}

impl FsOptions {
    /// A file system on this base, as small as campaigns need it.
    #[must_use]
    pub fn new(base: Base, fs: FsConfig) -> Self {
        let (fs, given) = (fs.in_small(), Vec::new());
        let (oracle_every, damage_every) = (20, DAMAGE_EVERY);
        Self {
            base,
            fs,
            given,
            rounds: 4,
            oracle_every,
            damage_every,
            only: None,
            full: false,
            zones: None,
            is_appended: false,
            filled: None,
        }
    }

    /// The same on the device that a seed has.
    pub(super) fn on(&self, caps: &DeviceCaps) -> Self {
        Self {
            zones: ZonedVolume::on(caps, self.journals()),
            is_appended: caps.has_append_only(),
            filled: self.fills().then_some(caps.sectors),
            ..self.clone()
        }
    }

    /// Whether the file system can be on the devices of the campaign: looks at that of one seed.
    ///
    /// # Errors
    /// The mode that does not fit, or none if the device itself does not.
    pub fn check(&self, seed: u64) -> Result<(), ConfigError> {
        let Base::Flash(flash) = &self.base else { return Ok(()) };
        let Ok((_, device)) = draw_device(seed, &self.device_options(flash)) else { return Ok(()) };
        self.on(device.caps()).config(seed, 0).check(device.caps())
    }

    /// What is drawn below a volume, with what the volume needs of it.
    pub(super) fn device_options(&self, flash: &Options) -> Options {
        Options {
            sectors_min: volume_sectors(&self.fs),
            sectors_max: match self.fills() {
                true => full_device_sectors(self.fs.kind()),
                false => device_sectors(self.fs.kind()),
            },
            media_sectors_min: media_sectors_min(self.fs.kind()),
            wanted: Some(RegionsWanted {
                zones: zones::wanted(self.journals()),
                append: appended::WANTED,
            }),
            ..flash.clone()
        }
    }

    /// Whether a volume is as large as the device, so that this has nothing to spare beside what it keeps for itself.
    fn fills(&self) -> bool {
        self.full && matches!(self.base, Base::Flash(_)) && may_fill(self.fs.kind())
    }

    /// Whether volumes have a GC journal.
    pub(super) fn journals(&self) -> bool {
        match &self.fs {
            FsConfig::Ext4(_) => false,
            FsConfig::F2fs(config) => config.mount.reclaim == Reclaim::GcJournal,
        }
    }

    /// The kind of FTL that seeds draw below a file system of this kind where no stack is given.
    #[must_use]
    pub const fn ftl_kind(kind: FsKind) -> FtlKind {
        ftl_kind(kind)
    }

    /// The modes that reports name, and their values: those that seeds draw have none.
    #[must_use]
    pub fn modes(&self) -> Vec<(&'static str, Option<&'static str>)> {
        let drawn = drawn_modes(&self.fs);
        let is_drawn = |key: &str| drawn.contains(&key) && !self.given.contains(&key);
        let mode = |(key, value)| (key, (!is_drawn(key)).then_some(value));
        self.fs.choices().into_iter().map(mode).collect()
    }

    /// The file system.
    #[must_use]
    pub const fn fs(&self) -> &FsConfig {
        &self.fs
    }

    /// Sectors of a volume in an address space that is written at random, or in zones.
    #[must_use]
    pub const fn volume_sectors(&self) -> u64 {
        match (self.zones, self.filled) {
            (Some(volume), _) => volume.sectors,
            (None, Some(sectors)) => sectors,
            (None, None) => volume_sectors(&self.fs),
        }
    }

    /// Whether volumes are in append-only regions. Such a volume has no copies: no tools of others know it, and no device
    /// in memory has its address space.
    pub(super) const fn is_appended(&self) -> bool {
        self.is_appended
    }

    /// Whether writers scatter pages: what is asked of the file system, or of a device that collects for it, shows when
    /// sections are cleaned, or their holes filled, with no checkpoint between.
    pub(super) fn scatters(&self) -> bool {
        match &self.fs {
            FsConfig::Ext4(_) => false,
            FsConfig::F2fs(config) => {
                self.is_appended
                    || config.mount.allocation == Allocation::Adaptive
                    || config.mount.reclaim == Reclaim::GcJournal
            }
        }
    }

    /// How a seed makes and mounts its volume; `mount` counts its mounts.
    pub(super) fn config(&self, seed: u64, mount: u64) -> FsConfig {
        let mut config = self.modes_of(seed, mount);
        for (knob, value) in self.knobs(seed) {
            let set = config.set_knob(knob.name, value);
            debug_assert_eq!(set, Ok(()));
        }
        config
    }

    /// The same with timers and thresholds as they are by default.
    fn modes_of(&self, seed: u64, mount: u64) -> FsConfig {
        self.fs.for_mount(&self.mounted(seed, mount))
    }

    /// The same with all modes that are not given as they are by default.
    pub(super) fn undrawn(&self, seed: u64, mount: u64) -> FsConfig {
        self.fs.undrawn(&self.mounted(seed, mount))
    }

    fn mounted(&self, seed: u64, mount: u64) -> Mounted<'_> {
        let Self { zones, is_appended, given, filled, full, .. } = self;
        Mounted {
            seed,
            mount,
            given,
            zones: *zones,
            is_appended: *is_appended,
            filled: *filled,
            full: *full,
        }
    }

    /// Every timer and threshold, with the value that a seed draws.
    fn knobs(&self, seed: u64) -> impl Iterator<Item = (Knob, u64)> {
        self.fs.knobs().into_iter().map(move |knob| (knob, draw_knob(seed, &knob)))
    }

    /// The same as keys and values in words.
    pub(super) fn knob_settings(&self, seed: u64) -> Settings {
        self.knobs(seed).fold(Settings::default(), |all, (knob, value)| {
            let shown = knob.show(value).to_string();
            let value = shown.split_once('=').map_or("", |(_, value)| value).to_owned();
            all.with(knob.name, value)
        })
    }

    /// What a seed's mounts promise.
    pub(super) fn promises(&self, seed: u64) -> Promises {
        self.config(seed, 0).promises()
    }

    /// Whether a wrong bit in metadata is noticed.
    pub(super) fn notices_flips(&self) -> bool {
        self.fs.notices_flips()
    }

    /// The modes of a seed's mounts, as keys and values.
    pub(super) fn mode_settings(&self, seed: u64) -> Settings {
        self.modes_of(seed, 0).describe()
    }

    /// Whether tools of others can recover such a volume, or only check what our recovery left.
    pub(super) fn oracle_recovers(&self) -> bool {
        self.fs.oracle_recovers()
    }
}

impl fmt::Display for FsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nrounds = {}", self.fs.describe(), self.rounds)
    }
}
