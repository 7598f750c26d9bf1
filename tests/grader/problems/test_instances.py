"""Are an instance's weights, inputs and expected outputs reproducible and trustworthy?"""

import os
import subprocess
import sys

import pytest
import torch

from grader.paths import KERNELS_REF, ROOT
from grader.problems import determinism, problem
from grader.problems.cases import DISTRIBUTIONS, Case, ProblemError
from grader.problems.values import roll_values
from tests.grader.problems.linear import LINEAR


def test_the_same_seed_gives_the_same_instance(write):
    """Are weights and inputs a function of seed and case alone, whatever else used random numbers?"""
    read = problem.read(write(LINEAR))
    first = read.instantiate(Case("any"), seed=5)
    torch.rand(3)
    second, other = read.instantiate(Case("any"), seed=5), read.instantiate(Case("any"), seed=6)
    assert torch.equal(first.inputs[0], second.inputs[0])
    assert all(torch.equal(a, b) for a, b in zip(first.model.parameters(), second.model.parameters()))
    assert not torch.equal(first.inputs[0], other.inputs[0])
    assert not torch.equal(first.model.get_parameter("gain"), other.model.get_parameter("gain"))


def test_making_an_instance_leaves_the_callers_random_numbers_alone(write):
    """Is torch's generator where it was?"""
    read = problem.read(write(LINEAR))
    torch.manual_seed(0)
    wanted = torch.rand(3)
    torch.manual_seed(0)
    read.instantiate(Case("any"), seed=5).eager()
    assert torch.equal(torch.rand(3), wanted)


def test_no_weight_keeps_its_default(write):
    """Is a weight that the file makes 1 moved, so that leaving it out cannot pass?"""
    gain = problem.read(write(LINEAR)).instantiate(Case("any"), seed=0).model.get_parameter("gain")
    assert (gain != 1).all() and 0.05 < (gain - 1).std() < 0.6


def test_running_statistics_stay_valid(write):
    """Are buffers, such as a variance that must be positive, left alone, also by running the model?"""
    source = LINEAR.replace("nn.Linear(inner, outer)", "nn.Sequential(nn.Linear(inner, outer), nn.BatchNorm1d(outer))")
    instance = problem.read(write(source)).instantiate(Case("any"), seed=0)
    instance.eager()
    instance.expected()
    assert torch.equal(instance.model.get_buffer("layer.1.running_var"), torch.ones(8))
    assert not torch.equal(instance.model.get_parameter("layer.1.weight"), torch.ones(8))


@pytest.mark.parametrize(
    ("inputs", "mean", "deviation"),
    [
        ("normal", 0, 1),
        ("uniform", 0.5, 0.29),
        ("large_mean", 1000, 1),
        ("large", 0, 100),
        ("tiny", 0, 1e-3),
        ("zeros", 0, 0),
    ],
)
def test_inputs_follow_their_distribution(write, inputs, mean, deviation):
    """Do the inputs have the mean and deviation that the distribution says?"""
    x = problem.read(write(LINEAR)).instantiate(Case("any", {"batch_size": 4000}, inputs), seed=1).inputs[0]
    assert x.mean().item() == pytest.approx(mean, abs=0.05 * deviation + 1e-9)
    assert x.std().item() == pytest.approx(deviation, rel=0.05, abs=1e-9)


def test_expected_is_the_float64_result(write):
    """Is the expectation what plain float64 arithmetic on the same numbers gives?"""
    instance = problem.read(write(LINEAR)).instantiate(Case("any"), seed=1)
    layer, x = instance.model.layer, instance.inputs[0].double()
    assert isinstance(layer, torch.nn.Linear)
    by_hand = (x @ layer.weight.double().T + layer.bias.double()).clamp(min=0) * instance.model.get_parameter(
        "gain"
    ).double()
    assert instance.expected()[0].dtype == torch.float64
    assert torch.allclose(instance.expected()[0], by_hand, rtol=1e-14, atol=1e-14)
    assert torch.allclose(instance.eager()[0].double(), by_hand, atol=1e-6)
    assert instance.eager()[0].dtype == torch.float32


def test_noise_is_about_one_rounding(write):
    """Is the noise near the size of a float32 rounding of the result, neither zero nor much more?"""
    instance = problem.read(write(LINEAR)).instantiate(Case("any", {"batch_size": 100}), seed=1)
    size = instance.expected()[0].abs().mean().item()
    assert 1e-8 * size < instance.noise(instance.expected())[0].mean().item() < 1e-6 * size


def test_a_model_that_keeps_a_tensor_outside_its_parameters_has_a_float64_result(write):
    """Are plain attributes, tensors made in forward, and closures over submodules float64 too?"""
    source = LINEAR.replace(
        "self.gain = nn.Parameter(torch.ones(outer))",
        "self.gain = torch.full((outer,), 0.1); part = self.layer; self.f = lambda x: part(x)",
    ).replace("torch.relu(self.layer(x))", "(self.f(x) @ torch.eye(8))")
    instance = problem.read(write(source)).instantiate(Case("any"), seed=1)
    layer, x = instance.model.layer, instance.inputs[0].double()
    assert isinstance(layer, torch.nn.Linear)
    by_hand = (x @ layer.weight.double().T + layer.bias.double()) * torch.tensor(0.1).double()
    assert torch.allclose(instance.expected()[0], by_hand, rtol=1e-14, atol=1e-14)


def test_a_model_that_insists_on_float32_is_its_own_expectation(write):
    """Does a model with no float64 form still have an expectation?"""
    source = LINEAR.replace("self.layer(x)", "nn.functional.linear(x.float(), self.layer.weight)")
    instance = problem.read(write(source)).instantiate(Case("any"), seed=1)
    assert torch.equal(instance.expected()[0], instance.eager()[0].double())


def test_inputs_and_outputs_of_every_kind(write):
    """Do numbers, integer tensors, several inputs and nested outputs come through?"""
    source = """
        import torch

        class Model(torch.nn.Module):
            def forward(self, x, index, factor, n):
                return {"a": x[index] * factor, "b": (x.sum(), [x.argmax()]), "n": n}

        def get_inputs():
            return torch.rand(4, 3), torch.tensor([2, 0]), 2.5, 7

        def get_init_inputs():
            return []
    """
    instance = problem.read(write(source)).instantiate(Case("any", inputs="normal"), seed=1)
    x, index, factor, n = instance.inputs
    assert (index.tolist(), factor, n) == ([2, 0], 2.5, 7)
    first, _, top, number = instance.eager()
    assert torch.equal(first, x[index] * 2.5)
    assert (top.item(), number.item()) == (x.argmax().item(), 7)
    assert [out.dtype for out in instance.expected()] == [torch.float64, torch.float64, torch.int64, torch.int64]


CERTAIN = """
    import torch
    import torch.nn as nn

    class Model(nn.Module):
        def __init__(self, rate):
            super().__init__()
            self.layer = nn.Linear(16, 16)
            self.norm = nn.BatchNorm1d(16)
            self.drop = nn.Dropout(rate)
            self.fixed = torch.ones(16)
            self.register_buffer("drawn", torch.randn(16))

        def forward(self, x):
            return torch.softmax(self.norm(self.drop(self.layer(x))) + self.fixed + self.drawn, 1)

    batch_size = 16
    drop_rate = 0.0

    def get_inputs():
        return [torch.rand(batch_size, 16)]

    def get_init_inputs():
        return [drop_rate]
"""
UNCERTAIN = {
    "dropout": (
        "drop_rate = 0.0",
        "drop_rate = 0.2",
        (
            "called twice with the same inputs and weights it gives other results (dropout, say); --set "
            "drop_rate=0.0 makes it certain."
        ),
    ),
    "noise": (
        "+ self.fixed",
        "+ torch.rand(16)",
        "gives other results (dropout, say); take out of the file what Model draws.",
    ),
    "drawn once": (
        "torch.ones(16)",
        "torch.rand(16)",
        (
            "__init__ draws `fixed`, and a submission is given parameters and buffers alone; make a buffer of it "
            "in the file: self.register_buffer('fixed', ...)."
        ),
    ),
    "kept": (
        "return torch",
        "self.fixed = self.fixed + x.mean(0); return torch",
        "Model keeps `fixed` and `norm.running_mean` and",
    ),
}


@pytest.mark.parametrize("kind", [None, *UNCERTAIN])
def test_what_model_returns_must_be_settled(write, kind):
    """Is a Model reported whose results depend on more than a submission knows, with a remedy; and is one with a drawn
    buffer and batch norm accepted?
    """
    old, new, says = UNCERTAIN.get(kind, ("", "", ""))
    read = problem.read(write(CERTAIN.replace(old, new) if kind else CERTAIN))
    cases = [Case("tiny", {"batch_size": 2}), Case("small", {})]
    if kind is None:
        return determinism.check_determined(read, cases)
    for _ in range(2):  # what was found once is found again
        with pytest.raises(ProblemError) as caught:
            determinism.check_determined(read, cases)
        assert says in str(caught.value)


def test_rare_chance_is_seen(write):
    """Is dropout seen that drops one number in a hundred, and not looked for where one feature leaves softmax no
    choice?
    """
    read = problem.read(write(CERTAIN.replace("drop_rate = 0.0", "drop_rate = 0.01")))
    with pytest.raises(ProblemError, match=r"--set drop_rate=0.0"):
        determinism.check_determined(read, [Case("small", {})])


def test_a_model_that_spoils_its_own_gradient(write):
    """Is it seen that another call writes to what the backward of the one before needs, and only then?"""
    spoils = CERTAIN.replace(
        "return torch", "self.fixed.copy_(x.mean(0)); self.fixed = torch.tanh(self.fixed); return torch"
    )
    for source, later in ((CERTAIN, True), (spoils, False)):
        assert problem.read(write(source)).instantiate(Case("small", {}), 0).differentiable_later() is later


@pytest.mark.skipif(torch.cuda.is_available(), reason="there the file has the GPU that it names")
@pytest.mark.parametrize("where", ["device='cuda'", "device=torch.device('cuda:0')"])
def test_a_file_that_names_a_gpu_runs_where_there_is_none(write, where):
    """Inputs made on "cuda", weights and tensors of forward moved there: are they on the CPU, and the results what they
    are without?
    """
    plain = CERTAIN.replace("+ self.fixed", "+ torch.ones(16)")
    source = plain.replace("batch_size, 16)", f"batch_size, 16, {where}).cuda()").replace(
        "torch.ones(16) +", f"torch.ones(16, {where}).to('cuda') +"
    )
    source = source.replace("super().__init__()", "super().__init__(); self.cuda()")
    here, there = (problem.read(write(text)).instantiate(Case("small", {}), 1) for text in (plain, source))
    assert source.count("cuda") >= 5 and torch.equal(here.eager()[0], there.eager()[0])
    assert there.inputs[0].device.type == "cpu"


ODD = {
    "torch.zeros(2, dtype=torch.uint16)": "a tensor of dtype uint16",
    "torch.zeros(2).to(torch.float8_e8m0fnu)": "a tensor of dtype float8_e8m0fnu",
    "torch.eye(2).to_sparse()": "a tensor that is not dense",
    "numpy.ones(2)": "a ndarray",
    "numpy.float64(2)": "a float64",
    "[3, {'a': (slice(1, 2),)}]": "a slice",
    "2**70": "an integer of more than 64 bits",
    "1j": "a complex",
}
PLACES = ["get_init_inputs() gives", "get_inputs() gives", "Model holds", "a model returns"]
NUMBERS = ["numpy.float64(2)", "2**70", "1j"]  # which a model may return, or cannot for a reason of its own


@pytest.mark.parametrize("place, value", [(p, v) for p in PLACES for v in ODD if p != PLACES[-1] or v not in NUMBERS])
def test_what_cannot_be_handed_over_is_refused(write, place, value):
    """Is a value that no submission can receive or return reported before a submission is blamed for it?"""
    given = {place: value}
    source = f"""
        import numpy
        import torch

        class Model(torch.nn.Module):
            def __init__(self, made):
                super().__init__()
                made = {given.get("Model holds")}
                if isinstance(made, torch.Tensor):
                    self.register_buffer("made", made)

            def get_extra_state(self):
                return {given.get("Model holds")}

            def forward(self, x):
                return {given.get("a model returns", "x")}

        def get_inputs():
            return [{given.get("get_inputs() gives", "torch.ones(2)")}]

        def get_init_inputs():
            return [{given.get("get_init_inputs() gives")}]
    """
    with pytest.raises(ProblemError) as caught:
        problem.read(write(source)).instantiate(Case("any"), seed=0).eager()
    assert f"{place} " in str(caught.value) and ODD[value] in str(caught.value)


QUANTISED = """
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.linspace(-1, 1, 24).view(3, 8).to(torch.float8_e5m2))

        def forward(self, x, weight):
            return x @ (weight.to(x.dtype) + self.kept.to(x.dtype)).T

    def get_inputs():
        return [torch.rand(4, 8), torch.linspace(-448, 448, 24).view(3, 8).to(torch.float8_e4m3fn)]

    def get_init_inputs():
        return []
"""


@pytest.mark.parametrize("inputs", DISTRIBUTIONS)
def test_floats_of_8_bits_keep_the_values_of_the_file(write, inputs):
    """Are inputs and buffers of 8 bits left alone, do they not widen the tolerance, and have they no gradient?"""
    instance = problem.read(write(QUANTISED)).instantiate(Case("any", inputs=inputs), seed=1)
    x, weight = instance.inputs
    assert torch.equal(weight, torch.linspace(-448, 448, 24).view(3, 8).to(torch.float8_e4m3fn))
    assert torch.equal(
        instance.model.get_buffer("kept").double(), torch.linspace(-1, 1, 24).view(3, 8).to(torch.float8_e5m2).double()
    )
    expected = instance.expected()
    by_hand = x.double() @ (weight.double() + instance.model.get_buffer("kept").double()).T
    assert torch.allclose(expected[0], by_hand, rtol=1e-14, atol=1e-14)
    assert instance.noise(expected)[0].max() <= 1e-6 * x.abs().max() * 448 * 8
    assert instance.differentiable() == ([0], [])
    moved, same = roll_values(instance.inputs)
    assert same is weight and (inputs == "zeros" or not torch.equal(moved, x))


def test_results_of_8_bits_are_refused(write):
    """Is a Model whose results have one digit, which no tolerance judges, reported before a submission runs?"""
    source = QUANTISED.replace("self.kept.to(x.dtype)).T", "0).T).to(torch.float8_e4m3fn)").replace("x @", "(x @")
    with pytest.raises(ProblemError, match=r"a model returns dense tensors .* not a tensor of dtype float8_e4m3fn"):
        problem.read(write(source)).instantiate(Case("any"), seed=0).eager()


@pytest.mark.parametrize("form", ["[[8], {'outer': 8}]", "{'inner': 8, 'outer': 8}", "(8, 8)", "[8, 8]"])
def test_every_form_of_init_inputs(write, form):
    """Are positional arguments, keyword arguments and both accepted?"""
    instance = problem.read(write(LINEAR.replace("return [inner, outer]", f"return {form}"))).instantiate(
        Case("any"), 0
    )
    assert instance.eager()[0].shape == (4, 8)


@pytest.mark.slow
def test_full_size_leaves_no_folder_among_temporary_files(tmp_path):
    """Does torch's compiler, imported for some operators without values, keep to the grader's cache?"""
    code = """
import sys
from grader.paths import KERNELS_REF
from grader.problems import problem
from grader.problems.cases import Case
instance = problem.read(KERNELS_REF / "bias_scale_sigmoid" / "model.py").instantiate(Case("any"), 1, "meta")
assert "torch._dynamo" not in sys.modules
instance.eager()
assert "torch._dynamo" in sys.modules
"""
    for name in ("tmp", "cache"):
        (tmp_path / name).mkdir()
    places = {"TMPDIR": str(tmp_path / "tmp"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    kept = {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}
    subprocess.run([sys.executable, "-c", code], check=True, env=kept | places | {"PYTHONPATH": str(ROOT)})
    assert not list((tmp_path / "tmp").iterdir()) and (tmp_path / "cache" / "grader" / "inductor").is_dir()


def test_full_size_is_the_files_own_and_allocates_nothing():
    """Does asking for the full case of a problem of 7 GB take no memory to speak of?"""
    full = problem.read(KERNELS_REF / "groupnorm" / "model.py").full()
    assert full.set == {} and full.reduction == 64 // 8 * 512 * 512


STRIDED = """
    import torch

    n, m = 6, 5

    class Model(torch.nn.Module):
        def forward(self, turned, repeated, windows, spaced):
            given = [value.stride() for value in (turned, repeated, windows, spaced)]
            assert given == [(1, m), (1, 0), (2, 1), (2 * n, 2)], given
            return turned * repeated + spaced * windows

    def get_inputs():
        return [
            torch.rand(n, m).T,
            torch.rand(m, 1).expand(m, n),
            torch.rand(2 * m + n).unfold(0, n, 2)[:m],
            torch.rand(m, 2 * n)[:, ::2],
        ]

    def get_init_inputs():
        return []
"""


@pytest.mark.parametrize("inputs", DISTRIBUTIONS)
def test_inputs_have_the_strides_of_the_file(write, inputs):
    """Does Model get transposed, repeated, overlapping and spaced inputs as the file makes them, at other sizes too?

    In each of its runs: eager, in float64, with perturbed inputs, and with gradients.
    """
    read = problem.read(write(STRIDED))
    instance = read.instantiate(Case("other sizes", {"n": 9, "m": 4}, inputs), seed=1)
    turned, repeated, windows, spaced = instance.inputs
    by_hand = turned.double() * repeated.double() + spaced.double() * windows.double()
    assert torch.allclose(instance.expected()[0], by_hand, rtol=1e-14, atol=1e-14)
    assert torch.allclose(instance.eager()[0].double(), by_hand, rtol=1e-4, atol=1e-4)
    assert torch.equal(repeated[:, 0], repeated[:, -1]) and torch.equal(windows[0, 2:], windows[1, :-2])
    moved = instance.noise(instance.expected())[0]
    assert inputs == "zeros" or 0 < moved.max() < 1
    upstream = [torch.ones_like(instance.eager()[0])]
    eager, right = instance.gradients(upstream)[0], instance.expected_gradients(upstream)
    for got, wanted in zip(eager, right, strict=True):
        assert got is not None and wanted is not None and torch.allclose(got.double(), wanted, rtol=1e-5)
    again = read.instantiate(Case("other sizes", {"n": 9, "m": 4}, inputs), seed=1)
    assert all(map(torch.equal, instance.inputs, again.inputs))


def test_other_values_keep_the_strides(write):
    """Are inputs whose values are moved on by one place laid out as before?"""
    instance = problem.read(write(STRIDED)).instantiate(Case("any"), seed=1)
    moved = roll_values(instance.inputs)
    assert [value.stride() for value in moved] == [value.stride() for value in instance.inputs]
    assert not any(map(torch.equal, moved, instance.inputs))
