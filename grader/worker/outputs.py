"""The tensors of what a forward returned, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from grader.worker import protocol
from simt.runtime.torch_replaced import has_gpu

FILLER = 7.0  # what lies between the elements of a non-contiguous gradient


def flatten(output: object) -> list[torch.Tensor]:
    """Return the tensors in what forward returned, itself or in nested tuples, lists and dicts, without their graph."""
    return [tensor.detach() for tensor in _find_tensors(output)]


def make_alike(output: object) -> torch.Tensor | list[torch.Tensor]:
    """Return tensors like those in an output, in memory of their own; their elements are not written.

    A lone tensor stays alone: flatten() finds it sooner than in a list, and a clock compares the two.
    """
    if isinstance(output, torch.Tensor):
        return torch.empty_like(output)
    return [torch.empty_like(tensor) for tensor in _find_tensors(output)]


def find_floating(output: object) -> list[torch.Tensor]:
    """Return the floating tensors in what forward returned, with the graph that they carry."""
    return [tensor for tensor in _find_tensors(output) if tensor.is_floating_point()]


def _find_tensors(output: object) -> list[torch.Tensor]:
    """Return the tensors in an output by the judge's rule for Model's; kind_of reports what is not a tensor."""
    if isinstance(output, torch.Tensor):  # the usual case, by itself: timed calls come by here
        return [output]
    found = protocol.tensors(output, "cuda" if has_gpu() else "cpu")
    return [tensor for tensor in found if isinstance(tensor, torch.Tensor)]


def compute_gradients(
    outputs: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor], upstream: Sequence[torch.Tensor]
) -> list[torch.Tensor | None]:
    """Return torch.autograd.grad of the outputs that carry a graph, dense and detached."""
    if len(outputs) != len(upstream):
        raise RuntimeError(
            f"forward returned {len(outputs)} floating tensors and not {len(upstream)} when a gradient was requested"
        )
    pairs = [(out, up) for out, up in zip(outputs, upstream) if out.requires_grad]
    found = torch.autograd.grad([out for out, _ in pairs], wanted, [up for _, up in pairs], allow_unused=True)
    return [None if one is None else one.detach().to_dense() if one.is_sparse else one.detach() for one in found]


def make_noncontiguous(value: torch.Tensor) -> torch.Tensor:
    """Return the same values in a non-contiguous tensor: its dimensions in reverse order in memory, or, where that is
    contiguous too, other numbers between the elements.
    """
    reverse = tuple(reversed(range(value.dim())))
    turned = value.permute(reverse).contiguous().permute(reverse)
    if not turned.is_contiguous() or value.dim() == 0:
        return turned
    wide = torch.full((*value.shape, 2), FILLER, dtype=value.dtype, device=value.device)
    wide[..., 0] = value
    return wide[..., 0]
