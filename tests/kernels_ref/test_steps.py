"""Is every step of a ladder right, clean of the checks, and faster than the one before it?"""

import ast
import contextlib
import importlib.util
import itertools
import json
import sys

import pytest
import torch

import simt
from grader import problem
from grader.cases import Case
from simt.model import Work, predict
from tests.kernels_ref.test_solutions import DEVICE, KERNELS_REF, ON_CPU, SEED, error_of, tolerance

STEPS = {f"{file.parent.parent.name}/{file.stem}": file for file in sorted(KERNELS_REF.glob("*/steps/*.py"))}
LADDERS = {name: list(steps) for name, steps in itertools.groupby(STEPS, key=lambda step: step.split("/")[0])}

BENCHMARKS = KERNELS_REF.parent / "benchmarks"
COUNTED = json.loads((BENCHMARKS / "data" / "model.json").read_text())["steps"]
MEASURED = BENCHMARKS / "data" / "steps.json"

_modules = {}


def load(step):
    """The step as a module, built once."""
    if step not in _modules:
        spec = importlib.util.spec_from_file_location("step_" + step.replace("/", "_"), STEPS[step])
        _modules[step] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(_modules[step])
    return _modules[step]


def cases(step):
    return problem.find(STEPS[step]).cases()


def instance_of(step, case):
    """The step's problem at a case, a Case or its name."""
    case = case if not isinstance(case, str) else next(found for found in cases(step) if found.name == case)
    return problem.find(STEPS[step]).instantiate(case, SEED, DEVICE)


def solve(step, instance, **options):
    """(ModelNew with the instance's weights, its output), run under simt with these options if it runs on a CPU."""
    with torch.no_grad(), simt.run(**options) if ON_CPU else contextlib.nullcontext():
        model = load(step).ModelNew(*instance.init_args).to(DEVICE)
        model.load_state_dict(instance.model.state_dict(), strict=True)
        inputs = [x.clone() for x in instance.inputs]
        got = model(*inputs)
        assert all(torch.equal(x, y) for x, y in zip(inputs, instance.inputs)), "an input was modified"
        return model, got


def predicted(step):
    """Seconds that the time model gives the step's kernels on an H200."""
    rows = [row for row in COUNTED if row["group"] == step]
    assert rows, f"{step} has not been counted: python benchmarks/model.py --steps"
    return sum(row["launches"] * predict(Work(**row["work"]), "H200").seconds for row in rows)


# --- right -----------------------------------------------------------------------------------------------------------

CASES = [(step, case) for step in STEPS for case in cases(step)]


@pytest.mark.parametrize(("step", "case"), CASES, ids=[f"{step}: {case.name}" for step, case in CASES])
def test_computes_what_the_model_computes(step, case):
    """With random weights, is the result Model's in float64, reading and writing within bounds in both directions?"""
    instance = instance_of(step, case)
    (expected,) = instance.expected()
    allowed = tolerance(instance, expected)
    for options in ({"guard": "end"}, {"guard": "front", "schedule": "reverse"}) if ON_CPU else ({},):
        assert error_of(solve(step, instance, **options)[1], expected) <= allowed


@pytest.mark.parametrize("step", STEPS)
def test_result_does_not_depend_on_the_order_of_threads(step):
    """Is the result the same to the last bit when threads and blocks take turns in other orders (on a GPU: again)?"""
    instance = instance_of(step, "prime sizes")
    _, first = solve(step, instance)
    for seed in (1, 2):
        assert torch.equal(solve(step, instance, schedule=seed)[1], first)


@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith(("conv2d/", "im2col_conv/"))])
@pytest.mark.parametrize("kernel_size", [3, (2, 5)])
def test_more_channels_than_a_block_holds(step, kernel_size):
    """Are sums right that are made in several rounds, and output channels of several groups, the last one ragged?"""
    sizes = {"batch_size": 2, "in_channels": 19, "out_channels": 71, "height": 21, "width": 37, "kernel_size": kernel_size}
    instance = instance_of(step, Case("many channels", sizes))
    (expected,) = instance.expected()
    assert error_of(solve(step, instance)[1], expected) <= tolerance(instance, expected)


@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("groupnorm/")])
def test_groups_of_several_parts(step):
    """Are groups right that several blocks share, with and without float4, where a channel ends inside a part?"""
    for width in (45, 48):
        sizes = {"batch_size": 3, "features": 24, "num_groups": 3, "dim1": 101, "dim2": width}
        instance = instance_of(step, Case("several parts", sizes))
        (expected,) = instance.expected()
        assert error_of(solve(step, instance)[1], expected) <= tolerance(instance, expected)


@pytest.mark.parametrize("step", STEPS)
def test_an_input_may_begin_anywhere(step):
    """Is the result the same where x begins one float past a multiple of 16 bytes, so that float4 may not be used?"""
    instance = instance_of(step, "power of two")
    model, aligned = solve(step, instance)
    (x,) = instance.inputs
    moved = torch.empty(x.numel() + 1, device=DEVICE)[1:].view(x.shape).copy_(x)
    assert moved.is_contiguous() and moved.data_ptr() % 16 == 4
    with torch.no_grad():
        torch.testing.assert_close(model(moved), aligned, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("logsumexp/")])
def test_logsumexp_of_infinities(step):
    """Do infinities give what torch.logsumexp gives, and not NaN, pixel by pixel and in a float4?"""
    inf = float("inf")
    x = torch.tensor([[-inf, -inf], [inf, 1.0], [-inf, 2.0], [inf, -inf], [1.0, inf], [inf, inf], [2.0, -inf], [0.0, 0.0]], device=DEVICE)
    for x in (x.reshape(8, 2, 1, 1), x.T.reshape(1, 2, 2, 4)):
        torch.testing.assert_close(load(step).ModelNew()(x), torch.logsumexp(x, 1, keepdim=True))


@pytest.mark.parametrize("step", STEPS)
def test_an_empty_batch_gives_an_empty_result(step):
    """Do no images give no images, instead of a launch of no blocks?"""
    instance = instance_of(step, "prime sizes")
    model, got = solve(step, instance)
    with torch.no_grad():
        assert model(instance.inputs[0][:0]).shape == (0, *got.shape[1:])


@pytest.mark.slow
@pytest.mark.skipif(not ON_CPU, reason="kernels that nvcc built have no checks")
@pytest.mark.parametrize("step", STEPS)
def test_no_check_finds_anything(step):
    """Is the step free of races, unwritten memory, bad barriers and misaligned access, where x is aligned and where not?"""
    for case in ("prime sizes", "power of two"):
        instance = instance_of(step, case)
        (x,) = instance.inputs
        with simt.check() as report, torch.no_grad():
            model = load(step).ModelNew(*instance.init_args)
            model.load_state_dict(instance.model.state_dict())
            for start in (0, 1):
                model(torch.empty(x.numel() + start)[start:].view(x.shape).copy_(x))
        assert report.findings == []


@pytest.mark.gpu
@pytest.mark.parametrize("step", STEPS)
def test_full_size(step):
    """At KernelBench's size, are the first, a middle and the last image right? (Images do not depend on each other.)"""
    instance = problem.find(STEPS[step]).instantiate(problem.find(STEPS[step]).full(), SEED, DEVICE)
    (x,) = instance.inputs
    _, got = solve(step, instance)
    for image in (0, len(x) // 2, len(x) - 1):
        instance.inputs[:] = [x[image : image + 1]]
        (expected,) = instance.expected()
        assert error_of(got[image : image + 1], expected) <= tolerance(instance, expected)


# --- faster ----------------------------------------------------------------------------------------------------------

NEIGHBOURS = [pair for ladder in LADDERS.values() for pair in itertools.pairwise(ladder)]


@pytest.mark.parametrize(("before", "after"), NEIGHBOURS)
def test_predicted_times_fall(before, after):
    """Does the time model give each step at most 85 % of the time of the one before it?"""
    assert predicted(after) <= 0.85 * predicted(before)


@pytest.mark.parametrize(("before", "after"), NEIGHBOURS)
def test_measured_times_fall(before, after):
    """Was each step faster on an H200 than the one before it?"""
    rows = json.loads(MEASURED.read_text())["steps"] if MEASURED.exists() else {}
    if not {before, after} <= set(rows):
        pytest.skip("not measured yet: python benchmarks/references.py, on a GPU")
    assert rows[after]["ms"] < rows[before]["ms"]


@pytest.mark.parametrize("step", STEPS)
def test_figures_are_of_this_source(step):
    """Were the step's counters, and its measured time, taken from the code that stands here?"""
    sys.path[:0] = [str(BENCHMARKS)]
    try:
        import references
    finally:
        sys.path.remove(str(BENCHMARKS))
    source = references.source(STEPS[step])
    assert {row["source"] for row in COUNTED if row["group"] == step} == {source}
    rows = json.loads(MEASURED.read_text())["steps"] if MEASURED.exists() else {}
    assert step not in rows or rows[step]["source"] == source


# --- read ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LADDERS)
def test_a_ladder_is_numbered(name):
    """Are there three to six steps, numbered from 01 without a gap?"""
    assert 3 <= len(LADDERS[name]) <= 6
    assert [step.split("/")[1][:3] for step in LADDERS[name]] == [f"{i:02}_" for i in range(1, len(LADDERS[name]) + 1)]


@pytest.mark.parametrize("step", STEPS)
def test_a_head_says_what_the_step_is_and_bought(step):
    """Does the head name problem and step, say what changed, and end with what it bought?"""
    name, number = step.split("/")[0], int(step.split("/")[1][:2])
    head = ast.get_docstring(ast.parse(STEPS[step].read_text(encoding="utf-8")))
    title, *body, bought = head.split("\n\n")
    assert title.startswith(f"{name}, step {number}: ")
    assert body and bought.startswith("Bought: ")
    assert number == 1 or body[0].startswith("Before, ")
