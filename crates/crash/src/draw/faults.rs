//! How often something goes wrong.

/// How often media commands fail: one in so many; 0 means never.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FaultRates {
    /// Programs.
    pub program_one_in: u32,
    /// Erases.
    pub erase_one_in: u32,
    /// Writes, of metadata too, that leave one of their sectors uncorrectable.
    pub unreadable_one_in: u32,
}

impl FaultRates {
    /// Whether anything fails.
    #[must_use]
    pub fn any(&self) -> bool {
        self.program_one_in > 0 || self.erase_one_in > 0 || self.unreadable_one_in > 0
    }
}
