"""The map of an output's wrong elements, small enough to be kept in a verdict."""

from __future__ import annotations

import base64
import math
import zlib
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from grader.verdict.schema import WrongMap

if TYPE_CHECKING:
    import torch

MAX_CELLS = 1 << 16  # of a map: 8 KiB before compression


def pack(wrong: torch.Tensor) -> WrongMap:
    """Return the map of a boolean tensor.

    Cells cover one element each where at most MAX_CELLS are needed; else they grow along the longest side, doubling,
    until so few do, and a cell is wrong if any of its elements is.
    """
    cell = [1] * wrong.dim()
    while math.prod(-(-n // c) for n, c in zip(wrong.shape, cell)) > MAX_CELLS:
        longest = max(range(wrong.dim()), key=lambda d: -(-wrong.shape[d] // cell[d]))
        cell[longest] *= 2
    cells = wrong
    for d, c in enumerate(cell):
        if c > 1:
            cells = _merge(cells, d, c)
    bits = np.packbits(np.asarray(cells.cpu().reshape(-1), dtype=np.bool_))
    deflated = base64.b64encode(zlib.compress(bits.tobytes(), 9)).decode()
    return WrongMap(shape=list(wrong.shape), cell=cell, bits=deflated)


def _merge(wrong: torch.Tensor, dim: int, by: int) -> torch.Tensor:
    """Merge every `by` neighbours along a dimension into one that is wrong if any of them is."""
    missing = -wrong.shape[dim] % by
    if missing:
        wrong = wrong.index_select(dim, _repeat_last(wrong, dim, missing))
    shape = list(wrong.shape)
    return wrong.reshape([*shape[:dim], shape[dim] // by, by, *shape[dim + 1 :]]).any(dim + 1)


def _repeat_last(wrong: torch.Tensor, dim: int, more: int) -> torch.Tensor:
    """Return the indices of all slices, and of the last one `more` times again, which changes no `any`."""
    import torch

    return torch.arange(wrong.shape[dim] + more, device=wrong.device).clamp_(max=wrong.shape[dim] - 1)


def unpack(wrong: WrongMap) -> npt.NDArray[np.bool_]:
    """Return the cells as booleans. Raises ValueError for a map that `pack` does not make."""
    if len(wrong.cell) != len(wrong.shape) or min([*wrong.shape, *wrong.cell], default=1) < 1:
        raise ValueError("the map's shape and cells do not fit together")
    shape = [-(-n // c) for n, c in zip(wrong.shape, wrong.cell)]
    count = math.prod(shape)
    if count > MAX_CELLS:
        raise ValueError(f"the map has {count:,} cells, more than {MAX_CELLS:,}")
    try:
        packed = zlib.decompressobj().decompress(base64.b64decode(wrong.bits, validate=True), MAX_CELLS // 8)
    except zlib.error as error:
        raise ValueError(f"the map's bits cannot be read: {error}") from None
    if len(packed) != -(-count // 8):
        raise ValueError("the map does not have one bit per cell")
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=count).astype(bool).reshape(shape)
