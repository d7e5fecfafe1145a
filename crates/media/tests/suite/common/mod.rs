//! What the tests of the device share: small geometries and terse commands.

use nandscape_block::SectorData;
use nandscape_media::{
    ChunkId, ChunkInfo, ChunkState, DeviceTiming, Geometry, Internal, Kind, Linked, Media,
    MediaConfig, OpenChannel, Outcome, Ppa, RuleError, UnitId, WriteCmd,
};
use nandscape_rt::Nanos;

/// 2 groups x 2 units x 4 chunks x 48 sectors.
pub(crate) const SMALL: Geometry = Geometry {
    groups: 2,
    units: 2,
    chunks: 4,
    sectors: 48,
    ws_min: 4,
    ws_opt: 8,
    mw_cunits: 12,
    maxoc: 0,
    maxocpu: 0,
};

/// A device without defects, with the NAND of a preset.
pub(crate) fn device(geometry: Geometry, preset: &str) -> Media {
    let timing = DeviceTiming::preset(preset).expect("shipped preset").nand;
    Media::new(MediaConfig { timing, ..MediaConfig::new(geometry) }).expect("valid config")
}

/// A device of this timing behind its link, for the rest of this configuration.
pub(crate) fn linked(timing: DeviceTiming, config: MediaConfig) -> Linked<Media> {
    let media = Media::new(MediaConfig { timing: timing.nand, ..config });
    Linked::new(media.expect("valid config"), timing.link)
}

/// Reads sectors for the caller.
pub(crate) fn read(
    media: &mut impl OpenChannel,
    now: Nanos,
    at: Ppa,
    sectors: u32,
) -> Result<Outcome, RuleError> {
    media.read(now, now, at, sectors, &mut Internal)
}

/// A chunk.
pub(crate) const fn chunk(unit: u32, chunk: u32) -> ChunkId {
    ChunkId { unit: UnitId(unit), chunk }
}

/// A row of the chunk report.
pub(crate) const fn info(state: ChunkState, wp: u32, erases: u32) -> ChunkInfo {
    ChunkInfo { state, wp, erases }
}

/// A sector.
pub(crate) fn ppa(media: &impl OpenChannel, at: ChunkId, sector: u32) -> Ppa {
    media.geometry().ppa(at, sector)
}

/// Writes `sectors` sectors at a chunk's write pointer; keys and sequences count from `seq`.
pub(crate) fn append(
    media: &mut impl OpenChannel,
    now: Nanos,
    at: ChunkId,
    sectors: u32,
    seq: u64,
) -> Result<Outcome, RuleError> {
    append_data(media, now, at, sectors, seq, &[])
}

/// The same with content.
pub(crate) fn append_data(
    media: &mut impl OpenChannel,
    now: Nanos,
    at: ChunkId,
    sectors: u32,
    seq: u64,
    data: &[SectorData],
) -> Result<Outcome, RuleError> {
    let keys: Vec<u32> = (seq as u32..).take(sectors as usize).collect();
    let at = ppa(media, at, media.chunk(at).wp);
    media.write(
        now,
        now,
        WriteCmd { at, kind: Kind::Data, seq, seq_deltas: &[], aux: &[], keys: &keys, data },
    )
}
