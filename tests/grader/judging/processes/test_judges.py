"""Are the processes that grade spread over the GPUs, and is one that has ended replaced on its own GPU?"""

import contextlib

import psutil
import pytest

from grader.judging.processes.judges import Judges

VARIABLE = "CUDA_VISIBLE_DEVICES"


@pytest.fixture
def judges():
    made = Judges()
    yield made
    made.close()


def test_each_process_sees_one_gpu_and_no_gpu_has_two_more_than_another(judges):
    judges.open(["0", "2"])
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(judges.take(1)) for _ in range(4)]
        seen = [psutil.Process(judge.popen.pid).environ()[VARIABLE] for judge in taken]
        assert sorted(seen) == ["0", "0", "2", "2"]
        taken[1].kill("for the test")
    with contextlib.ExitStack() as stack:
        again = [stack.enter_context(judges.take(1)) for _ in range(4)]
        assert sorted(judge.gpu or "" for judge in again) == ["0", "0", "2", "2"] and len({*again} - {*taken}) == 1


def test_without_a_list_a_process_sees_what_this_one_sees(judges, monkeypatch):
    monkeypatch.setenv(VARIABLE, "5")
    with judges.take(1) as judge:
        assert psutil.Process(judge.popen.pid).environ()[VARIABLE] == "5" and judge.gpu is None
