"""Lets our F2FS and the kernel's judge each other, in two boots: `check.py --ours`.

1. Volumes that we filled, with cleaning, and unmounted: the kernel mounts them and reads what we read.
2. Volumes of ours that were cut off after fsyncs: the kernel rolls them forward to the tree that our recovery
   makes, and fsck.f2fs finds nothing then.
3. Volumes that the kernel filled, unmounted or cut off after fsyncs: we read what the kernel reads, roll forward to
   its tree, keep what it fsynced; changed by us they are sound for fsck.f2fs, and the kernel reads what we read.

Our side are the tests `judged` of crates/fs/tests/f2fs. Standard library only.
"""

import os
import pathlib
import subprocess
import time

import vm
from checks import FEATURES, RECOVERED, Checks, make, outcomes_ok
from compare import compare

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Volumes of each kind that we fill, and the same for a short run.
VOLUMES, QUICK = 24, 8
# Volumes that the kernel fills: name, MiB, arguments of mkfs.f2fs, mount options, job.
THEIRS = (
    ("clean", 64, [], "-", "fill 11 small"),
    ("clean-features", 64, ["-O", FEATURES], "mode=lfs", "fill 12 small"),
    ("clean-sections", 192, ["-s", "4"], "-", "fill 13 small"),
    ("clean-full", 100, [], "active_logs=4,noinline_dentry,noinline_data", "fill 14 full"),
    ("cut", 64, [], "-", "cut 15 small"),
    ("cut-features", 64, ["-O", FEATURES], "mode=lfs", "cut 16 small"),
    ("cut-strict", 64, [], "fsync_mode=strict", "cut 17 small"),
    ("cut-sections", 192, ["-s", "4", "-O", "extra_attr,inode_crtime"], "active_logs=4", "cut 18 small"),
    ("cut-full", 100, [], "mode=lfs", "cut 19 full"),
)
# Those of a short run.
QUICK_THEIRS = ("clean-features", "clean-sections", "cut", "cut-features")


def rust(test, folder, volumes, first):
    """Runs one of our tests on the folder. With the whole workspace, so that what its tests have built is not built again
    with fewer features of libraries; programs of this name in other packages find no such test."""
    words = ["cargo", "test", "--quiet", "--locked", "--workspace", "--test", "f2fs"]
    environment = {**os.environ, "NANDSCAPE_F2FS_JUDGED": str(folder), "NANDSCAPE_F2FS_VOLUMES": str(volumes),
                   "NANDSCAPE_F2FS_VOLUMES_FROM": str(first)}
    tested = ["--", "--ignored", "--exact", f"judged::{test}", "--nocapture"]
    subprocess.run(words + (["--no-run"] if not test else tested), cwd=ROOT, env=environment, check=True)


class Timer:
    """Prints how long each part took."""

    def __init__(self):
        self.at = time.monotonic()

    def lap(self, what):
        """Ends a part."""
        now = time.monotonic()
        print(f"{what}: {now - self.at:.1f} s", flush=True)
        self.at = now


def copied(image, name):
    """A copy of an image beside it."""
    copy = image.with_name(f"{name}.img")
    subprocess.run(["cp", "--sparse=always", image, copy], check=True)
    return copy


def first_boot(folder, cache, theirs):
    """The kernel reads and recovers our volumes, and fills its own: outcomes by name."""
    names, plan = [], []
    for text in (folder / "ours").read_text().splitlines():
        name, options, *_ = text.split(" ")
        image = folder / f"{name}.img"
        if name.startswith("cut"):
            plan.append(f"{copied(image, f'{name}-recovered')} {options} manifest keep")
        else:
            plan.append(f"{image} {options} manifest")
        names.append(name)
    named = [(f"theirs-{name}", *rest) for name, *rest in theirs]
    lines = [vm.Line.parse(text) for text in plan] + make(folder, named)
    names += [name for name, *_ in named]
    return dict(zip(names, vm.boot(lines, folder / "first", cache)))


def judge_ours(checks, folder, outcomes):
    """What must hold for our volumes."""
    for name, found in outcomes.items():
        expected, manifest = folder / f"{name}.manifest", found.folder / "manifest"
        if name.startswith("filled"):
            checks.equal(f"{name}: the kernel reads what we read", expected, manifest)
        elif name.startswith("cut"):
            checks.equal(f"{name}: the kernel's roll-forward is ours", expected, manifest, ignore_of_directories=RECOVERED)
            checks.fsck(f"{name} after the kernel's recovery", found.line.image)


def second_boot(folder, cache, filled):
    """The kernel reads, and recovers, its volumes, and reads them as we have changed them."""
    names, plan = [], []
    for name, found in filled.items():
        image = folder / f"{name}.img"
        if found.line.job == "cut" and "strict" not in found.line.options:
            names.append((name, "read"))
            plan.append(f"{image} ro,norecovery manifest")
        names += [(name, "manifest"), (f"{name}-changed", "manifest")]
        plan += [f"{image} - manifest", f"{folder}/{name}-changed.img - manifest"]
    return dict(zip(names, vm.boot([vm.Line.parse(text) for text in plan], folder / "second", cache)))


def judge_theirs(checks, folder, filled, outcomes):
    """What must hold for the kernel's volumes."""
    words = {"read": "we read the kernel's checkpoint as it does", "manifest": "we show what the kernel shows"}
    for (name, what), found in outcomes.items():
        is_recovered = filled.get(name) and filled[name].line.job == "cut" and what == "manifest"
        checks.equal(f"{name}: {words[what]}", found.folder / "manifest", folder / f"{name}.{what}",
                     ignore_of_directories=RECOVERED if is_recovered else ())
    for name, found in filled.items():
        if found.line.job == "cut":
            lost = compare(found.folder / "fsynced", folder / f"{name}.manifest", subset=True)
            checks.that(not lost, f"{name}: rolled forward by us, fsynced files are as they were", lost)


def check(folder, cache, first, quick):
    """Our volumes, a boot, the kernel's volumes, another boot. Exit code."""
    checks, timer, started = Checks(), Timer(), time.monotonic()
    volumes = QUICK if quick else VOLUMES
    rust("", folder, volumes, first)
    timer.lap("our tests built")
    rust("ours::make", folder, volumes, first)
    timer.lap("our volumes made")
    outcomes = first_boot(folder, cache, [one for one in THEIRS if not quick or one[0] in QUICK_THEIRS])
    timer.lap("first boot")
    outcomes_ok(checks, outcomes.values())
    judge_ours(checks, folder, outcomes)
    filled = {name: found for name, found in outcomes.items() if name.startswith("theirs")}
    (folder / "theirs").write_text("".join(f"{name}\n" for name in filled))
    timer.lap("our volumes judged")
    rust("theirs::use_them", folder, volumes, first)
    timer.lap("the kernel's volumes read, recovered and changed")
    outcomes = second_boot(folder, cache, filled)
    timer.lap("second boot")
    outcomes_ok(checks, outcomes.values())
    judge_theirs(checks, folder, filled, outcomes)
    timer.lap("the kernel's volumes judged")
    print(f"{checks.passed} passed, {checks.failed} failed, {time.monotonic() - started:.1f} s")
    return 1 if checks.failed else 0
