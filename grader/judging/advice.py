"""One sentence on what to try next, from what the counters say each kind of waste costs.

For each kind, simt predicts what the launch would take without it (simt.counting.what_if). The kind that costs most is
named, with its line where one is known, and what to do about it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from grader.worker.messages import TalliedLaunch, TalliedLine
from simt.counting.time_model import CONSTANTS, GPUS, Prediction, Work
from simt.counting.what_if import REFINEMENTS, Waste, find_savings
from simt.devices import DEVICES

ABOUT = 0.6  # of the largest saving, from which on a mistake is named before a refinement
WORTH = 1.12  # times as fast, from which on a kind of waste is named
MEMORY_SHARE = 0.4  # of its time, from which on a launch gets faster with less traffic
SECTOR = 32  # bytes
_LINES = {
    "scattered loads": "global_loads",
    "scattered stores": "global_stores",
    "bank conflicts": "shared_loads shared_stores",
}


@dataclasses.dataclass(frozen=True)
class Counted:
    """Launches of one kernel and one shape, with what is predicted for one of them."""

    told: TalliedLaunch
    work: Work
    waste: Waste
    prediction: Prediction

    @property
    def seconds(self) -> float:
        return self.told.times * self.prediction.seconds


@dataclasses.dataclass(frozen=True)
class Advice:
    """A sentence; empty if nothing stands out. launch: it is about this one; line: of its CUDA source, or None."""

    text: str = ""
    launch: Counted | None = None
    line: int | None = None


def advise(launches: Sequence[Counted], gpu: str, bound: float) -> Advice:
    """Return what to try next. bound: seconds that the bytes of inputs and outputs take."""
    total = sum(one.seconds for one in launches)
    best = _find_costliest(launches, gpu)
    fused = _find_fusion(launches, bound, gpu)
    if fused and (best is None or fused > best[0]) and total > WORTH * (total - fused):
        return Advice(_describe_fusion(launches, bound, total / (total - fused)))
    if best and total > WORTH * (total - best[0]):
        saved, cause, one = best
        line = _find_line(one.told, cause)
        text = f"{_describe(cause, one, line, gpu)} (predicted: {_factor(total / (total - saved))} as fast)."
        return Advice(text, one, line.line if line else None)
    return Advice()


def _find_costliest(launches: Sequence[Counted], gpu: str) -> tuple[float, str, Counted] | None:
    """Return the seconds that a kind of waste costs, the kind, and the launches that show it."""
    found = [
        (one.told.times * (one.prediction.seconds - seconds), cause, one)
        for one in launches
        for cause, seconds in find_savings(one.work, one.waste, gpu).items()
    ]
    most = max(found, key=lambda one: one[0], default=None)
    mistakes = [one for one in found if one[1] not in REFINEMENTS]
    mistake = max(mistakes, key=lambda one: one[0], default=None)
    return mistake if most and mistake and mistake[0] > ABOUT * most[0] else most


def _factor(times: float) -> str:
    return f"{times:.2g} times" if times < 9.5 else f"{times:,.0f} times"


# ---- one launch after the other ----


def _find_fusion(launches: Sequence[Counted], bound: float, gpu: str) -> float:
    """Return the seconds that are saved where one kernel does all: what passes through memory between them."""
    count = sum(one.told.times for one in launches)
    if count < 2:
        return 0.0
    moved = sum(one.told.times * (one.work.unique_read + one.work.unique_written) for one in launches)
    least = bound * GPUS[gpu].dram
    by_memory = sum(one.seconds for one in launches if _is_memory_bound(one))
    return by_memory * max(0.0, 1 - least / moved if moved else 0.0) + (count - 1) * CONSTANTS.launch


def _is_memory_bound(one: Counted) -> bool:
    return one.prediction.terms.get("DRAM bytes", 0.0) > MEMORY_SHARE * one.prediction.seconds


def _describe_fusion(launches: Sequence[Counted], bound: float, times: float) -> str:
    count = sum(one.told.times for one in launches)
    return (
        f"{count:,} launches pass intermediate results through memory: fuse kernels, so that these stay in registers "
        f"(predicted: up to {_factor(times)} as fast)."
    )


# ---- one launch ----


def _find_line(launch: TalliedLaunch, cause: str) -> TalliedLine | None:
    kinds = _LINES.get(cause, "").split()
    return next((line for line in launch.lines if line.kind in kinds and line.line), None)


def _describe(cause: str, one: Counted, line: TalliedLine | None, gpu: str) -> str:
    """Return the sentence without its end: what costs most, and what to do."""
    work, kernel = one.work, f"`{one.told.kernel.split('<')[0]}`"
    have, ideal = (line.have / line.requests, line.ideal / line.requests) if line else (0.0, 0.0)
    if cause in ("scattered loads", "scattered stores"):
        loads = cause == "scattered loads"
        where = f"{kernel}: a warp's {'load' if loads else 'store'}"
        cost = f" touches {have:.0f} sectors of 32 bytes where {ideal:.0f} would be enough" if line else " is scattered"
        return f"{where}{cost}: let neighbouring threads {'read' if loads else 'write'} neighbouring addresses"
    if cause == "bank conflicts":
        cost = f"takes {have:.1f} wavefronts, and {ideal:.1f} would be enough" if line else "has bank conflicts"
        return f"{kernel}: a request to shared memory {cost}: pad the array's rows by one element"
    if cause == "idle lanes":
        return (
            f"{kernel}: {one.waste.lanes:.0f} of a warp's 32 lanes are active on average: arrange the work so that the "
            "threads of a warp take the same branch and the same number of steps"
        )
    if cause == "part warps":
        return (
            f"{kernel}: blocks of {work.threads} threads leave lanes of a warp idle: use a multiple of 32 threads, "
            "such as 256"
        )
    if cause == "few blocks":
        return (
            f"{kernel}: {work.blocks:,} blocks leave most of the {DEVICES[gpu].multiprocessors} multiprocessors idle: "
            "split the work into more blocks"
        )
    if cause == "short blocks":
        return (
            f"{kernel}: {work.blocks:,} blocks do little each, and to start them takes much of the time: let each "
            "thread compute several elements"
        )
    if cause == "shared memory per block":
        return (
            f"{kernel}: {work.shared:,} bytes of shared memory per block let few blocks run at once: use smaller tiles"
        )
    if cause == "barriers":
        return (
            f"{kernel}: each warp waits at {work.barriers / work.warps:,.0f} barriers: remove those that order "
            "nothing, or let a warp exchange values by shuffles"
        )
    if cause == "local memory":
        return (
            f"{kernel}: an array of each thread lies in memory: index it by constants, in unrolled loops, so that it "
            "stays in registers"
        )
    if cause == "atomics":
        return (
            f"{kernel}: {work.atomics:,.0f} atomic operations of warps wait for one another: add up within the block "
            "first, then once per block"
        )
    if cause == "doubles":
        return f"{kernel} computes in double: write 0.5f for 0.5, and call expf for exp"
    if cause == "divisions":
        return (
            f"{kernel}: / and % of indices, or 64-bit indices, take most instructions: use int, and take the indices "
            "from a grid of two or three dimensions"
        )
    if cause == "narrow accesses":
        return f"{kernel}: a thread loads 4 bytes at a time: load 16 at once, as a float4"
    if cause == "reading again":
        again = work.load_sectors * SECTOR / work.block_unique_read
        return (
            f"{kernel}: a block loads each of its bytes {again:.0f} times: keep them in shared memory or in registers"
        )
    again = work.block_unique_read / work.unique_read
    return (
        f"{kernel}: {again:.0f} blocks on average load the same bytes: let each block or each thread compute a larger "
        "tile"
    )
