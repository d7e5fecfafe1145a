//! The allocator of the program and its benchmarks: mimalloc, keeping the memory that it once had.
//!
//! File systems make and drop many small things, and media drop thousands of contents with an erase and
//! take them anew with the writes that follow. Where what is free goes back to the operating system each
//! time, up to a quarter of a run is page faults that bring it again, zeroed.
//!
//! A program that links this crate has the allocator; [`retain_freed_memory`] is to be called once, at the start.
//! What is unsafe here is the contract of `GlobalAlloc`, handed through, and an option's setter, which
//! takes any number and value.

use libmimalloc_sys::{mi_free, mi_malloc, mi_option_set, mi_option_t, mi_realloc};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};

#[global_allocator]
static ALLOCATOR: SystemAllocator = SystemAllocator;

/// Mimalloc, asked for an alignment only where it would not give it anyway: most of what is allocated
/// needs none, and asking takes as long as allocating.
struct SystemAllocator;

/// What `mi_malloc` aligns everything to that is at least as large (`MI_MAX_ALIGN_SIZE`).
const ALIGNED_ANYWAY: usize = 16;

const fn is_aligned_anyway(align: usize, size: usize) -> bool {
    align <= ALIGNED_ANYWAY && align <= size
}

// SAFETY: all calls go to one mimalloc, whose functions free and resize what any of them gave. Sizes are
// not zero, as callers of this trait promise; blocks of fewer than 16 bytes are aligned to 8, or to
// their size where that is less.
unsafe impl GlobalAlloc for SystemAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_aligned_anyway(layout.align(), layout.size()) {
            // SAFETY: mimalloc takes any size.
            unsafe { mi_malloc(layout.size()).cast() }
        } else {
            // SAFETY: the caller's promise.
            unsafe { MiMalloc.alloc(layout) }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, _layout: Layout) {
        // SAFETY: the caller has it from here.
        unsafe { mi_free(place.cast()) }
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_aligned_anyway(layout.align(), size) {
            // SAFETY: the caller has it from here.
            unsafe { mi_realloc(place.cast(), size).cast() }
        } else {
            // SAFETY: the caller's promise.
            unsafe { MiMalloc.realloc(place, layout, size) }
        }
    }
}

/// `mi_option_purge_delay` of mimalloc 2: milliseconds until free memory goes back, or -1 for never.
const PURGE_DELAY: mi_option_t = 15;

/// From here on what is free stays with the process until it ends. A caller that asks for something else by
/// the environment variable `MIMALLOC_PURGE_DELAY` has it.
pub fn retain_freed_memory() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: the function may be called at any time from any thread, and checks its arguments.
        unsafe { mi_option_set(PURGE_DELAY, -1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libmimalloc_sys::mi_option_get;

    /// Whatever way it takes, memory is where it was asked to be, and keeps what it holds as it grows.
    #[test]
    fn memory_is_aligned() {
        for (align, size) in (0..8).flat_map(|bit| (1..200).map(move |size| (1 << bit, size))) {
            let layout = Layout::from_size_align(size, align).expect("a power of two");
            // SAFETY: the sizes are not zero, and what is freed was allocated or grown just before.
            let (first, grown, byte) = unsafe {
                let first = SystemAllocator.alloc(layout);
                first.add(size - 1).write(7);
                let grown = SystemAllocator.realloc(first, layout, 3 * size);
                let byte = grown.add(size - 1).read();
                SystemAllocator.dealloc(grown, Layout::from_size_align_unchecked(3 * size, align));
                (first.addr(), grown.addr(), byte)
            };
            assert_eq!((first % align, grown % align, byte), (0, 0, 7), "{size} bytes by {align}");
        }
    }

    /// The number is that of the option: its default is 10 ms, and nothing else's is.
    #[test]
    fn the_option_is_set() {
        // SAFETY: as above.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 10);
        retain_freed_memory();
        assert_eq!(delay(), -1);
    }
}
