//! `nandscape mkfs`, `fsck` and `dump`: file systems on image files.

use crate::args::{DumpArgs, DumpWhat, FsckArgs, MkfsArgs};
use crate::image::open;
use crate::output::{Failure, print};
use crate::replace::{replace, told};
use crate::summary::bytes;
use crate::writable::expect_writable;
use anyhow::{Context, anyhow};
use nandscape_block::{AsyncDevice, ImageDevice, SECTOR_BYTES};
use nandscape_fs::ext4::check::{Report, check};
use nandscape_fs::ext4::dump::{What, dump};
use nandscape_fs::ext4::format::{Feature, Features, Superblock, Timestamp};
use nandscape_fs::ext4::mkfs::{Choice, MkfsOptions, at_fault, mkfs, plan};
use nandscape_fs::ext4::raw::RawError;
use nandscape_lab::stack::Size;
use nandscape_rt::Executor;
use nandscape_rt::words::{counted, grouped};
use std::fmt::Write;
use std::fs::File;
use std::future::Future;
use std::io::Read;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Sectors at the beginning of an image that tell whether it holds something.
const HEAD_SECTORS: u64 = 2;

/// Makes a file system.
pub(crate) fn make(args: &MkfsArgs) -> Result<(), Failure> {
    let options = options(args)?;
    let sectors = sectors(args)?;
    expect_writable([Some(args.image.as_path())], [])?;
    // A dry run on nothing finds what cannot be made.
    plan(&options, sectors).map_err(|error| {
        let option = at_fault(&options, sectors, &error).map_or("--size", option);
        Failure::input(anyhow!("{}: {option}: {error}", args.image.display()))
    })?;
    let sb = replace(&args.image, |out| {
        let file = out.get_ref();
        told(&args.image, file.set_len(sectors * SECTOR_BYTES))?;
        let file = told(&args.image, file.try_clone())?;
        let make = async move |device: AsyncDevice<_>| mkfs(&device.erased(), &options).await;
        told(&args.image, on_image(file, sectors, make)?)
    })?;
    print(&summary(args, &sb))
}

/// The option that makes a choice.
fn option(choice: Choice) -> &'static str {
    match choice {
        Choice::Features => "--features",
        Choice::Label => "--label",
        Choice::InodeBytes => "--inode-size",
        Choice::InodeRatio => "--inode-ratio",
        Choice::ReservedPercent => "--reserved-percent",
        Choice::Journal => "--journal-size",
    }
}

/// How many sectors the image is to have, in place of which nothing may be lost.
fn sectors(args: &MkfsArgs) -> Result<u64, Failure> {
    let wrong = |what: &str| Err(Failure::input(anyhow!("{}: {what}", args.image.display())));
    let old = match std::fs::metadata(&args.image) {
        Ok(old) if !old.is_file() => return wrong("is no file"),
        Ok(_) if !args.force && holds_something(&args.image)? => {
            return wrong("already holds something: --force replaces it");
        }
        Ok(old) => Some(old.len()),
        Err(_) => None,
    };
    match args.size.map(|Size(size)| size).or(old) {
        Some(size) => Ok(size / SECTOR_BYTES),
        None => wrong("does not exist: give it a --size to make it"),
    }
}

/// Whether the head of an image is not all zeroes.
fn holds_something(image: &Path) -> Result<bool, Failure> {
    let mut head = Vec::new();
    let read = open(image)?.take(HEAD_SECTORS * SECTOR_BYTES).read_to_end(&mut head);
    read.with_context(|| format!("cannot read {}", image.display())).map_err(Failure::Input)?;
    Ok(head.iter().any(|&byte| byte != 0))
}

fn options(args: &MkfsArgs) -> Result<MkfsOptions, Failure> {
    let defaults = MkfsOptions::new(args.seed);
    let mut features = defaults.features;
    for name in &args.features {
        let (feature, on) = feature(name)?;
        features.set(feature, on);
    }
    let journal_blocks = args.journal_size.map(|Size(size)| size / SECTOR_BYTES);
    let too_large = |_| Failure::input(anyhow!("--journal-size: beyond what a journal can have"));
    Ok(MkfsOptions {
        features,
        label: args.label.clone(),
        journal_blocks: journal_blocks.map(u32::try_from).transpose().map_err(too_large)?,
        inode_ratio: args.inode_ratio,
        inode_bytes: args.inode_size,
        reserved_percent: args.reserved_percent,
        now: Timestamp { seconds: args.time.unwrap_or_else(now), nanos: 0 },
        fresh: true,
        ..defaults
    })
}

/// A feature by its name, and whether it is to be on.
fn feature(name: &str) -> Result<(Feature, bool), Failure> {
    let bare = name.trim_start_matches('^');
    let unknown = || Failure::input(anyhow!("--features: no feature of ext4 is called {bare:?}"));
    Ok((Features::named(bare).ok_or_else(unknown)?, !name.starts_with('^')))
}

#[expect(clippy::disallowed_methods, reason = "an image is made when the user makes it")]
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

fn summary(args: &MkfsArgs, sb: &Superblock) -> String {
    let size = sb.blocks_count * SECTOR_BYTES;
    let journal = u64::from(sb.jnl_blocks[15]) << 32 | u64::from(sb.jnl_blocks[16]);
    format!(
        "{}: ext4 of {}, {} inodes, {}, journal of {}\n  {}\n",
        args.image.display(),
        bytes(size as f64),
        grouped(sb.inodes_count.into()),
        counted(sb.groups().into(), ["group", "groups"]),
        bytes(journal as f64),
        sb.features().names().join(" ")
    )
}

/// Checks a file system.
pub(crate) fn fsck(args: &FsckArgs) -> Result<(), Failure> {
    let report = examine(&args.image, async |device| check(&device.erased()).await)?;
    print(&listed(&args.image, &report))?;
    if report.is_clean() {
        return Ok(());
    }
    let count = report.findings.len() as u64 + report.findings_left_out;
    let count = counted(count, ["finding", "findings"]);
    Err(Failure::Run(anyhow!("{}: {count}", args.image.display())))
}

fn listed(image: &Path, report: &Report) -> String {
    let mut text = String::new();
    for finding in &report.findings {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {finding}", image.display());
    }
    if report.findings_left_out > 0 {
        let _ = writeln!(text, "and {} more", grouped(report.findings_left_out));
    }
    let counts = [
        counted(report.inodes.into(), ["inode", "inodes"]),
        format!("{} of them directories", grouped(report.directories.into())),
        counted(report.orphans.into(), ["orphan", "orphans"]),
        counted(report.blocks, ["block in use", "blocks in use"]),
    ];
    let _ = writeln!(text, "{}: {}", image.display(), counts.join(", "));
    text
}

/// Shows structures.
pub(crate) fn show(args: &DumpArgs) -> Result<(), Failure> {
    let what = what(&args.what);
    print(&examine(&args.image, async move |device| dump(&device.erased(), what).await)?)
}

fn what(args: &DumpWhat) -> What {
    let numbered = [
        args.inode.map(What::Inode),
        args.directory.map(What::Directory),
        args.extents.map(What::Extents),
        args.groups.then_some(What::Groups),
        args.journal.then_some(What::Journal),
    ];
    numbered.into_iter().flatten().next().unwrap_or(What::Superblock)
}

/// Reads a file system; what is wrong with it is bad input.
fn examine<T: 'static, F: Future<Output = Result<T, RawError>> + 'static>(
    image: &Path,
    look: impl FnOnce(AsyncDevice<ImageDevice<File>>) -> F,
) -> Result<T, Failure> {
    let name = image.display();
    let file = open(image)?;
    let sectors = file.metadata().map_err(Failure::run)?.len() / SECTOR_BYTES;
    on_image(file, sectors, look)?.map_err(|error| match error {
        RawError::Device(error) => Failure::run(anyhow!("{name}: {error}")),
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
