"""What the programs that ask the kernel share: empty volumes, and a count of what holds."""

import pathlib
import re
import subprocess

import vm
from compare import compare

BLOCK = 4096
FEATURES = "extra_attr,inode_checksum,flexible_inline_xattr,inode_crtime,sb_checksum,lost_found"
# Fields that recovery sets anew for directories whose names it adds.
RECOVERED = ("mtime", "ctime")


def make(folder, volumes):
    """Empty volumes, and the lines that fill them."""
    plan = []
    for name, mebibytes, arguments, options, job in volumes:
        image = folder / f"{name}.img"
        image.unlink(missing_ok=True)
        with open(image, "wb") as file:
            file.truncate(mebibytes << 20)
        uuid = f"00000000-0000-4000-8000-{mebibytes:012d}"
        vm.run(vm.find("mkfs.f2fs"), "-q", "-r", "-T", "0", "-U", uuid, *arguments, str(image))
        plan.append(vm.Line.parse(f"{image} {options} {job}"))
    return plan


class Checks:
    """Counts what holds and prints what does not."""

    def __init__(self):
        self.passed = self.failed = 0

    def that(self, holds, what, details=()):
        """Notes that `what` must hold."""
        self.passed += bool(holds)
        self.failed += not holds
        print(f"{'ok' if holds else 'FAILED'}: {what}")
        if not holds:
            for text in list(details)[:20]:
                print(f"    {text}")

    def equal(self, what, expected, found, **rules):
        """Notes that two manifests must be equal."""
        different = compare(expected, found, **rules)
        self.that(not different, what, different)

    def fsck(self, what, image, but=None):
        """Notes that fsck.f2fs must find nothing, or, with `but`, nothing else than what matches that."""
        done = subprocess.run([vm.find("fsck.f2fs"), "--dry-run", str(image)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", check=False)
        # Some of what it finds does not change its exit code.
        found = re.findall(r"^.*(?:^\[(?:ASSERT|FIX)\]|\[Fail\]|Corrupted valid nat_bits).*$", done.stdout, re.M)
        other = [line for line in found if not but or not re.search(but, line)]
        sound = done.returncode == 0 or len(found) > len(other)
        self.that(sound and not other, f"fsck.f2fs: {what}", done.stdout.splitlines()[-20:])


def outcomes_ok(checks, outcomes):
    """All lines of a boot must have worked."""
    for found in outcomes:
        checks.that(found.ok, f"{pathlib.Path(found.line.image).name}: {found.line.job} {' '.join(found.line.arguments)}"
                    f" ({found.seconds:.1f} s)", (found.text("errors") + found.text("dmesg")).splitlines())
