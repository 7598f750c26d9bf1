"""Compare the sectors of one warp's atomic operation, pattern by pattern, as ncu and as simt count them.

    python benchmarks/validate/atomics.py --out FILE    count 623 requests with ncu on a GPU, write the data file
    python benchmarks/validate/atomics.py               count the same requests with simt, print how many agree

A fixed seed makes the patterns, so the data file (data/atomics.json) only holds ncu's sectors and wavefronts of each.
"""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import BENCHMARKS, DATA_FOLDER, ROOT
from benchmarks.validate.nvidia import find_tool, run_tool

DATA = DATA_FOLDER / "atomics.json"
PROGRAM = BENCHMARKS / "validate" / "atomics.cu"
# name and bytes, in the order of atomics.cu
OPERATIONS = (("float added", 4), ("int maximum", 4), ("double added", 8), ("float added, result used", 4))
FIGURES = {"sectors": "sectors", "wavefronts": "output_wavefronts"}
LINE = 128


def make_patterns() -> list[tuple[int, list[int]]]:
    """Return (operation, each lane's offset in bytes or -1 for an inactive lane).

    The patterns cover one line and distant lines, few lanes and all, with and without lanes at equal addresses.
    """
    dice = random.Random(20261121)
    made: list[tuple[int, list[int]]] = []

    def add(operation: int, lanes: dict[int, int]) -> None:
        size = OPERATIONS[operation][1]
        made.append((operation, [lanes[lane] * size if lane in lanes else -1 for lane in range(32)]))

    # two lines that differ in one bit of their address, then the second line with each of the first four
    for bit in range(7, 26):
        add(0, {0: 0, 1: (1 << bit) // 4})
        for line in range(4):
            add(0, {3: line * LINE // 4, 17: (1 << bit) // 4})
    for operation, (_, size) in enumerate(OPERATIONS):
        times = 2 if operation else 5
        for lines in (1, 2, 4, 5, 8, 32):
            elements = lines * LINE // size
            for _ in range(4 * times):
                add(operation, dict(enumerate(dice.choices(range(elements), k=32))))
            for count in (3, 8, 16, min(32, elements)):
                for _ in range(times):
                    add(operation, dict(zip(dice.sample(range(32), count), dice.sample(range(elements), count))))
    return made


def count_with_ncu(folder: Path, chosen: list[tuple[int, list[int]]]) -> dict[str, list[int]]:
    """Return the sectors and wavefronts of each pattern's request."""
    run_tool(["nvcc", "-O3", "-arch=sm_90", "-std=c++17", "-o", str(folder / "atomics"), str(PROGRAM)])
    metrics = {
        what: [f"l1tex__t_{name}_pipe_lsu_mem_global_op_{kind}.sum" for kind in ("red", "atom")]
        for what, name in FIGURES.items()
    }
    every = ",".join(name for names in metrics.values() for name in names)
    text = run_tool(
        [
            find_tool("ncu"),
            "--metrics",
            every,
            "--csv",
            "--page",
            "raw",
            str(folder / "atomics"),
            str(write_patterns(folder, chosen)),
        ]
    )
    table = list(csv.DictReader(text[text.index('"ID"') :].splitlines()))[1:]  # the first row holds units
    if len(table) != len(chosen):
        raise SystemExit(f"ncu saw {len(table)} launches of {len(chosen)}")
    return {
        what: [sum(round(float(row[name].replace(",", ""))) for name in names) for row in table]
        for what, names in metrics.items()
    }


def count_with_simt(chosen: list[tuple[int, list[int]]]) -> list[int]:
    """Return the sectors that simt counts for each pattern's request."""
    with tempfile.TemporaryDirectory() as name:
        result = Path(name) / "counts.json"
        command = [
            sys.executable,
            "-m",
            "simt",
            "count",
            "--json",
            str(result),
            str(PROGRAM),
            str(write_patterns(Path(name), chosen)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        if done.returncode:
            raise SystemExit(f"simt count: {done.stderr[-2000:]}")
        launches = json.loads(result.read_text())["launches"]
    return [round(launch["counters"]["global_atomics"]["sectors"]) for launch in launches]


def write_patterns(folder: Path, chosen: list[tuple[int, list[int]]]) -> Path:
    """Write the patterns to a file that atomics.cu reads."""
    file = folder / "patterns.txt"
    file.write_text("".join(f"{operation} {' '.join(map(str, offsets))}\n" for operation, offsets in chosen))
    return file


@click.command(help=__doc__)
@click.option("--out", type=click.Path(path_type=Path), help="Count with ncu and write this data file.")
def main(out: Path | None) -> None:
    chosen = make_patterns()
    if out:
        with tempfile.TemporaryDirectory() as folder:
            found = count_with_ncu(Path(folder), chosen)
        head = describe_machine() | {"ncu": run_tool([find_tool("ncu"), "--version"]).strip().splitlines()[-1]}
        out.write_text(json.dumps({"machine": head, **found}) + "\n")
        print(f"{len(chosen)} requests counted")
        return
    data = json.loads(DATA.read_text())
    same = sum(mine == theirs for mine, theirs in zip(count_with_simt(chosen), data["sectors"], strict=True))
    machine = data["machine"]
    print(f"{same} of {len(chosen)} requests agree with ncu on {machine['gpu']}, {machine['date']}")


if __name__ == "__main__":
    main()
