"""Stand-ins for memory of a worker on the GPU, which the judge's timing looks at."""

import torch

from grader.judging.timing.inputs import TimedInputs
from grader.worker import protocol
from grader.worker.channel import ChannelError
from grader.worker.device import Device


class Memory:
    """Stands in for a worker's memory: tensors by their handle."""

    def __init__(self, **tensors):
        self.tensors = {name.encode().ljust(64, b"\0"): value for name, value in tensors.items()}

    def view(self, location):
        if location.handle not in self.tensors:
            raise ChannelError("a result lies outside its memory")
        return self.tensors[location.handle]

    def release(self):
        self.tensors.clear()


def at(name: str, tensor: torch.Tensor) -> protocol.Location:
    """Return what a worker would say of a tensor in Memory."""
    dtype = protocol.name_of(tensor.dtype)
    return protocol.Location(dtype, list(tensor.shape), list(tensor.stride()), name.encode().ljust(64, b"\0"), 0)


def make_room(inputs: TimedInputs) -> list[list]:
    """Return what a worker on the CPU makes of the inputs that it is told of."""
    device = Device(gpu=False)
    return [[device.unpack(value) for value in each] for each in inputs.sent]
