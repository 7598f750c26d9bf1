"""Tensors against inaccessible pages: does the rest of torch still work beside and after them?"""

import pytest
import torch
import torch.nn.functional as F

import simt

# A kernel of ours is not needed here; a launch's own bounds are tested in test_faults.py.


@pytest.mark.parametrize("guard", ["end", "front"])
def test_torch_itself_works_under_a_guard(guard):
    """Do torch's own operators, oneDNN's with their bare allocations among them, give the same result under a guard?"""
    x, w = torch.randn(3, 5, 13, 19), torch.randn(7, 5, 3, 3)
    expected = F.conv2d(x, w)
    with simt.run(guard=guard):
        inside = F.conv2d(x.clone(), w.clone())
    after = F.conv2d(x, w)
    assert torch.equal(inside, expected) and torch.equal(after, expected)


def test_new_memory_holds_the_mark():
    """Does memory that nobody wrote show as such, and only under a guard's run?"""
    with simt.run(guard="end"):
        bits = torch.empty(1000).view(torch.int32)
    assert (bits == simt.GLOBAL_MARK).all()


def test_a_guarded_tensor_outlives_its_run():
    """Can a tensor made under a guard be used and freed after the run?"""
    with simt.run(guard="front"):
        kept = torch.arange(5000.0)
    assert kept.sum() == 5000 * 4999 / 2
    del kept
    assert torch.zeros(5000).sum() == 0
