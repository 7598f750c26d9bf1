"""Are the fastest references (fastest.py, fastest_backward.py, and both with _tf32 in the TF32 class)
right, on a GPU as exact as their class asks?"""

import ast
import difflib
import importlib.util
import os
import time
from typing import Any

import pytest
import torch

from grader.judging.grading import grade
from grader.verdict import Outcome
from tests.kernels_ref.test_solutions import KERNELS_REF, ON_CPU, SEED
from tests.sample import sample

FASTEST = {f"{file.parent.name}/{file.stem}": file for file in sorted(KERNELS_REF.glob("*/fastest*.py"))}
# test_fastest_without_images.py has what the others need on a GPU.
OF_IMAGES = [name for name in FASTEST if name.startswith(("groupnorm/", "conv_"))]
FORWARD, BACKWARD = ([name for name in OF_IMAGES if ("backward" in name) == wanted] for wanted in (False, True))
CLASSES = [name for name in FASTEST if name.endswith("_tf32")]
EXACT = 2.0  # times eager's error in the same class


def put(value):
    """What puts a value into an input's second image."""
    return lambda x: x.index_put(tuple(map(torch.tensor, (1, 0, 5, 7))), torch.tensor(value))


# What a fast path could get wrong: the problem's literals, and what becomes of its first input.
SHAPES = {
    "whole": ({}, None),
    "batch 1": ({"batch_size": 1}, None),
    "primes": ({"batch_size": 3, "height": 67, "width": 43}, None),
    "wide": ({"batch_size": 2, "height": 9, "width": 517}, None),
    "channels no multiple": ({"batch_size": 2, "out_channels": 96, "height": 40, "width": 40}, None),
    "other channels in": ({"batch_size": 2, "in_channels": 5, "height": 40, "width": 40}, None),
    "mean 1000": ({"batch_size": 2}, lambda x: 1000 + x),
    "millions": ({"batch_size": 2}, lambda x: 1e6 * x),
    "millionths": ({"batch_size": 2}, lambda x: 1e-6 * x),
    "NaN": ({"batch_size": 2}, put(float("nan"))),
    "one value of 1e6": ({"batch_size": 2}, put(1e6)),
    "one value of -1e10": ({"batch_size": 2}, put(-1e10)),
    "larger": ({"batch_size": 5, "height": 512, "width": 512}, None),
    "larger, odd": ({"batch_size": 7, "height": 301, "width": 302}, None),
    "larger, mean 1000": ({"batch_size": 2, "height": 384, "width": 384}, lambda x: 1000 + x),
    "larger, one value of 1e8": ({"batch_size": 2, "height": 512, "width": 512}, put(1e8)),
    "larger, odd, one value of 1e12": ({"batch_size": 2, "height": 301, "width": 302}, put(1e12)),
    "larger, one value of 1e17": ({"batch_size": 2, "height": 320, "width": 448}, put(1e17)),
    "infinity": ({"batch_size": 2}, put(float("inf"))),
}
OF_GROUPNORM = {"out_channels": "features", "height": "dim1", "width": "dim2", "in_channels": None}

_modules = {}


def load(name):
    """The file as a module, built once."""
    if name not in _modules:
        spec = importlib.util.spec_from_file_location("fastest_" + name.replace("/", "_"), FASTEST[name])
        assert spec is not None
        _modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(_modules[name])
    return _modules[name]


@pytest.mark.slow
@pytest.mark.skipif(not ON_CPU, reason="a GPU runs the fast paths: test_exact")
@pytest.mark.parametrize("name", sample(FASTEST, ["groupnorm/fastest"]))
def test_on_a_cpu(name):
    """Where there is no such GPU, is every case of the problem right and clean of the checks?"""
    verdict = grade(FASTEST[name], problem=FASTEST[name].parent / "model.py", seed=SEED, device="cpu")
    assert verdict.outcome is Outcome.passed, (verdict.first_problem.message, verdict.first_problem)


@pytest.mark.parametrize("name", FASTEST)
def test_plain_file(name):
    """Does it need torch alone, and keep torch's headers out of what nvcc compiles?"""
    tree = ast.parse(FASTEST[name].read_text(encoding="utf-8"))
    imported = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"torch"}
    sources = [
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and "__global__" in node.value.value
    ]
    assert sources and not any("<torch/" in text or "<c10/" in text or "<ATen/" in text for text in sources)
    says = {
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "PRECISION"
    }
    assert says == ({"tf32"} if name.endswith("_tf32") else set())


@pytest.mark.parametrize("name", CLASSES)
def test_same_but_for_the_class(name):
    """Do the two classes' files differ in what the class needs alone? They are handed out on their own, so that they
    repeat each other.
    """
    one, other = (FASTEST[key].read_text(encoding="utf-8").splitlines() for key in (name.removesuffix("_tf32"), name))
    changed = [
        line
        for line in difflib.unified_diff(one, other, n=0, lineterm="")
        if line[:1] in "+-" and line[:3] not in ("+++", "---")
    ]
    assert 0 < len(changed) <= 40, "\n".join(changed)


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", FORWARD)
def test_exact(name, shape):
    """Is no error against float64 larger than twice eager's in the same class, with NaN and infinity where eager has
    them?
    """
    model, mine, inputs = models_of(name, shape)
    with torch.no_grad():
        got = mine(*inputs).double()
        eager = [answer.double() for answer in eagers(model, inputs, name.endswith("_tf32"))]
        right = in_float64(model, inputs)
        if name.endswith("_tf32"):
            eager.append(in_float64(model, inputs, to_tf32))
    usual = eager[0]
    finite = torch.isfinite(right) & torch.isfinite(usual)
    assert torch.equal(torch.isnan(got), torch.isnan(usual))
    error, allowed = worst(got, right, finite), max(worst(one, right, finite) for one in eager)
    # Where eager happens to be exact, float32 itself still rounds: half a unit in the last place of the largest result,
    # and once more before it.
    rounding = 2.0**-22 * worst(right, torch.zeros_like(right), finite)
    assert error <= EXACT * allowed + rounding, (error, allowed)


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", ["batch 1", "larger"])
@pytest.mark.parametrize("name", OF_IMAGES)
def test_a_view_that_begins_anywhere(name, shape):
    """Is the answer right, too, where x does not begin at a multiple of 16 bytes?"""
    _, mine, (x, *_) = models_of(name, shape)
    view = torch.full((x.numel() + 1,), float("nan"), device=x.device)[1:].view(x.shape).copy_(x)
    with torch.no_grad():
        assert float((mine(view) - mine(x)).abs().max()) <= (1e-2 if name.endswith("_tf32") else 1e-5)


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", ["whole", "larger", "larger, odd"])
@pytest.mark.parametrize("name", FORWARD)
def test_the_same_each_time(name, shape):
    """Has each of many launches the same bits? Blocks wait for each other, and must never take what is not there
    yet.
    """
    _, mine, inputs = models_of(name, shape)
    with torch.no_grad():
        first = mine(*inputs)
        assert all(torch.equal(mine(*inputs), first) for _ in range(30))


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", BACKWARD)
def test_exact_gradients(name, shape):
    """The same of the gradients of the input and of every weight, from one random gradient of the result."""
    model, mine, inputs = models_of(name, shape)
    like = mine(*inputs).detach()
    upstream = torch.randn(like.shape, generator=torch.Generator().manual_seed(SEED)).cuda()
    tf32 = name.endswith("_tf32")
    got = gradients(mine, inputs, upstream, len(upstream))
    eager = [gradients(model, inputs, upstream, len(upstream), tf32)]
    if tf32:
        eager.append(
            gradients(
                model.to(memory_format=torch.channels_last),
                [x.to(memory_format=torch.channels_last) for x in inputs],
                upstream,
                len(upstream),
                True,
            )
        )
        model.to(memory_format=torch.contiguous_format)
    double = model.double()
    right = gradients(double, [x.double() for x in inputs], upstream.double(), 4)
    # what TF32 does at its best, for cuDNN does not use it for every shape: the convolution's factors are rounded
    if tf32:
        double.conv.weight.data = to_tf32(double.conv.weight.detach().float()).double()
        eager.append(gradients(double, [to_tf32(x).double() for x in inputs], upstream.double(), 4))
    # A window's winner, or what the clamp cuts, may be another within rounding: then a gradient goes elsewhere as a
    # whole.
    distance = far if name.startswith("conv_groupnorm_maxpool/") else worst
    for key, expected in right.items():
        usual = eager[0][key].double()
        finite = torch.isfinite(expected) & torch.isfinite(usual)
        assert torch.equal(torch.isnan(got[key]), torch.isnan(usual)), key
        error, allowed = (
            distance(got[key].double(), expected, finite),
            max(distance(one[key].double(), expected, finite) for one in eager),
        )
        rounding = 2.0**-22 * float(expected[finite].abs().max()) if finite.any() else 0.0
        assert error <= EXACT * allowed + rounding, (key, error, allowed)


def models_of(name, shape):
    """Of a file and one of SHAPES: the problem's model and the file's with its weights, and the inputs, all on the
    GPU.
    """
    change, spoil = SHAPES[shape]
    if name == "groupnorm/fastest_backward" and shape == "whole":
        # of 112: gradients of all in float64 do not fit; `grader bench` looks at some of them
        change = {"batch_size": 28}
    if name.startswith("groupnorm/"):
        change = {OF_GROUPNORM.get(key, key): value for key, value in change.items()}
    if None in change:
        pytest.skip("the problem has no such size")
    namespace = with_literals(FASTEST[name].parent / "model.py", change)
    torch.manual_seed(SEED)
    model, inputs = (
        namespace["Model"](*namespace["get_init_inputs"]()).cuda(),
        [x.cuda() for x in namespace["get_inputs"]()],
    )
    if spoil:
        inputs[0] = spoil(inputs[0].cpu()).cuda()
    mine = load(name).ModelNew(*namespace["get_init_inputs"]()).cuda()
    mine.load_state_dict(model.state_dict(), strict=True)
    return model, mine, inputs


def gradients(model, inputs, upstream, images, tf32=False):
    """name -> gradient, of the input ("x") and of each parameter, so many images at a time."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = tf32
    model.zero_grad(set_to_none=True)
    of_x = []
    try:
        for i in range(0, len(upstream), images):
            x = inputs[0][i : i + images].detach().requires_grad_()
            model(x, *inputs[1:]).backward(upstream[i : i + images])
            of_x.append(x.grad)
    finally:
        torch.backends.cudnn.allow_tf32 = before
    return {"x": torch.cat(of_x)} | {key: parameter.grad.clone() for key, parameter in model.named_parameters()}


def far(got, right, where):
    """The root of the mean square of the distances."""
    return float((got - right)[where].square().mean().sqrt()) if where.any() else 0.0


def with_literals(path, change) -> dict[str, Any]:
    """The problem's module with other literals at its top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in change:
            node.value = ast.Constant(change[node.targets[0].id])
    namespace: dict[str, Any] = {"__name__": "problem"}
    exec(compile(ast.fix_missing_locations(tree), str(path), "exec"), namespace)
    assert all(namespace.get(key) == value for key, value in change.items())
    return namespace


def eagers(model, inputs, tf32):
    """Eager's answers in a class; in TF32 in both layouts of memory, for cuDNN uses it in one of them more often."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = tf32
    try:
        yield model(*inputs)
        if tf32 and inputs[0].dim() == 4:
            yield model.to(memory_format=torch.channels_last)(
                inputs[0].to(memory_format=torch.channels_last), *inputs[1:]
            )
            model.to(memory_format=torch.contiguous_format)
    finally:
        torch.backends.cudnn.allow_tf32 = before


def to_tf32(x):
    """float32 rounded to TF32's 10 bits of mantissa, to the nearest, halves to even."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFF).view(torch.float32)


def in_float64(model, inputs, rounded=lambda x: x):
    """What is right, four images at a time: a full size does not fit otherwise. rounded: what the convolution's factors
    go through, in float32; to_tf32 gives what TF32 does at its best, for cuDNN does not use it for every shape."""
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    if "conv.weight" in kept:
        model.conv.weight.copy_(rounded(model.conv.weight))
    inputs = [rounded(inputs[0]) if "conv.weight" in kept else inputs[0], *inputs[1:]]
    double = model.double()
    parts = [
        double(inputs[0][i : i + 4].double(), *[x.double() for x in inputs[1:]])
        for i in range(0, inputs[0].shape[0], 4)
    ]
    model.float().load_state_dict(kept)
    return torch.cat(parts)


def worst(got, right, where):
    """The largest distance, an image at a time: all of groupnorm's and what is made on the way take more than a GPU
    has.
    """
    return float(
        torch.stack(
            [(a - b).where(counts, 0.0).abs().max() for a, b, counts in zip(got, right, where, strict=True)]
        ).max()
    )


@pytest.mark.gpu
@pytest.mark.parametrize("name", FASTEST)
def test_builds_quickly(name, tmp_path, monkeypatch):
    """From nothing, is it built within 15 s on the H200's host (16 cores)? Elsewhere the seconds are only printed."""
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    _modules.pop(name, None)
    begun = time.perf_counter()
    load(name)
    seconds = time.perf_counter() - begun
    print(f"{name}: built in {seconds:.1f} s")
    if (os.cpu_count() or 1) >= 16 and os.getloadavg()[0] <= 4:
        assert seconds <= 15
