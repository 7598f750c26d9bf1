"""Are the gradients of attention's fastest_backward right at more sizes than the problem's cases?"""

import itertools

import pytest
import torch

import simt
from grader.problems.cases import Case
from tests.kernels_ref.test_backward import compute_reference, gradients
from tests.kernels_ref.test_fastest_without_images import OPTIONS, instance_of, load
from tests.kernels_ref.test_solutions import DEVICE, ON_CPU, SEED
from tests.kernels_ref.test_steps import shifted
from tests.sample import sample

NAME = "attention/fastest_backward"
# One tile and several on both sides, all ragged; heads that fill a row of a tile, heads that do not, and one that the
# kernels for the tensor cores do not take.
SIZES = [
    *itertools.product((1, 17, 70, 161, 333), (8, 32, 40, 64, 96, 128), (False, True)),
    *itertools.product((63, 64, 65, 200), (64, 128), (False, True)),  # around a tile of Hopper's forward
    (40, 37, True),
]
KEPT = [(70, 64, False), (161, 64, True), (40, 37, True)]
UNIT = torch.finfo(torch.half).eps / 2  # relative error of one rounding


def make(length, depth, causal, **sizes):
    """Return the problem at these sizes, ModelNew, and an upstream gradient."""
    sizes = {"batch_size": 1, "heads": 2, "length": length, "head_dim": depth, "causal": causal} | sizes
    instance = instance_of(NAME, Case(str(sizes), sizes, "file" if "scale" in sizes else "normal", length))
    upstream = torch.randn(instance.inputs[0].shape, generator=torch.Generator().manual_seed(SEED))
    return instance, load(NAME).ModelNew(causal), upstream.to(DEVICE, torch.half)


def assert_right(instance, model, upstream, **options):
    """Check that gradients are float64's but for the rounding to 16 bits of what is multiplied."""
    right = compute_reference(instance, upstream)
    eager = gradients(instance.build(), instance.inputs, upstream)
    got = gradients(model, instance.inputs, upstream, **options)
    assert got.keys() == right.keys()
    # The gradients of one token's q and k are 0, and differences of sums in another order here.
    rounding = 2.0**-20 * float(upstream.abs().max())
    for key, gradient in got.items():
        error, own = (float((a.double() - right[key]).abs().max()) for a in (gradient, eager[key]))
        assert gradient.dtype == torch.half
        assert error <= 4 * own + 4 * UNIT * float(right[key].abs().max()) + rounding, key


@pytest.mark.parametrize(("length", "depth", "causal"), sample(SIZES, KEPT.__contains__))
def test_gradients(length, depth, causal):
    """Are they Model's in float64, reading and writing within bounds in both directions?"""
    for options in OPTIONS:
        assert_right(*make(length, depth, causal), **options)


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_of_large_scores(causal):
    """Are they right where one key has nearly all of the probability?"""
    for options in OPTIONS:
        assert_right(*make(333, 64, causal, scale=8.0), **options)


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "causal"), [(32, False), (64, True), (128, False)])
def test_gradients_do_not_depend_on_the_order_of_threads(depth, causal):
    """Are they the same to the last bit when threads and blocks take turns in other orders (on a GPU: again)?"""
    instance, model, upstream = make(161, depth, causal)
    first = gradients(model, instance.inputs, upstream)
    for options in ({"schedule": "reverse"}, {"schedule": 1}, {"schedule": 2}) if ON_CPU else [{}] * 10:
        again = gradients(model, instance.inputs, upstream, **options)
        assert all(torch.equal(first[key], again[key]) for key in first)


@pytest.mark.slow
def test_layout_of_inputs_and_upstream_gradient_does_not_matter():
    """Are gradients the same where a tensor begins anywhere, is transposed, or is one number with strides of 0?"""
    instance, model, upstream = make(70, 40, True)
    right = gradients(model, instance.inputs, upstream)
    turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (*instance.inputs, upstream)]
    for change in (lambda x: shifted(x, 1), lambda x: shifted(x, 2), lambda x: turned.pop(0)):
        inputs = [change(x).requires_grad_() for x in instance.inputs]
        got = torch.autograd.grad(model(*inputs), inputs, change(upstream))
        assert all(torch.equal(right[number], gradient) for number, gradient in enumerate(got))
    one = torch.tensor(0.75, device=DEVICE, dtype=torch.half).expand(upstream.shape)
    whole, got = (gradients(model, instance.inputs, up) for up in (one.contiguous(), one))
    assert all(torch.equal(whole[key], got[key]) for key in whole)


@pytest.mark.slow
def test_nan_stays_in_its_query():
    """Does a query that is no finite number give a gradient of NaN, and leave those of the other queries alone?"""
    for options, value in itertools.product(OPTIONS, ("nan", "inf")):
        instance, model, upstream = make(100, 64, False)
        clean = gradients(model, instance.inputs, upstream, **options)[0]
        instance.inputs[0][0, 0, 7, 3] = float(value)
        got = gradients(model, instance.inputs, upstream, **options)[0]
        assert got[0, 0, 7].isnan().all()
        got[0, 0, 7] = clean[0, 0, 7]
        torch.testing.assert_close(got, clean, rtol=2e-3, atol=2e-3)


@pytest.mark.slow
@pytest.mark.skipif(not ON_CPU, reason="kernels that nvcc built have no checks")
@pytest.mark.parametrize(
    ("length", "depth", "causal"), [(161, 64, True), (150, 32, False), (70, 128, True), (40, 37, False)]
)
def test_no_check_finds_anything_in_backward(length, depth, causal):
    """Is backward free of races, unwritten memory, bad barriers and misaligned access?"""
    instance, model, upstream = make(length, depth, causal)
    with simt.check() as report:
        for start in (0, 1):
            gradients(model, [shifted(x, start) for x in instance.inputs], shifted(upstream, start))
    assert report.findings == []


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("heads", "depth", "causal"), [(16, 64, False), (16, 64, True), (8, 128, False), (8, 128, True)]
)
def test_full_size_gradients(heads, depth, causal):
    """At full size, are the first and the last head's gradients right, and the same many times over?"""
    instance, model, upstream = make(2048, depth, causal, batch_size=8, heads=heads)
    first = gradients(model, instance.inputs, upstream)
    for _ in range(30):
        again = gradients(model, instance.inputs, upstream)
        assert all(torch.equal(first[key], again[key]) for key in first)
    for image, head in ((0, 0), (7, heads - 1)):
        part = [x[image : image + 1, head : head + 1].clone() for x in instance.inputs]
        of_head = upstream[image : image + 1, head : head + 1]
        right = gradients(instance.build(), [x.double() for x in part], of_head.double())
        eager = gradients(instance.build(), part, of_head)
        for key, expected in right.items():
            got = first[key][image : image + 1, head : head + 1]
            error, own = (float((a.double() - expected).abs().max()) for a in (got, eager[key]))
            assert error <= 4 * own + 4 * UNIT * float(expected.abs().max()), key
