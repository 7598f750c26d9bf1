"""Time a submission against its baselines on a GPU, fairly, and say how sure the ratio is.

One round times every command once, in random order: the L2 cache is flushed, then a wall clock in this process runs
from before a batch of calls on distinct inputs until their results are there. What the way to a worker and back takes
is subtracted. A trusted worker tells it, with work that takes about as long as the candidate's and an answer as long:
by how much the wall clock exceeds what its GPU took by CUDA events. (After work that takes much less or much longer the
way back is another, and each result takes some microseconds of it.) Rounds repeat until the confidence interval of
every ratio is narrow enough, and, for some more rounds, until that of the candidate's own time is, which is as unsure
as its batches and the way are together.
"""

from __future__ import annotations

import dataclasses
import math
import platform
import random
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import torch

from grader.judging.trial import ENOUGH_ROUNDS, FEWEST_ROUNDS

NARROW = 0.02  # half the width of a ratio's interval, relative: enough to tell 4 % apart
NARROW_TIME = 0.0075  # the same of the candidate's time and the way: repeated measurements then agree within 2 %
MOST_ROUNDS = 400
MOST_SECONDS = 20.0
BATCH_SECONDS = 0.02  # a batch is made at least this long, if there are enough inputs: clocks and messages jitter
# Where one command is much slower than another, all batches are as long as this makes the slowest one's, but no shorter
# than the other makes the fastest one's.
LONG_BATCH_SECONDS, SHORT_BATCH_SECONDS = 0.06, 0.005
WARM_UPS = 3
SLOW = 1.0  # seconds: a call that long needs no more warming up
FLUSH_FACTOR = 2  # of the L2: a set-associative cache does not drop its lines in order
CANDIDATE, WAY = "candidate", "way"


@dataclasses.dataclass(frozen=True)
class Turn:
    """What is known of a turn. work: the seconds that its work took, where that is known for certain. aside: those that
    were spent on something else.
    """

    work: float = 0.0
    aside: float = 0.0


class Command(Protocol):
    """Something that can be timed."""

    def prepare(self, batch: Sequence[int]) -> None:
        """Get ready for a turn on these inputs, untimed."""

    def run(self, batch: Sequence[int]) -> Turn:
        """Work on the inputs with these numbers and return when the results are there."""
        ...

    def settle(self, batch: Sequence[int]) -> None:
        """Do what follows a turn on these inputs, untimed."""


class Way(Command, Protocol):
    """A command that takes the same way as the others and knows what its work takes.

    calls: how many of a batch's inputs it works on; it answers for all of them, with as many results. None: works on
    all.
    """

    calls: int | None


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds a call of one command: median, quartiles, and how many batches they stand on."""

    name: str
    median_ms: float
    q1_ms: float
    q3_ms: float
    n: int


@dataclasses.dataclass(frozen=True)
class Ratio:
    """How many times faster the candidate is than a baseline, with a 95 % confidence interval.

    conclusive: the interval is narrow enough to be reported as a figure.
    """

    baseline: str
    speedup: float
    low: float
    high: float
    conclusive: bool


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What measure() found. notes: sentences about what is odd. below_bound: faster than memory allows. way_ms: what
    the way to a worker and back took of each batch, which is subtracted. seconds: a call of each command, by round.
    """

    candidate: Timing
    baselines: list[Timing]
    ratios: list[Ratio]
    rounds: int
    batch: int
    bound_ms: float | None
    below_bound: bool
    notes: list[str]
    way_ms: float = 0.0
    seconds: dict[str, list[float]] = dataclasses.field(default_factory=dict)

    @property
    def conclusive(self) -> bool:
        return all(ratio.conclusive for ratio in self.ratios)


def measure(
    candidate: Command,
    baselines: Mapping[str, Command],
    way: Way,
    inputs: int,
    *,
    bound_ms: float | None = None,
    flush: Callable[[], None] | None = None,
    refresh: Callable[[Sequence[int]], None] | None = None,
    check: Callable[[Sequence[int]], None] | None = None,
    now: Callable[[], float] = time.perf_counter,
    seed: int | None = None,
    most_seconds: float = MOST_SECONDS,
    enough_rounds: int = ENOUGH_ROUNDS,
) -> Measurement:
    """Time the candidate and every baseline in interleaved rounds.

    way: of a trusted worker. inputs: how many distinct ones there are, numbered from 0; a batch uses each at most once.
    bound_ms: the least time that memory allows (see roofline_bound()). flush: empties the L2; Flush() if None. refresh,
    check: called before and after each round with the numbers of its inputs, untimed. now: seconds. seed: of the order
    of turns. enough_rounds: after which the candidate's time may scatter as it likes. Exceptions of commands pass
    through.
    """
    flush = Flush() if flush is None else flush
    refresh, check = refresh or _ignore, check or _ignore
    order = random.Random(seed)
    commands: dict[str, Command] = {CANDIDATE: candidate, WAY: way, **baselines}
    batch, way.calls = _warm_up(commands, inputs, refresh, now)
    samples: dict[str, list[float]] = {name: [] for name in commands}
    deadline = now() + most_seconds
    while True:
        numbers = order.sample(range(inputs), batch)
        refresh(numbers)
        for name in order.sample(list(commands), len(commands)):
            commands[name].prepare(numbers)
            flush()
            seconds, turn = _timed(commands[name], numbers, now)
            samples[name].append(seconds - turn.work if name == WAY else seconds)
            commands[name].settle(numbers)
        check(numbers)
        rounds = len(samples[CANDIDATE])
        times = {name: _per_call(samples[name], samples[WAY], batch) for name in commands if name != WAY}
        ratios = [ratio(name, times[name], times[CANDIDATE]) for name in baselines]
        unsure = _half_width([seconds / batch for seconds in samples[WAY]])
        apart = math.hypot(_half_width(times[CANDIDATE]), unsure) / statistics.median(times[CANDIDATE])
        known = rounds >= enough_rounds or apart <= NARROW_TIME
        sure = rounds >= FEWEST_ROUNDS and known and all(r.conclusive for r in ratios)
        if sure or rounds >= MOST_ROUNDS or now() > deadline:
            found = _measurement(times, ratios, rounds, batch, bound_ms)
            return dataclasses.replace(found, way_ms=1e3 * statistics.median(samples[WAY]), seconds=times)


def _ignore(_numbers: Sequence[int]) -> None:
    pass


def _warm_up(
    commands: Mapping[str, Command], inputs: int, refresh: Callable[[Sequence[int]], None], now: Callable[[], float]
) -> tuple[int, int]:
    """Run every command a few times (torch.compile compiles now).

    Returns the number of calls per batch, and how many calls of the way take about as long as the candidate's batch.
    """
    refresh([0])
    last: dict[str, float] = {}
    for name, command in commands.items():
        for count in range(WARM_UPS):
            command.prepare([0])
            last[name], turn = _timed(command, [0], now)
            command.settle([0])
            if name == WAY:
                work, last[name] = turn.work, last[name] - turn.work
            if count > 0 and last[name] > SLOW:  # the first call may have compiled
                break
    batch = _count_calls(last, 1, inputs)
    for _ in range(2):  # more calls tell better how long one takes
        numbers = range(batch)
        refresh(numbers)
        for name, command in commands.items():
            if name != WAY:
                command.prepare(numbers)
                last[name], _ = _timed(command, numbers, now)
                command.settle(numbers)
        batch = max(batch, _count_calls(last, batch, inputs))
    few = round((last[CANDIDATE] - last[WAY]) / len(numbers) * batch / max(work, 1e-9))
    return batch, min(batch, max(1, few))


def _count_calls(last: Mapping[str, float], calls: int, inputs: int) -> int:
    """Return how many calls a batch has, from the seconds of `calls` calls of each command and of the way."""
    each = [max((seconds - last[WAY]) / calls, 1e-9) for name, seconds in last.items() if name != WAY]
    enough, least = (math.ceil(seconds / min(each)) for seconds in (BATCH_SECONDS, SHORT_BATCH_SECONDS))
    return min(inputs, enough, max(1, least, math.ceil(LONG_BATCH_SECONDS / max(each))))


def _timed(command: Command, numbers: Sequence[int], now: Callable[[], float]) -> tuple[float, Turn]:
    """Return the seconds until a command's results are there, without those spent aside, and what it knows of them."""
    start = now()
    turn = command.run(numbers)
    return now() - start - turn.aside, turn


def _per_call(batches: list[float], ways: list[float], batch: int) -> list[float]:
    """Seconds a call. The jitter of a single way must not move a sample, so their median is subtracted."""
    overhead = statistics.median(ways)
    return [max(seconds - overhead, 1e-9) / batch for seconds in batches]


def ratio(name: str, baseline: Sequence[float], candidate: Sequence[float]) -> Ratio:
    """The speed-up of the candidate over a baseline from paired times.

    The median of the rounds' ratios, with its 95 % interval. A few disturbed rounds do not move it, and drift cancels
    within a round.
    """
    logs = [math.log(b / c) for b, c in zip(baseline, candidate, strict=True)]
    low, high = _interval(logs)
    # With fewer than 6 samples no two of them hold the median with 95 % confidence.
    conclusive = len(logs) >= 6 and (high - low) / 2 <= NARROW
    return Ratio(name, math.exp(statistics.median(logs)), math.exp(low), math.exp(high), conclusive)


def _interval(samples: Sequence[float]) -> tuple[float, float]:
    """Return the distribution-free 95 % interval of the median: the order statistics of ranks n/2 -+ 0.98 sqrt(n)."""
    ordered, n = sorted(samples), len(samples)
    below = max(0, math.floor(n / 2 - 0.98 * math.sqrt(n)))
    return ordered[below], ordered[n - 1 - below]


def _half_width(seconds: Sequence[float]) -> float:
    """Return half the width of the interval of the median."""
    low, high = _interval(seconds)
    return (high - low) / 2


def timing(name: str, seconds: Sequence[float]) -> Timing:
    """Median and quartiles of times in seconds, as milliseconds."""
    q1, median, q3 = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else [seconds[0]] * 3
    return Timing(name, median * 1e3, q1 * 1e3, q3 * 1e3, len(seconds))


def _measurement(times, ratios, rounds, batch, bound_ms) -> Measurement:
    timings = [timing(name, seconds) for name, seconds in times.items()]
    candidate = timings[0]
    below = bound_ms is not None and candidate.median_ms < bound_ms
    notes = [say_uncertain(ratio, rounds) for ratio in ratios if not ratio.conclusive]
    if below:
        notes.append(
            f"{candidate.median_ms:.3g} ms is less than the {bound_ms:.3g} ms that reading the inputs and writing the "
            "output once takes: the work cannot have been done."
        )
    return Measurement(candidate, timings[1:], ratios, rounds, batch, bound_ms, below, notes)


def say_uncertain(ratio: Ratio, rounds: int) -> str:
    """Return the sentence on a ratio that is not conclusive."""
    return (
        f"The speed-up over {ratio.baseline} is uncertain: {ratio.low:.2f} to {ratio.high:.2f} after {rounds} rounds."
    )


# --- the device ------------------------------------------------------------------------------------------------------


def synchronize() -> None:
    """Wait for every stream of the device; nothing without one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Flush:
    """Calling it leaves nothing of use in the GPU's L2 cache, and nothing to write back; it waits for the GPU.

    It reads a buffer larger than the cache. Had it written one, the kernel that is timed next would have to write its
    lines back, and be charged for them.
    """

    def __init__(self):
        self.buffer = None
        if torch.cuda.is_available():
            size = FLUSH_FACTOR * torch.cuda.get_device_properties().L2_cache_size
            self.buffer = torch.zeros(size // 4, device="cuda")

    def queue(self) -> None:
        """Launch the reads without waiting for the GPU."""
        if self.buffer is not None:
            self.buffer.sum()

    def __call__(self) -> None:
        if self.buffer is not None:
            self.queue()
            torch.cuda.synchronize()


def roofline_bound(moved_bytes: int) -> float | None:
    """The least milliseconds in which a kernel can read and write this many bytes, or None without a GPU.

    What two L2 caches hold is not counted: the last outputs may stay there unwritten. The rate is measured with a
    large copy and taken 10 % higher.
    """
    rate = copy_rate()
    if rate is None:
        return None
    counted = max(0, moved_bytes - 2 * torch.cuda.get_device_properties().L2_cache_size)
    return counted / (1.1 * rate) * 1e3


def copy_rate() -> float | None:
    """Bytes a second, read plus written, of the best of several large copies on the GPU; None without one."""
    if not torch.cuda.is_available():
        return None
    count = min(2**28, torch.cuda.mem_get_info()[0] // 16)
    source = torch.zeros(count, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    best = math.inf
    for _ in range(8):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end) / 1e3)
    return 2 * source.numel() * 4 / best


def describe_device() -> dict[str, str | int | None]:
    """What the times were taken on: name, SMs, bytes of L2 and memory, driver, and versions of torch and CUDA."""
    known: dict[str, str | int | None] = {"torch": torch.__version__, "cuda": torch.version.cuda}
    if not torch.cuda.is_available():
        return {"name": platform.processor() or platform.machine(), **known}
    properties = torch.cuda.get_device_properties()
    return {
        "name": properties.name,
        "sms": properties.multi_processor_count,
        "l2_bytes": properties.L2_cache_size,
        "memory_bytes": properties.total_memory,
        "capability": f"{properties.major}.{properties.minor}",
        "driver": _driver(),
        **known,
    }


def _driver() -> str | None:
    """Return the NVIDIA driver's version as nvidia-smi reports it; None without nvidia-smi."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        lines = subprocess.run(
            query, capture_output=True, text=True, encoding="utf-8", errors="replace", timeout=10
        ).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return lines[0] if lines else None
