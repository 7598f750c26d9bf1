"""Is each student's work found in each platform's export, and is each student and problem in exactly one state?"""

import datetime
import io
import json
import os
import zipfile
from pathlib import Path

import pytest

from grader.classroom.collect import Collected, State, collect, find_states
from grader.classroom.course import Course, parse_course
from grader.classroom.roster import Student
from grader.classroom.sources import SourceError, read_source

ADA = Student("s-001", "Ada Lovelace", "ada@example.org", frozenset({"4711", "815"}))
BOB = Student("s-002", "Bob Ross", "bob@example.org", frozenset({"4712", "816"}))
CY = Student("s-003", "Cy Young", "cy@example.org", frozenset({"4713", "817"}))
CLASS = [ADA, BOB, CY]
SOURCE = b"class ModelNew: pass\n"
NOON = (2026, 12, 1, 12, 0, 0)


@pytest.fixture
def course(tmp_path) -> Course:
    problems = "[problems.groupnorm]\n[problems.groupnorm_backward]\n[problems.conv2d]\n"
    return parse_course(f'title = "x"\ntimezone = "Europe/Zurich"\n{problems}', tmp_path)


def make_zip(file: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, NOON), data)
    return file


def inner(files: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


def gather(source: Path, course: Course) -> Collected:
    return collect(read_source(source), CLASS, course)


def attempts(made: Collected) -> list[tuple[str, str, str]]:
    return [(one.student, one.problem, one.path) for one in made.attempts]


def test_canvas(tmp_path, course):
    """Is the student found by number, whatever the name, and are late marks and second files understood?"""
    source = make_zip(
        tmp_path / "submissions.zip",
        {
            "lovelaceada_4711_111_groupnorm.py": SOURCE,
            "lovelaceada_LATE_4711_112_groupnorm-1.py": SOURCE + b"#",
            "rossbob_4712_113_conv2d_backup_v2.py": SOURCE,
            "youngcy_4713_114_homework.zip": inner({"hw/groupnorm_backward.py": SOURCE}),
            "nobody_99_115_groupnorm.py": SOURCE,
        },
    )
    made = gather(source, course)
    assert attempts(made) == [
        ("s-001", "groupnorm", "lovelaceada_4711_111_groupnorm.py"),
        ("s-001", "groupnorm", "lovelaceada_LATE_4711_112_groupnorm-1.py"),
        ("s-002", "conv2d", "rossbob_4712_113_conv2d_backup_v2.py"),
        ("s-003", "groupnorm_backward", "youngcy_4713_114_homework.zip/hw/groupnorm_backward.py"),
    ]
    assert [one.late for one in made.attempts] == [False, True, False, False]
    assert made.attempts[0].at == datetime.datetime(2026, 12, 1, 11, tzinfo=datetime.UTC)  # Zurich's noon
    assert list(made.strangers) == ["nobody_99_115_groupnorm.py"]


@pytest.mark.parametrize("folders", [True, False])
def test_moodle(tmp_path, course, folders):
    """Are both forms of Moodle's export read?"""
    mark = "/" if folders else "_"
    source = make_zip(
        tmp_path / "GPU-groupnorm-9.zip",
        {
            f"Ada Lovelace_815_assignsubmission_file{mark}groupnorm.py": SOURCE,
            f"Bob Ross_816_assignsubmission_file{mark}Group Norm.py": SOURCE,
        },
    )
    made = gather(source, course)
    assert [one[:2] for one in attempts(made)] == [("s-001", "groupnorm")]
    (remark,) = made.remarks
    assert (remark.student, remark.problem, remark.state) == ("s-002", "groupnorm", State.wrong_name)
    assert remark.why == "No problem of the course has the name Group Norm.py. Is groupnorm meant?"


def test_gradescope(tmp_path, course):
    """Are names and times those of the metadata, and does a group's work count for each of them?"""
    metadata = """---
submission_1:
  :submitters:
  - :name: Ada Lovelace
    :sid: s-001
    :email: ada@example.org
  - :name: Bob Ross
    :sid: ''
    :email: bob@example.org
  :created_at: 2026-12-01 20:30:00.123456000 Z
submission_2:
  :submitters: []
  :created_at: nonsense
"""
    source = make_zip(
        tmp_path / "export.zip",
        {
            "assignment_7_export/submission_metadata.yml": metadata.encode(),
            "assignment_7_export/submission_1/groupnorm.py": SOURCE,
            "assignment_7_export/submission_2/groupnorm.py": SOURCE,
        },
    )
    made = gather(source, course)
    assert [one[:2] for one in attempts(made)] == [("s-001", "groupnorm"), ("s-002", "groupnorm")]
    assert {str(one.at)[:19] for one in made.attempts} == {"2026-12-01 20:30:00"}
    assert list(made.strangers) == ["assignment_7_export/submission_2/groupnorm.py"]


def test_folders(tmp_path, course):
    """Is a student found by the folder, by the file's name, and by a repository's name?"""
    folder = tmp_path / "all"
    for name in ("s-001/groupnorm.py", "groupnorm/s-002.py", "conv2d-s-003/main.py", "conv2d_ada@example.org.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(SOURCE)
        os.utime(folder / name, (1_800_000_000, 1_800_000_000))
    (folder / "link.py").symlink_to("/etc/passwd")
    (folder / "s-001" / ".git").mkdir()
    (folder / "s-001" / ".git" / "conv2d.py").write_bytes(SOURCE)
    made = gather(folder, course)
    assert attempts(made) == [
        ("s-001", "conv2d", "conv2d_ada@example.org.py"),
        ("s-001", "groupnorm", "s-001/groupnorm.py"),
        ("s-002", "groupnorm", "groupnorm/s-002.py"),
        ("s-003", "conv2d", "conv2d-s-003/main.py"),
    ]
    assert made.strangers == {"link.py": "It was not read: it is a link or a device."}


@pytest.mark.parametrize(
    "name, data, says",
    [
        ("groupnorm.ipynb", json.dumps({"cells": [], "nbformat": 4}).encode(), "is a notebook"),
        ("groupnorm.py", json.dumps({"cells": []}).encode(), "is a notebook"),
        ("groupnorm.docx", inner({"word/document.xml": b"x"}), "is a document of a word processor"),
        ("groupnorm.py", inner({"a.py": SOURCE}), "is an archive"),
        ("groupnorm.pdf", b"%PDF-1.7", "is a PDF document"),
        ("groupnorm.py", b"\x89PNG\r\n", "is a picture"),
        ("groupnorm.cu", b"__global__ void k() {}", "is no .py file"),
        ("groupnorm.py", b"x = 1\0", "holds bytes that no text has"),
        ("groupnorm.py", b"#" * (300 << 10), "has more than 256 KiB"),
    ],
)
def test_what_cannot_be_graded_is_told_what_it_is(tmp_path, course, name, data, says):
    made = gather(make_zip(tmp_path / "a.zip", {f"s-001/{name}": data}), course)
    (remark,) = made.remarks
    assert not made.attempts and (remark.problem, remark.state) == ("groupnorm", State.unreadable)
    assert says in remark.why and remark.why.startswith(name)


def test_nobody_hands_in_for_another(tmp_path, course):
    """Is a file its sender's, whatever folders, names and lists of names lie in what was sent?"""
    forged = inner(
        {
            "submission_metadata.yml": b"submission_9:\n  :submitters:\n  - :sid: s-001\n",
            "submission_9/groupnorm.py": SOURCE,
            "Ada Lovelace_815_assignsubmission_file/groupnorm.py": SOURCE,
            "lovelaceada_4711_1_groupnorm.py": SOURCE,
            "s-001/groupnorm.py": SOURCE,
        }
    )
    sources = [
        {"rossbob_4712_1_lovelaceada_4711_2_x.zip": forged, "youngcy_4713_3_conv2d.py": SOURCE},
        {"Bob Ross_816_assignsubmission_file/x.zip": forged, "Cy Young_817_assignsubmission_file/conv2d.py": SOURCE},
        {"s-002/x.zip": forged, "s-003/conv2d.py": SOURCE},
        {
            "e/submission_metadata.yml": b"submission_1:\n  :submitters:\n  - :sid: s-002\n",
            "e/submission_1/x.zip": forged,
        },
    ]
    for number, files in enumerate(sources):
        made = gather(make_zip(tmp_path / f"{number}.zip", files), course)
        assert len([one for one in made.attempts if one.student == "s-002"]) == 4, number
        assert not [one for one in made.attempts if one.student == "s-001"], number


def test_each_student_and_problem_has_one_state(tmp_path, course):
    """Does an attempt count more than an unreadable file, that more than a wrong name, and is the rest missing?"""
    source = make_zip(
        tmp_path / "a.zip",
        {
            "s-001/groupnorm.py": SOURCE,
            "s-001/groupnorm.pdf": b"%PDF",
            "s-002/groupnorm.pdf": b"%PDF",
            "s-002/gruopnorm.py": SOURCE,
            "s-003/convd2.py": SOURCE,
            "s-003/notes.py": SOURCE,
        },
    )
    made = gather(source, course)
    seen = [(one.student, one.problem, State.attempt) for one in made.attempts]
    seen += [(one.student, one.problem, one.state) for one in made.remarks]
    states = find_states(seen, CLASS, course)
    assert len(states) == len(CLASS) * len(course.problems)
    assert {key: state for key, state in states.items() if state is not State.missing} == {
        ("s-001", "groupnorm"): State.attempt,
        ("s-002", "groupnorm"): State.unreadable,
        ("s-003", "conv2d"): State.wrong_name,
    }
    assert [(one.path, one.problem) for one in made.remarks if not one.problem] == [("s-003/notes.py", "")]


def test_sources_that_cannot_be_read(tmp_path, course):
    with pytest.raises(SourceError, match="cannot be read"):
        gather(tmp_path / "nothing.zip", course)
    (tmp_path / "text.zip").write_text("no archive")
    with pytest.raises(SourceError, match="neither a folder nor a zip"):
        gather(tmp_path / "text.zip", course)
    source = make_zip(tmp_path / "a.zip", {"x/submission_metadata.yml": b"a: [", "x/submission_1/a.py": SOURCE})
    with pytest.raises(SourceError, match="submission_metadata"):
        gather(source, course)
