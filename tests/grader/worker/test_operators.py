"""Which operators does the watch report as PyTorch's own work?"""

import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F

from grader.worker.operators import watch

LEAST = 8


@torch.library.custom_op("grader_tests::moved", mutates_args=())
def moved(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@torch.library.custom_op("grader_tests::computed", mutates_args=())
def computed(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x)


library = torch.library.Library("grader_tests_too", "DEF")
library.define("nested(Tensor x) -> Tensor")
library.impl("nested", lambda x: computed(x) + 1, "CompositeExplicitAutograd")


def watched(call) -> list[str]:
    """Return the operators that are reported for a call with 4 x 4 numbers."""
    with watch(LEAST, __file__) as seen:
        call(torch.arange(16.0).reshape(4, 4))
    return sorted(seen.lines)


def test_operators_that_compute_are_reported_if_a_tensor_is_large():
    assert watched(lambda x: x * 2) == ["mul"]
    assert watched(lambda x: x[0] * 2) == []


def test_operators_that_move_elements_are_not():
    """Are padding, views in place, copies of views and other moves no work?"""
    assert watched(lambda x: F.pad(x[None, None], (1, 1, 2, 2), mode="reflect")) == []
    assert watched(lambda x: F.pad(x[None, None], (1, 1, 2, 2), mode="replicate")) == []
    assert watched(lambda x: x.clone().t_().unsqueeze_(0).squeeze_(0)) == []
    assert watched(lambda x: torch.ops.aten.permute_copy(x, [1, 0])) == []
    assert watched(lambda x: F.pixel_shuffle(x.view(1, 4, 2, 2), 2)) == []


def test_operators_of_the_submission_are_not_but_those_that_they_call():
    """Is an operator that wraps a kernel no work of PyTorch's, and is one that hides PyTorch's work no way around?"""
    assert watched(moved) == []
    assert watched(computed) == ["relu"]
    assert watched(torch.ops.grader_tests_too.nested) == ["add", "relu"]


def test_an_operator_of_the_submission_keeps_its_gradient():
    """Does the watch leave autograd's work above such an operator alone?"""
    moved.register_autograd(lambda _ctx, gradient: 3 * gradient)
    x = torch.ones(4, 4, requires_grad=True)
    with watch(LEAST, __file__):
        y = moved(x)
    y.sum().backward()
    assert x.grad is not None and torch.equal(x.grad, torch.full((4, 4), 3.0))


@pytest.mark.slow
def test_watching_does_not_load_pytorchs_compiler():
    """Which takes a second, unless the submission has loaded it already?"""
    program = (
        "import sys, torch\nfrom grader.worker.operators import watch\nx = torch.ones(16)\n"
        "with watch(8, 'x') as seen:\n    x * 2\n"
        "assert list(seen.lines) == ['mul'] and 'torch._dynamo' not in sys.modules\n"
        "import torch._dynamo\n"
        "with watch(8, 'x') as seen:\n    torch.compile(lambda x: x * 2, backend='eager')(x)\n"
        "assert list(seen.lines) == ['mul']\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr[-2000:]) == (0, ""), done.stderr
