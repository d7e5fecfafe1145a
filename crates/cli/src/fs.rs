//! `nandscape mkfs`, `fsck` and `dump`: file systems on image files.

use crate::args::{DumpArgs, DumpWhat, FsckArgs, MkfsArgs, OutputFormat};
use crate::image::open;
use crate::output::{Failure, pretty, print};
use crate::replace::{replace, with_path};
use crate::summary::bytes;
use crate::writable::expect_writable;
use anyhow::{Context, anyhow};
use nandscape_block::{AsyncDevice, DeviceCaps, ImageDevice, SECTOR_BYTES};
use nandscape_fs::{
    CheckReport, ConfigError, FormatRequest, Formatted, FsConfig, FsKind, ImageError,
};
use nandscape_lab::stack::Size;
use nandscape_rt::Executor;
use nandscape_rt::words::{counted, grouped};
use std::fmt::Write;
use std::fs::File;
use std::future::Future;
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Sectors at the beginning of an image that are zeroes if it is empty.
const HEAD_SECTORS: u64 = 2;

/// Makes a file system.
pub(crate) fn make(args: &MkfsArgs) -> Result<(), Failure> {
    let config = config(args)?;
    let sectors = sectors(args)?;
    expect_writable([Some(args.image.as_path())], [])?;
    // A dry run on nothing finds what cannot be made.
    let caps = DeviceCaps::conventional(sectors);
    config.check(&caps).map_err(|ConfigError { key, why }| {
        Failure::input(anyhow!("{}: {}: {why}", args.image.display(), option(key)))
    })?;
    let formatted = replace(&args.image, |out| {
        let file = out.get_ref();
        with_path(&args.image, file.set_len(sectors * SECTOR_BYTES))?;
        let file = with_path(&args.image, file.try_clone())?;
        let make = async move |device: AsyncDevice<_>| config.format(&device.erased()).await;
        with_path(&args.image, on_image(file, sectors, make)?)
    })?;
    print(&summary(args, &formatted))
}

/// The option that makes a choice.
fn option(key: &str) -> &'static str {
    match key {
        "features" => "--features",
        "label" => "--label",
        "inode_bytes" => "--inode-size",
        "inode_ratio" => "--inode-ratio",
        "reserved_percent" => "--reserved-percent",
        "journal" => "--journal-size",
        "segments_per_section" => "--segments-per-section",
        "sections_per_zone" => "--sections-per-zone",
        "overprovision" => "--overprovision",
        "gc_journal_area" => "--gc-journal-area",
        "time" => "--time",
        _ => "--size",
    }
}

/// How many sectors the image is to have, in place of which nothing may be lost.
fn sectors(args: &MkfsArgs) -> Result<u64, Failure> {
    let wrong = |what: &str| Err(Failure::input(anyhow!("{}: {what}", args.image.display())));
    let old = match std::fs::metadata(&args.image) {
        Ok(old) if !old.is_file() => return wrong("not a regular file"),
        Ok(_) if !args.force && holds_something(&args.image)? => {
            return wrong("not empty; use --force to overwrite");
        }
        Ok(old) => Some(old.len()),
        Err(_) => None,
    };
    match args.size.map(|Size(size)| size).or(old) {
        Some(size) => Ok(size / SECTOR_BYTES),
        None => wrong("does not exist; use --size to create it"),
    }
}

/// Whether the head of an image is not all zeroes.
fn holds_something(image: &Path) -> Result<bool, Failure> {
    let mut head = Vec::new();
    let read = open(image)?.take(HEAD_SECTORS * SECTOR_BYTES).read_to_end(&mut head);
    read.with_context(|| format!("cannot read {}", image.display())).map_err(Failure::Input)?;
    Ok(head.iter().any(|&byte| byte != 0))
}

fn config(args: &MkfsArgs) -> Result<FsConfig, Failure> {
    let request = FormatRequest {
        label: &args.label,
        features: &args.features,
        journal_sectors: args.journal_size.map(|Size(size)| size / SECTOR_BYTES),
        inode_ratio: args.inode_ratio,
        inode_bytes: args.inode_size,
        reserved_percent: args.reserved_percent,
        segments_per_section: args.segments_per_section,
        sections_per_zone: args.sections_per_zone,
        overprovision: args.overprovision,
        gc_journal_area: args.gc_journal_area,
        seed: args.seed,
        now_s: args.time.unwrap_or_else(now),
        fresh: true,
    };
    let wrong = |ConfigError { key, why }| Failure::input(anyhow!("{}: {why}", option(key)));
    args.fs.0.config_to_format(&request).map_err(wrong)
}

#[expect(clippy::disallowed_methods, reason = "an image is made when the user makes it")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

fn summary(args: &MkfsArgs, made: &Formatted) -> String {
    let (units, names) = made.units;
    let mut text = format!(
        "{}: {} of {}, {} inodes, {}",
        args.image.display(),
        args.fs.0.name(),
        bytes((made.sectors * SECTOR_BYTES) as f64),
        grouped(made.inodes),
        counted(units, names),
    );
    if made.journal_sectors > 0 {
        let journal = bytes((made.journal_sectors * SECTOR_BYTES) as f64);
        text += &format!(", journal of {journal}");
    }
    text + "\n  " + &made.features.join(" ") + "\n"
}

/// Checks a file system.
pub(crate) fn fsck(args: &FsckArgs) -> Result<(), Failure> {
    let report = examine(&args.image, async |kind, device| kind.check(&device).await)?;
    print(&listed(&args.image, &report))?;
    if report.is_clean() {
        return Ok(());
    }
    let count = report.findings.len() as u64 + report.findings_left_out;
    let count = counted(count, ["error found", "errors found"]);
    Err(Failure::Run(anyhow!("{}: {count}", args.image.display())))
}

fn listed(image: &Path, report: &CheckReport) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {finding}", image.display());
    }
    if report.findings_left_out > 0 {
        let _ = writeln!(text, "and {} more", grouped(report.findings_left_out));
    }
    let counts = [
        counted(report.inodes, ["inode", "inodes"]),
        counted(report.directories, ["directory", "directories"]),
        counted(report.orphans, ["orphan", "orphans"]),
        counted(report.blocks, ["block in use", "blocks in use"]),
    ];
    let _ = writeln!(text, "{}: {}", image.display(), counts.join(", "));
    text
}

/// Shows structures.
pub(crate) fn show(args: &DumpArgs) -> Result<(), Failure> {
    let what = what(&args.what);
    let dump = examine(&args.image, async move |kind, device| kind.dump(&device, &what).await)?;
    match args.output_format {
        OutputFormat::Normal => print(&dump.text),
        OutputFormat::Json => print(&pretty(&dump.json.into())?),
    }
}

/// The structure, as kinds read it ([`FsKind::dump`]).
fn what(args: &DumpWhat) -> String {
    let numbered = [
        args.inode.map(|number| format!("inode {number}")),
        args.directory.map(|number| format!("directory {number}")),
        args.extents.map(|number| format!("extents {number}")),
        args.nat.map(|number| format!("nat {number}")),
        args.sit.map(|number| format!("sit {number}")),
        args.ssa.map(|number| format!("ssa {number}")),
        args.node.map(|number| format!("node {number}")),
    ];
    let others = [
        (args.groups, "groups"),
        (args.journal, "journal"),
        (args.checkpoint, "checkpoint"),
        (args.gc_journal, "gc-journal"),
        (args.tree, "tree"),
    ];
    let others = others.into_iter().filter(|(is_asked, _)| *is_asked);
    let mut all = numbered.into_iter().flatten().chain(others.map(|(_, name)| name.to_owned()));
    all.next().unwrap_or_else(|| "super".to_owned())
}

/// Reads the file system that an image holds; what is wrong with it is bad input.
fn examine<T: 'static, F: Future<Output = Result<T, ImageError>> + 'static>(
    image: &Path,
    look: impl FnOnce(FsKind, AsyncDevice) -> F + 'static,
) -> Result<T, Failure> {
    let name = image.display();
    let file = open(image)?;
    let sectors = file.metadata().map_err(Failure::run)?.len() / SECTOR_BYTES;
    let work = async move |device: AsyncDevice<ImageDevice<File>>| {
        let device = device.erased();
        let Some(kind) = FsKind::recognise(&device).await? else {
            let names = FsKind::ALL.map(FsKind::name).join(" or ");
            return Err(ImageError::Format(format!("no {names} file system found")));
        };
        look(kind, device).await
    };
    on_image(file, sectors, work)?.map_err(|error| match error {
        ImageError::Device(error) => Failure::run(anyhow!("{name}: {error}")),
        error => Failure::input(anyhow!("{name}: {error}")),
    })
}

/// Runs something on the device of an image file.
fn on_image<T: 'static, F: Future<Output = T> + 'static>(
    file: File,
    sectors: u64,
    work: impl FnOnce(AsyncDevice<ImageDevice<File>>) -> F,
) -> Result<T, Failure> {
    let mut executor = Executor::on_virtual_clock();
    let device = AsyncDevice::new(&executor.handle(), ImageDevice::new(file, sectors));
    executor.block_on(work(device)).map_err(|deadlock| Failure::run(anyhow!("{deadlock}")))
}
