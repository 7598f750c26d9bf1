"""Are the fastest references whose inputs are vectors and matrices right, at more sizes than the problem's cases?"""

import contextlib
import importlib.util
import itertools

import pytest
import torch

import simt
from grader.problems import problem
from grader.problems.cases import Case
from tests.kernels_ref.inputs import is_floating
from tests.kernels_ref.test_fastest import FASTEST, OF_IMAGES
from tests.kernels_ref.test_solutions import DEVICE, ON_CPU, SEED, error_of, held_at_full_size, tolerance
from tests.kernels_ref.test_steps import shifted
from tests.sample import sample

NAMES = [name for name in FASTEST if name not in OF_IMAGES]

# Sizes at which a kernel takes another path than in the problem's cases: (sizes, distribution of the inputs, longest
# sum).
SIZES = {
    "attention/fastest": [
        # more tiles of keys than the ring has places, several blocks of queries, all ragged
        ({"batch_size": 1, "heads": 2, "length": 333}, "normal", 333),
        ({"batch_size": 1, "heads": 2, "length": 333, "causal": True}, "normal", 333),
        ({"batch_size": 1, "heads": 1, "length": 256, "causal": True}, "normal", 256),
        ({"batch_size": 1, "heads": 2, "length": 161, "head_dim": 128, "causal": True}, "normal", 161),
        # heads that fill no row of a tile
        ({"batch_size": 1, "heads": 2, "length": 200, "head_dim": 40}, "normal", 200),
        ({"batch_size": 1, "heads": 1, "length": 130, "head_dim": 96, "causal": True}, "normal", 130),
        ({"batch_size": 2, "heads": 1, "length": 70, "head_dim": 8}, "normal", 70),
        # scores that rise above the bound again and again
        ({"batch_size": 1, "heads": 2, "length": 333, "scale": 8.0}, "file", 333),
        # less than a tile, one, and several with a ragged end, of the heads that Hopper's own instructions take
        *(
            (
                {"batch_size": 1, "heads": 2, "length": length, "head_dim": depth, "causal": causal},
                "normal",
                length,
            )
            for length, depth, causal in itertools.product((1, 17, 63, 64, 65, 200), (64, 128), (False, True))
        ),
    ],
    # the same forward, and its logarithms; test_fastest_attention_backward.py tests the gradients
    "attention/fastest_backward": [
        ({"batch_size": 1, "heads": 2, "length": 333, "causal": True}, "normal", 333),
        ({"batch_size": 1, "heads": 2, "length": 333, "scale": 8.0}, "file", 333),
    ],
    "int4_matvec/fastest": [
        # several tiles of rows per block, the last one ragged, and an odd number of groups
        ({"rows": 2003, "columns": 328, "group_size": 128}, "normal", 328),
        ({"rows": 37, "columns": 2080, "group_size": 256}, "normal", 2080),  # two pieces of a row share a scale
        ({"rows": 9, "columns": 1056, "group_size": 384}, "normal", 1056),  # no power of two of them does
        ({"rows": 16, "columns": 32, "group_size": 128}, "normal", 32),  # most warps have no piece
        ({"batch_size": 9, "rows": 33, "columns": 288, "group_size": 128}, "normal", 288),
    ],
    "int8_matmul/fastest": [
        # several blocks on both sides, more tiles of columns than the ring has places, the last one ragged
        ({"batch_size": 131, "rows": 451, "columns": 1040}, "normal", 1040),
        ({"batch_size": 128, "rows": 224, "columns": 128}, "file", 128),  # one whole block, fewer tiles than places
        ({"batch_size": 5, "rows": 226, "columns": 64}, "normal", 64),  # one tile of columns
    ],
    "scan/fastest": [
        ({"length": 8191}, "normal", 8191),  # one element less than a part
        ({"length": 8193}, "normal", 8193),
        ({"length": 3 * 8192}, "uniform", 16384),  # whole parts alone
        ({"length": 257 * 8192 + 5}, "uniform", 16384),  # a block looks back twice
    ],
}
CASES = [
    (name, case)
    for name in NAMES
    for case in [
        *problem.find(FASTEST[name]).cases(),
        *(Case(str(sizes), dict(sizes), inputs, reduction) for sizes, inputs, reduction in SIZES[name]),
    ]
]

# On a CPU: the room of a GPU's shared memory decides on the length of a ring, and attention takes other instructions on
# the H200.
OPTIONS = [{"guard": "end"}, *({"guard": "front", "schedule": "reverse", "device": gpu} for gpu in ("H200", "A100"))]
if not ON_CPU:
    OPTIONS = [{}]

_modules = {}


def load(name):
    """Return the file as a module, built once."""
    if name not in _modules:
        spec = importlib.util.spec_from_file_location("fastest_" + name.replace("/", "_"), FASTEST[name])
        assert spec is not None
        assert spec.loader is not None
        _modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(_modules[name])
    return _modules[name]


def instance_of(name, case):
    """Return the file's problem at a case, a Case or its name."""
    found = problem.find(FASTEST[name])
    case = case if not isinstance(case, str) else next(one for one in found.cases() if one.name == case)
    return found.instantiate(case, SEED, DEVICE)


def simulate(options):
    """Return a context in which kernels run under simt with these options, if there is no GPU."""
    return simt.run(**options) if ON_CPU else contextlib.nullcontext()


def solve(name, instance, **options):
    """Return ModelNew with the instance's weights, and its output, run under simt with these options on a CPU."""
    with torch.no_grad(), simulate(options):
        model = load(name).ModelNew(*instance.init_args).to(DEVICE)
        model.load_state_dict(instance.model.state_dict(), strict=True)
        inputs = [x.clone() for x in instance.inputs]
        got = model(*inputs)
        assert all(map(torch.equal, inputs, instance.inputs)), "an input was modified"
        assert got.dtype == next(filter(is_floating, inputs)).dtype
        return model, got


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}: {case.name}" for name, case in CASES])
def test_computes_what_the_model_computes(name, case):
    """Is the result Model's in float64, reading and writing within bounds in both directions?"""
    instance = instance_of(name, case)
    (expected,) = instance.expected()
    allowed = tolerance(instance, expected)
    for options in OPTIONS:
        assert error_of(solve(name, instance, **options)[1], expected) <= allowed


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_result_does_not_depend_on_the_order_of_threads(name):
    """Is the result the same to the last bit when threads and blocks take turns in other orders (on a GPU: again)?"""
    instance = instance_of(name, "prime sizes")
    _, first = solve(name, instance)
    for seed in (1, 2):
        assert torch.equal(solve(name, instance, schedule=seed)[1], first)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_input_may_begin_anywhere(name):
    """Is the result right where an input begins one or two elements past a multiple of 16 bytes?"""
    instance = instance_of(name, "power of two")
    model, aligned = solve(name, instance)
    for number, x in enumerate(instance.inputs):
        for start in (1, 2):
            inputs = [shifted(x, start) if i == number else other for i, other in enumerate(instance.inputs)]
            with torch.no_grad():
                torch.testing.assert_close(
                    model(*inputs),
                    aligned,
                    rtol=1e-3 if aligned.dtype == torch.half else 1e-6,
                    atol=1e-3 if aligned.dtype == torch.half else 1e-6,
                )


@pytest.mark.skipif(not ON_CPU, reason="kernels that nvcc built have no checks")
@pytest.mark.parametrize("name", sample(NAMES, []))
def test_no_check_finds_anything(name):
    """Is it free of races, unwritten memory, bad barriers and misaligned access, where x is aligned and where not?"""
    for case in ("prime sizes", "power of two"):
        instance = instance_of(name, case)
        with simt.check() as report, torch.no_grad():
            model = load(name).ModelNew(*instance.init_args)
            for start in (0, 1):
                model(*[shifted(x, start) for x in instance.inputs])
        assert report.findings == []


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_scores_that_rise(causal):
    """Are results right where each key's score is above all before it, and where it is far below the first one's?"""
    length, steps = 300, torch.arange(300)
    q = torch.ones(1, 2, length, 64).half()
    k = torch.zeros(1, 2, length, 64).half()
    k[0, 0, :, 0], k[0, 1, :, 0] = steps.half(), -4 * steps.half()
    v = torch.randn(1, 2, length, 64, generator=torch.Generator().manual_seed(SEED)).half()
    found = problem.find(FASTEST["attention/fastest"])
    expected = found.instantiate(Case("any", {"batch_size": 1, "causal": causal}, "normal", 1), SEED, "cpu").model(
        q.double(), k.double(), v.double()
    )
    for options in OPTIONS:
        with torch.no_grad(), simulate(options):
            got = load("attention/fastest").ModelNew(causal)(*(x.to(DEVICE) for x in (q, k, v)))
        torch.testing.assert_close(got.cpu().double(), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "causal"), list(itertools.product((64, 128), (False, True))))
def test_attention_of_equal_scores(depth, causal):
    """Is the result the mean of the values where all scores are the same?"""
    length = 200
    q, k = (torch.full((1, 2, length, depth), x).half() for x in (0.5, -3.0))
    v = torch.randn(1, 2, length, depth, generator=torch.Generator().manual_seed(SEED)).half()
    expected = v.double().mean(2, keepdim=True).expand(v.shape)
    if causal:
        expected = v.double().cumsum(2) / torch.arange(1, length + 1)[:, None]
    for options in OPTIONS:
        with torch.no_grad(), simulate(options):
            got = load("attention/fastest").ModelNew(causal)(*(x.to(DEVICE) for x in (q, k, v)))
        torch.testing.assert_close(got.cpu().double(), expected, rtol=2e-3, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("score", [-1e3, 1e3])
@pytest.mark.parametrize("name", ["attention/fastest", "attention/fastest_backward"])
def test_attention_of_scores_far_from_zero(name, score):
    """Are results right, and gradients numbers, where all scores of a query are far below or above 0?"""
    length = 40
    q = torch.full((1, 1, length, 64), 1.0).half()
    k = torch.full((1, 1, length, 64), score / 8).half() + torch.linspace(0, 1, length)[:, None].half()
    v = torch.randn(1, 1, length, 64, generator=torch.Generator().manual_seed(SEED)).half()
    weights = torch.softmax(q.double() @ k.double().transpose(-2, -1) / 8, dim=-1)
    for options in OPTIONS:
        inputs = [x.to(DEVICE).clone().requires_grad_("backward" in name) for x in (q, k, v)]
        with simulate(options):
            got = load(name).ModelNew(False)(*inputs)
            torch.testing.assert_close(got.detach().cpu().double(), weights @ v.double(), rtol=2e-3, atol=2e-3)
            if "backward" in name:
                got.sum().backward()
                assert all(x.grad is not None and x.grad.isfinite().all() for x in inputs)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [64, 128])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_attention_keeps_nan_to_its_query(value, depth):
    """Does a query that is no finite number give NaN, and leave the others of its warp alone?"""
    found = problem.find(FASTEST["attention/fastest"])
    sizes = {"batch_size": 1, "heads": 1, "length": 100, "head_dim": depth}
    others = [row for row in range(100) if row != 7]
    for options in OPTIONS:
        instance = found.instantiate(Case("any", sizes, "normal", 1), SEED, DEVICE)
        clean = solve("attention/fastest", instance, **options)[1]
        instance.inputs[0][0, 0, 7, 3] = float(value)
        with torch.no_grad(), simulate(options):
            got = load("attention/fastest").ModelNew(*instance.init_args)(*instance.inputs)
        assert got[0, 0, 7].isnan().all()
        torch.testing.assert_close(got[0, 0, others], clean[0, 0, others], rtol=2e-3, atol=2e-3)


@pytest.mark.slow
@pytest.mark.skipif(not ON_CPU, reason="kernels that nvcc built have no checks")
@pytest.mark.parametrize(("name", "device"), list(itertools.product(("fastest", "fastest_backward"), ("H200", "A100"))))
@pytest.mark.parametrize(("length", "depth", "causal"), [(200, 64, True), (65, 64, False), (200, 128, True)])
def test_no_check_finds_anything_in_attention(name, device, length, depth, causal):
    """Is each GPU's path of attention free of races, unwritten memory, bad barriers and misaligned access?"""
    sizes = {"batch_size": 1, "heads": 2, "length": length, "head_dim": depth, "causal": causal}
    instance = instance_of(f"attention/{name}", Case(str(sizes), sizes, "normal", length))
    with simt.check(device=device) as report, torch.no_grad():
        load(f"attention/{name}").ModelNew(causal)(*instance.inputs)
    assert report.findings == []


@pytest.mark.skipif(not ON_CPU, reason="kernels that nvcc built are not counted")
@pytest.mark.parametrize("device", ["H200", "A100"])
def test_attention_traffic_is_counted(device):
    """Is each result stored once, though the extension has more code than 17 bits of an address tell apart?"""
    sizes = {"batch_size": 1, "heads": 2, "length": 200, "head_dim": 64}
    instance = instance_of("attention/fastest", Case(str(sizes), dict(sizes), "normal", 200))
    with simt.count(device=device) as report, torch.no_grad():
        got = load("attention/fastest").ModelNew(False)(*instance.inputs)
    (launch,) = report.launches
    assert launch.counters.global_stores.bytes == 2 * got.numel()


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_full_size(name):
    """At KernelBench's size, are the first, a middle and the last row (or the whole vector) right, many times over?"""
    found = problem.find(FASTEST[name])
    instance = found.instantiate(found.full(), SEED, DEVICE)
    model, first = solve(name, instance)
    with torch.no_grad():
        for _ in range(30):
            again = model(*instance.inputs)
            # How far a block looks back may change the last bit of a scan.
            torch.testing.assert_close(again, first, rtol=1e-6 if name == "scan/fastest" else 0, atol=0)
    held_at_full_size(instance, first)


@pytest.mark.gpu
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["fastest", "fastest_backward"])
@pytest.mark.parametrize(
    ("heads", "depth", "causal"), [(16, 64, False), (16, 64, True), (8, 128, False), (8, 128, True)]
)
def test_full_size_of_attention(name, heads, depth, causal):
    """At full size, are both widths of Hopper's path right in the first and last head, and the same many times over?"""
    sizes = {"batch_size": 8, "heads": heads, "length": 2048, "head_dim": depth, "causal": causal}
    instance = instance_of(f"attention/{name}", Case(str(sizes), sizes, "normal", 2048))
    model, first = solve(f"attention/{name}", instance)
    with torch.no_grad():
        for _ in range(30):
            assert torch.equal(model(*instance.inputs), first)
    for image, head in ((0, 0), (7, heads - 1)):
        part = [x[image : image + 1, head : head + 1] for x in instance.inputs]
        expected, eager = instance.build()(*(x.double() for x in part)), instance.build()(*part)
        got = first[image : image + 1, head : head + 1]
        assert error_of(got, expected) <= 4 * error_of(eager, expected)
