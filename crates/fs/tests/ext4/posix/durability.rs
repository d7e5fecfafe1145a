//! Promises about what outlives a power cut, and an unmount.

use super::*;

/// 24: after `fsync`, content, attributes and name survive a power cut.
#[test]
fn fsync_survives_power_cuts() {
    let before = async |fs: &Fs, _: &Handle| {
        let dir = mkdir(fs, fs.root(), "d").await;
        for number in 0..10_u8 {
            let file = create(fs, dir, &format!("f{number}")).await;
            write(fs, file, 0, &vec![number; 5_000 * usize::from(number)]).await;
            fs.fsync(ME, file).await.expect("a sync");
        }
        create(fs, dir, "unsynced").await;
    };
    over_cuts(before, async |fs| {
        let dir = lookup(fs, fs.root(), "d").await.expect("the directory").ino;
        for number in 0..10_u8 {
            let file = lookup(fs, dir, &format!("f{number}")).await.expect("the file");
            assert_eq!(read(fs, file.ino).await, vec![number; 5_000 * usize::from(number)]);
        }
    });
}

/// 25: after `fdatasync`, content and length do.
#[test]
fn fdatasync_survives_power_cuts() {
    let before = async |fs: &Fs, _: &Handle| {
        let file = create(fs, fs.root(), "f").await;
        fs.fsync(ME, file).await.expect("a sync");
        for round in 0..20_u64 {
            write(fs, file, round * 3_000, &[round as u8; 3_000]).await;
            fs.fdatasync(ME, file).await.expect("a sync");
        }
        write(fs, file, 0, &[99; 3_000]).await;
        fs.fdatasync(ME, file).await.expect("a sync of old blocks");
    };
    over_cuts(before, async |fs| {
        let file = lookup(fs, fs.root(), "f").await.expect("the file").ino;
        let bytes = read(fs, file).await;
        assert_eq!(bytes.len(), 60_000);
        let expected = |at: usize| if at < 3_000 { 99 } else { (at / 3_000) as u8 };
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == expected(at)));
    });
}

/// 25, 31: so do writes by a handle with `dsync`, and with `sync` the attributes, too.
#[test]
fn writes_of_syncing_handles_survive_power_cuts() {
    let handles = || {
        let plain = OpenFlags::default();
        [("data", OpenFlags { dsync: true, ..plain }), ("all", OpenFlags { sync: true, ..plain })]
    };
    let before = async move |fs: &Fs, _: &Handle| {
        for (name, flags) in handles() {
            let file = create(fs, fs.root(), name).await;
            fs.fsync(ME, file).await.expect("a sync");
            let opened = fs.open(ME, file, flags).await.expect("open");
            for round in 0..5_u64 {
                let bytes = Data::Bytes(vec![round as u8; 3_000]);
                let written = fs.write_open(ME, opened, round * 3_000, bytes).await;
                assert_eq!(written, Ok((round * 3_000, 3_000)));
            }
        }
    };
    over_cuts(before, async move |fs| {
        for (name, _) in handles() {
            let bytes = read(fs, lookup(fs, fs.root(), name).await.expect("the file").ino).await;
            assert_eq!(bytes.len(), 15_000, "{name}");
            let is_whole = |(at, byte): (usize, &u8)| *byte == (at / 3_000) as u8;
            assert!(bytes.iter().enumerate().all(is_whole), "{name}");
        }
    });
}

/// 26: after `syncfs`, everything does; a rename and a removal too.
#[test]
fn syncfs_survives_power_cuts() {
    let before = async |fs: &Fs, _: &Handle| {
        let root = fs.root();
        for number in 0..20_u8 {
            let file = create(fs, root, &format!("f{number}")).await;
            write(fs, file, 0, &[number; 10_000]).await;
        }
        fs.syncfs(ME).await.expect("a sync");
        fs.rename(ME, (root, b"f0"), (root, b"f1"), RenameMode::Replace).await.expect("a move");
        fs.unlink(ME, root, b"f2").await.expect("no file");
        fs.syncfs(ME).await.expect("a sync");
    };
    over_cuts(before, async |fs| {
        let root = fs.root();
        for (name, number) in [("f1", 0), ("f3", 3), ("f19", 19)] {
            let file = lookup(fs, root, name).await.expect("the file").ino;
            assert_eq!(read(fs, file).await, [number; 10_000]);
        }
        for gone in ["f0", "f2"] {
            assert_eq!(lookup(fs, root, gone).await, Err(FsError::NoEntry));
        }
    });
}

/// 27: what was not synced is there or not, but never half: a name leads to a sound file.
#[test]
fn power_cuts_leave_a_sound_tree() {
    over_cuts(
        async |fs, handle| {
            let root = fs.root();
            for number in 0..90_u64 {
                let name = format!("f{}", number % 30);
                let _ = fs.unlink(ME, root, name.as_bytes()).await;
                let file = create(fs, root, &name).await;
                let tags = Data::Sectors(Payload::Run(Tag::new(1 + number * 64)), 8);
                fs.write(ME, file, 0, tags, Io::Buffered).await.expect("a write");
                if number.is_multiple_of(3) {
                    fs.fsync(ME, file).await.expect("a sync");
                }
                handle.sleep(Nanos::from_ms(100)).await;
            }
        },
        async |fs| {
            for (name, ino) in names(fs, fs.root()).await {
                if !name.starts_with(b"f") {
                    continue;
                }
                let size = fs.getattr(ME, ino).await.expect("attributes").size;
                assert!(size == 0 || size == 32_768, "{size}");
                assert_eq!(read(fs, ino).await.len() as u64, size);
            }
        },
    );
}

/// 28: unmount leaves nothing to recover, and the next mount shows all of it.
#[test]
fn unmount_leaves_a_clean_volume() {
    for data in MODES {
        let mut executor = Executor::on_virtual_clock();
        let handle = executor.handle();
        let ran = executor.block_on(async move {
            let device = device(&handle, 16 * MIB / 4096);
            let config = ext4(data);
            config.format(&device.erased()).await.expect("mkfs");
            let (fs, _) = mount(&config, &handle, &device).await;
            let file = create(&fs, fs.root(), "f").await;
            write(&fs, file, 0, &[3; 50_000]).await;
            fs.unmount().await.expect("an unmount");
            assert!(fs.getattr(ME, file).await.is_err());
            let (again, report) = mount(&config, &handle, &device).await;
            assert!(report.steps.iter().all(|step| step.count == 0), "{report:?}");
            assert_eq!(read(&again, file).await, [3; 50_000]);
        });
        ran.expect("no deadlock");
    }
}
