#!/usr/bin/env python3
"""Shows that the VM judges as it should, on images of mkfs.f2fs alone: what the kernel filled is read equal
after an unmount and after a cut, and a changed byte, a lost roll-forward and a volume that does not
mount are noticed. Two boots. Also writes the fixtures of crates/fs/tests/f2fs/images, and lets the
kernel read them. With --ours it lets the kernel judge our F2FS instead (ours.py), with --areas our
volumes with the area of a GC journal (areas.py).

Standard library only; needs what vm.py needs.
"""

import argparse
import gzip
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time

import areas
import ours
import vm
from checks import BLOCK, FEATURES, RECOVERED, Checks, make, outcomes_ok
from compare import compare

# Name, MiB, arguments of mkfs.f2fs, mount options, job.
VOLUMES = (
    ("clean", 100, [], "-", "fill 1 full"),
    ("features", 128, ["-O", FEATURES], "-", "fill 2 full"),
    ("sections", 256, ["-s", "4"], "mode=lfs", "fill 3 full"),
    ("two-logs", 100, [], "active_logs=2,noinline_data,noinline_dentry,noinline_xattr", "fill 4 small"),
    ("cut", 100, [], "-", "cut 5 full"),
    ("cut-features", 128, ["-O", FEATURES], "-", "cut 6 full"),
    ("cut-strict", 100, [], "fsync_mode=strict", "cut 8 small"),
    ("cut-lfs", 256, [], "mode=lfs", "cut 7 small"),
)
FIXTURES = (("clean", 64, [], "-", "fill 1 small"), ("cut", 64, ["-O", FEATURES], "-", "cut 2 small"))


def data_block(image, ino):
    """The address of the first block of a file's data, from dump.f2fs."""
    shown = subprocess.run([vm.find("dump.f2fs"), "-d", "1", "-i", str(ino), str(image)], input="n\n",
                           capture_output=True, text=True, errors="replace", check=False)
    return int(re.search(r"^i_addr\[0x0\]\s+\[0x\s*([0-9a-f]+) :", shown.stdout, re.M)[1], 16)


def damage(image, manifest):
    """Changes one bit of a file's data; returns the file's path."""
    line = next(line for line in manifest.splitlines() if line.split(" ")[0].endswith("/sizes/longest"))
    path, ino = line.split(" ")[0], re.search(r" ino=(\d+)", line)[1]
    at = data_block(image, ino) * BLOCK + 100
    with open(image, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))
    return path


def judged_plan(folder, plan):
    """The lines of the second boot: (purpose, number of the volume, line)."""
    judged = []
    for at, line in enumerate(plan):
        if line.job == "cut":
            kept = folder / f"recovered-{at}.img"
            subprocess.run(["cp", "--sparse=always", line.image, kept], check=True)
            if "strict" not in line.options:
                judged.append(("before", at, vm.Line.parse(f"{line.image} ro,norecovery manifest")))
            judged.append(("recovered", at, vm.Line.parse(f"{line.image} - manifest")))
            judged.append(("kept", at, vm.Line.parse(f"{kept} - manifest keep")))
            judged.append(("again", at, vm.Line.parse(f"{kept} - manifest keep")))
        else:
            judged.append(("clean", at, vm.Line.parse(f"{line.image} - manifest")))
    return judged


def check_line(checks, purpose, filled, found, results):
    """What must hold for one line of the second boot."""
    name = pathlib.Path(filled.line.image).stem
    manifest = found.folder / "manifest"
    if purpose == "clean":
        checks.equal(f"{name}: after the unmount as before", filled.folder / "manifest", manifest)
        checks.fsck(f"{name} after the unmount", filled.line.image)
    elif purpose == "before":
        lost = compare(filled.folder / "fsynced", manifest, subset=True)
        checks.that(lost, f"{name}: without roll-forward fsynced files are not as they were ({len(lost)} differences)")
    elif purpose == "recovered":
        checks.equal(f"{name}: rolled forward, fsynced files are as they were", filled.folder / "fsynced", manifest, subset=True)
    elif purpose == "kept":
        checks.equal(f"{name}: two recoveries are equal", results["recovered"].folder / "manifest", manifest,
                     ignore_of_directories=RECOVERED)
    else:
        checks.equal(f"{name}: mounted again after recovery as before", results["kept"].folder / "manifest", manifest)
        checks.fsck(f"{name} after recovery", found.line.image)


def check(folder, cache):
    """The two boots and what must hold."""
    checks, started = Checks(), time.monotonic()
    filled = vm.boot(make(folder, VOLUMES), folder / "fill", cache)
    print(f"first boot: {time.monotonic() - started:.1f} s")
    outcomes_ok(checks, filled)
    damaged, empty = folder / "damaged.img", folder / "empty.img"
    subprocess.run(["cp", "--sparse=always", filled[0].line.image, damaged], check=True)
    path = damage(damaged, filled[0].text("manifest"))
    with open(empty, "wb") as file:
        file.truncate(64 << 20)
    halved = folder / "one-superblock.img"
    subprocess.run(["cp", "--sparse=always", filled[0].line.image, halved], check=True)
    with open(halved, "r+b") as file:
        file.seek(BLOCK)
        file.write(bytes(BLOCK))
    judged = judged_plan(folder, [found.line for found in filled])
    lines = [line for _, _, line in judged] + [vm.Line.parse(f"{image} - manifest") for image in (damaged, empty, halved)]
    started = time.monotonic()
    *outcomes, of_damaged, of_empty, of_halved = vm.boot(lines, folder / "judge", cache)
    print(f"second boot: {time.monotonic() - started:.1f} s")
    outcomes_ok(checks, [*outcomes, of_damaged])
    results = {}
    for (purpose, at, _), found in zip(judged, outcomes):
        results[purpose] = found
        check_line(checks, purpose, filled[at], found, results)
    different = compare(filled[0].folder / "manifest", of_damaged.folder / "manifest")
    checks.that(len(different) == 1 and different[0].startswith(f"{path}: crc: "),
                f"one changed bit of {path} is found, and nothing else", different)
    checks.that(not of_empty.done and "F2FS" in of_empty.text("dmesg"), "a volume without superblock is reported with the kernel's reason")
    checks.that(of_halved.done and of_halved.complaints, "a volume that mounts with one superblock has a complaint")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


def sparse(image):
    """The image's blocks that hold anything: number (u32, little-endian) and bytes of each, after the
    number of blocks of the image."""
    with open(image, "rb") as file:
        count = image.stat().st_size // BLOCK
        blocks = ((at, file.read(BLOCK)) for at in range(count))
        return struct.pack("<I", count) + b"".join(struct.pack("<I", at) + block for at, block in blocks if any(block))


def unpack(packed, image):
    """Makes the image of a fixture again."""
    data = gzip.decompress(packed.read_bytes())
    with open(image, "wb") as file:
        file.truncate(struct.unpack_from("<I", data)[0] * BLOCK)
        for at in range(4, len(data), 4 + BLOCK):
            file.seek(struct.unpack_from("<I", data, at)[0] * BLOCK)
            file.write(data[at + 4:at + 4 + BLOCK])


def check_fixtures(folder, kept, cache):
    """The kernel must read what is stored as the stored manifests say."""
    checks = Checks()
    for name in ("clean", "cut"):
        unpack(kept / f"{name}.blocks.gz", folder / f"{name}.img")
    plan = [f"{folder}/clean.img - manifest", f"{folder}/cut.img ro,norecovery manifest", f"{folder}/cut.img - manifest"]
    outcomes = vm.boot([vm.Line.parse(line) for line in plan], folder / "judge", cache)
    outcomes_ok(checks, outcomes)
    for name, found in zip(("clean.manifest", "cut.before", "cut.after"), outcomes):
        stored = folder / name
        stored.write_bytes(gzip.decompress((kept / f"{name}.gz").read_bytes()))
        checks.equal(f"{name}: as stored", stored, found.folder / "manifest", ignore_of_directories=RECOVERED)
    checks.fsck("clean", folder / "clean.img")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


def fixtures(folder, target, cache):
    """Images that the kernel filled and their manifests, compressed."""
    target.mkdir(parents=True, exist_ok=True)
    filled = vm.boot(make(folder, FIXTURES), folder / "fixtures-fill", cache)
    clean, cut = filled
    plan = [f"{clean.line.image} - manifest", f"{cut.line.image} ro,norecovery manifest", f"{cut.line.image} - manifest"]
    read, before, after = vm.boot([vm.Line.parse(line) for line in plan], folder / "fixtures-judge", cache)
    checks = Checks()
    outcomes_ok(checks, [*filled, read, before, after])
    checks.equal("clean: after the unmount as before", clean.folder / "manifest", read.folder / "manifest")
    checks.equal("cut: fsynced files are as they were", cut.folder / "fsynced", after.folder / "manifest", subset=True)
    files = {
        "clean.blocks": sparse(pathlib.Path(clean.line.image)),
        "clean.manifest": (read.folder / "manifest").read_bytes(),
        "cut.blocks": sparse(pathlib.Path(cut.line.image)),
        "cut.before": (before.folder / "manifest").read_bytes(),
        "cut.fsynced": (cut.folder / "fsynced").read_bytes(),
        "cut.after": (after.folder / "manifest").read_bytes(),
    }
    total = 0
    for name, data in files.items():
        packed = gzip.compress(data, 9, mtime=0)
        (target / f"{name}.gz").write_bytes(packed)
        total += len(packed)
        print(f"{name}.gz: {len(packed)} bytes")
    print(f"{total} bytes")
    return 1 if checks.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default=vm.CACHE / "check", type=pathlib.Path, help="for images and results")
    parser.add_argument("--cache", default=vm.CACHE, type=pathlib.Path)
    parser.add_argument("--fixtures", type=pathlib.Path, help="write the fixtures to this folder instead")
    parser.add_argument("--check-fixtures", type=pathlib.Path, help="let the kernel read the fixtures of this folder instead")
    parser.add_argument("--unpack", nargs=2, type=pathlib.Path, metavar=("BLOCKS", "IMAGE"), help="make the image of a fixture instead")
    parser.add_argument("--ours", action="store_true", help="judge our F2FS and the kernel's by each other instead")
    parser.add_argument("--areas", action="store_true", help="let the kernel use volumes with the area of a GC journal instead")
    parser.add_argument("--quick", action="store_true", help="--ours with fewer volumes")
    parser.add_argument("--first", default=0, type=int, help="the first seed of our volumes with --ours (0)")
    words = parser.parse_args()
    if words.unpack:
        return unpack(*words.unpack)
    shutil.rmtree(words.folder, ignore_errors=True)
    words.folder.mkdir(parents=True)
    vm.install()
    if words.fixtures:
        return fixtures(words.folder, words.fixtures, words.cache)
    if words.check_fixtures:
        return check_fixtures(words.folder, words.check_fixtures, words.cache)
    if words.ours:
        return ours.check(words.folder, words.cache, words.first, words.quick)
    if words.areas:
        return areas.check(words.folder, words.cache)
    return check(words.folder, words.cache)


if __name__ == "__main__":
    sys.exit(main())
