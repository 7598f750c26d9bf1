"""Predict what a launch would take without one kind of waste, so that the waste that costs most can be named.

Each cause replaces some counters by those of a kernel that does the same work without it: a load that is contiguous
instead of strided, shared memory without bank conflicts, a warp without idle lanes. The difference of the two
predictions is what the cause costs.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from simt.counting.counters import SECTOR, Launch, launch_dict
from simt.counting.occupancy import occupancy
from simt.counting.time_model import instructions, predict
from simt.counting.work import SCATTERED, Work
from simt.devices import DEVICES

WARP = 32
WIDE = 4  # numbers of 4 bytes that a thread loads at once as a float4
MANY = 0.25  # of the instructions, from which on a kind of operation is named
INDEXING = ("instructions", "indexing", "indexing64", "divide32", "divide64")  # of Work.mix
_BY_WARPS = (
    "mix", "loads", "load_rounds", "stores", "load_wavefronts", "store_wavefronts", "shared_wavefronts",
    "shared_requests",
)  # fmt: skip
REGISTERS = 256 << 10  # bytes of a multiprocessor's registers
HALF = 0.5  # of the warps that a multiprocessor could hold, up to which a limit on them is named
LOOPS = 8  # loads of a warp, from which on its threads are taken to loop
FULL = 8  # blocks per multiprocessor that keep it busy


@dataclass(frozen=True)
class Waste:
    """What a launch's accesses would need at least, and how they are made; of the whole grid, at warp level.

    ideal_wavefronts: of shared memory without bank conflicts. lanes: active ones of 32 on average. load_lanes,
    store_lanes: single threads' accesses to global memory; load_bytes, store_bytes: what these request.
    """

    ideal_wavefronts: float = 0
    lanes: float = WARP
    load_lanes: float = 0
    store_lanes: float = 0
    load_bytes: float = 0
    store_bytes: float = 0

    @classmethod
    def of(cls, launch: Launch | Mapping) -> Waste:
        """Return the waste of a launch: a simt.Launch, or a launch from a report's JSON."""
        plain = launch if isinstance(launch, Mapping) else launch_dict(launch)
        counters = plain["counters"]

        def of(kind: str, what: str) -> float:
            return counters.get(kind, {}).get(what, 0)

        return cls(
            sum(of(f"shared_{kind}", "ideal_wavefronts") for kind in ("loads", "stores", "atomics")),
            counters.get("working_lanes") or float(WARP),
            of("global_loads", "lanes"),
            of("global_stores", "lanes"),
            of("global_loads", "bytes"),
            of("global_stores", "bytes"),
        )


def find_savings(work: Work, waste: Waste, gpu: str) -> dict[str, float]:
    """Return {cause: seconds that the launch would take without it} for each cause that it shows.

    gpu: a name of GPUS. The causes are the keys of CAUSES.
    """
    found = {}
    for cause, without in CAUSES.items():
        changed = without(work, waste, gpu)
        if changed is not None:
            found[cause] = predict(changed, gpu).seconds
    return found


# ---- causes: each returns the work without it, or None where the launch does not show it ----


def _without_scattered_loads(work: Work, waste: Waste, gpu: str) -> Work | None:
    ideal = work.ideal_load_sectors
    if not work.are_loads_scattered:
        return None
    wavefronts = max(work.loads, ideal / 4)
    own = work.block_unique_read * min(1.0, ideal / work.load_sectors)
    return dataclasses.replace(
        work,
        load_sectors=ideal,
        load_wavefronts=min(work.load_wavefronts, wavefronts),
        block_unique_read=max(own, min(work.block_unique_read, work.unique_read)),
        read_again=work.read_again * min(1.0, ideal / work.load_sectors),
        again_by_block=work.again_by_block * min(1.0, ideal / work.load_sectors),
        random_by_block=0,
        random_unique=0,
    )


def _without_scattered_stores(work: Work, waste: Waste, gpu: str) -> Work | None:
    ideal = work.ideal_store_sectors
    if not work.are_stores_scattered:
        return None
    wavefronts = min(work.store_wavefronts, max(work.stores, ideal / 4))
    return dataclasses.replace(work, store_sectors=ideal, store_wavefronts=wavefronts)


def _without_conflicts(work: Work, waste: Waste, gpu: str) -> Work | None:
    if work.shared_wavefronts < 1.1 * waste.ideal_wavefronts or not waste.ideal_wavefronts:
        return None
    return dataclasses.replace(work, shared_wavefronts=waste.ideal_wavefronts)


def _without_idle_lanes(work: Work, waste: Waste, gpu: str) -> Work | None:
    part = waste.lanes / WARP
    if part > 0.9 or work.threads < WARP:
        return None
    # an access of fewer lanes needs fewer sectors already
    return _scale(work, part, *_BY_WARPS)


def _without_part_warps(work: Work, waste: Waste, gpu: str) -> Work | None:
    """A block whose number of threads is no multiple of 32 leaves lanes of its last warp idle."""
    used = work.threads / (-(-work.threads // WARP) * WARP)
    if used > 0.9:
        return None
    blocks = max(1, math.ceil(work.blocks * work.threads / 256))
    changed = _scale(work, used, *_BY_WARPS)
    if work.threads < WARP:  # a warp's access of fewer lanes uses a part of its sectors
        sectors = {
            name: min(getattr(work, name), max(getattr(work, f"ideal_{name}") * used, bytes_ / SECTOR))
            for name, bytes_ in (("load_sectors", waste.load_bytes), ("store_sectors", waste.store_bytes))
            if bytes_
        }
        changed = dataclasses.replace(changed, **sectors)
    merged = dataclasses.replace(changed, threads=256, blocks=blocks)
    if work.loads < LOOPS * work.warps:
        return merged
    # a block of more threads may do the same work in fewer turns of its loop
    shared_out = dataclasses.replace(changed, threads=256)
    return min(merged, shared_out, key=lambda one: predict(one, gpu).seconds)


def _without_small_blocks(work: Work, waste: Waste, gpu: str) -> Work | None:
    """Blocks of 256 threads: a multiprocessor holds only so many blocks, however few warps they have."""
    fits = occupancy(DEVICES[gpu], work.threads, work.shared, None, work.blocks)
    if "blocks" not in fits.limited_by or fits.ratio > HALF or fits.waves < 1 or work.threads % WARP:
        return None
    times = 256 / work.threads
    return dataclasses.replace(
        work, threads=256, blocks=math.ceil(work.blocks / times), shared=math.ceil(work.shared * times)
    )


def _without_few_blocks(work: Work, waste: Waste, gpu: str) -> Work | None:
    wanted = FULL * DEVICES[gpu].multiprocessors
    if work.blocks > DEVICES[gpu].multiprocessors / 2 or work.warps >= wanted:
        return None
    return dataclasses.replace(work, blocks=wanted, threads=min(work.threads, 256), shared=0)


def _without_short_blocks(work: Work, waste: Waste, gpu: str) -> Work | None:
    """A quarter of the blocks with four times the work each: to start blocks takes time of its own."""
    if work.blocks < 4 * FULL * DEVICES[gpu].multiprocessors or predict(work, gpu).limit != "block dispatch":
        return None
    indices = {name: value / 2 if name in INDEXING else value for name, value in work.mix.items()}
    return dataclasses.replace(work, blocks=math.ceil(work.blocks / 4), mix=indices)


def _without_large_blocks(work: Work, waste: Waste, gpu: str) -> Work | None:
    """Shared memory limits how many blocks fit, and with them the warps that hide latency."""
    with_it = occupancy(DEVICES[gpu], work.threads, work.shared, None, work.blocks)
    without = occupancy(DEVICES[gpu], work.threads, 0, None, work.blocks)
    if not with_it.blocks or with_it.blocks >= without.blocks or with_it.ratio > HALF:
        return None
    return dataclasses.replace(work, shared=0)


def _without_barriers(work: Work, waste: Waste, gpu: str) -> Work | None:
    return dataclasses.replace(work, barriers=0) if work.barriers > work.warps else None


def _without_local_memory(work: Work, waste: Waste, gpu: str) -> Work | None:
    return dataclasses.replace(work, local_sectors=0) if work.local_sectors else None


def _without_atomics(work: Work, waste: Waste, gpu: str) -> Work | None:
    """One atomic operation per block remains."""
    if work.atomic_passes <= work.blocks:
        return None
    return dataclasses.replace(work, atomics=min(work.atomics, work.blocks), atomic_passes=float(work.blocks))


def _without_shared_atomics(work: Work, waste: Waste, gpu: str) -> Work | None:
    """Threads add floats in registers and by shuffles, and not one after another in shared memory."""
    if work.shared_float_rounds + work.shared_float_crowds <= work.warps:
        return None
    wavefronts = min(work.shared_wavefronts, waste.ideal_wavefronts or work.shared_requests)
    return dataclasses.replace(work, shared_float_rounds=0, shared_float_crowds=0, shared_wavefronts=wavefronts)


def _without_doubles(work: Work, waste: Waste, gpu: str) -> Work | None:
    doubles = {name: value for name, value in work.mix.items() if name.startswith("fp64")}
    if not sum(doubles.values()):
        return None
    mix = {name: value for name, value in work.mix.items() if name not in doubles}
    for name, value in doubles.items():
        single = name.replace("fp64", "fp32")
        mix[single] = mix.get(single, 0) + value
    # each operand and each result may have been converted
    mix["convert"] = max(0.0, mix.get("convert", 0.0) - 3 * sum(doubles.values()))
    return dataclasses.replace(work, mix=mix)


def find_share(work: Work, *names: str) -> float:
    """Return the part of a launch's instructions that these operations of Work.mix need."""
    total = instructions(work)[0]
    without = instructions(dataclasses.replace(work, mix=work.mix | dict.fromkeys(names, 0.0)))[0]
    return max(0.0, 1 - without / total) if total else 0.0


def _without_divisions(work: Work, waste: Waste, gpu: str) -> Work | None:
    """Integer divisions by a number that is not known when the kernel is compiled."""
    if find_share(work, "divide32", "divide64") < MANY:
        return None
    return dataclasses.replace(work, mix=work.mix | {"divide32": 0, "divide64": 0})


def _without_long_indices(work: Work, waste: Waste, gpu: str) -> Work | None:
    if find_share(work, "indexing64") < MANY:
        return None
    return dataclasses.replace(work, mix=work.mix | {"indexing64": 0})


def _without_shared_reads(work: Work, waste: Waste, gpu: str) -> Work | None:
    """Half as many reads of shared memory, where these take longest."""
    prediction = predict(work, gpu)
    if prediction.limit != "L1 and shared-memory wavefronts" or work.shared_wavefronts < work.load_wavefronts:
        return None
    return _scale(work, 0.5, "shared_wavefronts", "shared_requests")


def _without_narrow_accesses(work: Work, waste: Waste, gpu: str) -> Work | None:
    """Loads and stores of 4 contiguous bytes per thread could be a quarter as many of 16 bytes."""
    changed = work
    for kind, lanes, bytes_, ideal in (
        ("load", waste.load_lanes, waste.load_bytes, work.ideal_load_sectors),
        ("store", waste.store_lanes, waste.store_bytes, work.ideal_store_sectors),
    ):
        sectors, requests = getattr(work, f"{kind}_sectors"), getattr(work, f"{kind}s")
        dense = sectors and bytes_ > 0.8 * sectors * SECTOR and sectors < SCATTERED * ideal
        if dense and lanes and bytes_ / lanes <= 4:
            changed = dataclasses.replace(changed, **{f"{kind}s": requests / WIDE})
            if kind == "load":
                changed = dataclasses.replace(changed, load_rounds=work.load_rounds / WIDE)
    if changed is work:
        return None
    indices = {name: value / WIDE if name in INDEXING else value for name, value in work.mix.items()}
    return dataclasses.replace(changed, mix=indices) if _is_elementwise(work) else changed


def _is_elementwise(work: Work) -> bool:
    """Return whether the launch loads and stores about as often: its index arithmetic belongs to the accesses."""
    return work.loads <= 4 * work.stores


def _without_reading_again(work: Work, waste: Waste, gpu: str) -> Work | None:
    """A block loads its bytes once, and keeps them in shared memory or registers."""
    requested, on_chip = work.load_sectors * SECTOR, DEVICES[gpu].shared_per_multiprocessor + REGISTERS
    if not work.block_unique_read or requested < 1.5 * work.block_unique_read or work.are_loads_scattered:
        return None
    if work.block_unique_read > on_chip * work.blocks:
        return None
    part = work.block_unique_read / requested
    return dataclasses.replace(
        _scale(work, part, "loads", "load_rounds", "load_sectors", "load_wavefronts"), read_again=0
    )


def _without_small_tiles(work: Work, waste: Waste, gpu: str) -> Work | None:
    """Blocks read what other blocks read too: twice the tile in both directions halves that."""
    if work.block_unique_read < 4 * max(work.unique_read, 1.0) or work.are_loads_scattered:
        return None
    halved = (
        "block_unique_read",
        "load_sectors",
        "load_wavefronts",
        "loads",
        "load_rounds",
        "read_again",
        "again_by_block",
    )
    return _scale(work, 0.5, *halved)


def _scale(work: Work, factor: float, *names: str) -> Work:
    changed = {
        name: {key: value * factor for key, value in work.mix.items()}
        if name == "mix"
        else getattr(work, name) * factor
        for name in names
    }
    return dataclasses.replace(work, **changed)


# Not mistakes, but what a faster kernel does differently: named where no other cause costs about as much.
REFINEMENTS = ("shared reads", "narrow accesses", "short blocks", "reading again", "small tiles")

CAUSES: dict[str, Callable[[Work, Waste, str], Work | None]] = {
    "scattered loads": _without_scattered_loads,
    "scattered stores": _without_scattered_stores,
    "bank conflicts": _without_conflicts,
    "idle lanes": _without_idle_lanes,
    "part warps": _without_part_warps,
    "small blocks": _without_small_blocks,
    "few blocks": _without_few_blocks,
    "short blocks": _without_short_blocks,
    "shared memory per block": _without_large_blocks,
    "barriers": _without_barriers,
    "local memory": _without_local_memory,
    "atomics": _without_atomics,
    "shared atomics": _without_shared_atomics,
    "doubles": _without_doubles,
    "divisions": _without_divisions,
    "long indices": _without_long_indices,
    "shared reads": _without_shared_reads,
    "narrow accesses": _without_narrow_accesses,
    "reading again": _without_reading_again,
    "small tiles": _without_small_tiles,
}
