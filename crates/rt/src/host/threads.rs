//! Threads of the host and the cores that they run on. The assignment of a number to a core, number modulo
//! cores, is made here and nowhere else.

/// A core of a host. Made by [`super::Host::core`] and [`super::Host::thread`] only, so it always names a
/// core that the host has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CoreId(u16);

impl CoreId {
    pub(super) const fn new(number: u16) -> Self {
        Self(number)
    }

    /// The core's number, from 0.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The core's index in tables of all cores.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A thread of a program on the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread {
    /// Number of the thread, from 0, in order of creation; modulo 65,536.
    pub id: u16,
    /// The core that it always runs on.
    pub core: CoreId,
}

/// Assigns cores to numbers of threads.
#[derive(Debug)]
pub(super) struct Threads {
    cores: u16,
    created: usize,
}

impl Threads {
    /// No thread yet, on so many cores (at least one).
    pub(super) const fn new(cores: u16) -> Self {
        Self { cores, created: 0 }
    }

    /// The core of this number modulo cores.
    #[inline]
    pub(super) const fn core(&self, number: usize) -> CoreId {
        CoreId((number % self.cores as usize) as u16)
    }

    /// Creates the next thread.
    pub(super) const fn create(&mut self) -> Thread {
        let number = self.created;
        self.created += 1;
        Thread { id: number as u16, core: self.core(number) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads take the cores in turn, and a number stands for the same core as the thread of that number.
    #[test]
    fn threads_take_cores_in_turn() {
        let mut threads = Threads::new(3);
        let created: Vec<_> = (0..5).map(|_| threads.create()).collect();
        let ids_cores: Vec<_> = created.iter().map(|each| (each.id, each.core.number())).collect();
        assert_eq!(ids_cores, [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1)]);
        assert!(created.iter().all(|each| threads.core(each.id.into()) == each.core));
    }
}
