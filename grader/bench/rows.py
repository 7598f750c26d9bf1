"""List the rows of a run: the files of a problem's folder, submissions, eager, torch.compile, and anchors.

Anchors are other functions of torch that a problem is compared with, such as a product of numbers with more bits. A
problem's anchors.py has them in ANCHORS: {name: prepare}, where prepare(model, *inputs) returns a function of the same
inputs. What prepare does is not timed. BACKWARD there names those that have gradients.
"""

from __future__ import annotations

import dataclasses
import re
import runpy
from collections.abc import Sequence
from pathlib import Path

from grader.bench.work import Work
from grader.problems import cases
from grader.problems import problem as _problem

KINDS = ("step", "reference", "beside", "submission", "eager", "compile", "anchor")
MODES = ("default", "max-autotune")  # of torch.compile
OURS = ("step", "reference", "beside", "submission")
# Rows that a run can leave out.
SPARED = ("step", "reference", "eager", "compile", *MODES, "anchor", "channels_last", "tf32")
ANCHORS = "anchors.py"  # in a problem's folder


@dataclasses.dataclass(frozen=True)
class Entry:
    """One row: a file's ModelNew, or the problem's own Model run by torch.

    name: unique in its problem. kind: one of KINDS; "beside" is a ModelNew of the folder that is no step and no
    solution. precision: "fp32" or "tf32", whose error bound it must keep; torch may use TF32 in the latter. file: of
    ModelNew, or of the anchor. mode: of torch.compile. channels_last: whether its weights and inputs have that layout
    beforehand. anchor: its name in ANCHORS.
    """

    name: str
    kind: str
    precision: str = "fp32"
    file: str | None = None
    mode: str | None = None
    channels_last: bool = False
    anchor: str | None = None


def find_ladder(folder: Path) -> list[tuple[str, Path]]:
    """Return kind and file of each ModelNew in a problem's folder: its steps in order, its solution, all others."""
    found = [("step", f) for f in sorted(folder.glob("steps/*.py"))]
    found += [("reference", f) for f in [folder / "solution.py"] if f.is_file()]
    known = {"model.py", "solution.py", ANCHORS}
    others = [f for f in sorted(folder.glob("*.py")) if f.name not in known and "backward" not in f.stem]
    return found + [("beside", f) for f in others if "class ModelNew" in f.read_text(encoding="utf-8")]


def find_backwards(folder: Path) -> list[tuple[str, Path]]:
    """Return kind and file of each ModelNew with a backward: backward.py, and the fastest ones if there are any."""
    return [
        (kind, folder / name)
        for kind, name in (
            ("reference", "backward.py"),
            ("beside", "fastest_backward.py"),
            ("beside", "fastest_backward_tf32.py"),
        )
        if (folder / name).is_file()
    ]


def make_entries(
    problem: _problem.Problem, submissions: Sequence[Path], omitted: Sequence[str], work: Work, backward: bool = False
) -> list[Entry]:
    """Return the rows of a problem. TF32 and channels_last have rows only where they make a difference."""
    made, folder = [], problem.path.parent
    ladder = find_backwards(folder) if backward else find_ladder(folder)
    for kind, file in [*ladder, *(("submission", f) for f in submissions)]:
        made.append(_make_file_entry(kind, file, problem))
    made += make_anchor_entries(problem, backward)
    for precision in select_precisions(work, problem):
        for last in (False, True) if work.planes and precision != "fp16" else (False,):
            suffix = (", channels_last" if last else "") + (f", {precision}" if work.products else "")
            made.append(Entry(f"eager{suffix}", "eager", precision, channels_last=last))
            for mode in MODES:
                name = "torch.compile" + ("" if mode == "default" else f" {mode}")
                made.append(Entry(name + suffix, "compile", precision, mode=mode, channels_last=last))
    return [entry for entry in made if not _is_omitted(entry, omitted)]


def make_anchor_entries(problem: _problem.Problem, backward: bool) -> list[Entry]:
    """Return the rows of the problem's anchors; those with gradients for a run with backward."""
    file = problem.path.parent / ANCHORS
    if not file.is_file():
        return []
    namespace = runpy.run_path(str(file))
    names = namespace.get("BACKWARD", []) if backward else namespace["ANCHORS"]
    return [Entry(f"anchor: {name}", "anchor", problem.precision, str(file.resolve()), anchor=name) for name in names]


def make_sweep_entries(
    problem: _problem.Problem, submissions: Sequence[Path], omitted: Sequence[str], work: Work, compiled: bool
) -> list[Entry]:
    """Return the rows of each size of a sweep, in each class.

    These are the fastest kernels (the solution where there are none), the last step, eager (in TF32 also in
    channels_last), and torch.compile if `compiled`.
    """
    folder = problem.path.parent
    ladder = find_ladder(folder)
    fastest = [pair for pair in ladder if pair[1].stem.startswith("fastest")] or [
        p for p in ladder if p[0] == "reference"
    ]
    steps = [pair for pair in ladder if pair[0] == "step"]
    chosen = [*fastest, *steps[-1:], *(("submission", f) for f in submissions)]
    made = [_make_file_entry(kind, file, problem) for kind, file in chosen]
    for precision in select_precisions(work, problem):
        suffix = f", {precision}" if work.products else ""
        made.append(Entry(f"eager{suffix}", "eager", precision))
        if precision == "tf32" and work.planes:  # cuDNN uses TF32 in this layout: its error is the class's bound
            made.append(Entry(f"eager, channels_last{suffix}", "eager", precision, channels_last=True))
        if compiled:
            made.append(Entry(f"torch.compile{suffix}", "compile", precision, mode="default"))
    return [entry for entry in made if not _is_omitted(entry, omitted)]


def select_precisions(work: Work, problem: _problem.Problem) -> Sequence[str]:
    """Return the precisions in which torch runs: TF32 makes a difference to products of float32 alone."""
    if problem.precision not in cases.OF_FLOAT32:
        return (problem.precision,)
    return cases.OF_FLOAT32 if work.products else ("fp32",)


def _make_file_entry(kind: str, file: Path, problem: _problem.Problem) -> Entry:
    name = (
        "solution" if file.name == "solution.py" else f"submission {file.stem}" if kind == "submission" else file.stem
    )
    return Entry(name, kind, read_precision(file, problem), str(file.resolve()))


def _is_omitted(entry: Entry, omitted: Sequence[str]) -> bool:
    properties = {entry.kind, entry.mode, "channels_last" if entry.channels_last else None}
    return bool(set(omitted) & (properties | ({entry.precision} if entry.kind not in OURS else set())))


def read_precision(file: Path, problem: _problem.Problem) -> str:
    """Return the file's own precision (PRECISION = "tf32" at its top level), else the problem's."""
    try:
        assigned = re.search(r'^PRECISION\s*=\s*["\'](\w+)["\']', file.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):  # its row will report why
        assigned = None
    return assigned[1] if assigned and assigned[1] in cases.PRECISIONS else problem.precision
