"""Counts what kernels ask of a GPU: requests, sectors, wavefronts, active lanes and more, by kernel and by source line.

The counters follow the rules of Nsight Compute (ncu), whose metric stands beside each. They are counted from what the
threads really did, lanes grouped into warps as a GPU groups them; only what nvcc makes of the source differs: it may merge,
split or drop an access, and its instructions are not this compiler's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from . import disassembly, runtime
from .devices import DEVICES, Device
from .lines import source_lines

SECTOR = 32  # bytes
_EVENTS = {2: "loads", 3: "stores", 4: "atomics"}
_SPACES = ("global", "shared", "local", "constant", "ignored")
_ITSELF = 5  # the place of a block's own sums
_BARRIER, _EXCHANGE, _GRID_BARRIER = 1, 2, 3
# What tensor cores do, among the exchanges, and how much of a wmma::mma_sync() of 16 columns it is.
_TENSOR = {
    "wmma::mma_sync()": 1.0, "mma.sync.m16n8k4.tf32": 0.25, "mma.sync.m16n8k8.tf32": 0.5, "mma.sync.m16n8k8.f16": 0.25, "mma.sync.m16n8k8.bf16": 0.25,
    "mma.sync.m16n8k16.f16": 0.5, "mma.sync.m16n8k16.bf16": 0.5,
}  # fmt: skip
_TOTALS = (
    "warp_instructions", "thread_instructions", "flops", "global_requests", "global_sectors", "shared_requests", "shared_wavefronts",
    "atomic_requests", "atomic_lanes", "barriers", "exchanges", "branches", "divergent_branches", "local_requests", "constant_requests",
    "block_unique_sectors_read", "block_unique_sectors_written",
)  # fmt: skip


@dataclass
class Traffic:
    """The accesses of one kind to one memory.

    requests: warp-level instructions with at least one active lane (ncu: l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum
        and the like; of shared memory smsp__inst_executed_op_shared_ld.sum)
    lanes: active lanes of them, that is, accesses of single threads
    bytes: that the lanes asked for, and used: different ones in each request
    sectors: 32-byte sectors (l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum), and ideal_sectors: that the used bytes fill
    wavefronts: passes through the banks of shared memory (smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum),
        and ideal_wavefronts: without any bank conflict
    addresses: different addresses in each request, summed; deepest: lanes at the most frequent one, summed. For atomics
        they tell the contention: same-address lanes are served one after the other.
    lines: 128-byte lines, each of which takes the load-store unit a clock (l1tex__t_output_wavefronts.sum is close).
    """

    requests: float = 0
    lanes: float = 0
    bytes: float = 0
    used: float = 0
    sectors: float = 0
    ideal_sectors: float = 0
    wavefronts: float = 0
    ideal_wavefronts: float = 0
    addresses: float = 0
    deepest: float = 0
    lines: float = 0

    @property
    def bytes_moved(self) -> float:
        """Bytes in the sectors."""
        return self.sectors * SECTOR

    @property
    def sectors_per_request(self) -> float:
        """(l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio)"""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def ideal_sectors_per_request(self) -> float:
        return self.ideal_sectors / self.requests if self.requests else 0.0

    @property
    def conflicts(self) -> float:
        """Wavefronts beyond the ideal (l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum)."""
        return self.wavefronts - self.ideal_wavefronts

    @property
    def lanes_per_address(self) -> float:
        """Contention of atomics: how many lanes of a request meet at the most frequent address, on average."""
        return self.deepest / self.requests if self.requests else 0.0

    def add(self, other: Traffic) -> None:
        for f in dataclasses.fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))


def _traffic() -> Traffic:
    return field(default_factory=Traffic)


@dataclass
class Counters:
    """Everything that is counted, of a launch, of all launches of a kernel, or of a source line.

    warp_instructions, thread_instructions: executed, as this machine's compiler made them, each as many as nvcc makes of it
        (simt.disassembly.EXPANSION), with short sides of branches run by all lanes, some of them switched off, as nvcc would
        have it; thread_instructions_on: without those. (On a GPU
        smsp__inst_executed.sum, smsp__thread_inst_executed.sum and smsp__thread_inst_executed_pred_on.sum count other
        instructions; their quotients are comparable.)
    branches: executed at warp level where more than one block may follow; divergent_branches: after which lanes parted
    barriers: warps arriving at __syncthreads(); grid_barriers likewise; exchanges: shuffles, votes, __syncwarp() of warps
    flops: floating-point operations, a fused one as 2, a division or a function of the library as many as nvcc makes of it
        (simt.disassembly.FLOPS; smsp__sass_thread_inst_executed_op_fadd_pred_on.sum + fmul + 2 · ffma, and of doubles)
    mix: instructions of threads by kind (simt.disassembly.COLUMNS); "tensor": mma_sync() of wmma, in
        lanes, and mma.sync by its part of one
    """

    global_loads: Traffic = _traffic()
    global_stores: Traffic = _traffic()
    global_atomics: Traffic = _traffic()
    shared_loads: Traffic = _traffic()
    shared_stores: Traffic = _traffic()
    shared_atomics: Traffic = _traffic()
    local_loads: Traffic = _traffic()
    local_stores: Traffic = _traffic()
    constant_loads: Traffic = _traffic()
    warp_instructions: float = 0
    thread_instructions: float = 0
    thread_instructions_on: float = 0
    branches: float = 0
    divergent_branches: float = 0
    barriers: float = 0
    grid_barriers: float = 0
    exchanges: float = 0
    flops: float = 0
    mix: dict[str, float] = field(default_factory=dict)

    @property
    def active_lanes(self) -> float:
        """Active lanes an instruction, of 32 (smsp__thread_inst_executed_per_inst_executed.ratio)."""
        return self.thread_instructions / self.warp_instructions if self.warp_instructions else 0.0

    @property
    def working_lanes(self) -> float:
        """Those of them that are not predicated off (smsp__thread_inst_executed_pred_on_per_inst_executed.ratio)."""
        return self.thread_instructions_on / self.warp_instructions if self.warp_instructions else 0.0

    @property
    def branch_uniformity(self) -> float:
        """Part of the branches after which all active lanes went the same way
        (smsp__sass_average_branch_targets_threads_uniform.pct / 100)."""
        return 1 - self.divergent_branches / self.branches if self.branches else 1.0

    def add(self, other: Counters) -> None:
        for f in dataclasses.fields(self):
            mine, theirs = getattr(self, f.name), getattr(other, f.name)
            if isinstance(mine, Traffic):
                mine.add(theirs)
            elif isinstance(mine, dict):
                for name, value in theirs.items():
                    mine[name] = mine.get(name, 0) + value
            else:
                setattr(self, f.name, mine + theirs)


@dataclass(frozen=True)
class Request:
    """One request of a warp to global or shared memory, as it was made: what an access map or a bank map draws.

    kind: the Traffic it belongs to ("global_loads"). array: the kernel's parameter, or the variable ("": dynamic shared
    memory, or unknown). element: bytes of the array's elements (0: unknown). bytes: that each lane asks for. addresses: of
    each lane in bytes from the array's beginning, None where the lane is not active. start: where in its 32-byte sector the
    array begins (0 unless it is a view). block, warp: who made it (block linear, x fastest). sectors, wavefronts and their
    ideals: of this one request, as in Traffic.
    """

    kind: str
    array: str
    element: int
    bytes: int
    addresses: tuple[int | None, ...]
    start: int
    block: int
    warp: int
    sectors: int
    ideal_sectors: int
    wavefronts: int
    ideal_wavefronts: int

    @property
    def lanes(self) -> int:
        """Active ones."""
        return sum(a is not None for a in self.addresses)

    @property
    def excess(self) -> int:
        """Sectors, or wavefronts of shared memory, beyond the ideal."""
        return self.wavefronts - self.ideal_wavefronts if self.kind.startswith("shared") else self.sectors - self.ideal_sectors


@dataclass
class Line:
    """Counters of one line of the student's source; line 0: none could be found.

    requests: one for each array of global or shared memory that the line loads, stores or updates: of all that it made, the
    one with the most excess, of these one with the most lanes, of these the first. The one with the most excess leads.
    """

    kernel: str
    source: str
    line: int
    counters: Counters = field(default_factory=Counters)
    requests: list[Request] = field(default_factory=list)


@dataclass(frozen=True)
class Occupancy:
    """How many blocks and warps fit on a multiprocessor at once, and what limits them.

    limits: blocks that each resource leaves room for: "blocks", "warps", "shared", "registers" (this one only where the
    registers a thread are given: they are not known on a CPU). limited_by: the scarcest ones.
    waves: how often the whole GPU must be filled to run the grid (launch__waves_per_multiprocessor).
    """

    device: str
    blocks: int
    warps: int
    warps_at_most: int
    limits: dict[str, int]
    limited_by: tuple[str, ...]
    waves: float

    @property
    def ratio(self) -> float:
        """(sm__maximum_warps_per_active_cycle_pct / 100)"""
        return self.warps / self.warps_at_most


@dataclass
class Launch:
    """One launch of a kernel.

    line: of the launch, defined: of the kernel. grid, block: (x, y, z). dynamic_shared, static_shared: bytes a block.
    sampled: blocks that were counted; where they are fewer than all, counters are extrapolated, and error holds the standard
    error of each total that has one. complete: False where the kernel failed on the way.
    unique_bytes_read, unique_bytes_written: different bytes of global memory, over the launch (what DRAM must deliver at
    least, once); unique_sectors_…, unique_granules_… the same in pieces of 32 and 64 bytes (DRAM fetches 64). block_unique_sectors_…: summed over blocks, each block's different
    ones (what a block's L1 must fetch even if it never forgets).
    """

    kernel: str
    source: str
    line: int
    defined: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    static_shared: int
    cooperative: bool
    sampled: int
    complete: bool
    counters: Counters
    lines: list[Line]
    error: dict[str, float]
    unique_bytes_read: float
    unique_bytes_written: float
    unique_sectors_read: float
    unique_sectors_written: float
    unique_granules_read: float
    unique_granules_written: float
    block_unique_sectors_read: float
    block_unique_sectors_written: float

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)

    @property
    def threads_per_block(self) -> int:
        return math.prod(self.block)

    @property
    def shared(self) -> int:
        """Bytes of shared memory a block."""
        return self.dynamic_shared + self.static_shared

    def occupancy(self, device: str | Device, registers: int | None = None) -> Occupancy:
        """registers: a thread, as nvcc says (-Xptxas -v); None: no limit."""
        return occupancy(device, self.threads_per_block, self.shared, registers, self.blocks)


@dataclass
class Kernel:
    """All launches of one kernel together."""

    name: str
    launches: int
    counters: Counters
    lines: list[Line]


@dataclass
class Report:
    """What one `with simt.count()` counted; complete when the with-statement has ended."""

    launches: list[Launch] = field(default_factory=list)
    device: str = ""

    @property
    def kernels(self) -> list[Kernel]:
        """In the order of their first launches."""
        found: dict[str, Kernel] = {}
        for launch in self.launches:
            kernel = found.setdefault(launch.kernel, Kernel(launch.kernel, 0, Counters(), []))
            kernel.launches += 1
            kernel.counters.add(launch.counters)
        for kernel in found.values():
            kernel.lines = [line for line in self.lines if line.kernel == kernel.name]
        return list(found.values())

    @property
    def lines(self) -> list[Line]:
        """By kernel, source and line, over all launches."""
        found: dict[tuple[str, str, int], Line] = {}
        for launch in self.launches:
            for line in launch.lines:
                key = line.kernel, line.source, line.line
                whole = found.setdefault(key, Line(*key))
                whole.counters.add(line.counters)
                whole.requests = _most_telling(whole.requests + line.requests)
        return [found[key] for key in sorted(found)]

    def text(self, sources: Mapping[str, str] | None = None) -> str:
        """For a terminal. sources: texts by label ("cuda_sources"), to show the lines themselves."""
        if not self.launches:
            return "No kernel was launched."
        from .counts_text import kernel_text

        return "\n\n".join(kernel_text(self, kernel, sources or {}) for kernel in self.kernels)

    def as_dict(self) -> dict:
        """For JSON: "launches" and "kernels", with the derived figures beside the counters."""
        return {
            "device": self.device,
            "launches": [_launch_dict(launch, self.device) for launch in self.launches],
            "kernels": [
                {
                    "name": k.name, "launches": k.launches, "counters": counters_dict(k.counters),
                    "lines": [{"source": l.source, "line": l.line, "counters": counters_dict(l.counters)} for l in k.lines],
                }
                for k in self.kernels
            ],
        }  # fmt: skip

    def json(self) -> str:
        return json.dumps(self.as_dict(), indent=1)


@contextlib.contextmanager
def count(sample: int | None = None, partial: bool = False, **options) -> Iterator[Report]:
    """Builds and runs the kernels that are called inside with counters.

    sample: count at most so many blocks of a launch (plus its first and last) and extrapolate, with the error;
        None: all blocks, unless the launch has hundreds of millions of accesses.
    partial: blocks that are not counted don't run at all, so that a grid of any size takes little time; what they would
        have written is missing, so use it where no kernel's control flow depends on another one's output.
    options: as of simt.run (schedule, seconds, device).
    The report is filled when the with-statement ends.
    """
    from . import extension  # which imports torch

    extension.binder()
    with counted(sample, partial, **options) as report:
        yield report


@contextlib.contextmanager
def counted(sample: int | None = None, partial: bool = False, **options) -> Iterator[Report]:
    """count(), for kernels that know no torch: those of programs."""
    if sample is not None and sample < 1:
        raise ValueError(f"sample is a number of blocks, at least 1, not {sample}.")
    library = runtime.library()
    with runtime.run(mode="count", **options):
        report = Report(device=runtime.options.device)
        library.simt_count_begin(sample or 0, partial)
        try:
            yield report
        finally:
            report.launches = _launches(json.loads(library.simt_count_take()))


# ---- from the runtime's sums ----


@lru_cache(maxsize=64)
def _blocks(module: str) -> dict[int, disassembly.Block]:
    return disassembly.read_blocks(module)


def _launches(raw: list[dict]) -> list[Launch]:
    places = set()
    for launch in raw:
        blocks = _blocks(launch["module"])
        for spot in launch["spots"]:
            if spot["offset"]:
                places.add((launch["module"], spot["offset"] - 1))  # the call's own line, not that of what it returns to
            if str(_ITSELF) in spot["tally"] and spot["offset"] in blocks:
                places.update((launch["module"], address) for address, _, _ in blocks[spot["offset"]].instructions)
    found = source_lines(places)
    return [_launch(launch, found) for launch in raw]


def _launch(raw: dict, found: dict) -> Launch:
    module, kernel = raw["module"], raw["kernel"]
    blocks = _blocks(module)
    whole = Counters()
    lines: dict[tuple[str, int], Line] = {}

    def line_at(place: tuple[str, int] | None) -> Line:
        source, line = place or (raw["file"], 0)
        return lines.setdefault((source, line), Line(kernel, source, line))

    def at(place: tuple[str, int] | None) -> Counters:
        return line_at(place).counters

    ran = {spot["offset"]: spot["tally"][str(_ITSELF)][:2] for spot in raw["spots"] if spot["offset"] and str(_ITSELF) in spot["tally"]}
    for spot in raw["spots"]:
        here = (raw["file"], spot["line"]) if spot["line"] else found.get((module, spot["offset"] - 1))
        for space, tally in spot["tally"].items():
            if int(space) == _ITSELF:
                if spot["event"] == 5:
                    _add_meeting(whole, spot, tally)
                    _add_meeting(at(here), spot, tally)
                else:
                    _add_block(whole, at, here, spot, ran, blocks, lambda a: found.get((module, a)))
            elif name := _traffic_name(spot["event"], _SPACES[int(space)]):
                traffic = Traffic(*tally[:10], tally[11])
                getattr(whole, name).add(traffic)
                getattr(at(here), name).add(traffic)
        if example := spot.get("example"):
            own = line_at(here)
            own.requests = _most_telling([*own.requests, _request(spot, example)])
    sums = dict(zip(_TOTALS, raw["sum"]))
    count = math.prod(raw["grid"])
    unique = [
        _whole_grid(raw["unique"][2 + i], raw["unique"][6 + i], sums[f"block_unique_sectors_{what}"], raw["sampled"], count)
        for i, what in enumerate(("read", "written"))
    ]
    per_sector, granules = ([raw["unique"][first + i] / raw["unique"][2 + i] if raw["unique"][2 + i] else 0.0 for i in range(2)] for first in (0, 4))
    return Launch(
        kernel, raw["file"], raw["line"], raw["defined"], tuple(raw["grid"]), tuple(raw["block"]), raw["dynamic_shared"], raw["static_shared"],
        bool(raw["cooperative"]), raw["sampled"], bool(raw["complete"]), whole, [lines[key] for key in sorted(lines)],
        {name: value for name, value in zip(_TOTALS, raw["deviation"]) if raw["sampled"] < count},
        unique[0] * per_sector[0], unique[1] * per_sector[1], unique[0], unique[1], unique[0] * granules[0], unique[1] * granules[1],
        sums["block_unique_sectors_read"], sums["block_unique_sectors_written"],
    )  # fmt: skip


def _request(spot: dict, raw: dict) -> Request:
    name = _traffic_name(spot["event"], _SPACES[raw["space"]])
    return Request(name, raw["name"], raw["element"], spot["bytes"], tuple(raw["addresses"]), raw["start"], raw["block"], raw["warp"], *raw["cost"])


def _most_telling(requests: list[Request]) -> list[Request]:
    """One of each kind and array: an unrolled loop is many places in the code."""
    kept: dict[tuple[str, str], Request] = {}
    for request in sorted(requests, key=lambda r: (-r.excess, -r.lanes, r.block, r.warp)):
        kept.setdefault((request.kind, request.array), request)
    return list(kept.values())


def _traffic_name(event: int, space: str) -> str:
    name = f"{space}_{_EVENTS.get(event, '')}"
    if name in ("local_atomics",):
        name = "local_stores"
    return name if name in TRAFFICS else ""


TRAFFICS = {f.name for f in dataclasses.fields(Counters) if f.default_factory is Traffic}


def _add_meeting(counters: Counters, spot: dict, tally: list[float]) -> None:
    name = {_BARRIER: "barriers", _EXCHANGE: "exchanges", _GRID_BARRIER: "grid_barriers"}[spot["together"]]
    setattr(counters, name, getattr(counters, name) + tally[0])
    if part := _TENSOR.get(spot["what"]):
        counters.mix["tensor"] = counters.mix.get("tensor", 0) + part * tally[1]


def _add_block(whole: Counters, at, here, spot: dict, ran: dict[int, tuple[float, float]], blocks: dict[int, disassembly.Block], line_of) -> None:
    """The instructions of a basic block, to the kernel and to the lines that they come from."""
    tally = spot["tally"][str(_ITSELF)]
    executions, lanes, diverged, arrivals, arrived = tally[0], tally[1], tally[10], tally[12], tally[13]
    for counters in (whole, at(here)):
        if spot["branches"]:
            counters.branches += executions
            counters.divergent_branches += diverged
        # Lanes that come to wait for others take an instruction for that (BSYNC), each group of them its own.
        counters.warp_instructions += arrivals
        counters.thread_instructions += arrived
        counters.thread_instructions_on += arrived
    block = blocks.get(spot["offset"])
    if block is None:
        return
    issued, active = _issued(spot["offset"], ran, blocks)
    whole.flops += lanes * block.columns["flops"]
    for name, value in block.columns.items():
        if value and name != "flops":
            whole.mix[name] = whole.mix.get(name, 0) + lanes * value
    for address, made, flops in block.instructions:
        counters_of_line = at(line_of(address) or here)
        for counters in (whole, counters_of_line):
            counters.warp_instructions += issued * made
            counters.thread_instructions += active * made
            counters.thread_instructions_on += lanes * made
        counters_of_line.flops += lanes * flops


def _issued(offset: int, ran: dict[int, tuple[float, float]], blocks: dict[int, disassembly.Block]) -> tuple[float, float]:
    """Executions of a block at warp level, and lanes: those of the block that it is predicated under."""
    while (block := blocks.get(offset)) and block.under is not None and block.under in ran:
        offset = block.under
    return ran[offset]


def _whole_grid(seen: float, in_sample: float, by_block: float, sampled: int, blocks: int) -> float:
    """Different sectors of the whole grid, from those of a sample of blocks.

    seen: in the sample; in_sample: each sampled block's, summed; by_block: each block's, summed over the grid. If each
    sector is touched by k of the n blocks, a sample of m meets a part 1 - (1 - m/n)^k of all by_block / k sectors: k is
    what explains how many of the sample's are the same. Where a launch was ended before any block had (sampled is 0), what
    blocks had touched until a barrier of the grid is all that is known.
    """
    if sampled >= blocks or not (sampled and seen and by_block):
        return seen
    part = sampled / blocks

    def different(k: float) -> float:
        return -math.expm1(k * math.log1p(-part)) / (k * part)

    low, high = 1.0, float(blocks)
    if seen >= in_sample:
        return by_block
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if different(middle) > seen / in_sample else (low, middle)
    return max(seen, by_block / low)


# ---- occupancy ----


def occupancy(device: str | Device, threads: int, shared: int = 0, registers: int | None = None, blocks: int = 1) -> Occupancy:
    """threads, shared: a block's; registers: a thread's, None for no limit; blocks: of the grid.

    The rules are those of NVIDIA's occupancy calculator (CUDA C++ Best Practices Guide, section Occupancy): from compute
    capability 8.0 on each block takes 1 KiB of shared memory for the system; registers are given to warps in units of
    256, and warps to the four quarters of a multiprocessor.
    """
    gpu = DEVICES[device] if isinstance(device, str) else device
    warps = -(-threads // 32)
    most = gpu.threads_per_multiprocessor // 32
    reserved, unit = (1024, 128) if gpu.major >= 8 else (0, 256)
    taken = -(-(shared + reserved) // unit) * unit
    limits = {"blocks": gpu.blocks_per_multiprocessor, "warps": most // warps}
    limits["shared"] = gpu.shared_per_multiprocessor // taken if taken else gpu.blocks_per_multiprocessor
    if registers:
        each = -(-registers * 32 // 256) * 256
        limits["registers"] = gpu.registers_per_multiprocessor // 4 // each * 4 // warps
    fit = min(limits.values())
    return Occupancy(
        gpu.name, fit, fit * warps, most, limits, tuple(name for name, n in limits.items() if n == fit),
        blocks / (fit * gpu.multiprocessors) if fit else math.inf,
    )  # fmt: skip


# ---- as data ----


def counters_dict(counters: Counters) -> dict:
    """Counters with the figures that follow from them, without what is 0."""
    out: dict = {}
    for f in dataclasses.fields(counters):
        value = getattr(counters, f.name)
        if isinstance(value, Traffic):
            if value.requests:
                derived = dict(bytes_moved=value.bytes_moved, sectors_per_request=value.sectors_per_request, conflicts=value.conflicts)
                out[f.name] = {k: v for k, v in {**dataclasses.asdict(value), **derived}.items() if v}
        elif value:
            out[f.name] = value
    if counters.warp_instructions:
        out["active_lanes"] = counters.active_lanes
        out["working_lanes"] = counters.working_lanes
    if counters.branches:
        out["branch_uniformity"] = counters.branch_uniformity
    return out


def _launch_dict(launch: Launch, device: str) -> dict:
    plain = {
        f.name: getattr(launch, f.name) for f in dataclasses.fields(launch) if f.name not in ("counters", "lines")
    }
    plain["counters"] = counters_dict(launch.counters)
    plain["lines"] = [{"source": l.source, "line": l.line, "counters": counters_dict(l.counters)} for l in launch.lines]
    if device in DEVICES:
        plain["occupancy"] = {**dataclasses.asdict(launch.occupancy(device)), "ratio": launch.occupancy(device).ratio}
        plain["predicted"] = _prediction_dict(launch, device)
    return plain


def _prediction_dict(launch: Launch, device: str) -> dict:
    from . import model

    return dataclasses.asdict(model.predict(launch, device)) if device in model.GPUS else {}
