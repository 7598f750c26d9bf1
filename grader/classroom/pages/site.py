"""Write a class's pages into a folder. Nothing in them asks a network for anything."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from grader.classroom.files import replace_file
from grader.classroom.gradebook import Gradebook
from grader.classroom.gradings import Verdicts
from grader.classroom.journal import Journal
from grader.classroom.pages import text
from grader.classroom.pages.marks import SYMBOLS
from grader.classroom.pages.overview import list_reasons, list_words, make_overview
from grader.classroom.pages.speeds import find_quartiles, find_speeds, make_board
from grader.classroom.pages.student import Shared, make_sections, write_time
from grader.classroom.roster import Student
from grader.verdict import StageName

TEMPLATES = Path(__file__).with_name("templates")
INDEX, BOARD, STUDENTS = "index.html", "leaderboard.html", "students"
MADE_BY = '<meta name="generator" content="grader class pages">'
OWN = re.compile(r"[a-z0-9-]+-[0-9a-f]{16}\.html")  # the files in STUDENTS
# Nothing is loaded, and no script or style runs but those that the page was written with.
POLICY = (
    "default-src 'none'; img-src data:; style-src 'sha256-{style}'; script-src {scripts}; base-uri 'none'; "
    "form-action 'none'"
)


class PagesError(Exception):
    """The pages cannot be written; the text is one sentence."""


@dataclass(frozen=True)
class Written:
    """What was written. board: None where no problem has a leaderboard; size: of all pages, in bytes."""

    index: Path
    board: Path | None
    students: int
    size: int


def write_pages(
    folder: Path, book: Gradebook, journal: Journal, each: Callable[[Sequence[Student]], Iterable[Student]] = iter
) -> Written:
    """Write the pages of a class; pages of an earlier run are replaced, and those of students who left removed.

    each: passes the students on, to show progress. Raises PagesError if the folder holds anything else, OSError if it
    cannot be written, and JournalError.
    """
    check_folder(folder)
    (folder / STUDENTS).mkdir(parents=True, exist_ok=True, mode=0o700)
    secret = Verdicts(journal).read_secret()
    shared, now = _make_shared(book, journal, secret), datetime.datetime.now(datetime.UTC)
    names = {student.id: name_page(student, secret) for student in book.students}
    common = {"course": book.course, "made": write_time(now, book.course), "boards": shared.boards}
    pages = _Templates(common)
    size = pages.write(folder / INDEX, "course.html", **_describe_course(book, shared, names))
    board = any(shared.boards.values())
    if board:
        size += pages.write(folder / BOARD, "leaderboard.html")
    else:
        (folder / BOARD).unlink(missing_ok=True)
    for student in each(book.students):
        sections = make_sections(student, shared)
        total = book.total(student.id)
        file = folder / STUDENTS / names[student.id]
        size += pages.write(file, "student.html", student=student, sections=sections, total=total)
    for file in (folder / STUDENTS).iterdir():
        if OWN.fullmatch(file.name) and file.name not in names.values():
            file.unlink()
    return Written(folder / INDEX, folder / BOARD if board else None, len(names), size)


def check_folder(folder: Path) -> None:
    """Raise PagesError if a folder is there that holds anything but earlier pages."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise PagesError(f"{folder} is a file. Name a folder.")
    index = folder / INDEX
    if any(folder.iterdir()) and not (index.is_file() and MADE_BY in index.read_text("utf-8", "replace")[:4096]):
        raise PagesError(f"{folder} holds files that are no pages of a class. Name a new or an empty folder.")


def name_page(student: Student, secret: bytes) -> str:
    """Return the name of a student's page. Who does not know the course's secret cannot guess it."""
    token = hmac.digest(secret, b"page " + student.id.encode(), hashlib.sha256).hex()[:16]
    return f"{text.make_slug(student.id)}-{token}.html"


def _make_shared(book: Gradebook, journal: Journal, secret: bytes) -> Shared:
    remarks: dict[tuple[str, str], list[str]] = {}
    for student, problem, _, _, _, why in journal.remarks():
        remarks.setdefault((student, problem), []).append(why)
    speeds = {name: find_speeds(book, name) for name in book.course.problems}
    quartiles = {name: found for name, one in speeds.items() if (found := find_quartiles([*one.values()]))}
    boards = {name: board for name in book.course.problems if (board := make_board(book, name, secret))}
    return Shared(book, journal, remarks, speeds, quartiles, boards)


def _describe_course(book: Gradebook, shared: Shared, names: dict[str, str]) -> dict[str, object]:
    overview = make_overview(book, {student: f"{STUDENTS}/{name}" for student, name in names.items()})
    people = {student.id: student.name for student in book.students}
    return {
        "overview": overview,
        "reasons": list_reasons(overview),
        "words": list_words(overview),
        "stages": [stage.value for stage in StageName],
        "people": people,
    }


class _Templates:
    """The templates of the pages, with what all pages show."""

    def __init__(self, common: dict[str, object]):
        self.environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.environment.filters |= {
            "hidden": text.show_hidden,
            "person": text.show_name,
            "words": text.show_words,
            "percent": text.percent,
            "points": lambda value: f"{value:.2f}".rstrip("0").rstrip("."),
        }
        parts = {name: (TEMPLATES / name).read_text("utf-8") for name in ("style.css", "theme.js", "table.js")}
        scripts = " ".join(f"'sha256-{_digest(parts[name])}'" for name in ("theme.js", "table.js"))
        self.environment.globals |= {
            "style": Markup(parts["style.css"]),
            "theme_script": Markup(parts["theme.js"]),
            "table_script": Markup(parts["table.js"]),
            "policy": POLICY.format(style=_digest(parts["style.css"]), scripts=scripts),
            "made_by": Markup(MADE_BY),
            "symbols": SYMBOLS,
            **common,
        }

    def write(self, file: Path, template: str, **values: object) -> int:
        """Write a page, and return its size in bytes."""
        page = self.environment.get_template(template).render(values)
        replace_file(file, page)
        return len(page.encode())


def _digest(code: str) -> str:
    """Return what a Content-Security-Policy calls a script or a style."""
    return base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
