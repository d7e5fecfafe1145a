#!/usr/bin/env python3
"""Shows what keeps a stock kernel and fsck.f2fs from a volume: each of a list of changes is made to a sound volume, in one
of two copies or in both, with and without `sb_checksum`, and every checksum is mended. Prints the table of
docs/formats/f2fs.md ("Mark"). One boot.

Standard library only; needs what vm.py needs, and blkid.
"""

import argparse
import dataclasses
import pathlib
import shutil
import struct
import subprocess
import sys
import zlib

import vm
from checks import BLOCK

MEBIBYTES = 64
SUPERBLOCK_AT, SUPERBLOCK_BYTES, CRC_AT = 1024, 3072, 0xBFC
VERSION = slice(0x684, 0x884)
MAGIC = 0xF2F52010
SB_CHECKSUM = 0x800
# Ways to ask fsck.f2fs; each gets a copy of the volume.
FSCK = (["--dry-run"], ["-a"], ["-p"], ["-f", "-y"])


@dataclasses.dataclass
class Change:
    """A field of the superblock or of the checkpoint block, and what is put there."""

    name: str
    at: int
    form: str
    value: object
    checkpoint: bool = False
    # Whether the checksum is left as it was.
    stale: bool = False

    def apply(self, bytes_):
        """Puts the value in; a function is called with the old one."""
        old = struct.unpack_from(self.form, bytes_, self.at)[0]
        struct.pack_into(self.form, bytes_, self.at, self.value(old) if callable(self.value) else self.value)


def bit(mask):
    """A value with some bits more."""
    return lambda old: old | mask


CHANGES = (
    Change("magic 0xf2f52047", 0x0, "<I", 0xF2F52047),
    Change("major_ver 0xffff", 0x4, "<H", 0xFFFF),
    Change("log_sectorsize 8", 0x8, "<I", 8),
    Change("log_sectors_per_block 4", 0xC, "<I", 4),
    Change("log_blocksize 11", 0x10, "<I", 11),
    Change("log_blocksize 31", 0x10, "<I", 31),
    Change("log_blocks_per_seg 10", 0x14, "<I", 10),
    Change("segs_per_sec 0", 0x18, "<I", 0),
    Change("secs_per_zone 0", 0x1C, "<I", 0),
    Change("block_count 0", 0x24, "<Q", 0),
    Change("section_count 0", 0x2C, "<I", 0),
    Change("segment_count 0", 0x30, "<I", 0),
    Change("cp_blkaddr + 1", 0x4C, "<I", lambda old: old + 1),
    Change("root_ino 0", 0x60, "<I", 0),
    Change("extension_count 65", 0x47C, "<I", 65),
    Change("cp_payload 511", 0x680, "<I", 511),
    Change("feature, unknown bit 0x80000000", 0x884, "<I", bit(0x80000000)),
    Change("feature `encrypt`", 0x884, "<I", bit(0x1)),
    Change("feature `blkzoned`", 0x884, "<I", bit(0x2)),
    Change("feature `compression`", 0x884, "<I", bit(0x2000)),
    Change("feature `ro`", 0x884, "<I", bit(0x4000)),
    Change("crc + 1", CRC_AT, "<I", lambda old: old + 1, stale=True),
    Change("ckpt_flags, unknown bit 0x80000000", 0x84, "<I", bit(0x80000000), checkpoint=True),
    Change("ckpt_flags, error", 0x84, "<I", bit(0x8), checkpoint=True),
    Change("ckpt_flags, fsck", 0x84, "<I", bit(0x10), checkpoint=True),
    Change("ckpt_flags, disabled", 0x84, "<I", bit(0x1000), checkpoint=True),
    Change("ckpt_flags, resizefs", 0x84, "<I", bit(0x4000), checkpoint=True),
    Change("rsvd_segment_count 0", 0x18, "<I", 0, checkpoint=True),
    Change("checkpoint's checksum + 1", 4092, "<I", lambda old: old + 1, checkpoint=True, stale=True),
)
COPIES = (("first", (0,)), ("second", (1,)), ("both", (0, 1)))


def crc32(bytes_):
    """F2FS's CRC-32: the register, begun with the magic and not inverted at the end."""
    return ~zlib.crc32(bytes_, ~MAGIC & 0xFFFFFFFF) & 0xFFFFFFFF


def read(image, at, length):
    """Bytes of an image, to be changed."""
    with open(image, "rb") as file:
        file.seek(at)
        return bytearray(file.read(length))


def write(image, at, bytes_):
    """Bytes back to their place."""
    with open(image, "r+b") as file:
        file.seek(at)
        file.write(bytes_)


def superblocks(image):
    """Both copies."""
    return [read(image, copy * BLOCK + SUPERBLOCK_AT, SUPERBLOCK_BYTES) for copy in (0, 1)]


def unnamed(copies):
    """Copies without the kernel's name, which fsck.f2fs sets to that under which it runs, and the checksum over it."""
    return [copy[:VERSION.start] + copy[VERSION.stop:CRC_AT] for copy in copies]


def change_superblock(image, change, copies):
    """Changes copies of the superblock and mends their checksums."""
    for copy in copies:
        at = copy * BLOCK + SUPERBLOCK_AT
        block = read(image, at, SUPERBLOCK_BYTES)
        change.apply(block)
        if struct.unpack_from("<I", block, 0x884)[0] & SB_CHECKSUM and not change.stale:
            struct.pack_into("<I", block, CRC_AT, crc32(block[:CRC_AT]))
        write(image, at, block)


def change_checkpoint(image, change, packs):
    """Changes both checkpoint blocks of packs and mends their checksums."""
    start = struct.unpack_from("<I", read(image, SUPERBLOCK_AT, SUPERBLOCK_BYTES), 0x4C)[0]
    for pack in packs:
        first = start + 512 * pack
        blocks = struct.unpack_from("<I", read(image, first * BLOCK, BLOCK), 0x88)[0]
        for at in (first, first + blocks - 1):
            block = read(image, at * BLOCK, BLOCK)
            change.apply(block)
            if not change.stale:
                struct.pack_into("<I", block, 4092, crc32(block[:4092]))
            write(image, at * BLOCK, block)


def copied(image, name):
    """A copy of an image beside it."""
    copy = image.with_name(f"{name}.img")
    subprocess.run(["cp", "--sparse=always", image, copy], check=True)
    return copy


def made(folder, name, arguments):
    """A sound volume of mkfs.f2fs."""
    image = folder / f"{name}.img"
    with open(image, "wb") as file:
        file.truncate(MEBIBYTES << 20)
    vm.run(vm.find("mkfs.f2fs"), "-q", "-r", "-T", "0", "-U", "00000000-0000-4000-8000-000000000001", *arguments, str(image))
    return image


def asked(image, arguments):
    """What fsck.f2fs does with a copy of a volume: takes it or refuses it, and whether it changes a superblock."""
    copy = copied(image, "fsck")
    before = unnamed(superblocks(copy))
    done = subprocess.run([vm.find("fsck.f2fs"), *arguments, str(copy)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    # It ends with a state of the checkpoint or with a check, or did not come as far.
    word = "takes" if b"[FSCK]" in done.stdout or b"checkpoint state" in done.stdout else "refuses"
    if word == "refuses" and subprocess.run(["cmp", "-s", image, copy], check=False).returncode:
        word = "refuses, writes"
    word += rewritten(before, unnamed(superblocks(copy)))
    copy.unlink()
    return word


def fsck(image):
    """What fsck.f2fs does in all ways of asking: one word if it is the same for all."""
    words = [(" ".join(arguments), asked(image, arguments)) for arguments in FSCK]
    if len({word for _, word in words}) == 1:
        return words[0][1]
    return ", ".join(f"{word} ({arguments})" for arguments, word in words)


def known(image):
    """What type of volume blkid finds: mkfs.f2fs asks it before it makes a volume over another."""
    done = subprocess.run([vm.find("blkid"), "-p", "-o", "value", "-s", "TYPE", str(image)], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "none"


def rewritten(before, after):
    """Which copies of the superblock are others now."""
    names = [name for name, old, new in zip(("first", "second"), before, after) if old != new]
    return f", rewrites the {' and the '.join(names)}" if names else ""


def cases(folder):
    """All changed volumes: (change, copies, with checksum or without, image)."""
    for features, arguments in (("", []), ("sb_checksum", ["-O", "sb_checksum"])):
        base = made(folder, f"base{features}", arguments)
        yield "none", "both", features, copied(base, f"none{features}")
        for number, change in enumerate(CHANGES):
            for name, copies in COPIES:
                # The second pack of a new volume is of version 0: what counts is in the first.
                if change.checkpoint and (name == "second" or features) or change.at == CRC_AT and not features:
                    continue
                image = copied(base, f"{number}-{name}{features}")
                (change_checkpoint if change.checkpoint else change_superblock)(image, change, copies)
                yield change.name, name, features, image


def booted(images, folder, cache):
    """What the kernel does with each image: mounts it or refuses it, and whether it changes a superblock."""
    words = []
    for at in range(0, len(images), vm.DISKS_MAX):
        some = images[at:at + vm.DISKS_MAX]
        earlier = [superblocks(image) for image in some]
        outcomes = vm.boot([vm.Line.parse(f"{image} - manifest keep") for image in some], folder / f"boot{at}", cache, limit=900)
        for image, before, found in zip(some, earlier, outcomes):
            if not found.done and "F2FS-fs" not in found.text("dmesg"):
                raise vm.VmError(f"{image}: not refused by F2FS: {found.text('errors')}")
            words.append(("mounts" if found.done else "refuses") + rewritten(before, superblocks(image)))
    return words


def one_copy(by_copy):
    """What happens if either copy is changed: one text if it is the same, up to which copy is rewritten."""
    texts = []
    for name in by_copy.keys() - {"both"}:
        alone = by_copy[name].endswith(f"rewrites the {name}")
        texts.append(by_copy[name].replace(f"rewrites the {name}", "rewrites it") if alone else by_copy[name])
    if len(set(texts)) == 1:
        return texts[0]
    return "; ".join(f"{name}: {by_copy[name]}" for name in sorted(by_copy.keys() - {"both"}))


def table(folder, cache):
    """Prints a row for each change, or two where `sb_checksum` makes a difference."""
    tried = list(cases(folder))
    images = [image for *_, image in tried]
    checked = [(fsck(image), known(image)) for image in images]
    rows = {}
    for (change, copies, features, _), kernel, (tool, kind) in zip(tried, booted(images, folder, cache), checked):
        of_kernel, of_tool, kinds = rows.setdefault(change, {}).setdefault(features or "plain", ({}, {}, {}))
        of_kernel[copies], of_tool[copies], kinds[copies] = kernel, tool, kind
    print("| Change | Linux 6.1, both | fsck.f2fs, both | blkid, both | Linux 6.1, one | fsck.f2fs, one |\n|---|---|---|---|---|---|")
    for change, found in rows.items():
        texts = {}
        for features, (of_kernel, of_tool, kinds) in found.items():
            row = (of_kernel["both"], of_tool["both"], kinds["both"], one_copy(of_kernel), one_copy(of_tool))
            texts.setdefault(" | ".join(row), []).append(features)
        for text, features in texts.items():
            print(f"| {change}{'' if len(texts) == 1 else ', ' + ', '.join(features)} | {text} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", default=vm.CACHE / "marks", type=pathlib.Path, help="for images and results")
    parser.add_argument("--cache", default=vm.CACHE, type=pathlib.Path)
    words = parser.parse_args()
    shutil.rmtree(words.folder, ignore_errors=True)
    words.folder.mkdir(parents=True)
    vm.install()
    table(words.folder, words.cache)
    return 0


if __name__ == "__main__":
    sys.exit(main())
