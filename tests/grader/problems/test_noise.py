"""Is the noise of results and gradients right where these share memory?"""

import pytest
import torch

from grader.problems import problem
from grader.problems.cases import Case
from grader.problems.values import measure_distance

SUM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, y):
        return {result}
batch_size, width = 4, 40
def get_inputs():
    return [torch.randn(batch_size, width), torch.randn(batch_size, width)]
def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("result", ["(x + y).sum()", "x + y", "(x + y).mean(1)", "(x - y).sum(0).expand(3, -1)"])
def test_noise_of_gradients_that_share_memory(write, result):
    """Is the noise of each gradient that of one rounding, though one is a view of a single number, or another's too?"""
    instance = problem.read(write(SUM.format(result=result))).instantiate(Case("any"), 1)
    upstream = [torch.randn(one.shape) for one in instance.eager()]
    expected = instance.expected_gradients(upstream)
    noise = instance.gradient_noise(upstream, expected)
    assert all(one is not None and not one.isnan().any() for one in noise)
    for one, right in zip(noise, expected, strict=True):
        assert one.shape == right.shape and 0 < one.max() <= 1e-6 * right.abs().max()


def test_noise_of_an_output_that_is_returned_twice(write):
    """Is the noise of the second the same as that of the first?"""
    text = SUM.format(result="((z := x * y.sum()), z.flatten(), z[:1].expand(3, -1))")
    instance = problem.read(write(text)).instantiate(Case("any"), 1)
    first, second, third = instance.noise(instance.expected())
    assert torch.equal(first.flatten(), second) and torch.equal(first[:1].expand(3, -1), third)
    assert 0 < first.max() < 1e-4


def test_distance_in_pieces_is_the_distance(monkeypatch):
    """Is each piece compared with its counterpart, and is neither tensor changed?"""
    monkeypatch.setattr("grader.problems.values.MOST_COMPARED", 10)
    a, b = torch.randn(7, 4, dtype=torch.double), torch.randn(7, 4, dtype=torch.double)
    b[3, 1] = float("nan")
    before = b.clone()
    right = (a - b).abs().float()
    right[3, 1] = 0
    assert torch.equal(measure_distance(a, b), right) and torch.equal(b.nan_to_num(7), before.nan_to_num(7))
    assert measure_distance(a.sum(), b[0, 0]).shape == ()
