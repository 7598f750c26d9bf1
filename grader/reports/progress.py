"""A student's progress: the best verdict so far for each problem of the course, kept in one small file."""

from __future__ import annotations

import contextlib
import html
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from grader.paths import MINE
from grader.verdict import Outcome, Reason, StageName, Status, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

SCHEMA = "kernel-course/progress/1"
COURSE = {  # in the course's order: problem -> the lesson that sets it
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
    "softmax": "lesson 12",
    "attention": "lesson 12",
    "scan": "lesson 13",
    "histogram": "lesson 13",
    "int4_matvec": "lesson 14",
    "int8_matmul": "lesson 14",
    "fp8_matvec": "lesson 14",
    "compaction": "lesson 15",
    "radix_pass": "lesson 15",
}
BACKWARDS = "lesson 7"  # sets each NAME_backward whose problem was set before
CORE_BACKWARDS = [
    "bias_scale_sigmoid_backward",
    "logsumexp_backward",
    "groupnorm_backward",
    "softmax_backward",
    "attention_backward",
]
WITHOUT_LESSON: list[str] = []  # problems that no lesson sets yet
# And every other NAME_backward of the course.
OPTIONAL = {"matmul", *WITHOUT_LESSON, *(f"{name}_backward" for name in WITHOUT_LESSON)}
NOT_TRIED = "not tried yet"
GAP = 2  # between the table's columns, in characters; 1 where the table fits a narrow terminal only then
STAGES = list(StageName)
LOCK_TIMEOUT_S = 10.0  # another process may be writing the same file


class ProgressError(Exception):
    """The file cannot be used; the text is one sentence."""


# --- content of the file ---------------------------------------------------------------------------------------------


class Mark(msgspec.Struct, kw_only=True, omit_defaults=True, frozen=True):
    """A verdict in brief. right, cases: of the first stage that did not pass. speedup: over eager, where measured."""

    outcome: Outcome
    when: str  # UTC, ISO 8601
    sha256: str
    stage: StageName | None = None
    reason: Reason | None = None
    right: int = 0
    cases: int = 0
    speedup: float | None = None

    def rank(self) -> tuple[float, ...]:
        """Return a key that is larger for a better verdict: passed, then the stage reached, then the share of "
        "right cases."""
        if self.outcome is Outcome.passed:
            return (len(STAGES), 1.0, self.speedup or 0.0)
        return (STAGES.index(self.stage) if self.stage else -1, self.right / self.cases if self.cases else 0.0, 0.0)

    def __str__(self) -> str:
        if self.outcome is Outcome.passed:
            return "passed" + (f", {self.speedup:.2f} times as fast as eager" if self.speedup else "")
        reason = f"{self.stage} ({self.reason})".replace("_", " ") if self.reason else str(self.stage)
        cases = f", {self.right} of {self.cases} cases right" if self.cases else ""
        return f"failed at stage {reason}{cases}"


class Entry(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One problem. best: the first of several equal ones. shown: the value of `best` when progress was last shown."""

    best: Mark
    last: Mark
    tries: int = 1
    shown: Mark | None = None


class State(msgspec.Struct, kw_only=True):
    """The whole file."""

    schema: str = SCHEMA
    problems: dict[str, Entry] = {}


def mark_of(verdict: Verdict) -> Mark | None:
    """Return the verdict in brief; None for one that tells nothing about the student: not attempted, interrupted, an
    error of the grader, no readable file.
    """
    if verdict.outcome not in (Outcome.passed, Outcome.failed) or not verdict.submission.sha256:
        return None
    stage = verdict.first_problem
    cases = stage.cases if stage else []
    measured = [m.value for s in verdict.stages for m in s.measurements if m.name == "speed-up over eager"]
    return Mark(
        outcome=verdict.outcome,
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        sha256=verdict.submission.sha256,
        stage=stage.name if stage else None,
        reason=stage.reason if stage else None,
        right=sum(case.status is Status.passed for case in cases),
        cases=len(cases),
        speedup=measured[0] if measured else None,
    )


# --- the file --------------------------------------------------------------------------------------------------------


def path() -> Path | None:
    """Return the progress file; None under pytest and nbval, where none is kept unless GRADER_PROGRESS names one.

    It is in the user's state folder and not next to the kernels, so that it survives a new clone and `git clean` and
    cannot be committed. GRADER_PROGRESS names another file, for example on a disk that outlives a hosted machine.
    """
    named = os.environ.get("GRADER_PROGRESS")
    if named:
        return Path(named).expanduser().absolute()
    if "PYTEST_VERSION" in os.environ:
        return None
    root = os.environ.get("XDG_STATE_HOME", "")
    return (Path(root) if os.path.isabs(root) else Path.home() / ".local" / "state") / "grader" / "progress.json"


def _read(file: Path) -> tuple[State, str]:
    """Return the file's content, and a sentence if it was damaged and has been renamed. Raises ProgressError."""
    if file.exists() and not file.is_file():
        raise ProgressError(f"Your progress cannot be kept in {file}: it is not an ordinary file.")
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return State(), ""
    except OSError as error:
        raise ProgressError(f"Your progress in {file} cannot be read ({error.strerror}).") from None
    if not data:  # the user created it for us to fill
        return State(), ""
    try:
        state = msgspec.json.decode(data, type=State)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        state = None
    if state is None or state.schema != SCHEMA:
        if schema := _other_schema(data):
            raise ProgressError(
                f"Your progress in {file} was written by another version of grader ({schema}). The file is unchanged."
            )
        aside = _set_aside(file)
        return (
            State(),
            f"Your progress in {file} was damaged: it has been renamed to {aside.name}, and a new file has been "
            f"started.",
        )
    return state, ""


def _other_schema(data: bytes) -> str:
    """Return the version that wrote the file if it is a progress file of another version, else an empty string."""

    class Head(msgspec.Struct):
        schema: str

    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        schema = msgspec.json.decode(data, type=Head).schema
        if schema.startswith(SCHEMA.rpartition("/")[0]) and schema != SCHEMA:
            return schema
    return ""


def _set_aside(file: Path) -> Path:
    """Rename the file to an unused name and return it. Raises ProgressError."""
    number = 1
    while (aside := file.with_name(f"{file.name}.damaged-{number}")).exists():
        number += 1
    try:
        file.rename(aside)
    except OSError as error:
        raise ProgressError(f"Your progress in {file} is damaged and cannot be renamed ({error.strerror}).") from None
    return aside


def _write(file: Path, state: State) -> None:
    """Replace the file in one step, so that after a power failure either the old or the new one is complete."""
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
    """Lock the file and yield its state and sentences to show; write it at the end. Raises ProgressError."""
    from filelock import FileLock, Timeout

    try:
        file = path()
    except RuntimeError:
        raise ProgressError(
            "Your progress cannot be kept: this user has no home folder, and GRADER_PROGRESS names no file."
        ) from None
    if file is None:
        yield State(), []
        return
    try:
        file = file.resolve()  # a link stays a link, and its target is replaced
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock", timeout=LOCK_TIMEOUT_S):
            state, warning = _read(file)
            before = msgspec.json.encode(state)
            yield state, [warning] if warning else []
            if msgspec.json.encode(state) != before:
                _write(file, state)
    except Timeout:
        raise ProgressError(
            f"Your progress in {file} is in use by another program, or its folder cannot be written."
        ) from None
    except OSError as error:
        raise ProgressError(f"Your progress cannot be kept in {file} ({error.strerror or error}).") from None


# --- recording -------------------------------------------------------------------------------------------------------


def note(verdict: Verdict, problem: str | None = None) -> str:
    """Record a verdict and return a sentence on what is new, or an empty string. Never raises.

    Only the course's own exercises, `kernels_student/NAME.py`, are recorded. problem: the problem of the course that a
    file elsewhere, or a class in a notebook, counts for.
    """
    name = problem or _exercise(verdict)
    mark = mark_of(verdict)
    if mark is None or name not in names():
        return ""
    try:
        with _opened() as (state, warnings):
            news = _record(state, name, mark)
            if news and mark.outcome is Outcome.passed:
                news.append(_next({one: state.problems.get(one) for one in names()}))
    except ProgressError as error:
        return str(error)
    return " ".join([*warnings, *news])


def _exercise(verdict: Verdict) -> str | None:
    """Return the problem if the submission is the user's own exercise: in grader's own folder, in the copy of the
    course that contains the current folder, or a working copy there. A kernels_student elsewhere was handed in by
    another person.
    """
    from grader.problems import exercises

    file = Path(verdict.submission.path)
    with contextlib.suppress(OSError):  # the current folder may have been deleted
        here, own = Path.cwd(), exercises.KERNELS_STUDENT
        courses = [folder for folder in (here, here.parent) if (folder / exercises.KERNELS_REF.name).is_dir()]
        folders = [course / inner / own.name for course in (own.parent, *courses) for inner in ("", MINE)]
        if file.parent.resolve() in [folder.resolve() for folder in folders]:
            return file.stem if file.stem == verdict.problem else None
    return None


def _record(state: State, name: str, mark: Mark) -> list[str]:
    """Add the mark to the state and return sentences on what is new."""
    entry = state.problems.get(name)
    if entry is None:
        state.problems[name] = Entry(best=mark, last=mark)
        return [f"{name} is solved."] if mark.outcome is Outcome.passed else []
    if mark.sha256 != entry.last.sha256:  # the same file again is not another try
        entry.tries += 1
    before, entry.last = entry.best, mark
    if mark.rank() <= before.rank():
        return []
    entry.best = mark
    if mark.outcome is Outcome.passed and before.outcome is not Outcome.passed:
        return [f"{name} is solved."]
    return [f"{name}: best result so far: {mark} (before: {before})."]


def names() -> list[str]:
    """Return the exercises in the order of the lessons that set them, then those of an instructor, which no lesson
    sets, and at last the optional ones.
    """
    from grader.problems import exercises

    every = [*COURSE, *CORE_BACKWARDS, *(name + exercises.BACKWARD for name in COURSE)]
    order = sorted(dict.fromkeys(every), key=lambda name: int(_where(name).split()[-1]))
    found = exercises.exercises()
    listed = [name for name in order if name in found] + [name for name in found if name not in order]
    return sorted(listed, key=is_optional)


def is_optional(name: str) -> bool:
    """Return whether the course goes on without this exercise."""
    from grader.problems import exercises

    problem = name.removesuffix(exercises.BACKWARD)
    return name in OPTIONAL or (problem != name and problem in COURSE and name not in CORE_BACKWARDS)


def _where(name: str) -> str:
    """Return the lesson that sets a problem; empty if none does."""
    from grader.problems import exercises

    if name in COURSE or not name.endswith(exercises.BACKWARD):
        return COURSE.get(name, "")
    forward = COURSE.get(name.removesuffix(exercises.BACKWARD), "")
    return max(forward, BACKWARDS, key=lambda lesson: int(lesson.split()[-1]) if lesson else 0)


# --- showing ---------------------------------------------------------------------------------------------------------


class Row(msgspec.Struct, frozen=True):
    """One row of the table, as text."""

    problem: str
    where: str
    best: str
    tries: str
    when: str
    passed: bool
    optional: bool = False

    @property
    def style(self) -> str:
        """The style of the best result in a terminal."""
        return "green" if self.passed else "dim" if self.best == NOT_TRIED else ""


class Progress:
    """The student's progress as text. rows: one per problem. improved: since it was last shown. next: what to do now.

    warnings: problems with the file. Without a state (the file cannot be used) there is nothing else.
    """

    HEADS = ("problem", "set in", "best so far", "tries", "when")

    def __init__(self, state: State | None, warnings: list[str]):
        entries = {name: state.problems.get(name) for name in names()} if state else {}
        self.warnings = warnings
        self.rows = [_row(name, entry) for name, entry in entries.items()]
        self.improved = [line for name, entry in entries.items() if (line := _improvement(name, entry))]
        self.next = _next(entries)

    @property
    def lines(self) -> list[str]:
        """The sentences below the table."""
        if not self.rows:
            return self.warnings
        improved = [f"Since you last looked: {'; '.join(self.improved)}."] if self.improved else []
        return [*self.warnings, self._count(), *improved, self.next]

    def _count(self) -> str:
        core, optional = ([row.passed for row in self.rows if row.optional is which] for which in (False, True))
        count = f"{sum(core)} of {len(core)} exercises solved"
        return f"{count}, and {sum(optional)} of {len(optional)} optional ones." if optional else f"{count}."

    def __str__(self) -> str:
        if not self.rows:
            return "\n".join(self.lines)
        table = [self.HEADS, *(_cells(row) for row in self.rows)]
        widths = [max(len(row[column]) for row in table) for column in range(len(self.HEADS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
        return "\n".join([*lines, "", *self.lines])

    __repr__ = __str__

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return the same text as HTML and as plain text."""
        return {"text/plain": str(self), "text/html": self.html()}

    def html(self) -> str:
        """Return a table and the sentences as HTML, in the page's own colours."""
        left = "text-align: left; padding: 0.15em 1.5em 0.15em 0"
        head = "".join(f'<th scope="col" style="{left}">{name}</th>' for name in self.HEADS)
        body = ""
        for row in self.rows:
            cells = [
                f"<strong>{html.escape(c)}</strong>" if row.passed and c == row.best else html.escape(c)
                for c in _cells(row)
            ]
            body += "<tr>" + "".join(f'<td style="{left}">{cell}</td>' for cell in cells) + "</tr>"
        sentences = "".join(f'<p style="margin: 0.4em 0">{html.escape(line)}</p>' for line in self.lines)
        if not self.rows:
            return sentences
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{sentences}"

    def __rich_console__(self, console, options):
        """Yield a table for the terminal, or where it is too narrow for one, a list; and the sentences."""
        from rich.text import Text

        if self.rows:
            text = sum(max(map(len, column)) for column in zip(self.HEADS, *map(_cells, self.rows)))
            gap = min(GAP, (options.max_width - text) // (len(self.HEADS) - 1))
            yield from self._make_table(gap) if gap > 0 else self._make_list(options.max_width)
            yield Text()
        yield Text("\n".join(self.lines))

    def _make_table(self, gap: int) -> Iterator[RenderableType]:
        """Yield a table with one line for each problem, its columns so many characters apart."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
        for name in self.HEADS:
            table.add_column(name, header_style="dim", no_wrap=True)
        for row in self.rows:
            table.add_row(row.problem, row.where, Text(row.best, row.style), row.tries, row.when)
        yield table

    def _make_list(self, width: int) -> Iterator[RenderableType]:
        """Yield for each problem a line with its name and lesson, and the best result so far: behind them if there is
        room, else indented below.
        """
        from rich.padding import Padding
        from rich.text import Text

        longest = max(len(row.problem) for row in self.rows)
        for row in self.rows:
            tries = [Text("1 try" if row.tries == "1" else f"{row.tries} tries"), Text(row.when)] if row.tries else []
            result = Text("; ").join([Text(row.best, row.style), *filter(None, tries)])
            line, below = Text(row.problem.ljust(longest)), None
            for part in (Text(row.where), result):
                if below is None and len(line) + GAP + len(part) <= width:
                    line.append(" " * GAP).append_text(part)
                else:
                    below = below + Text("; ") + part if below else part
            line.rstrip()
            yield line
            if below:
                yield Padding(below, (0, 0, 0, GAP), expand=False)


def _cells(row: Row) -> tuple[str, ...]:
    return (row.problem, row.where, row.best, row.tries, row.when)


def _row(name: str, entry: Entry | None) -> Row:
    optional = is_optional(name)
    where = ", ".join(filter(None, (_where(name), "optional" if optional else "")))
    if entry is None:
        return Row(name, where, NOT_TRIED, "", "", False, optional)
    passed = entry.best.outcome is Outcome.passed
    return Row(name, where, str(entry.best), str(entry.tries), _day(entry.best.when), passed, optional)


def _day(when: str) -> str:
    """Return the date in the local time zone."""
    try:
        return datetime.fromisoformat(when).astimezone().date().isoformat()
    except ValueError:
        return ""


def _improvement(name: str, entry: Entry | None) -> str:
    """Return what has improved since progress was last shown, or an empty string."""
    if entry is None or entry.shown == entry.best:
        return ""
    return f"{name} {entry.best}" + (f" (before: {entry.shown})" if entry.shown else "")


def _next(entries: dict[str, Entry | None]) -> str:
    """Return what to do now, for the first problem of the course that is not solved."""
    for name, entry in entries.items():
        where, file = _where(name), f"kernels_student/{name}.py"
        if is_optional(name) and entry is None:
            return f"Every exercise is solved. Next: {file}, which is optional, or make one of them faster."
        if entry is None:
            return f"Next: {f'read {where}, then ' if where.startswith('lesson') else ''}fill in {file}."
        if entry.best.outcome is not Outcome.passed:
            return f'Next: {file}, which {entry.last}. grader.check("{name}") or `grader check {name}` shows where.'
    return "Every problem is solved. Next: make one of them faster."


def progress() -> Progress:
    """Return the student's progress, which displays itself in a notebook. It reports a file that cannot be "
    "used itself."""
    shown = None
    try:
        with _opened() as (state, warnings):
            shown = Progress(state, warnings)
            for entry in state.problems.values():
                entry.shown = entry.best
    except ProgressError as error:
        if shown is None:
            return Progress(None, [str(error)])
        shown.warnings.append(str(error))  # shown, but not recorded as shown
    return shown
