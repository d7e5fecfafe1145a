//! Arguments about file systems on image files: `nandscape mkfs`, `fsck`, `dump`, `image`.

use super::{OutputFormat, StackArgs, seed, whole};
use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use nandscape_fs::FsKind;
use nandscape_lab::stack::Size;
use std::path::PathBuf;

/// The last second that an inode of ext4 can tell, in the year 2446.
const TIME_MAX: i64 = (1 << 34) - (1 << 31) - 1;

/// A kind of file system, by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KindChoice(pub(crate) FsKind);

impl ValueEnum for KindChoice {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [KindChoice; FsKind::ALL.len()] = {
            let mut all = [KindChoice(FsKind::ALL[0]); FsKind::ALL.len()];
            let mut at = 1;
            while at < all.len() {
                all[at] = KindChoice(FsKind::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}

/// `nandscape mkfs`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape mkfs --fs ext4 disk.img --size 1GiB
  nandscape mkfs --fs ext4 disk.img --size 64GiB --label data --journal-size 256MiB
  nandscape mkfs --fs ext4 disk.img --size 1GiB --features ^metadata_csum,^flex_bg
  nandscape mkfs --fs f2fs disk.img --size 16GiB -l data -s 16
  nandscape mkfs --fs f2fs disk.img --size 1GiB -O extra_attr,inode_checksum
  nandscape mkfs --fs ext4 disk.img --force         overwrite the image, keeping its size
  mount -o loop disk.img /mnt                       a kernel mounts it, too

Layout and defaults are mke2fs's and mkfs.f2fs's; the image is sparse. The same seed and time give the same image. An \
existing file is replaced when the new image is complete; if that fails, it is unchanged.")]
pub(crate) struct MkfsArgs {
    /// The file system
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) fs: KindChoice,
    /// The image file; made if it does not exist
    #[arg(value_name = "IMAGE")]
    pub(crate) image: PathBuf,
    /// Size of the image [default: that of the file]
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<Size>,
    /// Overwrite an existing image
    #[arg(long)]
    pub(crate) force: bool,
    /// Label: of ext4 up to 16 bytes, of F2FS up to 512 characters
    #[arg(long, short, value_name = "TEXT", default_value = "")]
    pub(crate) label: String,
    /// Features to turn on, or off with ^ before the name, as in mke2fs -O and mkfs.f2fs -O
    #[arg(long, short = 'O', value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) features: Vec<String>,
    /// ext4: size of the journal [default: by the size of the image]
    #[arg(long, value_name = "SIZE")]
    pub(crate) journal_size: Option<Size>,
    /// ext4: bytes of image for each inode [default: by the size of the image]
    #[arg(long, value_name = "BYTES", value_parser = whole::<0, { u64::MAX }>)]
    pub(crate) inode_ratio: Option<u64>,
    /// ext4: bytes of an inode: 128, 256, 512, 1024 [default: 256]
    #[arg(long, value_name = "BYTES")]
    pub(crate) inode_size: Option<u16>,
    /// ext4: percentage of reserved blocks [default: 5]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) reserved_percent: Option<u8>,
    /// F2FS: segments of 2 MiB in a section, the unit of cleaning [default: 1]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) segments_per_section: Option<u32>,
    /// F2FS: sections of a zone [default: 1]
    #[arg(long, short = 'z', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sections_per_zone: Option<u32>,
    /// F2FS: overprovisioning, in percent of the main area [default: by the size of the image]
    #[arg(long, short, value_name = "PERCENT")]
    pub(crate) overprovision: Option<f64>,
    /// F2FS: reserve the segment after the main area for a GC journal; kernels and f2fs-tools ignore it
    #[arg(long)]
    pub(crate) gc_journal_area: bool,
    /// Seed of UUID, directory hashes and first checkpoint version
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// Creation time, in seconds since 1970 [default: now]
    #[arg(long, value_name = "SECONDS",
        value_parser = clap::value_parser!(i64).range(0..=TIME_MAX))]
    pub(crate) time: Option<i64>,
}

/// `nandscape fsck`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape fsck disk.img
  nandscape fsck disk.img && echo clean

The image is not changed. Exit codes: 0 no errors; 1 errors, listed with their places; 2 the \
image has no file system, or one that is not supported.")]
pub(crate) struct FsckArgs {
    /// The image file
    #[arg(value_name = "IMAGE")]
    pub(crate) image: PathBuf,
}

/// `nandscape dump`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape dump disk.img                           the superblock
  nandscape dump disk.img --groups
  nandscape dump disk.img --inode 2                 the root directory's inode
  nandscape dump disk.img --directory 2             and the names in it
  nandscape dump disk.img --extents 8               blocks of the journal
  nandscape dump disk.img --journal                 and its log
  nandscape dump f2fs.img --checkpoint              of F2FS: the checkpoint that a mount takes
  nandscape dump f2fs.img --nat 3                   where the root's inode lies
  nandscape dump f2fs.img --tree                    every path, with what it leads to

  nandscape dump disk.img --extents 8 --output-format json

Fields have their names of docs/formats/ext4.md and docs/formats/f2fs.md, which describe the JSON, too. Ranges are \
inclusive, as in debugfs: (0-9):15-24 is blocks 0 to 9 of the file, at 15 to 24 of the volume. Times are in UTC.")]
pub(crate) struct DumpArgs {
    /// The image file
    #[arg(value_name = "IMAGE")]
    pub(crate) image: PathBuf,
    #[command(flatten)]
    pub(crate) what: DumpWhat,
    /// How to print it
    #[arg(long, value_enum, default_value_t = OutputFormat::Normal)]
    pub(crate) output_format: OutputFormat,
}

/// What to show [default: the superblock].
#[derive(Args, Clone, Debug)]
#[group(multiple = false)]
pub(crate) struct DumpWhat {
    /// An inode, with its attributes
    #[arg(long, value_name = "NUMBER")]
    pub(crate) inode: Option<u32>,
    /// ext4: every group
    #[arg(long)]
    pub(crate) groups: bool,
    /// ext4: the names of a directory, and its index
    #[arg(long, value_name = "INODE")]
    pub(crate) directory: Option<u32>,
    /// ext4: the extent tree of a file
    #[arg(long, value_name = "INODE")]
    pub(crate) extents: Option<u32>,
    /// ext4: the journal's log
    #[arg(long)]
    pub(crate) journal: bool,
    /// F2FS: the checkpoint
    #[arg(long)]
    pub(crate) checkpoint: bool,
    /// F2FS: the blocks of the GC journal
    #[arg(long)]
    pub(crate) gc_journal: bool,
    /// F2FS: the NAT entry of a node
    #[arg(long, value_name = "NODE")]
    pub(crate) nat: Option<u32>,
    /// F2FS: the SIT entry of a segment
    #[arg(long, value_name = "SEGMENT")]
    pub(crate) sit: Option<u32>,
    /// F2FS: the summary of a segment
    #[arg(long, value_name = "SEGMENT")]
    pub(crate) ssa: Option<u32>,
    /// F2FS: a node
    #[arg(long, value_name = "NODE")]
    pub(crate) node: Option<u32>,
    /// F2FS: every path, with what it leads to
    #[arg(long)]
    pub(crate) tree: bool,
}

/// `nandscape image`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape mkfs --fs ext4 disk.img --size 2GiB
  nandscape image import disk.img --stack ext4-pblk --output disk.state
  nandscape run my.fio --stack ext4-pblk --set fs.format=false --state disk.state --save-state later.state
  nandscape image export later.state later.img --stack ext4-pblk

An image is the content of the block device, sector by sector, as any tool reads it. A state is the content of \
its media (docs/formats/state.md). A run on a state uses the files in it with fs.format = false, and with \
--save-state it leaves a state, whose image e2fsck or a kernel can look at.")]
pub(crate) struct ImagesArgs {
    #[command(subcommand)]
    pub(crate) command: ImageCommand,
}

/// What about them.
#[derive(Subcommand, Debug)]
pub(crate) enum ImageCommand {
    /// Export the device of a state to a sparse image
    Export(ImageExportArgs),
    /// Import an image into a fresh device, and save its state
    Import(ImageImportArgs),
}

/// `nandscape image export`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape image export disk.state disk.img --stack pblk --set media.payload=bytes

The image file is replaced when all is written; if that fails, it is unchanged.")]
pub(crate) struct ImageExportArgs {
    /// The state
    #[arg(value_name = "STATE")]
    pub(crate) state: PathBuf,
    /// The image file
    #[arg(value_name = "IMAGE")]
    pub(crate) image: PathBuf,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
}

/// `nandscape image import`.
#[derive(Args, Clone, Debug)]
#[command(after_long_help = "\
Examples:
  nandscape image import disk.img --stack pblk --set media.payload=bytes --output disk.state")]
pub(crate) struct ImageImportArgs {
    /// The image file
    #[arg(value_name = "IMAGE")]
    pub(crate) image: PathBuf,
    #[command(flatten)]
    pub(crate) stack: StackArgs,
    /// Random seed
    #[arg(long, default_value_t = 1, value_parser = seed)]
    pub(crate) seed: u64,
    /// The state
    #[arg(long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}
