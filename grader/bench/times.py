"""Measure the seconds of a call, run interleaved rounds, and compute medians with their confidence intervals."""

from __future__ import annotations

import functools
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch

NARROW = 0.01  # half the width of a median's interval, relative to the median
FEWEST, MOST = 20, 200  # rounds
HEAD_START_CYCLES = 2_000_000  # about a millisecond, in which the call is launched while the GPU waits
SLOW = 5.0  # times the fastest row: a row this slow leaves after FEWEST rounds


class EventTimer:
    """Measures the seconds of a call between two events on the current stream.

    before: queued ahead of the events. A kernel that only waits follows it: without that kernel the GPU would be idle
    before the launches of the call arrive.
    """

    def __init__(self, before: Callable[[], object]):
        self.before = before

    def __call__(self, call: Callable[[], object]) -> float:
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        self.before()
        torch.cuda._sleep(HEAD_START_CYCLES)
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) / 1e3


def measure_wall_time(call: Callable[[], object]) -> float:
    """Return the seconds of a call by this process's clock."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def run_rounds(
    rows: Mapping[str, Callable[[], float]],
    each: Callable[[dict[str, float]], None],
    *,
    now: Callable[[], float] = time.perf_counter,
    seconds: float = 60.0,
    seed: int | None = None,
) -> None:
    """Run rounds of all rows, in random order within a round, until every median's interval is narrow.

    rows: each call measures its row once. each: called after every round with its seconds. The rounds end after
    `seconds`, or after MOST rounds. A row much slower than the fastest leaves after FEWEST rounds. At least one round
    is run.
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
def find_rank(n: int) -> int:
    """Return k such that the k-th smallest and k-th largest of n samples enclose the median with 95 % confidence.

    This holds for every distribution. Return 1 where n is too small for that.
    """
    outside, k = 1, 1  # cases of 2^n in which fewer than k numbers lie below the median
    while outside + math.comb(n, k) <= 0.025 * 2**n:
        outside, k = outside + math.comb(n, k), k + 1
    return k


def compute_median(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return the median and the ends of its 95 % confidence interval."""
    ordered, k = sorted(samples), find_rank(len(samples))
    return statistics.median(ordered), ordered[k - 1], ordered[-k]


def is_narrow(samples: Sequence[float]) -> bool:
    """Return whether the median is known to within NARROW."""
    middle, low, high = compute_median(samples)
    return len(samples) >= 6 and (high - low) / 2 <= NARROW * middle
