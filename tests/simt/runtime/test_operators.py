"""Operators of torch in host code: are those that the light header declares torch's own?"""

from collections.abc import Callable

import pytest
import torch

import simt
from simt.toolchain.headers import LIGHT_OPERATORS, choose_header

ONE = "abs exp log mean neg relu rsqrt sigmoid sqrt square sum tanh"
TWO = "bmm matmul maximum minimum mm"
CALLS = {
    **{name: (f"torch::{name}(a)", getattr(torch, name)) for name in ONE.split()},
    **{name: (f"at::{name}(a, b)", getattr(torch, name)) for name in TWO.split()},
    "addmm": ("torch::addmm(a, a, b, 2, 0.5)", lambda a, b: torch.addmm(a, a, b, beta=2, alpha=0.5)),
    "linear": ("torch::linear(a, b) + at::linear(a, b, b[0])", lambda a, b: 2 * (a @ b.T) + b[0]),
    "softmax": ("torch::softmax(a, -1)", lambda a: a.softmax(-1)),
    "log_softmax": ("torch::log_softmax(a, 0, torch::kDouble)", lambda a: a.double().log_softmax(0)),
    "transpose": ("torch::transpose(a, 0, 1)", lambda a: a.T),
}
FURTHER = {
    "sums": ("torch::sum(a, 1) + torch::sum(a, {0}, /*keepdim=*/true)", lambda a: a.sum(1) + a.sum(0, True)),
    "means": ("torch::mean(a, {0, 1}) * at::mean(a, -1, true, torch::kDouble)", lambda a: a.mean() * a.mean(-1, True)),
}


def test_the_light_header_is_chosen_for_its_operators_alone():
    assert set(CALLS) == LIGHT_OPERATORS
    assert choose_header([call for call, _ in (CALLS | FURTHER).values()]) == "prelude"
    assert choose_header(["torch::conv2d(a, b)"]) == "prelude_full"


@pytest.mark.slow
def test_the_operators_are_those_of_torch():
    calls = CALLS | FURTHER
    cuda = "\n".join(f"at::Tensor {name}_(at::Tensor a, at::Tensor b) {{ return {calls[name][0]}; }}" for name in calls)
    cpp = "\n".join(f"at::Tensor {name}_(at::Tensor a, at::Tensor b);" for name in calls)
    module = simt.load_inline("operators", cpp, cuda, functions=[f"{name}_" for name in calls])
    for name, (call, expected) in calls.items():
        compute: Callable[..., torch.Tensor] = expected
        a, b = torch.rand(4, 4) + 0.1, torch.rand(4, 4)
        a, b = (a[None], b[None]) if name == "bmm" else (a, b)
        wanted = compute(a, b) if "b)" in call or "b," in call else compute(a)
        torch.testing.assert_close(getattr(module, f"{name}_")(a, b), wanted, check_dtype=False, msg=name)


def test_names_of_functions_in_the_place_of_other_sources_are_reported():
    """Does a call with its functions in fourth place, as torch before 2.7 took them, get told what to write?"""
    for names in (["f"], "f", {"f": "what f does"}):
        with pytest.raises(ValueError, match=r"Pass the names of your functions as functions=\["):
            simt.load_inline("names", "void f();", "void f() {}", names)
