"""Predict the time of a counted launch on a GPU, and the part of the GPU that limits it.

The counters give the amount of work, and the table of GPUs gives the speed of each part of a GPU. The time of each part
is a term. The parts work in parallel, so the launch takes little longer than its slowest part. nvcc's instructions and
the hits of the caches are estimated. benchmarks/validate/model.py compares predictions with times measured on an H200.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from simt.counting.compiled import COPIED
from simt.counting.counters import SECTOR
from simt.counting.occupancy import occupancy
from simt.counting.work import Work as Work
from simt.devices import DEVICES, Device
from simt.toolchain.disassembly.arithmetic import EXPANSION, IN_DOUBLES

# For kernels as students and textbooks write them, benchmarks/unseen on an H200; a test checks it. (The model has been
# improved on these: before it had met them, unseen.py found 15 to 18 %. For those of benchmarks/MODEL.md, beside which
# the model was made, it is less.)
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

# 32-bit integers that a multiprocessor of any of them adds, compares, shifts or selects per clock (the same guide): the
# next such instruction has to wait longer than another, so this belongs to the issue of instructions.
INTEGERS = 64

LINE = 128  # bytes of a cache's line
ALONE = 22  # sectors of a warp's store, from which on each lane has a sector of its own

# Multiply-adds of 16-bit numbers that tensor cores execute in the time of one mma_sync(): 16 x 16 x 16, or half of that
# in TF32. (8-bit integers take half the time, which the model ignores.)
TENSOR_STEP = 16 * 16 * 16

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
    """Constants that no datasheet gives. Measured on an H200 if a micro-kernel isolates them, else fitted.

    Those that name a file of benchmarks/unseen are fitted to that kernel on an H100 or H200; integer_part, issue_part,
    start_cycles, shared_cycles, first_read, inside, first_wave and many_waves to the micro-kernels, the steps of
    kernels_ref and benchmarks/unseen at once. To the micro-kernels alone benchmarks/validate/model.py --fit finds 1.0
    for issue_part and the same for the others that it varies.
    """

    launch: float = 1.5e-6  # seconds that an empty kernel takes (launches.cu)
    first_read: float = 1e-6  # seconds until the first data come, while nothing is in the caches; fitted
    blocks_a_clock: float = 0.84  # blocks that the GPU starts per clock (launches.cu: 16384 empty blocks; edges.cu)
    dram_part: float = 0.91  # part of the datasheet's bandwidth that a stream reaches (streams.cu: 4.37 of 4.8 TB/s)
    l2_part: float = 0.5  # part of L2 for data that a wave of blocks reads again: an H200's L2 has two halves
    l2_keeps: float = 0.33  # part of L2 that holds written data when a kernel ends (ncu: 19 of 60 MB)
    # DRAM's time for 64 bytes of which 32 are used, relative to a stream's: read (strides.cu: load stride 32), and
    # written, which reads them first (store stride 32)
    strided_reads: float = 1.13
    part_writes: float = 2.6
    random_reads: float = (
        1.6  # DRAM's time at random places, relative to a stream's; fitted (lookups.cu: random elements)
    )
    # DRAM's time for a sector of which L2 cannot keep one part until the next is written, for each part, where each
    # running thread reads a line and writes to one; fitted (prefix_sums.cu: 32 elements a thread)
    evicted: float = 5.0
    part_sector: float = 4.0  # L2's time to write a part of a sector, relative to a whole one (transpose.cu: rows read)
    # the same where the thread writes the other parts at once; fitted (whole_numbers.cu: decimals; image_filters.cu)
    joined_sector: float = 1.6
    halves: float = (
        2.1  # times the sectors that would be enough, from which on that time counts; fitted (upsampling.cu)
    )
    # per sector, if addresses are served in turn (0.6 in atomics.cu: one counter per lane; 0.78 in cumulative.cu: kept
    # without gaps)
    atomic_ns: float = 0.7
    atomic_spread: float = 640.0  # bytes of neighbouring addresses that one slice of L2 serves (atomics.cu)
    constant_pass: float = 2.0  # clocks for a further address of a request; fitted (lookups.cu: table in constant)
    float_ns: float = 1.75  # for adding one float after another at one address (atomics.cu: one float)
    # instructions and cycles to try to add a float in shared memory: it is loaded, added to, and exchanged if
    # unchanged; fitted (row_reductions.cu: norm, shared atomics)
    shared_float: float = 5.0
    shared_float_cycles: float = 250.0
    # the same for each warp of the block, if all add to one place (student_groupnorm.cu: images, a block each)
    crowd_cycles: float = 64.0
    start_cycles: float = 150.0  # to start a warp: its launch, parameters and first instructions; fitted
    instruction_cycles: float = 4.0  # from one instruction of a warp to the next that needs it (fma.cu)
    barrier_cycles: float = 30.0  # (barriers.cu)
    shared_cycles: float = 5.0  # for which a warp waits after a request to shared memory; fitted
    # of accesses to a thread's own arrays that the next instruction waits for (whole_numbers.cu: queens)
    local_part: float = 0.5
    integer_part: float = 0.8  # of indexing that the integer units execute: others do multiplications and jumps; fitted
    issue_part: float = 0.9  # of the slots in which instructions could be issued; fitted
    base: float = 10.0  # instructions of a warp before and after its work (launches.cu: a store takes 11)
    # exponents of the sums over the parts of a multiprocessor, and over these, memory, latency, dispatch: the larger,
    # the less the parts disturb each other. Blocks that start together read together and compute together; where many
    # follow one another, one computes while another reads. Fitted
    inside: float = 3.0
    first_wave: float = 1.5
    many_waves: float = 2.5


CONSTANTS = Constants()


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
    fp64, integer and special-function units. A multiplication and an addition are fused to one instruction.
    """
    mix = work.mix
    fp32 = max(mix.get("fp32_add", 0), mix.get("fp32_mul", 0)) + mix.get("fp32_fma", 0)
    fp64 = max(mix.get("fp64_add", 0), mix.get("fp64_mul", 0)) + mix.get("fp64_fma", 0)
    expanded = sum(cost * mix.get(name, 0) for name, (cost, _) in EXPANSION.items())
    special = sum(part * mix.get(name, 0) for name, (_, part) in EXPANSION.items())
    doubles = sum(part * mix.get(name, 0) for name, part in IN_DOUBLES.items())
    memory = work.loads + work.stores + work.atomics + work.shared_requests + work.barriers + work.exchanges
    indexing = mix.get("indexing", 0) + mix.get("indexing64", 0)
    beside = constants.base * work.warps + constants.shared_float * work.shared_float_rounds
    total = fp32 + fp64 + expanded + indexing + memory + beside
    integer = constants.integer_part * indexing
    in_floats = fp32 + 0.5 * (expanded - special - doubles)
    return total, {"fp32": in_floats, "fp64": fp64 + doubles, "integer": integer, "special": special}


def traffic(work: Work, gpu: Gpu, device: Device, resident: int, constants: Constants = CONSTANTS) -> dict[str, float]:
    """Return the bytes that pass L2 and DRAM, the parts of load requests that each memory serves, and for how many
    bytes of a stream DRAM takes as long ("dram_cost", more than "dram" where accesses are scattered).

    When a block reads a byte for the second time, it hits in L1 if what the multiprocessor's blocks read again fits
    there, and in L2 if what all running blocks read of these arrays fits there. Further reads follow soon and hit in
    L1. Bytes that other blocks have read are in L2, except where they are at random places of a large array.
    """
    requested = work.load_sectors * SECTOR
    own = min(work.block_unique_read, requested) if requested else 0.0
    at_once = min(resident * device.multiprocessors, work.blocks)
    l1_room = max(gpu.l1_bytes - resident * (work.shared + 1024), 16 * _KIB)
    again = work.again_by_block / work.blocks if work.blocks else 0.0
    l1_hits = _estimate_hits(again * min(resident, -(-work.blocks // device.multiprocessors)), l1_room)
    # what every block reads is fetched once for those that run together on a multiprocessor, or once for all on it
    common = min(work.common_by_block, own)
    fetched = common / min(resident, -(-work.blocks // device.multiprocessors))
    if work.common_unique <= l1_room:
        fetched = min(fetched, work.common_unique * min(work.blocks, device.multiprocessors))
    own -= common - fetched
    from_l2 = own + work.read_again * (1 - l1_hits)
    l2_room = constants.l2_part * device.l2_bytes
    l2_hits = _estimate_hits(min(again * at_once, work.again_unique), l2_room)
    # random places: other blocks read a sector again after L2 has replaced it, each alone in the 64 bytes of DRAM
    held = min(1.0, l2_room / work.random_unique) if work.random_unique else 0.0
    at_random = max(work.random_unique, work.random_by_block * (1 - held))
    unique = min(work.unique_read, from_l2)
    alone = max(0.0, _ratio(work.granules_read, work.unique_read) - 1)  # sectors whose neighbour is not read
    from_dram = (unique + (from_l2 - own) * (1 - l2_hits)) * (1 + alone) + 2 * at_random - work.random_unique
    # sectors that are written in part are read first
    part = max(0.0, 1 - _ratio(work.bytes_written, work.unique_written)) if work.bytes_written else 0.0
    apart = max(0.0, _ratio(work.granules_written, work.unique_written) - 1) if part else 0.0
    to_dram = max(0.0, work.unique_written - constants.l2_keeps * device.l2_bytes) * (1 + part)
    # halves of sectors are written together with their other halves, which the next store has
    apart_stores = work.store_sectors > constants.halves * work.ideal_store_sectors > 0
    partial = max(0.0, work.store_sectors - work.ideal_store_sectors) if apart_stores else 0.0
    joined = _ratio(work.joined_sectors, work.store_sectors)
    stored = work.store_sectors + partial * (
        (constants.part_sector - 1) * (1 - joined) + (constants.joined_sector - 1) * joined
    )
    written = (stored + work.atomic_passes + work.local_sectors) * SECTOR
    cost = from_dram * (1 + (constants.strided_reads - 1) * alone) + 2 * at_random * (constants.random_reads - 1)
    cost += to_dram * (1 + (constants.part_writes - 1) * min(1.0, apart))
    if apart_stores and work.store_sectors > ALONE * work.stores:
        touched = (work.unique_written + work.block_unique_read) / work.blocks
        kept = _estimate_hits(at_once * min(touched, work.threads * 2 * LINE), l2_room)
        cost += constants.evicted * (1 - kept) * partial * (1 - joined) * SECTOR
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
    waves = max(1.0, work.blocks / (fits.blocks * chip.multiprocessors))

    def on_each(amount: float, a_clock: float) -> float:
        return amount * busiest / a_clock / clock

    wavefronts = (
        work.load_wavefronts + work.store_wavefronts + work.shared_wavefronts + work.atomic_passes
        + work.local_sectors / 4 + work.mix.get("local", 0) + constants.constant_pass * work.constant_passes
    )  # fmt: skip
    terms = {
        "block dispatch": work.blocks / (constants.blocks_a_clock * clock),
        "DRAM bytes": moved["dram_cost"] / (gpu.dram * constants.dram_part),
        "L2 bytes": moved["l2"] / gpu.l2,
        "L1 and shared-memory wavefronts": on_each(wavefronts, 1),
        "instruction issue": _add_up(
            (on_each(total, 4 * constants.issue_part), on_each(units["integer"], INTEGERS / 32)), constants.inside
        ),
        "fp32 arithmetic": on_each(units["fp32"], gpu.fp32 / 32),
        "fp64 arithmetic": on_each(units["fp64"], gpu.fp64 / 32),
        "special functions": on_each(units["special"], gpu.sfu / 32),
        "tensor cores": on_each(work.mix.get("tensor", 0) * TENSOR_STEP, gpu.tensor),
        "atomics": _predict_atomics(work, chip, constants),
        "latency": waves * _predict_life(work, gpu, total, moved, clock, constants),
    }
    inside = _add_up((terms[name] for name in _INSIDE), constants.inside)
    outside = max(terms[name] for name in ("DRAM bytes", "L2 bytes", "atomics"))
    power = constants.first_wave + (constants.many_waves - constants.first_wave) * (1 - 1 / waves)
    working = _add_up((inside, outside, terms["block dispatch"], terms["latency"]), power)
    terms["launch overhead"] = constants.launch
    limit = max(terms, key=terms.__getitem__)
    begun = constants.launch + (constants.first_read if work.unique_read else 0.0)
    return Prediction(begun + working, limit, terms, notes)


def _add_up(seconds: Iterable[float], power: float) -> float:
    """Return the time of parts that work at the same time but disturb each other."""
    return sum(time**power for time in seconds) ** (1 / power)


# Measured time over predicted time, by the part that limits a launch: between these lie nine in ten of the kernels that
# were measured on a GPU. benchmarks/validate/intervals.py prints them, and a test compares.
INTERVALS: dict[str, tuple[float, float]] = {
    "DRAM bytes": (0.76, 1.59),
    "L1 and shared-memory wavefronts": (0.70, 1.55),
    "L2 bytes": (0.44, 2.48),
    "atomics": (0.57, 1.64),
    "block dispatch": (0.72, 1.41),
    "instruction issue": (0.64, 1.84),
    "latency": (0.60, 1.86),
    "launch overhead": (0.63, 1.28),
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
    slices = max(1.0, min(96.0, work.atomic_unique / constants.atomic_spread))
    in_turn = work.float_atomics / max(1.0, min(work.bytes_written, work.atomic_unique) / 4)  # at each address
    return 1e-9 * max(work.atomic_passes * constants.atomic_ns / slices, in_turn * constants.float_ns)


def _predict_life(
    work: Work, gpu: Gpu, total: float, moved: dict[str, float], clock: float, constants: Constants
) -> float:
    """Return the seconds that a warp lives: those of one after the other add up (Little's law).

    A round of loads takes as long as the slowest of them. Where it is not known which loads are under way together (not
    x86), those between two stores are.
    """
    warps = work.warps
    loads, stores = work.loads / warps, (work.stores + work.atomics) / warps
    rounds = work.load_rounds / warps or max(min(loads, stores), loads / COPIED, min(loads, 1.0))
    at_once = max(1.0, loads / rounds) if rounds else 1.0
    beside_dram = max(0.0, 1 - moved["in_dram"]) ** at_once  # the chance that no load of a round goes to DRAM
    all_in_l1 = min(beside_dram, max(0.0, moved["in_l1"]) ** at_once)
    load_cycles = (
        (1 - beside_dram) * gpu.dram_ns * 1e-9 * clock
        + (beside_dram - all_in_l1) * gpu.l2_cycles + all_in_l1 * gpu.l1_cycles
    )  # fmt: skip
    # further wavefronts of a request, for which its warp waits
    own = max(0.0, work.load_wavefronts - work.loads) + max(0.0, work.shared_wavefronts - work.shared_requests)
    crowd = max(0.0, constants.crowd_cycles * -(-work.threads // 32) - constants.shared_float_cycles)
    cycles = (
        own + total * constants.instruction_cycles + work.barriers * constants.barrier_cycles
        + work.shared_requests * constants.shared_cycles + work.shared_float_crowds * crowd
        + work.shared_float_rounds * constants.shared_float_cycles
        + work.mix.get("local", 0) * gpu.l1_cycles * constants.local_part
    )  # fmt: skip
    return (constants.start_cycles + rounds * load_cycles + cycles / warps) / clock
