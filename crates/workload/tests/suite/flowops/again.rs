//! Filesets on a file system that holds something already: as in Filebench, the directory of a fileset is
//! removed first, unless its files are to be used again.

use crate::flowops::stand::{Found, Ran, one_thread, run};
use nandscape_fs::contract::FsError;

/// A workload with this fileset of six files.
fn fileset(attributes: &str) -> String {
    let define = format!(
        "define fileset name=a,path=/tmp,entries=6,leafdirs=2,dirwidth=100,dirgamma=0,{attributes}"
    );
    one_thread(&define, "flowop statfile name=s,filesetname=a,iters=1", "run 1")
}

/// A file system after a run on files of 8 KiB, with a folder of its own in the fileset's.
fn used() -> (Ran, Vec<Found>) {
    let mut ran = run(&fileset("size=8k,prealloc"));
    ran.plant("more", 5000);
    let before = ran.files("a");
    assert_eq!(before.len(), 6 + 5000);
    (ran, before)
}

fn identities(files: &[Found]) -> Vec<(String, u64, u32)> {
    files.iter().map(|f| (f.path.clone(), f.attr.ino.0, f.attr.generation)).collect()
}

/// Nothing of what was there stays, however much it was.
#[test]
fn a_fileset_begins_anew() {
    let (mut ran, before) = used();
    ran.lay_out(&fileset("size=8k,prealloc")).unwrap();
    let after = ran.files("a");
    assert_eq!(after.len(), 6);
    let before = identities(&before);
    assert!(identities(&after).iter().all(|file| !before.contains(file)), "all are new");
}

/// Files that are there are used: as they are, cut, or written to the length that they are to have. Those
/// that are not to be there at the beginning go; what has other names is left alone.
#[test]
fn files_are_used_again() {
    for (size, bytes) in [("8k", 8192), ("4k", 4096), ("20k", 20480)] {
        let (mut ran, before) = used();
        ran.lay_out(&fileset(&format!("size={size},prealloc,reuse"))).unwrap();
        let after = ran.files("a");
        assert_eq!(identities(&after), identities(&before), "{size}");
        let ours = after.iter().filter(|file| !file.path.contains("more"));
        assert!(ours.clone().all(|file| file.attr.size == bytes), "{size}");
        assert_eq!(ours.count(), 6);
    }
    let (mut ran, _) = used();
    ran.lay_out(&fileset("size=8k,prealloc=0,reuse")).unwrap();
    assert_eq!(ran.files("a").len(), 5000);
}

/// A file in the place of a directory, or the other way round, is no fileset.
#[test]
fn names_may_be_in_the_way() {
    let (mut ran, _) = used();
    let below = |path: &str, more: &str| {
        let define = format!(
            "define fileset name=b,path={path},entries=1,dirwidth=100,dirgamma=0,prealloc{more}"
        );
        one_thread(&define, "flowop statfile name=s,filesetname=b,iters=1", "run 1")
    };
    let found = ran.lay_out(&below("/tmp/a/more/0", "")).unwrap_err();
    assert_eq!(found, (0, FsError::NotDirectory));
    let place = {
        let (mut other, _) = used();
        other.lay_out(&below("/tmp", "")).unwrap();
        other.files("b").remove(0).path
    };
    ran.folder(&place);
    let found = ran.lay_out(&below("/tmp", ",reuse")).unwrap_err();
    assert_eq!(found, (0, FsError::IsDirectory));
    ran.lay_out(&below("/tmp", "")).unwrap();
    assert_eq!(ran.files("b").len(), 1);
}
