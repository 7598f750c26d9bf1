"""Load large packages quickly."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage while modules are loaded, and later none among them: nothing of them is ever garbage.

    It would take a tenth of the time in which torch is loaded, 0.15 s whenever all objects are looked at later, and
    0.2 s at the end of the process.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
