"""Run a line of an attacker's Python in a worker at one level of the sandbox, and return what it computed."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.worker import bubblewrap, client, confine, protocol, sandbox
from grader.worker.levels import Level, Probe, has_gpu

SECONDS = 20.0
HELPERS = Path(__file__).with_name("attacks.py")


def find_trouble(level: Level, folder: Path) -> str:
    """Return why a level cannot be tested here; empty if it can."""
    if level is Level.bubblewrap:
        if not bubblewrap.is_installed():
            return "bubblewrap is not installed"
        return bubblewrap.find_trouble(folder, has_gpu())[0]
    return confine.find_trouble() if level is Level.landlock else ""


class Attacked:
    """A worker at one level. folder: outside the sandbox, where a test puts what the worker must not reach.

    change: called with the submission's path after the judge has read it and before the worker starts.
    """

    def __init__(
        self, level: Level, folder: Path, gpu: bool = False, change: Callable[[Path], object] = lambda path: None
    ):
        trouble = find_trouble(level, folder)
        if trouble:
            pytest.skip(f"{level}: {trouble}")
        self.level, self.folder, self.cache = level, folder, sandbox.simt_cache()
        # simt's cache has a folder of the last part's name: another process that tests at another level has its own
        self.builds = folder.with_name(f"{folder.name}-{level}-{os.getpid()}-builds")
        self.submission = folder / "submission.py"
        self.submission.write_text("# mine\n")
        content = self.submission.read_bytes()
        change(self.submission)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sandbox, "probe", lambda: Probe(level, "" if level is not Level.none else "forced"))
            self.process = sandbox.start(self.submission, content, gpu=gpu, builds=self.builds)
        self.client = client.Client(self.process, self.submission, lambda words: None, 60.0)
        self.client.wait_until_ready()

    def run(self, expression: str) -> str:
        """Return repr() of an expression's value, or the name of the OSError's number, or of another exception."""
        source = f"{HELPERS.read_text()}\nraise RuntimeError('<' + attempt(lambda: {expression}) + '>')\n"
        reply = self.client.ask(protocol.Build(source, str(self.submission), SECONDS), SECONDS)
        assert isinstance(reply, protocol.Failure), reply
        assert reply.message.startswith("<"), reply
        return reply.message[1 : reply.message.rindex(">")]


def find_processes(argument: str) -> list[int]:
    """Return the processes of this machine that have this command-line argument."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if argument.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def run_python(code: str) -> subprocess.CompletedProcess:
    """Run a program with this project on its path."""
    environment = os.environ | {"PYTHONPATH": str(sandbox.PROJECT)}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
