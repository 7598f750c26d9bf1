"""How L1 takes one warp's atomic operation, pattern by pattern: sectors and wavefronts by ncu on a GPU, sectors by simt.

    python benchmarks/atomics.py --out FILE    on a GPU with nvcc and ncu: counts 623 requests, writes the data file
    python benchmarks/atomics.py               counts the same requests with simt, and says how many have ncu's sectors

The patterns come from a seed, so that the data file need only hold what ncu counted of them: data/atomics.json.
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

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

DATA = ROOT / "benchmarks" / "data" / "atomics.json"
PROGRAM = ROOT / "benchmarks" / "atomics.cu"
OPERATIONS = (("float added", 4), ("int maximum", 4), ("double added", 8), ("float added, result used", 4))  # as in atomics.cu; bytes
FIGURES = {"sectors": "sectors", "wavefronts": "output_wavefronts"}
LINE = 128


def patterns() -> list[tuple[int, list[int]]]:
    """(operation, each lane's offset in bytes or -1): one line and far lines, few lanes and all, with and without lanes that meet."""
    dice = random.Random(20261121)
    made: list[tuple[int, list[int]]] = []

    def add(operation: int, lanes: dict[int, int]) -> None:
        size = OPERATIONS[operation][1]
        made.append((operation, [lanes[lane] * size if lane in lanes else -1 for lane in range(32)]))

    for bit in range(7, 26):  # two lines that differ in one bit of their address, then that line beside each of the first four
        add(0, {0: 0, 1: (1 << bit) // 4})
        for line in range(4):
            add(0, {3: line * LINE // 4, 17: (1 << bit) // 4})
    for operation, (_, size) in enumerate(OPERATIONS):
        times = 2 if operation else 5
        for lines in (1, 2, 4, 5, 8, 32):
            words = lines * LINE // size
            for _ in range(4 * times):
                add(operation, dict(enumerate(dice.choices(range(words), k=32))))
            for count in (3, 8, 16, min(32, words)):
                for _ in range(times):
                    add(operation, dict(zip(dice.sample(range(32), count), dice.sample(range(words), count))))
    return made


def by_ncu(folder: Path, chosen: list[tuple[int, list[int]]]) -> dict[str, list[int]]:
    """Sectors and wavefronts of each pattern's request."""
    from ncu import output, tool

    output(["nvcc", "-O3", "-arch=sm_90", "-std=c++17", "-o", str(folder / "atomics"), str(PROGRAM)])
    metrics = {what: [f"l1tex__t_{name}_pipe_lsu_mem_global_op_{kind}.sum" for kind in ("red", "atom")] for what, name in FIGURES.items()}
    every = ",".join(name for names in metrics.values() for name in names)
    text = output([tool("ncu"), "--metrics", every, "--csv", "--page", "raw", str(folder / "atomics"), str(write(folder, chosen))])
    table = list(csv.DictReader(text[text.index('"ID"') :].splitlines()))[1:]  # the first row holds units
    if len(table) != len(chosen):
        raise SystemExit(f"ncu saw {len(table)} launches of {len(chosen)}")
    return {what: [sum(round(float(row[name].replace(",", ""))) for name in names) for row in table] for what, names in metrics.items()}


def by_simt(chosen: list[tuple[int, list[int]]]) -> list[int]:
    """The sectors that simt counts of each pattern's request."""
    with tempfile.TemporaryDirectory() as name:
        result = Path(name) / "counts.json"
        command = [sys.executable, "-m", "simt", "count", "--json", str(result), str(PROGRAM), str(write(Path(name), chosen))]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        if done.returncode:
            raise SystemExit(f"simt count: {done.stderr[-2000:]}")
        launches = json.loads(result.read_text())["launches"]
    return [round(launch["counters"]["global_atomics"]["sectors"]) for launch in launches]


def write(folder: Path, chosen: list[tuple[int, list[int]]]) -> Path:
    file = folder / "patterns.txt"
    file.write_text("".join(f"{operation} {' '.join(map(str, offsets))}\n" for operation, offsets in chosen))
    return file


@click.command(help=__doc__)
@click.option("--out", type=click.Path(path_type=Path), help="Count with ncu, and write this data file.")
def main(out: Path | None) -> None:
    chosen = patterns()
    if out:
        from machine import machine
        from ncu import output, tool

        with tempfile.TemporaryDirectory() as folder:
            found = by_ncu(Path(folder), chosen)
        head = machine() | {"ncu": output([tool("ncu"), "--version"]).strip().splitlines()[-1]}
        out.write_text(json.dumps({"machine": head, **found}) + "\n")
        print(f"{len(chosen)} requests counted")
        return
    data = json.loads(DATA.read_text())
    same = sum(mine == theirs for mine, theirs in zip(by_simt(chosen), data["sectors"], strict=True))
    print(f"{same} of {len(chosen)} requests have the sectors that ncu counted on {data['machine']['gpu']}, {data['machine']['date']}")


if __name__ == "__main__":
    main()
