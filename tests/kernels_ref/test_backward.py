"""Is every backward.py's gradient the one that autograd finds, in float64 to its last digits and in float32, or in the
16 bits that a problem has, within rounding?

A new kernels_ref/NAME/backward.py is found by itself.
"""

import contextlib
import importlib.util
import itertools
import re
from pathlib import Path

import pytest
import torch
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

import simt
from grader.judging.grading import Limits, grade
from grader.problems import exercises, problem
from grader.problems.cases import Case
from grader.verdict import Outcome
from tests.kernels_ref.inputs import copied, is_floating, to, without_images
from tests.sample import sample

KERNELS_REF = Path(__file__).resolve().parents[2] / "kernels_ref"
NAMES = sorted(path.parent.name for path in KERNELS_REF.glob("*/backward.py"))
HALF = [name for name in NAMES if problem.read(KERNELS_REF / name / "model.py").precision == "fp16"]
FLOAT = [name for name in NAMES if name not in HALF]  # take float32 and float64
FEW = ["groupnorm", "logsumexp"]  # run by `make test`, where all would take long
ON_CPU = simt.enable()
DEVICE = "cpu" if ON_CPU else "cuda"
SEED = 20251122

# Sizes for gradcheck, which calls forward twice for each element of x and the weights: a problem takes those that it
# knows.
SMALL = {
    "odd sizes": {
        "batch_size": 2, "channels": 3, "in_channels": 2, "out_channels": 4, "features": 6,
        "num_groups": 2, "groups": 2, "height": 5, "width": 7, "dim1": 3, "dim2": 5,
        "kernel_size": 2, "maxpool_kernel_size": 2, "M": 3, "K": 5, "N": 7, "rows": 3, "columns": 7, "length": 7,
    },
    "batch 1": {
        "batch_size": 1, "channels": 5, "in_channels": 3, "out_channels": 6, "features": 9,
        "num_groups": 3, "groups": 3, "height": 4, "width": 6, "dim1": 2, "dim2": 7,
        "kernel_size": 3, "maxpool_kernel_size": 2, "M": 1, "K": 6, "N": 4, "rows": 1, "columns": 6, "length": 260,
    },
    "one channel": {
        "batch_size": 3, "channels": 1, "in_channels": 1, "out_channels": 1, "features": 1,
        "num_groups": 1, "groups": 1, "height": 4, "width": 5, "dim1": 4, "dim2": 3,
        "kernel_size": 3, "maxpool_kernel_size": 2, "M": 4, "K": 1, "N": 3, "rows": 4, "columns": 1, "length": 32,
    },
    "one pixel": {
        "batch_size": 2, "channels": 4, "in_channels": 2, "out_channels": 4, "features": 8,
        "num_groups": 2, "groups": 2, "height": 3, "width": 3, "dim1": 1, "dim2": 1,
        "kernel_size": 3, "maxpool_kernel_size": 1, "M": 1, "K": 1, "N": 1, "rows": 2, "columns": 2, "length": 1,
    },
}  # fmt: skip
ALLOWED = {
    "empty",
    "empty_like",
    "empty_strided",
    "zeros",
    "zeros_like",
    "new_empty",
    "new_zeros",
    "zero_",
    "fill_",
    "detach",
    "view",
    "_unsafe_view",
    "alias",
}

_modules = {}


def load(name, source=None):
    """backward.py (or `source`) as a module, built once."""
    key = f"backward_of_{name}" if source is None else f"backward_skeleton_of_{name}"
    if key not in _modules:
        file = KERNELS_REF / name / "backward.py"
        spec = importlib.util.spec_from_loader(key, loader=None)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        exec(compile(source or file.read_text(encoding="utf-8"), str(file), "exec"), module.__dict__)
        _modules[key] = module
    return _modules[key]


def problem_of(name):
    return problem.read(KERNELS_REF / name / "model.py")


def instance_of(name, case):
    """The problem at a case of its own, or at one of SMALL."""
    read = problem_of(name)
    if isinstance(case, str):
        case = Case(case, {key: value for key, value in SMALL[case].items() if key in read.literals}, "normal")
    return read.instantiate(case, SEED, DEVICE)


def usual(name):
    """The case for questions that one case answers."""
    return next(case for case in problem_of(name).cases() if case.name == "prime sizes")


def unit_of(name):
    """The relative error of one rounding in the problem's dtype."""
    return torch.finfo(torch.half if name in HALF else torch.float32).eps / 2


def ours(name, instance, dtype=torch.float32, source=None):
    """ModelNew with the instance's weights, of which a problem with 16 bits has none."""
    model = load(name, source).ModelNew(*instance.init_args).to(DEVICE, dtype)
    model.load_state_dict(instance.model.state_dict(), strict=True)
    return model


def upstream_of(instance):
    (y,) = instance.eager()
    return torch.randn(y.shape, generator=torch.Generator().manual_seed(SEED)).to(DEVICE, y.dtype)


def gradients(model, inputs, upstream, wanted=None, **options):
    """{number or name: gradient} for the inputs and parameters, or those that are wanted."""
    inputs = copied(inputs)
    leaves = {n: x for n, x in enumerate(inputs) if is_floating(x)} | dict(model.named_parameters())
    for key, leaf in leaves.items():
        leaf.requires_grad_(wanted is None or key in wanted)
    with simt.run(**options) if ON_CPU and options else contextlib.nullcontext():
        model(*inputs).backward(upstream)
    found = {key: leaf.grad for key, leaf in leaves.items() if leaf.grad is not None}
    for leaf in leaves.values():
        leaf.grad = None
    return found


def compute_reference(instance, upstream, unit=0.0):
    """Return float64 gradients of Model, with inputs, weights and upstream off by `unit` times a normal number."""
    generator = torch.Generator().manual_seed(1)

    def moved(value):
        if not is_floating(value):
            return value
        noise = torch.randn(value.shape, generator=generator, dtype=torch.float64).to(DEVICE)
        return value.detach().double() * (1 + unit * noise)

    model = instance.build().double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(moved(parameter))
    return gradients(model, [moved(x) for x in instance.inputs], moved(upstream))


def graded_cases(name):
    return [case for case in problem_of(name).cases() if case.gradient]


CASES = [(name, case) for name in NAMES for case in graded_cases(name)]


def test_there_is_something_to_test():
    assert {"bias_scale_sigmoid", "logsumexp", "groupnorm", "conv2d"} <= set(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("name, small", sample(itertools.product(FLOAT, SMALL), lambda each: each[0] in FEW))
def test_gradcheck(name, small):
    """Are the gradients what finite differences in float64 give, for every input and weight?"""
    instance = instance_of(name, small)
    model = ours(name, instance, torch.float64)
    names = [key for key, _ in model.named_parameters()]
    places = [n for n, x in enumerate(instance.inputs) if is_floating(x)]
    values = [instance.inputs[n].double().requires_grad_() for n in places] + [
        p.detach().clone().requires_grad_() for p in model.parameters()
    ]

    def function(*values):
        inputs, weights = dict(enumerate(instance.inputs)) | dict(zip(places, values)), values[len(places) :]
        return functional_call(model, dict(zip(names, weights)), tuple(inputs.values()))

    assert torch.autograd.gradcheck(function, values)


@pytest.mark.parametrize(
    ("name", "case"),
    sample(CASES, lambda each: each[0] in FEW),
    ids=[f"{name}: {case.name}" for name, case in CASES],
)
def test_right_within_rounding(name, case):
    """In every case, is each gradient as near to float64's as rounding allows, within bounds in both directions?

    Allowed is 8 times what PyTorch's own gradients are off by, or what one rounding of every input moves them by,
    whichever is more; and a few roundings of a sum as large as the largest gradient.
    """
    instance, unit = instance_of(name, case), unit_of(name)
    upstream = upstream_of(instance)
    right, moved = compute_reference(instance, upstream), compute_reference(instance, upstream, unit)
    eager = gradients(instance.build(), instance.inputs, upstream)
    for options in ({"guard": "end"}, {"guard": "front", "schedule": "reverse"}) if ON_CPU else ({},):
        got = gradients(ours(name, instance), instance.inputs, upstream, **options)
        assert got.keys() == right.keys()
        for key, gradient in got.items():
            assert gradient.shape == right[key].shape and gradient.dtype == upstream.dtype
            error, own, noise = (
                float((a.double() - right[key]).abs().max()) for a in (gradient, eager[key], moved[key])
            )
            assert error <= 8 * max(own, noise) + 16 * unit * float(right[key].abs().max()), key


@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_the_same_to_the_last_bit(name):
    """Are two runs equal, also with threads and blocks in other orders, so that no sum depends on who comes first?"""
    instance = instance_of(name, usual(name))
    upstream, model = upstream_of(instance), ours(name, instance)
    first = gradients(model, instance.inputs, upstream)
    for options in ({"schedule": "reverse"}, {"schedule": 1}, {"schedule": 2}) if ON_CPU else ({}, {}, {}):
        again = gradients(model, instance.inputs, upstream, **options)
        assert all(torch.equal(first[key], again[key]) for key in first)


@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_strides_of_the_upstream_gradient_do_not_matter(name):
    """Is the same upstream gradient as channels last, between other numbers, or as one number with strides of 0, worth
    the same?
    """
    instance = instance_of(name, usual(name))
    model, upstream = ours(name, instance), upstream_of(instance)
    right = gradients(model, instance.inputs, upstream)
    wide = torch.full((*upstream.shape, 2), float("nan"), device=DEVICE)
    wide[..., 0] = upstream
    reverse = tuple(reversed(range(upstream.dim())))
    turned = [upstream.permute(reverse).contiguous().permute(reverse)] if upstream.dim() > 1 else []
    for view in (*turned, wide[..., 0]):
        got = gradients(model, instance.inputs, view)
        assert not view.is_contiguous() and all(torch.equal(right[key], got[key]) for key in right)
    expanded = torch.tensor(0.75, device=DEVICE).expand(upstream.shape)
    right, got = (gradients(model, instance.inputs, up) for up in (expanded.contiguous(), expanded))
    assert all(torch.equal(right[key], got[key]) for key in right)


@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_strides_of_the_inputs_do_not_matter(name):
    """Are inputs and weights in another memory format worth the same?"""
    instance = instance_of(name, usual(name))
    model, upstream = ours(name, instance), upstream_of(instance)
    right = gradients(model, instance.inputs, upstream)
    turned = [
        x.transpose(-1, -2).contiguous().transpose(-1, -2) if is_floating(x) and x.dim() > 1 else x
        for x in instance.inputs
    ]
    got = gradients(model.to(memory_format=torch.channels_last), turned, upstream)
    assert all(torch.equal(right[key], got[key]) for key in right)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_only_what_is_needed(name):
    """Do frozen weights and inputs get no gradient, and the others the same as without them?"""
    instance = instance_of(name, usual(name))
    model, upstream = ours(name, instance), upstream_of(instance)
    right = gradients(model, instance.inputs, upstream)
    for wanted in [{key} for key in right] + [right.keys() - {key} for key in right if len(right) > 2]:
        got = gradients(model, instance.inputs, upstream, wanted)
        assert got.keys() == wanted and all(torch.equal(right[key], got[key]) for key in wanted)


@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_two_calls_before_one_backward(name):
    """Does each backward go with its own forward, when forward was called again in between?"""
    instance = instance_of(name, usual(name))
    model, upstream = ours(name, instance), upstream_of(instance)
    right = gradients(model, instance.inputs, upstream)
    inputs = [x.requires_grad_() if is_floating(x) else x for x in copied(instance.inputs)]
    y, other = model(*inputs), model(*(1 - x if is_floating(x) else x for x in inputs))
    wanted = {n: x for n, x in enumerate(inputs) if is_floating(x)}
    got = torch.autograd.grad(y, list(wanted.values()), upstream)
    assert got and all(torch.equal(right[n], gradient) for n, gradient in zip(wanted, got))
    assert other.shape == y.shape


@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_an_empty_batch(name):
    """Do no images give an empty gradient of x and zeros for the weights?"""
    instance = instance_of(name, graded_cases(name)[-1])
    model, upstream = ours(name, instance), upstream_of(instance)
    inputs = without_images(instance)
    got = gradients(model, inputs, upstream[:0])
    first = next(n for n, x in enumerate(inputs) if is_floating(x))
    assert got[first].shape == inputs[first].shape
    assert all(not gradient.any() for gradient in got.values())


@pytest.mark.parametrize("name", sample(FLOAT, FEW))
def test_half_is_refused(name):
    """Is half precision, which the kernels are not made for, refused with what to do about it?"""
    instance = instance_of(name, usual(name))
    with pytest.raises(RuntimeError, match=r"not float32 or float64: use \.float\(\)"):
        ours(name, instance)(*to(instance.inputs, torch.half))


@pytest.mark.slow
@pytest.mark.parametrize("name", HALF)
def test_float32_is_refused(name):
    """Is float32, which these kernels are not made for, refused with what to do about it?"""
    instance = instance_of(name, usual(name))
    with pytest.raises(RuntimeError, match=r"not float16: use \.half\(\)"):
        ours(name, instance)(*to(instance.inputs, torch.float32))


@pytest.mark.slow
@pytest.mark.skipif(not ON_CPU, reason="simt's checks are for kernels on the CPU")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*sample(itertools.product(FLOAT, (torch.float32, torch.float64)), lambda each: each[0] in FEW)]
    + [(name, torch.half) for name in HALF],
)
def test_checks_find_nothing(name, dtype):
    """Do forward and backward go through simt's checks without a finding, in each precision?"""
    instance = instance_of(name, usual(name))
    upstream, model = upstream_of(instance).to(dtype), ours(name, instance, dtype)
    with simt.check() as report:
        gradients(model, to(instance.inputs, dtype), upstream)
    assert not report.findings


@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_every_operator_is_a_kernel_of_ours(name):
    """Do forward and backward call no operator of PyTorch's but those that only make or describe a tensor?"""

    class Record(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.called = set()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.called.add(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    instance = instance_of(name, usual(name))
    model, upstream = ours(name, instance), upstream_of(instance)
    inputs = copied(instance.inputs)
    wanted = [*filter(is_floating, inputs), *model.parameters()]
    for leaf in wanted:
        leaf.requires_grad_()
    with Record() as record:
        torch.autograd.grad(model(*inputs), wanted, upstream)
    assert record.called, "the gradients were not made while they were watched"
    assert record.called <= ALLOWED


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, -0.5, 0.0])
def test_maxpool_at_ties_borders_and_nan(scale, dtype):
    """Does the first of equal maxima get the gradient, a value on the clamp's border pass, and a NaN give what torch
    gives?
    """
    torch.manual_seed(SEED)
    x = torch.randint(-4, 5, (2, 3, 9, 14)).to(DEVICE, dtype) / 2  # most windows have ties, many reach exactly a border
    x[0, 0, 0, 0] = x[0, 0, 4, 5] = x[1, 0, 8, 3] = float("nan")  # the last one lies in no window
    x[1, 2, 3:6, 3:6] = -float("inf")
    model = load("scale_maxpool_clamp").ModelNew((3, 1, 1), 3, -1.0, 1.0).to(DEVICE, dtype)
    model.scale.data.fill_(scale)
    weight = model.scale.detach().clone().requires_grad_()
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    y = torch.clamp(torch.nn.functional.max_pool2d(inputs[1] * weight, 3), -1.0, 1.0)
    upstream = torch.randn(y.shape, device=DEVICE, dtype=dtype)
    got = torch.autograd.grad(model(inputs[0]), [inputs[0], model.scale], upstream)
    right = torch.autograd.grad(y, [inputs[1], weight], upstream)
    torch.testing.assert_close(got[0], right[0], rtol=0, atol=0)
    finite = x.isfinite().all(dim=3).all(dim=2).all(dim=0)
    assert finite.any() and right[1][0].isnan()
    torch.testing.assert_close(got[1][finite], right[1][finite])
    assert got[1][0].isnan()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("border", [-1.0, 1.0])
def test_conv_groupnorm_maxpool_at_ties_and_borders(border, dtype):
    """Does the first of equal maxima get the gradient, behind a normalisation too, and does a value on the clamp's
    border pass?
    """
    generator = torch.Generator().manual_seed(SEED)
    # three values: nearly every window has ties
    x = torch.randint(-1, 2, (2, 2, 9, 11), generator=generator).to(DEVICE, dtype)
    module = load("conv_groupnorm_maxpool")
    model = module.ModelNew(2, 4, 1, 2, (4, 1, 1), 3, -1.0, 1.0).to(DEVICE, dtype)
    with torch.no_grad():
        model.conv.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, -1.0]])[:, :, None, None])
        model.conv.bias.fill_(0.5)
        model.scale.copy_(torch.tensor([1.0, -0.5, 0.25, 1.0])[:, None, None])
        model.group_norm.weight[3] = 0.0
        model.group_norm.bias[3] = border  # channel 3 is the border everywhere
    weights = dict(model.named_parameters())
    mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    v = torch.nn.functional.conv2d(theirs, weights["conv.weight"], weights["conv.bias"])
    v = (
        torch.nn.functional.group_norm(v, 2, weights["group_norm.weight"], weights["group_norm.bias"])
        * weights["scale"]
    )
    y = torch.clamp(torch.nn.functional.max_pool2d(v, 3), -1.0, 1.0)
    upstream = torch.randn(y.shape, generator=generator).to(DEVICE, dtype)
    right = dict(zip(["x", *weights], torch.autograd.grad(y, [theirs, *weights.values()], upstream)))
    got = dict(zip(["x", *weights], torch.autograd.grad(model(mine), [mine, *weights.values()], upstream)))
    assert right["group_norm.bias"][3] != 0, "the channel on the border gets no gradient from torch either"
    rtol, atol = (1e-4, 2e-5) if dtype is torch.float32 else (1e-10, 1e-12)
    for key, gradient in got.items():
        torch.testing.assert_close(gradient, right[key], rtol=rtol, atol=atol)


# --- the exercise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_exercises_are_marked(name):
    """Do the markers come in pairs, each hint with the number of lines that it hides?"""
    lines = (KERNELS_REF / name / "backward.py").read_text(encoding="utf-8").splitlines()
    marks = [(number, line.strip()) for number, line in enumerate(lines) if re.match(r"\s*// (>>>|<<<)", line)]
    assert marks and len(marks) % 2 == 0
    for (start, hint), (end, close) in zip(marks[::2], marks[1::2]):
        heading = re.fullmatch(r"// >>> exercise: .+ \(about (\d+) lines\)", hint)
        assert heading and close == "// <<<"
        code = [line for line in lines[start + 1 : end] if line.strip() and not line.strip().startswith("//")]
        assert int(heading[1]) == len(code)


@pytest.mark.slow
@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_skeleton_has_its_forward_and_no_gradient(name):
    """Does what is left for the student build and compute y, and does each of its gradients wait to be written?"""
    source = exercises.skeleton((KERNELS_REF / name / "backward.py").read_text(encoding="utf-8"), f"{name}_backward")
    instance = instance_of(name, usual(name))
    upstream, model = upstream_of(instance), ours(name, instance, source=source)
    with torch.no_grad():
        near = max(1e-4, 4 * unit_of(name))
        torch.testing.assert_close(model(*instance.inputs), instance.eager()[0], rtol=near, atol=near)
    right = compute_reference(instance, upstream)
    got = gradients(model, instance.inputs, upstream, **({"guard": "end"} if ON_CPU else {}))
    assert all(not torch.allclose(got[key].double(), right[key], rtol=1e-3, atol=1e-3) for key in right)


@pytest.mark.parametrize("name", NAMES)
def test_student_file_is_made_of_it(name):
    """Is kernels_student/NAME_backward.py what `grader student` makes?"""
    made = exercises.skeleton((KERNELS_REF / name / "backward.py").read_text(encoding="utf-8"), f"{name}_backward")
    assert (exercises.KERNELS_STUDENT / f"{name}_backward.py").read_text(encoding="utf-8") == made
    assert f"kernels_ref/{name}/model.py has" in made and f"kernels_student/{name}_backward.py" in made


# --- on a GPU ---


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_full_size(name):
    """At KernelBench's size, do the gradients agree with eager's, compared with float64, and is the time of both ways
    measured?
    """
    verdict = grade(KERNELS_REF / name / "backward.py", device="cuda", seed=SEED, limits=Limits(own=120.0))
    assert verdict.outcome is Outcome.passed, verdict.first_problem
    gradient, fast = verdict.stage("gradient"), verdict.stage("fast")
    # which of two sums is the largest, where they are as good as equal
    rounding_picks = name == "conv_groupnorm_maxpool"
    assert (gradient.cases[-1].name, gradient.cases[-1].status) == (
        "full size",
        "skipped" if rounding_picks else "passed",
    )
    assert {"this submission", "eager"} <= {one.name for one in fast.measurements}
    assert "backward" in fast.message
