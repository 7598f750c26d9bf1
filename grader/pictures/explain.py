"""Choose the pictures that explain a verdict's first failure, or a line that simt counted."""

from __future__ import annotations

import math
import re
from typing import Any

from grader.pictures.access_map import access_map, out_of_bounds_map
from grader.pictures.alignment_map import alignment_map
from grader.pictures.bank_map import bank_map
from grader.pictures.error_map import error_map
from grader.pictures.picture import Picture, clipped
from grader.pictures.race_map import RaceAccess, race_map
from grader.verdict import Evidence, Launch, Reason, Stage, Verdict

_OUTSIDE = re.compile(
    r"(reads|writes|updates atomically) element (-?\d+) of `(\w+)`(?:, which has | \()(\d+) elements?"
)
_RACE = re.compile(
    r"(reads|writes|updates atomically) element (-?\d+) of `(\w+)`.*?, which thread \((\d+), (\d+), (\d+)\) of "
    r"(?:the same block|block \((\d+), (\d+), (\d+)\)) "
    r"(reads|writes|updates atomically)(?: in line (\d+))?"
)
_MISALIGNED = re.compile(
    r"(reads|writes|updates atomically) (\d+) bytes at once of (`\w+`|[\w ]+), at an address .*? begins at byte "
    r"(\d+) of (\d+), (\d+) bytes past a multiple"
)
_VALUES = {
    *(Reason.wrong_values, Reason.non_finite, Reason.not_written, Reason.low_precision, Reason.constant_output),
    *(
        Reason.nondeterministic,
        Reason.schedule_dependent,
        Reason.wrong_gradient,
        Reason.noncontiguous_gradient,
        Reason.saved_overwritten,
    ),
}


def explain_verdict(verdict: Verdict) -> list[Picture]:
    """Return the pictures that explain the first stage that did not pass; none if no picture helps.

    Wrong values get an error map, unless all values are wrong, with the borders of blocks if a launch fits the output.
    An access out of bounds or misaligned gets a map of the array around it. A race gets a map of its two threads, also
    if the checks found it as the cause of wrong values.
    """
    stage = verdict.first_problem
    if stage is None or not stage.evidence:
        return []
    evidence = stage.evidence[0]
    races = [
        picture
        for one in verdict.stages
        if one.reason is Reason.race and one.evidence
        for picture in _race(one, one.evidence[0])
    ]
    if stage.reason in _VALUES:
        return _wrong(evidence) + races
    if stage.reason is Reason.out_of_bounds:
        return _outside(stage, evidence)
    if stage.reason is Reason.misaligned:
        return _misaligned(stage, evidence)
    return races


def _wrong(evidence: Evidence) -> list[Picture]:
    if evidence.wrong is None or evidence.wrong_count == evidence.total:
        return []
    shape = evidence.wrong.shape
    borders: dict[str, Any] = next(
        (found for launch in reversed(evidence.launches) if (found := _borders(launch, shape))), {}
    )
    try:
        what = f"the gradient of {evidence.gradient}" if evidence.gradient else "the output"
        return [error_map(evidence.wrong, pattern=evidence.pattern, what=what, **borders)]
    except ValueError:  # a verdict file that another program wrote, with an invalid map
        return []


def _borders(launch: Launch, shape: list[int]) -> dict[str, Any]:
    """Return how the launch's blocks cover an output, if its sizes fit: by rows and columns, or by flat elements."""
    (gx, gy, gz), (bx, by, bz) = launch.grid, launch.block
    if (
        max(gx, gy) > 1
        and min(bx, by) > 1
        and len(shape) >= 2
        and (gx, gy) == (-(-shape[-1] // bx), -(-shape[-2] // by))
    ):
        return {"tile": (by, bx)}
    elements = math.prod(shape)
    # A grid size rounded down is a common mistake.
    if gx > 1 and bx > 1 and gy == gz == by == bz == 1 and gx in (elements // bx, -(-elements // bx)):
        return {"block": bx, "blocks": gx}
    return {}


def _outside(stage: Stage, evidence: Evidence) -> list[Picture]:
    found = _OUTSIDE.search(stage.message)
    if not found:
        return []
    verb, index, array, elements = found[1], int(found[2]), found[3], int(found[4])
    if 0 <= index < elements:
        return []
    return [out_of_bounds_map(array, index, elements, verb=verb, text=evidence.text or "", **_who(evidence))]


def _misaligned(stage: Stage, evidence: Evidence) -> list[Picture]:
    found = _MISALIGNED.search(stage.message)
    if not found:
        return []
    width, byte, size, past = map(int, found.group(2, 4, 5, 6))
    try:
        return [
            alignment_map(
                found[3].strip("`"),
                byte,
                width,
                past,
                size=size,
                verb=found[1],
                text=evidence.text or "",
                **_who(evidence),
            )
        ]
    except ValueError:
        return []


def _who(evidence: Evidence) -> dict:
    """Return thread and block, if both are known."""
    return {"thread": evidence.thread, "block": evidence.block} if evidence.thread and evidence.block else {}


def _race(stage: Stage, evidence: Evidence) -> list[Picture]:
    found = _RACE.search(stage.message)
    if not found or not evidence.thread or not evidence.block:
        return []
    block = tuple(map(int, found.group(7, 8, 9))) if found[7] else tuple(evidence.block)
    mine = RaceAccess(tuple(evidence.thread), tuple(evidence.block), found[1], evidence.line or 0)
    other = RaceAccess(tuple(map(int, found.group(4, 5, 6))), block, found[10], int(found[11] or 0))
    try:
        return [race_map(found[3], int(found[2]), mine, other)]
    except ValueError:
        return []


def explain_line(line, text: str = "", row: int | None = None) -> list[Picture]:
    """Return maps of the requests of a simt.Line that cost more than necessary.

    These are access maps for global memory and bank maps for shared memory.
    text: the source line. row: elements per row of the shared array, to draw the same request after padding.
    """
    pictures = []
    for request in line.requests:
        shared, traffic = request.kind.startswith("shared"), getattr(line.counters, request.kind)
        if request.excess <= 0:
            continue
        each = traffic.wavefronts / traffic.requests if shared else traffic.sectors_per_request
        mean = f"this line on average: {each:.3g} {'wavefronts' if shared else 'sectors'} per request"
        label = f"{clipped(text, 55)}  ({mean})" if text else mean
        pictures.append(bank_map(request, row=row, text=label) if shared else access_map(request, text=label))
    return pictures
