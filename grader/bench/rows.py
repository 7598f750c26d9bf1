"""The rows that are measured beside one another: the files of a problem's folder, submissions, eager and torch.compile."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from grader import cases
from grader import problem as _problem
from grader.bench.work import Work

KINDS = ("step", "reference", "beside", "submission", "eager", "compile")
MODES = ("default", "max-autotune")  # of torch.compile
OURS = ("step", "reference", "beside", "submission")
SPARED = ("step", "reference", "eager", "compile", *MODES, "channels_last", "tf32")  # what a run can leave out


@dataclasses.dataclass(frozen=True)
class Entry:
    """One row: a file's ModelNew, or the problem's own Model run by torch.

    name: unique in its problem. kind: one of KINDS. precision: whose error it is held to, "fp32" or "tf32" (which torch
    is then allowed to use). file: of ModelNew. mode: of torch.compile. channels_last: its weights and inputs lie so
    beforehand.
    """

    name: str
    kind: str
    precision: str = "fp32"
    file: str | None = None
    mode: str | None = None
    channels_last: bool = False


def ladder_of(folder: Path) -> list[tuple[str, Path]]:
    """Kind and file of what stands in a problem's folder: its steps in order, its solution, what stands beside them."""
    found = [("step", f) for f in sorted(folder.glob("steps/*.py"))]
    found += [("reference", f) for f in [folder / "solution.py"] if f.is_file()]
    known = {"model.py", "solution.py"}
    others = [f for f in sorted(folder.glob("*.py")) if f.name not in known and "backward" not in f.stem]
    return found + [("beside", f) for f in others if "class ModelNew" in f.read_text(encoding="utf-8")]


def backward_of(folder: Path) -> list[tuple[str, Path]]:
    """The same of what has a backward: backward.py, and the fast ones where there are any."""
    return [
        (kind, folder / name)
        for kind, name in (("reference", "backward.py"), ("beside", "limit_backward.py"), ("beside", "limit_backward_tf32.py"))
        if (folder / name).is_file()
    ]


def entries(
    problem: _problem.Problem, submissions: Sequence[Path], spared: Sequence[str], work: Work, backward: bool = False
) -> list[Entry]:
    """The rows of a problem. TF32 and channels_last are tried only where they make a difference."""
    made, folder = [], problem.path.parent
    ladder = backward_of(folder) if backward else ladder_of(folder)
    for kind, file in [*ladder, *(("submission", f) for f in submissions)]:
        made.append(_of_file(kind, file, problem))
    for precision in precisions(work):
        for last in (False, True) if work.planes else (False,):
            words = (", channels_last" if last else "") + (f", {precision}" if work.products else "")
            made.append(Entry(f"eager{words}", "eager", precision, channels_last=last))
            for mode in MODES:
                said = "torch.compile" + ("" if mode == "default" else f" {mode}")
                made.append(Entry(said + words, "compile", precision, mode=mode, channels_last=last))
    return [entry for entry in made if not _is_spared(entry, spared)]


def sweep_entries(
    problem: _problem.Problem, submissions: Sequence[Path], spared: Sequence[str], work: Work, compiled: bool
) -> list[Entry]:
    """The rows of each size of a sweep: what stands at the limit (without it the solution), the last step, eager (in TF32 also
    in channels_last), and where `compiled` torch.compile, in each class."""
    folder = problem.path.parent
    ladder = ladder_of(folder)
    limits = [pair for pair in ladder if pair[1].stem.startswith("limit")] or [p for p in ladder if p[0] == "reference"]
    steps = [pair for pair in ladder if pair[0] == "step"]
    chosen = [*limits, *steps[-1:], *(("submission", f) for f in submissions)]
    made = [_of_file(kind, file, problem) for kind, file in chosen]
    for precision in precisions(work):
        words = f", {precision}" if work.products else ""
        made.append(Entry(f"eager{words}", "eager", precision))
        if precision == "tf32" and work.planes:  # where cuDNN takes TF32: its error is what the class allows
            made.append(Entry(f"eager, channels_last{words}", "eager", precision, channels_last=True))
        if compiled:
            made.append(Entry(f"torch.compile{words}", "compile", precision, mode="default"))
    return [entry for entry in made if not _is_spared(entry, spared)]


def precisions(work: Work) -> Sequence[str]:
    """In which torch is run: TF32 makes a difference to products alone."""
    return cases.PRECISIONS if work.products else ("fp32",)


def _of_file(kind: str, file: Path, problem: _problem.Problem) -> Entry:
    name = "solution" if file.name == "solution.py" else f"submission {file.stem}" if kind == "submission" else file.stem
    return Entry(name, kind, precision_of(file, problem), str(file.resolve()))


def _is_spared(entry: Entry, spared: Sequence[str]) -> bool:
    words = {entry.kind, entry.mode, "channels_last" if entry.channels_last else None}
    return bool(set(spared) & (words | ({entry.precision} if entry.kind not in OURS else set())))


def precision_of(file: Path, problem: _problem.Problem) -> str:
    """What the file says its answers are (PRECISION = "tf32" at its top level), else what the problem asks for."""
    try:
        said = re.search(r'^PRECISION\s*=\s*["\'](\w+)["\']', file.read_text(encoding="utf-8"), re.MULTILINE)
    except (OSError, UnicodeDecodeError):  # its row will say why
        said = None
    return said[1] if said and said[1] in cases.PRECISIONS else problem.precision
