"""Gather what the time model needs to know of a launch from its counters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

from simt.counting.compiled import Compiled
from simt.counting.counters import GRANULE, SECTOR, launch_dict

RANDOM = 0.7  # sectors for each thread's load, from which on the threads of a warp read at places of their own
RANDOM_AGAIN = 1.2  # blocks that read each sector, from which on these places are taken to be random
NEAR = 1 / 16  # of an array: a block that reads only within such a part does not read at random places of it
AGAIN = 1.05  # times the distinct sectors, from which on an array is read again
COMMON = 0.6  # of an array, which each block reads, from which on blocks share what L1 holds of it
SCATTERED = 1.3  # times the sectors that would be enough, from which on accesses are scattered


@dataclass
class Work:
    """The work of a launch: the counters that the model reads, over the whole grid, at warp level, and what nvcc makes
    of them (see Compiled).

    unique_read, unique_written: bytes of the distinct sectors of the grid; granules_read, granules_written: of the
    distinct 64 bytes with which DRAM is accessed; bytes_written: distinct bytes. block_unique_read: bytes of
    the distinct sectors of each block, summed. ideal_load_sectors, ideal_store_sectors: the fewest that hold the bytes
    that each request uses. constant_passes: addresses of requests to constant memory beyond the first. read_again:
    bytes that a block requests for the second time, summed; again_by_block, again_unique: the distinct bytes of the
    arrays that it requests them from, of each block, summed, and of the grid. random_by_block, random_unique: the same
    of the arrays that threads read at random places. common_by_block, common_unique: of those that every block reads
    for the most part. atomic_unique: bytes of the distinct sectors of arrays on which atomic operations work.
    joined_sectors: of stores beside which the same thread stores again at once.
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
    load_wavefronts: float = 0
    stores: float = 0
    store_sectors: float = 0
    store_wavefronts: float = 0
    atomics: float = 0
    atomic_passes: float = 0
    local_sectors: float = 0
    constant_passes: float = 0
    shared_wavefronts: float = 0
    shared_requests: float = 0
    load_rounds: float = 0
    float_atomics: float = 0
    shared_float_rounds: float = 0
    shared_float_crowds: float = 0
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
    read_again: float = 0
    again_by_block: float = 0
    again_unique: float = 0
    random_by_block: float = 0
    random_unique: float = 0
    common_by_block: float = 0
    common_unique: float = 0
    atomic_unique: float = 0
    joined_sectors: float = 0
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
        made = Compiled(**launch["compiled"])
        return cls(
            blocks=math.prod(launch["grid"]),
            threads=math.prod(launch["block"]),
            shared=launch["dynamic_shared"] + launch["static_shared"],
            loads=sums("global", "loads", "requests"),
            load_sectors=sums("global", "loads", "sectors"),
            load_wavefronts=sums("global", "loads", "wavefronts"),
            stores=sums("global", "stores", "requests"),
            store_sectors=sums("global", "stores", "sectors"),
            store_wavefronts=sums("global", "stores", "wavefronts"),
            atomics=sums("global", "atomics", "requests"),
            atomic_passes=sums("global", "atomics", "sectors") - made.joined_atomics,
            local_sectors=sums("local", "loads stores", "sectors"),
            constant_passes=sums("constant", "loads", "addresses") - sums("constant", "loads", "requests"),
            shared_wavefronts=sums("shared", "loads stores atomics", "wavefronts") - made.joined_wavefronts,
            shared_requests=sums("shared", "loads stores atomics", "requests") - made.joined_requests,
            load_rounds=made.load_rounds,
            float_atomics=made.float_atomics,
            shared_float_rounds=made.shared_float_rounds,
            shared_float_crowds=made.shared_float_crowds,
            barriers=counters.get("barriers", 0),
            exchanges=counters.get("exchanges", 0),
            unique_read=launch["unique_sectors_read"] * SECTOR,
            unique_written=launch["unique_sectors_written"] * SECTOR,
            block_unique_read=launch["block_unique_sectors_read"] * SECTOR,
            granules_read=launch["unique_granules_read"] * GRANULE,
            granules_written=launch["unique_granules_written"] * GRANULE,
            bytes_written=launch["unique_bytes_written"],
            ideal_load_sectors=sums("global", "loads", "ideal_sectors"),
            ideal_store_sectors=sums("global", "stores", "ideal_sectors"),
            joined_sectors=sums("global", "stores", "joined"),
            atomic_unique=launch["atomic_sectors"] * SECTOR,
            **_sum_arrays(launch["read_arrays"], math.prod(launch["grid"])),
            mix={name: value / lanes for name, value in counters.get("mix", {}).items()},
        )


def _sum_arrays(arrays: Sequence[Sequence[float]], blocks: int) -> dict[str, float]:
    """Return what Work has of arrays that are read again, that every block reads, or that are read at random places.

    These are the places where each thread has a sector of its own, at no regular distance from its neighbours', which
    its block does not read again but others do, if a block reads from a good part of the array.
    """
    names = "read_again again_by_block again_unique random_by_block random_unique common_by_block common_unique".split()
    found: dict[str, float] = dict.fromkeys(names, 0.0)
    for asked, own, unique, lanes, regular, reach in arrays:
        if asked > AGAIN * own:
            found["read_again"] += SECTOR * min(asked - own, own)
            found["again_by_block"] += SECTOR * own
            found["again_unique"] += SECTOR * unique
        if blocks > 1 and own > COMMON * unique * blocks:
            found["common_by_block"] += SECTOR * own
            found["common_unique"] += SECTOR * unique
        scattered = asked > RANDOM * lanes and regular < lanes / 2 and reach > NEAR * unique * blocks
        if scattered and asked < 2 * own and own > RANDOM_AGAIN * unique:
            found["random_by_block"] += SECTOR * own
            found["random_unique"] += SECTOR * unique
    return found
