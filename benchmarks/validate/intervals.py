"""How far measured times lie from simt's predictions, by the part that limits a kernel: INTERVALS of
simt/counting/time_model.py.

    python benchmarks/validate/intervals.py            print the intervals that the measured kernels give
    python benchmarks/validate/intervals.py --write    also write data/intervals.json

An interval holds measured over predicted time for nine in ten of the kernels that a part limits, widened by MARGIN.
How often it holds for kernels that it was not made from: each program (or problem) in turn is left out, and its kernels
are compared with the interval of the others.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.paths import DATA_FOLDER
from benchmarks.publish.tables import show_table
from benchmarks.validate import unseen
from simt.counting.time_model import UNKNOWN_INTERVAL, Work, predict

OUT = DATA_FOLDER / "intervals.json"
DEVICE = "H200"
LOW, HIGH = 0.05, 0.95
MARGIN = 1.15  # because the next kernel is none of those measured
FEWEST = 5  # kernels for an interval of their own
Ratio = tuple[str, str, float]  # program or problem, limit, logarithm of measured over predicted time


def list_ratios() -> list[Ratio]:
    """Return a row for each kernel that was measured on a GPU: micro-kernels, solutions, steps, and the kernels of
    benchmarks/unseen that the model has met.
    """
    data = json.loads((DATA_FOLDER / "model.json").read_text())
    times = json.loads((DATA_FOLDER / "steps.json").read_text())["steps"]
    found = []
    for row in data["rows"]:
        found.append(make_ratio(row["group"], row["work"], row["seconds"]))
    for row in data["steps"]:
        kernel = row["name"].split(": ")[1]
        measured = times.get(row["group"], {}).get("kernels", {}).get(kernel)
        if measured:
            found.append(make_ratio(row["group"].split("/")[0], row["work"], measured["ms"] / 1e3))
    met = unseen.read_data()
    for program in met["seen"]:
        for time, launch in zip(met["times"][program].values(), met["counts"][program], strict=True):
            device = unseen.DEVICES[met["machine"]["gpu"]]
            found.append(make_ratio(program, launch["work"], time["cold_ms"] / 1e3, device))
    return found


def make_ratio(group: str, work: dict, seconds: float, device: str = DEVICE) -> Ratio:
    predicted = predict(Work(**work), device)
    return group, predicted.limit, math.log(seconds / predicted.seconds)


def find_quantile(values: list[float], part: float) -> float:
    """Return a quantile, interpolated between two values."""
    ordered = sorted(values)
    position = part * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def make_interval(values: list[float]) -> tuple[float, float]:
    """Return low and high of measured over predicted time."""
    if len(values) < FEWEST:
        return UNKNOWN_INTERVAL
    low, high = (math.exp(find_quantile(values, part)) for part in (LOW, HIGH))
    return low / MARGIN, high * MARGIN


def find_coverage(ratios: list[Ratio]) -> float:
    """Return the part of the kernels that lie in the interval of the other programs' kernels."""
    held = 0
    for group, limit, value in ratios:
        others = [each for other, of, each in ratios if of == limit and other != group]
        low, high = make_interval(others)
        held += math.log(low) <= value <= math.log(high)
    return held / len(ratios)


@click.command(help=__doc__)
@click.option("--write", is_flag=True, help="Also write data/intervals.json.")
def main(write: bool) -> None:
    ratios = list_ratios()
    made = {}
    for limit in sorted({limit for _, limit, _ in ratios}):
        values = [value for _, of, value in ratios if of == limit]
        low, high = make_interval(values)
        made[limit] = {"low": round(low, 2), "high": round(high, 2), "kernels": len(values)}
    coverage = find_coverage(ratios)
    rows = [[limit, str(one["kernels"]), f"{one['low']:.2f}", f"{one['high']:.2f}"] for limit, one in made.items()]
    show_table(["limit", "kernels", "low", "high"], rows)
    print(f"{len(ratios)} kernels; of programs left out, {coverage:.0%} lie in the interval of the others")
    if write:
        data = {"intervals": made, "coverage": round(coverage, 3), "kernels": len(ratios)}
        OUT.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
