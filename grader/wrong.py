"""The map of an output's wrong elements, small enough to be kept in a verdict."""

from __future__ import annotations

import base64
import math
import zlib

import numpy as np

from grader.verdict import WrongMap

CELLS = 1 << 16  # of a map at most: 8 KiB before it is deflated


def pack(bad) -> WrongMap:
    """bad: a boolean tensor. Where it has too many elements, whole cells of them are told, twice as long each time."""
    cell = [1] * bad.dim()
    while math.prod(-(-n // c) for n, c in zip(bad.shape, cell)) > CELLS:
        longest = max(range(bad.dim()), key=lambda d: -(-bad.shape[d] // cell[d]))
        cell[longest] *= 2
    cells = bad
    for d, c in enumerate(cell):
        if c > 1:
            cells = _joined(cells, d, c)
    bits = np.packbits(cells.cpu().numpy().reshape(-1))
    return WrongMap(shape=list(bad.shape), cell=cell, bits=base64.b64encode(zlib.compress(bits.tobytes(), 9)).decode())


def _joined(bad, dim: int, by: int):
    """Every `by` neighbours along a dimension as one: wrong if any is."""
    rest = -bad.shape[dim] % by
    if rest:
        bad = bad.index_select(dim, _indices(bad, dim, rest))
    return bad.unflatten(dim, (-1, by)).any(dim + 1)


def _indices(bad, dim: int, more: int):
    """Of all slices, and of the last one so many times more: that changes no answer."""
    import torch

    return torch.arange(bad.shape[dim] + more, device=bad.device).clamp_(max=bad.shape[dim] - 1)


def unpack(wrong: WrongMap) -> np.ndarray:
    """The cells, as booleans. ValueError if it is no map that `pack` makes."""
    if len(wrong.cell) != len(wrong.shape) or min([*wrong.shape, *wrong.cell], default=1) < 1:
        raise ValueError("the map's shape and cells don't go together")
    shape = [-(-n // c) for n, c in zip(wrong.shape, wrong.cell)]
    count = math.prod(shape)
    if count > CELLS:
        raise ValueError(f"the map has {count:,} cells, more than {CELLS:,}")
    try:
        packed = zlib.decompressobj().decompress(base64.b64decode(wrong.bits, validate=True), CELLS // 8)
    except zlib.error as error:
        raise ValueError(f"the map's bits can't be read: {error}") from None
    if len(packed) != -(-count // 8):
        raise ValueError("the map's bits are not as many as its cells")
    return np.unpackbits(np.frombuffer(packed, np.uint8), count=count).astype(bool).reshape(shape)
