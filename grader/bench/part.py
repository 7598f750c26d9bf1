"""A problem's part of the data file: each row's time, its error beside its class's, and its place under the roof."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from grader import cases, contract
from grader import problem as _problem
from grader.bench import backward
from grader.bench.child import Order
from grader.bench.children import ROOT, Measured
from grader.bench.rows import OURS, Entry
from grader.bench.times import is_narrow, median

PROOF = 2.0  # times eager's error in its class: how far a row may be from float64


def told(problem: _problem.Problem, order: Order, found: Measured) -> dict:
    """Of forward, or of forward and backward. Seconds become milliseconds, each row is held to its class and to the roof."""
    if found.work is None:
        return {"rows": []}
    every = [entry for entry in order.entries(found.work) if entry.name not in found.bare]
    rows = rows_of(every, found)
    sizes = {k: v for k, v in problem.literals.items() if isinstance(v, (int, float, tuple, str))}
    made = {"sizes": sizes, "work": dataclasses.asdict(found.work), "roof": found.roof, "rows": rows}
    for precision in cases.PRECISIONS:
        if found.roof and (floor := found.work.floor(found.roof, precision)):
            made[f"floor_{precision}_ms"] = floor * 1e3
    if found.bare:
        made["without_backward"] = {name: found.failed[name] for name in sorted(found.bare)}
    return made | {"best": best(rows)}


def rows_of(every: Sequence[Entry], found: Measured) -> list[dict]:
    """A row for each entry: what it is, its times in milliseconds or why it has none, its error and whether that is its
    class's."""
    eager, eager_parts = _eager(every, found)
    return [_row(entry, found, eager.get(entry.precision), eager_parts.get(entry.precision, {})) for entry in every]


def _eager(every: Sequence[Entry], found: Measured) -> tuple[dict, dict]:
    """precision -> eager's largest error, and that of the result and each gradient."""
    errors: dict[str, float | None] = {}
    parts: dict[str, dict[str, float]] = {}
    for entry in every:  # cuDNN takes TF32 in channels_last only
        if entry.kind == "eager" and (entry.precision == "tf32" or not entry.channels_last):
            known = (errors.get(entry.precision), found.errors.get(entry.name))
            errors[entry.precision] = max((error for error in known if error is not None), default=None)
            of_class = parts.setdefault(entry.precision, {})
            for name, error in found.parts.get(entry.name, {}).items():
                if error is not None:
                    of_class[name] = max(error, of_class.get(name, 0.0))
    return errors, parts


def _row(entry: Entry, found: Measured, held: float | None, held_parts: dict[str, float]) -> dict:
    row = {k: v for k, v in dataclasses.asdict(entry).items() if v}
    row["precision"] = entry.precision
    if entry.file:
        file = Path(entry.file)
        row["file"] = str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file)
        with contextlib.suppress(OSError, ValueError, SyntaxError):  # whoever timed it may have moved it since
            row["code"] = contract.code_digest(file.read_text(encoding="utf-8"))
    samples = found.samples.get(entry.name, [])
    if entry.name in found.failed:
        row["failed"] = found.failed[entry.name]
    elif not samples:
        row["failed"] = "it was not timed: the run ended before"
    else:
        row |= _times(samples, found, entry.precision)
    error, parts = found.errors.get(entry.name), found.parts.get(entry.name)
    row["error"] = error
    if parts is None:
        row["in_class"] = None if error is None or held is None else error <= PROOF * held
    else:
        row["errors"], row["in_class"] = parts, backward.within(parts, held_parts, PROOF)
    return row


def _times(samples: list[float], found: Measured, precision: str) -> dict:
    ms, low, high = (1e3 * value for value in median(samples))
    made = {"ms": ms, "low": low, "high": high, "n": len(samples), "narrow": is_narrow(samples)}
    made["samples"] = [float(f"{1e3 * s:.5g}") for s in samples]
    floor = found.work.floor(found.roof, precision)
    made |= {"gb_a_second": found.work.bytes / ms / 1e6, "tflop_a_second": found.work.products / ms / 1e9}
    return made | {"of_roof": floor * 1e3 / ms if floor else None}


def best(rows: list[dict]) -> dict:
    """For each class the fastest of ours and the fastest baseline that keep to it, and how many times as fast ours is,
    with the interval of the rounds' ratios."""
    found = {}
    for precision in cases.PRECISIONS:
        fair = [r for r in rows if "ms" in r and r["precision"] == precision and r["in_class"] is not False]
        ours = min((r for r in fair if r["kind"] in OURS), key=lambda r: r["ms"], default=None)
        baseline = min((r for r in fair if r["kind"] not in OURS), key=lambda r: r["ms"], default=None)
        if ours is None or baseline is None:
            continue
        n = min(ours["n"], baseline["n"])
        times, low, high = median([b / o for b, o in zip(baseline["samples"][:n], ours["samples"][:n], strict=True)])
        names = {"ours": ours["name"], "baseline": baseline["name"]}
        found[precision] = names | {"times": times, "low": low, "high": high}
    return found
