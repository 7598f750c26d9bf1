"""Exchanges inputs and outputs with the worker: as bytes on the CPU, in GPU memory that the judge owns on a GPU."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from grader.worker import protocol
from grader.worker.layout import copy_values_into, find_strides, view_memory
from grader.worker.protocol import Gradients, Handle, Lent, Run, Shared, Value

if TYPE_CHECKING:
    from grader.worker.client import Client
    from simt.runtime.monitor import Monitor, Write

POISON = 0x7FC67FC6  # a NaN, four bytes: the content of an output buffer before the worker writes it


class Bytes:
    """Exchange on the CPU: every tensor is copied through the connection."""

    def inputs(self, inputs: list) -> list[Value]:
        """Return one call's inputs in the form that is sent."""
        return [protocol.pack(value) for value in inputs]

    def rooms(self, like: list[torch.Tensor]) -> list[Handle]:
        """Return no buffers: results are sent as bytes."""
        return []

    def results(self, run: Run | Gradients, position: int) -> list[torch.Tensor | None]:
        """Return the tensors of a run; None for one that was not sent. Raises ChannelError for an impossible one.

        position: of the call, counted from the last, which is -1.
        """
        return [None if r is None or r.data is None else protocol.unraw(r.dtype, r.shape, r.data) for r in run.results]

    def modified(self, run: Run, position: int) -> list[int]:
        """Return the indices of the inputs that the run changed."""
        return run.modified

    def free(self) -> None:
        """Do nothing: there is no memory to free."""


class LentMemory(Bytes):
    """Exchange on the CPU where simt's runtime obeys the judge: inputs lie in the judge's memory, which the worker can
    only read, so that the runtime reports each write. Results are copied through the connection.

    owners: for the offset of each tensor lent since begin(), the number of the call of inputs() and of the input.
    """

    def __init__(self, client: Client, monitor: Monitor):
        self.client, self.monitor = client, monitor
        self.guard: str | None = None
        self.owners: dict[int, tuple[int, int]] = {}
        self.calls = 0

    def begin(self, guard: str | None) -> None:
        """Take back what was lent. guard: which end of each input lies at an inaccessible page."""
        self.monitor.take_back()
        self.guard, self.owners, self.calls = guard, {}, 0

    def inputs(self, inputs: list) -> list[Value]:
        """Return one call's inputs in the form that is sent."""
        self.calls += 1

        def lend(tensor: torch.Tensor, number: int) -> Lent | None:
            offset = self.monitor.lend(protocol.raw(view_memory(tensor)), self.guard)
            if offset is None:
                return None
            self.owners[offset] = self.calls - 1, number
            return Lent(protocol.name_of(tensor.dtype), list(tensor.shape), offset, find_strides(tensor))

        return [protocol.pack(value, functools.partial(lend, number=n)) for n, value in enumerate(inputs)]

    def writes(self, call: int) -> dict[int, Write]:
        """Return what the last command wrote to first, by the number of the input in a call of inputs()."""
        found = ((self.owners.get(write.offset), write) for write in self.client.report.writes)
        return {owner[1]: write for owner, write in found if owner is not None and owner[0] == call}

    def modified(self, run: Run | Gradients, position: int) -> list[int]:
        """Return the indices of the inputs that the run wrote to."""
        return sorted({*run.modified, *self.writes(self.calls + position)})


class GpuMemory:
    """Exchange on a GPU: inputs and output buffers are the judge's memory, which the worker maps."""

    device = "cuda"

    def __init__(self):
        self.given: list[list[tuple[Any, Any]]] = []  # for each call: (what was sent, the original)
        self.room: list[list[Shared]] = []
        self.owned: list[Shared] = []

    def share(self, tensor: torch.Tensor) -> Shared:
        """Return a copy of a tensor that a worker can map."""
        made = Shared(tensor.dtype, tensor.shape, find_strides(tensor))
        copy_values_into(made.tensor, tensor)
        self.owned.append(made)
        return made

    def inputs(self, inputs: list) -> list[Value]:
        """Return one call's inputs in the form that is sent."""
        pairs = [(self.share(v) if isinstance(v, torch.Tensor) else v, v) for v in inputs]
        self.given.append(pairs)
        torch.cuda.synchronize()
        return [sent.handle if isinstance(sent, Shared) else protocol.pack(sent) for sent, _ in pairs]

    def rooms(self, like: list[torch.Tensor]) -> list[Handle]:
        """Return a buffer for each output, filled with NaNs."""
        made = [Shared(tensor.dtype, tensor.shape) for tensor in like]
        for one in made:
            four = one.tensor.numel() * one.tensor.element_size() // 4 * 4
            one.tensor.view(-1).view(torch.uint8)[:four].view(torch.int32).fill_(POISON)
        torch.cuda.synchronize()
        self.owned += made
        self.room.append(made)
        return [one.handle for one in made]

    def results(self, run: Run | Gradients, position: int) -> list[torch.Tensor | None]:
        """Return the buffers; None where the result had another shape or dtype and so was not copied there."""
        found: list[torch.Tensor | None] = []
        for number, result in enumerate(run.results):
            room = self.room[position][number] if number < len(self.room[position]) else None
            usable = room and result and (room.handle.dtype, room.handle.shape) == (result.dtype, result.shape)
            found.append(room.tensor if room and result and usable and result.device == "cuda" else None)
        return found

    def modified(self, run: Run, position: int) -> list[int]:
        """Return the indices of the inputs that the run changed, compared bit by bit."""
        return [
            number
            for number, (sent, original) in enumerate(self.given[position])
            if isinstance(sent, Shared) and not same_bits(sent.tensor, original)
        ]

    def free(self) -> None:
        """Free all of it. The worker must have unmapped it or be dead."""
        for one in self.owned:
            one.free()
        self.given, self.room, self.owned = [], [], []


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors of one shape and dtype hold the same bits (NaN equals itself here)."""
    if not a.numel():
        return True
    a, b = (t.detach().contiguous().view(-1).view(torch.uint8) for t in (a, b))
    word = next(dtype for dtype in _WORDS if _are_words(a, dtype) and _are_words(b, dtype))
    a, b = a.view(word), b.view(word)
    step = (1 << 30) // word.itemsize  # compare a GB at a time: no temporary as large as the tensor
    return all(torch.equal(a[i : i + step], b[i : i + step]) for i in range(0, a.numel(), step))


_WORDS = (torch.int64, torch.int32, torch.int16, torch.uint8)  # a GPU compares long words several times as fast


def _are_words(of_bytes: torch.Tensor, dtype: torch.dtype) -> bool:
    size = dtype.itemsize
    return of_bytes.numel() % size == of_bytes.storage_offset() % size == of_bytes.data_ptr() % size == 0
