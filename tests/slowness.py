"""How slow this machine is, for limits in seconds: what honest work needs depends on it."""

from __future__ import annotations

import functools
import time
from array import array

USUAL_S = 0.5e-6  # of a step below, with room for other work beside the tests
WORDS, STEPS = 1 << 23, 20_000  # 64 MiB, more than caches hold


@functools.cache
def slowness() -> float:
    """Return how many times slower than usual memory answers, 1 at least, in some 50 ms.

    Some virtual machines take twenty times longer for a random access, and ten times for importing torch; arithmetic
    is as fast there as elsewhere.
    """
    words = array("Q", [1]) * WORDS
    at, best = 1, float("inf")
    for _ in range(3):
        begun = time.perf_counter()
        for _ in range(STEPS):
            at = (at * 25214903917 + 10 + words[at]) % WORDS
        best = min(best, (time.perf_counter() - begun) / STEPS)
    return max(1.0, best / USUAL_S)
