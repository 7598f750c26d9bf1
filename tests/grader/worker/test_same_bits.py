"""Are two tensors compared bit for bit, whatever their size, dtype and place in memory?"""

import pytest
import torch

from grader.worker.exchange import same_bits


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float32, torch.float64, torch.bool, torch.complex64])
@pytest.mark.parametrize("count", [1, 7, 8, 33])
@pytest.mark.parametrize("start", [0, 1, 3])
def test_one_other_element_is_seen(dtype, count, start):
    """Is each element looked at, also in tensors that no long words fit?"""
    whole = (torch.arange(start + count) % 2).to(dtype)
    a, b = whole[start:], whole[start:].clone()
    assert same_bits(a, b)
    for place in {0, count // 2, count - 1}:
        c = b.clone()
        c[place] = 1 - c[place].to(torch.float32).item() if dtype is not torch.complex64 else 7
        assert not same_bits(a, c)


def test_bits_are_compared_not_values():
    nan, zero = torch.tensor([float("nan")] * 4), torch.zeros(4)
    assert same_bits(nan, nan.clone()) and not same_bits(zero, -zero)
    assert same_bits(torch.empty(0), torch.empty(0))
    wide = torch.rand(6, 5)
    assert same_bits(wide.T, wide.T.clone()) and not same_bits(wide.T, wide.T.flip(0))
