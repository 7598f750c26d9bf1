"""The sizes of a sweep: batch 1 to 512 at the problem's own image size, and 32 to 512 pixels per side at its batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from grader.bench.order import Order
from grader.bench.rows import Entry, make_sweep_entries
from grader.bench.work import Work
from grader.problems import problem as _problem

BATCHES = tuple(2**k for k in range(10))
SIDES = tuple(2**k for k in range(5, 10))
COMPILED = (1, 4, 16, 64, 512)  # batches at which torch.compile has a row; and the problem's own
SIDE_NAMES = (("height", "width"), ("dim1", "dim2"))  # of an image in problem files
SWEEP_SECONDS = 95.0  # of a problem: four of them, with what is compiled before, take less than nine minutes


@dataclasses.dataclass(frozen=True)
class Size:
    """One size: images, and pixels per side (None where the problem has no square images)."""

    batch: int
    side: int | None

    @property
    def key(self) -> str:
        """Its name in reports."""
        return f"batch {self.batch}" + (f", {self.side} pixels a side" if self.side else "")


@dataclasses.dataclass(frozen=True)
class Axes:
    """The problem's own size, and the names of an image's sides in its file."""

    own: Size
    sides: tuple[str, ...]

    def make_overrides(self, size: Size) -> dict[str, int | None]:
        """Return the literals of the problem file that make this size."""
        return {"batch_size": size.batch} | dict.fromkeys(self.sides, size.side)


def find_axes(problem: _problem.Problem) -> Axes:
    """Return the axes along which the problem can grow. Raises ProblemError where the file has no batch_size."""
    literals = problem.literals
    batch = literals.get("batch_size")
    if not isinstance(batch, int):
        raise _problem.ProblemError(f"{problem.name}: a sweep needs a batch_size, which its file does not assign.")
    for names in SIDE_NAMES:
        values = [literals.get(name) for name in names]
        if isinstance(values[0], int) and values[0] == values[1]:
            return Axes(Size(batch, values[0]), names)
    return Axes(Size(batch, None), ())


def list_sizes(own: Size) -> list[Size]:
    """Return the sizes in the order of measurement: if time runs out, those measured still cover the whole range."""
    sides = [Size(own.batch, side) for side in SIDES] if own.side else []
    batches = [Size(batch, own.side) for batch in BATCHES]
    first = [s for s in batches if s.batch in COMPILED]
    between = [s for s in batches if s.batch not in COMPILED]
    return list(dict.fromkeys([own, *sides[::-1], *first[::-1], *between[::-1]]))


def resize(problem: _problem.Problem, overrides: Mapping[str, object]) -> _problem.Problem:
    """Return the problem with these literals replaced."""
    return _problem.Problem(problem.name, problem.path, problem.text, problem.tree, problem.overrides | dict(overrides))


def make_entries_at(size: Size, own: Size, order: Order, problem: _problem.Problem, work: Work) -> list[Entry]:
    """Return the rows that are measured at a size."""
    compiled = size.side != own.side or size.batch in (*COMPILED, own.batch)
    return make_sweep_entries(problem, order.submission_files(), order.omitted, work, compiled)


def list_files(problem: _problem.Problem, order: Order) -> list[Path]:
    """Return the files whose kernels a sweep needs compiled."""
    work = Work(0, 0, 0, False)
    entries = make_sweep_entries(problem, order.submission_files(), order.omitted, work, False)
    return [Path(entry.file) for entry in entries if entry.file]
