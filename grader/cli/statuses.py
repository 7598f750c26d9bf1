"""Exit statuses of the command `grader`, and which of several counts."""

from __future__ import annotations

from collections.abc import Collection

PASSED, FAILED, USAGE, CANNOT, NOT_ATTEMPTED, INTERRUPTED = 0, 1, 2, 3, 4, 130
WORST_FIRST = (INTERRUPTED, USAGE, CANNOT, FAILED, NOT_ATTEMPTED, PASSED)


def worst(statuses: Collection[int | str | None]) -> int:
    """Return the status of these that outranks the others; anything that is not one of ours does not count."""
    return next(status for status in WORST_FIRST if status in statuses)
