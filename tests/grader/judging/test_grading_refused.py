"""Is what cannot be graded refused with its reason, and does an interruption end the worker too?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from grader.cli import statuses
from grader.cli.grade import exit_code
from grader.judging.grading import Refused, grade
from grader.problems.cases import ProblemError
from grader.verdict import Outcome, Reason, StageName, Status
from grader.worker import sandbox
from tests.grader.scaffold import HEAD, PROBLEM, RIGHT, forward


@pytest.mark.parametrize(
    "source, reason",
    [
        ("", Reason.empty_file),
        ("def f(:\n", Reason.syntax_error),
        ("import torch\n", Reason.no_model_new),
        (RIGHT.replace("self, features", "self"), Reason.bad_signature),
    ],
)
def test_a_file_that_is_no_submission_is_not_run(judged, source, reason):
    verdict = judged(source)
    assert (verdict.first_problem.name, verdict.reason) == (StageName.contract, reason)
    assert all(stage.reason is Reason.not_reached for stage in verdict.stages[1:])


def test_a_missing_file_is_unreadable(tmp_path):
    assert grade(tmp_path / "nothing.py").reason is Reason.unreadable


def test_the_exercise_as_handed_out_is_not_attempted(tmp_path):
    from grader.problems import exercises

    solution = (exercises.KERNELS_REF / "groupnorm" / "solution.py").read_text()
    skeleton = exercises.skeleton(solution, "groupnorm")
    path = tmp_path / "groupnorm.py"
    path.write_text(skeleton + "\n# I did nothing but this comment.\n")
    assert grade(path).outcome is Outcome.not_attempted


@pytest.mark.parametrize("source", ["", "def f(:\n"])
def test_a_verdict_without_a_run_names_the_problem_too(tmp_path, source):
    """Is the problem of a handed-in file that is not read any further the same as that of one that is graded?"""
    for file, name in (("groupnorm_ada.py", "groupnorm"), ("ada.conv2d_backward.py", "conv2d_backward")):
        (tmp_path / file).write_text(source)
        assert grade(tmp_path / file).problem == name


def test_a_handed_in_exercise_without_its_stamp_is_not_attempted(tmp_path):
    """Is the stub known under the student's own name for it, and without its last line?"""
    from grader.problems import exercises

    text = (exercises.KERNELS_STUDENT / "groupnorm.py").read_text()
    (tmp_path / "groupnorm_bob.py").write_text(exercises.STAMP.sub("", text))
    assert grade(tmp_path / "groupnorm_bob.py").outcome is Outcome.not_attempted


def test_a_problem_that_no_name_leads_to_is_the_callers_fault(tmp_path):
    path = tmp_path / "no_such_problem.py"
    path.write_text(RIGHT)
    with pytest.raises(ProblemError, match="no_such_problem"):
        grade(path)


def test_a_model_that_fails_is_not_the_submissions_fault(judged, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text(PROBLEM.replace("return x * self.scale", "raise ValueError('mine')"))
    with pytest.raises(ProblemError, match=r"broken\.py, line \d+: Model.forward raised ValueError: mine"):
        judged(RIGHT, problem=broken)


def test_a_problem_that_computes_nothing_is_refused(judged):
    """Does no wrong result pass because there is nothing to compare it with?"""
    with pytest.raises(ProblemError, match="'one row' leaves nothing to compare"):
        judged(forward("return x + 1"), overrides={"batch_size": "0"})


def test_a_required_sandbox_that_is_not_there_is_refused(tmp_path, problem, monkeypatch):
    path = tmp_path / "scaling.py"
    path.write_text(RIGHT)
    monkeypatch.setattr(sandbox, "why_not", lambda: "bubblewrap is not installed.")
    with pytest.raises(Refused, match="not installed"):
        grade(path, problem, require_sandbox=True)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_asking_for_a_gpu_where_there_is_none_is_refused(tmp_path, problem):
    path = tmp_path / "scaling.py"
    path.write_text(RIGHT)
    with pytest.raises(Refused, match="no GPU"):
        grade(path, problem, device="cuda")


@pytest.mark.slow
def test_an_interrupt_ends_the_worker_and_is_the_verdict(judged):
    def interrupt(stage, text):
        if stage is StageName.correct:
            raise KeyboardInterrupt

    verdict = judged(RIGHT, progress=interrupt)
    assert (verdict.outcome, verdict.reason) == (Outcome.error, Reason.interrupted)


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_found(judged):
    """Does the verdict still say what was wrong in the case before, next to the interrupt?"""

    def interrupt(stage, text):
        if stage is StageName.correct and text.startswith("case 2"):
            raise KeyboardInterrupt

    verdict = judged(forward("return x + self.scale"), progress=interrupt)
    stage = verdict.stage("correct")
    assert (verdict.outcome, verdict.reason, len(stage.cases)) == (Outcome.error, Reason.interrupted, 1)
    assert stage.cases[0].status is Status.failed and "found before: The values are wrong" in stage.message
    assert stage.evidence[0].case == stage.cases[0].name


@pytest.mark.slow
@pytest.mark.parametrize(
    "source, stage", [(RIGHT, StageName.build), (forward("return x + self.scale"), StageName.safe)]
)
def test_an_interrupt_after_the_outputs_were_compared_ends_the_grading(judged, source, stage):
    """In what is prepared for later stages, and after wrong values, too: does no further stage begin?"""
    seen = []

    def interrupt(name, text):
        seen.append(name)
        if name is stage and StageName.correct in seen:
            raise KeyboardInterrupt

    verdict = judged(source, progress=interrupt)
    assert (verdict.outcome, verdict.is_interrupted, seen[-1]) == (Outcome.error, True, stage)
    assert exit_code(verdict) == statuses.INTERRUPTED


@pytest.mark.slow
def test_a_judge_that_is_killed_takes_its_worker_along(tmp_path, problem):
    if not sandbox.why_not():
        pytest.skip("in a sandbox the worker cannot say its number: tests/grader/worker/test_levels.py does this there")
    path, pid_file = tmp_path / "scaling.py", tmp_path / "pid"
    path.write_text(HEAD + f"        open({str(pid_file)!r}, 'w').write(str(os.getpid()))\n        time.sleep(600)\n")
    code = f"from grader import grade; grade({str(path)!r}, {str(problem)!r}, device='cpu')"
    judge = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(tmp_path)})
    wait_for(lambda: pid_file.exists() and pid_file.read_text())
    judge.send_signal(signal.SIGKILL)
    judge.wait()
    wait_for(lambda: not Path(f"/proc/{pid_file.read_text()}").exists())


def wait_for(condition, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
