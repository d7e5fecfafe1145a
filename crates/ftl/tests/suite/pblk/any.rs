//! The type of every kind serves, counts and mounts exactly as the kind itself.

use crate::common::driver::Driver;
use crate::common::{GEOMETRY, config};
use nandscape_block::{Bio, BlockDevice, Flags, Lba, Payload, Tag};
use nandscape_ftl::pblk::config::Config;
use nandscape_ftl::pblk::costs::CpuCosts;
use nandscape_ftl::{
    AnyFtl, Attach, Detail, EraseUnitState, Ftl, FtlConfig, FtlKind, FtlRun, OmittedRule, Pblk,
    Side,
};
use nandscape_media::{DeviceTiming, LinkTiming, Linked, Media, MediaConfig};
use nandscape_rt::{Host, Nanos, Stream};

fn media(timing: &str) -> Media {
    let timing = DeviceTiming::preset(timing).expect("a preset").nand;
    Media::new(MediaConfig { timing, ..MediaConfig::new(GEOMETRY) }).expect("a device")
}

/// Writes, overwrites and flushes enough for garbage to be collected.
fn load<F: Ftl>(device: F) -> F {
    let mut driver = Driver::of(device, ());
    let mut rng = Stream::new(1, "load");
    let sectors = driver.sectors();
    for index in 0..3 * sectors {
        let lba = if index < sectors { index } else { rng.below(sectors) };
        driver.write(lba, index, if index % 7 == 0 { Flags::JOURNAL } else { Flags::NONE });
        if index % 100 == 0 {
            driver.flush();
        }
    }
    driver.flush();
    driver.ftl
}

/// Reports of a device and of the same device behind the common type are equal, before and after a
/// power cut, and the numbers that a series samples are those of the report.
#[test]
fn any_ftl_is_the_ftl_itself() {
    let cpu = CpuCosts::preset("null-block").expect("a preset");
    let config = Config { cpu, ..config() };
    let choices = FtlConfig::Pblk(config.clone());
    let run = FtlRun::default();
    let link = DeviceTiming::preset("nvmevirt-970pro").expect("a preset").link;
    let mut plain = Pblk::format(Linked::new(media("nvmevirt-970pro"), link), config.clone(), run)
        .expect("fits");
    let mut any = choices.format(media("nvmevirt-970pro"), run, link).expect("fits");
    let host = || Attach {
        host: Some(Host::with_cores(config.write_buffers as u16)),
        link,
        copy_ns_per_sector: 1_000,
        times_firmware: true,
    };
    plain.attach(host());
    any.attach(host());
    let (plain, mut any) = (load(plain), load(any));
    let report = any.report();
    assert_eq!(report, plain.report());
    assert_eq!(any.detail(), Detail::Pblk(Box::new(plain.own_counts())));
    assert!(report.gc.victims > 0 && report.sectors.journal > 0 && report.flush.waited > 0);
    assert_eq!(any.sectors(), report.sectors);
    assert_eq!(any.link().counts(), plain.link().counts());
    assert_eq!((any.memory(), any.erase_units()), (plain.memory(), plain.erase_units()));
    let free = any.erase_units().iter().filter(|unit| unit.state == EraseUnitState::Free).count();
    assert_eq!((any.free_erase_units(), plain.free_erase_units()), (free as u64, free as u64));
    assert_eq!((any.now(), any.mapped_sectors()), (plain.now(), plain.mapped_sectors()));
    assert_eq!(any.size(), choices.check(&GEOMETRY).expect("fits"));
    assert_eq!((any.kind(), any.memory().side), (FtlKind::Pblk, Side::Host));
    any.reset_counts();
    assert_eq!(any.report().sectors, Default::default());
    assert_eq!(any.link().counts(), Default::default());
    let now = any.now();
    let any =
        choices.mount(any.power_off(), run, link, now).map_err(|(_, error)| error).expect("mounts");
    any.check_invariants().expect("invariants after mounting");
    assert_eq!(any.mapped_sectors(), any.size().logical_sectors);
    assert!(any.erase_units().iter().any(|unit| unit.state == EraseUnitState::Full));
}

/// What a run decides is no choice: the same configuration makes devices with and without content, and
/// omits a rule only where it is asked to.
#[test]
fn runs_are_beside_the_configuration() {
    let choices = FtlConfig::Pblk(config());
    let caps = |keep_content| {
        let run = FtlRun { keep_content, ..FtlRun::default() };
        choices.format(media("none"), run, LinkTiming::none()).expect("fits").caps().keeps_content
    };
    assert_eq!((caps(true), caps(false)), (true, false));
    let run = FtlRun { omit: Some(OmittedRule::LostTrims), ..FtlRun::default() };
    assert!(run.omits(OmittedRule::LostTrims) && !run.omits(OmittedRule::Sequence));
    assert!(!FtlRun::default().omits(OmittedRule::LostTrims));
}

/// Work on the host takes time only while cores are attached.
#[test]
fn attached_cores_are_charged() {
    let cpu = CpuCosts::preset("qemu").expect("a preset");
    let choices = FtlConfig::Pblk(Config { cpu, ..config() });
    assert!(choices.charges_host());
    let link = LinkTiming::none();
    let device = choices.format(media("none"), FtlRun::default(), link).expect("fits");
    let mut driver = Driver::of(device, ());
    let written = |driver: &mut Driver<AnyFtl<Media>, ()>| {
        let bio = Bio::write(Lba(0), 1, Payload::Run(Tag::new(7)));
        let begun = driver.now;
        (driver.run(bio).at - begun, driver.ftl.detail())
    };
    let requests = |detail| {
        let Detail::Pblk(detail) = detail else { panic!("another kind's report: {detail:?}") };
        detail.cpu.map(|cpu| cpu.requests)
    };
    let (spent, detail) = written(&mut driver);
    assert_eq!((spent, requests(detail)), (Nanos::ZERO, None));
    driver.ftl.attach(Attach {
        host: Some(Host::with_cores(2)),
        link,
        copy_ns_per_sector: 1_000,
        times_firmware: true,
    });
    let (spent, detail) = written(&mut driver);
    assert!(spent > Nanos::ZERO);
    assert_eq!(requests(detail), Some(1));
}
