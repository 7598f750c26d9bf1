"""What the worker asks of the device that it runs on: simt's options and counters on a CPU, CUDA's on a GPU."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import simt
from grader.worker import protocol
from grader.worker.failures import NAME, bound_line, shorten
from grader.worker.layout import count_covered, lay_out
from grader.worker.messages import MAX_DIMS, MAX_LAUNCHES, MAX_NUMBERED
from simt.runtime import extension, library, torch_device
from simt.toolchain.lines import find_source_lines

# Of larger memory each piece is new, which Linux fills with zeros, and zeros written to it would take time.
MOST_CLEARED = 32 << 20
_UNFILLED = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}


class ClearedAllocations(TorchDispatchMode):
    """Fill tensors of up to MOST_CLEARED bytes with zeros that are created without values, as torch.empty() does.

    Where only some blocks of each launch run, others read what no block has written. The sums of zeros are places that
    exist; those of values that the memory had before lie anywhere.
    """

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        if function.overloadpacket.__name__ in _UNFILLED and not made.is_meta:
            storage = made.untyped_storage()
            if 0 < storage.nbytes() <= MOST_CLEARED:
                ctypes.memset(storage.data_ptr(), 0, storage.nbytes())
        return made


@functools.cache
def has_simt() -> bool:
    """Return whether simt can build here, after building its runtime if it is missing."""
    try:
        simt.warm_up()
    except simt.BuildError:
        return False
    return True


class Device:
    """The CPU or the GPU, and the judge's GPU memory that is mapped into this process."""

    def __init__(self, gpu: bool):
        self.gpu = gpu
        self.mapped = protocol.Mapped()

    def unpack(self, value: protocol.Value) -> Any:
        """Return a value that the judge sent; tensors in its memory are mapped, those it wants room for are new."""
        if isinstance(value, protocol.Room):
            options = {"dtype": protocol.DTYPES[value.dtype], "device": "cuda" if self.gpu else "cpu"}
            if value.strides is None:
                return torch.empty(value.shape, **options)
            return torch.empty_strided(value.shape, value.strides, **options)
        return protocol.unpack(value, self.mapped.attach, borrow)

    def running(
        self,
        schedule: str | int = "forward",
        guard: str | None = None,
        seconds: float = 10.0,
        modeled: str | None = None,
    ) -> contextlib.AbstractContextManager[object]:
        """Return simt's context for these options; an empty one on a GPU, and where no kernel can be built.

        modeled: the GPU whose limits and figures apply, None for the usual one.
        """
        if self.gpu or not has_simt():
            return contextlib.nullcontext()
        return simt.run(schedule=schedule, guard=guard, seconds=seconds, device=modeled)

    def submission(self) -> contextlib.AbstractContextManager[object]:
        """Return the context for the submission's own code: without a GPU, "cuda" means the CPU there."""
        return contextlib.nullcontext() if self.gpu else torch_device.cuda_on_cpu()

    def take_launches(self) -> list[protocol.Launch]:
        """Return the kernels launched since the last call; on a GPU they are not counted."""
        if self.gpu or not has_simt():
            return []
        taken = simt.take_launches()[-MAX_LAUNCHES:]
        return [
            protocol.Launch(shorten(kernel, NAME), grid, block)
            for kernel, grid, block in taken
            if min(*grid, *block) >= 0
        ]

    def synchronise(self) -> None:
        """Wait for the GPU, so that a kernel's error is raised here, even one that the submission never checked."""
        if self.gpu:
            torch.cuda.synchronize()
            error = protocol.last_error()
            if error:
                raise RuntimeError(f"CUDA error: {error}")

    def poison_allocator(self, buffers: list[protocol.Handle]) -> None:
        """On a GPU, leave NaNs in the memory that torch.empty returns next for outputs of these shapes.

        It relies on the allocator's habit of reusing a block of the same size. simt poisons new memory itself.
        """
        poisoned: list[torch.Tensor] = []
        for target in buffers:
            dtype = protocol.DTYPES[target.dtype]
            if dtype.is_floating_point:
                poisoned += [torch.full(target.shape, float("nan"), dtype=dtype, device="cuda") for _ in range(2)]

    def deliver(
        self, tensor: torch.Tensor, buffers: list[protocol.Handle], number: int, max_bytes: int
    ) -> protocol.Result:
        """Describe one output, and copy it into the judge's buffer, or add its bytes if they are not too many."""
        shape = list(tensor.shape)[:MAX_DIMS]  # a tensor of more dimensions is wrong with fewer too
        result = protocol.Result(protocol.name_of(tensor.dtype), shape, tensor.device.type, None)
        if buffers:
            target = buffers[number] if number < len(buffers) else None
            fits = target is not None and (target.dtype, target.shape) == (result.dtype, result.shape)
            if target is not None and fits and tensor.device.type == "cuda":
                self.mapped.attach(target).copy_(tensor)
                self.synchronise()
        elif tensor.dim() <= MAX_DIMS and is_sendable(tensor) and tensor.numel() * tensor.element_size() <= max_bytes:
            result.data = protocol.raw(tensor)
        return result

    def mark_time(self) -> torch.cuda.Event | None:
        """Return an event on the current stream; None without a GPU."""
        if not self.gpu:
            return None
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def locate(self, held: Sequence[Sequence[object]]) -> list[list[protocol.Location | None]]:
        """Return where each tensor lies in the GPU's memory, None for what is no tensor; nothing on a CPU."""
        if not self.gpu:
            return []
        return [[protocol.locate(one) if isinstance(one, torch.Tensor) else None for one in each] for each in held]

    def snapshot(self, value: object) -> bytes | None:
        """Return a CPU tensor's elements; None for other values, and on a GPU, where the judge compares for itself."""
        return protocol.raw(value) if isinstance(value, torch.Tensor) and not self.gpu else None

    def release(self) -> None:
        """Unmap the judge's memory and return what torch has cached: the judge needs the GPU."""
        self.synchronise()
        self.mapped.release()
        if self.gpu:
            torch.cuda.empty_cache()


def borrow(value: protocol.Lent) -> torch.Tensor:
    """Return a tensor in the judge's CPU memory. A write to it is reported, and stays in this process."""
    shape = value.shape if value.strides is None else [count_covered(value.shape, value.strides)]
    memory = extension.load_binder().map_input(value.offset, protocol.DTYPES[value.dtype], tuple(shape))
    return memory if value.strides is None else lay_out(memory, value.shape, value.strides)


def list_written() -> list[protocol.Written]:
    """Return the lines of kernels that wrote to inputs in this command."""
    if not has_simt():
        return []
    places = [(offset, place) for offset, _, _, _, place in library.input_writes() if place]
    lines = find_source_lines([place for _, place in places]) if places else {}
    found = [(offset, lines.get(place)) for offset, place in places]
    return [
        protocol.Written(offset, shorten(at[0], NAME), bound_line(at[1])) for offset, at in found[:MAX_NUMBERED] if at
    ]


def is_sendable(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is dense, on the CPU and of a dtype that can be sent."""
    plain = tensor.layout is torch.strided and protocol.name_of(tensor.dtype) in protocol.DTYPES
    return plain and tensor.device.type == "cpu"
