"""Does an observer hear of what fails while the grading goes on, and of nothing where all is right?"""

import copy

import pytest

from grader.judging.grading import grade
from grader.verdict import Outcome, Reason, Status, Verdict
from tests.grader.scaffold import RIGHT, forward, problem  # noqa: F401


class Recorder:
    """Keeps what it is called with."""

    def __init__(self):
        self.cases: list[tuple] = []
        self.stages: list[tuple] = []
        self.verdicts: list[Verdict] = []

    def case_failed(self, source, exercise, reason, device):
        self.cases.append((source.text, exercise, reason, device))

    def stage_failed(self, stage, problem, trials):  # noqa: F811
        failed = [case.name for case in stage.cases if case.status is Status.failed]
        self.stages.append((stage.name, stage.reason, failed, [trial.case.name for trial in trials]))

    def judged(self, verdict):
        self.verdicts.append(copy.deepcopy(verdict))  # its stages go on changing


@pytest.fixture(name="observed")
def make_observed(tmp_path, problem):  # noqa: F811
    """Grades a source text with a Recorder; returns it with the verdict."""

    def observed(source: str, predict: str | None = None):
        path, recorder = tmp_path / "scaling.py", Recorder()
        path.write_text(source)
        return recorder, grade(path, problem, device="cpu", seed=1, observer=recorder, predict=predict)

    return observed


def test_every_failing_case_and_then_the_stage_are_reported(observed):
    source = forward("return x * self.scale + 1")
    recorder, verdict = observed(source)
    correct = verdict.stage("correct")
    failed = [case.name for case in correct.cases if case.status is Status.failed]
    assert failed and recorder.cases == [(source, "scaling", Reason.wrong_values, "cpu")] * len(failed)
    assert recorder.stages == [("correct", Reason.wrong_values, failed, [case.name for case in correct.cases])]


@pytest.mark.slow
def test_a_right_submission_is_reported_nowhere(observed):
    recorder, verdict = observed(RIGHT)
    assert verdict.outcome is Outcome.passed and not recorder.cases and not recorder.stages and not recorder.verdicts


@pytest.mark.slow
def test_a_verdict_is_reported_before_its_time_is_predicted(observed):
    """Does it have everything but what is said of a prediction, and is none reported of a file that failed?"""
    recorder, verdict = observed(RIGHT, "H200")
    (early,) = recorder.verdicts
    assert early.outcome is verdict.outcome is Outcome.passed
    assert early.seconds < verdict.seconds
    assert "their time is not known" in verdict.stage("fast").message  # it is PyTorch's multiplication
    assert "their time is not known" not in early.stage("fast").message
    recorder, verdict = observed(forward("return x * self.scale + 1"), "H200")
    assert verdict.outcome is Outcome.failed and not recorder.verdicts
