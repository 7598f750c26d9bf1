"""Does a right submission pass, with and without a GPU, and does its report say what that is worth?"""

import contextlib
import io
import re
import types
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from grader.judging import grading
from grader.judging.grading import grade
from grader.paths import kept_ratios
from grader.problems.cases import ProblemError
from grader.reports import terminal
from grader.verdict import EXPLANATIONS, Outcome, Reason, Stage, StageName, Status
from tests.grader.scaffold import PROBLEM, RIGHT, forward


@pytest.mark.slow
def test_a_right_submission_passes_every_stage_that_there_is(judged):
    verdict = judged(RIGHT)
    assert verdict.outcome is Outcome.passed and verdict.reason is None
    assert {s.name.value: s.status.value for s in verdict.stages} == {
        "contract": "passed",
        "build": "passed",
        "correct": "passed",
        "safe": "passed",
        "gradient": "passed",
        "fast": "skipped",
    }
    assert [case.name for case in verdict.stage("correct").cases] == ["one row", "wide"]
    assert verdict.stage("fast").reason is Reason.no_gpu and "GPU" in verdict.stage("fast").message
    assert verdict.sandbox.startswith(("none", "bubblewrap", "Landlock")) and len(verdict.submission.sha256) == 64


@pytest.mark.slow
def test_a_submission_without_a_kernel_passes_and_is_told(judged):
    """Does whoever reads the verdict learn that PyTorch's operators made the results, in the table, the summary and the
    JSON?
    """
    verdict = judged(RIGHT)
    assert verdict.outcome is Outcome.passed and verdict.doubt is Reason.no_kernel and verdict.reason is None
    assert [(s.name.value, s.message) for s in verdict.stages if s.reason is Reason.no_kernel] == [
        ("correct", EXPLANATIONS[Reason.no_kernel])
    ]
    out = io.StringIO()
    console = Console(file=out, width=120)
    terminal.show(console, verdict)
    terminal.show_summary(console, [verdict])
    assert EXPLANATIONS[Reason.no_kernel] in out.getvalue() and re.search(r"passed +no kernel +\d", out.getvalue())
    assert judged(forward("return x")).doubt is None  # wrong: that is told already


MADE = PROBLEM.split("CASES")[0].replace("batch_size = 4", "batch_size = 40").replace("features = 6", "features = 64")


@pytest.fixture
def foreign(tmp_path):
    """Writes a problem without CASES, with these replacements."""

    def write(*replaced: tuple[str, str]) -> Path:
        text = MADE
        for old, new in replaced:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "foreign.py"
        path.write_text(text)
        return path

    return write


def shown(verdict) -> str:
    """What a wide terminal shows."""
    out = io.StringIO()
    terminal.show(Console(file=out, width=400), verdict)
    return out.getvalue()


@pytest.mark.slow
def test_a_made_case_that_fails_is_told_with_its_sizes(judged, foreign):
    """Does somebody who counts on 64 features see, in report and JSON, that the failing case has 17, and may ask for it
    by its short name?
    """
    verdict = judged(forward("return x * self.scale + (x.shape[1] % 16 and x.shape[1] > 1)"), problem=foreign())
    (evidence,) = verdict.stage("correct").evidence
    assert evidence.case == "odd (batch_size=3, features=17)" and f"case           {evidence.case}" in shown(verdict)
    assert f"wrong in: {evidence.case}; odd, normal inputs" in shown(verdict)
    verdict = judged(RIGHT, problem=foreign(), case="odd")
    assert [case.name for case in verdict.stage("correct").cases] == [evidence.case]


TUNED = forward("assert x.shape == (40, 64), 'tuned'", "return x * self.scale")


@pytest.mark.slow
def test_a_kernel_for_the_problems_own_sizes_is_told_so(judged, foreign):
    """Does the report begin with what is right, and name the switch with which the submission passes?"""
    verdict = judged(TUNED, problem=foreign())
    assert verdict.outcome is Outcome.failed and verdict.reason is Reason.exception
    message = verdict.first_problem.message
    assert message.startswith("The submission is right at the problem's own sizes. It fails with other sizes or values")
    assert "`grader grade --own-sizes`" in message and "AssertionError: tuned" in message
    passed = judged(TUNED, problem=foreign(), overrides={"CASES": "'own sizes'"})
    assert passed.outcome is Outcome.passed
    assert [case.name for case in passed.stage("correct").cases] == ["own sizes"]


def test_no_kernel_is_called_right_that_fails_at_the_problems_own_sizes(judged, foreign, problem):
    wrong = judged(forward("return x * self.scale + (x.shape[0] == 40)"), problem=foreign())
    assert wrong.reason is Reason.wrong_values and "own sizes." not in wrong.first_problem.message
    declared = judged(forward("return x * self.scale + (x.shape[0] == 3)"), problem=problem)
    assert declared.reason is Reason.wrong_values and "own sizes." not in declared.first_problem.message


@pytest.mark.slow
def test_weights_of_other_names_are_matched_in_order(judged, foreign):
    """Does a ModelNew with names of its own pass, and where its order differs from Model's, is the matching shown?"""
    affine = foreign(
        (
            "self.scale = nn.Parameter(",
            "self.shift = nn.Parameter(torch.rand(features))\n        self.scale = nn.Parameter(",
        ),
        ("x * self.scale", "x * self.scale + self.shift"),
    )
    made = "{} = nn.Parameter(torch.zeros(features))"
    source = RIGHT.replace("x * self.scale", "x * self.gain + self.offset")
    before = "self.scale = nn.Parameter(torch.ones(features))"
    in_order, swapped = (
        source.replace(before, "; ".join(made.format(f"self.{name}") for name in names))
        for names in (("offset", "gain"), ("gain", "offset"))
    )
    assert judged(in_order, problem=affine).outcome is Outcome.passed
    verdict = judged(swapped, problem=affine)
    assert verdict.reason is Reason.wrong_values
    assert "in order: shift to gain, scale to offset" in verdict.stage("correct").message


@pytest.mark.slow
def test_few_sizes_are_told_with_a_result_that_passed(judged, foreign):
    """Does a report on cases of one size say what that is worth?"""
    few = foreign(
        ("torch.rand(batch_size, features)", "torch.rand(40, 64)"),
        ("return [features]", "return [64]"),
        ("batch_size = 40", ""),
        ("features = 64", ""),
    )
    verdict = judged(RIGHT, problem=few)
    assert verdict.outcome is Outcome.passed
    assert "All cases have the same sizes" in shown(verdict) and EXPLANATIONS[Reason.no_kernel] in shown(verdict)
    assert "the same sizes" not in shown(judged(RIGHT, problem=foreign()))


def test_a_random_problem_is_refused(judged, foreign):
    """Is nobody graded by a Model with dropout?"""
    with pytest.raises(ProblemError, match="Model itself is random: called twice"):
        judged(RIGHT, problem=foreign(("return x * self.scale", "return nn.functional.dropout(x * self.scale)")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    ["return x * self.scale + torch.rand(1)", "return x * self.scale + vars(self).setdefault('drawn', torch.rand(1))"],
)
def test_chance_without_a_kernel_is_no_race(judged, problem, line):
    """Where nothing was launched: does nothing speak of races, barriers and memory?"""
    for given in (line, line.replace("torch.rand(1)", "0 * torch.rand(1)")):
        verdict = judged(forward(given))
        text = shown(verdict)
        assert not any(word in text for word in ("race", "__syncthreads", "memory that was never set")), text
        assert (verdict.outcome is Outcome.passed) == ("0 *" in given)


@pytest.mark.slow
def test_chance_that_values_do_not_tell_is_told_as_chance(judged, problem):
    """Right at first and wrong when constructed again, or called again: is the reason given without a kernel that there
    is not?
    """
    verdict = judged(forward("self.calls = getattr(self, 'calls', 0) + 1", "return x * self.scale + (self.calls > 1)"))
    safe = verdict.stage("safe")
    assert (
        safe.reason is Reason.nondeterministic
        and "no kernel was launched: look for random numbers in forward" in safe.message
    )
    assert terminal.advice(safe) == ""


@pytest.mark.slow
def test_a_gradient_that_model_itself_loses_is_not_asked_for(judged, foreign):
    """Model writes to a tensor of its own that its last backward needs: is a copy of it let pass?"""
    keeps = (
        "self.scale = nn.Parameter(torch.ones(features))",
        "self.scale = nn.Parameter(torch.ones(features)); self.kept = torch.zeros(features)",
    )
    lines = (
        "self.kept.copy_(x.mean(0)); self.kept = torch.tanh(self.kept * self.scale); return x * self.scale + self.kept"
    )
    source = RIGHT.replace(*keeps).replace("return x * self.scale", lines)
    verdict = judged(source, problem=foreign(keeps, ("return x * self.scale", lines)))
    assert verdict.outcome is Outcome.passed, shown(verdict)
    assert "Model's own is lost when Model is called again" in verdict.stage("gradient").message


@pytest.mark.gpu
def test_on_a_gpu_a_right_submission_is_timed_beside_eager(tmp_path, problem):
    path = tmp_path / "scaling.py"
    path.write_text(RIGHT)
    verdict = grade(path, problem, device="cuda", seed=1)
    assert verdict.outcome is Outcome.passed
    names = [measurement.name for measurement in verdict.stage("fast").measurements]
    assert {"this submission", "eager", "speed-up over eager"} <= set(names)


@pytest.mark.gpu
def test_on_a_gpu_the_ratios_of_the_baselines_are_kept(tmp_path, problem, monkeypatch):
    """Are they measured once, used for another file of the problem, and measured anew where eager has changed?"""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path, said, found = tmp_path / "scaling.py", [], []
    # Ratios of shorter calls are too uncertain to be kept. With --set the run on the CPU would have this size, too.
    for small, large in (("batch_size = 4", "batch_size = 16384"), ("features = 6", "features = 4096")):
        assert small in problem.read_text()
        problem.write_text(problem.read_text().replace(small, large))
    for comment in ("first", "second", "third"):
        if comment == "third":
            (file,) = kept_ratios().iterdir()
            file.write_text(re.sub(r'(?<="eager_ms":)', "1", file.read_text()))  # at least ten times as long
        path.write_text(f"# {comment}\n{RIGHT}")
        verdict = grade(path, problem, device="cuda", seed=1, progress=lambda _, text: said.append(text))
        assert verdict.outcome is Outcome.passed, shown(verdict)
        found.append({each.name: each.value for each in verdict.stage("fast").measurements})
        assert ("measured on" in verdict.stage("fast").message) == (comment == "second")
        assert any("baselines again" in text for text in said) == (comment == "third")
    for one in ("torch.compile", "speed-up over torch.compile"):
        assert found[1][one] == pytest.approx(found[0][one], rel=0.1)
        assert found[2][one] == pytest.approx(found[0][one], rel=0.1)


@pytest.mark.gpu
def test_on_a_gpu_an_input_that_was_written_to_is_seen(tmp_path, problem):
    path = tmp_path / "scaling.py"
    path.write_text(forward("y = x * self.scale", "x.zero_()", "return y"))
    assert grade(path, problem, device="cuda", seed=1).reason is Reason.input_modified


def test_what_computes_on_a_gpu_waits_for_its_turn(monkeypatch):
    """Do the stages that use a GPU run within a turn, which ends where they fail, and the others without one?"""
    events = []

    @contextlib.contextmanager
    def take_gpu(name):
        events.append(f"{name} begins")
        try:
            yield
        finally:
            events.append(f"{name} ends")

    def run(context, stage):
        events.append(f"{stage.name} runs")
        raise ValueError

    context: Any = types.SimpleNamespace(report=lambda *_: None, take_gpu=take_gpu)
    monkeypatch.setattr(grading.importlib, "import_module", lambda _: types.SimpleNamespace(run=run))
    for name in (StageName.build, StageName.correct, StageName.fast):
        assert not grading._carry_out(context, Stage(name=name, status=Status.passed), "stages", "run")
    alone = [f"{name} {what}" for name in ("correct", "fast") for what in ("begins", "runs", "ends")]
    assert events == ["build runs", *alone]
