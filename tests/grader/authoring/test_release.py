"""Does a release hold what students need and no answer, and is nothing written where it would?"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from grader.authoring import release
from grader.authoring.cuts import GONE, CutError, cut_notebook
from grader.cli import statuses
from grader.paths import KERNELS_REF, ROOT
from grader.problems import exercises
from tests.grader.authoring.planted import ANSWER, make_cell, rename, write_notebook
from tests.grader.cli.commands import run
from tests.sample import sample

LESSON = "01_naive_conv.ipynb"


@pytest.fixture(name="course")
def make_course(tmp_path, monkeypatch):
    """A course of lesson 1, without grader and simt, which would take long to search."""
    root = tmp_path / "course"
    (root / "lessons").mkdir(parents=True)
    shutil.copy(ROOT / "lessons" / LESSON, root / "lessons")
    shutil.copy(ROOT / "Makefile", root)
    shutil.copytree(KERNELS_REF / "conv2d", root / "kernels_ref" / "conv2d")
    monkeypatch.setattr(exercises, "KERNELS_REF", root / "kernels_ref")
    return root


def read_tree(folder):
    """Every file's text by its path, without git's own."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in files}


def test_a_release_is_a_repository_of_one_commit_and_the_same_zip(course, tmp_path):
    to, packed = tmp_path / "out", tmp_path / "out.zip"
    release.make_release(release.choose([], course), to, packed, root=course)
    git = ["git", "-C", str(to)]
    assert subprocess.run([*git, "status", "--porcelain"], capture_output=True, check=True).stdout == b""
    assert subprocess.run([*git, "rev-list", "--all", "--count"], capture_output=True, check=True).stdout == b"1\n"
    files = read_tree(to)
    with zipfile.ZipFile(packed) as archive:
        assert {f"out/{name}": text for name, text in files.items()} == {
            name: archive.read(name).decode() for name in archive.namelist()
        }
    assert {name for name in files if name.startswith("kernels_ref/")} == {
        "kernels_ref/conv2d/model.py",
        "kernels_ref/conv2d/hints.toml",
        "kernels_ref/conv2d/hints_backward.toml",
        "kernels_ref/skeletons.toml",
    }
    assert (
        "| [1. A convolution, one thread for each pixel](lessons/01_naive_conv.ipynb) | `conv2d.py`"
        in files["README.md"]
    )
    assert tomllib.loads(files["kernels_ref/skeletons.toml"]).keys() == {"conv2d", "conv2d_backward"}


def test_a_lesson_stays_whole_but_for_its_solution(course, tmp_path):
    """Is every cell there, and every line but the folded solution's?"""
    release.make_release(release.choose(["1"], course), tmp_path / "out", None, root=course)
    before, after = (
        json.loads((root / "lessons" / LESSON).read_text(encoding="utf-8"))["cells"]
        for root in (course, tmp_path / "out")
    )
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old["source"] != new["source"]]
    assert len(changed) == 1 and "sum += x_row[kx] * w_row[kx];" in "".join(changed[0][0]["source"])
    assert GONE in "".join(changed[0][1]["source"]) and "## References" in "".join(changed[0][1]["source"])
    assert [old["outputs"] for old in before if "outputs" in old] == [
        new["outputs"] for new in after if "outputs" in new
    ]
    tagged = [new for new in after if new["metadata"]]
    assert [cell["source"] for cell in tagged] == [['grader.check("conv2d")']]
    assert tagged[0]["metadata"]["tags"] == ["nbval-ignore-output"]


PLANTED = {
    "a backup file": lambda course: (course / "lessons" / "conv2d.py.bak").write_text(rename(ANSWER)),
    "a module": lambda course: (course / "lessons" / "helpers.py").write_text(f"source = {ANSWER!r}"),
    "a cell": lambda course: add_cell(course, make_cell(ANSWER, metadata={"jupyter": {"source_hidden": True}})),
    "an output": lambda course: add_cell(
        course, make_cell("1", outputs=[{"output_type": "stream", "name": "stdout", "text": ANSWER}])
    ),
    "an unfolded solution": lambda course: add_cell(
        course, {"cell_type": "markdown", "id": "m", "metadata": {}, "source": f"```cpp\n{ANSWER}\n```"}
    ),
}


def add_cell(course, cell):
    path = course / "lessons" / LESSON
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"].append(cell)
    path.write_text(json.dumps(notebook), encoding="utf-8")


@pytest.mark.parametrize("what", sample(PLANTED, ["a backup file", "an output"]))
def test_a_release_with_an_answer_is_refused(course, tmp_path, what):
    """Is the place named, and nothing written?"""
    PLANTED[what](course)
    with pytest.raises(release.LeakError) as caught:
        release.make_release(release.choose([], course), tmp_path / "out", tmp_path / "out.zip", root=course)
    assert any(leak.find.exercise == "conv2d" and "lessons/" in str(leak) for leak in caught.value.leaks.found)
    assert {path.name for path in tmp_path.iterdir()} == {"course"}
    release.make_release(release.choose([], course), tmp_path / "out", None, ["conv2d", "conv2d_backward"], root=course)


@pytest.mark.slow
def test_what_git_ignores_and_other_notebooks_do_not_leave(course, tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=course, check=True)
    (course / ".gitignore").write_text("*.log\n")
    (course / "lessons" / "a.log").write_text(ANSWER)
    (course / "lessons" / "__pycache__").mkdir()
    write_notebook(course, make_cell(ANSWER))
    os.rename(course / "lesson.ipynb", course / "lessons" / "02_more.ipynb")
    release.make_release(release.choose(["01"], course), tmp_path / "out", None, root=course)
    assert {name for name in read_tree(tmp_path / "out") if name.startswith("lessons/")} == {f"lessons/{LESSON}"}


def test_blanks_leave_with_their_lesson(course, tmp_path):
    shutil.copytree(ROOT / "lessons" / "blanks", course / "lessons" / "blanks")
    release.make_release(release.choose(["1"], course), tmp_path / "out", None, root=course)
    left = sorted(file.name for file in (tmp_path / "out" / "lessons" / "blanks").glob("*.py"))
    assert left == ["__init__.py", "lesson_01.py"]


def test_targets_and_names_that_cannot_be(course, tmp_path):
    """Is each refused in a sentence, and what is there left alone?"""
    choice = release.choose([], course)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    here = {name: tmp_path / name for name in ("full", "full/a", "link")}
    targets = [(path, None) for path in here.values()] + [(None, path) for path in here.values()]
    for folder, archive in targets:
        with pytest.raises(release.ReleaseError, match=r"\.$"):
            release.make_release(choice, folder, archive, root=course)
    with pytest.raises(release.ReleaseError, match="12 is neither a lesson"):
        release.choose(["12"], course)
    (course / "lessons" / "data").symlink_to("/etc/passwd")
    with pytest.raises(release.ReleaseError, match="lessons/data is a link"):
        release.make_release(choice, tmp_path / "out", None, root=course)
    assert not (tmp_path / "out").exists() and (tmp_path / "full" / "a").read_text() == ""


@pytest.mark.slow
def test_lessons_and_exercises_are_chosen_together():
    """Do gradients come with lesson 7, or with their problem's lesson if that is later?"""
    names = {path.name[:2]: found for path, found in release.choose([]).lessons.items()}
    assert names["01"] == ["conv2d"] and names["02"] == ["im2col_conv", "matmul"]
    assert {"groupnorm_backward", "conv2d_backward"} <= {*names["07"]} and "conv_groupnorm_maxpool_backward" in names[
        "08"
    ]
    choice = release.choose(["3", "ratio_interval"])
    assert [path.name for path in choice.lessons] == ["03_groupnorm_two_pass.ipynb"]
    assert choice.exercises == ["groupnorm", "ratio_interval"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": [{"cell_type": "code"}]}', '{"cells": 1}', "[" * 100_000])
def test_a_broken_notebook_is_refused(text):
    with pytest.raises(CutError, match="it is no notebook"):
        cut_notebook(text, {})


def test_wrong_kernels_and_tagged_solutions_are_cut():
    """Does a cell that grades a specimen become what it printed, and is a tagged solution gone?"""
    shown = {"output_type": "execute_result", "data": {"text/plain": ["failed\n", "line 24"]}}
    cells = [
        make_cell('grader.check("tests/specimens/a.py")', outputs=[shown]),
        make_cell("secret", metadata={"tags": ["solution"]}),
        make_cell('grader.check("groupnorm_backward")'),
        make_cell("1"),
    ]
    made = json.loads(cut_notebook(json.dumps({"cells": cells}), {"groupnorm_backward": ["groupnorm"]}))["cells"]
    texts = ["".join(cell["source"]) for cell in made]
    assert [cell["cell_type"] for cell in made] == ["markdown", "markdown", "markdown", "code", "code"]
    assert "failed\nline 24\n" in texts[0] and texts[1] == GONE and "what you wrote for `groupnorm`" in texts[2]
    assert len({cell["id"] for cell in made[2:4]}) == 2 and made[4] == cells[3]


def test_the_commands(course, tmp_path, monkeypatch):
    """Do they end with their statuses and one sentence?"""
    monkeypatch.setattr(release, "WHOLE", ())
    assert run("class", "release").exit_code == statuses.USAGE
    assert "no such exercise" in run("class", "release", "--to", str(tmp_path / "o"), "--solved", "x").output
    (tmp_path / "a.txt").write_text(rename(ANSWER))
    leaked = run("class", "leaks", str(tmp_path / "a.txt"))
    assert (
        leaked.exit_code == statuses.FAILED and f"lines 1 to {ANSWER.count(chr(10)) + 1}: 172 tokens" in leaked.output
    )
    assert run("class", "leaks", str(tmp_path / "a.txt"), "--solved", "conv2d").exit_code == 0
    made = run("class", "release", "conv2d", "--zip", str(tmp_path / "o.zip"))
    assert made.exit_code == 0 and "0 lessons, 1 exercise;" in made.output
    (tmp_path / "file").write_text("")
    assert run("class", "release", "conv2d", "--zip", str(tmp_path / "file" / "o.zip")).exit_code == statuses.CANNOT


@pytest.mark.slow
def test_all_lessons_can_be_released_and_an_exercise_graded(tmp_path):
    """Does a student's copy know every exercise, grade one that is right, wrong or not begun, and hold no answer?"""
    lessons = [*(ROOT / "lessons").glob("[0-9]*.ipynb")]
    made = run("class", "release", "--to", str(tmp_path / "out"))
    assert made.exit_code == 0 and f"{len(lessons)} lessons, 35 exercises;" in made.output, made.output
    searched = run("class", "leaks", str(tmp_path / "out"))
    assert searched.exit_code == 0, searched.output
    lines = {line.strip() for line in ANSWER.split("\n") if len(line.strip()) > 30}
    assert lines and not [
        name for name, text in read_tree(tmp_path / "out").items() if lines <= {*map(str.strip, text.split("\n"))}
    ]
    student = tmp_path / "out" / "kernels_student"
    graded = {}
    for name, text in {
        "groupnorm_backward": None,
        "conv2d": exercises.read_solution("conv2d"),
        "conv2d_ada": exercises.read_solution("conv2d").replace("y[i] = sum;", "y[i] = -sum;"),
    }.items():
        if text:
            (student / f"{name}.py").write_text(text)
        command = [
            sys.executable,
            "-m",
            "grader",
            "grade",
            f"kernels_student/{name}.py",
            "--device",
            "cpu",
            "--allow-unsandboxed",
        ]
        environment = {**os.environ, "GRADER_PROGRESS": str(tmp_path / "progress.json")}
        graded[name] = subprocess.run(command, cwd=tmp_path / "out", env=environment, capture_output=True).returncode
    assert graded == {"groupnorm_backward": statuses.NOT_ATTEMPTED, "conv2d": 0, "conv2d_ada": statuses.FAILED}
    # These tests may themselves be run by make, whose child would print the folder's name as well.
    make = ["make", "--no-print-directory", "help"]
    helped = subprocess.run(make, cwd=tmp_path / "out", capture_output=True, text=True, check=True).stdout
    assert {line.split()[1] for line in helped.splitlines()} == {"help", "lab", "test", "clean"}


def test_the_workflow_covers_what_the_course_supports(course, tmp_path):
    """Does it run tests and lessons on each Python, with the oldest torch that pyproject.toml allows and the newest?"""
    release.make_release(release.choose(["1"], course), tmp_path / "out", None, root=course)
    job = yaml.safe_load((tmp_path / "out/.github/workflows/course.yml").read_text())["jobs"]["test"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    torch = next(Requirement(text) for text in project["dependencies"] if text.startswith("torch"))
    oldest, newest = map(SpecifierSet, job["strategy"]["matrix"]["torch"])
    lowest = next(iter(torch.specifier)).version
    assert lowest in oldest and "2.999" not in oldest and newest == torch.specifier
    pythons = job["strategy"]["matrix"]["python"]
    assert pythons == ["3.11", "3.12", "3.13"] and pythons[0] in SpecifierSet(project["requires-python"])
    lines = "\n".join(step.get("run", "") for step in job["steps"])
    assert "pytest -q tests" in lines and "--nbval" in lines and lines.count("torch${{ matrix.torch }}") == 2
