"""Are grades what attempts, verdicts and rules say, and can each be explained?"""

import csv
import datetime
import io

import pytest
from click.testing import CliRunner
from nbgrader import api

from grader.classroom.collect import Attempt, State
from grader.classroom.exports import ExportError, fill_canvas, fill_moodle, make_csv
from grader.classroom.grade_class import Options, grade_all
from grader.classroom.gradebook import read_gradebook
from grader.classroom.gradings import Verdicts, make_gradings
from grader.classroom.journal import Journal
from grader.classroom.nbgrader import write_nbgrader
from grader.cli.main import cli
from grader.verdict import Outcome
from tests.grader.classroom.class_folder import CannedExecutor, make_class

DUE = datetime.datetime(2026, 12, 1, 18, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
RULES = """
title = "Kernels"
counts = "{counts}"
[points]
build = 10
correct = 70
safe = 20
fast = 0
[late]
percent_a_day = 20
free_days = {free}
[problems.groupnorm]
due = 2026-12-01T18:00:00
weight = 3
[problems.logsumexp]
"""


def attempt(student: str, data: str, days: float | None = -1, problem: str = "groupnorm", late: bool = False):
    at = None if days is None else DUE + days * DAY
    return Attempt(student, problem, f"{student}/{problem}.py", data.encode(), at, late)


def read(tmp_path, attempts, counts: str = "best", free: int = 0, **answers):
    """Grade these attempts as `answers` say, and return the gradebook."""
    rules = RULES.format(counts=counts, free=free)
    with make_class(tmp_path, attempts, rules) as (journal, course, students):
        gradings = make_gradings(journal.attempts(), course, tmp_path, Verdicts(journal).read_secret())
        wanted = [one for one in gradings.values() if answers.get(journal.content(one.sha256).decode(), "") is not None]
        list(grade_all(journal, wanted, CannedExecutor(**answers), Options(), 1))
        return read_gradebook(journal, course, students, tmp_path)


@pytest.mark.parametrize(
    "counts, free, share, days",
    [("best", 0, 0.6, 2), ("last", 0, 0.0, 9), ("best", 1, 0.8, 2), ("best", 2, 1.0, 2)],
)
def test_which_attempt_counts(tmp_path, counts, free, share, days):
    """Is the best one the one that is worth most after lateness, and do free days come after the choice?"""
    attempts = [attempt("ada", "wrong"), attempt("ada", "right", 1.5), attempt("ada", "other", 8.5)]
    book = read(tmp_path, attempts, counts, free, wrong=Outcome.failed)
    grade = book.grades["ada", "groupnorm"]
    assert grade.share == pytest.approx(share) and grade.lateness.days == days
    assert book.total("ada") == pytest.approx(share * 3 / 4)  # nothing was handed in for the other problem


def test_an_earlier_wrong_attempt_may_be_worth_more(tmp_path):
    attempts = [attempt("ada", "wrong"), attempt("ada", "right", 6.5)]
    grade = read(tmp_path, attempts, wrong=Outcome.failed).grades["ada", "groupnorm"]
    assert grade.counted is not None and grade.counted.attempt.number == 1 and grade.share == pytest.approx(0.3)


def test_what_is_not_known_is_no_grade(tmp_path):
    """Is a grade unknown, and no 0, while the attempt that counts has no verdict, and 0 where nothing was handed in?"""
    attempts = [attempt("ada", "right"), attempt("ada", "broken", 0), attempt("bob", "broken")]
    first, second = tmp_path / "best", tmp_path / "last"
    first.mkdir()
    second.mkdir()
    best = read(first, attempts, "best", broken=Outcome.error)
    assert best.grades["ada", "groupnorm"].share == 1.0
    assert best.grades["bob", "groupnorm"].share is None and best.total("bob") is None
    assert best.grades["cyd", "groupnorm"].share == 0.0 and best.grades["cyd", "groupnorm"].state is State.missing
    last = read(second, attempts, "last", broken=Outcome.error)
    assert last.grades["ada", "groupnorm"].share is None


def test_late_by_the_platforms_word_alone(tmp_path):
    """Is an attempt without a time one day late if the platform calls it late?"""
    book = read(tmp_path, [attempt("ada", "a", None, late=True), attempt("bob", "b", None)])
    assert [book.grades[name, "groupnorm"].share for name in ("ada", "bob")] == [pytest.approx(0.8), 1.0]


def test_csv_can_be_read_back(tmp_path):
    """Is there a row for each student and problem, and is a name that is a formula disarmed?"""
    book = read(tmp_path, [attempt("ada", "wrong", 0.5), attempt("cyd", "right")], wrong=Outcome.failed)
    rows = list(csv.DictReader(io.StringIO(make_csv(book))))
    assert [(row["id"], row["problem"]) for row in rows] == [*book.grades]
    assert rows[0] | {"name": "", "email": ""} == {
        "id": "ada", "name": "", "email": "", "problem": "groupnorm", "state": "attempt", "percent": "24.00",
        "days_late": "1", "attempts": "1", "reason": "wrong_values", "total": "18.00",
    }  # fmt: skip
    assert rows[4]["name"] == "'=Cyd" and rows[4]["percent"] == "100.00" and rows[5]["percent"] == "0.00"


CANVAS = """\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,GroupNorm (4711),Essay (4712),Current Score
,,,,,Manual Posting,,
    Points Possible,,,,,20.00,5.00,(read only)
"Abel, Ada",901,ada,ada@x.edu,A,,4,80
"Blum, Bob",902,bob,bob@x.edu,A,3,,
"Student, Test",903,,7f,A,,,
"""
MOODLE = """Identifier,Full name,Email address,Status,Grade,Maximum Grade,Feedback comments
Participant 1,Ada Abel,a@x.edu,Submitted,,"50,00",
Participant 2,Eve Else,e@x.edu,Submitted,7,"50,00",
"""


def test_canvas_gets_its_own_table_back(tmp_path):
    """Are grades in the points of Canvas's columns, its other columns left out, and what is missing said?"""
    book = read(
        tmp_path, [attempt("ada", "wrong"), attempt("bob", "broken")], wrong=Outcome.failed, broken=Outcome.error
    )
    text, remarks = fill_canvas(CANVAS.removeprefix("\ufeff"), book, "canvas.csv")
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "GroupNorm (4711)"]
    assert [row[-1] for row in rows[1:]] == ["Manual Posting", "20.00", "6.00", "", ""]
    assert rows[2][0] == "    Points Possible" and rows[3][:2] == ["Abel, Ada", "901"]
    assert remarks == [
        "No column of canvas.csv holds the name logsumexp: its grades are not in the file.", "Not in canvas.csv: =Cyd."
    ]  # fmt: skip
    with pytest.raises(ExportError, match="No column"):
        fill_canvas(CANVAS.replace("GroupNorm", "Homework"), book, "canvas.csv")
    with pytest.raises(ExportError, match="Points Possible"):
        fill_canvas(CANVAS.replace("Points Possible", "x"), book, "canvas.csv")


def test_moodle_gets_its_own_table_back(tmp_path):
    book = read(tmp_path, [attempt("ada", "wrong")], wrong=Outcome.failed)
    text, remarks = fill_moodle(MOODLE, book, "groupnorm", "moodle.csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["Full name"], row["Grade"]) for row in rows] == [("Ada Abel", "15.00"), ("Eve Else", "7")]
    assert remarks == ["Not in moodle.csv: Bob Blum, =Cyd."]
    for text, problem in ((MOODLE, "conv2d"), (CANVAS, "groupnorm"), (MOODLE.replace("50", "fifty"), "groupnorm")):
        with pytest.raises(ExportError):
            fill_moodle(text, book, problem, "moodle.csv")


def run(*words: str) -> str:
    result = CliRunner().invoke(cli, ["class", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return f"{result.exit_code} {result.output}"


def test_commands(tmp_path):
    """Do show, explain, adjust and export say the same, and is a wrong name one sentence?"""
    read(tmp_path, [attempt("ada", "wrong", 0.5), attempt("bob", "right")], wrong=Outcome.failed)
    course = ("--course", str(tmp_path))
    shown = run("show", *course)
    assert "24.0 % (1 d late)" in shown and "0.0 % (missing)" in shown and "Ada Abel" in shown
    assert "wrong values" in run("explain", "ada", "groupnorm", *course)
    assert "Ada Abel, groupnorm: 24.0 % -> 30.0 %" in run("adjust", "ada", "groupnorm", "+6", "--because", "x", *course)
    assert "30.0 % -> 0.0 %" in run("adjust", "ada", "groupnorm", "-60", "--because", "copied", *course)
    explained = run("explain", "Ada Abel", "groupnorm", *course)
    assert "adjusted by -60" in explained and "copied" in explained and "late: 1 day begun" in explained
    for words, named in ((("eve", "groupnorm"), "eve"), (("ada", "conv2d"), "conv2d")):
        refused = run("explain", *words, *course)
        assert refused.startswith("2") and named in refused and "Traceback" not in refused
    assert run("adjust", "ada", "groupnorm", "nan", "--because", "x", *course).startswith("2")
    file = tmp_path / "out.csv"
    assert run("export", str(file), *course).startswith("0") and "ada" in file.read_text()
    assert run("export", str(tmp_path / "no" / "x.csv"), *course).startswith("3")
    (tmp_path / "canvas.csv").write_text(CANVAS, encoding="utf-8")
    assert run("export", str(file), "--canvas", str(tmp_path / "canvas.csv"), *course).startswith("0")
    assert "Points Possible" in file.read_text()
    assert run("export", str(file), "--canvas", str(tmp_path / "no.csv"), *course).startswith("2")
    assert run("export", str(file), "--moodle", str(tmp_path / "canvas.csv"), *course).startswith("2")
    assert run("regrade", "eve", "--because", "x", *course).startswith("2")


def test_what_cannot_be_read_is_one_sentence(tmp_path):
    """Is a verdict of another version, and a problem's file that has gone, reported without a traceback?"""
    read(tmp_path, [attempt("ada", "right")])
    with Journal(tmp_path) as journal, journal.writing():
        journal.connection.execute("UPDATE verdicts SET verdict = ?", (b'{"schema":"another/9"}',))
    shown = run("show", "--course", str(tmp_path))
    assert shown.startswith("3") and "cannot read" in shown and "Traceback" not in shown
    rules = RULES.format(counts="best", free=0).replace("weight = 3", 'file = "hidden.py"')
    (tmp_path / "course.toml").write_text(rules, encoding="utf-8")
    assert run("show", "--course", str(tmp_path)).startswith("2")


def test_nbgrader_reads_its_gradebook(tmp_path):
    """Does nbgrader itself find the grades, after a second export, too?"""
    attempts = [attempt("ada", "good", 1.5), attempt("bob", "bad"), attempt("cyd", "new")]
    book = read(tmp_path, attempts, bad=Outcome.failed, new=None)
    file = tmp_path / "gradebook.db"
    for _ in range(2):
        remarks = write_nbgrader(file, book)
    assert remarks == ["Not known yet, and not in the file: 1 grade. Run `grader class grade`."]
    with api.Gradebook(f"sqlite:///{file}") as gradebook:
        found: dict = {one.student.id: one for one in gradebook.assignment_submissions("groupnorm")}
        assert found.keys() == {"ada", "bob"}
        shares = {name: book.grades[name, "groupnorm"].share or 0.0 for name in found}
        assert {name: one.score for name, one in found.items()} == pytest.approx(
            {name: 100 * share for name, share in shares.items()}
        )
        assert found["ada"].score == pytest.approx(60) and found["ada"].max_score == 100
        assert not found["ada"].needs_manual_grade and found["ada"].student.last_name == "Abel"
    file.write_text("no database")
    with pytest.raises(ExportError, match="is it a gradebook"):
        write_nbgrader(file, book)
