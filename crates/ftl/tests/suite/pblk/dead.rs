//! What media keep of sectors that hold bytes: what a read or a mount may return, and little else.

use crate::common::config;
use crate::common::driver::Driver;
use nandscape_block::{Bio, BlockError, Flags, Lba, Payload, Reply, Tag};
use nandscape_ftl::device::config::{BufferConfig, Config as DeviceConfig};
use nandscape_ftl::{AnyFtl, Attach, Ftl, FtlConfig, FtlRun, OmittedRule};
use nandscape_media::{
    DeviceTiming, FaultInjector, Faults, Geometry, KEY_MAX, Kind, Layer, Media, MediaConfig,
    OpenChannel,
};
use nandscape_rt::{Host, Stream};

/// Media whose open chunks serve all that was written, as an SSD's do.
const GEOMETRY: Geometry = Geometry { mw_cunits: 0, ..crate::common::GEOMETRY };
const TIMING: &str = "qemu-ocssd";
/// Sectors that are written in each round.
const SECTORS: u64 = 16;
/// Copies that may wait in buffers of the FTL.
const BUFFERED: usize = 300;

type Device = Driver<AnyFtl<FaultInjector<Media>>, (FtlConfig, FtlRun)>;

fn timing() -> DeviceTiming {
    DeviceTiming::preset(TIMING).expect("a preset")
}

fn kinds() -> [FtlConfig; 4] {
    let device = |map_unit_bytes, power_safe| {
        let buffer =
            BufferConfig { size_bytes: 512 << 10, power_safe, ..DeviceConfig::default().buffer };
        let base = DeviceConfig { map_unit_bytes, buffer, ..DeviceConfig::default() };
        FtlConfig::Device(DeviceConfig { instances: 2, op_hundredths: 60 * 100, ..base })
    };
    let pages = [device(4 << 10, false), device(16 << 10, false), device(4 << 10, true)];
    let [small, large, safe] = pages;
    [FtlConfig::Pblk(config()), small, large, safe]
}

fn attached(mut ftl: AnyFtl<FaultInjector<Media>>, setup: (FtlConfig, FtlRun)) -> Device {
    ftl.attach(Attach::new(Some(Host::with_cores(1)), &timing(), Attach::COPY_NS_PER_SECTOR));
    Driver::of(ftl, setup)
}

fn fresh(choices: &FtlConfig, run: FtlRun) -> Device {
    let media = MediaConfig { timing: timing().nand, ..MediaConfig::new(GEOMETRY) };
    let media = FaultInjector::new(Media::new(media).expect("a device"), Faults::default(), 1);
    let ftl = choices.format(media, run, timing().link).expect("fits");
    attached(ftl, (choices.clone(), run))
}

fn power_cut(device: Device) -> Device {
    let Driver { mut ftl, now, setup } = device;
    ftl.media_mut().inner_mut().power_cut(now, &mut Stream::new(1, "cut"));
    let (media, (choices, run)) = (ftl.power_off(), setup);
    let mounted = choices.mount(media, run, timing().link, now);
    let ftl = mounted.map_err(|(_, error)| error).expect("mounts");
    ftl.check_invariants().expect("invariants");
    attached(ftl, (choices, run))
}

/// Writes the first `sectors` sectors, with bytes that say something.
fn write(device: &mut Device, sectors: u64, fill: u8, flags: Flags) {
    let bytes = vec![fill; sectors as usize * 4_096];
    let payload = Payload::from_bytes(&bytes).expect("whole sectors");
    let bio = Bio::write(Lba(0), sectors as u32, payload).with(flags);
    assert_eq!(device.run(bio).result, Ok(Reply::None));
}

/// A device that has written the first sectors with bytes, and so much else that no buffer holds them.
fn written(choices: &FtlConfig, run: FtlRun) -> Device {
    let mut device = fresh(choices, run);
    write(&mut device, SECTORS, 1, Flags::NONE);
    for lba in 64..1_024 {
        device.write(lba, 7, Flags::NONE);
    }
    device.flush();
    assert_eq!(kept(&device), SECTORS as usize);
    device
}

/// What a read of one of these sectors replies.
fn holds(fill: u8) -> Result<Reply, BlockError> {
    Ok(Reply::Data(Payload::from_bytes(&[fill; 4_096]).expect("a sector")))
}

fn assert_holds(device: &mut Device, fill: u8) {
    for lba in 0..SECTORS {
        assert_eq!(device.read(lba), holds(fill), "lba {lba}");
    }
}

/// Sectors on media whose bytes are kept.
fn kept(device: &Device) -> usize {
    let media = device.ftl.media();
    let sectors = GEOMETRY.all_chunks().flat_map(|chunk| {
        (0..media.chunk(chunk).wp).map(move |sector| GEOMETRY.ppa(chunk, sector))
    });
    let is_data = |at| media.oob(at).kind == Kind::Data && media.oob(at).key <= KEY_MAX;
    sectors.filter(|&at| media.is_droppable(at) && is_data(at)).count()
}

/// However often metadata are written, media keep the newest, the sectors that are in a buffer besides, and after a
/// mount the newest alone.
#[test]
fn memory_follows_what_lives() {
    for choices in kinds() {
        let mut device = fresh(&choices, FtlRun::default());
        let rounds = 200;
        for round in 1..=rounds {
            write(&mut device, SECTORS, round, Flags::NONE);
            device.flush();
        }
        let (kept_now, dropped) = (kept(&device), device.ftl.report().dropped_sectors);
        assert!(kept_now <= SECTORS as usize + BUFFERED, "{choices:?}: {kept_now} are kept");
        assert!(dropped > u64::from(rounds) * SECTORS / 4, "{choices:?}: {dropped} were dropped");
        assert_holds(&mut device, rounds);
        let mut device = power_cut(device);
        assert_eq!(kept(&device), SECTORS as usize, "{choices:?}");
        assert_holds(&mut device, rounds);
    }
}

/// What supersedes a sector may be lost with a power cut: until it is durable the sector is kept.
#[test]
fn what_a_power_cut_brings_back_is_kept() {
    let shown = |choices: &FtlConfig, omit| {
        let mut device = written(choices, FtlRun { omit, ..FtlRun::default() });
        write(&mut device, 1, 2, Flags::NONE);
        power_cut(device).read(0)
    };
    let [pblk, small, large, _] = kinds();
    for choices in [pblk, small, large] {
        assert_eq!(shown(&choices, None), holds(1), "{choices:?}");
        let zeroes = Ok(Reply::Data(Payload::Run(Tag::ZERO)));
        assert_eq!(shown(&choices, Some(OmittedRule::DropEarly)), zeroes, "{choices:?}");
    }
}

/// A discard is durable with its record: until then what it supersedes is kept.
#[test]
fn what_is_discarded_is_kept_until_the_record_is_durable() {
    let [pblk, small, large, _] = kinds();
    for choices in [pblk, small, large] {
        let mut device = written(&choices, FtlRun::default());
        device.run(Bio::discard(Lba(0), SECTORS as u32));
        assert_eq!(kept(&device), SECTORS as usize, "{choices:?}");
        device.flush();
        let dropped = device.ftl.report().dropped_sectors;
        assert_eq!((kept(&device), dropped), (0, SECTORS), "{choices:?}");
    }
}

/// Where media cannot read what superseded a sector a mount may return it: it is kept.
#[test]
fn what_a_lost_sector_superseded_is_kept() {
    for choices in kinds() {
        let mut device = written(&choices, FtlRun::default());
        device.ftl.media_mut().faults_mut().unreadable_rate = 1.0;
        write(&mut device, 1, 2, Flags::FUA);
        device.flush();
        device.ftl.media_mut().faults_mut().unreadable_rate = 0.0;
        let lost = matches!(device.read(0), Err(BlockError::Io { .. }));
        let kept = kept(&device);
        assert_eq!(kept > SECTORS as usize, lost, "{choices:?}: {kept} are kept");
    }
}
