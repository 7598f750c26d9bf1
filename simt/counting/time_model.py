"""Predict the time of a counted launch on a GPU, and the part of the GPU that limits it.

The counters give the amount of work, and the table of GPUs gives the speed of each part of a GPU. The time of each part
is a term. The parts work in parallel, so the launch takes little longer than its slowest part. nvcc's instructions and
the hits of the caches are estimated. benchmarks/validate/model.py compares predictions with times measured on an H200.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from simt.counting.counters import GRANULE, SECTOR, launch_dict
from simt.counting.occupancy import occupancy
from simt.devices import DEVICES, Device
from simt.toolchain.disassembly.arithmetic import EXPANSION, INTEGER64

# For the micro-kernels of benchmarks/MODEL.md and the kernels of kernels_ref on an H200; a test checks it.
MEDIAN_ERROR = 0.13


@dataclass(frozen=True)
class Gpu:
    """The speed of a GPU's parts. Clock, multiprocessors and cache sizes are in DEVICES under the same name.

    dram, l2: bytes per second, from the datasheet or whitepaper (dram) or measured (l2). fp32, fp64, sfu: operations of
    a multiprocessor per clock (sfu: the special-function unit). l1_bytes: L1 and shared memory together. l1_cycles,
    l2_cycles, dram_ns: latency of a load that hits there. tensor: multiply-adds of 16-bit numbers with float32 sums
    that a multiprocessor's tensor cores execute per clock for wmma; half as many for TF32.
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

# Lanes: CUDA C++ Programming Guide, table "Throughput of Native Arithmetic Instructions" (7.5, 8.0, 8.9, 9.0).
# l1_bytes: the same guide, "Technical Specifications per Compute Capability". DRAM: T4, A100 40 GB SXM, L4, H100 SXM
# and H200 datasheets; RTX 4060 Laptop: 128 bits of GDDR6 at 16 Gbit/s, GeForce RTX 40 laptop specifications. L2 and
# latencies: T4, Jia et al., Dissecting the NVIDIA Turing T4 GPU via Microbenchmarking (2019); A100, NVIDIA A100
# whitepaper (5120 bytes per clock) and Abdelkhalik et al., Demystifying the Nvidia Ampere Architecture (2022); H200,
# measured (benchmarks/micro/streams.cu, chase.cu), and H100, the same chip; L4 and RTX 4060 Laptop: an assumption
# without a source: 64 bytes per clock and multiprocessor, of which 0.55 are reached, and the latencies, as on the H200.
# Tensor cores: the datasheets' dense rates by multiprocessors and clock. Hopper's reach them with wgmma only; mma, to
# which wmma compiles, gets 62.9 %: Luo et al., Benchmarking and Dissecting the Nvidia Hopper GPU Architecture (2024).
GPUS: dict[str, Gpu] = {
    "T4": Gpu(320 * _GIGA, 1.27 * _TERA, 64, 2, 16, 96 * _KIB, 32, 188, 273, 512),
    "A100": Gpu(1555 * _GIGA, 7.2 * _TERA * 0.7, 64, 32, 16, 192 * _KIB, 33, 200, 400, 1024),
    "L4": Gpu(300 * _GIGA, 4.1 * _TERA, 128, 2, 16, 128 * _KIB, 33, 280, 350, 512),
    "H100": Gpu(3350 * _GIGA, 8.0 * _TERA, 128, 64, 16, 256 * _KIB, 33, 290, 346, 2048 * 0.629),
    "H200": Gpu(4800 * _GIGA, 8.0 * _TERA, 128, 64, 16, 256 * _KIB, 33, 290, 346, 2048 * 0.629),
    "RTX 4060 Laptop": Gpu(256 * _GIGA, 2.0 * _TERA, 128, 2, 16, 128 * _KIB, 33, 280, 350, 256),
}

# Multiply-adds of 16-bit numbers that tensor cores execute in the time of one mma_sync(): 16 x 16 x 16, or half of that
# in TF32. (8-bit integers take half the time, which the model ignores.)
TENSOR_STEP = 16 * 16 * 16
SCATTERED = 1.3  # times the sectors that would be enough, from which on accesses are scattered

# Parts of a multiprocessor, which work in parallel.
_INSIDE = (
    "L1 and shared-memory wavefronts",
    "instruction issue",
    "fp32 arithmetic",
    "fp64 arithmetic",
    "special functions",
    "tensor cores",
)


@dataclass(frozen=True)
class Constants:
    """Constants that no datasheet gives. Measured on an H200 if a micro-kernel isolates them, else fitted
    (benchmarks/validate/model.py).
    """

    launch: float = 1.5e-6  # seconds that an empty kernel takes (launches.cu)
    blocks_a_clock: float = 0.84  # blocks that the GPU starts per clock (launches.cu: 16384 empty blocks; edges.cu)
    dram_part: float = 0.91  # part of the datasheet's bandwidth that a stream reaches (streams.cu: 4.37 of 4.8 TB/s)
    l2_part: float = 0.5  # part of L2 for data that a wave of blocks reads again: an H200's L2 has two halves
    l2_keeps: float = 0.33  # part of L2 that holds written data when a kernel ends (ncu: 19 of 60 MB)
    # DRAM's time for 64 bytes of which 32 are used, relative to a stream's: read (strides.cu: load stride 32), and
    # written, which reads them first (store stride 32)
    strided_reads: float = 1.13
    part_writes: float = 2.6
    part_sector: float = 4.0  # L2's time to write a part of a sector, relative to a whole one (transpose.cu: rows read)
    atomic_ns: float = 0.6  # per sector, if addresses are served in turn (atomics.cu: one counter per lane)
    atomic_spread: float = 640.0  # bytes of neighbouring addresses that one slice of L2 serves (atomics.cu)
    start_cycles: float = 300.0  # to start a warp: its launch, parameters and first instructions; fitted
    instruction_cycles: float = 4.0  # from one instruction of a warp to the next that needs it (fma.cu)
    barrier_cycles: float = 30.0  # (barriers.cu)
    loads_at_once: float = 4.0  # loads that nvcc places before the first use: it unrolls loops four times
    # instructions per 32-bit integer operation: nvcc combines two or three; fitted
    integer: float = 0.6
    integer64: float = INTEGER64  # per 64-bit integer operation
    branch: float = 1.0
    base: float = 10.0  # instructions of a warp before and after its work (launches.cu: a store takes 11)
    together: float = 2.5  # exponent of the sum over terms: the larger, the less the parts disturb each other; fitted


CONSTANTS = Constants()


@dataclass
class Work:
    """The work of a launch: the counters that the model reads, over the whole grid, at warp level.

    unique_read, unique_written: bytes of the distinct sectors of the grid; granules_read, granules_written: of the
    distinct 64 bytes with which DRAM is accessed; bytes_written: distinct bytes. block_unique_read: bytes of
    the distinct sectors of each block, summed. ideal_load_sectors, ideal_store_sectors: the fewest that hold the bytes
    that each request uses.
    """

    @property
    def are_loads_scattered(self) -> bool:
        return self.load_sectors > SCATTERED * self.ideal_load_sectors > 0

    @property
    def are_stores_scattered(self) -> bool:
        return self.store_sectors > SCATTERED * self.ideal_store_sectors > 0

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
    granules_read: float = 0
    granules_written: float = 0
    bytes_written: float = 0
    ideal_load_sectors: float = 0
    ideal_store_sectors: float = 0
    mix: dict[str, float] = field(default_factory=dict)

    @property
    def warps(self) -> int:
        return self.blocks * -(-self.threads // 32)

    def times(self, factor: int) -> Work:
        """Return the work of a grid `factor` times as large, in which no two blocks share bytes."""
        kept = {
            "threads": self.threads,
            "shared": self.shared,
            "mix": {name: value * factor for name, value in self.mix.items()},
        }
        return Work(
            **{f.name: kept[f.name] if f.name in kept else getattr(self, f.name) * factor for f in fields(self)}
        )

    @classmethod
    def of(cls, launch) -> Work:
        """Return the work of a launch: a simt.Launch, or a launch from a report's JSON."""
        if not isinstance(launch, Mapping):
            launch = launch_dict(launch)
        counters = launch["counters"]

        def sums(memory: str, kinds: str, what: str) -> float:
            return sum(counters.get(f"{memory}_{kind}", {}).get(what, 0) for kind in kinds.split())

        lanes = counters.get("working_lanes") or 32.0
        return cls(
            math.prod(launch["grid"]), math.prod(launch["block"]), launch["dynamic_shared"] + launch["static_shared"],
            sums("global", "loads", "requests"), sums("global", "loads", "sectors"),
            _count_lines(counters.get("global_loads", {})),
            sums("global", "stores", "requests"), sums("global", "stores", "sectors"),
            _count_lines(counters.get("global_stores", {})),
            sums("global", "atomics", "requests"), sums("global", "atomics", "sectors"),
            sums("local", "loads stores", "sectors"), sums("shared", "loads stores atomics", "wavefronts"),
            counters.get("barriers", 0), counters.get("exchanges", 0), launch["unique_sectors_read"] * SECTOR,
            launch["unique_sectors_written"] * SECTOR, launch["block_unique_sectors_read"] * SECTOR,
            launch["unique_granules_read"] * GRANULE, launch["unique_granules_written"] * GRANULE,
            launch["unique_bytes_written"], sums("global", "loads", "ideal_sectors"),
            sums("global", "stores", "ideal_sectors"),
            {name: value / lanes for name, value in counters.get("mix", {}).items()},
        )  # fmt: skip


def _count_lines(traffic: Mapping[str, float]) -> float:
    """Return the number of 128-byte lines of all requests. Each takes the load-store unit one clock."""
    if "lines" in traffic:
        return traffic["lines"]
    sectors, requests = traffic.get("sectors", 0), traffic.get("requests", 0)
    apart = sectors and traffic.get("used", 0) / (sectors * SECTOR) < 0.2 and sectors / requests > 4
    return sectors if apart else max(requests, sectors / 4)


@dataclass
class Prediction:
    """A predicted time.

    seconds: of the launch. limit: the name of the largest term. terms: seconds that each part needs by itself. notes:
    assumptions.
    """

    seconds: float
    limit: str
    terms: dict[str, float]
    notes: list[str]


def instructions(work: Work, constants: Constants = CONSTANTS) -> tuple[float, dict[str, float]]:
    """Return the warp-level instructions that nvcc would generate for the launch, and how many of them go to the fp32,
    fp64 and special-function units. A multiplication and an addition are fused to one instruction.
    """
    mix = work.mix
    fp32 = max(mix.get("fp32_add", 0), mix.get("fp32_mul", 0)) + mix.get("fp32_fma", 0)
    fp64 = max(mix.get("fp64_add", 0), mix.get("fp64_mul", 0)) + mix.get("fp64_fma", 0)
    expanded = sum(cost * mix.get(name, 0) for name, (cost, _) in EXPANSION.items())
    special = sum(part * mix.get(name, 0) for name, (_, part) in EXPANSION.items())
    narrow = mix.get("integer", 0) - mix.get("integer64", 0) - mix.get("divide32", 0) - mix.get("divide64", 0)
    whole = (
        constants.integer * narrow
        + constants.integer64 * mix.get("integer64", 0)
        + constants.branch * mix.get("branch", 0)
    )
    memory = work.loads + work.stores + work.atomics + work.shared_wavefronts + work.barriers + work.exchanges
    total = fp32 + fp64 + expanded + whole + memory + constants.base * work.warps
    return total, {"fp32": fp32 + 0.5 * (expanded - special), "fp64": fp64, "special": special}


def traffic(work: Work, gpu: Gpu, device: Device, resident: int, constants: Constants = CONSTANTS) -> dict[str, float]:
    """Return the bytes that pass L2 and DRAM, the parts of load requests that each memory serves, and for how many
    bytes of a stream DRAM takes as long ("dram_cost", more than "dram" where accesses are scattered).

    When a block reads a byte for the second time, it hits in L1 if the data of the multiprocessor's blocks fits there,
    and in L2 if the data of all running blocks fits there. Further reads follow soon and hit in L1. Bytes that other
    blocks have read are assumed to be in L2: where blocks read at random places of a large array, they are not.
    """
    requested = work.load_sectors * SECTOR
    own = min(work.block_unique_read, requested) if requested else 0.0
    a_block = own / work.blocks if work.blocks else 0.0
    at_once = min(resident * device.multiprocessors, work.blocks)
    l1_room = max(gpu.l1_bytes - resident * (work.shared + 1024), 16 * _KIB)
    l1_hits = _estimate_hits(a_block * min(resident, -(-work.blocks // device.multiprocessors)), l1_room)
    from_l2 = own + min(requested - own, own) * (1 - l1_hits)
    l2_room = constants.l2_part * device.l2_bytes
    l2_hits = _estimate_hits(min(a_block * at_once, work.unique_read), l2_room)
    unique = min(work.unique_read, from_l2)
    alone = max(0.0, _ratio(work.granules_read, work.unique_read) - 1)  # sectors whose neighbour is not read
    from_dram = (unique + (from_l2 - own) * (1 - l2_hits)) * (1 + alone)
    # sectors that are written in part are read first
    part = max(0.0, 1 - _ratio(work.bytes_written, work.unique_written)) if work.bytes_written else 0.0
    apart = max(0.0, _ratio(work.granules_written, work.unique_written) - 1) if part else 0.0
    to_dram = max(0.0, work.unique_written - constants.l2_keeps * device.l2_bytes) * (1 + part)
    partial = max(0.0, work.store_sectors - work.ideal_store_sectors) if work.are_stores_scattered else 0.0
    stored = work.store_sectors + (constants.part_sector - 1) * partial
    written = (stored + work.atomic_passes + work.local_sectors) * SECTOR
    cost = from_dram * (1 + (constants.strided_reads - 1) * alone)
    cost += to_dram * (1 + (constants.part_writes - 1) * min(1.0, apart))
    return {
        "l2": from_l2 + written, "dram": from_dram + to_dram, "dram_cost": cost,
        "in_l1": 1 - from_l2 / requested if requested else 1.0, "in_dram": from_dram / requested if requested else 0.0,
    }  # fmt: skip


def _ratio(a: float, b: float) -> float:
    return a / b if b else 0.0


def _estimate_hits(used: float, room: float) -> float:
    """Return the fraction of second reads that hit: 1 if the data fits, 0 from twice the room on, since data that is
    read in turn evicts the data that is needed next.
    """
    return max(0.0, min(1.0, 2 - used / room))


def predict(launch, device: str = "H200", registers: int | None = None, constants: Constants = CONSTANTS) -> Prediction:
    """Predict the time of one launch on a GPU of GPUS.

    launch: a simt.Launch, its JSON, or a Work. registers: per thread, as nvcc reports; None: no limit.
    """
    work = launch if isinstance(launch, Work) else Work.of(launch)
    chip, gpu = DEVICES[device], GPUS[device]
    fits = occupancy(chip, work.threads, work.shared, registers, work.blocks)
    notes = [] if registers else ["registers per thread unknown: assumed not to limit the number of warps"]
    if not fits.blocks:
        return Prediction(
            math.inf,
            "does not fit",
            {},
            [f"a block of {work.threads} threads and {work.shared} bytes does not fit on the {device}"],
        )
    clock = chip.clock_khz * 1e3
    # the fraction of the work that the busiest multiprocessor does
    busiest = -(-work.blocks // chip.multiprocessors) / work.blocks
    total, units = instructions(work, constants)
    moved = traffic(work, gpu, chip, fits.blocks, constants)

    def on_each(amount: float, a_clock: float) -> float:
        return amount * busiest / a_clock / clock

    wavefronts = (
        work.load_lines + work.store_lines + work.shared_wavefronts + work.atomic_passes + work.local_sectors / 4
    )
    terms = {
        "block dispatch": work.blocks / (constants.blocks_a_clock * clock),
        "DRAM bytes": moved["dram_cost"] / (gpu.dram * constants.dram_part),
        "L2 bytes": moved["l2"] / gpu.l2,
        "L1 and shared-memory wavefronts": on_each(wavefronts, 1),
        "instruction issue": on_each(total, 4),
        "fp32 arithmetic": on_each(units["fp32"], gpu.fp32 / 32),
        "fp64 arithmetic": on_each(units["fp64"], gpu.fp64 / 32),
        "special functions": on_each(units["special"], gpu.sfu / 32),
        "tensor cores": on_each(work.mix.get("tensor", 0) * TENSOR_STEP, gpu.tensor),
        "atomics": _predict_atomics(work, chip, constants),
        "latency": _predict_latency(work, gpu, chip, fits.blocks, total, moved, clock, constants),
    }
    inside = max(terms[name] for name in _INSIDE)
    outside = max(terms[name] for name in ("DRAM bytes", "L2 bytes", "atomics"))
    power = constants.together
    working = sum(t**power for t in (inside, outside, terms["block dispatch"], terms["latency"])) ** (1 / power)
    terms["launch overhead"] = constants.launch
    limit = max(terms, key=terms.__getitem__)
    return Prediction(constants.launch + working, limit, terms, notes)


# Measured time over predicted time, by the part that limits a launch: between these lie nine in ten of the kernels that
# were measured on an H200. benchmarks/validate/intervals.py prints them, and a test compares.
INTERVALS: dict[str, tuple[float, float]] = {
    "DRAM bytes": (0.78, 1.69),
    "L1 and shared-memory wavefronts": (0.72, 2.08),
    "L2 bytes": (0.48, 4.46),
    "atomics": (0.03, 2.29),
    "block dispatch": (0.71, 1.38),
    "instruction issue": (0.54, 2.14),
    "latency": (0.39, 4.87),
    "launch overhead": (0.75, 1.29),
}
UNKNOWN_INTERVAL = (0.3, 4.0)  # of parts that limit none of these kernels, or a few


def find_interval(prediction: Prediction) -> tuple[float, float]:
    """Return the seconds between which nine in ten launches lie that the same part limits."""
    low, high = INTERVALS.get(prediction.limit, UNKNOWN_INTERVAL)
    return low * prediction.seconds, high * prediction.seconds


def _predict_atomics(work: Work, chip: Device, constants: Constants) -> float:
    """Return the time of atomics: each slice of L2 serves its sectors in turn, and near addresses share a slice."""
    if not work.atomic_passes:
        return 0.0
    slices = max(1.0, min(96.0, work.unique_written / constants.atomic_spread))
    return work.atomic_passes * constants.atomic_ns * 1e-9 / slices


def _predict_latency(
    work: Work, gpu: Gpu, chip: Device, resident: int, total: float, moved: dict, clock: float, constants: Constants
) -> float:
    """Return the lifetime of a warp times the number of warps that run one after the other (Little's law).

    The loads of a warp overlap if nvcc can move them ahead of their use, but not past a store, which may change what
    they read.
    """
    warps = work.warps
    loads, stores = work.loads / warps, (work.stores + work.atomics) / warps
    rounds = max(min(loads, stores), loads / constants.loads_at_once, min(loads, 1.0))
    in_l2 = max(0.0, 1 - moved["in_l1"] - moved["in_dram"])
    load_cycles = (
        moved["in_l1"] * gpu.l1_cycles + in_l2 * gpu.l2_cycles + min(1.0, moved["in_dram"]) * gpu.dram_ns * 1e-9 * clock
    )
    life = (
        constants.start_cycles + rounds * load_cycles + total / warps * constants.instruction_cycles
        + work.barriers / warps * constants.barrier_cycles
    )  # fmt: skip
    waves = max(1.0, work.blocks / (resident * chip.multiprocessors))
    return waves * life / clock
