"""Lets the kernel use volumes with the area of a GC journal, in two boots: `check.py --areas`.

1. Without a mark, or with one on a single copy of the superblock, the kernel mounts, fills and unmounts them; area and
   record stay as they were, fsck.f2fs and our check find nothing, and we read what the kernel read.
2. With both copies marked, the kernel refuses them, also to read only, and writes nothing.
3. Mounted again, the volumes show what they showed.

Our side are the tests `judged::areas` of crates/fs/tests/f2fs. Standard library only.
"""

import vm
from checks import BLOCK, Checks, outcomes_ok
from marks import read, superblocks
from ours import rust

RECORD = slice(0xBE8, 0xBFC)
AREA_BLOCKS = 512


def area(image, start):
    """The area's bytes."""
    return read(image, start * BLOCK, AREA_BLOCKS * BLOCK)


def check(folder, cache):
    """The volumes, a boot, our reading of them, another boot. Exit code."""
    checks = Checks()
    rust("areas::make", folder, 0, 0)
    lines = [line.split(" ") for line in (folder / "areas").read_text().splitlines()]
    images = {name: (folder / f"{name}.img", int(start)) for name, start in lines}
    before = {name: (superblocks(image), area(image, start), read(image, 0, image.stat().st_size) if "marked" in name else None)
              for name, (image, start) in images.items()}
    plan = [vm.Line.parse(f"{image} " + (("ro" if "-4" in name else "-") + " manifest keep" if "marked" in name else f"- fill {number} small"))
            for number, (name, (image, _)) in enumerate(images.items())]
    outcomes = dict(zip(images, vm.boot(plan, folder / "first", cache)))
    for name, found in outcomes.items():
        (image, start), (copies, blocks, everything) = images[name], before[name]
        if everything:
            checks.that(not found.done and "F2FS-fs" in found.text("dmesg"), f"{name}: refused by F2FS", [found.text("dmesg")])
            checks.that(read(image, 0, image.stat().st_size) == everything, f"{name}: nothing was written")
            continue
        half = "first" in name or "second" in name
        # Of one superblock the kernel complains, and writes the other one over it.
        checks.that(found.done and bool(found.complaints) == half, f"{name}: mounted, filled and unmounted", [found.text("dmesg")])
        sound = copies[1 if "first" in name else 0]
        checks.that(superblocks(image) == [sound, sound], f"{name}: both copies are as the sound one was")
        checks.that(any(sound[RECORD]) and area(image, start) == blocks and any(blocks), f"{name}: the area is as it was")
        checks.fsck(f"{name} after the unmount", image)
    rust("areas::read", folder, 0, 0)
    filled = {name: found for name, found in outcomes.items() if "marked" not in name}
    again = vm.boot([vm.Line.parse(f"{found.line.image} - manifest") for found in filled.values()], folder / "second", cache)
    outcomes_ok(checks, again)
    for (name, found), later in zip(filled.items(), again):
        checks.equal(f"{name}: mounted again as before", found.folder / "manifest", later.folder / "manifest")
        checks.equal(f"{name}: we read what the kernel reads", later.folder / "manifest", folder / f"{name}.manifest")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0
