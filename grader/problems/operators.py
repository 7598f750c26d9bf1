"""Torch modes that see each operator a model runs: count its work, round its products to TF32, move it to a device."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from grader.problems.cases import TooMuch
from grader.problems.values import find_tensors

PRODUCTS = ("convolution", "_convolution", "mkldnn_convolution", "mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot")


class Mode(TorchDispatchMode):
    """A mode for which torch does not import its compiler, as it does when any other mode is first called."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False


class Watch(Mode):
    """Counts what a model does while it runs, by shapes, so that it works on the meta device too.

    operations: aten calls that compute. work: multiply-adds, or elements touched where there are none.
    reduction: the largest number of terms that one of them sums for one output.
    picks: whether one passes on its largest or smallest input, or the middle one.
    """

    PICKING = (
        "max",
        "min",
        "amax",
        "amin",
        "sort",
        "topk",
        "kthvalue",
        "median",
        "mode",
        "fractional_max",
        "adaptive_max",
    )
    GATHERING = ("embedding", "index", "gather", "take", "max", "min", "amax", "amin")  # outputs are picked, not summed

    def __init__(self, most_operations: int | None = None):
        super().__init__()
        self.operations, self.work, self.reduction, self.picks = 0, 0, 1, False
        self.most_operations = most_operations

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if any(value.alias_info is not None for value in function._schema.returns):
            return result  # a view, or in place
        name = function.overloadpacket.__name__
        inputs, outputs = find_tensors(args), find_tensors(result)
        terms = 1 if name.startswith(self.GATHERING) else _count_terms(name, args, inputs, outputs)
        self.operations += 1
        self.picks |= name.startswith(self.PICKING)
        if name in PRODUCTS:
            self.work += _count_products(name, args, outputs, terms)
        else:
            self.work += max((t.numel() for t in inputs + outputs), default=0)
        self.reduction = max(self.reduction, terms)
        if self.most_operations and self.operations > self.most_operations:
            raise TooMuch(f"it does more than {self.most_operations:,} operations, which is what a case may do")
        return result


def _is_transposed(name: str, args: Sequence) -> bool:
    """Return whether an aten operation is a transposed convolution, or the backward of one."""
    place = {"convolution": 6, "_convolution": 6, "convolution_backward": 7}.get(name)
    return place is not None and len(args) > place and bool(args[place])


def _count_products(name: str, args: Sequence, outputs: list[torch.Tensor], terms: int) -> int:
    """Return the multiply-adds of one of PRODUCTS: of a transposed convolution, each input meets a whole filter."""
    if _is_transposed(name, args):
        return args[0].numel() * args[1][:1].numel()
    return outputs[0].numel() * terms


def _count_transposed_terms(args: Sequence) -> int:
    """Return the terms of an output of a transposed convolution: with a stride, not each tap of a filter reaches it."""
    (weight, _, strides, _, dilations), groups = args[1:6], args[8]
    steps = zip(weight.shape[2:], itertools.cycle(strides), itertools.cycle(dilations))  # torch takes one for all axes
    taps = [-(-size * math.gcd(stride, dilation) // stride) for size, stride, dilation in steps]
    return weight.shape[0] // groups * math.prod(taps)


def _count_terms(name: str, args: Sequence, inputs: list[torch.Tensor], outputs: list[torch.Tensor]) -> int:
    """Return the terms summed for one output of an aten operation, by shapes.

    Normalisations return their statistics too, so the smallest output counts.
    """
    inputs, outputs = [t for t in inputs if t.numel()], [t for t in outputs if t.numel()]
    if not inputs or not outputs:
        return 1
    if name == "convolution_backward":  # of the gradient that comes in (N, OC, ...), x and the weight (OC, C, ...)
        if _is_transposed(name, args):  # the weight is (C, OC, ...), and a bias has as many terms as it has outputs
            summed = inputs[0] if args[10][2] else inputs[1]
            return max(summed.numel() // summed.shape[1], inputs[2][0].numel())
        return max(inputs[0].numel() // inputs[0].shape[1], inputs[2][:, 0].numel())
    if _is_transposed(name, args):
        return _count_transposed_terms(args)
    if "convolution" in name and len(inputs) > 1:
        return inputs[1][0].numel()
    if name in PRODUCTS:
        return inputs[-1].shape[-2] if inputs[-1].dim() > 1 else inputs[-1].numel()
    if "softmax" in name or name.startswith("cum"):
        along = next((each for each in args if type(each) is int), None)  # the dimension
        return max(inputs[0].shape, default=1) if along is None or not inputs[0].dim() else inputs[0].shape[along]
    return max(t.numel() for t in inputs) // min(t.numel() for t in outputs)


class Tf32(Mode):
    """Rounds the factors of products to TF32 before they are multiplied in float32, as eager does on tensor cores."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.overloadpacket.__name__
        if name in PRODUCTS:
            first = 1 if name.startswith(("add", "badd")) else 0  # what is added comes before it
            args = [tf32(a) if first <= i < first + 2 else a for i, a in enumerate(args)]
        return function(*args, **(kwargs or {}))


def tf32(x: torch.Tensor) -> torch.Tensor:
    """Return float32 numbers rounded to TF32's 10 bits of mantissa, other dtypes as they are.

    Halves are rounded away from zero, as cvt.rna.tf32.f32 does.
    """
    if x.dtype != torch.float32:
        return x
    bits = x.contiguous().view(torch.int32)
    return torch.where(torch.isfinite(x), (bits + 0x1000 & ~0x1FFF).view(torch.float32).view_as(x), x)


class OnDevice(TorchFunctionMode):
    """Puts on this device what a file wants on "cuda"."""

    def __init__(self, device: torch.device):
        super().__init__()
        self.device = device

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.cuda:
            return args[0].to(self.device)
        args = [self.device if is_cuda(value) else value for value in args]
        return function(
            *args, **{name: self.device if is_cuda(value) else value for name, value in (kwargs or {}).items()}
        )


def is_cuda(value: object) -> bool:
    """Return whether a value names a GPU: "cuda", "cuda:0", torch.device("cuda")."""
    return isinstance(value, (str, torch.device)) and str(value).partition(":")[0] == "cuda"
