"""Does a grading beside another end with its verdict, its process be kept, and end with the one that started it?"""

import hashlib
import os
import time
from pathlib import Path

import psutil
import pytest

from grader.judging.processes import beside
from grader.judging.processes.beside import Beside
from grader.judging.processes.judge import Order
from grader.paths import KERNELS_REF
from grader.verdict import Outcome, Verdict
from tests.grader.scaffold import RIGHT

NEVER_ENDS = RIGHT.replace("import torch\n", "import torch\ntime.sleep(600)\n", 1)


@pytest.fixture
def order(tmp_path, problem):
    path = tmp_path / "scaling.py"
    path.write_text(RIGHT)
    yield Order("scaling.py", b"", str(problem), {}, 1, "cpu", False, 20.0, path=str(path))
    beside._judges.close()
    beside._judges.open()


def _list_judges() -> set[int]:
    return {judge.popen.pid for judge in beside._judges.all}


def test_the_file_is_graded_where_it_lies_and_the_process_is_kept(order):
    seen = []
    for _ in range(2):
        run = Beside(order)
        verdict = run.wait()
        run.close()
        assert isinstance(verdict, Verdict) and verdict.outcome is Outcome.passed
        assert verdict.submission.path == order.path and Path(order.path).read_text() == RIGHT
        seen.append(_list_judges())
    assert seen[0] == seen[1] and len(seen[0]) == 1


@pytest.mark.slow
def test_the_verdict_is_there_before_the_prediction(order):
    """Is the prediction in what waits for the end, and does wait() not wait for it?"""
    folder, path = KERNELS_REF / "bias_scale_sigmoid", Path(order.path).with_name("bias_scale_sigmoid.py")
    path.write_text(f"# mine\n{(folder / 'solution.py').read_text()}")
    order.name, order.path, order.model = path.name, str(path), str(folder / "model.py")
    order.gpu = order.predict = "H200"
    run = Beside(order)
    early = run.wait()
    assert isinstance(early, Verdict) and early.outcome is Outcome.passed
    assert early.stage("fast").prediction is None and not run._ended.done()
    whole = run.wait_for_end()
    assert isinstance(whole, Verdict) and whole.stage("fast").prediction is not None
    run.close()


@pytest.mark.slow
def test_a_worker_is_kept_ready_for_the_next_grading(order):
    """Has the process a worker more after an answer, is it the next one's, and do all end with the process?"""
    order.keep_ready = True
    workers: list[set[int]] = []
    for text in (RIGHT, f"# edited\n{RIGHT}"):
        Path(order.path).write_text(text)
        run = Beside(order)
        assert isinstance(verdict := run.wait_for_end(), Verdict) and verdict.outcome is Outcome.passed
        assert verdict.submission.sha256 == hashlib.sha256(text.encode()).hexdigest()
        run.close()
        until = time.monotonic() + 20
        while not (waiting := _list_workers()) - set().union(*workers) and time.monotonic() < until:
            time.sleep(0.1)
        workers.append(waiting)
    assert workers[0] and workers[1] and not workers[0] & workers[1]
    beside._judges.close()
    until = time.monotonic() + 20
    while any(psutil.pid_exists(pid) for pid in workers[1]) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(psutil.pid_exists(pid) for pid in workers[1])


def _list_workers() -> set[int]:
    """Return the processes below the one that grades."""
    return {child.pid for pid in _list_judges() for child in psutil.Process(pid).children(recursive=True)}


def test_a_process_that_was_prepared_is_the_one_that_grades(order):
    for _ in range(2):
        beside.prepare()
    (pid,) = _list_judges()
    run = Beside(order)
    assert isinstance(run.wait(), Verdict) and _list_judges() == {pid}
    run.close()


def test_closing_ends_what_runs(order):
    Path(order.path).write_text(NEVER_ENDS)
    run = Beside(order)
    while not run._kill:
        time.sleep(0.05)
    (pid,) = _list_judges()
    begun = time.monotonic()
    run.close()
    assert time.monotonic() - begun < 10
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert run.wait() == "The process that grades there was stopped."


def test_a_problem_that_cannot_be_used_is_said(order):
    order.model = "/nowhere/model.py"
    run = Beside(order)
    assert "/nowhere/model.py" in str(run.wait())
    run.close()
