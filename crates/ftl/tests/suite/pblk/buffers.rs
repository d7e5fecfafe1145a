//! Several write buffers: what each takes, what a flush of one file drains, and that lines of a stream
//! hold nothing else.

use crate::common::{Driver, GEOMETRY, config, holds};
use nandscape_block::{Bio, Flags, FlushScope as BioScope, Lba, Owner, Payload, Tag};
use nandscape_ftl::pblk::config::{
    BaseRouting, Config, CoreChoice, FileRouting, FlushScope, GcStream, Limiter, LineSet, Routing,
};
use nandscape_ftl::pblk::stats::{BufferCounts, BufferRole};
use nandscape_ftl::{Ftl, FtlError, FtlRun, Pblk};
use nandscape_media::{Media, MediaConfig};
use nandscape_rt::Stream;

const TIMED: &str = "nvmevirt-970pro";

/// A device with room for many open lines.
fn routed(routing: Routing) -> Config {
    Config { op_percent: Some(40), routing, write_buffers: 2, ..config() }
}

fn journaled() -> Config {
    routed(Routing { journal: true, ..Routing::default() })
}

fn per_core(files: FileRouting, flush_scope: FlushScope) -> Config {
    let base = BaseRouting::PerCore(CoreChoice::Core);
    let routing = Routing { base, files, ..Routing::default() };
    Config { flush_scope, fsync_threshold: 1, ..routed(routing) }
}

fn owner(file: u64, core: u16) -> Owner {
    Owner { file, generation: 0, thread: core, core }
}

/// A sector of a file, written by a thread on this core.
fn of_file(lba: u64, tag: u64, owner: Owner) -> Bio {
    Bio { owner: Some(owner), ..Bio::write(Lba(lba), 1, Payload::Run(Tag::new(tag))) }
}

fn fsync(owner: Owner) -> Bio {
    Bio { owner: Some(owner), scope: BioScope::Owner, ..Bio::flush() }
}

fn user_sectors(driver: &Driver) -> Vec<u64> {
    driver.detail().buffers.iter().map(|buffer| buffer.user).collect()
}

fn of_role(driver: &Driver, role: BufferRole) -> BufferCounts {
    let detail = driver.detail();
    *detail.buffers.iter().find(|buffer| buffer.role == role).expect("a buffer of this role")
}

/// JS-Pblk: the journal has a buffer and lines of its own, and a journal of less than half a line leaves
/// lines that are empty when they are due. The same load through one buffer copies.
#[test]
fn journal_lines_are_empty_when_they_are_collected() {
    let load = |config: Config| {
        let mut driver = Driver::new("none", config);
        let mut rng = Stream::new(1, "load");
        let sectors = driver.sectors();
        for i in 0..3 * sectors {
            driver.write(200 + rng.below(sectors - 200), i, Flags::NONE);
            driver.write(i % 200, i, Flags::JOURNAL);
        }
        driver.ftl.check_invariants().expect("invariants");
        driver
    };
    // The kernel's limiter keeps so many lines free that the journal's take most of what is left.
    let limiter = Limiter::Reserve(4);
    let separated = load(Config { limiter, ..journaled() });
    let journal = of_role(&separated, BufferRole::Journal);
    assert!(journal.empty_victims > 10, "{journal:?}");
    assert_eq!((journal.victims, journal.victim_valid, journal.gc), (0, 0, 0));
    let mixed = load(Config { limiter, routing: Routing::default(), ..journaled() });
    let copies = |driver: &Driver| driver.report().sectors.gc;
    assert!(copies(&mixed) > copies(&separated), "separation saves copies");
}

/// With nothing but a journal, nothing is ever copied.
#[test]
fn a_journal_alone_has_no_write_amplification() {
    let mut driver = Driver::new("none", journaled());
    for i in 0..4 * driver.sectors() {
        driver.write(i % 900, i, Flags::JOURNAL);
    }
    let stats = driver.report();
    assert_eq!((stats.sectors.gc, stats.gc.victims), (0, 0));
    assert_eq!(stats.sectors.journal, stats.host.written);
}

/// Each core has its buffer; a flush of the device drains all of them.
#[test]
fn cores_have_buffers_of_their_own() {
    let mut driver = Driver::new(TIMED, per_core(FileRouting::None, FlushScope::All));
    for i in 0..3 {
        driver.run(of_file(i, i, owner(1, 0)));
    }
    driver.run(of_file(9, 9, owner(2, 1)));
    driver.flush();
    assert_eq!(user_sectors(&driver), [3, 1]);
    let mut driver = driver.power_cut(per_core(FileRouting::None, FlushScope::All));
    driver.check(&[0, 1, 2]);
    assert_eq!(driver.read(9), holds(9));
}

/// FA-FTL: a file is bound to a buffer when it was fsynced often enough; from then on its fsync drains
/// that buffer alone.
#[test]
fn a_file_that_is_fsynced_gets_a_buffer() {
    let mut driver = Driver::new(TIMED, per_core(FileRouting::FsyncAware, FlushScope::FileRing));
    let (log, other) = (owner(1, 0), owner(2, 0));
    for round in 0..4 {
        driver.run(of_file(round, round, log));
        driver.run(of_file(100 + round, round, other));
        driver.run(fsync(log));
    }
    // Twice through the core's buffer, with the neighbour's data, then alone.
    assert_eq!(user_sectors(&driver), [4, 0, 2, 0]);
    assert_eq!(driver.report().flush.drained_sectors, 2 + 2 + 1 + 1);
}

/// Old data of a file that has just been bound still sits in its core's buffer: the fsync covers both.
#[test]
fn an_fsync_after_binding_covers_what_was_written_before() {
    let config = per_core(FileRouting::FsyncAware, FlushScope::FileRing);
    let mut driver = Driver::new(TIMED, config.clone());
    let log = owner(1, 0);
    driver.run(fsync(log));
    driver.run(of_file(7, 70, log));
    let mut outcome = driver.submit(fsync(log), 5);
    driver.submit(of_file(8, 80, log), 6);
    while outcome.is_none() {
        outcome = driver.step().into_iter().find(|c| c.token.0 == 5).map(|c| c.done);
    }
    driver.run(fsync(log));
    assert_eq!(user_sectors(&driver), [1, 0, 1, 0], "bound in between");
    let mut driver = driver.power_cut(config);
    assert_eq!((driver.read(7), driver.read(8)), (holds(70), holds(80)));
}

/// RFLUSH: of all that is buffered only the file's entries are written, padded, from wherever they are.
#[test]
fn a_flush_of_entries_writes_only_the_files() {
    let config = per_core(FileRouting::None, FlushScope::FileEntries);
    let mut driver = Driver::new(TIMED, config.clone());
    for i in 0..5 {
        driver.run(of_file(i, i, owner(1, (i % 2) as u16)));
        driver.run(of_file(50 + i, 500 + i, owner(2, (i % 2) as u16)));
    }
    driver.run(fsync(owner(2, 0)));
    assert_eq!(user_sectors(&driver), [3, 2]);
    let stats = driver.report();
    assert_eq!(stats.sectors.pad, 5 + 6, "a unit in each buffer");
    driver.ftl.check_invariants().expect("invariants");
    for i in 0..5 {
        assert_eq!(driver.read(i), holds(i), "what was left behind is still there");
    }
    driver.flush();
    let mut driver = driver.power_cut(config);
    driver.check(&[0, 1, 2, 3, 4]);
    for i in 0..5 {
        assert_eq!(driver.read(50 + i), holds(500 + i));
    }
}

/// The behaviours of published code that lose data return before anything is durable.
#[test]
fn artifact_scopes_do_not_wait() {
    let mut eager =
        Driver::new(TIMED, Config { flush_scope: FlushScope::SubmittedOnly, ..config() });
    eager.write_run(0, 8, 5);
    assert!(eager.submit(Bio::flush(), 1).is_some(), "submitted counts as durable");
    let mut narrow = Driver::new(TIMED, per_core(FileRouting::None, FlushScope::RoutedRingOnly));
    narrow.run(of_file(0, 5, owner(1, 1)));
    assert!(narrow.submit(Bio::flush(), 1).is_some(), "core 0's buffer is empty");
}

/// An idle buffer with a few entries does not keep lines from being erased for ever: it is drained,
/// and that is counted.
#[test]
fn idle_buffers_are_drained_when_lines_are_short() {
    let mut driver = Driver::new("none", journaled());
    let sectors = driver.sectors();
    let mut expected: Vec<u64> = (0..sectors).collect();
    driver.write_run(0, sectors, 0);
    for i in 0..3 {
        driver.write(i, 1_000_000 + i, Flags::JOURNAL);
        expected[i as usize] = 1_000_000 + i;
    }
    driver.overwrite(&mut expected, 3, 3 * sectors, 4);
    let stats = driver.report();
    assert!(stats.gc.forced_flushes > 0, "{:?}", stats.gc);
    assert_eq!(of_role(&driver, BufferRole::Journal).user, 3);
    driver.check(&expected);
}

/// Whatever the composition, a full device keeps going under overwrites and comes back from a cut with
/// what was flushed.
#[test]
fn compositions_survive_a_full_device() {
    let base =
        [BaseRouting::Single, BaseRouting::PerCore(CoreChoice::MostFree), BaseRouting::PerQueue];
    let files = [FileRouting::None, FileRouting::FsyncAware, FileRouting::PerFile];
    let streams = [GcStream::Data, GcStream::Own, GcStream::ByOrigin];
    let sets = [LineSet::Device, LineSet::Channel, LineSet::Units(2)];
    for case in 0..9 {
        let routing =
            Routing { base: base[case % 3], files: files[case / 3], journal: case % 2 == 0 };
        let config = Config {
            gc_stream: streams[(case + case / 3) % 3],
            line_set: sets[(case / 2) % 3],
            op_percent: Some(55),
            ..routed(routing)
        };
        let mut driver = Driver::new("none", config.clone());
        let mut expected: Vec<u64> = (0..driver.sectors()).collect();
        driver.write_run(0, driver.sectors(), 0);
        driver.overwrite(&mut expected, 0, 2 * driver.sectors(), case as u64);
        driver.flush();
        driver.ftl.check_invariants().unwrap_or_else(|why| panic!("{config:?}: {why}"));
        let mut driver = driver.power_cut(config);
        driver.check(&expected);
    }
}

/// Choices that exclude each other are refused with the key and a sentence.
#[test]
fn impossible_compositions_are_refused() {
    let refused = |config: Config| {
        let media = Media::new(MediaConfig::new(GEOMETRY)).expect("a device");
        match Pblk::format(media.into(), config, FtlRun::default()) {
            Err(FtlError::Config { key, why }) => {
                assert!(why.split_whitespace().count() > 5, "{key}: {why}");
                key
            }
            other => panic!("not refused: {:?}", other.map(|_| ())),
        }
    };
    let in_normal = Routing { files: FileRouting::FsyncInNormal, ..Routing::default() };
    assert_eq!(refused(routed(in_normal)), "ftl.routing");
    let aware = Routing { files: FileRouting::FsyncAware, ..Routing::default() };
    assert_eq!(refused(Config { fsync_rings: Some(0), ..routed(aware) }), "ftl.routing");
    assert_eq!(refused(Config { fsync_rings: Some(70), ..routed(aware) }), "ftl.routing");
    assert_eq!(refused(Config { line_set: LineSet::Units(3), ..config() }), "ftl.line_set");
    assert_eq!(
        refused(Config { special_ring_sectors: Some(100), ..journaled() }),
        "ftl.special_buffer"
    );
    let many = Routing { base: BaseRouting::PerQueue, ..Routing::default() };
    assert_eq!(refused(Config { write_buffers: 40, ..routed(many) }), "ftl.op_percent");
}
