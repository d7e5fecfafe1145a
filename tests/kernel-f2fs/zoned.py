#!/usr/bin/env python3
"""Lets the kernel mount volumes on zones: a conventional disk and an NVMe namespace with zones (README.md, "Zones").

    zoned.py OUT                                                the kernel makes, fills and reads volumes; copies of them are read as well
    zoned.py OUT --ours                                         the kernel reads volumes that our F2FS filled
    zoned.py OUT --image FLAT --random BLOCKS --written LIST --zone-kib N   a volume as one image is copied and mounted

The image holds what is written at random, BLOCKS blocks of 4 KiB, and then the zones. LIST has a line `START BLOCKS` or `START BLOCKS
full` for each zone that holds data: its first block in the image, the blocks up to its write pointer, and whether it was finished.
Results are in OUT as vm.py leaves them. Standard library only.
"""

import argparse
import pathlib
import re
import shutil
import struct
import sys

import ours
import vm
from checks import BLOCK, Checks, outcomes_ok
from marks import CRC_AT, SB_CHECKSUM, SUPERBLOCK_AT, crc32, superblocks, write

SEGMENT_BLOCKS = 512
SECTOR = 512
# Fields of the superblock.
SEGMENT_COUNT_AT, SEGMENT0_AT, FEATURE_AT, DEVICES_AT = 0x30, 0x48, 0x884, 0x899
PATH_BYTES, DEVICES = 64, 8
DEVICE = struct.Struct(f"<{PATH_BYTES}sI")
# What the guest names the two parts of a volume.
RANDOM, ZONES = b"/zoned/random", b"/zoned/zones"
# What the kernel says when logs or zones are not as the checkpoint has them.
MISALIGNED = r"Unaligned curseg|without valid block|beyond write pointer|not yet discarded"
# Random part in MiB, zones, their size and capacity in KiB.
VOLUMES = ((64, 60, 8192, 8192), (64, 40, 16384, 12288), (96, 40, 16384, 11264))


def name_devices(image, parts):
    """Writes the devices of a volume, pairs of path and segments, into both copies of the superblock."""
    for number, sb in enumerate(map(bytearray, superblocks(image))):
        for at in range(DEVICES):
            DEVICE.pack_into(sb, DEVICES_AT + at * DEVICE.size, *(parts[at] if at < len(parts) else (b"", 0)))
        if struct.unpack_from("<I", sb, FEATURE_AT)[0] & SB_CHECKSUM:
            struct.pack_into("<I", sb, CRC_AT, crc32(sb[:CRC_AT]))
        write(image, number * BLOCK + SUPERBLOCK_AT, sb)


def fields(image):
    """What a volume's superblock says of its devices."""
    sb = superblocks(image)[0]
    numbers = [struct.unpack_from("<I", sb, at)[0] for at in (SEGMENT_COUNT_AT, SEGMENT0_AT, FEATURE_AT)]
    devices = [DEVICE.unpack_from(sb, DEVICES_AT + at * DEVICE.size) for at in range(DEVICES)]
    return *numbers, [(path.split(b"\0")[0].decode(), count) for path, count in devices if path[0]]


def empty(path, bytes_):
    """A file of zeroes."""
    path.unlink(missing_ok=True)
    with open(path, "wb") as file:
        file.truncate(bytes_)
    return path


def copy(source, target, count, to=0):
    """Copies the first bytes of a file to a place in another one, and leaves holes for zeroes."""
    with open(source, "rb") as data, open(target, "r+b") as file:
        file.seek(to)
        while part := data.read(min(count, 1 << 20)):
            if part == bytes(len(part)):
                file.seek(len(part), 1)
            else:
                file.write(part)
            count -= len(part)


def split(folder, name, flat, random, written, size, capacity):
    """The line that mounts a copy of a volume: its parts as disks, which name each other."""
    total, segment0, _, _ = fields(flat)
    front = (random - segment0) // SEGMENT_BLOCKS
    if (random - segment0) % SEGMENT_BLOCKS or front >= total:
        raise vm.VmError(f"{flat}: {random} blocks are no whole segments before the zones of {total} segments")
    part = empty(folder / f"{name}.random", random * BLOCK)
    copy(flat, part, random * BLOCK)
    name_devices(part, [(RANDOM, front), (ZONES, total - front)])
    zones_bytes = -(-(total - front) * SEGMENT_BLOCKS * BLOCK // size) * size
    lines = folder / f"{name}.list"
    text = pathlib.Path(written).read_bytes()
    # The first empty line ends the list.
    lines.write_bytes(text + b"\n" * (SECTOR - len(text) % SECTOR))
    zones = vm.Zones(str(empty(folder / f"{name}.zones", zones_bytes)), size, capacity, str(flat), str(lines))
    return vm.Line(str(part), "-", "zoned_manifest", [], True, zones)


def zone_list(report, random):
    """The list of what zones hold, from what `blkzone report` says of them."""
    lines = []
    for start, length, at, state in re.findall(r"start: 0x(\w+), len 0x\w+, cap 0x(\w+), wptr 0x(\w+) reset:\d non-seq:\d, zcond:\s*(\d+)", report):
        full = int(state) == 14
        blocks = (int(length, 16) if full else int(at, 16)) * SECTOR // BLOCK
        if blocks:
            lines.append(f"{random + int(start, 16) * SECTOR // BLOCK} {blocks}\n")
    return "".join(lines)


def join(folder, name, line):
    """A volume of two parts as one image, which names no devices."""
    parts = [line.image, line.zones.image]
    front, zones = (pathlib.Path(part).stat().st_size for part in parts)
    flat = empty(folder / f"{name}.flat", front + zones)
    copy(parts[0], flat, front)
    copy(parts[1], flat, zones, front)
    name_devices(flat, [])
    return flat


def unusable(size, capacity):
    """What fsck.f2fs, which knows no zones of an image, finds where segments of a zone cannot be written: it counts them as free."""
    segment = SEGMENT_BLOCKS * BLOCK
    return "^.FSCK. free segment_count matched" if -(-capacity // segment) * segment < size else None


def aligned(checks, what, found):
    """Notes that the kernel must have found logs and zones as the checkpoint has them."""
    said = re.findall(f"^.*(?:{MISALIGNED}).*$", found.text("dmesg"), re.M)
    checks.that(not said, f"{what}: logs are at write pointers", said)


def check(folder, cache):
    """Volumes that the kernel made and filled, then copies of them. Exit code."""
    checks = Checks()
    plan = []
    for number, (random, count, size, capacity) in enumerate(VOLUMES):
        part = empty(folder / f"made-{number}.random", random << 20)
        zones = vm.Zones(str(empty(folder / f"made-{number}.zones", count * size << 10)), size << 10, capacity << 10)
        plan.append(vm.Line(str(part), "-", "zoned_fill", [str(number), "small"], True, zones))
    made = vm.boot(plan, folder / "made", cache)
    outcomes_ok(checks, made)
    if checks.failed:
        return 1
    copies = []
    for number, found in enumerate(made):
        line, random = found.line, VOLUMES[number][0] * 256
        print(f"    {fields(line.image)}")
        flat = join(folder, f"made-{number}", line)
        checks.fsck(f"made-{number} as one image", flat, unusable(line.zones.size, line.zones.capacity))
        written = folder / f"made-{number}.written"
        written.write_text(zone_list(found.text("zones"), random))
        copies.append(split(folder, f"copy-{number}", flat, random, written, line.zones.size, line.zones.capacity))
    # And one that lacks the last block before a write pointer.
    start, blocks = written.read_text().split()[:2]
    short = folder / "short.written"
    short.write_text(written.read_text().replace(f"{start} {blocks}", f"{start} {int(blocks) - 1}", 1))
    copies.append(split(folder, "short", flat, random, short, line.zones.size, line.zones.capacity))
    *read, damaged = vm.boot(copies, folder / "copies", cache)
    outcomes_ok(checks, read)
    checks.that(re.search(MISALIGNED, damaged.text("dmesg")), "a zone that lacks a block is noticed", damaged.text("dmesg").splitlines())
    for number, (found, again) in enumerate(zip(made, read)):
        checks.equal(f"copy-{number}: as it was", found.folder / "manifest", again.folder / "manifest")
        aligned(checks, f"copy-{number}", again)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


def check_ours(folder, cache, volumes, first):
    """Volumes that our F2FS filled and unmounted. Exit code."""
    checks = Checks()
    ours.rust("zoned::make", folder, volumes, first)
    plan = []
    for line in (folder / "zoned").read_text().splitlines():
        name, random, size, capacity = line.split(" ")[:4]
        flat, sizes = folder / f"{name}.img", (int(size) * BLOCK, int(capacity) * BLOCK)
        checks.fsck(name, flat, unusable(*sizes))
        plan.append(split(folder, name, flat, int(random), folder / f"{name}.written", *sizes))
    found = vm.boot(plan, folder / "judge", cache)
    outcomes_ok(checks, found)
    for outcome in filter(lambda outcome: outcome.done, found):
        name = pathlib.Path(outcome.line.image).stem
        checks.equal(f"{name}: the kernel reads what we read", folder / f"{name}.manifest", outcome.folder / "manifest")
        aligned(checks, name, outcome)
        checks.fsck(f"{name} after the unmount", join(folder, name, outcome.line), unusable(outcome.line.zones.size, outcome.line.zones.capacity))
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


def judge(folder, words):
    """Has the kernel mount a copy of one volume. Exit code."""
    size, capacity = words.zone_kib << 10, (words.capacity_kib or words.zone_kib) << 10
    line = split(folder, "copy", words.image, words.random, words.written, size, capacity)
    return 1 if vm.complain(vm.boot([line], folder, words.cache)) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="folder for parts and results")
    parser.add_argument("--ours", action="store_true", help="judge volumes of our F2FS")
    parser.add_argument("--volumes", type=int, default=8, help="--ours: so many (8; at most 16)")
    parser.add_argument("--first", type=int, default=0, help="--ours: the first seed (0)")
    parser.add_argument("--image", type=pathlib.Path, help="a volume as one image")
    parser.add_argument("--random", type=int, help="its blocks before the zones")
    parser.add_argument("--written", type=pathlib.Path, help="the list of what zones hold")
    parser.add_argument("--zone-kib", type=int, help="the size of a zone, a power of two")
    parser.add_argument("--capacity-kib", type=int, help="what can be written of a zone (all)")
    parser.add_argument("--cache", default=vm.CACHE, type=pathlib.Path)
    words = parser.parse_args()
    if words.image and not (words.random and words.written and words.zone_kib):
        parser.error("--image needs --random, --written and --zone-kib")
    shutil.rmtree(words.out, ignore_errors=True)
    words.out.mkdir(parents=True)
    try:
        vm.install()
        if words.image:
            return judge(words.out, words)
        if words.ours:
            return check_ours(words.out, words.cache, words.volumes, words.first)
        return check(words.out, words.cache)
    except vm.VmError as error:
        print(f"zoned.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
