//! Tools that share nothing with what they judge: they recover a volume that a power cut left, and
//! check what our recovery made of it.

use nandscape_block::SectorData;

/// The content of a volume, sector by sector.
pub type Image = Vec<SectorData>;

/// Such a tool. It is given images, and asks no device.
pub trait Oracle {
    /// Its name.
    fn name(&self) -> &str;

    /// Recovers an image that a power cut left; none where the tool cannot.
    ///
    /// # Errors
    /// Why that failed, or what was wrong with the image beyond what recovery mends.
    fn recover(&self, image: &Image) -> Result<Option<Image>, String>;

    /// Finds nothing wrong with an image that needs no recovery.
    ///
    /// # Errors
    /// What it found, or why it could not look.
    fn check(&self, image: &Image) -> Result<(), String>;
}
