"""A problem's cost as its work grows: batch 1 to 512 at its image's size, 32 to 512 pixels a side at its batch.

At each size the rows run in turns, as in any run of `grader bench`. torch.compile is compiled for each size anew: what it
compiles once for all batches keeps the shape of its reductions from the first one, which is unfair at small sizes. As that
takes seconds each time, it has a row at some of the batches only.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from grader import problem as _problem
from grader.bench.child import Order, Say, forward, in_turns, make_room, words_of
from grader.bench.rows import Entry, sweep_entries
from grader.bench.work import Work, memory_of, need_of, work_of

BATCHES = tuple(2**k for k in range(10))
SIDES = tuple(2**k for k in range(5, 10))
COMPILED = (1, 4, 16, 64, 512)  # batches for which torch.compile has a row; and the problem's own
PIXELS = (("height", "width"), ("dim1", "dim2"))  # what problem files call an image's sides
ROOM = 0.8  # of the memory may be taken by what eager makes; the rest is for libraries' temporaries
ROUNDS = 2.0  # seconds, at most, of a size's rounds
SECONDS = 95.0  # of a problem's sweep: four of them, with what is compiled before, within nine minutes


@dataclasses.dataclass(frozen=True)
class Size:
    """One size: images, and pixels a side (None where the problem has no square images)."""

    batch: int
    side: int | None

    @property
    def key(self) -> str:
        return f"batch {self.batch}" + (f", {self.side} pixels a side" if self.side else "")


@dataclasses.dataclass(frozen=True)
class Axes:
    """What a problem's sizes are called, and its own."""

    own: Size
    sides: tuple[str, ...]

    def sets(self, size: Size) -> dict[str, object]:
        return {"batch_size": size.batch} | dict.fromkeys(self.sides, size.side)


def axes_of(problem: _problem.Problem) -> Axes:
    """Raises ProblemError where the file has no batch_size."""
    literals = problem.literals
    if not isinstance(literals.get("batch_size"), int):
        raise _problem.ProblemError(f"{problem.name}: a sweep needs a batch_size, which its file does not assign.")
    for names in PIXELS:
        values = [literals.get(name) for name in names]
        if isinstance(values[0], int) and values[0] == values[1]:
            return Axes(Size(literals["batch_size"], values[0]), names)
    return Axes(Size(literals["batch_size"], None), ())


def sizes(own: Size) -> list[Size]:
    """In the order in which they are measured: if time runs out, what is there still shows the whole range."""
    sides = [Size(own.batch, side) for side in SIDES] if own.side else []
    batches = [Size(batch, own.side) for batch in BATCHES]
    first = [s for s in batches if s.batch in COMPILED]
    between = [s for s in batches if s.batch not in COMPILED]
    return list(dict.fromkeys([own, *sides[::-1], *first[::-1], *between[::-1]]))


def sized(problem: _problem.Problem, sets: dict[str, object]) -> _problem.Problem:
    """The problem with these literals replaced."""
    return _problem.Problem(problem.name, problem.path, problem.tree, problem.overrides | sets)


def rows_at(size: Size, own: Size, order: Order, problem: _problem.Problem, work: Work) -> list[Entry]:
    compiled = size.side != own.side or size.batch in (*COMPILED, own.batch)
    return sweep_entries(problem, order.files(), order.spared, work, compiled)


def child(order: Order, say: Say) -> None:
    """Measure one problem at every size, and say of each what is found, or why it is left out."""
    problem, deadline = order.read(), time.monotonic() + order.seconds
    axes, work, memory = axes_of(problem), work_of(problem), memory_of(order.device)
    say({"work": dataclasses.asdict(work), "roof": {}})
    for size in sizes(axes.own):
        if size.key in order.done:
            continue
        here = sized(problem, axes.sets(size))
        if time.monotonic() > deadline:
            say({"size": size.key, "skipped": "the time was up"})
            continue
        try:
            need = need_of(here)
        except _problem.ProblemError:  # not every Model runs on the meta device: then trying tells
            need = 0
        if need > ROOM * memory:
            said = f"eager makes up to {need / 1e9:,.0f} GB of tensors, and the device has {memory / 1e9:,.0f} GB"
            say({"size": size.key, "skipped": said})
            continue
        try:
            instance = here.instantiate(here.full(), order.seed, order.device)
            rows = rows_at(size, axes.own, order, here, work)
            in_turns(order, rows, forward(order, here, instance), say, f"{size.key}: ", ROUNDS)
            say({"size": size.key})
        except (RuntimeError, MemoryError) as error:
            if "out of memory" not in str(error).lower() and not isinstance(error, MemoryError):
                raise
            say({"size": size.key, "skipped": words_of(error)})
        instance = None  # noqa: F841  (its memory is the next size's)
        make_room(order)


# --- what was found --------------------------------------------------------------------------------------------------


def told(problem: _problem.Problem, order: Order, found) -> dict:
    """A problem's part of the sweep's data file; found: Measured."""
    from grader.bench.part import rows_of

    axes = axes_of(problem)
    made: list[dict] = []
    for size in sorted(sizes(axes.own), key=lambda s: (s.batch, s.side or 0)):
        line: dict = {"batch": size.batch, "side": size.side}
        heard = found.work is not None and any(name.startswith(f"{size.key}: ") for name in found.heard())
        if size.key in found.skipped or not heard:
            line["skipped"] = found.skipped.get(size.key, "it was not reached: the run ended before")
        if not heard:
            made.append(line)
            continue
        rows = rows_of(rows_at(size, axes.own, order, problem, found.work), found.only(f"{size.key}: "))
        for row in rows:  # the rates are those of the problem's own size
            for key in ("samples", "gb_a_second", "tflop_a_second", "of_roof"):
                row.pop(key, None)
        made.append(line | {"rows": rows})
    return {"own": dataclasses.asdict(axes.own), "names": ["batch_size", *axes.sides], "sizes": made}


def files_of(problem: _problem.Problem, order: Order) -> list[Path]:
    """What must be compiled for it."""
    work = Work(0, 0, 0, False)
    return [Path(e.file) for e in sweep_entries(problem, order.files(), order.spared, work, False) if e.file]
