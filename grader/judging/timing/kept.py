"""Keep the ratios of the baselines to eager for a day: later gradings time only eager and the submission.

Starting and timing the reference solution and torch.compile takes longer than the rest of a grading. Temperature and
clock frequency change ratios less than times. If eager's time differs from the one that was measured with the ratios,
all baselines are timed again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import time
from pathlib import Path

import msgspec
import torch

from grader.judging import clock
from grader.judging.timing.bench import Bench
from grader.judging.timing.others import EAGER, NAMES, list_compared, read_reference
from grader.paths import kept_ratios
from simt.toolchain import cache

KEPT_S = 24 * 3600.0
# By how much eager's time may differ from the kept one: relative, and in ms, since short calls wait for the host.
DRIFT, DRIFT_MS = 0.03, 0.003
# Half the width of an interval, relative: of a ratio that is kept, and of a conclusive product of two ratios.
USABLE, CONCLUSIVE = 0.1, math.sqrt(2) * clock.NARROW


class Drifted(Exception):
    """Raised where ratios that were kept may not hold any more."""


class Factor(msgspec.Struct, frozen=True):
    """How many times as long as eager a baseline takes: the median, and its 95 % interval."""

    median: float
    low: float
    high: float


class Kept(msgspec.Struct, frozen=True):
    """What was measured. made: when, in seconds since 1970. eager_ms: eager's time. factors: of each baseline; None for
    one that does not run here.
    """

    made: float
    eager_ms: float
    factors: dict[str, Factor | None]

    def check(self, found: clock.Measurement) -> None:
        """Raise Drifted where eager takes another time than it took."""
        if _is_another(_find_eager(found).median_ms, self.eager_ms):
            raise Drifted

    def complete(self, found: clock.Measurement) -> clock.Measurement:
        """Return a measurement next to eager alone with the other baselines' times and ratios, and how they come."""
        eager, over_eager = _find_eager(found), found.ratios[0]
        timings, ratios, names = {EAGER: eager}, {EAGER: over_eager}, []
        for name, factor in self.factors.items():
            if factor is None:
                continue
            names.append(name)
            times = (eager.median_ms * factor.median, eager.q1_ms * factor.low, eager.q3_ms * factor.high)
            timings[name] = clock.Timing(name, *times, eager.n)
            ratios[name] = _multiply(name, over_eager, factor)
        unsure = [clock.say_uncertain(ratio, found.rounds) for ratio in ratios.values() if not ratio.conclusive]
        made = time.strftime("%Y-%m-%d at %H:%M", time.localtime(self.made))
        note = f"The times of {' and '.join(names)} follow from eager's: their ratio to it was measured on {made}."
        ordered = [name for name in NAMES if name in timings]
        return dataclasses.replace(
            found,
            baselines=[timings[name] for name in ordered],
            ratios=[ratios[name] for name in ordered],
            notes=[*([note] if names else []), *unsure, *(each for each in found.notes if each not in unsure)],
        )


def find(bench: Bench) -> Kept | None:
    """Return what is kept for this problem, GPU and size, if it has all that the submission would be timed next to."""
    wanted = _list_wanted(bench)
    kept = _read(_find_file(bench)) if wanted else None
    if kept is None or not wanted <= kept.factors.keys():
        return None
    return msgspec.structs.replace(kept, factors={name: kept.factors[name] for name in wanted})


def keep(bench: Bench, found: clock.Measurement) -> None:
    """Keep the ratios of a measurement next to all baselines. Where nothing can be written, nothing is kept."""
    factors = {name: _make_factor(found, name) for name in _list_wanted(bench)}
    known = [factor for factor in factors.values() if factor]
    if not factors or not all(_is_narrow(factor.low, factor.high, USABLE) for factor in known):
        return
    file, eager_ms = _find_file(bench), _find_eager(found).median_ms
    old = _read(file)
    if old and not _is_another(eager_ms, old.eager_ms):
        factors = old.factors | factors  # the reference solution's, where that was graded now
    _write(file, Kept(time.time(), eager_ms, factors))


def _list_wanted(bench: Bench) -> set[str]:
    """Return the names of all that the submission is timed next to but eager."""
    return {name for name in list_compared(bench.context) if name != EAGER}


def _is_another(now_ms: float, then_ms: float) -> bool:
    return abs(now_ms - then_ms) > DRIFT * then_ms + DRIFT_MS


def _find_eager(found: clock.Measurement) -> clock.Timing:
    return next(timing for timing in found.baselines if timing.name == EAGER)


def _make_factor(found: clock.Measurement, name: str) -> Factor | None:
    if name not in found.seconds:
        return None
    ratio = clock.ratio(name, found.seconds[name], found.seconds[EAGER])
    return Factor(ratio.speedup, ratio.low, ratio.high)


def _multiply(name: str, over_eager: clock.Ratio, factor: Factor) -> clock.Ratio:
    """Return the speed-up over a baseline from that over eager."""
    widths = (math.log(one.high / one.low) / 2 for one in (over_eager, factor))
    speedup, width = over_eager.speedup * factor.median, math.hypot(*widths)
    low, high = speedup * math.exp(-width), speedup * math.exp(width)
    return clock.Ratio(name, speedup, low, high, over_eager.conclusive and _is_narrow(low, high, CONCLUSIVE))


def _is_narrow(low: float, high: float, most: float) -> bool:
    return math.log(high / low) / 2 <= most


def _find_file(bench: Bench) -> Path:
    problem, reference = bench.context.problem, read_reference(bench.context)
    properties = torch.cuda.get_device_properties()
    key = cache.hash_texts(
        problem.text,
        repr(sorted(problem.overrides.items())),
        repr(dataclasses.asdict(bench.trial.case)),
        repr(bench.backward is not None),
        reference.sha256 if reference else "",
        f"{properties.name} {getattr(properties, 'uuid', '')}",
        torch.__version__,
        _hash_package(),
    )
    return kept_ratios() / f"{key}.json"


def _read(file: Path) -> Kept | None:
    """Return what a file holds, None if it is not there, damaged or too old."""
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=Kept)
    except (OSError, msgspec.MsgspecError):
        return None
    is_of_use = 0 <= time.time() - kept.made <= KEPT_S and kept.eager_ms > 0
    return kept if is_of_use and all(_is_usable(factor) for factor in kept.factors.values()) else None


def _is_usable(factor: Factor | None) -> bool:
    return factor is None or 0 < factor.low <= factor.median <= factor.high < math.inf


def _write(file: Path, kept: Kept) -> None:
    """Replace the file in one step, and remove those that are too old."""
    new = file.with_name(f"{file.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            new.write_bytes(msgspec.json.encode(kept))
            new.replace(file)
        finally:
            new.unlink(missing_ok=True)
        for each in file.parent.iterdir():
            if time.time() - each.stat().st_mtime > KEPT_S:
                each.unlink()


@functools.cache
def _hash_package() -> str:
    """Return a hash of the timing code: a ratio that other code measured is not used."""
    files = [Path(clock.__file__), *sorted(Path(__file__).parent.glob("*.py"))]
    return cache.hash_texts(*(file.read_text(encoding="utf-8") for file in files))
