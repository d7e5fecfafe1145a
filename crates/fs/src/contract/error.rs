//! What an operation can end with instead of success: POSIX's reasons, and the three classes of
//! everything else — I/O, incompatible, corrupt — each with its place.

use nandscape_block::BlockError;
use nandscape_rt::invariant::Defect;
use thiserror::Error;

/// The result of an operation.
pub type Result<T, E = FsError> = std::result::Result<T, E>;

/// Why an operation failed.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum FsError {
    /// No file of that name, or the file that the number meant is gone (`ENOENT`).
    #[error("no such file or directory")]
    NoEntry,
    /// The name is taken (`EEXIST`).
    #[error("the file exists")]
    Exists,
    /// A directory was needed (`ENOTDIR`).
    #[error("not a directory")]
    NotDirectory,
    /// Anything but a directory was needed (`EISDIR`).
    #[error("is a directory")]
    IsDirectory,
    /// The directory still holds names (`ENOTEMPTY`).
    #[error("the directory is not empty")]
    NotEmpty,
    /// No block or inode is left (`ENOSPC`).
    #[error("no space left")]
    NoSpace,
    /// The arguments contradict each other or the kind of file (`EINVAL`).
    #[error("invalid argument: {0}")]
    Invalid(&'static str),
    /// A name of more than 255 bytes, or a symlink's target longer than a block (`ENAMETOOLONG`).
    #[error("the name is too long")]
    NameTooLong,
    /// A length that no such thing has (`ERANGE`).
    #[error("out of range: {0}")]
    OutOfRange(&'static str),
    /// The file has as many links as the format counts (`EMLINK`).
    #[error("too many links")]
    TooManyLinks,
    /// The offset is beyond what the format can address (`EFBIG`).
    #[error("the file is too large")]
    FileTooBig,
    /// Nothing of what was looked for follows the offset (`ENXIO`).
    #[error("no such offset")]
    BeyondEnd,
    /// Not for this kind of file, for any caller (`EPERM`).
    #[error("operation not permitted")]
    NotPermitted,
    /// The file system is read-only, since mount or since an error (`EROFS`).
    #[error("the file system is read-only")]
    ReadOnly,
    /// No such extended attribute (`ENODATA`).
    #[error("no such attribute")]
    NoData,
    /// Not offered by this file system (`EOPNOTSUPP`).
    #[error("{0} is not supported")]
    Unsupported(&'static str),
    /// The device failed (`EIO`).
    #[error(transparent)]
    Io(#[from] BlockError),
    /// A feature that we do not know, by name (refused at mount).
    #[error("incompatible: {0}")]
    Incompatible(String),
    /// Stored structures contradict themselves (`EUCLEAN`).
    #[error("corrupt {what} at {place}")]
    Corrupt {
        /// Which structure.
        what: &'static str,
        /// Where: block, inode, group.
        place: String,
    },
}

impl From<Defect> for FsError {
    fn from(defect: Defect) -> Self {
        Self::Io(defect.into())
    }
}

impl FsError {
    /// A corrupt structure, with its place.
    pub fn corrupt(what: &'static str, place: impl Into<String>) -> Self {
        Self::Corrupt { what, place: place.into() }
    }

    /// Linux's number for it.
    #[must_use]
    pub const fn errno(&self) -> i32 {
        match self {
            Self::NotPermitted => 1,
            Self::NoEntry => 2,
            Self::Io(_) => 5,
            Self::BeyondEnd => 6,
            Self::Exists => 17,
            Self::NotDirectory => 20,
            Self::IsDirectory => 21,
            Self::Invalid(_) | Self::Incompatible(_) => 22,
            Self::FileTooBig => 27,
            Self::NoSpace => 28,
            Self::ReadOnly => 30,
            Self::TooManyLinks => 31,
            Self::OutOfRange(_) => 34,
            Self::NameTooLong => 36,
            Self::NotEmpty => 39,
            Self::NoData => 61,
            Self::Unsupported(_) => 95,
            Self::Corrupt { .. } => 117,
        }
    }
}
