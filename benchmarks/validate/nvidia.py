"""Run NVIDIA's tools: find and start them, read launches from ncu's CSV, count instructions in cuobjdump's output."""

from __future__ import annotations

import collections
import csv
import re
import shutil
import subprocess
from pathlib import Path

from benchmarks.paths import ROOT
from benchmarks.validate.metrics import METRICS, NAMES


def find_tool(name: str) -> str:
    """Return the path of one of NVIDIA's tools: on the PATH, or where its packages install it."""
    paths = [
        shutil.which(name),
        f"/usr/local/cuda/bin/{name}",
        *sorted(map(str, Path("/opt/nvidia/nsight-compute").glob(f"*/{name}"))),
    ]
    return next((p for p in paths if p and Path(p).exists()), name)


def run_tool(command: list[str], cwd: Path | None = None) -> str:
    """Run a command and return its output. Raises RuntimeError if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command)[:300]}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        )
    return done.stdout


def count_instructions(text: str) -> dict[str, dict]:
    """Count the instructions of each kernel in the output of `cuobjdump -sass`, by operation.

    Memory operations are counted by width. predicated: instructions under a predicate, other than branches.
    """
    kernels: dict[str, collections.Counter] = {}
    current = None
    for line in text.splitlines():
        if found := re.match(r"\s+Function : (\S+)", line):
            current = kernels.setdefault(found[1], collections.Counter())
        elif current is not None and (
            found := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(@!?U?P\w+ )?\s*([A-Z][A-Z0-9_.]*)", line)
        ):
            current[found[2]] += 1
            if found[1] and not found[2].startswith(("BRA", "EXIT", "NOP")):
                current["predicated"] += 1
    made = {}
    for mangled, found in kernels.items():
        short: collections.Counter = collections.Counter()
        for operation, count in found.items():
            base = operation.split(".")[0]
            memory = re.match(r"(LDG|STG|LDS|STS|LDL|STL|LD|ST|ATOM|ATOMG|ATOMS|RED|REDG|LDGSTS)$", base)
            width = re.search(r"\.(U8|S8|U16|S16|64|128)\b", operation)
            short[base + (f".{width[1]}" if memory and width else "")] += count
        short.pop("NOP", None)
        predicated = short.pop("predicated", 0)
        made[demangle(mangled)] = {
            "total": sum(short.values()),
            "predicated": predicated,
            **dict(sorted(short.items())),
        }
    return made


def demangle(name: str) -> str:
    """Return a C++ name as c++filt shows it, or as it is without c++filt."""
    try:
        return subprocess.run(["c++filt", name], capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return name


def read_sass(path: Path) -> dict[str, dict]:
    """Count the instructions of each kernel in a program or library."""
    found = count_instructions(run_tool([find_tool("cuobjdump"), "-sass", str(path)]))
    return {name: row for name, row in found.items() if "flush_l2" not in name}


def find_usable_metrics(program: Path) -> list[str]:
    """Return METRICS without those that this ncu refuses; it names them."""
    metrics = list(METRICS.values())
    for _ in range(10):
        command = [
            find_tool("ncu"),
            "--clock-control",
            "none",
            "--metrics",
            ",".join(metrics),
            "--launch-count",
            "1",
            str(program),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        text = done.stdout + done.stderr
        refused = {
            m
            for m in metrics
            if re.search(rf"(?i)(fail|could not|unable|invalid|not (?:found|available))[^\n]*{re.escape(m)}\b", text)
        }
        if not refused:
            if done.returncode or "ERROR" in text:
                raise RuntimeError(f"ncu: {text[-3000:]}")
            return metrics
        print("ncu has no", sorted(refused), flush=True)
        metrics = [m for m in metrics if m not in refused]
    raise RuntimeError("ncu refuses metric after metric")


def profile(command: list[str], report: Path, metrics: list[str], only_marked: bool = False) -> list[dict]:
    """Run a command and its children under ncu. Return a row for each launch, in order."""
    options = ["--profile-from-start", "off"] if only_marked else []
    run_tool(
        [
            find_tool("ncu"),
            "--target-processes",
            "all",
            "--clock-control",
            "none",
            "--metrics",
            ",".join(metrics),
            *options,
            "-f",
            "-o",
            str(report),
            *command,
        ],
        cwd=ROOT,
    )
    text = run_tool(
        [find_tool("ncu"), "--import", str(report) + ".ncu-rep", "--csv", "--page", "raw", "--print-units", "base"]
    )
    return parse_launches(text)


def parse_launches(text: str) -> list[dict]:
    """Return a row for each launch in ncu's CSV (a line of heads, one of units, one per launch). Leave out zeros."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith('"ID"'))
    table = list(csv.reader(lines[start:]))
    heads, made = table[0], []
    for line in table[2:]:
        if len(line) != len(heads):
            continue
        cells = dict(zip(heads, line, strict=True))
        row = {"process": cells["Process Name"], "pid": cells["Process ID"], "kernel": cells["Kernel Name"]}
        row |= {
            name: [int(n) for n in re.findall(r"\d+", cells[head])]
            for name, head in (("grid", "Grid Size"), ("block", "Block Size"))
        }
        row |= {
            name: value for name, value in ((NAMES[m], parse_number(cells[m])) for m in heads if m in NAMES) if value
        }
        made.append(row)
    return made


def parse_number(text: str) -> float | int | None:
    """Return the number in a cell, or None."""
    text = text.replace(",", "")
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if value.is_integer() else round(value, 4)
