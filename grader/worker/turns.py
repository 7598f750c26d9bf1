"""Lets one grading or benchmark of a user at a time compute on a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from grader.worker.locks import sole_user

WAITING = "waiting for another grading on this GPU"


def take_gpu(waiting: Callable[[str], None]) -> contextlib.AbstractContextManager[None]:
    """Return a context in which no other grading of this user computes on the current GPU: it would take part of the
    time and of the memory. waiting: called with a few words if another one has it. A turn cannot be taken twice.
    """
    import torch

    facts = torch.cuda.get_device_properties(torch.cuda.current_device())
    return sole_user(str(getattr(facts, "uuid", facts.name)), lambda: waiting(WAITING))
