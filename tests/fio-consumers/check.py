"""Checks that what nandscape wrote reads like what fio wrote: the same code loads both.

Its argument is a folder with `fio` and `ours` in it, each with the result of the same job as json+,
the logs, and what fio's own tools made of them.
"""

import csv
import json
import pathlib
import re
import sys

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

# Keys whose names are data: latencies and ranks.
DATA_KEYS = {"bins", "percentile"}
# How exactly percentiles agree, in parts of their value: histograms keep three digits.
PRECISION = 0.002


def paths(value, path=""):
    """Every path of a JSON value with the type found there; entries of lists are numbered."""
    if isinstance(value, dict):
        yield path, "object"
        for key, entry in value.items():
            inner = f"{path}/{key}"
            if key in DATA_KEYS:
                yield inner, "object" if isinstance(entry, dict) else type(entry).__name__
            else:
                yield from paths(entry, inner)
    elif isinstance(value, list):
        yield path, "list"
        for at, entry in enumerate(value):
            yield from paths(entry, f"{path}/{at}")
    else:
        yield path, type(value).__name__


def check_paths(fio, ours):
    """Every path of fio's result is in ours, with the same type."""
    ours = dict(paths(ours))
    wrong = [
        f"{path}: {kind} in fio, {ours.get(path)} in ours"
        for path, kind in paths(fio)
        if ours.get(path) != kind
    ]
    assert not wrong, "\n".join(wrong)
    return sum(1 for _ in paths(fio))


def check_options(fio, ours):
    """What the job file says appears in the same words."""
    assert fio["global options"] == ours["global options"]
    for theirs, mine in zip(fio["jobs"], ours["jobs"], strict=True):
        assert theirs["job options"] == mine["job options"], theirs["jobname"]


def check_json(result):
    """What holds in any result: sums agree, and what is ranked is in order."""
    for job in result["jobs"]:
        for name in ("read", "write", "trim"):
            part = job[name]
            clat = part["clat_ns"]
            assert clat["N"] == part["total_ios"] == part["slat_ns"]["N"], (job["jobname"], name)
            assert part["bw_min"] <= part["bw_mean"] <= part["bw_max"]
            assert part["iops_min"] <= part["iops_mean"] <= part["iops_max"]
            assert (part["iops_samples"] > 0) == (part["total_ios"] > 0)
            if part["total_ios"]:
                assert sum(clat["bins"].values()) == part["total_ios"]
                ranks = list(clat["percentile"].values())
                assert ranks == sorted(ranks) and len(ranks) == 17
        shares = [job[f"latency_{unit}"].values() for unit in ("ns", "us", "ms")]
        assert 99 < sum(sum(classes) for classes in shares) < 102, job["jobname"]


def check_clat2csv(folder, result):
    """fio_jsonplus_clat2csv counts every I/O."""
    for number, job in enumerate(result["jobs"]):
        with open(folder / f"latency_job{number}.csv", newline="") as file:
            rows = list(csv.DictReader(file, skipinitialspace=True))
        for name in ("read", "write"):
            column = f"{name}_clat_ns_cumulative"
            sums = [int(row[column]) for row in rows if row[column].strip()]
            assert (sums[-1] if sums else 0) == job[name]["total_ios"], (folder, number, name)
            assert sums == sorted(sums)


def check_logs(folder, result):
    """Entries have fio's fields, are in order, and there is one for each I/O where asked for."""
    first, second = result["jobs"]
    ios = first["read"]["total_ios"] + first["write"]["total_ios"]
    names = set()
    for path in sorted(folder.glob("*.log")):
        names.add(path.name)
        entries = [line.split(", ") for line in path.read_text().splitlines()]
        assert entries, path
        assert all(re.fullmatch(r"\d+", field) for entry in entries for field in entry), path
        if "_hist" in path.name:
            assert {len(entry) for entry in entries} == {3 + 29 * 64}
            continue
        per_io = path.name.startswith("each")
        assert {len(entry) for entry in entries} == {6 if per_io else 5}, path
        assert {entry[2] for entry in entries} == ({"0", "1"} if per_io else {"1"}), path
        if per_io:
            assert len(entries) == ios, path
        else:
            assert 1 <= len(entries) <= 9, (path, entries)
    mean = second["write"]["clat_ns"]["mean"]
    logged = [int(line.split(", ")[1]) for line in (folder / "averaged_clat.2.log").open()]
    assert min(logged) <= mean <= max(logged) + 1, (mean, logged)
    return names


def check_percentiles(folder, result):
    """fio-histo-log-pctiles.py finds the latencies of the result, in the order of time."""
    rows = [line.split(",") for line in (folder / "percentiles.csv").read_text().splitlines()]
    rows = [row for row in rows if row and re.fullmatch(r"\s*[\d.]+", row[0])]
    counts = [int(row[1]) for row in rows]
    assert rows and max(counts) > 0, folder
    most = max(result["jobs"][0][name]["clat_ns"]["max"] for name in ("read", "write"))
    assert all(float(row[-1]) * 1000 <= most * 1.02 for row in rows), (folder, most, rows)
    return sum(counts)


def check_hdr(folder, result):
    """HdrHistogram's reader finds the same counts, extremes and percentiles as the result tells."""
    found = {}
    reader = HistogramLogReader(str(folder / "latency.hlog"), HdrHistogram(1, 1 << 40, 3))
    while (histogram := reader.get_next_interval_histogram()) is not None:
        job, name = histogram.get_tag().rsplit("/", 1)
        whole = found.setdefault((job, name), HdrHistogram(1, 1 << 40, 3))
        whole.add(histogram)
    expected = {}
    for job in result["jobs"]:
        for name in ("read", "write", "trim"):
            expected[job["jobname"], name] = job[name]["clat_ns"]
        expected[job["jobname"], "sync"] = job["sync"]["lat_ns"]
    expected = {key: latency for key, latency in expected.items() if latency["N"]}
    assert found.keys() == expected.keys(), (found.keys(), expected.keys())
    for key, latency in expected.items():
        histogram = found[key]
        assert histogram.get_total_count() == latency["N"], key
        for rank, ns in latency["percentile"].items():
            # The two round a rank that falls between two I/Os to different sides.
            one = 100 / latency["N"]
            ranks = (max(float(rank) - one, 0), min(float(rank) + one, 100))
            least, most = (histogram.get_value_at_percentile(rank) for rank in ranks)
            assert least * (1 - PRECISION) <= ns <= most * (1 + PRECISION), (key, rank, ns)


def main():
    work = pathlib.Path(sys.argv[1])
    sides = {}
    for name in ("fio", "ours"):
        folder = work / name
        result = json.loads((folder / "result.json").read_text())
        check_json(result)
        check_clat2csv(folder, result)
        logs = check_logs(folder, result)
        assert check_percentiles(folder, result)
        assert (folder / "averaged_bw.average").read_text().strip(), name
        sides[name] = (result, logs)
    (fio, fio_logs), (ours, our_logs) = sides["fio"], sides["ours"]
    assert fio_logs == our_logs, fio_logs ^ our_logs
    number = check_paths(fio, ours)
    check_options(fio, ours)
    check_hdr(work / "ours", ours)
    print(f"fio's consumers: {number} paths, {len(our_logs)} logs, histograms agree")


if __name__ == "__main__":
    main()
