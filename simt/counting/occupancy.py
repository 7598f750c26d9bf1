"""Compute how many blocks fit on a multiprocessor at once, by NVIDIA's rules."""

from __future__ import annotations

import math
from dataclasses import dataclass

from simt.devices import DEVICES, Device, find_name


@dataclass(frozen=True)
class Occupancy:
    """The blocks and warps that fit on a multiprocessor at once, and the resources that limit them.

    limits: the number of blocks that each resource allows: "blocks", "warps", "shared", and "registers" if the number
    per thread is given (it is not known on a CPU). limited_by: the resources that allow the fewest blocks.
    waves: the number of times that the grid fills the whole GPU (launch__waves_per_multiprocessor).
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
        """Warps on a multiprocessor divided by the largest number (sm__maximum_warps_per_active_cycle_pct / 100)."""
        return self.warps / self.warps_at_most


def occupancy(
    device: str | Device, threads: int, shared: int = 0, registers: int | None = None, blocks: int = 1
) -> Occupancy:
    """Return the occupancy of a launch.

    device: a GPU, or its name as simt.devices.find_name understands it.
    threads, shared: per block; registers: per thread, None for no limit; blocks: of the grid.

    The rules are those of NVIDIA's occupancy calculator (CUDA C++ Best Practices Guide, section Occupancy): from
    compute capability 8.0 on the system takes 1 KiB of shared memory per block; registers are allocated to warps in
    units of 256, and warps are distributed over the four quarters of a multiprocessor.
    """
    gpu = device if isinstance(device, Device) else DEVICES[find_name(device)]
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
