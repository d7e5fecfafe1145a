//! A counting semaphore, fair: permits go to waiters in order, however many each of them wants.

use super::permits::Permits;
use crate::handle::Handle;
use std::rc::Rc;

/// A number of permits that tasks take and give back.
#[derive(Clone)]
pub struct Semaphore(Rc<Permits>);

impl Semaphore {
    /// A semaphore that has this many permits.
    #[must_use]
    pub fn new(handle: &Handle, name: &'static str, permits: u32) -> Self {
        Self(Rc::new(Permits::new(handle, name, permits)))
    }

    /// Permits that no task holds.
    #[must_use]
    pub fn available(&self) -> u32 {
        self.0.available()
    }

    /// Takes `permits` at once, waiting in line for them. Waits for ever when there are never so many.
    pub async fn acquire(&self, permits: u32) -> Permit {
        self.0.take("semaphore", permits).await;
        Permit { owner: Rc::clone(&self.0), permits }
    }

    /// Takes `permits` if no task waits and there are enough.
    #[must_use]
    pub fn try_acquire(&self, permits: u32) -> Option<Permit> {
        self.0.try_take(permits).then(|| Permit { owner: Rc::clone(&self.0), permits })
    }

    /// Adds permits that the semaphore did not have.
    pub fn add(&self, permits: u32) {
        self.0.give(permits);
    }
}

/// Permits taken; dropping gives them back.
#[must_use = "dropped, it gives its permits back at once"]
pub struct Permit {
    owner: Rc<Permits>,
    permits: u32,
}

impl Permit {
    /// How many permits it stands for.
    #[must_use]
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// Takes the permits out of the semaphore for good.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.owner.give(self.permits);
    }
}
