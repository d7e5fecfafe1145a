//! What can be chosen about an F2FS, as a whole: how it is made and how it is mounted. Choices that
//! campaigns, reports and messages name have names here; those of mkfs.f2fs and of the kernel's mount are theirs.

use super::F2fs;
use super::append::AppendGeometry;
use super::cpu::CpuCosts;
use super::format::{Feature, Features, GcJournalFormat, SUPPORTED};
use super::mkfs::{self, MkfsError, MkfsOptions, Plan, mkfs};
use super::options::{
    AllocMode, Allocation, DiscardPolicy, FsyncMode, MountOptions, Reclaim, SmallVolume,
    VictimPolicy,
};
use super::rules::OmittedRule;
use super::zones::ZoneGeometry;
use crate::config::{
    ConfigError, FormatError, FormatRequest, Formatted, MountEnv, MountReport, Promises,
    RecoveryStep,
};
use crate::contract::FsError;
use nandscape_block::{AsyncDevice, DeviceCaps};

/// What a request may ask that F2FS does not have, with the reason.
const NOT_HERE: &str = "F2FS has no such choice";

/// How an F2FS is made and mounted.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Config {
    /// How it is made; `None`: the device already holds it.
    pub format: Option<MkfsOptions>,
    /// How it is mounted.
    pub mount: MountOptions,
}

// The one number that is not whole, the overprovision, is never NaN: what reads it refuses that.
impl Eq for Config {}

impl Allocation {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Lfs, Self::Adaptive];

    /// Its name, as in F2FS's `mode=`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lfs => "lfs",
            Self::Adaptive => "adaptive",
        }
    }
}

impl SmallVolume {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Kernel, Self::Off];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Off => "off",
        }
    }
}

impl AllocMode {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Default, Self::Reuse];

    /// Its name, as in F2FS's `alloc_mode=`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Reuse => "reuse",
        }
    }
}

impl Reclaim {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Checkpoint, Self::GcJournal];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checkpoint => "checkpoint",
            Self::GcJournal => "gc-journal",
        }
    }
}

impl FsyncMode {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Posix, Self::Strict];

    /// Its name, as in F2FS's `fsync_mode=`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Posix => "posix",
            Self::Strict => "strict",
        }
    }
}

impl DiscardPolicy {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Kernel, Self::Aggressive];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Aggressive => "aggressive",
        }
    }
}

impl VictimPolicy {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::CostBenefit, Self::AgeThreshold];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CostBenefit => "cost-benefit",
            Self::AgeThreshold => "age-threshold",
        }
    }
}

/// The name of a number of logs in use; none of a number that F2FS does not have.
#[must_use]
const fn logs_name(active_logs: u8) -> &'static str {
    match active_logs {
        2 => "2",
        4 => "4",
        _ => "6",
    }
}

/// The name of [`MountOptions::ordered_data`].
#[must_use]
const fn order_name(ordered_data: bool) -> &'static str {
    if ordered_data { "ordered" } else { "kernel" }
}

/// The choice of this name.
fn named<T: Copy, const N: usize>(
    all: [T; N],
    name: impl Fn(T) -> &'static str,
    value: &str,
) -> Option<T> {
    all.into_iter().find(|choice| name(*choice) == value)
}

/// The changes that words of `-O` make: a name turns a feature on, or off with `^` before it.
///
/// # Errors
/// The first word that no feature is called, or whose feature is not supported.
pub fn change_features(
    mut features: Features,
    words: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Features, String> {
    for word in words {
        let word = word.as_ref();
        let name = word.trim_start_matches('^');
        let feature = Features::named(name);
        let feature = feature.ok_or_else(|| format!("no feature of F2FS is called \"{name}\""))?;
        features = match word.starts_with('^') {
            true => features.without(feature),
            false if SUPPORTED.has(feature) => features.with(feature),
            false if feature == Feature::BLKZONED => {
                return Err(format!("{name} is on where the device has zones, and only there"));
            }
            false => return Err(format!("{name} is not supported")),
        };
    }
    Ok(features)
}

/// The key of a choice in `format` without which `error` would not be; empty if none is at fault but the size.
fn key_at_fault(format: &MkfsOptions, sectors: u64, error: &MkfsError) -> &'static str {
    let defaults = MkfsOptions::new(0);
    let undone = [
        ("features", MkfsOptions { features: defaults.features, ..format.clone() }),
        ("label", MkfsOptions { label: String::new(), ..format.clone() }),
        ("overprovision", MkfsOptions { overprovision: None, ..format.clone() }),
        ("segments_per_section", MkfsOptions { segments_per_section: 1, ..format.clone() }),
        ("sections_per_zone", MkfsOptions { sections_per_zone: 1, ..format.clone() }),
        ("gc_journal_area", MkfsOptions { gc_journal: false, ..format.clone() }),
    ];
    let remains =
        |options: &MkfsOptions| mkfs::plan(options, sectors).err().as_ref() == Some(error);
    undone.iter().find(|(_, options)| !remains(options)).map_or("", |(key, _)| key)
}

/// The choice that kept a volume from being made.
fn config_error(format: &MkfsOptions, sectors: u64, error: &MkfsError) -> ConfigError {
    if let MkfsError::Rho(why) = error {
        return ConfigError { key: "rho", why: why.clone() };
    }
    ConfigError { key: key_at_fault(format, sectors, error), why: error.to_string() }
}

impl Config {
    /// A volume that is to be made as `request` says.
    ///
    /// # Errors
    /// The choice that F2FS does not have.
    pub(crate) fn to_format(request: &FormatRequest<'_>) -> Result<Self, ConfigError> {
        let not_here = [
            ("journal", request.journal_sectors.is_some()),
            ("inode_ratio", request.inode_ratio.is_some()),
            ("inode_bytes", request.inode_bytes.is_some()),
            ("reserved_percent", request.reserved_percent.is_some()),
        ];
        if let Some((key, _)) = not_here.into_iter().find(|(_, is_asked)| *is_asked) {
            return Err(ConfigError { key, why: NOT_HERE.to_owned() });
        }
        let defaults = MkfsOptions::new(request.seed);
        let features = change_features(defaults.features, request.features)
            .map_err(|why| ConfigError { key: "features", why })?;
        let too_late = |_| ConfigError { key: "time", why: "beyond the year 2106".to_owned() };
        let format = MkfsOptions {
            features,
            label: request.label.to_owned(),
            segments_per_section: request.segments_per_section.unwrap_or(1),
            sections_per_zone: request.sections_per_zone.unwrap_or(1),
            overprovision: request.overprovision,
            gc_journal: request.gc_journal_area,
            now_s: u32::try_from(request.now_s).map_err(too_late)?,
            fresh: request.fresh,
            ..defaults
        };
        Ok(Self { format: Some(format), mount: MountOptions::default() })
    }

    /// The same for a run: identity and the checkpoint's first version are drawn from the run's seed.
    pub(crate) fn for_run(&self, seed: u64, fresh: bool) -> Self {
        let MkfsOptions { uuid, checkpoint_ver, .. } = MkfsOptions::new(seed);
        let mut run = self.clone();
        run.format = run.format.map(|format| MkfsOptions { uuid, checkpoint_ver, fresh, ..format });
        run.mount.seed = seed;
        run
    }

    /// Whether a device has room for what is to be made on it.
    pub(crate) fn check(&self, caps: &DeviceCaps) -> Result<(), ConfigError> {
        let Some(format) = self.format_on(caps)? else { return Ok(()) };
        let planned = mkfs::plan(&format, caps.sectors);
        planned.map(drop).map_err(|error| config_error(&format, caps.sectors, &error))
    }

    /// How it is made on a device, whose zones are sections.
    fn format_on(&self, caps: &DeviceCaps) -> Result<Option<MkfsOptions>, ConfigError> {
        let zones = ZoneGeometry::of(caps).map_err(|why| ConfigError { key: "", why })?;
        if zones.is_some() && self.mount.allocation != Allocation::Lfs {
            let why = "zones are written at their write pointers: \"lfs\" alone".to_owned();
            return Err(ConfigError { key: "allocation", why });
        }
        let journals = self.mount.reclaim == Reclaim::GcJournal;
        let active = zones.map_or(Ok(()), |zones| zones.check_active(journals));
        active.map_err(|why| ConfigError { key: "", why })?;
        let append = AppendGeometry::of(caps).map_err(|why| ConfigError { key: "", why })?;
        if append.is_some() {
            self.check_append()?;
        }
        Ok(self.format.clone().map(|format| MkfsOptions {
            zones,
            append: append.map(Box::new),
            ..format
        }))
    }

    /// That the mount writes append-only regions as they must be.
    fn check_append(&self) -> Result<(), ConfigError> {
        if self.mount.allocation != Allocation::Lfs {
            let why = "append-only regions are written once: \"lfs\" alone".to_owned();
            return Err(ConfigError { key: "allocation", why });
        }
        if self.mount.reclaim != Reclaim::Checkpoint {
            let why = "nothing is cleaned in append-only regions: \"checkpoint\" alone".to_owned();
            return Err(ConfigError { key: "reclaim", why });
        }
        Ok(())
    }

    pub(crate) const fn promises(&self) -> Promises {
        Promises {
            syncs_single_files: true,
            may_show_stale_blocks: !self.mount.ordered_data,
            // Adaptive logging does now and then.
            overwrites_in_place: false,
        }
    }

    pub(crate) const fn choices(&self) -> [(&'static str, &'static str); 9] {
        [
            ("allocation", self.mount.allocation.name()),
            ("small_volume", self.mount.small_volume.name()),
            ("alloc_mode", self.mount.alloc_mode.name()),
            ("reclaim", self.mount.reclaim.name()),
            ("gc_journal", self.mount.gc_journal.name()),
            ("fsync_mode", self.mount.fsync_mode.name()),
            ("active_logs", logs_name(self.mount.active_logs)),
            ("data_order", order_name(self.mount.ordered_data)),
            ("victim", self.mount.victim.name()),
        ]
    }

    /// Keys that [`Config::choose`] takes beside those of [`Config::choices`].
    pub(crate) const UNNAMED_CHOICES: [&'static str; 1] = ["cpu"];

    pub(crate) fn choose(&mut self, key: &'static str, value: &str) -> Result<(), ConfigError> {
        let unknown = || ConfigError { key, why: format!("F2FS has no {key} called {value:?}") };
        let mount = &mut self.mount;
        match key {
            "allocation" => {
                mount.allocation =
                    named(Allocation::ALL, Allocation::name, value).ok_or_else(unknown)?
            }
            "small_volume" => {
                mount.small_volume =
                    named(SmallVolume::ALL, SmallVolume::name, value).ok_or_else(unknown)?
            }
            "alloc_mode" => {
                mount.alloc_mode =
                    named(AllocMode::ALL, AllocMode::name, value).ok_or_else(unknown)?
            }
            "reclaim" => {
                mount.reclaim = named(Reclaim::ALL, Reclaim::name, value).ok_or_else(unknown)?
            }
            "gc_journal" => {
                mount.gc_journal =
                    named(GcJournalFormat::ALL, GcJournalFormat::name, value).ok_or_else(unknown)?
            }
            "fsync_mode" => {
                mount.fsync_mode =
                    named(FsyncMode::ALL, FsyncMode::name, value).ok_or_else(unknown)?
            }
            "active_logs" => {
                mount.active_logs = named([2, 4, 6], logs_name, value).ok_or_else(unknown)?
            }
            "data_order" => {
                mount.ordered_data = named([false, true], order_name, value).ok_or_else(unknown)?
            }
            "victim" => {
                mount.victim =
                    named(VictimPolicy::ALL, VictimPolicy::name, value).ok_or_else(unknown)?
            }
            "cpu" => mount.cpu = CpuCosts::preset(value).ok_or_else(unknown)?,
            _ => return Err(unknown()),
        }
        Ok(())
    }

    pub(crate) fn omit(&mut self, rule: &str) -> Result<(), ConfigError> {
        let unknown = || format!("F2FS has no rule called {rule:?}");
        let rule = OmittedRule::named(rule);
        self.mount.omit = Some(rule.ok_or_else(|| ConfigError { key: "omit", why: unknown() })?);
        Ok(())
    }

    /// Makes the volume.
    pub(crate) async fn format(&self, device: &AsyncDevice) -> Result<Formatted, FormatError> {
        let Some(format) = &self.format_on(device.caps())? else {
            let why = "the device is to hold a file system already".to_owned();
            return Err(ConfigError { key: "format", why }.into());
        };
        let sectors = device.caps().sectors;
        let refused = |error: &MkfsError| FormatError::from(config_error(format, sectors, error));
        let plan = mkfs::plan(format, sectors).map_err(|error| refused(&error))?;
        match mkfs(device, format).await {
            Ok(_) => Ok(formatted(&plan)),
            Err(MkfsError::Device(error)) => Err(FormatError::Device(error)),
            Err(error) => Err(refused(&error)),
        }
    }

    /// Mounts the volume.
    pub(crate) async fn mount(&self, env: MountEnv) -> Result<(F2fs, MountReport), FsError> {
        let (fs, report) = F2fs::mount(&env.rt, env.device, self.mount.clone()).await?;
        let step = |name, count| RecoveryStep { name, count };
        let steps = vec![
            step("moves replayed", report.moves),
            step("files rolled forward", report.files),
            step("node blocks", report.nodes),
            step("data blocks", report.blocks),
            step("orphans finished", report.orphans),
        ];
        Ok((fs, MountReport { steps }))
    }
}

fn formatted(plan: &Plan) -> Formatted {
    Formatted {
        sectors: plan.superblock.block_count,
        inodes: plan.layout.nids().into(),
        units: (plan.superblock.section_count.into(), ["section", "sections"]),
        journal_sectors: 0,
        features: Features(plan.superblock.feature).names(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every choice that reports name can be made by its names, and no other can.
    #[test]
    fn choices_are_made_by_name() {
        let values = [
            ("allocation", &["adaptive", "lfs"][..]),
            ("small_volume", &["off", "kernel"]),
            ("alloc_mode", &["reuse", "default"]),
            ("reclaim", &["gc-journal", "checkpoint"]),
            ("gc_journal", &["paper", "safe"]),
            ("fsync_mode", &["strict", "posix"]),
            ("active_logs", &["2", "4", "6"]),
            ("data_order", &["ordered", "kernel"]),
            ("victim", &["age-threshold", "cost-benefit"]),
        ];
        let mut config = Config::default();
        assert_eq!(config.choices().map(|(key, _)| key), values.map(|(key, _)| key));
        for (place, (key, values)) in values.into_iter().enumerate() {
            for value in values {
                config.choose(key, value).expect(value);
                assert_eq!(config.choices()[place], (key, *value));
            }
            assert_eq!(config.choose(key, "3").expect_err("no such value").key, key);
        }
        assert_eq!(config, Config::default());
        assert!(config.choose("commit", "jbd2").is_err());
        config.choose("cpu", "estimate").expect("a preset");
        assert!(!config.mount.cpu.is_free());
        assert_eq!(config.choose("cpu", "3").expect_err("no such preset").key, "cpu");
    }

    /// What a volume cannot be made by is refused under its key, what F2FS does not have under its own.
    #[test]
    fn errors_name_the_choice() {
        let key_at = |request: &FormatRequest<'_>, sectors: u64| {
            let config = Config::to_format(request);
            let caps = DeviceCaps::conventional(sectors);
            config.and_then(|config| config.check(&caps)).map_err(|error| error.key)
        };
        let key = |request: &FormatRequest<'_>| key_at(request, 16_384);
        let base = FormatRequest::default();
        assert_eq!(key(&base), Ok(()));
        let features = ["quota".to_owned()];
        let hanging = ["inode_checksum".to_owned()];
        let long = "x".repeat(513);
        for (expected, request) in [
            ("journal", FormatRequest { journal_sectors: Some(1), ..base }),
            ("inode_ratio", FormatRequest { inode_ratio: Some(1), ..base }),
            ("inode_bytes", FormatRequest { inode_bytes: Some(256), ..base }),
            ("reserved_percent", FormatRequest { reserved_percent: Some(5), ..base }),
            ("features", FormatRequest { features: &features, ..base }),
            ("features", FormatRequest { features: &hanging, ..base }),
            ("label", FormatRequest { label: &long, ..base }),
            ("overprovision", FormatRequest { overprovision: Some(100.0), ..base }),
            ("segments_per_section", FormatRequest { segments_per_section: Some(16), ..base }),
            ("sections_per_zone", FormatRequest { sections_per_zone: Some(16), ..base }),
            ("time", FormatRequest { now_s: 1 << 32, ..base }),
        ] {
            assert_eq!(key(&request), Err(expected), "{request:?}");
        }
        // The least volume has no segment to spare.
        let area = FormatRequest { gc_journal_area: true, ..base };
        assert_eq!(key_at(&base, 26 * 512), Ok(()));
        assert_eq!(key_at(&area, 26 * 512), Err("gc_journal_area"));
        assert_eq!(key_at(&area, 27 * 512), Ok(()));
    }
}
