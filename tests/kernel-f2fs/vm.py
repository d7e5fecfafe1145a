#!/usr/bin/env python3
"""Boots one small VM with a real Linux kernel, whose F2FS works on a list of images: see README.md.

Standard library only. Installs Debian packages by name where a tool is missing (needs root then), and
keeps the kernel, the modules and the guest's initial file system in a cache directory.
"""

import argparse
import dataclasses
import hashlib
import io
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
CACHE = HERE.parent.parent / "target" / "kernel-f2fs"
# Program and the package that has it.
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "modprobe": "kmod",
    "gcc": "gcc libc6-dev",
    "mkfs.f2fs": "f2fs-tools",
    "blkzone": "util-linux",
}
MODULES = ("virtio_pci", "virtio_blk", "nvme", "f2fs")
# Programs that the guest has as the host has them, with their libraries.
LINKED = ("mkfs.f2fs", "blkzone")
# Jobs and the number of their arguments; whether the image keeps what the guest writes.
JOBS = {"manifest": (0, False), "fill": (2, True), "cut": (2, True), "zoned_fill": (2, True), "zoned_manifest": (0, True)}
RESULTS_BYTES = 256 << 20
# Virtio disks: eight functions in each free slot of the root bus, two of them for plan and results.
SLOTS = range(4, 30)
FUNCTIONS = 8
# NVMe controllers, each with a namespace of zones. With the disks of more volumes the guest has no interrupts left.
ZONED_SLOTS = range(1, 3)
# Of more disks the guest does not find all.
DISKS_MAX = 96


class VmError(Exception):
    """The VM could not be made, or did not end as it should."""


@dataclasses.dataclass
class Zones:
    """The zones of a volume: an NVMe namespace, which qemu has start with empty zones at each boot. Sizes in bytes."""

    image: str
    size: int
    capacity: int
    # What the guest writes to them first: a volume as one image, and the list of what is in which zone.
    source: str = ""
    written: str = ""


@dataclasses.dataclass
class Line:
    """One line of a plan: a job on an image, which for jobs on zones is what comes before these."""

    image: str
    options: str
    job: str
    arguments: list
    keep: bool
    zones: Zones | None = None

    @classmethod
    def parse(cls, text):
        """`IMAGE OPTIONS JOB ARGUMENTS [keep]`; options `-` for none."""
        words = shlex.split(text)
        if len(words) < 3 or words[2] not in JOBS:
            raise VmError(f"not IMAGE OPTIONS JOB ARGUMENTS, JOB one of {', '.join(JOBS)}: {text}")
        image, options, job, *arguments = words
        count, keep = JOBS[job]
        if arguments and arguments[-1] == "keep":
            keep = arguments.pop() == "keep"
        if len(arguments) != count:
            raise VmError(f"{job} takes {count} arguments: {text}")
        if any(re.search(r"\s", word) for word in (options, *arguments)):
            raise VmError(f"options and arguments have no spaces: {text}")
        return cls(image, options, job, arguments, keep)


@dataclasses.dataclass
class Outcome:
    """What the guest reported of a line."""

    line: Line
    folder: pathlib.Path
    done: bool
    seconds: float

    @property
    def complaints(self):
        """F2FS's messages of the level of a warning or worse."""
        return re.findall(r"^<[0-4]>.*F2FS.*$", self.text("dmesg"), re.M)

    @property
    def ok(self):
        """The job is done, and the kernel complained of nothing."""
        return self.done and not self.complaints

    def text(self, name):
        """A file of results, or nothing when the job wrote none."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""


def run(*command, **options):
    """Runs a command and returns its output; its errors become ours."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode:
        raise VmError(f"{shlex.join(map(str, command))}: exit {done.returncode}\n{done.stderr}{done.stdout}")
    return done.stdout


def find(program):
    """A program's path, also where only root looks."""
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def install():
    """Installs the packages of missing programs."""
    missing = [package for program, package in TOOLS.items() if not find(program)]
    if missing:
        packages = " ".join(missing).split()
        run("apt-get", "update", "-q")
        run("apt-get", "install", "-qy", "--no-install-recommends", *packages)


def kernel(cache):
    """The unpacked kernel package: its image, and the root of its modules and its version."""
    root = cache / "kernel"
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        depends = run("apt-cache", "depends", "linux-image-amd64")
        found = re.search(r"Depends: (linux-image-\d[^ ]*-amd64)$", depends, re.M)
        if not found:
            run("apt-get", "update", "-q")
            found = re.search(r"Depends: (linux-image-\d[^ ]*-amd64)$", run("apt-cache", "depends", "linux-image-amd64"), re.M)
        if not found:
            raise VmError("apt knows no package linux-image-amd64")
        run("apt-get", "download", "-q", found[1], cwd=root)
        package = next(root.glob("*.deb"))
        run("dpkg", "-x", str(package), str(root / "root"))
        package.unlink()
        version = next((root / "root/lib/modules").iterdir()).name
        run(find("depmod"), "-b", str(root / "root"), version)
        (root / "complete").write_text(version)
    version = (root / "complete").read_text()
    return root / "root/boot" / f"vmlinuz-{version}", root / "root", version


def modules(root, version):
    """The module files that are needed, in the order to load them."""
    files = []
    for module in MODULES:
        shown = run(find("modprobe"), "-d", str(root), "-S", version, "--show-depends", module)
        for words in (line.split() for line in shown.splitlines()):
            if words[0] == "insmod" and words[1] not in files:
                files.append(words[1])
    return [pathlib.Path(file) for file in files]


def linked(programs):
    """Programs and the shared libraries that they need, by their names in the guest."""
    files = {}
    for program in programs:
        path = pathlib.Path(find(program))
        files[f"bin/{program}"] = path
        for library in re.findall(r"(/\S+) \(0x", run("ldd", str(path))):
            files[library[1:]] = pathlib.Path(library)
    return files


def archive_entry(name, mode, data=b"", device=(0, 0)):
    """One entry of a cpio archive of the form `newc`."""
    numbers = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + name.encode() + b"\0"
    return b"".join(part + bytes(-len(part) % 4) for part in (head, data))


def initramfs(cache, root, version):
    """The guest's initial file system: busybox, the agent, modules, init."""
    sources = sorted((HERE / "guest").iterdir()) + [pathlib.Path(__file__).resolve()]
    key = hashlib.sha256(version.encode() + b"".join(file.read_bytes() for file in sources)).hexdigest()[:16]
    image = cache / f"initramfs-{key}"
    if image.exists():
        return image
    agent = cache / "agent"
    code = [str(file) for file in sources if file.suffix == ".c"]
    run("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-format-truncation", "-static", "-o", str(agent), *code)
    entries = [archive_entry(name, stat.S_IFDIR | 0o755) for name in ("bin", "dev", "modules")]
    entries.append(archive_entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)))
    programs = {"bin/busybox": pathlib.Path(find("busybox")), "bin/agent": agent, "init": HERE / "guest/init"}
    programs |= linked(LINKED)
    folders = {parent for name in programs for parent in pathlib.PurePath(name).parents if parent.name} - {pathlib.PurePath("bin")}
    entries += [archive_entry(str(folder), stat.S_IFDIR | 0o755) for folder in sorted(folders)]
    for name, file in programs.items():
        entries.append(archive_entry(name, stat.S_IFREG | 0o755, file.read_bytes()))
    files = modules(root, version)
    for file in files:
        entries.append(archive_entry(f"modules/{file.name}", stat.S_IFREG | 0o644, file.read_bytes()))
    order = "".join(f"{file.name}\n" for file in files)
    entries.append(archive_entry("modules/order", stat.S_IFREG | 0o644, order.encode()))
    entries.append(archive_entry("TRAILER!!!", 0))
    for old in cache.glob("initramfs-*"):
        old.unlink()
    image.write_bytes(b"".join(entries))
    return image


def drive(at, serial, file, keep=True):
    """Options of qemu for one virtio disk, number `at`."""
    slot, function = SLOTS[at // FUNCTIONS], at % FUNCTIONS
    file = str(file).replace(",", ",,")
    snapshot = "off" if keep else "on"
    return [
        "-drive", f"if=none,id={serial},file={file},format=raw,cache=writeback,discard=unmap,snapshot={snapshot}",
        "-device", f"virtio-blk-pci,drive={serial},serial={serial},addr={slot:x}.{function},multifunction=on",
    ]


def namespace(at, serial, zones):
    """Options of qemu for one NVMe namespace with zones, number `at`."""
    slot, function = ZONED_SLOTS[at // FUNCTIONS], at % FUNCTIONS
    file = str(zones.image).replace(",", ",,")
    # mkfs.f2fs takes devices with sectors of one size.
    blocks = "logical_block_size=512,physical_block_size=4096"
    return [
        "-drive", f"if=none,id={serial},file={file},format=raw,cache=writeback,discard=unmap",
        "-device", f"nvme,id=nvme{at},serial={serial},addr={slot:x}.{function},multifunction=on",
        "-device", f"nvme-ns,drive={serial},bus=nvme{at},{blocks},zoned=true,zoned.zone_size={zones.size},zoned.zone_capacity={zones.capacity}",
    ]


def command(disks, cache, memory):
    """qemu's command line, which makes what it needs first."""
    cache.mkdir(parents=True, exist_ok=True)
    install()
    image, root, version = kernel(cache)
    boot = "console=ttyS0 rdinit=/init quiet loglevel=4 panic=-1 oops=panic nowatchdog nokaslr mitigations=off"
    return [
        "qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1", "-m", str(memory),
        "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
        "-kernel", str(image), "-initrd", str(initramfs(cache, root, version)), "-append", boot, *disks,
    ]


def watch(words, log, limit):
    """Runs qemu until it ends; its serial line goes to `log`."""
    with open(log, "wb") as serial:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=serial, stderr=subprocess.STDOUT)
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise VmError(f"the guest did not end within {limit} s; the end of {log}:\n{tail(log)}") from None
    text = log.read_text(errors="replace")
    if "Kernel panic" in text or "VM-DONE" not in text:
        why = "the guest's kernel panicked" if "Kernel panic" in text else f"the guest did not finish (qemu: exit {process.returncode})"
        raise VmError(f"{why}; the end of {log}:\n{tail(log)}")


def tail(log, lines=40):
    """The last lines of the serial line's log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def disks_of(plan):
    """The name of the guest's disk for each line. Lines that keep what they write to an image share a
    disk; each other line has a disk that starts as the image was before the boot."""
    kept = {}
    for line in plan:
        if not line.image.startswith("nbd:") and not os.path.exists(line.image):
            raise VmError(f"{line.image}: no such image")
        if line.keep:
            kept.setdefault(line.image, f"kept{len(kept)}")
    both = [line.image for line in plan if not line.keep and line.image in kept]
    if both:
        raise VmError(f"{both[0]}: some lines keep what they write, some do not; use two boots or a copy")
    disks = [kept[line.image] if line.keep else f"copy{at}" for at, line in enumerate(plan)]
    if len(set(disks)) > DISKS_MAX:
        raise VmError(f"{len(set(disks))} disks: at most {DISKS_MAX}")
    return disks


def boot(plan, out, cache=CACHE, limit=300, memory=1024):
    """Carries out the lines of `plan` in one VM. Results go to `out`/N; returns an `Outcome` for each line."""
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    disks = disks_of(plan)
    text = "".join(shlex.join([disk, "rw" if x.options == "-" else x.options, x.job, *x.arguments]) + "\n"
                   for x, disk in zip(plan, disks))
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        tables, results = pathlib.Path(scratch, "plan"), pathlib.Path(scratch, "results")
        # The first empty line ends the plan.
        padded = text.encode() + b"\n" * (-len(text.encode()) % 65536)
        tables.write_bytes(padded)
        with open(results, "wb") as file:
            file.truncate(RESULTS_BYTES)
        words = drive(0, "plan", tables) + drive(1, "results", results)
        parts = [(disk, line.image, line.keep) for disk, line in dict(zip(disks, plan)).items()]
        zoned = [(disk, line.zones) for disk, line in zip(disks, plan) if line.zones]
        if len(zoned) > len(ZONED_SLOTS) * FUNCTIONS:
            raise VmError(f"{len(zoned)} volumes on zones: at most {len(ZONED_SLOTS) * FUNCTIONS}")
        parts += [(f"flat-{disk}", zones.source, False) for disk, zones in zoned if zones.source]
        parts += [(f"list-{disk}", zones.written, False) for disk, zones in zoned if zones.source]
        for at, (disk, image, keep) in enumerate(parts, 2):
            words += drive(at, disk, image, keep)
        for at, (disk, zones) in enumerate(zoned):
            words += namespace(at, f"zones-{disk}", zones)
        watch(command(words, pathlib.Path(cache), memory), out / "serial.log", limit)
        return [outcome(out, number, line) for number, line in enumerate(unpack(plan, results, out), 1)]


def unpack(plan, results, out):
    """Writes the guest's results as `out`/N."""
    for number in range(1, len(plan) + 1):
        shutil.rmtree(out / str(number), ignore_errors=True)
    with tarfile.open(fileobj=io.BytesIO(results.read_bytes())) as archive:
        for member in archive:
            if member.isreg():
                path = out / pathlib.PurePosixPath(member.name).relative_to("results")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.extractfile(member).read())
    return plan


def outcome(out, number, line):
    """The outcome of line `number`."""
    folder = out / str(number)
    if not (folder / "status").exists():
        raise VmError(f"the guest reported nothing of line {number}")
    start, end = map(float, (folder / "uptime").read_text().split())
    return Outcome(line, folder, (folder / "status").read_text() == "ok\n", end - start)


def complain(outcomes):
    """Prints what each line came to; returns the number of failed ones."""
    for found in outcomes:
        line = found.line
        state = "ok" if found.ok else "COMPLAINTS" if found.done else "FAILED"
        print(f"{found.folder}: {state} {found.seconds:.1f} s: {line.image} {line.options} {line.job} {' '.join(line.arguments)}")
        if not found.ok:
            print(found.text("errors") + found.text("dmesg"), end="")
    return sum(not found.ok for found in outcomes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="folder for the results: N/ for each line, and serial.log")
    parser.add_argument("images", nargs="*", help="images, each for the job of --job")
    parser.add_argument("--plan", help="file with lines IMAGE OPTIONS JOB ARGUMENTS [keep]")
    parser.add_argument("--job", default="manifest", help="manifest (default), 'fill SEED PROFILE', 'cut SEED PROFILE'")
    parser.add_argument("--options", default="-", help="mount options for the images of the command line")
    parser.add_argument("--keep", action="store_true", help="manifest: images keep what the mount writes")
    parser.add_argument("--cache", default=CACHE, help="folder for kernel and initial file system")
    parser.add_argument("--limit", type=float, default=300, help="seconds until the VM is ended (300)")
    parser.add_argument("--memory", type=int, default=1024, help="MiB of the guest (1024)")
    words = parser.parse_intermixed_args()
    tail_words = " keep" if words.keep else ""
    texts = [f"{shlex.quote(image)} {words.options} {words.job}{tail_words}" for image in words.images]
    if words.plan:
        texts += [line for line in pathlib.Path(words.plan).read_text().splitlines() if line.strip() and line[0] != "#"]
    if not texts:
        parser.error("no image")
    started = time.monotonic()
    try:
        failed = complain(boot([Line.parse(text) for text in texts], words.out, words.cache, words.limit, words.memory))
    except VmError as error:
        print(f"vm.py: {error}", file=sys.stderr)
        return 2
    print(f"{len(texts)} lines, {failed} failed, {time.monotonic() - started:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
