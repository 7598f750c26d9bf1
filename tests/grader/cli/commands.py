"""Runs the command `grader` for tests, in this process or in a shell."""

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from grader.cli import main
from grader.verdict import schema
from grader.worker import sandbox


def run(*arguments: object):
    return CliRunner().invoke(main.cli, [str(argument) for argument in arguments])


def grade(*arguments: object):
    return run("grade", "--device", "cpu", *arguments)


def verdicts(path: Path) -> list[schema.Verdict]:
    return [schema.from_json(line) for line in path.read_text().splitlines()]


def shell(line: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess:
    """A line for bash; grader is the command."""
    line = line.replace("grader ", f"{sys.executable} -m grader ")
    mine = os.environ | {"PYTHONPATH": str(sandbox.PROJECT)} | environment
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, cwd=tmp_path, env=mine)


def started_by(judge: int) -> list[str]:
    """Processes that this judge's workers are."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{sandbox.JUDGE}={judge}".encode() in entry.read_bytes().split(b"\0"):
                found.append(entry.parent.name)
        except OSError:
            pass
    return found
