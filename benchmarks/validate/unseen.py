"""Compare predicted with measured times for kernels that the time model was not made from: benchmarks/unseen.

    python benchmarks/validate/unseen.py              predict, compare, print; exit status 1 where an aim is missed
    python benchmarks/validate/unseen.py --count      count the kernels with simt first (a few minutes)
    python benchmarks/validate/unseen.py --measure    on a GPU: time them first, with L2 flushed, medians of 20
    python benchmarks/validate/unseen.py --met        keep what the model says of them, and call them seen

The programs were written after the model and without a prediction, and no constant was fitted to them. Their kernels
are counted as the grader counts a submission: a few blocks of each launch at full size. data/unseen.json keeps
the counts and the times, a digest of the model's source when they were measured, and what that model said, in `said`:
where the source has changed since, the script names the predictions that differ now. A kernel on which the model has
been improved is no longer unseen: --met, before that, puts its program and the day into `seen`, and what the model said
until then into `first`.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.machine import describe_machine
from benchmarks.paths import DATA_FOLDER, ROOT, UNSEEN
from benchmarks.publish.tables import show_table
from benchmarks.validate import counted
from benchmarks.validate.nvidia import run_tool
from grader.judging.full_size import BLOCKS
from simt.counting.time_model import Work, find_interval, predict

DATA = DATA_FOLDER / "unseen.json"
MODEL = [ROOT / "simt" / "counting" / name for name in ("time_model.py", "work.py", "compiled.py")]
MODEL += sorted((ROOT / "simt" / "toolchain" / "disassembly").glob("*.py"))
DEVICES = {"NVIDIA H200": "H200", "NVIDIA H100 80GB HBM3": "H100"}
WORDS = {True: "yes", False: "NO"}
SAME = 0.01  # predictions that differ by less are the same: counts of atomics differ a little from run to run
MEDIAN, FAR, NEAR_SHARE, HELD_SHARE = 0.15, 0.35, 0.9, 0.9  # the aims


def read_data() -> dict:
    """Return the data file; empty parts where there is none."""
    empty = {"times": {}, "counts": {}, "said": {}, "seen": {}, "first": []}
    return empty | (json.loads(DATA.read_text()) if DATA.is_file() else {})


def write_data(data: dict) -> None:
    DATA.write_text(json.dumps(data, indent=1) + "\n")


def digest_model() -> str:
    """Return a digest of the model's source."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in MODEL)).hexdigest()[:12]


def list_programs() -> list[Path]:
    return sorted(UNSEEN.glob("*.cu"))


# ---- measuring and counting ----


def measure(data: dict) -> None:
    """Compile and time every program, one after the other."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(16) as pool:
        binaries = {program.stem: str(Path(folder) / program.stem) for program in list_programs()}

        def compile_one(program: Path) -> None:
            flags = ["-O3", "-arch=sm_90", "-std=c++17", "-DMICRO_TIMED"]
            run_tool(["nvcc", *flags, "-o", binaries[program.stem], str(program)])

        list(pool.map(compile_one, list_programs()))
        data["times"] = {}
        for program in list_programs():
            rows = {}
            for line in run_tool([binaries[program.stem], counted.read_sizes(program)[1]]).splitlines():
                label, *pairs = line.split("\t")
                rows[label] = {name: float(value) for name, value in (pair.split() for pair in pairs)}
            data["times"][program.stem] = rows
            print(program.stem, len(rows), flush=True)
    data |= {"machine": describe_machine(), "model": digest_model()}


def count(data: dict) -> None:
    """Count every program's launches, in their order, which is that of the labels."""
    data["counts"] = {}

    def count_one(program: Path) -> list[dict]:
        return counted.count("program", program.stem, counted.read_sizes(program)[1], str(BLOCKS))

    with ThreadPoolExecutor(2) as pool:
        for program, launches in zip(list_programs(), pool.map(count_one, list_programs()), strict=True):
            data["counts"][program.stem] = [make_row(launch) for launch in launches]
            print(program.stem, len(launches), flush=True)
    if data["times"] and data["model"] == digest_model():
        data["said"] = {row.name: row.predicted for row in list_rows(data)}


def make_row(launch: dict) -> dict:
    work = {name: value for name, value in vars(Work.of(launch)).items() if value or name == "shared"}
    return {"kernel": launch["kernel"], "work": work}


def meet(data: dict) -> None:
    """Call what was measured seen, and keep what the model says of it so far."""
    if rows := list_rows(data):
        machine = describe_machine()
        data["first"].append({"date": machine["date"], "gpu": data["machine"]["gpu"]} | sum_up(rows))
        data["seen"] |= {name: machine["date"] for name in data["times"] if name not in data["seen"]}


# ---- comparing ----


@dataclass(frozen=True)
class Row:
    """A kernel: measured and predicted seconds, the interval, and the limit."""

    name: str
    measured: float
    predicted: float
    interval: tuple[float, float]
    limit: str

    @property
    def error(self) -> float:
        return self.predicted / self.measured - 1

    @property
    def is_held(self) -> bool:
        return self.interval[0] <= self.measured <= self.interval[1]


def list_rows(data: dict, seen: bool = False) -> list[Row]:
    """Return the kernels that the model has not met, or those that it was improved on."""
    device = DEVICES[data["machine"]["gpu"]]
    rows = []
    for program, times in data["times"].items():
        if (program in data["seen"]) != seen:
            continue
        for (label, time), launch in zip(times.items(), data["counts"][program], strict=True):
            prediction = predict(Work(**launch["work"]), device)
            measured, interval = time["cold_ms"] / 1e3, find_interval(prediction)
            rows.append(Row(f"{program}: {label}", measured, prediction.seconds, interval, prediction.limit))
    return rows


def sum_up(rows: list[Row]) -> dict[str, float]:
    """Return the number of kernels, the median error, and the parts that are near and in their intervals."""
    return {
        "kernels": len(rows),
        "median": statistics.median(abs(row.error) for row in rows),
        "near": sum(abs(row.error) <= FAR for row in rows) / len(rows),
        "held": sum(row.is_held for row in rows) / len(rows),
    }


def describe_sum(found: dict[str, float]) -> str:
    return (
        f"{found['kernels']} kernels: median error {found['median']:.1%} (aim: at most {MEDIAN:.0%}); within "
        f"{FAR:.0%}: {found['near']:.0%} (aim {NEAR_SHARE:.0%}); in the interval: "
        f"{found['held']:.0%} (aim {HELD_SHARE:.0%})."
    )


def describe_changes(data: dict, rows: list[Row]) -> str:
    """Return how many predictions differ from those of the model at the time of measuring, and whose they are."""
    then = data["said"]
    others = [row for row in rows if row.name not in then or abs(row.predicted / then[row.name] - 1) > SAME]
    names = f": {', '.join(row.name for row in others)}" if others else ""
    return f"{len(others)} of {len(rows)} predictions differ from those of that time{names}."


def compare(data: dict) -> bool:
    """Print the kernels, the worst first, and a summary. Return whether the aims are met."""
    rows, machine = list_rows(data), data["machine"]
    if rows:
        table = [
            [
                row.name,
                *(f"{time * 1e6:,.1f}" for time in (row.measured, row.predicted)),
                f"{row.error:+.0%}",
                row.limit,
                WORDS[row.is_held],
            ]
            for row in sorted(rows, key=lambda row: -abs(row.error))
        ]
        show_table(["kernel", "measured µs", "predicted µs", "error", "limit", "in the interval"], table)
        print(f"\nNever met: {describe_sum(sum_up(rows))}")
        if data["model"] != digest_model():
            print(f"The model's source has changed since the kernels were measured. {describe_changes(data, rows)}")
    for first in data["first"]:
        print(f"Never met on {first['date']}, {first['gpu']}: {describe_sum(first)}")
    if seen := list_rows(data, seen=True):
        print(f"Improved on since: {describe_sum(sum_up(seen))}")
    print(f"Measured {machine['date']} on {machine['gpu']}, nvcc {machine['nvcc']}.")
    waiting = [program.stem for program in list_programs() if program.stem not in data["times"]]
    if waiting:
        print(f"{len(waiting)} programs wait to be measured on a GPU: {', '.join(waiting)}.")
    found = sum_up(rows) if rows else {"median": 1.0, "near": 0.0, "held": 0.0}
    return found["median"] <= MEDIAN and found["near"] >= NEAR_SHARE and found["held"] >= HELD_SHARE


@click.command(help=__doc__)
@click.option("--measure", "measured", is_flag=True, help="Time the kernels on this machine's GPU.")
@click.option("--count", "counts", is_flag=True, help="Count the kernels with simt.")
@click.option("--met", is_flag=True, help="Keep what the model says of the kernels, and call them seen.")
def main(measured: bool, counts: bool, met: bool) -> None:
    data = read_data()
    if measured:
        measure(data)
        write_data(data)
        return
    if counts:
        count(data)
        write_data(data)
    if not data["times"] or not data["counts"]:
        missing = "measured: run it with --measure on a GPU" if not data["times"] else "counted: run it with --count"
        raise click.ClickException(f"The kernels have not been {missing}.")
    if met:
        meet(data)
        write_data(data)
    sys.exit(0 if compare(data) else 1)


if __name__ == "__main__":
    main()
