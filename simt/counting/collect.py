"""Run kernels with counters, and collect the counters by kernel and by source line."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

from simt.counting.compiled import find_compiled, find_copied
from simt.counting.counters import SECTOR, TRAFFICS, Counters, Launch, Line, Request, Traffic, choose_requests
from simt.counting.report import Report
from simt.runtime import library as runtime
from simt.toolchain.disassembly.accesses import Accesses, read_accesses
from simt.toolchain.disassembly.blocks import Block, read_blocks
from simt.toolchain.lines import find_source_lines

_EVENTS = {2: "loads", 3: "stores", 4: "atomics"}
_SPACES = ("global", "shared", "local", "constant", "ignored")
_BLOCK_ITSELF = 5  # the key of a basic block's own sums, next to those of _SPACES
_SHARED = 0.8  # blocks of a kernel that touches all of an array rarely share so much more than their expected part
_BARRIER, _EXCHANGE, _GRID_BARRIER = 1, 2, 3
# Operations of tensor cores, which are recorded as exchanges -> their work relative to one 16x16x16 wmma::mma_sync().
_TENSOR = {
    "wmma::mma_sync()": 1.0, "mma.sync.m16n8k4.tf32": 0.25, "mma.sync.m16n8k8.tf32": 0.5,
    "mma.sync.m16n8k8.f16": 0.25, "mma.sync.m16n8k8.bf16": 0.25,
    "mma.sync.m16n8k16.f16": 0.5, "mma.sync.m16n8k16.bf16": 0.5,
    "mma.sync.m16n8k16.s8": 0.25, "mma.sync.m16n8k16.u8": 0.25,
    "mma.sync.m16n8k32.s8": 0.5, "mma.sync.m16n8k32.u8": 0.5,
    "mma.sync.m16n8k32.e4m3": 0.5, "mma.sync.m16n8k32.e5m2": 0.5,
    **{f"wgmma.m64n{n}k16.{kind}": n / 16 for n in range(8, 257, 8) for kind in ("f16", "bf16")},
}  # fmt: skip
_TOTALS = (
    "warp_instructions", "thread_instructions", "flops", "global_requests", "global_sectors", "shared_requests",
    "shared_wavefronts", "atomic_requests", "atomic_lanes", "barriers", "exchanges", "branches", "divergent_branches",
    "local_requests", "constant_requests", "block_unique_sectors_read", "block_unique_sectors_written",
)  # fmt: skip


@contextlib.contextmanager
def count(sample: int | None = None, partial: bool = False, **options) -> Iterator[Report]:
    """Build and run the kernels that are called in the with-block with counters.

    sample: count at most this many blocks of a launch (plus its first and last), extrapolate, and estimate the error.
        None: all blocks, unless the launch has hundreds of millions of accesses.
    partial: skip the blocks that are not counted, so that a grid of any size takes little time. Their results are
        missing: use it only if no kernel's control flow depends on another kernel's output.
    options: as for simt.run (schedule, seconds, device).
    The report is filled when the with-block ends.
    """
    from simt.runtime import extension  # which imports torch

    extension.load_binder()
    with counted(sample, partial, **options) as report:
        yield report


@contextlib.contextmanager
def counted(sample: int | None = None, partial: bool = False, **options) -> Iterator[Report]:
    """Count as count() does, without torch, for the kernels of programs."""
    if sample is not None and sample < 1:
        raise ValueError(f"sample is {sample}. Pass a number of blocks, at least 1.")
    library = runtime.load_library()
    with runtime.run(mode="count", **options):
        report = Report(device=runtime.options.find_device().name)
        library.simt_count_begin(sample or 0, partial)
        try:
            yield report
        finally:
            report.launches = _make_launches(json.loads(library.simt_count_take()))


# ---- from the runtime's sums ----


@lru_cache(maxsize=64)
def _read_blocks(module: str) -> dict[int, Block]:
    return read_blocks(module)


@lru_cache(maxsize=64)
def _read_accesses(module: str) -> Accesses:
    return read_accesses(module)


def _make_launches(raw: list[dict]) -> list[Launch]:
    places = set()
    for launch in raw:
        blocks = _read_blocks(launch["module"])
        for spot in launch["spots"]:
            if spot["offset"]:
                # one less: the line of the call, not of the instruction to which it returns
                places.add((launch["module"], spot["offset"] - 1))
            if str(_BLOCK_ITSELF) in spot["tally"] and spot["offset"] in blocks:
                places.update((launch["module"], address) for address, _, _ in blocks[spot["offset"]].instructions)
    found = find_source_lines(places)
    return [_make_launch(launch, found) for launch in raw]


def _make_launch(raw: dict, found: dict) -> Launch:
    module, kernel = raw["module"], raw["kernel"]
    blocks = _read_blocks(module)
    whole = Counters()
    lines: dict[tuple[str, int], Line] = {}

    def line_at(place: tuple[str, int] | None) -> Line:
        source, line = place or (raw["file"], 0)
        return lines.setdefault((source, line), Line(kernel, source, line))

    def at(place: tuple[str, int] | None) -> Counters:
        return line_at(place).counters

    ran = {
        spot["offset"]: spot["tally"][str(_BLOCK_ITSELF)][:2]
        for spot in raw["spots"]
        if spot["offset"] and str(_BLOCK_ITSELF) in spot["tally"]
    }
    accesses = _read_accesses(module)
    copied = find_copied(accesses, {offset: executions for offset, (executions, _) in ran.items()})
    for spot in raw["spots"]:
        here = (raw["file"], spot["line"]) if spot["line"] else found.get((module, spot["offset"] - 1))
        for space, tally in spot["tally"].items():
            if int(space) == _BLOCK_ITSELF:
                if spot["event"] == 5:
                    _add_meeting(whole, spot, tally)
                    _add_meeting(at(here), spot, tally)
                else:
                    part = copied.get(accesses.loop_of.get(spot["offset"], -1), 1.0)
                    _add_block(whole, at, here, spot, ran, blocks, part, lambda a: found.get((module, a)))
            elif name := _name_traffic(spot["event"], _SPACES[int(space)]):
                traffic = Traffic(*tally[:10], joined=tally[11])
                getattr(whole, name).add(traffic)
                getattr(at(here), name).add(traffic)
        if example := spot.get("example"):
            own = line_at(here)
            own.requests = choose_requests([*own.requests, _make_request(spot, example)])
    sums: dict[str, float] = dict(zip(_TOTALS, raw["sum"]))
    count = math.prod(raw["grid"])
    of_arrays = [
        [_estimate_array(array[first : first + 6], raw["sampled"], count) for array in raw["arrays"]]
        for first in (0, 6)
    ]
    unique = [sum(sectors) for sectors in of_arrays]
    arrays = [
        (array[12], array[1], sectors, array[13], array[14], array[16])
        for array, sectors in zip(raw["arrays"], of_arrays[0])
        if array[12]
    ]
    by_atomics = sum(sectors for array, sectors in zip(raw["arrays"], of_arrays[1]) if array[15])
    bytes_, granules = [[_estimate_pieces(raw, unique[i], i, first, count) for i in range(2)] for first in (0, 4)]
    return Launch(
        kernel, raw["file"], raw["line"], raw["defined"], tuple(raw["grid"]), tuple(raw["block"]),
        raw["dynamic_shared"], raw["static_shared"],
        bool(raw["cooperative"]), raw["sampled"], bool(raw["complete"]), whole, [lines[key] for key in sorted(lines)],
        {name: value for name, value in zip(_TOTALS, raw["deviation"]) if raw["sampled"] < count},
        bytes_[0], bytes_[1], unique[0], unique[1], granules[0], granules[1],
        sums["block_unique_sectors_read"], sums["block_unique_sectors_written"],
        find_compiled(raw, accesses, copied), arrays, by_atomics,
    )  # fmt: skip


def _make_request(spot: dict, raw: dict) -> Request:
    name = _name_traffic(spot["event"], _SPACES[raw["space"]])
    return Request(
        name,
        raw["name"],
        raw["element"],
        spot["bytes"],
        tuple(raw["addresses"]),
        raw["start"],
        raw["block"],
        raw["warp"],
        *raw["cost"],
    )


def _name_traffic(event: int, space: str) -> str:
    name = f"{space}_{_EVENTS.get(event, '')}"
    if name in ("local_atomics",):
        name = "local_stores"
    return name if name in TRAFFICS else ""


def _add_meeting(counters: Counters, spot: dict, tally: list[float]) -> None:
    name = {_BARRIER: "barriers", _EXCHANGE: "exchanges", _GRID_BARRIER: "grid_barriers"}[spot["together"]]
    setattr(counters, name, getattr(counters, name) + tally[0])
    if part := _TENSOR.get(spot["what"]):
        counters.mix["tensor"] = counters.mix.get("tensor", 0) + part * tally[1]


def _add_block(
    whole: Counters,
    at,
    here,
    spot: dict,
    ran: dict[int, tuple[float, float]],
    blocks: dict[int, Block],
    copied: float,
    line_of,
) -> None:
    """Add the instructions of a basic block to the kernel's counters and to those of their source lines.

    copied: the part of its executions that copies of a loop's body do.
    """
    tally = spot["tally"][str(_BLOCK_ITSELF)]
    executions, lanes, diverged, arrivals, arrived = tally[0], tally[1], tally[10], tally[12], tally[13]
    for counters in (whole, at(here)):
        if spot["branches"]:
            counters.branches += executions
            counters.divergent_branches += diverged
        # Each group of lanes that waits for the others of its warp executes an instruction for it (BSYNC).
        counters.warp_instructions += arrivals
        counters.thread_instructions += arrived
        counters.thread_instructions_on += arrived
    block = blocks.get(spot["offset"])
    if block is None:
        return
    issued, active = _find_issued(spot["offset"], ran, blocks)
    whole.flops += lanes * block.columns["flops"]
    indexing = copied * block.columns["indexing"] + (1 - copied) * block.columns["indexing_rolled"]
    for name, value in (block.columns | {"indexing": indexing, "indexing_rolled": 0.0}).items():
        if value and name != "flops":
            whole.mix[name] = whole.mix.get(name, 0) + lanes * value
    for address, made, flops in block.instructions:
        counters_of_line = at(line_of(address) or here)
        for counters in (whole, counters_of_line):
            counters.warp_instructions += issued * made
            counters.thread_instructions += active * made
            counters.thread_instructions_on += lanes * made
        counters_of_line.flops += lanes * flops


def _find_issued(offset: int, ran: dict[int, tuple[float, float]], blocks: dict[int, Block]) -> tuple[float, float]:
    """Return the warp-level executions and the lanes of a block; of a predicated block, those of its branch."""
    while (block := blocks.get(offset)) and block.under is not None and block.under in ran:
        offset = block.under
    return ran[offset]


def _estimate_pieces(raw: dict, sectors: float, which: int, first: int, blocks: int) -> float:
    """Estimate the distinct bytes (first: 0) or granules of 64 bytes (first: 4) of the whole grid.

    sectors: the estimate of its distinct sectors. which: read (0) or written (1). Of one block's accesses the sample
    tells how many bytes and granules belong to a sector. Where several blocks touch each sector, others touch the rest
    of it; sectors that most blocks touch are known.
    """
    counted, seen = raw["unique"][first + which], raw["unique"][2 + which]
    if raw["sampled"] >= blocks or not (raw["sampled"] and seen):
        return counted
    arrays = [array[6 * which : 6 * which + 6] for array in raw["arrays"]]
    common = min(sectors, sum(array[4] for array in arrays))
    by_block = sum(array[1] - array[5] * blocks / raw["sampled"] for array in arrays)
    others, each = sectors - common, counted / seen
    shared = max(1.0, by_block / others) if others else 1.0
    if first == 0:
        return common * each + others * min(SECTOR, each * shared)
    alone = min(1.0, max(0.0, 2 - shared))  # the part of the granules whose other half no block touches
    return common * each + others * (0.5 + max(0.0, each - 0.5) * alone)


def _estimate_array(array: Sequence[float], sampled: int, blocks: int) -> float:
    """Estimate the number of distinct sectors of an array that the whole grid touches: those that more than half of the
    sampled blocks touch, and the others.

    array: as for _estimate_grid in_sample, by_block, seen and extent; then how many sectors most blocks touch, and by
    how many blocks, summed.
    If a launch stopped before any block ended (sampled is 0), only what was touched before a barrier of the grid is
    known.
    """
    in_sample, by_block, seen, extent, common, common_times = array
    if sampled >= blocks or not sampled:
        return seen
    others = in_sample - common_times, max(0.0, by_block - common_times * blocks / sampled)
    return common + _estimate_grid(*others, seen - common, extent - common, sampled, blocks)


def _estimate_grid(in_sample: float, by_block: float, seen: float, extent: float, sampled: int, blocks: int) -> float:
    """Estimate the number of distinct sectors of an array that the whole grid touches, from a sample of its blocks.

    in_sample: distinct sectors of each sampled block, summed; by_block: the same sum, estimated for all blocks of the
    grid. seen: distinct sectors in the sample; extent: sectors from the first of them to the last.

    Most kernels touch all of an array, or each of its sectors in one block: at most `by_block`, and at most `extent`,
    which is known, since the grid's first and last block are always in the sample. Where the sampled blocks share far
    more sectors than such a kernel's would, they touch a part of the array alone: if k of the n blocks touch each
    sector, a sample of m blocks contains a part 1 - (1 - m/n)^k of all by_block / k sectors, and k is the value that
    explains seen / in_sample.
    """
    if not (seen and by_block):
        return seen
    part = sampled / blocks

    def different(k: float) -> float:
        return -math.expm1(k * math.log1p(-part)) / (k * part)

    most = max(seen, min(by_block, extent))
    if seen > _SHARED * in_sample * different(by_block / most):
        return most
    low, high = 1.0, float(blocks)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if different(middle) > seen / in_sample else (low, middle)
    return min(most, max(seen, by_block / low))
