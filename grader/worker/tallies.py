"""Describes what simt counted, for the judge: the work of the launches, and the lines that cost more than they need."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from grader.worker.failures import NAME, bound_line, shorten
from grader.worker.messages import MAX_TALLIED, MAX_TALLIED_LINES, Tallied, TalliedLaunch, TalliedLine
from simt.counting.counters import Launch
from simt.counting.report import Report
from simt.counting.time_model import Work
from simt.counting.what_if import Waste

KINDS = ("global_loads", "global_stores", "shared_loads", "shared_stores")
EXCESS = 1.1  # times the sectors or wavefronts that would be enough, from which on a line is named
SECTORS_A_WAVEFRONT = 4  # bytes of a wavefront over those of a sector


def describe(report: Report) -> Tallied:
    """Return the launches of a report, those of one kernel and one shape together."""
    alike: dict[tuple[object, ...], list[Launch]] = {}
    for launch in report.launches:
        alike.setdefault((launch.kernel, launch.grid, launch.block, launch.shared), []).append(launch)
    groups = list(alike.values())
    kept = [_describe_alike(launches) for launches in groups[:MAX_TALLIED]]
    return Tallied(kept, sum(len(launches) for launches in groups[MAX_TALLIED:]))


def _describe_alike(launches: list[Launch]) -> TalliedLaunch:
    first = launches[0]
    works = [dataclasses.asdict(Work.of(launch)) for launch in launches]
    mixes = [work.pop("mix") for work in works]
    return TalliedLaunch(
        shorten(first.kernel, NAME),
        list(first.grid),
        list(first.block),
        len(launches),
        _average(works),
        _average(mixes),
        _average([dataclasses.asdict(Waste.of(launch)) for launch in launches]),
        _list_lines(first),
    )


def _average(rows: list[dict[str, float]]) -> dict[str, float]:
    names: Iterable[str] = dict.fromkeys(name for row in rows for name in row)
    return {name: _bound(sum(row.get(name, 0.0) for row in rows) / len(rows)) for name in names}


def _bound(value: float) -> float:
    return float(value) if math.isfinite(value) and value > 0 else 0.0


def _list_lines(launch: Launch) -> list[TalliedLine]:
    """Return the lines whose accesses cost more than they need, the costliest first."""
    found: list[tuple[float, TalliedLine]] = []
    for line in launch.lines:
        for kind in KINDS:
            traffic = getattr(line.counters, kind)
            wide = kind.startswith("global")
            have, ideal = (
                (traffic.sectors, traffic.ideal_sectors) if wide else (traffic.wavefronts, traffic.ideal_wavefronts)
            )
            if not traffic.requests or have <= EXCESS * ideal:
                continue
            excess = (have - ideal) * (1 if wide else SECTORS_A_WAVEFRONT)
            amounts = [_bound(value) for value in (traffic.requests, have, ideal)]
            found.append((excess, TalliedLine(bound_line(line.line), kind, *amounts)))
    return [line for _, line in sorted(found, key=lambda one: -one[0])[:MAX_TALLIED_LINES]]
