//! The rate limiter: how the write buffer is shared between user writes and garbage collection
//! (pblk-rl.c). Everything is in ring entries, so it shapes the mix in the ring rather than a rate.

use super::capacity::Capacity;
use crate::pblk::config::Limiter;
use nandscape_rt::Nanos;

/// Entries of one window (`PBLK_MAX_REQ_ADDRS`).
const WINDOW: u32 = 64;
/// After this long without user writes garbage collection may take the whole ring.
const USER_IDLE: Nanos = Nanos::from_ms(5_000);

/// What a buffer takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    /// User data and copies, which share it.
    Both,
    /// User data only: it may have all of the buffer, until the reserve is reached.
    Users,
    /// Copies only.
    Copies,
}

/// State of the limiter.
#[derive(Debug)]
pub(super) struct RateLimiter {
    limiter: Limiter,
    share: Share,
    ring: u32,
    high_chunks: u32,
    reserved_chunks: u32,
    /// `log2(high) - log2(windows of the ring)`, as the kernel rounds them.
    shift: u32,
    /// What users have as long as more than the reserve is free.
    user_min: u32,
    user_max: u32,
    gc_max: u32,
    /// User entries inserted and not yet durable.
    user: u32,
    /// Garbage-collection entries inserted and not yet durable.
    gc: u32,
    /// Garbage collection has everything until the free space changes.
    relieved: bool,
    last_user: Nanos,
}

impl RateLimiter {
    /// The limiter of a buffer of `ring` entries.
    pub(super) fn new(limiter: Limiter, capacity: &Capacity, ring: u32, share: Share) -> Self {
        let windows = ring / WINDOW;
        let log2_ceil = |n: u32| n.max(1).next_power_of_two().ilog2();
        Self {
            limiter,
            share,
            ring,
            high_chunks: capacity.high_chunks,
            reserved_chunks: capacity.reserved_chunks,
            shift: log2_ceil(capacity.high_chunks).saturating_sub(log2_ceil(windows)),
            user_min: 0,
            user_max: ring,
            gc_max: 0,
            user: 0,
            gc: 0,
            relieved: false,
            last_user: Nanos::ZERO,
        }
    }

    /// One of several buffers: its users have a window as long as more than the reserve is free. The
    /// kernel's single small ring leaves them nothing well before, until garbage collection has come
    /// to rest; with several it may never do.
    pub(super) fn among_others(mut self) -> Self {
        self.user_min = self.window();
        self
    }

    /// Looks at the free space again, after lines were taken or freed.
    pub(super) fn update(&mut self, free_chunks: u32, free_lines: u32, werr: bool) {
        self.relieved = false;
        match self.limiter {
            Limiter::Kernel => self.update_kernel(free_chunks, werr),
            Limiter::Reserve(lines) => {
                self.user_max = if free_lines < lines { 0 } else { self.ring };
                self.gc_max = self.ring;
            }
        }
    }

    /// Half a small ring, else the kernel's window.
    fn window(&self) -> u32 {
        WINDOW.min(self.ring / 2)
    }

    fn update_kernel(&mut self, free_chunks: u32, werr: bool) {
        self.user_max = if free_chunks >= self.high_chunks {
            self.ring - if werr && self.share == Share::Both { self.window() } else { 0 }
        } else if free_chunks <= self.reserved_chunks {
            0
        } else if self.share == Share::Users {
            self.ring
        } else {
            ((free_chunks >> self.shift) * WINDOW).max(self.user_min).min(self.ring)
        };
        self.gc_max = match self.share {
            Share::Both => self.ring - self.user_max,
            Share::Users | Share::Copies => self.ring,
        };
    }

    /// Whether another victim should be chosen while so many chunks and lines are free, and as many
    /// lines as `coming` are quarantined or being collected.
    pub(super) fn wants_victim(&self, free: (u32, u32), coming: u32) -> bool {
        let wanted = match self.limiter {
            Limiter::Kernel => free.0 < self.high_chunks,
            Limiter::Reserve(lines) => free.1 + coming < lines,
        };
        wanted || self.relieved
    }

    /// Whether user writes stop with so many chunks and lines free.
    pub(super) fn stops_users(&self, free: (u32, u32)) -> bool {
        match self.limiter {
            Limiter::Kernel => free.0 <= self.reserved_chunks,
            Limiter::Reserve(lines) => free.1 < lines,
        }
    }

    /// Lets garbage collection have everything until the free space changes. Whether that is news.
    pub(super) fn force_limiter(&mut self) -> bool {
        !std::mem::replace(&mut self.relieved, true)
    }

    /// Lets users have a window until the free space changes, if more than the reserve is free: small
    /// rings leave them nothing well before, and when nothing can be collected that would be for
    /// good. Whether that is news.
    pub(super) fn force_limiter_users(&mut self, free_chunks: u32) -> bool {
        let stalled = self.limiter == Limiter::Kernel && self.user_max == 0;
        let news = stalled && free_chunks > self.reserved_chunks;
        if news {
            self.user_max = self.window();
        }
        news
    }

    /// User entries that may be inserted now.
    #[inline]
    pub(super) fn user_room(&self) -> u32 {
        self.user_max.saturating_sub(self.user)
    }

    /// Garbage-collection entries that may be inserted now.
    pub(super) fn gc_room(&self, now: Nanos) -> u32 {
        if self.relieved || now.saturating_sub(self.last_user) >= USER_IDLE {
            return self.ring;
        }
        self.gc_max.saturating_sub(self.gc)
    }

    #[inline]
    pub(super) fn user_in(&mut self, entries: u32, now: Nanos) {
        self.user += entries;
        self.last_user = now;
    }

    #[inline]
    pub(super) fn gc_in(&mut self, entries: u32) {
        self.gc += entries;
    }

    /// Entries inserted and not yet durable.
    pub(super) const fn entries(&self) -> u32 {
        self.user + self.gc
    }

    /// Entries became durable.
    #[inline]
    pub(super) fn out(&mut self, user: u32, gc: u32) {
        self.user -= user;
        self.gc -= gc;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JS-Pblk's device by the rules of Linux 4.16, with our ring: 8 windows, and a window for each
    /// 8 free chunks below the threshold.
    const JS_PBLK: Capacity = Capacity {
        physical_sectors: 480 * 4_096,
        logical_sectors: 1_740_800,
        lines: 60,
        line_sectors: 32_768,
        line_data_sectors: 32_688,
        smeta_sectors: 8,
        emeta_sectors: 72,
        high_chunks: 43,
        reserved_chunks: 8,
        ring_sectors: 512,
        map_lines: 0,
        copy_padding: crate::pblk::mapcache::CopyPadding::NONE,
    };
    const NOW: Nanos = Nanos::from_secs(1);

    fn kernel(capacity: &Capacity, free_chunks: u32) -> RateLimiter {
        let mut limiter =
            RateLimiter::new(Limiter::Kernel, capacity, capacity.ring_sectors, Share::Both);
        limiter.user_in(0, NOW);
        limiter.update(free_chunks, free_chunks / 8, false);
        limiter
    }

    /// (free chunks, user share, garbage collection's share, collecting)
    fn shares(capacity: &Capacity, free_chunks: u32) -> (u32, u32, u32, bool) {
        let limiter = kernel(capacity, free_chunks);
        (
            free_chunks,
            limiter.user_room(),
            limiter.gc_room(NOW),
            limiter.wants_victim((free_chunks, 0), 0),
        )
    }

    /// Windows of 64 entries: `free >> (ceil(log2(43)) - ceil(log2(512 / 64)))`, the rest is garbage
    /// collection's; everything is below 43 free chunks, nothing at 8 and less.
    #[test]
    fn the_kernels_shares_of_js_pblks_ring() {
        let table = [
            (480, 512, 0, false),
            (43, 512, 0, false),
            (42, 320, 192, true),
            (40, 320, 192, true),
            (39, 256, 256, true),
            (16, 128, 384, true),
            (15, 64, 448, true),
            (9, 64, 448, true),
            (8, 0, 512, true),
            (0, 0, 512, true),
        ];
        for row in table {
            assert_eq!(shares(&JS_PBLK, row.0), row);
        }
    }

    /// With the ring of the kernel (256 entries) a window stands for 16 free chunks, so users stop
    /// already below 16, above the reserve.
    #[test]
    fn the_kernels_own_ring_stops_users_before_the_reserve() {
        let capacity = Capacity { ring_sectors: 256, ..JS_PBLK };
        let table =
            [(42, 128, 128, true), (16, 64, 192, true), (15, 0, 256, true), (9, 0, 256, true)];
        for row in table {
            assert_eq!(shares(&capacity, row.0), row);
        }
    }

    /// Less free space never gives users more.
    #[test]
    fn the_user_share_only_falls_with_free_space() {
        for ring_sectors in [64, 128, 256, 512, 4_096, 65_536] {
            let capacity = Capacity { ring_sectors, ..JS_PBLK };
            let rooms: Vec<u32> = (0..60).map(|free| kernel(&capacity, free).user_room()).collect();
            assert!(rooms.is_sorted(), "ring {ring_sectors}: {rooms:?}");
            assert_eq!(rooms[59], ring_sectors);
        }
    }

    /// Entries count against their share from insertion until they are durable.
    #[test]
    fn entries_hold_their_share_until_durable() {
        let mut limiter = kernel(&JS_PBLK, 42);
        limiter.user_in(300, NOW);
        limiter.gc_in(100);
        assert_eq!((limiter.user_room(), limiter.gc_room(NOW), limiter.entries()), (20, 92, 400));
        limiter.user_in(64, NOW);
        assert_eq!(limiter.user_room(), 0, "trim records may overshoot the share");
        limiter.out(364, 60);
        assert_eq!((limiter.user_room(), limiter.gc_room(NOW), limiter.entries()), (320, 152, 40));
    }

    /// A buffer that takes no copies is its users' until the reserve is reached; one for copies is
    /// theirs always.
    #[test]
    fn buffers_of_one_kind_are_not_shared() {
        for (free_chunks, users) in [(480, 512), (42, 512), (9, 512), (8, 0)] {
            let mut journal = RateLimiter::new(Limiter::Kernel, &JS_PBLK, 512, Share::Users);
            let mut copies = RateLimiter::new(Limiter::Kernel, &JS_PBLK, 512, Share::Copies);
            journal.update(free_chunks, free_chunks / 8, true);
            copies.update(free_chunks, free_chunks / 8, true);
            assert_eq!((journal.user_room(), copies.gc_room(NOW)), (users, 512), "{free_chunks}");
        }
    }

    /// A line with a write error is collected however much is free, in one window.
    #[test]
    fn write_errors_get_one_window() {
        let mut limiter = kernel(&JS_PBLK, 480);
        limiter.update(480, 60, true);
        assert_eq!((limiter.user_room(), limiter.gc_room(NOW)), (448, 64));
        assert!(!limiter.wants_victim((480, 60), 0), "only the lines with write errors are wanted");
    }

    /// The share protects users; where there is none it only slows garbage collection.
    #[test]
    fn garbage_collection_gets_everything_after_five_idle_seconds() {
        let mut limiter = kernel(&JS_PBLK, 42);
        limiter.gc_in(192);
        let idle = NOW + Nanos::from_secs(5);
        assert_eq!(limiter.gc_room(idle.saturating_sub(Nanos(1))), 0);
        assert_eq!(limiter.gc_room(idle), 512);
        limiter.user_in(1, idle);
        assert_eq!(limiter.gc_room(idle), 0);
    }

    /// Relief lets garbage collection have everything, once, until the free space changes.
    #[test]
    fn relief_lasts_until_free_space_changes() {
        let mut limiter = kernel(&JS_PBLK, 43);
        assert!(!limiter.wants_victim((43, 5), 0));
        assert!(limiter.force_limiter());
        assert!(!limiter.force_limiter(), "relief twice is no news");
        assert!(limiter.wants_victim((43, 5), 0));
        assert_eq!(limiter.gc_room(NOW), 512);
        limiter.update(43, 5, false);
        assert!(!limiter.wants_victim((43, 5), 0));
        assert_eq!(limiter.gc_room(NOW), 0);
        assert!(limiter.force_limiter());
    }

    /// Reserve-N: users have all of the ring, or, while fewer than N lines are free, nothing.
    #[test]
    fn a_reserve_stops_users_while_fewer_lines_are_free() {
        let mut limiter = RateLimiter::new(Limiter::Reserve(3), &JS_PBLK, 512, Share::Both);
        for (free_lines, user_room, collecting) in [(4, 512, false), (3, 512, false), (2, 0, true)]
        {
            limiter.update(free_lines * 8, free_lines, false);
            assert_eq!(limiter.user_room(), user_room, "{free_lines} free lines");
            assert_eq!(limiter.gc_room(NOW), 512);
            assert_eq!(limiter.wants_victim((free_lines * 8, free_lines), 0), collecting);
        }
    }

    /// No more victims than it takes to have N lines free again.
    #[test]
    fn a_reserve_counts_lines_on_their_way() {
        let mut limiter = RateLimiter::new(Limiter::Reserve(3), &JS_PBLK, 512, Share::Both);
        limiter.update(8, 1, false);
        assert!(limiter.wants_victim((8, 1), 0) && limiter.wants_victim((8, 1), 1));
        assert!(!limiter.wants_victim((8, 1), 2));
    }
}
