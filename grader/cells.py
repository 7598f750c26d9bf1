"""What there is to check: a problem's file, any file, or a class that a notebook's cells define, written to a file with its lines known."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import sys
from pathlib import Path

from grader import sandbox, student, syntax

ROOT = Path(__file__).resolve().parent.parent


class NothingThere(ValueError):
    """Nothing can be found to check; the text is one sentence or two."""


@dataclasses.dataclass
class Subject:
    """name: for people. path: the file that is graded. text: its text. problem, problem_file: what it answers.

    cells: for each line of the file (from 1) the cell's number and the line in it; empty where the student wrote the file.
    """

    name: str
    path: Path
    text: str
    problem: str
    problem_file: Path | None
    cells: dict[int, tuple[int, int]] = dataclasses.field(default_factory=dict)

    def where(self, line: int) -> str:
        """What to call a line."""
        if line in self.cells:
            cell, inside = self.cells[line]
            return f"line {inside} of cell [{cell}]"
        return f"line {line}"


def subject(what, problem: str | Path | None = None) -> Subject:
    """What `grader.check` was asked for. Raises NothingThere."""
    from grader import problem as problems

    file = _problem_file(problem)
    if isinstance(what, type):
        return _of_class(what, file, problem)
    if not isinstance(what, (str, Path)) or not str(what).strip():
        example = student.exercises()[0]
        raise NothingThere(f'There is nothing to check in {what!r}: say a problem\'s name ("{example}"), a file\'s path, or a class of this notebook.')
    path = Path(what)
    if isinstance(what, str) and what in student.exercises():
        path = _exercise(what)
        file = file or _model(what)
    elif not path.is_file() and not path.is_absolute() and (ROOT / path).is_file():
        path = ROOT / path
    if not path.is_file():
        known = ", ".join(student.exercises())
        raise NothingThere(f"There is no file {path}, and no problem of that name; the problems are {known}.")
    if file is None:
        try:
            file = problems.find(path).path
        except problems.ProblemError as error:
            raise NothingThere(str(error).replace("give --problem FILE", "say problem=")) from None
    return Subject(path.name, path, _read(path), student.exercise_of(path, problem_name(file)), file)


def _exercise(name: str) -> Path:
    """The student's file: in the course that the notebook lies in, which may be a copy, or else in grader's own."""
    here = Path.cwd()
    places = [folder / "kernels_student" / f"{name}.py" for folder in (here, here.parent)]
    return next((place for place in places if place.is_file()), ROOT / "kernels_student" / f"{name}.py")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""  # the grader says it


def problem_name(file: Path) -> str:
    """What to call the problem of a file."""
    return file.parent.name if file.name == "model.py" else file.stem


def _model(exercise: str) -> Path:
    """The problem's file of an exercise of the course."""
    return student.source_of(exercise).parent / "model.py"


def _problem_file(problem: str | Path | None) -> Path | None:
    if problem is None:
        return None
    if str(problem) in student.exercises():
        return _model(str(problem))
    if isinstance(problem, (str, Path)) and Path(problem).is_file():
        return Path(problem)
    said = problem if str(problem).strip() else repr(problem)
    raise NothingThere(f"There is no problem {said}: say a file, or one of {', '.join(student.exercises())}.")


# --- a class of the notebook -------------------------------------------------------------------------------------------


def _of_class(cls: type, file: Path | None, problem: str | Path | None) -> Subject:
    named = getattr(cls, "problem", None)
    problem = problem if problem is not None else named if isinstance(named, (str, Path)) else None
    file = file or _problem_file(problem)
    if file is None:
        raise NothingThere(f"Which problem does {cls.__name__} answer? Say it: check({cls.__name__}, problem=\"{student.exercises()[0]}\").")
    history = _history()
    if not history:
        raise NothingThere(f"{cls.__name__}'s source is known only in a notebook: write it to a file and check that.")
    text, lines = gather(cls.__name__, history)
    if not text:
        raise NothingThere(f"No cell of this notebook defines a class {cls.__name__}: run the cell that does, then check it.")
    if cls.__name__ != "ModelNew":
        text += f"\nModelNew = {cls.__name__}\n"
    exercise = str(problem) if str(problem) in student.exercises() else problem_name(file)
    # The folder's name tells the grader which exercise it is: NAME_backward has its problem's file, too.
    folder = sandbox.simt_cache().parent / "grader" / "cells" / hashlib.sha256(text.encode()).hexdigest()[:16] / exercise
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ModelNew.py"
    path.write_text(text, encoding="utf-8")
    return Subject(cls.__name__, path, text, exercise, file, lines)


def _history() -> list[tuple[int, str]]:
    """Number and Python text of each cell run so far."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return []
    cells = shell.user_ns.get("In", [])
    return [(number, shell.transform_cell(text)) for number, text in enumerate(cells) if text.strip()]


@dataclasses.dataclass
class _Statement:
    """One statement of a cell at top level: the names that it gives and takes."""

    cell: int
    first: int
    last: int
    lines: list[str]
    gives: set[str]
    takes: set[str]


def gather(name: str, history: list[tuple[int, str]]) -> tuple[str, dict[int, tuple[int, int]]]:
    """The class and what it needs, from the cells: their text as one file, and for each of its lines the cell and the line there.

    Of a name that several cells define the last definition counts, as it does in the notebook. Empty where none defines the class.
    """
    statements = [s for number, text in history for s in _statements(number, text)]
    chosen: set[int] = set()
    waiting = [(name, len(statements))]
    seen = set()
    while waiting:
        wanted, before = waiting.pop()
        givers = [n for n, s in enumerate(statements[:before]) if wanted in s.gives]
        if not givers and before < len(statements):
            givers = [n for n, s in enumerate(statements) if wanted in s.gives][:1]  # a function may use what a later cell defines
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
            found.append(_Statement(number, first, node.end_lineno, lines[first - 1 : node.end_lineno], gives, takes))
    return found


def _given(node: ast.stmt) -> set[str]:
    """Names that a statement binds: by def, class, import or assignment."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.If, ast.Try, ast.With, ast.For)):
        return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return set()
