"""Is each gradient, right, wrong or missing, told for what it is, where it is asked for and where it is not?"""

import re
from pathlib import Path

import pytest
import torch

from grader.judging import tolerance
from grader.judging.gradients import compute_expected_gradients
from grader.judging.grading import Limits, grade
from grader.judging.trial import Trial
from grader.notebook import cells
from grader.paths import KERNELS_REF
from grader.problems import exercises, problem
from grader.problems.cases import Case, ProblemError
from grader.verdict import Outcome, Reason, Status
from tests.grader.scaffold import PROBLEM, RIGHT, forward, line_of
from tests.slowness import slowness

OWN = 3.0 * slowness()  # seconds a submission has for itself

FUNCTION = """
import os, sys, time
import torch
import torch.nn as nn

class Scale(torch.autograd.Function):
    kept = None

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        Scale.kept = x
        return x * scale

    @staticmethod
    def backward(ctx, gy):
        x, scale = ctx.saved_tensors
        gx, gscale = gy * scale, (gy * x).sum(0)
BODY

class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))

    def forward(self, x):
        return Scale.apply(x, self.scale)
"""


def backward(*lines: str) -> str:
    """A submission whose backward ends with these lines; gx and gscale are the right gradients there."""
    return FUNCTION.replace("BODY", "".join(f"        {line}\n" for line in lines))


@pytest.fixture
def judged(tmp_path):
    """Grades a source text as scaling.py, or under another name."""

    def judge(source: str, cases: list | None = None, name: str = "scaling_backward.py", model: str = PROBLEM):
        file = tmp_path / "scaling.py"
        folder = tmp_path / "handed_in"
        folder.mkdir(exist_ok=True)
        file.write_text(model if cases is None else model.split("CASES")[0] + f"CASES = {cases!r}\n")
        (folder / name).write_text(source)
        return grade(folder / name, file, limits=Limits(own=OWN), device="cpu", seed=1)

    return judge


def by_rows(table: dict) -> list[dict]:
    """A case for each entry, which is told by its number of rows."""
    return [{"name": name, "set": {"batch_size": n}, "inputs": "normal"} for n, name in enumerate(table, 2)]


# What backward does -> the reason in a NAME_backward, and in any other file. One submission and one worker do for all.
WRONG = {
    "right": ("return gx, gscale", None),
    "twice as large": ("return 2 * gx, gscale", Reason.wrong_gradient),
    "only the first row": ("return gx, (gy * x)[0]", Reason.wrong_gradient),
    "all the same": ("return gx, torch.ones_like(gscale)", Reason.wrong_gradient),
    "half precision": ("return gx, gscale.half().float()", Reason.low_precision),
    "not a number": ("return gx * float('nan'), gscale", Reason.non_finite),
    "another shape": ("return gx[:, 1:], gscale", Reason.gradient_shape),
    "too few": ("return gx,", Reason.backward_exception),
    "an exception": ("raise ValueError('no way back')", Reason.backward_exception),
    "writes to x": ("return (gx, gscale, x.data.zero_())[:2]", Reason.backward_modified),
    "writes to the weight": ("return (gx, gscale, scale.data.zero_())[:2]", Reason.backward_modified),
    "writes to what comes in": ("return (gx, gscale, gy.data.zero_())[:2]", Reason.backward_modified),
    "takes it for contiguous": (
        "return torch.as_strided(gy, gy.shape, (gy.shape[1], 1)) * scale, gscale",
        Reason.noncontiguous_gradient,
    ),
    "kept in the class": ("return gx, (gy * Scale.kept).sum(0)", Reason.saved_overwritten),
    "asks for a terabyte": ("return torch.empty(1 << 40), gscale", Reason.out_of_memory),
}
LAST_BITS = "return torch.where(torch.rand_like(gx) < 0.5, gx, torch.nextafter(gx, torch.zeros_like(gx))), gscale"
MISSING = {
    "right": ("return gx, gscale", None),
    "none for x": ("return None, gscale", Reason.missing_gradient),
    "none for the weight": ("return gx, None", Reason.missing_gradient),
    "none at all": ("return None, None", Reason.missing_gradient),
    "other last bits": (LAST_BITS, Reason.nondeterministic_gradient),
}


def choosing(table: dict) -> str:
    """A submission that does what entry number n says for n + 2 rows."""
    return backward(
        *(line for n, (text, _) in enumerate(table.values(), 2) for line in (f"if x.shape[0] == {n}:", f"    {text}"))
    )


def reasons(verdict) -> dict:
    return {case.name: case.reason for case in verdict.stage("gradient").cases}


# --- asked for --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("source", [RIGHT, backward("return gx, gscale")], ids=["torch's own", "a Function"])
def test_right_gradients_pass(judged, source):
    """Does a right backward pass, torch's operators as well as a Function, and is the exercise called by its name?"""
    verdict = judged(source)
    assert verdict.outcome is Outcome.passed and verdict.problem == "scaling_backward"
    assert [(case.name, case.status) for case in verdict.stage("gradient").cases] == [
        ("one row", "passed"),
        ("wide", "passed"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["scaling_backward.py", "scaling.py"])
def test_each_wrong_gradient_fails_with_its_reason(judged, name):
    """Is each mistake told for what it is, whether the file's name asks for gradients or its result only carries
    them?
    """
    verdict = judged(choosing(WRONG), by_rows(WRONG), name)
    assert reasons(verdict) == {n: reason for n, (_, reason) in WRONG.items()}
    assert verdict.stage("correct").status is verdict.stage("safe").status is Status.passed
    assert (verdict.outcome, verdict.first_problem.name, verdict.reason) == (
        Outcome.failed,
        "gradient",
        Reason.wrong_gradient,
    )
    first = verdict.first_problem
    assert first.message.startswith("The gradient of `x` is wrong: all ")
    assert first.evidence[0].gradient == "x" and first.evidence[0].got == pytest.approx(
        2 * first.evidence[0].expected, rel=1e-6
    )
    assert ("asks for no gradient" in first.message) is (name == "scaling.py")


def test_each_missing_gradient_fails_with_its_reason(judged):
    verdict = judged(choosing(MISSING), by_rows(MISSING))
    assert reasons(verdict) == {n: reason for n, (_, reason) in MISSING.items()}
    assert verdict.first_problem.message == "`x` gets no gradient."


@pytest.mark.slow
@pytest.mark.parametrize(
    "text, says",
    [
        ("return gx, (gy * x)[-1]", "only the last batch item's part"),
        ("return gx, gscale / len(x)", "scaled by 0.333333"),
        ("return None, None", "`x` and `scale` get no gradient."),
        (
            "return gx[:, 1:], gscale",
            "backward returned a gradient of shape [3, 36] as value 1, and the argument that it belongs to has the "
            "shape [3, 37].",
        ),
        (LAST_BITS, "values differed in their last digits"),
    ],
)
def test_it_says_what_is_wrong(judged, text, says):
    verdict = judged(backward(text), [{"name": "wide", "set": {"batch_size": 3, "features": 37}, "inputs": "normal"}])
    stage = verdict.first_problem
    assert says in stage.message or says in (stage.evidence[0].pattern or "")


def test_an_exception_is_told_by_its_line(judged):
    source = backward("raise ValueError('no way back')")
    stage = judged(source).first_problem
    assert stage.message.startswith("backward raised an exception at line") and "no way back" in stage.message
    assert stage.evidence[0].line == line_of(source, "no way back")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text, reason, says",
    [
        ("os._exit(3)", Reason.crash, "exit status 3"),
        ("while True: time.sleep(0.01)", Reason.timeout, "backward did not end within"),
    ],
)
def test_a_backward_that_dies_or_never_ends(judged, text, reason, says):
    source = backward(text)
    verdict = judged(source)
    assert (verdict.first_problem.name, verdict.reason) == ("gradient", reason)
    assert says in verdict.first_problem.message
    assert reason is Reason.crash or verdict.first_problem.evidence[0].line == line_of(source, "time.sleep")
    assert [case.status for case in verdict.stage("gradient").cases] == ["failed", "skipped"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "line, says",
    [
        ("return (x * self.scale).detach()", "forward's result carries no gradient, so `x` and `scale` get none."),
        ("return x.detach() * self.scale", "`x` gets no gradient."),
        ("return x * self.scale.detach()", "`scale` gets no gradient."),
    ],
)
def test_a_result_without_history(judged, line, says):
    verdict = judged(forward(line))
    assert (verdict.reason, verdict.first_problem.message) == (Reason.missing_gradient, says)


@pytest.mark.slow
def test_a_weight_under_another_name_is_told(judged):
    """Is a ModelNew that takes its weights itself, and names them as it likes, told why its gradient cannot be looked
    at?
    """
    source = forward("return x * self.factor").replace("self.scale = ", "self.factor = ")
    source += "\n    def load_reference(self, model):\n        self.factor.copy_(model.scale)\n"
    verdict = judged(source)
    assert verdict.reason is Reason.missing_gradient
    assert verdict.first_problem.message.startswith("ModelNew has no parameter `scale`")
    assert judged(source, name="scaling.py").outcome is Outcome.passed


# --- not asked for ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "source, says",
    [
        (forward("return (x * self.scale).detach()"), "This problem asks for no gradient."),
        (
            backward("return None, gscale"),
            "asks for no gradient; one reaches some of Model's weights and inputs, but not `x`",
        ),
        (
            forward("return x * self.scale + (x * self.scale * 0.0).detach() + (x - x.detach())"),
            "asks for no gradient. The result carries one, of PyTorch's operators around the kernels, and it is wrong: "
            "do not train with this module. The gradient of `x`",
        ),
        (
            forward("return torch.mul(x, self.scale, out=torch.empty_like(x))"),
            "asks for no gradient, and forward cannot run with one",
        ),
        (
            backward("raise NotImplementedError('for inference')"),
            "asks for no gradient, and backward does not run: backward raised an exception at line 19 of scaling.py: "
            "NotImplementedError",
        ),
    ],
)
def test_a_missing_gradient_that_nobody_asks_for_is_skipped(judged, source, says):
    verdict = judged(source, name="scaling.py")
    assert verdict.outcome is Outcome.passed and verdict.problem == "scaling"
    assert verdict.stage("gradient").status is Status.skipped and says in verdict.stage("gradient").message
    assert not verdict.stage("gradient").cases


def test_other_last_bits_are_no_mistake_where_nobody_asks(judged):
    assert judged(backward(LAST_BITS), name="scaling.py").stage("gradient").status is Status.passed


# --- problems ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_case_may_opt_out(judged):
    """Is a case with "gradient": False left out, and a stage without cases skipped?"""
    cases = [
        {"name": "one row", "set": {"batch_size": 1}, "gradient": False},
        {"name": "three", "set": {"batch_size": 3}},
    ]
    source = backward("return gx * (1 + (len(x) == 1)), gscale")
    assert reasons(judged(source, cases)) == {"three": None}
    stage = judged(source, cases[:1]).stage("gradient")
    assert (stage.status, stage.message) == (Status.skipped, "No case of this problem asks for a gradient.")


def test_gradient_must_be_true_or_false(tmp_path):
    file = tmp_path / "scaling.py"
    file.write_text(PROBLEM.replace('"inputs": "normal"}', '"gradient": "no"}'))
    with pytest.raises(ProblemError, match="gradient is 'no', not True or False"):
        problem.read(file).cases()


def test_a_model_without_a_gradient(judged):
    """Is a problem whose result has no gradient skipped in words?"""
    model = PROBLEM.replace("return x * self.scale", "return (x * self.scale).argmax(1)")
    stage = judged(forward("return (x * self.scale).argmax(1)"), model=model).stage("gradient")
    assert (stage.status, stage.message) == (Status.skipped, "Nothing that Model is given or holds has a gradient.")


@pytest.mark.slow
def test_a_model_that_cannot_be_differentiated_is_the_problems_fault(judged):
    model = PROBLEM.replace("return x * self.scale", "return x.mul_(self.scale)")
    with pytest.raises(ProblemError, match=r"Model.forward raised RuntimeError: a leaf Variable"):
        judged(forward("return x.mul_(self.scale)"), model=model)
    verdict = judged(forward("return x.mul_(self.scale)"), model=model, name="scaling.py")
    assert verdict.outcome is Outcome.passed and "cannot be differentiated" in verdict.stage("gradient").message


def test_at_a_kink_eagers_side_is_right_too(judged):
    """Does Model itself pass where rounding, not mathematics, decides on which side of relu's corner a value falls?"""
    line = "return torch.relu((x + 1.1) - 1.1 - x) * self.scale"  # 0 but for rounding
    model = PROBLEM.replace("return x * self.scale", line)
    read = forward(line)
    assert judged(read, model=model).outcome is Outcome.passed


# --- a worker that lies -----------------------------------------------------------------------------------------------

LIE = """
from grader.worker import protocol as c, worker
def lie(self, command):
    first = self.recorded[0] if self.recorded else command
    like = first.inputs[0].shape, [first.inputs[0].shape[1]]
    return c.ANSWER
worker.Worker.COMMAND = lie
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command, answer, reason",
    [
        (
            "backward",
            "Gradients(graph=True, results=[c.Result('float32', shape, 'cpu', None) for shape in like])",
            Reason.crash,
        ),
        ("backward", "Gradients(graph=True, results=[c.Result('float32', like[0], 'cpu', None)])", Reason.crash),
        (
            "backward",
            "Gradients(graph=True, results=[c.Result('float64', shape, 'cpu', None) for shape in like])",
            Reason.gradient_shape,
        ),
        (
            "backward",
            "Gradients(graph=True, results=[c.Result('no dtype', [-1], 'cpu', b'') for shape in like])",
            Reason.crash,
        ),
        (
            "backward",
            "Gradients(graph=True, results=[None, None], unknown=[0, 1, 77], modified=[99])",
            Reason.missing_gradient,
        ),
        ("backward", "Gradients(graph=True, results=[None, None], unknown=[-5])", Reason.crash),
        ("backward", "Gradients(graph=False)", Reason.missing_gradient),
        ("backward", "Recorded(graph=True)", Reason.crash),
        ("gradient", "Recorded(graph=False)", Reason.missing_gradient),
        ("gradient", "Gradients(graph=True)", Reason.crash),
    ],
)
def test_lies_of_a_worker_do_not_make_it_right(judged, command, answer, reason):
    verdict = judged(backward("return 2 * gx, gscale") + LIE.replace("ANSWER", answer).replace("COMMAND", command))
    assert (verdict.outcome, verdict.first_problem.name, verdict.reason) == (Outcome.failed, "gradient", reason)


def test_gradients_that_vanish_in_the_second_call(judged):
    """Is a backward seen that returns its gradients once?"""
    source = backward(
        "Scale.calls = getattr(Scale, 'calls', 0) + 1", "return (gx, gscale) if Scale.calls == 1 else (None, gscale)"
    )
    assert judged(source).reason is Reason.nondeterministic_gradient


# --- the budget -------------------------------------------------------------------------------------------------------

REFERENCES = sorted(path.parent.name for path in KERNELS_REF.glob("*/backward.py"))


def truth_of(name: str, case: Case):
    read = problem.read(KERNELS_REF / name / "model.py")
    instance = read.instantiate(case, 7)
    trial = Trial(case, instance, [], instance.eager(), [])
    return compute_expected_gradients(read, trial, 7)


def right_cases(name: str) -> list[Case]:
    return [case for case in problem.read(KERNELS_REF / name / "model.py").cases() if case.gradient]


def wrong_with(right, made) -> bool:
    """Whether one of these gradients is not within the budget."""
    zipped = zip(made, right.expected, right.eager, right.noise, right.reductions)
    return any(tolerance.compare(got, y, e, Case(""), n, r) is not None for got, y, e, n, r in zipped)


# What is just too far off, by the gradient's own bits: the next smaller type, and a factor. Rounding a problem's inputs
# and intermediate results to 16 bits moves single elements of its gradients by about a hundredth.
SMALLER = {torch.float32: torch.half, torch.half: torch.float8_e5m2}
FACTORS = {torch.float32: 1.001, torch.half: 1.05}
DECOYS = {
    "zeros": torch.zeros_like,
    "fewer bits": lambda g: g.to(SMALLER[g.dtype]).to(g.dtype),
    "a little more": lambda g: g * FACTORS[g.dtype],
    "in another order": lambda g: g.flatten().roll(1).view(g.shape),
    "the mean of it": lambda g: g.mean().expand(g.shape).clone(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_eager_is_within_the_budget_and_decoys_are_not(name):
    """Does eager's own gradient pass every case, and does each decoy in the place of each gradient fail some case?"""
    rights = [truth_of(name, case) for case in right_cases(name)]
    assert not any(wrong_with(right, right.eager) for right in rights)
    for number in range(len(rights[0].names)):
        for word, decoy in DECOYS.items():
            spoilt = [[decoy(g) if n == number else g for n, g in enumerate(right.eager)] for right in rights]
            assert any(wrong_with(right, made) for right, made in zip(rights, spoilt)), (
                f"{word} for {rights[0].names[number]}"
            )


def test_each_gradient_has_a_reduction_of_its_own():
    """Are the terms of a convolution's gradients counted as the formulas say: windows for x, pixels of all images for
    the weights?
    """
    right = truth_of("conv2d", next(case for case in right_cases("conv2d") if case.name == "prime sizes"))
    windows, pixels = 7 * 3 * 3, 3 * 11 * 17
    assert dict(zip(right.names, right.reductions)) == {
        "x": pytest.approx(windows, rel=0.3),  # fewer at the border
        "conv.weight": pytest.approx(pixels, rel=0.01),
        "conv.bias": pytest.approx(pixels, rel=0.01),
    }


def test_upstream_gradients_are_the_seeds():
    """Are they the same for the same seed and case, others for another seed, and unlike the inputs?"""
    read = problem.read(KERNELS_REF / "logsumexp" / "model.py")
    case = read.cases()[1]
    (y,) = read.instantiate(case, 1).eager()
    (a,), (b,), (c,) = (read.upstream(case, seed, [y]) for seed in (1, 1, 2))
    assert torch.equal(a, b) and not torch.equal(a, c)
    assert a.shape == y.shape and not torch.equal(a.flatten(), y.flatten())


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, exercise",
    [
        ("kernels_student/groupnorm.py", "groupnorm"),
        ("kernels_student/groupnorm_backward.py", "groupnorm_backward"),
        ("ada/groupnorm_backward_ada.py", "groupnorm_backward"),
        ("ada/ada-groupnorm_backward.2.py", "groupnorm_backward"),
        ("groupnorm_backward/kernel.py", "groupnorm_backward"),
        ("ada/groupnorm_backwards.py", "groupnorm"),
        ("ada/backward.py", "groupnorm"),
        ("kernels_ref/groupnorm/backward.py", "groupnorm_backward"),
        ("kernels_ref/groupnorm/fastest_backward.py", "groupnorm_backward"),
        ("kernels_ref/groupnorm/fastest_backward_tf32.py", "groupnorm_backward"),
        ("kernels_ref/groupnorm/fastest.py", "groupnorm"),
        ("ada/fastest_backward.py", "groupnorm"),
        ("kernels_ref/groupnorm/solution.py", "groupnorm"),
    ],
)
def test_the_name_says_whether_gradients_are_asked_for(path, exercise):
    assert exercises.exercise_of(Path(path), "groupnorm") == exercise
    assert problem.find(Path("kernels_student/groupnorm_backward.py")).name == "groupnorm"


def test_a_notebook_finds_the_exercise():
    """Does check("groupnorm_backward") mean the student's file, with the problem's model and the exercise's name?"""
    subject = cells.subject("groupnorm_backward")
    assert subject.path.name == "groupnorm_backward.py" and subject.problem == "groupnorm_backward"
    assert subject.problem_file == KERNELS_REF / "groupnorm" / "model.py"


def test_a_class_of_a_notebook_may_answer_it(monkeypatch, tmp_path):
    """Is a class that is said to answer NAME_backward graded as one?"""
    monkeypatch.setenv("SIMT_CACHE", str(tmp_path / "simt"))
    monkeypatch.setattr(cells, "_history", lambda: [(1, "class Mine:\n    pass\n")])
    subject = cells.subject(type("Mine", (), {}), "groupnorm_backward")
    assert subject.problem == "groupnorm_backward" == exercises.exercise_of(subject.path, "groupnorm")
    assert cells.subject(type("Mine", (), {}), "groupnorm").problem == "groupnorm"


def test_an_exercise_as_handed_out_is_not_attempted():
    verdict = grade(exercises.KERNELS_STUDENT / "groupnorm_backward.py", device="cpu", seed=1)
    assert (verdict.outcome, verdict.problem) == (Outcome.not_attempted, "groupnorm_backward")


def test_a_message_names_no_place_outside_the_submission(judged):
    """Is torch's own traceback kept from the student?"""
    text = judged(backward("return gx,")).first_problem.message
    assert not re.search(r"site-packages|Traceback", text) and "expected 2, got 1" in text
