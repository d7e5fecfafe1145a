//! What a load issues its I/O to. The engine of jobs and the replay of traces know no more of it than
//! [`IoTarget`].
//!
//! Every block device is a target, to which requests go as they are. [`FileTarget`] makes calls of each
//! request: of a file system whose files lie one behind the other in the address space of the target, or of the
//! page cache of a block device. The files, and the directories that they lie in, are found or made by name before a run.

mod bytes;
mod counts;
mod create;
mod files;
mod names;
mod page_cache;

pub use counts::FileCounts;
pub use create::create_files;
pub use files::FileTarget;
pub use names::{find_file, make_directory};

pub(crate) use names::{FILE_MODE, FOLDER_MODE, find};

use nandscape_block::{Bio, BlockDevice, Completion, Lba, Op, Owner, Submit, Token};
use nandscape_rt::Nanos;
use std::ops::Range;

/// Anything that serves the requests of a load. The rules are those of a [`BlockDevice`]: time never goes back,
/// and the caller acts at each [`IoTarget::next_event`].
pub trait IoTarget {
    /// Hands over a request at time `now`. Its owner names the job and the thread that issue it.
    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit;

    /// Whether requests of this owner may begin and end within a sector, by [`IoTarget::submit_bytes`].
    fn takes_bytes(&self, _owner: Owner) -> bool {
        false
    }

    /// Hands over a request for these bytes, which lie in the sectors of `bio`, from the first to the last.
    fn submit_bytes(&mut self, now: Nanos, bio: Bio, _bytes: Range<u64>, token: Token) -> Submit {
        self.submit(now, bio, token)
    }

    /// The next instant at which the target has something to do, if any.
    fn next_event(&self) -> Option<Nanos>;

    /// Lets the target act on everything due up to `now`; appends the completions that this brought.
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>);

    /// A hint that `lba` will be accessed some I/Os from now. Never changes any result.
    #[inline]
    fn prefetch_far(&self, _lba: Lba) {}

    /// A hint that `op` on `lba` comes a few I/Os from now, [`IoTarget::prefetch_far`] having been called a
    /// while ago. Never changes any result.
    #[inline]
    fn prefetch_near(&self, _op: Op, _lba: Lba) {}
}

/// The fast path: nothing is between a load and its block device.
impl<D: BlockDevice> IoTarget for D {
    #[inline(always)]
    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        BlockDevice::submit(self, now, bio, token)
    }

    #[inline(always)]
    fn next_event(&self) -> Option<Nanos> {
        BlockDevice::next_event(self)
    }

    #[inline(always)]
    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        BlockDevice::advance(self, now, done);
    }

    #[inline(always)]
    fn prefetch_far(&self, lba: Lba) {
        BlockDevice::prefetch_far(self, lba);
    }

    #[inline(always)]
    fn prefetch_near(&self, op: Op, lba: Lba) {
        BlockDevice::prefetch_near(self, op, lba);
    }
}
