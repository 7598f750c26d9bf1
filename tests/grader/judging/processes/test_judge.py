"""Is what a process that grades answers to one order what the class's command can use?"""

import pytest

from grader.judging import grading
from grader.judging.processes import judge
from grader.verdict import Outcome, Reason, Stage, StageName, Status
from grader.worker.client import KILLED
from grader.worker.spare import Spare
from tests.grader.classroom.class_folder import make_verdict

ORDER = judge.Order("groupnorm.py", b"x = 1\n", None, {}, 5, "cpu", False, 20.0)
DIED = Stage(
    name=StageName.correct,
    status=Status.failed,
    reason=Reason.crash,
    message=f"The process {KILLED}: by itself, perhaps.",
)


@pytest.mark.parametrize(
    "ends, times, outcome",
    [
        ([Outcome.failed, Outcome.passed], 2, Outcome.passed),  # the machine ended it the first time
        ([Outcome.failed, Outcome.failed], 2, Outcome.failed),  # it ends itself
        ([Outcome.passed], 1, Outcome.passed),
    ],
)
def test_a_file_whose_process_was_killed_is_graded_once_more(ends, times, outcome, tmp_path, monkeypatch):
    """Is a submission that something outside has killed told from one that is killed each time?"""
    monkeypatch.chdir(tmp_path)
    seen = []

    def grade(path, **options):
        verdict = make_verdict(ORDER, ends[len(seen)])
        if verdict.outcome is Outcome.failed:
            verdict.stages[2] = DIED
        seen.append((path.read_bytes(), options["seed"]))
        return verdict

    monkeypatch.setattr(grading, "grade", grade)
    answer = judge._carry_out(ORDER, Spare(), judge._Early(lambda answer: None))
    assert answer.verdict and answer.verdict.outcome is outcome and not answer.trouble
    assert seen == [(b"x = 1\n", 5)] * times and not (tmp_path / "groupnorm.py").exists()
