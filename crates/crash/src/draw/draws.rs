//! What the draw of a kind of FTL is given, and what it answers.

use crate::draw::family::ScenarioFamily;
use nandscape_ftl::FtlConfig;
use nandscape_media::Geometry;
use nandscape_rt::Stream;

/// Where the choices of a seed come from.
pub(crate) struct Draws<'a> {
    pub(crate) seed: u64,
    /// Draws before this one that the FTL refused.
    pub(crate) refused: u32,
    pub(crate) family: ScenarioFamily,
    /// Shape, timing, sizes and faults.
    pub(crate) rng: &'a mut Stream,
    /// Policies and buffers.
    pub(crate) streams: &'a mut Stream,
}

/// The draw of a configuration of one kind. The order of the calls is the order of the draws.
pub(crate) trait KindDraw {
    /// The shape, changed to what the kind needs.
    fn fit(&self, shape: Geometry, _sectors_max: u32, _draws: &mut Draws<'_>) -> Geometry {
        shape
    }

    /// Its choices on a device of this shape.
    fn config(&self, geometry: &Geometry, draws: &mut Draws<'_>) -> FtlConfig;

    /// The choices at the edges of what they may be.
    fn with_edge_cases(&self, config: FtlConfig, rng: &mut Stream) -> FtlConfig;
}
