"""Holds simt's predicted times against an H200's, kernel by kernel, and says how far off each is.

    python benchmarks/model.py             predict from the counters in data/model.json and print
    python benchmarks/model.py --count     count anew first (a few minutes)
    python benchmarks/model.py --steps     count the steps anew first, and nothing else (a minute or two)
    python benchmarks/model.py --fit       fit the constants that no measurement gives alone to the micro-kernels, each time
                                           without the program that is then predicted, and print what that changes;
                                           kernels_ref is never fitted to
    python benchmarks/model.py --write     also write MODEL.md
    python benchmarks/model.py --readme    put the table of kernels_ref into the README

Measured are kernels_ref's kernels at full size without a profiler (medians of 20) and the micro-kernels at their large size
under ncu: both in data/ncu.json, which ncu.py makes on the GPU. Steps are measured by references.py, into data/steps.json.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import re
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import counted  # noqa: E402
import references  # noqa: E402
from machine import machine  # noqa: E402
from tables import markdown, put_into_readme, show  # noqa: E402

from simt.model import CONSTANTS, Constants, Prediction, Work, predict  # noqa: E402

TRUTH = ROOT / "benchmarks" / "data" / "ncu.json"
DATA = ROOT / "benchmarks" / "data" / "model.json"
STEPS = references.DATA
PAGE = ROOT / "benchmarks" / "MODEL.md"
BLOCKS = "64"  # of a micro-kernel's grid are counted
DEVICE = "H200"

# Fitted together, because no micro-kernel shows one of them alone.
FITTED = {"integer": (0.3, 0.45, 0.6, 0.8, 1.0), "start_cycles": (150.0, 300.0, 500.0), "together": (2.0, 2.5, 3.0, 4.0)}

# Why a prediction is far off, where ncu shows it.
_LOOPS = "nvcc makes 1.1 times the instructions, of which registers let 48 warps instead of 64 run side by side"
REASONS = {
    "conv2d: conv2d_kernel": _LOOPS,
    "conv_groupnorm_logsumexp: conv2d_kernel": _LOOPS,
    "conv_sigmoid_groupnorm: conv_bias_scale_sigmoid_kernel": _LOOPS,
    "im2col_conv: matmul_kernel": (_TILE := "2.5 times nvcc's instructions are counted: g++ does not unroll the loop over a tile"),
    "conv_groupnorm_maxpool: matmul_kernel": _TILE,
    "atomics: one counter": (_SUM := "nvcc adds a warp's values up first"),
    "atomics: one sum": _SUM,
    "atomics: one float": "an addition of floats takes L2 three times as long where all lanes meet at one address",
    "gather: scatter words": "a word written to a sector that is not in L2: DRAM reads and writes 64 bytes",
    "strides: store stride 32": "a word written to a sector that is not in L2: DRAM reads and writes 64 bytes",
    "strides: load stride 32": "DRAM reads 64 bytes for a sector of 32",
    "gather: gather words": "DRAM reads 64 bytes for a sector of 32",
    "conv_sigmoid_groupnorm: normalise_kernel": "reads and writes one array, in rows that begin inside a sector: 1.5 times the time of a copy to another array",
}


# ---- what was measured, and what was counted ----


def collect() -> list[dict]:
    """A row for each kernel: its name, group (what is left out together), measured seconds, and its work."""
    truth = json.loads(TRUTH.read_text())
    rows = []
    for name, solution in truth["solutions"].items():
        launches = {l["kernel"]: l for l in counted.count("full", name)}
        times: dict[str, list[float]] = {}
        for launch in solution["times"]["launches"]:
            times.setdefault(launch["kernel"].split("(")[0], []).append(launch["ms"] / 1e3)
        for kernel, seconds in times.items():
            work = whole(launches[kernel])
            rows.append(row_of(f"{name}: {kernel}", name, statistics.median(seconds), work) | {"launches": len(seconds)})
        print(name, flush=True)
    for name, program in truth["programs"].items():
        size = re.search(r"^// sizes: \d+ (\d+)", (ROOT / "benchmarks" / "micro" / f"{name}.cu").read_text(), re.MULTILINE)[1]
        for launch, row in zip(counted.count("program", name, size, BLOCKS), program["large"], strict=True):
            rows.append(row_of(f"{name}: {row['label']}", f"micro {name}", row["nanoseconds"] / 1e9, Work.of(launch)))
        print(name, flush=True)
    return rows


def collect_steps() -> list[dict]:
    """A row for each kernel of each step: its name, group (the step), launches in a run of the model, and one launch's work."""
    rows = []
    with ThreadPoolExecutor(2) as pool:
        names = [references.name(f) for f in references.steps()]
        for name, launches in zip(names, pool.map(lambda n: counted.count("step", n), names), strict=True):
            for launch in launches:
                work = whole(launch)
                if launch["longer"] > 1:
                    work = dataclasses.replace(work.times(launch["longer"]), blocks=work.blocks)
                row = {"name": f"{name}: {launch['kernel']}", "group": name, "work": plain(work)}
                rows.append(row | {"launches": launch["launches"], "source": launch["source"]})
            print(name, flush=True)
    return rows


def whole(launch: dict) -> Work:
    """The work at full size of a launch that counted.py counted in part."""
    work = Work.of(launch).times(launch["factor"])
    return extended(work, Work.of(launch["twice"]), launch["times"]) if "twice" in launch else work


def extended(work: Work, twice: Work, times: float) -> Work:
    """The work on the straight line through these two, `times` their distance beyond the first."""
    def on(a: float, b: float) -> float:
        return a + times * (b - a)

    mix = {name: on(work.mix.get(name, 0.0), value) for name, value in twice.mix.items()}
    size = ("blocks", "threads", "shared", "mix")
    moved = {f.name: on(getattr(work, f.name), getattr(twice, f.name)) for f in dataclasses.fields(Work) if f.name not in size}
    return dataclasses.replace(work, mix=mix, **moved)


def row_of(name: str, group: str, seconds: float, work: Work) -> dict:
    return {"name": name, "group": group, "seconds": seconds, "work": plain(work)}


def plain(work: Work) -> dict:
    return {key: value for key, value in dataclasses.asdict(work).items() if value or key == "shared"}


def work_of(row: dict) -> Work:
    return Work(**row["work"])


# ---- errors ----


def error(row: dict, constants: Constants) -> float:
    """How far off, as a factor's logarithm: half and double are equally wrong."""
    return abs(math.log(predict(work_of(row), DEVICE, constants=constants).seconds / row["seconds"]))


def far_off(predicted: float, measured: float) -> float:
    return predicted / measured - 1


def left_out(rows: list[dict]) -> tuple[Constants, dict[str, Constants]]:
    """The constants with the smallest mean error over all groups, and for each group those fitted to all the others. Each
    group counts as one."""
    candidates = [dataclasses.replace(CONSTANTS, **dict(zip(FITTED, values))) for values in itertools.product(*FITTED.values())]
    errors: dict[str, dict[Constants, list[float]]] = {}
    for row in rows:
        of_group = errors.setdefault(row["group"], {c: [] for c in candidates})
        for c in candidates:
            of_group[c].append(min(1.0, error(row, c)))
    means = {group: {c: statistics.mean(e) for c, e in found.items()} for group, found in errors.items()}

    def best(without: str) -> Constants:
        return min(candidates, key=lambda c: sum(m[c] for group, m in means.items() if group != without))

    return best(""), {group: best(group) for group in means}


# ---- tables ----

HEADS = ["kernel", "measured, ms", "predicted, ms", "off by", "limit"]


def table(rows: list[dict], predictions: list[Prediction]) -> list[list[str]]:
    made = []
    for row, p in zip(rows, predictions, strict=True):
        why = f"; {REASONS[row['name']]}" if row["name"] in REASONS else ""
        made.append([row["name"], f"{row['seconds'] * 1e3:.4g}", f"{p.seconds * 1e3:.4g}", f"{far_off(p.seconds, row['seconds']):+.0%}", p.limit + why])
    return made


def median_error(rows: list[dict], predictions: list[Prediction]) -> float:
    return statistics.median(abs(far_off(p.seconds, row["seconds"])) for row, p in zip(rows, predictions, strict=True))


def summary(rows: list[dict], predictions: list[Prediction], what: str) -> str:
    pairs = sorted(zip(rows, predictions, strict=True), key=lambda pair: abs(math.log(pair[1].seconds / pair[0]["seconds"])))
    worst, p = pairs[-1]
    return f"{what}: {len(rows)} kernels, median error {median_error(rows, predictions):.0%}; worst {worst['name']}, {far_off(p.seconds, worst['seconds']):+.0%}"


def of_models(rows: list[dict], predictions: list[Prediction]) -> list[dict]:
    """Each problem's kernels together, as often as they are launched."""
    sums: dict[str, list[float]] = {}
    for row, p in zip(rows, predictions, strict=True):
        found = sums.setdefault(row["group"], [0.0, 0.0])
        found[0] += row["seconds"] * row["launches"]
        found[1] += p.seconds * row["launches"]
    return [{"name": name, "measured": m, "predicted": p} for name, (m, p) in sums.items()]


# ---- ladders ----

LADDER_HEADS = ["step", "predicted, ms", "measured, ms", "off by", "times as fast: predicted", "measured", "limit"]


def ladders(rows: list[dict], times: dict[str, dict]) -> dict[str, list[dict]]:
    """problem -> its steps in order: seconds of the whole model predicted and, where it was, measured; the limit of the kernel
    that takes longest.

    rows: of collect_steps; times: a step's row of steps.json by name."""
    found: dict[str, dict[str, list]] = {}
    for row in rows:
        found.setdefault(row["group"].split("/")[0], {}).setdefault(row["group"], []).append((row["launches"], predict(work_of(row), DEVICE)))
    made: dict[str, list[dict]] = {}
    for problem, steps in found.items():
        for name, parts in steps.items():
            _, longest = max(parts, key=lambda part: part[0] * part[1].seconds)
            made.setdefault(problem, []).append(
                {"name": name, "predicted": sum(n * p.seconds for n, p in parts), "measured": times[name]["ms"] / 1e3 if name in times else None, "limit": longest.limit}
            )  # fmt: skip
    return made


def ladder_lines(ladder: list[dict]) -> list[list[str]]:
    """A line for each step; how many times as fast it is as the step before."""
    made, truth = [], json.loads(TRUTH.read_text()).get("steps", {})
    for before, step in zip([None, *ladder], ladder, strict=False):
        p, m = step["predicted"], step["measured"]
        few = few_warps(truth.get(step["name"], {}).get("cases", [])) if m and far_off(p, m) < -0.3 else ""
        faster = [f"{before[of] / step[of]:.2f}" if before and before[of] and step[of] else "" for of in ("predicted", "measured")]
        made.append([step["name"], f"{p * 1e3:.4g}", f"{m * 1e3:.4g}" if m else "", f"{far_off(p, m):+.0%}" if m else "", *faster, "; ".join(filter(None, [step["limit"], few]))])
    return made


def few_warps(launches: list[dict]) -> str:
    """What simt cannot know of the kernel that takes longest, by ncu: that its registers let half of the warps or fewer run side by
    side that its shared memory lets."""
    if not launches:
        return ""
    row = max(launches, key=lambda row: row["nanoseconds"])
    warps = -(-math.prod(row["block"]) // 32)
    shared = row.get("shared_static", 0) + row.get("shared_dynamic", 0)
    others = min(row["limit_warps"], row["limit_blocks"], 228 * 1024 // (shared + 1024)) * warps
    mine = row["limit_registers"] * warps
    return f"{row['registers']} registers a thread let {mine} warps instead of {others} run side by side" if 2 * mine <= others else ""


def order(ladder: list[dict]) -> str:
    """Whether the order predicted is the order measured, in a sentence."""
    problem = ladder[0]["name"].split("/")[0]
    if not all(step["measured"] for step in ladder):
        return f"{problem}: not all steps are measured."
    ranked = [[step["name"] for step in sorted(ladder, key=lambda step: step[of])] for of in ("predicted", "measured")]
    falls = all(after["measured"] < before["measured"] for before, after in itertools.pairwise(ladder))
    return (
        f"{problem}: the order predicted is {'the' if ranked[0] == ranked[1] else 'NOT the'} order measured; "
        f"{'every step is' if falls else 'NOT every step is'} faster than the one before it."
    )


def ladders_summary(found: dict[str, list[dict]]) -> str:
    """How far the predictions of the measured steps are off, in a sentence."""
    errors = {step["name"]: far_off(step["predicted"], step["measured"]) for ladder in found.values() for step in ladder if step["measured"]}
    worst = max(errors, key=lambda name: abs(math.log1p(errors[name])))
    return f"steps: {len(errors)} models, median error {statistics.median(map(abs, errors.values())):.0%}; worst {worst}, {errors[worst]:+.0%}"


def ladder_page(found: dict[str, list[dict]], measured: dict | None) -> list[str]:
    on = f"Measured {measured['date']} on an {measured['gpu']}, L2 flushed before each run, medians." if measured else "Not measured yet."
    lines = [
        "", "## Ladders", "", "The steps of kernels_ref at full size, whole models. Counted on the CPU, one image.", on + " `python benchmarks/references.py` measures.",
        "", "| " + " | ".join(LADDER_HEADS) + " |", "|" + "---|" * len(LADDER_HEADS),
    ]  # fmt: skip
    lines += ["| " + " | ".join(line) + " |" for ladder in found.values() for line in ladder_lines(ladder)]
    return [*lines, "", ladders_summary(found) + ".", "", *(f"- {order(ladder)}" for ladder in found.values())]


def page(parts: list[tuple[str, list[dict], list[Prediction]]], measured: dict, ladder: list[str]) -> str:
    """MODEL.md: a table for each part, worst first where it is long."""
    lines = ["# simt's predicted times beside an H200's", ""]
    for title, rows, predictions in parts:
        lines += [summary(rows, predictions, title) + ".", ""]
    lines += [
        f"Counted on the CPU: kernels_ref for one image at full size, micro-kernels by {BLOCKS} of their blocks. Measured {measured['date']},",
        f"{measured['gpu']}, {measured['nvcc']}: kernels_ref without a profiler, L2 flushed before each run of the model, medians of 20;",
        "micro-kernels under ncu. `python benchmarks/model.py --write` made this.",
    ]
    lines += ladder
    for title, rows, predictions in parts:
        lines += ["", f"## {title}", "", "| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
        lines += ["| " + " | ".join(line) + " |" for line in table(rows, predictions)]
    return "\n".join(lines) + "\n"


def dumps(data: dict) -> str:
    """JSON with a row a line, so that a diff shows which kernel changed."""
    text = json.dumps(data | {"rows": None, "steps": None}, indent=1)
    for name in ("rows", "steps"):
        text = text.replace(f'"{name}": null', f'"{name}": [\n' + ",\n".join(json.dumps(row) for row in data[name]) + "\n]")
    return text + "\n"


@click.command(help=__doc__)
@click.option("--count", "anew", is_flag=True, help="Count anew with simt.")
@click.option("--steps", is_flag=True, help="Count the steps anew with simt.")
@click.option("--fit", is_flag=True, help="Fit, leaving out what is predicted.")
@click.option("--write", is_flag=True, help="Also write MODEL.md.")
@click.option("--readme", is_flag=True, help="Put the table of kernels_ref into the README.")
def main(anew: bool, steps: bool, fit: bool, write: bool, readme: bool) -> None:
    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    if anew:
        data |= {"machine": machine(), "rows": collect()}
    if anew or steps:
        data["steps"] = collect_steps()
    rows = data["rows"]
    predictions = [predict(work_of(row), DEVICE) for row in rows]
    for row, p in zip(rows, predictions, strict=True):
        row["predicted"], row["limit"] = p.seconds, p.limit
        row["terms"] = {name: float(f"{seconds:.4g}") for name, seconds in p.terms.items() if seconds}
    for row in data["steps"]:
        p = predict(work_of(row), DEVICE)
        row["predicted"], row["limit"] = p.seconds, p.limit
    DATA.write_text(dumps(data))
    on_gpu = json.loads(STEPS.read_text()) if STEPS.exists() else {"steps": {}, "machine": None}
    found = ladders(data["steps"], on_gpu["steps"])
    chosen = [i for i, row in enumerate(rows) if not row["group"].startswith("micro ")]
    micro = [i for i, row in enumerate(rows) if row["group"].startswith("micro ")]
    pick = lambda indices: ([rows[i] for i in indices], [predictions[i] for i in indices])  # noqa: E731
    measured = json.loads(TRUTH.read_text())["machine"]
    if write:
        PAGE.write_text(page([("kernels_ref", *pick(chosen)), ("micro-kernels", *pick(micro))], measured, ladder_page(found, on_gpu["machine"])))
    if readme:
        source = (
            f"Counted on the CPU, one image at full size; measured {measured['date']} on an {measured['gpu']}. "
            f"{summary(*pick(chosen), 'kernels_ref')}. `python benchmarks/model.py --readme` made this."
        )
        put_into_readme("model", markdown(HEADS, table(*pick(chosen)), source))
        return
    show(HEADS, table(*pick(micro)))
    show(HEADS, table(*pick(chosen)))
    show(["problem", "measured, ms", "predicted, ms", "off by"], [
        [m["name"], f"{m['measured'] * 1e3:.3f}", f"{m['predicted'] * 1e3:.3f}", f"{far_off(m['predicted'], m['measured']):+.0%}"] for m in of_models(*pick(chosen))
    ])  # fmt: skip
    show(LADDER_HEADS, [line for ladder in found.values() for line in ladder_lines(ladder)])
    for ladder in found.values():
        print(order(ladder))
    print(ladders_summary(found))
    print(summary(*pick(micro), "micro-kernels"))
    print(summary(*pick(chosen), "kernels_ref"))
    if fit:
        best, without = left_out([rows[i] for i in micro])
        print("fitted to the micro-kernels:", {name: getattr(best, name) for name in FITTED})
        others = [predict(work_of(rows[i]), DEVICE, constants=without[rows[i]["group"]]) for i in micro]
        print(summary([rows[i] for i in micro], others, "micro-kernels, each with constants fitted to the other programs"))
        print(summary([rows[i] for i in chosen], [predict(work_of(rows[i]), DEVICE, constants=best) for i in chosen], "kernels_ref with those constants"))


if __name__ == "__main__":
    main()
