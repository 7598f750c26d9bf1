"""What to try next, in a few sentences, from what the counters say each kind of waste costs.

For each kind, simt predicts what the launch would take without it (simt.counting.what_if). The kind that costs most is
named, with its line where one is known, and what to do about it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from grader.worker.messages import TalliedLaunch, TalliedLine
from simt.counting.occupancy import occupancy
from simt.counting.time_model import CONSTANTS, GPUS, Prediction, Work
from simt.counting.what_if import CAUSES, REFINEMENTS, Waste, find_savings, find_share
from simt.devices import DEVICES

ABOUT = 0.6  # of the largest saving, from which on a mistake is named before a refinement
WORTH = 1.12  # times as fast, from which on a kind of waste is named
SMALL = 5  # times what an empty launch takes, up to which a launch takes little more than that
PASSED_ON = 0.5  # of the bytes of inputs and outputs, from which on launches pass results on through memory
MEMORY_SHARE = 0.4  # of its time, from which on a launch gets faster with less traffic
SECTOR = 32  # bytes
WORD = 4  # bytes
_LINES = {
    "scattered loads": "global_loads",
    "scattered stores": "global_stores",
    "bank conflicts": "shared_loads shared_stores",
}


@dataclasses.dataclass(frozen=True)
class Counted:
    """Launches of one kernel and one shape, with what is predicted for one of them."""

    tallied: TalliedLaunch
    work: Work
    waste: Waste
    prediction: Prediction

    @property
    def seconds(self) -> float:
        return self.tallied.times * self.prediction.seconds


@dataclasses.dataclass(frozen=True)
class Advice:
    """A sentence; empty if nothing stands out. launch: it is about this one; line: of its CUDA source, or None."""

    text: str = ""
    launch: Counted | None = None
    line: int | None = None


def advise(launches: Sequence[Counted], gpu: str, least: float, outputs: float, fusible: bool = True) -> Advice:
    """Return what to try next. least: bytes of inputs and outputs; outputs: of these alone. fusible: whether the
    launches can become one: those of forward and of backward cannot.
    """
    total = sum(one.seconds for one in launches)
    most = total * GPUS[gpu].dram / least if least else math.inf  # times as fast: by what memory can move
    best = _find_costliest(launches, gpu)
    passed = _count_passed(launches, outputs)
    fused = _find_fusion(launches, least, passed) if fusible else 0.0
    if fused and (best is None or fused > best[0]) and total > WORTH * (total - fused):
        times = min(most, total / (total - fused))
        return Advice(_describe_fusion(launches, passed > PASSED_ON * least, times))
    if best and total > WORTH * (total - best[0]):
        saved, cause, one = best
        line = _find_line(one.tallied, cause)
        # Of other blocks it is not known what else the program does for each of them.
        at_least = "at least " if cause in ("part warps", "small blocks") else ""
        times = _factor(min(most, total / (total - saved)))
        text = f"{_describe(cause, one, line, gpu)} (predicted: {at_least}{times} as fast)."
        return Advice(text, one, line.line if line else None)
    return Advice()


def _find_costliest(launches: Sequence[Counted], gpu: str) -> tuple[float, str, Counted] | None:
    """Return the seconds that a kind of waste costs in all launches, the kind, and the launches that show it most."""
    found: dict[str, list[tuple[float, Counted]]] = {}
    for one in launches:
        for cause, seconds in find_savings(one.work, one.waste, gpu).items():
            saved = one.tallied.times * (one.prediction.seconds - seconds)
            found.setdefault(cause, []).append((saved, one))
    costs = [
        (sum(saved for saved, _ in each if saved > 0), cause, max(each, key=lambda pair: pair[0])[1])
        for cause, each in found.items()
    ]
    most = max(costs, key=lambda one: one[0], default=None)
    mistake = max((one for one in costs if one[1] not in REFINEMENTS), key=lambda one: one[0], default=None)
    return mistake if most and mistake and mistake[0] > ABOUT * most[0] else most


def _factor(times: float) -> str:
    return f"{times:.2g} times" if times < 9.5 else f"{times:,.0f} times"


# ---- one launch after the other ----


def _count_passed(launches: Sequence[Counted], outputs: float) -> float:
    """Return the bytes that launches write for later ones, and that these read."""
    return 2 * max(0.0, sum(one.tallied.times * one.work.unique_written for one in launches) - outputs)


def _find_fusion(launches: Sequence[Counted], least: float, passed: float) -> float:
    """Return the seconds that are saved where one kernel does all: what passes through memory between them.

    An input that several launches read is not counted: one kernel may have to read it as often.
    """
    count = sum(one.tallied.times for one in launches)
    if count < 2:
        return 0.0
    small = [one for one in launches if one.prediction.seconds < SMALL * CONSTANTS.launch]
    together = max((one.prediction.seconds for one in small), default=0.0)
    merged = sum(one.seconds for one in small) - together
    moved = sum(one.tallied.times * (one.work.unique_read + one.work.unique_written) for one in launches)
    by_memory = sum(one.seconds for one in launches if _is_memory_bound(one))
    saved = by_memory * min(_divide(passed, moved), max(0.0, 1 - _divide(least, moved)))
    saved += (count - 1) * CONSTANTS.launch
    return max(saved, merged)


def _is_memory_bound(one: Counted) -> bool:
    return one.prediction.terms.get("DRAM bytes", 0.0) > MEMORY_SHARE * one.prediction.seconds


def _describe_fusion(launches: Sequence[Counted], passes_results: bool, times: float) -> str:
    count = sum(one.tallied.times for one in launches)
    if not passes_results:
        return (
            f"{count:,} launches do little each, and each takes {1e6 * CONSTANTS.launch:.1f} µs to start. Do the "
            f"same in fewer launches (predicted: up to {_factor(times)} as fast)."
        )
    return (
        f"{count:,} launches pass intermediate results through memory. Fuse kernels, so that these stay in registers "
        f"(predicted: up to {_factor(times)} as fast)."
    )


# ---- one launch ----

# Each says what costs time, then what to do; the end is added.
SENTENCES = {
    "scattered loads": (
        "In {kernel}, a warp's load touches {have} sectors of 32 bytes where {ideal} would be enough. Let "
        "neighbouring threads read neighbouring addresses"
    ),
    "scattered stores": (
        "In {kernel}, a warp's store touches {have} sectors of 32 bytes where {ideal} would be enough. Let "
        "neighbouring threads write neighbouring addresses"
    ),
    "bank conflicts": (
        "In {kernel}, a request to shared memory takes {have} wavefronts where {ideal} would be enough. Pad "
        "the array's rows by one element"
    ),
    "idle lanes": (
        "In {kernel}, {lanes:.0f} of a warp's 32 lanes are active on average. Arrange the work so that the threads of "
        "a warp take the same branch and the same number of steps"
    ),
    "part warps": (
        "In {kernel}, blocks of {threads} leave lanes of a warp idle. Use a multiple of 32 threads, such as 256"
    ),
    "small blocks": (
        "In {kernel}, a block has only {threads}. A multiprocessor of the {gpu} runs at most {most_blocks} "
        "blocks at once, which is {warps} of its {most_warps} warps here. Use larger blocks, such as 256 threads"
    ),
    "few blocks": (
        "In {kernel}, {few} most of the {multiprocessors} multiprocessors idle. Split the work into more blocks"
    ),
    "short blocks": (
        "In {kernel}, {blocks:,} blocks do little each, and to start them takes much of the time. Let each thread "
        "compute several elements"
    ),
    "shared memory per block": (
        "In {kernel}, {shared:,} bytes of shared memory per block let few blocks run at once. Use smaller tiles"
    ),
    "barriers": (
        "In {kernel}, each warp waits at {barriers:,.0f} barriers. Remove those that order nothing, or let a warp "
        "exchange values by shuffles"
    ),
    "local memory": (
        "In {kernel}, an array of each thread lies in memory. Index it by constants, in unrolled loops, so that it "
        "stays in registers"
    ),
    "atomics": (
        "In {kernel}, {atomics:,.0f} atomic operations of warps wait for one another. Add up within the block first, "
        "then once per block"
    ),
    "shared atomics": (
        "In {kernel}, threads add floats in shared memory one after another. Let each thread add up what it reads in "
        "a register, and combine these sums by shuffles or a tree"
    ),
    "doubles": (
        "In {kernel}, a part is computed in double. Declare numbers as float, write 0.5f for 0.5, and call expf for exp"
    ),
    "divisions": (
        "In {kernel}, / and % of integers take {divisions:.0%} of the instructions. Take the indices from a grid of "
        "two or three dimensions, or divide once, before the loop"
    ),
    "long indices": "In {kernel}, 64-bit integers take {long:.0%} of the instructions. Use int for indices below 2^31",
    "shared reads": (
        "In {kernel}, shared memory is read for every operation. Let each thread compute several results, from "
        "numbers that it keeps in registers"
    ),
    "narrow accesses": "In {kernel}, a thread {narrow} at a time. Access 16 bytes at once, as {vector}",
    "reading again": (
        "In {kernel}, a block loads each of its bytes {again:,.0f} times. Keep them in shared memory or in registers"
    ),
    "small tiles": (
        "In {kernel}, {sharing:,.0f} blocks on average load the same bytes. Let each block or each thread compute a "
        "larger tile"
    ),
}


def _find_line(launch: TalliedLaunch, cause: str) -> TalliedLine | None:
    kinds = _LINES.get(cause, "").split()
    return next((line for line in launch.lines if line.kind in kinds and line.line), None)


def _describe(cause: str, one: Counted, line: TalliedLine | None, gpu: str) -> str:
    """Return the sentence without its end: what costs most, and what to do. have, ideal: of the line, or on average."""
    work, waste = one.work, one.waste
    have, ideal = _find_amounts(cause, work, waste)
    if line is not None:
        have, ideal = line.have / line.requests, line.ideal / line.requests
    narrow, vector = _describe_narrow(work, waste, gpu) if cause == "narrow accesses" else ("", "")
    fits = occupancy(DEVICES[gpu], work.threads, work.shared, None, work.blocks)
    return SENTENCES[cause].format(
        kernel=f"`{one.tallied.kernel.split('<')[0]}`",
        have=_amount(have, max(1.0, ideal), have),
        ideal=_amount(have, max(1.0, ideal), max(1.0, ideal)),
        lanes=waste.lanes,
        threads="1 thread" if work.threads == 1 else f"{work.threads:,} threads",
        blocks=work.blocks,
        few="1 block leaves" if work.blocks == 1 else f"{work.blocks:,.0f} blocks leave",
        narrow=narrow,
        vector=vector,
        multiprocessors=DEVICES[gpu].multiprocessors,
        gpu=gpu,
        most_blocks=fits.blocks,
        warps=fits.warps,
        most_warps=fits.warps_at_most,
        shared=work.shared,
        barriers=work.barriers / work.warps,
        atomics=work.atomics,
        again=_divide(work.load_sectors * SECTOR, work.block_unique_read),
        sharing=_divide(work.block_unique_read, work.unique_read),
        divisions=find_share(work, "divide32", "divide64"),
        long=find_share(work, "indexing64"),
    )


def _describe_narrow(work: Work, waste: Waste, gpu: str) -> tuple[str, str]:
    """Return how many bytes a thread loads or stores at a time, and the type for 16 bytes."""
    wider = CAUSES["narrow accesses"](work, waste, gpu)
    loads = wider is None or wider.loads != work.loads
    each = _divide(waste.load_bytes, waste.load_lanes) if loads else _divide(waste.store_bytes, waste.store_lanes)
    size = next((size for size in (1, 2) if each < 1.5 * size), WORD)
    amount = "1 byte" if size == 1 else f"{size} bytes"
    return f"{'loads' if loads else 'stores'} {amount}", "a float4" if size == WORD else "a uint4"


def _amount(have: float, ideal: float, shown: float) -> str:
    """Return one of two amounts, with a decimal where they are near each other."""
    return f"{shown:.0f}" if have > 1.75 * ideal and have > 3 else f"{shown:.1f}"


def _find_amounts(cause: str, work: Work, waste: Waste) -> tuple[float, float]:
    """Return what a request takes on average, and what would be enough: sectors, or wavefronts of shared memory."""
    if cause == "scattered stores":
        return _divide(work.store_sectors, work.stores), _divide(work.ideal_store_sectors, work.stores)
    if cause == "bank conflicts":
        return _divide(work.shared_wavefronts, waste.ideal_wavefronts), 1.0
    return _divide(work.load_sectors, work.loads), _divide(work.ideal_load_sectors, work.loads)


def _divide(a: float, b: float) -> float:
    return a / b if b else 0.0
