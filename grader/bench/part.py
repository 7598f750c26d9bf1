"""Make a problem's part of the data file: each row's time, its error against its class's, its share of the roof."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path

from grader.bench import backward
from grader.bench.children import Measured
from grader.bench.order import Order
from grader.bench.rows import OURS, Entry
from grader.bench.sizes import find_axes, list_sizes, make_entries_at
from grader.bench.times import compute_median, is_narrow
from grader.bench.work import Work
from grader.paths import ROOT
from grader.problems import cases
from grader.problems import problem as _problem
from grader.source import contract

ERROR_FACTOR = 2.0  # times eager's error in its class: the largest error allowed to a row


def make_part(problem: _problem.Problem, order: Order, found: Measured) -> dict:
    """Return the part of forward, or of forward and backward: sizes, work, roof, rows in milliseconds, fastest rows."""
    if found.work is None:
        return {"rows": []}
    every = [entry for entry in order.make_entries(found.work) if entry.name not in found.without_gradient]
    rows = make_rows(every, found)
    sizes = {k: v for k, v in problem.literals.items() if isinstance(v, (int, float, tuple, str))}
    made = {"sizes": sizes, "work": dataclasses.asdict(found.work), "roof": found.roof, "rows": rows}
    for precision in cases.OF_FLOAT32 if problem.precision in cases.OF_FLOAT32 else (problem.precision,):
        if found.roof and (bound := found.work.compute_bound(found.roof, precision)):
            made[f"bound_{precision}_ms"] = bound * 1e3
    if found.without_gradient:
        made["without_backward"] = {name: found.failed[name] for name in sorted(found.without_gradient)}
    return made | {"best": find_best(rows)}


def make_rows(every: Sequence[Entry], found: Measured) -> list[dict]:
    """Return a row for each entry: its properties, its times in milliseconds or why it has none, its error and whether
    that is within its class.
    """
    eager, eager_parts = _find_eager_errors(every, found)
    return [
        _make_row(entry, found, eager.get(entry.precision), eager_parts.get(entry.precision, {})) for entry in every
    ]


def _find_eager_errors(every: Sequence[Entry], found: Measured) -> tuple[dict, dict]:
    """Return precision -> eager's largest error, and precision -> that of the result and of each gradient."""
    errors: dict[str, float | None] = {}
    parts: dict[str, dict[str, float]] = {}
    for entry in every:  # cuDNN uses TF32 in channels_last only
        if entry.kind == "eager" and (entry.precision == "tf32" or not entry.channels_last):
            known = (errors.get(entry.precision), found.errors.get(entry.name))
            errors[entry.precision] = max((error for error in known if error is not None), default=None)
            of_class = parts.setdefault(entry.precision, {})
            for name, error in found.parts.get(entry.name, {}).items():
                if error is not None:
                    of_class[name] = max(error, of_class.get(name, 0.0))
    return errors, parts


def _make_row(entry: Entry, found: Measured, allowed: float | None, allowed_parts: dict[str, float]) -> dict:
    row = {k: v for k, v in dataclasses.asdict(entry).items() if v}
    row["precision"] = entry.precision
    if entry.file:
        file = Path(entry.file)
        row["file"] = str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file)
        with contextlib.suppress(OSError, ValueError, SyntaxError):  # the file may have been moved since
            row["code"] = contract.code_digest(file.read_text(encoding="utf-8"))
    samples = found.samples.get(entry.name, [])
    if entry.name in found.failed:
        row["failed"] = found.failed[entry.name]
    elif not samples or found.work is None:
        row["failed"] = "it was not timed: the run ended before"
    else:
        row |= _make_times(samples, found.work, found.roof, entry.precision)
    error, parts = found.errors.get(entry.name), found.parts.get(entry.name)
    row["error"] = error
    if parts is None:
        row["in_class"] = None if error is None or allowed is None else error <= ERROR_FACTOR * allowed
    else:
        row["errors"], row["in_class"] = parts, backward.is_within_class(parts, allowed_parts, ERROR_FACTOR)
    return row


def _make_times(samples: list[float], work: Work, roof: dict[str, float], precision: str) -> dict:
    """Return a row's times and rates."""
    ms, low, high = (1e3 * value for value in compute_median(samples))
    made = {"ms": ms, "low": low, "high": high, "n": len(samples), "narrow": is_narrow(samples)}
    made["samples"] = [float(f"{1e3 * s:.5g}") for s in samples]
    bound = work.compute_bound(roof, precision)
    made |= {"gb_a_second": work.bytes / ms / 1e6, "tflop_a_second": work.products / ms / 1e9}
    return made | {"of_roof": bound * 1e3 / ms if bound else None}


def find_best(rows: list[dict]) -> dict:
    """Return for each class the fastest of ours and the fastest baseline within it, and the speed-up of ours with the
    interval of the rounds' ratios.
    """
    found = {}
    for precision in cases.PRECISIONS:
        fair = [r for r in rows if "ms" in r and r["precision"] == precision and r["in_class"] is not False]
        ours = min((r for r in fair if r["kind"] in OURS), key=lambda r: r["ms"], default=None)
        baseline = min((r for r in fair if r["kind"] not in OURS), key=lambda r: r["ms"], default=None)
        if ours is None or baseline is None:
            continue
        n = min(ours["n"], baseline["n"])
        ratios = [b / o for b, o in zip(baseline["samples"][:n], ours["samples"][:n], strict=True)]
        times, low, high = compute_median(ratios)
        names = {"ours": ours["name"], "baseline": baseline["name"]}
        found[precision] = names | {"times": times, "low": low, "high": high}
    return found


def make_sweep_part(problem: _problem.Problem, order: Order, found: Measured) -> dict:
    """Return a problem's part of a sweep's data file: the rows of each size, or why there are none."""
    axes = find_axes(problem)
    made: list[dict] = []
    for size in sorted(list_sizes(axes.own), key=lambda s: (s.batch, s.side or 0)):
        line: dict = {"batch": size.batch, "side": size.side}
        prefix = f"{size.key}: "
        work = found.work if any(name.startswith(prefix) for name in found.known_rows()) else None
        if size.key in found.skipped or work is None:
            line["skipped"] = found.skipped.get(size.key, "it was not reached: the run ended before")
        if work is not None:
            rows = make_rows(make_entries_at(size, axes.own, order, problem, work), found.select(prefix))
            for row in rows:  # the rates are those of the problem's own size
                for key in ("samples", "gb_a_second", "tflop_a_second", "of_roof"):
                    row.pop(key, None)
            line["rows"] = rows
        made.append(line)
    return {"own": dataclasses.asdict(axes.own), "names": ["batch_size", *axes.sides], "sizes": made}
