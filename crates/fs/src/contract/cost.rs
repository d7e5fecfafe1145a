//! What calls of a file system take of the thread that makes them: its core works before the file system
//! begins. The file system itself knows nothing of that; whoever makes calls charges them.

use super::Io;
use nandscape_block::SECTOR_BYTES;
use nandscape_rt::Nanos;

/// Costs of calls.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SyscallCost {
    /// Of any call.
    pub call: Nanos,
    /// Of each page that is copied between the caller and the page cache besides.
    pub copy: Nanos,
}

impl SyscallCost {
    /// What a read or write of so many bytes takes. Direct I/O copies nothing.
    #[must_use]
    pub fn for_bytes(&self, bytes: u64, io: Io) -> Nanos {
        let pages = if io == Io::Direct { 0 } else { bytes.div_ceil(SECTOR_BYTES) };
        self.call.saturating_add(Nanos(self.copy.0.saturating_mul(pages)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages that are begun are copied whole; what bypasses the cache is not copied.
    #[test]
    fn copies_are_charged_by_the_page() {
        let cost = SyscallCost { call: Nanos(10), copy: Nanos(3) };
        let of = |bytes| cost.for_bytes(bytes, Io::Buffered).0;
        assert_eq!([of(0), of(1), of(4096), of(4097), of(1 << 20)], [10, 13, 13, 16, 778]);
        assert_eq!(cost.for_bytes(1 << 20, Io::Direct), Nanos(10));
    }
}
