"""How inputs get to the worker and outputs come back: as bytes on the CPU, in memory of the judge's on a GPU."""

from __future__ import annotations

import torch

from grader import channel
from grader.channel import Gradients, Handle, Run, Shared, Value

MARK = 0x7FC67FC6  # a NaN, four bytes: what stands in an output buffer that nobody has written


class Bytes:
    """The CPU's way: every tensor is copied through the connection."""

    def inputs(self, inputs: list) -> list[Value]:
        """One call's inputs for the wire."""
        return [channel.pack(value) for value in inputs]

    def rooms(self, like: list[torch.Tensor]) -> list[Handle]:
        """No buffers: results travel."""
        return []

    def results(self, run: Run | Gradients, position: int) -> list[torch.Tensor | None]:
        """The tensors that a run returned; None for one that did not travel. ChannelError if one makes no sense.

        position: which call it was, counted from the last, which is -1.
        """
        return [None if r is None or r.data is None else channel.unraw(r.dtype, r.shape, r.data) for r in run.results]

    def modified(self, run: Run, position: int) -> list[int]:
        """Which inputs the run changed."""
        return run.modified

    def free(self) -> None:
        """Nothing to free."""


class GpuMemory:
    """The GPU's way: inputs and output buffers are the judge's own memory, which the worker maps."""

    def __init__(self):
        self.given: list[list[tuple[object, object]]] = []  # for each call: (what we sent, the original)
        self.room: list[list[Shared]] = []
        self.owned: list[Shared] = []

    def share(self, tensor: torch.Tensor) -> Shared:
        """A copy of a tensor that a worker can map."""
        made = Shared(tensor.dtype, tensor.shape)
        made.tensor.copy_(tensor)
        self.owned.append(made)
        return made

    def inputs(self, inputs: list) -> list[Value]:
        """One call's inputs for the wire."""
        pairs = [(self.share(v) if isinstance(v, torch.Tensor) else v, v) for v in inputs]
        self.given.append(pairs)
        torch.cuda.synchronize()
        return [sent.handle if isinstance(sent, Shared) else channel.pack(sent) for sent, _ in pairs]

    def rooms(self, like: list[torch.Tensor]) -> list[Handle]:
        """A buffer for each output, full of NaNs."""
        made = [Shared(tensor.dtype, tensor.shape) for tensor in like]
        for one in made:
            four = one.tensor.numel() * one.tensor.element_size() // 4 * 4
            one.tensor.view(-1).view(torch.uint8)[:four].view(torch.int32).fill_(MARK)
        torch.cuda.synchronize()
        self.owned += made
        self.room.append(made)
        return [one.handle for one in made]

    def results(self, run: Run | Gradients, position: int) -> list[torch.Tensor | None]:
        """The buffers, where the result had the right shape and dtype to be put there; else None."""
        found: list[torch.Tensor | None] = []
        for number, result in enumerate(run.results):
            room = self.room[position][number] if number < len(self.room[position]) else None
            fits = room and result and (room.handle.dtype, room.handle.shape) == (result.dtype, result.shape)
            found.append(room.tensor if fits and result.device == "cuda" else None)
        return found

    def modified(self, run: Run, position: int) -> list[int]:
        """Which inputs the run changed, bit by bit."""
        return [
            number
            for number, (sent, original) in enumerate(self.given[position])
            if isinstance(sent, Shared) and not same_bits(sent.tensor, original)
        ]

    def free(self) -> None:
        """Give all of it back; the worker has let go of it or is dead."""
        for one in self.owned:
            one.free()
        self.given, self.room, self.owned = [], [], []


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bits (NaN equals itself here)."""
    if not a.numel():
        return True
    a, b = (t.detach().contiguous().view(-1).view(torch.uint8) for t in (a, b))
    step = 1 << 30  # compare a GB at a time: no temporary as large as the tensor
    return all(torch.equal(a[i : i + step], b[i : i + step]) for i in range(0, a.numel(), step))
