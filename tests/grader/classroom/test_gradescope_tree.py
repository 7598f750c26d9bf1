"""Does a script of Gradescope's tree run as there, and leave no process, however it or its caller ends?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grader.paths import ROOT
from tests.grader.classroom.gradescope_tree import run_script

CALLER = """
import sys
from pathlib import Path
from tests.grader.classroom.gradescope_tree import run_script
run_script(Path(sys.argv[1]), "setup.sh", 600)
"""
# As a build does: a compiler in the background, another one in a session of its own.
BUILD = """#!/bin/sh
sleep 600 &
setsid sleep 600 &
echo started > "$AUTOGRADER/started"
wait
"""


@pytest.fixture
def root(tmp_path):
    """A tree whose setup.sh starts two programs and waits for them."""
    (tmp_path / "source").mkdir()
    script(tmp_path, BUILD)
    return tmp_path


def script(root: Path, text: str) -> None:
    """Write setup.sh."""
    file = root / "source" / "setup.sh"
    file.write_text(text)
    file.chmod(0o755)


def processes(root: Path) -> list[int]:
    """Return the processes that the tree's script has started, which have its variable."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"AUTOGRADER={root}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            pass
    return found


def wait_for(condition) -> bool:
    until = time.monotonic() + 30
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return condition()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_killed_run(root, number):
    caller = subprocess.Popen([sys.executable, "-c", CALLER, str(root)], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        assert wait_for((root / "started").exists) and len(processes(root)) >= 3
        os.kill(caller.pid, number)
        caller.wait(30)
        assert wait_for(lambda: not processes(root))
    finally:
        caller.kill()
        caller.wait()
        for left in processes(root):
            os.kill(left, signal.SIGKILL)


def test_nothing_is_left_of_a_run_that_takes_too_long(root):
    with pytest.raises(subprocess.TimeoutExpired):
        run_script(root, "setup.sh", 1.0)
    assert (root / "started").exists() and not processes(root)


def test_a_script_s_output_and_status_are_returned(root):
    """Are its variables Gradescope's, and does what it leaves behind end with it?"""
    script(root, '#!/bin/sh\nsetsid sleep 600 &\necho "out $PWD $MORE $PYTHONPATH"\necho told >&2\nexit 3\n')
    done = run_script(root, "setup.sh", 30, {"MORE": "given"})
    assert (done.returncode, done.stdout, done.stderr) == (3, f"out {root} given \n", "told\n")
    assert not processes(root)
