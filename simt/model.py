"""Predicts how long a counted launch takes on a GPU, and what limits it there.

The counters say how much work there is; a GPU's table says how fast each of its parts does such work. Every part's time is
a term; parts work side by side, so that the whole takes little longer than its slowest part. It is a prediction: what nvcc
makes of the source, and what caches keep, is estimated. benchmarks/model.py holds it against times measured on an H200.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from .devices import DEVICES, Device
from .disassembly import EXPANSION, INTEGER64

SECTOR = 32  # bytes
MEDIAN_ERROR = 0.13  # of benchmarks/MODEL.md's micro-kernels and those of kernels_ref on an H200; a test holds it against the data


@dataclass(frozen=True)
class Gpu:
    """How fast a GPU's parts are. Clock, multiprocessors and cache sizes are in DEVICES, under the same name.

    dram, l2: bytes a second, as the datasheet or whitepaper says (dram) or as measured (l2). fp32, fp64, sfu: lanes of a
    multiprocessor that do one operation a clock (sfu: the special-function unit). l1_bytes: L1 and shared memory together.
    l1_cycles, l2_cycles, dram_ns: latency of a load that hits there. tensor: multiply-adds of 16-bit numbers, summed in
    float32, that a multiprocessor's tensor cores do a clock for wmma; TF32 half as many.
    """

    dram: float
    l2: float
    fp32: int
    fp64: int
    sfu: int
    l1_bytes: int
    l1_cycles: float
    l2_cycles: float
    dram_ns: float
    tensor: float


_KIB, _TERA, _GIGA = 1 << 10, 1e12, 1e9

# Lanes: CUDA C++ Programming Guide, table "Throughput of Native Arithmetic Instructions" (7.5, 8.0, 8.9, 9.0). l1_bytes: the
# same guide, "Technical Specifications per Compute Capability". DRAM: T4, A100 40 GB SXM, L4, H100 SXM and H200 datasheets;
# RTX 4060 Laptop: 128 bits of GDDR6 at 16 Gbit/s, GeForce RTX 40 laptop specifications.
# L2 and latencies: T4, Jia et al., Dissecting the NVIDIA Turing T4 GPU via Microbenchmarking (2019); A100, NVIDIA A100
# whitepaper (5120 bytes a clock) and Abdelkhalik et al., Demystifying the Nvidia Ampere Architecture (2022); H200, measured
# (benchmarks/micro/streams.cu, chase.cu), and H100, the same chip; L4 and RTX 4060 Laptop: 64 bytes a clock and
# multiprocessor, at 0.55 of that as on the H200, with the latencies of the H200: no source, an assumption.
# Tensor cores: the datasheets' dense rates by multiprocessors and clock. Hopper's reach theirs by wgmma alone; mma, which wmma
# becomes, gets 62.9 % of it: Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture (2024).
GPUS: dict[str, Gpu] = {
    "T4": Gpu(320 * _GIGA, 1.27 * _TERA, 64, 2, 16, 96 * _KIB, 32, 188, 273, 512),
    "A100": Gpu(1555 * _GIGA, 7.2 * _TERA * 0.7, 64, 32, 16, 192 * _KIB, 33, 200, 400, 1024),
    "L4": Gpu(300 * _GIGA, 4.1 * _TERA, 128, 2, 16, 128 * _KIB, 33, 280, 350, 512),
    "H100": Gpu(3350 * _GIGA, 8.0 * _TERA, 128, 64, 16, 256 * _KIB, 33, 290, 346, 2048 * 0.629),
    "H200": Gpu(4800 * _GIGA, 8.0 * _TERA, 128, 64, 16, 256 * _KIB, 33, 290, 346, 2048 * 0.629),
    "RTX 4060 Laptop": Gpu(256 * _GIGA, 2.0 * _TERA, 128, 2, 16, 128 * _KIB, 33, 280, 350, 256),
}

# Multiply-adds of 16-bit numbers that tensor cores do in the time of one mma_sync(): 16 x 16 x 16, or half of that in TF32.
# (Of 8-bit integers it takes half as long, which is not looked at.)
TENSOR_STEP = 16 * 16 * 16

# Parts of a multiprocessor, which work side by side.
_INSIDE = ("L1 and shared-memory wavefronts", "instruction issue", "fp32 arithmetic", "fp64 arithmetic", "special functions", "tensor cores")


@dataclass(frozen=True)
class Constants:
    """What no datasheet says. Measured one by one on an H200 where a micro-kernel shows it alone, else fitted (benchmarks/model.py)."""

    launch: float = 1.5e-6           # seconds of an empty kernel (launches.cu)
    blocks_a_clock: float = 0.84     # that the whole GPU can start (launches.cu: 16384 empty blocks; edges.cu)
    dram_part: float = 0.91          # of the datasheet's bandwidth that a stream reaches (streams.cu: 4.37 of 4.8 TB/s)
    l2_part: float = 0.5             # of L2 that holds what a wave of blocks reads again: an H200's L2 is two halves
    l2_keeps: float = 0.33           # of L2 is still full of what was written when a kernel ends (ncu: 19 of 60 MB)
    atomic_ns: float = 0.6           # a sector of one address after the other (atomics.cu: a counter a lane)
    atomic_spread: float = 640.0     # bytes of neighbouring addresses that one slice of L2 serves (atomics.cu)
    start_cycles: float = 300.0      # of a warp: its launch, its parameters, its first instructions; fitted
    instruction_cycles: float = 4.0  # from one instruction of a warp to the next that needs it (fma.cu)
    barrier_cycles: float = 30.0     # (barriers.cu)
    loads_at_once: float = 4.0       # that nvcc puts before the first use: it unrolls loops four times
    integer: float = 0.6             # instructions of an integer operation of 32 bits: nvcc makes one of two or three; fitted
    integer64: float = INTEGER64     # of 64 bits
    branch: float = 1.0
    base: float = 10.0               # instructions of a warp before and after its work (launches.cu: a store takes 11)
    together: float = 2.5            # how little parts disturb each other: exponent of the sum over terms; fitted


CONSTANTS = Constants()


@dataclass
class Work:
    """What a launch asks of a GPU: the counters that the model reads, over the whole grid, at warp level."""

    blocks: int
    threads: int
    shared: int
    loads: float = 0
    load_sectors: float = 0
    load_lines: float = 0
    stores: float = 0
    store_sectors: float = 0
    store_lines: float = 0
    atomics: float = 0
    atomic_passes: float = 0
    local_sectors: float = 0
    shared_wavefronts: float = 0
    barriers: float = 0
    exchanges: float = 0
    unique_read: float = 0
    unique_written: float = 0
    block_unique_read: float = 0
    mix: dict[str, float] = field(default_factory=dict)

    @property
    def warps(self) -> int:
        return self.blocks * -(-self.threads // 32)

    def times(self, factor: int) -> Work:
        """The work of a grid that is so many times as large, of blocks that each read and write bytes of their own."""
        kept = {"threads": self.threads, "shared": self.shared, "mix": {name: value * factor for name, value in self.mix.items()}}
        return Work(**{f.name: kept[f.name] if f.name in kept else getattr(self, f.name) * factor for f in fields(self)})

    @classmethod
    def of(cls, launch) -> Work:
        """launch: a simt.Launch, or the same from its report's JSON."""
        if not isinstance(launch, Mapping):
            from .counts import _launch_dict

            launch = _launch_dict(launch, "")
        counters = launch["counters"]

        def sums(memory: str, kinds: str, what: str) -> float:
            return sum(counters.get(f"{memory}_{kind}", {}).get(what, 0) for kind in kinds.split())

        lanes = counters.get("working_lanes") or 32.0
        return cls(
            math.prod(launch["grid"]), math.prod(launch["block"]), launch["dynamic_shared"] + launch["static_shared"],
            sums("global", "loads", "requests"), sums("global", "loads", "sectors"), _lines(counters.get("global_loads", {})),
            sums("global", "stores", "requests"), sums("global", "stores", "sectors"), _lines(counters.get("global_stores", {})),
            sums("global", "atomics", "requests"), sums("global", "atomics", "sectors"), sums("local", "loads stores", "sectors"),
            sums("shared", "loads stores atomics", "wavefronts"), counters.get("barriers", 0), counters.get("exchanges", 0),
            launch["unique_sectors_read"] * SECTOR, launch["unique_sectors_written"] * SECTOR, launch["block_unique_sectors_read"] * SECTOR,
            {name: value / lanes for name, value in counters.get("mix", {}).items()},
        )  # fmt: skip


def _lines(traffic: Mapping[str, float]) -> float:
    """128-byte lines of the requests, summed: each takes the load-store unit a clock. Lanes far apart have one each."""
    if "lines" in traffic:
        return traffic["lines"]
    sectors, requests = traffic.get("sectors", 0), traffic.get("requests", 0)
    apart = sectors and traffic.get("used", 0) / (sectors * SECTOR) < 0.2 and sectors / requests > 4
    return sectors if apart else max(requests, sectors / 4)


@dataclass
class Prediction:
    """seconds: of the launch. limit: the largest of terms, in words. terms: seconds that each part needs by itself.
    notes: what was assumed."""

    seconds: float
    limit: str
    terms: dict[str, float]
    notes: list[str]


def instructions(work: Work, constants: Constants = CONSTANTS) -> tuple[float, dict[str, float]]:
    """Warp-level instructions that nvcc would make of the launch, and those of them that the units for fp32, fp64 and special
    functions take. A multiplication and an addition become one instruction."""
    mix = work.mix
    fp32 = max(mix.get("fp32_add", 0), mix.get("fp32_mul", 0)) + mix.get("fp32_fma", 0)
    fp64 = max(mix.get("fp64_add", 0), mix.get("fp64_mul", 0)) + mix.get("fp64_fma", 0)
    expanded = sum(cost * mix.get(name, 0) for name, (cost, _) in EXPANSION.items())
    special = sum(part * mix.get(name, 0) for name, (_, part) in EXPANSION.items())
    narrow = mix.get("integer", 0) - mix.get("integer64", 0) - mix.get("divide32", 0) - mix.get("divide64", 0)
    whole = constants.integer * narrow + constants.integer64 * mix.get("integer64", 0) + constants.branch * mix.get("branch", 0)
    memory = work.loads + work.stores + work.atomics + work.shared_wavefronts + work.barriers + work.exchanges
    total = fp32 + fp64 + expanded + whole + memory + constants.base * work.warps
    return total, {"fp32": fp32 + 0.5 * (expanded - special), "fp64": fp64, "special": special}


def traffic(work: Work, gpu: Gpu, device: Device, resident: int, constants: Constants = CONSTANTS) -> dict[str, float]:
    """Bytes that leave L1 and L2, and the parts of load requests that are served by each memory.

    A block's second reading of its own bytes hits in L1 as far as what all its multiprocessor's blocks read fits there, and
    in L2 as far as what all blocks on the GPU read does. What it reads more often it reads again soon: a hit in L1. What
    other blocks have read is taken to be in L2.
    """
    asked = work.load_sectors * SECTOR
    own = min(work.block_unique_read, asked) if asked else 0.0
    a_block = own / work.blocks if work.blocks else 0.0
    at_once = min(resident * device.multiprocessors, work.blocks)
    l1_room = max(gpu.l1_bytes - resident * (work.shared + 1024), 16 * _KIB)
    l1_hits = _kept(a_block * min(resident, -(-work.blocks // device.multiprocessors)), l1_room)
    from_l2 = own + min(asked - own, own) * (1 - l1_hits)
    l2_hits = _kept(min(a_block * at_once, work.unique_read), constants.l2_part * device.l2_bytes)
    unique = min(work.unique_read, from_l2)
    from_dram = unique + (from_l2 - own) * (1 - l2_hits)
    to_dram = max(0.0, work.unique_written - constants.l2_keeps * device.l2_bytes)
    written = (work.store_sectors + work.atomic_passes + work.local_sectors) * SECTOR
    return {
        "l2": from_l2 + written, "dram": from_dram + to_dram,
        "in_l1": 1 - from_l2 / asked if asked else 1.0, "in_dram": from_dram / asked if asked else 0.0,
    }  # fmt: skip


def _kept(used: float, room: float) -> float:
    """Part of the second readings that hit: all of them where it fits, none from twice the room on, for what is read in turn
    pushes out what will be needed soonest."""
    return max(0.0, min(1.0, 2 - used / room))


def predict(launch, device: str = "H200", registers: int | None = None, constants: Constants = CONSTANTS) -> Prediction:
    """The time of one launch on a GPU of GPUS.

    launch: a simt.Launch, its JSON, or a Work. registers: a thread, as nvcc says; None: few enough.
    """
    work = launch if isinstance(launch, Work) else Work.of(launch)
    chip, gpu = DEVICES[device], GPUS[device]
    from .counts import occupancy

    fits = occupancy(chip, work.threads, work.shared, registers, work.blocks)
    notes = [] if registers else ["registers a thread unknown: taken to be few enough for every warp"]
    if not fits.blocks:
        return Prediction(math.inf, "does not fit", {}, [f"a block of {work.threads} threads and {work.shared} bytes does not fit on the {device}"])
    clock = chip.clock_khz * 1e3
    busiest = -(-work.blocks // chip.multiprocessors) / work.blocks  # part of the work that the busiest multiprocessor has
    total, units = instructions(work, constants)
    moved = traffic(work, gpu, chip, fits.blocks, constants)

    def on_each(amount: float, a_clock: float) -> float:
        return amount * busiest / a_clock / clock

    wavefronts = work.load_lines + work.store_lines + work.shared_wavefronts + work.atomic_passes + work.local_sectors / 4
    terms = {
        "block dispatch": work.blocks / (constants.blocks_a_clock * clock),
        "DRAM bytes": moved["dram"] / (gpu.dram * constants.dram_part),
        "L2 bytes": moved["l2"] / gpu.l2,
        "L1 and shared-memory wavefronts": on_each(wavefronts, 1),
        "instruction issue": on_each(total, 4),
        "fp32 arithmetic": on_each(units["fp32"], gpu.fp32 / 32),
        "fp64 arithmetic": on_each(units["fp64"], gpu.fp64 / 32),
        "special functions": on_each(units["special"], gpu.sfu / 32),
        "tensor cores": on_each(work.mix.get("tensor", 0) * TENSOR_STEP, gpu.tensor),
        "atomics": _atomics(work, chip, constants),
        "latency": _latency(work, gpu, chip, fits.blocks, total, moved, clock, constants),
    }
    inside = max(terms[name] for name in _INSIDE)
    outside = max(terms[name] for name in ("DRAM bytes", "L2 bytes", "atomics"))
    power = constants.together
    working = sum(t**power for t in (inside, outside, terms["block dispatch"], terms["latency"])) ** (1 / power)
    terms["launch overhead"] = constants.launch
    limit = max(terms, key=terms.__getitem__)
    return Prediction(constants.launch + working, limit, terms, notes)


def _atomics(work: Work, chip: Device, constants: Constants) -> float:
    """Sectors are served one after the other in each slice of L2; few neighbouring addresses lie in few slices."""
    if not work.atomic_passes:
        return 0.0
    slices = max(1.0, min(96.0, work.unique_written / constants.atomic_spread))
    return work.atomic_passes * constants.atomic_ns * 1e-9 / slices


def _latency(work: Work, gpu: Gpu, chip: Device, resident: int, total: float, moved: dict, clock: float, constants: Constants) -> float:
    """A warp's life, end to end, times the number of warps that must follow one another (Little's law).

    Loads of a warp overlap as far as nvcc can move them ahead of their use: not past a store, which may change what they read.
    """
    warps = work.warps
    loads, stores = work.loads / warps, (work.stores + work.atomics) / warps
    rounds = max(min(loads, stores), loads / constants.loads_at_once, min(loads, 1.0))
    in_l2 = max(0.0, 1 - moved["in_l1"] - moved["in_dram"])
    load_cycles = moved["in_l1"] * gpu.l1_cycles + in_l2 * gpu.l2_cycles + min(1.0, moved["in_dram"]) * gpu.dram_ns * 1e-9 * clock
    life = (
        constants.start_cycles + rounds * load_cycles + total / warps * constants.instruction_cycles
        + work.barriers / warps * constants.barrier_cycles
    )  # fmt: skip
    waves = max(1.0, work.blocks / (resident * chip.multiprocessors))
    return waves * life / clock
