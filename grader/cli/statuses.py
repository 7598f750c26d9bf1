"""Exit statuses of the command `grader`, which of several counts, and the end by Ctrl-C before anything has begun."""

from __future__ import annotations

import os
from collections.abc import Collection
from types import FrameType

PASSED, FAILED, USAGE, CANNOT, NOT_ATTEMPTED, INTERRUPTED = 0, 1, 2, 3, 4, 130
WORST_FIRST = (INTERRUPTED, USAGE, CANNOT, FAILED, NOT_ATTEMPTED, PASSED)


def worst(statuses: Collection[int | str | None]) -> int:
    """Return the status of these that outranks the others; anything that is not one of ours does not count."""
    return next(status for status in WORST_FIRST if status in statuses)


def end_interrupted(_number: int, _frame: FrameType | None) -> None:
    """Handle a signal by ending the process, which has started nothing that would have to be ended, at once."""
    os.write(2, b"\nInterrupted.\n")
    os._exit(INTERRUPTED)
