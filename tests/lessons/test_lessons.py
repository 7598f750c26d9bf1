"""Do the lessons keep to the shape that a student relies on? (That they run, and print what they show, nbval tests.)"""

import functools
import importlib
import itertools
import json
import re
import sys
import textwrap
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent.parent
FILES = sorted((ROOT / "lessons").glob("[0-9]*.ipynb"))
LINE = 100  # characters: about what a browser shows in one line
LADDER = r"Steps of (\w+): (\w+) \((.+?)\) is ([\d.]+) times as fast as (\w+) \((.+?)\)\."

each_lesson = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def cells(path, kind):
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == kind]


def text(path):
    return "\n\n".join(cell.source for cell in cells(path, "markdown"))


def prose(path):
    """Every paragraph that is neither heading, list, table, code nor HTML."""
    without_code = re.sub(r"```.*?```", "", text(path), flags=re.DOTALL)
    paragraphs = [p.strip() for p in without_code.split("\n\n")]
    return [p for p in paragraphs if p and not re.match(r"[#|<-]", p)]


def numbers(words):
    """The lessons that words like "3, 4 and 5" or "1 to 6" name."""
    return {
        n
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", words)
        for n in range(int(first), int(last or first) + 1)
    }


def seconds(shown):
    number, unit = shown.split()
    return float(number.replace(",", "")) * {"s": 1, "ms": 1e-3, "µs": 1e-6}[unit]


@functools.cache
def pictures():
    """Return the functions that draw a picture, by module and name: those of lessons/*pictures.py."""
    folder = ROOT / "lessons"
    sys.path.append(str(folder))  # the notebooks import them from their own folder
    return {
        (file.stem, name): getattr(importlib.import_module(file.stem), name)
        for file in sorted(folder.glob("*pictures.py"))
        for name in re.findall(r"^def ([a-z]\w*)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }


def headings(path):
    return re.findall(r"^(#+) (.+)$", text(path), re.MULTILINE)


def test_there_are_lessons():
    """Are the lessons numbered from 1 without a gap?"""
    numbers = [int(path.name[:2]) for path in FILES]
    assert len(FILES) >= 5 and numbers == list(range(1, len(FILES) + 1))


@each_lesson
def test_shape(path):
    """Does a lesson have goal, abilities, picture, something that goes wrong, exercise, folded hints and references?"""
    source = text(path)
    titles = [title for _, title in headings(path)]
    assert titles[0].startswith(f"{int(path.name[:2])}. ")
    assert len(re.findall(r"[.!?](?=\s|$)", re.search(r"\*\*Goal\.\*\* (.+)", source)[1])) == 2
    assert titles[1:2] == ["What you will be able to do"] and titles[-1] == "References"
    assert "The picture" in titles and "Exercise" in titles
    assert any(title.startswith("Break it: ") for title in titles)
    assert source.count("<details>") == source.count("</details>") >= 2


@each_lesson
def test_headings_skip_no_level(path):
    """Is there one title, and no heading more than one level below the one before?"""
    levels = [len(marks) for marks, _ in headings(path)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@each_lesson
def test_a_sentence_precedes_each_code_cell(path):
    """Is every code cell introduced by text that ends as a sentence does?"""
    all_cells = nbformat.read(path, 4).cells
    for before, cell in zip([None, *all_cells], all_cells):
        if cell.cell_type == "code":
            assert before and before.cell_type == "markdown", cell.source
            assert re.search(r"[.:?!)*]$", before.source.strip()), before.source


@each_lesson
def test_nothing_is_too_long(path):
    """Is no paragraph over six lines, no cell over sixty, no line of code wider than the page?"""
    for paragraph in prose(path):
        assert len(textwrap.wrap(paragraph, LINE)) <= 6, paragraph
    for cell in cells(path, "code"):
        lines = cell.source.splitlines()
        assert len(lines) <= 60 and max(map(len, lines)) <= 120, cell.source
    assert path.stat().st_size < 100_000


@each_lesson
def test_pictures_have_alt_text(path):
    """Does every picture say in words what it shows?"""
    outputs = [o for cell in cells(path, "code") for o in cell.outputs if "image/png" in o.get("data", {})]
    assert outputs
    assert all(len(o.metadata.get("image/png", {}).get("alt", "")) > 40 for o in outputs)
    assert not re.search(r"!\[\]\(", text(path))


@pytest.mark.slow
@each_lesson
def test_pictures_show_the_data_of_today(path):
    """Is the alt text of each committed picture that one that its function makes now, of what was measured last?"""
    for cell in cells(path, "code"):
        name = re.fullmatch(r"from (\w*pictures) import (\w+)\n\n\2\(\)", cell.source)
        if name:
            alt = cell.outputs[0].metadata["image/png"]["alt"]
            assert alt == pictures()[name[1], name[2]]().alt, f"run {path.name} again and save it"


@each_lesson
def test_ladders_show_the_times_of_the_steps(path):
    """Has each committed ladder its first and last time, and how many times as fast that is, from
    benchmarks/data/steps.json?
    """
    steps = json.loads((ROOT / "benchmarks" / "data" / "steps.json").read_text())["steps"]
    alts = [
        o.metadata["image/png"]["alt"]
        for cell in cells(path, "code")
        for o in cell.outputs
        if "image/png" in o.get("data", {})
    ]
    ladders = [alt for alt in alts if alt.startswith("Steps of ")]
    assert bool(ladders) == ("_ladder()" in "".join(cell.source for cell in cells(path, "code")))
    for alt in ladders:
        problem, last, after, times, first, before = re.fullmatch(LADDER, alt).groups()
        slow, fast = (steps[f"{problem}/{step}"]["ms"] for step in (first, last))
        assert (seconds(before), seconds(after)) == pytest.approx((slow / 1e3, fast / 1e3), rel=0.005), alt
        assert float(times) == pytest.approx(slow / fast, rel=0.05), alt  # two digits


def closure(lessons, needs):
    """The lessons, and all that these need."""
    return lessons.union(*(closure(needs[number], needs) for number in lessons))


def test_lessons_need_what_the_readme_says():
    """Does a lesson say that it needs those lessons that the README's table names, or those that these need anyway?"""
    readme = (ROOT / "lessons" / "README.md").read_text()
    table = re.findall(r"^\| (\d+), [^|]+\| ([^|]+) \|", readme, re.MULTILINE)
    needs = {int(number): numbers(column) for number, column in table}
    assert list(needs) == [int(path.name[:2]) for path in FILES]
    for path in FILES:
        needed = re.search(r"You need lessons? (.+?)\.\s", text(path))
        assert closure(numbers(needed[1] if needed else ""), needs) == closure(needs[int(path.name[:2])], needs), (
            path.name
        )


@each_lesson
def test_links_have_targets(path):
    """Does every relative link, and every file that a lesson names, exist?"""
    targets = re.findall(r"\]\(([^)]+)\)", text(path))
    assert targets
    for target in targets:
        assert target.startswith("https://") or (path.parent / target.split("#")[0]).is_file(), target
    for name in re.findall(r"kernels_(?:ref|student)/[\w/]+\.py", text(path)):
        assert (ROOT / name).is_file(), name


@each_lesson
def test_was_run_in_order(path):
    """Was the notebook run from top to bottom, without an exception, and are its outputs committed?"""
    code = cells(path, "code")
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [o for cell in code for o in cell.outputs if o.output_type == "error" or o.get("name") == "stderr"]


@each_lesson
def test_grades_its_exercise(path):
    """Does the lesson grade its students' files by name (others are paths), and show what is printed before they are
    solved?
    """
    graded = [cell for cell in cells(path, "code") if re.search(r'grader\.check\("\w+"', cell.source)]
    assert graded
    for cell in graded:
        name = re.search(r'grader\.check\("(\w+)"', cell.source)[1]
        assert (ROOT / "kernels_student" / f"{name}.py").is_file()
        assert f"{name}: not attempted" in cell.outputs[0].data["text/plain"]


def test_folded_solution_of_lesson_1_is_the_reference():
    """Is the kernel that lesson 1 shows at its end the one that kernels_ref grades with?"""
    shown = re.search(r"## Solution\n.*?```cpp\n(.*?)\n```", text(FILES[0]), re.DOTALL)[1]
    reference = (ROOT / "kernels_ref" / "conv2d" / "solution.py").read_text()
    section = re.search(r"// >>> exercise:[^\n]*\n(.*?)\n\s*// <<<", reference, re.DOTALL)[1]
    assert shown == textwrap.dedent(section)


@pytest.mark.slow
def test_every_picture_is_used_and_described():
    """Does each function of lessons/*pictures.py return a PNG with alt text, and does a lesson show it?"""
    source = "".join(cell.source for path in FILES for cell in cells(path, "code"))
    for (module, name), draw in pictures().items():
        picture = draw()
        assert picture.data.startswith(b"\x89PNG") and len(picture.alt) > 40
        assert f"from {module} import {name}" in source
