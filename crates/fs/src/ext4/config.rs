//! What can be chosen about an ext4, as a whole: how it is made and how it is mounted. Choices that
//! campaigns, reports and messages name have names here.

use super::Ext4;
use super::format::Superblock;
use super::mkfs::{self, Choice, MkfsError, MkfsOptions, mkfs};
use super::options::{Commit, DataMode, MountOptions};
use super::rules::OmittedRule;
use crate::config::{
    ConfigError, FormatError, FormatRequest, Formatted, MountEnv, MountReport, Promises,
    RecoveryStep,
};
use crate::contract::FsError;
use nandscape_block::{AsyncDevice, DeviceCaps, SECTOR_BYTES};

/// Share of the log that all file-level records may have.
const RECORDS_DIVISOR_MIN: u32 = 2;

/// How an ext4 is made and mounted.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Config {
    /// How it is made; `None`: the device already holds it.
    pub format: Option<MkfsOptions>,
    /// How it is mounted.
    pub mount: MountOptions,
}

impl DataMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ordered, Self::Journal, Self::Writeback];

    /// Its name, as in ext4's `data=`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Journal => "journal",
            Self::Ordered => "ordered",
            Self::Writeback => "writeback",
        }
    }
}

impl Commit {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jbd2 => "jbd2",
            Self::Ijournal { .. } => "ijournal",
        }
    }

    /// One ring of records of the default size, or none.
    fn named(name: &str) -> Option<Self> {
        match name {
            "jbd2" => Some(Self::Jbd2),
            "ijournal" => Some(Self::Ijournal { slots: 1, slot_blocks: 0 }),
            _ => None,
        }
    }
}

/// The name of a choice in a [`ConfigError`].
const fn choice_name(choice: Choice) -> &'static str {
    match choice {
        Choice::Features => "features",
        Choice::Label => "label",
        Choice::InodeBytes => "inode_bytes",
        Choice::InodeRatio => "inode_ratio",
        Choice::ReservedPercent => "reserved_percent",
        Choice::Journal => "journal",
    }
}

impl Config {
    /// A volume that is to be made as `request` says.
    ///
    /// # Errors
    /// The choice that ext4 does not have.
    pub(crate) fn to_format(request: &FormatRequest<'_>) -> Result<Self, ConfigError> {
        let not_here = [
            ("segments_per_section", request.segments_per_section.is_some()),
            ("gc_journal_area", request.gc_journal_area),
            ("sections_per_zone", request.sections_per_zone.is_some()),
            ("overprovision", request.overprovision.is_some()),
        ];
        if let Some((key, _)) = not_here.into_iter().find(|(_, is_asked)| *is_asked) {
            return Err(ConfigError { key, why: "ext4 has no such choice".to_owned() });
        }
        let defaults = MkfsOptions::new(request.seed);
        let mut features = defaults.features;
        for name in request.features {
            let (feature, on) =
                mkfs::feature_change(name).map_err(|why| ConfigError { key: "features", why })?;
            features.set(feature, on);
        }
        let too_large =
            |_| ConfigError { key: "journal", why: "beyond what a journal can have".to_owned() };
        let journal_blocks = request.journal_sectors.map(u32::try_from).transpose();
        let format = MkfsOptions {
            features,
            label: request.label.to_owned(),
            journal_blocks: journal_blocks.map_err(too_large)?,
            inode_ratio: request.inode_ratio,
            inode_bytes: request.inode_bytes.unwrap_or(defaults.inode_bytes),
            reserved_percent: request.reserved_percent.unwrap_or(defaults.reserved_percent),
            now: super::format::Timestamp { seconds: request.now_s, nanos: 0 },
            fresh: request.fresh,
            ..defaults
        };
        Ok(Self { format: Some(format), mount: MountOptions::default() })
    }

    /// The same for a run: identity and seeds are drawn from the run's seed.
    pub(crate) fn for_run(&self, seed: u64, fresh: bool) -> Self {
        let MkfsOptions { uuid, hash_seed, .. } = MkfsOptions::new(seed);
        let mut run = self.clone();
        run.format = run.format.map(|format| MkfsOptions { uuid, hash_seed, fresh, ..format });
        run.mount.seed = seed;
        run
    }

    /// Whether a device has room for what is to be made on it.
    pub(crate) fn check(&self, caps: &DeviceCaps) -> Result<(), ConfigError> {
        let Some(format) = &self.format else { return Ok(()) };
        mkfs::plan(format, caps.sectors)
            .map_err(|error| config_error(format, caps.sectors, &error))?;
        let log = format.journal_blocks;
        let log = log.unwrap_or_else(|| mkfs::journal_blocks_by_default(caps.sectors));
        if self.has_room_for_records(log) {
            return Ok(());
        }
        let why = "the records of all cores may have half of the journal".to_owned();
        Err(ConfigError { key: "ijournal_area", why })
    }

    /// Whether records leave JBD2 enough of a log of so many blocks.
    fn has_room_for_records(&self, log_blocks: u32) -> bool {
        let Commit::Ijournal { slots, slot_blocks } = self.mount.commit else { return true };
        let wanted = u64::from(slots) * u64::from(slot_blocks);
        wanted <= u64::from(log_blocks / RECORDS_DIVISOR_MIN)
    }

    pub(crate) const fn promises(&self) -> Promises {
        Promises {
            syncs_single_files: !matches!(self.mount.commit, Commit::Jbd2),
            may_show_stale_blocks: matches!(self.mount.data, DataMode::Writeback),
            overwrites_in_place: true,
        }
    }

    pub(crate) const fn choices(&self) -> [(&'static str, &'static str); 2] {
        [("data", self.mount.data.name()), ("commit", self.mount.commit.name())]
    }

    pub(crate) fn choose(&mut self, key: &'static str, value: &str) -> Result<(), ConfigError> {
        let unknown = || ConfigError { key, why: format!("ext4 has no {key} called {value:?}") };
        match key {
            "data" => {
                let mode = DataMode::ALL.into_iter().find(|mode| mode.name() == value);
                self.mount.data = mode.ok_or_else(unknown)?;
            }
            "commit" => self.mount.commit = Commit::named(value).ok_or_else(unknown)?,
            _ => return Err(unknown()),
        }
        Ok(())
    }

    pub(crate) fn omit(&mut self, rule: &str) -> Result<(), ConfigError> {
        let unknown = || format!("ext4 has no rule called {rule:?}");
        let rule = OmittedRule::named(rule);
        self.mount.omit = Some(rule.ok_or_else(|| ConfigError { key: "omit", why: unknown() })?);
        Ok(())
    }

    /// Makes the volume.
    pub(crate) async fn format(&self, device: &AsyncDevice) -> Result<Formatted, FormatError> {
        let Some(format) = &self.format else {
            let why = "the device is to hold a file system already".to_owned();
            return Err(ConfigError { key: "format", why }.into());
        };
        let random = device.caps().random_range().end;
        if format.blocks.unwrap_or(device.caps().sectors) > random {
            let why = format!(
                "ext4 writes in place, and of this device {} MiB are writable at random",
                random >> 8
            );
            return Err(ConfigError { key: "kind", why }.into());
        }
        match mkfs(device, format).await {
            Ok(sb) => Ok(formatted(&sb)),
            Err(MkfsError::Device(error)) => Err(FormatError::Device(error)),
            Err(error) => Err(config_error(format, device.caps().sectors, &error).into()),
        }
    }

    /// Mounts the volume.
    pub(crate) async fn mount(&self, env: MountEnv) -> Result<(Ext4, MountReport), FsError> {
        let (fs, report) = Ext4::mount(&env.rt, env.device, self.mount.clone()).await?;
        let step = |name, count| RecoveryStep { name, count };
        let steps = vec![
            step("transactions replayed", report.recovered.transactions.into()),
            step("log blocks written home", report.recovered.blocks),
            step("orphans finished", report.orphans.into()),
            step("file records applied", report.files.into()),
        ];
        Ok((fs, MountReport { steps }))
    }
}

/// The choice that kept a volume from being made.
fn config_error(format: &MkfsOptions, sectors: u64, error: &MkfsError) -> ConfigError {
    let choice = mkfs::at_fault(format, sectors, error);
    ConfigError { key: choice.map_or("", choice_name), why: error.to_string() }
}

fn formatted(sb: &Superblock) -> Formatted {
    let journal_bytes = u64::from(sb.jnl_blocks[15]) << 32 | u64::from(sb.jnl_blocks[16]);
    Formatted {
        sectors: sb.blocks_count,
        inodes: sb.inodes_count.into(),
        units: (sb.groups().into(), ["group", "groups"]),
        journal_sectors: journal_bytes / SECTOR_BYTES,
        features: sb.features().names(),
    }
}
