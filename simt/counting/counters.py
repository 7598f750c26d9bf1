"""Define the counters of launches, kernels and source lines as plain records.

The counters follow the rules of Nsight Compute (ncu); each names its ncu metric. They count what the threads did, with
lanes grouped into warps as on a GPU. They differ from ncu where nvcc compiles the source differently: it may merge,
split or drop an access, and it generates other instructions than this machine's compiler.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from simt.counting.compiled import Compiled
from simt.counting.occupancy import Occupancy, occupancy
from simt.devices import Device

SECTOR = 32  # bytes
GRANULE = 64  # bytes that DRAM reads or writes at least


@dataclass
class Traffic:
    """The accesses of one kind to one memory.

    requests: warp-level instructions with at least one active lane
        (l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum and the like; of shared memory
        smsp__inst_executed_op_shared_ld.sum)
    lanes: their active lanes, that is, accesses of single threads
    bytes: requested by the lanes; used: the distinct bytes of each request, summed
    sectors: 32-byte sectors (l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum); ideal_sectors: the fewest that can hold
        the used bytes
    wavefronts: passes through the banks of shared memory
        (smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum), which are those of the L1 cache; a load or a
        store of global memory also looks up its lines in passes, and this is the larger number
        (l1tex__data_pipe_lsu_wavefronts.sum is close); ideal_wavefronts: without any bank conflict
    addresses: distinct addresses of each request, summed; deepest: lanes at the most frequent address, summed. For
        atomics these two show the contention: lanes with the same address are served one after the other.
    joined: sectors of stores beside which the same thread stores again at once, as it does for a structure's members
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
    joined: float = 0

    @property
    def bytes_moved(self) -> float:
        """The bytes of the sectors."""
        return self.sectors * SECTOR

    @property
    def sectors_per_request(self) -> float:
        """Sectors per request (l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio)."""
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
        """Contention of atomics: the average number of lanes at the most frequent address of a request."""
        return self.deepest / self.requests if self.requests else 0.0

    def add(self, other: Traffic) -> None:
        for f in dataclasses.fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))


@dataclass
class Counters:
    """All counters of a launch, of all launches of a kernel, or of a source line.

    warp_instructions, thread_instructions: executed instructions of this machine's compiler, each weighted by the
        number that nvcc generates for it (EXPANSION in simt/toolchain/disassembly/arithmetic.py). Short sides of
        branches run in all lanes, with some lanes predicated off, as nvcc compiles them; thread_instructions_on:
        without those lanes. (On a GPU smsp__inst_executed.sum, smsp__thread_inst_executed.sum and
        smsp__thread_inst_executed_pred_on.sum count other instructions; their ratios are comparable.)
    branches: executed at warp level where more than one block may follow; divergent_branches: those at which lanes
        diverged
    barriers: warps arriving at __syncthreads(); grid_barriers likewise; exchanges: shuffles, votes and __syncwarp() of
        warps
    flops: floating-point operations. A fused one counts 2; a division or a library function counts as many as nvcc
        generates for it (FLOPS, as above; smsp__sass_thread_inst_executed_op_fadd_pred_on.sum + fmul + 2 · ffma, and
        the same for doubles)
    mix: instructions of threads by kind (COLUMNS, as above). "tensor": lanes that execute wmma's mma_sync(); an
        mma.sync counts as the part of one that it computes
    """

    global_loads: Traffic = field(default_factory=Traffic)
    global_stores: Traffic = field(default_factory=Traffic)
    global_atomics: Traffic = field(default_factory=Traffic)
    shared_loads: Traffic = field(default_factory=Traffic)
    shared_stores: Traffic = field(default_factory=Traffic)
    shared_atomics: Traffic = field(default_factory=Traffic)
    local_loads: Traffic = field(default_factory=Traffic)
    local_stores: Traffic = field(default_factory=Traffic)
    constant_loads: Traffic = field(default_factory=Traffic)
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
        """Active lanes per instruction, of 32 (smsp__thread_inst_executed_per_inst_executed.ratio)."""
        return self.thread_instructions / self.warp_instructions if self.warp_instructions else 0.0

    @property
    def working_lanes(self) -> float:
        """Active lanes that are not predicated off (smsp__thread_inst_executed_pred_on_per_inst_executed.ratio)."""
        return self.thread_instructions_on / self.warp_instructions if self.warp_instructions else 0.0

    @property
    def branch_uniformity(self) -> float:
        """Fraction of the branches at which all active lanes go the same way
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


TRAFFICS = {f.name for f in dataclasses.fields(Counters) if f.default_factory is Traffic}


@dataclass(frozen=True)
class Request:
    """One request of a warp to global or shared memory, with its addresses, for access maps and bank maps.

    kind: the Traffic it belongs to ("global_loads"). array: the kernel's parameter or the variable ("": dynamic shared
    memory, or unknown). element: size of the array's elements in bytes (0: unknown). bytes: requested by each lane.
    addresses: of each lane, in bytes from the start of the array; None for an inactive lane. start: offset of the
    array's start in its 32-byte sector (0 unless it is a view). block, warp: indices of the lanes' block (linear, x
    fastest) and warp. sectors, wavefronts and their ideals: of this request, as in Traffic.
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
        """The number of active lanes."""
        return sum(a is not None for a in self.addresses)

    @property
    def excess(self) -> int:
        """Sectors, or wavefronts of shared memory, beyond the ideal."""
        return (
            self.wavefronts - self.ideal_wavefronts
            if self.kind.startswith("shared")
            else self.sectors - self.ideal_sectors
        )


@dataclass
class Line:
    """The counters of one line of the student's source. line 0: the line is unknown.

    requests: one for each array of global or shared memory that the line loads, stores or updates: the request with the
    most excess, among these the one with the most lanes, among these the first. Sorted by excess, largest first.
    """

    kernel: str
    source: str
    line: int
    counters: Counters = field(default_factory=Counters)
    requests: list[Request] = field(default_factory=list)


@dataclass
class Launch:
    """One launch of a kernel.

    line: of the launch; defined: of the kernel. grid, block: (x, y, z). dynamic_shared, static_shared: bytes per block.
    sampled: the number of blocks that were counted. If it is less than all, the counters are extrapolated, and error
    holds the standard errors of the totals. complete: False if the kernel failed. unique_bytes_read,
    unique_bytes_written: distinct bytes of global memory over the launch, the least that DRAM must transfer;
    unique_sectors_…, unique_granules_…: the same in pieces of 32 and 64 bytes (DRAM transfers 64).
    block_unique_sectors_…: the distinct sectors of each block, summed, the least that the L1 caches must fetch.
    compiled: what nvcc changes of this. read_arrays: of each array that is read, the sectors that loads request, the
    distinct ones of each block, summed, the distinct ones of all, and the loads of single threads, and how
    many of these lie a regular distance apart from those of the other lanes, and the sectors from the first to the
    last that each block reads, summed. atomic_sectors: distinct ones of the arrays on which atomic operations work.
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
    compiled: Compiled = field(default_factory=Compiled)
    read_arrays: list[tuple[float, ...]] = field(default_factory=list)
    atomic_sectors: float = 0

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)

    @property
    def threads_per_block(self) -> int:
        return math.prod(self.block)

    @property
    def shared(self) -> int:
        """Bytes of shared memory per block."""
        return self.dynamic_shared + self.static_shared

    def occupancy(self, device: str | Device, registers: int | None = None) -> Occupancy:
        """Return the launch's occupancy. registers: per thread, as nvcc reports (-Xptxas -v); None: no limit."""
        return occupancy(device, self.threads_per_block, self.shared, registers, self.blocks)


@dataclass
class Kernel:
    """All launches of one kernel."""

    name: str
    launches: int
    counters: Counters
    lines: list[Line]


def choose_requests(requests: Iterable[Request]) -> list[Request]:
    """Return one request per kind and array, the costliest first: an unrolled loop is one line at many addresses."""
    kept: dict[tuple[str, str], Request] = {}
    for request in sorted(requests, key=lambda r: (-r.excess, -r.lanes, r.block, r.warp)):
        kept.setdefault((request.kind, request.array), request)
    return list(kept.values())


# ---- as data ----


def counters_dict(counters: Counters) -> dict:
    """Return the counters and the figures derived from them for JSON, without zeros."""
    out: dict = {}
    for f in dataclasses.fields(counters):
        value = getattr(counters, f.name)
        if isinstance(value, Traffic):
            if value.requests:
                derived = {
                    "bytes_moved": value.bytes_moved,
                    "sectors_per_request": value.sectors_per_request,
                    "conflicts": value.conflicts,
                }
                out[f.name] = {k: v for k, v in {**dataclasses.asdict(value), **derived}.items() if v}
        elif value:
            out[f.name] = value
    if counters.warp_instructions:
        out["active_lanes"] = counters.active_lanes
        out["working_lanes"] = counters.working_lanes
    if counters.branches:
        out["branch_uniformity"] = counters.branch_uniformity
    return out


def line_dict(line: Line) -> dict:
    """Return a line for JSON."""
    return {"source": line.source, "line": line.line, "counters": counters_dict(line.counters)}


def launch_dict(launch: Launch) -> dict:
    """Return a launch for JSON: its fields, counters and lines."""
    apart = ("counters", "lines", "compiled")
    plain = {f.name: getattr(launch, f.name) for f in dataclasses.fields(launch) if f.name not in apart}
    plain["compiled"] = dataclasses.asdict(launch.compiled)
    plain["counters"] = counters_dict(launch.counters)
    plain["lines"] = [line_dict(line) for line in launch.lines]
    return plain
