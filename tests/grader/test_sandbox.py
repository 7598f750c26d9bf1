"""Is a worker that was just being started ended by Ctrl-C, too?"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from grader import sandbox

FILE = Path(__file__)


@pytest.fixture
def pressed(monkeypatch):
    """Ctrl-C at the worst moment: the process runs, and nobody holds it yet."""
    started, popen = [], subprocess.Popen

    def start(*arguments, **options):
        started.append(popen(*arguments, **options))
        os.kill(os.getpid(), signal.SIGINT)
        return started[-1]

    monkeypatch.setattr(sandbox.subprocess, "Popen", start)
    monkeypatch.setattr(sandbox, "why_not", lambda: "none in this test")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield started
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_a_worker_starts(pressed, tmp_path):
    """Is it put off until the worker can be ended, and then not lost?"""
    with pytest.raises(KeyboardInterrupt):
        sandbox.start(FILE, gpu=False, caches=[tmp_path], environment={})
    assert len(pressed) == 1 and pressed[0].poll() is None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    (process,) = [one for one in sandbox._started if one.popen is pressed[0]]
    sandbox.end_all()
    assert pressed[0].poll() == -signal.SIGKILL and not process.work.exists() and process not in sandbox._started


def test_others_are_left_alone(monkeypatch, tmp_path):
    """Does one thread's interruption leave another thread's worker running?"""
    monkeypatch.setattr(sandbox, "why_not", lambda: "none in this test")
    made, done = [], threading.Event()

    def elsewhere():
        made.append(sandbox.start(FILE, gpu=False, caches=[tmp_path], environment={}))
        done.wait()

    thread = threading.Thread(target=elsewhere, daemon=True)
    thread.start()
    while not made:
        thread.join(0.01)
    sandbox.end_all()
    assert made[0].alive()
    made[0].kill()
    done.set()
    thread.join()


def test_a_worker_nobody_ended(tmp_path):
    """Does a program that forgets its worker leave neither it nor its folder?"""
    program = f"""
import pathlib
from grader import sandbox
sandbox.why_not = lambda: "none in this test"
process = sandbox.start(pathlib.Path({str(FILE)!r}), gpu=False, caches=[], environment={{}})
print(process.popen.pid, process.work)
"""
    environment = os.environ | {"PYTHONPATH": str(FILE.parents[2])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=environment, check=True)
    number, work = done.stdout.split()
    assert not psutil.pid_exists(int(number)) and not Path(work).exists()
