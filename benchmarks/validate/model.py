"""Compare simt's predicted times with an H200's, kernel by kernel.

    python benchmarks/validate/model.py             predict from the counters in data/model.json and print
    python benchmarks/validate/model.py --count     count again with simt first (a few minutes)
    python benchmarks/validate/model.py --steps     count the steps again first, and nothing else (a minute or two)
    python benchmarks/validate/model.py --fit       fit the constants that no single measurement gives to the
                                                    micro-kernels, each time without the program that is then predicted,
                                                    and print what that changes; kernels_ref is never fitted to
    python benchmarks/validate/model.py --write     also write MODEL.md

ncu.py measures on the GPU: kernels_ref's kernels at full size without a profiler (medians of 20), and the micro-kernels
at their large size under ncu, both in data/ncu.json. timing/steps.py measures the steps, in data/steps.json.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import references
from benchmarks.machine import describe_machine
from benchmarks.paths import BENCHMARKS, DATA_FOLDER, MICRO
from benchmarks.publish.tables import make_table, show_table
from benchmarks.validate import counted
from simt.counting.time_model import CONSTANTS, Constants, Prediction, Work, predict

NCU_FILE = DATA_FOLDER / "ncu.json"
DATA = DATA_FOLDER / "model.json"
STEPS = DATA_FOLDER / "steps.json"
PAGE = BENCHMARKS / "MODEL.md"
BLOCKS = "64"  # of a micro-kernel's grid that are counted
DEVICE = "H200"
Part = tuple[str, list[dict], list[Prediction]]  # a title, and rows with their predictions

# Fitted together, because no micro-kernel shows one of them alone.
FITTED = {
    "issue_part": (0.7, 0.8, 0.9, 1.0),
    "start_cycles": (150.0, 300.0),
    "inside": (2.5, 3.0, 4.0, 8.0),
    "first_wave": (1.2, 1.5, 2.0),
    "many_waves": (2.0, 2.5, 3.0),
}

# Why a prediction is far off, as ncu shows.
_LOOPS = "its registers limit an SM to 48 warps instead of 64"
REASONS = {
    "conv2d: conv2d_kernel": _LOOPS,
    "conv_groupnorm_logsumexp: conv2d_kernel": _LOOPS,
    "conv_sigmoid_groupnorm: conv_bias_scale_sigmoid_kernel": _LOOPS,
    "gather: scatter words": "blocks write to random places of an array that L2 cannot hold, again and again",
    "conv_sigmoid_groupnorm: normalise_kernel": (
        "reads and writes one array, in rows that start inside a sector: 1.5 times as long as a copy to another array"
    ),
}


# ---- measured times and counted work ----


def count_all() -> list[dict]:
    """Count the solutions and micro-kernels. Return a row for each kernel: name, group, measured seconds and work.

    A fit leaves out one group at a time.
    """
    profiled = json.loads(NCU_FILE.read_text())
    rows = []
    for name, solution in profiled["solutions"].items():
        launches = {launch["kernel"]: launch for launch in counted.count("full", name)}
        times: dict[str, list[float]] = {}
        for launch in solution["times"]["launches"]:
            times.setdefault(launch["kernel"].split("(")[0], []).append(launch["ms"] / 1e3)
        for kernel, seconds in times.items():
            work = scale_work(launches[kernel])
            rows.append(
                make_row(f"{name}: {kernel}", name, statistics.median(seconds), work) | {"launches": len(seconds)}
            )
        print(name, flush=True)
    for name, program in profiled["programs"].items():
        size = counted.read_sizes(MICRO / f"{name}.cu")[1]
        for launch, row in zip(counted.count("program", name, size, BLOCKS), program["large"], strict=True):
            rows.append(make_row(f"{name}: {row['label']}", f"micro {name}", row["nanoseconds"] / 1e9, Work.of(launch)))
        print(name, flush=True)
    return rows


def count_steps() -> list[dict]:
    """Count the steps. Return a row for each kernel: name, group (the step), launches in a run, work of a launch."""
    rows = []
    with ThreadPoolExecutor(2) as pool:
        names = [references.name(f) for f in references.steps()]
        for name, launches in zip(names, pool.map(lambda n: counted.count("step", n), names), strict=True):
            for launch in launches:
                work = scale_work(launch)
                if launch["longer"] > 1:
                    work = dataclasses.replace(work.times(launch["longer"]), blocks=work.blocks)
                row = {"name": f"{name}: {launch['kernel']}", "group": name, "work": dump_work(work)}
                rows.append(row | {"launches": launch["launches"], "source": launch["source"]})
            print(name, flush=True)
    return rows


def scale_work(launch: dict) -> Work:
    """Return the work at full size of a launch that counted.py counted in part."""
    work = Work.of(launch).times(launch["factor"])
    return extrapolate(work, Work.of(launch["twice"]), launch["times"]) if "twice" in launch else work


def extrapolate(work: Work, twice: Work, times: float) -> Work:
    """Return the work on the straight line through both, `times` their distance beyond the first."""

    def extend(a: float, b: float) -> float:
        return a + times * (b - a)

    mix = {name: extend(work.mix.get(name, 0.0), value) for name, value in twice.mix.items()}
    size = ("threads", "shared", "mix")
    moved = {
        f.name: extend(getattr(work, f.name), getattr(twice, f.name))
        for f in dataclasses.fields(Work)
        if f.name not in size
    }
    return dataclasses.replace(work, mix=mix, **moved | {"blocks": round(moved["blocks"])})


def make_row(name: str, group: str, seconds: float, work: Work) -> dict:
    """Return a row of the data file."""
    return {"name": name, "group": group, "seconds": seconds, "work": dump_work(work)}


def dump_work(work: Work) -> dict:
    """Return the work's fields that are not 0."""
    return {key: value for key, value in dataclasses.asdict(work).items() if value or key == "shared"}


def read_work(row: dict) -> Work:
    """Return a row's work."""
    return Work(**row["work"])


# ---- errors ----


def find_log_error(row: dict, constants: Constants) -> float:
    """Return the absolute logarithm of predicted over measured: half and double are equally wrong."""
    return abs(math.log(predict(read_work(row), DEVICE, constants=constants).seconds / row["seconds"]))


def find_error(predicted: float, measured: float) -> float:
    """Return the relative error of a prediction."""
    return predicted / measured - 1


def fit_left_out(rows: list[dict]) -> tuple[Constants, dict[str, Constants]]:
    """Return the constants with the least mean error over all groups, and for each group those fitted to all others.

    Each group has the same weight.
    """
    candidates = [
        dataclasses.replace(CONSTANTS, **dict(zip(FITTED, values))) for values in itertools.product(*FITTED.values())
    ]
    errors: dict[str, dict[Constants, list[float]]] = {}
    for row in rows:
        of_group = errors.setdefault(row["group"], {c: [] for c in candidates})
        for c in candidates:
            of_group[c].append(min(1.0, find_log_error(row, c)))
    means = {group: {c: statistics.mean(e) for c, e in found.items()} for group, found in errors.items()}

    def find_best(without: str) -> Constants:
        return min(candidates, key=lambda c: sum(m[c] for group, m in means.items() if group != without))

    return find_best(""), {group: find_best(group) for group in means}


# ---- tables ----

HEADS = ["kernel", "measured, ms", "predicted, ms", "off by", "limit"]


def make_rows(rows: list[dict], predictions: list[Prediction]) -> list[list[str]]:
    """Return cells under HEADS."""
    made = []
    for row, p in zip(rows, predictions, strict=True):
        why = f"; {REASONS[row['name']]}" if row["name"] in REASONS else ""
        made.append(
            [
                row["name"],
                f"{row['seconds'] * 1e3:.4g}",
                f"{p.seconds * 1e3:.4g}",
                f"{find_error(p.seconds, row['seconds']):+.0%}",
                p.limit + why,
            ]
        )
    return made


def find_median_error(rows: list[dict], predictions: list[Prediction]) -> float:
    """Return the median of the relative errors' absolute values."""
    return statistics.median(
        abs(find_error(p.seconds, row["seconds"])) for row, p in zip(rows, predictions, strict=True)
    )


def summarize(rows: list[dict], predictions: list[Prediction], what: str) -> str:
    """Return a sentence on the median and the worst error."""
    pairs = sorted(
        zip(rows, predictions, strict=True), key=lambda pair: abs(math.log(pair[1].seconds / pair[0]["seconds"]))
    )
    worst, p = pairs[-1]
    median, largest = find_median_error(rows, predictions), find_error(p.seconds, worst["seconds"])
    return f"{what}: {len(rows)} kernels, median error {median:.0%}; worst {worst['name']}, {largest:+.0%}"


def sum_models(rows: list[dict], predictions: list[Prediction]) -> list[dict]:
    """Return each problem's times, summed over all launches of its kernels."""
    sums: dict[str, list[float]] = {}
    for row, p in zip(rows, predictions, strict=True):
        found = sums.setdefault(row["group"], [0.0, 0.0])
        found[0] += row["seconds"] * row["launches"]
        found[1] += p.seconds * row["launches"]
    return [{"name": name, "measured": m, "predicted": p} for name, (m, p) in sums.items()]


# ---- ladders ----

LADDER_HEADS = ["step", "predicted, ms", "measured, ms", "off by", "times as fast: predicted", "measured", "limit"]


def make_ladders(rows: list[dict], times: dict[str, dict]) -> dict[str, list[dict]]:
    """Return problem -> its steps in order: predicted and measured seconds, and the limit of the longest kernel.

    rows: of count_steps. times: each step's row in steps.json. Measured is None for a step that was not timed.
    """
    found: dict[str, dict[str, list]] = {}
    for row in rows:
        found.setdefault(row["group"].split("/")[0], {}).setdefault(row["group"], []).append(
            (row["launches"], predict(read_work(row), DEVICE))
        )
    made: dict[str, list[dict]] = {}
    for problem, steps in found.items():
        for name, parts in steps.items():
            _, longest = max(parts, key=lambda part: part[0] * part[1].seconds)
            made.setdefault(problem, []).append(
                {
                    "name": name,
                    "predicted": sum(n * p.seconds for n, p in parts),
                    "measured": times[name]["ms"] / 1e3 if name in times else None,
                    "limit": longest.limit,
                }
            )
    return made


def make_ladder_rows(ladder: list[dict]) -> list[list[str]]:
    """Return cells under LADDER_HEADS for each step, with its speed-up over the step before."""
    made, profiled = [], json.loads(NCU_FILE.read_text()).get("steps", {})
    for before, step in zip([None, *ladder], ladder, strict=False):
        p, m = step["predicted"], step["measured"]
        few = (
            describe_low_occupancy(profiled.get(step["name"], {}).get("cases", []))
            if m and find_error(p, m) < -0.3
            else ""
        )
        faster = [
            f"{before[of] / step[of]:.2f}" if before and before[of] and step[of] else ""
            for of in ("predicted", "measured")
        ]
        made.append(
            [
                step["name"],
                f"{p * 1e3:.4g}",
                f"{m * 1e3:.4g}" if m else "",
                f"{find_error(p, m):+.0%}" if m else "",
                *faster,
                "; ".join(filter(None, [step["limit"], few])),
            ]
        )
    return made


def describe_low_occupancy(launches: list[dict]) -> str:
    """Return a note if registers, which simt cannot know, halve the longest kernel's occupancy or worse; else ""."""
    if not launches:
        return ""
    row = max(launches, key=lambda row: row["nanoseconds"])
    warps = -(-math.prod(row["block"]) // 32)
    shared = row.get("shared_static", 0) + row.get("shared_dynamic", 0)
    others = min(row["limit_warps"], row["limit_blocks"], 228 * 1024 // (shared + 1024)) * warps
    mine = row["limit_registers"] * warps
    return (
        f"{row['registers']} registers per thread limit an SM to {mine} warps instead of {others}"
        if 2 * mine <= others
        else ""
    )


def describe_order(ladder: list[dict]) -> str:
    """Return a sentence on whether the predicted order is the measured order."""
    problem = ladder[0]["name"].split("/")[0]
    if not all(step["measured"] for step in ladder):
        return f"{problem}: not all steps are measured."
    ranked = [[step["name"] for step in sorted(ladder, key=lambda step: step[of])] for of in ("predicted", "measured")]
    falls = all(after["measured"] < before["measured"] for before, after in itertools.pairwise(ladder))
    return (
        f"{problem}: the predicted order is {'the' if ranked[0] == ranked[1] else 'NOT the'} measured order; "
        f"{'every step is' if falls else 'NOT every step is'} faster than the one before it."
    )


def summarize_ladders(found: dict[str, list[dict]]) -> str:
    """Return a sentence on the errors of the predicted steps."""
    errors = {
        step["name"]: find_error(step["predicted"], step["measured"])
        for ladder in found.values()
        for step in ladder
        if step["measured"]
    }
    worst = max(errors, key=lambda name: abs(math.log1p(errors[name])))
    median = statistics.median(map(abs, errors.values()))
    return f"steps: {len(errors)} models, median error {median:.0%}; worst {worst}, {errors[worst]:+.0%}"


def make_ladder_lines(found: dict[str, list[dict]], measured: dict | None) -> list[str]:
    """Return the lines of MODEL.md on the steps. measured: the machine that timed them."""
    on = "Not measured yet."
    if measured:
        on = f"Measured {measured['date']} on an {measured['gpu']}, L2 flushed before each run, medians."
    rows = [row for ladder in found.values() for row in make_ladder_rows(ladder)]
    return [
        "",
        "## Ladders",
        "",
        "The steps of kernels_ref at full size, whole models. Counted on the CPU, one image.",
        f"{on} `python benchmarks/timing/steps.py` measures.",
        "",
        *make_table(LADDER_HEADS, rows),
        "",
        summarize_ladders(found) + ".",
        "",
        *(f"- {describe_order(ladder)}" for ladder in found.values()),
    ]


def make_page(parts: list[Part], measured: dict, ladder: list[str]) -> str:
    """Return MODEL.md: a table for each part. measured: the machine; ladder: the lines on the steps."""
    lines = ["# simt's predicted times and an H200's", ""]
    for title, rows, predictions in parts:
        lines += [summarize(rows, predictions, title) + ".", ""]
    lines += [
        f"Counted on the CPU: kernels_ref for one image at full size, micro-kernels by {BLOCKS} of their blocks.",
        f"Measured {measured['date']}, {measured['gpu']}, {measured['nvcc']}: kernels_ref without a profiler, L2",
        "flushed before each run of the model, medians of 20; micro-kernels under ncu.",
        "`python benchmarks/validate/model.py --write` made this.",
    ]
    lines += ladder
    for title, rows, predictions in parts:
        lines += ["", f"## {title}", "", *make_table(HEADS, make_rows(rows, predictions))]
    return "\n".join(lines) + "\n"


def dumps(data: dict) -> str:
    """Return JSON with one row per line, so that a diff shows which kernel changed."""
    text = json.dumps(data | {"rows": None, "steps": None}, indent=1)
    for name in ("rows", "steps"):
        text = text.replace(
            f'"{name}": null', f'"{name}": [\n' + ",\n".join(json.dumps(row) for row in data[name]) + "\n]"
        )
    return text + "\n"


def predict_all(data: dict) -> list[Prediction]:
    """Predict every row and step of the data and add the predictions to them. Return those of the rows."""
    predictions = [predict(read_work(row), DEVICE) for row in data["rows"]]
    for row, prediction in zip(data["rows"], predictions, strict=True):
        row["predicted"], row["limit"] = prediction.seconds, prediction.limit
        row["terms"] = {name: float(f"{seconds:.4g}") for name, seconds in prediction.terms.items() if seconds}
    for row in data["steps"]:
        prediction = predict(read_work(row), DEVICE)
        row["predicted"], row["limit"] = prediction.seconds, prediction.limit
    return predictions


def select(data: dict, predictions: list[Prediction], title: str) -> Part:
    """Return the rows of kernels_ref or of the micro-kernels with their predictions."""
    is_micro = title == "micro-kernels"
    pairs = zip(data["rows"], predictions, strict=True)
    chosen = [(row, prediction) for row, prediction in pairs if row["group"].startswith("micro ") == is_micro]
    return title, [row for row, _ in chosen], [prediction for _, prediction in chosen]


def print_all(reference: Part, micro: Part, ladders: dict[str, list[dict]]) -> None:
    """Print every table and summary."""
    for _, rows, predictions in (micro, reference):
        show_table(HEADS, make_rows(rows, predictions))
    sums = [
        [
            model["name"],
            f"{model['measured'] * 1e3:.3f}",
            f"{model['predicted'] * 1e3:.3f}",
            f"{find_error(model['predicted'], model['measured']):+.0%}",
        ]
        for model in sum_models(*reference[1:])
    ]
    show_table(["problem", "measured, ms", "predicted, ms", "off by"], sums)
    show_table(LADDER_HEADS, [row for ladder in ladders.values() for row in make_ladder_rows(ladder)])
    for ladder in ladders.values():
        print(describe_order(ladder))
    print(summarize_ladders(ladders))
    for title, rows, predictions in (micro, reference):
        print(summarize(rows, predictions, title))


def print_fit(reference: Part, micro: Part) -> None:
    """Fit the constants to the micro-kernels and print how the predictions change."""
    _, rows, _ = micro
    best, without = fit_left_out(rows)
    print("fitted to the micro-kernels:", {name: getattr(best, name) for name in FITTED})
    others = [predict(read_work(row), DEVICE, constants=without[row["group"]]) for row in rows]
    print(summarize(rows, others, "micro-kernels, each with constants fitted to the other programs"))
    _, rows, _ = reference
    fitted = [predict(read_work(row), DEVICE, constants=best) for row in rows]
    print(summarize(rows, fitted, "kernels_ref with those constants"))


@click.command(help=__doc__)
@click.option("--count", "recount", is_flag=True, help="Count again with simt.")
@click.option("--steps", is_flag=True, help="Count the steps again with simt.")
@click.option("--fit", is_flag=True, help="Fit the constants, leaving out what is predicted.")
@click.option("--write", is_flag=True, help="Also write MODEL.md.")
def main(recount: bool, steps: bool, fit: bool, write: bool) -> None:
    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    if recount:
        data |= {"machine": describe_machine(), "rows": count_all()}
    if recount or steps:
        data["steps"] = count_steps()
    predictions = predict_all(data)
    DATA.write_text(dumps(data))
    on_gpu = json.loads(STEPS.read_text()) if STEPS.exists() else {"steps": {}, "machine": None}
    ladders = make_ladders(data["steps"], on_gpu["steps"])
    reference, micro = (select(data, predictions, title) for title in ("kernels_ref", "micro-kernels"))
    if write:
        measured = json.loads(NCU_FILE.read_text())["machine"]
        PAGE.write_text(make_page([reference, micro], measured, make_ladder_lines(ladders, on_gpu["machine"])))
    print_all(reference, micro, ladders)
    if fit:
        print_fit(reference, micro)


if __name__ == "__main__":
    main()
