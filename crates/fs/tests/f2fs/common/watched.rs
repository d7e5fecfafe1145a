//! A device in memory that notes its bios.

use nandscape_block::{Bio, BlockDevice, Completion, DeviceCaps, MemDevice, Submit, Token};
use nandscape_rt::Nanos;
use std::cell::RefCell;
use std::rc::Rc;

/// Bios in the order in which they came.
pub(crate) type Seen = Rc<RefCell<Vec<Bio>>>;

/// A device that notes its bios.
pub(crate) struct Watched {
    pub(crate) device: MemDevice,
    /// What it says it can.
    pub(crate) caps: DeviceCaps,
    pub(crate) seen: Seen,
}

impl Watched {
    pub(crate) fn new(device: MemDevice, seen: &Seen) -> Self {
        Self { caps: device.caps().clone(), device, seen: Rc::clone(seen) }
    }
}

impl BlockDevice for Watched {
    fn caps(&self) -> &DeviceCaps {
        &self.caps
    }

    fn submit(&mut self, now: Nanos, bio: Bio, token: Token) -> Submit {
        self.seen.borrow_mut().push(bio.clone());
        self.device.submit(now, bio, token)
    }

    fn next_event(&self) -> Option<Nanos> {
        self.device.next_event()
    }

    fn advance(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        self.device.advance(now, done);
    }
}
