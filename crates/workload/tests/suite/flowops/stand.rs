//! A workload on an ext4 in memory.

use nandscape_block::AsyncDevice;
use nandscape_block::mem::MemDevice;
use nandscape_fs::contract::{Attr, Caller, FileSystem, FsError, Ino, SyscallCost};
use nandscape_fs::ext4::mkfs::{MkfsOptions, mkfs};
use nandscape_fs::ext4::{Ext4, MountOptions};
use nandscape_rt::{Executor, Host, Nanos};
use nandscape_workload::target::make_directory;
use nandscape_workload::wml::engine::{Report, Session, Settings, TableRow, lay_out, preload};
use nandscape_workload::wml::{Tree, Workload, parse};
use std::rc::Rc;

/// 512 MiB.
const SECTORS: u64 = 131_072;
/// What a call takes of a core.
pub(crate) const CALL: Nanos = Nanos(10_000);
/// What the device takes for anything.
pub(crate) const LATENCY: Nanos = Nanos(60_000);

type Fs = Ext4;

/// What is left of a run.
pub(crate) struct Ran {
    pub(crate) report: Report,
    pub(crate) sets: Vec<Tree>,
    executor: Executor,
    fs: Fs,
}

/// A file, or a directory, found after a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    /// Its path from the root.
    pub(crate) path: String,
    pub(crate) attr: Attr,
    pub(crate) is_directory: bool,
}

fn workload(text: &str) -> Rc<Workload> {
    Rc::new(parse(text, "test.f", &[]).unwrap_or_else(|error| panic!("{error}")))
}

/// Runs a workload to its end.
pub(crate) fn run(text: &str) -> Ran {
    run_with(text, 1)
}

pub(crate) fn run_with(text: &str, seed: u64) -> Ran {
    let workload = workload(text);
    let trees: Vec<Tree> =
        workload.filesets.iter().map(|fileset| Tree::new(fileset, seed).unwrap()).collect();
    let mut executor = Executor::on_virtual_clock();
    let rt = executor.handle();
    let device = AsyncDevice::new(&rt, MemDevice::new(SECTORS).with_latency(LATENCY)).erased();
    let (handle, sets, plan) = (rt.clone(), trees.clone(), Rc::clone(&workload));
    let (fs, planted) = executor
        .block_on(async move {
            mkfs(&device, &MkfsOptions::new(seed)).await.unwrap();
            let (fs, _) = Ext4::mount(&handle, device, MountOptions::default()).await.unwrap();
            let planted = lay_out(&fs, &plan, &sets).await.unwrap();
            preload(&fs, &plan, &planted).await.unwrap();
            (fs, planted)
        })
        .unwrap();
    let settings = Settings {
        seed,
        host: Host::with_cores(4),
        cost: SyscallCost { call: CALL, copy: Nanos::ZERO },
    };
    let mut session = Session::new(&rt, Rc::new(fs.clone()), &workload, planted, settings);
    let began = rt.now();
    session.start();
    let end = workload.length.map_or(Nanos::MAX, |length| began + length);
    while !session.is_over() && rt.now() < end {
        executor.run_until((rt.now() + Nanos::from_ms(10)).min(end));
    }
    session.stop();
    let report = session.report(rt.now());
    Ran { report, sets: trees, executor, fs }
}

impl Ran {
    /// The flowops of a name.
    pub(crate) fn row(&self, name: &str) -> TableRow {
        let table = self.report.table();
        table.into_iter().find(|row| row.name == name).unwrap_or_else(|| panic!("no row {name}"))
    }

    /// Makes the filesets of another workload on what is there.
    pub(crate) fn lay_out(&mut self, text: &str) -> Result<(), (usize, FsError)> {
        let (fs, workload) = (self.fs.clone(), workload(text));
        let trees: Vec<Tree> =
            workload.filesets.iter().map(|fileset| Tree::new(fileset, 1).unwrap()).collect();
        let made = self.executor.block_on(async move { lay_out(&fs, &workload, &trees).await });
        made.unwrap().map(drop)
    }

    /// Makes a folder and those above it.
    pub(crate) fn folder(&mut self, path: &str) -> Ino {
        let (fs, path) = (self.fs.clone(), path.to_owned());
        let made = self.executor.block_on(async move {
            let mut at = fs.root();
            for step in path.split('/').filter(|step| !step.is_empty()) {
                at = make_directory(&fs, at, step).await.unwrap();
            }
            at
        });
        made.unwrap()
    }

    /// Makes so many files in a folder of this name in that of the fileset `a`.
    pub(crate) fn plant(&mut self, name: &str, files: u32) {
        let (fs, at) = (self.fs.clone(), self.folder(&format!("/tmp/a/{name}")));
        let made = self.executor.block_on(async move {
            for file in 0..files {
                let name = file.to_string();
                fs.create(Caller::default(), at, name.as_bytes(), 0o644).await.unwrap();
            }
        });
        made.unwrap();
    }

    /// Everything below `/tmp` after the run.
    pub(crate) fn found(&mut self) -> Vec<Found> {
        let fs = self.fs.clone();
        self.executor.block_on(async move { walk(&fs).await }).unwrap()
    }

    /// Files of a fileset after the run.
    pub(crate) fn files(&mut self, fileset: &str) -> Vec<Found> {
        let prefix = format!("/tmp/{fileset}/");
        let all = self.found().into_iter();
        all.filter(|found| !found.is_directory && found.path.starts_with(&prefix)).collect()
    }
}

async fn walk(fs: &Fs) -> Vec<Found> {
    let caller = Caller::default();
    let mut found = Vec::new();
    let top = fs.lookup(caller, fs.root(), b"tmp").await.unwrap();
    let mut waiting: Vec<(String, Ino)> = vec![("/tmp".into(), top.ino)];
    while let Some((path, directory)) = waiting.pop() {
        let mut cookie = 0;
        loop {
            let names = fs.readdir(caller, directory, cookie, 64).await.unwrap();
            let Some(last) = names.last() else { break };
            cookie = last.cookie;
            for entry in names.iter().filter(|entry| entry.name != b"." && entry.name != b"..") {
                let path = format!("{path}/{}", String::from_utf8_lossy(&entry.name));
                let attr = fs.getattr(caller, entry.ino).await.unwrap();
                let is_directory = attr.kind == nandscape_fs::contract::Kind::Directory;
                if is_directory {
                    waiting.push((path.clone(), entry.ino));
                }
                found.push(Found { path, attr, is_directory });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// A process with one thread that does these flowops.
pub(crate) fn one_thread(definitions: &str, flowops: &str, end: &str) -> String {
    format!(
        "set $dir=/tmp\n{definitions}\ndefine process name=p {{\n thread name=t {{\n{flowops}\n }}\n}}\n{end}\n"
    )
}
