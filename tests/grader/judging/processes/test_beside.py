"""Does a grading beside another end with its verdict, its process be kept, and end with the one that started it?"""

import os
import time
from pathlib import Path

import pytest

from grader.judging.processes import beside
from grader.judging.processes.beside import Beside
from grader.judging.processes.judge import Order
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
