//! How many parallel units each stream of a seed's pblk writes to at once: where lines are narrower than the
//! device, one of four seeds has a number of their own for each stream.

use crate::draw::pblk::composition::{Composition, Pins, Widths};
use nandscape_ftl::pblk::config::{Config, GcStream, LineSet, StreamUnits};
use nandscape_media::Geometry;
use nandscape_rt::Stream;

/// The composition with the widths that are given, or a stack has, or the seed draws.
pub(crate) fn choose(seed: u64, drawn: Composition, pins: &Pins, given: bool) -> Composition {
    let narrow = drawn.line_set != LineSet::Device;
    if given || pins.widths.is_some() || !narrow {
        return drawn;
    }
    let wide = Stream::new(seed, "scenario-widths").chance(0.25);
    Composition { widths: if wide { Widths::Wide } else { Widths::Usual }, ..drawn }
}

/// The choices with a width for every stream that there is. A stack's widths stay as far as the small device has
/// them.
pub(crate) fn draw(seed: u64, config: Config, geometry: &Geometry) -> Config {
    let rng = &mut Stream::new(seed, "scenario-stream-units");
    let units = geometry.total_units();
    let line = match config.line_set {
        LineSet::Device => units,
        LineSet::Channel => geometry.units,
        LineSet::Units(width) => width,
    };
    let doublings = u64::from((units / line).max(1).ilog2());
    let given = config.stream_units;
    let stack_has = given != StreamUnits::default();
    let mut width = |there: bool, given: Option<u32>| {
        let drawn = line << rng.below(doublings + 1);
        let own = if stack_has {
            given.map(|given| given.clamp(line, line << doublings))
        } else {
            Some(drawn)
        };
        own.filter(|_| there)
    };
    let stream_units = StreamUnits {
        normal: width(true, given.normal),
        fsync: width(config.has_fsync_buffers(), given.fsync),
        journal: width(config.routing.journal, given.journal),
        gc: width(config.gc_stream == GcStream::Own, given.gc),
    };
    Config { stream_units, ..config }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nandscape_ftl::pblk::Capacity;
    use nandscape_ftl::pblk::config::{FileRouting, Routing};
    use std::collections::BTreeSet;

    const GEOMETRY: Geometry = Geometry {
        groups: 4,
        units: 2,
        chunks: 160,
        sectors: 256,
        ws_min: 4,
        ws_opt: 8,
        mw_cunits: 24,
        maxoc: 0,
        maxocpu: 0,
    };

    fn config(routing: Routing) -> Config {
        let line_set = LineSet::Channel;
        Config { routing, line_set, op_percent: Some(50), ..Config::default() }
    }

    /// Seeds draw every width that the device has, for streams that there are, and the FTL takes them.
    #[test]
    fn seeds_draw_every_width() {
        let routing =
            Routing { journal: true, files: FileRouting::FsyncAware, ..Routing::default() };
        let mut seen = BTreeSet::new();
        for seed in 0..60 {
            let drawn = draw(seed, config(routing), &GEOMETRY);
            let StreamUnits { normal, fsync, journal, gc } = drawn.stream_units;
            seen.extend([normal, fsync, journal]);
            assert_eq!(gc, None, "copies have no stream");
            Capacity::of(&GEOMETRY, &drawn, 8 * 160).expect("fits");
        }
        assert_eq!(seen, BTreeSet::from([2, 4, 8].map(Some)));
    }

    /// A stack's widths are as wide as the device at most, and streams that pins took away have none.
    #[test]
    fn a_given_width_fits_the_device() {
        let stream_units = StreamUnits { journal: Some(64), gc: Some(1), ..StreamUnits::default() };
        let given = Config { stream_units, ..config(Routing::default()) };
        assert_eq!(draw(1, given.clone(), &GEOMETRY).stream_units, StreamUnits::default());
        let routing = Routing { journal: true, ..Routing::default() };
        let given = Config { gc_stream: GcStream::Own, routing, ..given };
        let expected = StreamUnits { journal: Some(8), gc: Some(2), ..StreamUnits::default() };
        assert_eq!(draw(1, given, &GEOMETRY).stream_units, expected);
    }
}
