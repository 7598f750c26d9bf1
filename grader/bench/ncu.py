"""Every launch of a row with its seconds and its bytes of DRAM, as Nsight Compute's command line tells them."""

from __future__ import annotations

import csv
import dataclasses
import re
import shutil
import subprocess
from collections.abc import Sequence

from grader import cases
from grader.bench.child import Order, words_of
from grader.bench.children import PATIENCE, ROOT, environment
from grader.bench.rows import OURS

METRICS = {"seconds": "gpu__time_duration.sum", "read": "dram__bytes_read.sum", "written": "dram__bytes_write.sum"}
MARK = "spin_kernel"  # torch.cuda._sleep's


def launches(order: Order, made: dict) -> dict:
    """Of eager, the fastest torch.compile, the slowest of ours and the fastest in each class: every launch's seconds and
    bytes to and from DRAM. {"failed": why} where ncu does not say."""
    timed = sorted((r for r in made["rows"] if "ms" in r), key=lambda r: r["ms"])
    ours = [r for r in timed if r["kind"] in OURS]
    compiled = [r for r in timed if r["kind"] == "compile" and r["mode"] == "default"]
    eager = [r for r in timed if r["kind"] == "eager" and r["precision"] == "fp32" and not r.get("channels_last")]
    fastest = [next((r for r in ours if r["precision"] == precision), None) for precision in cases.PRECISIONS]
    picked = [*eager[:1], *compiled[:1], *ours[-1:], *filter(None, fastest)]
    names = list(dict.fromkeys(r["name"] for r in picked))
    program = shutil.which("ncu")
    if not names or program is None:
        return {"failed": "ncu is not there" if names else "nothing was timed"}
    how = ["--target-processes", "all", "--clock-control", "none", "--profile-from-start", "off"]
    how += ["--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(METRICS.values())]
    child_of_ncu = dataclasses.replace(order, profile=names).command(2)
    entry_order = [r["name"] for r in made["rows"] if r["name"] in names]  # in which the child runs them
    try:
        done = subprocess.run(
            [program, *how, *child_of_ncu], cwd=ROOT, env=environment(), capture_output=True, text=True, encoding="utf-8", errors="replace",
            timeout=PATIENCE / 3, check=False,
        )  # fmt: skip
        found = launches_in(done.stdout, entry_order)
        return {name: found[name] for name in names}
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        return {"failed": words_of(error)}


def launches_in(text: str, names: Sequence[str]) -> dict:
    """ncu's CSV (a line of heads, one of units, one a launch), cut at the marks. ValueError unless there are as many as
    names."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        raise ValueError(f"ncu said: {lines[-1][:200] if lines else 'nothing'}")
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
            parts[-1].append({"kernel": short(cells["Kernel Name"]), "seconds": seconds / 1e9, "bytes": read + written})
    if len(parts) != len(names):
        raise ValueError(f"ncu saw {len(parts)} of {len(names)} rows")
    return dict(zip(names, parts, strict=True))


def short(kernel: str) -> str:
    """A kernel's name without its result, its namespaces, its template's and its own arguments."""
    bare = re.sub(r"\(anonymous namespace\)::|<unnamed>::", "", kernel).removeprefix("void ")
    return re.split(r"[<(]", bare)[0].split("::")[-1] or kernel[:40]
