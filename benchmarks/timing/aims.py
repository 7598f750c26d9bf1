"""Time the fastest kernels without images beside the functions of torch and of CUB that they are measured by.

    python benchmarks/timing/aims.py --run [NAME …]   on a GPU: `grader bench` of these runs, else of all; each writes
                                                      data/aims/NAME.json
    python benchmarks/timing/aims.py [--readme]       print the table of the data files; --readme also publishes it

The aims are ratios: our time over that of the best function beside it; the result must be in the problem's precision
class, or not much less exact than that function's. A scan is compared with a copy of the same vector, which moves the
same bytes. The exit status is 1 if an aim is missed, or a run lacks a time. The table names files that have changed
since.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.paths import DATA_FOLDER, ROOT
from benchmarks.publish.tables import make_table_with_source, show_table, write_section
from grader.source.contract import code_digest

FOLDER = DATA_FOLDER / "aims"
LEFT_OUT = "step,reference,compile,channels_last,tf32,launches"
HEADS = ["", "ours, ms", "largest error", "beside it", "ms", "largest error", "ours / beside", "aim", "kept"]
LESS_EXACT = 2.0  # our error may be this many times that of the function beside it, or is within the precision class
LAST_STEP = "kernels_ref/histogram/steps/05_copies_per_lane.py"  # histogram has no other fastest file


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of `grader bench` and its aim: our time is at most `most` times that of the best row whose name has
    `beside` in it.
    """

    what: str
    arguments: tuple[str, ...]
    beside: str
    most: float


def make_scan(exponent: int) -> Run:
    """Return the run of a scan of 2 to a power of elements."""
    arguments = ("scan", "--set", f"length={2**exponent}")
    return Run(f"scan, 2^{exponent} elements", arguments, "a copy", 1 / 0.85)


CAUSAL = ("--set", "causal=True")
ATTENTION = "scaled_dot_product_attention"
RUNS = {
    "attention": Run("attention", ("attention",), ATTENTION, 1.25),
    "attention_causal": Run("attention, causal", ("attention", *CAUSAL), ATTENTION, 1.25),
    "attention_backward": Run("attention and its backward", ("attention", "--backward"), ATTENTION, 1.5),
    "attention_backward_causal": Run(
        "attention and its backward, causal", ("attention", "--backward", *CAUSAL), ATTENTION, 1.5
    ),
    **{f"scan_{exponent}": make_scan(exponent) for exponent in (20, 22, 24, 26)},
    "histogram": Run("histogram", (LAST_STEP, "--problem", "histogram"), "cub::", 1.1),
    "int4_matvec": Run("int4_matvec, one vector", ("int4_matvec",), "torch.matmul", 1 / 3),
    "int8_matmul": Run("int8_matmul, 256 vectors", ("int8_matmul", "--set", "batch_size=256"), "torch.matmul", 1 / 1.3),
}


def measure(name: str) -> int:
    """Run `grader bench` and write the data file. Returns its exit status."""
    target = FOLDER / f"{name}.json"
    FOLDER.mkdir(exist_ok=True)
    pictures = ROOT / "reports" / "aims"
    command = [sys.executable, "-m", "grader", "bench", *RUNS[name].arguments, "--without", LEFT_OUT]
    command += ["--seconds", "4", "--out", str(target), "--pictures", str(pictures)]
    return subprocess.run(command, cwd=ROOT).returncode


def read(name: str) -> dict | None:
    """Return what the data file has of the run's problem; None without one, or where it lacks one of the two times."""
    file = FOLDER / f"{name}.json"
    problems = json.loads(file.read_text(encoding="utf-8"))["problems"] if file.exists() else {}
    for made in problems.values():
        made = made.get("backward") or made
        if find_best(made, is_ours) and find_best(made, lambda row: RUNS[name].beside in row["name"]):
            return made
    return None


def is_ours(row: dict) -> bool:
    """Return whether a row is the fastest file's."""
    return row["kind"] in ("beside", "submission")


def find_best(made: dict, is_wanted: Callable[[dict], bool]) -> dict | None:
    """Return the fastest of the rows that are wanted, or None if none was timed."""
    return min((row for row in made["rows"] if "ms" in row and is_wanted(row)), key=lambda row: row["ms"], default=None)


def compare(run: Run, made: dict) -> tuple[list[str], bool]:
    """Return the run's cells under HEADS, and whether its aim is kept."""
    ours, best = find_best(made, is_ours), find_best(made, lambda row: run.beside in row["name"])
    assert ours is not None and best is not None, "read() leaves out such runs"
    ratio = ours["ms"] / best["ms"]
    # torch's own fused attention is in no class either: its gradients are those of a rounded result.
    exact = ours["in_class"] or ours["error"] <= LESS_EXACT * best["error"]
    cells = [run.what, f"{ours['ms']:.4g}", f"{ours['error']:.1e}", best["name"].removeprefix("anchor: ")]
    cells += [f"{best['ms']:.4g}", f"{best['error']:.1e}", f"{ratio:.2f}", f"{run.most:.2f}"]
    kept = ratio <= run.most and exact
    return [*cells, "yes" if kept else "no"], kept


def compare_cub(made: dict) -> str:
    """Return a sentence on CUB's scan beside the copy, or "" without such rows."""
    rows = {row["name"]: row["ms"] for row in made["rows"] if "ms" in row}
    if not {"anchor: cub::DeviceScan", "anchor: a copy"} <= rows.keys():
        return ""
    ratio = rows["anchor: cub::DeviceScan"] / rows["anchor: a copy"]
    return f"cub::DeviceScan takes {ratio:.2f} times as long as the copy of 2^26 elements. "


def describe_runs(found: dict[str, dict]) -> str:
    """Return the lines below the table: dates and machines of the runs, and which files have changed since."""
    machines = [made["machine"] for made in found.values()]
    runs = "; ".join(sorted({f"{on['date']}, {on['name']}, torch {on['torch']}" for on in machines}))
    cub = compare_cub(found["scan_26"]) if "scan_26" in found else ""
    return f"{cub}{runs}; `python benchmarks/timing/aims.py --readme` made this from data/aims.{find_changed(found)}"


def find_changed(found: dict[str, dict]) -> str:
    """Return a sentence on the files that have changed since they were timed, or ""."""
    timed = [row for made in found.values() if (row := find_best(made, is_ours)) is not None]
    changed = {r["file"] for r in timed if code_digest((ROOT / r["file"]).read_text(encoding="utf-8")) != r["code"]}
    return f" Changed since: {', '.join(sorted(changed))}." if changed else ""


@click.command(help=__doc__)
@click.argument("names", nargs=-1, type=click.Choice(list(RUNS)))
@click.option("--run", "measured", is_flag=True, help="Measure, on a GPU.")
@click.option("--readme", is_flag=True, help="Write the table into benchmarks/README.md.")
def main(names: tuple[str, ...], measured: bool, readme: bool) -> None:
    if measured and max([measure(name) for name in names or RUNS]) > 0:
        sys.exit(1)
    found = {name: made for name in RUNS if (made := read(name)) is not None}
    compared = [compare(RUNS[name], made) for name, made in found.items()]
    rows = [cells for cells, _ in compared]
    show_table(HEADS, rows)
    if readme:
        write_section("aims", make_table_with_source(HEADS, rows, describe_runs(found)))
    sys.exit(not all(kept for _, kept in compared) or len(found) < len(RUNS))


if __name__ == "__main__":
    main()
