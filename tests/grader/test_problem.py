"""Is any KernelBench file a problem as it stands, at any size, with answers that can be trusted?"""

import os
import subprocess
import sys
import textwrap

import pytest
import torch

from grader import problem
from grader.problem import Case, ProblemError

LINEAR = """
    import torch
    import torch.nn as nn


    class Model(nn.Module):
        def __init__(self, inner, outer):
            super().__init__()
            self.layer = nn.Linear(inner, outer)
            self.gain = nn.Parameter(torch.ones(outer))

        def forward(self, x):
            return torch.relu(self.layer(x)) * self.gain


    batch_size = 4
    inner = outer = 8
    shape = (batch_size, inner)


    def get_inputs():
        return [torch.rand(*shape)]


    def get_init_inputs():
        return [inner, outer]
"""

TF32 = """
    PRECISION = "tf32"
"""


@pytest.fixture
def write(tmp_path):
    """A function that writes a problem file and gives its path."""

    def write(text, name="thing.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    return write


# --- reading ---------------------------------------------------------------------------------------------------------


def test_overrides_reach_what_is_derived_from_them(write):
    """Does a replaced literal change the sizes computed from it, through chained and derived assignments?"""
    read = problem.read(write(LINEAR), {"batch_size": "2", "inner": "3"})
    instance = read.instantiate(Case("any"), seed=0)
    assert instance.inputs[0].shape == (2, 3)
    assert instance.init_args == [3, 8]


def test_a_case_sets_sizes_and_the_command_line_wins(write):
    """Do a case's sizes apply on top of the file, and --set on top of both?"""
    read = problem.read(write(LINEAR), {"batch_size": "2"})
    instance = read.instantiate(Case("any", {"batch_size": 7, "inner": 5}), seed=0)
    assert instance.inputs[0].shape == (2, 5)


@pytest.mark.parametrize(
    ("assignment", "value"),
    [("M = 1024 * 2", 2048), ("M, N = 6, 7", 6), ("N = M = 9", 9), ("M: int = 4", 4), ("M = (8, 1, 1)", (8, 1, 1)), ("M = -3", -3)],
)
def test_every_form_of_a_literal_can_be_set(write, assignment, value):
    """Are arithmetic, tuples, chains and annotations read as literals and replaced?"""
    path = write(LINEAR + f"\n    {assignment}\n")
    assert problem.read(path).literals["M"] == value
    assert problem.read(path, {"M": "11"}).module({}).M == 11


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"missing": "3"}, "assigns no literal to 'missing' (it does to: batch_size, inner, outer)"),
        ({"shape": "(1, 2)"}, "assigns no literal to 'shape'"),
        ({"inner": "rm -rf"}, "must be a Python literal"),
    ],
)
def test_an_override_of_nothing_is_refused(write, overrides, says):
    """Is a name that is no literal, or a value that is none, refused with what would do?"""
    with pytest.raises(ProblemError) as caught:
        problem.read(write(LINEAR), overrides)
    assert says in str(caught.value)


BROKEN = {
    "no Model": ("def get_inputs(): return []\ndef get_init_inputs(): return []\n", "has no Model;", None),
    "no get_inputs": ("class Model: pass\ndef get_init_inputs(): return []\n", "has no get_inputs;", None),
    "syntax": ("import torch\nclass Model(:\n", "syntax error", 2),
    "raises": ("import torch\nx = 1\nx.y = 3\n", "the file raised AttributeError", 3),
    "import": ("import nothing_of_this_name\n", "ModuleNotFoundError: No module named 'nothing_of_this_name'", 1),
    "exits": ("import sys\n\nsys.exit(3)\n", "SystemExit", 3),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_one_sentence_with_its_line(write, kind):
    """Is a file that cannot be used refused in one line that names file, line and reason?"""
    source, says, line = BROKEN[kind]
    path = write(source)
    with pytest.raises(ProblemError) as caught:
        problem.read(path)
    assert says in str(caught.value) and str(path) in str(caught.value)
    assert caught.value.line == line
    assert "\n" not in str(caught.value)


def test_annotations_are_what_they_say(write):
    """Is the file compiled as Python compiles it, without what grader's own modules import from __future__?"""
    problem.read(write(LINEAR + "\n    def f(x: int): pass\n    assert f.__annotations__ == {'x': int}\n"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("return [torch.rand(*shape)]", "return [torch.rand(*shapes)]", "get_inputs() raised NameError"),
        ("return [inner, outer]", "return [inner]", "Model(...) raised TypeError"),
        ("return torch.relu", "raise ValueError('odd'); return torch.relu", "Model.forward raised ValueError: odd"),
    ],
)
def test_a_function_that_raises_is_named(write, old, new, says):
    """Is an exception in the file's own functions told with the line that raised?"""
    read = problem.read(write(LINEAR.replace(old, new)))
    with pytest.raises(ProblemError) as caught:
        read.instantiate(Case("any"), seed=0).eager()
    assert says in str(caught.value)


def test_a_missing_file_is_told(tmp_path):
    """Is a path that leads nowhere one sentence?"""
    with pytest.raises(ProblemError, match="cannot be read"):
        problem.read(tmp_path / "none.py")


# --- finding ---------------------------------------------------------------------------------------------------------


def test_a_submission_finds_its_problem(tmp_path):
    """Do a student's copy, a reference solution and a step lead to the same problem?"""
    for path in (tmp_path / "groupnorm.py", problem.KERNELS_REF / "groupnorm" / "solution.py"):
        assert problem.find(path).name == "groupnorm"
    assert problem.find(problem.KERNELS_REF / "groupnorm" / "steps" / "01_naive.py").name == "groupnorm"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("groupnorm_ada.py", "groupnorm"),
        ("ada.lovelace-conv2d.py", "conv2d"),
        ("conv_groupnorm_maxpool_2.py", "conv_groupnorm_maxpool"),
    ],
)
def test_a_handed_in_name_finds_its_problem(tmp_path, file, name):
    """Does a file name with the student's name in it lead to the longest problem name that it holds?"""
    assert problem.find(tmp_path / file).name == name


@pytest.mark.parametrize("file", ["handed_in/logsumexp_ada.py", "handed_in/logsumexp.py", "handed_in/eve/logsumexp.py", "conv2d/logsumexp_ada.py"])
def test_a_files_own_name_tells_before_what_it_lies_in(write, file):
    """Is a handed-in model.py beside or above the file no problem, and a folder's name less than the file's?"""
    write("raise SystemExit('run unasked')", "handed_in/model.py")
    assert problem.find(write("", file)).path == problem.KERNELS_REF / "logsumexp" / "model.py"


def test_a_folders_name_tells_where_the_files_does_not(tmp_path):
    assert problem.find(tmp_path / "conv2d" / "ada.py").name == problem.find(tmp_path / "conv2d" / "ada" / "work.py").name == "conv2d"


@pytest.mark.parametrize("file", ["mine/solution.py", "mine/ada/solution.py"])
def test_a_model_beside_a_nameless_file_is_to_be_named(write, file):
    """Does who keeps a model.py beside the submissions learn to say so?"""
    model = write("raise SystemExit('run unasked')", "mine/model.py")
    with pytest.raises(ProblemError, match=rf"--problem FILE\. {model} may have been handed in"):
        problem.find(write("", file))


def test_an_unknown_name_lists_the_known(tmp_path):
    """Does a misspelt file name give the nearest problem, and a strange one all of them?"""
    with pytest.raises(ProblemError, match="did you mean groupnorm.py"):
        problem.find(tmp_path / "gruopnorm.py")
    with pytest.raises(ProblemError, match="conv2d, .*logsumexp.*--problem FILE"):
        problem.find(tmp_path / "zzz.py")


# --- instances -------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_instance(write):
    """Are weights and inputs a function of seed and case alone, whatever else used random numbers?"""
    read = problem.read(write(LINEAR))
    first = read.instantiate(Case("any"), seed=5)
    torch.rand(3)
    second, other = read.instantiate(Case("any"), seed=5), read.instantiate(Case("any"), seed=6)
    assert torch.equal(first.inputs[0], second.inputs[0])
    assert all(torch.equal(a, b) for a, b in zip(first.model.parameters(), second.model.parameters()))
    assert not torch.equal(first.inputs[0], other.inputs[0])
    assert not torch.equal(first.model.gain, other.model.gain)


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
    gain = problem.read(write(LINEAR)).instantiate(Case("any"), seed=0).model.gain
    assert (gain != 1).all() and 0.05 < (gain - 1).std() < 0.6


def test_running_statistics_stay_valid(write):
    """Are buffers, such as a variance that must be positive, left alone, also by running the model?"""
    source = LINEAR.replace("nn.Linear(inner, outer)", "nn.Sequential(nn.Linear(inner, outer), nn.BatchNorm1d(outer))")
    instance = problem.read(write(source)).instantiate(Case("any"), seed=0)
    instance.eager(), instance.expected()
    assert torch.equal(instance.model.layer[1].running_var, torch.ones(8))
    assert not torch.equal(instance.model.layer[1].weight, torch.ones(8))


@pytest.mark.parametrize(
    ("inputs", "mean", "deviation"),
    [("normal", 0, 1), ("uniform", 0.5, 0.29), ("large_mean", 1000, 1), ("large", 0, 100), ("tiny", 0, 1e-3), ("zeros", 0, 0)],
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
    by_hand = (x @ layer.weight.double().T + layer.bias.double()).clamp(min=0) * instance.model.gain.double()
    assert instance.expected()[0].dtype == torch.float64
    assert torch.allclose(instance.expected()[0], by_hand, rtol=1e-14, atol=1e-14)
    assert torch.allclose(instance.eager()[0].double(), by_hand, atol=1e-6)
    assert instance.eager()[0].dtype == torch.float32


def test_noise_is_about_one_rounding(write):
    """Is the noise near the size of a float32 rounding of the result, neither zero nor much more?"""
    instance = problem.read(write(LINEAR)).instantiate(Case("any", {"batch_size": 100}), seed=1)
    size = instance.expected()[0].abs().mean().item()
    assert 1e-8 * size < instance.noise()[0].mean().item() < 1e-6 * size


def test_a_model_that_keeps_a_tensor_outside_its_parameters_has_a_float64_result(write):
    """Are plain attributes, tensors made in forward, and closures over submodules float64 too?"""
    source = LINEAR.replace(
        "self.gain = nn.Parameter(torch.ones(outer))",
        "self.gain = torch.full((outer,), 0.1); part = self.layer; self.f = lambda x: part(x)",
    ).replace("torch.relu(self.layer(x))", "(self.f(x) @ torch.eye(8))")
    instance = problem.read(write(source)).instantiate(Case("any"), seed=1)
    layer, x = instance.model.layer, instance.inputs[0].double()
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
    first, total, top, number = instance.eager()
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
    "dropout": ("drop_rate = 0.0", "drop_rate = 0.2", "called twice with the same inputs and weights it gives other results (dropout, say); --set drop_rate=0.0 makes it certain."),
    "noise": ("+ self.fixed", "+ torch.rand(16)", "gives other results (dropout, say); take out of the file what Model draws."),
    "drawn once": (
        "torch.ones(16)", "torch.rand(16)",
        "__init__ draws `fixed`, and a submission is given parameters and buffers alone; make a buffer of it in the file: self.register_buffer('fixed', ...).",
    ),
    "kept": ("return torch", "self.fixed = self.fixed + x.mean(0); return torch", "Model keeps `fixed` and `norm.running_mean` and"),
}


@pytest.mark.parametrize("kind", [None, *UNCERTAIN])
def test_what_model_returns_must_be_settled(write, kind):
    """Is a Model told whose results depend on more than a submission knows, with what helps; and is one with a drawn buffer and batch norm left alone?"""
    old, new, says = UNCERTAIN.get(kind, ("", "", ""))
    read = problem.read(write(CERTAIN.replace(old, new) if kind else CERTAIN))
    cases = [Case("tiny", {"batch_size": 2}), Case("small", {})]
    if kind is None:
        return read.check_certain(cases)
    with pytest.raises(ProblemError) as caught:
        read.check_certain(cases)
    assert says in str(caught.value)


def test_rare_chance_is_seen(write):
    """Is dropout seen that drops one number in a hundred, and not looked for where one feature leaves softmax no choice?"""
    read = problem.read(write(CERTAIN.replace("drop_rate = 0.0", "drop_rate = 0.01")))
    with pytest.raises(ProblemError, match="--set drop_rate=0.0"):
        read.check_certain([Case("small", {})])


def test_a_model_that_spoils_its_own_gradient(write):
    """Is it seen that another call writes to what the backward of the one before needs, and only then?"""
    spoils = CERTAIN.replace("return torch", "self.fixed.copy_(x.mean(0)); self.fixed = torch.tanh(self.fixed); return torch")
    for source, later in ((CERTAIN, True), (spoils, False)):
        assert problem.read(write(source)).instantiate(Case("small", {}), 0).differentiable_later() is later


@pytest.mark.skipif(torch.cuda.is_available(), reason="there the file has the GPU that it names")
@pytest.mark.parametrize("where", ["device='cuda'", "device=torch.device('cuda:0')"])
def test_a_file_that_names_a_gpu_runs_where_there_is_none(write, where):
    """Inputs made on "cuda", weights and tensors of forward moved there: are they on the CPU, and the results what they are without?"""
    plain = CERTAIN.replace("+ self.fixed", "+ torch.ones(16)")
    source = plain.replace("batch_size, 16)", f"batch_size, 16, {where}).cuda()").replace("torch.ones(16) +", f"torch.ones(16, {where}).to('cuda') +")
    source = source.replace("super().__init__()", "super().__init__(); self.cuda()")
    here, there = (problem.read(write(text)).instantiate(Case("small", {}), 1) for text in (plain, source))
    assert source.count("cuda") >= 5 and torch.equal(here.eager()[0], there.eager()[0])
    assert there.inputs[0].device.type == "cpu"


ODD = {
    "torch.zeros(2, dtype=torch.uint16)": "a tensor of dtype uint16",
    "torch.zeros(2).to(torch.float8_e5m2)": "a tensor of dtype float8_e5m2",
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
    """Is a value that no submission can be sent, or asked for, told before one is blamed for it?"""
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


@pytest.mark.parametrize("form", ["[[8], {'outer': 8}]", "{'inner': 8, 'outer': 8}", "(8, 8)", "[8, 8]"])
def test_every_form_of_init_inputs(write, form):
    """Are positional arguments, keyword arguments and both accepted?"""
    instance = problem.read(write(LINEAR.replace("return [inner, outer]", f"return {form}"))).instantiate(Case("any"), 0)
    assert instance.eager()[0].shape == (4, 8)


# --- precision -------------------------------------------------------------------------------------------------------


def test_a_file_says_how_precise_an_answer_must_be(write):
    """Is PRECISION told by problem, cases and instances, "fp32" where a file has none, and may --set change it?"""
    for text, overrides, expected in ((LINEAR, {}, "fp32"), (LINEAR + TF32, {}, "tf32"), (LINEAR + TF32, {"PRECISION": "'fp32'"}, "fp32")):
        read = problem.read(write(text), overrides)
        assert {read.precision, read.full().precision, *(case.precision for case in read.cases())} == {expected}
        assert read.instantiate(Case("file"), seed=1).precision == expected


def test_an_unknown_precision_is_refused(write):
    """Is a class that nobody knows refused with those that there are?"""
    with pytest.raises(ProblemError, match="PRECISION is 'bf16', not one of fp32, tf32"):
        problem.read(write(LINEAR + TF32.replace("tf32", "bf16")))


def test_eager_of_a_tf32_problem_has_rounded_factors(write):
    """Are both factors of a product rounded to TF32, what is added and what follows not, and the float64 result not at all?"""
    made = problem.read(write(LINEAR + TF32)).instantiate(Case("file"), seed=1)
    plain = problem.read(write(LINEAR)).instantiate(Case("file"), seed=1)
    (x,), layer, gain = made.inputs, made.model.layer, made.model.gain
    products = problem.tf32(x).double() @ problem.tf32(layer.weight.detach()).double().T
    expected = torch.relu(products + layer.bias.detach()) * gain.detach()
    (eager,), (exact,) = made.eager(), made.expected()
    assert torch.allclose(eager.double(), expected, rtol=1e-6, atol=1e-7)
    assert torch.equal(exact, plain.expected()[0])
    assert 1e-5 < (eager - exact).abs().max() < 2e-3 and (plain.eager()[0] - exact).abs().max() < 1e-6


def test_tf32_is_the_nearest_number_of_11_bits():
    """Does no other multiple of the last bit lie nearer, in either sign, and are infinity, NaN and doubles kept?"""
    x = torch.randn(1000, generator=torch.Generator().manual_seed(1)).double()
    bit = torch.ldexp(torch.ones_like(x), torch.frexp(x).exponent - 11)
    got = problem.tf32(x.float()).double()
    assert torch.equal(got / bit, (got / bit).round()) and ((got - x).abs() <= 0.5001 * bit).all() and (got != x).any()
    assert problem.tf32(torch.tensor([1 + 2.0**-11])).item() == 1 + 2.0**-10, "halves go away from zero"
    odd = torch.tensor([float("inf"), float("nan"), -float("inf")])
    assert torch.equal(problem.tf32(odd).nan_to_num(7), odd.nan_to_num(7)) and torch.equal(problem.tf32(x), x)


def test_reduction_is_the_longest_sum(write):
    """Is the number of terms that of the longest sum: a dot product, a normalisation's group, a mean?"""
    count = problem.read(write(LINEAR)).instantiate(Case("any", {"inner": 40}), 0).reduction()
    assert count == 40
    read = problem.read(problem.KERNELS_REF / "conv_groupnorm_logsumexp" / "model.py")
    sizes = {"batch_size": 2, "in_channels": 4, "out_channels": 8, "groups": 2, "height": 12, "width": 7}
    assert read.instantiate(Case("any", sizes), 0).reduction() == (8 // 2) * 10 * 5


@pytest.mark.parametrize(("name", "picks"), [("scale_maxpool_clamp", True), ("conv_groupnorm_maxpool", True), ("groupnorm", False), ("matmul", False)])
def test_watch_sees_whether_a_maximum_goes_on(name, picks):
    """Is a maximum neither a sum, nor missed?"""
    read = problem.read(problem.KERNELS_REF / name / "model.py")
    watch = read.instantiate(read.cases()[-1], 0).watched()[1]
    assert watch.picks is picks and (watch.reduction == 1) == (name == "scale_maxpool_clamp")


@pytest.mark.parametrize("name", problem.names())
def test_declared_reductions_are_what_the_model_sums(name):
    """Do the problems' own figures agree with what their models are seen to do?"""
    read = problem.read(problem.KERNELS_REF / name / "model.py")
    for case in read.cases():
        seen = read.instantiate(case, 0).reduction()
        assert case.reduction >= seen // 2, (case.name, case.reduction, seen)


def test_full_size_is_the_files_own_and_allocates_nothing():
    """Does asking for the full case of a problem of 7 GB take no memory to speak of?"""
    full = problem.read(problem.KERNELS_REF / "groupnorm" / "model.py").full()
    assert full.set == {} and full.reduction == 64 // 8 * 512 * 512


def test_reading_a_problem_is_quick():
    """Does answering a case of a problem with CASES stay clear of torch's compiler, which takes seconds to import?"""
    code = (
        "import sys; from grader import problem;"
        "p = problem.read(problem.KERNELS_REF / 'groupnorm' / 'model.py'); i = p.instantiate(p.cases()[0], 1);"
        "i.expected(), i.eager(), i.noise(); sys.exit('torch._dynamo' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=problem.KERNELS_REF.parent).returncode == 0


def test_watching_imports_no_compiler():
    """Is what a model does counted without torch's compiler, whose import takes seconds?"""
    program = """
import sys, torch
from grader.problem import Tf32, Watch
with Watch() as watch, Tf32():
    torch.nn.functional.group_norm(torch.rand(2, 4, 3), 2)
assert watch.operations
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONPATH": str(problem.KERNELS_REF.parent)})
    assert done.stdout == "False\n", done.stderr
