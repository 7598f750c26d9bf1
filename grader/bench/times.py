"""Seconds of a call, rounds of calls in turns, medians and how sure they are."""

from __future__ import annotations

import functools
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch

NARROW = 0.01  # half the width of a median's interval, relative
FEWEST, MOST = 20, 200  # rounds
HEAD_START = 2_000_000  # cycles, about a millisecond, in which the call is launched while the GPU waits
SLOW = 5.0  # times the fastest row: after FEWEST rounds it waits no longer for others


class Events:
    """Seconds of a call between two events on the current stream. before: queued ahead of them, and after it a kernel that
    only waits: without it the GPU would be done and idle before a call of many launches, or a cold one, has begun."""

    def __init__(self, before: Callable[[], object]):
        self.before = before

    def __call__(self, call: Callable[[], object]) -> float:
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.before()
        torch.cuda._sleep(HEAD_START)
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) / 1e3


def wall(call: Callable[[], object]) -> float:
    """Seconds of a call by this process's clock."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def rounds(
    rows: Mapping[str, Callable[[], float]],
    each: Callable[[dict[str, float]], None],
    *,
    now: Callable[[], float] = time.perf_counter,
    seconds: float = 60.0,
    seed: int | None = None,
) -> None:
    """Run all rows in turns, in random order, until each one's median is known to NARROW, or time or patience ends.

    rows: each call measures its row once. each: called after every round with its seconds. A row much slower than the
    fastest leaves after FEWEST rounds. At least one round is run.
    """
    order, deadline = random.Random(seed), now() + seconds
    samples: dict[str, list[float]] = {name: [] for name in rows}
    running = list(rows)
    while running:
        found = {name: rows[name]() for name in order.sample(running, len(running))}
        for name, taken in found.items():
            samples[name].append(taken)
        each(found)
        if now() > deadline or len(samples[running[0]]) >= MOST:
            return
        if len(samples[running[0]]) < FEWEST:
            continue
        fastest = min(statistics.median(s) for s in samples.values())
        if all(is_narrow(samples[name]) for name in running):
            return
        running = [name for name in running if statistics.median(samples[name]) <= SLOW * fastest]


@functools.cache
def rank(n: int) -> int:
    """The number k so that the k-th smallest and the k-th largest of n numbers hold their distribution's median between
    them in at least 95 % of all cases, whatever the distribution; 1 where there are too few for that."""
    outside, k = 1, 1  # cases of 2^n in which fewer than k numbers lie below the median
    while outside + math.comb(n, k) <= 0.025 * 2**n:
        outside, k = outside + math.comb(n, k), k + 1
    return k


def median(samples: Sequence[float]) -> tuple[float, float, float]:
    """The median and its 95 % interval."""
    ordered, k = sorted(samples), rank(len(samples))
    return statistics.median(ordered), ordered[k - 1], ordered[-k]


def is_narrow(samples: Sequence[float]) -> bool:
    middle, low, high = median(samples)
    return len(samples) >= 6 and (high - low) / 2 <= NARROW * middle
