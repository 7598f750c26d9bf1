"""The course's database: what was handed in, and verdicts. One SQLite file, whole if a process is killed."""

from __future__ import annotations

import contextlib
import datetime
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader.classroom.collect import Collected, State

FILE = "class.db"
APPLICATION = 0x6772636C  # "grcl", in the file's header
VERSION = 2
WAIT_S = 10.0  # for another process that writes

SCHEMA = """
CREATE TABLE contents (sha256 TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE attempts (
    number INTEGER PRIMARY KEY,
    student TEXT NOT NULL,
    problem TEXT NOT NULL,
    sha256 TEXT NOT NULL REFERENCES contents,
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    handed_in TEXT NOT NULL,  -- in UTC; empty if nothing says when
    late INTEGER NOT NULL,    -- whether the platform says so
    collected TEXT NOT NULL,
    UNIQUE (student, problem, sha256)  -- the same bytes once: exports do not agree on times
);
CREATE TABLE remarks (
    student TEXT NOT NULL,    -- empty: of nobody on the class list
    problem TEXT NOT NULL,
    source TEXT NOT NULL,
    path TEXT NOT NULL,
    state TEXT NOT NULL,
    why TEXT NOT NULL
);
"""
# What version 2 added.
GRADES = """
CREATE TABLE settings (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE verdicts (
    number INTEGER PRIMARY KEY,
    key TEXT NOT NULL,        -- of grader.classroom.gradings.Grading
    outcome TEXT NOT NULL,
    verdict BLOB NOT NULL,    -- JSON
    because TEXT NOT NULL,    -- why it was graded again; empty for the first time
    graded TEXT NOT NULL
);
CREATE INDEX verdicts_by_key ON verdicts (key);
CREATE TABLE adjustments (
    number INTEGER PRIMARY KEY,
    student TEXT NOT NULL,
    problem TEXT NOT NULL,
    points REAL NOT NULL,     -- added to those earned
    because TEXT NOT NULL,
    made TEXT NOT NULL
);
"""
# The earliest time at which a student had handed in these bytes counts.
INSERT = """
INSERT INTO attempts VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (student, problem, sha256) DO UPDATE
SET handed_in = excluded.handed_in, late = excluded.late, source = excluded.source, path = excluded.path
WHERE excluded.handed_in != '' AND (handed_in = '' OR excluded.handed_in < handed_in)
"""


class JournalError(Exception):
    """The database cannot be used; the text is one sentence."""


@dataclass(frozen=True)
class Kept:
    """One attempt. number: in the order in which attempts were first collected."""

    number: int
    student: str
    problem: str
    sha256: str
    source: str
    path: str
    handed_in: datetime.datetime | None
    late: bool


class Journal:
    """An open database. Close it, or use it in a with-statement."""

    def __init__(self, folder: Path):
        """Open a course's database; make it if there is none. Raises JournalError."""
        self.file = folder / FILE
        with self._in_words():
            self.connection = sqlite3.connect(self.file, timeout=WAIT_S, isolation_level=None)
        try:
            with self._in_words():
                self._prepare()
        except BaseException:
            self.connection.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database."""
        self.connection.close()

    def _prepare(self) -> None:
        self._read_version()  # before anything is changed
        self.connection.execute("PRAGMA foreign_keys = ON")
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")  # what was reported as kept is kept, whatever fails
        with self.writing():
            version = self._read_version()
            if version == VERSION:
                return
            for statement in (GRADES if version else SCHEMA + GRADES).split(";\n"):
                self.connection.execute(statement)
            self.connection.execute(f"PRAGMA application_id = {APPLICATION}")
            self.connection.execute(f"PRAGMA user_version = {VERSION}")

    def _read_version(self) -> int:
        """Return the version of the database, 0 of a new one. Raises JournalError if it is none of this module's."""
        (tables,) = self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = self.connection.execute("PRAGMA application_id").fetchone()
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if not tables and not version:
            return 0
        if application != APPLICATION:
            raise JournalError(f"{self.file} is a database of another program. Move it away.")
        if version > VERSION:
            message = f"{self.file} was written by a newer grader (format {version}, not {VERSION}). Use that one."
            raise JournalError(message)
        return version

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Make what is written inside one change: all of it is kept, or nothing. Raises JournalError."""
        with self._in_words():
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):  # there is no transaction after some errors
                    self.connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise JournalError(_describe(error, self.file)) from None

    def read(self, query: str, *values: object) -> list[tuple]:
        """Return the rows of a query. Raises JournalError."""
        with self._in_words():
            return self.connection.execute(query, values).fetchall()

    # -- what was handed in --

    def add(self, collected: Collected, source: str) -> int:
        """Keep what was collected from a source, in one change; return how many attempts are new.

        What an earlier collection of the same source could not use is forgotten; its attempts stay.
        """
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        with self.writing():
            self.connection.execute("DELETE FROM remarks WHERE source = ?", (source,))
            remarks = [(one.student, one.problem, source, one.path, one.state, one.why) for one in collected.remarks]
            remarks += [("", "", source, path, State.unreadable, why) for path, why in collected.strangers.items()]
            self.connection.executemany("INSERT INTO remarks VALUES (?, ?, ?, ?, ?, ?)", remarks)
            for one in collected.attempts:
                self.connection.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (one.sha256, one.data))
            before = self.connection.execute("SELECT count(*) FROM attempts").fetchone()
            for one in collected.attempts:
                at = one.at.isoformat() if one.at else ""
                values = one.student, one.problem, one.sha256, source, one.path, at, one.late, now
                self.connection.execute(INSERT, values)
            after = self.connection.execute("SELECT count(*) FROM attempts").fetchone()
            return after[0] - before[0]

    def attempts(self) -> list[Kept]:
        """Return all attempts, the oldest of each student and problem first."""
        query = (
            "SELECT number, student, problem, sha256, source, path, handed_in, late FROM attempts"
            " ORDER BY student, problem, handed_in, number"
        )
        rows = self.read(query)
        return [
            Kept(number, student, problem, sha256, source, path, _read_time(at), bool(late))
            for number, student, problem, sha256, source, path, at, late in rows
        ]

    def content(self, sha256: str) -> bytes:
        """Return the bytes of an attempt. Raises KeyError for a digest that no attempt has."""
        rows = self.read("SELECT data FROM contents WHERE sha256 = ?", sha256)
        if not rows:
            raise KeyError(sha256)
        return rows[0][0]

    def remarks(self) -> list[tuple[str, str, str, str, State, str]]:
        """Return (student, problem, source, path, state, sentence) of what cannot be graded."""
        rows = self.read("SELECT * FROM remarks ORDER BY student, problem, path")
        return [(*row[:4], State(row[4]), row[5]) for row in rows]


def _read_time(text: str) -> datetime.datetime | None:
    return datetime.datetime.fromisoformat(text) if text else None


def _describe(error: sqlite3.Error, file: Path) -> str:
    """Return what is wrong with a database, and what to do, in a sentence."""
    name, text = getattr(error, "sqlite_errorname", ""), str(error)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return f"Another process has been writing to {file} for {WAIT_S:g} seconds. Wait for it, then try again."
    if name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
        return f"{file} cannot be written. Its folder must exist and be writable ({text})."
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
        return f"{file} cannot be written ({text}): the disk is full or fails. Nothing of this step was kept."
    if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
        return f"{file} is damaged or no database ({text}). Restore it, or move it away and collect again."
    return f"{file} cannot be used ({text})."
