//! Which write buffers a configuration asks for, and to which frontiers each writes.
//!
//! pblk has one buffer and one frontier. Buffers stand in this order: normal ones (one, or one a core
//! or hardware queue), those of fsynced files, the journal's, that of garbage collection. Buffers that share
//! frontiers are a *group*: each is one by itself, but where lines are narrower than the device the normal
//! ones are one together (QBLK). A group has as many frontiers as its stream is lines wide, and its units go
//! to them in turn. Each takes its lines from a part of the stripes; the parts of a group make up
//! the device, so that any free line is of use to any group. Trim records are in buffer 0.

use super::ids::{BufferId, FrontierId};
use crate::common::layout::Layout;
use crate::error::FtlError;
use crate::pblk::config::{BaseRouting, Config, FileRouting, GcStream};
use crate::pblk::stats::BufferRole;
use std::ops::Range;

/// Most buffers: a set of them is a word.
const BUFFERS_MAX: u32 = 64;
/// Most frontiers.
const FRONTIERS_MAX: u64 = 255;

/// Which buffers there are, by purpose, and the frontiers of each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// For whatever nothing else claims.
    pub(super) normal: Range<BufferId>,
    /// For files that are fsynced.
    pub(super) fsync: Range<BufferId>,
    /// For the journal.
    pub(super) journal: Option<BufferId>,
    /// For copies.
    pub(super) gc: Option<BufferId>,
    /// Whether the normal buffers share their frontiers.
    shared: bool,
    /// The frontiers of each group.
    groups: Vec<Range<FrontierId>>,
}

impl Plan {
    /// What `config` asks for.
    ///
    /// # Errors
    /// Too many buffers, or choices that exclude each other.
    pub(super) fn new(config: &Config, layout: &Layout) -> Result<Self, FtlError> {
        let routing = config.routing;
        check_routing(config)?;
        let normal = if routing.base == BaseRouting::Single { 1 } else { config.write_buffers };
        let rings = config.fsync_rings.unwrap_or(config.write_buffers);
        let fsync = if config.has_fsync_buffers() { rings } else { 0 };
        let gc = u32::from(config.gc_stream == GcStream::Own);
        let total = normal.saturating_add(fsync).saturating_add(u32::from(routing.journal) + gc);
        if total > BUFFERS_MAX {
            let why = format!("{total} write buffers, at most {BUFFERS_MAX} are possible");
            return Err(FtlError::Config { key: "ftl.routing", why });
        }
        let shared = layout.stripes() > 1;
        let counts = [if shared { 1 } else { normal }, fsync, u32::from(routing.journal), gc];
        let groups = frontiers_of_groups(counts, lines_at_once(config, layout)?)?;
        let (normal, fsync) = (normal as BufferId, fsync as BufferId);
        let mut last = normal + fsync;
        let mut special = |wanted: bool| {
            wanted.then(|| {
                last += 1;
                last - 1
            })
        };
        Ok(Self {
            normal: 0..normal,
            fsync: normal..normal + fsync,
            journal: special(routing.journal),
            gc: special(gc > 0),
            shared,
            groups,
        })
    }

    /// Buffers.
    pub(super) fn len(&self) -> BufferId {
        self.fsync.end + self.journal.iter().len() as u8 + self.gc.iter().len() as u8
    }

    /// What each buffer is for.
    pub(super) fn roles(&self) -> impl Iterator<Item = BufferRole> {
        (0..self.len()).map(|id| match id {
            id if self.normal.contains(&id) => BufferRole::Normal,
            id if self.fsync.contains(&id) => BufferRole::Fsync,
            id if Some(id) == self.journal => BufferRole::Journal,
            _ => BufferRole::Gc,
        })
    }

    /// Whether a buffer takes the journal and nothing else.
    #[inline]
    pub(super) fn is_journal(&self, buffer: BufferId) -> bool {
        self.journal == Some(buffer)
    }

    /// Frontiers.
    pub(super) fn frontiers(&self) -> u32 {
        self.groups.last().map_or(0, |frontiers| u32::from(frontiers.end))
    }

    /// The most frontiers that a group has.
    pub(super) fn widest(&self) -> u32 {
        self.groups.iter().map(|frontiers| frontiers.len() as u32).max().unwrap_or(0)
    }

    /// The frontiers of a buffer.
    pub(super) fn frontiers_of(&self, buffer: BufferId) -> Range<FrontierId> {
        self.groups[self.group_of(buffer)].clone()
    }

    /// The group of a buffer: those that share frontiers.
    #[inline]
    pub(super) fn group_of(&self, buffer: BufferId) -> usize {
        if self.shared {
            usize::from((buffer + 1).saturating_sub(self.normal.end))
        } else {
            usize::from(buffer)
        }
    }

    /// Groups.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The group that garbage collection can always fall back on.
    pub(super) fn copies_group(&self) -> usize {
        self.group_of(self.gc.unwrap_or(0))
    }

    /// Whether any copy may go to a group.
    pub(super) fn collects_into(&self, group: usize) -> bool {
        match self.gc {
            Some(gc) => group == self.group_of(gc),
            None => group <= self.group_of(self.normal.end - 1),
        }
    }
}

/// How many lines a normal buffer, one for fsynced files, the journal's and that of copies write to at once.
fn lines_at_once(config: &Config, layout: &Layout) -> Result<[u32; 4], FtlError> {
    let units = config.stream_units;
    let unless = |there: bool, needed: &'static str| (!there).then_some(needed);
    let fsync = unless(config.has_fsync_buffers(), "routing = \"fsync-aware\" and \"per-file\"");
    let journal = unless(config.routing.journal, "routing = \"journal\"");
    let gc = unless(config.gc_stream == GcStream::Own, "gc.stream = \"own\"");
    let stripes = layout.stripes();
    Ok([
        lines_of(units.normal, "ftl.normal_units", None, layout)?.unwrap_or(stripes),
        lines_of(units.fsync, "ftl.fsync_units", fsync, layout)?.unwrap_or(1),
        lines_of(units.journal, "ftl.journal_units", journal, layout)?.unwrap_or(1),
        lines_of(units.gc, "ftl.gc_units", gc, layout)?.unwrap_or(1),
    ])
}

/// The lines of so many parallel units, of a stream that needs what is `missing`.
fn lines_of(
    units: Option<u32>,
    key: &'static str,
    missing: Option<&str>,
    layout: &Layout,
) -> Result<Option<u32>, FtlError> {
    let Some(units) = units else { return Ok(None) };
    if let Some(needed) = missing {
        let why = format!("there is no such stream: goes with {needed} only");
        return Err(FtlError::Config { key, why });
    }
    let (width, lines) = (layout.width, units / layout.width);
    if units.is_multiple_of(width) && lines.is_power_of_two() && lines <= layout.stripes() {
        return Ok(Some(lines));
    }
    let sizes = (0..=layout.stripes().ilog2()).map(|power| (width << power).to_string());
    let sizes = sizes.collect::<Vec<_>>().join(", ");
    let why = format!(
        "with lines of {width} parallel units (ftl.line_set) a stream can write to {sizes} of them at \
         once, not to {units}"
    );
    Err(FtlError::Config { key, why })
}

/// The frontiers of each group, one after the other: of each kind there are so many groups, each with `lines`.
fn frontiers_of_groups(
    groups: [u32; 4],
    lines: [u32; 4],
) -> Result<Vec<Range<FrontierId>>, FtlError> {
    let kinds = groups.into_iter().zip(lines);
    let all: u64 = kinds.clone().map(|(groups, each)| u64::from(groups) * u64::from(each)).sum();
    if all >= FRONTIERS_MAX {
        let why = format!(
            "the streams write to {all} lines at once, fewer than {FRONTIERS_MAX} are possible"
        );
        return Err(FtlError::Config { key: "ftl.line_set", why });
    }
    let each = kinds.flat_map(|(groups, each)| (0..groups).map(move |_| each));
    let mut end = 0;
    let frontiers = each.map(|each| {
        let start = end;
        end += each as FrontierId;
        start..end
    });
    Ok(frontiers.collect())
}

/// Choices that exclude each other.
fn check_routing(config: &Config) -> Result<(), FtlError> {
    let refuse = |why: &str| Err(FtlError::Config { key: "ftl.routing", why: why.into() });
    let routing = config.routing;
    if routing.base != BaseRouting::Single && config.write_buffers == 0 {
        return refuse("per-core and per-queue need at least one buffer (ftl.write_buffers)");
    }
    if routing.files == FileRouting::FsyncInNormal && routing.base == BaseRouting::Single {
        return refuse(
            "fsync-in-normal gives a file one of several normal buffers: combine it with per-core or per-queue",
        );
    }
    if config.has_fsync_buffers() && config.fsync_rings.unwrap_or(config.write_buffers) == 0 {
        return refuse("files that are fsynced need at least one buffer (ftl.fsync_rings)");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::layout::UnitSet;
    use crate::pblk::config::{Routing, StreamUnits};
    use nandscape_media::Geometry;

    const GEOMETRY: Geometry = Geometry {
        groups: 4,
        units: 4,
        chunks: 5,
        sectors: 24,
        ws_min: 4,
        ws_opt: 8,
        mw_cunits: 0,
        maxoc: 0,
        maxocpu: 0,
    };

    fn layout(set: UnitSet) -> Layout {
        Layout::of(&GEOMETRY, set).expect("divides")
    }

    /// Two normal buffers, two for fsynced files, the journal's and that of copies.
    fn config(stream_units: StreamUnits) -> Config {
        let routing =
            Routing { base: BaseRouting::PerQueue, journal: true, files: FileRouting::FsyncAware };
        let gc_stream = GcStream::Own;
        Config { routing, write_buffers: 2, gc_stream, stream_units, ..Config::default() }
    }

    fn plan(stream_units: StreamUnits, set: UnitSet) -> Plan {
        Plan::new(&config(stream_units), &layout(set)).expect("fits")
    }

    fn frontiers(plan: &Plan) -> Vec<Range<FrontierId>> {
        (0..plan.len()).map(|buffer| plan.frontiers_of(buffer)).collect()
    }

    /// Where nothing is said, normal buffers share a frontier a stripe, and each other buffer has one.
    #[test]
    fn only_normal_buffers_are_as_wide_as_the_device() {
        let device = plan(StreamUnits::default(), UnitSet::All);
        assert_eq!(frontiers(&device), [0..1, 1..2, 2..3, 3..4, 4..5, 5..6]);
        let narrow = plan(StreamUnits::default(), UnitSet::Units(4));
        assert_eq!(frontiers(&narrow), [0..4, 0..4, 4..5, 5..6, 6..7, 7..8]);
        assert_eq!((device.widest(), narrow.widest()), (1, 4));
        assert_eq!((device.groups(), narrow.groups()), (6, 5));
    }

    /// Each stream has its width, and the parts of a stream's frontiers divide the stripes.
    #[test]
    fn a_stream_has_as_many_frontiers_as_it_is_lines_wide() {
        let units = StreamUnits { normal: Some(8), fsync: None, journal: Some(16), gc: Some(4) };
        let plan = plan(units, UnitSet::Units(2));
        assert_eq!(frontiers(&plan), [0..4, 0..4, 4..5, 5..6, 6..14, 14..16]);
        assert_eq!((plan.frontiers(), plan.widest(), plan.groups()), (16, 8, 5));
        let made = plan.make_frontiers(true);
        assert_eq!(made.len(), 17, "one for mapping blocks");
        for buffer in 0..plan.len() {
            let group = plan.group_of(buffer);
            let own: Vec<_> = plan.frontiers_of(buffer).map(|f| &made[usize::from(f)]).collect();
            assert!(own.iter().all(|frontier| plan.group_of(frontier.buffer) == group));
            for stripe in 0..8 {
                let takers = own.iter().filter(|frontier| frontier.stripes.has(stripe));
                assert_eq!(takers.count(), 1, "stripe {stripe} of buffer {buffer}");
            }
        }
    }

    /// The key at fault; its sentence must explain itself.
    fn refused(config: &Config, set: UnitSet) -> &'static str {
        match Plan::new(config, &layout(set)) {
            Err(FtlError::Config { key, why }) => {
                assert!(why.split_whitespace().count() > 5, "{key}: {why} explains nothing");
                key
            }
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn widths_that_lines_do_not_make_are_refused() {
        let with = |normal, fsync, journal, gc| StreamUnits { normal, fsync, journal, gc };
        for units in [0, 1, 3, 6, 10, 12, 32, u32::MAX] {
            let of = |units| refused(&config(units), UnitSet::Units(2));
            assert_eq!(of(with(Some(units), None, None, None)), "ftl.normal_units", "{units}");
            assert_eq!(of(with(None, Some(units), None, None)), "ftl.fsync_units", "{units}");
            assert_eq!(of(with(None, None, Some(units), None)), "ftl.journal_units", "{units}");
            assert_eq!(of(with(None, None, None, Some(units))), "ftl.gc_units", "{units}");
        }
        let all = with(Some(16), Some(16), Some(16), Some(16));
        assert_eq!(plan(all, UnitSet::All).frontiers(), 6, "a line is that wide anyway");
        assert_eq!(
            refused(&config(with(None, None, Some(8), None)), UnitSet::All),
            "ftl.journal_units"
        );
    }

    #[test]
    fn widths_of_streams_that_are_not_there_are_refused() {
        let with = |fsync, journal, gc| {
            let stream_units = StreamUnits { normal: Some(4), fsync, journal, gc };
            let plain = Config { stream_units, ..Config::default() };
            refused(&plain, UnitSet::Units(2))
        };
        assert_eq!(with(Some(4), None, None), "ftl.fsync_units");
        assert_eq!(with(None, Some(4), None), "ftl.journal_units");
        assert_eq!(with(None, None, Some(4)), "ftl.gc_units");
    }

    /// Frontiers have numbers of 8 bits.
    #[test]
    fn too_many_frontiers_are_refused() {
        let all = Some(16);
        let stream_units = StreamUnits { normal: all, fsync: all, journal: all, gc: all };
        let many = Config { fsync_rings: Some(20), ..config(stream_units) };
        assert_eq!(refused(&many, UnitSet::Units(1)), "ftl.line_set");
    }
}
