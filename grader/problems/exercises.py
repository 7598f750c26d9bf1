"""Which exercise a file answers, which lines it was handed out with, and whether somebody has worked on it."""

from __future__ import annotations

import contextlib
import difflib
import functools
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from grader.paths import KERNELS_REF, KERNELS_STUDENT, find_place, find_real_path
from grader.problems.skeletons import (
    BACKWARD,
    CLOSE,
    DEFECT,
    MARK,
    OPEN,
    STAMP,
    ExerciseError,
    fingerprint,
    name_source,
    problem_of,
    skeleton,
    source_file,
)
from grader.source.inline_call import Binding, read_bindings
from grader.source.syntax import split_lines

__all__ = ["BACKWARD", "CLOSE", "DEFECT", "KERNELS_STUDENT", "MARK", "OPEN", "PRINTS", "STAMP"]

# in kernels_ref: each exercise's fingerprint as handed out, for a copy of the course without the solutions
PRINTS = "skeletons.toml"

MOST_ALIGNED = 3000  # lines of a file that is compared with the skeleton in order: it takes the square of their number
COMMENT = re.compile(r"//.*")
BARRIER = re.compile(r"\s*__sync(?:threads|warp)\([^;]*\);")


def source_of(exercise: str) -> Path:
    """Return the file that an exercise is made from; it need not exist."""
    return KERNELS_REF / problem_of(exercise) / source_file(exercise)


def problems() -> list[str]:
    """Return the problems of the course, sorted."""
    return sorted(file.parent.name for file in KERNELS_REF.glob("*/model.py"))


def is_of_the_course(model: Path) -> bool:
    """Return whether a problem's file lies in kernels_ref."""
    return find_real_path(model).parent.parent == KERNELS_REF.resolve()


def exercises() -> list[str]:
    """Return the problems of the course, each followed by its NAME_backward if there is one; sorted.

    A copy without solutions has the same.
    """
    found = set(problems())
    backward = {file.parent.name + BACKWARD for file in KERNELS_REF.glob("*/backward.py")}
    return sorted(found | backward | {name for name in read_fingerprints() if problem_of(name) in found})


def model_of(submission: Path, folder: Path | None = None) -> Path | None:
    """Return the model.py of kernels_ref that a file answers, or None.

    The file lies there itself, or its name says it, or its folder's. folder: as for contract.read.

    A handed-in name holds its problem's: `groupnorm_ada.py`, `groupnorm-2.py`, `ada.groupnorm.py`. A model.py that lies
    next to a file elsewhere may have been handed in with it, and a problem's code runs in the grader itself: only
    --problem takes it.
    """
    submission = find_place(submission, folder)
    folders = (submission.parent, submission.parent.parent)
    for outer in folders:
        if outer.parent == KERNELS_REF.resolve() and (outer / "model.py").is_file() and submission.name != "model.py":
            return outer / "model.py"
    named = list_named(submission.stem)
    if named:
        return KERNELS_REF / named[0] / "model.py" if len(named) == 1 else None
    known = problems()
    return next((KERNELS_REF / outer.name / "model.py" for outer in folders if outer.name in known), None)


def list_named(stem: str) -> list[str]:
    """Return the problems whose names a file's name holds, in its order; of names that overlap the longest."""
    found: dict[int, str] = {}
    rest = stem
    for name in sorted(problems(), key=len, reverse=True):  # the longest: conv_groupnorm_maxpool_ada is no groupnorm
        for match in re.finditer(rf"(?<![a-zA-Z0-9]){re.escape(name)}(?![a-zA-Z0-9])", rest):
            found[match.start()] = name
            rest = rest[: match.start()] + "\0" * len(name) + rest[match.end() :]
    return list(dict.fromkeys(found[start] for start in sorted(found)))


def read_given_bindings(model: Path | None) -> list[Binding]:
    """Return the bindings in the exercises of a problem of the course, as they are handed out."""
    if model is None or not is_of_the_course(model):
        return []
    found = []
    for name in (model.parent.name, model.parent.name + BACKWARD):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            found += read_bindings((KERNELS_STUDENT / f"{name}.py").read_text(encoding="utf-8-sig"))
    return found


def empty_places(text: str) -> list[int]:
    """Return the lines, from 1, of the marked places of a student's file that hold no code."""
    lines = [(number, line.strip()) for number, line in enumerate(split_lines(text), 1) if line.strip()]
    marks = [MARK + ":" in line for _, line in lines]
    return [
        lines[i][0]
        for i, marked in enumerate(marks[:-1])
        if marked and (marks[i + 1] or lines[i + 1][1].startswith("}"))
    ]


def given_lines(text: str, exercise: str) -> set[int]:
    """Return the lines, from 1, that a file has from the exercise's skeleton, in its order.

    None where it lacks most of the skeleton, so was not made from it; none either where the skeleton cannot be made: in
    a copy without solutions, and from a solution that makes none.
    """
    stub = _read_stub(exercise)
    lines = split_lines(text)
    if not stub or 2 * len(set(stub) & set(lines)) < len(set(stub)):
        return set()
    if len(lines) > MOST_ALIGNED:
        return {number for number, line in enumerate(lines, 1) if line in stub}
    own, steps = _align(tuple(stub), tuple(lines))
    return {own[at] for tag, _, _, begin, end in steps if tag == "equal" for at in range(begin, end)}


def _read_stub(exercise: str) -> list[str]:
    """Return the lines of an exercise's skeleton that are not blank; none where it cannot be made."""
    return [line for line in (_make_skeleton(exercise) or "").splitlines() if line.strip()]


@functools.lru_cache(maxsize=4)  # a report asks several times
def _align(stub: tuple[str, ...], lines: tuple[str, ...]) -> tuple[list[int], Sequence[tuple[str, int, int, int, int]]]:
    """Return the numbers of the lines that are not blank, and the steps from the skeleton to them, as of difflib.

    A line that was moved is not one of the skeleton's: `if (i >= n) return;` above a barrier is another statement than
    below it.
    """
    own = [number for number, line in enumerate(lines, 1) if line.strip()]
    steps = difflib.SequenceMatcher(None, stub, [lines[n - 1] for n in own], autojunk=False).get_opcodes()
    return own, steps


def find_missing_barriers(text: str, exercise: str) -> list[tuple[int, str]]:
    """Return the barriers of an exercise's skeleton that a file lacks: the line after which each belongs, its text.

    None where the file has a barrier of its own in that place, or where `outside_places` returns nothing.
    """
    return [
        (after, barrier[0].strip())
        for after, line, instead in _find_missing(text, exercise)
        if (barrier := BARRIER.match(line)) and not any(map(BARRIER.match, instead))
    ]


def find_missing_statements(text: str, exercise: str) -> list[tuple[int, str]]:
    """Return the one-line C++ statements of an exercise's skeleton that a file lacks: the line after which each
    belongs, and the statement without its comment.

    The file may have the same statement in another place. None where `outside_places` returns nothing.
    """
    found = []
    for after, line, _ in _find_missing(text, exercise):
        code = COMMENT.sub("", line).strip()
        if code.endswith(";") and all(code.count(one) == code.count(other) for one, other in ("()", "[]", "{}")):
            found.append((after, code))
    return found


def _find_missing(text: str, exercise: str) -> list[tuple[int, str, list[str]]]:
    """Return the lines of an exercise's skeleton that a file lacks: the line after which each belongs, its text, and
    the lines that the file has there instead.
    """
    stub, lines = _read_stub(exercise), split_lines(text)
    if len(lines) > MOST_ALIGNED or not outside_places(text, exercise):
        return []
    own, steps = _align(tuple(stub), tuple(lines))
    found = []
    for tag, first, last, begin, end in steps:
        if tag == "equal":
            continue
        instead = [lines[n - 1] for n in own[begin:end]]
        marks = [at for at in range(first, last) if MARK in stub[at]]
        for at in range(first, last):
            place = end if marks and at > marks[0] else begin  # below the student's own lines, or above them
            if at not in marks and place:
                found.append((own[place - 1], stub[at], instead))
    return found


def outside_places(text: str, exercise: str) -> set[int]:
    """Return the given lines of a file, outside of its marked places; none where the exercise has defects in them."""
    try:
        defective = any(DEFECT.match(line) for line in read_solution(exercise).splitlines())
    except (OSError, ExerciseError):
        return set()
    return set() if defective else given_lines(text, exercise)


def still_empty(text: str) -> str:
    """Return which marked places of a student's file are empty, in a sentence; empty where none is."""
    empty = empty_places(text)
    where = f"place in line {empty[0]}" if len(empty) == 1 else f"places in lines {', '.join(map(str, empty))}"
    return f"Still empty: the marked {where}. Only all together can be right." if empty else ""


def exercise_of(submission: Path, problem: str, folder: Path | None = None) -> str:
    """Return the exercise that a file answers: problem_backward where its name or its folder's says so.

    So do backward.py and fastest_backward.py in the problem's own folder.

    folder: as for contract.read.
    """
    backward = re.compile(rf"(?:^|[^a-zA-Z0-9]){re.escape(problem + BACKWARD)}(?:$|[^a-zA-Z0-9])")
    outer = find_place(submission, folder).parent.name
    reference = outer == problem and re.fullmatch(r"(?:fastest_)?backward(?:_tf32)?\.py", submission.name)
    named = reference or backward.search(submission.stem) or backward.search(outer)
    return problem + BACKWARD if named else problem


def is_untouched(source: str, problem_name: str) -> bool:
    """Return whether a submission is the skeleton, whatever was done to its comments, docstrings and spaces.

    An older skeleton, known by the stamp in its last line, is untouched too. A file that does not parse is not. Where
    the solution was not handed out, or makes no skeleton, the fingerprint in skeletons.toml decides.
    """
    try:
        mine = fingerprint(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: too deep for Python's parser
        return False
    stamp = STAMP.search(source)
    if stamp and stamp["print"] == mine:
        return True
    made = _make_skeleton(problem_name)
    if made is None:
        return read_fingerprints().get(problem_name) == mine
    return bool(STAMP.search(made)) and fingerprint(made) == mine


def read_solution(exercise: str) -> str:
    """Return the text of the file that an exercise is made from, without a byte order mark.

    Raises OSError and ExerciseError.
    """
    try:
        return source_of(exercise).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ExerciseError(
            f"{name_source(exercise)}: line {line} is not UTF-8 text: save the file as UTF-8."
        ) from None


def _make_skeleton(exercise: str) -> str | None:
    """Return the exercise's skeleton; None where there is no solution, or none that makes one."""
    try:
        return skeleton(read_solution(exercise), exercise)
    except (OSError, ExerciseError):
        return None


def fingerprint_file() -> Path:
    """Return the path of skeletons.toml."""
    return KERNELS_REF / PRINTS


def read_fingerprints() -> dict[str, str]:
    """Return each exercise's fingerprint as it was handed out; empty where the file is missing or damaged."""
    try:
        return tomllib.loads(read_fingerprint_file())
    except tomllib.TOMLDecodeError:
        return {}


def read_fingerprint_file() -> str:
    """Return the text of skeletons.toml; empty where it is missing."""
    file = fingerprint_file()
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
