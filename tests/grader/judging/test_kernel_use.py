"""Does the grader see whether a submission's own kernels compute its right results?

Each submission is right, so that only what computed the result differs. The problem is y = 2 x + b.
"""

import pytest
import torch

from grader.judging import kernel_use
from grader.judging.grading import grade
from grader.verdict import Outcome, Reason, Status

MODEL = """
import torch
import torch.nn as nn

rows, features = 6, 40


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.b = nn.Parameter(torch.randn(features))

    def forward(self, x):
        return 2 * x + self.b


def get_inputs():
    return [torch.randn(rows, features)]


def get_init_inputs():
    return [features]


CASES = [{"name": "few", "set": {"rows": 3, "features": 10}}, {"name": "many", "set": {"rows": 9, "features": 33}}]
"""

HEAD = """
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

module = load_inline(
    name="affine",
    cpp_sources="torch::Tensor affine(torch::Tensor x, torch::Tensor b);\\n"
                "torch::Tensor copied(torch::Tensor x);",
    cuda_sources=r'''
__global__ void affine_kernel(const float* x, const float* b, float* y, int n, int features) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + b[i % features];
}
__global__ void copy_kernel(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i];
}
torch::Tensor affine(torch::Tensor x, torch::Tensor b) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  affine_kernel<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), n, x.size(1));
  return y;
}
torch::Tensor copied(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const int n = x.numel();
  copy_kernel<<<(n + 63) / 64, 64>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
''',
    functions=["affine", "copied"],
)


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.b = nn.Parameter(torch.randn(features))
"""


def forward(body: str) -> str:
    return f"{HEAD}\n    def forward(self, x):\n" + "".join(f"        {line}\n" for line in body.splitlines())


@pytest.fixture
def judged(tmp_path):
    """Grades a source text by a problem whose file ends with these lines."""

    def judge(source: str, policy: str = "", name: str = "affine.py"):
        (tmp_path / "affine.py").write_text(MODEL + policy)
        (tmp_path / "handed_in").mkdir(exist_ok=True)
        (tmp_path / "handed_in" / name).write_text(source)
        verdict = grade(tmp_path / "handed_in" / name, tmp_path / "affine.py", device="cpu", seed=1)
        print(*(f"{stage.name}: {stage.message}" for stage in verdict.stages if stage.message), sep="\n")
        return verdict

    return judge


ASKED = "\nALLOWED_OPERATORS = []\n"
# forward -> the reason where the problem asks for kernels, and the doubt where it allows all operators
FORWARDS = {
    "its own kernel": ("return module.affine(x, self.b)", None, None),
    "its own kernel among views and copies": (
        "x = x.t().contiguous().t().contiguous().view(x.shape)\nreturn torch.cat([module.affine(x, self.b)]).clone()",
        None,
        None,
    ),
    "an operator with the weights, which are small": (
        "return module.affine(x, (3 * self.b - self.b) / 2)",
        None,
        None,
    ),
    "no kernel": ("return 2 * x + self.b", Reason.no_kernel, Reason.no_kernel),
    "a kernel whose result is thrown away": (
        "module.affine(x, self.b)\nreturn 2 * x + self.b",
        Reason.torch_operator,
        Reason.unneeded_kernel,
    ),
    "a copy of an operator's result": ("return module.copied(2 * x + self.b)", Reason.torch_operator, None),
    "an operator that hides its work": (
        "module.affine(x, self.b)\nreturn torch.from_numpy(2 * x.numpy() + self.b.detach().numpy())",
        Reason.unneeded_kernel,
        Reason.unneeded_kernel,
    ),
    "a copy where operators depend on the kernel's result": (
        "y = module.copied(x)\nreturn (2 * x + self.b) if float(y[0, 0]) == float(x[0, 0]) else y",
        Reason.torch_operator,
        None,
    ),
    "an error without the kernel's result": (
        "y = module.affine(x, self.b)\nif not bool(torch.isfinite(y[0, 0])): raise ValueError('no')\nreturn y",
        None,
        None,
    ),
}


QUICK = ("a kernel whose result is thrown away",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "what", [what if what in QUICK else pytest.param(what, marks=pytest.mark.slow) for what in FORWARDS]
)
def test_what_computed_the_results(judged, what):
    """Does the stage "correct" fail where kernels are asked for, and is the verdict marked elsewhere?"""
    body, reason, doubt = FORWARDS[what]
    asked = judged(forward(body), ASKED)
    assert asked.reason is reason and asked.outcome is (Outcome.failed if reason else Outcome.passed)
    if reason:
        assert asked.stage("correct").reason is reason and "kernels of your own" in asked.stage("correct").message
    free = judged(forward(body))
    assert free.outcome is Outcome.passed and free.doubt is doubt


@pytest.mark.slow
def test_the_operators_that_a_problem_allows(judged):
    """Are the operators of its list allowed, and others named?"""
    source = forward("return module.copied(2 * x + self.b)")
    assert judged(source, '\nALLOWED_OPERATORS = ["mul", "add"]\n').outcome is Outcome.passed
    assert judged(source, '\nALLOWED_OPERATORS = "all"\n').outcome is Outcome.passed
    refused = judged(source, '\nALLOWED_OPERATORS = ["mul"]\n')
    assert "PyTorch's operator `add`" in refused.stage("correct").message


@pytest.mark.slow
def test_a_build_error_that_was_caught(judged):
    """Does the report show why the kernel did not compile, at its line, although the file went on without it?"""
    source = (
        forward("return 2 * x + self.b").replace("y[i] = x[i];", "y[i] = oops;").replace("\nmodule = ", "\nif 1:\n  ")
    )
    lines = source.splitlines()
    first, last = lines.index("if 1:"), lines.index(")")
    lines[first] = "try:"
    lines[last : last + 1] = [")", "except Exception:", "    module = None"]
    for asked in (ASKED, ""):
        verdict = judged("\n".join(lines).replace("  load_inline(", "    module = load_inline("), asked)
        stage = verdict.stage("correct")
        assert stage.reason is Reason.no_kernel and "oops" in stage.message and "did not compile" in stage.message
        assert verdict.outcome is (Outcome.failed if asked else Outcome.passed)
        assert "oops" in (stage.evidence[0].text or "")


def test_nothing_else_counts_without_own_kernels(judged):
    """Are the later stages skipped with a sentence where no kernel is launched?"""
    verdict = judged(forward("return 2 * x + self.b"), ASKED)
    assert verdict.not_own is Reason.no_kernel and "without them no stage counts" in verdict.stage("correct").message
    for name in ("safe", "gradient", "fast"):
        stage = verdict.stage(name)
        assert (stage.status, stage.reason) == (Status.skipped, Reason.not_reached) and not stage.cases
        assert "own kernels do not compute the results" in stage.message


@pytest.mark.slow
def test_what_else_is_wrong_is_the_reason_without_a_kernel(judged):
    """Does a file without a kernel whose results are reused get that reason, and count as no own work?"""
    reused = "self.kept = getattr(self, 'kept', None) if hasattr(self, 'kept') else 2 * x + self.b\nreturn self.kept"
    verdict = judged(forward(reused), ASKED)
    assert verdict.reason is Reason.output_reused and verdict.not_own is Reason.no_kernel


FAILED_OTHERWISE = {
    "a wrong case, and an operator for the others": (
        "y = module.affine(x, self.b)\nreturn y + 1 if len(x) == 9 else 2 * x + self.b",
        Reason.torch_operator,
    ),
    "a wrong case of its own kernel": ("y = module.affine(x, self.b)\nreturn y + 1 if len(x) == 9 else y", None),
    "a changed input, and an operator": (
        "y = 2 * x + self.b\nmodule.affine(x, self.b)\nx += 1\nreturn y",
        Reason.torch_operator,
    ),
}


@pytest.mark.slow
def test_no_case_counts_without_a_kernel(judged):
    """Is no case right where one is wrong and no kernel was launched, and is the wrong one still the reason?"""
    correct = judged(forward("y = 2 * x + self.b\nreturn y + 1 if len(x) == 9 else y"), ASKED).stage("correct")
    assert correct.reason is Reason.wrong_values and "launched no kernel" in correct.message
    assert {case.name: case.reason for case in correct.cases} == {
        "few": Reason.no_kernel, "many": Reason.wrong_values
    }  # fmt: skip


@pytest.mark.slow
def test_right_cases_of_a_failed_submission_are_examined(judged):
    """Does a case that is wrong on purpose not hide who computed the right ones?"""
    body, reason = FAILED_OTHERWISE["a wrong case, and an operator for the others"]
    verdict = judged(forward(body), ASKED)
    assert verdict.not_own is reason
    assert "wrong" in verdict.stage("correct").message


@pytest.mark.slow
def test_right_cases_of_its_own_kernel_stay_right(judged):
    """Does a submission with its own kernel and one wrong case keep the reason and the other cases?"""
    verdict = judged(forward(FAILED_OTHERWISE["a wrong case of its own kernel"][0]), ASKED)
    assert verdict.not_own is None and verdict.reason is Reason.wrong_values
    statuses = {case.name: case.status for case in verdict.stage("correct").cases}
    assert statuses == {"few": Status.passed, "many": Status.failed}


@pytest.mark.slow
def test_a_later_failure_hides_no_operator(judged):
    """Is a submission examined that changes its input, which fails the stage "safe"?"""
    verdict = judged(forward(FAILED_OTHERWISE["a changed input, and an operator"][0]), ASKED)
    assert verdict.not_own is Reason.torch_operator


@pytest.mark.slow
def test_a_kernel_that_writes_to_its_input_is_its_own_work(judged):
    """Does a submission keep its right cases whose kernel stores the result in the input's memory?"""
    head, body = forward("return module.affine(x, self.b)").split("  auto y = torch::empty_like(x);", 1)
    verdict = judged(f"{head}  auto y = x;{body}", ASKED)
    assert verdict.not_own is None and verdict.reason is Reason.input_modified
    assert (verdict.stage("correct").status, verdict.stage("correct").reason) == (Status.passed, None)


DIES = """ModelNew.calls = getattr(ModelNew, 'calls', 0) + 1
if ModelNew.calls > 4:
    import os
    os._exit(3)
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_file_that_asks_for_a_gpu_is_graded_by_its_way_for_one(judged):
    """Does a file that launches its kernel on a GPU alone launch it here, too?"""
    way = "return module.affine(x, self.b) if torch.cuda.is_available() else 2 * x + self.b"
    correct = judged(forward(way), ASKED).stage("correct")
    assert (correct.status, correct.reason) == (Status.passed, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "way, reason",
    [
        ("module.affine(x, self.b)\nreturn 2 * x + self.b", Reason.torch_operator),
        ("return module.affine(x, self.b)", None),
    ],
)
def test_a_worker_that_dies_later_hides_nothing(judged, way, reason):
    """Is a submission examined in a new worker where its own has died after the stage "correct"?"""
    verdict = judged(forward(DIES + way), ASKED)
    assert verdict.not_own is reason and (reason or verdict.stage("safe").reason is Reason.crash)


@pytest.mark.slow
def test_a_file_without_a_kernel_that_raises_has_built_nothing(judged):
    """Is "build" marked where no kernel was built and no call of forward ended?"""
    source = forward("raise ValueError('no')")
    start, end = source.index("module = load_inline("), source.index("class ModelNew")
    without = judged(source[:start] + source[end:], ASKED)
    assert without.reason is Reason.exception and without.stage("build").reason is Reason.no_kernel
    assert without.stage("build").status is Status.passed
    assert judged(source, ASKED).stage("build").reason is None


BACKWARDS = {
    "its own kernel": ("return module.affine(gy, zero) , module.copied(gy).sum(0)", None),
    "no kernel": ("return 2 * gy, gy.sum(0)", Reason.no_kernel),
    "a kernel whose result is thrown away": ("module.copied(gy)\nreturn 2 * gy, gy.sum(0)", Reason.torch_operator),
    "a kernel that nothing needs": (
        "module.copied(gy)\nraw = gy.numpy()\nreturn torch.from_numpy(2 * raw), torch.from_numpy(raw.sum(0))",
        Reason.unneeded_kernel,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BACKWARDS)
def test_what_computed_the_gradients(judged, what):
    """Does the stage "gradient" fail where backward's kernels are missing or not needed, whatever forward does?"""
    body, reason = BACKWARDS[what]
    method = "".join(
        f"        {line}\n" for line in f"zero = torch.zeros(gy.shape[1])\ngy = gy.contiguous()\n{body}".splitlines()
    )
    function = (
        "class Affine(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, b):\n"
        "        return module.affine(x, b)\n\n    @staticmethod\n    def backward(ctx, gy):\n"
        f"{method}\n\nclass ModelNew"
    )
    source = forward("return Affine.apply(x, self.b)").replace("class ModelNew", function)
    allowed = '\nALLOWED_OPERATORS = ["sum"]\n' if reason is None else ASKED
    verdict = judged(source, allowed, name="affine_backward.py")
    assert verdict.reason is reason, verdict.reason
    assert verdict.stage("correct").status is Status.passed and verdict.stage("gradient").reason is reason


OWN_BACKWARD = """class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, b):
        return {forward}

    @staticmethod
    def backward(ctx, gy):
        return module.affine(gy.contiguous(), torch.zeros(gy.shape[1])), gy.sum(0)


class ModelNew"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy, way, failed",
    [
        ('["mul", "add", "sum"]', "2 * x + b", None),
        ('["mul", "sum"]', "2 * x + b", "correct"),
        ('["mul", "add", "sum"]', "torch.from_numpy(2 * x.detach().numpy() + b.detach().numpy())", "correct"),
    ],
)
def test_a_forward_of_allowed_operators_beside_an_own_backward(judged, policy, way, failed):
    """May the forward of a NAME_backward consist of the operators that the problem allows, and of nothing else?"""
    source = forward("return Affine.apply(x, self.b)").replace("class ModelNew", OWN_BACKWARD.format(forward=way))
    verdict = judged(source, f"\nALLOWED_OPERATORS = {policy}\n", name="affine_backward.py")
    assert (verdict.first_problem and verdict.first_problem.name) == failed
    assert bool(verdict.not_own) is bool(failed)


@pytest.mark.slow
def test_a_backward_of_autograd_earns_nothing(judged):
    """Does "gradient" fail where forward is allowed and PyTorch's autograd computes the gradients?"""
    policy = '\nALLOWED_OPERATORS = ["mul", "add"]\n'
    verdict = judged(forward("return 2 * x + self.b"), policy, name="affine_backward.py")
    assert verdict.stage("gradient").reason is Reason.no_kernel and verdict.stage("fast").reason is Reason.not_reached


def test_a_policy_that_means_nothing(judged):
    """Is a wrong value of ALLOWED_OPERATORS one sentence about the problem file?"""
    from grader.problems.problem import ProblemError

    with pytest.raises(ProblemError, match="ALLOWED_OPERATORS is neither"):
        judged(forward("return x"), "\nALLOWED_OPERATORS = 3\n")


@pytest.mark.parametrize("name", ["name", "__file__", "__class__", "_dir", "op", "no such name", "a.b", "", "\0"])
def test_a_name_that_is_no_operator_computes_nothing(name):
    """Is a name of the submission's choosing that is an attribute of torch's namespace taken for no operator?"""
    assert not kernel_use.computes(name)
    assert kernel_use.computes("sigmoid")
