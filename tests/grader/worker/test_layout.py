"""Does a tensor reach the worker as it lies in memory, whatever its strides?"""

import pytest
import torch

from grader.worker import layout, protocol
from grader.worker.device import Device

LAYOUTS = {
    "row-major": lambda: torch.rand(3, 4),
    "transposed": lambda: torch.rand(4, 3).T,
    "channels last": lambda: torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    "every second column": lambda: torch.rand(3, 8)[:, 1::2],
    "expanded": lambda: torch.rand(3, 1).expand(3, 4),
    "overlapping windows": lambda: torch.rand(9).unfold(0, 4, 2),
    "one column": lambda: torch.rand(1, 5).T,
    "one element": lambda: torch.rand(()),
    "no element": lambda: torch.rand(4, 0).T,
    "complex conjugate": lambda: torch.rand(4, 3, dtype=torch.complex64).T.conj(),
}
layouts = pytest.mark.parametrize("make", LAYOUTS.values(), ids=LAYOUTS)


def is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a, b) and (not a.numel() or a.stride() == b.stride())


@layouts
def test_a_tensor_arrives_with_its_strides(make):
    """Is what is sent as bytes the same tensor on the other side, in memory of its own?"""
    value = make()
    found = protocol.unpack(protocol.pack(value))
    assert is_same(found, value) and not protocol.overlap(found, value)


def test_what_is_repeated_is_sent_once():
    for value, elements in ((torch.rand(3, 1).expand(3, 1000), 3), (torch.rand(4, 3).T, 12)):
        packed = protocol.pack(value)
        assert isinstance(packed, protocol.Array) and len(packed.data) == 4 * elements


@layouts
def test_a_worker_makes_room_with_the_strides(make):
    """Can the judge write a tensor into what a worker allocates for it, so that it is the same there?"""
    value = make().resolve_conj()
    room = protocol.Room(protocol.name_of(value.dtype), list(value.shape), layout.find_strides(value))
    found = Device(gpu=False).unpack(room)
    layout.copy_values_into(found, value)
    assert is_same(found, value)


@layouts
def test_a_change_of_values_keeps_the_strides(make):
    value = make()
    found = layout.change_values(value, lambda values: values * 2)
    assert torch.equal(found, value * 2) and (not value.numel() or found.stride() == value.stride())


def test_values_are_written_across_layouts():
    """Is a copy by position in the tensor, not in memory, where the strides differ?"""
    target, source = torch.zeros(3, 4), torch.rand(4, 3).T
    layout.copy_values_into(target, source)
    assert torch.equal(target, source) and target.is_contiguous()
