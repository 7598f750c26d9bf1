"""Format what a run measured as tables and sentences."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path

from grader.bench import growth
from grader.bench.rows import MODES
from grader.paths import KERNELS_REF
from grader.problems import problem as _problem

TARGETS = Path(__file__).with_name("targets.toml")
AT_TARGET = 0.05  # a row below its target by less than this share is at the target

HEADS = ["row", "class", "ms", "95 % interval", "n", "of the roof", "GB/s", "error", "in its class"]


def format_rows(made: dict) -> list[list[str]]:
    """Return a problem's rows as cells under HEADS, slowest first; rows without a time come last."""
    cells = []
    for row in sorted(made["rows"], key=lambda r: -r.get("ms", 0.0)):
        error = "–" if row["error"] is None else f"{row['error']:.1e}"
        kept = {None: "–", True: "yes", False: "no"}[row["in_class"]]
        if "ms" not in row:
            cells.append([row["name"], row["precision"], "–", row["failed"], "", "", "", error, kept])
            continue
        roof = "–" if row["of_roof"] is None else f"{100 * row['of_roof']:.0f} %"
        interval = f"{row['low']:.4g}–{row['high']:.4g}" + ("" if row["narrow"] else " (wide)")
        rate = f"{row['gb_a_second']:,.0f}"
        times = [f"{row['ms']:.4g}", interval, str(row["n"]), roof, rate]
        cells.append([row["name"], row["precision"], *times, error, kept])
    return cells


SUMMARY = [
    "problem",
    "class",
    "fastest of ours",
    "ms",
    "best of torch",
    "ms",
    "times faster",
    "95 % interval",
    "roofline bound",
    "target",
]

SUMMARY_BACKWARD = SUMMARY[:-1]


def format_summary(data: dict, task: str = "forward") -> list[list[str]]:
    """Return for each problem and class the fastest kernel and the fastest baseline, as cells under SUMMARY.

    task: "forward", or "backward" for forward and backward, which has no targets: cells under SUMMARY_BACKWARD.
    """
    cells = []
    for name, made in data["problems"].items():
        made = made.get("backward", {}) if task == "backward" else made
        ms = {row["name"]: f"{row['ms']:.4g}" for row in made.get("rows", []) if "ms" in row}
        for precision, best in made.get("best", {}).items():
            bound = made.get(f"bound_{precision}_ms")
            sides = [best["ours"], ms[best["ours"]], best["baseline"], ms[best["baseline"]]]
            speedup = [f"{best['times']:.3g}", f"{best['low']:.3g}–{best['high']:.3g}"]
            target = [] if task == "backward" else [compare_with_target(name, precision, made)]
            cells.append([name, precision, *sides, *speedup, "–" if bound is None else f"{bound:.3g}", *target])
    return cells


@functools.cache
def read_targets() -> dict:
    """Return problem -> class -> {"ms", "times"}: the target time, and the target speed-up over the best of torch."""
    return tomllib.loads(TARGETS.read_text(encoding="utf-8"))


def compare_with_target(name: str, precision: str, made: dict) -> str:
    """Return how the fastest of ours compares with its target; "–" without one, at other sizes or on another GPU."""
    target = read_targets().get(name, {}).get(precision)
    if target is None or "H200" not in made.get("machine", {}).get("name", "") or not _is_full_size(name, made):
        return "–"
    best = made["best"][precision]
    ms = next(row["ms"] for row in made["rows"] if row["name"] == best["ours"])
    aim = f"{target['ms']:.4g} ms"
    if ms > target["ms"]:
        text = f"missed: {aim}"
    elif ms > (1 - AT_TARGET) * target["ms"]:
        text = f"at it: {aim}"
    else:
        text = f"beyond it: {aim}"
    return text if best["times"] >= target["times"] else f"{text}; not {target['times']} times"


def _is_full_size(name: str, made: dict) -> bool:
    file = KERNELS_REF / name / "model.py"
    if not file.is_file():
        return False
    own = _problem.read(file).literals
    sizes = made.get("sizes", {})
    return all(sizes.get(k) == v for k, v in own.items() if k in sizes and not isinstance(v, tuple))


def describe_runs(data: dict, task: str = "forward") -> str:
    """Return sentences on what the runs in the data lack."""
    sentences: dict[str, list[str]] = {}
    for name, made in data["problems"].items():
        part = made.get("backward") if task == "backward" else made
        if part and part.get("rows") and "work" in part:
            for sentence in _describe_gaps(part, data):
                sentences.setdefault(sentence, []).append(name)
    bare = [
        n
        for n, made in data["problems"].items()
        if made.get("rows") and "sms" in made.get("machine", {}) and "launches" not in made
    ]
    if bare and task == "forward":
        sentences[f"Nothing is known of the launches of {', '.join(bare)}."] = list(data["problems"])
    measured = sum(
        bool((m.get("backward", {}) if task == "backward" else m).get("rows")) for m in data["problems"].values()
    )
    return " ".join(s if len(names) >= measured else f"{', '.join(names)}: {s}" for s, names in sentences.items())


def _describe_gaps(part: dict, data: dict) -> list[str]:
    """Return sentences on what one problem's part lacks."""
    of = part if "command" in part else data  # older files have it for the whole run only
    command, interrupted = of.get("command"), of.get("interrupted")
    modes = {row["mode"] for row in part["rows"] if row.get("mode") and "ms" in row}
    found = []
    for mode in MODES:
        omitted = ",".join(re.findall(r"--without (\S+)", command or "")).split(",")
        if mode not in modes:
            why = (
                f" (the run had `--without {mode if mode in omitted else 'compile'}`)"
                if {mode, "compile"} & {*omitted}
                else ""
            )
            found.append(f"torch.compile's {mode} was not timed{why}.")
    if interrupted:
        found.append("The run was interrupted before its end.")
    failed = [row["name"] for row in part["rows"] if "ms" not in row]
    if failed:
        found.append(f"No time for {', '.join(failed)}.")
    found += [f"Left out: {name}: {why}." for name, why in part.get("without_backward", {}).items()]
    return found


# --- what `grader bench` prints --------------------------------------------------------------------------------------

SIZES = ["batch", "pixels per side", "row", "class", "ms", "95 % interval", "n", "ns per pixel", "in its class"]
BOTH = "forward and backward: the result, and the gradients of every input and weight"


def tables_of(data: dict) -> list[tuple[str, list[str], list[list[str]]]]:
    """Return title, heads and rows of each table that has rows."""
    found = []
    for name, made in data["problems"].items():
        if isinstance(made.get("sizes"), list):
            found.append((name, SIZES, format_sweep(made)))
            continue
        found.append((name, HEADS, format_rows(made)))
        found.append((f"{name}, {BOTH}", HEADS, format_rows(made.get("backward", {"rows": []}))))
    if not any(heads is SIZES for _, heads, _ in found):
        found.append(("The fastest of each class", SUMMARY, format_summary(data)))
        found.append((f"The fastest of each class, {BOTH}", SUMMARY_BACKWARD, format_summary(data, "backward")))
    return [(title, heads, rows) for title, heads, rows in found if rows]


def format_sweep(made: dict) -> list[list[str]]:
    """Return a sweep's sizes and rows as cells under SIZES."""
    cells = []
    for line in made["sizes"]:
        where = [str(line["batch"]), str(line["side"] or "–")]
        if "skipped" in line:
            cells.append([*where, f"– {line['skipped']}", *[""] * 6])
        for row in line.get("rows", []):
            kept = {None: "–", True: "yes", False: "no"}[row["in_class"]]
            if "ms" not in row:
                cells.append([*where, row["name"], row["precision"], "–", row["failed"], "", "", kept])
                continue
            pixel = row["ms"] * 1e6 / (line["batch"] * (line["side"] or 1) ** 2)
            times = [f"{row['ms']:.4g}", f"{row['low']:.4g}–{row['high']:.4g}", str(row["n"]), f"{pixel:.3g}"]
            cells.append([*where, row["name"], row["precision"], *times, kept])
    return cells


def sentences_of(data: dict) -> list[str]:
    """Return what a run lacks, in sentences; of a complete sweep, what it shows."""
    if gaps := [text for task in ("forward", "backward") if (text := describe_runs(data, task))]:
        return gaps
    swept = {name: made for name, made in data["problems"].items() if isinstance(made.get("sizes"), list)}
    return [sentence for name, made in swept.items() for sentence in growth.describe(name, made)]
