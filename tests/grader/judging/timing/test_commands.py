"""Does each turn stop and start the right processes, and is each failure put down to whoever caused it?"""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from grader.judging.clock import Turn
from grader.judging.timing.commands import Candidate, NotDone, Other, OtherFailed
from grader.judging.timing.results import NoResult
from grader.judging.timing.watch import BUSY_SHARE, Canary, Watch
from grader.worker import protocol
from grader.worker.client import Gone, Late
from grader.worker.process import Process
from grader.worker.supervisor import find_descendants


class Client:
    """Notes what it is asked and gives the replies that it was made with."""

    def __init__(self, log, *replies):
        self.log, self.replies = log, list(replies)
        self.channel = SimpleNamespace(spin_seconds=0.0)

    def ask(self, command, seconds, extra_bytes=0):
        self.log.append(command)
        reply = self.replies.pop(0) if self.replies else protocol.Timed()
        if isinstance(reply, Exception):
            raise reply
        return reply


class Reader:
    """Stands in for a Probe."""

    def __init__(self, log):
        self.log = log

    def read(self, results, calls):
        self.log.append(("read", calls))

    def read_rest(self):
        self.log.append("read the rest")

    def copy(self, call):
        return [f"call {call}"]


class Alone:
    """A canary that nothing disturbs, or that something always disturbs."""

    def __init__(self, disturbed=False):
        self.disturbed = disturbed

    def is_disturbed(self):
        return self.disturbed


class Inputs:
    """Notes what is asked of TimedInputs."""

    giving = 0.0

    def __init__(self, log):
        self.log = log

    def give(self, numbers):
        self.log.append(("give", numbers))

    def restore(self, numbers):
        self.log.append(("restore", numbers))

    def given(self, seconds, count):
        return self.giving


def make_watch(log, disturbed=False) -> Watch:
    process = SimpleNamespace(freeze=lambda: log.append("freeze"), thaw=lambda: log.append("thaw"))
    canary: Any = Alone(disturbed)
    return Watch(canary, process)  # type: ignore[arg-type]


def make(kind, log, *replies, reader=None, **options) -> Any:
    client: Any = Client(log, *replies)
    return kind(client, 1.0, reader or Reader(log), make_watch(log), Inputs(log), **options)


def test_the_submission_gets_its_inputs_in_its_turn_and_runs_in_no_other():
    """Is the submission stopped but for its turns, and awake with the inputs of the round before when one begins?"""
    log: list[Any] = []
    mine = make(Candidate, log, protocol.Timed([], 0.5), protocol.Timed([], 0.5))
    other = make(Other, log, protocol.Timed([], 0.5), protocol.Timed([], 0.25), model="eager", trusted=True)
    turns = []
    for command in (mine, other):
        command.prepare([3, 5])
        log.append("begin")
        turns.append(command.run([3, 5]))
        log.append("end")
        command.settle([3, 5])
    timed = ["begin", ("give", [3, 5]), protocol.Batch([3, 5]), ("read", 2), "end"]
    own = ["thaw", protocol.Batch([3, 5]), *timed, "read the rest", "freeze"]
    theirs = ["begin", protocol.Batch([3, 5], "eager"), ("read", 2), "end", "read the rest", protocol.Clear()]
    assert log == [*own, "freeze", protocol.Batch([3, 5], "eager"), *theirs]
    # what a submission says of its own time is not heeded
    assert turns[0] == Turn() and turns[1].work == 0.25 and mine.claims == [0.5]
    assert mine.kept in ((3, ["call 0"]), (5, ["call 1"]))


def test_each_turn_has_its_inputs_whole_where_models_may_modify_them():
    log: list[Any] = []
    make(Other, log, model="eager", may_modify=True).prepare([3, 5])
    restored = ("restore", [3, 5])
    assert log == ["freeze", restored, protocol.Batch([3, 5], "eager"), restored]


def test_others_wait_for_as_long_as_the_submission_does():
    """Is a worker that is compared with asked as late, and is the wait no part of its time?"""
    other = make(Other, [], protocol.Timed(), model="eager")
    other.inputs.giving = 0.05
    asked: list[float] = []
    ask = other.client.ask
    other.client.ask = lambda *arguments: (asked.append(time.perf_counter()), ask(*arguments))[1]
    begun = time.perf_counter()
    turn = other.run([0])
    assert 0.05 <= turn.aside <= asked[0] - begun


def test_every_call_may_be_the_one_that_is_kept():
    """Can the submission not know which call's results are compared whole?"""
    mine = make(Candidate, [])
    kept = set()
    for _ in range(200):
        mine.settle([10, 11, 12, 13])
        assert mine.kept is not None
        kept.add(mine.kept[0])
    assert kept == {10, 11, 12, 13}


@pytest.mark.parametrize("reply", [Gone("died", None), Late(1.0, None), protocol.Failure("exception", "E", "broke")])
def test_a_baseline_that_fails_is_not_the_submissions_fault(reply):
    for method in ("prepare", "run", "settle"):
        with pytest.raises(OtherFailed):
            getattr(make(Other, [], reply), method)([0])
        if method != "settle":
            with pytest.raises((Gone, Late, NotDone)):
                getattr(make(Candidate, [], reply), method)([0])


def test_a_result_that_cannot_be_read_is_put_down_to_its_worker():
    def fail(*_):
        raise NoResult("a result is nowhere")

    reader: Any = SimpleNamespace(read=fail, read_rest=fail)
    for method in ("run", "settle"):
        with pytest.raises(NoResult):
            getattr(make(Candidate, [], reader=reader), method)([0])
        with pytest.raises(OtherFailed, match="nowhere"):
            getattr(make(Other, [], reader=reader), method)([0])


def test_a_reply_without_results_is_none():
    with pytest.raises(NotDone):
        make(Candidate, [], protocol.Done()).run([0])


def test_disturbed_turns_are_counted():
    """Is a measurement in doubt where more than a share of the others' turns was disturbed, before or after?"""
    watch = make_watch([])
    canary: Any = watch.canary
    for number in range(20):
        canary.disturbed = number < 20 * BUSY_SHARE
        watch.begin_other()
        canary.disturbed = canary.disturbed and number % 2
        watch.end_other()
    assert (watch.turns, watch.disturbed) == (20, 4) and not watch.is_disturbed()
    watch.begin_other()
    canary.disturbed = True
    watch.end_other()
    assert watch.is_disturbed()


COUNTS = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    name = "child"
else:
    name = "parent"
while True:
    with open(os.path.join(sys.argv[1], name), "a") as out:
        out.write("x")
    time.sleep(0.01)
"""


def test_a_frozen_worker_stands_still_with_all_that_it_started(tmp_path):
    """Do a worker and its child in another session stop, go on afterwards, and end when they are killed frozen?"""
    supervisor = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], sys.argv[2]])"
    popen = subprocess.Popen([sys.executable, "-c", supervisor, COUNTS, str(tmp_path)])
    made = Process.__new__(Process)
    made.popen, made.stopped = popen, set()
    try:
        files = [tmp_path / "parent", tmp_path / "child"]
        wait_until(lambda: all(file.exists() for file in files))
        made.freeze()
        sizes = [file.stat().st_size for file in files]
        time.sleep(0.3)
        assert [file.stat().st_size for file in files] == sizes
        made.thaw()
        wait_until(lambda: all(file.stat().st_size > size for file, size in zip(files, sizes)))
    finally:
        made.freeze()
        for number in find_descendants(popen.pid):
            os.kill(number, signal.SIGKILL)
        popen.kill()
        popen.wait()


def wait_until(condition, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.gpu
def test_a_canary_notices_another_program_on_the_gpu():
    """Is a quiet GPU undisturbed, and one on which another process computes disturbed?"""
    canary = Canary()
    assert sum(canary.is_disturbed() for _ in range(20)) <= 1
    hog = (
        "import torch\nx = torch.rand(8192, 8192, device='cuda')\nprint('on', flush=True)\n"
        "while True:\n    for _ in range(20):\n        x @ x\n    torch.cuda.synchronize()\n"
    )
    other = subprocess.Popen([sys.executable, "-c", hog], stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None and other.stdout.readline()
        time.sleep(0.5)
        assert sum(canary.is_disturbed() for _ in range(20)) >= 18
    finally:
        other.kill()
        other.wait()
