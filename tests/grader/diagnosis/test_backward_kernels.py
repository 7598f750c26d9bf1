"""Which kernels belong to a backward pass, and which make one gradient: by their launches, names and pointers."""

from pathlib import Path

import pytest

from grader.diagnosis import backward_kernels, source_lines
from grader.source.cpp import Text

ROOT = Path(__file__).resolve().parents[3]
# Every kernel that the gradient depends on, its own and those that make what it reads; None: all of backward's.
MAKERS = {
    ("attention", "q"): {"query_kernel"},
    ("attention", "k"): {"key_kernel"},
    ("attention", "v"): {"value_kernel"},
    ("bias_scale_sigmoid", "x"): {"planes_backward_kernel"},
    ("bias_scale_sigmoid", "bias"): None,
    ("groupnorm", "x"): {"plane_sums_kernel", "group_means_kernel", "gx_kernel"},
    ("scale_maxpool_clamp", "scale"): {"planes_backward_kernel", "channels_kernel"},
    ("conv2d", "x"): {"gx_kernel"},
    ("logsumexp", "x"): None,
    ("matmul", "A"): None,
}
FORWARD_TOO = """
__global__ void __launch_bounds__(32)
turn(const float* in, float* out) { out[threadIdx.x] = -in[threadIdx.x]; }
__global__ void d_turn(const float* in, float* grad_in) { grad_in[threadIdx.x] = -in[threadIdx.x]; }
"""


def read(name: str) -> str:
    return (ROOT / "kernels_ref" / name / "backward.py").read_text(encoding="utf-8")


def kernels_at(source: str, lines: set[int]) -> set[str]:
    text = Text(source)
    return {one.name for one in text.functions.values() if one.kernel and set(text.lines(one)) <= lines}


@pytest.mark.parametrize(("name", "gradient"), MAKERS)
def test_the_kernels_of_a_gradient(name, gradient):
    """Are they those that write it, with those that write what these read, and none where that is every one?"""
    source = read(name)
    found = backward_kernels.gradient_lines(source, gradient)
    assert kernels_at(source, found) == (MAKERS[name, gradient] or set())
    assert found <= backward_kernels.backward_lines(source)


@pytest.mark.parametrize("name", ["attention", "groupnorm", "conv2d"])
def test_forwards_kernels_are_none_of_backwards(name):
    """Is no kernel of the forward pass among those of the backward pass, whatever its pointers are called?"""
    source = read(name)
    found = kernels_at(source, backward_kernels.backward_lines(source))
    forward = kernels_at(source, set(range(1, source.count("\n")))) - found
    assert found and forward and not any("backward" in one for one in forward)


def test_names_where_no_function_of_autograd_tells():
    """Without a torch.autograd.Function, are kernels of backward known by their pointers, and is a bound of the launch
    no obstacle?
    """
    lines = backward_kernels.backward_lines(FORWARD_TOO)
    assert kernels_at(FORWARD_TOO, lines) == {"d_turn"}
    assert source_lines.kernel_lines(FORWARD_TOO) == {2, 3, 4}
    assert source_lines.result_stores(FORWARD_TOO) == [3, 4]
    assert not backward_kernels.gradient_lines(FORWARD_TOO, "in") and not backward_kernels.backward_lines("def f(:")
