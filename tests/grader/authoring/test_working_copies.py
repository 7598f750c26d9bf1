"""Does a student's copy follow the course until it is changed, and is nothing lost after that?"""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from grader.authoring import working_copies
from grader.authoring.working_copies import WorkingCopyError, find_exercise, prepare, reset
from grader.notebook import cells
from grader.paths import ROOT

LESSON, EXERCISE = "lessons/01_first.ipynb", "kernels_student/conv2d.py"


@pytest.fixture
def course(tmp_path):
    """A course with a lesson, a module beside it, data, and an exercise."""
    folder = tmp_path / "course"
    for name, text in {
        LESSON: "{}",
        EXERCISE: "empty",
        "lessons/pictures.py": "",
        "lessons/.hidden/config.py": "",
        "benchmarks/data/ncu.json": "[]",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_what_a_lesson_needs_is_reached_from_its_copy(course):
    assert prepare(course) == []
    mine = course / "mine"
    assert (mine / LESSON).read_text() == "{}" and not (mine / LESSON).is_symlink()
    assert (mine / "lessons" / "pictures.py").resolve() == course / "lessons" / "pictures.py"
    assert (mine / "lessons" / ".." / "benchmarks" / "data" / "ncu.json").read_text() == "[]"
    assert not (mine / "lessons" / ".hidden").exists()


LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def test_the_links_of_all_pages_work_from_the_copies(tmp_path):
    """Does each relative link of a page below mine/ lead somewhere, as JupyterLab reads it: by its path alone?"""
    for name in ("lessons", "kernels_student", "kernels_ref", "benchmarks", "docs", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    prepare(tmp_path)
    pages = [
        Path(folder, name)
        for folder, _, names in os.walk(tmp_path / "mine", followlinks=True)
        for name in names
        if name.endswith((".md", ".ipynb"))
    ]
    assert {page.name for page in pages} >= {"INSTRUCTORS.md", "TRUST.md", "GLOSSARY.md", "01_naive_conv.ipynb"}
    for page in pages:
        text = page.read_text(encoding="utf-8")
        if page.suffix == ".ipynb":
            text = "\n".join("".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "markdown")
        for match in LINK.finditer(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
            target = (match[1] or match[2]).partition("#")[0]
            if target and "://" not in target and not target.startswith("mailto:"):
                assert os.path.exists(os.path.normpath(page.parent / target)), f"{page}: {target}"
    assert not {"grader", "simt"} & set(os.listdir(tmp_path / "mine"))  # Python in a terminal there would import them


def test_an_unchanged_copy_follows_the_course_and_a_changed_one_is_kept(course):
    prepare(course)
    (course / LESSON).write_text("newer")
    (course / EXERCISE).write_text("newer")
    (course / "mine" / EXERCISE).write_text("the student's")
    news = prepare(course)
    assert (course / "mine" / LESSON).read_text() == "newer"
    assert (course / "mine" / EXERCISE).read_text() == "the student's"
    assert len(news) == 1 and news[0].startswith(f"{EXERCISE} has a newer version.")
    assert prepare(course) == news  # said each time, until it is reset
    reset(course, EXERCISE)
    assert prepare(course) == []


def notebook(source, outputs=()):
    return json.dumps({"cells": [{"cell_type": "code", "source": [source], "outputs": list(outputs)}]})


def test_running_a_lesson_is_no_change(course):
    """Does a copy whose outputs alone are the student's follow the course, and one with a changed line not?"""
    (course / LESSON).write_text(notebook("1 + 1", []))
    prepare(course)
    (course / "mine" / LESSON).write_text(notebook("1 + 1", ["2"]))
    (course / LESSON).write_text(notebook("1 + 2", []))
    assert prepare(course) == []
    assert (course / "mine" / LESSON).read_text() == notebook("1 + 2", [])
    (course / "mine" / LESSON).write_text(notebook("1 + 7", []))
    (course / LESSON).write_text(notebook("1 + 3", []))
    assert len(prepare(course)) == 1 and (course / "mine" / LESSON).read_text() == notebook("1 + 7", [])


def test_other_line_ends_are_no_change(course):
    """Does a copy that an editor has written with CR LF follow the course?"""
    (course / LESSON).write_text(notebook("a = 1\nb = 2"))
    (course / EXERCISE).write_text("a\nb\n")
    prepare(course)
    (course / "mine" / LESSON).write_text(notebook("a = 1\r\nb = 2"))
    (course / "mine" / EXERCISE).write_bytes(b"a\r\nb\r\n")
    (course / LESSON).write_text(notebook("a = 2"))
    (course / EXERCISE).write_text("newer")
    assert prepare(course) == []
    assert (course / "mine" / LESSON).read_text() == notebook("a = 2")
    assert (course / "mine" / EXERCISE).read_text() == "newer"


def test_a_damaged_notebook_is_kept_aside(course):
    """Does a copy that JupyterLab cannot open give way to the course's, and is it told where it lies?"""
    (course / LESSON).write_text(notebook("1 + 1"))
    prepare(course)
    (course / "mine" / LESSON).write_text(notebook("my work")[:40])
    (news,) = prepare(course)
    assert "was damaged" in news and "mine/kept/01_first_1.ipynb" in news
    assert (course / "mine" / LESSON).read_text() == notebook("1 + 1")
    assert (course / "mine" / "kept" / "01_first_1.ipynb").read_text() == notebook("my work")[:40]
    assert prepare(course) == []


def test_a_lesson_that_is_renamed_leaves_no_copy_but_a_changed_one(course):
    second = "lessons/02_second.ipynb"
    for name in (LESSON, second):
        (course / name).write_text(notebook("1 + 1"))
    prepare(course)
    (course / "mine" / second).write_text(notebook("my work"))
    for name in (LESSON, second):
        (course / name).rename(course / name.replace("lessons/0", "lessons/1"))
    (course / "lessons" / "pictures.py").unlink()
    (news,) = prepare(course)
    assert news == f"The course has no {second} any more. You have changed yours, which stays where it is."
    mine = course / "mine" / "lessons"
    assert sorted(file.name for file in mine.iterdir()) == ["02_second.ipynb", "11_first.ipynb", "12_second.ipynb"]
    assert prepare(course) == []


def test_a_deleted_copy_comes_back(course):
    prepare(course)
    (course / "mine" / LESSON).unlink()
    assert prepare(course) == [] and (course / "mine" / LESSON).read_text() == "{}"


def test_reset_keeps_every_version_of_the_student(course):
    prepare(course)
    for text in ("first", "second"):
        (course / "mine" / LESSON).write_text(text)
        assert "Yours is mine/kept/01_first_" in reset(course, LESSON)
        assert (course / "mine" / LESSON).read_text() == "{}"
    assert "Yours" not in reset(course, LESSON)
    kept = sorted((course / "mine" / "kept").iterdir())
    assert [file.read_text() for file in kept] == ["first", "second"]


@pytest.mark.parametrize("name", ["", "../secret", "lessons/pictures.py", "lessons/02.ipynb", "/etc/passwd"])
def test_only_the_course_s_own_files_can_be_reset(course, name):
    prepare(course)
    with pytest.raises(WorkingCopyError, match="only its lessons and exercises"):
        reset(course, name)


@pytest.mark.parametrize("record", ["", "[1]", '{"lessons/01_first.ipynb": 3}'])
def test_a_damaged_record_costs_no_work(course, record):
    prepare(course)
    (course / "mine" / LESSON).write_text("the student's")
    (course / "mine" / working_copies.RECORD).write_text(record)
    prepare(course)
    assert (course / "mine" / LESSON).read_text() == "the student's"
    assert find_exercise(course, "conv2d") is None


@pytest.mark.parametrize("name", ["../secret.py", "lessons/../../secret.py", "lessons/pictures.py", "kept/mine.py"])
def test_a_damaged_record_deletes_nothing_but_copies(course, name):
    """Is a file left alone that a record calls an unchanged copy, although the course copies no such file?"""
    prepare(course)
    named = course / "mine" / name
    named.parent.mkdir(exist_ok=True)
    named.write_text("somebody's")
    (course / "mine" / working_copies.RECORD).write_text(json.dumps({name: working_copies._digest(named)}))
    assert prepare(course) == []
    assert named.read_text() == "somebody's"


def test_a_folder_that_cannot_be_written_is_one_sentence(course):
    (course / "mine").write_text("a file")
    with pytest.raises(WorkingCopyError, match=r"mine cannot be written \("):
        prepare(course)


def test_a_name_means_the_copy_once_it_is_changed(course, monkeypatch):
    """Does `grader check conv2d` in the course's folder mean what the student edits, in JupyterLab or beside it?"""
    prepare(course)
    monkeypatch.chdir(course)
    assert cells.subject("conv2d").path == course / EXERCISE
    (course / "mine" / EXERCISE).write_text("the student's")
    assert cells.subject("conv2d").path == course / "mine" / EXERCISE
    monkeypatch.chdir(course / "mine" / "lessons")
    assert cells.subject("conv2d").path == course / "mine" / EXERCISE
    assert not working_copies.name_both(course / "mine" / EXERCISE)
    (course / EXERCISE).write_text("changed, too")
    assert working_copies.name_both(course / "mine" / EXERCISE) == (
        f"This is mine/{EXERCISE}. {EXERCISE} has changed, too, and was not graded."
    )
    (course / "mine" / EXERCISE).write_text("empty")
    assert cells.subject("conv2d").path == course / EXERCISE  # what a student edits who works without JupyterLab


def test_a_course_in_a_folder_called_mine_is_no_copy(tmp_path, course, monkeypatch):
    course = course.rename(tmp_path / "mine")
    prepare(course)
    monkeypatch.chdir(course)
    (course / "mine" / EXERCISE).write_text("the student's")
    assert cells.subject("conv2d").path == course / "mine" / EXERCISE


def test_git_pull_meets_no_change_of_the_student(course):
    def git(*words):
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=course, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    (course / ".gitignore").write_text("/mine/\n")
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "the course")
    prepare(course)
    (course / "mine" / LESSON).write_text("the student's")
    (course / "mine" / EXERCISE).write_text("the student's")
    assert git("status", "--porcelain") == ""


def commit(course):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q"], cwd=course, check=True)
    subprocess.run(["git", "add", "-f", "lessons", "kernels_student"], cwd=course, check=True)
    subprocess.run([*git, "commit", "-qm", "a version"], cwd=course, check=True)


DAMAGES = {
    "empty": b"",
    "cut off": b'{"lessons/01_first.ipynb": "a8',
    "a list": b"[]",
    "a number": b'{"lessons/01_first.ipynb": 5}',
    "other bytes": b"\xff\x00",
    "deep": b"[" * 100_000,
    "missing": None,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_made_anew_from_the_course_s_history(course, damage):
    """Does an old version still follow the course, does the student's work stay, and is the damage reported once?"""
    (course / LESSON).write_text(notebook("1 + 1"))
    commit(course)
    prepare(course)
    (course / "mine" / EXERCISE).write_text("my work")
    for name in (LESSON, EXERCISE):
        (course / name).write_text(notebook("newer"))
    commit(course)
    record = course / "mine" / ".originals.json"
    record.unlink()
    if DAMAGES[damage] is not None:
        record.write_bytes(DAMAGES[damage])
    about, unknown = prepare(course)
    assert "was missing" in about if damage == "missing" else "was damaged. It was moved to mine/kept/" in about
    kept = course / "mine" / "kept" / ".originals_1.json"
    assert kept.read_bytes() == DAMAGES[damage] if damage != "missing" else not kept.exists()
    assert unknown.startswith(f"{EXERCISE} differs from the course's version, and it is not known whether you have")
    assert (course / "mine" / LESSON).read_text() == notebook("newer")
    assert (course / "mine" / EXERCISE).read_text() == "my work"
    assert prepare(course) == [unknown]
    assert find_exercise(course, "conv2d") == course / "mine" / EXERCISE
    assert reset(course, EXERCISE).endswith("Yours is mine/kept/conv2d_1.py.")
    assert prepare(course) == [] and find_exercise(course, "conv2d") is None


def test_a_damaged_record_without_a_history_loses_nothing(course):
    """Are all copies that differ kept, and is it said of each that it may be an old version?"""
    prepare(course)
    for name in (LESSON, EXERCISE):
        (course / name).write_text("newer")
    (course / "mine" / ".originals.json").write_text("{")
    news = prepare(course)
    assert len(news) == 3 and all("it is not known whether you have changed it" in words for words in news[1:])
    assert (course / "mine" / LESSON).read_text() == "{}" and (course / "mine" / EXERCISE).read_text() == "empty"
    (course / "mine" / ".originals.json").write_text("{")
    words = reset(course, EXERCISE)
    assert "Yours is mine/kept/conv2d_1.py. mine/.originals.json" in words and "was damaged." in words
    assert (course / "mine" / "kept" / "conv2d_1.py").read_text() == "empty"
