"""Which gradings a class needs, and the verdicts that there are: append-only, in the course's database."""

from __future__ import annotations

import datetime
import functools
import hashlib
import hmac
import importlib.metadata
import json
import secrets
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from grader.classroom.course import Course, CourseError, ProblemRules
from grader.classroom.journal import Journal, JournalError, Kept
from grader.paths import ROOT
from grader.problems import exercises
from grader.verdict import Outcome, Verdict, from_json, to_json

SEED_BITS = 48


@dataclass(frozen=True)
class Grading:
    """One file to grade on one problem. Equal gradings of several students are one.

    key: of the file, the problem, the settings and the grader's version. model: the problem's file; None for one of the
    course kit's. settings: of its names, as for grader.judging.grade. seed: of inputs and weights.
    """

    key: str
    problem: str
    sha256: str
    model: str | None
    settings: dict[str, str]
    seed: int


@dataclass(frozen=True)
class Graded:
    """One verdict. number: in the order of grading. because: why it was graded again; empty for the first."""

    number: int
    key: str
    verdict: Verdict
    because: str
    at: datetime.datetime


def make_gradings(attempts: Iterable[Kept], course: Course, folder: Path, secret: bytes) -> dict[str, Grading]:
    """Return the gradings that these attempts need, by key, in the attempts' order.

    folder: of the course. secret: of the course, from which the seeds follow: the same file gets the same inputs in any
    run, and no submission can predict them.
    """
    rules = {name: _read_rules(name, course, folder) for name in course.problems}
    found = {}
    for one in attempts:
        if one.problem in rules:
            made = _make_grading(one, rules[one.problem], secret)
            found.setdefault(made.key, made)
    return found


def find_keys(attempts: Iterable[Kept], course: Course, folder: Path) -> list[str]:
    """Return the key of the grading that each of these attempts needs; all of them are of the course's problems."""
    rules = {name: _read_rules(name, course, folder) for name in course.problems}
    return [_make_key(one, rules[one.problem]) for one in attempts]


@dataclass(frozen=True)
class _Rules:
    """How a problem is graded. model, settings: as in Grading; digest: of the problem's file."""

    model: str | None
    settings: dict[str, str]
    digest: str


def _make_key(attempt: Kept, rules: _Rules) -> str:
    parts = [attempt.sha256, attempt.problem, rules.digest, rules.settings, _read_version()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@functools.cache
def _read_version() -> str:
    """Return the grader's version: the installed package's, or its checkout's, which can be used without installing."""
    try:
        return importlib.metadata.version("gpu-kernel-course")
    except importlib.metadata.PackageNotFoundError:
        return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def _make_grading(attempt: Kept, rules: _Rules, secret: bytes) -> Grading:
    key = _make_key(attempt, rules)
    seed = make_seed(secret, key.encode())
    return Grading(key, attempt.problem, attempt.sha256, rules.model, rules.settings, seed)


def make_seed(secret: bytes, data: bytes) -> int:
    """Return the seed of inputs and weights that follows from a secret and what identifies the file."""
    return int.from_bytes(hmac.digest(secret, data, "sha256")[: SEED_BITS // 8], "big")


def make_settings(rules: ProblemRules) -> dict[str, str]:
    """Return the settings of a problem that follow from its rules, as for grader.judging.grade."""
    given = {"ALLOWED_OPERATORS": rules.allow, "CASES": rules.cases}
    return {name: repr(value) for name, value in given.items() if value is not None}


def _read_rules(name: str, course: Course, folder: Path) -> _Rules:
    """Return how a problem is graded. Raises CourseError if its file cannot be read."""
    rules = course.problems[name]
    file = folder / rules.file if rules.file else exercises.model_of(ROOT / f"{name}.py")
    try:
        digest = hashlib.sha256(file.read_bytes()).hexdigest() if file else ""
    except OSError as error:
        raise CourseError(f"{file}, the problem {name}, cannot be read ({error.strerror}).") from None
    return _Rules(str(file.resolve()) if rules.file and file else None, make_settings(rules), digest)


class Verdicts:
    """The verdicts in a course's database. All raise JournalError."""

    def __init__(self, journal: Journal):
        self.journal = journal

    def read_secret(self) -> bytes:
        """Return the course's secret; make it if there is none."""
        with self.journal.writing():
            self.journal.connection.execute(
                "INSERT OR IGNORE INTO settings VALUES ('secret', ?)", (secrets.token_bytes(16),)
            )
            return self.journal.connection.execute("SELECT value FROM settings WHERE name = 'secret'").fetchone()[0]

    def add(self, key: str, verdict: Verdict, because: str = "") -> None:
        """Keep a verdict. It is kept whole or not at all, whatever happens."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        with self.journal.writing():
            self.journal.connection.execute(
                "INSERT INTO verdicts VALUES (NULL, ?, ?, ?, ?, ?)",
                (key, verdict.outcome, to_json(verdict), because, now),
            )

    def read_keys(self) -> set[str]:
        """Return the keys that have a verdict on the submission: one of the grader's own errors is none."""
        rows = self.journal.read("SELECT DISTINCT key FROM verdicts WHERE outcome != ?", Outcome.error)
        return {key for (key,) in rows}

    def read_last(self) -> dict[str, Graded]:
        """Return the last verdict of each key, one of the grader's own errors only where there is no other."""
        query = (
            "SELECT number, key, verdict, because, graded FROM verdicts WHERE number IN"
            " (SELECT coalesce(max(CASE WHEN outcome != ? THEN number END), max(number)) FROM verdicts GROUP BY key)"
        )
        return {row[1]: _read_row(row) for row in self.journal.read(query, Outcome.error)}


def _read_row(row: tuple) -> Graded:
    number, key, text, because, at = row
    try:
        verdict = from_json(bytes(text))
    except msgspec.ValidationError as error:
        raise JournalError(
            f"The database holds a verdict that this version of the grader cannot read: {error}."
        ) from None
    return Graded(number, key, verdict, because, datetime.datetime.fromisoformat(at))
