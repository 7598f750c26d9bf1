"""Compute with small tensors on one core."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

SMALL = 2**22  # elements


@contextlib.contextmanager
def one_core(elements: int) -> Iterator[None]:
    """Have PyTorch's operators use one core where tensors have few elements.

    Compilers run meanwhile, and next to them threads that wait for each other after every operator take several times
    as long as one alone.
    """
    before = torch.get_num_threads()
    if before == 1 or elements > SMALL:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
