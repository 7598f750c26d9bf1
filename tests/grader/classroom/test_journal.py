"""Is what was handed in kept whole, whatever happens to the process, the disk or the file?"""

import datetime
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time

import pytest
from click.testing import CliRunner

from grader.classroom import journal as module
from grader.classroom.collect import Attempt, Collected, Remark, State
from grader.classroom.journal import FILE, Journal, JournalError
from grader.cli.main import cli
from grader.paths import ROOT

NOON = datetime.datetime(2026, 12, 1, 12, tzinfo=datetime.UTC)


def attempt(student: str, data: bytes, hours: int | None = 0, late: bool = False) -> Attempt:
    at = None if hours is None else NOON + datetime.timedelta(hours=hours)
    return Attempt(student, "groupnorm", f"{student}.py", data, at, late)


def test_attempts_are_kept_in_the_order_of_their_times(tmp_path):
    with Journal(tmp_path) as kept:
        assert kept.add(Collected([attempt("b", b"2", 5), attempt("b", b"1", 3), attempt("a", b"3")]), "x.zip") == 3
    with Journal(tmp_path) as kept:
        found = kept.attempts()
        assert [(one.student, kept.content(one.sha256)) for one in found] == [("a", b"3"), ("b", b"1"), ("b", b"2")]
        assert found[1].handed_in == NOON + datetime.timedelta(hours=3) and found[1].source == "x.zip"
        with pytest.raises(KeyError):
            kept.content("0" * 64)


def test_the_same_bytes_are_one_attempt_of_the_earliest_time(tmp_path):
    """Does a second export add nothing, and does an earlier time replace a later and an unknown one?"""
    with Journal(tmp_path) as kept:
        for hours, new in ((None, 1), (5, 0), (3, 0), (9, 0), (None, 0)):
            assert kept.add(Collected([attempt("a", b"1", hours, late=hours == 5)]), "x.zip") == new
        (one,) = kept.attempts()
        assert one.handed_in == NOON + datetime.timedelta(hours=3) and not one.late
        assert kept.add(Collected([attempt("b", b"1", 4)]), "x.zip") == 1


def test_remarks_of_a_source_are_those_of_its_last_collection(tmp_path):
    with Journal(tmp_path) as kept:
        remark = Remark("a", "groupnorm", "a.pdf", State.unreadable, "It is a PDF.")
        kept.add(Collected(remarks=[remark], strangers={"x.py": "Of nobody."}), "x.zip")
        kept.add(Collected(strangers={"y.py": "Of nobody."}), "y.zip")
        assert [(row[0], row[3], row[4]) for row in kept.remarks()] == [
            ("", "x.py", "unreadable"), ("", "y.py", "unreadable"), ("a", "a.pdf", "unreadable"),
        ]  # fmt: skip
        kept.add(Collected(), "x.zip")
        assert [row[3] for row in kept.remarks()] == ["y.py"]


def test_a_change_is_kept_whole_or_not_at_all(tmp_path):
    with Journal(tmp_path) as kept:
        kept.add(Collected([attempt("a", b"1")]), "x.zip")
        broken = Attempt("b", "groupnorm", "b.py", b"2", NOON, late=None)  # type: ignore[arg-type]
        with pytest.raises(JournalError):
            kept.add(Collected([attempt("b", b"0"), broken], [Remark("b", "", "p", State.missing, "w")]), "y.zip")
        assert [one.student for one in kept.attempts()] == ["a"] and not kept.remarks()
        assert kept.add(Collected([attempt("b", b"0")]), "y.zip") == 1


def test_a_full_disk(tmp_path):
    """Does a step that does not fit leave everything as it was, with a sentence?"""
    with Journal(tmp_path) as kept:
        kept.add(Collected([attempt("a", b"1")]), "x.zip")
        (pages,) = kept.connection.execute("PRAGMA page_count").fetchone()
        kept.connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(JournalError, match=r"the disk is full or fails\. Nothing of this step was kept"):
            kept.add(Collected([attempt("b", bytes(1 << 20))]), "y.zip")
        assert [one.student for one in kept.attempts()] == ["a"]
        assert kept.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_two_at_once(tmp_path, monkeypatch):
    """Does a second one wait, and then say who is in the way?"""
    monkeypatch.setattr(module, "WAIT_S", 0.2)
    with Journal(tmp_path) as first, Journal(tmp_path) as second:
        with first.writing(), pytest.raises(JournalError, match="Another process has been writing"):
            second.add(Collected([attempt("a", b"1")]), "x.zip")
        assert second.add(Collected([attempt("a", b"1")]), "x.zip") == 1
        assert len(first.attempts()) == 1


def test_a_database_of_the_first_version_is_brought_up_to_date(tmp_path):
    """Are attempts kept that were collected before there were verdicts in the database?"""
    with sqlite3.connect(tmp_path / FILE) as old:
        old.executescript(module.SCHEMA)
        old.execute("INSERT INTO contents VALUES ('7', 'x')")
        old.execute("INSERT INTO attempts VALUES (1, 'a', 'groupnorm', '7', 'x.zip', 'a.py', '', 0, '2026-11-01')")
        old.execute(f"PRAGMA application_id = {module.APPLICATION}")
        old.execute("PRAGMA user_version = 1")
    old.close()
    for _ in range(2):
        with Journal(tmp_path) as kept:
            assert [one.student for one in kept.attempts()] == ["a"] and kept.read("SELECT * FROM verdicts") == []
            assert kept.read("PRAGMA user_version") == [(module.VERSION,)]


@pytest.mark.parametrize("what", ["text", "cut", "foreign", "newer", "folder", "no folder"])
def test_files_that_are_no_course(tmp_path, what):
    """Is each refused in a sentence, and left as it is?"""
    file = tmp_path / FILE
    if what == "text":
        file.write_text("grades of last year\n" * 100)
    elif what == "folder":
        file.mkdir()
    elif what == "foreign":
        with sqlite3.connect(file) as other:
            other.execute("CREATE TABLE recipes (name)")
    elif what in ("cut", "newer"):
        with Journal(tmp_path) as kept:
            kept.add(Collected([attempt("a", bytes(100_000))]), "x.zip")
            kept.connection.execute("PRAGMA user_version = 99" if what == "newer" else "PRAGMA user_version = 1")
        if what == "cut":
            file.write_bytes(file.read_bytes()[:5000])
    before = file.read_bytes() if file.is_file() else None
    with pytest.raises(JournalError, match=FILE) as raised:
        Journal(tmp_path if what != "no folder" else tmp_path / "no").attempts()
    assert str(raised.value).count("\n") == 0
    assert (file.read_bytes() if file.is_file() else None) == before


WRITER = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from grader.classroom.collect import Attempt, Collected
from grader.classroom.journal import Journal
with Journal(Path({folder!r})) as kept:
    for number in range(100_000):
        pairs = [Attempt(f"{{number}}-{{n}}", "p", "p.py", bytes(20_000) + bytes([n]), None) for n in range(3)]
        kept.add(Collected(pairs), "x.zip")
        print(number, flush=True)
"""


def test_a_killed_process_loses_nothing_that_it_reported(tmp_path):
    """Killed at any moment, is the file whole, with each step there as a whole or not at all?"""
    reported = 0
    for pause in (0.02, 0.05, 0.11, 0.2):
        program = textwrap.dedent(WRITER.format(root=str(ROOT), folder=str(tmp_path)))
        writer = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None and writer.stdout.readline() == "0\n"
        time.sleep(pause)
        os.kill(writer.pid, signal.SIGKILL)
        reported = max(reported, *(int(line) for line in writer.stdout if line.endswith("\n")), 0)
        writer.wait()
        with Journal(tmp_path) as kept:
            assert kept.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            steps = [one.student.split("-")[0] for one in kept.attempts()]
            assert len(steps) == 3 * len({*steps}) and {*map(str, range(reported + 1))} <= {*steps}


# --- the command ---


def test_collect(tmp_path):
    """Are states counted, sentences shown, and bad input refused with its status and nothing kept?"""
    run = CliRunner().invoke
    course, handed_in = tmp_path / "course", tmp_path / "in"
    assert run(cli, ["class", "init", str(course), "--problem", "groupnorm", "--problem", "conv2d"]).exit_code == 0
    collect = ["class", "collect", str(handed_in), "--course", str(course)]
    refused = run(cli, collect)
    assert refused.exit_code == 2 and "roster.csv" in refused.output
    (course / "roster.csv").write_text("id,name\nada,Ada\nbob,Bob\n")
    refused = run(cli, collect)
    assert refused.exit_code == 2 and "cannot be read" in refused.output
    for name in ("ada/groupnorm.py", "bob/gruopnorm.py", "strange.py"):
        (handed_in / name).parent.mkdir(parents=True, exist_ok=True)
        (handed_in / name).write_text("class ModelNew: pass\n")
    for new in (1, 0):
        done = run(cli, collect)
        assert done.exit_code == 0 and f"1 attempt, {new} of them new" in done.output, done.output
        assert "Is groupnorm meant?" in done.output and "strange.py: Nobody" in done.output
        assert ["groupnorm", "1", "0", "1", "0"] in [line.split() for line in done.output.splitlines()]
    (handed_in / "\x1b[2Jgroupnorm: 2 attempts\n.py").write_text("")
    hostile = run(cli, collect).output
    assert "\x1b" not in hostile and not [one for one in hostile.splitlines() if one.startswith("groupnorm: 2")]
    (course / FILE).write_text("no database " * 100)
    assert run(cli, collect).exit_code == 3
