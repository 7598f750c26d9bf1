"""Finds what to check: a problem's file, any file, or a class from a notebook's cells, which is written to a file."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import hashlib
import os
import sys
from pathlib import Path

from grader.authoring import working_copies
from grader.paths import ROOT
from grader.problems import exercises
from grader.source import contract, syntax
from grader.worker import sandbox


class NothingThere(ValueError):
    """There is nothing to check; the text is one sentence or two."""


@dataclasses.dataclass
class Subject:
    """What is checked. name: for readers. path: the file that is graded. text: its text. problem, problem_file: what it
    answers.

    cells: for each line of the file (from 1) the cell's number and the line in it; empty where the student wrote the
    file.
    """

    name: str
    path: Path
    text: str
    problem: str
    problem_file: Path | None
    cells: dict[int, tuple[int, int]] = dataclasses.field(default_factory=dict)

    def where(self, line: int) -> str:
        """Return the name of a line: "line 12" or "line 3 of cell [7]"."""
        if line in self.cells:
            cell, inside = self.cells[line]
            return f"line {inside} of cell [{cell}]"
        return f"line {line}"


def subject(what, problem: str | Path | None = None) -> Subject:
    """Return the subject of `grader.check`. Raises NothingThere."""
    file = _problem_file(problem)
    if isinstance(what, type):
        return _of_class(what, file, problem)
    if not isinstance(what, (str, Path)) or not str(what).strip():
        example = exercises.exercises()[0]
        raise NothingThere(
            f"{what!r} cannot be checked. Give a problem's name (\"{example}\"), a file's path, "
            "or a class of this notebook."
        )
    path = Path(what)  # drops the end of "./"
    if isinstance(what, str) and what in exercises.exercises():
        path = _exercise(what)
        file = file or _model(what)
    elif not os.path.lexists(path) and not path.is_absolute() and os.path.isfile(ROOT / path):
        path = ROOT / path
    if not os.path.isfile(path):
        if why := describe_unusable(path):
            raise NothingThere(f"{what} {why}. Name a file or a problem.")
        near = nearest(path)
        advice = f"Did you mean {near}?" if near else f"The problems are {', '.join(exercises.exercises())}."
        named = path if path.name[-1:].isalnum() else repr(str(what))
        raise NothingThere(f"There is no file and no problem named {named}. {advice}")
    if file is None:
        from grader.problems import problem as problems

        try:
            file = problems.find(path).path
        except problems.ProblemError as error:
            raise NothingThere(str(error).replace("give --problem FILE", "give problem=")) from None
    return Subject(path.name, path, _read(path), exercises.exercise_of(path, problem_name(file)), file)


def describe_unusable(path: Path) -> str:
    """Return why what lies at a path is no file to read, such as "is a folder"; empty if nothing lies there."""
    if os.path.isdir(path):
        return "is a folder"
    if os.path.exists(path):
        return "is a pipe or a device, not a regular file"
    if os.path.islink(path):
        return f"is a link to {os.readlink(path)}, which does not exist"
    return ""


def nearest(path: Path, of_names: bool = True) -> str:
    """Return what a mistyped path may have meant: a file beside it, or an exercise, by its name if such can be given
    (`of_names`), else by its file. Empty if nothing is like it.
    """
    folder = Path("kernels_student") if Path("kernels_student").is_dir() else ROOT / "kernels_student"
    known = {name: name if of_names else str(folder / f"{name}.py") for name in exercises.exercises()}
    if path.parent != Path("."):
        known = {file.stem: str(file) for file in path.parent.glob("*.py")} or known
    near = difflib.get_close_matches(path.stem, known, n=1)
    return known[near[0]] if near else ""


def _exercise(name: str) -> Path:
    """Return the student's file: in the course with the notebook, which may be a copy, else in grader's own. A working
    copy that the student has changed comes before the course's own file.
    """
    here = Path.cwd()
    for folder in (here, here.parent, ROOT):
        course = working_copies.find_course(folder)
        if (place := course / "kernels_student" / f"{name}.py").is_file():
            return working_copies.find_exercise(course, name) or place
    return ROOT / "kernels_student" / f"{name}.py"


def _read(path: Path) -> str:
    """Return the file's text; empty where it cannot be read, or is too large, which the grader reports."""
    return contract.read(path)[0].text.replace("\r\n", "\n").replace("\r", "\n")


def problem_name(file: Path) -> str:
    """Return the name of a problem file's problem."""
    return file.parent.name if file.name == "model.py" else file.stem


def _model(exercise: str) -> Path:
    """Return the problem file of an exercise of the course."""
    return exercises.source_of(exercise).parent / "model.py"


def _problem_file(problem: str | Path | None) -> Path | None:
    if problem is None:
        return None
    if str(problem) in exercises.exercises():
        return _model(str(problem))
    if isinstance(problem, (str, Path)) and os.path.isfile(problem):
        return Path(problem)
    if isinstance(problem, (str, Path)) and str(problem).strip() and (why := describe_unusable(Path(problem))):
        raise NothingThere(f"{problem} {why}. Give a file, or one of {', '.join(exercises.exercises())}.")
    named = problem if str(problem).strip() else repr(problem)
    raise NothingThere(f"There is no problem {named}. Give a file, or one of {', '.join(exercises.exercises())}.")


# --- a class of the notebook -----------------------------------------------------------------------------------------


def _of_class(cls: type, file: Path | None, problem: str | Path | None) -> Subject:
    named = getattr(cls, "problem", None)
    problem = problem if problem is not None else named if isinstance(named, (str, Path)) else None
    file = file or _problem_file(problem)
    if file is None:
        raise NothingThere(
            f"The problem that {cls.__name__} answers is unknown. Name it: "
            f'check({cls.__name__}, problem="{exercises.exercises()[0]}").'
        )
    history = _history()
    if not history:
        raise NothingThere(
            f"A class can be checked only in a notebook. Write {cls.__name__} to a file and check the file."
        )
    text, lines = gather(cls.__name__, history)
    if not text:
        raise NothingThere(
            f"No cell of this notebook defines a class {cls.__name__}. Run the cell that defines it, then check it."
        )
    if cls.__name__ != "ModelNew":
        text += f"\nModelNew = {cls.__name__}\n"
    exercise = str(problem) if str(problem) in exercises.exercises() else problem_name(file)
    # The folder's name tells the grader which exercise it is: NAME_backward has its problem's file, too.
    folder = (
        sandbox.simt_cache().parent / "grader" / "cells" / hashlib.sha256(text.encode()).hexdigest()[:16] / exercise
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ModelNew.py"
    path.write_text(text, encoding="utf-8")
    return Subject(cls.__name__, path, text, exercise, file, lines)


def _history() -> list[tuple[int, str]]:
    """Return the number and the Python text of each cell that has run."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return []
    cells = shell.user_ns.get("In", [])
    return [(number, shell.transform_cell(text)) for number, text in enumerate(cells) if text.strip()]


@dataclasses.dataclass
class _Statement:
    """A top-level statement of a cell, with the names that it binds and reads."""

    cell: int
    first: int
    last: int
    lines: list[str]
    gives: set[str]
    takes: set[str]


def gather(name: str, history: list[tuple[int, str]]) -> tuple[str, dict[int, tuple[int, int]]]:
    """Return the class and what it needs from the cells: their text as one file, and for each of its lines the cell and
    the line in it.

    If several cells define a name, the last definition counts, as in the notebook. Empty if none defines the class.
    """
    statements = [s for number, text in history for s in _statements(number, text)]
    chosen: set[int] = set()
    waiting = [(name, len(statements))]
    seen = set()
    while waiting:
        wanted, before = waiting.pop()
        givers = [n for n, s in enumerate(statements[:before]) if wanted in s.gives]
        if not givers and before < len(statements):
            # a function may use what a later cell defines
            givers = [n for n, s in enumerate(statements) if wanted in s.gives][:1]
        for n in givers[-1:]:
            if n not in seen:
                seen.add(n)
                chosen.add(n)
                waiting += [(other, len(statements)) for other in statements[n].takes]
    if not any(name in statements[n].gives for n in chosen):
        return "", {}
    text, lines = [], {}
    for n in sorted(chosen):
        statement = statements[n]
        for offset, line in enumerate(statement.lines):
            text.append(line)
            lines[len(text)] = statement.cell, statement.first + offset
    return "\n".join(text) + "\n", lines


def _statements(number: int, text: str) -> list[_Statement]:
    try:
        tree = syntax.parse(text)
    except (SyntaxError, ValueError):
        return []
    lines, found = text.split("\n"), []
    for node in tree.body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        gives = _given(node)
        if gives:
            takes = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            found.append(
                _Statement(
                    number, first, node.end_lineno or node.lineno, lines[first - 1 : node.end_lineno], gives, takes
                )
            )
    return found


def _given(node: ast.stmt) -> set[str]:
    """Return the names that a statement binds by def, class, import or assignment."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.Try, ast.With, ast.For)):
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return set()
