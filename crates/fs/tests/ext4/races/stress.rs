//! Several tasks that call anything ([`steps`](super::steps)), in every data mode and with both kinds
//! of commit, on roomy and on nearly full volumes, with little memory.
//!
//! - No call waits for ever, or ends with an error that its arguments do not explain.
//! - No file shows what is another's, in operation or after the next mount.
//! - What a refused bio left half done, the volume says.
//! - However it ends, by an unmount, by one in the midst of calls, or by a power cut, our check finds
//!   nothing after the next mount, and of one volume in about twenty e2fsck neither.

use super::steps::{Habits, Reports, Worker, foreign, is_ordinary};
use super::*;
use crate::common::device::store;
use crate::common::{Scratch, assert_clean, e2fsprogs};
use nandscape_fs::contract::{FsError, Kind};
use nandscape_fs::ext4::DataMode;
use nandscape_rt::combine::join_all;
use nandscape_rt::{JoinHandle, Stream};
use std::cell::Cell;
use std::rc::Rc;

/// Blocks of a volume that runs full again and again.
const NEARLY_FULL: u64 = 2_200;
const TASKS: u16 = 8;
const STEPS: u64 = 150;
/// One volume in so many is shown to e2fsck; nothing else goes by this number, so that all kinds come.
const E2FSCK_EVERY: u64 = 19;

const KINDS: [(DataMode, Commit); 4] = [
    (DataMode::Ordered, Commit::Jbd2),
    (DataMode::Writeback, Commit::Jbd2),
    (DataMode::Journal, Commit::Jbd2),
    (DataMode::Ordered, IJOURNAL),
];

/// How the first mount ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// With an unmount, after all tasks.
    Unmount,
    /// With an unmount while they still call.
    Early,
    Cut,
}

/// What the device refuses now and then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refused {
    Nothing,
    Data,
    Reads,
    /// And flushes.
    Writes,
}

#[derive(Clone, Copy, Debug)]
struct Arm {
    end: End,
    drops: bool,
    refused: Refused,
}

const WHOLE: Arm = Arm { end: End::Unmount, drops: false, refused: Refused::Nothing };

/// An arm with a seed, which decides on the rest.
#[derive(Clone, Copy)]
struct Plan {
    arm: Arm,
    seed: u64,
    delay_ns: u64,
    data: DataMode,
    commit: Commit,
}

impl Plan {
    fn new(arm: Arm, seed: u64) -> Self {
        let (data, commit) = match KINDS[(seed % 4) as usize] {
            // A refused page of a new block shows there what it held before, as after a power cut.
            (DataMode::Writeback, commit) if arm.refused != Refused::Nothing => {
                (DataMode::Ordered, commit)
            }
            kind => kind,
        };
        let delay_ns = [2_000, 40_000, 400_000][(seed / 3 % 3) as usize];
        Self { arm, seed, delay_ns, data, commit }
    }

    fn options(&self) -> MountOptions {
        let mut rng = Stream::new(self.seed, "options");
        let mut one_of = |all: [u64; 3]| all[rng.below(3) as usize];
        let cache = CacheConfig {
            pages: one_of([30, 100, 400]),
            age: Nanos::from_ms(2),
            period: Nanos::from_ms(1),
            ..CacheConfig::default()
        };
        MountOptions {
            data: self.data,
            commit: self.commit,
            commit_interval: Nanos(one_of([300_000, 5_000_000, 5_000_000_000])),
            cache,
            buffers: one_of([4, 16, 1_000]) as usize,
            inodes: one_of([1, 8, 1_000]) as usize,
            seed: self.seed,
            ..MountOptions::default()
        }
    }

    fn habits(&self) -> Habits {
        let expected = match self.arm {
            Arm { end: End::Early, .. } => is_ordinary_or_late,
            Arm { refused: Refused::Nothing, .. } => is_ordinary,
            _ => is_ordinary_or_refused,
        };
        let drop_ns = if self.arm.drops { 5 * self.delay_ns } else { 0 };
        Habits { steps: STEPS, drop_ns, expected }
    }

    /// Whether a file may show what is not its own: that much `writeback` allows after a power cut.
    fn may_show_others(&self) -> bool {
        self.arm.end == End::Cut && self.data == DataMode::Writeback
    }
}

fn is_ordinary_or_late(error: &FsError) -> bool {
    is_ordinary(error) || *error == FsError::ReadOnly
}

fn is_ordinary_or_refused(error: &FsError) -> bool {
    is_ordinary(error) || matches!(error, FsError::Io(_) | FsError::ReadOnly)
}

/// What a mount leaves.
struct Left {
    medium: MemDevice,
    reports: Vec<String>,
    /// Free blocks and inodes, where they are known; where they are not, nothing is reported of the rest.
    free: Option<(u64, u64)>,
    /// The device refused what an unmount cannot do without.
    failed: bool,
}

/// Sets tasks to work.
async fn at_work(
    plan: &Plan,
    stand: &Stand,
    fs: &Ext4,
    reports: &Reports,
    made: &Rc<Cell<u64>>,
) -> Vec<JoinHandle<()>> {
    let mut dirs = vec![fs.root()];
    for name in [b"x", b"y"] {
        dirs.push(fs.mkdir(ME, fs.root(), name, 0o755).await.expect("room").ino);
    }
    refuse_some(plan, stand);
    let work = |thread| {
        let worker = Worker {
            rt: stand.rt.clone(),
            fs: fs.clone(),
            me: Caller { thread, core: thread % 2, uid: 0, gid: 0 },
            dirs: dirs.clone(),
            rng: Stream::new(plan.seed, &format!("task {thread}")),
            habits: plan.habits(),
            reports: Rc::clone(reports),
            made: Rc::clone(made),
        };
        stand.rt.spawn("task", worker.work())
    };
    (0..TASKS).map(work).collect()
}

fn refuse_some(plan: &Plan, stand: &Stand) {
    let refused = plan.arm.refused;
    let mut rng = Stream::new(plan.seed, "refused");
    stand.refuse(move |bio| {
        let chance = match (refused, bio.op) {
            (Refused::Data, Op::Write) if is_data(bio) => 0.02,
            (Refused::Reads, Op::Read) => 0.01,
            (Refused::Writes, Op::Write | Op::Flush) => 0.002,
            _ => 0.0,
        };
        rng.chance(chance)
    });
}

/// The first mount, until it ends as the arm says.
async fn first(plan: Plan, stand: Stand) -> Left {
    let fs = stand.mount(&plan.options()).await;
    let reports = Reports::default();
    let made = Rc::default();
    let tasks = at_work(&plan, &stand, &fs, &reports, &made).await;
    match plan.arm.end {
        End::Unmount => {
            join_all(tasks).await;
            stand.refuse(|_| false);
            let free = space(&plan, &stand, &fs).await;
            let unmounted = stand.ends(fs.unmount()).await;
            left(&plan, &stand, reports.take(), unmounted, free).await
        }
        End::Early => {
            midst(&plan, &stand, &tasks, &made).await;
            let unmounted = stand.ends(fs.unmount()).await;
            if plan.seed / 4 % 2 == 1 {
                join_all(tasks).await;
            }
            left(&plan, &stand, reports.take(), unmounted, None).await
        }
        End::Cut => {
            midst(&plan, &stand, &tasks, &made).await;
            Left { medium: stand.cut(), reports: reports.take(), free: None, failed: false }
        }
    }
}

/// Waits until the tasks have made so many steps as the seed says, and some time into the next.
async fn midst(plan: &Plan, stand: &Stand, tasks: &[JoinHandle<()>], made: &Cell<u64>) {
    let mut rng = Stream::new(plan.seed, "midst");
    let enough = rng.below(STEPS * u64::from(TASKS));
    while made.get() < enough && !tasks.iter().all(JoinHandle::is_finished) {
        stand.rt.sleep(Nanos(1 + rng.below(plan.delay_ns))).await;
    }
}

/// What is free once everything is where it belongs; half of the volumes go without the sync.
async fn space(plan: &Plan, stand: &Stand, fs: &Ext4) -> Option<(u64, u64)> {
    if plan.seed / 4 % 2 == 1 || plan.arm.drops || plan.arm.refused != Refused::Nothing {
        return None;
    }
    stand.ends(fs.syncfs(ME)).await.expect("a sync ends").expect("power is on");
    let space = fs.statfs(ME).await.expect("space");
    Some((space.free, space.files_free))
}

/// What an unmount leaves.
async fn left(
    plan: &Plan,
    stand: &Stand,
    mut reports: Vec<String>,
    unmounted: Result<Result<(), FsError>, Elapsed>,
    free: Option<(u64, u64)>,
) -> Left {
    let refused = plan.arm.refused;
    let mut failed = match unmounted {
        Ok(Ok(())) => false,
        // It reported a page that was refused.
        Ok(Err(FsError::Io(_))) if refused == Refused::Data => false,
        Ok(Err(FsError::Io(_) | FsError::ReadOnly)) if refused != Refused::Nothing => true,
        other => {
            reports.push(format!("unmount: {other:?}"));
            true
        }
    };
    if !failed {
        let findings = stand.findings().await;
        // A change that a refusal left half done is for e2fsck to mend.
        failed = refused != Refused::Nothing && is_marked(&findings);
        reports.extend(findings.into_iter().filter(|_| !failed));
    }
    // An unmount leaves nothing under way that could still be lost.
    Left { medium: stand.cut(), reports, free, failed }
}

/// The second mount, in which everything is looked at.
async fn second(plan: Plan, stand: Stand, free: Option<(u64, u64)>) -> (Vec<String>, MemDevice) {
    let mounted = Ext4::mount(&stand.rt, stand.device.erased(), plan.options()).await;
    let fs = match mounted {
        Ok((fs, _)) => fs,
        Err(error) => return (vec![format!("mount: {error:?}")], stand.take()),
    };
    let mut reports = Vec::new();
    let space = fs.statfs(ME).await.expect("space");
    let after = (space.free, space.files_free);
    if free.is_some_and(|before| before != after) {
        reports.push(format!("free before {free:?}, after {after:?}"));
    }
    if !plan.may_show_others() {
        look(&fs, &mut reports).await;
    }
    match stand.ends(fs.unmount()).await {
        Ok(Ok(())) => reports.extend(stand.findings().await),
        other => reports.push(format!("second unmount: {other:?}")),
    }
    (reports, stand.take())
}

/// Reads every file.
async fn look(fs: &Ext4, reports: &mut Vec<String>) {
    let mut waiting = vec![fs.root()];
    while let Some(dir) = waiting.pop() {
        let entries = fs.readdir(ME, dir, 0, 1_000).await.expect("names");
        for entry in entries.into_iter().filter(|entry| !entry.name.starts_with(b".")) {
            let attr = fs.getattr(ME, entry.ino).await.expect("attributes");
            match attr.kind {
                Kind::Directory => waiting.push(entry.ino),
                Kind::File => {
                    let read = get(fs, entry.ino, Io::Buffered).await;
                    reports.extend(foreign(&attr, &read).map(|what| format!("at last: {what}")));
                }
                _ => {}
            }
        }
    }
}

/// One volume, from its format to its end.
fn round(arm: Arm, seed: u64, stored: &[Stored; 2], e2fsck: bool) -> Result<(), String> {
    let plan = Plan::new(arm, seed);
    let fua = if seed % 7 == 6 { Fua::Refused } else { Fua::Honoured };
    let medium = stored[usize::from(seed.is_multiple_of(5))].medium(fua);
    let left = on(medium, seed, plan.delay_ns, async move |stand| first(plan, stand).await);
    let mut reports = left.reports;
    if reports.is_empty() && !left.failed {
        let (more, medium) =
            on_quick(left.medium, async move |stand| second(plan, stand, left.free).await);
        reports.extend(more);
        if reports.is_empty() && e2fsck && seed.is_multiple_of(E2FSCK_EVERY) {
            let scratch = Scratch::new();
            let image = scratch.path("image");
            store(&medium, &image);
            assert_clean(&image);
        }
    }
    reports.truncate(3);
    if reports.is_empty() { Ok(()) } else { Err(reports.join("; ")) }
}

fn assert_holds(few: u64, arm: Arm) {
    let stored = [ROOMY, NEARLY_FULL].map(|sectors| Stored::of(&formatted(sectors)));
    let e2fsck = e2fsprogs();
    let failed = over_seeds(few, |seed| round(arm, seed, &stored, e2fsck));
    assert!(failed.is_empty(), "{arm:?}: {failed:#?}");
}

#[test]
fn calls_that_overlap_leave_a_sound_volume() {
    assert_holds(200, WHOLE);
}

#[test]
fn power_cuts_in_the_midst_leave_a_sound_volume() {
    assert_holds(250, Arm { end: End::Cut, ..WHOLE });
}

#[test]
fn an_unmount_in_the_midst_leaves_a_sound_volume() {
    assert_holds(200, Arm { end: End::Early, ..WHOLE });
}

#[test]
fn dropped_calls_leave_a_sound_volume() {
    assert_holds(200, Arm { drops: true, ..WHOLE });
}

#[test]
fn power_cuts_after_dropped_calls_leave_a_sound_volume() {
    assert_holds(150, Arm { end: End::Cut, drops: true, ..WHOLE });
}

#[test]
fn refused_data_leaves_a_sound_volume() {
    assert_holds(80, Arm { refused: Refused::Data, ..WHOLE });
}

#[test]
fn refused_reads_leave_a_sound_volume_or_a_marked_one() {
    assert_holds(80, Arm { refused: Refused::Reads, ..WHOLE });
}

#[test]
fn refused_writes_keep_no_call_waiting() {
    assert_holds(80, Arm { refused: Refused::Writes, ..WHOLE });
}
