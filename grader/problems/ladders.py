"""The ladder of a problem: its steps, reference solution and fastest file, with the work that each does at full size.

ladders.json was counted once (benchmarks/publish/ladders.py), so that a student's kernel is compared with them without
running them. It holds counters and times alone, no code.
"""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec

from simt.counting.time_model import Work

DATA = Path(__file__).parent / "ladders.json"


class Launches(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Launches of one kernel with one shape. times: how many; work: of one, the fields of simt's Work by name."""

    kernel: str
    times: int
    work: dict[str, float]
    mix: dict[str, float] = {}

    def make_work(self) -> Work:
        """Return the work of one of the launches."""
        sizes = {name: int(self.work.get(name, 0)) for name in ("blocks", "threads", "shared")}
        others = {name: value for name, value in self.work.items() if name not in sizes}
        return Work(**sizes, **others, mix=dict(self.mix))  # type: ignore[arg-type] - the file has these fields alone


class Rung(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One kernel file, or what PyTorch does by itself.

    kind: "step", "reference", "fastest", "eager" or "compile". source: digest of the file's code, empty for PyTorch.
    launches: empty where they were not counted. measured: milliseconds of one forward on a GPU, by its name in
    simt.devices.DEVICES. idea: of a step, what is new in it, as its file's first line says.
    """

    name: str
    kind: str
    source: str = ""
    launches: list[Launches] = []
    measured: dict[str, float] = {}
    idea: str = ""


class Ladder(msgspec.Struct, forbid_unknown_fields=True):
    """The rungs of one problem. sizes: of its inputs at full size."""

    sizes: list[list[int]]
    rungs: list[Rung]


class Ladders(msgspec.Struct, forbid_unknown_fields=True):
    """All ladders by problem, and the machine that counted them."""

    machine: dict[str, str]
    problems: dict[str, Ladder]


@functools.cache
def read_all(path: Path = DATA) -> Ladders:
    """Return all ladders; none where the file is missing."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Ladders)
    except OSError:
        return Ladders({}, {})


def read(problem: str) -> Ladder | None:
    """Return the ladder of a problem by its name, or None."""
    return read_all().problems.get(problem)
