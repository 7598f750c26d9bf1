"""Python values and tensors as the protocol sends them, and what a forward returned as a list of tensors."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any, cast

import msgspec
import torch

from grader.worker.channel import ChannelError
from grader.worker.layout import count_covered, find_strides, lay_out, view_memory
from grader.worker.messages import MAX_DIMS, MAX_LEAVES, Array, Handle, Items, Lent, Named, Room, Value

MAX_DEPTH = 8  # of a nested output
MAX_ELEMENTS = 1 << 48  # of a tensor, with each empty dimension counted as 1
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16),
        *(torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128),
        *(torch.float8_e4m3fn, torch.float8_e5m2),
    )
}

Nest = dict[object, object] | list[object] | tuple[object, ...]
_encode = msgspec.msgpack.Encoder().encode


def raw(tensor: torch.Tensor) -> bytes:
    """Return a CPU tensor's elements in row-major order."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()) if tensor.numel() else b""


def unraw(dtype: str, shape: list[int], data: bytes) -> torch.Tensor:
    """Return a new CPU tensor of these elements. Raises ChannelError if the bytes do not fill it."""
    if dtype not in DTYPES:
        raise ChannelError(f"the dtype {dtype!r} cannot be sent")
    if not is_shape(shape):
        raise ChannelError(f"{shape} is no shape")
    if math.prod(shape) * DTYPES[dtype].itemsize != len(data):
        raise ChannelError(f"{len(data)} bytes do not fill a tensor of {dtype} {shape}")
    tensor = torch.empty(shape, dtype=DTYPES[dtype])
    if data:
        ctypes.memmove(tensor.data_ptr(), data, len(data))
    return tensor


def is_shape(shape: list[int]) -> bool:
    """Return whether a tensor can have this shape: also an empty one must not have strides of more than 64 bits."""
    return (
        len(shape) <= MAX_DIMS
        and all(size >= 0 for size in shape)
        and math.prod(max(1, n) for n in shape) <= MAX_ELEMENTS
    )


def name_of(dtype: torch.dtype) -> str:
    """Return "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


def overlap(a: object, b: object) -> bool:
    """Return whether two tensors share a byte."""
    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)) or not a.numel() or not b.numel():
        return False
    if a.device != b.device or a.layout is not torch.strided or b.layout is not torch.strided:
        return False
    (start_a, end_a), (start_b, end_b) = _extent(a), _extent(b)
    return start_a < end_b and start_b < end_a


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    start = tensor.data_ptr()
    return start, start + count_covered(tensor.shape, tensor.stride()) * tensor.element_size()


def unfit(value: object) -> str:
    """Name what in a value cannot be sent, such as "a ndarray"; empty if all of it can."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_nested:
            return "a tensor that is not dense"
        return "" if name_of(value.dtype) in DTYPES else f"a tensor of dtype {name_of(value.dtype)}"
    if isinstance(value, (dict, list, tuple)):
        found = (unfit(part) for part in _parts(cast(Nest, value)))
        return next((words for words in found if words), "")
    if value is None or isinstance(value, (torch.dtype, torch.device)):
        return ""
    if isinstance(value, (bool, int, float, str)):
        try:
            _encode(value)
            return ""
        except OverflowError:
            return "an integer of more than 64 bits"
        except (TypeError, UnicodeEncodeError):  # numpy's numbers are Python's too
            pass
    return f"a {type(value).__name__}"


def _parts(value: Nest) -> list[object]:
    """Return the items of a list or tuple; of a dict its keys and values, alternating."""
    return [part for pair in value.items() for part in pair] if isinstance(value, dict) else list(value)


def pack(value: object, share: Callable[[torch.Tensor], Handle | Lent | Room | None] | None = None) -> Value:
    """Return a Python value in the form that is sent, its tensors with their strides. share puts a tensor where the
    worker can map it. Tensors for which it returns None, and all tensors without it, are sent as bytes.

    Raises TypeError for a value that has no such form.
    """
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg()
        shared = share(value) if share is not None else None
        if shared is not None:
            return shared
        return Array(name_of(value.dtype), list(value.shape), raw(view_memory(value).cpu()), find_strides(value))
    if isinstance(value, (list, tuple, dict)):  # torch.Size and named tuples become plain tuples
        kind = "list" if isinstance(value, list) else "tuple" if isinstance(value, tuple) else "dict"
        return Items(kind, [pack(item, share) for item in _parts(cast(Nest, value))])
    if isinstance(value, (torch.dtype, torch.device)):
        return Named("dtype" if isinstance(value, torch.dtype) else "device", str(value).removeprefix("torch."))
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a {type(value).__name__} cannot be passed to a submission")


def unpack(
    value: Value,
    attach: Callable[[Handle], torch.Tensor] | None = None,
    borrow: Callable[[Lent], torch.Tensor] | None = None,
) -> Any:
    """Return the Python value that was packed; its tensors are newly allocated, or mapped by `attach` or `borrow`."""
    if isinstance(value, Array):
        if value.strides is None:
            return unraw(value.dtype, value.shape, value.data)
        covered = count_covered(value.shape, value.strides)
        return lay_out(unraw(value.dtype, [covered], value.data), value.shape, value.strides)
    if isinstance(value, Handle):
        if attach is None:
            raise ChannelError("a GPU tensor was sent to a process without a GPU")
        return attach(value)
    if isinstance(value, Lent):
        if borrow is None:
            raise ChannelError("a tensor was lent to a process that cannot map it")
        return borrow(value)
    if isinstance(value, Named):
        return getattr(torch, value.name) if value.kind == "dtype" else torch.device(value.name)
    if isinstance(value, Items):
        items = [unpack(item, attach, borrow) for item in value.values]
        if value.kind == "dict":
            return dict(zip(items[::2], items[1::2]))
        return items if value.kind == "list" else tuple(items)
    return value


# --- what forward returns --------------------------------------------------------------------------------------------


def tensors(output: object, device: str = "cpu") -> list[object]:
    """Return what of an output is compared, by the same rule for Model and ModelNew: its leaves in order, without None.

    A number becomes a tensor on the device; any other leaf that is not a tensor stays as it is.
    """
    found = [leaf for leaf in leaves(output) if leaf is not None]
    return [torch.tensor(one, device=device) if isinstance(one, (bool, int, float, complex)) else one for one in found]


def leaves(output: object, depth: int = 0) -> list[object]:
    """Return the leaves of nested tuples, lists and dicts, at most MAX_LEAVES of them."""
    if isinstance(output, dict):
        output = list(cast(dict[object, object], output).values())
    if isinstance(output, (tuple, list)) and depth < MAX_DEPTH:
        items = cast("list[object] | tuple[object, ...]", output)[:MAX_LEAVES]
        return [leaf for item in items for leaf in leaves(item, depth + 1)][:MAX_LEAVES]
    return [output]


def kind_of(output: object) -> str:
    """Name what forward returned: "Tensor", "tuple of 2 tensors", or its type."""
    if isinstance(output, torch.Tensor):
        return "sparse tensor" if output.layout is not torch.strided else "Tensor"
    name = type(output).__name__[:100].encode("utf-8", "replace").decode()
    if isinstance(output, (tuple, list, dict)):
        found = leaves(cast(object, output))
        kind = "tensor" if all(isinstance(leaf, torch.Tensor) for leaf in found) else "thing"
        return f"{name} of {len(found)} {kind}{'' if len(found) == 1 else 's'}"
    return name
