//! Which records are needed, against a list of the youngest record of each sector; and devices on which one range is
//! written and discarded for long.

use super::*;
use crate::common::trims::decode_trims;
use crate::face::Ftl;
use crate::kind::FtlRun;
use crate::pblk::Pblk;
use crate::pblk::config::{Config, Limiter};
use nandscape_block::{Bio, BlockDevice, BlockError, Payload, Submit, Tag, Token};
use nandscape_media::{
    Geometry, KEY_TRIM, LinkTiming, Linked, Media, MediaConfig, OpenChannel, PayloadMode, Ppa,
};
use nandscape_rt::Stream;

const GEOMETRY: Geometry = Geometry {
    groups: 1,
    units: 2,
    chunks: 38,
    sectors: 40,
    ws_min: 4,
    ws_opt: 8,
    mw_cunits: 0,
    maxoc: 0,
    maxocpu: 0,
};

/// Sectors that are written and discarded again and again.
const TRIMMED: u64 = 600;

fn config() -> Config {
    Config { op_percent: Some(40), limiter: Limiter::Reserve(1), ..Config::default() }
}

fn device() -> Pblk<Media> {
    let media = MediaConfig { payload: PayloadMode::Tags, ..MediaConfig::new(GEOMETRY) };
    let media = Linked::new(Media::new(media).expect("a device"), LinkTiming::none());
    Pblk::format(media, config(), FtlRun::default()).expect("fits")
}

/// Mounts what a power cut leaves of a device at rest.
fn remount(pblk: Pblk<Media>) -> Pblk<Media> {
    let now = pblk.flash.now;
    let media = Linked::new(pblk.power_off(), LinkTiming::none());
    let mounted = Pblk::recover(media, config(), FtlRun::default(), now);
    mounted.map_err(|(_, error)| error).expect("recovers")
}

/// Serves a bio; its outcome.
fn serve(pblk: &mut Pblk<Media>, bio: Bio) -> Result<(), BlockError> {
    let mut done = Vec::new();
    if let Submit::Done(done) = pblk.submit(pblk.flash.now, bio, Token(0)) {
        return done.result.map(|_| ());
    }
    for _ in 0..100_000 {
        let at = pblk.next_event().expect("something is under way");
        pblk.advance(at, &mut done);
        if let Some(completion) = done.pop() {
            return completion.done.result.map(|_| ());
        }
    }
    panic!("the device does not come to rest")
}

fn write(lba: u64) -> Bio {
    Bio::write(Lba(lba), 1, Payload::Run(Tag::new(lba)))
}

/// Fills a device but for [`TRIMMED`] sectors, and writes and discards these, one at a time.
fn write_and_discard(pblk: &mut Pblk<Media>, times: u64) -> Result<(), BlockError> {
    let sectors = pblk.rules.capacity.logical_sectors;
    (TRIMMED..sectors).try_for_each(|lba| serve(pblk, write(lba)))?;
    let mut rng = Stream::new(1, "trims");
    (0..times).try_for_each(|_| {
        let lba = rng.below(TRIMMED);
        serve(pblk, write(lba))?;
        serve(pblk, Bio::discard(Lba(lba), 1))
    })
}

/// Sectors of records on media that count, each with its records.
fn live_records(pblk: &Pblk<Media>) -> Vec<Vec<TrimRecord>> {
    let places = (0..GEOMETRY.ppa_end()).map(Ppa).filter(|&at| pblk.flash.lines.is_valid(at));
    let sectors = places.filter(|&at| pblk.flash.media.oob(at).key == KEY_TRIM);
    sectors.map(|at| decode_trims(&pblk.flash.media.data(at)).unwrap_or_default()).collect()
}

/// Records of one range take a sector a line at most however long it is written and discarded without a mount: what
/// collection logs anew are records that no younger one replaced. What it drops waits for its replacement.
#[test]
fn records_of_one_range_do_not_pile_up() {
    let mut pblk = device();
    assert_eq!(write_and_discard(&mut pblk, 200_000), Ok(()));
    let live = live_records(&pblk).len() as u32;
    assert!((1..=GEOMETRY.chunks).contains(&live), "{live} sectors of records");
    assert!(pblk.stats.gc.victims > 500, "{:?}", pblk.stats.gc);
    assert_eq!(pblk.check_invariants(), Ok(()));
    assert!(
        pblk.buffers.trimmed.ranges.len() as u64 <= TRIMMED,
        "{} ranges",
        pblk.buffers.trimmed.ranges.len()
    );
}

/// A record that a younger one replaced is dropped by collection, and the line that held it is not erased before the
/// younger one is durable: until then nothing else hides what both do.
#[test]
fn a_record_stays_until_what_replaced_it_is_durable() {
    let mut pblk = device();
    let discard = Bio::discard(Lba(0), 1);
    for bio in [write(0), discard.clone(), Bio::flush()] {
        assert_eq!(serve(&mut pblk, bio), Ok(()));
    }
    let mut pblk = remount(pblk);
    assert_eq!(serve(&mut pblk, write(0)), Ok(()));
    let mut places = (0..GEOMETRY.ppa_end()).map(Ppa).filter(|&at| pblk.flash.lines.is_valid(at));
    let at = places.find(|&at| pblk.flash.media.oob(at).key == KEY_TRIM);
    let at = at.expect("a record on media");
    assert_eq!(serve(&mut pblk, discard), Ok(()));
    let logged = pblk.flash.next_seq;
    pblk.relog_trims(at, &pblk.flash.media.data(at));
    let floor = pblk.buffers.trims.durable(u64::MAX);
    assert_eq!(floor, logged, "the younger one is pending, and nothing else");
    let line = pblk.flash.lines.get(pblk.flash.lines.of(at));
    assert!(line.gate > floor, "{line:?} is erased when everything before {floor} is durable");
    assert_eq!(pblk.buffers.trims.emit(0).len(), 1, "the older one was dropped");
}

/// A mount finds what is discarded, and a record of each sector, all of them needed.
#[test]
fn a_mount_knows_what_records_hide() {
    let mut pblk = device();
    assert_eq!(write_and_discard(&mut pblk, 20_000), Ok(()));
    assert_eq!(serve(&mut pblk, Bio::flush()), Ok(()));
    let hidden: Vec<Lba> = pblk.buffers.trimmed.sectors().collect();
    let mounted = remount(pblk);
    assert_eq!(mounted.check_invariants(), Ok(()));
    assert!(mounted.buffers.trimmed.sectors().eq(hidden), "what is discarded");
    let records = live_records(&mounted).into_iter().flatten();
    let needed = records.filter(|record| mounted.buffers.trimmed.is_needed(record)).count();
    assert_eq!(needed, mounted.buffers.trimmed.sectors().count(), "a record hides one sector");
}

/// Ranges are what a list of the youngest record of each sector is, and a record is needed while the list has it.
#[test]
fn ranges_agree_with_a_list() {
    let mut rng = Stream::new(1, "ranges");
    let (mut trimmed, mut list) = (Trimmed::default(), [None; 40]);
    let mut records = Vec::new();
    for seq in 0..3_000 {
        let lba = rng.below(40);
        let sectors = 1 + rng.below(40 - lba);
        let record = TrimRecord { lba: lba as u32, sectors: sectors as u32, seq: seq / 3 };
        if rng.below(2) == 0 {
            trimmed.written(Lba(lba));
            list[lba as usize] = None;
        } else if !records.contains(&record) {
            trimmed.hide(record);
            list[lba as usize..(lba + sectors) as usize].fill(Some(record));
            records.push(record);
        }
        let hidden: Vec<u64> = trimmed.sectors().map(|lba| lba.0).collect();
        let expected: Vec<u64> = (0..40).filter(|&lba| list[lba as usize].is_some()).collect();
        assert_eq!(hidden, expected);
        for record in records.iter().rev().take(60) {
            assert_eq!(trimmed.is_needed(record), list.contains(&Some(*record)), "{record:?}");
        }
        assert!(trimmed.ranges.len() <= 40);
    }
}
