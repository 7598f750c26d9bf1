"""Measure every launch of selected rows with Nsight Compute: its seconds and its bytes of DRAM."""

from __future__ import annotations

import csv
import dataclasses
import re
import shutil
import subprocess
from collections.abc import Sequence

from grader.bench.children import SILENCE_S, make_environment
from grader.bench.interleaved import describe_error
from grader.bench.order import Order
from grader.bench.rows import OURS
from grader.paths import ROOT
from grader.problems import cases

METRICS = {"seconds": "gpu__time_duration.sum", "read": "dram__bytes_read.sum", "written": "dram__bytes_write.sum"}
MARK = "spin_kernel"  # torch.cuda._sleep's


def profile_launches(order: Order, made: dict) -> dict:
    """Return every launch's seconds and DRAM bytes of eager, the fastest torch.compile, the slowest of ours and the
    fastest of ours in each class, by row. Return {"failed": why} where ncu gives no figures.
    """
    timed = sorted((r for r in made["rows"] if "ms" in r), key=lambda r: r["ms"])
    ours = [r for r in timed if r["kind"] in OURS]
    compiled = [r for r in timed if r["kind"] == "compile" and r["mode"] == "default"]
    eager = [r for r in timed if r["kind"] == "eager" and r["precision"] == "fp32" and not r.get("channels_last")]
    fastest = [next((r for r in ours if r["precision"] == precision), None) for precision in cases.PRECISIONS]
    picked = [*eager[:1], *compiled[:1], *ours[-1:], *filter(None, fastest)]
    names = list(dict.fromkeys(r["name"] for r in picked))
    program = shutil.which("ncu")
    if not names or program is None:
        return {"failed": "ncu is not installed" if names else "nothing was timed"}
    how = ["--target-processes", "all", "--clock-control", "none", "--profile-from-start", "off"]
    how += ["--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(METRICS.values())]
    child_of_ncu = dataclasses.replace(order, profile=names).make_command(2)
    entry_order = [r["name"] for r in made["rows"] if r["name"] in names]  # in which the child runs them
    try:
        done = subprocess.run(
            [program, *how, *child_of_ncu],
            cwd=ROOT,
            env=make_environment(),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SILENCE_S / 3,
            check=False,
        )
        found = parse_launches(done.stdout, entry_order)
        return {name: found[name] for name in names}
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return {"failed": describe_error(error)}


def parse_launches(text: str, names: Sequence[str]) -> dict:
    """Return the launches in ncu's CSV (a line of heads, one of units, one per launch) by row, split at the marks.

    Raises ValueError unless there is one part per name.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise ValueError(f"ncu printed: {lines[-1][:200] if lines else 'nothing'}")
    heads, _, *table = csv.reader(lines[start:])
    parts: list[list[dict]] = []
    for line in table:
        if len(line) != len(heads):
            continue
        cells = dict(zip(heads, line, strict=True))
        if MARK in cells["Kernel Name"]:
            parts.append([])
        elif parts:
            seconds, read, written = (float(cells[m].replace(",", "")) for m in METRICS.values())
            parts[-1].append(
                {"kernel": shorten_name(cells["Kernel Name"]), "seconds": seconds / 1e9, "bytes": read + written}
            )
    if len(parts) != len(names):
        raise ValueError(f"ncu saw {len(parts)} of {len(names)} rows")
    return dict(zip(names, parts, strict=True))


def shorten_name(kernel: str) -> str:
    """Return a kernel's name without result type, namespaces, template arguments and parameters."""
    bare = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", kernel).removeprefix("void ")
    return re.split(r"[<(]", bare)[0].split("::")[-1] or kernel[:40]
