"""How precise an answer must be: PRECISION, TF32's rounding and the longest sum of a model."""

import os
import subprocess
import sys
import textwrap

import pytest
import torch

from grader.paths import KERNELS_REF
from grader.problems import operators, problem
from grader.problems.cases import Case, ProblemError
from tests.grader.problems.linear import LINEAR

TF32 = """
    PRECISION = "tf32"
"""


def test_a_file_says_how_precise_an_answer_must_be(write):
    """Do problem, cases and instances have PRECISION, "fp32" where a file has none, and may --set change it?"""
    for text, overrides, expected in (
        (LINEAR, {}, "fp32"),
        (LINEAR + TF32, {}, "tf32"),
        (LINEAR + TF32, {"PRECISION": "'fp32'"}, "fp32"),
    ):
        read = problem.read(write(text), overrides)
        assert {read.precision, read.full().precision, *(case.precision for case in read.cases())} == {expected}
        assert read.instantiate(Case("file"), seed=1).precision == expected


def test_an_unknown_precision_is_refused(write):
    """Is an unknown class refused with a list of the known ones?"""
    with pytest.raises(ProblemError, match="PRECISION is 'bf16', not one of fp32, tf32"):
        problem.read(write(LINEAR + TF32.replace("tf32", "bf16")))


def test_a_file_names_the_dimensions_of_its_outputs(write):
    """Do problem and cases have AXES, nothing where a file has none, and is refused what is no list of names?"""
    plain = textwrap.dedent(LINEAR)
    read = problem.read(write(f'{plain}\nAXES = ("item", "feature")\n'))
    assert {read.axes, read.full().axes, *(case.axes for case in read.cases())} == {("item", "feature")}
    assert problem.read(write(plain)).axes == ()
    for wrong in ('"item"', "3", '["item", ""]', "[1, 2]"):
        with pytest.raises(ProblemError, match="AXES is no list of names"):
            problem.read(write(f"{plain}\nAXES = {wrong}\n"))


def test_eager_of_a_tf32_problem_has_rounded_factors(write):
    """Are both factors of a product rounded to TF32, what is added and what follows not, and the float64 result not at
    all?
    """
    made = problem.read(write(LINEAR + TF32)).instantiate(Case("file"), seed=1)
    plain = problem.read(write(LINEAR)).instantiate(Case("file"), seed=1)
    (x,), layer, gain = made.inputs, made.model.layer, made.model.get_parameter("gain")
    assert isinstance(layer, torch.nn.Linear)
    products = operators.tf32(x).double() @ operators.tf32(layer.weight.detach()).double().T
    expected = torch.relu(products + layer.bias.detach()) * gain.detach()
    (eager,), (exact,) = made.eager(), made.expected()
    assert torch.allclose(eager.double(), expected, rtol=1e-6, atol=1e-7)
    assert torch.equal(exact, plain.expected()[0])
    assert 1e-5 < (eager - exact).abs().max() < 2e-3 and (plain.eager()[0] - exact).abs().max() < 1e-6


def test_tf32_is_the_nearest_number_of_11_bits():
    """Does no other multiple of the last bit lie nearer, in either sign, and are infinity, NaN and doubles kept?"""
    x = torch.randn(1000, generator=torch.Generator().manual_seed(1)).double()
    bit = torch.ldexp(torch.ones_like(x), torch.frexp(x).exponent - 11)
    got = operators.tf32(x.float()).double()
    assert torch.equal(got / bit, (got / bit).round()) and ((got - x).abs() <= 0.5001 * bit).all() and (got != x).any()
    assert operators.tf32(torch.tensor([1 + 2.0**-11])).item() == 1 + 2.0**-10, "halves go away from zero"
    odd = torch.tensor([float("inf"), float("nan"), -float("inf")])
    assert torch.equal(operators.tf32(odd).nan_to_num(7), odd.nan_to_num(7)) and torch.equal(operators.tf32(x), x)


def test_reduction_is_the_longest_sum(write):
    """Is the number of terms that of the longest sum: a dot product, a normalisation's group, a mean?"""
    count = problem.read(write(LINEAR)).instantiate(Case("any", {"inner": 40}), 0).reduction()
    assert count == 40
    read = problem.read(KERNELS_REF / "conv_groupnorm_logsumexp" / "model.py")
    sizes: dict[str, object] = {
        "batch_size": 2,
        "in_channels": 4,
        "out_channels": 8,
        "groups": 2,
        "height": 12,
        "width": 7,
    }
    assert read.instantiate(Case("any", sizes), 0).reduction() == (8 // 2) * 10 * 5


@pytest.mark.parametrize(
    ("name", "picks"),
    [("scale_maxpool_clamp", True), ("conv_groupnorm_maxpool", True), ("groupnorm", False), ("matmul", False)],
)
def test_watch_sees_whether_a_maximum_goes_on(name, picks):
    """Is a maximum neither a sum, nor missed?"""
    read = problem.read(KERNELS_REF / name / "model.py")
    watch = read.instantiate(read.cases()[-1], 0).watched()[1]
    assert watch.picks is picks and (watch.reduction == 1) == (name == "scale_maxpool_clamp")


@pytest.mark.slow
@pytest.mark.parametrize("name", problem.names())
def test_declared_reductions_are_what_the_model_sums(name):
    """Do the problems' own figures agree with what their models are seen to do?"""
    read = problem.read(KERNELS_REF / name / "model.py")
    for case in read.cases():
        seen = read.instantiate(case, 0).reduction()
        assert case.reduction >= seen // 2, (case.name, case.reduction, seen)


@pytest.mark.slow
def test_watching_imports_no_compiler():
    """Is what a model does counted without torch's compiler, whose import takes seconds?"""
    program = """
import sys, torch
from grader.problems.operators import Tf32, Watch
with Watch() as watch, Tf32():
    torch.nn.functional.group_norm(torch.rand(2, 4, 3), 2)
assert watch.operations
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": str(KERNELS_REF.parent)},
    )
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(("columns", "along", "terms"), [(9, 1, 9), (9, 0, 3), (1, 1, 1), (1, 0, 3)])
def test_a_softmax_sums_along_its_dimension(columns, along, terms):
    """Is the longest sum that of the dimension, forward and backward, and not the longest side?"""
    x = torch.rand(3, columns).requires_grad_()
    for operator in (torch.softmax, torch.cumsum):
        with operators.Watch() as watch:
            y = operator(x, along)
        assert watch.reduction == terms
    with operators.Watch() as watch:
        torch.softmax(x, along).backward(torch.ones_like(y))
    assert watch.reduction == terms


def test_a_problem_of_16_bits_takes_inputs_as_exact(write):
    """Is the noise of a file of precision "fp16" what float32's rounding makes, and not that of its 16-bit inputs?"""
    text = LINEAR + TF32.replace("tf32", "fp16")
    instance = problem.read(write(text)).instantiate(Case("file"), seed=1)
    plain = problem.read(write(LINEAR)).instantiate(Case("file"), seed=1)
    instance.inputs = [x.half() for x in instance.inputs]
    assert instance._unit() == plain._unit() == 2.0**-24
    plain.inputs = [x.half() for x in plain.inputs]
    assert plain._unit() == 2.0**-11
