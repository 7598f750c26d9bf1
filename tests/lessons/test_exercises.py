"""Do the lessons' exercises and broken kernels behave as the text says: unsolved, solved, and broken?"""

import re
import tomllib
from pathlib import Path

import nbformat
import pytest

import grader
from grader.problems import exercises
from grader.reports import progress

ROOT = Path(__file__).parent.parent.parent
LESSONS = sorted((ROOT / "lessons").glob("[0-9]*.ipynb"))
EXPECTED = tomllib.loads((ROOT / "tests" / "specimens" / "expected.toml").read_text())


def code(path):
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


# words of every output, cut at six letters
COMMON = {
    "line",
    "kernel",
    "thread",
    "block",
    "cuda",
    "source",
    "that",
    "this",
    "with",
    "from",
    "same",
    "which",
    "pytorc",
}

EXERCISES = sorted(
    {name for path in LESSONS for cell in code(path) for name in re.findall(r'grader\.check\("(\w+)"', cell.source)}
)
SPECIMENS = [
    (path.stem, name)
    for path in LESSONS
    for cell in code(path)
    for name in re.findall(r"specimens/(\w+)\.py", cell.source)
]


@pytest.mark.parametrize("name", EXERCISES)
def test_untouched_is_not_attempted(name):
    """Does each exercise's cell say, of the file as it is handed out, that it was not attempted?"""
    assert grader.check(name).verdict.outcome.value == "not_attempted"


@pytest.mark.slow
@pytest.mark.parametrize("name", EXERCISES)
def test_solution_passes(name, tmp_path, monkeypatch):
    """Does each exercise's cell pass, run in a course whose student's file is the reference?"""
    (tmp_path / "lessons").mkdir()
    (tmp_path / "kernels_student").mkdir()
    (tmp_path / "kernels_student" / f"{name}.py").write_text(exercises.source_of(name).read_text())
    monkeypatch.chdir(tmp_path / "lessons")
    verdict = grader.check(name).verdict
    assert verdict.outcome.value == "passed", verdict
    assert Path(verdict.submission.path).is_relative_to(tmp_path)


def test_every_exercise_of_the_course_is_in_a_lesson():
    """Is there no exercise in kernels_student that no lesson sets, but those that a lesson's text names as more of the
    same, and those that have no lesson yet?
    """
    text = "".join(cell.source for path in LESSONS for cell in nbformat.read(path, 4).cells)
    missing = [name for name in exercises.exercises() if not re.search(rf"\b{name}\b", text)]
    assert [name for name in missing if name.removesuffix("_backward") not in progress.WITHOUT_LESSON] == []


@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "specimen"), SPECIMENS)
def test_specimens_fail_as_the_text_says(lesson, specimen):
    """Does a broken kernel that a lesson grades get the verdict that it must get, and is the failure's line or reason
    in the lesson?
    """
    want = EXPECTED[specimen]
    verdict = grader.check(ROOT / "tests" / "specimens" / f"{specimen}.py").verdict
    failed = next(stage for stage in verdict.stages if stage.status.value == "failed")
    assert (failed.name.value, failed.reason.value) == (want["stage"], want["reason"])


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_what_breaks_is_explained(path):
    """Is there, for each part "Break it", a failure in its outputs, and prose around it that takes up a figure or a
    name from there?
    """
    parts, current = [], None
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "markdown":
            for piece in re.split(r"(?m)^(?=#+ )", cell.source):
                title = re.match(r"#+ (.+)", piece)
                if title:
                    current = {"title": title[1], "text": "", "shown": ""}
                    parts.append(current)
                if current:
                    current["text"] += piece
        elif current:
            current["shown"] += "".join(
                "".join(o.get("text", "") or o.get("data", {}).get("text/plain", "")) for o in cell.outputs
            )
    broken = [part for part in parts if part["title"].startswith("Break it")]
    assert broken
    for part in broken:
        shown, body = part["shown"].replace(",", ""), part["text"].replace(",", "").lower()
        names = {word[:6] for word in re.findall(r"[a-z]{4,}", shown.lower())} - COMMON
        assert shown.strip(), part["title"]
        assert any(re.search(rf"\b{figure}\b", body) for figure in re.findall(r"\d\d+", shown)) or any(
            name in body for name in names
        ), part["title"]
