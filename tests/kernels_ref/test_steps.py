"""Is every step of a ladder right, clean of the checks, and faster than the one before it?"""

import ast
import contextlib
import importlib.util
import itertools
import json

import pytest
import torch

import simt
from benchmarks import references
from grader.problems import problem
from grader.problems.cases import Case
from simt.counting.time_model import Work, predict
from tests.kernels_ref.test_solutions import (
    DEVICE,
    KERNELS_REF,
    ON_CPU,
    SEED,
    awkward_rows,
    awkward_windows,
    cut_like,
    dtype_of,
    error_of,
    held_at_full_size,
    tolerance,
)
from tests.sample import sample

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
        assert spec is not None
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
        assert all(torch.allclose(x, y, rtol=0, atol=0, equal_nan=True) for x, y in zip(inputs, instance.inputs)), (
            "an input was modified"
        )
        assert got.dtype == dtype_of(instance)
        return model, got


def predicted(step):
    """Seconds that the time model gives the step's kernels on an H200."""
    rows = [row for row in COUNTED if row["group"] == step]
    assert rows, f"{step} has not been counted: python benchmarks/validate/model.py --steps"
    return sum(row["launches"] * predict(Work(**row["work"]), "H200").seconds for row in rows)


# --- right -----------------------------------------------------------------------------------------------------------

CASES = [(step, case) for step in STEPS for case in cases(step)]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "case"), CASES, ids=[f"{step}: {case.name}" for step, case in CASES])
def test_computes_what_the_model_computes(step, case):
    """With random weights, is the result Model's in float64, reading and writing within bounds in both directions?"""
    instance = instance_of(step, case)
    (expected,) = instance.expected()
    allowed = tolerance(instance, expected)
    for options in ({"guard": "end"}, {"guard": "front", "schedule": "reverse"}) if ON_CPU else ({},):
        assert error_of(solve(step, instance, **options)[1], expected) <= allowed


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_result_does_not_depend_on_the_order_of_threads(step):
    """Is the result the same to the last bit when threads and blocks take turns in other orders (on a GPU: again)?"""
    instance = instance_of(step, "prime sizes")
    _, first = solve(step, instance)
    # what a block looks back at depends on how far the others are, and with it the order of its sum
    few_bits = 4 * torch.finfo(torch.float32).eps * first.abs().max().item() if step == "scan/05_look_back" else 0.0
    for seed in (1, 2):
        torch.testing.assert_close(solve(step, instance, schedule=seed)[1], first, rtol=0, atol=few_bits)


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith(("conv2d/", "im2col_conv/"))])
@pytest.mark.parametrize("kernel_size", [3, (2, 5)])
def test_more_channels_than_a_block_holds(step, kernel_size):
    """Are sums right that are made in several rounds, and output channels of several groups, the last one ragged?"""
    sizes = {
        "batch_size": 2,
        "in_channels": 19,
        "out_channels": 71,
        "height": 21,
        "width": 37,
        "kernel_size": kernel_size,
    }
    instance = instance_of(step, Case("many channels", sizes))
    (expected,) = instance.expected()
    assert error_of(solve(step, instance)[1], expected) <= tolerance(instance, expected)


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("groupnorm/")])
def test_groups_of_several_parts(step):
    """Are groups right that several blocks share, with and without float4, where a channel ends inside a part?"""
    for width in (45, 48):
        sizes: dict[str, object] = {"batch_size": 3, "features": 24, "num_groups": 3, "dim1": 101, "dim2": width}
        instance = instance_of(step, Case("several parts", sizes))
        (expected,) = instance.expected()
        assert error_of(solve(step, instance)[1], expected) <= tolerance(instance, expected)


def shifted(x, floats):
    """A copy of x that begins so many floats past a multiple of 16 bytes."""
    moved = torch.empty(x.numel() + floats, dtype=x.dtype, device=x.device)[floats:].view(x.shape).copy_(x)
    assert moved.is_contiguous() and moved.data_ptr() % 16 == x.element_size() * floats
    return moved


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_an_input_may_begin_anywhere(step):
    """Is the result the same where an input begins one or two floats past a multiple of 16 bytes, as no float4 may?"""
    instance = instance_of(step, "power of two")
    model, aligned = solve(step, instance)
    for number, x in enumerate(instance.inputs):
        for floats in (1, 2):
            inputs = [shifted(x, floats) if i == number else other for i, other in enumerate(instance.inputs)]
            with torch.no_grad():
                torch.testing.assert_close(model(*inputs), aligned, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("logsumexp/")])
def test_logsumexp_of_infinities(step):
    """Do infinities give what torch.logsumexp gives, and not NaN, pixel by pixel and in a float4?"""
    inf = float("inf")
    x = torch.tensor(
        [[-inf, -inf], [inf, 1.0], [-inf, 2.0], [inf, -inf], [1.0, inf], [inf, inf], [2.0, -inf], [0.0, 0.0]],
        device=DEVICE,
    )
    for images in (x.reshape(8, 2, 1, 1), x.T.reshape(1, 2, 2, 4)):
        torch.testing.assert_close(load(step).ModelNew()(images), torch.logsumexp(images, 1, keepdim=True))


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("softmax/")])
@pytest.mark.parametrize("columns", [69, 68])
def test_softmax_of_infinities(step, columns):
    """Do masked columns give 0, and rows without a softmax NaN throughout, as in torch, with and without float4?"""
    x = awkward_rows()[:, :columns].contiguous()
    torch.testing.assert_close(load(step).ModelNew()(x), torch.softmax(x, -1), rtol=1e-5, atol=0, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("softmax/")])
@pytest.mark.parametrize("columns", [16384, 16388, 49153])
def test_rows_as_long_as_the_registers_and_longer(step, columns):
    """Are rows right that just fill a block's registers, that have one float4 more, and several rounds more?"""
    instance = instance_of(step, Case("long rows", {"rows": 2, "columns": columns}, "normal"))
    (expected,) = instance.expected()
    # the sum of one thread, in step 1, is one of up to 49,153 terms in order
    torch.testing.assert_close(solve(step, instance)[1].double(), expected, rtol=1e-4, atol=0)


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("scale_maxpool_clamp/")])
@pytest.mark.parametrize("pool", [2, 3, 4])
def test_maxpool_of_nan_and_infinities(step, pool):
    """Does a NaN in any place of a window come out, and an infinity where torch gives one, in loads of each width?"""
    x, scale = awkward_windows(pool)
    model = load(step).ModelNew((5, 1, 1), pool, -0.5, 1.0).to(DEVICE)
    model.scale.data = scale
    for columns in (0, 1, 3):  # of the rows of windows of 4, they begin anywhere, at multiples of 16 bytes, and of 8
        part = x[..., : x.shape[3] - columns].contiguous()
        expected = torch.clamp(torch.nn.functional.max_pool2d(part * scale, pool), -0.5, 1.0)
        with torch.no_grad():
            torch.testing.assert_close(model(part), expected, rtol=1e-6, atol=0, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("step", [step for step in STEPS if step.startswith("scale_maxpool_clamp/")])
def test_a_window_wider_than_a_block(step):
    """Is the maximum of windows of 300 x 300 right, which have more columns than a block has threads?"""
    sizes = {"batch_size": 1, "channels": 2, "height": 301, "width": 613, "maxpool_kernel_size": 300, "clamp_max": 9.0}
    instance = instance_of(step, Case("wide windows", sizes, "normal"))
    (expected,) = instance.expected()
    assert error_of(solve(step, instance)[1], expected) <= tolerance(instance, expected)


FUSED = [step for step in STEPS if step.startswith(("conv_groupnorm_", "conv_sigmoid_groupnorm/"))]


def several_tiles(step, inputs):
    """A fused model's instance whose image has several tiles, the last ones ragged, and whose last channels fill no set
    of eight.
    """
    sizes: dict[str, object] = {"batch_size": 2, "in_channels": 9, "out_channels": 20, "height": 39, "width": 71}
    sizes["groups" if "logsumexp" in step else "num_groups"] = 5
    return instance_of(step, Case("several tiles", sizes, inputs))


@pytest.mark.slow
@pytest.mark.parametrize("step", FUSED)
@pytest.mark.parametrize("inputs", ["normal", "large_mean"])
def test_fused_models_of_several_tiles(step, inputs):
    """Are statistics merged from many tiles right, also of values that lie far from 0?"""
    instance = several_tiles(step, inputs)
    (expected,) = instance.expected()
    assert error_of(solve(step, instance)[1], expected) <= tolerance(instance, expected)


@pytest.mark.slow
@pytest.mark.parametrize("step", FUSED)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_fused_models_hand_on_what_is_no_number(step, value):
    """Does an image with one NaN or infinity give NaN where PyTorch does, and leave the other image alone?"""
    instance = several_tiles(step, "normal")
    model, _ = solve(step, instance)
    instance.inputs[0][1, 3, 20, 40] = value
    (eager,) = instance.eager()
    with torch.no_grad():
        got = model(*instance.inputs)
    assert torch.equal(got.isnan(), eager.isnan()) and eager[1].isnan().all() == (
        not step.startswith("conv_sigmoid") or value != value
    )
    torch.testing.assert_close(got, eager, rtol=1e-3, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("step", sample(STEPS, lambda step: step.startswith("groupnorm/")))
def test_an_empty_batch_gives_an_empty_result(step):
    """Do no images give no images, instead of a launch of no blocks?"""
    instance = instance_of(step, "prime sizes")
    model, got = solve(step, instance)
    x, *others = instance.inputs
    with torch.no_grad():
        empty = model(x[:0], *(cut_like(x, other, 0, 0) for other in others))
    if step.startswith("histogram/"):
        assert torch.equal(empty, torch.zeros_like(got))
    else:
        assert empty.shape == (0, *got.shape[1:])


@pytest.mark.slow
@pytest.mark.skipif(not ON_CPU, reason="kernels that nvcc built have no checks")
@pytest.mark.parametrize("step", STEPS)
def test_no_check_finds_anything(step):
    """Is the step free of races, unwritten memory, bad barriers and misaligned access, where x is aligned and where
    not?
    """
    for case in ("prime sizes", "power of two"):
        instance = instance_of(step, case)
        with simt.check() as report, torch.no_grad():
            model = load(step).ModelNew(*instance.init_args)
            model.load_state_dict(instance.model.state_dict())
            for start in (0, 1):
                model(*[shifted(x, start) for x in instance.inputs])
        assert report.findings == []


@pytest.mark.gpu
@pytest.mark.parametrize("step", STEPS)
def test_full_size(step):
    """At KernelBench's size, are the first, a middle and the last image (or row of a product) right?"""
    instance = problem.find(STEPS[step]).instantiate(problem.find(STEPS[step]).full(), SEED, DEVICE)
    held_at_full_size(instance, solve(step, instance)[1])


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
        pytest.skip("not measured yet: python benchmarks/timing/steps.py, on a GPU")
    assert rows[after]["ms"] < rows[before]["ms"]


@pytest.mark.parametrize("step", STEPS)
def test_figures_are_of_this_source(step):
    """Were the step's counters, and its measured time, taken from the present code?"""
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
