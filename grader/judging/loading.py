"""Import large packages without garbage collection."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Pause garbage collection while modules are imported, and exclude what they made from later collections.

    torch makes so many objects that collections are a noticeable part of its import, of each full collection later, and
    of the end of the process; and modules are never garbage.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
