"""Read course.toml: which problems a class is graded on, what each stage is worth, and what lateness costs."""

from __future__ import annotations

import datetime
import difflib
import re
import tomllib
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from grader.classroom.toml_lines import find_line
from grader.problems.exercises import exercises
from grader.verdict import StageName

FILE = "course.toml"
MOST_BYTES = 1 << 20

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Days = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
Minutes = Annotated[int, msgspec.Meta(ge=0, le=100_000)]
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Line = Annotated[str, msgspec.Meta(min_length=1, max_length=1000, pattern=r"\A[^\r\n]*\Z")]
Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Memory = Annotated[str, msgspec.Meta(pattern=r"\A[0-9]+(\.[0-9]+)? ?[KMGT]i?B\Z")]
Walltime = Annotated[str, msgspec.Meta(pattern=r"\A([0-9]+-)?[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?\Z")]


# msgspec's words for types -> those of this module's messages
TYPES = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "datetime": "a time",
    "date": "a date",
    "null": "nothing",
}

# keys with few values -> those values
CHOICES = {
    "allow": '"all", or a list of operators such as ["mm"]',
    "cases": '"own sizes"',
    "counts": '"best" or "last"',
    "memory": 'a size such as "16 GB"',
    "walltime": 'a time such as "02:00:00" or "1-12:00:00"',
    "leaderboard": '"off", "pseudonyms" or "names"',
    "unmeasured": '"left_out", "full" or "none"',
}

KeyPath = tuple[str | int, ...]
Table = TypeVar("Table")


class CourseError(Exception):
    """course.toml cannot be used; the text is one sentence that begins with the file and the line."""


class _Table(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A table of course.toml: every key is known."""


class Points(_Table):
    """The points of each stage. by_case: a failed "correct" or "gradient" earns its share of passed cases."""

    build: Amount = 10
    correct: Amount = 50
    safe: Amount = 20
    gradient: Amount = 0
    fast: Amount = 20
    by_case: bool = True

    def by_stage(self) -> dict[StageName, float]:
        """Return the points of each stage, in their order."""
        return {stage: getattr(self, stage.value) for stage in StageName if stage is not StageName.contract}


class Band(_Table):
    """A share of the points of "fast", earned from this speed-up on."""

    from_: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = msgspec.field(name="from")
    share: Share


class Speed(_Table):
    """The bands of "fast", next to the reference solution and next to eager PyTorch: the larger share counts.

    unmeasured: what happens to the points of "fast" where no speed was measured: they are left out of the total, or
    earned in full, or not earned.
    """

    reference: list[Band] = msgspec.field(
        default_factory=lambda: [Band(from_=0.5, share=0.5), Band(from_=0.9, share=1)]
    )
    eager: list[Band] = []
    unmeasured: Literal["left_out", "full", "none"] = "left_out"


class Late(_Table):
    """What lateness costs. percent_a_day: of the earned points, for each day begun, after free_days were spent.

    free_days: late days that a student may spend over the whole course, in the order of the deadlines. most_days: after
    so many days an attempt earns nothing. grace_minutes: no lateness.
    """

    percent_a_day: Percent = 10
    free_days: Days = 0
    most_days: Days = 7
    grace_minutes: Minutes = 0


class ProblemRules(_Table):
    """One problem of the course. due: without a time zone, in the course's. weight: of the problem in the course.

    file: the problem's model.py where it is another one than the course kit's, with hidden cases for instance; relative
    to course.toml. allow: operators that a submission may use, as ALLOWED_OPERATORS in a problem file. cases: the
    CASES that replace those of the problem file. points, speed: in place of the course's. leaderboard: whether the
    pages for students list who is fastest, and by which names.
    """

    due: Any = None  # a datetime or a date: msgspec has no union of the two
    weight: Amount = 1
    file: Text | None = None
    allow: list[Text] | Literal["all"] | None = None
    cases: Literal["own sizes"] | None = None
    points: Points | None = None
    speed: Speed | None = None
    leaderboard: Literal["off", "pseudonyms", "names"] = "off"


class Slurm(_Table):
    """The jobs that `class grade --slurm` submits. jobs: how many; cores, memory, walltime: of each.

    gres: what each job asks Slurm for, such as "gpu:1"; a job with a GPU grades one submission at a time on it.
    interface: the network interface between the jobs and this machine. python: the interpreter in the jobs, by default
    the grader's own. scratch: a folder for temporary files on the nodes; logs: one for the jobs' output. prologue:
    lines of shell before the worker starts. directives: more options of sbatch. wait_minutes: for the first job.
    """

    jobs: Count = 1
    cores: Count = 8
    memory: Memory = "16 GB"
    walltime: Walltime = "02:00:00"
    partition: Line | None = None
    account: Line | None = None
    gres: Line | None = None
    interface: Line | None = None
    python: Line | None = None
    scratch: Line | None = None
    logs: Line | None = None
    prologue: list[Line] = []
    directives: list[Line] = []
    wait_minutes: Minutes = 60


class Course(_Table):
    """A course as course.toml describes it. counts: which of several attempts is graded."""

    title: Text
    problems: dict[Text, ProblemRules]
    timezone: Text = "UTC"
    counts: Literal["best", "last"] = "best"
    points: Points = msgspec.field(default_factory=Points)
    speed: Speed = msgspec.field(default_factory=Speed)
    late: Late = msgspec.field(default_factory=Late)
    slurm: Slurm | None = None

    @property
    def zone(self) -> zoneinfo.ZoneInfo:
        """Return the time zone."""
        return zoneinfo.ZoneInfo(self.timezone)

    def points_of(self, name: str) -> Points:
        """Return the points of a problem's stages."""
        return self.problems[name].points or self.points

    def speed_of(self, name: str) -> Speed:
        """Return the bands of a problem."""
        return self.problems[name].speed or self.speed

    def due(self, name: str) -> datetime.datetime | None:
        """Return a problem's deadline in UTC. A date alone means its end."""
        due: datetime.date | None = self.problems[name].due
        if due is None:
            return None
        if not isinstance(due, datetime.datetime):
            due = datetime.datetime.combine(due + datetime.timedelta(days=1), datetime.time.min)
        return (due if due.tzinfo else due.replace(tzinfo=self.zone)).astimezone(datetime.UTC)


def read_course(folder: Path) -> Course:
    """Return the course of a folder. Raises CourseError if course.toml is missing, or says something impossible."""
    file = folder / FILE
    try:
        with open(file, "rb") as opened:
            data = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise CourseError(f"There is no {file}. `grader class init {folder}` writes one.") from None
    except OSError as error:
        raise CourseError(f"{file} cannot be read ({error.strerror}).") from None
    if len(data) > MOST_BYTES:
        raise CourseError(f"{file} has more than {MOST_BYTES:,} bytes: is it a {FILE}?")
    try:
        return parse_course(data.decode("utf-8-sig"), folder, str(file))
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise CourseError(f"{file}, line {line}: this is not UTF-8. Save the file as UTF-8.") from None


def parse_course(text: str, folder: Path, name: str = FILE) -> Course:
    """Return the course that a text describes. folder: which `file` is relative to; name: of the text in messages."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CourseError(_describe_syntax(str(error), name)) from None
    problems = table.get("problems")
    if isinstance(problems, dict):  # one by one: msgspec's messages do not name the keys of a dict
        table["problems"] = {
            key: _convert(value, ProblemRules, text, ("problems", key), name) for key, value in problems.items()
        }
    course = _convert(table, Course, text, (), name)
    for path, message in _find_contradictions(course, folder):
        raise CourseError(_locate(text, path, message, name))
    return course


def _convert(value: object, to: type[Table], text: str, path: KeyPath, name: str) -> Table:
    """Return a table of the text, which lies at a path, as its type."""
    try:
        return msgspec.convert(value, to)
    except msgspec.ValidationError as error:
        message, _, inner = str(error).partition(" - at `$")
        unknown = re.findall(r"unknown field `(.*)`", message)
        path = (*path, *_parse_path(inner.rstrip("`")), *unknown)
        raise CourseError(_locate(text, path, _describe(message, path), name)) from None


def _find_contradictions(course: Course, folder: Path) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path and the sentence of each value that its type allows and that cannot be."""
    if course.timezone not in zoneinfo.available_timezones():
        yield ("timezone",), f'"{course.timezone}" is no time zone. Write one as "Europe/Zurich".'
    if not course.problems:
        yield ("problems",), "There is no problem. Add a table for each, such as [problems.groupnorm]."
    known = exercises()
    for name, rules in course.problems.items():
        path = ("problems", name)
        if rules.file is None and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"Is {near[0]} meant? " if near else ""
            yield path, f"The course kit has no problem of this name. {hint}Another problem needs its `file`."
        if rules.file is not None and not (folder / rules.file).is_file():
            yield (*path, "file"), f"{folder / rules.file} is not a file."
        if not isinstance(rules.due, (datetime.date, type(None))):
            yield (*path, "due"), "Write a time as 2026-12-01T18:00:00, or a date, without quotes."
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            yield path, f"{name!r} is no name of a problem: write small letters, digits and _."
        for where, speed in ((path, rules.speed), ((), course.speed)):
            for baseline in ("reference", "eager"):
                bands = getattr(speed, baseline) if speed else []
                if [band.from_ for band in bands] != sorted({band.from_ for band in bands}):
                    yield (*where, "speed", baseline), "The bands must be in the order of `from`, each one once."
    if all(not rules.weight for rules in course.problems.values()):
        yield ("problems",), "Every problem has the weight 0."


# --- messages ---


def _locate(text: str, path: KeyPath, message: str, name: str) -> str:
    line = find_line(text, path)
    keys = ".".join(str(key) for key in path if isinstance(key, str))
    where = f"{name}, line {line}" if line else name
    return f"{where}: {f'`{keys}`: ' if keys else ''}{message}"


def _parse_path(path: str) -> KeyPath:
    """Return the keys of msgspec's path, such as `.speed.reference[1].share`. It writes [...] for any key of a dict."""
    return tuple(int(index) if index else key for key, index in re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", path))


def _describe(message: str, path: KeyPath) -> str:
    """Return msgspec's message on the value at a path as a sentence for who writes the file."""
    if path and path[-1] in CHOICES:
        return f"Write {CHOICES[path[-1]]}."
    if "unknown field" in message:
        return "There is no such key here."
    if match := re.match(r"Object missing required field `(.*)`", message):
        return f"The key `{match[1]}` is missing."
    for name, word in TYPES.items():
        message = message.replace(f"`{name}`", word)
    return f"{message}."


def _describe_syntax(message: str, name: str) -> str:
    match = re.match(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    if not match:
        return f"{name}: this is not TOML: {message}."
    place = f", line {match[2]}" if match[2] else ", at its end"
    return f"{name}{place}: this is not TOML: {match[1]}."
