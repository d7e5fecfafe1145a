#!/usr/bin/env python3
"""Compares two manifests (MANIFEST.md) and prints where they differ. Exit 0: equal, 1: different, 2: not manifests.

Standard library only.
"""

import argparse
import pathlib
import sys


class ManifestError(Exception):
    """A text that is no manifest."""


def parse(text, source, repeated=False):
    """Path -> {field: value}, in the text's order. The last line of a path counts if `repeated`, else
    each path has one line."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#") or not line:
            continue
        path, *fields = line.split(" ")
        values = dict(field.split("=", 1) for field in fields if "=" in field)
        if not path.startswith("/") or len(values) != len(fields) or "type" not in values:
            raise ManifestError(f"{source}:{number}: not a line of a manifest: {line[:200]}")
        if path in found and not repeated:
            raise ManifestError(f"{source}:{number}: {path} for the second time")
        found[path] = values
    if not found:
        raise ManifestError(f"{source}: no lines")
    return found


def differences(expected, found, ignore=(), ignore_of_directories=(), subset=False):
    """Texts that say where `found` is not as `expected`. With `subset`, `expected` may lack paths and
    fields, and a path of type `none` must not be there."""
    for path, want in expected.items():
        have = found.get(path)
        if want["type"] == "none":
            if have:
                yield f"{path}: is there, type {have['type']}"
            continue
        if have is None:
            yield f"{path}: missing"
            continue
        skip = set(ignore) | set(ignore_of_directories if want["type"] == "d" else ())
        names = want if subset else list(dict.fromkeys([*want, *have]))
        for name in names:
            if name not in skip and want.get(name) != have.get(name):
                yield f"{path}: {name}: {want.get(name, 'absent')} expected, {have.get(name, 'absent')} found"
    if not subset:
        for path in found:
            if path not in expected:
                yield f"{path}: not expected, type {found[path]['type']}"


def compare(expected, found, **rules):
    """The differences between two files of manifests."""
    subset = rules.get("subset", False)
    want = parse(pathlib.Path(expected).read_text(), expected, repeated=subset)
    have = parse(pathlib.Path(found).read_text(), found)
    return list(differences(want, have, **rules))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("expected")
    parser.add_argument("found")
    parser.add_argument("--ignore", default="", help="fields, with commas between")
    parser.add_argument("--ignore-of-directories", default="", help="fields not compared for directories")
    parser.add_argument("--subset", action="store_true", help="EXPECTED names only some paths and fields (`fsynced`)")
    words = parser.parse_args()
    try:
        found = compare(words.expected, words.found, ignore=words.ignore.split(","), subset=words.subset,
                        ignore_of_directories=words.ignore_of_directories.split(","))
    except (ManifestError, OSError, ValueError) as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return 2
    for text in found[:100]:
        print(text)
    if found:
        print(f"{len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
