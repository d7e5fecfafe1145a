//! The allocator of the program and its benchmarks: mimalloc, keeping the memory that it once had.
//!
//! File systems make and drop many small things, and media drop thousands of contents with an erase and
//! take them anew with the writes that follow. Where what is free goes back to the operating system each
//! time, up to a quarter of a run is page faults that bring it again, zeroed.
//!
//! Whoever links this crate has the allocator; [`keep_what_is_freed`] is to be called once, at the start.
//! The one unsafe call is that of an option's setter, which takes any number and value.

use libmimalloc_sys::{mi_option_set, mi_option_t};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 2: milliseconds until free memory goes back, or -1 for never.
const PURGE_DELAY: mi_option_t = 15;

/// From here on what is free stays with the process until it ends. Whoever asks for something else by
/// the environment variable `MIMALLOC_PURGE_DELAY` has it.
pub fn keep_what_is_freed() {
    if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
        // SAFETY: the function may be called at any time from any thread, and checks its arguments.
        unsafe { mi_option_set(PURGE_DELAY, -1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use libmimalloc_sys::mi_option_get;

    /// The number is that of the option: its default is 10 ms, and nothing else's is.
    #[test]
    fn the_option_is_set() {
        // SAFETY: as above.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 10);
        keep_what_is_freed();
        assert_eq!(delay(), -1);
    }
}
