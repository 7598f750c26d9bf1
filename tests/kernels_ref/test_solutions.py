"""Do the reference solutions compute what their models compute, at every shape, with kernels of their own alone?"""

import contextlib
import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import simt
from grader.problems import exercises, problem
from grader.problems.cases import Case
from tests.kernels_ref.inputs import copied, is_floating, same, to, without_images
from tests.sample import sample

KERNELS_REF = Path(__file__).resolve().parents[2] / "kernels_ref"
NAMES = sorted(path.parent.name for path in KERNELS_REF.glob("*/solution.py"))
FEW = ["conv2d", "groupnorm", "softmax"]  # built by `make test`, where all would take long
ON_CPU = simt.enable()
DEVICE = "cpu" if ON_CPU else "cuda"
SEED = 20251121
SMALL = {"batch_size": 2, "height": 9, "width": 12}

_modules = {}


def load(name, source=None):
    """The solution (or `source`) as a module, built once."""
    key = name if source is None else f"skeleton_of_{name}"
    if key not in _modules:
        file = KERNELS_REF / name / "solution.py"
        spec = importlib.util.spec_from_loader(key, loader=None)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        exec(compile(source or file.read_text(encoding="utf-8"), str(file), "exec"), module.__dict__)
        _modules[key] = module
    return _modules[key]


def problem_of(name):
    return problem.read(KERNELS_REF / name / "model.py")


def solve(name, instance, **options):
    """(ModelNew with the instance's weights, its output), run under simt with these options if it runs on a CPU.

    Weights and inputs are copied inside, so that a guard lies next to them too.
    """
    with torch.no_grad(), simt.run(**options) if ON_CPU else contextlib.nullcontext():
        model = load(name).ModelNew(*instance.init_args).to(DEVICE)
        model.load_state_dict(instance.model.state_dict(), strict=True)
        inputs = copied(instance.inputs)
        got = model(*inputs)
        assert all(map(same, inputs, instance.inputs)), "an input was modified"
        assert got.dtype == dtype_of(instance)
        return model, got


def dtype_of(instance):
    """What the result must have: its inputs' precision, or whole numbers where Model returns them."""
    (result,) = instance.eager()
    return result.dtype if not is_floating(result) else next(filter(is_floating, instance.inputs)).dtype


def tolerance(instance, expected):
    """What float32 may be off by, one number for the whole output.

    Two things are measured on the same model and inputs: how far PyTorch's own float32 result is from float64 (the
    same terms, summed in another order), and how far float64 moves when each input is off by one rounding. An honest
    float32 kernel is off by about as much as the larger; 8 leaves room for the order of its sums. Four roundings of
    the largest output are allowed where both happen to be exact. Where TF32 is requested, eager's result is TF32's and
    no kernel may be more than twice as far off. Whole numbers must be the same.
    """
    if not is_floating(expected):
        return 0.0
    (eager,), (noise,) = instance.eager(), instance.noise(instance.expected())
    measured = max(error_of(eager, expected), noise.nan_to_num(0.0).max().item())
    return (2 if instance.precision == "tf32" else 8) * measured + 4 * torch.finfo(
        torch.float32
    ).eps * expected.nan_to_num(0.0).abs().max().item()


def held_at_full_size(instance, got):
    """Asserts that the first, a middle and the last image (row of a product) are right; of one vector, all of it."""
    x, *others = instance.inputs
    if x.dim() == 1:
        (expected,) = instance.expected()
        # more elements than in any case: an honest scan sums blocks, blocks of blocks and so on
        assert error_of(got, expected) <= 64 * torch.finfo(torch.float32).eps * expected.abs().max().item()
        return
    product = [x.dim() for x in instance.inputs if isinstance(x, torch.Tensor)] == [2, 2]
    for image in (0, len(x) // 2, len(x) - 1):
        one = got[image : image + 1]
        instance.inputs[:] = [x[image : image + 1], *(cut_like(x, other, image, image + 1) for other in others)]
        (expected,) = instance.expected()
        allowed = tolerance(instance, expected)
        if product:  # 4,096 terms of one sign: added in order, they are off by far more than cuBLAS, which adds parts
            ordered = in_order(*instance.inputs)
            assert error_of(one, ordered.double()) <= 2 * torch.finfo(torch.float32).eps * ordered.abs().max().item()
            allowed = max(allowed, 1.1 * error_of(ordered, expected))
        assert error_of(one, expected) <= allowed


def cut_like(x, other, start, end):
    """The images from start to end of an input, where it has as many as x, else all of it."""
    return other[start:end] if isinstance(other, torch.Tensor) and other.dim() and len(other) == len(x) else other


def in_order(a, b):
    """A product in float32, the terms of each sum added one after another by fma: the product exact, one rounding a
    sum.
    """
    total = torch.zeros(len(a), b.shape[1], device=a.device)
    for k in range(len(b)):
        total = (total.double() + a[:, k : k + 1].double() * b[k].double()).float()
    return total


def error_of(got, expected):
    assert got.shape == expected.shape and got.dtype in (torch.float32, torch.float16, torch.int32)
    assert got.is_contiguous()
    assert torch.equal(got.isnan(), expected.isnan())
    return (got.double() - expected).nan_to_num(0.0).abs().max().item()


CASES = [(name, case) for name in NAMES for case in problem_of(name).cases()]


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}: {case.name}" for name, case in CASES])
def test_computes_what_the_model_computes(name, case):
    """With random weights, is the result Model's in float64, reading and writing within bounds in both directions?"""
    instance = problem_of(name).instantiate(case, SEED, DEVICE)
    (expected,) = instance.expected()
    allowed = tolerance(instance, expected)
    for options in ({"guard": "end"}, {"guard": "front", "schedule": "reverse"}) if ON_CPU else ({},):
        assert error_of(solve(name, instance, **options)[1], expected) <= allowed


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_result_does_not_depend_on_the_order_of_threads(name):
    """Is the result the same to the last bit when threads and blocks take turns in other orders (on a GPU: again)?"""
    case = next(case for case in problem_of(name).cases() if case.name == "prime sizes")
    instance = problem_of(name).instantiate(case, SEED, DEVICE)
    _, first = solve(name, instance)
    for seed in (1, 2, 3):
        assert torch.equal(solve(name, instance, schedule=seed)[1], first)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_operator_is_a_kernel_of_ours(name):
    """Does forward call no operator of PyTorch's but those that only make or describe a tensor?"""

    class Record(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.called = set()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.called.add(function.overloadpacket._qualified_op_name)
            return function(*args, **(kwargs or {}))

    instance = problem_of(name).instantiate(problem_of(name).cases()[0], SEED, DEVICE)
    model, _ = solve(name, instance)
    with Record() as record, torch.no_grad():
        model(*instance.inputs)
    assert record.called, "the output was not made while forward was watched"
    assert record.called <= {"aten::empty", "aten::empty_like", "aten::detach"}


def test_inputs_that_are_no_tensors():
    """Are a number and None copied, compared and left as they are, wherever these tests take a problem's inputs for
    tensors?
    """

    class Instance:
        inputs = (torch.ones(2, 3), 3, None, torch.zeros(2, dtype=torch.int64))

        def model(self, x, power, *_):
            return x**power

    x, _, _, index = Instance.inputs
    assert [is_floating(each) for each in Instance.inputs] == [True, False, False, False]
    assert all(map(same, copied(Instance.inputs), Instance.inputs)) and copied([x])[0] is not x
    assert not same(3, 4) and not same(x, x + 1)
    assert [
        each if not isinstance(each, torch.Tensor) else each.dtype for each in to(Instance.inputs, torch.float64)
    ] == [torch.float64, 3, None, torch.int64]
    empty = without_images(Instance())
    assert empty[0].shape == (0, 3) and empty[1:3] == [3, None] and empty[3] is index
    # no row is taken from none
    other: Any = Instance
    other.model = lambda self, x, power, _, index: x[index] + torch.zeros(len(x), 3) + torch.ones(2, 3)
    assert [len(without_images(Instance())[n]) for n in (0, 3)] == [0, 0]


@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_strides_do_not_matter(name):
    """Is the result the same when the same values lie in memory as channels_last, or between others?"""
    case = next(case for case in problem_of(name).cases() if case.name == "prime sizes")
    instance = problem_of(name).instantiate(case, SEED, DEVICE)
    model, contiguous = solve(name, instance)
    model = model.to(memory_format=torch.channels_last)  # the convolution's weight, too
    for number, x in enumerate(instance.inputs):
        if not is_floating(x) and any(map(is_floating, instance.inputs)):
            continue
        between = float("nan") if is_floating(x) else -1
        wide = torch.full((*x.shape[:-1], 2 * x.shape[-1]), between, dtype=x.dtype, device=x.device)
        wide[..., ::2] = x
        views = [wide[..., ::2]]
        if x.dim() > 1:
            views.append(x.to(memory_format=torch.channels_last) if x.dim() == 4 else x.T.contiguous().T)
        with torch.no_grad():
            for view in views:
                assert not view.is_contiguous()
                inputs = [view if i == number else other for i, other in enumerate(instance.inputs)]
                assert torch.equal(model(*inputs), contiguous)


@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_an_empty_batch_gives_an_empty_result(name):
    """Do no images give no images, instead of a launch of no blocks? (And no values counts of 0.)"""
    instance = problem_of(name).instantiate(problem_of(name).cases()[-1], SEED, DEVICE)
    model, got = solve(name, instance)
    with torch.no_grad():
        empty = model(*without_images(instance))
    if name == "histogram":
        assert torch.equal(empty, torch.zeros_like(got))
    else:
        assert empty.shape == (0, *got.shape[1:])


@pytest.mark.parametrize("name", sample(NAMES, FEW))
def test_64_bits_are_refused(name):
    """Is a double tensor, whose bytes would be read as floats, refused with what to do about it? And without inputs of
    floats, one of int64?
    """
    instance = problem_of(name).instantiate(problem_of(name).cases()[0], SEED, DEVICE)
    model, _ = solve(name, instance)
    words = inspect.signature(instance.model.forward).parameters
    floats = any(map(is_floating, instance.inputs))
    known = r"float32: use \.float\(\)|float16: use \.half\(\)|float8_e4m3fn: use \.to\(torch\.float8_e4m3fn\)"
    wanted = known if floats else r"int32: use \.int\(\)"
    for number, word in enumerate(words):
        if floats and not is_floating(instance.inputs[number]):
            continue
        inputs = [
            x.to(torch.float64 if floats else torch.int64) if i == number else x for i, x in enumerate(instance.inputs)
        ]
        with pytest.raises(RuntimeError, match=f"{word} is .*, not ({wanted})"):
            model(*inputs)


@pytest.mark.parametrize("name", [name for name in NAMES if "conv" in name])
def test_an_image_that_does_not_fit_is_refused(name):
    """Are an image smaller than the kernel, and one with other channels, refused in a sentence that says so?"""
    instance = problem_of(name).instantiate(problem_of(name).cases()[0], SEED, DEVICE)
    model, _ = solve(name, instance)
    (x,) = instance.inputs
    with pytest.raises(RuntimeError, match="smaller than the kernel"):
        model(x[..., :2])
    with pytest.raises(RuntimeError, match=r"x has 7 channels, the weight is for \d+"):
        model(x[:, :7])


@pytest.mark.parametrize("name", [name for name in NAMES if "conv" in name])
def test_a_kernel_need_not_be_square(name):
    """Is a kernel of 2 rows and 5 columns, which nn.Conv2d takes, not mistaken for another?"""
    instance = problem_of(name).instantiate(Case("rectangular", {**SMALL, "kernel_size": (2, 5)}), SEED, DEVICE)
    (expected,) = instance.expected()
    assert error_of(solve(name, instance)[1], expected) <= tolerance(instance, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["im2col_conv", "conv_groupnorm_maxpool"])
def test_columns_are_made_for_a_few_images_at_a_time(name):
    """Are all images right when the columns of two images fill the buffer and the last image comes alone?"""
    sizes: dict[str, object] = {
        "batch_size": 3,
        "in_channels": 1,
        "out_channels": 2,
        "height": 228,
        "width": 228,
        "kernel_size": 9,
    }
    assert 1 < 2**23 / (81 * 220 * 220) < 3, "the sizes above no longer make chunks of two"
    if name == "conv_groupnorm_maxpool":
        sizes["num_groups"] = 1
    instance = problem_of(name).instantiate(Case("chunks", sizes), SEED, DEVICE)
    (expected,) = instance.expected()
    assert error_of(solve(name, instance)[1], expected) <= tolerance(instance, expected)


def test_logsumexp_of_infinities():
    """Do infinities give what torch.logsumexp gives, and not NaN?"""
    inf = float("inf")
    x = torch.tensor([[-inf, -inf], [inf, 1.0], [-inf, 2.0], [inf, -inf]], device=DEVICE).reshape(4, 2, 1, 1)
    assert torch.equal(load("logsumexp").ModelNew()(x), torch.logsumexp(x, 1, keepdim=True))


def awkward_rows():
    """x: rows that are masked at either end or throughout, or that hold an infinity or a NaN."""
    inf, nan = float("inf"), float("nan")
    x = torch.randn(7, 70, generator=torch.Generator().manual_seed(SEED))
    x[0, :40], x[1, 3:], x[2], x[3, 50], x[4], x[5, 0], x[6, ::2] = -inf, -inf, -inf, inf, inf, nan, -inf
    return x.to(DEVICE)


def test_softmax_of_infinities():
    """Do masked columns give 0, and rows without a softmax NaN throughout, as in torch?"""
    x = awkward_rows()
    expected = torch.softmax(x, -1)
    assert expected.isnan().any(-1).tolist() == [False, False, True, True, True, True, False]
    torch.testing.assert_close(load("softmax").ModelNew()(x), expected, rtol=1e-5, atol=0, equal_nan=True)


def test_matrices_that_do_not_fit_are_refused():
    """Are matrices whose inner sides differ refused in a sentence that says so, and no terms a product of zeros?"""
    model = load("matmul").ModelNew()
    a, b = torch.randn(5, 7, device=DEVICE), torch.randn(6, 4, device=DEVICE)
    with pytest.raises(RuntimeError, match="A has 7 columns and B 6 rows: both must be the same"):
        model(a, b)
    with pytest.raises(RuntimeError, match="B has 1 dimensions instead of 2"):
        model(a, b[0])
    assert torch.equal(model(a[:, :0], b[:0]), torch.zeros(5, 4, device=DEVICE))


def awkward_windows(pool):
    """(x, scale): windows with a NaN in each place or an infinity, of scales of all signs and 0."""
    torch.manual_seed(SEED)
    places = pool * pool
    x = torch.randn(3, 5, 2 * pool + pool // 2, places * pool + 1)
    for place in range(places):  # window `place` of each row has it at `place`
        row, column = place // pool, place * pool + place % pool
        x[0, :, row, column] = float("nan")
        x[1, :, row, column] = float("inf")
        x[2, :, pool + row, column] = -float("inf")
    x[2, :, :pool, :pool] = -float("inf")  # a window of nothing else
    return x.to(DEVICE), torch.tensor([1.5, -1.0, 0.0, -0.0, 0.25], device=DEVICE).reshape(5, 1, 1)


@pytest.mark.parametrize("pool", [2, 3, 4])
def test_maxpool_of_nan_and_infinities(pool):
    """Does a NaN in any place of a window come out, and an infinity where torch gives one, for scales of any sign?"""
    x, scale = awkward_windows(pool)
    expected = torch.clamp(torch.nn.functional.max_pool2d(x * scale, pool), -0.5, 1.0)
    unclamped = torch.nn.functional.max_pool2d(x * scale, pool)
    for low, high, wanted in ((-0.5, 1.0, expected), (-float("inf"), float("inf"), unclamped)):
        model = load("scale_maxpool_clamp").ModelNew((5, 1, 1), pool, low, high).to(DEVICE)
        model.scale.data = scale
        with torch.no_grad():
            torch.testing.assert_close(model(x), wanted, rtol=1e-6, atol=0, equal_nan=True)
    assert wanted.isnan().any() and wanted.isinf().any()


def test_a_window_that_does_not_fit_is_refused():
    """Is a window larger than the image, which torch refuses too, refused in a sentence that says so?"""
    model = load("scale_maxpool_clamp").ModelNew((2, 1, 1), 5, 0.0, 1.0).to(DEVICE)
    with pytest.raises(RuntimeError, match=r"a pooling window of 5 does not fit into the image \(4 x 9\)"):
        model(torch.rand(1, 2, 4, 9, device=DEVICE))
    with pytest.raises(RuntimeError, match=r"scale must be \(3, 1, 1\), not \[2, 1, 1\]"):
        model(torch.rand(1, 3, 5, 9, device=DEVICE))


def test_groupnorm_takes_any_number_of_dimensions():
    """Are (N, C), (N, C, L) and (N, C, D, H, W) normalised as nn.GroupNorm normalises them?"""
    model = load("groupnorm").ModelNew(6, 2).to(DEVICE)
    for shape in ((3, 6), (3, 6, 5), (2, 6, 3, 4, 5)):
        x = torch.randn(shape, device=DEVICE)
        torch.testing.assert_close(model(x), model.gn(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_exercises_are_marked(name):
    """Do the markers come in pairs, each inside the CUDA source, each hint with the number of lines that it hides?"""
    lines = (KERNELS_REF / name / "solution.py").read_text(encoding="utf-8").splitlines()
    marks = [(number, line.strip()) for number, line in enumerate(lines) if re.match(r"\s*// (>>>|<<<)", line)]
    assert marks and len(marks) % 2 == 0
    for (start, hint), (end, close) in zip(marks[::2], marks[1::2]):
        if hint.startswith("// >>> defect: "):  # test_mended.py looks at those
            assert close == "// <<<" and "// ---" in [line.strip() for line in lines[start:end]]
            continue
        heading = re.fullmatch(r"// >>> exercise: .+ \(about (\d+) lines\)", hint)
        assert heading and close == "// <<<"
        code = [line for line in lines[start + 1 : end] if line.strip() and not line.strip().startswith("//")]
        assert int(heading[1]) == len(code)


@pytest.mark.slow
@pytest.mark.parametrize("name", sample(NAMES, ["conv2d"]))
def test_skeleton_builds_and_does_not_pass(name):
    """Does what is left for the student compile, launch its kernels, and give something else than the answer?"""
    source = (KERNELS_REF / name / "solution.py").read_text(encoding="utf-8")
    if "// >>> defect: " in source and not ON_CPU:
        pytest.skip("on a GPU a race may end well")
    instance = problem_of(name).instantiate(problem_of(name).cases()[0], SEED, DEVICE)
    model = load(name, exercises.skeleton(source, name)).ModelNew(*instance.init_args).to(DEVICE)
    model.load_state_dict(instance.model.state_dict())
    with torch.no_grad():
        got = model(*instance.inputs)
    (expected,) = instance.expected()
    assert got.shape == expected.shape
    assert not torch.allclose(got.double(), expected.double(), rtol=1e-3, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_full_size(name):
    """At KernelBench's size, are the first, a middle and the last image (or row of a product) right?"""
    instance = problem_of(name).instantiate(problem_of(name).full(), SEED, DEVICE)
    held_at_full_size(instance, solve(name, instance)[1])
