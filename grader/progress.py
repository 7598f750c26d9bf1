"""Where a student stands: the best verdict so far for each problem of the course, kept in one small file."""

from __future__ import annotations

import contextlib
import html
import os
import sys
import types
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from grader.verdict import Outcome, Reason, StageName, Status, Verdict

SCHEMA = "kernel-course/progress/1"
COURSE = {  # the course's order: problem -> where it is set
    "conv2d": "lesson 1",
    "im2col_conv": "lesson 2",
    "matmul": "lesson 2",
    "groupnorm": "lesson 3",
    "bias_scale_sigmoid": "lesson 4",
    "logsumexp": "lesson 5",
    "scale_maxpool_clamp": "lesson 6",
    "conv_sigmoid_groupnorm": "lesson 8",
    "conv_groupnorm_maxpool": "lesson 8",
    "conv_groupnorm_logsumexp": "lesson 8",
    "conv2d_tensor_core": "lesson 9",
    "ratio_interval": "lesson 10",
    "mend_layernorm": "lesson 11",
}
BACKWARDS = "lesson 7"  # where each NAME_backward is set
NOT_TRIED = "not tried yet"
STAGES = list(StageName)
WAIT = 10.0  # seconds for another process that writes the same file


class Trouble(Exception):
    """The file cannot be used; the text is one sentence."""


# --- what is kept ----------------------------------------------------------------------------------------------------


class Mark(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """One verdict in brief. right, cases: of the first stage that did not pass. speedup: over eager, where measured."""

    outcome: Outcome
    when: str  # UTC, ISO 8601
    sha256: str
    stage: StageName | None = None
    reason: Reason | None = None
    right: int = 0
    cases: int = 0
    speedup: float | None = None

    def rank(self) -> tuple[float, ...]:
        """Larger is better: passed, then how far it came, then the share of the cases that were right."""
        if self.outcome is Outcome.passed:
            return (len(STAGES), 1.0, self.speedup or 0.0)
        return (STAGES.index(self.stage) if self.stage else -1, self.right / self.cases if self.cases else 0.0, 0.0)

    def __str__(self) -> str:
        if self.outcome is Outcome.passed:
            return "passed" + (f", {self.speedup:.2f} times as fast as eager" if self.speedup else "")
        reason = f"{self.stage}: {self.reason}".replace("_", " ") if self.reason else str(self.stage)
        return f"failed in {reason}" + (f", {self.right} of {self.cases} cases right" if self.cases else "")


class Entry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One problem. best: and the first of several equals. shown: what `best` was when progress was last looked at."""

    best: Mark
    last: Mark
    tries: int = 1
    shown: Mark | None = None


class State(msgspec.Struct, kw_only=True):
    """The whole file."""

    schema: str = SCHEMA
    problems: dict[str, Entry] = {}


def mark_of(verdict: Verdict) -> Mark | None:
    """The verdict in brief; None for one that says nothing of the student: not attempted, interrupted, grader's fault, no file to read."""
    if verdict.outcome not in (Outcome.passed, Outcome.failed) or not verdict.submission.sha256:
        return None
    stage = verdict.first_problem
    cases = stage.cases if stage else []
    measured = [m.value for s in verdict.stages for m in s.measurements if m.name == "speed-up over eager"]
    return Mark(
        outcome=verdict.outcome,
        when=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        sha256=verdict.submission.sha256,
        stage=stage.name if stage else None,
        reason=stage.reason if stage else None,
        right=sum(case.status is Status.passed for case in cases),
        cases=len(cases),
        speedup=measured[0] if measured else None,
    )


# --- the file --------------------------------------------------------------------------------------------------------


def path() -> Path | None:
    """The file that is kept, or None where nothing is: under pytest and nbval, unless GRADER_PROGRESS names a file.

    It lies in the user's state folder and not beside the kernels: it survives a new clone and `git clean`, and
    cannot be committed. GRADER_PROGRESS names another, such as one on a disk that outlives a hosted machine.
    """
    named = os.environ.get("GRADER_PROGRESS")
    if named:
        return Path(named).expanduser().absolute()
    if "PYTEST_VERSION" in os.environ:
        return None
    root = os.environ.get("XDG_STATE_HOME", "")
    return (Path(root) if os.path.isabs(root) else Path.home() / ".local" / "state") / "grader" / "progress.json"


def _read(file: Path) -> tuple[State, str]:
    """What the file holds, and a sentence if it was damaged: it is then set aside. Raises Trouble."""
    if file.exists() and not file.is_file():
        raise Trouble(f"Your progress cannot be kept in {file}: it is no ordinary file.")
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return State(), ""
    except OSError as error:
        raise Trouble(f"Your progress in {file} cannot be read ({error.strerror}).") from None
    if not data:  # somebody made it, for us to fill
        return State(), ""
    try:
        state = msgspec.json.decode(data, type=State)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        state = None
    if state is None or state.schema != SCHEMA:
        if schema := _other_schema(data):
            raise Trouble(f"Your progress in {file} was written by another version of grader ({schema}): it is left as it is.")
        aside = _set_aside(file)
        return State(), f"Your progress in {file} was damaged: it is now in {aside.name}, beside it, and a new one is begun."
    return state, ""


def _other_schema(data: bytes) -> str:
    """The name of the version that wrote the file, if it is a progress file but not of this version."""

    class Head(msgspec.Struct):
        schema: str

    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        schema = msgspec.json.decode(data, type=Head).schema
        if schema.startswith(SCHEMA.rpartition("/")[0]) and schema != SCHEMA:
            return schema
    return ""


def _set_aside(file: Path) -> Path:
    """Rename the file to a name that nothing has. Raises Trouble."""
    number = 1
    while (aside := file.with_name(f"{file.name}.damaged-{number}")).exists():
        number += 1
    try:
        file.rename(aside)
    except OSError as error:
        raise Trouble(f"Your progress in {file} is damaged and cannot be set aside ({error.strerror}).") from None
    return aside


def _write(file: Path, state: State) -> None:
    """Replace the file in one step: whenever the power fails, the old one or the new one is there, whole."""
    new = file.with_name(file.name + ".new")
    try:
        with open(new, "wb") as out:
            out.write(msgspec.json.format(msgspec.json.encode(state), indent=1) + b"\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(new, file)
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        with contextlib.suppress(OSError):
            new.unlink()


@contextlib.contextmanager
def _opened() -> Iterator[tuple[State, list[str]]]:
    """The state, alone with it, and sentences to show; written back at the end. Raises Trouble."""
    from filelock import FileLock, Timeout

    try:
        file = path()
    except RuntimeError:
        raise Trouble("Your progress cannot be kept: this user has no home folder, and GRADER_PROGRESS names no file.") from None
    if file is None:
        yield State(), []
        return
    try:
        file = file.resolve()  # a link stays a link, and what it leads to is replaced
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock", timeout=WAIT):
            state, said = _read(file)
            before = msgspec.json.encode(state)
            yield state, [said] if said else []
            if msgspec.json.encode(state) != before:
                _write(file, state)
    except Timeout:
        raise Trouble(f"Your progress in {file} is in use by another program, or its folder cannot be written.") from None
    except OSError as error:
        raise Trouble(f"Your progress cannot be kept in {file} ({error.strerror or error}).") from None


# --- recording -------------------------------------------------------------------------------------------------------


def note(verdict: Verdict, problem: str | None = None) -> str:
    """Record a verdict, and say in one sentence what is new: "" if nothing is. Never raises.

    Recorded are the course's own exercises, `kernels_student/NAME.py`. problem: the problem of the course that a
    file elsewhere, or a class in a notebook, is to count for.
    """
    name = problem or _exercise(verdict)
    mark = mark_of(verdict)
    if mark is None or name not in names():
        return ""
    try:
        with _opened() as (state, said):
            news = _record(state, name, mark)
    except Trouble as trouble:
        return str(trouble)
    return " ".join([*said, *news])


def _exercise(verdict: Verdict) -> str | None:
    """The problem that the submission is the course's own exercise for: in grader's own folder, or in the copy of the course that one is in.

    A kernels_student elsewhere was handed in by somebody.
    """
    from grader import student

    file = Path(verdict.submission.path)
    with contextlib.suppress(OSError):  # the folder that one is in may be gone
        here = Path.cwd()
        copies = [folder / "kernels_student" for folder in (here, here.parent) if (folder / student.KERNELS_REF.name).is_dir()]
        if file.parent.resolve() in [folder.resolve() for folder in (student.KERNELS_STUDENT, *copies)]:
            return file.stem if file.stem == verdict.problem else None
    return None


def _record(state: State, name: str, mark: Mark) -> list[str]:
    """Put the mark into the state; what is new about it."""
    entry = state.problems.get(name)
    if entry is None:
        state.problems[name] = Entry(best=mark, last=mark)
        return [f"{name} is solved."] if mark.outcome is Outcome.passed else []
    if mark.sha256 != entry.last.sha256:  # the same file again is no further try
        entry.tries += 1
    before, entry.last = entry.best, mark
    if mark.rank() <= before.rank():
        return []
    entry.best = mark
    return [f"New best of {name}: {mark} (before: {before})."]


def names() -> list[str]:
    """The exercises in the order of the lessons that set them; an instructor's own, of which the order knows nothing, come last."""
    from grader import student

    order = sorted([*COURSE, *(name + student.BACKWARD for name in COURSE)], key=lambda name: int(_where(name).split()[-1]))
    found = student.exercises()
    return [name for name in order if name in found] + [name for name in found if name not in order]


def _where(name: str) -> str:
    """In which lesson it is set; empty where the course does not say."""
    from grader import student

    return COURSE.get(name, BACKWARDS if name.endswith(student.BACKWARD) else "")


# --- showing ---------------------------------------------------------------------------------------------------------


class Row(msgspec.Struct, frozen=True):
    """One line of the table, as shown."""

    problem: str
    where: str
    best: str
    tries: str
    when: str
    passed: bool


class Progress:
    """Where the student stands, in words. rows: a problem each. improved: since the last look. next: what to do now.

    said: what went wrong with the file. Without a state (the file cannot be used) that is all there is.
    """

    HEADS = ("problem", "set in", "best so far", "tries", "when")

    def __init__(self, state: State | None, said: list[str]):
        entries = {name: state.problems.get(name) for name in names()} if state else {}
        self.said = said
        self.rows = [_row(name, entry) for name, entry in entries.items()]
        self.improved = [line for name, entry in entries.items() if (line := _improvement(name, entry))]
        self.next = _next(entries)

    @property
    def lines(self) -> list[str]:
        """The sentences below the table."""
        if not self.rows:
            return self.said
        solved = sum(row.passed for row in self.rows)
        count = f"{solved} of {len(self.rows)} problems solved."
        improved = [f"Since you last looked: {'; '.join(self.improved)}."] if self.improved else []
        return [*self.said, count, *improved, self.next]

    def __str__(self) -> str:
        if not self.rows:
            return "\n".join(self.lines)
        table = [self.HEADS, *(_cells(row) for row in self.rows)]
        widths = [max(len(row[column]) for row in table) for column in range(len(self.HEADS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
        return "\n".join([*lines, "", *self.lines])

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The same words for a notebook's page and for plain text."""
        return {"text/plain": str(self), "text/html": self.html()}

    def html(self) -> str:
        """A table and the sentences; every colour is the page's own."""
        left = "text-align: left; padding: 0.15em 1.5em 0.15em 0"
        head = "".join(f'<th scope="col" style="{left}">{name}</th>' for name in self.HEADS)
        body = ""
        for row in self.rows:
            cells = [f"<strong>{html.escape(c)}</strong>" if row.passed and c == row.best else html.escape(c) for c in _cells(row)]
            body += "<tr>" + "".join(f'<td style="{left}">{cell}</td>' for cell in cells) + "</tr>"
        said = "".join(f'<p style="margin: 0.4em 0">{html.escape(line)}</p>' for line in self.lines)
        if not self.rows:
            return said
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{said}"

    def __rich_console__(self, console, options):
        """A table for the terminal, and the sentences."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        for name in self.HEADS:
            table.add_column(name, header_style="dim", overflow="fold")
        for row in self.rows:
            style = "green" if row.passed else "dim" if row.best == NOT_TRIED else ""
            table.add_row(row.problem, row.where, Text(row.best, style), row.tries, row.when)
        if self.rows:
            yield table
            yield Text()
        yield Text("\n".join(self.lines))


def _cells(row: Row) -> tuple[str, ...]:
    return (row.problem, row.where, row.best, row.tries, row.when)


def _row(name: str, entry: Entry | None) -> Row:
    where = _where(name)
    if entry is None:
        return Row(name, where, NOT_TRIED, "", "", False)
    passed = entry.best.outcome is Outcome.passed
    return Row(name, where, str(entry.best), str(entry.tries), _day(entry.best.when), passed)


def _day(when: str) -> str:
    """The date where the student is."""
    try:
        return datetime.fromisoformat(when).astimezone().date().isoformat()
    except ValueError:
        return ""


def _improvement(name: str, entry: Entry | None) -> str:
    """What is better than at the last look."""
    if entry is None or entry.shown == entry.best:
        return ""
    return f"{name} {entry.best}" + (f" (before: {entry.shown})" if entry.shown else "")


def _next(entries: dict[str, Entry | None]) -> str:
    """What to do now: the first problem of the course that is not solved."""
    for name, entry in entries.items():
        where, file = _where(name), f"kernels_student/{name}.py"
        if entry is None:
            return f"Next: {f'read {where}, then ' if where.startswith('lesson') else ''}fill in {file}."
        if entry.best.outcome is not Outcome.passed:
            return f'Next: {file}, which {entry.last}. grader.check("{name}") or grader grade {file} says where.'
    return "Every problem is solved. Next: make one of them faster."


def progress() -> Progress:
    """Where the student stands; displays itself in a notebook. What is wrong with the file is said in its words."""
    made = None
    try:
        with _opened() as (state, said):
            made = Progress(state, said)
            for entry in state.problems.values():
                entry.shown = entry.best
    except Trouble as trouble:
        if made is None:
            return Progress(None, [str(trouble)])
        made.said.append(str(trouble))  # shown, but not remembered as shown
    return made


class _Module(types.ModuleType):
    """`grader.progress` is this module once anything has imported it: calling it must go on working."""

    def __call__(self) -> Progress:
        return progress()


sys.modules[__name__].__class__ = _Module
