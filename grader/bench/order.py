"""What the parent process asks of a child: the order, as one JSON argument of its command line."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path

from grader.bench.rows import Entry, make_entries
from grader.bench.work import Work
from grader.problems import problem as _problem

Report = Callable[[dict], None]  # sends one line of a child's results to its parent


@dataclasses.dataclass
class Order:
    """What a child measures.

    task: "forward", "backward" or "sweep". skip: rows that ended an earlier child. done: sizes of a sweep that an
    earlier child measured. profile: rows to run once each under ncu; empty to time all rows.
    """

    problem: str
    sets: dict[str, str]
    device: str
    submissions: list[str]
    omitted: list[str]
    seconds: float
    seed: int
    skip: list[str] = dataclasses.field(default_factory=list)
    profile: list[str] = dataclasses.field(default_factory=list)
    task: str = "forward"
    done: list[str] = dataclasses.field(default_factory=list)

    def make_command(self, descriptor: int) -> list[str]:
        """Return the command that starts the child, which writes its lines to the file descriptor."""
        return [sys.executable, "-m", "grader.bench", str(descriptor), json.dumps(dataclasses.asdict(self))]

    def read_problem(self) -> _problem.Problem:
        """Read the problem file with the order's settings."""
        return _problem.read(Path(self.problem), self.sets)

    def submission_files(self) -> list[Path]:
        """Return the submissions as paths."""
        return [Path(f) for f in self.submissions]

    def make_entries(self, work: Work) -> list[Entry]:
        """Return the rows of the problem for this task."""
        return make_entries(self.read_problem(), self.submission_files(), self.omitted, work, self.task == "backward")
