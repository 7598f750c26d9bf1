"""Does Watch count the multiply-adds and the terms of convolutions?"""

import pytest
import torch

from grader.problems.operators import Watch

TRANSPOSED = [
    (1, {"stride": 2}),
    (2, {"stride": 2}),
    (2, {"stride": (1, 3), "groups": 2}),
    (2, {"stride": 2, "dilation": 2}),
    (3, {"stride": 2, "dilation": (1, 3, 2)}),
    (2, {"groups": 4}),
]


def make_ones(dims: int, size: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    """Return an input of 8 channels and filters that turn them into 3 channels a group, all of ones."""
    return torch.ones(2, 8, *[size] * dims), torch.ones(8, 3, *[3] * dims)


@pytest.mark.parametrize(("dims", "options"), TRANSPOSED)
def test_products_and_terms_of_a_transposed_convolution(dims, options):
    """Are they those that ones add up to, of which each multiply-add contributes 1 to an output?"""
    x, weight = make_ones(dims)
    with Watch() as watch:
        made = getattr(torch.nn.functional, f"conv_transpose{dims}d")(x, weight, **options)
    assert (watch.work, watch.reduction) == (made.sum(), made.max())


@pytest.mark.parametrize("groups", [1, 4])
def test_products_and_terms_of_a_convolution(groups):
    """Are those of a plain convolution counted in the same way?"""
    x, weight = torch.ones(2, 8, 7, 7), torch.ones(12, 8 // groups, 3, 3)
    with Watch() as watch:
        made = torch.nn.functional.conv2d(x, weight, groups=groups)
    assert (watch.work, watch.reduction) == (made.sum(), made.max())


@pytest.mark.parametrize("bias", [False, True])
def test_terms_of_the_gradients_of_a_transposed_convolution(bias):
    """Is the longest sum of the backward pass that of its largest gradient, if all factors are ones?"""
    x, weight = (one.requires_grad_() for one in make_ones(2))
    wanted = [x, weight, *([torch.ones(3, requires_grad=True)] * bias)]
    made = torch.nn.functional.conv_transpose2d(*wanted, stride=2)
    with Watch() as watch:
        gradients = torch.autograd.grad(made, wanted, torch.ones_like(made))
    assert watch.reduction == max(one.max() for one in gradients)
