"""Submissions of many cases for one worker, and which workers a grading left behind."""

import os
from pathlib import Path

from grader.worker import sandbox
from tests.grader.scaffold import PROBLEM, forward
from tests.slowness import slowness

OWN = 1.5 * slowness()  # seconds a submission has for itself


def by_rows(expressions: list[str]) -> str:
    """A submission that returns expression number n for n + 1 rows."""
    return forward(
        "right = x * self.scale",
        "def throw(error): raise error",
        "self.calls = getattr(self, 'calls', 0) + 1",
        "self.kept = getattr(self, 'kept', torch.empty_like(x))",
        *(f"if x.shape[0] == {n}: return {text}" for n, text in enumerate(expressions, 1)),
    )


def many_cases(tmp_path: Path, names: list[str]) -> Path:
    """The problem with a case of this name for each number of rows."""
    path = tmp_path / "many.py"
    cases = [{"name": name, "set": {"batch_size": n}, "inputs": "normal"} for n, name in enumerate(names, 1)]
    path.write_text(PROBLEM.split("CASES")[0] + f"CASES = {cases!r}\n")
    return path


def left_over() -> list[int]:
    """Processes of workers started from here that still run: other tests may run beside this one."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            mine = f"{sandbox.JUDGE}={os.getpid()}".encode() in (entry / "environ").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if mine and state != "Z":
            found.append(int(entry.name))
    return found
