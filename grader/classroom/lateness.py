"""How late attempts are and what that costs, when grades are read: nothing of it is stored."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass

from grader.classroom.course import Course, Late

DAY = datetime.timedelta(days=1)
LAST = datetime.datetime.max.replace(tzinfo=datetime.UTC)  # of what has no deadline


@dataclass(frozen=True)
class Lateness:
    """days: begun after the deadline and its grace. free: of these, paid with the student's free days. factor: what the
    earned points are multiplied with.
    """

    days: int = 0
    free: int = 0
    factor: float = 1.0


def count_late_days(handed_in: datetime.datetime, due: datetime.datetime | None, grace_minutes: int) -> int:
    """Return the days begun since the deadline; 0 without a deadline, and within its grace."""
    if due is None or handed_in <= due + datetime.timedelta(minutes=grace_minutes):
        return 0
    return math.ceil((handed_in - due) / DAY)


def find_lateness(course: Course, late_days: Mapping[str, int]) -> dict[str, Lateness]:
    """Return the lateness of one student's counted attempts, by problem. late_days: of each, by problem.

    Free days are spent in the order of the deadlines, and on whole days only.
    """
    left, found = course.late.free_days, {}
    ends = {name: course.due(name) or LAST for name in late_days}
    for name in sorted(late_days, key=lambda name: (ends[name], name)):
        days = late_days[name]
        free = min(left, days)
        left -= free
        found[name] = Lateness(days, free, find_factor(days - free, days, course.late))
    return found


def find_factor(paid: int, days: int, late: Late) -> float:
    """Return what the earned points are multiplied with. paid: late days without free ones; days: with them."""
    if days > late.most_days:
        return 0.0
    return max(0.0, 1.0 - paid * late.percent_a_day / 100)
