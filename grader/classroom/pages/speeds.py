"""How fast the submissions of a class are, next to one another: quartiles and leaderboards."""

from __future__ import annotations

import hashlib
import hmac
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from grader.classroom.gradebook import Gradebook, Scored
from grader.classroom.scores import BASELINES
from grader.verdict import Outcome, Reason, StageName

FEWEST = 5  # measured submissions from which on quartiles are shown: those of fewer would give single speeds away
ADJECTIVES = (
    "amber brisk calm clear copper coral crisp dusky eager early fleet gentle golden hazel humble ivory jade keen "
    "light lively lunar mellow misty nimble noble pearl placid quick quiet rapid ruby rustic silent silver snowy solar "
    "steady sunny swift velvet"
).split()
NOUNS = (
    "alder badger beech birch cedar comet crane curlew egret falcon fern finch fox gannet hare hazel heron ibis "
    "juniper kestrel larch linnet lynx maple marten merlin newt orchid osprey otter plover raven robin rowan sparrow "
    "stoat swallow tern thrush willow"
).split()


@dataclass(frozen=True)
class Speed:
    """How often a submission is as fast as something else. over: what, in words."""

    over: str
    value: float


@dataclass(frozen=True)
class Quartiles:
    """The speeds of a class for one problem. count: of measured submissions."""

    low: float
    median: float
    high: float
    most: float
    count: int


@dataclass(frozen=True)
class Place:
    """A place on a leaderboard. name: as the board shows it."""

    rank: int
    student: str
    name: str
    speed: Speed


def find_speed(scored: Scored | None) -> Speed | None:
    """Return the measured speed of an attempt that passed, over the reference solution or else over eager PyTorch."""
    verdict = scored.graded.verdict if scored and scored.graded else None
    if verdict is None or verdict.outcome is not Outcome.passed:
        return None
    stage = next((one for one in verdict.stages if one.name is StageName.fast), None)
    if stage is None or stage.reason is Reason.inconclusive:
        return None
    values = {one.name: one.value for one in stage.measurements}
    return next(
        (Speed(name.removeprefix("speed-up over "), values[name]) for name in BASELINES.values() if name in values),
        None,
    )


def find_speeds(book: Gradebook, problem: str) -> dict[str, Speed]:
    """Return the speed of each student whose counted attempt has one, over the same as most."""
    found = {}
    for student in book.students:
        if speed := find_speed(book.grades[student.id, problem].counted):
            found[student.id] = speed
    over = statistics.mode(speed.over for speed in found.values()) if found else ""
    return {student: speed for student, speed in found.items() if speed.over == over}


def find_quartiles(speeds: Sequence[Speed]) -> Quartiles | None:
    """Return the quartiles of a class's speeds; None if they are too few to hide one of them."""
    if len(speeds) < FEWEST:
        return None
    values = [speed.value for speed in speeds]
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Quartiles(low, median, high, max(values), len(values))


def make_board(book: Gradebook, problem: str, secret: bytes) -> list[Place]:
    """Return the places of a problem's leaderboard, the fastest first; equal speeds share one. Empty if it is off."""
    shown = book.course.problems[problem].leaderboard
    if shown == "off":
        return []
    speeds = find_speeds(book, problem)
    names = {student.id: student.name for student in book.students}
    if shown == "pseudonyms":
        names = make_pseudonyms([*names], secret)
    values = sorted((speed.value for speed in speeds.values()), reverse=True)
    places = [Place(values.index(speed.value) + 1, key, names[key], speed) for key, speed in speeds.items()]
    return sorted(places, key=lambda place: (place.rank, place.name))


def make_pseudonyms(students: Sequence[str], secret: bytes) -> dict[str, str]:
    """Return a name for each student that only who has the course's secret can tell; no two have the same."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for student in sorted(students):
        drawn = int.from_bytes(hmac.digest(secret, b"pseudonym " + student.encode(), hashlib.sha256)[:8], "big")
        first, second = divmod(drawn % (len(ADJECTIVES) * len(NOUNS)), len(NOUNS))
        name = wanted = f"{ADJECTIVES[first]} {NOUNS[second]}"
        number = 2
        while name in taken:
            name, number = f"{wanted} {number}", number + 1
        taken.add(name)
        found[student] = name
    return found
